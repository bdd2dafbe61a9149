"""Methods as any other LightningModule: a plain Trainer trains them, its callbacks see the
updates, its checkpoints resume.
"""

import contextlib
import dataclasses
import multiprocessing
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from helpers import ROOT
from helpers.budgets import tiny_settings
from helpers.methods import quiet_trainer
from helpers.pretended_machine import blocks
from pytorch_lightning import Callback, Trainer
from pytorch_lightning.callbacks import (
    EMAWeightAveraging,
    ModelCheckpoint,
    ModelPruning,
    StochasticWeightAveraging,
)
from pytorch_lightning.loggers import CSVLogger
from torch import nn

import lightning_rl as lrl
from lightning_rl import load
from lightning_rl.core.errors import UserError
from lightning_rl.methods.registry import implementation

GAMES = {
    "REINFORCE": "cartpole",
    "REINFORCE-combined": "pendulum",
    "AAC": "cartpole",
    "UDRL": "cartpole",
    "RCP-R": "cartpole",
    "RCP-A": "cartpole",
    "QL": "cliff",
    "DDQN": "cartpole",
    "PPO": "cartpole",
    "TD3": "pendulum",
    "SE": "cartpole-v0",
    "MBRL": "cartpole-v0",
    "ER": "procmaze-3",
    "categorical-latent": "procmaze-3",
}
QUICK = ("AAC", "RCP-A", "QL", "SE", "MBRL")
RESUMED = [pytest.param(name, marks=[] if name in QUICK else pytest.mark.slow) for name in GAMES]
"""Of each kind of method one at once."""
UPDATED = (
    "REINFORCE",
    "REINFORCE-combined",
    "AAC",
    "UDRL",
    "RCP-R",
    "RCP-A",
)  # by Lightning's optimizers
TINY_PG = {"num_episodes_per_iter": 2, "max_episodes": 100, "hidden": [4], "eval_episodes": 1}
SETTINGS = {"AAC": {"num_critic_updates": 3, "anneal_from": 0.0}}


class Spy(Callback):
    """Counts what a user's callback is told of, and in which epochs there was an evaluation."""

    def __init__(self):
        self.steps, self.backwards, self.batches, self.evaluated = 0, 0, 0, []

    def on_before_optimizer_step(self, trainer, pl_module, optimizer):
        self.steps += 1

    def on_after_backward(self, trainer, pl_module):
        self.backwards += 1

    def on_train_batch_end(self, *_):
        self.batches += 1

    def on_validation_batch_end(self, trainer, *_):
        self.evaluated.append(trainer.current_epoch)


def method_of(name, **settings):
    return implementation(name)(
        GAMES[name],
        implementation=name,
        **{**tiny_settings(name), **SETTINGS.get(name, {}), **settings},
    )


def fit(name, folder, max_epochs, ckpt_path=None, callbacks=(), **trainer_settings):
    method, spy = method_of(name, seed=3), Spy()
    trainer = quiet_trainer(
        max_epochs,
        default_root_dir=folder,
        logger=CSVLogger(folder),
        callbacks=[spy, *callbacks],
        enable_checkpointing=True,
        **trainer_settings,
    )
    trainer.fit(method, datamodule=method.rollouts(), ckpt_path=ckpt_path, weights_only=True)
    return method, trainer, spy


@pytest.mark.parametrize("name", UPDATED)
def test_callbacks_see_every_update(name, tmp_path):
    method, trainer, spy = fit(name, tmp_path, 3)
    updates = int(method.num_updates)
    assert (
        updates == 3 * 3 if name == "AAC" else updates >= 3
    )  # one joint step and two of the critic alone
    assert (spy.batches, spy.steps, spy.backwards) == (
        3,
        updates + 3,
        updates,
    )  # three of the clock
    assert trainer.global_step == updates + 3
    assert spy.evaluated == [0, 1, 2]  # not in Lightning's check before training
    assert int(method.eval_env_steps) > 0
    assert "eval/return_mean" in trainer.callback_metrics
    rows = (tmp_path / "lightning_logs" / "version_0" / "metrics.csv").read_text().splitlines()
    assert "rollout/return_mean" in rows[0]


