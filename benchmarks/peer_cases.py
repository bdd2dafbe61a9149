"""What our agents and those of other libraries are compared on, and what bounds its speed.

A member-step is all that one decision takes: acting, environment, storing, drawing, update, target
network, and for PPO its share of the roll-out's updates.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from harness import Measure, Spread, copies, mlp_flops, mlp_size, products, tanhs

from lightning_rl.envs.spec import EnvSpec, env_spec
from lightning_rl.run.options import RunOptions
from lightning_rl.run.run_config import run_config

EPISODES = 10
"""Of an evaluation of one seed."""


class Side(Protocol):
    """The agents of a library that train in a process of their own."""

    def turn(self) -> float:
        """Trains each for the case's steps; CPU seconds of a member-step."""

    def returns(self) -> list[float]:
        """The mean return of a few test episodes of each, which are not timed."""


@dataclass(frozen=True)
class Needs:
    """What a decision cannot do without: operations of matrix products, tanhs, bytes that are
    read or written.
    """

    flops: float
    bytes: float
    tanhs: float = 0.0


@dataclass(frozen=True)
class Case:
    """One agent on one task.

    seeds: how many are trained at once, one number for each comparison. steps: decisions of each
    seed in a turn. turns: how many are measured. learned: the mean return from which on a seed
    counts as having learned, two thirds of the way from chance to the best. settings: of its
    config, for all libraries. tiny: more of them for ``quick``.
    """

    name: str
    gamename: str
    seeds: tuple[int, ...]
    steps: int
    turns: int
    learned: float
    needs: Callable[[Any, EnvSpec], Needs]
    settings: dict[str, Any] = field(default_factory=dict)
    tiny: dict[str, Any] = field(default_factory=dict)

    @property
    def config(self) -> Any:
        """That of seeds that never end."""
        endless = {**self.settings, "stop_rule": "none", "train_episodes": 10_000}
        return run_config(RunOptions(self.name, self.gamename, settings=endless))

    @property
    def spec(self) -> EnvSpec:
        return env_spec(self.gamename)

    def quick(self) -> Case:
        """So little of it that it only shows whether everything runs."""
        settings = {**self.settings, **self.tiny}
        return replace(self, steps=self.steps // 4, turns=1, settings=settings)

    def limit(self, found: Mapping[str, Spread]) -> float:
        """Seconds of a decision at the rates of large tensors, of which ``limits`` are the
        measures.
        """
        needs = self.needs(self.config, self.spec)
        computing = needs.flops * found["product"].median + needs.tanhs * found["tanh"].median
        return max(computing, needs.bytes * found["copy"].median)


def trained_bytes(size: int, target: bool = True) -> int:
    """Of an update of so many parameters: they, their gradient, two moments and perhaps a target
    are read and written.
    """
    return 2 * 4 * size * (4 + target)


def ddqn_needs(cfg: Any, spec: EnvSpec) -> Needs:
    """Three forward passes, the backward pass of one."""
    sizes = [spec.obs_size, *cfg.hidden, spec.action_size]
    flops = mlp_flops(sizes, cfg.batch_size, forwards=3, backwards=1)
    rows = 4 * cfg.batch_size * (2 * spec.obs_size + 3)
    return Needs(flops, rows + trained_bytes(mlp_size(sizes)), 3 * cfg.batch_size * sum(cfg.hidden))


def td3_needs(cfg: Any, spec: EnvSpec) -> Needs:
    """Targets and both critics; every ``policy_delay`` steps the actor through the first critic,
    of which inputs suffice.
    """
    actor = [spec.obs_size, *cfg.hidden, spec.action_size]
    critic = [spec.obs_size + spec.action_size, *cfg.hidden, 1]
    fit = mlp_flops(actor, cfg.batch_size, forwards=1) + mlp_flops(
        critic, cfg.batch_size, forwards=4, backwards=2
    )
    improve = mlp_flops(actor, cfg.batch_size, forwards=1, backwards=1) + mlp_flops(
        critic, cfg.batch_size, forwards=2
    )
    rows = 4 * cfg.batch_size * (2 * spec.obs_size + spec.action_size + 2)
    weights = (
        trained_bytes(2 * mlp_size(critic)) + trained_bytes(mlp_size(actor)) / cfg.policy_delay
    )
    return Needs(fit + improve / cfg.policy_delay, rows + weights)


def ppo_needs(cfg: Any, spec: EnvSpec) -> Needs:
    """A decision is played, valued with what follows, and trained on once an epoch."""
    actor, critic = [spec.obs_size, *cfg.hidden, spec.action_size], [spec.obs_size, *cfg.hidden, 1]
    trained = sum(mlp_flops(sizes, 1, forwards=1, backwards=1) for sizes in (actor, critic))
    flops = (
        cfg.epochs * trained + mlp_flops(actor, 1, forwards=1) + mlp_flops(critic, 1, forwards=2)
    )
    updates = cfg.epochs / (cfg.batch_size or cfg.rollout_steps)
    rows = 4 * cfg.epochs * (spec.obs_size + 4)
    return Needs(
        flops, rows + updates * trained_bytes(mlp_size(actor) + mlp_size(critic), target=False)
    )


# Replay memories hold all that is played; a larger one changes nothing but rejax's time.
DDQN = Case(
    "DDQN",
    "cartpole-v0",
    seeds=(1, 8, 48),
    steps=2000,
    turns=10,
    learned=140,
    needs=ddqn_needs,
    settings={"replay_size": 22_000},
)
TD3 = Case(
    "TD3",
    "pendulum",
    seeds=(1, 8),
    steps=1000,
    turns=10,
    learned=-500,
    needs=td3_needs,
    settings={"replay_size": 11_000, "learning_starts": 1},
)
PPO = Case(
    "PPO",
    "cartpole",
    seeds=(1, 8),
    steps=5 * 2048,
    turns=10,
    learned=340,
    needs=ppo_needs,
    tiny={"rollout_steps": 128},
)
CASES = {case.name: case for case in (DDQN, TD3, PPO)}

_GYM = "environment of Gymnasium"
_GYMNAX = "environment of gymnax, compiled with the loop; a time limit counts as an end"
_REPLAY = "to draw a batch, sorts as many random numbers as its replay memory has places"
DIFFERS = {
    ("Stable-Baselines3", "DDQN"): f"{_GYM}; not double; Huber loss; clips gradients",
    ("Stable-Baselines3", "PPO"): _GYM,
    ("Stable-Baselines3", "TD3"): _GYM,
    ("sbx", "DDQN"): f"{_GYM}; not double; two layers of 57, as it cannot have one",
    ("sbx", "PPO"): _GYM,
    ("sbx", "TD3"): _GYM,
    ("rejax", "DDQN"): f"{_GYMNAX}; {_REPLAY}",
    ("rejax", "PPO"): f"{_GYMNAX}; clips the change of values, too",
    ("rejax", "TD3"): f"{_GYMNAX}; {_REPLAY}",
}
"""What is not equal and moves the numbers, by library and agent."""


@functools.cache
def limits() -> dict[str, Measure]:
    """Of this machine, for tensors of a hundred megabytes."""
    return {"product": products(), "tanh": tanhs(), "copy": copies()}


def rates(found: Mapping[str, Spread]) -> str:
    """What the machine does in a second, in words."""
    gflops, gigabytes = (1e-9 / found[name].median for name in ("product", "copy"))
    return f"{gflops:.0f} GFLOP/s and {gigabytes:.1f} GB/s here"
