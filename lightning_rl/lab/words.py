"""Commands as people write and read them: ``return=150,horizon=200`` and ``sweep=-300:300``."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

import numpy as np

from lightning_rl.core.errors import UserError
from lightning_rl.core.limits import WHOLE, shorten
from lightning_rl.run.asking import RAW, unknown_name

SWEEP_POINTS, SWEEP_MOST = 13, 16


def parse_command(text: str | None, names: Sequence[str]) -> dict[str, float]:
    """The values that ``--eval_command name=value,...`` gives."""
    given: dict[str, float] = {}
    for part in [] if text is None else text.split(","):
        name, equals, value = part.partition("=")
        name = name.strip()
        if name in given:
            raise _refusal(text, f"{shorten(name)} is given twice; leave one out")
        if not equals:
            known = " or ".join(each for each in names if not each.startswith(RAW)) or "NAME"
            wanted = name if name in names else known
            raise _refusal(part, f"it has no value; write {wanted}=VALUE")
        if name not in names:
            raise _refusal(part, unknown_name(name, names))
        example = "1.5" if name == "advantage" else "250"
        given[name] = _number(value, part, f"write {name}={example}")
    return given


def _refusal(text: str | None, fault: str) -> UserError:
    return UserError(f"command '{shorten(str(text))}': {fault}")


def _number(word: str, text: str, remedy: str) -> float:
    try:
        return float(word)
    except ValueError as error:
        raise _refusal(text, f"'{shorten(word)}' is not a number; {remedy}") from error


def parse_sweep(text: str | None) -> tuple[float, ...] | None:
    """The commands of ``sweep=A,B,...``, or 13 of ``sweep=LOW:HIGH``, none of a plain ``sweep``;
    None for any other text.
    """
    name, equals, points = (text or "").partition("=")
    if name != "sweep":
        return None
    if not equals:
        return ()
    remedy = "expected sweep, sweep=LOW:HIGH or sweep=A,B,..., e.g. sweep=-300:300"
    ranged = ":" in points
    words = points.split(":" if ranged else ",")
    values = tuple(_number(word, str(text), remedy) for word in words)
    if not all(abs(value) <= WHOLE for value in values):
        raise _refusal(text, f"not all of it is within {-WHOLE:,} .. {WHOLE:,}; {remedy}")
    if not 2 <= len(values) <= (2 if ranged else SWEEP_MOST):
        raise _refusal(text, remedy)
    for low, high in itertools.pairwise(values):
        if not low < high:
            raise _refusal(text, f"{low:g} is not below {high:g}; {remedy}")
    return evenly(*values) if ranged else values


def evenly(low: float, high: float) -> tuple[float, ...]:
    """The commands of a sweep over a range."""
    return tuple(np.linspace(low, high, SWEEP_POINTS).tolist())


def exact(value: float) -> str:
    """A number for a file name: in short form where that is exact, else in full."""
    short = f"{value:g}"
    return short if float(short) == value else repr(value)


def in_words(command: Mapping[str, float]) -> str:
    """A command as people read it, e.g. ``return 150, horizon 200``."""
    return ", ".join(f"{name} {value:g}" for name, value in command.items())


def asked_text(given: Mapping[str, float]) -> str | None:
    """What was asked for, in words; None: what the checkpoint's command says."""
    return in_words(given) if given.keys() == {"return"} else None