@pytest.mark.parametrize("name", RESUMED)
def test_a_plain_trainer_resumes_its_own_checkpoints_to_the_bit(name, tmp_path):
    whole, trainer, _ = fit(name, tmp_path / "whole", 4)
    trainer.save_checkpoint(tmp_path / "whole.ckpt")
    every = ModelCheckpoint(tmp_path / "parts", filename="{epoch}", save_top_k=-1)
    _, trainer, _ = fit(name, tmp_path / "parts", 2, callbacks=[every])
    trainer.save_checkpoint(tmp_path / "ended.ckpt")
    fit(
        name,
        tmp_path / "parts",
        3,
        ckpt_path=tmp_path / "parts" / "epoch=1.ckpt",
        callbacks=[every],
    )
    parts, trainer, _ = fit(
        name, tmp_path / "parts", 4, ckpt_path=tmp_path / "parts" / "epoch=2.ckpt"
    )
    trainer.save_checkpoint(tmp_path / "parts.ckpt")
    ended, _, _ = fit(name, tmp_path / "ended", 4, ckpt_path=tmp_path / "ended.ckpt")
    for key, value in whole.state_dict().items():
        for resumed in (parts, ended):
            torch.testing.assert_close(resumed.state_dict()[key], value, rtol=0, atol=0, msg=key)
    one, two = (
        torch.load(tmp_path / f"{part}.ckpt", weights_only=True) for part in ("whole", "parts")
    )
    assert str(one["optimizer_states"]) == str(two["optimizer_states"])
    assert str(one["lr_schedulers"]) == str(two["lr_schedulers"])
    assert one["global_step"] == two["global_step"]
    assert one["hyper_parameters"]["config"] == dataclasses.asdict(whole.cfg)


@pytest.mark.parametrize("name", ["UDRL", "RCP-A", "AAC"])
def test_a_checkpoint_of_the_last_step_of_an_epoch_is_resumed_to_the_bit(name, tmp_path):
    """It is written before the batch counts as completed, and before the epoch's evaluation,
    which is left out then.
    """
    whole, *_ = fit(name, tmp_path / "whole", 4)
    every = ModelCheckpoint(tmp_path / "parts", every_n_train_steps=1, save_last=True)
    fit(name, tmp_path / "parts", 2, callbacks=[every])
    parts, *_ = fit(name, tmp_path / "parts", 4, ckpt_path=tmp_path / "parts" / "last.ckpt")
    assert parts.trainer.current_epoch == 4
    for key, value in whole.state_dict().items():
        assert torch.equal(parts.state_dict()[key], value) or key == "eval_env_steps", key


@pytest.mark.parametrize("name", ["QL", "ER"])
def test_several_loggers_get_all_of_a_stacked_method_and_several_seeds_one_each(name, tmp_path):
    def logged(*folders, **more):
        method = method_of(name, **more)
        loggers = [CSVLogger(tmp_path / folder) for folder in folders]
        quiet(tmp_path, logger=loggers).fit(method, datamodule=method.rollouts())
        return [(Path(logger.log_dir) / "metrics.csv").read_text() for logger in loggers]

    one, same = logged("a", "b")
    assert one == same
    assert "eval/return_mean" in one
    seeds = logged("c", "d", num_seeds=2)
    assert all("eval/return_mean" in each for each in seeds)
    assert seeds[0] != seeds[1]
    with pytest.raises(
        UserError, match="logger: 1 for 2 seeds; give one for each, in their order, or logger=False"
    ):
        logged("e", num_seeds=2)


