"""What a checkpoint must hold, compared before any of it is used: see
``lightning_rl.core.contents``.

The templates come from what the content is for: a freshly built method, its optimizers, its
roll-outs, a bare Trainer.
"""

from __future__ import annotations

import copy
import dataclasses
import itertools
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from pytorch_lightning import Callback, Trainer
from torch.optim.lr_scheduler import LambdaLR, LRScheduler

from lightning_rl.core.checks import listed
from lightning_rl.core.config import MAY_CHANGE
from lightning_rl.core.contents import (
    Also,
    Count,
    Fields,
    Flag,
    ListOf,
    MismatchError,
    Number,
    OneOf,
    Optional,
    Plain,
    Text,
    check,
    like,
)
from lightning_rl.core.errors import UserError
from lightning_rl.core.limits import NAME_BYTES, SEED, SEEDS, SHOWN, WIDTH, shorten, shown
from lightning_rl.envs.spaces import other_box
from lightning_rl.methods.own_networks import CLASS_NAMES, require_given
from lightning_rl.methods.single_process import SingleProcess

if TYPE_CHECKING:
    from lightning_rl.methods.base import Method
    from lightning_rl.rollouts.data_module import Rollouts

ANOTHER = "use another checkpoint, or start anew under another --exp_name"
_NAME = Text(NAME_BYTES)
_BOUNDS = ListOf(Number(), high=WIDTH)
HPARAMS = {
    "implementation": _NAME,
    "gamename": _NAME,
    "seed": Count(0, SEED),
    "config": Plain(mapping=True),
    "networks": Optional(CLASS_NAMES),
    "num_seeds": Optional(Count(2, SEEDS)),
    "action_box": Optional([_BOUNDS, _BOUNDS]),
}


def require(content: Any, template: Any, path: Path, remedy: str, where: str = "") -> None:
    """UserError, naming the file and the first place that differs, where the content is not as
    the template has it.
    """
    try:
        check(content, template, where)
    except MismatchError as error:
        raise UserError(f"checkpoint '{path}': {error}; {remedy}") from error


def require_stored(config: Mapping[str, Any], path: Path) -> None:
    """UserError where the config asks for networks with more weights than the file has room for;
    called before one is built.
    """
    most = path.stat().st_size // torch.float32.itemsize
    for key, value in config.items():
        if isinstance(value, list | tuple) and value and all(type(width) is int for width in value):
            weights = (
                max(value) if len(value) == 1 else max(a * b for a, b in itertools.pairwise(value))
            )
            if weights > most:
                raise UserError(
                    f"checkpoint '{path}': {shorten(key)} {shown(value)} makes {weights:,} "
                    "weights, its file has room for "
                    f"{most:,}; use another checkpoint, or give the own networks that it was "
                    f"trained with (networks={{...}})"
                )


def require_weights(
    weights: Any,
    method: Method,
    path: Path,
    remedy: str,
    prefix: str = "",
    without: tuple[str, ...] = (),
) -> None:
    """UserError where weights are not those of the method, or not finite.

    prefix: look at those names alone; without: beginnings of names that must not be there.
    """
    rules = weights_layout(method).items()
    layout = {
        name: rule
        for name, rule in rules
        if name.startswith(prefix) and not name.startswith(without)
    }
    if isinstance(weights, dict):
        weights = {name: value for name, value in weights.items() if str(name).startswith(prefix)}
    require(weights, layout, path, remedy, "state_dict")


def weights_layout(method: Method) -> dict[str, Any]:
    """What the ``state_dict`` of a checkpoint of this method may look like: counters are no
    lower than 0.
    """
    weights = method.state_dict()
    return {
        name: like(value) if isinstance(value, torch.Tensor) else _extra(method, name)
        for name, value in weights.items()
    }


def _extra(method: Method, name: str) -> Any:
    """The layout of what the module that has the name saves beside tensors."""
    return method.get_submodule(name.rpartition(".")[0]).extra_layout()  # type: ignore[operator]


def data_key(data: Rollouts) -> str:
    """The key of a checkpoint under which Lightning saves a data module's state."""
    return type(data).__qualname__


def callback_name(state_key: str) -> str:
    """The class of a callback by the key of its state, ``EarlyStopping{'monitor': ..}``."""
    return shorten(state_key.partition("{")[0].rpartition(".")[2])


class CheckedCheckpoint(dict[str, Any]):
    """A checkpoint that ``check_resumable`` has been through."""


