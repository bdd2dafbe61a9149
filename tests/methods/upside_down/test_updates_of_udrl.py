"""One epoch of Upside-Down RL against the loss written out in plain torch, and what its
minibatches and commands are made of.
"""

import dataclasses
import math

import numpy as np
import pytest
import torch
from helpers import methods
from helpers.method_updates import (
    assert_close,
    descend,
    leaves,
    log_softmax_of,
    relu_net,
    squashed_gaussian,
)
from helpers.methods import attach
from helpers.toys import make_episode

from lightning_rl.core.types import Request
from lightning_rl.methods.upside_down.rollouts import UpsideDownEpoch
from lightning_rl.rollouts.episode_buffer import flatten

RATE = 0.05
LOG_2_PI_E = math.log(2 * math.pi * math.e)


def build(gamename="cartpole", **settings):
    own = {"network": "gated", "hidden": [6, 5], "return_scale": 0.02, "horizon_scale": 0.1}
    method = methods.build("UDRL", gamename, **{**own, **settings})
    attach(method, torch.optim.SGD(method.policy.parameters(), RATE))
    return method


def data_of(episodes, **settings):
    """The data of a method, whose buffer holds these episodes."""
    data = build(**settings).rollouts()
    data.store_episodes(0, episodes)
    return data


def gated(parameters, obs, command):
    """``tanh(V o + q) * sigmoid(U c + p)``, then ReLU layers."""
    v, q, u, p, *body = parameters
    scaled = command * torch.tensor([0.02, 0.1])
    return relu_net(body, torch.tanh(obs @ v.T + q) * torch.sigmoid(scaled @ u.T + p))


def epoch_of(episodes, index, held_out=None):
    """An epoch on these episodes, with trailing segments."""
    flat, index = flatten(episodes), torch.tensor(index)
    return UpsideDownEpoch(flat, {"policy": index}, None, held_out, 17, 3, 5, {})


def played(rewards, gamename):
    """An episode of a game with noise for observations and for actions."""
    episode, rng = make_episode(rewards), np.random.default_rng(len(rewards))
    if gamename != "pendulum":
        return dataclasses.replace(
            episode, obs=rng.normal(size=(len(rewards) + 1, 4)).astype(np.float32)
        )
    obs, action = (
        rng.uniform(-1, 1, size=(length, size))
        for length, size in ((len(rewards) + 1, 3), (len(rewards), 1))
    )
    return dataclasses.replace(
        episode, obs=obs.astype(np.float32), action=action.astype(np.float32)
    )


@pytest.mark.parametrize(
    ("gamename", "clip"), [("cartpole", 1e9), ("cartpole", 0.05), ("pendulum", 1e9)]
)
def test_an_epoch_by_hand(gamename, clip):
    """Mean negative log-likelihood of the actions really taken, one step for each of the
    minibatches in their order.
    """
    method = build(gamename, max_grad_norm=clip)
    episodes = [played([40.0, -3.0, 20.0, 7.0], gamename), played([5.0, 60.0, 10.0], gamename)]
    to_go, left = (
        torch.tensor([64.0, 24.0, 27.0, 7.0, 75.0, 70.0, 10.0]),
        torch.tensor([4.0, 3.0, 2.0, 1.0, 3.0, 2.0, 1.0]),
    )
    obs = torch.from_numpy(np.concatenate([e.obs[:-1] for e in episodes]))
    action = torch.from_numpy(np.concatenate([e.action for e in episodes]))
    index = [[0, 5, 3, 3], [1, 6, 2, 4], [4, 4, 0, 2]]
    parameters, losses, logged = leaves(method.policy), [], {}
    for rows in index:
        output = gated(parameters, obs[rows], torch.stack([to_go[rows], left[rows]], dim=-1))
        if gamename == "pendulum":
            mean, log_std = squashed_gaussian(output)
            log_prob = (
                torch.distributions.Normal(mean, log_std.exp()).log_prob(action[rows]).sum(-1)
            )
        else:
            log_prob = log_softmax_of(output, action[rows])
        losses.append(float(-log_prob.detach().sum() / 4))
        descend(parameters, -log_prob.sum() / 4, RATE, clip)
    method.log_scalars = logged.update
    method.train_epoch(epoch_of(episodes, index))
    assert_close(method.policy, parameters)
    assert logged["train/policy_loss"] == pytest.approx(sum(losses) / 3, rel=1e-5)
    assert logged["train/label_sd"] == pytest.approx(float(np.std([64, 24, 27, 7, 75, 70, 10])))
    rows = index[-1]
    output = gated(parameters, obs[rows], torch.stack([to_go[rows], left[rows]], dim=-1)).detach()
    shares = output.softmax(-1)
    entropy = (
        -(shares * shares.log()).sum(-1)
        if gamename == "cartpole"
        else LOG_2_PI_E / 2 + squashed_gaussian(output)[1]
    )
    assert logged["train/entropy"] == pytest.approx(float(entropy.mean()), rel=1e-5)
    counters = (method.env_steps, method.episodes, method.held_out_env_steps, method.num_updates)
    assert [int(counter) for counter in counters] == [17, 3, 5, 3]


