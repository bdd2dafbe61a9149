"""Implementations by name: a method registers its own, and its module is imported when it is
first asked for.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from lightning_rl.core import catalogue
from lightning_rl.core.checks import checked_name, user_path
from lightning_rl.core.errors import UserError
from lightning_rl.core.limits import did_you_mean, shown

if TYPE_CHECKING:
    from lightning_rl.methods.base import Method

M = TypeVar("M", bound="type[Method]")

_REGISTERED: dict[str, type[Method]] = {}


def register_method(
    *names: str, configs: Path | str | Mapping[str, Any] | None = None
) -> Callable[[M], M]:
    """A decorator that makes a ``Method`` known: training, evaluation, search and the command line
    then find it.

    Args:
        names: the implementations of the class; all of ``configs`` if none is given.
        configs: a file of configs like those of this package, or its content: keys and values by
            implementation, see ``core.catalogue``. Without it, the names are of a file that is
            known already.

    Returns:
        The decorator, which gives back the class as it is.

    Raises:
        UserError: a name that is taken, or that no file of configs has; neither names nor configs,
            or configs in which no block says what it is ``about``.
    """
    if not names and configs is None:
        raise UserError(
            "register_method() names no implementation; give names, or configs= with a block for "
            "each"
        )
    return register("register_method", names, configs)


def register(
    caller: str, names: Sequence[str], configs: Path | str | Mapping[str, Any] | None
) -> Callable[[M], M]:
    """``register_method`` for a function of the user's side, whose name messages begin with."""
    for name in names:
        checked_name(caller, name, "'my-method'")
    source = (
        configs
        if configs is None or isinstance(configs, Mapping)
        else user_path(f"{caller}: configs", configs)
    )
    added = [] if source is None else catalogue.add(source)
    found = names or tuple(added)

    def add(cls: M) -> M:
        if not (isinstance(cls, type) and hasattr(cls, "train_epoch")):
            raise UserError(
                f"register_method decorates a class of lightning_rl's Method, not {shown(cls)}"
            )
        for name in found:
            if name in added or name in catalogue.entries():
                continue
            if source is None:
                raise UserError(
                    f"{caller}: no file of configs has a block '{name}' with a line about it; "
                    "give configs="
                )
            where = f"'{source}'" if isinstance(source, Path) else "configs"
            raise UserError(
                f"{caller}: {where} has no block '{name}' with a line about it; "
                f"{did_you_mean(name, added, 'it has')}"
            )
        cls.implementations = (*cls.__dict__.get("implementations", ()), *found)
        _REGISTERED.update(dict.fromkeys(found, cls))
        return cls

    return add


class _Implementations(Mapping[str, "type[Method]"]):
    def __getitem__(self, name: str) -> type[Method]:
        if name not in _REGISTERED:
            importlib.import_module(f"lightning_rl.methods.{catalogue.entries()[name].module}")
        return _REGISTERED[name]

    def __iter__(self) -> Iterator[str]:
        return iter(catalogue.entries())

    def __len__(self) -> int:
        return len(catalogue.entries())


IMPLEMENTATIONS: Mapping[str, type[Method]] = _Implementations()
"""All implementations by name."""


def implementation(name: str) -> type[Method]:
    """The class that has the implementation of this name or alias, in any case; UserError for an
    unknown one.
    """
    return IMPLEMENTATIONS[catalogue.entry(name).name]


def own_implementation(cls: type[Method], name: str | None) -> str:
    """The name, if it is of an implementation of the class; of None the first that it has."""
    if name is None and cls.implementations:
        return cls.implementations[0]
    if name is None or checked_name("implementation", name, "'RCP-A'") not in cls.implementations:
        known = ", ".join(cls.implementations) or "none, it lacks @register_method"
        raise UserError(f"{cls.__name__} has no implementation {shown(name)}; it has: {known}")
    return name
