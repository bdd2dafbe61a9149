import itertools
from types import SimpleNamespace

import pytest
from helpers.runs import last, run_cli, run_dir, train_cli

from lightning_rl.lab.scalars import read_scalar
from lightning_rl.methods import base
from lightning_rl.methods.registry import implementation

CASES = [
    ("UDRL", "cartpole", {}),
    ("RCP-A", "cartpole", {}),
    ("AAC", "cartpole", {}),
    ("DDQN", "cartpole", {}),
    ("SE", "cliff", {}),
    ("ER", "procmaze-3", {"steps_per_epoch": 150}),
]


def test_judges_steps_are_counted_as_evaluation(tmp_path):
    """With ``judge: test`` real episodes are played after each training episode; here nothing
    else is evaluated.
    """
    settings = {
        "judge": "test",
        "train_episodes": 4,
        "learning_starts": 0,
        "eval_interval": 10**6,
        "steps_per_epoch": 20,
    }
    train_cli(tmp_path, 60, implementation="DDQN", gamename="cartpole-v0", **settings)
    state = last(tmp_path, "DDQN", "cartpole-v0")["state_dict"]
    scored = read_scalar(
        run_dir(tmp_path, "cartpole-v0", implementation="DDQN"), "time/episodes"
    ).value[-1]
    assert state["eval_env_steps"] >= 8 * scored  # a pole takes as many steps to fall


@pytest.mark.parametrize("name", ["UDRL", "DDQN"])
def test_steps_that_are_filmed_are_counted_as_evaluation(tmp_path, name):
    """Those of the first seed, whose policy it is."""
    both = ["--num_seeds", "2"] if name == "DDQN" else []
    counted = []
    for flags in (["--recording_epoch_interval", "2"], []):
        folder = tmp_path / str(len(counted))
        train_cli(folder, 2, *flags, *both, implementation=name, eval_interval=10**6)
        first, *other = (
            last(folder, name, seed=25 + n)["state_dict"]["eval_env_steps"]
            for n in range(2 if both else 1)
        )
        counted.append((int(first), *map(int, other)))
    assert (
        counted[0][0] >= counted[1][0] + 2 * 8
    )  # two films, in which a pole takes as many steps to fall
    assert counted[0][1:] == counted[1][1:]


@pytest.mark.parametrize(
    ("name", "settings", "end"),
    [
        ("DDQN", {"train_episodes": 2, "max_env_steps": 5000}, "train_episodes=2 came first"),
        ("AAC", {"max_episodes": 20, "max_env_steps": 50_000}, "max_episodes=20 came first"),
        ("UDRL", {"max_epochs": 2, "max_env_steps": 50_000}, "max_epochs=2 came first"),
        (
            "DDQN",
            {"max_env_steps": 5000, "solved_return": 1.0, "early_out_num": 1},
            "the return that it stops at was reached",
        ),
        ("DDQN", {"train_episodes": 1000, "max_env_steps": 50}, None),
        ("DDQN", {"train_episodes": 2, "max_env_steps": "null"}, None),
    ],
)
def test_a_run_says_what_ended_it_before_the_steps_that_were_asked_for(
    tmp_path, capsys, name, settings, end
):
    settings = (
        {"stop_rule": "solved" if "solved_return" in settings else "none", **settings}
        if name == "DDQN"
        else settings
    )
    assert run_cli(tmp_path, implementation=name, **settings) == 0
    asked = (
        f"ended before max_env_steps={settings['max_env_steps']:,}: {end}"
        if end
        else "ended before"
    )
    assert (asked in capsys.readouterr().out) == (end is not None)


@pytest.mark.parametrize(("implementation", "gamename", "settings"), CASES)
def test_training_episodes_are_counted_and_logged(tmp_path, implementation, gamename, settings):
    train_cli(tmp_path, 3, implementation=implementation, gamename=gamename, **settings)
    state = last(tmp_path, implementation, gamename)["state_dict"]
    logged = read_scalar(
        run_dir(tmp_path, gamename, implementation=implementation), "time/episodes"
    ).value
    assert logged[-1] == state["episodes"] > 0
    assert state["episodes"] <= state["env_steps"]
    assert all(a <= b for a, b in itertools.pairwise(logged))


def test_steps_per_second_are_those_of_the_time_since_the_last_epoch(monkeypatch):
    """Two seconds pass from the start to the first epoch's end, three more to the second's."""
    times = iter([10.0, 12.0, 15.0])
    monkeypatch.setattr(base, "time", SimpleNamespace(perf_counter=lambda: next(times)))
    method = implementation("UDRL")("cartpole", seed=0)
    assert [method.speed_scalars(steps)["time/env_steps_per_second"] for steps in (30, 60)] == [
        15.0,
        20.0,
    ]
