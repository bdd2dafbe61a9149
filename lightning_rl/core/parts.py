"""Parts of a method: small classes that a key of its config chooses by name.

The keys that a part reads are the typed fields of its class; a field that two parts have is the
same key. ``configs/`` has the values of the parts of this package, a part of a user's gives its
keys a default.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar, Generic, TypeVar, dataclass_transform, get_type_hints

from pydantic.dataclasses import dataclass as config_dataclass

from lightning_rl.core.checks import checked_name
from lightning_rl.core.errors import UnknownNameError, UserError
from lightning_rl.core.limits import did_you_mean, nearest, shown
from lightning_rl.core.modules import NAME_MODULE
from lightning_rl.core.schema import STRICT

P = TypeVar("P", bound="Part")
Choice = tuple[str, Any]
"""A key and one of its values."""


@dataclass_transform(frozen_default=True, kw_only_default=True)
@dataclasses.dataclass(frozen=True, kw_only=True)
class Part:
    """A part of a method. Each subclass is a frozen dataclass of the keys that it reads.

    requires: further parts that a method has with this one, and whose keys are read as well.
    to_define: what a subclass has to define.
    """

    requires: ClassVar[tuple[type[Part], ...]] = ()
    to_define: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls) -> None:
        dataclasses.dataclass(frozen=True, kw_only=True)(cls)

    @classmethod
    def keys_read(cls) -> set[str]:
        """Its keys and those of the parts that it requires."""
        parts = (cls, *cls.requires)
        return {field.name for part in parts for field in dataclasses.fields(part)}

    @classmethod
    def check_class(cls) -> None:
        """ValueError, with the remedy, for a class that cannot be a part."""
        own = [name for name in vars(cls) if not name.startswith("_")]
        for base in cls.__mro__:
            for name in vars(base).get("to_define", ()):
                if getattr(cls, name, None) is vars(base).get(name):
                    near = nearest(name, [each for each in own if not hasattr(Part, each)])
                    found = "" if near is None else f", only '{near}'"
                    raise ValueError(f"it has no '{name}'{found}; define {name}")
        fields = {field.name for field in dataclasses.fields(cls)}
        declared = set[str]().union(*(inspect.get_annotations(base) for base in cls.__mro__))
        untyped = (fields | (set(own) - declared)) - set(inspect.get_annotations(cls))
        for name in own:
            value = getattr(cls, name)
            if name in untyped and isinstance(value, bool | int | float | str | list | tuple):
                raise ValueError(
                    f"'{name}' has no type, so it is no key; write {name}: "
                    f"{type(value).__name__} = {shown(value)}"
                )

    def check(self, cfg: Any) -> None:
        """ValueError, with the remedy, where it does not go together with other keys."""


def part_of(cls: type[P], cfg: Any, values: Mapping[str, Any] | None = None) -> P:
    """A part with the values of a config; values: of some keys, in place of the config's."""
    values = {} if values is None else values
    keys = [field.name for field in dataclasses.fields(cls)]
    return cls(**{key: values[key] if key in values else getattr(cfg, key) for key in keys})


class Kind(Generic[P]):
    """All parts of one kind, by the names that ``key`` of the config chooses them by."""

    def __init__(self, key: str, base: type[P], decorator: str):
        self.key, self.base, self.decorator = key, base, decorator
        self.classes: dict[str, type[P]] = {}

    def register(self, name: str) -> Callable[[type[P]], type[P]]:
        """A decorator that makes a class known under a name.

        Raises:
            UserError: a name that is taken, or a class that is not of this kind or lacks something.
        """
        checked_name(self.decorator, name, "'my-part'")

        def add(cls: type[P]) -> type[P]:
            if not (isinstance(cls, type) and issubclass(cls, self.base)):
                raise UserError(
                    f"{self.decorator} decorates a class of lightning_rl's {self.base.__name__}, "
                    f"not {shown(cls)}"
                )
            known = self.classes.get(name, cls)
            if (known.__module__, known.__qualname__) != (cls.__module__, cls.__qualname__):
                raise UserError(
                    f"{self.decorator}: '{name}' is taken, by {known.__name__} of module "
                    f"{known.__module__}; choose another name"
                )
            try:
                cls.check_class()
            except ValueError as error:
                raise UserError(
                    f"{self.decorator}('{name}'): {cls.__name__} (module {cls.__module__}): {error}"
                ) from error
            self.classes[name] = cls
            return cls

        return add

    def find(self, name: Any, where: str) -> type[P]:
        """The class of this name; UserError, which begins with ``where``, for an unknown one."""
        if isinstance(name, str) and name in self.classes:
            return self.classes[name]
        remedy = did_you_mean(str(name), list(self.classes), "known are")
        raise UnknownNameError(
            f"{where}: key '{self.key}': unknown {shown(name)}; {remedy}; for one of your own, "
            f"{NAME_MODULE}"
        )

    def make(self, cfg: Any, values: Mapping[str, Any] | None = None) -> P:
        """The part that a config chooses; values: of keys, in place of those of the config."""
        return part_of(self.classes[getattr(cfg, self.key)], cfg, values)


