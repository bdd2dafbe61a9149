"""One epoch of Upside-Down RL against the loss written out in plain torch, and what its minibatches and commands are made of."""

import dataclasses

import numpy as np
import pytest
import torch
from helpers import attach, make_episode, tiny_settings
from update_helpers import assert_close, descend, leaves, log_softmax_of, relu_net, squashed_gaussian

from lightning_rl.core.config import build_config, merged_values
from lightning_rl.envs.spec import EnvSpec
from lightning_rl.functional.upside_down import CommandRange
from lightning_rl.methods.upside_down import UDRL, CommandedSteps, UDRLConfig, UpsideDownEpoch, UpsideDownRollouts
from lightning_rl.rollouts.episode_buffer import SortedEpisodeBuffer

RATE = 0.05


def build(gamename="cartpole", **settings):
    test = {**tiny_settings("UDRL"), "network": "gated", "hidden": [6, 5], "return_scale": 0.02, "horizon_scale": 0.1, **settings}
    config = build_config(UDRLConfig, [*merged_values("UDRL", gamename), ("test", test)])
    method = UDRL(gamename, seed=3, config=dataclasses.asdict(config))
    descent = torch.optim.SGD(method.policy.parameters(), RATE)
    attach(method, descent)
    return method


def experience_of(episodes, **settings):
    """An experience whose buffer holds these episodes, without environments."""
    experience = UpsideDownRollouts.__new__(UpsideDownRollouts)
    experience.cfg, experience.run_seed, experience.max_return = build(**settings).cfg, 3, 100.0
    spec = EnvSpec("toy", "Toy-v0", 4, 2, False, 20, 100.0, None)
    experience.buffer = SortedEpisodeBuffer(experience.cfg.replay_size, spec, experience.cfg.recent_episodes)
    experience.buffer.add(episodes)
    return experience


def gated(parameters, obs, command):
    """``tanh(V o + q) * sigmoid(U c + p)``, then ReLU layers."""
    v, q, u, p, *body = parameters
    scaled = command * torch.tensor([0.02, 0.1])
    return relu_net(body, torch.tanh(obs @ v.T + q) * torch.sigmoid(scaled @ u.T + p))


def epoch_of(obs, command, action, held_out=None):
    scalars = {"buffer/return_min": -3.0, "buffer/return_max": 9.0}
    steps, among = CommandedSteps(obs, command, action), CommandRange(40.0, 90.0, 25.0)
    return UpsideDownEpoch(steps, held_out, 17, 3, 5, among, scalars)


@pytest.mark.parametrize(("gamename", "clip"), [("cartpole", 1e9), ("cartpole", 0.05), ("pendulum", 1e9)])
def test_an_epoch_by_hand(gamename, clip):
    """Mean negative log-likelihood of the actions really taken, one step for each of the minibatches in their order."""
    method, rng = build(gamename, max_grad_norm=clip), torch.Generator().manual_seed(0)
    continuous = gamename == "pendulum"
    obs = torch.randn(3, 8, 3 if continuous else 4, generator=rng)
    command = torch.rand(3, 8, 2, generator=rng) * torch.tensor([100.0, 20.0])
    action = torch.rand(3, 8, 1, generator=rng) * 2 - 1 if continuous else torch.randint(2, (3, 8), generator=rng)
    parameters, losses, logged = leaves(method.policy), [], {}
    for o, c, a in zip(obs, command, action, strict=True):
        output = gated(parameters, o, c)
        if continuous:
            mean, log_std = squashed_gaussian(output)
            log_prob = torch.distributions.Normal(mean, log_std.exp()).log_prob(a).sum(-1)
        else:
            log_prob = log_softmax_of(output, a)
        losses.append(float(-log_prob.detach().sum() / 8))
        descend(parameters, -log_prob.sum() / 8, RATE, clip)
    method.log_scalars = logged.update
    method.train_epoch(epoch_of(obs, command, action))
    assert_close(method.policy, parameters)
    assert logged["train/policy_loss"] == pytest.approx(sum(losses) / 3, rel=1e-5)
    counters = (method.env_steps, method.episodes, method.held_out_env_steps, method.num_updates)
    assert [int(counter) for counter in counters] == [17, 3, 5, 3]


def test_evaluation_asks_for_the_lower_end_of_the_commands():
    method, obs, command = build(), torch.zeros(1, 2, 4), torch.ones(1, 2, 2)
    method.train_epoch(epoch_of(obs, command, torch.zeros(1, 2, dtype=torch.int64)))
    assert method.first_command() == (40.0, 25.0)
    assert method.command_limits() == (-3.0, 9.0)


