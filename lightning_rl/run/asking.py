"""What is asked of a trained policy: numbers by name, as a command of its network."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from lightning_rl.core.checks import one_number
from lightning_rl.core.config import OFFLINE
from lightning_rl.core.errors import UserError
from lightning_rl.core.limits import WHOLE, did_you_mean, shorten, shown, within
from lightning_rl.methods.base import Method
from lightning_rl.nets.command import Calibration

RAW = "raw_"
"""Before the name of a command's number: what the network takes, calibrated or not."""


class Asked(NamedTuple):
    """What is asked of a policy.

    command: in the order of ``method.command_names``; None: the policy takes none. guidance: how
    much its effect is amplified; None: as the policy has it.
    """

    command: tuple[float, ...] | None = None
    guidance: float | None = None

    def by_name(self, names: Sequence[str]) -> dict[str, float]:
        """The numbers by name, with the guidance if there is one."""
        numbers = dict(zip(names, self.command or (), strict=True))
        return numbers if self.guidance is None else {**numbers, "guidance": self.guidance}


def asked_names(method: Method) -> tuple[str, ...]:
    """What a command may be given by: the names of its numbers, ``return`` of a calibrated policy,
    and the names of the numbers after ``raw_``.
    """
    names = list(method.command_names)
    if method.calibrated() is not None and "return" not in names:
        names.append("return")
    return (*names, *(RAW + name for name in method.command_names))


def unknown_name(name: str, known: Sequence[str]) -> str:
    """What is wrong with a value of a command that a policy of the names ``known`` does not
    know, with the remedy.
    """
    if not known:
        return f"unknown name '{shorten(name)}'; its policy takes no command, leave it out"
    if not name.startswith(RAW):
        known = [each for each in known if not each.startswith(RAW)]
    remedy = did_you_mean(name, known, "this checkpoint knows")
    if name == "return":
        remedy += "; it can be asked for returns after eval CKPT --calibrate"
    return f"unknown name '{shorten(name)}'; {remedy}"


def full_command(method: Method, asked: Mapping[str, float]) -> Asked:
    """The command with the numbers that are ``asked`` for; the others are the checkpoint's.

    ``{"return": 150}`` is the return that the episode is to obtain. A calibrated policy translates
    it to the command that obtains it on average; another, whose commands are returns, takes it as
    it is. ``raw_return`` and the like are what the network takes, of every policy.
    """
    numbers: dict[Any, Any] = {"": None}
    if isinstance(asked, Mapping):
        numbers = {name: one_number(value) for name, value in asked.items()}
    if not all(isinstance(name, str) and number is not None for name, number in numbers.items()):
        raise UserError(f"command {shown(asked)}: give numbers by name, e.g. {{'return': 150}}")
    known_names = asked_names(method)
    for name in numbers:
        if name not in known_names:
            raise UserError(f"command: {unknown_name(name, known_names)}")
    calibration = method.calibrated()
    if "return" in numbers and calibration is not None:
        return _calibrated_command(calibration, numbers, method.first_command() or ())
    given = {}
    for name, value in numbers.items():
        if not abs(value) <= WHOLE:
            first = name.removeprefix(RAW) == method.command_names[0]
            seen = method.command_limits() if first else None
            remedy = f"e.g. {name}=100" if seen is None else f"training saw {within(*seen)}"
            raise UserError(
                f"command {name}={shown(value)}: it is not within {-WHOLE:,} .. {WHOLE:,}; {remedy}"
            )
        if RAW + name in numbers:
            raise UserError(f"command: {name} and {RAW}{name} are the same here; leave one out")
        given[name.removeprefix(RAW)] = value
    # a method of a user's may give the same command always
    usual = method.first_command(given) if given else method.first_command()
    values = {**dict(zip(method.command_names, usual or (), strict=True)), **given}
    if numbers and getattr(method.cfg, OFFLINE, False):
        _warn_beyond_data(method, values)
    return Asked(tuple(values.values()) or None)


def _warn_beyond_data(method: Method, values: Mapping[str, float]) -> None:
    """Says that a dataset has no example of a command: nothing that was played since corrects what
    a policy makes of it.
    """
    name, limits = method.command_names[0], method.command_limits()
    if limits is not None and not limits[0] <= values[name] <= limits[1]:
        warnings.warn(
            f"command {name}={values[name]:g} is beyond the data that was learned from, which has "
            f"{within(*limits)}: what the policy does then is a guess",
            stacklevel=2,  # one place, so that it is said once
        )


def _calibrated_command(
    calibration: Calibration, numbers: Mapping[str, float], usual: Sequence[float]
) -> Asked:
    """The command that obtains a return on average; usual: the numbers of the checkpoint's."""
    if len(numbers) > 1:
        others = ", ".join(name for name in numbers if name != "return")
        raise UserError(
            f"command: return goes without {others}; leave one out, or give {RAW}return if the "
            "network takes one"
        )
    asked, (low, high) = numbers["return"], calibration.limits or (0.0, 0.0)
    if not low <= asked <= high:
        raise UserError(
            f"command return={asked:g}: this policy obtains {within(low, high)} on average; ask "
            "for one of these"
        )
    first, guidance = calibration.command(asked)
    return Asked((first, *usual[1:]), guidance)
