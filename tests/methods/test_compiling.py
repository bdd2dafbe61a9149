"""Which updates are compiled, and who sees single ones."""

import pytest
import pytorch_lightning as pl
import torch
from helpers.budgets import tiny_settings

pytest.importorskip("numba")

import lightning_rl as lrl
from lightning_rl.methods.upside_down import fused


@pytest.fixture
def epochs(monkeypatch):
    """Names of the networks of each epoch whose updates were compiled."""
    compiled = []
    for name in ("update_policy", "update_critic"):
        original = getattr(fused, name)

        def noting(*given, name=name, original=original):
            compiled.append(name)
            return original(*given)

        monkeypatch.setattr(fused, name, noting)
    return compiled


def fitted(method, tmp_path, **options):
    trainer = pl.Trainer(
        max_epochs=2,
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        default_root_dir=tmp_path,
        **options,
    )
    trainer.fit(method, datamodule=method.rollouts())
    return method


def rcp_a(cls=lrl.RCPA, **given):
    return cls(
        "cartpole", seed=3, config={**tiny_settings("RCP-A"), **given.pop("config", {})}, **given
    )


class Watching(pl.Callback):
    def __init__(self):
        self.updates = 0

    def on_before_optimizer_step(self, trainer, pl_module, optimizer):
        self.updates += 1


class OwnUpdate(lrl.RCPA):
    def update(self, *example):
        return super().update(*example)


def test_both_networks_are_compiled_and_learn_as_by_torch(epochs, tmp_path):
    """Weights differ by rounding; counters and what an optimizer holds do not."""
    ours = fitted(rcp_a(), tmp_path)
    assert epochs == ["update_critic", "update_policy"] * 2
    theirs = fitted(rcp_a(config={"kernels": "torch"}), tmp_path)
    assert len(epochs) == 4
    assert ours.num_updates == theirs.num_updates
    for one, other in zip(ours.parameters(), theirs.parameters(), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-4)
    for one, other in zip(ours.optimizers(), theirs.optimizers(), strict=True):
        steps = [
            [float(state["step"]) for state in each.state_dict()["state"].values()]
            for each in (one, other)
        ]
        assert steps[0] == steps[1]


def test_a_callback_that_watches_updates_sees_them_all(epochs, tmp_path):
    watching = Watching()
    method = fitted(rcp_a(), tmp_path, callbacks=[watching])
    assert epochs == []
    assert watching.updates == int(method.num_updates) + 2  # of the clock, one an epoch


def freeze(method):
    method.learner.net.net.layers[0].requires_grad_(False)


def hook(method):
    method.learner.net.net.layers[0].weight.register_hook(lambda grad: grad)


def own_loss(method):
    class OwnLoss(type(method.learner)):
        def negative_log_likelihood(self, *given):
            return super().negative_log_likelihood(*given)

    method.learner.__class__ = OwnLoss


@pytest.mark.parametrize("change", [freeze, hook])
def test_a_network_that_was_changed_learns_by_torch(epochs, tmp_path, change):
    method = rcp_a()
    change(method)
    fitted(method, tmp_path)
    assert set(epochs) == {"update_critic"}


def test_a_policy_with_a_loss_of_its_own_learns_by_torch(epochs, tmp_path):
    method = rcp_a()
    own_loss(method)
    fitted(method, tmp_path)
    assert epochs == []


@pytest.mark.parametrize(
    "method",
    [lambda: rcp_a(OwnUpdate), lambda: rcp_a(networks={"policy": Policy()})],
    ids=["own update", "own network"],
)
def test_a_users_own_way_is_taken(epochs, tmp_path, method):
    fitted(method(), tmp_path)
    assert set(epochs) == {"update_critic"}


def test_mixed_precision_learns_by_torch(epochs, tmp_path):
    fitted(rcp_a(), tmp_path, precision="bf16-mixed")
    assert epochs == []


class Policy(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(5, 2)

    def forward(self, obs, command):
        return self.layer(torch.cat([obs, command], dim=-1))
