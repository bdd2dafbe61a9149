"""The command line: ``lightning-rl``, ``python -m lightning_rl`` or ``python trainer.py``.

A first word that is no flag names a command. ``trainer.py`` also takes the flags of training,
searching and evaluating without one. Nothing heavy is imported before the arguments are checked and
a first line is printed.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import os
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from lightning_rl import __version__, flags
from lightning_rl.core.arguments import Parser, list_commands
from lightning_rl.core.catalogue import entry
from lightning_rl.core.checks import check_workers, seeds_from
from lightning_rl.core.config import check_key, keys, merged_values, parse_settings, read_settings
from lightning_rl.core.errors import UserError, user_message
from lightning_rl.core.gamenames import GAMES, folder_name, named_game, unknown_gamename
from lightning_rl.core.limits import nearest, shown, within
from lightning_rl.core.lines import guard_terminal, say
from lightning_rl.core.modules import from_file, look_in
from lightning_rl.core.stopping import Stopped, after, exit_code, stoppable
from lightning_rl.core.workers import default_workers
from lightning_rl.flags import EVAL, FIGURE, IMAGINE, REPRODUCE, SUMMARIES, TRAIN, TUNE, parse
from lightning_rl.run.runtime import import_lightning, prepare_process
from lightning_rl.run.state import check_folder_names, checkpoint_at
from lightning_rl.tools import call_experiment, tools, use

if TYPE_CHECKING:
    from lightning_rl.run.options import RunOptions

_ALMOST = 0.8  # like a name: two of ten letters are others


def _print_help(program: str) -> None:
    """The commands, with one line each."""
    parser = Parser(
        prog=program,
        description="Reinforcement-learning research on PyTorch Lightning: train, evaluate, search "
        "and compare methods.",
        epilog=f"{program} NAME --help describes a command and its flags.",
    )
    parser.add_argument("--version", action="version", version=__version__)
    list_commands(parser, {**SUMMARIES, **{name: tool.summary for name, tool in tools().items()}})
    parser.print_help()


def _main(words: Sequence[str], program: str) -> int:
    if program != "trainer.py" and (not words or words[0] in ("-h", "--help")):
        _print_help(program)
        return 0
    if not words or words[0].startswith("-"):
        mode, arguments = parse(words, program)
    elif words[0] in SUMMARIES:
        mode, arguments = parse(words[1:], program, words[0])
    else:
        use(words, program)
        return 0
    return _MODES[mode](arguments)


def _begin(line: str) -> None:
    """Prints at once what runs and where, then imports the packages that take seconds."""
    say(line)
    import_lightning()


def _figure(arguments: argparse.Namespace) -> int:
    use(["figures", *arguments.figure])
    return 0


def _evaluate(arguments: argparse.Namespace) -> int:
    path = checkpoint_at(arguments.eval_agent)
    num_workers = _num_workers(arguments)
    if arguments.render is not None:
        use(
            [
                "film",
                str(path),
                *([arguments.eval_command] if arguments.eval_command else []),
                "--window",
            ]
        )
        return 0
    _begin(f"evaluating '{path}'")
    from lightning_rl.lab.evaluate import (
        calibrate_checkpoint,
        evaluate_checkpoint,
        parse_sweep,
        print_report,
        print_sweep,
        sweep,
    )

    prepare_process()
    command = (
        "sweep" if arguments.calibrate and not arguments.eval_command else arguments.eval_command
    )
    episodes, force, swept = (
        arguments.eval_episodes,
        arguments.force,
        parse_sweep(command) is not None,
    )
    if arguments.calibrate:
        low, high = calibrate_checkpoint(path, num_workers)
        say(f"returns of {within(low, high)} can be asked for; that is kept in '{path}'")
    if swept:
        print_sweep(sweep(path, episodes or flags.SWEEP_EPISODES, num_workers, command, force))
    else:
        print_report(
            evaluate_checkpoint(
                path, episodes or flags.FINAL_EVAL_EPISODES, command, num_workers, force
            )
        )
    return 0


def _imagine(arguments: argparse.Namespace) -> int:
    path = checkpoint_at(arguments.eval_agent)
    _begin(f"imagining with '{path}'")
    from lightning_rl.lab.imagine import imagine, print_imagination

    prepare_process()
    print_imagination(
        imagine(path, arguments.eval_episodes or flags.IMAGINED_EPISODES, arguments.force)
    )
    return 0


def _train(arguments: argparse.Namespace) -> int:
    arguments.num_workers = _num_workers(arguments)
    options = run_options(arguments)
    if arguments.num_processes == 1:
        from lightning_rl.run.train import train_and_report

        return train_and_report(options)
    from lightning_rl.run.processes import train_groups

    return train_groups(options, arguments.num_processes)


def _search(arguments: argparse.Namespace) -> int:
    arguments.num_workers = arguments.num_workers or 0  # as many as its cluster has
    options = run_options(arguments)
    from lightning_rl.lab.tuning.search import tune
    from lightning_rl.lab.tuning.space import load_tune_config
    from lightning_rl.lab.tuning.trial import Plan

    settings = parse_settings(arguments.tune_settings, "--tune", "trials=20")
    config = load_tune_config(options.implementation, options.gamename, settings)
    for key in options.settings:
        if key in (*config.budget, *config.settings, *config.search):
            raise UserError(
                f"--set {key} (or its flag): the search sets it itself; leave it out, or say it "
                "with --tune"
            )
    fixed = Plan(options, config).config({})
    config = load_tune_config(options.implementation, options.gamename, settings, fixed.unread())
    reload = (
        None if options.reload is None else options.reload.resolve()
    )  # trials work in folders of their own
    trials = dataclasses.replace(
        options, logdir=options.logdir.resolve(), reload=reload, ray_address=None
    )
    return tune(Plan(trials, config, options.ray_address), options.resume)


def _reproduce(arguments: argparse.Namespace) -> int:
    return call_experiment("reproduce.command:reproduce", arguments, _main_of_file)


def _main_of_file(words: Sequence[str], program: str) -> int:
    """``main`` for the words of a claim, which nobody typed."""
    with from_file():
        return main(words, program)


_MODES: dict[str, Callable[[argparse.Namespace], int]] = {
    FIGURE: _figure,
    IMAGINE: _imagine,
    EVAL: _evaluate,
    TUNE: _search,
    TRAIN: _train,
    REPRODUCE: _reproduce,
}


def _num_workers(arguments: argparse.Namespace) -> int:
    """--num_workers, or its default; UserError for more than there are cores."""
    return check_workers(
        default_workers() if arguments.num_workers is None else arguments.num_workers
    )


def with_flags(settings: Mapping[str, Any], meant: Mapping[str, tuple[str, Any]]) -> dict[str, Any]:
    """``--set`` with the flags that mean the same, ``{flag: (key, value or None)}``; UserError
    where both say something else.
    """
    merged = dict(settings)
    for flag, (key, value) in meant.items():
        if value is not None and merged.setdefault(key, value) != value:
            raise UserError(
                f"{flag} contradicts --set {key}={shown(merged[key])}; leave one of them out"
            )
    return merged


def _check_gamename(name: str) -> None:
    """UserError for a name that neither this package nor Gymnasium, nor a module that Gymnasium
    imports, can know.

    Gymnasium is loaded only for a name that is not almost one of this package: ``MountainCar`` is
    MountainCar-v0.
    """
    if named_game(name) is None and ":" not in name and not re.search(r"-v\d+$", name):
        if nearest(name, GAMES, _ALMOST) is not None:
            raise unknown_gamename(name)
        from lightning_rl.envs.spec import env_spec

        env_spec(name)


def run_options(arguments: argparse.Namespace) -> RunOptions:
    """The options of a training run, checked as far as that goes without the packages that
    train.
    """
    found = entry(arguments.implementation)
    method, known = found.name, keys(found)
    meant = {f"--{key}": (key, getattr(arguments, key)) for key in ("max_epochs", "eval_episodes")}
    if arguments.no_expo_weighting:
        if "weights" not in known:
            raise UserError(
                f"--no_expo_weighting: {method} has no exponential weights; leave it out"
            )
        meant["--no_expo_weighting"] = ("weights", "none")
    settings = with_flags(parse_settings(arguments.settings), meant)
    for key in settings:
        check_key("--set", key, known)
    merged_values(
        method, arguments.gamename, arguments.preset
    )  # so that an unknown preset is refused at once
    config = {} if arguments.config is None else read_settings(arguments.config, method)
    reload = None if arguments.reload is None else checkpoint_at(arguments.reload)
    check_folder_names(arguments.exp_name, arguments.gamename)
    _check_gamename(arguments.gamename)
    first, *others = seeds_from(arguments.seed, arguments.num_seeds)
    seeds = f"seed {first}" + (f" to {others[-1]}" if others else "")
    folder = arguments.logdir / folder_name(arguments.gamename) / arguments.exp_name / method
    helpers = f"{arguments.num_workers} worker{'s' * (arguments.num_workers != 1)}"
    _begin(
        f"{method} on {arguments.gamename}, {seeds}, accelerator {arguments.accelerator}, "
        f"{helpers}: {folder}"
    )
    from lightning_rl.run.options import RunOptions

    same = {field.name for field in dataclasses.fields(RunOptions)} & vars(arguments).keys()
    made = {
        "implementation": method,
        "config": config,
        "settings": settings,
        "reload": reload,
        "checkpoint": not arguments.no_checkpoint,
    }
    return RunOptions(**{name: getattr(arguments, name) for name in same} | made)


def _resumable(words: Sequence[str]) -> bool:
    """Whether --resume goes on with what the words of a command line began."""
    if "--no_checkpoint" in words:
        return False
    return (
        words[0] in ("train", "tune")
        if words and not words[0].startswith("-")
        else not {FIGURE, EVAL} & set(words)
    )


def main(argv: Sequence[str] | None = None, program: str = "trainer.py") -> int:
    """Runs the command line; the exit code. Errors of the user are one line and code 2.

    program: what the user typed, ``trainer.py`` or the name of the command.
    """
    guard_terminal()
    words = list(sys.argv[1:] if argv is None else argv)
    try:
        with stoppable():
            return _main(words, program)
    except KeyboardInterrupt as stop:
        resumes = (
            f": --resume {stop.resumes if isinstance(stop, Stopped) else 'goes on'}"
            if _resumable(words)
            else ""
        )
        say(f"left at once; what is written is whole{resumes}", error=True)
        return exit_code(stop)
    except Exception as error:
        if (message := user_message(error, _resumable(words))) is None:
            raise
        say(f"error: {message}", error=True)
        return 2


def leave(code: int) -> NoReturn:
    """Ends the process; after a signal in good time, whatever still waits for whom."""
    if code > 128:
        after(1.0, os._exit, code)
    sys.exit(code)


def entry_point() -> NoReturn:
    """``lightning-rl``, ``python -m lightning_rl`` or ``trainer.py``; of the present folder only
    typed modules are run.
    """
    with contextlib.suppress(OSError):  # it may have been deleted
        look_in(str(Path.cwd()))
    name = Path(sys.argv[0]).name
    leave(main(program="python -m lightning_rl" if name == "__main__.py" else name))
