"""Imagination that waits until the model's held-out loss has settled."""

import pytest
import torch
from helpers.model_based import config

from lightning_rl.agents.model_based import ModelBasedDQN
from lightning_rl.envs.panflute import PanFlute
from lightning_rl.envs.procmaze import ProcMaze
from lightning_rl.functional.world_model import REWARD_LOSS_FLOOR
from lightning_rl.methods.model_based import StepTraining
from lightning_rl.nets.recorded_pass import RecordedPass
from lightning_rl.nets.world_models import RealSteps


def make(kind, seeds, env=None, **changes):
    return ModelBasedDQN(
        config(kind, **{"variables": 4, "warm_up": 10, **changes}), env or PanFlute(3), seeds
    )


def watch(agent, monkeypatch, losses, first, updates_per_step=1):
    """Shows the rule these held-out losses ``[steps, N]`` of the steps from ``first`` on."""
    source = agent.source
    for step, each in enumerate(losses, first):
        parts = torch.stack([torch.full_like(each, REWARD_LOSS_FLOOR), each])
        monkeypatch.setattr(source.model, "gradient", lambda *_, parts=parts: parts)
        for repeat in range(updates_per_step):
            source.warm_up.watch(
                source, RealSteps(*[torch.zeros(2, 1)] * 5), step * updates_per_step + repeat
            )


def test_a_loss_has_settled_once_it_falls_by_less_than_a_tenth(monkeypatch):
    """Means over two windows of ten steps: 2 -> 1.7 is a fall of 15 %, 2 -> 1.9 one of 5 %."""
    agent = make("simple", [0, 1], updates_per_step=3)
    warm_up = agent.source.warm_up
    ramp = torch.linspace(1, 3, 10).unsqueeze(1)
    watch(agent, monkeypatch, ramp.expand(-1, 2), 0, 3)
    torch.testing.assert_close(warm_up.loss_before, torch.tensor([2.0, 2.0]))
    assert not warm_up.settled.any()  # there is nothing to compare the first window with
    watch(agent, monkeypatch, torch.tensor([1.7, 1.9]).expand(9, -1), 10, 3)
    assert not warm_up.settled.any()
    watch(agent, monkeypatch, torch.tensor([[1.7, 1.9]]), 19, 3)
    assert warm_up.settled.tolist() == [False, True]
    assert not warm_up.over
    watch(agent, monkeypatch, torch.tensor([1.6, 0.1]).expand(10, -1), 20, 3)
    assert warm_up.settled.tolist() == [True, True]  # for good, however far the second falls later
    assert warm_up.over


def test_the_loss_of_each_new_step_has_noise_of_its_own(monkeypatch):
    source, seen = make("categorical", [0, 1], updates_per_step=2).source, []
    monkeypatch.setattr(
        source.model,
        "gradient",
        lambda layers, new, codes, *_: seen.append(codes.clone()) or torch.zeros(2, 2),
    )
    for number in range(6):
        source.warm_up.watch(source, RealSteps(*[torch.zeros(2, 1)] * 5), number)
    assert len(seen) == 3
    assert len(torch.stack(seen).unique(dim=0)) == 3


@pytest.mark.parametrize(
    ("kind", "env"),
    [("simple", ProcMaze(2)), ("categorical", PanFlute(3)), ("gaussian", PanFlute(3))],
)
def test_each_member_learns_from_what_it_would_learn_from_alone(kind, env):
    """A gradient of a stack in which one replays and one imagines, beside those where all do the
    same.
    """
    agent = make(kind, [0, 1], env, learning_starts=30, temperature=5.0)
    StepTraining(agent).run(30)
    source, gradients = agent.source, {}
    for settled in ((False, False), (True, True), (False, True)):
        source.warm_up.settled = torch.tensor(settled)
        values = RecordedPass(agent.net, agent.online.layers)
        batch = source.batch(values, 0, source.sample(0))
        assert batch.q.shape[1] == (64 if settled == (False, True) else 32)
        agent._write_gradient(values, batch)
        gradients[settled] = agent.online.params.grad.clone()
    replayed, imagined, both = gradients.values()
    torch.testing.assert_close(both, torch.stack([replayed[0], imagined[1]]))
    assert (replayed - imagined).norm() > 0.1 * imagined.norm()


def test_before_it_settles_values_learn_from_the_memory():
    agent = make("simple", [0], learning_starts=10**6, warm_up=10**6)
    StepTraining(agent).run(25)
    batch = agent.source.batch(
        RecordedPass(agent.net, agent.online.layers), 0, agent.source.sample(0)
    )
    assert batch.weight is None
    size, memory = agent.env.obs_size, agent.source.memory.data["bytes"][:25]
    known = {(tuple(row[size : 2 * size].tolist()), int(row[2 * size])) for row in memory}
    later = agent.source.batch(
        RecordedPass(agent.net, agent.online.layers), 1, agent.source.sample(1)
    )
    assert not torch.equal(batch.next_features, later.next_features)  # each update draws anew
    drawn = zip(batch.next_features[0].byte().tolist(), batch.action[0].tolist(), strict=True)
    assert {(tuple(obs), action) for obs, action in drawn} <= known


def test_a_run_with_warm_up_resumes_and_stacks():
    whole, parts, alone = (
        StepTraining(make("categorical", seeds)) for seeds in ([1, 2], [1, 2], [2])
    )
    for training in (whole, alone):
        training.run(35)
        training.run(30)
    parts.run(35)
    later = StepTraining(make("categorical", [1, 2]))
    later.restore(parts.snapshot())
    later.agent.load_rows({name: value.clone() for name, value in parts.agent.rows().items()})
    later.run(30)
    assert {"source.warm_up.settled", "source.warm_up.loss", "source.warm_up.loss_before"} <= set(
        whole.agent.state_dict()
    )
    for name, value in whole.agent.rows().items():
        assert torch.equal(value, later.agent.rows()[name]), name
        torch.testing.assert_close(value[1:2], alone.agent.rows()[name], rtol=1e-3, atol=1e-4)
