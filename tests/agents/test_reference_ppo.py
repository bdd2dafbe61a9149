"""PPO's update against the same written out in plain torch, member by member."""

import math

import pytest
import torch
from helpers.members import ppo_of
from helpers.reference_updates import Given, close, close_to_adam, count, leaf, perceptron

from lightning_rl.agents.base import Transition
from lightning_rl.agents.variation import Variation

SEEDS, RATES, STEPS, OBS, HIDDEN = [1, 2, 3], (0.05, 0.02, 0.05), 8, 3, 8
ACTIVE = torch.tensor([True, True, False])
GAMMA, TRACE, CLIP, VALUE, ENTROPY, NORM, EPOCHS = 0.9, 0.8, 0.1, 0.5, 0.03, 0.4, 3
TERMINATED, TRUNCATED = (
    2,
    5,
)  # the steps of the roll-out at which an episode ends; the third goes on after the data


def make(continuous, recipe):
    paper = recipe == "returns"
    settings = {
        "gamma": GAMMA,
        "rollout_steps": STEPS,
        "epochs": EPOCHS,
        "batch_size": None if paper else 4,
        "clip": CLIP,
        "value_coef": VALUE,
        "entropy_coef": ENTROPY,
        "standardise": recipe,
        "gae_lambda": TRACE,
        "std_init": 0.4,
        "max_grad_norm": None if paper else NORM,
    }
    agent = ppo_of(
        OBS, 2, SEEDS, continuous, Variation(RATES, (4,) * 3, (HIDDEN,) * 3, (1,) * 3), **settings
    )
    g = torch.Generator().manual_seed(3)
    uniform = torch.rand(STEPS, 3, 2, generator=g)
    agent.explore_noise = Given(
        torch.randn(STEPS, 3, 2, generator=g) if continuous else -torch.log(-torch.log(uniform))
    )
    agent._shuffle = Given(torch.rand(EPOCHS, 3, STEPS, generator=g))
    return agent


def roll_out(agent):
    """Feeds the agent a roll-out, which makes it learn; the transitions as ``[N, T]``."""
    g, seen = torch.Generator().manual_seed(4), []
    after = torch.randn(3, OBS, generator=g)
    for t in range(STEPS):
        first, following = torch.randn(2, 3, OBS, generator=g)
        obs, after = first if t - 1 in (TERMINATED, TRUNCATED) else after, following
        action = agent.act(obs, torch.zeros(3, dtype=torch.int64), t)
        discount = torch.full((3,), 0.0 if t == TERMINATED else GAMMA)
        step = Transition(obs, action, torch.randn(3, generator=g), discount, after)
        agent.learn(step, torch.full((3,), t in (TERMINATED, TRUNCATED)), t, ACTIVE)
        seen.append(step)
    return Transition(*(torch.stack(x, 1) for x in zip(*seen, strict=True)))


class Reference:
    """One member: actor, critic and log standard deviations in one vector."""

    def __init__(self, params, continuous):
        self.params, self.continuous = leaf(params), continuous
        self.actor, self.critic = (OBS, HIDDEN, 2), (OBS, HIDDEN, 1)
        self.ends = count(self.actor), count(self.actor) + count(self.critic)

    def distribution(self, obs):
        out = perceptron(self.params[: self.ends[0]], self.actor, obs, torch.tanh)
        if not self.continuous:
            return torch.distributions.Categorical(logits=out)
        std = self.params[self.ends[1] :].exp().expand_as(out)
        return torch.distributions.Independent(torch.distributions.Normal(out.tanh(), std), 1)

    def value(self, obs):
        return perceptron(
            self.params[self.ends[0] : self.ends[1]], self.critic, obs, torch.tanh
        ).squeeze(-1)


def advantages(reward, discount, value, next_value):
    """By a loop from the end: a delta of every step, and a trace that stops where an episode is
    over and where the data end.
    """
    out, following = torch.zeros(STEPS), 0.0
    for t in reversed(range(STEPS)):
        if t in (TERMINATED, TRUNCATED):
            following = 0.0
        out[t] = following = (
            reward[t] + discount[t] * next_value[t] - value[t] + TRACE * discount[t] * following
        )
    return out


