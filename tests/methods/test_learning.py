"""The methods learn: an identity task in seconds, CartPole in minutes."""

import numpy as np
import pytest
from helpers.runs import run_dir, train_cli

from lightning_rl.lab.evaluate import evaluate
from lightning_rl.lab.scalars import read_scalar


@pytest.mark.parametrize("network", ["gated"])
def test_udrl_obeys_commands_on_the_identity_task(tmp_path, toy_games, network):
    """Ten steps, action 1 pays 1: asked for few, it gives few; asked for all, it gives all."""
    settings = {
        "learning_starts": 40,
        "num_episodes_per_iter": 20,
        "num_updates_per_iter": 50,
        "batch_size": 128,
        "learning_rate": 0.01,
        "hidden": [32, 32],
        "network": network,
        "return_scale": 0.3,
        "horizon_scale": 0.3,
        "replay_size": 200,
        "last_few": 20,
        "buffer": "both",
        "recent_episodes": 40,
        "eval_interval": 30,
    }
    train_cli(tmp_path, 30, gamename="count", **settings)
    checkpoint = run_dir(tmp_path, "count") / "last.ckpt"
    obtained = {
        r: evaluate(checkpoint, 40, {"return": r, "horizon": 10})["sampled"]["return"]["mean"]
        for r in (2, 10)
    }
    assert obtained[10] > 9.0
    assert obtained[2] < 6.0


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_cartpole_above_150_within_200_iterations(tmp_path):
    """Reference section 11, item 11: the sampled training return, mean of ten iterations."""
    from lightning_rl.cli import main

    flags = [
        "--gamename",
        "cartpole",
        "--logdir",
        str(tmp_path),
        "--num_workers",
        "1",
        "--max_epochs",
        "200",
    ]
    assert main(flags) == 0
    value = read_scalar(run_dir(tmp_path), "rollout/return_mean").value
    best = np.convolve(value, np.full(10, 0.1), mode="valid").max()
    assert best > 150, f"best mean of ten iterations is {best:.0f}"
