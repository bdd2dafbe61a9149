"""Whether a run may go on where an earlier one ended."""

from __future__ import annotations

import dataclasses
from contextlib import suppress
from pathlib import Path
from typing import Any

from lightning_rl.core.config import OFFLINE
from lightning_rl.core.errors import UserError
from lightning_rl.core.files import was_there
from lightning_rl.core.schema import MethodConfig
from lightning_rl.core.yaml_files import read_yaml
from lightning_rl.methods.restoring import first_change
from lightning_rl.run.checkpoints import committed, read_checkpoint
from lightning_rl.run.options import RunOptions
from lightning_rl.run.state import (
    CONFIG,
    LAST,
    checkpoint_at,
    first_start,
    read_state,
    refuse_second,
)

_COUNTED = {"max_env_steps": "env_steps", "max_episodes": "episodes"}
"""The budgets of a run, and what counts them."""


def checkpoint_to_resume(options: RunOptions, config: MethodConfig) -> Path | None:
    """The checkpoint to resume from, None for a new run; UserError where either would mix or
    overwrite runs.
    """
    seeds = options.single_runs()
    lasts = committed([run.run_dir / LAST for run in seeds])
    resumed = [_may_resume(run, last, config) for run, last in zip(seeds, lasts, strict=True)]
    if not any(resumed):
        return None
    if not all(resumed):
        missing = seeds[resumed.index(False)].run_dir
        raise UserError(
            f"--resume: '{missing}' has no {LAST} but another seed has; resume those seeds that "
            "have one"
        )
    return options.run_dir / LAST


def begun_again(options: RunOptions) -> RunOptions:
    """The options of a run to resume that has no checkpoint yet: with the ``reload`` that its
    first start had, if any.
    """
    start = first_start(options.run_dir).get("reload")
    if not isinstance(start, str):
        return options
    return dataclasses.replace(options, reload=checkpoint_at(Path(start)))


def _may_resume(options: RunOptions, last: Path, config: MethodConfig) -> bool:
    """Whether the run of a seed is resumed from ``last``."""
    if not options.resume:
        refuse_second(options.run_dir)
        return False
    if not last.exists():
        _refuse_to_begin_again(options, config)
        return False
    checkpoint = read_checkpoint(last)
    before = checkpoint["hyper_parameters"]
    if before["implementation"] != options.implementation or before["gamename"] != options.gamename:
        raise UserError(
            f"'{last}' is of {before['implementation']} on {before['gamename']}; choose another "
            "--exp_name"
        )
    if before["seed"] != options.seed:
        raise UserError(
            f"--resume: '{last}' is of seed {before['seed']}, this run's is {options.seed}; move "
            "it back to "
            f"seed_{before['seed']}, or start anew from its weights with --reload"
        )
    now = dataclasses.asdict(config)
    changed = first_change(before["config"], now)
    if changed is not None:
        key, old, new = changed
        remedy = "use the same settings"
        if key == OFFLINE and options.dataset is None:
            remedy = "give its --dataset again"
        raise UserError(
            f"--resume: {key} is {new} now but {old} in '{last}'; {remedy}, or another --exp_name "
            "for a new run"
        )
    done = checkpoint.get("epoch", -1) + 1
    if done > config.epoch_budget:
        raise UserError(
            f"--resume: '{last}' has done {done} epochs, more than the {config.epoch_budget} that "
            "are asked for; "
            f"ask for {done} or more, or --eval_agent it"
        )
    _refuse_less(config, checkpoint, last)
    return True


def _refuse_to_begin_again(options: RunOptions, config: MethodConfig) -> None:
    """UserError where there is no checkpoint to resume from, but the directory is not just what an
    attempt left that was killed.

    An attempt that had no time to write its first ``last.ckpt`` is begun anew, with the same
    settings: it makes the same files.
    """
    folder = options.run_dir
    remedy = "start anew under another --exp_name or --seed, or move that folder away"
    if best := sorted(folder.glob("epoch=*.ckpt")):
        remedy = f"{remedy}; --reload '{best[-1]}' begins with the weights of that"
    finished = read_state(folder)[0] == "finished"
    if finished or was_there(folder / LAST):
        raise UserError(
            f"--resume: '{folder}' holds a run whose {LAST} is gone, so that it cannot go on; "
            f"{remedy}"
        )
    if not (folder / CONFIG).exists():
        return
    try:
        before = read_yaml(folder / CONFIG)["config"]
    except (UserError, KeyError, TypeError, IndexError):
        return  # it is no run's, which is said before it would be overwritten
    if not isinstance(before, dict):
        return
    now = dataclasses.asdict(config)
    changed = first_change(before, now)
    if changed is not None:
        key, old, new = changed
        raise UserError(
            f"--resume: {key} is {new} now but {old} in '{folder / CONFIG}'; use the same "
            f"settings, or {remedy}"
        )


def _refuse_less(config: MethodConfig, checkpoint: dict[str, Any], last: Path) -> None:
    """UserError for a new budget of fewer steps or episodes than are done."""
    for key, counter in _COUNTED.items():
        asked = getattr(config, key, None)
        before = checkpoint["hyper_parameters"]["config"].get(key)
        done = _count(checkpoint["state_dict"], counter)
        if asked not in (None, before) and asked < done:
            raise UserError(
                f"--resume: '{last}' has {counter} {done:,}, more than {key}={asked:,}; ask for "
                f"{done} or more"
            )


def _count(weights: Any, counter: str) -> int:
    """What a checkpoint has counted; 0 where that is no count, which is refused when it is
    loaded.
    """
    value: Any = weights.get(counter) if isinstance(weights, dict) else None
    with suppress(ValueError, TypeError, RuntimeError, OverflowError):
        return int(value)
    return 0
