"""A policy, episodes and environments so small that a test knows all about them."""

from typing import Any

import gymnasium
import numpy as np
import pytest
import torch

from lightning_rl.core.gamenames import GAMES, Game
from lightning_rl.core.types import Episode, Request
from lightning_rl.envs.spec import EnvSpec
from lightning_rl.functional.distributions import distribution_for
from lightning_rl.nets.command import GatedNet, ScaledCommand
from lightning_rl.nets.policies import Policy


def toy_policy(spec: EnvSpec, seed: int = 0) -> Policy:
    torch.manual_seed(seed)
    distribution = distribution_for(spec.continuous)
    net = ScaledCommand(
        GatedNet(spec.obs_size, 2, distribution.output_size(spec.action_size), [8, 8]), (0.01, 0.01)
    )
    return Policy(net, distribution, spec.action_size)


def make_episode(rewards: list[float], obs_size: int = 4, name: str = "toy") -> Episode:
    """An episode with the given rewards whose observations count the steps."""
    steps = len(rewards)
    obs = np.repeat(np.arange(steps + 1, dtype=np.float32)[:, None], obs_size, axis=1)
    action = np.arange(steps, dtype=np.int64) % 2
    return Episode(
        obs,
        action,
        np.array(rewards, dtype=np.float32),
        True,
        False,
        None,
        Request(name, 0),
        0,
        len(rewards),
    )


def same_episodes(a: list[Episode], b: list[Episode]) -> bool:
    def key(e: Episode) -> tuple[Any, ...]:
        parts = (e.obs, e.action, e.reward, e.command)
        return (
            e.terminated,
            e.truncated,
            e.request,
            e.policy_version,
            *(None if p is None else p.tobytes() for p in parts),
        )

    return [key(e) for e in a] == [key(e) for e in b]


class CommandTask(gymnasium.Env[Any, Any]):
    """Identity task: ten steps, action 1 pays 1, action 0 nothing, so a commanded return is a
    count of ones.
    """

    observation_space = gymnasium.spaces.Box(0, 1, (1,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)

    def reset(self, **kwargs: Any) -> Any:
        super().reset(**kwargs)
        self.left = 10
        return np.ones(1, np.float32), {}

    def step(self, action: Any) -> Any:
        self.left -= 1
        return np.full(1, self.left / 10, np.float32), float(action), self.left == 0, False, {}


class MaskedTask(CommandTask):
    """The same with three actions, of which one that would pay 100 is forbidden, another one at
    each step; the one after it pays 1.
    """

    action_space = gymnasium.spaces.Discrete(3)
    forbidden = 0
    """How often a forbidden action was taken, in this process."""

    def reset(self, **kwargs: Any) -> Any:
        obs, _ = super().reset(**kwargs)
        return obs, self._info()

    def _info(self) -> dict[str, Any]:
        return {"action_mask": (np.arange(3) != self.left % 3).astype(np.int8)}

    def step(self, action: Any) -> Any:
        reward = (100.0, 1.0, 0.0)[(action - self.left) % 3]
        MaskedTask.forbidden += reward == 100
        obs, _, terminated, truncated, _ = super().step(0)
        info = {} if terminated else self._info()
        return obs, reward, terminated, truncated, info


class FactoredTask(gymnasium.Env[Any, Any]):
    """Ten steps with two discrete actions at once, the first one from 1 up; what is seen says which
    pair pays 1, others pay nothing.
    """

    observation_space = gymnasium.spaces.Box(0, 1, (2,), np.float32)
    action_space = gymnasium.spaces.MultiDiscrete([3, 2], np.int32, start=[1, 0])

    def reset(self, **kwargs: Any) -> Any:
        super().reset(**kwargs)
        self.left = 10
        return self._seen(), {}

    def _seen(self) -> Any:
        return np.array([self.left % 3 / 2, self.left % 2], np.float32)

    def step(self, action: Any) -> Any:
        assert self.action_space.contains(action), action
        reward = float(tuple(action) == (1 + self.left % 3, self.left % 2))
        self.left -= 1
        return self._seen(), reward, self.left == 0, False, {}


class RaisingTask(CommandTask):
    """Raises at its fourth step."""

    def step(self, action: Any) -> Any:
        if self.left == 7:
            raise ValueError("the ground gave way")
        return super().step(action)


@pytest.fixture
def toy_games(monkeypatch: pytest.MonkeyPatch) -> None:
    """Registers the toy environments by their names."""
    toys = {"count": CommandTask, "raising": RaisingTask}
    toys |= {"masked": MaskedTask, "factored": FactoredTask}
    for name, cls in toys.items():
        monkeypatch.setitem(GAMES, name, Game(cls, horizon=10, max_return=10.0))


DEPTHS = (1, 2, 3, 4, 4, 4, 7, 7, 9, 10)
TREASURES = {
    "convex": (0.7, 8.2, 11.5, 14.0, 15.1, 16.1, 19.6, 20.3, 22.4, 23.7),
    "concave": (1.0, 2.0, 3.0, 5.0, 8.0, 16.0, 24.0, 50.0, 74.0, 124.0),
}


def deep_sea_front(front):
    """The ten best returns (treasure, time) of Deep Sea Treasure ``[10, 2]``."""
    steps = [-(column + depth) for column, depth in enumerate(DEPTHS)]
    return np.column_stack([TREASURES[front], steps])
