"""``lightning-rl export``: plays an agent, and writes its policy as a folder that others use."""

from __future__ import annotations

from argparse import Namespace

from lightning_rl.core.lines import say
from lightning_rl.core.workers import default_workers
from lightning_rl.lab.evaluate import evaluate
from lightning_rl.run.acting import load
from lightning_rl.run.export import begin_export


def show(arguments: Namespace) -> None:
    """Exports an agent, with its score if episodes are asked for."""
    begin_export(arguments.out, arguments.force)  # before the work
    agent = load(arguments.agent)
    report = None
    if arguments.episodes:
        say(f"playing {arguments.episodes} episodes with sampled and with greedy actions")
        report = evaluate(agent, arguments.episodes, num_workers=default_workers())
    agent.export(arguments.out, report, licence=arguments.license, force=arguments.force)
    say(f"written: '{arguments.out}'; its README.md says how to act without this library")
