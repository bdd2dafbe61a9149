"""What is asked of a run. Light: the flags of the command line are made from it."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, get_type_hints

from lightning_rl.core.checks import seeds_from
from lightning_rl.core.errors import UserError
from lightning_rl.core.gamenames import folder_name
from lightning_rl.core.kinds import (
    Choice,
    Interval,
    Kind,
    Name,
    Truth,
    Whole,
    checked_path,
    count,
    gamename,
    non_negative,
    number,
    source,
)
from lightning_rl.core.limits import SEED, SEEDS
from lightning_rl.run.state import check_folder_names, checkpoint_at


@dataclasses.dataclass(frozen=True)
class RunOptions:
    """What is asked of a run: what ``lightning_rl.train`` takes by name, and the flags of
    ``trainer.py``.

    Attributes:
        implementation: the method's name, e.g. ``"RCP-A"``.
        gamename: the environment: a name of this project, a Gymnasium id, or ``module:Id-v0``.
        exp_name: a folder for runs that belong together.
        seed: of the run; all its randomness follows from it.
        num_seeds: how many runs, of seeds ``seed``, ``seed + 1``, .., are trained at once in one
            stack.
        preset: a named block of the method's configs.
        num_workers: processes that play episodes, and as many for evaluation, 0 for none besides
            this one; results do not depend on it. None: 2 where there are two cores, but 1 for the
            population of SE, RN or SD and where seeds train in several processes.
        logdir: the folder of all results.
        settings: values of config keys, above all others.
        accelerator: ``"cpu"``, ``"gpu"`` or ``"auto"``.
        checkpoint: whether checkpoints are written.
        executor: where a population is evaluated: ``"serial"`` or ``"ray"``.
        ray_address: of a running Ray cluster; None starts one here.
        recording_epoch_interval: films a sampled and a greedy episode every so many epochs; -1 for
            never.
        reload: a checkpoint whose policy the run starts from, a run directory, or the name of an
            agent of the package.
        resume: whether the run continues from its ``last.ckpt``, if there is one.
        dataset: episodes to learn from instead of playing (UDRL, RCP-R, RCP-A): a Minari dataset,
            by its folder or id; a run directory, with the episodes that its checkpoint keeps; or a
            list of ``Episode``.
        config: values of config keys, below ``settings``, e.g. those of another run's
            ``config.yaml``.
        stop_return: stops the run when its mean evaluation return has been this or more in
            ``stop_evaluations`` evaluations in a row; None: only the budget does.
        stop_evaluations: see ``stop_return``.
    """

    implementation: str = "UDRL"
    gamename: Annotated[str, gamename] = "lunarlander"
    exp_name: Annotated[str, Name("'default'")] = "default"
    seed: Annotated[int, Whole(0, SEED)] = 25
    num_seeds: Annotated[int, Whole(1, SEEDS)] = 1
    preset: str | None = None
    num_workers: Annotated[int | None, non_negative] = None
    logdir: Annotated[Path, checked_path] = Path("exp_dir")
    settings: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    accelerator: Annotated[str, Choice("cpu", "gpu", "auto")] = "cpu"
    checkpoint: Annotated[bool, Truth()] = True
    executor: Annotated[str, Choice("serial", "ray")] = "serial"
    ray_address: Annotated[str | None, Name("'10.0.0.5:6379'")] = None
    recording_epoch_interval: Annotated[int, Interval(-1)] = -1
    reload: Annotated[Path | None, checked_path] = None
    resume: Annotated[bool, Truth()] = False
    dataset: Annotated[Any, source] = None
    config: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    stop_return: Annotated[float | None, number] = None
    stop_evaluations: Annotated[int, count] = 1

    @property
    def run_dir(self) -> Path:
        game = self.logdir / folder_name(self.gamename)
        return game / self.exp_name / self.implementation / f"seed_{self.seed}"

    def single_runs(self) -> list[RunOptions]:
        """The run of each seed: seed, seed + 1, .."""
        return [
            dataclasses.replace(self, seed=self.seed + n, num_seeds=1)
            for n in range(self.num_seeds)
        ]


OPTIONS = {field.name: field for field in dataclasses.fields(RunOptions)}
KINDS: dict[str, Kind] = {
    name: hint.__metadata__[0]
    for name, hint in get_type_hints(RunOptions, include_extras=True).items()
    if hasattr(hint, "__metadata__")
}
"""What the values of an option are, by its name."""


def checked(options: RunOptions) -> RunOptions:
    """The options with each value as Python's own and ``reload`` as the path of a file; UserError
    for those that cannot be, or not together.
    """
    values: dict[str, Any] = {}
    for name, kind in KINDS.items():
        value = getattr(options, name)
        if value is not None or OPTIONS[name].default is not None:
            values[name] = kind.check(f"--{name}", value)
    options = dataclasses.replace(options, **values)
    seeds_from(options.seed, options.num_seeds)
    if options.resume and options.reload is not None:
        raise UserError(
            "--resume and --reload exclude each other: a resumed run goes on with its own weights; "
            "leave one out"
        )
    if options.resume and not options.checkpoint:
        raise UserError(
            "--resume and --no_checkpoint exclude each other: without checkpoints there is nothing "
            "to go on from; leave one out"
        )
    if options.stop_return is None and options.stop_evaluations != 1:
        raise UserError("--stop_evaluations goes with --stop_return R; leave it out")
    check_folder_names(options.exp_name, options.gamename)
    if options.reload is not None:
        options = dataclasses.replace(options, reload=checkpoint_at(options.reload))
    return options