@pytest.mark.parametrize("name", ["DDQN", "ER", "PPO"])
def test_a_stack_stops_any_trainer_where_its_steps_are_spent(name, tmp_path):
    method, trainer = method_of(name, max_env_steps=15), quiet(tmp_path, 9)
    trainer.fit(method, datamodule=method.rollouts())
    assert int(method.env_steps) == 15
    assert trainer.current_epoch == -(-15 // method.cfg.steps_per_epoch)
    trainer.save_checkpoint(tmp_path / "spent.ckpt")
    again = method_of(name, max_env_steps=15)
    quiet(tmp_path, 9).fit(
        again, datamodule=again.rollouts(), ckpt_path=tmp_path / "spent.ckpt", weights_only=True
    )
    assert int(again.env_steps) == 15


def test_a_policy_without_noise_is_evaluated_once(tmp_path):
    method, trainer, _ = fit("DDQN", tmp_path, 1)
    sampled, greedy = (
        float(trainer.callback_metrics[f"{prefix}/return_mean"])
        for prefix in ("eval", "eval_greedy")
    )
    assert sampled == greedy
    (played,) = method.rollouts().evaluate()
    assert list(played) == ["eval"]
    assert int(method.eval_env_steps) == round(
        method.scalars["eval/length_mean"] * method.cfg.eval_episodes
    )
    method, *_ = fit("PPO", tmp_path, 1)
    (played,) = method.rollouts().evaluate()
    assert played["eval"] != played["eval_greedy"]


@pytest.mark.parametrize(
    ("name", "monitor"), [("PPO", "eval"), ("RCP-A", "eval"), ("ER", "eval_greedy")]
)
def test_the_best_checkpoint_is_chosen_by_how_a_policy_is_meant_to_play(name, monitor, tmp_path):
    settings = {**tiny_settings(name), "max_epochs": 2, "eval_interval": 1}
    run = lrl.train(name, GAMES[name], logdir=tmp_path, num_workers=0, **settings)
    (best,) = run.path.glob("epoch=*.ckpt")
    content = torch.load(best, weights_only=True)
    assert {key for key in content if key.endswith("return_mean")} == {f"{monitor}/return_mean"}


def test_several_processes_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(Trainer, "world_size", 2)
    with pytest.raises(UserError, match=r"Trainer: 2 processes, a run is one; use devices=1"):
        fit("UDRL", tmp_path, 1)


def quiet(folder, epochs=1, **settings):
    return quiet_trainer(epochs, default_root_dir=folder, **settings)


@pytest.mark.parametrize("name", ["UDRL", "AAC", "DDQN", "ER", "SE"])
def test_the_data_of_another_method_and_bare_loaders_are_refused(name, tmp_path):
    one, other = method_of(name), method_of(name)
    data = other.rollouts()
    for run in (quiet(tmp_path).fit, quiet(tmp_path).validate):
        with pytest.raises(
            UserError,
            match=r"not this method's own, .* they play; give datamodule=method.rollouts\(\)",
        ):
            run(one, datamodule=data)
    data, trainer = one.rollouts(), quiet(tmp_path)
    for run, loader in (
        (trainer.fit, data.train_dataloader()),
        (trainer.validate, data.val_dataloader()),
    ):
        for given in (loader, None):  # bare ones are in no checkpoint
            with pytest.raises(
                UserError,
                match=r"not this method's own, .* they play; give datamodule=method.rollouts\(\)",
            ):
                run(one, given)


@pytest.mark.parametrize("name", ["UDRL", "AAC", "DDQN", "ER", "SE"])
def test_whole_methods_that_are_frozen_or_compiled_are_refused(name, tmp_path):
    method = method_of(name)
    method.freeze()
    with pytest.raises(
        UserError,
        match=f"^{name}: all that optimizer 0 trains is frozen; leave something to be trained",
    ):
        quiet(tmp_path).fit(method, datamodule=method.rollouts())
    method = method_of(name)
    with pytest.raises(
        UserError, match=f"^torch.compile: {name} cannot be compiled whole; give it as it is$"
    ):
        quiet(tmp_path).fit(torch.compile(method), datamodule=method.rollouts())


@pytest.mark.parametrize(
    ("settings", "word"),
    [({"gamma": 0.5}, "config.gamma: 0.95, of this method 0.5"), ({"max_epochs": 9}, None)],
)
def test_only_budgets_may_be_others_when_a_trainer_goes_on(settings, word, tmp_path):
    fit("AAC", tmp_path, 1, callbacks=[ModelCheckpoint(tmp_path, "first")])
    method = method_of("AAC", seed=3, **settings)
    error = contextlib.nullcontext() if word is None else pytest.raises(UserError, match=word)
    with error:
        quiet(tmp_path, 2).fit(
            method,
            datamodule=method.rollouts(),
            ckpt_path=tmp_path / "first.ckpt",
            weights_only=True,
        )


@pytest.mark.parametrize("name", ["UDRL", "AAC", "DDQN", "ER", "SE"])
def test_what_went_on_with_another_trainer_is_resumed(name, tmp_path):
    """The epochs of a Trainer begin at 0, what is learned from goes on."""
    method = method_of(name)
    data = method.rollouts()
    seen, prepared = [], data.next_batch
    data.next_batch = lambda: seen.append(prepared()) or seen[-1]
    for _ in range(2):
        trainer = quiet(tmp_path, 2)
        trainer.fit(method, datamodule=data)
    if name == "SE":
        assert [generation.number for generation in seen] == [0, 1, 2, 3]
    trainer.save_checkpoint(tmp_path / "second.ckpt")
    again = method_of(name)
    quiet(tmp_path, 3).fit(
        again, datamodule=again.rollouts(), ckpt_path=tmp_path / "second.ckpt", weights_only=True
    )
    trainer.fit_loop.max_epochs = 3
    trainer.fit(method, datamodule=data)
    assert int(again.env_steps) == int(method.env_steps)
    if name in ("DDQN", "ER", "SE"):  # others have their optimizers anew without a checkpoint
        assert all(
            value.equal(again.state_dict()[key]) for key, value in method.state_dict().items()
        )


def test_steps_and_noise_of_a_search_go_on_falling_with_another_trainer(tmp_path):
    method, seen = (
        method_of("SE", step_size=1.0, step_decay=0.5, noise_std=1.0, noise_decay=0.5),
        [],
    )

    class Note(Callback):
        def on_train_batch_start(self, trainer, module, generation, batch_idx):
            (optimizer,) = module.optimizers()
            seen.append(
                (optimizer.param_groups[0]["lr"], module.strategy.noise_std(generation.number))
            )

    for _ in range(2):
        quiet(tmp_path, 2, callbacks=[Note()]).fit(method, datamodule=method.rollouts())
    assert seen == [(rate, rate) for rate in (1.0, 0.5, 0.25, 0.125)]


def test_a_checkpoint_within_an_epoch_is_refused_by_what_it_is(tmp_path):
    class Interrupted(Callback):
        def on_before_optimizer_step(self, trainer, method, optimizer):
            if trainer.global_step == 5:  # four are an epoch's, with the clock's
                raise RuntimeError("no more memory")

    method = method_of("UDRL")
    keeper = ModelCheckpoint(
        dirpath=tmp_path, filename="{step}", save_top_k=-1, save_on_exception=True
    )
    trainer = quiet(tmp_path, 3, callbacks=[Interrupted(), keeper], enable_checkpointing=True)
    with pytest.raises(RuntimeError, match="no more memory"):
        trainer.fit(method, datamodule=method.rollouts())
    again = method_of("UDRL")
    path = tmp_path / "step=5.ckpt"
    with pytest.raises(
        UserError, match=r"was written in the middle of an epoch, .*; use one of an epoch's end"
    ):
        quiet(tmp_path, 3).fit(
            again, datamodule=again.rollouts(), ckpt_path=path, weights_only=True
        )


@pytest.mark.parametrize("name", ["UDRL", "DDQN", "SE"])
def test_a_test_is_an_evaluation(name, tmp_path):
    method = method_of(name)
    data = method.rollouts()
    quiet(tmp_path).fit(method, datamodule=data)
    run = quiet(tmp_path)
    assert run.test(method, datamodule=data, verbose=False) == run.validate(
        method, datamodule=data, verbose=False
    )


def test_a_search_without_its_outer_loop_says_so(tmp_path):
    class Alone(lrl.SE):
        def configure_callbacks(self):
            return []

    method = Alone("emptyroom22", implementation="SE", **tiny_settings("SE"))
    with pytest.raises(
        UserError,
        match=r"Evolution evaluates generations; give \[\*super\(\).configure_callbacks\(\), ...\]",
    ):
        quiet(tmp_path).fit(method, datamodule=method.rollouts())


@pytest.mark.parametrize("name", ["RCP-A", "DDQN", "SE"])
def test_weights_of_other_kinds_and_averages_of_counters_are_refused(name, tmp_path):
    method = method_of(name).double()
    for use in (
        lambda: quiet(tmp_path).fit(method, datamodule=method.rollouts()),
        lambda: lrl.evaluate(method, episodes=1),
        lambda: lrl.LoadedAgent(method),
    ):
        with pytest.raises(UserError, match=f"{name} has weights in float64; convert them by"):
            use()
    assert lrl.evaluate(method.float(), episodes=1)["sampled"]["returns"]
    method = method_of(name)
    for callback, words in (
        (EMAWeightAveraging(), "EMAWeightAveraging would average the counters of steps"),
        (StochasticWeightAveraging(0.1), "takes one optimizer, here a clock is another; leave it"),
        (
            ModelPruning("l1_unstructured", amount=0.3),
            "ModelPruning would replace the parameters by names that no episode is played with",
        ),
    ):
        with pytest.raises(UserError, match=words):
            quiet(tmp_path, callbacks=[callback]).fit(method, datamodule=method.rollouts())


@pytest.mark.parametrize("name", ["DDQN", "ER", "SE", "PPO"])
def test_stacks_and_proxies_are_of_single_precision(name, tmp_path):
    with pytest.raises(UserError, match=f"{name} trains in '32-true'; take that"):
        fit(name, tmp_path, 1, precision="bf16-mixed")


@pytest.mark.parametrize("name", ["RCP-A", "AAC", "DDQN", "ER", "SE"])
def test_rates_that_a_callback_has_set_are_resumed(name, tmp_path):
    class Rates(Callback):
        def on_train_epoch_start(self, trainer, pl_module):
            for optimizer in trainer.optimizers:  # the clock's, too
                for group in optimizer.param_groups:
                    group["lr"] = 0.5

    _, trainer, _ = fit(name, tmp_path, 1, callbacks=[Rates()])
    trainer.save_checkpoint(tmp_path / "set.ckpt")
    method, *_ = fit(name, tmp_path, 2, ckpt_path=tmp_path / "set.ckpt")
    kept = all(group["lr"] == 0.5 for each in method.optimizers() for group in each.param_groups)
    assert kept == (name in ("DDQN", "ER"))  # schedulers set those of the others


def test_own_networks_with_dropout_resume_to_the_bit(tmp_path):
    def net():
        torch.manual_seed(0)
        return nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.5), nn.Linear(8, 2))

    settings = {**TINY_PG, "num_workers": 0}
    del settings["hidden"]

    def train(folder, epochs):
        where = {"logdir": tmp_path / folder, "networks": {"policy": net()}, "resume": True}
        return lrl.train("REINFORCE", "cartpole", max_epochs=epochs, **where, **settings)

    whole = train("a", 4)
    train("b", 2)
    torch.rand(7)
    parts = train("b", 4)
    assert all(
        torch.equal(a, b)
        for a, b in zip(whole.method.parameters(), parts.method.parameters(), strict=True)
    )


