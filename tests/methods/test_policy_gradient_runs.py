"""Policy gradients as a user runs them, and that they learn."""

import dataclasses
import functools

import numpy as np
import pytest
import torch
from helpers.policy_gradient import build, fit, same
from helpers.runs import last, run_cli, run_dir, train_cli
from helpers.toys import make_episode
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from lightning_rl.cli import main
from lightning_rl.core.catalogue import aliases
from lightning_rl.envs.spec import env_spec
from lightning_rl.functional.distributions import Categorical
from lightning_rl.lab.scalars import read_scalar
from lightning_rl.methods.policy_gradient import step_batch

run_aac = functools.partial(run_cli, implementation="AAC")


@pytest.mark.parametrize("name", ["REINFORCE", "AAC"])
def test_runs_are_equal_over_workers_and_when_resumed(tmp_path, name):
    stale = "true" if name == "REINFORCE" else "false"
    play = functools.partial(
        run_cli, implementation=name, stale_rollouts=stale, noise_hold=0.5, max_episodes=20
    )
    for workers in (0, 1, 2):
        assert play(tmp_path / str(workers), "--max_epochs=5", f"--num_workers={workers}") == 0
    for epochs in (2, 3, 5):
        assert play(tmp_path / "parts", f"--max_epochs={epochs}", "--resume") == 0
    whole, *others = (last(tmp_path / part, name) for part in ("0", "1", "2", "parts"))
    for other in others:
        assert same(whole["state_dict"], other["state_dict"])
        assert str(whole["optimizer_states"]) == str(other["optimizer_states"])
    assert whole["global_step"] == 10  # an update and a tick of the clock in each of five epochs


def test_a_run_that_has_reached_its_target_is_not_trained_on_when_resumed(tmp_path):
    play = functools.partial(run_aac, tmp_path, "--resume", running_mean_len=4)
    for target, epochs in (
        (1.0, 1),
        (1.0, 1),
        (1.0, 1),
        (500.0, 3),
    ):  # reached at once; then asked for more
        assert play("--max_epochs=3", target_return=target) == 0
        saved = last(tmp_path, "AAC")
        assert (saved["epoch"] + 1, int(saved["state_dict"]["episodes"])) == (epochs, 4 * epochs)


def test_aliases_stand_for_the_long_names_everywhere(tmp_path):
    alias, name = next(iter(aliases().items()))
    train_cli(tmp_path, 2, implementation=alias)
    checkpoint = run_dir(tmp_path, implementation=name) / "last.ckpt"
    assert torch.load(checkpoint, weights_only=True)["hyper_parameters"]["implementation"] == name
    assert (
        main(["--eval_agent", str(checkpoint), "--eval_episodes", "1", "--num_workers", "0"]) == 0
    )
    assert checkpoint.with_name("evaluation.mp4").exists()


def test_scalars_and_counters_are_as_promised(tmp_path):
    assert (
        run_aac(tmp_path, max_episodes=10, num_episodes_per_iter=4) == 0
    )  # 3 batches: the last one overshoots
    events = EventAccumulator(str(run_dir(tmp_path, implementation="AAC") / "logger" / "version_0"))
    events.Reload()
    promised = {
        f"train/{k}"
        for k in ("policy_loss", "entropy_loss", "value_loss", "advantage_mean", "entropy")
    }
    promised |= {
        "rollout/return_running_mean",
        "rollout/policy_age",
        "time/episodes",
        "time/episodes_per_second",
    }
    assert promised <= set(events.Tags()["scalars"])
    assert [e.value for e in events.Scalars("time/episodes")] == [4, 8, 12]
    weights = last(tmp_path, "AAC")["state_dict"]
    assert int(weights["episodes"]) == 12
    assert events.Scalars("train/policy_loss")[-1].step == int(weights["env_steps"])
    assert {e.value for e in events.Scalars("rollout/policy_age")} == {0.0}


def test_a_budget_of_episodes_can_be_raised_when_resuming(tmp_path):
    for episodes in (8, 20):
        assert run_aac(tmp_path, "--resume", max_episodes=episodes) == 0
        assert int(last(tmp_path, "AAC")["state_dict"]["episodes"]) == episodes


@pytest.mark.parametrize("name", ["REINFORCE-combined", "AAC"])
def test_the_identity_task_is_learned_and_the_target_ends_the_run(tmp_path, toy_games, name):
    """Ten steps, action 1 pays 1. The window of 100 episodes must be full and its mean above
    9.5.
    """
    settings = {
        "num_episodes_per_iter": 20,
        "chunk_size": 20,
        "hidden": [16],
        "learning_rate": 0.05,
        "max_episodes": 4000,
        "target_return": 9.5,
        "normalise_weights": "true",
        "eval_interval": 1000,
        "entropy_coef": 0.01,
    }
    assert run_cli(tmp_path, implementation=name, gamename="count", **settings) == 0
    curve = read_scalar(
        run_dir(tmp_path, "count", implementation=name), "rollout/return_running_mean"
    ).value
    assert curve[-1] >= 9.5
    assert (curve[4:-1] < 9.5).all()
    assert 5 <= len(curve) < 200
    (evaluated,) = read_scalar(
        run_dir(tmp_path, "count", implementation=name), "eval/return_mean"
    ).value  # the last epoch
    assert evaluated > 8


def test_sanity_check_of_the_assignment(tmp_path):
    """Running mean of ten episodes above -150 within ten batches of 32, by REINFORCE-combined."""
    settings = {
        "num_episodes_per_iter": 32,
        "chunk_size": 32,
        "hidden": "[512,256]",
        "eval_interval": 100,
        "running_mean_len": 10,
        "target_return": -150.0,
    }
    train_cli(
        tmp_path, 10, "--no_checkpoint", implementation="cpg", gamename="beresheet", **settings
    )
    run = run_dir(tmp_path, "beresheet", implementation="REINFORCE-combined")
    value = read_scalar(run, "rollout/return_running_mean").value
    assert value[-1] >= -150
    assert (value[:-1] < -150).all()


def test_gaussian_policies_learn_too():
    """One step, reward -(a - 0.6)^2: the mean of the policy moves to 0.6."""
    method, _ = build(
        "REINFORCE-baseline", "pendulum", hidden=[16], learning_rate=0.02, normalise_weights=True
    )
    obs, rng = np.ones((2, 3), dtype=np.float32), np.random.default_rng(0)

    def batch():
        noise = method.policy.distribution_class.draw_noise(rng, (64, 1))
        with torch.no_grad():
            action = method.policy.act(torch.ones(64, 3), None, torch.from_numpy(noise)).numpy()
        episodes = [
            dataclasses.replace(
                make_episode([-float((a[0] - 0.6) ** 2)], obs_size=3), obs=obs, action=a[None]
            )
            for a in action
        ]
        return step_batch(episodes, {})

    fit(method, batch, epochs=150)
    assert float(method.policy.distribution(torch.ones(3)).mean.detach()) == pytest.approx(
        0.6, abs=0.1
    )
    assert env_spec("pendulum").continuous
    assert method.max_entropy != Categorical.max_entropy(1)
