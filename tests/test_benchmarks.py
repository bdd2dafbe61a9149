"""What the benchmarks compute from what they measure; the measuring itself is ``make bench``."""

import importlib

import pytest
from helpers import ROOT


@pytest.fixture
def harness(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    return importlib.import_module("harness")


def test_measures_take_turns_and_the_first_round_does_not_count(harness):
    order, values = [], {"a": iter([99.0, 1.0, 2.0, 3.0, 10.0]), "b": iter([99.0, 5.0, 5.0, 5.0, 5.0])}

    def measure(name):
        order.append(name)
        return next(values[name])

    found = harness.in_turns({name: lambda name=name: measure(name) for name in values}, 4)
    assert order == ["a", "b"] * 5
    assert found == {"a": harness.Spread(2.5, 1.75, 4.75), "b": harness.Spread(5.0, 5.0, 5.0)}


def test_a_spread_as_a_rate(harness):
    spread = harness.Spread(0.002, 0.001, 0.004)
    assert spread.per_second() == harness.Spread(500, 250, 1000)
    assert str(spread.times(1e3)) == "2 (1 – 4)"
    assert str(harness.Spread.of([1234.5])) == "1,234 (1,234 – 1,234)"


def test_operations_of_a_network_by_hand(harness):
    layers = (3 * 5, 5 * 2)  # a product is as many multiplications and additions
    forward, weights, inputs = 2 * 7 * sum(layers), 2 * 7 * sum(layers), 2 * 7 * layers[1]
    assert harness.mlp_flops([3, 5, 2], batch=7, forwards=1) == forward
    assert harness.mlp_flops([3, 5, 2], batch=7, forwards=2, backwards=1) == 2 * forward + weights + inputs


def test_a_work_is_timed_for_each_of_its_units(harness, monkeypatch):
    seconds = iter([10.0, 16.0])
    monkeypatch.setattr(harness.time, "process_time", lambda: next(seconds))
    assert harness.cpu(lambda: None, units=3)() == 2.0


def test_a_table(harness):
    table = harness.Table("Speed", "Of something.", ["", "ms"], [["a", "1"]])
    assert table.markdown() == "## Speed\n\nOf something.\n\n|  | ms |\n| --- | --- |\n| a | 1 |\n"
