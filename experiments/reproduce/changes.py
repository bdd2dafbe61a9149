"""``results/code.csv``: whether the code of a claim has changed since its seeds ran.

It is written with the ledger, which reads it: so a page stays what it is in a later checkout, and
in one without the history. The code is what the modules behind the claim's commands import, one
file after the other, in the packages whose code makes numbers. Settings are compared elsewhere: a
test holds each stored ``config_hash`` to what ships.
"""

from __future__ import annotations

import ast
import functools
import itertools
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from experiments.reproduce.checkout import ROOT, git
from experiments.reproduce.claims import Claim
from experiments.reproduce.store import read_runs
from lightning_rl.core.catalogue import entry
from lightning_rl.core.errors import UserError
from lightning_rl.core.files import make_folder, write_text
from lightning_rl.core.gamenames import OWN_CLASSES
from lightning_rl.lab.protocols.registry import PROTOCOLS as SHIPPED
from lightning_rl.lab.tables import Rows, csv_lines, read_rows

CODE = Path("results/code.csv")
COLUMNS = ("claim", "commit", "changed", "files", "compiled")
_PACKAGES = ("agents", "envs", "evolution", "functional", "methods", "nets", "rollouts")
_NUMBERS = (
    *(f"lightning_rl/{name}/" for name in _PACKAGES),
    "lightning_rl/core/adam.py",
    "lightning_rl/core/seeding.py",
    "lightning_rl/lab/protocols/",
    "experiments/baselines.py",
    "experiments/protocols/",
)
_EVAL = tuple(f"lightning_rl/lab/{name}.py" for name in ("calibration", "evaluate", "obedience"))
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
    """The files that make the numbers of the claim."""
    begins = [path for command in claim.commands for path in _begins(shlex.split(command))]
    return frozenset().union(*map(_reached, begins))


def _begins(words: Sequence[str]) -> Sequence[str]:
    """The files that a command begins in."""
    from experiments.commands import PROTOCOLS

    if words[0] == "eval":
        return _EVAL
    if words[0] == "proxies":
        run = {**SHIPPED, **PROTOCOLS}[words[1]].run
        return (_file_of(str(run)),)
    if words[0] == "baseline":
        return ("experiments/baselines.py",)
    flags = dict(itertools.pairwise(words))
    module = entry(flags["--implementation"]).module.replace(".", "/")
    place = f"lightning_rl/methods/{module}"
    files = [f"{place}.py", f"{place}/__init__.py"]
    if flags["--gamename"] in OWN_CLASSES:  # imported by its name, not by a statement
        files.append(_file_of(OWN_CLASSES[flags["--gamename"]]))
    return files


def _file_of(name: str) -> str:
    """The file of ``module:attribute``."""
    return f"{name.partition(':')[0].replace('.', '/')}.py"


@functools.cache
def _reached(path: str) -> frozenset[str]:
    """The files of numbers that a file reaches, itself among them; none where it is not there."""
    new = {path} if (ROOT / path).is_file() else set()
    seen: set[str] = set()
    while new:
        seen |= new
        new = {each for path in new for each in imported(path) if each.startswith(_NUMBERS)} - seen
    return frozenset(seen)


def write_changes(claims: Mapping[str, Claim], root: Path) -> None:
    """Writes the file anew, for the checkout as its commit has it."""
    differing: dict[str, frozenset[str] | None] = {}
    lines: Rows = [COLUMNS]
    for name, claim in claims.items():
        code = code_of(claim)
        for commit in dict.fromkeys(row["commit"] for row in read_runs(root, claim)):
            if commit not in differing:
                differing[commit] = _differing(root, commit)
            files = differing[commit]
            if files is None:
                lines.append((name, commit, "", "", ""))
                continue
            changed = files & code
            compiled = sum(bool(_COMPILED.search(path)) for path in changed)
            lines.append((name, commit, str(len(changed)), str(len(code)), str(compiled)))
    make_folder((root / CODE).parent)
    write_text(root / CODE, csv_lines(lines))


def _differing(root: Path, commit: str) -> frozenset[str] | None:
    """The files that have changed since; None where the history lacks the commit."""
    try:
        named = git(
            root, "diff", "--name-only", commit, "HEAD", "--", "lightning_rl", "experiments"
        )
    except UserError:
        return None
    return frozenset(named.split())


def read_changes(root: Path) -> dict[tuple[str, str], Mapping[str, str]]:
    """The rows by claim and commit; none where the file is not there."""
    return {(row["claim"], row["commit"]): row for row in read_rows(root / CODE)}


def rounds_otherwise(root: Path, claim: str, commit: str) -> bool:
    """Whether compiled code of the claim has changed since a commit, as far as the file knows."""
    row = read_changes(root).get((claim, commit))
    return row is not None and row["compiled"] != "0"


def change_text(row: Mapping[str, str] | None) -> str:
    """What of a claim's code has changed, in words; empty where nothing has, or nobody looked."""
    if row is None or row["changed"] == "0":
        return ""
    if not row["changed"]:
        return "which this history lacks"
    beside = "" if row["compiled"] == "0" else ", compiled ones among them"
    return f"since when {row['changed']} of the {row['files']} files of its code changed{beside}"
