import functools
import math

import pytest
import torch

from lightning_rl.core.errors import UserError
from lightning_rl.envs.adapters import FUNC_ENVS
from lightning_rl.envs.batch import FuncBatch
from lightning_rl.envs.gym_batch import GymBatch
from lightning_rl.envs.reward_network import (
    INFO_KEYS,
    RecordedRepeat,
    RewardBatch,
    RewardEnv,
    RewardNet,
    RewardProxy,
)
from lightning_rl.envs.spec import EnvSpec, env_spec
from lightning_rl.functional.reward_shaping import REWARD_FORMS
from lightning_rl.functional.scaling import units


def rows(net, members):
    return net.init([torch.Generator().manual_seed(n) for n in range(members)])


def test_sizes_are_the_papers():
    sizes = {
        (48, 0, "additive", 32): 1601,
        (4, 0, "exclusive_potential", 64): 385,
        (2, 0, "additive", 128): 513,
        (17, 4, "additive", 128): 2433,
        (17, 4, "additive_info", 128): 2945,
    }
    for (obs, info, form, width), size in sizes.items():
        net = RewardNet(obs, info, form, (width,), "prelu")
        assert int(net.evolved().sum()) == size
    weighted = RewardNet(17, 4, "additive_weighted_info", (128,), "prelu")
    assert int(weighted.evolved().sum()) == 4
    assert not rows(weighted, 2)[:, weighted.net.columns("bias")].any()


def test_dynamics_are_real_and_rewards_learned():
    real = FUNC_ENVS["cartpole"]()
    net = RewardNet(4, 0, "additive_potential", (8,), "tanh")
    params = rows(net, 3)
    env = RewardEnv(net, params, real, 0.9)
    state, action = real.reset(torch.rand(3, 4)), torch.tensor([0, 1, 0])
    ours, theirs = (
        env.step(state, action, torch.empty(3, 0)),
        real.step(state, action, torch.empty(3, 0)),
    )
    assert torch.equal(ours.state, theirs.state)
    for n in range(3):
        phi = net.net.module(params[n])
        expected = 1 + 0.9 * phi(theirs.obs[n]) - phi(state[n])
        torch.testing.assert_close(ours.reward[n : n + 1], expected)
    kept = env.keep(torch.tensor([2])).step(state[2:], action[2:], torch.empty(1, 0))
    torch.testing.assert_close(kept.reward, ours.reward[2:])


def test_states_may_be_read_in_units_of_the_bounds():
    """Position -1.2 to 0.6 and velocity -0.07 to 0.07: by hand (-0.75, 0.014) is (-0.5, 0.2),
    and (0.15, -0.07) is (0.5, -1).
    """
    task = FUNC_ENVS["mountaincar-continuous"]()
    net = RewardNet(2, 0, "exclusive_potential", (8,), "tanh", (task.obs_low, task.obs_high))
    params, obs, after = (
        rows(net, 2),
        torch.tensor([[-0.75, 0.014]] * 2),
        torch.tensor([[0.15, -0.07]] * 2),
    )
    reward = net.reward(params, torch.tensor([7.0, 8.0]), obs, after, None, 0.9)
    for n in range(2):
        phi = net.net.module(params[n])
        expected = 0.9 * phi(torch.tensor([0.5, -1.0])) - phi(torch.tensor([-0.5, 0.2]))
        torch.testing.assert_close(reward[n : n + 1], expected, rtol=1e-4, atol=1e-5)


def test_what_has_no_bounds_is_its_own_unit():
    """CartPole's velocities are unbounded, some tasks say so by the largest number of single
    precision; a box may be empty.
    """
    most = torch.finfo(torch.float32).max
    middle, half = units((-1.2, -math.inf, -most, 3.0), (0.6, math.inf, most, 3.0))
    torch.testing.assert_close(middle, torch.tensor([-0.3, 0.0, 0.0, 0.0]))
    torch.testing.assert_close(half, torch.tensor([0.9, 1.0, 1.0, 1.0]))


def test_native_leaves_the_reward_alone():
    net = RewardNet(4, 0, "native", (8,), "tanh")
    env = RewardEnv(net, rows(net, 2), FUNC_ENVS["cartpole"](), 0.9)
    assert env.step(torch.zeros(2, 4), torch.tensor([0, 1]), torch.empty(2, 0)).reward.tolist() == [
        1,
        1,
    ]


def test_gymnasium_tasks_get_the_same_rewards():
    spec = EnvSpec("cartpole-v1", "CartPole-v1", 4, 2, False, 30, 500.0, None)
    net = RewardNet(4, 0, "exclusive", (8,), "tanh")
    params = rows(net, 2)
    batch = RewardBatch(net, params, spec, [1, 2], 0.9)
    func = FuncBatch(RewardEnv(net, params, FUNC_ENVS["cartpole"](), 0.9), 30, [1, 2])
    func.state = func.obs = batch.reset(torch.zeros(2, dtype=torch.bool))
    for action in ([0, 1], [1, 1]):
        a, b = batch.step(torch.tensor(action)), func.step(torch.tensor(action))
        torch.testing.assert_close(a.reward, b.reward, rtol=1e-3, atol=1e-4)
    batch.keep(torch.tensor([1]))
    assert batch.step(torch.tensor([0])).reward.shape == (1,)


def test_halfcheetah_tells_its_info_by_key():
    pytest.importorskip("mujoco")
    recorded = functools.partial(RecordedRepeat, repeat=1, info_keys=INFO_KEYS["halfcheetah"])
    step = GymBatch(env_spec("halfcheetah"), [1, 2], wrapper=recorded).step(torch.rand(2, 6))
    assert step.info.shape == (2, 1, 1 + 17 + 4)
    forward, control = step.info[:, 0, -2:].unbind(1)
    torch.testing.assert_close(forward + control, step.reward, rtol=1e-4, atol=1e-5)
    proxy = RewardProxy(
        gamename="halfcheetah",
        hidden=(8,),
        activation="prelu",
        form="additive_weighted_info",
        gamma=0.98,
    )
    params = rows(proxy.net, 2)
    shaped = proxy.batch(params, [1, 2], 0.98)
    weights = proxy.net.net.layers(params)[0].weight.squeeze(-1)
    shaped.reset(torch.zeros(2, dtype=torch.bool))
    action = torch.rand(2, 6)
    plain = GymBatch(env_spec("halfcheetah"), [1, 2], wrapper=recorded).step(action)
    torch.testing.assert_close(
        shaped.step(action).reward,
        plain.reward + (weights * plain.info[:, 0, -4:]).sum(1),
        rtol=1e-4,
        atol=1e-5,
    )
    repeated, single = (proxy.batch(params, [1, 2], 0.98, repeat) for repeat in (2, 1))
    torch.testing.assert_close(
        repeated.step(action).reward, single.step(action).reward + single.step(action).reward
    )


@pytest.mark.parametrize("form", [name for name, rule in REWARD_FORMS.items() if rule.info])
def test_a_task_without_info_is_refused(form):
    proxy = RewardProxy(gamename="cartpole", hidden=(8,), activation="prelu", form=form, gamma=0.98)
    with pytest.raises(
        UserError, match=f"reward '{form}' needs the info of the task, but 'cartpole' gives none"
    ):
        _ = proxy.net
