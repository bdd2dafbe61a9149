"""Fresh agents on evolved proxies, with hyper-parameters drawn anew for each, tested on the real task.

    OMP_NUM_THREADS=1 python benchmarks/transfer_proxies.py OUT.csv PROXY.pt ... [--agents DDQN DuelingDDQN TD3-discrete]
        [--count 10] [--steps 4000] [--tests 10] [--plateau] [--epsilon_decay D]

Base hyper-parameters are those of the synthetic-environments paper's Figure 3; learning rate, batch size, width and depth are
drawn around them as it does (none of it was chosen by the results here). Agents train ``--steps`` steps, or with ``--plateau``
until the paper's stop rule holds. Appends one row per agent to OUT.csv: the mean of its test returns, and its training steps.
What is in OUT.csv already is not run again.
"""

from __future__ import annotations

import argparse
import csv
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from lightning_rl.envs.proxies import read_proxy
from lightning_rl.methods.bilevel_configs import agent_configs
from lightning_rl.methods.inner_loop import InnerLoop
from lightning_rl.seeding import derive_seed
from lightning_rl.types import UserError

FORCED = {"train_episodes": 1000, "init_episodes": 10, "early_out_num": 10, "early_out_virtual_diff": 0.01}
NET = {"learning_rate": 1.0e-3, "batch_size": 128, "gamma": 0.99, "hidden": [128, 128]}
EPSILON = {"tau": 0.01, "epsilon_init": 1.0, "epsilon_min": 0.01, "epsilon_decay": 0.9, "activation": "relu"}
BASE: dict[str, dict[str, Any]] = {
    "DDQN": {**NET, **EPSILON, **FORCED},
    "DuelingDDQN": {**NET, **EPSILON, **FORCED},
    "TD3-discrete": {**FORCED},
    "PPO": {},
}
COLUMNS = ("proxy", "agent", "number", "return_mean", "train_steps", "episodes", "num_updates")


def evaluate(
    paths: Sequence[Path], name: str, count: int, steps: int, tests: int, plateau: bool, epsilon_decay: float | None
) -> list[tuple[Any, ...]]:
    """One row for each of ``count`` agents on each of the proxies, which are of one kind; agent n is the same on all."""
    read = [read_proxy(path) for path in paths]
    proxy = read[0][0]
    if any(other != proxy for other, _, _ in read):
        raise UserError(f"the proxies {', '.join(map(str, paths))} differ in task, sizes or horizon; evaluate them one by one")
    changes = dict(BASE[name])
    if not plateau and "train_episodes" in changes:
        changes["train_episodes"] = steps  # episodes of one step, if need be
    if "epsilon_decay" in changes and epsilon_decay is not None:
        changes["epsilon_decay"] = epsilon_decay
    agents = agent_configs({name: changes}, proxy.gamename)
    rule = "plateau" if plateau else "none"
    loop = InnerLoop(proxy, agents, True, rule, "final_return", None, 0.0, tests, 1, steps)
    who = [(path.stem, name, n) for path in paths for n in range(count)]
    params = torch.cat([params.expand(count, -1) for _, params, _ in read])
    outcomes = loop.evaluate(params, [derive_seed(0, "transfer", n) for _, _, n in who], range(len(who)))
    numbers = [(round(o.test_return, 3), o.train_steps, o.episodes, o.num_updates) for o in outcomes]
    return [(*names, *row) for names, row in zip(who, numbers, strict=True)]


def main() -> None:
    """Fills the table and prints a summary."""
    parser = argparse.ArgumentParser(description="Agents on evolved proxies.")
    parser.add_argument("out", type=Path)
    parser.add_argument("proxies", type=Path, nargs="+")
    parser.add_argument("--agents", nargs="+", choices=BASE, default=["DDQN", "DuelingDDQN", "TD3-discrete"])
    parser.add_argument("--count", type=int, default=10)
    parser.add_argument("--steps", type=int, default=4000)
    parser.add_argument("--tests", type=int, default=10)
    parser.add_argument("--plateau", action="store_true")
    parser.add_argument("--epsilon_decay", type=float, help="per episode; for proxies with short episodes (default 0.9)")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    done: list[dict[str, str]] = []
    if arguments.out.exists():
        with arguments.out.open() as file:
            done = list(csv.DictReader(file))
    with arguments.out.open("a", newline="") as file:
        writer = csv.writer(file)
        if not done:
            writer.writerow(COLUMNS)
        for name in arguments.agents:
            left = [p for p in arguments.proxies if not any(r["proxy"] == p.stem and r["agent"] == name for r in done)]
            how = (arguments.count, arguments.steps, arguments.tests, arguments.plateau, arguments.epsilon_decay)
            rows = evaluate(left, name, *how) if left else []
            writer.writerows(rows)
            file.flush()
            done += [dict(zip(COLUMNS, map(str, row), strict=True)) for row in rows]
    for name in arguments.agents:
        mine = [row for row in done if row["agent"] == name]
        returns, steps = ([float(row[key]) for row in mine] for key in ("return_mean", "train_steps"))
        spread = f"+- {statistics.pstdev(returns):.1f}, median {statistics.median(returns):.1f}"
        counts = f"{len(mine)} agents, {len({row['proxy'] for row in mine})} proxies"
        print(f"{name}: {statistics.mean(returns):.2f} {spread}, {statistics.mean(steps):,.0f} steps; {counts}")


if __name__ == "__main__":
    main()
