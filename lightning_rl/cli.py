"""The command line: ``python trainer.py``, ``lightning-rl`` or ``python -m lightning_rl``.

Flags train and evaluate; a first word that is no flag names one of ``tools.TOOLS``.
"""

from __future__ import annotations

import argparse
import dataclasses
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from lightning_rl import __version__
from lightning_rl.core.arguments import Parser, add_force, check_folder_name, checked_path, count, non_negative, whole
from lightning_rl.core.config import has_key, parse_settings, read_settings
from lightning_rl.core.failures import explained
from lightning_rl.core.files import disk_full
from lightning_rl.core.gamenames import GAMES, folder_name
from lightning_rl.core.limits import EPISODES, SEED, SEEDS, WHOLE
from lightning_rl.core.types import UserError
from lightning_rl.core.workers import cores
from lightning_rl.evolution.executors import EXECUTORS
from lightning_rl.lab.evaluate import evaluate, parse_sweep, print_report, print_sweep, sweep
from lightning_rl.lab.imagine import imagine, print_imagination
from lightning_rl.methods.registry import ALIASES, IMPLEMENTATIONS, canonical, implementation
from lightning_rl.modes import mode_of, resumable, with_flags
from lightning_rl.run.processes import train_groups
from lightning_rl.run.train import RunOptions, load_config, train

FINAL_EVAL_EPISODES = 100
IMAGINED_EPISODES = 200
SWEEP_EPISODES = 30  # for each of its commands


def _interval(text: str) -> int:
    if (value := whole(-1, WHOLE)(text)) == 0:
        raise argparse.ArgumentTypeError(f"{value} is not an interval, it must be 1 or more, or -1 for never")
    return value


def _process_count(text: str) -> int:
    value, most = count(text), cores()
    if value > most:
        raise argparse.ArgumentTypeError(f"{value} processes on {most} cores, it must be {most} or fewer")
    return value


