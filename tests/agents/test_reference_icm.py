"""The intrinsic curiosity module against the same written out in plain torch, and how its bonus
reaches the agents.
"""

import pytest
import torch
import torch.nn.functional as F
from helpers.members import Task, config, off_policy, ppo_of, table_of
from helpers.reference_updates import (
    close,
    close_to_adam,
    count,
    descend,
    leaf,
    of_member,
    perceptron,
    random_batch,
)

from lightning_rl.agents.base import Transition
from lightning_rl.agents.dqn import DDQN
from lightning_rl.agents.icm import ICM

OBS, WIDTH, FEATURES, RATE, BETA, ETA = 4, 6, 3, 0.02, 0.3, 0.7
CURIOUS = {
    "curiosity": "icm",
    "icm_learning_rate": RATE,
    "icm_beta": BETA,
    "icm_eta": ETA,
    "icm_hidden_size": WIDTH,
    "icm_feature_size": FEATURES,
}
SEEDS, SIZES, ACTIVE = [1, 2, 3], (8, 5, 8), torch.tensor([True, True, False])


def make(action_size, continuous, seeds=SEEDS):
    generators = [torch.Generator().manual_seed(seed) for seed in seeds]
    return ICM(config("DDQN", **CURIOUS), Task(OBS, action_size), continuous, generators)


def losses(params, b, actions, continuous):
    """(inverse loss, forward error) of each transition. The forward model has four residual
    blocks; all see the action.
    """
    block = (WIDTH + actions, WIDTH)
    shapes = [
        (OBS, WIDTH, WIDTH, FEATURES),
        (2 * FEATURES, WIDTH, WIDTH, actions),
        (FEATURES + actions, WIDTH, WIDTH, WIDTH),
        *[block] * 8,
        (WIDTH + actions, WIDTH, FEATURES),
    ]
    encoder, inverse, enter, *blocks, leave = params.split([count(shape) for shape in shapes])
    action = b.action if continuous else F.one_hot(b.action, actions).float()
    before, after = (
        perceptron(encoder, shapes[0], obs, F.leaky_relu) for obs in (b.obs, b.next_obs)
    )
    told = perceptron(inverse, shapes[1], torch.cat([before, after], -1), F.relu)
    x = perceptron(enter, shapes[2], torch.cat([before, action], -1), F.leaky_relu)
    for first, second in zip(blocks[::2], blocks[1::2], strict=True):
        z = F.leaky_relu(perceptron(first, block, torch.cat([x, action], -1), None))
        x = x + perceptron(second, block, torch.cat([z, action], -1), None)
    predicted = perceptron(leave, shapes[-1], torch.cat([x, action], -1), F.leaky_relu)
    inverse_loss = (
        (told - action).square().mean(-1)
        if continuous
        else F.cross_entropy(told, b.action, reduction="none")
    )
    return inverse_loss, (predicted - after).square().mean(-1)


@pytest.mark.parametrize("continuous", [False, True], ids=["discrete", "continuous"])
def test_two_steps_of_curiosity(continuous):
    """The bonus is eta times the forward error before the step; the step descends (1 - beta)
    inverse + beta forward loss.
    """
    actions = 2 if continuous else 3
    icm = make(actions, continuous)
    start = icm.params.clone()
    kind = {"action_size": 2} if continuous else {"num_actions": 3}
    batches = [random_batch(k, 3, 8, OBS, **kind) for k in range(2)]
    weight = torch.stack([(torch.arange(8) < size).float() / size for size in SIZES])
    bonuses = [icm.learn(batch, weight, ACTIVE) for batch in batches]
    for n, size in enumerate(SIZES[:2]):
        params = leaf(start[n])
        adam = torch.optim.Adam([params], lr=RATE)
        for batch, bonus in zip(batches, bonuses, strict=True):
            told, error = losses(params, of_member(batch, n, size), actions, continuous)
            assert error.min() > 0
            close(bonus[n, :size], ETA * error)
            descend(adam, ((1 - BETA) * told + BETA * error).mean())
        close(icm.params[n], params)
        close_to_adam(icm.adam, n, adam, [params])
    assert torch.equal(icm.params[2], start[2])


class Spy(DDQN):
    def update(self, batch, active, step):
        self.seen = batch
        return super().update(batch, active, step)


def one_step(seed, members, num_actions):
    return Transition(*(x[:, 0] for x in random_batch(seed, members, 1, OBS, num_actions)))


def test_agents_with_a_memory_learn_from_reward_and_bonus():
    """A memory of one transition, so that the batch is that one."""
    over, active = torch.zeros(2, dtype=torch.bool), torch.ones(2) > 0
    agent = Spy(
        config("DDQN", **off_policy(0.9, 0.01, 4, 1, 0.1, (8,)), **CURIOUS), Task(OBS, 3), [1, 2]
    )
    start, step = agent.curiosity.params.clone(), one_step(0, 2, 3)
    agent.learn(step, over, 0, active)
    for n in range(2):
        b = Transition(*(x[n : n + 1] for x in step))
        _, error = losses(start[n], b, 3, False)
        close(agent.seen.reward[n], (b.reward + ETA * error).expand(4))
    assert not torch.equal(agent.curiosity.params, start)


def test_ppo_learns_from_reward_and_bonus(monkeypatch):
    """The returns that its critic is fitted to are those of reward + bonus."""
    settings = {
        "gamma": 0.9,
        "rollout_steps": 4,
        "epochs": 1,
        "batch_size": None,
        "standardise": "returns",
        "hidden": [8],
    }
    agent = ppo_of(OBS, 3, [1, 2], **settings, **CURIOUS)
    start, steps = agent.curiosity.params.clone(), [one_step(t, 2, 3) for t in range(4)]
    loss, targets = agent._loss, []

    def seen(rows, old_log_prob, target, advantage):
        targets.append(target)
        return loss(rows, old_log_prob, target, advantage)

    monkeypatch.setattr(agent, "_loss", seen)
    for t, step in enumerate(steps):
        agent.learn(step, torch.zeros(2) > 0, t, torch.ones(2) > 0)
    for n in range(2):
        b = Transition(
            *(torch.stack([x[n] for x in column]) for column in zip(*steps, strict=True))
        )
        _, error = losses(start[n], b, 3, False)
        reward, to_go = b.reward + ETA * error.detach(), torch.zeros(5)
        for t in reversed(range(4)):
            to_go[t] = reward[t] + 0.9 * to_go[t + 1]
        close(targets[0][n], (to_go[:4] - to_go[:4].mean()) / (to_go[:4].std() + 1e-5))


def test_visits_are_counted_before_they_are_rewarded():
    """beta 0.3: the first visit pays 0.3, the second 0.3 / sqrt 2. Rate 1, nothing follows, so
    the table is what was paid.
    """
    agent = table_of(4, 2, [0], 0.9, 1.0, 0.0, 0.0, 0.0, curiosity="count", count_beta=0.3)
    step = Transition(
        torch.eye(4)[:1],
        torch.tensor([1]),
        torch.tensor([2.0]),
        torch.tensor([0.0]),
        torch.eye(4)[1:2],
    )
    for number in (1, 2):
        agent.learn(step, torch.tensor([True]), number, torch.tensor([True]))
        assert agent.table[0, 0, 1].item() == pytest.approx(2 + 0.3 / number**0.5)
