"""Which flags of the trainer mean something in which mode: one that would be ignored is refused by its name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lightning_rl.core.limits import shown
from lightning_rl.core.types import UserError

_RUN = {
    *("--implementation", "--gamename", "--exp_name", "--seed", "--preset", "--max_epochs", "--set", "--config"),
    *("--no_expo_weighting", "--logdir", "--num_workers", "--accelerator", "--executor", "--ray_address"),
    *("--resume", "--reload", "--recording_epoch_interval", "--eval_episodes"),
}
MODES: dict[str, set[str]] = {
    "--figure": {"--figure"},
    "--imagine": {"--imagine", "--eval_agent", "--eval_episodes", "--force"},
    "--eval_agent": {"--eval_agent", "--eval_episodes", "--eval_command", "--num_workers", "--force"},
    "--use_tune": {"--use_tune", "--tune", *_RUN},
    "training": {"--num_seeds", "--num_processes", "--no_checkpoint", *_RUN},
}
"""The flags of each mode; the first mode whose own flag is given is meant."""

_REMEDIES = {
    ("--use_tune", "--num_seeds"): "a search takes its seeds per trial from --tune seeds=N",
    ("--use_tune", "--no_checkpoint"): "a trial goes on from its checkpoints",
    ("--imagine", "--eval_command"): "the model's roll-outs take the checkpoint's command",
}
_APART = {
    ("--resume", "--reload"): "a resumed run goes on with its own weights",
    ("--resume", "--no_checkpoint"): "without checkpoints there is nothing to go on from",
}


def mode_of(given: Mapping[str, Any]) -> str:
    """The mode that the given flags, with their values, ask for; UserError for flags that do not go together."""
    mode = next((name for name in MODES if name in given), "training")
    if mode == "--imagine" and "--eval_agent" not in given:
        raise UserError("--imagine goes with --eval_agent CKPT; leave it out for training")
    for flag in given:
        if flag not in MODES[mode]:
            raise UserError(f"{flag} goes with {_where(flag)}, not with {mode}; {_REMEDIES.get((mode, flag), 'leave it out')}")
    if mode == "training":
        for flags, reason in _APART.items():
            if all(flag in given for flag in flags):
                raise UserError(f"{' and '.join(flags)} exclude each other: {reason}; leave one out")
        if "--ray_address" in given and given.get("--executor") != "ray":
            raise UserError("--ray_address goes with --executor ray or --use_tune; leave it out")
    return mode


def _where(flag: str) -> str:
    return " or ".join(mode for mode, flags in MODES.items() if flag in flags)


def resumable(words: Sequence[str]) -> bool:
    """Whether --resume goes on with what the words of a command line began."""
    is_tool = bool(words) and not words[0].startswith("-")
    return not is_tool and not {"--figure", "--eval_agent"} & set(words)


def with_flags(settings: Mapping[str, Any], flags: Mapping[str, tuple[str, Any]]) -> dict[str, Any]:
    """``--set`` with the flags that mean the same, ``{flag: (key, value)}``; UserError where the two contradict each other."""
    merged = dict(settings)
    for flag, (key, value) in flags.items():
        if key in merged and merged[key] != value:
            raise UserError(f"{flag} contradicts --set {key}={shown(merged[key])}; leave one of them out")
        merged[key] = value
    return merged
