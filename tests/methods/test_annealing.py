import pytest
from helpers.budgets import tiny_settings
from helpers.runs import last, run_cli, train_cli
from pytorch_lightning import Callback

from lightning_rl.run.options import RunOptions
from lightning_rl.run.train import run_training


def learning_rate(tmp_path, implementation="AAC", gamename="cartpole"):
    checkpoint = last(tmp_path, implementation, gamename)
    groups = [
        group for optimizer in checkpoint["optimizer_states"] for group in optimizer["param_groups"]
    ]
    return [group["lr"] for group in groups if "initial_lr" in group]  # not the clock's


def test_the_rate_of_a_policy_gradient_falls_with_its_episodes(tmp_path):
    """Batches of 4 of 16 episodes: from 8 on to 0; after 12 the next batch has half the rate,
    also where a run is resumed.
    """
    settings = {
        "num_episodes_per_iter": 4,
        "max_episodes": 16,
        "anneal_from": 0.5,
        "learning_rate": 0.01,
    }
    assert run_cli(tmp_path / "whole", implementation="AAC", **settings) == 0
    assert learning_rate(tmp_path / "whole") == [0.0]
    train_cli(tmp_path / "parts", 3, implementation="AAC", **settings)
    assert learning_rate(tmp_path / "parts") == pytest.approx([0.005])
    assert run_cli(tmp_path / "parts", "--resume", implementation="AAC", **settings) == 0
    parts, whole = (last(tmp_path / name, "AAC")["state_dict"] for name in ("parts", "whole"))
    assert all(
        value.equal(whole[name])
        for name, value in parts.items()
        if name.startswith(("policy", "critic"))
    )


def test_a_larger_budget_has_its_own_rate_from_its_first_epoch_on(tmp_path):
    """Eight of 8 episodes end at 0; of 16 they are half, from where the rate falls: the next
    epoch has all of it.
    """
    settings = {"num_episodes_per_iter": 4, "anneal_from": 0.5, "learning_rate": 0.01}
    assert run_cli(tmp_path, implementation="AAC", max_episodes=8, **settings) == 0
    assert learning_rate(tmp_path) == [0.0]
    before = last(tmp_path, "AAC")["state_dict"]
    rates = []

    class Noted(Callback):
        def on_train_batch_start(self, trainer, *args):
            rates.append(trainer.optimizers[1].param_groups[0]["lr"])

    options = RunOptions(
        "AAC",
        "cartpole",
        logdir=tmp_path,
        num_workers=0,
        resume=True,
        settings={**tiny_settings("AAC"), "max_episodes": 16, **settings},
    )
    run_training(options, [Noted()])
    assert rates == pytest.approx([0.01, 0.005])
    assert any(
        not value.equal(before[name])
        for name, value in last(tmp_path, "AAC")["state_dict"].items()
        if "policy" in name
    )


def test_a_share_of_no_budget_is_refused(tmp_path, capsys):
    settings = {"max_episodes": "null", "max_env_steps": 100, "anneal_from": 0.5}
    assert run_cli(tmp_path, implementation="AAC", **settings) == 2
    assert "anneal_from 0.5 is of max_episodes, which is null" in capsys.readouterr().err


def test_both_rates_of_rcp_a_fall_with_its_steps(tmp_path):
    settings = {
        "max_env_steps": 10**6,
        "anneal_from": 0.0,
        "learning_rate": 0.01,
        "critic_learning_rate": 0.02,
    }
    train_cli(tmp_path, 2, implementation="RCP-A", **settings)
    policy, critic = learning_rate(tmp_path, "RCP-A")
    assert critic == pytest.approx(2 * policy)
    assert 0.0099 < policy < 0.01
