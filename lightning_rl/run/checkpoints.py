"""Checkpoints that survive a kill at any moment and hold nothing but plain data."""

from __future__ import annotations

import io
import pickle
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch
from lightning_fabric.plugins import TorchCheckpointIO
from pytorch_lightning import Callback

from lightning_rl.core.contents import check, count
from lightning_rl.core.errors import UserError
from lightning_rl.core.files import is_recorded, move, read_plain, remove, write_plain
from lightning_rl.envs.proxies import FORMAT
from lightning_rl.envs.spaces import other_box
from lightning_rl.methods.base import Method
from lightning_rl.methods.own_networks import require_given
from lightning_rl.methods.restoring import (
    ANOTHER,
    HPARAMS,
    Restored,
    callback_name,
    refused,
    require_numbers,
    restore,
)
from lightning_rl.rollouts.data_module import Rollouts
from lightning_rl.run.state import WEIGHTS


def _is_plain(content: Any) -> bool:
    """Whether a file of this content, a small one, can be read again."""
    data = io.BytesIO()
    torch.save(content, data)
    try:
        torch.load(io.BytesIO(data.getvalue()), weights_only=True)
    except pickle.UnpicklingError:
        return False
    return True


class AtomicCheckpointIO(TorchCheckpointIO):
    """Files that are always whole. ``storage_options`` are plain data that goes into the file,
    too.
    """

    def __init__(self) -> None:
        super().__init__()
        self._restored: Restored | None = None

    def save_checkpoint(
        self, checkpoint: dict[str, Any], path: Any, storage_options: Any | None = None
    ) -> None:
        for name, state in (checkpoint.get("callbacks") or {}).items():
            if not _is_plain(state):  # or nobody could read the file
                raise UserError(
                    f"callback {callback_name(name)}: its state_dict is no plain data; give text, "
                    "numbers and tensors, e.g. float(...), str(...)"
                )
        write_plain(Path(path), {**checkpoint, **(storage_options or {})})

    def read(self, path: Path) -> dict[str, Any]:
        """The checkpoint of a run."""
        return read_checkpoint(path)

    def resume(
        self, path: Path, method: Method, data: Rollouts, callbacks: Sequence[Callback] = ()
    ) -> None:
        """Restores the data from the checkpoint at ``path`` and keeps the rest for Lightning to
        load.

        Raises:
            UserError: before any of it is used, where it is not whole or not of this method.
        """
        self._restored = restore(self.read(path), path, method, data, callbacks)

    def load_checkpoint(
        self,
        path: Any,
        map_location: Callable[..., Any] | None = None,
        weights_only: bool | None = True,
    ) -> dict[str, Any]:
        content, self._restored = self._restored, None
        return self.read(Path(path)) if content is None else content

    def remove_checkpoint(self, path: Any) -> None:
        remove(Path(path))


def read_checkpoint(path: Path) -> dict[str, Any]:
    """The checkpoint at ``path`` on the CPU; UserError if it is missing, damaged, foreign or not
    plain data.

    Its ``hyper_parameters`` and ``epoch`` are checked, and ``state_dict`` is there; what that holds
    is not checked yet.
    """
    if path.name == WEIGHTS:
        from lightning_rl.run.exported import read_exported

        checkpoint: Any = read_exported(path)
    else:
        remedy = "give the path of a last.ckpt or epoch=<k>.ckpt"
        checkpoint = read_plain(path, "checkpoint", remedy)
    found: Mapping[str, Any] = checkpoint if isinstance(checkpoint, dict) else {}
    if found.get("format") == FORMAT:
        raise UserError(
            f"'{path}' is a proxy, not an agent; lightning-rl proxies transfer (clones for SD) "
            "trains agents on it"
        )
    if not {"hyper_parameters", "state_dict"} <= found.keys():
        raise UserError(
            f"checkpoint '{path}' was not written by lightning_rl: it lacks hyper_parameters; use "
            "another"
        )
    hparams = found["hyper_parameters"]
    if isinstance(hparams, dict) and "hparams" in hparams:
        raise UserError(
            f"checkpoint '{path}' is of a version before 0.2, which this version cannot read; "
            f"{ANOTHER}"
        )
    with refused(path, ANOTHER):
        check(hparams, HPARAMS, "hyper_parameters")
        check({"epoch": found.get("epoch", 0)}, {"epoch": count()})
    return dict(found)


