"""What the modes of the command line do. Nothing heavy is imported before the arguments are
checked and a first line is printed.
"""

from __future__ import annotations

import dataclasses
import re
from argparse import Namespace
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from lightning_rl.cli.flags import FINAL_EVAL_EPISODES, IMAGINED_EPISODES, SWEEP_EPISODES, Mode
from lightning_rl.cli.tools import use
from lightning_rl.core.catalogue import entry
from lightning_rl.core.checks import check_workers
from lightning_rl.core.config import (
    check_key,
    keys,
    merged_values,
    parse_settings,
    read_settings,
    require_offline,
)
from lightning_rl.core.errors import UserError
from lightning_rl.core.gamenames import GAMES, named_game, unknown_gamename
from lightning_rl.core.limits import nearest, shown, within
from lightning_rl.core.lines import say
from lightning_rl.core.modules import of_modules
from lightning_rl.core.workers import default_workers
from lightning_rl.run.imports import import_lightning
from lightning_rl.run.options import OPTIONS, RunOptions, checked
from lightning_rl.run.runtime import prepare_process
from lightning_rl.run.state import checkpoint_at, refuse_second

_ALMOST = 0.8  # like a name: two of ten letters are others


def _begin(line: str) -> None:
    """Prints at once what runs and where, then imports the packages that take seconds."""
    say(line)
    import_lightning()


def _figure(arguments: Namespace) -> int:
    use(["figures", *arguments.figure])
    return 0


def _evaluate(arguments: Namespace) -> int:
    path = checkpoint_at(arguments.eval_agent)
    num_workers = default_workers() if arguments.num_workers is None else arguments.num_workers
    check_workers(num_workers)
    command = arguments.eval_command
    if arguments.render is not None:
        commands = [command] if command else []
        use(["film", str(path), *commands, "--window"])
        return 0
    _begin(f"evaluating '{path}'")
    from lightning_rl.lab.calibration import calibrate_checkpoint
    from lightning_rl.lab.evaluate import evaluate_checkpoint, print_report
    from lightning_rl.lab.sweeps import print_sweep, sweep
    from lightning_rl.lab.words import parse_sweep

    prepare_process()
    if arguments.calibrate and not command:
        command = "sweep"
    sweeps = parse_sweep(command) is not None
    if arguments.calibrate:
        low, high = calibrate_checkpoint(path, num_workers)
        say(f"returns of {within(low, high)} can be asked for; that is kept in '{path}'")
    if sweeps:
        episodes = arguments.eval_episodes or SWEEP_EPISODES
        print_sweep(sweep(path, episodes, num_workers, command, arguments.force))
    else:
        episodes = arguments.eval_episodes or FINAL_EVAL_EPISODES
        print_report(evaluate_checkpoint(path, episodes, command, num_workers, arguments.force))
    return 0


def _imagine(arguments: Namespace) -> int:
    path = checkpoint_at(arguments.eval_agent)
    _begin(f"imagining with '{path}'")
    from lightning_rl.lab.imagine import imagine, print_imagination

    prepare_process()
    episodes = arguments.eval_episodes or IMAGINED_EPISODES
    print_imagination(imagine(path, episodes, arguments.force))
    return 0


def _train(arguments: Namespace) -> int:
    if arguments.num_workers is not None:
        check_workers(arguments.num_workers)
    if arguments.ray_address is not None and arguments.executor != "ray":
        raise UserError("--ray_address goes with --executor ray or --use_tune; leave it out")
    options = run_options(arguments)
    if not options.resume:
        for run in options.single_runs():
            refuse_second(run.run_dir)
    begin_run(options)
    if arguments.num_processes == 1:
        from lightning_rl.run.train import train_and_report

        return train_and_report(options)
    from lightning_rl.run.processes import train_groups

    return train_groups(options, arguments.num_processes)


