"""The flags of training, searching and evaluating, each declared once.

``trainer.py`` takes them all; which of them are given decides its mode. ``lightning-rl train | tune
| eval`` take the flags of their modes. Those that are fields of ``RunOptions`` have type, limits
and default from there.
"""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from lightning_rl.core.kinds import Whole, checked_path, count, process_count
from lightning_rl.core.limits import EPISODES
from lightning_rl.run.options import KINDS, OPTIONS

FINAL_EVAL_EPISODES = 20
IMAGINED_EPISODES = 200
SWEEP_EPISODES = 50  # for each of its commands


class Mode(Enum):
    """What a command line does. The first mode whose own flag is given is meant.

    Attributes:
        flag: what ``trainer.py`` calls it: the flag that asks for it, but for training.
        command: what ``lightning-rl`` calls it.
    """

    FIGURE = ("--figure", "figures")
    IMAGINE = ("--imagine", "eval --imagine")
    EVAL = ("--eval_agent", "eval")
    TUNE = ("--use_tune", "tune")
    TRAIN = ("training", "train")

    def __init__(self, flag: str, command: str):
        self.flag = flag
        self.command = command

    def called_in(self, command: str | None) -> str:
        """Its name for who typed ``command``, None for ``trainer.py``."""
        return self.flag if command is None else self.command


COMMANDS = {"train": (Mode.TRAIN,), "eval": (Mode.EVAL, Mode.IMAGINE), "tune": (Mode.TUNE,)}
"""The modes of each command of ``lightning-rl`` that has its flags here, the usual one first."""

RUN = (Mode.TRAIN, Mode.TUNE)
EVALUATE = (Mode.EVAL, Mode.IMAGINE)


@dataclass(frozen=True)
class Flag:
    """A flag of ``trainer.py``.

    Attributes:
        name: with its dashes.
        modes: those in which it has an effect.
        help: may refer to {default}, {entries}, {aliases} and {games}.
        options: those of argparse.
        words: its name in a command, where it differs; without dashes it is a positional argument,
            empty: the command lacks it.
    """

    name: str
    modes: tuple[Mode, ...]
    help: str
    options: Mapping[str, Any]
    words: Mapping[str, str]

    @property
    def dest(self) -> str:
        return str(self.options.get("dest", self.name.lstrip("-")))

    @property
    def default(self) -> Any:
        otherwise = False if self.options.get("action") == "store_true" else None
        return self.options.get("default", otherwise)

    def word(self, command: str | None) -> str:
        """What ``command``, or ``trainer.py`` (None), calls it; empty where it has no such flag."""
        if command is None:
            return self.name
        if not set(self.modes) & set(COMMANDS[command]):
            return ""
        return self.words.get(command, self.name)

    def add_to(
        self, parser: argparse._ActionsContainer, command: str | None, names: Mapping[str, str]
    ) -> None:
        """Adds it under its name in ``command``; names: what its help may refer to."""
        word = self.word(command)
        options = {**self.options, "help": self.help.format(default=self.default, **names)}
        if word.startswith("-"):
            # What was not typed is not in the result: some flags are refused beside others.
            options |= {"dest": self.dest, "default": argparse.SUPPRESS}
        parser.add_argument(word, **options)


def _flag(
    name: str,
    modes: tuple[Mode, ...],
    help: str,
    words: Mapping[str, str] | None = None,
    **options: Any,
) -> Flag:
    return Flag(name, modes, help, options, words or {})


def _option(name: str, modes: tuple[Mode, ...], help: str, **options: Any) -> Flag:
    """The flag of a field of ``RunOptions``."""
    default = OPTIONS[name].default
    if default is not dataclasses.MISSING:
        options["default"] = default
    if name in KINDS:
        options = {**KINDS[name].options, **options}
    return Flag(f"--{name}", modes, help, options, {})


