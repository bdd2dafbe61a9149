"""EnvPool is optional: the tests run with a stand-in, and where EnvPool is installed with it
too.
"""

import dataclasses
import importlib.util
import sys
from types import SimpleNamespace

import gymnasium
import numpy as np
import pytest
import torch

from lightning_rl.core.errors import UserError
from lightning_rl.envs.adapters import make_envs
from lightning_rl.envs.envpool import EnvPoolBatch
from lightning_rl.envs.gym import rollout_env
from lightning_rl.envs.spec import env_spec

LANDER = dataclasses.replace(env_spec("lunarlander"), horizon=60)


class Pool:
    """Gymnasium's environments behind the interface of those that ``envpool.make_gymnasium``
    gives.
    """

    def __init__(self, task, num_envs, env_seed, max_episode_steps):
        self.envs = [
            gymnasium.make(task, max_episode_steps=max_episode_steps) for _ in range(num_envs)
        ]
        self.seeds = dict(
            enumerate(env_seed)
        )  # for their first episodes; random numbers go on in later ones
        self.observation_space, self.action_space = (
            self.envs[0].observation_space,
            self.envs[0].action_space,
        )

    def reset(self, env_id=None):
        ids = range(len(self.envs)) if env_id is None else env_id.tolist()
        return np.stack([self.envs[k].reset(seed=self.seeds.pop(k, None))[0] for k in ids]), {}

    def step(self, action, env_id):
        assert action.dtype == (np.int32 if action.ndim == 1 else np.float32)
        steps = [self.envs[k].step(each) for k, each in zip(env_id.tolist(), action, strict=True)]
        return (*(np.stack(column) for column in list(zip(*steps, strict=True))[:4]), {})


@pytest.fixture(params=["EnvPool", "stand-in"])
def envpool(request, monkeypatch):
    """What is imported as ``envpool``."""
    if request.param == "EnvPool":
        return pytest.importorskip("envpool")
    stand_in = SimpleNamespace(list_all_envs=lambda: list(gymnasium.registry), make_gymnasium=Pool)
    monkeypatch.setitem(sys.modules, "envpool", stand_in)
    return stand_in


with_it = pytest.mark.usefixtures("envpool")


@pytest.mark.skipif(importlib.util.find_spec("envpool") is not None, reason="EnvPool is installed")
def test_without_envpool_the_remedy_is_named():
    with pytest.raises(
        UserError, match=r"not installed .*; pip install 'lightning_rl\[envpool\]', or use serial"
    ):
        make_envs(LANDER, [1], "envpool")


@with_it
def test_what_a_member_starts_from_follows_from_its_seed():
    first, second, again = make_envs(LANDER, [1, 2, 1], "envpool").obs
    assert torch.equal(first, again)
    assert not torch.equal(first, second)


@with_it
def test_a_member_alone_meets_what_it_meets_in_a_stack():
    """Over several episodes, with one member gone on the way."""
    stack, alone = EnvPoolBatch(LANDER, [1, 2, 3]), EnvPoolBatch(LANDER, [3])
    ended = 0
    for t in range(150):
        if t == 30:
            stack.keep(torch.tensor([2, 0]))
        mine = 2 if t < 30 else 0
        a, b = (
            stack.step(torch.full((3 if t < 30 else 2,), t % 4)),
            alone.step(torch.tensor([t % 4])),
        )
        over = a.terminated | a.truncated
        assert torch.equal(a.obs[mine], b.obs[0])
        assert a.reward[mine] == b.reward[0]
        assert over[mine] == (b.terminated | b.truncated)[0]
        ended += int(over[mine])
        if over.any():
            stack.reset(over)
        if over[mine]:
            assert torch.equal(stack.obs[mine], alone.reset(torch.tensor([True]))[0])
    assert ended >= 2


@with_it
def test_a_time_limit_truncates():
    batch = EnvPoolBatch(dataclasses.replace(LANDER, horizon=5), [1, 2])
    steps = [batch.step(torch.zeros(2, dtype=torch.int64)) for _ in range(5)]
    assert [s.truncated.tolist() for s in steps] == [[False, False]] * 4 + [[True, True]]
    assert not any(s.terminated.any() for s in steps)


@with_it
def test_actions_are_in_units_of_the_box():
    """From the same state, one step of HalfCheetah is Gymnasium's; an action outside of the box
    is clipped to it.
    """
    spec = env_spec("halfcheetah")
    batch, env = EnvPoolBatch(spec, [1]), rollout_env(spec)
    env.reset(seed=0)
    env.unwrapped.set_state(*_state(batch.obs[0]))
    action = torch.tensor([[0.5, -1.0, 3.0, 0.0, 0.2, -0.7]])
    reward = float(env.step(action[0].numpy())[1])
    assert batch.step(action).reward.item() == pytest.approx(reward, abs=1e-4)


def _state(obs):
    """HalfCheetah's observation is its state without the position along the way, which no reward
    depends on.
    """
    return torch.cat([torch.zeros(1), obs[:8]]).double().numpy(), obs[8:].double().numpy()


@with_it
@pytest.mark.parametrize("changes", [{"repeat": 2}, {"env": "Nowhere-v0"}])
def test_what_it_lacks_is_refused(changes):
    with pytest.raises(
        UserError, match=r"EnvPool does not have .lunarlander.*use simulator=serial or processes"
    ):
        EnvPoolBatch(dataclasses.replace(LANDER, **changes), [1])


@with_it
def test_it_cannot_be_resumed():
    batch = EnvPoolBatch(LANDER, [1])
    with pytest.raises(UserError, match="cannot be resumed"):
        batch.restore(batch.snapshot())
