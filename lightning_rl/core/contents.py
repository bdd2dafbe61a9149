"""What data of unknown origin must look like: templates, and a comparison that names the first
place that differs.

A template is built of rules (``Count``, ``TensorOf``, ..) and of examples: a tensor is matched by
tensors of its type and shape, a dict by one with its keys, a list or tuple by one of its length,
anything else by its equal.
"""

from __future__ import annotations

import math
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeGuard

from lightning_rl.core.limits import PLAIN_DEPTH, WHOLE, shorten, shown

if TYPE_CHECKING:
    import torch
    from torch import Tensor

Sizes = dict[str, int]
"""What the named dimensions met so far have turned out to be."""


class MismatchError(ValueError):
    """The first place where data differs from its template: ``a.b[0].c: what is there, what is
    expected``.
    """


def check(content: Any, template: Any, where: str = "", sizes: Sizes | None = None) -> None:
    """Compares the whole content with the template, MismatchError if it differs; dimensions of
    one name have one size.
    """
    _rule(template).check(content, where, {} if sizes is None else sizes)


class Rule(ABC):
    """A template that is more than an example."""

    @abstractmethod
    def check(self, value: Any, where: str, sizes: Sizes) -> None:
        """MismatchError, naming the place ``where``, if the value breaks the rule."""


def _rule(template: Any) -> Rule:
    match template:
        case Rule():
            return template
        case _ if _is_tensor(template):
            return like(template)
        case Mapping():
            return Fields(template)
        case list() | tuple():
            return _Items(template)
    return _Equal(template)


def _refuse(where: str, value: Any, expected: str) -> None:
    raise MismatchError(f"{where or 'top level'}: {describe(value)}, expected {expected}")


def describe(value: Any) -> str:
    """A value in a few words; tensors and containers by their kind and size."""
    match value:
        case _ if _is_tensor(value):
            return f"{_plain_name(value.dtype)} {list(value.shape)}"
        case bool() | int() | float() | str() | None:
            return shown(value)
        case dict() | list() | tuple():
            return f"a {type(value).__name__} of {len(value)}"
    return f"a {type(value).__name__}"


def _name(key: Any) -> str:
    return shorten(key) if isinstance(key, str) else shown(key)


def _is_tensor(value: Any) -> TypeGuard[Tensor]:
    """Whether it is a tensor; without torch, which lists of runs are read without, there is
    none.
    """
    return "torch" in sys.modules and isinstance(value, sys.modules["torch"].Tensor)


def _plain_name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


@dataclass(frozen=True)
class _Equal(Rule):
    example: Any

    def check(self, value: Any, where: str, sizes: Sizes) -> None:
        if type(value) is not type(self.example) or value != self.example:
            _refuse(where, value, shown(self.example))


@dataclass(frozen=True)
class Optional(Rule):
    """The template of a key that may be missing."""

    template: Any

    def check(self, value: Any, where: str, sizes: Sizes) -> None:
        check(value, self.template, where, sizes)


@dataclass(frozen=True)
class Fields(Rule):
    """A dict of these fields; more: others may be there as well, of whatever content."""

    fields: Mapping[Any, Any]
    more: bool = False

    def check(self, value: Any, where: str, sizes: Sizes) -> None:
        if not isinstance(value, dict):
            _refuse(where, value, "a dict")
        for key, template in self.fields.items():
            if key in value:
                place = (
                    f"[{key}]"
                    if isinstance(key, int)
                    else f".{_name(key)}"
                    if where
                    else _name(key)
                )
                check(value[key], template, where + place, sizes)
            elif not isinstance(template, Optional):
                raise MismatchError(f"{where or 'top level'}: lacks {_name(key)}")
        for key in value:
            if key not in self.fields and not self.more:
                raise MismatchError(
                    f"{where or 'top level'}: has {describe(key)}, which does not belong there"
                )


