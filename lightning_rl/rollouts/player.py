"""Playing episodes: an episode is a pure function of the policy's parameters and its ``Request``.

A chunk of requests is played in lock-step, with one batched forward pass per step. A matrix product may round differently for
another batch size, so chunks have a fixed size: results do not depend on the number of worker processes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import torch

from lightning_rl.core.errors import RolloutError
from lightning_rl.core.types import Array, Episode, FloatArray, Request
from lightning_rl.envs.gym import Env, filming_env, make_env
from lightning_rl.envs.spec import EnvSpec
from lightning_rl.functional.distributions import Categorical
from lightning_rl.nets.policies import Policy

CommandRule = Callable[[FloatArray, FloatArray], FloatArray]
"""(command [B, C], reward [B]) -> command of the next step [B, C]."""

ActFunction = Callable[[FloatArray, FloatArray | None, Array], Array]
"""(obs [B, O], command [B, C], noise [B, A]) -> actions [B] or [B, A]."""

_NOISE_BLOCK = 64  # steps of action noise drawn at a time


class ActionNoise:
    """The noise that turns distributions into actions, one independent stream per request."""

    def __init__(self, requests: Sequence[Request], draw: Callable[..., FloatArray], size: int):
        self._rngs = [np.random.Generator(np.random.Philox(request.seed)) for request in requests]
        self._draw, self._size = draw, size
        self._block = np.zeros((len(requests), _NOISE_BLOCK, size), dtype=np.float32)
        self._live = [row for row, request in enumerate(requests) if request.mode != "greedy"]

    def at(self, step: int, rows: Array) -> FloatArray:
        """Noise ``[len(rows), size]`` for time ``step``; zero for greedy requests. Steps must come in order."""
        position = step % _NOISE_BLOCK
        if position == 0:
            for row in self._live:
                self._block[row] = self._draw(self._rngs[row], (_NOISE_BLOCK, self._size))
        return self._block[rows, position]


def uniform_actions(spec: EnvSpec, noise: FloatArray) -> Array:
    """Uniformly random actions from uniform noise ``[B, A]`` (continuous) or Gumbel noise (discrete)."""
    return 2 * noise - 1 if spec.continuous else noise.argmax(-1)


def _uniform_noise(rng: np.random.Generator, shape: tuple[int, ...]) -> FloatArray:
    return rng.random(shape, dtype=np.float32)


class Player:
    """Plays requests in copies of one environment under one policy.

    The environments are made on first use, in the process that plays.

    Args:
        spec: of the environment.
        policy: on the CPU; it may be in shared memory.
        version: a number ``[]`` that each episode carries, to tell which parameters it was played with.
        next_command: how a command changes after a step; None: it stays.
    """

    def __init__(
        self, spec: EnvSpec, policy: Policy, version: torch.Tensor | None = None, next_command: CommandRule | None = None
    ):
        self.spec, self.policy, self.next_command = spec, policy, next_command
        self.version = torch.zeros((), dtype=torch.int64) if version is None else version
        self._envs: list[Env] = []

    def __getstate__(self) -> dict[str, object]:
        return {**self.__dict__, "_envs": []}

    def play(self, requests: Sequence[Request], envs: Sequence[Env] | None = None) -> list[Episode]:
        """Plays a chunk.

        Args:
            requests: what to play; either all in mode ``uniform`` or none, either all with a command or none.
            envs: one environment for each request, e.g. rendering ones; None for those of the player.

        Returns:
            The episodes, in the order of the requests.

        Raises:
            RolloutError: an environment raised; the message names the request.
        """
        while envs is None and len(self._envs) < len(requests):
            self._envs.append(make_env(self.spec))
        with torch.inference_mode():
            return self._play(requests, self._envs if envs is None else envs)

    def _act_function(self, requests: Sequence[Request]) -> tuple[ActionNoise, ActFunction]:
        size = self.spec.action_size
        if requests[0].mode == "uniform":
            draw = _uniform_noise if self.spec.continuous else Categorical.draw_noise
            return ActionNoise(requests, draw, size), lambda obs, command, noise: uniform_actions(self.spec, noise)

        def act(obs: FloatArray, command: FloatArray | None, noise: FloatArray) -> Array:
            c = None if command is None else torch.from_numpy(command)
            return self.policy.act(torch.from_numpy(obs), c, torch.from_numpy(noise)).numpy()

        return ActionNoise(requests, self.policy.draw_noise, self.policy.noise_size), act

    def _play(self, requests: Sequence[Request], envs: Sequence[Env]) -> list[Episode]:
        log = _ChunkLog(self.spec, requests)
        noise, act = self._act_function(requests)
        rows, step, row = np.arange(len(requests)), 0, 0  # rows: the episodes that are not over
        try:
            for row, request in enumerate(requests):
                log.obs[row, 0] = envs[row].reset(seed=request.seed % 2**31)[0]
            while rows.size:
                command = None if log.command is None else log.command[rows, step]
                actions = act(log.obs[rows, step], command, noise.at(step, rows))
                log.action[rows, step] = actions
                for row, action in zip(rows.tolist(), actions if self.spec.continuous else actions.tolist(), strict=True):
                    obs, reward, terminated, truncated, info = envs[row].step(action)
                    log.obs[row, step + 1], log.reward[row, step] = obs, reward
                    log.terminated[row], log.truncated[row] = terminated, truncated
                    log.env_steps[row] += info.get("length", 1)  # of a repeated action
                if log.command is not None and command is not None:
                    rule = self.next_command
                    log.command[rows, step + 1] = command if rule is None else rule(command, log.reward[rows, step])
                step += 1
                log.length[rows] = step
                rows = rows[~(log.terminated[rows] | log.truncated[rows])]
        except RolloutError as error:
            raise RolloutError(f"{error}; this was {requests[row].name} (request seed {requests[row].seed})") from error
        return log.episodes(int(self.version))


class _ChunkLog:
    """What happened in a chunk of ``n`` episodes, padded to the horizon."""

    def __init__(self, spec: EnvSpec, requests: Sequence[Request]):
        n, horizon = len(requests), spec.horizon
        self.requests = requests
        self.obs = np.empty((n, horizon + 1, spec.obs_size), dtype=np.float32)
        action_shape = (spec.action_size,) if spec.continuous else ()
        self.action: Array = np.empty((n, horizon, *action_shape), dtype=np.float32 if spec.continuous else np.int64)
        self.reward = np.empty((n, horizon), dtype=np.float32)
        self.terminated, self.truncated = np.zeros(n, dtype=bool), np.zeros(n, dtype=bool)
        self.length = np.zeros(n, dtype=np.int64)
        self.env_steps = [0] * n
        self.command: FloatArray | None = None
        if requests[0].command is not None:
            self.command = np.empty((n, horizon + 1, len(requests[0].command)), dtype=np.float32)
            self.command[:, 0] = [request.command for request in requests]

    def episodes(self, version: int) -> list[Episode]:
        """The episodes without their padding."""
        return [
            Episode(
                obs=self.obs[k, : end + 1].copy(),
                action=self.action[k, :end].copy(),
                reward=self.reward[k, :end].copy(),
                terminated=bool(self.terminated[k]),
                truncated=bool(self.truncated[k]),
                command=None if self.command is None else self.command[k, :end].copy(),
                request=request,
                policy_version=version,
                env_steps=self.env_steps[k],
            )
            for k, (end, request) in enumerate(zip(self.length.tolist(), self.requests, strict=True))
        ]


def record_episode(player: Player, request: Request, path: Path) -> Episode:
    """Plays ``request`` on a rendering environment and writes the film to ``path`` (mp4)."""
    with filming_env(player.spec, path) as env:
        (episode,) = player.play([request], [env])
    return episode
