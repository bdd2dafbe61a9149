"""Checks of what a Python caller gives, many of which the command line shares. Nothing heavy is
imported.
"""

from __future__ import annotations

import functools
import numbers
import operator
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from lightning_rl.core.errors import UserError
from lightning_rl.core.extras import is_installed
from lightning_rl.core.limits import (
    NAME_BYTES,
    PATH_BYTES,
    SEED,
    SEEDS,
    WHOLE,
    shorten,
    shown,
)
from lightning_rl.core.lines import say
from lightning_rl.core.workers import check_may_start, cores

EPISODE_SEED = 2**63 - 1
NOT_RESET = "this environment has no state yet; call reset() first"


def whole_number(name: str, value: Any, low: int, high: int = WHOLE) -> int:
    """A whole number, also 1e3 or one of numpy's, as Python's own, which checkpoints hold;
    UserError for anything else.
    """
    found = _as_whole(value)
    if found is None or not low <= found <= high:
        raise UserError(f"{name} {shown(value)}: it must be a whole number from {low} to {high:,}")
    return found


def _as_whole(value: Any) -> int | None:
    if _is_truth(value):
        return None
    if isinstance(value, numbers.Integral):
        try:
            return operator.index(value)
        except TypeError:  # a span of time, which NumPy counts among whole numbers
            return None
    number = one_number(value)
    return int(number) if number is not None and number.is_integer() else None


def one_number(value: Any) -> float | None:
    """A number, also that of an array or tensor of one, as Python's own; None for anything else."""
    try:
        kind = getattr(getattr(value, "dtype", None), "kind", None)
        if kind == "m":  # a span of time
            return None
        if hasattr(value, "item"):
            value = value.item()
        return float(value) if isinstance(value, numbers.Real) else None
    # more than one number, one beyond double precision, or whatever a class of the user's raises
    except Exception:
        return None


def episode_seed(seed: Any) -> int | None:
    """The seed of an episode as Gymnasium takes it, or None; UserError for anything else."""
    return None if seed is None else whole_number("seed", seed, 0, EPISODE_SEED)


def reset_options(options: Any) -> dict[str, Any] | None:
    """Options of an episode; UserError for anything but a dict."""
    if options is not None and not isinstance(options, dict):
        raise UserError(f"options {shown(options)}: give a dict of them by name, or None")
    return options


def check_render_mode(render_mode: Any, known: Sequence[str]) -> None:
    """UserError for a way of drawing that an environment does not have."""
    if render_mode is None or (isinstance(render_mode, str) and render_mode in known):
        return
    remedy = "it gives no pictures, leave it out"
    if known:
        remedy = f"choose one of: {', '.join(known)}"
    raise UserError(
        f"render_mode {shown(render_mode)}: this environment does not draw so; {remedy}"
    )


def truth(name: str, value: Any) -> bool:
    """True or False; UserError for anything else, e.g. ``"no"``, which Python takes for true."""
    if not _is_truth(value):
        raise UserError(f"{name} {shown(value)}: it must be True or False")
    return bool(value)


def _is_truth(value: Any) -> bool:
    return type(value).__name__ in ("bool", "bool_")  # also NumPy's, without NumPy


def user_path(what: str, value: Any, example: str = "give a path, e.g. 'exp_dir'") -> Path:
    """A path that the system can have, ``~`` at its beginning written out; UserError for
    anything else.
    """
    try:
        text = os.fspath(value)
    except Exception:  # no path, or one of a class whose own code fails
        text = None
    if not isinstance(text, str):
        raise UserError(f"{what} {shown(value)}: {example}")
    written = text.encode(errors="replace")
    longest = max(len(part) for part in written.split(b"/"))
    printable = text != "" and text.isprintable()
    if not printable or longest > NAME_BYTES or len(written) >= PATH_BYTES:
        limits = f"it takes printable characters, at most {PATH_BYTES} bytes, {NAME_BYTES} a name"
        raise UserError(f"{what} '{shorten(text)}' cannot be a path: {limits}")
    try:
        return Path(text).expanduser()
    except RuntimeError as error:
        raise UserError(
            f"{what} '{shorten(text)}': there is no such user, whose home folder it names; give "
            "the path"
        ) from error


def checked_name(what: str, value: Any, example: str) -> str:
    """A text; UserError for an environment, a class or whatever else was given instead of its
    name.
    """
    if not isinstance(value, str):
        raise UserError(f"{what} {shown(value)}: give its name, e.g. {example}")
    return str(value)


def checked_gamename(value: Any) -> str:
    """``checked_name`` of an environment."""
    return checked_name("gamename", value, "'CartPole-v1', or register_env one of yours")


def seeds_from(seed: Any, num_seeds: Any = 1) -> range:
    """The seeds ``seed``, ``seed + 1``, ..; UserError where these cannot be."""
    first = whole_number("--seed", seed, 0, SEED)
    count = whole_number("--num_seeds", num_seeds, 1, SEEDS)
    if first + count - 1 > SEED:
        raise UserError(
            f"--seed {first} --num_seeds {count}: the last seed is beyond {SEED:,}; lower it"
        )
    return range(first, first + count)


