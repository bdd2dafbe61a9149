"""Agents that see images."""

import pytest
import torch

import lightning_rl
from lightning_rl.core.errors import UserError
from lightning_rl.core.gamenames import Images
from lightning_rl.core.seeding import derive_seed
from lightning_rl.envs.gym import make_env
from lightning_rl.envs.gym_batch import GymBatch
from lightning_rl.envs.spec import env_spec
from lightning_rl.methods.agents import DDQN, PPO, DuelingDDQN

METHODS = [DDQN, DuelingDDQN, PPO]
SEEN = Images(frame_stack=3, screen_size=12)


def method_of(kind, **settings):
    keys = {"hidden": [8], "batch_size": 8, **settings}
    if kind is PPO:
        keys["rollout_steps"] = 16
    else:
        keys.setdefault("learning_starts", 1)
    return kind("square", seed=3, frame_stack=3, screen_size=12, **keys)


@pytest.mark.parametrize("processes", [False, True])
def test_a_batch_of_environments_gives_what_policies_see(processes):
    spec, actions = env_spec("square").seen_as(SEEN), [0, 2, 1]
    batch = GymBatch(spec, [5, 6], processes)
    try:
        ours = [batch.obs, *(batch.step(torch.tensor([0, action])).obs for action in actions)]
        state = batch.snapshot()
        other = GymBatch(spec, [5, 6])
        other.restore(state)
    finally:
        batch.close()
    env = make_env(spec)
    theirs = [env.reset(seed=derive_seed(6, "reset", 0) % 2**31)[0]]
    theirs += [env.step(action)[0] for action in actions]
    for obs, seen in zip(ours, theirs, strict=True):
        assert obs.dtype == torch.uint8
        assert obs[1].tolist() == seen.flatten().tolist()
    assert torch.equal(other.obs, ours[-1])


@pytest.mark.parametrize("kind", METHODS)
def test_a_policy_acts_as_its_member(kind):
    method = method_of(kind)
    method.rollouts().training.run(40)
    method.take_policies()
    obs = torch.randint(256, (20, method.spec.obs_size), dtype=torch.uint8)
    zero = torch.zeros(20, method.policy.noise_size)
    acted = method.policy.act(obs, None, zero)
    assert torch.equal(acted, method.agent.greedy(obs.unsqueeze(0)).squeeze(0))
    assert int(method.agent.num_updates[0]) > 0


@pytest.mark.parametrize("kind", METHODS)
def test_members_adopt_a_plain_module(kind):
    one, other = method_of(kind), method_of(kind)
    with torch.no_grad():
        other.agent.params += 1
    one.agent.adopt(other.agent.module(0))
    for ours, theirs in zip(
        one.agent.module(0).parameters(), other.agent.module(0).parameters(), strict=True
    ):
        assert torch.equal(ours, theirs)


@pytest.mark.parametrize("kind", METHODS)
def test_nothing_is_compiled(kind):
    assert not method_of(kind).agent.compiles


@pytest.mark.parametrize("kind", METHODS)
def test_curiosity_refuses_images(kind):
    with pytest.raises(UserError, match="curiosity icm: its networks do not see images"):
        method_of(kind, curiosity="icm")


def test_double_dqn_by_hand_on_what_was_seen():
    """A batch of its memory, by autograd of the plain module."""
    method = method_of(DDQN, learning_starts=0, tau=0.5)
    agent = method.agent
    method.rollouts().training.run(30)
    batch = agent.replay.batch(torch.rand(1, 8, dtype=torch.float64))
    net, target = agent.module(0), agent.net.module(agent.target[0])
    obs, action, reward, discount, next_obs = (each[0] for each in batch)
    with torch.no_grad():
        best = net(next_obs).argmax(-1, keepdim=True)
        goal = reward + discount * target(next_obs).gather(-1, best).squeeze(-1)
    error = net(obs).gather(-1, action.unsqueeze(-1)).squeeze(-1) - goal
    loss = error.square().mean()
    loss.backward()
    grad = torch.empty_like(agent.params)
    ours = agent._gradient(slice(0, 1), batch, grad)
    assert float(ours) == pytest.approx(loss.item(), rel=1e-4)
    for parameter in net.parameters():
        parameter.data = parameter.grad
    torch.testing.assert_close(agent.net.from_modules([net]), grad, rtol=1e-3, atol=1e-5)


def test_frames_count_as_environment_steps_and_repeats_multiply():
    method = method_of(DDQN, frame_skip=2, action_repeat=2)
    assert method.spec.repeat == 4
    training = method.rollouts().training
    training.run(1)
    assert 1 <= int(training.env_steps[0]) <= 4


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("kind", METHODS)
def test_the_toy_is_learned(tmp_path, kind):
    """Its settings in configs/agents.yaml: a minute on one core."""
    run = lightning_rl.train(kind.__name__, "square", seed=0, logdir=tmp_path, eval_episodes=100)
    assert run.metrics["eval_greedy/return_mean"] >= 0.95
