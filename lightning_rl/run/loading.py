"""Trained methods out of checkpoints."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from torch import nn

from lightning_rl.core.errors import UnknownNameError, UserError
from lightning_rl.core.limits import shorten
from lightning_rl.core.modules import from_file
from lightning_rl.methods.base import Method
from lightning_rl.methods.own_networks import named_networks, require_given
from lightning_rl.methods.registry import implementation
from lightning_rl.methods.restoring import load_state, refused, require_stored
from lightning_rl.run.checkpoints import read_checkpoint
from lightning_rl.run.state import checkpoint_at

ACTING_ONLY = "acting_only"
"""The key of checkpoints that have no weights but those that acting needs."""
ACTION_MODE = "action_mode"


def load_method(path: Path, networks: Mapping[str, nn.Module] | None = None) -> Method:
    """The method of a checkpoint in evaluation mode, with its weights and counters; of a run
    directory that of its last one.

    networks: those that a user gave to the training, by name.
    """
    if networks is not None:
        networks = named_networks(networks)
    path = checkpoint_at(path)
    checkpoint = read_checkpoint(path)
    hparams = dict(checkpoint["hyper_parameters"])
    try:
        cls = implementation(hparams["implementation"])
    except UserError as error:
        raise UserError(f"checkpoint '{path}': {error}") from error
    require_given(hparams, networks or (), path)
    hparams["networks"] = networks
    # keys of ours that are not built
    own = {cls.network_names.get(name) for name in networks or ()} | cls.Config.unsaved
    require_stored({key: value for key, value in hparams["config"].items() if key not in own}, path)
    try:
        with from_file():
            method = cls(**hparams)
    except UnknownNameError as error:
        raise UserError(f"checkpoint '{path}': {error}") from error
    except Exception as error:  # whatever a method makes of settings that are not its own
        reason = str(error)
        if not isinstance(error, UserError):
            reason = shorten(f"{type(error).__name__}: {error}", 200)
        raise UserError(
            f"checkpoint '{path}' does not fit this version's {hparams['implementation']}: {reason}"
        ) from error
    remedy = "use another, or give the networks that it was trained with (networks={...})"
    with refused(path, remedy):
        if checkpoint.get(ACTING_ONLY) is True:
            method.take_acting_weights(checkpoint["state_dict"])
        else:
            load_state(method, checkpoint["state_dict"])
    if ACTION_MODE in checkpoint:
        method.action_mode = checkpoint[ACTION_MODE]
    return method.eval()
