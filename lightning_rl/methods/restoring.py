"""What of a checkpoint a method goes on from, and what is refused before it is used: sizes that
its file has no room for, weights that do not fit or are not finite, moments of other shapes,
counters that are no counts.
"""

from __future__ import annotations

import contextlib
import copy
import itertools
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from pytorch_lightning import Callback, Trainer
from torch import nn

from lightning_rl.core.checks import listed
from lightning_rl.core.config import MAY_CHANGE, with_added
from lightning_rl.core.contents import (
    PLAIN_DICT,
    MismatchError,
    Rule,
    check_alike,
    check_tensors,
    count,
    list_of,
    maybe,
    number,
    require_finite,
    text,
)
from lightning_rl.core.errors import UserError
from lightning_rl.core.limits import NAME_BYTES, SEED, SEEDS, WHOLE, WIDTH, shorten, shown
from lightning_rl.envs.spaces import other_box
from lightning_rl.methods.own_networks import require_given
from lightning_rl.methods.single_process import SingleProcess

if TYPE_CHECKING:
    from lightning_rl.methods.base import Method
    from lightning_rl.rollouts.data_module import Rollouts

ANOTHER = "use another checkpoint, or start anew under another --exp_name"
_BOUNDS = list_of(number(), WIDTH)


def _are_texts(names: Any) -> bool:
    return isinstance(names, dict) and all(type(each) is str for each in (*names, *names.values()))


HPARAMS = {
    "implementation": text(NAME_BYTES),
    "gamename": text(NAME_BYTES),
    "seed": count(0, SEED),
    "config": PLAIN_DICT,
    "networks": maybe(Rule(_are_texts, "the class of each network by its name")),
    "num_seeds": maybe(count(2, SEEDS)),
    "action_box": maybe(
        Rule(
            lambda box: type(box) is list and len(box) == 2 and all(map(_BOUNDS.holds, box)),
            f"two lists of at most {WIDTH} numbers",
        )
    ),
}


@contextlib.contextmanager
def refused(path: Path, remedy: str) -> Iterator[None]:
    """UserError, naming the file, for whatever is raised meanwhile because its content is not as
    it should be.
    """
    try:
        yield
    except UserError:
        raise
    except Exception as error:
        first, *others = (str(error) or type(error).__name__).splitlines()
        reason = others[0].strip() if first.startswith("Error(s) in loading") else first
        if isinstance(error, KeyError):
            reason = f"lacks {reason}"
        raise UserError(f"checkpoint '{path}': {shorten(reason, 300)}; {remedy}") from error


def require_stored(config: Mapping[str, Any], path: Path) -> None:
    """UserError where the config asks for networks with more weights than the file has room for;
    called before one is built.
    """
    most = path.stat().st_size // torch.float32.itemsize
    for key, value in config.items():
        if not isinstance(value, list | tuple) or not value:
            continue
        if not all(type(width) is int for width in value):
            continue
        weights = max(value)
        if len(value) > 1:
            weights = max(a * b for a, b in itertools.pairwise(value))
        if weights > most:
            raise UserError(
                f"checkpoint '{path}': {shorten(key)} {shown(value)} makes {weights:,} weights, "
                f"its file has room for {most:,}; use another checkpoint, or give the own networks "
                "that it was trained with (networks={...})"
            )


def load_state(method: nn.Module, weights: Any, absent: tuple[str, ...] = ()) -> None:
    """Loads the ``state_dict`` of a checkpoint; an error names the first tensor that is of another
    shape, not finite, or a counter below 0.

    absent: beginnings of names that are not in the checkpoint.
    """
    infinite = []
    for name, value in method.state_dict().items():
        if not isinstance(value, torch.Tensor):
            check_alike(weights[name], value, name)
        elif not value.isfinite().all():
            infinite.append(name)
    keys = method.load_state_dict(weights, strict=not absent)
    for name in (*keys.missing_keys, *keys.unexpected_keys):
        if not name.startswith(absent):
            raise MismatchError(f"state_dict: {shorten(name)} is missing, or does not belong there")
    require_numbers(method, "state_dict", infinite)


def require_numbers(module: nn.Module, where: str, infinite: Sequence[str] = ()) -> None:
    """MismatchError for weights that are not finite, but for those of the names ``infinite``, for
    counters that are no counts, and for variances below 0.
    """
    for name, value in module.state_dict().items():
        if not isinstance(value, torch.Tensor) or name in infinite:
            continue
        require_finite(value, f"{where}.{name}")
        if value.dtype == torch.int64 and value.numel() and not _are_counts(value):
            raise MismatchError(f"{where}.{name}: expected numbers from 0 to {WHOLE}")
        if name.endswith(("normaliser.variance", "normaliser.count")) and float(value.min()) < 0:
            raise MismatchError(f"{where}.{name}: {float(value.min()):g}, expected 0 or more")