def _search(arguments: Namespace) -> int:
    arguments.num_workers = arguments.num_workers or 0  # as many as its cluster has
    resume = arguments.resume
    arguments.resume = False  # the search goes on, not the runs whose options these are
    options = run_options(arguments)
    begin_run(options)
    from lightning_rl.lab.tuning.search import tune
    from lightning_rl.lab.tuning.space import load_tune_config
    from lightning_rl.lab.tuning.trial import Plan
    from lightning_rl.run.datasets import load_dataset
    from lightning_rl.run.run_config import run_config

    settings = parse_settings(arguments.tune_settings, "--tune", "trials=20")
    ignored_keys: Mapping[str, str] = {}
    if options.dataset is not None:
        load_dataset(options.dataset, options.gamename)  # before the work
        ignored_keys = run_config(options).ignored_keys()
    config = load_tune_config(options.implementation, options.gamename, settings, ignored_keys)
    if options.dataset is not None:
        config.require_offline()
    for key in options.settings:
        if key in (*config.budget, *config.settings, *config.search):
            raise UserError(
                f"--set {key} (or its flag): the search sets it itself; leave it out, or say it "
                "with --tune"
            )
    fixed = Plan(options, config).config({})
    config = load_tune_config(
        options.implementation, options.gamename, settings, fixed.ignored_keys()
    )
    reload, dataset = options.reload, options.dataset  # trials work in folders of their own
    if reload is not None:
        reload = reload.resolve()
    if dataset is not None and Path(dataset).exists():
        dataset = str(Path(dataset).resolve())
    logdir = options.logdir.resolve()
    trials = dataclasses.replace(
        options, logdir=logdir, reload=reload, dataset=dataset, ray_address=None
    )
    return tune(Plan(trials, config, options.ray_address), resume)


ACTIONS: dict[Mode, Callable[[Namespace], int]] = {
    Mode.FIGURE: _figure,
    Mode.IMAGINE: _imagine,
    Mode.EVAL: _evaluate,
    Mode.TUNE: _search,
    Mode.TRAIN: _train,
}
"""What each does with its flags; the exit code."""


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
    if named_game(name) is not None or ":" in name:
        return
    if not re.search(r"-v\d+$", name) and nearest(name, GAMES, _ALMOST) is not None:
        raise unknown_gamename(name)
    from lightning_rl.gym import registered

    registered(name)


def _settings(arguments: Namespace, method: str, known: Sequence[str]) -> dict[str, Any]:
    """``--set`` and the flags that mean the same as a key."""
    meant = {f"--{key}": (key, getattr(arguments, key)) for key in ("max_epochs", "eval_episodes")}
    if arguments.no_expo_weighting:
        if "weights" not in known:
            raise UserError(
                f"--no_expo_weighting: {method} has no exponential weights; leave it out"
            )
        meant["--no_expo_weighting"] = ("weights", "none")
    settings = with_flags(parse_settings(arguments.settings), meant)
    for key in settings:
        if not of_modules():  # whose parts may have keys of their own, see UpsideDownConfig
            check_key("--set", key, known)
    return settings


def run_options(arguments: Namespace) -> RunOptions:
    """The options of a training run, checked as far as that goes without the packages that
    train.
    """
    found = entry(arguments.implementation)
    given = {name: value for name, value in vars(arguments).items() if value is not None}
    values = {name: value for name, value in given.items() if name in OPTIONS}
    values["implementation"] = found.name
    values["settings"] = _settings(arguments, found.name, keys(found))
    merged_values(found.name, arguments.gamename, arguments.preset)  # an unknown preset is refused
    values["config"] = {}
    if arguments.config is not None:
        values["config"] = read_settings(arguments.config, found.name)
    if arguments.dataset is not None:
        require_offline(found)
    values["checkpoint"] = not arguments.no_checkpoint
    options = checked(RunOptions(**values))
    _check_gamename(options.gamename)
    return options


def begin_run(options: RunOptions) -> None:
    """Prints what will be trained, then imports the packages that train."""
    seeds = f"seed {options.seed}"
    if options.num_seeds > 1:
        seeds += f" to {options.seed + options.num_seeds - 1}"
    what = [f"{options.implementation} on {options.gamename}", seeds]
    what.append(f"accelerator {options.accelerator}")
    if options.num_workers is not None:
        what.append(f"num_workers {options.num_workers}")
    _begin(f"{', '.join(what)}: {options.run_dir.parent}")
