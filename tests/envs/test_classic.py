"""Step for step against Gymnasium: thousands of random steps, each from the same state."""

import math

import gymnasium
import numpy as np
import pytest
import torch

from lightning_rl.envs.cartpole import CartPole
from lightning_rl.envs.classic import Acrobot, MountainCarContinuous, Pendulum

NO_NOISE = torch.zeros(())
CASES = {
    "CartPole-v0": (CartPole(), lambda raw: raw.state),
    "CartPole-v1": (CartPole(), lambda raw: raw.state),
    "Acrobot-v1": (Acrobot(), lambda raw: raw.state),
    "MountainCarContinuous-v0": (MountainCarContinuous(), lambda raw: raw.state),
    "Pendulum-v1": (Pendulum(), lambda raw: raw.state),
}


def actions_for(env, shape, rng):
    if env.continuous:
        return torch.from_numpy(
            rng.uniform(-1.3, 1.3, (*shape, env.action_size)).astype(np.float32)
        )
    return torch.from_numpy(rng.integers(env.action_size, size=shape))


@pytest.mark.parametrize("name", CASES)
def test_every_step_is_that_of_gymnasium(name):
    """5,000 steps in 20 parallel episodes. Tolerance 1e-5 relative: single against double precision
    within one step.

    The actions push towards the ends of the state space too: in the second half each is held for 25
    steps.
    """
    env, _ = CASES[name]
    raw, rng = gymnasium.make(name).unwrapped, np.random.default_rng(0)
    raw.reset(seed=0)
    state = env.reset(torch.from_numpy(rng.random((20, env.reset_noise_size), dtype=np.float32)))
    terminations = 0
    for t in range(250):
        if t < 125 or t % 25 == 0:
            action = actions_for(env, (20,), rng)
        step = env.step(state, action, NO_NOISE)
        for n in range(20):
            raw.state, raw.steps_beyond_terminated = state[n].double().numpy(), None
            scale = 2 if name == "Pendulum-v1" else 1
            given = np.clip(action[n].numpy(), -1, 1) * scale if env.continuous else int(action[n])
            obs, reward, terminated, _, _ = raw.step(given)
            np.testing.assert_allclose(
                step.obs[n], obs, rtol=1e-5, atol=2e-5 if name == "Acrobot-v1" else 1e-6
            )
            assert float(step.reward[n]) == pytest.approx(float(reward), rel=1e-5, abs=1e-6)
            assert bool(step.terminated[n]) == terminated
        terminations += int(step.terminated.sum())
        fresh = env.reset(
            torch.from_numpy(rng.random((20, env.reset_noise_size), dtype=np.float32))
        )
        state = torch.where(step.terminated[:, None], fresh, step.state)
    assert torch.equal(env.observe(step.state), step.obs)
    if name.startswith("CartPole"):
        assert terminations > 50


def test_acrobot_and_mountain_car_terminate_where_gymnasium_does():
    acrobot = Acrobot()
    up = acrobot.step(
        torch.tensor([[math.pi, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0]]),
        torch.tensor([1, 1]),
        NO_NOISE,
    )
    assert up.terminated.tolist() == [True, False]
    assert up.reward.tolist() == [0.0, -1.0]
    car = MountainCarContinuous()
    step = car.step(
        torch.tensor([[0.44, 0.05], [-1.2, -0.05], [0.0, 0.0]]),
        torch.tensor([[0.0], [-1.0], [0.5]]),
        NO_NOISE,
    )
    assert step.terminated.tolist() == [True, False, False]
    assert step.reward.tolist() == pytest.approx([100.0, -0.1, -0.025])
    assert step.state[1].tolist() == pytest.approx([-1.2, 0.0])


@pytest.mark.parametrize("name", CASES)
def test_starts_have_the_bounds_of_gymnasium(name):
    env, state_of = CASES[name]
    raw = gymnasium.make(name).unwrapped
    theirs = []
    for seed in range(300):
        raw.reset(seed=seed)
        theirs.append(np.array(state_of(raw), dtype=np.float64))
    ours = env.reset(torch.rand(3000, env.reset_noise_size)).numpy()
    theirs = np.stack(theirs)
    spread = np.ptp(theirs, axis=0)
    np.testing.assert_allclose(ours.min(0), theirs.min(0), atol=0.03 * spread.max())
    np.testing.assert_allclose(ours.max(0), theirs.max(0), atol=0.03 * spread.max())
    space = raw.observation_space
    np.testing.assert_allclose(space.low, np.float32(env.obs_low), rtol=1e-6)
    np.testing.assert_allclose(space.high, np.float32(env.obs_high), rtol=1e-6)


@pytest.mark.parametrize("name", CASES)
def test_leading_dimensions_are_any_and_independent(name):
    env, rng = CASES[name][0], np.random.default_rng(1)
    state = env.reset(torch.from_numpy(rng.random((3, 4, env.reset_noise_size), dtype=np.float32)))
    action = actions_for(env, (3, 4), rng)
    step = env.step(state, action, NO_NOISE)
    alone = env.step(state[1, 2], action[1, 2], NO_NOISE)
    for batched, single in zip(step[:4], alone[:4], strict=True):
        # Whole vectors of the processor and what is left over of them may take a sine in two ways.
        torch.testing.assert_close(batched[1, 2], single, rtol=1e-6, atol=1e-6)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("name", CASES)
def test_cuda_agrees(name):
    env, rng = CASES[name][0], np.random.default_rng(1)
    state = env.reset(torch.from_numpy(rng.random((64, env.reset_noise_size), dtype=np.float32)))
    action = actions_for(env, (64,), rng)
    on_cpu, on_gpu = (
        env.step(state, action, NO_NOISE),
        env.step(state.cuda(), action.cuda(), NO_NOISE),
    )
    for here, there in zip(on_cpu[:4], on_gpu[:4], strict=True):
        torch.testing.assert_close(here, there.cpu(), rtol=1e-5, atol=1e-5)