def check_resumable(
    checkpoint: Mapping[str, Any],
    path: Path,
    method: Method,
    data: Rollouts | None,
    callbacks: Sequence[Callback] | None = None,
) -> CheckedCheckpoint:
    """The checkpoint, from which training can be resumed.

    Args:
        checkpoint: the content of the file at ``path``.
        method: freshly built.
        data: its roll-outs, None where the Trainer has no data module.
        callbacks: those whose state may be in the checkpoint besides the method's; None: a Trainer
            of the user's may keep more.

    Raises:
        UserError: the first place that is not as the method, its data and their optimizers need it.
    """
    epoch = checkpoint.get("epoch")
    epoch = epoch if type(epoch) is int and epoch >= 0 else 0
    require_given(checkpoint.get("hyper_parameters"), method.own_networks, path)
    if "optimizer_states" not in checkpoint:
        raise UserError(
            f"checkpoint '{path}' has weights alone, by which nothing is resumed; use a whole one, "
            "or --reload"
        )
    if _within_an_epoch(checkpoint):
        within = "was written in the middle of an epoch, by which nothing is resumed"
        raise UserError(f"checkpoint '{path}' {within}; use one of an epoch's end")
    stored, known = (
        checkpoint.get("callbacks"),
        {callback.state_key for callback in callbacks or ()} | set(_callbacks(method, 0)),
    )
    if (
        callbacks is not None
        and isinstance(stored, dict)
        and (others := [key for key in stored if key not in known])
    ):
        name = callback_name(str(others[0]))
        raise UserError(
            f"checkpoint '{path}' has the state of a callback {name}, which is not given; give it "
            "again"
        )
    require(
        checkpoint,
        resume_layout(method, data, epoch, _ended(checkpoint, epoch), callbacks),
        path,
        _remedy(method),
    )
    return CheckedCheckpoint(checkpoint)


def check_loaded(checkpoint: dict[str, Any], method: Method) -> None:
    """UserError where a Trainer's method cannot use the checkpoint that Lightning has read for
    it.
    """
    trainer = method._trainer
    if trainer is None or isinstance(checkpoint, CheckedCheckpoint):
        return
    path = Path(trainer.ckpt_path or "")
    if trainer.training:
        check_resumable(checkpoint, path, method, getattr(trainer, "datamodule", None))
    else:
        require_given(checkpoint.get("hyper_parameters"), method.own_networks, path)
        require_weights(checkpoint.get("state_dict"), method, path, _remedy(method))


def _remedy(method: Method) -> str:
    return (
        f"give the networks that it was trained with, {ANOTHER}" if method.own_networks else ANOTHER
    )


def _ended(checkpoint: Mapping[str, Any], epoch: int) -> bool:
    """Whether a checkpoint seems to be written after the fit: only then is its ``epoch``
    completed, too.
    """
    try:
        return bool(
            checkpoint["loops"]["fit_loop"]["epoch_progress"]["current"]["ready"] == epoch > 0
        )
    except (LookupError, RuntimeError, TypeError):  # RuntimeError: tensors where numbers should be
        return False


def _within_an_epoch(checkpoint: Mapping[str, Any]) -> bool:
    """Whether a checkpoint seems to be written during an epoch's training, e.g. by a callback
    when an exception ended it.
    """
    try:
        total = checkpoint["loops"]["fit_loop"]["epoch_loop.batch_progress"]["total"]
        return bool(total["started"] > total["processed"])
    except (LookupError, RuntimeError, TypeError):  # RuntimeError: tensors where numbers should be
        return False


def resume_layout(
    method: Method,
    data: Rollouts | None,
    epoch: int,
    ended: bool = False,
    callbacks: Sequence[Callback] | None = None,
) -> Any:
    """What a whole checkpoint after the epochs 0 to ``epoch`` may look like; one training step is
    an epoch.

    data, callbacks: as ``check_resumable`` takes them; ended: ``epoch`` is the number of epochs of
    a fit that has ended.
    """
    done, users_trainer = epoch + (not ended), callbacks is None
    optimizers, schedulers = method.configure_optimizers()
    states = {
        each.state_key: Optional(_callback_layout(each, done)) for each in callbacks or ()
    } | _callbacks(method, done)
    layout = {} if data is None else data.layout(done)
    fields = {
        "epoch": epoch,
        "global_step": Count(done),
        "pytorch-lightning_version": Also(Text(SHOWN), _foreign_version),
        "state_dict": weights_layout(method),
        "loops": _loops(epoch, done),
        "callbacks": Fields(states, more=users_trainer),
        "optimizer_states": [optimizer_layout(optimizer) for optimizer in optimizers],
        "lr_schedulers": [_scheduler_layout(scheduler, done) for scheduler in schedulers],
        "hparams_name": OneOf((Text(NAME_BYTES), None)),
        "hyper_parameters": Also(
            Fields(
                {name: method.hparams[name] for name in ("implementation", "gamename", "seed")},
                more=True,
            ),
            partial(_other_hparams, method),
        ),
        **({data_key(data): layout} if data is not None and layout else {}),
    }
    return Also(Fields(fields, more=users_trainer), _wrong_steps)


def _callbacks(method: Method, done: int) -> dict[str, Any]:
    callbacks = listed(method.configure_callbacks())
    return {
        callback.state_key: callback.layout(done)
        for callback in callbacks
        if hasattr(callback, "layout")
    }


def _callback_layout(callback: Callback, done: int) -> Any:
    """Of a callback of the run; a user's may keep whatever it likes."""
    return callback.layout(done) if hasattr(callback, "layout") else Fields({}, more=True)


