"""The flags of training, searching and evaluating, each declared once.

``trainer.py`` takes them all; which of them are given decides its mode. ``lightning-rl train | tune
| eval`` take the flags of their modes. A flag that would be ignored is refused with an error that
names it.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lightning_rl import __version__
from lightning_rl.core.arguments import (
    Parser,
    checked_path,
    count,
    gamename,
    non_negative,
    number,
    whole,
)
from lightning_rl.core.catalogue import aliases, entries
from lightning_rl.core.checks import ACCELERATORS, EXECUTORS, check_apart
from lightning_rl.core.config import as_setting
from lightning_rl.core.errors import UserError
from lightning_rl.core.gamenames import GAMES
from lightning_rl.core.limits import EPISODES, SEED, SEEDS, WHOLE
from lightning_rl.core.modules import MODULES
from lightning_rl.core.workers import cores

TRAIN, TUNE, EVAL, IMAGINE, FIGURE = (
    "training",
    "--use_tune",
    "--eval_agent",
    "--imagine",
    "--figure",
)
REPRODUCE = "reproduce"
RUN = (TRAIN, TUNE)
COMMANDS = {"train": (TRAIN,), "eval": (EVAL, IMAGINE), "tune": (TUNE,), REPRODUCE: (REPRODUCE,)}
"""The modes of each command of ``lightning-rl`` that has its flags here."""
SUMMARIES = {
    "train": "train a method on an environment, or resume a run that was stopped",
    "eval": "evaluate a checkpoint, or that of a run: prints a table, writes evaluation.json and a "
    "film",
    "tune": "search hyper-parameters with Ray Tune",
    REPRODUCE: "run the seeds that the claims of results/claims.yaml lack, and build "
    "docs/results.md",
}

FINAL_EVAL_EPISODES = 100
IMAGINED_EPISODES = 200
SWEEP_EPISODES = 50  # for each of its commands
_EPILOG = (
    "All files of a run are written to LOGDIR/GAMENAME/EXP_NAME/IMPLEMENTATION/seed_N/. "
    f"To use a method of your own: export {MODULES}=its_module."
)


NAMES: dict[str, Callable[[], Iterable[str]]] = {
    "entries": entries,
    "aliases": aliases,
    "games": lambda: GAMES,
}


class _Names(dict[str, str]):
    """Lists of names that help texts refer to; each is made only when ``--help`` asks for it."""

    def __missing__(self, kind: str) -> str:
        return ", ".join(NAMES[kind]())


@dataclass(frozen=True)
class Flag:
    """A flag of ``trainer.py``.

    modes: those in which it has an effect.
    options: those of argparse.
    words: its name in a command, where it differs; without dashes it is a positional argument,
    empty: the command lacks it.
    """

    name: str
    modes: tuple[str, ...]
    options: Mapping[str, Any]
    words: Mapping[str, str] = field(default_factory=dict)

    @property
    def dest(self) -> str:
        return str(self.options.get("dest", self.name.lstrip("-")))

    @property
    def default(self) -> Any:
        return self.options.get(
            "default", False if self.options.get("action") == "store_true" else None
        )

    def word(self, command: str | None) -> str:
        """What ``command``, or ``trainer.py`` (None), calls it; empty where it has no such flag."""
        if command is None:
            return "" if self.modes == (REPRODUCE,) else self.name
        return (
            self.words.get(command, self.name) if set(self.modes) & set(COMMANDS[command]) else ""
        )

    def add_to(self, parser: argparse._ActionsContainer, command: str | None) -> None:
        word = self.word(command)
        options = {**self.options, "help": self.options["help"].format_map(_Names())}
        if word.startswith("-"):
            options |= {"dest": self.dest, "default": argparse.SUPPRESS}
        parser.add_argument(word, **options)


def _interval(text: str) -> int:
    if (value := whole(-1, WHOLE)(text)) == 0:
        raise argparse.ArgumentTypeError(
            f"{value} is not an interval, it must be 1 or more, or -1 for never"
        )
    return value


def _process_count(text: str) -> int:
    value, most = count(text), cores()
    if value > most:
        raise argparse.ArgumentTypeError(
            f"{value} processes on {most} cores, it must be {most} or fewer"
        )
    return value


def _flag(
    name: str,
    modes: tuple[str, ...],
    help: str,
    words: Mapping[str, str] | None = None,
    **options: Any,
) -> Flag:
    return Flag(name, modes, {**options, "help": help}, words or {})


GROUPS: dict[str, tuple[Flag, ...]] = {
    "claims": (
        _flag(
            "--ids",
            (REPRODUCE,),
            "claims (default: all)",
            {REPRODUCE: "ids"},
            nargs="*",
            default=[],
            metavar="CLAIM",
        ),
        _flag(
            "--list",
            (REPRODUCE,),
            "list the claims, with their results so far; nothing is run",
            action="store_true",
        ),
        _flag(
            "--jobs",
            (REPRODUCE,),
            "how many runs at once (default: one per core)",
            type=_process_count,
            default=cores(),
            metavar="N",
        ),
        _flag(
            "--verify",
            (REPRODUCE,),
            "repeat the first epochs of a claim and compare with its stored curve",
            metavar="CLAIM",
        ),
        _flag(
            "--ledger",
            (REPRODUCE,),
            "build docs/results.md from the results so far; nothing is run",
            action="store_true",
        ),
        _flag(
            "--figures",
            (REPRODUCE,),
            "draw the pictures of results/ that claims.yaml lists, from CSVs",
            action="store_true",
        ),
        _flag(
            "--smoke",
            (REPRODUCE,),
            "a test: one seed of each with a tiny budget, in a temporary folder",
            action="store_true",
        ),
    ),
    "what to run": (
        _flag(
            "--implementation",
            RUN,
            "method (default UDRL): {entries}; aliases: {aliases}",
            default="UDRL",
            metavar="NAME",
        ),
        _flag(
            "--gamename",
            RUN,
            "environment (default lunarlander): {games}; or any Gymnasium id, or "
            "my_package:MyEnv-v0",
            type=gamename,
            default="lunarlander",
            metavar="NAME",
        ),
        _flag(
            "--exp_name",
            RUN,
            "folder of the experiment (default: default)",
            default="default",
            metavar="NAME",
        ),
        _flag(
            "--seed",
            RUN,
            "seed of the run (default 25)",
            type=whole(0, SEED),
            default=25,
            metavar="N",
        ),
        _flag(
            "--num_seeds",
            (TRAIN,),
            "agents (QL, SARSA, ..., PPO) and model-based methods only: train the seeds SEED .. "
            "SEED+N-1 at once, one folder "
            "each; same results as alone up to rounding (default 1)",
            type=whole(1, SEEDS),
            default=1,
            metavar="N",
        ),
        _flag(
            "--preset",
            RUN,
            "name of a block under presets: in the method's config, e.g. a paper's values",
            metavar="NAME",
        ),
        _flag("--max_epochs", RUN, "same as --set max_epochs=N", type=count, metavar="N"),
        _flag(
            "--stop_return",
            (TRAIN,),
            "stop when the mean return of an evaluation in training (sampled; of model-based "
            "methods greedy) is R or more",
            type=number,
            metavar="R",
        ),
        _flag(
            "--stop_evaluations",
            (TRAIN,),
            "... in N evaluations in a row (default 1)",
            type=count,
            default=1,
            metavar="N",
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
        _flag(
            "--logdir",
            RUN,
            "folder of all results (default exp_dir)",
            type=checked_path,
            default=Path("exp_dir"),
            metavar="DIR",
        ),
        _flag(
            "--num_workers",
            (*RUN, EVAL),
            "worker processes that play episodes, or that evaluate the population of SE, RN or SD; "
            "0: this process does it; same "
            "results, of populations up to rounding (default 1; in a search, for each trial, "
            "default 0)",
            type=non_negative,
            metavar="N",
        ),
        _flag(
            "--num_processes",
            (TRAIN,),
            "train the seeds of --num_seeds in N processes, a part of them in each; same results "
            "up to rounding (default 1)",
            type=_process_count,
            default=1,
            metavar="N",
        ),
        _flag(
            "--accelerator",
            RUN,
            "where networks train (default cpu, the fastest for small ones); auto: on a GPU, if "
            "there is one, for UDRL, RCP and "
            "policy gradients; gpu: on a GPU, for any method; it pays off with many seeds at once "
            "(--num_seeds)",
            choices=ACCELERATORS,
            default="cpu",
        ),
        _flag(
            "--executor",
            (*RUN, REPRODUCE),
            "where the population of SE, RN or SD is evaluated, or the runs of reproduce are "
            "trained: serial (in processes on "
            "this machine) or ray (on a Ray cluster); same results up to rounding",
            choices=EXECUTORS,
            default="serial",
        ),
        _flag(
            "--ray_address",
            (*RUN, REPRODUCE),
            "a running Ray cluster (default: one is started here)",
            metavar="HOST:PORT",
        ),
    ),
    "checkpoints and recordings": (
        _flag(
            "--resume",
            RUN,
            "continue from last.ckpt in the run directory, or start if there is none",
            action="store_true",
        ),
        _flag(
            "--reload",
            RUN,
            "start a new run from the policy weights of a checkpoint",
            type=checked_path,
            metavar="CKPT",
        ),
        _flag("--no_checkpoint", (TRAIN,), "write no checkpoints", action="store_true"),
        _flag(
            "--recording_epoch_interval",
            RUN,
            "film an episode every N epochs (default -1: never)",
            type=_interval,
            default=-1,
            metavar="N",
        ),
    ),
    "hyper-parameter search": (
        _flag(
            "--use_tune",
            (TUNE,),
            "search hyper-parameters with Ray Tune, as the tune: block of the method's config "
            "says; --resume continues a search",
            {"tune": ""},
            action="store_true",
        ),
        _flag(
            "--tune",
            (TUNE,),
            "override a key of the tune: block: algorithm=asha|bohb|optuna, trials, seeds, budget, "
            "reports, search; repeatable",
            dest="tune_settings",
            action="append",
            default=[],
            metavar="KEY=VALUE",
        ),
    ),
    "evaluation": (
        _flag(
            "--eval_agent",
            (EVAL, IMAGINE),
            "checkpoint to evaluate: a file, a run directory or an agent of the package; prints a "
            "table, writes evaluation.json "
            "and a film beside it",
            {"eval": "eval_agent"},
            type=checked_path,
            metavar="CKPT",
        ),
        _flag(
            "--eval_episodes",
            (*RUN, EVAL, IMAGINE),
            "episodes of an evaluation, in each mode (default: in training the config's; in eval "
            f"{FINAL_EVAL_EPISODES}, for "
            f"each command of a sweep {SWEEP_EPISODES}, with --imagine {IMAGINED_EPISODES})",
            {"eval": "--episodes"},
            type=whole(1, EPISODES),
            metavar="N",
        ),
        _flag(
            "--eval_command",
            (EVAL,),
            "command of UDRL, RCP-R or RCP-A, e.g. return=250,horizon=300 or advantage=1.5 "
            "(default: the checkpoint's); sweep, "
            "sweep=LOW:HIGH or sweep=A,B,...: several commands, with a table and picture of "
            "obtained against commanded return",
            {"eval": "--command"},
            metavar="NAME=VALUE,...",
        ),
        _flag(
            "--render",
            (EVAL,),
            "human: only show one episode in a window",
            choices=("human",),
            metavar="human",
        ),
        _flag(
            "--calibrate",
            (EVAL,),
            "of UDRL, RCP-R and RCP-A: measure which command obtains which return, save that in "
            "the checkpoint, and sweep; from "
            "then on the command return=150 asks for episodes of that return",
            action="store_true",
        ),
        _flag(
            "--imagine",
            (IMAGINE,),
            "of model-based checkpoints: draw the model's roll-outs beside the real ones, and the "
            "model's error at each step",
            action="store_true",
        ),
        _flag(
            "--force",
            (EVAL, IMAGINE),
            "overwrite files beside the checkpoint even if another program wrote them",
            action="store_true",
        ),
    ),
    "figures": (
        _flag(
            "--figure",
            (FIGURE,),
            "only draw a figure: the same as lightning-rl figures NAME ...",
            nargs=argparse.REMAINDER,
            metavar="NAME ...",
        ),
    ),
}
FLAGS = {flag.name: flag for flags in GROUPS.values() for flag in flags}
_ORDER = (FIGURE, IMAGINE, EVAL, TUNE, TRAIN, REPRODUCE)
MODES = {mode: {name for name, flag in FLAGS.items() if mode in flag.modes} for mode in _ORDER}
"""The flags of each mode; the first mode whose own flag is given is meant."""

_REMEDIES = {
    (TUNE, "--num_seeds"): "a search takes its seeds per trial from --tune seeds=N",
    (TUNE, "--no_checkpoint"): "a trial goes on from its checkpoints",
    (IMAGINE, "--eval_command"): "the model's roll-outs take the checkpoint's command",
}
_BY_COMMAND = {
    TRAIN: "train",
    TUNE: "tune",
    EVAL: "eval",
    IMAGINE: "eval --imagine",
    FIGURE: "figures",
    REPRODUCE: REPRODUCE,
}


def build_parser(program: str = "trainer.py", command: str | None = None) -> Parser:
    """The parser of a command, or of ``trainer.py``, which has all flags."""
    if command is None:
        about = "Train, resume and evaluate reinforcement-learning methods."
    else:
        about, program = SUMMARIES[command], f"{program} {command}"
    parser = Parser(
        prog=program,
        description=about,
        epilog=_EPILOG if command in (None, "train", "tune") else None,
    )
    if command is None:
        parser.add_argument("--version", action="version", version=__version__)
    for title, flags in GROUPS.items():
        if own := [flag for flag in flags if flag.word(command)]:
            group = parser.add_argument_group(title)
            for flag in own:
                flag.add_to(group, command)
    if FLAGS["--set"].word(command):
        parser.instead = as_setting
    if command is not None:
        others = [name for name, flag in FLAGS.items() if not flag.word(command)]
        parser.elsewhere = {name: f"it goes with {_where(name, command)}" for name in others}
    return parser


def parse(
    words: Sequence[str], program: str = "trainer.py", command: str | None = None
) -> tuple[str, argparse.Namespace]:
    """The mode that the words ask for, and the values of all flags; UserError for flags that do
    not go together.
    """
    given = vars(build_parser(program, command).parse_args(words))
    if command == "tune":
        given["use_tune"] = True
    mode = mode_of(
        {name: given[flag.dest] for name, flag in FLAGS.items() if flag.dest in given}, command
    )
    return mode, argparse.Namespace(
        **{**{flag.dest: flag.default for flag in FLAGS.values()}, **given}
    )


def mode_of(given: Mapping[str, Any], command: str | None = None) -> str:
    """The mode that the given flags, with their values, ask for; UserError for flags that do not
    go together.
    """
    mode = next(
        (name for name in MODES if name in given),
        TRAIN if command is None else COMMANDS[command][0],
    )
    if mode == IMAGINE and EVAL not in given:
        raise UserError("--imagine goes with --eval_agent CKPT; leave it out for training")
    for flag in given:
        if flag not in MODES[mode]:
            remedy = _REMEDIES.get((mode, flag), "leave it out")
            word = FLAGS[flag].word(command)
            raise UserError(
                f"{word} goes with {_where(flag, command)}, not with {_called(mode, command)}; "
                f"{remedy}"
            )
    if "--render" in given and (
        more := [flag for flag in given if flag not in (EVAL, "--eval_command", "--render")]
    ):
        word = FLAGS[more[0]].word(command)
        raise UserError(
            f"{word} and --render human, which plays one episode, exclude each other; leave one out"
        )
    if mode in (TRAIN, REPRODUCE):
        check_apart(given)
        if "--ray_address" in given and given.get("--executor") != "ray":
            raise UserError("--ray_address goes with --executor ray or --use_tune; leave it out")
        if (
            len(
                alone := [
                    flag
                    for flag in ("--list", "--verify", "--ledger", "--figures", "--smoke")
                    if flag in given
                ]
            )
            > 1
        ):
            raise UserError(f"{' and '.join(alone)} exclude each other; leave one out")
    return mode


def _called(mode: str, command: str | None) -> str:
    return mode if command is None else _BY_COMMAND[mode]


def _where(flag: str, command: str | None) -> str:
    return " or ".join(_called(mode, command) for mode, flags in MODES.items() if flag in flags)
