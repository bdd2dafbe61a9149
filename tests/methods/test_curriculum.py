"""Searches whose first generations are judged by shorter episodes of the real task."""

from types import SimpleNamespace as Named

import pytest
import torch
from helpers.runs import last, run_cli, run_dir, train_cli

from lightning_rl.lab.scalars import read_scalar
from lightning_rl.methods.curriculum import GrowingHorizon
from lightning_rl.methods.proxy_search import ProxySearch
from lightning_rl.methods.registry import implementation

CUT = {
    "test_horizon": "[20,4]",
    "keep": "last",
    "eval_interval": 1,
    "eval_agents": 1,
    "population": 2,
    "center_agents": 1,
}


def test_the_limit_grows_evenly_to_that_of_the_task():
    loop = implementation("SE")("cartpole-v0", seed=0).inner_loop
    curriculum = GrowingHorizon(loop, 20, 4)
    assert [curriculum.horizon(generation) for generation in range(6)] == [
        20,
        65,
        110,
        155,
        200,
        200,
    ]


ONE_STEP = {
    "one_step": True,
    "strategy": "snes",
    "latent_size": 2,
    "proxy_horizon": "null",
    "cap_ends": False,
}


@pytest.mark.parametrize("learners", [{}, {**ONE_STEP, "perfect_generations": 2}])
def test_tests_of_a_generation_are_cut_those_of_an_evaluation_are_not(tmp_path, learners):
    """Who has hardly learned swings no Acrobot up: its return is the length of the episode.
    Perfect learners are tested alike.
    """
    settings = {**CUT, **learners, "max_train_steps": 20, "stop_rule": "none"}
    train_cli(tmp_path, 5, implementation="SE", gamename="acrobot", **settings)
    scores = last(tmp_path, "SE", "acrobot")["callbacks"]["SaveProxy"]["curve"]
    limits = [-20, -140, -260, -380, -500]
    assert all(score >= limit for score, limit in zip(scores, limits, strict=True))
    assert (
        sum(score == limit for score, limit in zip(scores, limits, strict=True)) >= 4
    )  # one may get up by chance
    folder = run_dir(tmp_path, "acrobot", implementation="SE")
    assert min(read_scalar(folder, "eval/return_mean").value) < -380
    logged = read_scalar(folder, "es/fitness_mean")
    assert logged.value.tolist() == pytest.approx(scores)
    if learners:  # who takes no steps is logged over generations until others do
        taken = (2 * 2 + 1) * 2  # agents, and their episodes of one step
        assert logged.env_steps.tolist() == [1, 2, taken, 2 * taken, 3 * taken]


def test_whole_episodes_alone_solve_a_task(tmp_path):
    """In 20 steps nobody loses more than 20, which is no sign of an Acrobot that swings up."""
    settings = {**CUT, "stop_when_solved": True, "solved_return": -499.5, "max_train_steps": 20}
    settings["eval_interval"] = 9
    train_cli(tmp_path, 4, implementation="SE", gamename="acrobot", **settings)
    state = last(tmp_path, "SE", "acrobot")["callbacks"]["SaveProxy"]
    assert len(state["curve"]) == 4
    assert "solved" not in state
    assert state["curve"][0] == -20


def test_processes_and_resumption_give_the_same(tmp_path):
    runs = [("a", 3, ()), ("b", 3, ("--num_workers", "2")), ("c", 1, ()), ("c", 3, ("--resume",))]
    for name, epochs, flags in runs:
        train_cli(tmp_path / name, epochs, *flags, implementation="SD", **CUT)
    a, b, c = (last(tmp_path / name, "SD") for name in "abc")
    assert a["callbacks"]["SaveProxy"] == b["callbacks"]["SaveProxy"] == c["callbacks"]["SaveProxy"]
    assert torch.equal(a["state_dict"]["strategy.mean"], c["state_dict"]["strategy.mean"])


@pytest.mark.parametrize(
    ("name", "settings", "words"),
    [
        (
            "SE",
            {"test_horizon": "[20,4]"},
            "whole episodes have other scores than cut ones; use keep=last, or null",
        ),
        (
            "SE",
            {"test_horizon": "[500,4]", "keep": "last"},
            "episodes have 500 steps at most, 500 cut nothing",
        ),
        (
            "RN",
            {"test_horizon": "[20,4]", "keep": "last", "objective": "auc", "stop_rule": "none"},
            "is of the judge_episodes, which are not cut",
        ),
        (
            "SE",
            {"test_horizon": 20, "keep": "last"},
            "key 'test_horizon': Input should be a valid list",
        ),
        ("SD", {"test_horizon": "[20]"}, "key 'test_horizon': List should have at least 2 items"),
    ],
)
def test_what_has_no_effect_is_refused(tmp_path, capsys, name, settings, words):
    assert run_cli(tmp_path, implementation=name, **settings) == 2
    assert words in capsys.readouterr().err


def test_cut_episodes_solve_nothing():
    search = Named(cfg=Named(test_horizon=[10, 3]), inner_loop=Named(solved_return=-100.0))
    members = {"items": [Named(sign=0)], "outcomes": [Named(test_return=-10.0)]}
    assert [
        ProxySearch.solves(search, Named(number=number, **members)) for number in (0, 2, 3)
    ] == [False, False, True]
