"""Speed of stacked agents: a DDQN training step of one member alone and of many, and what bounds it.

    OMP_NUM_THREADS=1 python benchmarks/bench_members.py [--members 1 8 48] [--steps 300]

The workload is that of the synthetic-environments paper's tuned DDQN on CartPole-v0: one hidden layer of 57 tanh units,
batches of 199, one update per environment step. A step is all of it: acting, the environment, storing, drawing the batch,
update, target network. One thread; times are CPU times of the process, so that other work on the machine slows them less
than it would slow the clock on the wall. Sizes are measured in turn, several times over; the median is shown.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

import torch
from rich.console import Console
from rich.table import Table

from lightning_rl.agents.dqn import DDQN, DQNSettings
from lightning_rl.agents.training import MemberTraining, evaluate_agents
from lightning_rl.envs.adapters import FUNC_ENVS
from lightning_rl.envs.batch import FuncBatch
from lightning_rl.nets.members import MemberMLP

OBS, ACTIONS, HIDDEN, BATCH, REPLAY = 4, 2, 57, 199, 100_000
NET = MemberMLP(OBS, (HIDDEN,), ACTIONS, "tanh")
ROUNDS = 5


def make_training(members: int) -> MemberTraining:
    """Members that learn from the first step on and never end."""
    seeds = list(range(members))
    settings = DQNSettings(0.988, 3.04e-4, BATCH, REPLAY, 0.00848, 0.809, 0.0371, 0.961)
    envs = FuncBatch(FUNC_ENVS["cartpole-v0"](), 200, seeds)
    return MemberTraining(DDQN(NET, OBS, settings, seeds), envs, 10**4, 0.988)


def cpu_seconds(work: Callable[[], object]) -> float:
    """CPU time that ``work`` takes."""
    started = time.process_time()
    work()
    return time.process_time() - started


def flops_of_update() -> int:
    """Multiplications and additions of the matrix products: three forward passes, and the backward pass of one."""
    first, second = OBS * HIDDEN, HIDDEN * ACTIONS
    return 2 * BATCH * (3 * (first + second) + first + 2 * second)


def bytes_of_update() -> int:
    """Least traffic: the batch's rows, both networks, gradient and moments, each read and, where changed, written once."""
    rows = BATCH * (2 * OBS + 3) * 4
    return rows + 4 * NET.size * (2 + 2 + 2 + 4)


def bounds() -> tuple[float, float]:
    """Seconds that the matrix products and the 3 B H tanh of an update take at the rates of large tensors here."""
    a, b = torch.randn(1024, 1024), torch.randn(1024, 1024)
    seconds = min(cpu_seconds(lambda: a @ b) for _ in range(10))
    x = torch.randn(1 << 18)
    tanh = min(cpu_seconds(lambda: x.sigmoid()) for _ in range(10)) / len(x)
    return flops_of_update() / (2 * 1024**3 / seconds), 3 * BATCH * HIDDEN * tanh


def main() -> None:
    """Measures and prints the table."""
    parser = argparse.ArgumentParser(description="Speed of stacked DDQN agents.")
    parser.add_argument("--members", type=int, nargs="+", default=[1, 8, 48])
    parser.add_argument("--steps", type=int, default=200)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    trainings = {members: make_training(members) for members in arguments.members}
    for training in trainings.values():
        training.run(50)
    spent: dict[int, list[float]] = {members: [] for members in trainings}
    for _ in range(ROUNDS):
        for members, training in trainings.items():
            steps = max(arguments.steps // members**0.5, 20)
            per_step = cpu_seconds(lambda training=training, steps=steps: training.run(int(steps))) / steps  # type: ignore[misc]
            spent[members].append(per_step / members)
    products, tanh = bounds()
    table = Table(title=f"DDQN, {HIDDEN} units, batch {BATCH}: one training step, CPU time, one thread")
    for heading in ("members", "ms / member-step", "member-steps / s", "times the bound"):
        table.add_column(heading, justify="right")
    for members, seconds in spent.items():
        s = statistics.median(seconds)
        table.add_row(str(members), f"{1e3 * s:.3f}", f"{1 / s:,.0f}", f"{s / (products + tanh):.1f}")
    console = Console()
    console.print(table)
    console.print(f"one update: {flops_of_update():,} FLOP in matrix products, at least {bytes_of_update():,} bytes")
    console.print(
        f"bound: {1e6 * products:.0f} us of matrix products + {1e6 * tanh:.0f} us of tanh, at the rates of large tensors"
    )
    agent = trainings[arguments.members[-1]].agent
    tests = FuncBatch(FUNC_ENVS["cartpole-v0"](), 200, list(range(10 * agent.num_members)))
    started = time.process_time()
    _, length = evaluate_agents(agent, tests, 10)
    took = time.process_time() - started
    console.print(f"{length.numel()} test episodes in lock-step, the longest of {int(length.max())} steps: {took:.2f} s")


if __name__ == "__main__":
    main()
