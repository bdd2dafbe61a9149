"""One update of each policy gradient against the loss written out in plain torch, step by step
and episode by episode.
"""

import dataclasses
import math
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from helpers.method_updates import (
    assert_close,
    descend,
    leaves,
    log_softmax_of,
    relu_net,
    squashed_gaussian,
)
from helpers.policy_gradient import METHODS, build, fit, update
from helpers.toys import make_episode
from torch.optim import Adam

from lightning_rl.methods.policy_gradient import step_batch

RATE, GAMMA, BETA, DELTA = 0.05, 0.5, 0.3, 0.7
REWARDS = [[1.0, 2.0, 4.0], [-1.0, 3.0]]  # returns-to-go with gamma 1/2: 3, 4, 4 and 0.5, 3
TRUNCATED = [False, True]
SETTINGS = {
    "gamma": GAMMA,
    "hidden": [6, 5],
    "max_grad_norm": None,
    "normalise_weights": False,
    "anneal_from": 1.0,
}
BASELINES = {
    "batch": [2.9] * 5,
    "time_step": [1.75, 3.5, 2.0, 1.75, 3.5],
}  # of the third step: (4 + nothing) / 2


def make(name, gamename="cartpole", **settings):
    own = (
        {"entropy_coef": BETA} if name in ("REINFORCE-entropy", "REINFORCE-combined", "AAC") else {}
    )
    own |= (
        {"value_delta": DELTA, "network": "separate", "num_critic_updates": 1}
        if name == "AAC"
        else {}
    )
    return build(name, gamename, **{**SETTINGS, **own, **settings})[0]


def gradient_step(method, batch):
    """Lightning's, by plain gradient descent; what was logged."""
    return update(method, batch, torch.optim.SGD(method.parameters(), RATE))


def batch_of(continuous=False):
    rng, episodes = np.random.default_rng(0), []
    for reward, truncated in zip(REWARDS, TRUNCATED, strict=True):
        obs = rng.normal(size=(len(reward) + 1, 3 if continuous else 4)).astype(np.float32)
        action = (
            rng.uniform(-1, 1, (len(reward), 1)).astype(np.float32)
            if continuous
            else rng.integers(2, size=len(reward))
        )
        ends = {"terminated": not truncated, "truncated": truncated}
        seen = {"obs": obs, "action": action, "env_steps": 3 * len(reward)}  # actions repeated
        episodes.append(dataclasses.replace(make_episode(reward), **seen, **ends))
    return step_batch(episodes, {"rollout/return_running_mean": 4.5})


def log_prob_and_entropy(actor, batch, continuous):
    output = relu_net(actor, batch.obs)
    if not continuous:
        log_probs = output.log_softmax(-1)
        return (
            log_softmax_of(output, batch.action),
            -(log_probs.exp() * log_probs).sum(-1),
            math.log(2),
        )
    normal = torch.distributions.Normal(
        *(f(x) for f, x in zip((torch.clone, torch.exp), squashed_gaussian(output), strict=True))
    )
    widest = 0.5 + 0.5 * math.log(2 * math.pi * math.e)  # of log standard deviation 1/2
    return normal.log_prob(batch.action).sum(-1), normal.entropy().sum(-1), widest


@pytest.mark.parametrize("clip", [None, 0.01])
@pytest.mark.parametrize("normalise", [False, True])
@pytest.mark.parametrize("baseline", list(BASELINES))
@pytest.mark.parametrize("gamename", ["cartpole", "pendulum"])
@pytest.mark.parametrize("name", [name for name in METHODS if name != "AAC"])
def test_an_update_of_reinforce_by_hand(name, gamename, baseline, normalise, clip):
    has_baseline, continuous = (
        name in ("REINFORCE-baseline", "REINFORCE-combined"),
        gamename == "pendulum",
    )
    settings = {
        "normalise_weights": normalise,
        "max_grad_norm": clip,
        **({"baseline": baseline} if has_baseline else {}),
    }
    method, batch = make(name, gamename, **settings), batch_of(continuous)
    actor = leaves(method.policy)
    weight = torch.tensor([3.0, 4.0, 4.0, 0.5, 3.0]) - torch.tensor(
        BASELINES[baseline] if has_baseline else [0.0] * 5
    )
    if normalise:
        weight = (weight - weight.mean()) / weight.std(correction=0)
    log_prob, entropy, widest = log_prob_and_entropy(actor, batch, continuous)
    policy_loss, entropy_loss = -(weight * log_prob).sum() / 5, -BETA * entropy.sum() / 5 / widest
    bonus = name in ("REINFORCE-entropy", "REINFORCE-combined")
    descend(actor, policy_loss + entropy_loss if bonus else policy_loss, RATE, clip)
    logged = gradient_step(method, batch)
    assert_close(method.policy, actor)
    assert logged["train/policy_loss"] == pytest.approx(
        float(policy_loss.detach()), rel=1e-4, abs=1e-6
    )
    assert logged["train/entropy"] == pytest.approx(float(entropy.detach().mean()), rel=1e-5)
    assert not bonus or logged["train/entropy_loss"] == pytest.approx(
        float(entropy_loss.detach()), rel=1e-4
    )
    assert not has_baseline or logged["train/baseline"] == pytest.approx(
        sum(BASELINES[baseline]) / 5
    )


