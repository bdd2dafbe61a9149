"""What synthetic environments look like beside the real task: the paper's Figures 4 and 8 (arXiv 2202.02790).

Agents train on a proxy and then play the real task. Three samples: the transitions of the training; those of the real tests; and
what the proxy answers to the observations and actions of the real tests. Kept are counts in bins, for the reward, the raw done,
and each component of the next observation.
"""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from lightning_rl.core.arguments import count, number
from lightning_rl.core.seeding import derive_seed
from lightning_rl.core.types import UserError
from lightning_rl.envs.grids import GRID_WORLDS
from lightning_rl.envs.proxies import SyntheticProxy
from lightning_rl.lab.protocols.agents import (
    Job,
    Judge,
    add_agent_arguments,
    add_model_arguments,
    asked_judges,
    asked_models,
    one_gamename,
    train_stacks,
)
from lightning_rl.lab.protocols.models import Model
from lightning_rl.lab.protocols.progress import progress
from lightning_rl.lab.protocols.recording import RecordedProxy, Transitions, joined, played
from lightning_rl.lab.protocols.results import Results, open_results
from lightning_rl.lab.protocols.transfer import loops

KEY = ("proxy", "agent", "protocol")
COLUMNS = ("gamename", "trained_on", *KEY, "agents", "sample", "component", "low", "width", "count")
SAMPLES = ("synthetic, in training", "real, in tests", "synthetic, asked what was tested")
BIN = 0.02
MOST_BINS = 5000
NAMES: Mapping[str, tuple[str, ...]] = {
    "cartpole": ("cart position (m)", "cart velocity (m/s)", "pole angle (rad)", "pole velocity (rad/s)"),
    "acrobot": ("cos angle 1", "sin angle 1", "cos angle 2", "sin angle 2", "velocity 1 (rad/s)", "velocity 2 (rad/s)"),
    "pendulum": ("cos angle", "sin angle", "velocity (rad/s)"),
    "mountaincar-continuous": ("position", "velocity"),
}
"""The components of observations by the family of the task, with units."""


def answers(model: Model, tested: Transitions) -> Transitions:
    """What the proxy says to the observations and actions of ``tested``."""
    assert isinstance(model.proxy, SyntheticProxy)
    env = model.proxy.env(model.params.unsqueeze(0))
    step = env.step(tested.obs.unsqueeze(0), tested.action.unsqueeze(0), torch.empty(0))
    assert step.continuation is not None
    return tested._replace(next_obs=step.obs[0], reward=step.reward[0], done=1 - step.continuation[0])


def histogram(values: Tensor, width: float) -> list[tuple[float, float, int]]:
    """(low, width, count) of the bins that hold something; wider ones by powers of ten where there would be too many."""
    finite = values[values.isfinite()].double()
    while len(finite) and (finite.max() - finite.min()) / width > MOST_BINS:
        width *= 10
    number, counts = (finite / width + 1e-5).floor().long().unique(return_counts=True)
    return [(round(n * width, 9), width, c) for n, c in zip(number.tolist(), counts.tolist(), strict=True)]


def components(gamename: str, sample: Transitions) -> dict[str, Tensor]:
    """The columns that histograms are made of, by name."""
    family = gamename.removesuffix("-v0")
    names = NAMES.get(family, tuple(f"component {k + 1}" for k in range(sample.next_obs.shape[1])))
    return {**dict(zip(names, sample.next_obs.T, strict=True)), "reward": sample.reward, "done": sample.done}


def sample_transitions(
    model: Model, judge: Judge, number: int, tests: int, steps: int | None, run_seed: int
) -> list[Transitions]:
    """The three samples of ``number`` agents on one proxy."""
    assert isinstance(model.proxy, SyntheticProxy)
    settings = {field.name: getattr(model.proxy, field.name) for field in dataclasses.fields(SyntheticProxy)}
    recorded = RecordedProxy(**settings)
    jobs, real = [Job(model._replace(proxy=recorded), n) for n in range(number)], []
    for stack, _, trained in train_stacks(jobs, loops(judge, 1, steps), "transitions", run_seed, lambda _: False):
        spec = dataclasses.replace(model.proxy.spec, repeat=judge.config.action_repeat)
        seeds = [derive_seed(run_seed, f"transitions {model.name}", job.number) for job in stack]
        real += played(trained.agent, spec, seeds, tests)
    tested = joined(real)
    return [joined(recorded.kept), tested, answers(model, tested)]


def evaluate_transitions(
    results: Results, models: Sequence[Model], judge: Judge, number: int, tests: int, steps: int | None, width: float,
    run_seed: int,
) -> None:  # fmt: skip
    """Fills ``results`` with the histograms of each proxy."""
    protocol = judge.words("stop rule" if steps is None else f"{steps} steps", f"{tests} tests")
    with progress(len(models), "proxies") as advance:
        for model in models:
            if not results.has(proxy=model.name, agent=judge.name, protocol=protocol):
                rows: list[dict[str, Any]] = []
                samples = sample_transitions(model, judge, number, tests, steps, run_seed)
                for sample, transitions in zip(SAMPLES, samples, strict=True):
                    for component, values in components(model.proxy.gamename, transitions).items():
                        rows += [
                            {
                                "gamename": model.proxy.gamename, "trained_on": model.trained_on, "proxy": model.name,
                                "agent": judge.name, "protocol": protocol, "agents": number, "sample": sample,
                                "component": component, "low": low, "width": wide, "count": counted,
                            }
                            for low, wide, counted in histogram(values, width)
                        ]  # fmt: skip
                results.add(rows)
            advance(1, model.name)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The flags of ``transitions``."""
    add_model_arguments(parser, "one row per bin of each histogram")
    parser.add_argument("--agent", default="DDQN", metavar="NAME", help="default DDQN")
    add_agent_arguments(parser, "varied", tests=10)
    parser.add_argument("--steps", type=count, metavar="N", help="train N steps instead of until the paper's stop rule holds")
    parser.add_argument("--bin", type=number, default=BIN, metavar="WIDTH", help=f"of the histograms (default {BIN})")


def run(arguments: argparse.Namespace) -> None:
    """The evaluation that the arguments ask for."""
    models = asked_models(arguments)
    gamename = one_gamename(models, arguments)
    if not arguments.bin > 0:
        raise UserError(f"--bin {arguments.bin}: a width must be above 0, e.g. {BIN}")
    if gamename in GRID_WORLDS:
        raise UserError(f"'{gamename}': its observations are one-hot; histograms are for real-valued ones, e.g. of cartpole-v0")
    for model in models:
        if not isinstance(model.proxy, SyntheticProxy):
            raise UserError(f"'{model.name}' is a reward network, its transitions are real ones; name synthetic environments")
    (judge,) = asked_judges([arguments.agent], gamename, "transfer", arguments)
    with open_results(Path(arguments.out), COLUMNS, KEY, arguments.force) as results:
        evaluate_transitions(
            results, models, judge, arguments.count, arguments.tests, arguments.steps, arguments.bin, arguments.seed
        )
        print(f"{len(results.rows)} bins in {arguments.out}")
