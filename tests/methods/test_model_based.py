"""Model-based runs as a user starts them."""

import csv
from collections import Counter
from types import SimpleNamespace

import matplotlib.pyplot as plt
import pytest
import torch
from helpers.members import assert_same_runs, check_a_seed_of_many
from helpers.methods import quiet_trainer
from helpers.runs import last, run_cli, run_dir, train_cli
from pytorch_lightning import Callback

from lightning_rl.cli import main
from lightning_rl.envs.func_env import FuncEnv, Step
from lightning_rl.lab.imagine import _compare
from lightning_rl.methods.model_based import ModelBased
from lightning_rl.run.options import RunOptions
from lightning_rl.run.processes import split_seeds


@pytest.mark.parametrize(
    ("implementation", "gamename"),
    [
        ("ER", "procmaze-3"),
        ("perfect-model", "buttongrid-3"),
        ("simple-model", "panflute"),
        ("categorical-latent", "procmaze-2"),
        ("gaussian-latent", "cliff"),
    ],
)
def test_a_resumed_seed_of_many_is_the_seed_alone(tmp_path, implementation, gamename):
    check_a_seed_of_many(tmp_path, implementation, gamename)


@pytest.mark.two_cores
def test_groups_of_seeds_in_processes_are_the_same_runs(tmp_path, capfd):
    one, two = tmp_path / "one", tmp_path / "two"
    flags = ("--max_epochs", "2", "--num_seeds", "3")
    assert run_cli(one, *flags, implementation="simple-model", gamename="panflute-3") == 0
    assert (
        run_cli(
            two,
            *flags,
            "--num_processes",
            "2",
            implementation="simple-model",
            gamename="panflute-3",
        )
        == 0
    )
    for seed in (25, 26, 27):
        assert_same_runs(
            *(last(folder, "simple-model", "panflute-3", seed) for folder in (one, two)),
            exactly=False,
        )
    assert run_cli(two, "--num_processes", "2", implementation="ER", gamename="panflute-3") == 2
    assert "--num_processes 2: more than the 1 seed(s) of --num_seeds" in capfd.readouterr().err


def test_seeds_are_split_evenly():
    groups = split_seeds(RunOptions("ER", "panflute", seed=5, num_seeds=7), 3)
    assert [(group.seed, group.num_seeds) for group in groups] == [(5, 3), (8, 2), (10, 2)]