def load_weights(method: Method, path: Path) -> None:
    """Loads the policy of a checkpoint of the same method and environment; counters and
    optimizers start anew.
    """
    if not method.reloadable:
        raise UserError(
            f"--reload: a {type(method).__name__} cannot start from weights alone; leave it out"
        )
    checkpoint = read_checkpoint(path)
    hparams = checkpoint["hyper_parameters"]
    for key in ("implementation", "gamename"):
        found, needed = hparams[key], method.hparams[key]
        if found != needed:
            raise UserError(
                f"--reload '{path}': its {key} is '{found}', this run's is '{needed}'; they must "
                "match"
            )
    own_box = method.hparams.get("action_box")
    reason = other_box(hparams.get("action_box"), own_box, method.gamename)
    if reason is not None:
        raise UserError(f"--reload '{path}': {reason}")
    require_given(hparams, method.own_networks, path, (method.policy_name,))
    prefix = f"{method.policy_name}."
    with refused(path, "use another, or the config that it was trained with"):
        weights = {
            name.removeprefix(prefix): value
            for name, value in checkpoint["state_dict"].items()
            if name.startswith(prefix)
        }
        method.adopt(weights)
        require_numbers(method.policy, f"state_dict.{method.policy_name}")


# Checkpoints of several seeds are written all or not at all: each seed's file is first written
# whole under the name ``next_to`` it, then all are renamed. So there is always a newest epoch that
# all seeds have, under the one name or the other, and each file under its own name is an ordinary
# checkpoint of one seed.
_PENDING = ".next"


def next_to(path: Path) -> Path:
    """Where a checkpoint waits until those of all seeds are written."""
    return path.with_name(f".{path.name}{_PENDING}")


def write_together(paths: Sequence[Path], contents: Iterable[Any]) -> None:
    """Writes plain data for each seed."""
    try:
        for path, content in zip(paths, contents, strict=True):
            write_plain(next_to(path), content)
    except BaseException:
        with suppress(UserError):
            for path in paths:
                remove(next_to(path))
        raise
    for path in paths:
        move(next_to(path), path)


def committed(paths: Sequence[Path]) -> list[Path]:
    """The files that hold the newest epoch that all seeds have; ``paths`` themselves where
    nothing waits or nothing is common.
    """
    if not any(is_recorded(next_to(path)) for path in paths):
        return list(paths)
    found = [
        {_epoch(file): file for file in (path, next_to(path)) if is_recorded(file)}
        for path in paths
    ]
    common = set.intersection(*(set(files) for files in found))
    return [files[max(common)] for files in found] if common else list(paths)


def settle(folders: Sequence[Path]) -> None:
    """Ends what a kill has interrupted: gives the committed files their names, and removes those
    that were not committed.

    The folders of the seeds are those of this process.
    """
    waiting = {
        path.name
        for folder in folders
        for path in folder.glob(f".*.ckpt{_PENDING}")
        if is_recorded(path)
    }
    for name in sorted(waiting):
        paths = [folder / name.removeprefix(".").removesuffix(_PENDING) for folder in folders]
        for path, file in zip(paths, committed(paths), strict=True):
            if file != path:
                move(file, path)
            elif is_recorded(next_to(path)):
                remove(next_to(path))


def _epoch(path: Path) -> int:
    content = read_plain(path, "checkpoint", "remove it")
    if not isinstance(content, dict) or not isinstance(epoch := content.get("epoch"), int):
        raise UserError(f"checkpoint '{path}' has no epoch; remove it")
    return epoch
