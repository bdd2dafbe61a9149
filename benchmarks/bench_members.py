"""Agents alone and stacked, beside Stable-Baselines3's with the same network, batch and update
ratio.

A member-step is all that one decision takes: acting, environment, storing, drawing, update, target
network, and for PPO its share of the roll-out's updates.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from harness import (
    NOTHING,
    Measure,
    Spread,
    Table,
    copies,
    cpu,
    in_turns,
    mlp_flops,
    mlp_size,
    number,
    products,
    tanhs,
)

from lightning_rl.cli.tools import find_experiments
from lightning_rl.envs.spec import EnvSpec, env_spec
from lightning_rl.methods.registry import implementation
from lightning_rl.run.options import RunOptions
from lightning_rl.run.run_config import run_config


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

    first: decisions until it learns. steps: decisions measured at a time. stacked: how many
    members. settings: of its config.
    tiny: more of them for a smoke test. compiled: whether it has kernels for numba, too.
    """

    name: str
    gamename: str
    first: int
    steps: int
    stacked: int
    needs: Callable[[Any, EnvSpec], Needs]
    settings: dict[str, Any] = field(default_factory=dict)
    tiny: dict[str, Any] = field(default_factory=dict)
    compiled: bool = False

    @property
    def config(self) -> Any:
        """Members that never end."""
        endless = {**self.settings, "stop_rule": "none", "train_episodes": 10_000}
        return run_config(RunOptions(self.name, self.gamename, settings=endless))

    def limit(self, found: Mapping[str, Spread]) -> float:
        """Seconds of a decision at the rates of large tensors, of which ``LIMITS`` are the
        measures.
        """
        needs = self.needs(self.config, env_spec(self.gamename))
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


DDQN = Case("DDQN", "cartpole-v0", 400, 100, 48, ddqn_needs, compiled=True)
TD3 = Case("TD3", "pendulum", 280, 60, 8, td3_needs, {"learning_starts": 1, "replay_size": 100_000})
PPO = Case("PPO", "cartpole", 0, 2048, 8, ppo_needs, tiny={"rollout_steps": 128})
GOALS = {
    ("DDQN", "alone"): "0.4 ms; 2.5 times faster",
    ("DDQN", "alone, kernels: numba"): "0.4 ms; 2.5 times faster",
    ("DDQN", "stacked"): "0.05 ms",
    ("DDQN", "stacked, kernels: numba"): "0.05 ms",
    ("TD3", "alone"): "1.5 times faster",
    ("PPO", "alone"): "2 times faster",
}
LIMITS: dict[str, Measure] = {"product": products(), "tanh": tanhs(), "copy": copies()}


def ours(case: Case, members: int) -> Measure:
    """Of a member-step of ``members`` in one stack."""
    cls: Any = implementation(case.name)
    method = cls(
        case.gamename, implementation=case.name, seed=0, num_seeds=members, config=vars(case.config)
    )
    training = method.rollouts().training
    training.run(case.first)
    return cpu(lambda: training.run(case.steps), case.steps * members)


def theirs(case: Case) -> Measure:
    """Of a step of Stable-Baselines3's."""
    find_experiments()
    from experiments import baselines  # an extra, which the other families do without

    model = baselines.MODELS[case.name](case.config, env_spec(case.gamename), 0)
    model.learn(max(case.first, 1))
    return cpu(lambda: model.learn(case.steps, reset_num_timesteps=False), case.steps)


def rates(found: Mapping[str, Spread]) -> str:
    """What the machine does in a second, in words."""
    gflops, gigabytes = (1e-9 / found[name].median for name in ("product", "copy"))
    return f"{gflops:.0f} GFLOP/s and {gigabytes:.1f} GB/s here"


def tables(smoke: bool) -> Iterator[Table]:
    """Of all cases."""
    rows = []
    for case in (DDQN, TD3, PPO):
        if smoke:
            case = replace(
                case, steps=case.steps // 16, stacked=2, settings={**case.settings, **case.tiny}
            )
        members = case.stacked
        measures = {
            "alone": ours(case, 1),
            "stacked": ours(case, members),
            "Stable-Baselines3": theirs(case),
        }
        if case.compiled and importlib.util.find_spec("numba"):
            compiled = replace(case, settings={**case.settings, "kernels": "numba"})
            measures |= {
                "alone, kernels: numba": ours(compiled, 1),
                "stacked, kernels: numba": ours(compiled, members),
            }
        found = in_turns(measures | LIMITS, 1 if smoke else 7)
        limit = case.limit(found)
        for name in measures:
            ratio = found["Stable-Baselines3"].median / found[name].median
            ms, over = found[name].times(1e3), found[name].median / limit
            title = f"{case.name}, {name.replace('stacked', f'{members} stacked')}"
            rows.append(
                [
                    title,
                    str(ms),
                    GOALS.get((case.name, name), NOTHING),
                    number(ratio),
                    number(1e3 * limit),
                    number(over),
                ]
            )
    about = (
        "CPU ms of a member-step, all that a decision takes; one thread. DDQN: 57 tanh units, "
        "batch 199, CartPole-v0; TD3: "
        "2 x 128, batch 256, Pendulum; PPO: 2 x 64, 10 epochs of 64, CartPole-v1; "
        "Stable-Baselines3 (its DQN is not double) with "
        "the same. Limit: the matrix products of the updates and DDQN's tanh, or the bytes of "
        "batches, weights, gradients and "
        f"moments, whichever takes longer at the rates of large tensors ({rates(found)})."
    )
    header = [
        "",
        "ms",
        "goal",
        "times faster than Stable-Baselines3",
        "limit, ms",
        "times the limit",
    ]
    yield Table("Agents, alone and stacked", about, header, rows)