def test_own_networks_draw_anew_in_each_epoch_and_leave_torchs_generator_alone(tmp_path):
    seen = []

    class Draws(nn.Linear):
        def forward(self, x):
            if self.training:
                seen.append(float(torch.rand(())))
            return super().forward(x)

    method = implementation("REINFORCE")(
        "cartpole",
        implementation="REINFORCE",
        networks={"policy": Draws(4, 2)},
        **{key: value for key, value in TINY_PG.items() if key != "hidden"},
    )
    data, state = method.rollouts(), torch.get_rng_state()
    quiet(tmp_path, 3).fit(method, datamodule=data)
    assert len(set(seen)) == len(seen) == 3
    assert torch.equal(torch.get_rng_state(), state)


def test_what_a_callback_keeps_can_be_read_again_or_is_refused_at_once(tmp_path):
    class Keeps(Callback):
        def __init__(self, value):
            self.value = value

        def state_dict(self):
            return {"best": self.value}

    settings = {
        **tiny_settings("UDRL"),
        "num_workers": 0,
        "max_epochs": 2,
        "checkpoint_interval": 1,
    }

    def train(folder, epochs, *callbacks):
        how = {**settings, "max_epochs": epochs, "resume": True, "callbacks": callbacks}
        return lrl.train("UDRL", "cartpole", logdir=tmp_path / folder, **how)

    with pytest.raises(UserError, match="callback Keeps: its state_dict is no plain data; give"):
        train("a", 2, Keeps(np.float64(1)))
    run = train("b", 2, Keeps(torch.ones(2)))
    assert lrl.load(run.path)
    with pytest.raises(UserError, match="has the state of a callback Keeps, which is not given"):
        train("b", 3)
    assert train("b", 3, Keeps(torch.ones(2)))