def build_parser() -> Parser:
    """All flags, in groups."""
    parser = Parser(
        prog="trainer.py",
        description="Train, resume and evaluate reinforcement-learning methods.",
        epilog="Everything lands under LOGDIR/GAMENAME/EXP_NAME/IMPLEMENTATION/seed_N/.",
    )
    parser.add_argument("--version", action="version", version=__version__)
    run = parser.add_argument_group("what to run")
    run.add_argument(
        "--implementation",
        default="UDRL",
        metavar="NAME",
        help=f"method (default UDRL): {', '.join(IMPLEMENTATIONS)}; for short: {', '.join(ALIASES)}",
    )
    run.add_argument(
        "--gamename",
        default="lunarlander",
        metavar="NAME",
        help=f"environment (default lunarlander): {', '.join(GAMES)}; or any Gymnasium id, or my_package:MyEnv-v0",
    )
    run.add_argument("--exp_name", default="default", metavar="NAME", help="folder of the experiment (default: default)")
    run.add_argument("--seed", type=whole(0, SEED), default=25, metavar="N", help="seed of the run (default 25)")
    run.add_argument(
        "--num_seeds",
        type=whole(1, SEEDS),
        default=1,
        metavar="N",
        help="agents only: train the seeds SEED .. SEED+N-1 at once, one folder each; "
        "same results as alone up to rounding (default 1)",
    )
    run.add_argument("--preset", metavar="NAME", help="a block under presets: in the method's config, e.g. a paper's own values")
    run.add_argument("--max_epochs", type=count, metavar="N", help="same as --set max_epochs=N")
    run.add_argument(
        "--set",
        dest="settings",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="override a key of the config; repeatable",
    )
    run.add_argument(
        "--config", type=checked_path, metavar="YAML", help="keys of the config from a run's config.yaml or a search's best.yaml"
    )
    run.add_argument("--no_expo_weighting", action="store_true", help="same as --set exp_weights=false (RCP-R and RCP-A)")
    place = parser.add_argument_group("where and how")
    place.add_argument(
        "--logdir", type=checked_path, default=Path("exp_dir"), metavar="DIR", help="root of all results (default exp_dir)"
    )
    place.add_argument(
        "--num_workers",
        type=non_negative,
        metavar="N",
        help="roll-out processes, or those that evaluate a population; 0: none besides this one; same results "
        "(default 1; with --use_tune those of each trial, default 0)",
    )
    place.add_argument(
        "--num_processes",
        type=_process_count,
        default=1,
        metavar="N",
        help="train the seeds of --num_seeds in N groups, a process each; same results up to rounding (default 1)",
    )
    place.add_argument(
        "--accelerator",
        choices=("cpu", "gpu", "auto"),
        default="cpu",
        help="where networks train (default cpu, the fastest for small ones); auto: a GPU if there is one and the method can use "
        "it: UDRL, RCP and policy gradients; all others train on the CPU",
    )
    place.add_argument(
        "--executor", choices=tuple(EXECUTORS), default="serial",
        help="where SE and RN evaluate their populations; same results up to rounding: "
        "serial in NUM_WORKERS processes, ray on a cluster",
    )  # fmt: skip
    place.add_argument("--ray_address", metavar="HOST:PORT", help="of a running Ray cluster (default: one is started here)")
    keep = parser.add_argument_group("checkpoints and recordings")
    keep.add_argument(
        "--resume", action="store_true", help="go on from last.ckpt in the run directory, or start if there is none"
    )
    keep.add_argument("--reload", type=checked_path, metavar="CKPT", help="start a new run from the weights of a checkpoint")
    keep.add_argument("--no_checkpoint", action="store_true", help="write no checkpoints")
    keep.add_argument(
        "--recording_epoch_interval",
        type=_interval,
        default=-1,
        metavar="N",
        help="film the policy every N epochs (default -1: never)",
    )
    tune = parser.add_argument_group("hyper-parameter search")
    tune.add_argument(
        "--use_tune",
        action="store_true",
        help="search with Ray Tune, as the tune: block of the method's config says; see --resume",
    )
    tune.add_argument(
        "--tune",
        dest="tune_settings",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="override a key of the tune: block: algorithm=asha|bohb|optuna, trials, seeds, budget, reports, search; repeatable",
    )
    test = parser.add_argument_group("evaluation")
    test.add_argument(
        "--eval_agent", type=checked_path, metavar="CKPT", help="evaluate a checkpoint: table, evaluation.json and a film with it"
    )
    test.add_argument(
        "--eval_episodes",
        type=whole(1, EPISODES),
        metavar="N",
        help=f"episodes per mode (default {FINAL_EVAL_EPISODES}; in training: of the config)",
    )
    test.add_argument(
        "--eval_command",
        metavar="NAME=VALUE,...",
        help="command for --eval_agent, e.g. return=250,horizon=300 or advantage=1.5, or 'sweep' "
        "(or sweep=LOW:HIGH) for a table and picture of "
        "obtained against commanded (default: the checkpoint's)",
    )
    test.add_argument(
        "--imagine",
        action="store_true",
        help="of model-based checkpoints: the model's roll-outs beside the real ones, as a picture, and the error of each step",
    )
    add_force(test, "files beside the checkpoint")
    show = parser.add_argument_group("figures")
    show.add_argument(
        "--figure",
        nargs=argparse.REMAINDER,
        metavar="NAME ...",
        help="draw a figure instead: the same as lightning-rl figures NAME ...",
    )
    return parser


def _num_workers(arguments: argparse.Namespace) -> int:
    """--num_workers, or its default; UserError for more than there are cores. A search has those of its cluster."""
    if arguments.use_tune:
        return arguments.num_workers or 0
    value, most = arguments.num_workers, cores()
    if value is not None and value > most:
        raise UserError(f"--num_workers: {value} workers on {most} cores, it must be {most} or fewer")
    return 1 if value is None else value


