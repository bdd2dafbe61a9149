"""Training by environment steps, in episodic and continuing tasks alike, and evaluation in batched torch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from lightning_rl.agents.model_based import ModelBasedDQN
from lightning_rl.core.contents import Count, rows_like
from lightning_rl.core.seeding import MemberNoise
from lightning_rl.envs.batch import PooledBatch
from lightning_rl.functional.value_learning import boltzmann
from lightning_rl.nets.world_models import RealSteps

_LOOP = ("obs", "_return", "_length")


class StepTraining:
    """Trains the members of ``agent`` in lock-step, one environment each; episodes end where the environment ends them.

    stale_observation: as in the paper's code, an episode's first action and first transition start from the last observation of
    the episode before, but for the first step of a fresh ``run``.
    """

    def __init__(self, agent: ModelBasedDQN, stale_observation: bool = False):
        self.agent, self.stale_observation = agent, stale_observation
        self.envs = PooledBatch(agent.env, agent.seeds)
        self.step = 0
        n = len(agent.seeds)
        self.obs = self.envs.obs
        self._return = torch.zeros(n)
        self._length = torch.zeros(n, dtype=torch.int64)
        self.reward = torch.zeros(n)  # sum over the last run
        self.ended: list[list[tuple[float, int]]] = [[] for _ in range(n)]  # (return, length) of its episodes

    def run(self, steps: int, fresh: bool = True, optimizers: Sequence[Any] | None = None) -> None:
        """``steps`` environment steps of every member, with the learning that goes with them.

        fresh: at the start of an epoch. optimizers: those of the agent as Lightning wraps them; None: as they are.
        """
        optimizers = self.agent.optimizers() if optimizers is None else optimizers
        if fresh:
            self.obs = self.envs.obs
        self.reward, self.ended = torch.zeros_like(self._return), [[] for _ in self.ended]
        for _ in range(steps):
            self._step(optimizers)

    def _step(self, optimizers: Sequence[Any]) -> None:
        agent, state, obs = self.agent, self.envs.state, self.obs
        action = agent.act(obs, self.step)
        outcome = self.envs.step(action)
        agent.source.remember(state, RealSteps(obs, action, outcome.reward, (~outcome.terminated).float(), outcome.obs))
        self._return += outcome.reward
        self._length += 1
        self.reward += outcome.reward
        self.obs = outcome.obs
        if outcome.terminated.any():
            self._episodes_end(outcome.terminated)
        agent.learn(self.step, optimizers)
        self.step += 1

    def _episodes_end(self, over: Tensor) -> None:
        fresh = self.envs.reset(over)
        if not self.stale_observation:
            self.obs = fresh
        for n in over.nonzero().flatten().tolist():
            self.ended[n].append((float(self._return[n]), int(self._length[n])))
        self._return.masked_fill_(over, 0)
        self._length.masked_fill_(over, 0)

    def snapshot(self) -> dict[str, Any]:
        """All that the rest of the training depends on, the members' rows in order; see ``run.member_checkpoints``."""
        return {
            "step": self.step, "members": torch.arange(len(self.agent.seeds)), "results": {},
            "loop": {name: getattr(self, name) for name in _LOOP},
            "envs": self.envs.snapshot(), "memory": self.agent.source.memory.snapshot(),
        }  # fmt: skip

    def layout(self, most_steps: int) -> dict[str, Any]:
        """What ``snapshot`` may look like after ``most_steps`` steps, or fewer: a budget may end within an epoch."""
        agent, everyone = self.agent, len(self.agent.seeds)
        return {
            "step": Count(0, most_steps), "members": torch.arange(everyone), "results": {},
            "loop": rows_like({name: getattr(self, name) for name in _LOOP}, everyone),
            "envs": self.envs.layout(everyone), "memory": agent.source.memory_layout(),
        }  # fmt: skip

    def restore(self, state: dict[str, Any]) -> None:
        """Goes on from a snapshot."""
        self.step = state["step"]
        for name, value in state["loop"].items():
            setattr(self, name, value)
        self.envs.restore(state["envs"])
        self.agent.source.memory.restore(state["memory"])


@torch.no_grad()
def play(agent: ModelBasedDQN, seeds: Sequence[int], episodes: int, horizon: int, greedy: bool) -> tuple[Tensor, Tensor]:
    """Returns and lengths ``[N, K]`` of ``episodes`` = K fresh episodes of each member, cut at ``horizon`` steps.

    seeds: one for each member, from which all that happens follows.
    """
    env, shape = agent.env, (len(seeds), episodes)

    def noise(purpose: str, size: int, kind: str) -> MemberNoise:
        block = max(1, 20_000 // (episodes * max(size, 1)))
        return MemberNoise(seeds, purpose, (episodes, size), kind, block=block)

    chance = noise("play events", env.step_noise_size, "uniform")
    gumbel = noise("play actions", env.action_size, "gumbel")
    codes = noise("play codes", agent.source.encode_noise_size, agent.source.noise_kind)
    state = env.reset(noise("play starts", env.reset_noise_size, "uniform").at(0))
    obs = env.observe(state)
    total, length = torch.zeros(shape), torch.zeros(shape, dtype=torch.int64)
    over = torch.zeros(shape, dtype=torch.bool)
    for t in range(horizon):
        q = agent.values(obs, None if greedy else codes.at(t))
        action = q.argmax(-1) if greedy else boltzmann(q, agent.cfg.temperature, gumbel.at(t))
        state, obs, reward, terminated, _ = env.step(state, action, chance.at(t))
        total += reward.masked_fill(over, 0)
        length += ~over
        over |= terminated
        if env.episodic and over.all():
            break
    return total, length