def _are_counts(value: torch.Tensor) -> bool:
    return int(value.min()) >= 0 and int(value.max()) <= WHOLE


def data_key(data: Rollouts) -> str:
    """The key of a checkpoint under which Lightning saves a data module's state."""
    return type(data).__qualname__


def callback_name(state_key: str) -> str:
    """The class of a callback by the key of its state, ``EarlyStopping{'monitor': ..}``."""
    return shorten(state_key.partition("{")[0].rpartition(".")[2])


class Restored(dict[str, Any]):
    """A checkpoint that ``restore`` has been through."""


def restore(
    checkpoint: Mapping[str, Any],
    path: Path,
    method: Method,
    data: Rollouts | None,
    callbacks: Sequence[Callback] | None = None,
) -> Restored:
    """Loads the data, and gives what is left of the checkpoint, from which Lightning can go on.

    Args:
        checkpoint: the content of the file at ``path``.
        method: freshly built.
        data: its roll-outs, None where the Trainer has no data module.
        callbacks: those whose state may be in the checkpoint besides the method's; None: a Trainer
            of the user's may keep more.

    Raises:
        UserError: something is not as the method, its data and their optimizers need it.
    """
    content = Restored(checkpoint)
    require_given(content.get("hyper_parameters"), method.own_networks, path)
    if "optimizer_states" not in content:
        raise UserError(
            f"checkpoint '{path}' has weights alone, by which nothing is resumed; use a whole one, "
            "or --reload"
        )
    with refused(path, _remedy(method)):
        box = content["hyper_parameters"].get("action_box")
        reason = other_box(box, method.hparams.get("action_box"), method.gamename)
        if reason is not None:
            raise MismatchError(reason)
        if callbacks is None:  # of our own runs ``run.resuming`` has compared it
            _refuse_other_run(content["hyper_parameters"], method)
        _check_counters(content)
        if _within_an_epoch(content):
            raise UserError(
                f"checkpoint '{path}' was written in the middle of an epoch, by which nothing is "
                "resumed; use one of an epoch's end"
            )
        load_state(method, content["state_dict"])
        _check_optimizers(content, method)
        _check_callbacks(content["callbacks"], path, method, callbacks)
        if data is not None:
            _load_data(content, data)
    return content


def restore_for_trainer(checkpoint: dict[str, Any], method: Method) -> None:
    """UserError where a Trainer's method cannot use the checkpoint that Lightning has read for
    it; the data are loaded.
    """
    trainer = method._trainer
    if trainer is None or isinstance(checkpoint, Restored):
        return
    path = Path(trainer.ckpt_path or "")
    if trainer.training:
        data = getattr(trainer, "datamodule", None)
        restore(checkpoint, path, method, data)
        if data is not None:
            checkpoint.pop(data_key(data), None)
    else:
        require_given(checkpoint.get("hyper_parameters"), method.own_networks, path)
        with refused(path, _remedy(method)):
            load_state(method, checkpoint["state_dict"])


def _remedy(method: Method) -> str:
    if method.own_networks:
        return f"give the networks that it was trained with, {ANOTHER}"
    return ANOTHER


def _refuse_other_run(hparams: Mapping[str, Any], method: Method) -> None:
    for name in ("implementation", "gamename", "seed"):
        if hparams[name] != method.hparams[name]:
            raise MismatchError(
                f"{name}: {shown(hparams[name])}, of this method {shown(method.hparams[name])}"
            )
    before, now = hparams["config"], method.hparams["config"]
    changed = first_change(before, now)
    if changed is not None:
        key, old, new = changed
        raise MismatchError(f"config.{key}: {old}, of this method {new}")


def first_change(before: Mapping[str, Any], now: Mapping[str, Any]) -> tuple[str, str, str] | None:
    """The first key whose other value makes it another run, which cannot go on with the one
    before: ``a.b.c`` of a value inside of others, and the two values as messages show them.
    """
    before = with_added(before, now)
    for key, value in now.items():
        if key not in MAY_CHANGE and before.get(key) != value:
            return _innermost_change(key, before.get(key), value)
    return None


def _innermost_change(key: str, old: Any, new: Any) -> tuple[str, str, str]:
    if isinstance(old, Mapping) and isinstance(new, Mapping) and old.keys() == new.keys():
        for name, value in new.items():
            if old[name] != value:
                return _innermost_change(f"{key}.{name}", old[name], value)
    return key, shown(old), shown(new)


