"""Verdicts and what is shown of a claim's values, by hand."""

import dataclasses
from types import SimpleNamespace

import pytest
from helpers.claims import entry

from experiments.reproduce import entries
from experiments.reproduce.claims import EarlierSeeds, Goal
from experiments.reproduce.entries import (
    MET,
    NONE,
    NOT_MET,
    REPORTED,
    SOME,
    difference_of_claims,
    goal_text,
    measured_text,
    value_of_claim,
    verdict,
    verdict_text,
)
from experiments.reproduce.thumbnail import bars


@pytest.mark.parametrize(
    ("goal", "values", "word"),
    [
        (Goal(mean=2.0), (), NONE),
        (Goal(mean=2.0), (3.0, 3.0), SOME),
        (Goal(every=2.0), (3.0, 3.0), SOME),
        (Goal(every=2.0), (3.0, 1.0), NOT_MET),  # whatever the third is
        (Goal(every=2.0, seeds=2), (3.0, 1.0), SOME),
        (Goal(every=2.0, seeds=2), (1.0, 1.0), NOT_MET),
        (Goal(every=2.0, lower=True), (3.0,), NOT_MET),
        (None, (1.0, 2.0, 3.0), REPORTED),
        (Goal(mean=2.0), (1.0, 2.0, 3.0), MET),
        (Goal(mean=2.5), (1.0, 2.0, 4.0), NOT_MET),
        (Goal(mean=2.0, every=2.0), (1.0, 2.0, 3.0), NOT_MET),
        (Goal(every=2.0, seeds=2), (1.0, 2.0, 3.0), MET),
        (Goal(mean=2.0, lower=True), (1.0, 2.0, 4.0), NOT_MET),
        (Goal(every=2.0, seeds=2, lower=True), (1.0, 2.0, float("inf")), MET),
        (Goal(above="b"), (5.0, 6.0, 7.0), MET),
        (Goal(above="b"), (2.0, 2.5, 3.0), NOT_MET),
    ],
)
def test_verdicts_by_hand(goal, values, word):
    assert verdict(entry(goal, *values), {"b": entry(None, 1.0, 2.0, 3.0)}) == word


def test_nothing_is_above_what_is_not_measured_yet():
    assert verdict(entry(Goal(above="b"), 5.0, 6.0, 7.0), {"b": entry(None, 1.0, 2.0)}) == SOME


@pytest.mark.parametrize(
    ("goal", "values", "text"),
    [
        (Goal(mean=2.0), (2.9, 3.0, 3.1), "**met**"),  # 3.0 [2.75, 3.25]
        (Goal(mean=2.8), (2.9, 3.0, 3.1), "**met** (interval includes the goal)"),
        (Goal(mean=3.2, lower=True), (2.9, 3.0, 3.1), "**met** (interval includes the goal)"),
        (Goal(mean=3.3, lower=True), (2.9, 3.0, 3.1), "**met**"),
        (Goal(mean=3.2), (2.9, 3.0, 3.1), "**not met**"),
        (Goal(every=2.9), (2.9, 3.0, 3.1), "**met**"),
        (Goal(every=2.95), (2.9, 3.0), "**not met** (2 of 3 seeds)"),
    ],
)
def test_a_mean_that_is_met_by_little_says_so(goal, values, text):
    assert verdict_text(entry(goal, *values), verdict(entry(goal, *values), {})) == text


def test_what_is_met_after_earlier_seeds_says_so():
    found = entry(Goal(mean=2.8), 2.9, 3.0, 3.1)
    earlier = EarlierSeeds(seeds="90-92", values=[1.0, 2.0, 3.0], then="other settings")
    again = dataclasses.replace(
        found, claim=dataclasses.replace(found.claim, earlier_seeds=[earlier])
    )
    assert verdict_text(again, MET) == "**met** (after earlier seeds; interval includes the goal)"
    assert verdict_text(again, NOT_MET) == "**not met**"


def test_what_is_shown_of_values():
    assert measured_text(entry(None, 10.0, 11.0, 15.0)) == "12.0 [5.4, 18.6]"
    assert (
        measured_text(entry(None, 500.0, float("inf"), 700.0))
        == "not reached by 1 of 3 seeds, the others at 500, 700"
    )


def test_goals_in_words():
    assert goal_text(Goal(mean=2.0, every=1.5)) == "mean ≥ 2, every seed ≥ 1.5"
    assert goal_text(Goal(every=3.0, seeds=2, lower=True)) == "2 seeds ≤ 3"


def test_numbers_of_claims_for_pages(monkeypatch):
    measured = {"a": entry(None, 1.0, 2.0, 6.0), "b": entry(None, 1.0, 1.0, 1.0)}
    manifest = SimpleNamespace(chosen=lambda names: {name: measured[name].claim for name in names})
    monkeypatch.setattr(entries, "load_claims", lambda path: manifest)
    monkeypatch.setattr(entries, "read_entry", lambda name, claim, root: measured[name])
    assert [value_of_claim("a", what) for what in ("mean", "min", "max", "seeds")] == [3, 1, 6, 3]
    assert value_of_claim("a", "low") < 3 < value_of_claim("a", "high")
    assert difference_of_claims("a", "b", "mean") == 2


def test_a_curve_in_a_cell_of_a_table():
    assert bars([]) == ""
    assert bars([3.0]) == "▁"
    assert bars([0, 7, 3.4]) == "▁█▄"
    assert bars(range(24)) == "▁▂▂▃▄▄▅▅▆▇▇█"
