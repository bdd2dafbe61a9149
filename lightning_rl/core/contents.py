"""Whether plain data of unknown origin is what it should be; if not, the first place where it is
not.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn, TypeGuard

from lightning_rl.core.limits import PLAIN_DEPTH, WHOLE, shorten, shown

if TYPE_CHECKING:
    from torch import Tensor


class MismatchError(ValueError):
    """The first place where data is not as it should be: ``a.b: what is there, expected what``."""


@dataclass(frozen=True)
class Rule:
    """What a value must be, as a test and in words; optional: its key may be missing."""

    holds: Callable[[Any], bool]
    expected: str
    optional: bool = False


def count(low: int = 0, high: int = WHOLE) -> Rule:
    """A whole number."""
    return Rule(
        lambda value: type(value) is int and low <= value <= high,
        f"a whole number from {low} to {high}",
    )


def number(low: float = -math.inf, high: float = math.inf) -> Rule:
    """A finite float."""
    return Rule(
        lambda value: type(value) is float and math.isfinite(value) and low <= value <= high,
        "a finite decimal number" if math.isinf(low) else f"a decimal number from {low} to {high}",
    )


def text(most: int) -> Rule:
    """Text of at most ``most`` characters."""
    return Rule(
        lambda value: type(value) is str and len(value) <= most,
        f"text of at most {most} characters",
    )


def word(*known: str) -> Rule:
    """One of the known words."""
    return Rule(lambda value: type(value) is str and value in known, f"one of: {', '.join(known)}")


def list_of(rule: Rule, most: int = WHOLE) -> Rule:
    """A list of at most ``most`` such values."""
    return Rule(
        lambda value: type(value) is list and len(value) <= most and all(map(rule.holds, value)),
        f"a list of at most {most}, each {rule.expected}",
    )


def either(first: Rule, second: Rule) -> Rule:
    """What one of two rules allows."""
    return Rule(
        lambda value: first.holds(value) or second.holds(value),
        f"{first.expected}, or {second.expected}",
    )


def maybe(rule: Rule) -> Rule:
    """The same for a key that may be missing."""
    return Rule(rule.holds, rule.expected, optional=True)


def is_plain(value: Any, depth: int = PLAIN_DEPTH) -> bool:
    """Whether it is made of dicts with text as keys, lists, tuples, text, numbers, True, False and
    None, in at most ``depth`` levels.
    """
    if depth == 0:
        return False
    if isinstance(value, dict):
        return all(type(key) is str for key in value) and is_plain(list(value.values()), depth)
    if type(value) in (list, tuple):
        return all(is_plain(part, depth - 1) for part in value)
    return type(value) in (str, bool, int, float, type(None))


FLAG = Rule(lambda value: type(value) is bool, "True or False")
NOTHING = Rule(lambda value: value is None, "None")
PLAIN_DICT = Rule(
    lambda value: isinstance(value, dict) and is_plain(value),
    f"a dict of plain text, numbers and lists, at most {PLAIN_DEPTH} levels deep",
)


def check(content: Any, rules: Mapping[str, Rule], where: str = "") -> None:
    """MismatchError unless the content is a dict of these keys, whose values keep the rules."""
    if not isinstance(content, dict):
        _refuse(where, content, "a dict")
    for key, rule in rules.items():
        if key not in content:
            if not rule.optional:
                raise MismatchError(f"{where or 'top level'}: lacks {key}")
        elif not rule.holds(content[key]):
            _refuse(f"{where}.{key}".lstrip("."), content[key], rule.expected)
    _refuse_more_keys(content, rules, where)


def check_alike(content: Any, example: Any, where: str, exact: bool = True) -> None:
    """MismatchError unless the content is built like the example: containers of the same keys and
    lengths, tensors of the same type.

    Any whole number of 0 or more stands for another, any finite decimal number, True and False.
    What is empty, in the content or in the example, stands for whatever may be there.

    exact: tensors have the example's shape; else only its number of dimensions.
    """
    if _is_tensor(example):
        same = _is_tensor(content) and content.dtype == example.dtype
        same = same and content.dim() == example.dim()
        if not same or (exact and content.shape != example.shape):
            _refuse(where, content, describe(example))
    elif isinstance(example, dict):
        if not isinstance(content, dict):
            _refuse(where, content, "a dict")
        if content and example:
            _refuse_more_keys(content, example, where)
            for key, value in example.items():
                if key not in content:
                    raise MismatchError(f"{where}: lacks {shorten(str(key))}")
                check_alike(content[key], value, f"{where}.{key}", exact)
    elif isinstance(example, list | tuple):
        if type(content) is not type(example) or (example and len(content) != len(example)):
            _refuse(where, content, describe(example))
        for place, value in enumerate(example):
            check_alike(content[place], value, f"{where}[{place}]", exact)
    elif type(example) in (int, float):
        rule = count() if type(example) is int else number()
        if not rule.holds(content):
            _refuse(where, content, rule.expected)
    elif type(content) is not type(example) or (type(example) is str and content != example):
        _refuse(where, content, shown(example))


def check_tensors(content: Any, where: str, depth: int = PLAIN_DEPTH) -> None:
    """MismatchError unless every tensor in the content is dense, on the CPU, stored in full and
    finite.
    """
    if depth == 0:
        raise MismatchError(f"{where}: more than {PLAIN_DEPTH} levels deep")
    if _is_tensor(content):
        _require_dense(content, where)
        require_finite(content, where)
    elif isinstance(content, dict):
        for key, value in content.items():
            check_tensors(value, f"{where}.{shorten(str(key))}", depth - 1)
    elif isinstance(content, list | tuple):
        for place, value in enumerate(content):
            check_tensors(value, f"{where}[{place}]", depth - 1)


def require_finite(value: Tensor, where: str) -> None:
    """MismatchError for a tensor in which some numbers are not finite."""
    bad = int((~value.isfinite()).sum())
    if bad:
        raise MismatchError(f"{where}: {bad} of {value.numel()} numbers are NaN or infinite")


def describe(value: Any) -> str:
    """A value in a few words; tensors and containers by their kind and size."""
    if _is_tensor(value):
        return f"{str(value.dtype).removeprefix('torch.')} {list(value.shape)}"
    if isinstance(value, bool | int | float | str | None):
        return shown(value)
    if isinstance(value, dict | list | tuple):
        return f"a {type(value).__name__} of {len(value)}"
    return f"a {type(value).__name__}"


def _refuse(where: str, value: Any, expected: str) -> NoReturn:
    raise MismatchError(f"{where or 'top level'}: {describe(value)}, expected {expected}")


def _refuse_more_keys(content: Mapping[Any, Any], known: Mapping[Any, Any], where: str) -> None:
    for key in content:
        if key not in known:
            raise MismatchError(
                f"{where or 'top level'}: has {describe(key)}, which does not belong there"
            )


def _is_tensor(value: Any) -> TypeGuard[Tensor]:
    """Whether it is a tensor; where torch is not imported, e.g. to list runs, there is none."""
    return "torch" in sys.modules and isinstance(value, sys.modules["torch"].Tensor)


def _require_dense(value: Tensor, where: str) -> None:
    """Refuses tensors with more elements than are stored, e.g. with a stride of 0, and those that
    are sparse, quantised or on another device.
    """
    dense = str(value.layout) == "torch.strided" and not (value.is_nested or value.is_quantized)
    if not dense or value.device.type != "cpu":
        raise MismatchError(f"{where}: a tensor of another kind than dense numbers on the CPU")
    stored = value.untyped_storage().nbytes()
    if value.numel() * value.element_size() > stored:
        raise MismatchError(f"{where}: {describe(value)} of {stored} stored bytes")