@dataclass(frozen=True)
class _Items(Rule):
    templates: list[Any] | tuple[Any, ...]

    def check(self, value: Any, where: str, sizes: Sizes) -> None:
        if type(value) is not type(self.templates) or len(value) != len(self.templates):
            _refuse(where, value, f"a {type(self.templates).__name__} of {len(self.templates)}")
        for number, template in enumerate(self.templates):
            check(value[number], template, f"{where}[{number}]", sizes)


@dataclass(frozen=True)
class Count(Rule):
    """A whole number."""

    low: int = 0
    high: int = WHOLE

    def check(self, value: Any, where: str, sizes: Sizes) -> None:
        if type(value) is not int or not self.low <= value <= self.high:
            _refuse(where, value, f"a whole number from {self.low} to {self.high}")


@dataclass(frozen=True)
class Number(Rule):
    """A float that is finite."""

    low: float = -math.inf
    high: float = math.inf

    def check(self, value: Any, where: str, sizes: Sizes) -> None:
        if (
            type(value) is not float
            or not math.isfinite(value)
            or not self.low <= value <= self.high
        ):
            limits = "" if math.isinf(self.low) else f" from {self.low:g} to {self.high:g}"
            _refuse(where, value, f"a finite decimal number{limits}")


@dataclass(frozen=True)
class Flag(Rule):
    """True or False."""

    def check(self, value: Any, where: str, sizes: Sizes) -> None:
        if type(value) is not bool:
            _refuse(where, value, "True or False")


@dataclass(frozen=True)
class Text(Rule):
    """Text of at most ``most`` characters."""

    most: int

    def check(self, value: Any, where: str, sizes: Sizes) -> None:
        if type(value) is not str or len(value) > self.most:
            _refuse(where, value, f"text of at most {self.most} characters")


@dataclass(frozen=True)
class Plain(Rule):
    """Anything made of dicts with text as keys, lists, tuples, text, numbers, True, False and
    None; mapping: a dict of these.
    """

    mapping: bool = False

    def check(self, value: Any, where: str, sizes: Sizes) -> None:
        if self.mapping and not isinstance(value, dict):
            _refuse(where, value, "a dict")
        self._check(value, where, PLAIN_DEPTH)

    def _check(self, value: Any, where: str, depth: int) -> None:
        if depth == 0:
            raise MismatchError(f"{where}: more than {PLAIN_DEPTH} levels deep")
        if isinstance(value, dict):
            for key, part in value.items():
                if type(key) is not str:
                    _refuse(where, key, "text as a key")
                self._check(part, f"{where}.{shorten(key)}", depth - 1)
        elif type(value) in (list, tuple):
            for number, part in enumerate(value):
                self._check(part, f"{where}[{number}]", depth - 1)
        elif type(value) not in (str, bool, int, float, type(None)):
            _refuse(where, value, "plain text or a number")


@dataclass(frozen=True)
class ListOf(Rule):
    """A list of ``template``; length: exact, or the name of a dimension, or None: low to high
    items.
    """

    template: Any
    length: int | str | None = None
    low: int = 0
    high: int = WHOLE

    def check(self, value: Any, where: str, sizes: Sizes) -> None:
        if type(value) is not list:
            _refuse(where, value, "a list")
        length = (
            sizes.setdefault(self.length, len(value))
            if isinstance(self.length, str)
            else self.length
        )
        low, high = (self.low, self.high) if length is None else (length, length)
        if not low <= len(value) <= high:
            _refuse(where, value, f"a list of {low if low == high else f'{low} to {high}'}")
        for number, part in enumerate(value):
            check(part, self.template, f"{where}[{number}]", sizes)


@dataclass(frozen=True)
class OneOf(Rule):
    """Any of the templates; of words all are named in a mismatch, else that with the last is
    reported.
    """

    templates: tuple[Any, ...]

    def check(self, value: Any, where: str, sizes: Sizes) -> None:
        if len(self.templates) > 1 and all(type(template) is str for template in self.templates):
            return (
                None
                if value in self.templates
                else _refuse(where, value, f"one of: {', '.join(map(shown, self.templates))}")
            )
        for template in self.templates[:-1]:
            tried = dict(sizes)
            try:
                check(value, template, where, tried)
            except MismatchError:
                continue
            sizes |= tried
            return
        check(value, self.templates[-1], where, sizes)