_LOOPS = ("fit_loop", "validate_loop", "test_loop", "predict_loop")


def _check_counters(content: Mapping[str, Any]) -> None:
    """Whether Lightning finds counters where it looks for them; it does not check them itself."""
    version = content["pytorch-lightning_version"]
    if not str(version).startswith("2."):
        raise MismatchError(f"of Lightning {version}, this program needs 2.*")
    trainer = Trainer(
        accelerator="cpu",
        devices=1,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        plugins=[SingleProcess()],
    )
    loops = {name: getattr(trainer, name).state_dict() for name in _LOOPS}
    loops["fit_loop"]["epoch_loop.state_dict"] = {"_batches_that_stepped": 0}
    example = {"epoch": 0, "global_step": 0, "loops": loops, "callbacks": {}}
    for key, value in example.items():
        check_alike(content[key], value, key)


def _within_an_epoch(content: Mapping[str, Any]) -> bool:
    """Whether it was written during an epoch's training, e.g. by a callback when an exception
    ended it.
    """
    total = content["loops"]["fit_loop"]["epoch_loop.batch_progress"]["total"]
    return bool(total["started"] > total["processed"])


def _check_optimizers(content: Mapping[str, Any], method: Method) -> None:
    optimizers, schedulers = method.configure_optimizers()
    for name, there in (("optimizer_states", optimizers), ("lr_schedulers", schedulers)):
        if len(content[name]) != len(there):
            raise MismatchError(f"{name}: {len(content[name])}, expected {len(there)}")
    for place, optimizer in enumerate(optimizers):
        check_optimizer(content["optimizer_states"][place], optimizer, f"optimizer_states[{place}]")
    for place, scheduler in enumerate(schedulers):
        if content["lr_schedulers"][place].keys() != scheduler.state_dict().keys():
            raise MismatchError(f"lr_schedulers[{place}]: is of another scheduler")


_NEVER_NEGATIVE = {
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
}
"""Slots of torch's optimizers that count steps, or whose root a step divides by: below 0 a step
makes weights that are not finite, in silence.
"""


def check_optimizer(content: Any, optimizer: torch.optim.Optimizer, where: str) -> None:
    """MismatchError unless a saved state has slots of the shapes that a step of the optimizer
    makes: torch does not look at them, and crashes later. What else is wrong, a step shows.

    A parameter may have no state yet; rates, momenta and weight decay may be others, as schedulers
    and callbacks set them.
    """
    check_tensors(content, where)
    twin = copy.deepcopy(optimizer)
    for group in twin.param_groups:
        for parameter in group["params"]:
            parameter.grad = torch.zeros_like(parameter)
    twin.step()
    slots = twin.state_dict()["state"]
    for parameter, state in content["state"].items():
        check_alike(state, slots[parameter], f"{where}.state[{parameter}]")
        for name in _NEVER_NEGATIVE.intersection(state):
            least = float(torch.as_tensor(state[name]).min())
            if least < 0:
                slot = f"{where}.state[{parameter}].{name}"
                raise MismatchError(f"{slot}: {least:g}, expected 0 or more")
    for place, group in enumerate(content["param_groups"]):
        if not isinstance(group["lr"], int | float | torch.Tensor):
            rate = shown(group["lr"])
            raise MismatchError(f"{where}.param_groups[{place}].lr: {rate}, expected a number")
    twin.load_state_dict(copy.deepcopy(content))  # torch would step the tensors themselves
    twin.step()


def _check_callbacks(
    states: Mapping[str, Any],
    path: Path,
    method: Method,
    callbacks: Sequence[Callback] | None,
) -> None:
    """Whether each state is of a callback that is given, and ours can be loaded."""
    known = {each.state_key: each for each in listed(method.configure_callbacks())}
    known |= {each.state_key: each for each in callbacks or ()}
    for key, state in states.items():
        if key not in known and callbacks is not None:
            raise UserError(
                f"checkpoint '{path}' has the state of a callback {callback_name(str(key))}, which "
                "is not given; give it again"
            )
        callback = known.get(key)
        if callback is not None and type(callback).__module__.startswith("lightning_rl."):
            callback.load_state_dict(state)


def _load_data(content: dict[str, Any], data: Rollouts) -> None:
    """Loads the state of the data, and takes it out of the content."""
    key = data_key(data)
    example = data.state_dict()
    state = content.pop(key) if example else content.pop(key, {})
    check_tensors(state, key)
    check_alike(state, example, key, exact=False)
    data.load_state_dict(state)