GROUPS: dict[str, tuple[Flag, ...]] = {
    "what to run": (
        _option(
            "implementation",
            RUN,
            "method (default {default}): {entries}; aliases: {aliases}",
            metavar="NAME",
        ),
        _option(
            "gamename",
            RUN,
            "environment (default {default}): {games}; or any Gymnasium id, or my_package:MyEnv-v0",
        ),
        _option(
            "dataset",
            RUN,
            "learn from these episodes and play none (UDRL, RCP-R, RCP-A): a Minari dataset, by "
            "its folder or id, or a run directory, with the episodes that its checkpoint keeps; "
            "--max_epochs is the budget",
            metavar="SOURCE",
        ),
        _option("exp_name", RUN, "folder of the experiment (default: {default})", metavar="NAME"),
        _option("seed", RUN, "seed of the run (default {default})"),
        _option(
            "num_seeds",
            (Mode.TRAIN,),
            "agents (QL, SARSA, ..., PPO) and model-based methods only: train the seeds SEED .. "
            "SEED+N-1 at once, one folder each; same results as alone up to rounding (default "
            "{default})",
        ),
        _option(
            "preset",
            RUN,
            "name of a block under presets: in the method's config, e.g. a paper's values",
            metavar="NAME",
        ),
        _flag("--max_epochs", RUN, "same as --set max_epochs=N", type=count, metavar="N"),
        _option(
            "stop_return",
            (Mode.TRAIN,),
            "stop when the mean return of an evaluation in training (sampled; of model-based "
            "methods greedy) is R or more",
            metavar="R",
        ),
        _option(
            "stop_evaluations", (Mode.TRAIN,), "... in N evaluations in a row (default {default})"
        ),
        _flag(
            "--set",
            RUN,
            "override a key of the method's config; repeatable",
            dest="settings",
            action="append",
            default=[],
            metavar="KEY=VALUE",
        ),
        _flag(
            "--config",
            RUN,
            "take the values of config keys from a run's config.yaml or a search's best.yaml",
            type=checked_path,
            metavar="YAML",
        ),
        _flag(
            "--no_expo_weighting",
            RUN,
            "same as --set weights=none (UDRL, RCP-R and RCP-A)",
            action="store_true",
        ),
    ),
    "where and how": (
        _option("logdir", RUN, "folder of all results (default {default})", metavar="DIR"),
        _option(
            "num_workers",
            (*RUN, Mode.EVAL),
            "worker processes that play episodes, or that evaluate the population of SE, RN or SD; "
            "0: this process does it; same results, of populations up to rounding (default 2 where "
            "there are two cores, but 1 for a population and with --num_processes; in a search, "
            "for each trial, 0)",
        ),
        _flag(
            "--num_processes",
            (Mode.TRAIN,),
            "train the seeds of --num_seeds in N processes, a part of them in each; same results "
            "up to rounding (default {default})",
            type=process_count,
            default=1,
            metavar="N",
        ),
        _option(
            "accelerator",
            RUN,
            "where networks train (default {default}, the fastest for small ones); auto: on a GPU, "
            "if there is one, for UDRL, RCP and policy gradients; gpu: on a GPU, for any method; "
            "it pays off with many seeds at once (--num_seeds)",
        ),
        _option(
            "executor",
            RUN,
            "where the population of SE, RN or SD is evaluated: serial (in processes on this "
            "machine) or ray (on a Ray cluster); same results up to rounding",
        ),
        _option(
            "ray_address",
            RUN,
            "a running Ray cluster (default: one is started here)",
            metavar="HOST:PORT",
        ),
    ),
    "checkpoints and recordings": (
        _option(
            "resume", RUN, "continue from last.ckpt in the run directory, or start if there is none"
        ),
        _option(
            "reload", RUN, "start a new run from the policy weights of a checkpoint", metavar="CKPT"
        ),
        _flag("--no_checkpoint", (Mode.TRAIN,), "write no checkpoints", action="store_true"),
        _option(
            "recording_epoch_interval",
            RUN,
            "film an episode every N epochs (default {default}: never)",
        ),
    ),
    "hyper-parameter search": (
        _flag(
            "--use_tune",
            (Mode.TUNE,),
            "search hyper-parameters with Ray Tune, as the tune: block of the method's config "
            "says; --resume continues a search",
            {"tune": ""},
            action="store_true",
        ),
        _flag(
            "--tune",
            (Mode.TUNE,),
            "override a key of the tune: block: algorithm=asha|bohb|grid|optuna, trials, seeds, "
            "budget, reports, search; repeatable",
            dest="tune_settings",
            action="append",
            default=[],
            metavar="KEY=VALUE",
        ),
    ),
    "evaluation": (
        _flag(
            "--eval_agent",
            EVALUATE,
            "checkpoint to evaluate: a file, a run directory or an agent of the package; prints a "
            "table, writes evaluation.json and a film beside it",
            {"eval": "eval_agent"},
            type=checked_path,
            metavar="CKPT",
        ),
        _flag(
            "--eval_episodes",
            (*RUN, *EVALUATE),
            "episodes of an evaluation, in each mode (default: in training the config's; in eval "
            f"{FINAL_EVAL_EPISODES}, for each command of a sweep {SWEEP_EPISODES}, with --imagine "
            f"{IMAGINED_EPISODES})",
            {"eval": "--episodes"},
            type=Whole(1, EPISODES),
            metavar="N",
        ),
        _flag(
            "--eval_command",
            (Mode.EVAL,),
            "command of UDRL, RCP-R or RCP-A, e.g. return=250,horizon=300 or advantage=1.5 "
            "(default: the checkpoint's); sweep, sweep=LOW:HIGH or sweep=A,B,...: several "
            "commands, with a table and picture of obtained against commanded return",
            {"eval": "--command"},
            metavar="NAME=VALUE,...",
        ),
        _flag(
            "--render",
            (Mode.EVAL,),
            "human: only show one episode in a window",
            choices=("human",),
            metavar="human",
        ),
        _flag(
            "--calibrate",
            (Mode.EVAL,),
            "of UDRL, RCP-R and RCP-A: measure which command obtains which return, save that in "
            "the checkpoint, and sweep; from then on the command return=150 asks for episodes of "
            "that return",
            action="store_true",
        ),
        _flag(
            "--imagine",
            (Mode.IMAGINE,),
            "of model-based checkpoints: draw the model's roll-outs beside the real ones, and the "
            "model's error at each step",
            action="store_true",
        ),
        _flag(
            "--force",
            EVALUATE,
            "overwrite files beside the checkpoint even if another program wrote them",
            action="store_true",
        ),
    ),
    "figures": (
        _flag(
            "--figure",
            (Mode.FIGURE,),
            "only draw a figure: the same as lightning-rl figures NAME ...",
            nargs=argparse.REMAINDER,
            metavar="NAME ...",
        ),
    ),
}
FLAGS = {flag.name: flag for flags in GROUPS.values() for flag in flags}