@pytest.mark.parametrize(
    ("implementation", "gamename"),
    [
        *(
            ("simple-model", gamename)
            for gamename in ("procmaze-2", "buttongrid-2-1", "panflute-3", "cliff")
        ),
        *(
            (implementation, "procmaze-2")
            for implementation in ("perfect-model", "categorical-latent", "gaussian-latent")
        ),
        ("perfect-model", "cliff"),
    ],
)
def test_imagined_roll_outs_beside_real_ones(tmp_path, capsys, implementation, gamename):
    train_cli(tmp_path, 1, implementation=implementation, gamename=gamename)
    checkpoint = run_dir(tmp_path, gamename, implementation=implementation) / "last.ckpt"
    assert main(["--eval_agent", str(checkpoint), "--imagine", "--eval_episodes", "40"]) == 0
    assert "mean absolute errors" in capsys.readouterr().out
    header, *rows = csv.reader(checkpoint.with_name("imagination.csv").read_text().splitlines())
    assert header == [
        "step",
        "bit_error",
        "unchanged_bit_error",
        "reward_error",
        "termination_error",
    ]
    assert [row[0] for row in rows] == ["1", "2", "3"]
    bit_errors = [float(row[1]) for row in rows]
    if implementation == "perfect-model":
        assert max(bit_errors) < 0.2  # only the events differ
    else:
        assert (
            min(bit_errors) > 0.1
        )  # nothing is learned yet: a constant 0.5 would be wrong by that
    above = plt.imread(checkpoint.with_name("imagination.png"))[..., :3]
    above = above[: len(above) * 2 // 5]  # the boards; the curves are below
    assert ((above.max(-1) - above.min(-1)) > 0.2).mean() > 0.01  # neither white nor grey


class Clock(FuncEnv):
    """state: steps done, and the steps after which the episode ends, 1 or 3, which is also the
    reward of every step.
    """

    obs_low, obs_high, action_size, binary_obs = (0.0, 0.0), (1.0, 1.0), 2, True

    def reset(self, noise):
        return torch.tensor([[0, 1], [0, 3]])

    def observe(self, state):
        return (state[:, :1] >= torch.tensor([1, 2])).float()

    def step(self, state, action, noise):
        after = state + torch.tensor([1, 0])
        return Step(after, self.observe(after), after[:, 1].float(), after[:, 0] == after[:, 1])


class WrongClock(Clock):
    def step(self, state, action, noise):
        obs, reward, continuation = (
            torch.tensor([[0.5, 0.25]] * 2),
            torch.tensor([1.5, 1.5]),
            torch.tensor([0.25, 0.875]),
        )
        return (
            super()
            .step(state, action, noise)
            ._replace(obs=obs, reward=reward, continuation=continuation)
        )


def test_the_errors_of_what_is_imagined_by_hand():
    """Bits are 10, 11 and 11 after 00 at the start. Both episodes count in the first step: their
    rewards 1 and 3 are off by 0.5 and 1.5, their ends 1 and 0 by 0.25 and 0.125. The second alone
    goes on, and ends in the third step.
    """
    policy = SimpleNamespace(
        noise_size=2,
        action_size=2,
        act=lambda obs, command, noise: torch.zeros(2, dtype=torch.int64),
    )
    names = ("step", "bit_error", "unchanged_bit_error", "reward_error", "termination_error")
    (seen, dreamt), rows = _compare(policy, Clock(), WrongClock(), 2, 5, torch.Generator())
    assert [tuple(row) for row in rows] == [names] * 3
    assert [list(row.values()) for row in rows] == [
        [1, 0.375, 0.5, 1.0, 0.1875],
        [2, 0.625, 1.0, 1.5, 0.125],
        [3, 0.625, 1.0, 1.5, 0.875],
    ]
    assert [obs.tolist() for obs in seen] == [[0, 0], [1, 0], [1, 1], [1, 1]]
    assert [obs.tolist() for obs in dreamt] == [[0, 0], *[[0.5, 0.25]] * 3]
    _, perfect = _compare(policy, Clock(), Clock(), 2, 2, torch.Generator())
    assert [list(row.values()) for row in perfect] == [[1, 0, 0.5, 0, 0], [2, 0, 1, 0, 0]]


def test_imagination_needs_a_model(tmp_path, capsys):
    train_cli(tmp_path, 2, implementation="ER", gamename="procmaze-2")
    checkpoint = run_dir(tmp_path, "procmaze-2", implementation="ER") / "last.ckpt"
    capsys.readouterr()
    assert main(["--eval_agent", str(checkpoint), "--imagine"]) == 2
    assert "is of ER, which replays and has no world model" in capsys.readouterr().err
    assert main(["--implementation", "ER", "--imagine"]) == 2
    assert "--imagine goes with --eval_agent CKPT" in capsys.readouterr().err


class Spy(Callback):
    """Counts the steps of each optimizer."""

    def __init__(self):
        self.steps = Counter()

    def on_before_optimizer_step(self, trainer, pl_module, optimizer):
        self.steps[type(optimizer).__name__] += 1


def test_lightning_sees_every_update_and_keeps_weights_and_moments(tmp_path):
    """Steps 5 to 19 update, model and values once each; two epochs tick the clock."""
    small = {
        "hidden": [8],
        "batch_size": 4,
        "rollout_length": 2,
        "steps_per_epoch": 10,
        "eval_episodes": 1,
    }
    method = ModelBased(
        "panflute-2", implementation="simple-model", seed=1, num_seeds=2, learning_starts=5, **small
    )
    spy = Spy()
    trainer = quiet_trainer(2, callbacks=[spy], num_sanity_val_steps=0)
    trainer.fit(method, datamodule=method.rollouts())
    assert spy.steps == {"MemberAdam": 30, "Clock": 2}
    trainer.save_checkpoint(tmp_path / "all.ckpt")
    saved = torch.load(tmp_path / "all.ckpt", weights_only=True)
    agent = method.agent
    assert torch.equal(saved["state_dict"]["agent.online.params"], agent.online.params)
    assert torch.equal(
        saved["state_dict"]["agent.source.weights.params"], agent.source.weights.params
    )
    assert torch.equal(
        saved["optimizer_states"][2]["state"][0]["exp_avg"],
        agent.source.weights.adam.moments["exp_avg"],
    )
    assert saved["optimizer_states"][1]["state"][0]["step"].tolist() == [15, 15]


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--gamename", "procmaze-1"], "grid size 1 cannot hold a maze; the smallest is 2"),
        (["--num_seeds", "0"], "0 is too small"),
        (
            ["--gamename", "cartpole"],
            "it needs observations of bits in batched torch, 256 actions at most",
        ),
        (["--gamename", "procmaze", "--set", "faithful=[stale]"], "key 'faithful'"),
        (
            ["--gamename", "procmaze", "--set", "faithful=[logit-bits]"],
            "'faithful': agents with transitions: replay do not read it",
        ),
        (
            ["--gamename", "procmaze", "--preset", "low"],
            "--preset 'low' is not in model_based.yaml, block 'ER'; it has: low-data",
        ),
    ],
)
def test_bad_input(flags, words, tmp_path, capsys):
    assert main(["--implementation", "ER", "--logdir", str(tmp_path), *flags]) == 2
    captured = capsys.readouterr().err.strip()
    assert words in captured
    assert len(captured.splitlines()) == 1
    assert not list(tmp_path.iterdir())
