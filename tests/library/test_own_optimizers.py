"""Optimizers, schedulers and random numbers of methods of one's own: resumed to the bit, or
refused in one line.
"""

import pytest
import torch
from helpers.budgets import tiny_settings
from helpers.methods import quiet_trainer

from lightning_rl.core.errors import UserError
from lightning_rl.methods.registry import implementation

TINY_PG = {"num_episodes_per_iter": 2, "max_episodes": 100, "hidden": [4], "eval_episodes": 1}


def trainer_in(folder, epochs):
    return quiet_trainer(epochs, default_root_dir=folder)


class Halving(implementation("REINFORCE")):
    """A method of a user's, with a scheduler that has no closed form."""

    def schedulers(self, optimizers):
        return [torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.5) for optimizer in optimizers]


def test_schedulers_of_ones_own_resume_where_they_were(tmp_path):
    def train(epochs, ckpt_path=None):
        method = Halving("cartpole", implementation="REINFORCE", learning_rate=1.0, **TINY_PG)
        trainer = trainer_in(tmp_path, epochs)
        trainer.fit(method, datamodule=method.rollouts(), ckpt_path=ckpt_path, weights_only=True)
        trainer.save_checkpoint(tmp_path / "last.ckpt")
        return method.optimizers()[0].param_groups[0]["lr"]

    assert train(2) == 0.25
    assert train(3, tmp_path / "last.ckpt") == 0.125


rates = torch.optim.lr_scheduler
SCHEDULES = {
    "linear": lambda optimizer: rates.LinearLR(optimizer, 0.1, total_iters=3),
    "sequential": lambda optimizer: rates.SequentialLR(
        optimizer, [rates.ConstantLR(optimizer), rates.StepLR(optimizer, 1)], [2]
    ),
    "one cycle, whose momenta change": lambda optimizer: rates.OneCycleLR(
        optimizer, 0.5, total_steps=9
    ),
    "rising": lambda optimizer: rates.LambdaLR(optimizer, lambda epoch: 1 + epoch),
    "warm-up": lambda optimizer: rates.LambdaLR(optimizer, lambda epoch: min(1.0, (1 + epoch) / 4)),
}


@pytest.mark.parametrize("optimizer", [torch.optim.Adam, torch.optim.Rprop], ids=["Adam", "Rprop"])
@pytest.mark.parametrize("schedule", SCHEDULES)
def test_schedulers_and_optimizers_of_ones_own_are_resumed_to_the_bit(
    schedule, optimizer, tmp_path
):
    if optimizer is torch.optim.Rprop and "momenta" in schedule:
        pytest.skip("it has none")

    class Own(implementation("REINFORCE")):
        def make_optimizers(self):
            return [optimizer(self.parameters(), lr=1e-3)]

        def schedulers(self, optimizers):
            return [SCHEDULES[schedule](each) for each in optimizers]

        def train_epoch(self, batch):
            super().train_epoch(batch)
            if optimizer is torch.optim.Adam and "momenta" not in schedule:
                self.optimizers()[0].param_groups[0]["betas"] = (0.8, 0.99)

    def train(epochs, ckpt_path=None):
        method = Own("cartpole", implementation="REINFORCE", **TINY_PG)
        trainer = trainer_in(tmp_path, epochs)
        trainer.fit(method, datamodule=method.rollouts(), ckpt_path=ckpt_path, weights_only=True)
        trainer.save_checkpoint(tmp_path / "last.ckpt")
        return method, str(
            torch.load(tmp_path / "last.ckpt", weights_only=True)["optimizer_states"]
        )

    (whole, held), _ = train(5), train(2)
    resumed, again = train(5, tmp_path / "last.ckpt")
    assert again == held
    for key, value in whole.state_dict().items():
        assert torch.equal(resumed.state_dict()[key], value), key


class Noisy(implementation("REINFORCE")):
    """A user's method that draws from torch's global generator, and gives one optimizer and one
    scheduler, not lists.
    """

    def make_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=1e-2)

    def schedulers(self, optimizers):
        return torch.optim.lr_scheduler.StepLR(optimizers[0], 1)

    def train_epoch(self, batch):
        super().train_epoch(batch)
        with torch.no_grad():
            for parameter in self.parameters():
                parameter.add_(torch.randn_like(parameter))


def test_what_a_method_of_ones_own_draws_is_drawn_again_when_it_is_resumed(tmp_path):
    def train(epochs, ckpt_path=None):
        method = Noisy("cartpole", implementation="REINFORCE", **TINY_PG)
        trainer = trainer_in(tmp_path, epochs)
        trainer.fit(method, datamodule=method.rollouts(), ckpt_path=ckpt_path, weights_only=True)
        trainer.save_checkpoint(tmp_path / "last.ckpt")
        return method

    before = torch.get_rng_state()
    whole, _ = train(4), train(2)
    assert torch.equal(torch.get_rng_state(), before)  # the user's own numbers are left as they are
    torch.manual_seed(1)
    resumed = train(4, tmp_path / "last.ckpt")
    assert resumed.optimizers()[0].param_groups[0]["lr"] == pytest.approx(1e-6)
    for key, value in whole.state_dict().items():
        assert torch.equal(resumed.state_dict()[key], value), key


def test_what_a_subclass_may_not_override_is_named(tmp_path):
    class Own(implementation("AAC")):
        def configure_optimizers(self):
            return [
                torch.optim.Adam(self.policy.parameters()),
                torch.optim.Adam(self.critic.parameters()),
            ]

    method = Own("cartpole", implementation="AAC", **tiny_settings("AAC"))
    with pytest.raises(
        UserError, match="Own: override make_optimizers and schedulers, not configure_optimizers"
    ):
        trainer_in(tmp_path, 1).fit(method, datamodule=method.rollouts())


@pytest.mark.parametrize(
    "make",
    [
        lambda optimizer: torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer),
        lambda optimizer: {"scheduler": None},
    ],
    ids=["plateau", "dict"],
)
def test_schedulers_that_no_epoch_steps_are_refused(make, tmp_path):
    class Own(implementation("REINFORCE")):
        def schedulers(self, optimizers):
            return [make(optimizers[0])]

    method = Own("cartpole", implementation="REINFORCE", **TINY_PG)
    with pytest.raises(
        UserError,
        match=r"schedulers\(\): .*; give a list of schedulers that are stepped once an epoch",
    ):
        trainer_in(tmp_path, 1).fit(method, datamodule=method.rollouts())
