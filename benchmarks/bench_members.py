"""Speed of stacked agents: a DDQN training step of one member alone and of many, and what bounds it.

    OMP_NUM_THREADS=1 python benchmarks/bench_members.py [--members 1 8 48] [--steps 300] [--processes 1 2]

The workload is that of the synthetic-environments paper's tuned DDQN on CartPole-v0: one hidden layer of 57 tanh units,
batches of 199, one update per environment step. A step is all of it: acting, the environment, storing, drawing the batch,
update, target network. One thread; times are CPU times of the process, so that other work on the machine slows them less
than it would slow the clock on the wall. Sizes are measured in turn, several times over; the median is shown.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import statistics
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import torch
from rich.console import Console
from rich.table import Table

from lightning_rl.agents.dqn import DDQN, DDQNConfig
from lightning_rl.agents.training import MemberTraining, evaluate_agents
from lightning_rl.core.config import build_config, merged_values
from lightning_rl.envs.adapters import FUNC_ENVS
from lightning_rl.envs.batch import FuncBatch
from lightning_rl.envs.spec import env_spec
from lightning_rl.nets.members import MemberMLP
from lightning_rl.run.runtime import keep_freed_memory

OBS, ACTIONS, HIDDEN, BATCH, REPLAY = 4, 2, 57, 199, 100_000
NET = MemberMLP(OBS, (HIDDEN,), ACTIONS, "tanh")
ROUNDS = 5


def make_training(members: int, seeds: list[int] | None = None) -> MemberTraining:
    """Members that learn from the first step on and never end."""
    seeds = seeds or list(range(members))
    envs = FuncBatch(FUNC_ENVS["cartpole-v0"](), 200, seeds)
    return MemberTraining(make_agent(seeds), envs, 10**4, 0.988)


def make_agent(seeds: list[int]) -> DDQN:
    """Members with the values of the config, which are the tuned ones."""
    return DDQN(build_config(DDQNConfig, merged_values("DDQN", "cartpole-v0")), env_spec("cartpole-v0"), seeds)


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


def time_tests(episodes: int) -> tuple[float, float]:
    """(mean return, CPU seconds) of ``episodes`` test episodes of each of 48 members that push to where the pole falls."""
    agent = make_agent(list(range(48)))
    first, last = NET.layers(agent.params.data.zero_())
    first.weight[:, :, 0] = torch.tensor([0.05, 0.2, 1.0, 0.5])  # one unit: a weighted sum of the state
    last.weight[:, 0, 1] = 1.0  # for pushing right
    tests = FuncBatch(FUNC_ENVS["cartpole-v0"](), 200, list(range(48 * episodes)))
    returns: list[float] = []
    took = cpu_seconds(lambda: returns.append(float(evaluate_agents(agent, tests, episodes)[0].mean())))
    return returns[0], took


def full_memory() -> int:
    """Bytes that the process grows by 48 members whose replay memories are full."""
    before = resident()
    training = make_training(48)
    memory = training.agent.memory()
    assert memory is not None
    memory.data["rows"].fill_(0.1)
    training.run(3)
    return resident() - before


def resident() -> int:
    """Bytes of this process in memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def train_shard(seeds: list[int], steps: int) -> float:
    """Seconds on the wall for ``steps`` decisions of the members ``seeds``, after a first few."""
    torch.set_num_threads(1)
    keep_freed_memory()
    training = make_training(len(seeds), seeds)
    training.run(20)
    started = time.perf_counter()
    training.run(steps)
    return time.perf_counter() - started


def sharded(members: int, processes: int, steps: int) -> float:
    """Member-steps a second of members dealt out to processes; what a member does does not depend on its company."""
    shards = [list(range(members))[n::processes] for n in range(processes)]
    with ProcessPoolExecutor(processes, multiprocessing.get_context("spawn")) as pool:
        slowest = max(pool.map(train_shard, shards, [steps] * processes))
    return members * steps / slowest


def main() -> None:
    """Measures and prints the table."""
    parser = argparse.ArgumentParser(description="Speed of stacked DDQN agents.")
    parser.add_argument("--members", type=int, nargs="+", default=[1, 8, 48])
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--processes", type=int, nargs="+", default=[1, 2])
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    keep_freed_memory()
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
    returns, took = time_tests(10)
    console.print(f"480 test episodes of agents that balance (mean return {returns:.0f}), in lock-step: {took:.2f} s of CPU time")
    for count in arguments.processes:
        rate = sharded(arguments.members[-1], count, arguments.steps)
        console.print(f"{arguments.members[-1]} members in {count} processes: {rate:,.0f} member-steps / s on the wall")
    console.print(f"48 members with full memories of {REPLAY:,} rows: {full_memory() / 2**20:.0f} MiB")


if __name__ == "__main__":
    main()