def run_options(arguments: argparse.Namespace) -> RunOptions:
    """The options of a training run."""
    method = canonical(arguments.implementation)
    schema = implementation(method).config
    flags = {f"--{key}": (key, getattr(arguments, key)) for key in ("max_epochs", "eval_episodes")}
    if arguments.no_expo_weighting:
        if not has_key(schema, "exp_weights"):
            raise UserError(f"--no_expo_weighting: {method} has no exponential weights; leave it out")
        flags["--no_expo_weighting"] = ("exp_weights", False)
    settings = with_flags(
        parse_settings(arguments.settings), {flag: (key, value) for flag, (key, value) in flags.items() if value is not None}
    )
    check_folder_name("--exp_name", arguments.exp_name)
    check_folder_name("--gamename", folder_name(arguments.gamename))
    if arguments.seed + arguments.num_seeds - 1 > SEED:
        raise UserError(f"--seed {arguments.seed} --num_seeds {arguments.num_seeds}: the last seed is beyond {SEED:,}; lower it")
    return RunOptions(
        implementation=method,
        gamename=arguments.gamename,
        exp_name=arguments.exp_name,
        seed=arguments.seed,
        num_seeds=arguments.num_seeds,
        preset=arguments.preset,
        num_workers=arguments.num_workers,
        logdir=arguments.logdir,
        config={} if arguments.config is None else read_settings(arguments.config, method),
        settings=settings,
        accelerator=arguments.accelerator,
        executor=arguments.executor,
        ray_address=arguments.ray_address,
        checkpoint=not arguments.no_checkpoint,
        recording_epoch_interval=arguments.recording_epoch_interval,
        reload=arguments.reload,
        resume=arguments.resume,
    )


def _use_tool(words: Sequence[str]) -> int:
    from lightning_rl.tools import use  # pandas and matplotlib, which training does without

    use(words)
    return 0


def _main(argv: Sequence[str]) -> int:
    if argv and not argv[0].startswith("-"):
        return _use_tool(argv)
    arguments, given = build_parser().parse_given(argv)
    mode = mode_of(given)
    if mode == "--figure":
        return _use_tool(["figures", *arguments.figure])
    arguments.num_workers = _num_workers(arguments)
    if mode == "--imagine":
        print_imagination(imagine(arguments.eval_agent, arguments.eval_episodes or IMAGINED_EPISODES, arguments.force))
        return 0
    if mode == "--eval_agent":
        episodes = arguments.eval_episodes or FINAL_EVAL_EPISODES
        if (swept := parse_sweep(arguments.eval_command)) is not None:
            each = arguments.eval_episodes or SWEEP_EPISODES
            print_sweep(sweep(arguments.eval_agent, each, arguments.num_workers, *swept, force=arguments.force))
        else:
            print_report(evaluate(arguments.eval_agent, episodes, arguments.eval_command, arguments.num_workers, arguments.force))
        return 0
    if mode == "--use_tune":
        return _search(arguments)
    options = run_options(arguments)
    return train(options) if arguments.num_processes == 1 else train_groups(options, arguments.num_processes)


def _search(arguments: argparse.Namespace) -> int:
    from lightning_rl.lab.tuning.search import tune
    from lightning_rl.lab.tuning.space import load_tune_config
    from lightning_rl.lab.tuning.trial import Plan

    options = run_options(arguments)
    settings = parse_settings(arguments.tune_settings, "--tune", "trials=20")
    config = load_tune_config(options.implementation, options.gamename, settings)
    for key in options.settings:
        if key in (*config.budget, *config.settings, *config.search):
            raise UserError(f"--set {key} (or its flag): the search sets it itself; leave it out, or say it with --tune")
    fixed = dataclasses.replace(options, settings={**options.settings, **config.settings})
    config = load_tune_config(options.implementation, options.gamename, settings, load_config(fixed).unread())
    trials = dataclasses.replace(options, logdir=options.logdir.resolve(), ray_address=None)
    return tune(Plan(trials, config, options.ray_address), options.resume)


def _thread_failed(failure: threading.ExceptHookArgs) -> None:
    """A full disk in TensorBoard's writer thread is reported once, when the main thread meets it."""
    if not disk_full(failure.exc_value):
        threading.__excepthook__(failure)


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line; the exit code. Errors of the user are one line and code 2."""
    threading.excepthook = _thread_failed
    words = list(sys.argv[1:] if argv is None else argv)
    try:
        return _main(words)
    except KeyboardInterrupt:
        print("left at once; what is written is whole: --resume, or the same evaluate command, goes on", file=sys.stderr)
        return 130
    except Exception as error:
        if (message := explained(error, resumable(words))) is None:
            raise
        print(f"error: {message}", file=sys.stderr)
        return 2


def entry_point() -> NoReturn:
    """The ``lightning-rl`` command."""
    sys.exit(main())