def test_a_checkpoint_of_several_seeds_is_that_of_the_first_where_one_is_asked_for(tmp_path):
    method = method_of("DDQN", num_seeds=2)
    trainer = quiet(tmp_path)
    trainer.fit(method, datamodule=method.rollouts())
    trainer.save_checkpoint(tmp_path / "two.ckpt")
    loaded = lrl.load(tmp_path / "two.ckpt").method
    assert str(loaded.policy.state_dict()) == str(method.policies[0].state_dict())


def test_a_failed_search_leaves_no_processes(tmp_path):
    class Fails(Callback):
        def on_train_epoch_end(self, *_):
            raise ValueError("mine")

    before, method = set(multiprocessing.active_children()), method_of("SE")
    trainer = quiet(tmp_path, 2, callbacks=[Fails()])
    with pytest.raises(ValueError, match="mine"):
        trainer.fit(method, datamodule=method.rollouts(num_workers=2))
    until = time.monotonic() + 10
    while (left := set(multiprocessing.active_children()) - before) and time.monotonic() < until:
        time.sleep(0.01)
    assert not left


def test_batches_of_ones_own_go_where_the_method_is(monkeypatch):
    data = implementation("UDRL")("cartpole").rollouts()
    data.trainer = SimpleNamespace(training=True)
    at = torch.device("meta")
    moved = data.transfer_batch_to_device({"a": torch.ones(2), "b": (torch.ones(3), 1)}, at, 0)
    assert moved["a"].device == moved["b"][0].device == at
    assert (
        data.transfer_batch_to_device([torch.ones(2)], at, 0)[0].device.type == "cpu"
    )  # lists, as of episodes
    data.trainer.training = False
    assert (
        data.transfer_batch_to_device({"eval": torch.ones(2)}, at, 0)["eval"].device.type == "cpu"
    )


