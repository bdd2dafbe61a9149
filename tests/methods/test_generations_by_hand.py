"""What bi-level learning and the supervised model make of their data: counters, metrics,
held-out losses, the end of a run.
"""

import dataclasses
from types import SimpleNamespace

import pytest
import torch
from helpers import methods
from helpers.budgets import tiny_settings
from helpers.method_updates import descend, leaves, relu_net
from helpers.methods import attach
from pytorch_lightning import Callback
from pytorch_lightning.loggers import CSVLogger

from lightning_rl.core.config import build_config, merged_values
from lightning_rl.core.seeding import generator
from lightning_rl.envs.cartpole import CartPole
from lightning_rl.envs.proxies import read_proxy
from lightning_rl.envs.spec import env_spec
from lightning_rl.envs.synthetic import SyntheticNet
from lightning_rl.evolution.callback import Generation
from lightning_rl.methods.agents import AgentMethod, rollout_scalars
from lightning_rl.methods.base import scores_of
from lightning_rl.methods.inner_loop import Outcome, outcome_scalars
from lightning_rl.methods.proxy_search import SaveProxy
from lightning_rl.methods.registry import implementation
from lightning_rl.methods.stacked import StackedMethod
from lightning_rl.methods.supervised_model import Data, collect


def build(name, gamename="cartpole", **settings):
    """A small method whose scalars stand in ``logged``."""
    method = methods.build(name, gamename, **settings)
    method.logged = {}
    method.log_scalars = method.logged.update
    return method


def outcome(fitness, steps, tests=10, stopped=False, failed=False):
    return Outcome(fitness, fitness + 1, steps, tests, 3, 7, stopped, failed)


RESULTS = [
    outcome(200.0, 50),
    outcome(180.0, 60),
    outcome(500.0, 70, 20, stopped=True),
    outcome(1.0, 80, failed=True),
]


def generation(method, outcomes, is_best=False):
    """The fourth, of two agents on the unperturbed proxy and two on candidates; the callback
    that makes it is not needed.
    """
    _, items = method.strategy.ask(3)
    return Generation(3, items[: len(outcomes)], outcomes, 190.0, is_best)


def test_a_generation_is_counted_and_stepped():
    method = build("SE", population=1, center_agents=2)
    method.strategy.mean.grad = torch.full_like(method.strategy.mean, 2.0)
    before = method.strategy.mean.detach().clone()
    descent = torch.optim.SGD([method.strategy.mean], 0.8)
    attach(method, descent)
    method.train_epoch(generation(method, RESULTS, is_best=True))
    torch.testing.assert_close(method.strategy.mean.detach(), before - 2 * 0.8)
    counters = (method.env_steps, method.eval_env_steps, method.num_updates, method.episodes)
    assert [int(counter) for counter in counters] == [50 + 60 + 70 + 80, 50, 1, 12]
    assert method.logged["es/fitness_mean"] == 190.0
    assert method.logged["es/fitness_best"] == 500.0
    assert method.logged["es/step_norm"] == pytest.approx(1.6 * len(before) ** 0.5)
    assert (method.score, method.improved) == (190.0, True)
    method.train_epoch(generation(method, RESULTS))
    assert not method.improved


def test_a_proxy_is_written_when_it_is_better_into_the_folder_of_the_trainer(tmp_path):
    method, callback, trainer = (
        build("SE"),
        SaveProxy(),
        SimpleNamespace(default_root_dir=str(tmp_path)),
    )
    for score, improved in ((3.0, True), (1.0, False)):
        method.score, method.improved = score, improved
        callback.on_train_batch_end(trainer, method, None, None, 0)
    proxy, params, about = read_proxy(tmp_path / "proxy.pt", "cartpole")
    assert torch.equal(params, method.proxy_params())
    assert proxy == method.inner_loop.proxy
    assert (about["score"], about["curve"], about["seed"]) == (3.0, [3.0], 3)
    assert callback.state_dict() == {"curve": [3.0, 1.0]}


class Spy(Callback):
    def __init__(self):
        self.generations = []

    def on_train_batch_end(self, trainer, pl_module, outputs, batch, batch_idx):
        self.generations.append(batch)