def optimizer_layout(optimizer: torch.optim.Optimizer) -> dict[str, Any]:
    """What the state of an optimizer of these parameters may look like, from a step of a copy of
    it.

    A parameter may have no state yet; rates, momenta and weight decay may be others, as schedulers
    and callbacks set them.
    """
    twin = copy.deepcopy(optimizer)
    for group in twin.param_groups:
        for parameter in group["params"]:
            parameter.grad = torch.zeros_like(parameter)
    twin.step()
    fresh, stepped = optimizer.state_dict(), twin.state_dict()
    state = {
        number: Optional({name: _slot(name, value) for name, value in slots.items()})
        for number, slots in stepped["state"].items()
    }
    return {"state": state, "param_groups": [_settings(group) for group in fresh["param_groups"]]}


def _scheduler_layout(scheduler: LRScheduler, done: int) -> Any:
    """A scheduler is stepped once an epoch. One that is no LambdaLR, as ours are, may hold any
    plain data under its keys.
    """
    state = scheduler.state_dict()
    if not isinstance(scheduler, LambdaLR):
        return Fields({name: Plain() for name in state})
    rates = [Number(0.0) for _ in state["base_lrs"]]
    return {**state, "last_epoch": done, "_step_count": done + 1, "_last_lr": rates}


_NEVER_NEGATIVE = frozenset(
    (
        "step",
        "exp_avg_sq",
        "max_exp_avg_sq",
        "square_avg",
        "acc_delta",
        "sum",
        "exp_inf",
        "row_var",
        "col_var",
        "variance",
        "step_size",
    )
)
"""Slots of torch's optimizers that count steps, or whose square root a step is divided by."""


def _slot(name: str, example: Any) -> Any:
    if not isinstance(example, torch.Tensor):
        return OneOf((None, Number()))
    return dataclasses.replace(like(example), low=0.0) if name in _NEVER_NEGATIVE else like(example)


def _settings(group: Mapping[str, Any]) -> dict[str, Any]:
    """Of a group of parameters: each number may be another one, but for the first learning rate,
    which schedulers begin with.
    """
    settings = {name: _setting(value) for name, value in group.items() if name != "params"}
    return {**group, **settings, "initial_lr": Optional(group.get("initial_lr", group["lr"]))}


def _setting(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(map(_setting, value))
    return OneOf((value, Number(0.0))) if isinstance(value, float) else value


def _loops(epoch: int, done: int) -> dict[str, Any]:
    """The counters of Lightning's loops, as a Trainer of this version has them; each epoch is one
    batch.

    A checkpoint may be written before the epoch counts as processed, at the end of its evaluation,
    or even before its batch counts as completed, after the last step; Lightning goes on from all of
    these in the next epoch.
    """
    trainer = Trainer(
        accelerator="cpu",
        devices=1,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        plugins=[SingleProcess()],
    )
    names = ("fit_loop", "validate_loop", "test_loop", "predict_loop")
    loops = {name: _counters(getattr(trainer, name).state_dict()) for name in names}
    fit, counts = (
        loops["fit_loop"],
        {"ready": done, "started": done, "processed": done, "completed": done},
    )
    fit["epoch_loop.state_dict"] = {"_batches_that_stepped": Count()}
    fit["epoch_progress"]["current"] = {
        **counts,
        "processed": Count(epoch, done),
        "completed": epoch,
    }
    fit["epoch_loop.batch_progress"]["total"] = {**counts, "completed": Count(done - 1, done)}
    fit["epoch_loop.batch_progress"]["current"] = {
        **dict.fromkeys(counts, 1),
        "completed": Count(0, 1),
    }
    return loops


def _counters(example: Any) -> Any:
    if isinstance(example, dict):
        return {name: _counters(value) for name, value in example.items()}
    return Flag() if isinstance(example, bool) else Count()


def _other_hparams(method: Method, hparams: Mapping[str, Any]) -> str | None:
    """Why a run cannot go on from a checkpoint of these hyper-parameters."""
    config = method.hparams["config"]
    if (
        reason := other_box(
            hparams.get("action_box"), method.hparams.get("action_box"), method.gamename
        )
    ) is not None:
        return reason
    before = hparams["config"] if isinstance(hparams.get("config"), Mapping) else {}
    key = changed_key(before, config)
    return (
        None
        if key is None
        else f"config.{key}: {shown(before.get(key))}, of this method {shown(config[key])}"
    )


def changed_key(before: Mapping[str, Any], now: Mapping[str, Any]) -> str | None:
    """The first key whose other value makes it another run, which cannot go on with the one
    before.
    """
    return next(
        (key for key, value in now.items() if key not in MAY_CHANGE and before.get(key) != value),
        None,
    )


def _wrong_steps(checkpoint: Mapping[str, Any]) -> str | None:
    """``global_step`` is the number of optimizer steps that the loops have counted."""
    steps = checkpoint["loops"]["fit_loop"]["epoch_loop.manual_optimization.optim_step_progress"][
        "total"
    ]["completed"]
    return (
        None
        if steps == checkpoint["global_step"]
        else f"global_step: {checkpoint['global_step']}, its loops counted {steps}"
    )


def _foreign_version(version: str) -> str | None:
    return None if version.startswith("2.") else f"of Lightning {version}, this program needs 2.*"
