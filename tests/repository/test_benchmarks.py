"""What the benchmarks compute from what they measure; the measuring itself is ``make bench``."""

import csv
import dataclasses
import importlib
import subprocess
import sys

import pytest
from helpers import ROOT

from lightning_rl.core.errors import UserError


@pytest.fixture(autouse=True)
def _beside_benchmarks(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))


@pytest.fixture
def harness():
    return importlib.import_module("harness")


def test_measures_take_turns_and_the_first_round_does_not_count(harness):
    order, values = (
        [],
        {"a": iter([99.0, 1.0, 2.0, 3.0, 10.0]), "b": iter([99.0, 5.0, 5.0, 5.0, 5.0])},
    )

    def measure(name):
        order.append(name)
        return next(values[name])

    found = harness.in_turns({name: lambda name=name: measure(name) for name in values}, 4)
    assert order == ["a", "b"] * 5
    assert found == {"a": harness.Spread(2.5, 1.75, 4.75), "b": harness.Spread(5.0, 5.0, 5.0)}


def test_operations_of_a_network_by_hand(harness):
    layers = (3 * 5, 5 * 2)  # a product is as many multiplications and additions
    forward, weights, inputs = 2 * 7 * sum(layers), 2 * 7 * sum(layers), 2 * 7 * layers[1]
    assert harness.mlp_flops([3, 5, 2], batch=7, forwards=1) == forward
    assert (
        harness.mlp_flops([3, 5, 2], batch=7, forwards=2, backwards=1)
        == 2 * forward + weights + inputs
    )


def test_a_family_that_fails_costs_its_own_tables_alone(monkeypatch, tmp_path):
    bench, page = importlib.import_module("bench"), tmp_path / "speed.md"

    def apart(family, smoke):
        assert smoke
        if family == "loops":
            raise UserError("no other library")
        return f"## Of {family}\n"

    monkeypatch.setattr(bench, "apart", apart)
    with pytest.raises(UserError, match=r"^loops was not measured: no other library$"):
        bench.main(["--smoke", "--only", "start", "loops", "updates", "--out", str(page)])
    text = page.read_text()
    assert "* commit: " in text
    assert [line for line in text.splitlines() if line.startswith("## ")] == [
        "## Of start",
        "## loops",
        "## Of updates",
        "## Agents beside those of other libraries",
    ]
    assert "Not measured: no other library" in text
    assert "| agent | seeds | ours | rejax |" in text


def test_updates_stand_beside_their_products():
    (updates,) = importlib.import_module("bench_updates").tables(True)
    assert [row[0] for row in updates.rows] == [
        "RCP-A, policy",
        "RCP-A, policy, by torch",
        "RCP-A, critic",
        "UDRL",
        "UDRL, batches of 768",
        "AAC, 1,000 steps",
        "PPO",
        "PPO, by torch",
    ]
    assert all(float(row[-1]) > 0 for row in updates.rows)


@pytest.mark.parametrize(
    "name", ["simple-model", "ER with graphs", "DDQN", "DuelingDDQN", "TD3", "PPO"]
)
def test_a_step_on_a_gpu_is_measured_from_idle_to_idle(name, monkeypatch):
    """On a CPU, which is told as a GPU would be."""
    torch, bench = importlib.import_module("torch"), importlib.import_module("bench_gpu")
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: order.append("waits"))
    order, measure = [], bench.wall(name, 2, torch.device("cpu"), 64 if name == "PPO" else 1)
    assert 0 < measure() < 60
    assert order == ["waits", "waits"]
    assert set(bench.CASES) == {
        *bench.MFLOP,
        *(name + bench.GRAPHS for name in bench.MFLOP),
        "DDQN",
        "DuelingDDQN",
        "TD3",
        "PPO",
    }
    assert list(bench.tables(True)) == [] or torch.cuda.is_available()