def test_evaluation_asks_for_the_lower_end_of_the_commands():
    """The best two of returns -3, 6 and 10 have mean 8 and mean length 2; all that is stored
    gives the limits.
    """
    method = build(last_few=2)
    method.rollouts().store_episodes(
        0, [make_episode([10.0]), make_episode([1.0, 2.0, 3.0]), make_episode([-3.0])]
    )
    assert method.first_command() == (8.0, 2.0)
    assert method.command_limits() == (-3.0, 10.0)
    low, high = (
        -3 + 0.1 * 2 * 9,
        6 + 0.8 * 4,
    )  # a tenth and nine tenths of the way along the returns
    assert method.probe_commands() == {
        "eval_low": pytest.approx((low, 2.0)),
        "eval_high": pytest.approx((high, 2.0)),
    }


def test_held_out_steps_are_judged_and_not_trained_on():
    method, other, logged = build(), build(), {}
    episodes, held = [played([3.0, 1.0], "cartpole")], played([20.0, 30.0, 5.0], "cartpole")
    method.log_scalars = logged.update
    method.train_epoch(epoch_of(episodes, [[0, 1]], held_out=flatten([held])))
    other.train_epoch(epoch_of(episodes, [[0, 1]]))
    assert_close(method.policy, list(other.policy.parameters()))
    command = torch.tensor([[55.0, 3.0], [35.0, 2.0], [5.0, 1.0]])
    output = gated(list(method.policy.parameters()), torch.from_numpy(held.obs[:-1]), command)
    expected = -log_softmax_of(output, torch.from_numpy(held.action)).mean()
    assert logged["held_out/policy_loss"] == pytest.approx(float(expected.detach()), rel=1e-5)


def test_the_optimizer_has_the_rate_of_the_config():
    (adam,) = build(learning_rate=0.01).make_optimizers()
    assert isinstance(adam, torch.optim.Adam)
    assert adam.param_groups[0]["lr"] == 0.01


