"""Fresh policies cloned from synthetic datasets, tested on the real task."""

from __future__ import annotations

from argparse import Namespace
from dataclasses import fields

from lightning_rl.agents.cloning import CloneConfig
from lightning_rl.core.config import build_config, merged_values, parse_settings, refuse_ignored
from lightning_rl.envs.proxies import Proxy
from lightning_rl.envs.synthetic_dataset import DatasetProxy
from lightning_rl.lab.protocols.agents import AgentKind, asked_models, jobs_on, write_agents
from lightning_rl.lab.protocols.transfer import COLUMNS, OBTAINED, tested_by
from lightning_rl.methods.inner_loop import InnerLoop
from lightning_rl.methods.synthetic_dataset import SDConfig, cloning_loop


def run(given: Namespace) -> None:
    """Fills OUT.csv and prints a summary."""
    models, gamename = asked_models(
        given, DatasetProxy, "no synthetic dataset, and clones are made of those alone"
    )
    settings = parse_settings(given.settings)
    config = build_config(SDConfig, [*merged_values("SD", gamename), ("--set", settings)])
    read = [field.name for field in fields(CloneConfig)]
    ignored_keys = {
        key: f"it is of the search; clones read {', '.join(read)}"
        for key in vars(config)
        if key not in read
    }
    refuse_ignored(ignored_keys, ("--set", settings))
    kind = AgentKind("clone", config, given.hyperparameters == "varied", settings)

    def loop_for(kind: AgentKind, proxy: Proxy) -> InnerLoop:
        return cloning_loop(proxy, kind.config, given.tests, kind.varied)

    jobs = jobs_on(models, given.count)
    words = (f"{config.num_updates} updates", f"{given.tests} tests")
    train = tested_by(loop_for, "clones", given.seed)
    summary = ("return_mean", "num_updates")
    write_agents(given, COLUMNS, [kind], jobs, words, train, OBTAINED, summary)