def test_what_an_exception_leaves_under_way_is_ended(tmp_path):
    """Workers, and with overlap the collection for the next epoch."""

    class Boom(Callback):
        def on_train_epoch_end(self, trainer, pl_module):
            raise RuntimeError("boom")

    method = method_of("UDRL", overlap=True)
    data, trainer = method.rollouts(num_workers=1), quiet(tmp_path, 2, callbacks=[Boom()])
    with pytest.raises(RuntimeError, match="boom"):
        trainer.fit(method, datamodule=data)
    assert not data.collector.busy
    assert not multiprocessing.active_children()


@pytest.mark.parametrize("name", ["UDRL", "AAC"])
def test_a_trainer_may_save_before_anything_was_collected(name, tmp_path):
    method, trainer = method_of(name), quiet(tmp_path)
    trainer.validate(method, datamodule=method.rollouts(), verbose=False)
    trainer.save_checkpoint(tmp_path / "none.ckpt")
    loaded = load(tmp_path / "none.ckpt").method.state_dict()
    assert all(torch.equal(value, loaded[key]) for key, value in method.state_dict().items())
    with pytest.raises(UserError, match=r"none\.ckpt"):
        fit(name, tmp_path, 2, ckpt_path=tmp_path / "none.ckpt")


@pytest.mark.parametrize("name", ["UDRL", "RCP-A", "AAC"])
def test_mixed_precision_clips_too_and_other_precisions_are_refused_in_one_line(
    name, tmp_path, monkeypatch
):
    monkeypatch.setitem(SETTINGS, name, {"max_grad_norm": 1e-6})
    norms = []

    class Norms(Callback):
        def on_before_optimizer_step(self, trainer, pl_module, optimizer):
            if optimizer is trainer.optimizers[1]:  # of the policy
                grads = [
                    parameter.grad
                    for group in optimizer.param_groups
                    for parameter in group["params"]
                ]
                norms.append(
                    float(torch.cat([grad.flatten() for grad in grads if grad is not None]).norm())
                )

    fit(name, tmp_path, 2, callbacks=[Norms()], precision="bf16-mixed")
    assert norms
    assert max(norms) <= 1e-6
    for precision in ("64-true", "bf16-true"):
        with pytest.raises(
            UserError,
            match=f"precision='{precision}'.*: {name} trains in '32-true' or 'bf16-mixed'; take "
            "that",
        ):
            fit(name, tmp_path, 2, precision=precision)


def test_lightning_cli_trains_as_the_page_says(tmp_path):
    pytest.importorskip("jsonargparse", reason="the extra dev is not installed")
    pages = blocks(ROOT / "docs" / "how_to" / "loggers.md")
    (program,) = [block.text for block in pages if block.title == "lander.py"]
    names = {"__name__": "lander"}
    exec(program, names)
    asked = {"gamename": "CartPole-v1", "seed": 3, "learning_rate": 0.003}
    words = [f"--model.{name}={value}" for name, value in asked.items()]
    folder = f"--trainer.default_root_dir={tmp_path}"
    command = names["CLI"](names["lander"], args=["fit", *words, "--trainer.max_epochs=2", folder])
    method = command.model
    assert (method.spec.gamename, method.seed, method.cfg.learning_rate) == tuple(asked.values())
    assert command.trainer.current_epoch == 2
    assert int(method.env_steps) > 0
    assert list(tmp_path.rglob("*.ckpt"))