@pytest.mark.parametrize("segments", ["trailing", "any"])
@pytest.mark.parametrize("sample_by", ["episode", "transition"])
def test_the_command_of_a_minibatch_is_what_the_segment_collected(segments, sample_by):
    """Observations count the steps, and rewards are powers of two: any segment's return says
    where it lies.
    """
    rewards = [[1.0, 2.0, 4.0, 8.0, 16.0], [100.0, 200.0, 400.0]]
    data = data_of(
        [make_episode(r) for r in rewards], segments=segments, sample_by=sample_by, batch_size=64
    )
    stored, lengths = data.buffer.flat(), set()
    index, segment = data.minibatches(4, 8, stored)
    segment = stored.left[index["policy"]] if segment is None else segment
    command = data.method.command.fulfilled_within(stored, index["policy"], segment)
    drawn = (stored.obs[stored.row[index["policy"]], 0].flatten().long(), command.flatten(0, 1))
    for obs, (total, horizon) in zip(*(values.tolist() for values in drawn), strict=True):
        episode = rewards[total >= 100]
        assert total == sum(episode[obs : obs + int(horizon)])
        assert 1 <= horizon <= len(episode) - obs
        assert segments == "any" or horizon == len(episode) - obs
        lengths.add((len(episode), obs, horizon))
    assert len(lengths) == (8 if segments == "trailing" else 15 + 6)


def test_minibatches_are_those_of_the_epoch():
    data = data_of([make_episode([1.0] * 15)], batch_size=64)
    first, again, other = (
        data.minibatches(epoch, 15, data.buffer.flat())[0]["policy"] for epoch in (2, 2, 3)
    )
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


def test_commands_are_uniform_between_mean_and_mean_plus_deviation_of_the_best():
    """The best two of returns 1, 6 and 10 have mean 8 and deviation 2; their mean length is 3."""
    episodes = [make_episode([1.0]), make_episode([3.0, 3.0]), make_episode([1.0, 2.0, 3.0, 4.0])]
    counts = {
        "num_episodes_per_iter": 300,
        "num_held_out_episodes_per_iter": 100,
        "learning_starts": 5,
    }
    data = data_of(episodes, last_few=2, **counts)
    requests = data.requests(7)
    asked, horizons = np.array([r.command for r in requests]).T
    assert len(requests) == 400
    assert set(horizons) == {3.0}
    assert 8.0 <= asked.min() < 8.05
    assert 9.95 < asked.max() <= 10.0
    assert asked.mean() == pytest.approx(9.0, abs=0.1)
    assert {r.mode for r in requests} == {"sampled"}
    assert len({r.seed for r in [*requests, *data.requests(8)]}) == 800
    assert [(r.mode, r.command) for r in data.requests(0)] == [("uniform", None)] * 5
    assert len({r.seed for r in data.requests(0)}) == 5


def test_the_last_episodes_are_held_out_but_not_at_the_warm_up():
    data = build(num_held_out_episodes_per_iter=2).rollouts()
    episodes = [make_episode([float(k)]) for k in range(5)]
    assert [len(part) for part in data._split(0, episodes)] == [5, 0]
    fresh, held_out = data._split(1, episodes)
    assert [e.ret for e in fresh] == [0, 1, 2]
    assert [e.ret for e in held_out] == [3, 4]
    data.store_episodes(1, episodes)
    assert data.buffer.highest()[0].tolist() == [2, 1, 0]


def test_what_is_logged_of_the_buffer_and_of_the_commands_by_hand():
    """Returns 1, 6 and 8 are stored when episodes of 6 and 8 come, which were asked for 10
    within 4 and for 20 within 2 steps.
    """
    data = data_of([make_episode([1.0])])
    asked = zip(([6.0], [3.0, 5.0]), ((10.0, 4.0), (20.0, 2.0)), strict=True)
    fresh = [
        dataclasses.replace(make_episode(rewards), request=Request("t", 0, command=command))
        for rewards, command in asked
    ]
    data.store_episodes(1, fresh)
    logged = data.make_batch(1, fresh, 0.25).scalars
    buffer = {"episodes": 3.0, "return_mean": 5.0, "return_min": 1.0, "return_max": 8.0}
    assert {
        name: value for name, value in logged.items() if name.startswith(("buffer/", "command/"))
    } == {
        **{f"buffer/{name}": value for name, value in buffer.items()},
        "command/return": 15.0,
        "command/horizon": 3.0,
    }
    assert (logged["rollout/return_mean"], logged["time/collection_wait"]) == (7.0, 0.25)
