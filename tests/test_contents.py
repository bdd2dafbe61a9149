"""Comparing data of unknown origin with a template: what is refused, and how it is named."""

import re

import pytest
import torch

from lightning_rl.core.contents import (
    Also,
    Count,
    Flag,
    ListOf,
    MismatchError,
    Number,
    OneOf,
    Optional,
    Plain,
    TensorOf,
    Text,
    check,
    like,
)

WEIGHTS = {"a": torch.zeros(2, 3), "steps": torch.tensor(4)}
NAN = float("nan")
LOOP: list = []
LOOP.append(LOOP)


def mutated(**changes):
    return {**WEIGHTS, **changes}


def nested(levels):
    return [nested(levels - 1)] if levels > 1 else 0


def test_what_is_like_the_example_passes():
    check(nested(20), Plain())
    check(mutated(a=torch.ones(2, 3)), WEIGHTS)
    check([3, (0.5, "x")], [Count(3, 3), (Number(), Text(1))])
    check(torch.tensor([-1]), like(torch.tensor([0]), signed=True))
    check({"a": 1}, {"a": Count(), "b": Optional(Flag())})
    steps = {"obs": TensorOf(torch.float32, ("T", 2)), "action": like(torch.zeros(1), "T")}
    check({"obs": torch.zeros(5, 2), "action": torch.ones(5)}, steps)
    check(
        torch.tensor([1.0, float("-inf")]), torch.tensor([0.0, float("-inf")])
    )  # where a fresh one is infinite, too


@pytest.mark.parametrize(
    ("content", "template", "named"),
    [
        (mutated(a=torch.zeros(3)), WEIGHTS, "a: float32 [3], expected float32 [2, 3]"),
        (mutated(a=torch.zeros(3, 3)), WEIGHTS, "a: float32 [3, 3], expected float32 [2, 3]"),
        (
            mutated(a=torch.zeros(2, 3).double()),
            WEIGHTS,
            "a: float64 [2, 3], expected float32 [2, 3]",
        ),
        (
            mutated(a=torch.tensor([[0.0, NAN, 0.0], [float("inf"), 1.0, 2.0]])),
            WEIGHTS,
            "a: 2 of 6 numbers are NaN or infinite",
        ),
        (mutated(a=torch.zeros(1).expand(2, 3)), WEIGHTS, "a: float32 [2, 3] of 4 stored bytes"),
        (mutated(a=torch.zeros(2, 1).expand(2, 3)), WEIGHTS, "a: float32 [2, 3] of 8 stored bytes"),
        (mutated(a=torch.zeros(2, 3, requires_grad=True)), WEIGHTS, "a: a tensor of another kind"),
        (mutated(a=torch.zeros(2, 3, device="meta")), WEIGHTS, "a: a tensor of another kind"),
        (mutated(a=torch.zeros(2, 3).to_sparse()), WEIGHTS, "a: a tensor of another kind"),
        (mutated(a=torch.nn.Parameter(torch.zeros(2, 3))), WEIGHTS, "a: float32 [2, 3], expected"),
        (mutated(a=[0.0]), WEIGHTS, "a: a list of 1, expected float32 [2, 3]"),
        (mutated(steps=torch.tensor(-1)), WEIGHTS, "steps: numbers from -1 to -1, expected 0 to"),
        (mutated(b=1), WEIGHTS, "top level: has 'b', which does not belong there"),
        ({"a": WEIGHTS["a"]}, WEIGHTS, "top level: lacks steps"),
        ([1, 2], {"a": 1}, "top level: a list of 2, expected a dict"),
        (
            {"x": {0: {"y": [1, True]}}},
            {"x": {0: {"y": [Count(), Count()]}}},
            "x[0].y[1]: True, expected a whole number from 0",
        ),
        (10**30, Count(), "expected a whole number from 0 to 1000000000000"),
        (-1, Count(), "top level: -1, expected"),
        (NAN, Number(), "top level: nan, expected a finite decimal number"),
        (1, True, "top level: 1, expected True"),
        ("x" * 99, Text(5), "expected text of at most 5 characters"),
        ([1, "x"], ListOf(Count()), "[1]: 'x', expected a whole"),
        ((1,), ListOf(Count()), "top level: a tuple of 1, expected a list"),
        ([1], ListOf(Count(), 2), "top level: a list of 1, expected a list of 2"),
        (
            {"a": [1, 2], "b": [1]},
            {"a": ListOf(Count(), "T"), "b": ListOf(Count(), "T")},
            "b: a list of 1, expected a list of 2",
        ),
        (3, OneOf((None, Flag())), "top level: 3, expected True or False"),
        (
            [2],
            Also([Count()], lambda x: f"{x[0]} is even" if x[0] % 2 == 0 else None),
            "top level: 2 is even",
        ),
        (["x"], Also([Count()], lambda x: None), "[0]: 'x', expected a whole number"),
        (LOOP, Plain(), "more than 20 levels deep"),
        (nested(21), Plain(), "more than 20 levels deep"),
        ({"a": {1: 2}}, Plain(), ".a: 1, expected text as a key"),
        ({"a": torch.zeros(1)}, Plain(), ".a: float32 [1], expected plain text or a number"),
        (
            torch.tensor([2], dtype=torch.uint8).view(torch.bool),
            torch.tensor([True]),
            "neither True nor False",
        ),
        (
            torch.tensor([0, 7]),
            TensorOf(torch.int64, (2,), 0, 3),
            "numbers from 0 to 7, expected 0 to 3",
        ),
    ],
)
def test_the_first_difference_is_named_with_both_sides(content, template, named):
    with pytest.raises(MismatchError, match=re.escape(named)):
        check(content, template)


def test_what_an_alternative_says_of_sizes_counts_only_where_it_holds():
    rule = {
        "a": OneOf(([ListOf(Count(), "T"), True], [ListOf(Count()), False])),
        "b": ListOf(Count(), "T"),
    }
    check({"a": [[1, 2], False], "b": [1]}, rule)
    with pytest.raises(MismatchError, match="b: a list of 1, expected a list of 2"):
        check({"a": [[1, 2], True], "b": [1]}, rule)