_CLASSES: dict[tuple[type, ...], Any] = {}


def with_keys(base: Any, *parts: type[Part]) -> Any:
    """A config class that has the keys of these parts, too, of equal arguments the same one.

    Raises:
        UserError: a key of a user's part that has no default.
    """
    if (base, *parts) in _CLASSES:
        return _CLASSES[base, *parts]
    known = {field.name for field in dataclasses.fields(base)}
    types, defaults = {}, {}
    for part in parts:
        hints = get_type_hints(part, include_extras=True)
        for field in dataclasses.fields(part):
            if field.name in known:
                continue
            types[field.name] = hints[field.name]
            if field.default is not dataclasses.MISSING:
                defaults[field.name] = field.default
            elif not is_ours(part):
                raise UserError(
                    f"key '{field.name}' of {part.__name__} has no default; give one: "
                    f"{field.name}: float = 1.0"
                )
    content = {"__annotations__": types, "__module__": base.__module__, "__doc__": base.__doc__}
    cls: Any = type(base.__name__, (base,), content | defaults)
    make: Any = config_dataclass(frozen=True, config=STRICT, kw_only=True)
    _CLASSES[base, *parts] = make(cls)
    return _CLASSES[base, *parts]


def with_own_parts(
    base: Any, kinds: Sequence[Kind[Any]], layers: Iterable[tuple[str, Mapping[str, Any]]]
) -> Any:
    """The config class with the keys of those parts of a user's that the layers (where, values)
    choose; UserError for a part that nobody has registered.
    """
    layers, own = list(layers), []
    for kind in kinds:
        given = [(where, values[kind.key]) for where, values in layers if kind.key in values]
        if given:
            where, name = given[-1]
            part = kind.find(name, where)
            if not is_ours(part):
                own.append(part)
    return with_keys(base, *own) if own else base


def keys_of_other_parts(
    cfg: Any, kinds: Iterable[Kind[Any]], switches: Mapping[Choice, Sequence[str]]
) -> dict[str, str]:
    """The keys that no chosen part reads, each with the remedy.

    switches: keys of the method that are read with a choice alone.
    """
    readers: dict[str, list[Choice]] = {}
    for choice, keys in switches.items():
        for key in keys:
            readers.setdefault(key, []).append(choice)
    for kind in kinds:
        for name, part in kind.classes.items():
            for key in part.keys_read():
                readers.setdefault(key, []).append((kind.key, name))
    unread = {}
    for key, choices in readers.items():
        if not any(getattr(cfg, choice) == value for choice, value in choices):
            unread[key] = f"nothing reads it; set {_in_words(choices)} as well"
    return unread


def _in_words(choices: Sequence[Choice]) -> str:
    """E.g. ``command=return|advantage or target=tilted``."""
    names: dict[str, list[str]] = {}
    for key, value in choices:
        names.setdefault(key, []).append(str(value))
    return " or ".join(f"{key}={'|'.join(values)}" for key, values in names.items())


def is_ours(cls: type) -> bool:
    """Whether a class is of this package."""
    return cls.__module__.startswith("lightning_rl.")


@functools.cache
def overridden(own: type, base: type) -> frozenset[str]:
    """What a class derived from ``base`` has in an own way of what ``base`` has, but for
    ``__init__`` and the like.
    """
    between = own.__mro__[: own.__mro__.index(base)]
    names = {name for cls in between for name in vars(cls) if hasattr(base, name)}
    return frozenset(name for name in names if not name.startswith(("__", "_abc_")))