@dataclass(frozen=True)
class Also(Rule):
    """A template, and what else must hold where it does; test: the reason why not, or None."""

    template: Any
    test: Callable[[Any], str | None]

    def check(self, value: Any, where: str, sizes: Sizes) -> None:
        check(value, self.template, where, sizes)
        if (reason := self.test(value)) is not None:
            raise MismatchError(f"{where or 'top level'}: {reason}")


@dataclass(frozen=True)
class TensorOf(Rule):
    """A dense tensor on the CPU. shape: sizes, or names of them, or None for any. low, high: limits
    of every number.

    Floats must be finite unless ``infinite``, and may never be NaN.
    """

    dtype: torch.dtype
    shape: tuple[int | str | None, ...]
    low: float = -math.inf
    high: float = math.inf
    infinite: bool = False

    def check(self, value: Any, where: str, sizes: Sizes) -> None:
        shape = ["any" if size is None else str(sizes.get(str(size), size)) for size in self.shape]
        expected = f"{_plain_name(self.dtype)} [{', '.join(shape)}]"
        if (
            type(value) is not sys.modules["torch"].Tensor
            or value.dtype != self.dtype
            or value.dim() != len(self.shape)
        ):
            _refuse(where, value, expected)
        _require_dense(value, where)
        for size, found in zip(self.shape, value.shape, strict=True):
            if size is not None and found != (
                sizes.setdefault(size, found) if isinstance(size, str) else size
            ):
                _refuse(where, value, expected)
        if value.numel():
            self._check_numbers(value, where)

    def _check_numbers(self, value: Tensor, where: str) -> None:
        if value.is_floating_point():
            bad = int((value.isnan() if self.infinite else ~value.isfinite()).sum())
            if bad:
                raise MismatchError(
                    f"{where}: {bad} of {value.numel()} numbers are NaN or infinite"
                )
        if _plain_name(value.dtype) == "bool":
            if int(value.view(sys.modules["torch"].uint8).max()) > 1:
                raise MismatchError(f"{where}: holds bytes that are neither True nor False")
            return
        low, high = value.min().item(), value.max().item()
        if low < self.low or high > self.high:
            raise MismatchError(
                f"{where}: numbers from {low:g} to {high:g}, expected {self.low:g} to {self.high:g}"
            )


def _require_dense(value: Tensor, where: str) -> None:
    """Refuses tensors with more elements than are stored, or that are views, sparse, quantised
    or on another device.
    """
    simple = (
        str(value.layout) == "torch.strided"
        and value.device.type == "cpu"
        and not (value.is_nested or value.is_quantized)
    )
    if not simple or value.requires_grad or value.is_conj() or value.is_neg():
        raise MismatchError(f"{where}: a tensor of another kind than dense numbers on the CPU")
    if value.numel() * value.element_size() > value.untyped_storage().nbytes():
        raise MismatchError(
            f"{where}: {describe(value)} of {value.untyped_storage().nbytes()} stored bytes"
        )


def like(
    example: Tensor, first: int | str | None = None, high: float | None = None, signed: bool = False
) -> TensorOf:
    """Tensors like ``example``; first: size or name of the first dimension. Whole numbers are
    counts, unless signed.
    """
    shape = tuple(example.shape) if first is None else (first, *example.shape[1:])
    whole = not (example.is_floating_point() or _plain_name(example.dtype) == "bool")
    infinite = example.is_floating_point() and not bool(example.isfinite().all())
    highest = (WHOLE if whole else math.inf) if high is None else high
    lowest = (-WHOLE if signed else 0) if whole else -math.inf
    return TensorOf(example.dtype, shape, lowest, highest, infinite)


def rows_like(examples: Mapping[str, Tensor], first: int | str) -> dict[str, TensorOf]:
    """Tensors by name, whose first dimension has the size, or the name, ``first``."""
    return {name: like(example, first) for name, example in examples.items()}