def test_held_out_steps_are_judged_and_not_trained_on():
    method, other, logged = build(), build(), {}
    obs, command, action = torch.ones(1, 2, 4), torch.ones(1, 2, 2), torch.zeros(1, 2, dtype=torch.int64)
    held = CommandedSteps(-torch.ones(3, 4), torch.full((3, 2), 30.0), torch.tensor([1, 1, 0]))
    method.log_scalars = logged.update
    method.train_epoch(epoch_of(obs, command, action, held))
    other.train_epoch(epoch_of(obs, command, action))
    assert_close(method.policy, list(other.policy.parameters()))
    expected = -log_softmax_of(gated(list(method.policy.parameters()), held.obs, held.command), held.action).mean()
    assert logged["held_out/policy_loss"] == pytest.approx(float(expected.detach()), rel=1e-5)


def test_the_optimiser_has_the_rate_of_the_config():
    (adam,) = build(learning_rate=0.01).optimisers()
    assert isinstance(adam, torch.optim.Adam)
    assert adam.param_groups[0]["lr"] == 0.01


@pytest.mark.parametrize("segments", ["trailing", "any"])
@pytest.mark.parametrize("sample_by", ["episode", "transition"])
def test_the_command_of_a_minibatch_is_what_the_segment_collected(segments, sample_by):
    """Observations count the steps, and rewards are powers of two: any segment's return says where it lies."""
    rewards = [[1.0, 2.0, 4.0, 8.0, 16.0], [100.0, 200.0, 400.0]]
    experience = experience_of([make_episode(r) for r in rewards], segments=segments, sample_by=sample_by, batch_size=64)
    steps, lengths = experience._minibatches(4), set()
    drawn = (steps.obs[..., 0].flatten().long(), steps.command.flatten(0, 1), steps.action.flatten())
    for obs, (total, horizon), action in zip(*(values.tolist() for values in drawn), strict=True):
        episode = rewards[total >= 100]
        assert total == sum(episode[obs : obs + int(horizon)])
        assert action == obs % 2
        assert 1 <= horizon <= len(episode) - obs
        assert segments == "any" or horizon == len(episode) - obs
        lengths.add((len(episode), obs, horizon))
    assert len(lengths) == (8 if segments == "trailing" else 15 + 6)


def test_minibatches_are_those_of_the_epoch():
    experience = experience_of([make_episode([1.0] * 15)], batch_size=64)
    first, again, other = (experience._minibatches(epoch) for epoch in (2, 2, 3))
    assert torch.equal(first.obs, again.obs)
    assert not torch.equal(first.obs, other.obs)


def test_commands_are_uniform_between_mean_and_mean_plus_deviation_of_the_best():
    """The best two of returns 1, 6 and 10 have mean 8 and deviation 2; their mean length is 3."""
    episodes = [make_episode([1.0]), make_episode([3.0, 3.0]), make_episode([1.0, 2.0, 3.0, 4.0])]
    counts = {"num_episodes_per_iter": 300, "num_held_out_episodes_per_iter": 100, "learning_starts": 5}
    experience = experience_of(episodes, last_few=2, **counts)
    requests = experience.requests(7)
    asked, horizons = np.array([r.command for r in requests]).T
    assert len(requests) == 400
    assert set(horizons) == {3.0}
    assert 8.0 <= asked.min() < 8.05
    assert 9.95 < asked.max() <= 10.0
    assert asked.mean() == pytest.approx(9.0, abs=0.1)
    assert {r.mode for r in requests} == {"sampled"}
    assert len({r.seed for r in [*requests, *experience.requests(8)]}) == 800
    assert [(r.mode, r.command) for r in experience.requests(0)] == [("uniform", None)] * 5
    assert len({r.seed for r in experience.requests(0)}) == 5


def test_the_last_episodes_are_held_out_but_not_at_the_warm_up():
    experience = experience_of([], num_held_out_episodes_per_iter=2)
    episodes = [make_episode([float(k)]) for k in range(5)]
    assert [len(part) for part in experience._split(0, episodes)] == [5, 0]
    fresh, held_out = experience._split(1, episodes)
    assert [e.ret for e in fresh] == [0, 1, 2]
    assert [e.ret for e in held_out] == [3, 4]
    experience.absorb(1, episodes)
    assert experience.buffer.best(9)[0].tolist() == [2, 1, 0]
