"""How fast agents learn with evolved rewards, and with the task's own: real test return over training steps.

    OMP_NUM_THREADS=1 python benchmarks/reward_curves.py OUT.csv GAMENAME PROXY.pt ... [--count 10] [--episodes N] [--grid STEPS]

Agents have the generic hyper-parameters that the synthetic-environments paper evaluates with, not those that the rewards were
evolved with. After every training episode one greedy test episode is played; its return holds for the steps of that episode.
OUT.csv gets the mean over agents (and proxies of one form) every ``--grid`` steps; shorter runs keep their last value.
"""

from __future__ import annotations

import argparse
import csv
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from lightning_rl.envs.proxies import RewardProxy, read_proxy
from lightning_rl.methods.bilevel_configs import agent_configs
from lightning_rl.methods.inner_loop import InnerLoop
from lightning_rl.seeding import derive_seed

_DDQN = {
    "learning_rate": 2.5e-4, "batch_size": 32, "gamma": 0.99, "epsilon_init": 1.0, "epsilon_min": 0.1, "epsilon_decay": 0.9,
    "tau": 0.01, "activation": "relu", "hidden": [64], "init_episodes": 1,
}  # fmt: skip
_QL = {"learning_rate": 1.0, "gamma": 0.8, "epsilon_init": 0.1, "epsilon_min": 0.1, "epsilon_decay": 1.0}
AGENTS: dict[str, dict[str, Any]] = {"cliff": {"QL": _QL}, "cartpole-v0": {"DDQN": _DDQN}}


def curves(proxy: RewardProxy, params: Tensor, count: int, episodes: int, grid: Tensor) -> Tensor:
    """Test returns ``[count, len(grid)]`` of agents with this reward."""
    asked = {name: {**settings, "train_episodes": episodes} for name, settings in AGENTS[proxy.gamename].items()}
    agents = agent_configs(asked, proxy.gamename)
    # A stop rule that never holds: real test episodes are played, and nothing ends early.
    loop = InnerLoop(proxy, agents, False, "solved", "final_return", float("inf"), 0.0, 1, 1, int(grid[-1]))
    results = loop.train(0, params.expand(count, -1), [derive_seed(0, "curves", n) for n in range(count)]).results
    ends = results.lengths.cumsum(1)
    place = torch.stack([torch.searchsorted(ends[n], grid) for n in range(count)])
    last = (results.episodes - 1).clamp(min=0).unsqueeze(1)
    return results.scores.gather(1, torch.minimum(place, last))


def main() -> None:
    """Writes the table and prints when each reward first reaches what."""
    parser = argparse.ArgumentParser(description="Learning curves with evolved rewards.")
    parser.add_argument("out", type=Path)
    parser.add_argument("gamename", choices=AGENTS)
    parser.add_argument("proxies", type=Path, nargs="*")
    parser.add_argument("--count", type=int, default=10)
    parser.add_argument("--episodes", type=int, default=500)
    parser.add_argument("--steps", type=int, default=5000)
    parser.add_argument("--grid", type=int, default=50)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    grid = torch.arange(arguments.grid, arguments.steps + 1, arguments.grid)
    found: dict[str, list[Tensor]] = {}
    native = RewardProxy(arguments.gamename, (1,), "relu", "native", 0.9)
    evolved = [read_proxy(path, arguments.gamename)[:2] for path in arguments.proxies]
    for proxy, params in [(native, torch.zeros(native.net.size)), *evolved]:
        assert isinstance(proxy, RewardProxy)
        found.setdefault(proxy.form, []).append(curves(proxy, params, arguments.count, arguments.episodes, grid))
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    with arguments.out.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(("reward", "proxies", "agents", "env_steps", "return_mean", "return_std"))
        for form, parts in found.items():
            all_curves = torch.cat(parts).double()
            mean, std = all_curves.mean(0), all_curves.std(0, correction=0)
            for at, m, s in zip(grid.tolist(), mean.tolist(), std.tolist(), strict=True):
                writer.writerow((form, len(parts), len(all_curves), at, round(m, 3), round(s, 3)))
            shown = ", ".join(f"{at}: {m:.1f}" for at, m in zip(grid[9::10].tolist(), mean[9::10].tolist(), strict=True))
            print(f"{form} ({len(all_curves)} agents): {shown}; best {float(mean.max()):.1f} at {int(grid[mean.argmax()])}")


if __name__ == "__main__":
    main()