def check_workers(value: Any) -> int:
    """How many processes play; UserError for more than there are cores."""
    count = whole_number("--num_workers", value, 0)
    most = cores()
    if count > most:
        raise UserError(
            f"--num_workers: {count} workers on {most} cores, it must be {most} or fewer"
        )
    if count:
        check_may_start(f"--num_workers {count}", "give num_workers=0")
    return count


_CALLBACKS = {
    "WeightAveraging": "would average the counters of steps, which are buffers, too; leave it out "
    "(UDRL, RCP: set tau below 1)",
    "StochasticWeightAveraging": "takes one optimizer, here a clock is another; leave it out "
    "(UDRL, RCP: set tau below 1)",
    "ModelPruning": "would replace the parameters by names that no episode is played with; leave "
    "it out, prune what is trained",
}
"""What Lightning's callbacks would do to a method, by their classes."""


def refuse_other_lightning(given: Any) -> None:
    """UserError for a callback or logger of the package ``lightning``, whose classes are others
    of the same names.
    """
    if any(kind.__module__.partition(".")[0] == "lightning" for kind in type(given).__mro__):
        name = type(given).__name__
        raise UserError(
            f"{name} is of the package lightning; import it from pytorch_lightning (pip install "
            "pytorch-lightning)"
        )


def check_trainer(trainer: Any, method: Any) -> None:
    """UserError for a Trainer that a method cannot be trained or evaluated by.

    Precision: neither episodes nor the optimizers, which know no scaled gradients, work in all.
    Processes: each would make the same run, with nothing to average. Data: another method's data
    module would play that method's policy, and bare loaders are not saved in checkpoints.
    ``torch.compile``: an epoch is many updates with Python between them, not one graph.
    """
    name, known = method.implementation, " or ".join(map(repr, method.precisions))
    if trainer.precision not in method.precisions:
        raise UserError(
            f"Trainer(precision={trainer.precision!r}): {name} trains in {known}; take that"
        )
    if (processes := trainer.world_size) > 1:
        raise UserError(
            f"Trainer: {processes} processes, a run is one; use devices=1 (several seeds at once: "
            "num_seeds)"
        )
    if getattr(method, "_compiler_ctx", None) is not None:
        raise UserError(f"torch.compile: {name} cannot be compiled whole; give it as it is")
    owner: Any = getattr(trainer.datamodule, "method", None)  # None: bare loaders
    if owner is not method:
        raise UserError(
            "Trainer: the data are not this method's own, whose policy they play; give "
            "datamodule=method.rollouts()"
        )
    check_weights(method)
    for callback in trainer.callbacks:
        for kind in _CALLBACKS.keys() & {kind.__name__ for kind in type(callback).__mro__}:
            raise UserError(f"{type(callback).__name__} {_CALLBACKS[kind]}")


def check_weights(method: Any) -> None:
    """UserError for weights of another kind than observations, which are float32, e.g. after
    ``method.double()``.
    """
    kinds = {
        str(each.dtype).removeprefix("torch.")
        for each in method.parameters()
        if each.is_floating_point()
    }
    if others := sorted(kinds - {"float32"}):
        raise UserError(
            f"{method.implementation} has weights in {', '.join(others)}; convert them by "
            "method.float()"
        )


def check_unfrozen(name: str, optimizers: Iterable[Any]) -> None:
    """UserError for an optimizer without anything to train, after ``freeze()`` of a whole
    method.
    """
    for number, optimizer in enumerate(optimizers):
        if not any(
            each.requires_grad for group in optimizer.param_groups for each in group["params"]
        ):
            raise UserError(
                f"{name}: all that optimizer {number} trains is frozen; leave something to be "
                "trained"
            )


def check_schedulers(schedulers: Iterable[Any]) -> None:
    """UserError for what is no scheduler, or one whose steps need a metric."""
    from torch.optim.lr_scheduler import LRScheduler, ReduceLROnPlateau

    for each in schedulers:
        if not isinstance(each, LRScheduler) or isinstance(each, ReduceLROnPlateau):
            raise UserError(
                f"schedulers(): {type(each).__name__}; give a list of schedulers that are "
                "stepped once an epoch"
            )


def listed(given: Any) -> list[Any]:
    """What was given as a list, or a single one as a list of it."""
    return list(given) if isinstance(given, Sequence) else [given]


@functools.cache
def has_numba() -> bool:
    """Whether compiled functions can be used; says once if numba or what it needs is missing."""
    absent = [name for name in ("numba", "scipy", "threadpoolctl") if not is_installed(name)]
    if absent:
        say(
            f"{absent[0]} is not installed: torch computes what numba would compile, several times "
            "slower"
        )
    return not absent
