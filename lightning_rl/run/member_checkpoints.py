"""Checkpoints of stacked seeds: one ordinary checkpoint per seed, in the folder of each."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from lightning_rl.core.errors import UserError
from lightning_rl.core.limits import shorten
from lightning_rl.methods.restoring import ANOTHER
from lightning_rl.methods.stacked import MEMBER_COUNTERS
from lightning_rl.run.checkpoints import AtomicCheckpointIO, read_checkpoint, write_together


class MemberCheckpointIO(AtomicCheckpointIO):
    """Splits what Lightning saves into one file per seed, each as of the seed trained alone, and
    joins them again.
    """

    def __init__(self, run_dirs: Sequence[Path], data_key: str):
        super().__init__()
        self.run_dirs, self.data_key = list(run_dirs), data_key

    def save_checkpoint(
        self, checkpoint: dict[str, Any], path: Any, storage_options: Any | None = None
    ) -> None:
        more = storage_options or {}
        parts = (
            {**member_checkpoint(checkpoint, member, self.data_key), **more}
            for member in range(len(self.run_dirs))
        )
        write_together([folder / Path(path).name for folder in self.run_dirs], parts)

    def read(self, path: Path) -> dict[str, Any]:
        parts = [read_checkpoint(folder / path.name) for folder in self.run_dirs]
        try:
            return join_checkpoints(parts, self.data_key)
        except (AttributeError, IndexError, KeyError, RuntimeError, TypeError, ValueError) as error:
            raise UserError(
                f"'{path}' and its other seeds do not go together ({shorten(str(error), 200)}); "
                f"{ANOTHER}"
            ) from error

    def remove_checkpoint(self, path: Any) -> None:
        for folder in self.run_dirs:
            super().remove_checkpoint(folder / Path(path).name)


def member_checkpoint(checkpoint: dict[str, Any], member: int, data_key: str) -> dict[str, Any]:
    """The checkpoint of one seed out of that of the stack. data_key: where the data module's
    state is.
    """
    hparams = dict(checkpoint["hyper_parameters"])
    hparams["seed"] += member
    del hparams["num_seeds"]
    state, start = checkpoint["state_dict"], f"policies.{member}."
    weights = {name: value for name, value in state.items() if not name.startswith("policies.")}
    # Cloned, as a view of a block with all members would be stored with all of it.
    policy = {name: value.clone() for name, value in state.items() if name.startswith(start)}
    weights |= {f"policies.0.{name.removeprefix(start)}": value for name, value in policy.items()}
    weights |= {name: state[name][member : member + 1].clone() for name in _stacked(weights)}
    weights |= dict(zip(MEMBER_COUNTERS, weights["member_counters"][0].clone(), strict=True))
    changed: dict[str, Any] = {"hyper_parameters": hparams, "state_dict": weights}
    if "optimizer_states" in checkpoint:
        clock, *optimizers = checkpoint["optimizer_states"]
        own = [
            _map_moments([optimizer], lambda rows: rows[0][member : member + 1].clone())
            for optimizer in optimizers
        ]
        changed["optimizer_states"] = [clock, *own]
    if data_key in checkpoint:
        changed[data_key] = member_snapshot(checkpoint[data_key], member)
    return {**checkpoint, **changed}


def _stacked(weights: Mapping[str, Any]) -> list[str]:
    """The names of the tensors that have a row for each member."""
    return [name for name in weights if name == "member_counters" or name.startswith("agent.")]


def _map_moments(
    optimizers: Sequence[dict[str, Any]], function: Callable[[list[Tensor]], Tensor]
) -> dict[str, Any]:
    """The state of an optimizer whose tensors are ``function`` of those that several states of
    it have by one name.
    """
    first = optimizers[0]
    state = {
        number: {
            name: function([optimizer["state"][number][name] for optimizer in optimizers])
            for name in moments
        }
        for number, moments in first["state"].items()
    }
    return {**first, "state": state}


def join_checkpoints(checkpoints: Sequence[dict[str, Any]], data_key: str) -> dict[str, Any]:
    """The checkpoint of the stack out of those of its seeds; UserError where they are not at the
    same point.
    """
    epochs = {checkpoint["epoch"] for checkpoint in checkpoints}
    if len(epochs) > 1:
        groups = "resume them one by one, or in the groups that they were trained in"
        raise UserError(
            f"--resume: the seeds' checkpoints are of different epochs {sorted(epochs)}; {groups}"
        )
    first = checkpoints[0]
    hparams = {**first["hyper_parameters"], "num_seeds": len(checkpoints)}
    weights = {
        name: value
        for name, value in first["state_dict"].items()
        if not name.startswith("policies.")
    }
    for member, checkpoint in enumerate(checkpoints):
        for name, value in checkpoint["state_dict"].items():
            if name.startswith("policies.0."):
                weights[f"policies.{member}.{name.removeprefix('policies.0.')}"] = value
    for name in _stacked(weights):
        weights[name] = torch.cat([checkpoint["state_dict"][name] for checkpoint in checkpoints])
    weights |= dict(zip(MEMBER_COUNTERS, weights["member_counters"].amax(0), strict=True))
    data = join_snapshots([checkpoint[data_key] for checkpoint in checkpoints])
    clock, *_ = first["optimizer_states"]
    stacks = zip(*(checkpoint["optimizer_states"][1:] for checkpoint in checkpoints), strict=True)
    optimizers = [clock, *(_map_moments(states, torch.cat) for states in stacks)]
    changed = {
        "hyper_parameters": hparams,
        "state_dict": weights,
        "optimizer_states": optimizers,
        data_key: data,
    }
    return {**first, **changed}


_LIVE = ("loop", "envs", "memory")  # parts of a snapshot with one row for each member that is left


def member_snapshot(state: dict[str, Any], member: int) -> dict[str, Any]:
    """The snapshot of one member trained alone, out of that of a stack."""
    row = (state["members"] == member).nonzero().squeeze(1)
    live = {part: {name: value[row] for name, value in state[part].items()} for part in _LIVE}
    envs = live["envs"]
    if "actions" in envs:  # of its episode under way; that of another member may be longer
        envs["actions"] = envs["actions"][:, : int(envs["length"].sum())].clone()
    results = {name: value[member : member + 1].clone() for name, value in state["results"].items()}
    return {"step": state["step"], "members": torch.zeros_like(row), **live, "results": results}


def join_snapshots(states: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The snapshot of a stack out of those of its members, all taken at one step."""
    members = [n for n, state in enumerate(states) if len(state["members"])]
    left = [states[n] for n in members] or [states[0]]
    parts = {**dict.fromkeys(_LIVE, left), "results": states}  # results are of every member
    joined = {
        part: {name: _rows([state[part][name] for state in rows]) for name in rows[0][part]}
        for part, rows in parts.items()
    }
    return {
        "step": states[0]["step"],
        "members": torch.tensor(members, dtype=torch.int64),
        **joined,
    }


def _rows(parts: Sequence[Tensor]) -> Tensor:
    """All rows; those of the actions of episodes under way may be shorter than others, and are
    filled up with zeros.
    """
    if len({part.shape[1:] for part in parts}) == 1:
        return torch.cat(list(parts))
    longest = max(part.shape[1] for part in parts)
    joined = parts[0].new_zeros((sum(map(len, parts)), longest, *parts[0].shape[2:]))
    for rows, part in zip(joined.split([len(part) for part in parts]), parts, strict=True):
        rows[:, : part.shape[1]] = part
    return joined