def lambda_targets(value, final, bootstrap, trace):
    """Backwards through each episode."""
    targets, start = [], 0
    for number, reward in enumerate(REWARDS):
        end, after, episode = len(reward), 0.0, []
        for t in reversed(range(end)):
            if t == end - 1:
                after = reward[t] + (
                    GAMMA * final[number] if TRUNCATED[number] and bootstrap else 0.0
                )
            else:
                after = reward[t] + GAMMA * ((1 - trace) * value[start + t + 1] + trace * after)
            episode.insert(0, after)
        targets, start = targets + episode, start + end
    return torch.tensor(targets)


@pytest.mark.parametrize("critic_updates", [1, 3])
@pytest.mark.parametrize(("trace", "bootstrap"), [(1.0, False), (0.6, True), (0.6, False)])
def test_an_update_of_the_actor_critic_by_hand(trace, bootstrap, critic_updates):
    """The weight is the target less the value; the critic's further steps see new targets and
    leave the actor alone.
    """
    method, batch = (
        make(
            "AAC",
            gae_lambda=trace,
            bootstrap_truncated=bootstrap,
            num_critic_updates=critic_updates,
        ),
        batch_of(),
    )
    actor, critic = leaves(method.policy), leaves(method.critic)

    def targets():
        value, final = (
            relu_net(critic, obs)[:, 0].tolist() for obs in (batch.obs, batch.final_obs)
        )
        return lambda_targets(value, final, bootstrap, trace)

    value, target = relu_net(critic, batch.obs)[:, 0], targets()
    log_prob, entropy, widest = log_prob_and_entropy(actor, batch, continuous=False)
    advantage = target - value.detach()
    value_loss = DELTA * (value - target).square().sum() / 5
    descend(critic, value_loss, RATE)
    descend(actor, -(advantage * log_prob).sum() / 5 - BETA * entropy.sum() / 5 / widest, RATE)
    for _ in range(critic_updates - 1):
        fixed = targets()
        descend(critic, (relu_net(critic, batch.obs)[:, 0] - fixed).square().sum() / 5, RATE)
    logged = gradient_step(method, batch)
    assert_close(method.policy, actor)
    assert_close(method.critic, critic)
    assert logged["train/value_loss"] == pytest.approx(float(value_loss.detach()), rel=1e-5)
    assert logged["train/advantage_mean"] == pytest.approx(float(advantage.mean()), rel=1e-4)


@pytest.mark.parametrize("name", METHODS)
def test_a_training_step_counts_and_uses_adam_with_the_rate_of_the_config(name):
    method = make(name, learning_rate=0.02)
    (adam,) = method.make_optimizers()
    assert (type(adam), adam.param_groups[0]["lr"]) == (Adam, 0.02)
    assert len(adam.param_groups[0]["params"]) == (12 if name == "AAC" else 6)
    fit(method, batch_of, epochs=2)
    assert [
        int(counter) for counter in (method.env_steps, method.episodes, method.num_updates)
    ] == [3 * 10, 4, 2]
    assert method.trainer.global_step == 4  # and two of the clock


@pytest.mark.parametrize(
    ("episodes", "target", "reached"),
    [(100, 4.5, True), (99, 4.5, False), (100, 4.6, False), (100, None, False)],
)
def test_the_target_return_counts_once_a_hundred_episodes_are_in(episodes, target, reached):
    method = make("REINFORCE", target_return=target)
    data = method.rollouts()
    data.recent_returns.extend([4.5] * episodes)
    method.trainer = SimpleNamespace(datamodule=data)
    assert method.finished() is reached


def test_the_rate_falls_with_the_episodes_that_were_played():
    """Of 100 episodes, from the half on: at 75 the rate has fallen to a half, at 80 to two
    fifths of the first one.
    """
    method = make("REINFORCE", max_episodes=100, anneal_from=0.5)
    for episodes, rate in ((0, 1.0), (50, 1.0), (75, 0.5), (80, 0.4), (100, 0.0)):
        method.episodes.fill_(episodes)
        _, (scheduler,) = method.configure_optimizers()
        assert scheduler.get_last_lr() == pytest.approx([method.cfg.learning_rate * rate])
