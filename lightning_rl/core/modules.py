"""The modules of a user that may be imported: those that somebody typed, never those that only a
file names.

Typed is what a flag, an argument of a Python function or ``LIGHTNING_RL_MODULES`` says. It is noted
in the environment, so that processes that are started from this one know it, too. Imports nothing
heavy.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from importlib.machinery import ModuleSpec, PathFinder

MODULES = "LIGHTNING_RL_MODULES"
"""The environment variable with a user's modules, by commas, that register methods or parts of
them: so every command and process knows these.
"""

NAME_MODULE = f"export {MODULES}=its_module"
"""The remedy for a name that a module of the user's may register."""

_TYPED = "LIGHTNING_RL_TYPED"  # modules, one a line
_FOLDER = "LIGHTNING_RL_FOLDER"  # where a command was typed
_from_file: ContextVar[bool] = ContextVar("_from_file", default=False)


def of_modules() -> list[str]:
    """The modules that ``LIGHTNING_RL_MODULES`` names."""
    return [name.strip() for name in os.environ.get(MODULES, "").split(",") if name.strip()]


def allow(gamename: object) -> None:
    """Notes that somebody typed this gamename, whose module, if it names one, may be imported
    from now on.
    """
    module = gamename.rpartition(":")[0] if isinstance(gamename, str) else ""
    if module.isprintable() and module and not _from_file.get() and module not in typed():
        os.environ[_TYPED] = "\n".join([*_noted(), module])


@contextmanager
def from_file() -> Iterator[None]:
    """What is called within has its gamenames from a file: they allow nothing."""
    before = _from_file.set(True)
    try:
        yield
    finally:
        _from_file.reset(before)


def may_import(module: str) -> bool:
    """Whether a module was typed, is there already, or is one of this package."""
    return module in typed() or module in sys.modules or module.partition(".")[0] == "lightning_rl"


def _noted() -> list[str]:
    return os.environ.get(_TYPED, "").splitlines()


def typed() -> list[str]:
    """The modules of a user's that somebody typed."""
    return [*_noted(), *of_modules()]


def look_in(folder: str) -> None:
    """Modules that were typed are found in this folder, the present one of a command; others are
    not looked for there.

    Nor are they by the Python processes that are started from here, which would look into the
    present folder first.
    """
    os.environ[_FOLDER] = folder
    os.environ["PYTHONSAFEPATH"] = "1"
    if _TypedModules not in sys.meta_path:
        sys.meta_path.append(_TypedModules)


def looked_in() -> str | None:
    """The folder in which a command was typed; None in a program of the user's own."""
    return os.environ.get(_FOLDER)


def notes() -> dict[str, str]:
    """What a process has to ``take`` that is not started from this one, as on a cluster."""
    return {
        _TYPED: "\n".join(typed()),
        **({} if (folder := looked_in()) is None else {_FOLDER: folder}),
    }


def take(given: Mapping[str, str]) -> None:
    """Allows what the process that sent these notes allows."""
    os.environ.update(given)
    _begin()


class _TypedModules:
    """Finds in a command's folder the modules that were typed."""

    @staticmethod
    def find_spec(
        name: str, path: Sequence[str] | None = None, target: object = None
    ) -> ModuleSpec | None:
        if path is not None or name not in {module.partition(".")[0] for module in typed()}:
            return None
        return PathFinder.find_spec(name, [os.environ[_FOLDER]])


_RANKS = ("RANK", "LOCAL_RANK", "SLURM_PROCID", "JSM_NAMESPACE_RANK")


@contextmanager
def readable_ranks() -> Iterator[None]:
    """Meanwhile no variable of a cluster is there that holds no number: Lightning reads them as
    it is imported, and raises.
    """
    odd = {}
    for name in _RANKS:
        if not os.environ.get(name, "0").isdecimal():
            odd[name] = os.environ.pop(name)
    try:
        yield
    finally:
        os.environ.update(odd)


def advice(error: BaseException) -> str:
    """How to import a module that another one did not find, as it is in the present folder but
    was not typed; or nothing.
    """
    folder, name = looked_in(), (error.name or "") if isinstance(error, ModuleNotFoundError) else ""
    top = name.partition(".")[0]
    if folder is None or not top or PathFinder.find_spec(top, [folder]) is None:
        return ""
    return (
        "; of the present folder only modules that you name are run: export "
        f"{MODULES}={','.join([top, *of_modules()])}"
    )


def _begin() -> None:
    if _FOLDER in os.environ:
        look_in(os.environ[_FOLDER])


_begin()  # in a process that a command has started
