"""Synthetic environments beside the real task, as counts (arXiv 2202.02790, Figures 4 and 8).

Agents train on a proxy and then play the real task. Three samples: the transitions of the training;
those of the real tests; and what the proxy answers to the observations and actions of the real
tests. Kept are counts in bins, for the reward, the raw done, and each component of the next
observation.
"""

from __future__ import annotations

import dataclasses
from argparse import Namespace
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from experiments.protocols.proxies import PROXY_KEY, write_proxies
from experiments.protocols.recording import RecordedProxy, Transitions, joined, played
from lightning_rl.core.errors import UserError
from lightning_rl.core.lines import say
from lightning_rl.core.seeding import derive_seed
from lightning_rl.envs.batch import FuncBatch
from lightning_rl.envs.proxies import SyntheticProxy
from lightning_rl.envs.spec import EnvSpec, env_spec
from lightning_rl.lab.protocols.agents import (
    AgentKind,
    asked_kinds,
    asked_models,
    jobs_on,
    train_stacks,
)
from lightning_rl.lab.protocols.models import Model
from lightning_rl.lab.protocols.transfer import rule_text, training

COLUMNS = ("gamename", *PROXY_KEY, "sample", "component", "width", "lows", "counts")
SAMPLES = ("synthetic, in training", "real, in tests", "synthetic, asked what was tested")
MOST_BINS = 5000
_LANDER = (
    "x",
    "y",
    "x velocity",
    "y velocity",
    "angle (rad)",
    "angular velocity",
    "left leg",
    "right leg",
)
NAMES: Mapping[str, tuple[str, ...]] = {
    "cartpole": (
        "cart position (m)",
        "cart velocity (m/s)",
        "pole angle (rad)",
        "pole velocity (rad/s)",
    ),
    "acrobot": (
        "cos angle 1",
        "sin angle 1",
        "cos angle 2",
        "sin angle 2",
        "velocity 1 (rad/s)",
        "velocity 2 (rad/s)",
    ),
    "pendulum": ("cos angle", "sin angle", "velocity (rad/s)"),
    "mountaincar-continuous": ("position", "velocity"),
    "InvertedPendulum-v5": (
        "cart position (m)",
        "pole angle (rad)",
        "cart velocity (m/s)",
        "pole velocity (rad/s)",
    ),
    **dict.fromkeys(
        ("lunarlander", "lunarlander-sparse", "lunarlander-continuous", "beresheet"), _LANDER
    ),
}
"""The components of observations by the family of the task, with units."""


def answers(model: Model, tested: Transitions, repeat: int) -> Transitions:
    """What the proxy says to the observations and actions of ``tested``.

    Each action is taken ``repeat`` times, as agents take it.
    """
    envs = model.proxy.batch(model.params.unsqueeze(0), [0], 1.0, repeat)
    assert isinstance(envs, FuncBatch)
    envs.state = envs.obs = tested.obs.unsqueeze(0)
    envs.length = torch.zeros(envs.obs.shape[:2], dtype=torch.int64)
    step = envs.step(tested.action.unsqueeze(0))
    assert step.continuation is not None
    return tested._replace(
        next_obs=step.obs[0], reward=step.reward[0], done=1 - step.continuation[0]
    )


def histogram(values: Tensor, width: float) -> tuple[float, list[float], list[int]]:
    """(width, lower edges, counts) of the bins that hold something.

    Bins are wider by a power of ten where there would be too many.
    """
    finite = values[values.isfinite()].double()
    while len(finite) and (finite.max() - finite.min()) / width > MOST_BINS:
        width *= 10
    number, counts = (finite / width + 1e-5).floor().long().unique(return_counts=True)
    return width, [round(n * width, 9) for n in number.tolist()], counts.tolist()


def component_names(spec: EnvSpec) -> tuple[str, ...]:
    """The components of a task's observations, with units where they are known."""
    numbered = tuple(f"component {k + 1}" for k in range(spec.obs_size))
    return NAMES.get(spec.family.removesuffix("-v0"), numbered)


def components(spec: EnvSpec, sample: Transitions) -> dict[str, Tensor]:
    """The columns that histograms are made of, by name."""
    names = component_names(spec)
    return {
        **dict(zip(names, sample.next_obs.T, strict=True)),
        "reward": sample.reward,
        "done": sample.done,
    }


def sample_transitions(
    model: Model, kind: AgentKind, count: int, tests: int, steps: int | None, run_seed: int
) -> list[Transitions]:
    """The three samples of ``count`` agents on one proxy; UserError if all agents diverged."""
    assert isinstance(model.proxy, SyntheticProxy)
    fields = dataclasses.fields(SyntheticProxy)
    recorded = RecordedProxy(**{each.name: getattr(model.proxy, each.name) for each in fields})
    variants = [(kind, jobs_on([model._replace(proxy=recorded)], count))]
    real: list[Transitions] = []
    left_out = 0
    for stack, _, trained in train_stacks(variants, training(1, steps), "transitions", run_seed):
        spec = dataclasses.replace(model.proxy.spec, repeat=kind.config.action_repeat)
        sound = trained.test_returns.isfinite().all(1).nonzero().squeeze(1)
        seeds = [
            derive_seed(run_seed, f"transitions {model.name}", stack[row].number)
            for row in sound.tolist()
        ]
        left_out += len(stack) - len(sound)
        if seeds:
            with trained.agent.holding(trained.agent.rows(sound)):
                real += played(trained.agent, spec, seeds, tests)
    if left_out == count:
        raise UserError(
            f"all {count} agents on '{model.name}' diverged; lower --set learning_rate=..., or "
            "name another proxy"
        )
    if left_out:
        say(f"{left_out} of {count} agents on '{model.name}' diverged and play no real task")
    tested = joined(real)
    return [joined(recorded.kept), tested, answers(model, tested, kind.config.action_repeat)]


def histogram_rows(
    spec: EnvSpec, samples: Sequence[Transitions], width: float
) -> list[dict[str, Any]]:
    """A row for each component of each sample, as far as it has finite values."""
    rows = []
    for sample, transitions in zip(SAMPLES, samples, strict=True):
        for component, values in components(spec, transitions).items():
            wide, lows, counts = histogram(values, width)
            if lows:
                row = {"sample": sample, "component": component, "width": wide}
                rows.append({**row, "lows": lows, "counts": counts})
    return rows


def run(given: Namespace) -> None:
    """Fills OUT.csv."""
    refusal = "no synthetic environment, which has transitions of its own; name some"
    models, gamename = asked_models(given, SyntheticProxy, refusal)
    spec = env_spec(gamename)
    if spec.one_hot:
        raise UserError(
            f"'{gamename}': its observations are one-hot; histograms are for real-valued ones, "
            "e.g. of cartpole-v0"
        )
    (kind,) = asked_kinds([given.agent], gamename, "transfer", given, given.steps)

    def rows_of(model: Model) -> list[dict[str, Any]]:
        samples = sample_transitions(model, kind, given.count, given.tests, given.steps, given.seed)
        return histogram_rows(spec, samples, given.bin)

    words = (*rule_text(given.tests, given.steps), f"bins of {given.bin:g}")
    rows = write_proxies(given, COLUMNS, models, kind, words, rows_of)
    say(f"{len(rows)} histograms in {given.out}")