@pytest.mark.parametrize("name", ["DDQN", "PPO", "TD3"])
@pytest.mark.parametrize(
    ("library", "package"),
    [
        ("ours", "torch"),
        ("Stable-Baselines3", "stable_baselines3"),
        ("sbx", "sbx"),
        ("rejax", "rejax"),
    ],
)
def test_a_side_trains_and_is_tested(name, library, package):
    """sbx and rejax are in the environment of ``make peers`` alone."""
    pytest.importorskip(package)
    case = importlib.import_module("peer_cases").CASES[name].quick()
    small = dataclasses.replace(case, steps=case.steps // 4)
    seeds = 2 if library in ("ours", "rejax") else 1
    module = importlib.import_module(importlib.import_module("peers").MODULES[library])
    side = module.side(library, small, seeds)
    assert side.turn() > 0
    returns = side.returns()
    assert len(returns) == seeds
    assert all(-1700 < value < 0 if name == "TD3" else 8 <= value <= 500 for value in returns)


def test_a_row_of_a_comparison_by_hand():
    """Of ten steps of two seeds. The first turn, of 5 ms a step, took 60 ms longer than the others;
    ours took a half and a quarter of theirs; the last three evaluations of the seeds have means of
    160 and 139, of which 140 are needed.
    """
    peers, cases = importlib.import_module("peers"), importlib.import_module("peer_cases")
    case = dataclasses.replace(cases.CASES["DDQN"], steps=10)
    returns = [[0.0, 0.0], [9.0, 9.0], [150.0, 139.0], [160.0, 129.0], [170.0, 149.0]]
    seconds = {"rejax": [5e-3, 2e-3, 2e-3, 2e-3, 2e-3], "ours": [9.0, 1e-3, 5e-4, 1e-3, 5e-4]}
    turns = {
        library: [peers.Turn(*each) for each in zip(taken, returns, strict=True)]
        for library, taken in seconds.items()
    }
    row = peers.row(case, 2, "rejax", turns)
    assert [row[name] for name in ("ms", "over", "over_low", "over_high")] == [
        "2",
        "0.375",
        "0.25",
        "0.5",
    ]
    assert [row[name] for name in ("compile_s", "return_mean", "learned", "needed")] == [
        "0.06",
        "149.5",
        1,
        140,
    ]


def test_what_is_measured_at_this_commit_stays_and_a_failure_costs_itself_alone(
    monkeypatch, tmp_path, capsys
):
    peers, path, measured = importlib.import_module("peers"), tmp_path / "peers.csv", []
    commit = "abc"

    def compare(name, quick):
        measured.append(name)
        if name == "TD3-1" and len(measured) == 2:
            assert path.read_text().count("DDQN") == 1  # what is whole is kept at once
            raise UserError("no JAX")
        agent, seeds = name.split("-")
        numbers = dict.fromkeys(peers.COLUMNS[5:11], 1)
        return [{**numbers, "agent": agent, "seeds": seeds, "library": "ours", "commit": commit}]

    monkeypatch.setattr(peers, "compare", compare)
    monkeypatch.setattr(peers.machine, "commit", lambda: commit)
    monkeypatch.setattr(peers.os, "sched_setaffinity", lambda *given: None, raising=False)
    words = ["--out", str(path), "--only", "DDQN-1", "TD3-1"]
    with pytest.raises(UserError, match=r"^TD3-1 was not measured: no JAX$"):
        peers.main(words)
    peers.main(words)
    assert measured == ["DDQN-1", "TD3-1", "TD3-1"]
    assert "DDQN-1: measured at this commit" in capsys.readouterr().out
    commit = "abd"
    peers.main(words)
    assert measured[3:] == ["DDQN-1", "TD3-1"]
    with path.open(newline="") as file:
        assert [(row["agent"], row["commit"]) for row in csv.DictReader(file)] == [
            ("DDQN", "abd"),
            ("TD3", "abd"),
        ]


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_whole_bench_runs(tmp_path):
    pytest.importorskip("stable_baselines3")
    page = tmp_path / "speed.md"
    command = [sys.executable, "benchmarks/bench.py", "--smoke", "--out", str(page)]
    assert subprocess.run(command, cwd=ROOT, check=False).returncode == 0
    families = set(importlib.import_module("bench").FAMILIES) - {"gpu"}
    tables = page.read_text().count("\n## ")
    gpu = importlib.import_module("torch").cuda.is_available()
    expected = len(families) + 1  # and that of other libraries
    assert tables >= expected if gpu else tables == expected
