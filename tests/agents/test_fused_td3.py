"""Compiled updates of TD3 against those in torch."""

import pytest
import torch
from helpers.members import agent_of, assert_same, off_policy, stops_at_three

pytest.importorskip("numba")

from lightning_rl.agents.base import Transition
from lightning_rl.agents.training import MemberTraining
from lightning_rl.agents.variation import Variation
from lightning_rl.envs.batch import FuncBatch
from lightning_rl.envs.classic import Pendulum

SEEDS = [3, 4, 5]
VARIED = Variation((0.02, 0.01, 0.005), (13, 5, 8), (8, 4, 8), (1,) * 3)
CASES = {
    "two layers": {"hidden": [9, 7], "saturation_penalty": 0.5},
    "tanh": {"activation": "tanh", "target_clip": 0.05},
    "no hidden layer": {"hidden": [], "policy_delay": 1},
    "varied": {"hidden": [8], "variation": VARIED, "activation": "leakyrelu"},
}


def td3_of(kernels, actions=2, **settings):
    own = off_policy(0.9, 0.01, 13, 300, 0.1, (16,), policy_delay=2, learning_starts=1)
    own |= {"action_std": 0.2, "target_std": 0.2, "target_clip": 0.5, "kernels": kernels}
    return agent_of("TD3", 3, actions, SEEDS, continuous=True, **{**own, **settings})


def agent_with_memory(case, kernels, scale=1.0):
    """Members with moments, which remember 50 transitions with observations of this size."""
    agent = td3_of(kernels, **CASES[case])
    draw = torch.Generator().manual_seed(0)
    for _ in range(50):
        obs, next_obs = torch.randn(2, 3, 3, generator=draw) * scale
        action = torch.rand(3, 2, generator=draw) * 2 - 1
        reward, share = torch.randn(2, 3, generator=draw)
        step = Transition(obs, action, reward, 0.9 * (share > -1), next_obs)
        agent.replay.store(step, share <= -1)
    for adam in agent.optimizers():
        adam.moments["step"] += torch.tensor([3, 0, 70])
        adam.moments["exp_avg"].normal_(generator=draw)
        adam.moments["exp_avg_sq"].uniform_(0.1, 1, generator=draw)
    for target in (agent.actor_target, agent.critic_target):
        target.data.normal_(generator=draw)
    return agent


@pytest.mark.parametrize("step", [2, 3])
@pytest.mark.parametrize("scale", [1.0, 1e3])
@pytest.mark.parametrize("case", CASES)
def test_an_update_is_that_of_torch(case, scale, step):
    """Members have taken unequal numbers of steps, one does not learn; the actor waits its turn."""
    rows = []
    for kernels in ("torch", "numba"):
        agent = agent_with_memory(case, kernels, scale)
        assert agent.compiles == (kernels == "numba")
        agent.learn_from_replay(agent.replay_noise.at(0), torch.tensor([True, False, True]), step)
        rows.append(agent.rows())
    for name, expected in rows[0].items():
        size = float(expected.double().abs().max())
        torch.testing.assert_close(rows[1][name], expected, rtol=5e-6, atol=1e-6 * size)


def test_a_diverged_member_stays_so_and_alone():
    agent = agent_with_memory("tanh", "numba")
    agent.critic_params.data[1] = torch.nan
    for step in range(3):
        agent.learn_from_replay(agent.replay_noise.at(step), None, step)
    assert agent.actor_params.isfinite().all(1).tolist() == [True, False, True]


@pytest.mark.parametrize("settings", [{"activation": "prelu"}, {"curiosity": "icm"}])
def test_what_has_no_compiled_form_is_learned_by_torch(settings):
    assert not td3_of("numba", **settings).compiles


def played(kernels, steps, stop=None):
    """A training on the Pendulum, with episodes of 30 steps, which learns after the first."""
    agent = td3_of(kernels, actions=1, hidden=[8])
    training = MemberTraining(agent, FuncBatch(Pendulum(), 30, SEEDS), 40, 0.9, 1, stop)
    training.run(steps)
    return training


def test_compiled_play_is_that_of_torch_up_to_rounding():
    """A member leaves meanwhile."""
    expected, compiled = (played(kernels, 150, stops_at_three) for kernels in ("torch", "numba"))
    assert_same(vars(compiled.results), vars(expected.results), rtol=1e-4, atol=1e-4)
    assert_same(compiled.agent.rows(), expected.agent.rows(), rtol=1e-3, atol=1e-4)
    for part in ("envs", "memory"):
        ours, theirs = (each.snapshot()[part] for each in (compiled, expected))
        assert_same(ours, theirs, rtol=1e-3, atol=1e-3)


def test_compiled_play_goes_on_bit_by_bit_from_a_snapshot():
    whole, half, other = (played("numba", steps) for steps in (200, 77, 0))
    other.agent.load_rows(half.agent.rows())
    other.restore(half.snapshot())
    other.run(123)
    assert_same(vars(other.results), vars(whole.results), rtol=0, atol=0)
    assert_same(other.agent.rows(), whole.agent.rows(), rtol=0, atol=0)