@pytest.mark.parametrize(("name", "gamename"), [("RN", "cliff"), ("SD", "pendulum")])
def test_a_plain_trainer_with_a_users_callback_and_logger_is_enough(tmp_path, name, gamename):
    """The method brings its own callbacks; going on from Lightning's checkpoint equals not
    having stopped.
    """

    def fit(folder, epochs, checkpoint=None):
        method, spy = build(name, gamename, eval_interval=2), Spy()
        del method.log_scalars
        trainer = methods.quiet_trainer(
            epochs,
            default_root_dir=folder,
            callbacks=[spy],
            logger=CSVLogger(folder),
            check_val_every_n_epoch=2,
            num_sanity_val_steps=0,
            enable_checkpointing=True,
        )
        trainer.fit(method, datamodule=method.rollouts(), ckpt_path=checkpoint, weights_only=True)
        return trainer, method, spy

    trainer, _, spy = fit(tmp_path / "whole", 4)
    _, params, about = read_proxy(tmp_path / "whole" / "proxy.pt")
    assert [generation.number for generation in spy.generations] == [0, 1, 2, 3]
    assert (
        about["curve"]
        == [generation.fitness for generation in spy.generations][: len(about["curve"])]
    )
    assert (
        float(trainer.callback_metrics["eval/return_mean"])
        == trainer.callback_metrics["eval/return_mean"]
    )
    fit(tmp_path / "parts", 2)[0].save_checkpoint(tmp_path / "half.ckpt")
    fit(tmp_path / "parts", 4, tmp_path / "half.ckpt")
    _, again, told = read_proxy(tmp_path / "parts" / "proxy.pt")
    assert torch.equal(params, again)
    assert told["curve"] == about["curve"]


def test_metrics_of_the_agents_by_hand():
    assert outcome_scalars(RESULTS) == {
        "agent/return_mean": pytest.approx((201 + 181 + 501 + 2) / 4),
        "agent/return_max": 501.0,
        "agent/train_steps": 65.0,
        "agent/episodes": 3.0,
        "agent/stopped_share": 0.25,
        "agent/failed": 1.0,
    }


@pytest.mark.parametrize(
    ("threshold", "stop", "ends"),
    [(190.0, True, True), (191.0, True, False), (190.0, False, False)],
)
def test_a_search_ends_when_the_agents_of_its_mean_solve_the_task(threshold, stop, ends):
    """Their mean test return is 191, which has to be passed; the candidates' do not count."""
    method = build(
        "SE", population=1, center_agents=2, solved_return=threshold, stop_when_solved=stop
    )
    method.strategy.mean.grad = torch.zeros_like(method.strategy.mean)
    attach(method, torch.optim.SGD([method.strategy.mean], 0.1))
    method.train_epoch(generation(method, RESULTS))
    assert method.finished() is ends


def test_who_learns_nothing_ends_no_search():
    """The fourth generation is judged by clones; of perfect learners as good as these there was
    nothing to learn.
    """
    first = {
        "one_step": True,
        "perfect_generations": 2,
        "clone_generations": 2,
        "keep": "last",
        "proxy_horizon": None,
    }
    method = build(
        "SE", population=1, center_agents=2, solved_return=0.0, stop_when_solved=True, **first
    )
    judged = generation(method, RESULTS)
    assert not method.solves(judged)
    assert method.solves(judged._replace(number=4))


def test_an_evaluation_sums_up_fresh_agents():
    method, monitored = build("SE"), {}
    method.log = lambda name, value, **rest: monitored.update({name: value})
    method.validation_step({"eval": RESULTS[:3]}, 0)
    returns = torch.tensor([201.0, 181.0, 501.0])
    assert monitored == {"eval/return_mean": pytest.approx(float(returns.mean()))}
    assert method.logged["eval/return_std"] == pytest.approx(float(returns.std(correction=0)))
    assert (method.logged["eval/return_min"], method.logged["eval/return_max"]) == (181.0, 501.0)
    assert int(method.eval_env_steps) == 40
    real = build("RN")  # whose agents learn on the real task
    real.log = method.log
    real.validation_step({"eval": RESULTS[:3]}, 0)
    assert int(real.eval_env_steps) == 40 + sum(each.train_steps for each in RESULTS[:3])


def test_the_data_of_a_model_are_steps_of_the_task():
    """30 decisions of each of two agents: CartPole gives the same next states, rewards and ends;
    the agents play apart.
    """
    data = collect(build("MBRL").cfg, env_spec("cartpole"), 3, torch.device("cpu"))
    assert len(data.reward) == 60
    assert (data.act.sum(1) == 1).all()
    step = CartPole().step(data.obs, data.act.argmax(1), torch.zeros(60, 0))
    torch.testing.assert_close(step.obs, data.next_obs)
    assert torch.equal(step.terminated.float(), data.terminated)
    assert data.terminated.sum() >= 2
    assert torch.equal(data.reward, torch.ones(60))
    assert not torch.equal(data.obs[0], data.obs[30])


