"""Whether the code of a claim's training has changed since its seeds were run.

The code is what a method's module imports, one file after the other, in the packages whose code
makes numbers. Settings are compared elsewhere: a test holds each stored ``config_hash`` to what
ships.
"""

from __future__ import annotations

import ast
import functools
import itertools
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from experiments.reproduce.checkout import ROOT, git
from experiments.reproduce.claims import TRAININGS, Claim
from lightning_rl.core.catalogue import entry
from lightning_rl.core.errors import UserError

_PACKAGES = ("agents", "envs", "evolution", "functional", "methods", "nets", "rollouts")
_NUMBERS = tuple(f"lightning_rl/{name}/" for name in _PACKAGES)
_COMPILED = re.compile(r"/fused\w*\.py$|_fused\w*\.py$")


@functools.cache
def imported(path: str) -> frozenset[str]:
    """The files of the package that a file imports, also within functions, but not for types."""
    found = set()
    for name in _imports(ast.parse((ROOT / path).read_text())):
        place = name.replace(".", "/")
        for each in (f"{place}.py", f"{place}/__init__.py"):
            if each != path and (ROOT / each).is_file():
                found.add(each)
    return frozenset(found)


def _imports(node: ast.AST) -> Iterator[str]:
    """Names that may be modules: of ``from a import b`` both ``a`` and ``a.b``."""
    if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
        return
    if isinstance(node, ast.ImportFrom) and node.module:
        yield node.module
        yield from (f"{node.module}.{alias.name}" for alias in node.names)
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    for child in ast.iter_child_nodes(node):
        yield from _imports(child)


def code_of(claim: Claim) -> frozenset[str]:
    """The files that make the numbers of the claim's trainings."""
    methods = set()
    for command in claim.commands:
        words = shlex.split(command)
        if words[0] in TRAININGS:
            flags = dict(itertools.pairwise(words))
            methods.add(entry(flags["--implementation"]).module)
    return frozenset().union(*map(_reached, methods))


@functools.cache
def _reached(module: str) -> frozenset[str]:
    """The files of numbers that a module of ``lightning_rl.methods`` reaches."""
    place = f"lightning_rl/methods/{module.replace('.', '/')}"
    new = {each for each in (f"{place}.py", f"{place}/__init__.py") if (ROOT / each).is_file()}
    seen: set[str] = set()
    while new:
        seen |= new
        new = {each for path in new for each in imported(path) if each.startswith(_NUMBERS)} - seen
    return frozenset(seen)


@dataclass(frozen=True)
class Changes:
    """What has changed in a checkout since earlier commits. root: of the checkout."""

    root: Path
    _known: dict[str, frozenset[str] | None] = field(default_factory=dict)

    def since(self, commit: str) -> frozenset[str] | None:
        """The files that differ now; None where the history lacks the commit."""
        if commit not in self._known:
            try:
                named = git(self.root, "diff", "--name-only", commit, "HEAD", "--", "lightning_rl")
                self._known[commit] = frozenset(named.split())
            except UserError:
                self._known[commit] = None
        return self._known[commit]

    def text(self, claim: Claim, commit: str) -> str:
        """What of the claim's code has changed, in words; empty where nothing has."""
        files, code = self.since(commit), code_of(claim)
        if files is None:
            return "which this history lacks"
        changed = files & code
        if not changed:
            return ""
        compiled = any(map(_COMPILED.search, changed))
        beside = ", compiled ones among them" if compiled else ""
        return f"since when {len(changed)} of the {len(code)} files of its code changed{beside}"
