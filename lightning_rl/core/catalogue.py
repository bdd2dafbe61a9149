"""The implementations by name, and what the files in ``configs/`` say about them. Imports none of
the libraries that run them.

A family's file holds ``legend`` (the letters of the values' sources), ``shared`` (what all its
implementations have), and a block for each implementation; a block without ``about`` is a group
that others extend. Each of these blocks may hold ``default``, blocks of gamenames, ``presets`` and
``tune``.
"""

from __future__ import annotations

import functools
import importlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lightning_rl.core.checks import checked_name
from lightning_rl.core.errors import UnknownNameError, UserError
from lightning_rl.core.limits import nearest, shorten, shown
from lightning_rl.core.modules import MODULES, NAME_MODULE, advice, of_modules
from lightning_rl.core.yaml_files import parse_yaml, read_yaml

CONFIGS = Path(__file__).resolve().parent.parent / "configs"
"""In a checkout the package's ``configs`` is a link to the top-level folder."""

FAMILIES = (
    "upside_down",
    "pareto",
    "policy_gradient",
    "agents",
    "proxy_search",
    "supervised_model",
    "model_based",
)
SHARED = "shared"
BASELINE = "SB3-"
"""Before the name of an implementation: Stable-Baselines3's agent with the same settings."""


@dataclass(frozen=True, eq=False)
class Block:
    """One block of a family's document; path: of its file, None where it was given as a mapping."""

    path: Path | None
    name: str
    values: Mapping[str, Any]

    @property
    def file(self) -> str:
        """The name of its file, for messages."""
        return "configs" if self.path is None else self.path.name


@dataclass(frozen=True)
class Entry:
    """An implementation. module: the one in ``lightning_rl.methods`` that has it, empty for one
    from outside.

    blocks: what its config is read from, in rising order of precedence.
    """

    name: str
    about: str
    aliases: tuple[str, ...]
    module: str
    blocks: tuple[Block, ...]


_added: dict[str, Entry] = {}
_importing: list[str] = []  # what MODULES says, while it is being imported


@functools.cache
def _shipped() -> dict[str, Entry]:
    found: dict[str, Entry] = {}
    for family in FAMILIES:
        path = CONFIGS / f"{family}.yaml"
        document = parse_yaml(path.read_text(), f"'{path}' is damaged", trusted=True)
        found |= _entries(document, path, family)
    return found


def _entries(document: Any, path: Path | None, family: str = "") -> dict[str, Entry]:
    """The implementations of a family's document."""
    where = "configs" if path is None else f"'{path}'"
    if not isinstance(document, Mapping) or not all(
        isinstance(block, Mapping) for block in document.values()
    ):
        raise UserError(
            f"{where}: expected blocks of implementations by name, got {shown(document)}"
        )
    blocks = {
        name: Block(path, name, values) for name, values in document.items() if name != "legend"
    }

    def names(block: Block, key: str) -> list[str]:
        value = block.values.get(key) or []
        value = [value] if isinstance(value, str) else value
        if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
            raise UserError(
                f"{where}, block '{block.name}': {key} must be a name or a list of names, got "
                f"{shown(value)}"
            )
        return value

    def lineage(name: str, below: tuple[str, ...] = ()) -> list[Block]:
        if name in below:
            raise UserError(
                f"{where}, block '{name}': it extends itself, by {' and '.join(below)}; leave one "
                "out"
            )
        found = [blocks[SHARED]] if SHARED in blocks else []
        for parent in names(blocks[name], "extends"):
            if parent not in blocks and family:
                raise UserError(
                    f"{where}, block '{name}': it extends '{parent}', which is not there; name "
                    "another"
                )
            if parent in blocks:
                found += lineage(parent, (*below, name))
            else:
                found += (_known().get(parent) or entry(parent)).blocks
        return [*found, blocks[name]]

    return {
        name: Entry(
            name,
            str(block.values["about"]),
            tuple(names(block, "aliases")),
            str(block.values.get("module", family)),
            tuple(dict.fromkeys(lineage(name))),
        )
        for name, block in blocks.items()
        if "about" in block.values
    }


def entries() -> dict[str, Entry]:
    """All implementations by name. A call by one of the user's modules while it is being
    imported gets those known so far.
    """
    import_own_modules()
    return _known()


def import_own_modules() -> None:
    """Imports what ``LIGHTNING_RL_MODULES`` names, so that what it registers is known by name."""
    names = os.environ.get(MODULES, "")
    if names and not _importing:
        _importing.append(names)
        try:
            _import_modules(names)
        finally:
            _importing.clear()


def _known() -> dict[str, Entry]:
    """The implementations that are there without importing anything: a module that is half
    loaded may ask for them.
    """
    return {**_shipped(), **_added}


@functools.cache
def _import_modules(names: str) -> None:
    for name in of_modules():
        try:
            importlib.import_module(name)
        except (Exception, SystemExit) as error:
            reason = shorten(f"{type(error).__name__}: {error}", 300)
            remedy = "; mend it, add its folder to PYTHONPATH, or unset the variable"
            raise UserError(
                f"{MODULES}={shorten(names)}: importing {shorten(name)}: {reason}"
                f"{advice(error) or remedy}"
            ) from error


def aliases() -> dict[str, str]:
    """Short names, with the long ones that paths, configs and checkpoints carry."""
    return {alias: entry.name for entry in entries().values() for alias in entry.aliases}


def canonical(name: str) -> str:
    """The implementation that an alias, or the name in any case, means; an unknown name is
    returned unchanged.
    """
    known = {known.lower(): known for known in entries()}
    short = {alias.lower(): long for alias, long in aliases().items()}
    return {**short, **known}.get(name.lower(), name)


def entry(name: str) -> Entry:
    """The implementation of this name or alias, in any case; UserError for an unknown one."""
    known = entries()
    if (full := canonical(checked_name("implementation", name, "'RCP-A'"))) in known:
        return known[full]
    near = nearest(name, [*aliases(), *known])
    hint = f"did you mean '{near}'? Choose" if near else "choose"
    raise UnknownNameError(
        f"implementation '{shorten(name)}' is unknown; {hint} one of: {', '.join(known)}; for a "
        f"method of yours, {NAME_MODULE}"
    )


def add(source: Path | Mapping[str, Any]) -> list[str]:
    """Adds implementations from outside the package.

    Args:
        source: A file like those in ``configs/``, or its content: blocks by name, of which those
            with ``about`` are implementations. ``extends`` may name implementations of this
            package, too.

    Returns:
        The names of the implementations.

    Raises:
        UserError: For what is no such file or content, for one without implementations, and for a
            name that is taken.
    """
    path = source if isinstance(source, Path) else None
    document = source if isinstance(source, Mapping) else read_yaml(source)
    if not (found := _entries(document, path)):
        where = "configs" if path is None else f"'{path}'"
        lack = ", ".join(
            f"'{shorten(str(name))}'" for name in document if name not in ("legend", SHARED)
        )
        what = f"these lack the line about: {shorten(lack, 300)}" if lack else "it has none"
        raise UserError(
            f"{where}: no block is of an implementation, {what}; give one 'about: what it is', as "
            "in configs/"
        )
    taken = {name.lower() for ours in _shipped().values() for name in (ours.name, *ours.aliases)}
    for new in found.values():
        for name in (new.name, *new.aliases):
            if name.lower() in taken:
                raise UserError(
                    f"implementation '{shorten(name)}' cannot be added, the name is taken; choose "
                    "another"
                )
    _added.update(found)
    return list(found)
