"""Whether data of unknown origin is what it should be: what is refused, and how it is named."""

import re

import pytest
import torch

from lightning_rl.core.contents import (
    FLAG,
    PLAIN_DICT,
    MismatchError,
    check,
    check_alike,
    check_tensors,
    count,
    either,
    is_plain,
    list_of,
    maybe,
    number,
    text,
    word,
)

NAN = float("nan")
LOOP: list = []
LOOP.append(LOOP)
RULES = {
    "size": count(1, 9),
    "share": maybe(number(0.0, 1.0)),
    "name": maybe(text(5)),
    "kind": maybe(word("a", "b")),
    "flag": maybe(FLAG),
    "sizes": maybe(list_of(count(), 3)),
    "seed": maybe(either(count(), text(5))),
    "config": maybe(PLAIN_DICT),
}


def nested(levels):
    return [nested(levels - 1)] if levels > 1 else 0


def test_what_keeps_the_rules_passes():
    check({"size": 1}, RULES)
    values = {"share": 0.5, "name": "abcde", "kind": "a", "flag": True, "sizes": [0, 1, 2]}
    check({"size": 9, **values, "seed": "x", "config": {"a": [1, None, ("x",)]}}, RULES)
    check({"size": 9, "seed": 3}, RULES)


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({"size": 10**30}, "at.size: 1000000"),
        ({"size": 0}, "at.size: 0, expected a whole number from 1 to 9"),
        ({"size": True}, "at.size: True"),
        ({"share": 1.5}, "at.share: 1.5, expected a decimal number from 0.0 to 1.0"),
        ({"share": NAN}, "at.share: nan"),
        ({"share": 1}, "at.share: 1"),
        ({"name": "x" * 6}, "expected text of at most 5 characters"),
        ({"kind": "c"}, "at.kind: 'c', expected one of: a, b"),
        ({"kind": ["a"]}, "at.kind: a list of 1"),
        ({"flag": 1}, "at.flag: 1, expected True or False"),
        ({"sizes": [1, "x"]}, "at.sizes: a list of 2, expected a list of at most 3"),
        ({"sizes": [1] * 4}, "at.sizes: a list of 4"),
        ({"sizes": (1,)}, "at.sizes: a tuple of 1"),
        ({"seed": None}, "at.seed: None, expected a whole number"),
        ({"config": {1: 2}}, "at.config: a dict of 1, expected a dict of plain text"),
        ({"config": {"a": torch.zeros(1)}}, "at.config"),
        ({"other": 1}, "at: has 'other', which does not belong there"),
    ],
)
def test_the_first_broken_rule_is_named_with_both_sides(changed, named):
    with pytest.raises(MismatchError, match=re.escape(named)):
        check({"size": 1, **changed}, RULES, "at")


def test_what_is_no_dict_or_lacks_a_key_is_named():
    with pytest.raises(MismatchError, match="top level: a list of 1, expected a dict"):
        check([1], RULES)
    with pytest.raises(MismatchError, match="top level: lacks size"):
        check({}, RULES)
    with pytest.raises(MismatchError, match=r"^size: 0"):
        check({"size": 0}, RULES)


def test_plain_data_has_an_end():
    assert is_plain(nested(20))
    assert not is_plain(nested(21))
    assert not is_plain(LOOP)


EXAMPLE = {
    "weights": {"a": torch.zeros(2, 3)},
    "rate": (0.5, True),
    "steps": 4,
    "name": "x",
    "past": [],
}


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({"weights": {"a": torch.zeros(3, 3)}}, "weights.a: float32 [3, 3], expected float32"),
        ({"weights": {"a": torch.zeros(2, 3).double()}}, "weights.a: float64 [2, 3], expected"),
        ({"weights": {"a": [0.0]}}, "weights.a: a list of 1, expected float32 [2, 3]"),
        ({"weights": {"b": torch.zeros(2, 3)}}, "weights: has 'b', which does not belong there"),
        ({"weights": [1]}, "weights: a list of 1, expected a dict"),
        ({"rate": (0.5,)}, "rate: a tuple of 1, expected a tuple of 2"),
        ({"rate": [0.5, True]}, "rate: a list of 2, expected a tuple of 2"),
        ({"rate": (NAN, True)}, "rate[0]: nan, expected a finite decimal number"),
        ({"rate": (0.5, 1)}, "rate[1]: 1, expected True"),
        ({"steps": -1}, "steps: -1, expected a whole number from 0"),
        ({"name": "y"}, "name: 'y', expected 'x'"),
        ({"past": {}}, "past: a dict of 0, expected a list of 0"),
    ],
)  # fmt: skip
def test_what_is_built_otherwise_than_the_example_is_named(changed, named):
    with pytest.raises(MismatchError, match=re.escape(f"at.{named}")):
        check_alike({**EXAMPLE, **changed}, EXAMPLE, "at")


def test_other_numbers_and_what_is_empty_are_alike():
    other = {"rate": (0.9, False), "steps": 9, "past": [1, 2], "weights": {}}
    check_alike({**EXAMPLE, **other}, EXAMPLE, "at")
    check_alike(torch.zeros(5, 1), torch.zeros(2, 3), "at", exact=False)
    with pytest.raises(MismatchError, match="at: lacks past"):
        check_alike({key: EXAMPLE[key] for key in EXAMPLE if key != "past"}, EXAMPLE, "at")
    with pytest.raises(MismatchError, match=r"at: float32 \[5\], expected float32 \[2, 3\]"):
        check_alike(torch.zeros(5), torch.zeros(2, 3), "at", exact=False)


@pytest.mark.parametrize(
    ("value", "named"),
    [
        (torch.tensor([0.0, NAN, float("inf")]), "2 of 3 numbers are NaN or infinite"),
        (torch.zeros(1).expand(2, 3), "float32 [2, 3] of 4 stored bytes"),
        (torch.zeros(2, 1).expand(2, 3), "float32 [2, 3] of 8 stored bytes"),
        (torch.zeros(2, 3, device="meta"), "a tensor of another kind"),
        (torch.zeros(2, 3).to_sparse(), "a tensor of another kind"),
        (LOOP, "more than 20 levels deep"),
    ],
)
def test_tensors_that_are_not_all_there_are_named(value, named):
    check_tensors({"a": [torch.zeros(2), 1, "x"]}, "at")
    with pytest.raises(MismatchError, match=re.escape(named)):
        check_tensors({"a": [torch.zeros(2), value]}, "at")
