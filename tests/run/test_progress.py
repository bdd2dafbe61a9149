"""How far a run is: a bar that can be read at 80 columns, and lines where there is no terminal."""

import io
import itertools
import re
import sys
from types import SimpleNamespace

import pytest
from helpers.runs import train_cli

from lightning_rl.agents import training
from lightning_rl.core import console
from lightning_rl.run.callbacks import RunProgress

SCALARS = {
    "rollout/return_mean": -1151.74,
    "eval/return_mean": -1062.3,
    "eval_greedy/return_mean": -1225.25,
}


@pytest.fixture
def shown(monkeypatch):
    """What is written to a terminal of the given width, without its control sequences, or to a
    file.
    """

    def begin(columns: int | None) -> io.StringIO:
        monkeypatch.setenv("TTY_COMPATIBLE", "0" if columns is None else "1")
        monkeypatch.setenv("COLUMNS", str(columns or 80))
        monkeypatch.setattr(sys, "stderr", io.StringIO())
        return sys.stderr

    return begin


def last_frame(text: str) -> str:
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text).strip().splitlines()[-1].split("\r")[-1]


def train(scalars, epochs=3, budget=1000, steps=123_456, episodes=None, episodes_before=0):
    module = SimpleNamespace(env_steps=0, episodes=episodes_before, scalars={})
    callback = RunProgress("RCP-A lunarlander seed 25", budget, None, episodes)
    callback.on_train_start(SimpleNamespace(current_epoch=0), module)
    for epoch in range(epochs):
        module.env_steps, module.scalars = steps * (epoch + 1), scalars
        callback.on_train_epoch_end(SimpleNamespace(current_epoch=epoch), module)
    callback.on_train_end(SimpleNamespace(), module)


def test_all_that_matters_fits_into_80_columns(shown, monkeypatch):
    seconds = itertools.count(0, 30)
    monkeypatch.setattr(console.time, "monotonic", lambda: next(seconds))
    out = shown(80)
    train(SCALARS)
    line = last_frame(out.getvalue())
    assert len(line) <= 80
    assert re.search(
        r"[━╸]{12} 3 of 1,000 epochs \d+:\d\d:\d\d left rollout -1151\.7 · [\d,]+ steps/s", line
    ), line
    out = shown(160)
    train(SCALARS)
    assert "eval -1062.3 · greedy -1225.2 · epoch 3 · 370,368 steps" in last_frame(out.getvalue())


def test_the_budget_that_ends_first_is_counted_in_its_unit():
    progress = RunProgress("SE", 200, 1_000_000, 1000, epoch="generation")
    assert progress.used(0, 0) == (0.0, "0 of 1,000,000 steps")
    assert progress.used(3, 12_067) == (0.015, "3 of 200 generations")
    assert progress.used(1, 12_067) == (0.012067, "12,067 of 1,000,000 steps")
    assert progress.used(1, 2, 500.0) == (0.5, "500 of 1,000 episodes")
    assert progress.used(1, 1_000_003)[0] == 1.0


def test_a_search_for_proxies_shows_its_fitness(shown):
    out = shown(80)
    train({"es/fitness_mean": 0.98}, epochs=1)
    assert "fitness 0.980" in last_frame(out.getvalue())


def test_after_resume_the_time_left_goes_by_the_episodes_since_then(shown, monkeypatch):
    seconds = itertools.count(0, 30)
    monkeypatch.setattr(console.time, "monotonic", lambda: next(seconds))
    out = shown(None)
    train({"time/episodes": 505.0}, epochs=1, budget=100_000, episodes=1000, episodes_before=500)
    # 495 to go, 5 took a minute
    assert re.search(r" 505 of 1,000 episodes · 1:\d\d:\d\d left", out.getvalue()), out.getvalue()


def test_before_the_first_epoch_the_time_so_far_is_shown(shown):
    out = shown(80)
    train({}, epochs=0)
    assert re.search(r"0 of 1,000 epochs 0:00:0\d so far", last_frame(out.getvalue()))


def test_without_a_terminal_there_is_a_line_at_once_then_now_and_then(shown, monkeypatch):
    seconds = itertools.count(0, 20)
    monkeypatch.setattr(console.time, "monotonic", lambda: next(seconds))
    out = shown(None)
    with console.counting(4, "agents") as advance:
        for _ in range(4):
            advance(1, "DDQN")
    assert out.getvalue().splitlines() == [
        "agents · 1 of 4 agents · 0:01:00 left · DDQN",
        "agents · 3 of 4 agents · 0:00:20 left · DDQN",
    ]


def test_within_an_epoch_the_bar_moves_and_never_back(shown, monkeypatch):
    out = shown(80)
    monkeypatch.setattr(console, "_PART_EVERY_S", 0.0)
    bar = console.ProgressBar("SE", 0.5, "5 of 10 generations", 0.1, "generation")
    bar.show(0.5, "5 of 10 generations", ["fitness 0.98"])
    for part in (0.4, 0.2):  # the second is of an evaluation in the same epoch
        console.under_way(part)
    bar.close()
    console.under_way(0.9)  # no bar is open any more
    line = last_frame(out.getvalue())
    assert re.search(r"5 of 10 generations .* 40% of this generation", line), line
    assert len(line) <= 80


@pytest.mark.parametrize(
    ("implementation", "gamename"), [("SE", "emptyroom22"), ("MBRL", "cartpole-v0")]
)
def test_generations_and_collections_say_how_far_they_are(
    tmp_path, monkeypatch, implementation, gamename
):
    parts = []
    monkeypatch.setattr(training, "under_way", lambda *given: parts.append(max(given)))
    train_cli(tmp_path, 1, gamename=gamename, implementation=implementation)
    assert len(parts) > 1
    assert all(0 <= part <= 1 for part in parts)
    assert max(parts) >= 0.5