def returns(reward):
    """Discounted sums to the end of the episode, whichever way it ended; of mean 0 and standard
    deviation 1.
    """
    out, following = torch.zeros(STEPS), 0.0
    for t in reversed(range(STEPS)):
        following = 0.0 if t in (TERMINATED, TRUNCATED) else following
        out[t] = following = reward[t] + GAMMA * following
    return (out - out.mean()) / (out.std() + 1e-5)


@pytest.mark.parametrize("continuous", [False, True], ids=["discrete", "continuous"])
@pytest.mark.parametrize("recipe", ["advantages", "returns"])
def test_a_roll_out_with_a_termination_and_a_time_limit(recipe, continuous):
    """Three epochs: clipped ratios to the policy that played, the critic on advantage + old value,
    an entropy bonus, Adam.

    Common recipe: advantages of mean 0 and deviation 1 in each minibatch, gradients of norm 0.4 at
    most. Paper's recipe: full batches, the critic on the standardised returns, its present error,
    without a gradient, the policy's advantage.
    """
    agent = make(continuous, recipe)
    start = agent.params.clone()
    data = roll_out(agent)
    clipped = 0
    for n, rate in enumerate(RATES[:2]):
        member, (obs, action, reward, discount, next_obs) = (
            Reference(start[n], continuous),
            (x[n] for x in data),
        )
        adam = torch.optim.Adam([member.params], lr=rate)
        with torch.no_grad():
            old_log_prob, old_value = member.distribution(obs).log_prob(action), member.value(obs)
            advantage = advantages(reward, discount, old_value, member.value(next_obs))
        target = advantage + old_value if recipe == "advantages" else returns(reward)
        for epoch in range(EPOCHS):
            order = agent._shuffle.at(epoch)[n].argsort()
            for rows in order.split(4) if recipe == "advantages" else [torch.arange(STEPS)]:
                distribution, value = member.distribution(obs[rows]), member.value(obs[rows])
                gain = advantage[rows]
                gain = (
                    (gain - gain.mean()) / (gain.std() + 1e-8)
                    if recipe == "advantages"
                    else target[rows] - value.detach()
                )
                ratio = (distribution.log_prob(action[rows]) - old_log_prob[rows]).exp()
                clipped += int(((ratio - 1).abs() > CLIP).sum())
                surrogate = torch.minimum(ratio * gain, ratio.clamp(1 - CLIP, 1 + CLIP) * gain)
                loss = -surrogate.mean() + VALUE * (value - target[rows]).square().mean()
                loss = loss - ENTROPY * distribution.entropy().mean()
                adam.zero_grad()
                loss.backward()
                if recipe == "advantages":
                    assert torch.nn.utils.clip_grad_norm_([member.params], NORM) > 0
                adam.step()
        close(agent.params[n], member.params)
        close_to_adam(agent.adam, n, adam, [member.params])
    assert clipped > 5
    assert torch.equal(agent.params[2], start[2])
    assert agent.num_updates.tolist() == [6 if recipe == "advantages" else 3] * 2 + [0]


@pytest.mark.parametrize("continuous", [False, True], ids=["discrete", "continuous"])
def test_actions_are_sampled_from_the_policy(continuous):
    """Gumbel's maximum of the logits, or tanh of the mean and normal noise times the standard
    deviation.
    """
    agent = make(continuous, "advantages")
    obs = torch.randn(3, OBS, generator=torch.Generator().manual_seed(5))
    action = agent.act(obs, torch.zeros(3, dtype=torch.int64), 2)
    for n in range(3):
        member = Reference(agent.params[n], continuous)
        out = perceptron(agent.params[n, : member.ends[0]], member.actor, obs[n], torch.tanh)
        noise = agent.explore_noise.at(2)[n]
        expected = out.tanh() + 0.4 * noise if continuous else (out + noise).argmax()
        close(action[n], expected)
        close(agent.greedy(obs.unsqueeze(1))[n, 0], out.tanh() if continuous else out.argmax())
        if continuous:
            assert member.params[member.ends[1] :].tolist() == pytest.approx([math.log(0.4)] * 2)
