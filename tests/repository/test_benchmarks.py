"""What the benchmarks compute from what they measure; the measuring itself is ``make bench``."""

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
        if family == "members":
            raise UserError("no other library")
        return f"## Of {family}\n"

    monkeypatch.setattr(bench, "apart", apart)
    with pytest.raises(UserError, match=r"^members was not measured: no other library$"):
        bench.main(["--smoke", "--only", "start", "members", "updates", "--out", str(page)])
    text = page.read_text()
    assert "* commit: " in text
    assert [line for line in text.splitlines() if line.startswith("## ")] == [
        "## Of start",
        "## members",
        "## Of updates",
    ]
    assert "Not measured: no other library" in text


def test_updates_stand_beside_their_products():
    updates, parts = importlib.import_module("bench_updates").tables(True)
    assert [row[0] for row in updates.rows] == [
        "RCP-A, policy",
        "RCP-A, critic",
        "UDRL",
        "UDRL, batches of 768",
        "AAC, 1,000 steps",
        "PPO",
    ]
    assert all(float(row[-1]) > 0 for row in updates.rows)
    assert [row[0] for row in parts.rows[:-1]] == [
        "forward pass and loss",
        "gradients",
        "clipping",
        "Adam",
        "average that acts",
    ]


def test_what_no_part_takes_of_an_update_is_lightnings(harness):
    """Of 200 us: gradients are measured with the forward pass, 50 with its 20; these two and
    Adam's 10 leave 140.
    """
    medians = {"the whole": 2e-4, "forward pass and loss": 2e-5, "gradients": 5e-5, "Adam": 1e-5}
    found = {name: harness.Spread(median, 0.0, 1.0) for name, median in medians.items()}
    assert [row[1:] for row in importlib.import_module("bench_updates").shares(found)] == [
        ["20", "10%"],
        ["30", "15%"],
        ["10", "5%"],
        ["140", "70%"],
    ]


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
    assert tables >= len(families) + 1 if gpu else tables == len(families) + 1  # updates have two
