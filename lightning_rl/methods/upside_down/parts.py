"""Parts of a method: small classes that a key of the config chooses by name.

The keys that a part reads are the typed fields of its class; a field that two parts have is the
same key. ``configs/upside_down.yaml`` has the values of the parts of this package, a part of a
user's gives its keys a default.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    Generic,
    TypeVar,
    dataclass_transform,
    get_type_hints,
)

from lightning_rl.core.checks import checked_name
from lightning_rl.core.errors import UserError
from lightning_rl.core.limits import did_you_mean, shown
from lightning_rl.core.modules import MODULES

if TYPE_CHECKING:
    from lightning_rl.methods.upside_down.config import UpsideDownConfig

P = TypeVar("P", bound="Part")


@dataclass_transform(frozen_default=True, kw_only_default=True)
@dataclasses.dataclass(frozen=True, kw_only=True)
class Part:
    """What commands, weightings and targets have in common. Each subclass is a frozen dataclass.

    needs_critic: whether it reads what a critic says, see ``critic.Critic``.
    """

    needs_critic: ClassVar[bool] = False

    def __init_subclass__(cls) -> None:
        dataclasses.dataclass(frozen=True, kw_only=True)(cls)

    @classmethod
    def key_types(cls) -> dict[str, Any]:
        """The type of each key that it reads."""
        hints = get_type_hints(cls, include_extras=True)
        return {each.name: hints[each.name] for each in dataclasses.fields(cls)}

    def check(self, cfg: UpsideDownConfig) -> None:
        """ValueError, with the remedy, where it does not go together with other keys."""


class Kind(Generic[P]):
    """All parts of one kind, by the names that ``key`` of the config chooses them by."""

    def __init__(self, key: str, base: type[P], decorator: str):
        self.key, self.base, self.decorator = key, base, decorator
        self.classes: dict[str, type[P]] = {}

    def register(self, name: str) -> Callable[[type[P]], type[P]]:
        """A decorator that makes a class known under a name.

        Raises:
            UserError: a name that is taken, or a class that is not of this kind.
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
                raise UserError(f"{self.decorator}: '{name}' is taken; choose another name")
            self.classes[name] = cls
            return cls

        return add

    def find(self, name: Any, where: str) -> type[P]:
        """The class of this name; UserError, which begins with ``where``, for an unknown one."""
        if isinstance(name, str) and name in self.classes:
            return self.classes[name]
        remedy = did_you_mean(str(name), list(self.classes), "known are")
        raise UserError(
            f"{where}: key '{self.key}': unknown {shown(name)}; {remedy}; for one of your own, "
            f"export {MODULES}=its_module"
        )

    def make(self, cfg: UpsideDownConfig, values: Mapping[str, Any] | None = None) -> P:
        """The part that a config chooses; values: of keys, in place of those of the config."""
        cls = self.classes[getattr(cfg, self.key)]
        own = {key: getattr(cfg, key) for key in cls.key_types()}
        given = {} if values is None else {key: values[key] for key in own.keys() & values.keys()}
        return cls(**(own | given))