@pytest.mark.parametrize("published", [False, True])
def test_a_pass_over_the_data_by_hand(published):
    """Every tenth transition judges; the others are trained on in the epoch's order, in
    minibatches; published: not the ends.
    """
    method = build("MBRL", published=published, batch_size=8, hidden=[4], activation="relu")
    rng = torch.Generator().manual_seed(0)
    obs, next_obs = torch.randn(24, 4, generator=rng), torch.randn(24, 4, generator=rng)
    reward, ends = torch.randn(24, generator=rng), (torch.arange(24) % 5 == 0).float()
    data = Data(obs, torch.eye(2)[torch.arange(24) % 2], reward, ends, next_obs)
    net = method.inner_loop.proxy.net
    assert isinstance(net, SyntheticNet)
    blocks = net.split(method.params.detach())
    heads = [leaves(head.module(blocks[name][0])) for name, head in net.heads.items()]
    x = torch.cat([data.obs, data.act] if published else [data.act, data.obs], 1)

    def losses(rows):
        state, reward, done = (relu_net(head, x[rows]) for head in heads)
        p = done[:, 0].sigmoid()
        log_loss = -(
            data.terminated[rows] * p.log() + (1 - data.terminated[rows]) * (1 - p).log()
        ).mean()
        return (
            (state - data.next_obs[rows]).square().mean(),
            (reward[:, 0] - data.reward[rows]).square().mean(),
            log_loss,
        )

    train = torch.tensor([row for row in range(24) if row % 10])
    for rows in train[torch.from_numpy(generator(3, "shuffle", 0).permutation(21))].split(8):
        step = losses(rows)
        for head, loss in zip(heads[:2] if published else heads, step, strict=False):
            descend(head, loss, 0.05)
    descent = torch.optim.SGD([method.params], 0.05)
    attach(method, descent)
    method.train_epoch(data)
    expected = [float(loss.detach()) for loss in losses(torch.tensor([0, 10, 20]))]
    assert [
        method.logged[f"model/{name}_loss"] for name in ("state", "reward", "done")
    ] == pytest.approx(expected, rel=1e-4)
    assert (method.score, method.improved) == (pytest.approx(-sum(expected), rel=1e-4), True)
    assert (int(method.env_steps), int(method.num_updates)) == (24, 3)


def results(**values):
    return SimpleNamespace(**{name: torch.tensor(value) for name, value in values.items()})


def test_metrics_of_the_episodes_that_have_ended_since():
    """Member 1 had one episode before and has three now."""
    played = results(
        returns=[[9.0, 9.0, 9.0], [7.0, 1.0, 5.0]], lengths=[[9, 9, 9], [7, 2, 4]], episodes=[1, 3]
    )
    training, before = SimpleNamespace(results=played), torch.tensor([1, 1])
    assert rollout_scalars(training.results, before, 0) == {}
    assert rollout_scalars(training.results, before, 1) == {
        "rollout/return_mean": 3.0,
        "rollout/return_std": 2.0,
        "rollout/return_min": 1.0,
        "rollout/return_max": 5.0,
        "rollout/length_mean": 3.0,
    }


class Logger:
    def __init__(self):
        self.lines = []

    def log_metrics(self, values, step):
        self.lines.append((step, values))


def test_each_member_of_a_stack_logs_its_own_evaluation(monkeypatch):
    """Two members, two episodes each; what the checkpoint is chosen by is the mean over both."""
    entry = implementation("QL")
    config = dataclasses.asdict(
        build_config(entry.Config, [*merged_values("QL", "cliff"), ("test", tiny_settings("QL"))])
    )
    method = entry(
        **{"implementation": "QL", "gamename": "cliff", "seed": 3, "num_seeds": 2, "config": config}
    )
    assert isinstance(method, AgentMethod)
    loggers, monitored = [Logger(), Logger()], {}
    monkeypatch.setattr(StackedMethod, "loggers", loggers)
    method.log = lambda name, value, **rest: monitored.update({name: (value, rest["batch_size"])})
    method.member_counters[:] = torch.tensor([[100, 10, 0, 5], [80, 12, 0, 4]])
    episodes = [
        SimpleNamespace(ret=float(value), env_steps=value, cut_off=value == 20)
        for value in (1, 3, 10, 20)
    ]
    method.validation_step(
        [{"eval": scores_of(episodes[:2])}, {"eval": scores_of(episodes[2:])}], 0
    )
    # a policy without noise has played once
    assert monitored == dict.fromkeys(["eval/return_mean", "eval_greedy/return_mean"], (8.5, 4))
    (first, ours), (second, theirs) = (line for logger in loggers for line in logger.lines)
    assert (first, second) == (100, 80)
    names = (
        "eval/return_mean",
        "eval/truncated_share",
        "time/eval_env_steps",
        "time/num_updates",
        "time/episodes",
    )
    assert [ours[name] for name in names] == [2, 0, 4, 10, 5]
    assert [theirs[name] for name in names] == [15, 0.5, 30, 12, 4]
    assert [
        int(c)
        for c in (method.env_steps, method.num_updates, method.eval_env_steps, method.episodes)
    ] == [100, 12, 30, 5]
