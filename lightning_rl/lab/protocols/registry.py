"""Protocols that judge proxies, by name: ``lightning-rl proxies NAME ...``. A new one is one line here."""

from __future__ import annotations

from lightning_rl.core.arguments import Tool


def _protocol(module: str, summary: str) -> Tool:
    return Tool(summary, f"lightning_rl.lab.protocols.{module}")


PROTOCOLS: dict[str, Tool] = {
    "transfer": _protocol("transfer", "fresh agents on trained proxies, tested on the real task (for the figure proxy-transfer)"),
    "reward-curves": _protocol("reward_curves", "learning curves of agents with learned rewards (for the figure reward-curves)"),
    "transitions": _protocol("transitions", "synthetic beside real transitions, as histograms (for the figure proxy-histograms)"),
    "grid-rewards": _protocol("grid_rewards", "what reward networks pay in a grid world, where agents go (for grid-rewards)"),
    "generations": _protocol("generations", "evolves many small proxies (for the figures proxy-success and step-sizes)"),
}
