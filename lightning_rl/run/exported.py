"""Reads what ``run.export`` has written: numbers and plain values, of which nothing is run."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any, NoReturn

from lightning_rl.core.contents import PLAIN_DICT, check, count, list_of, text, word
from lightning_rl.core.errors import UserError
from lightning_rl.core.extras import require
from lightning_rl.core.files import read_bytes, read_text
from lightning_rl.core.limits import CHECKPOINT_BYTES, NAME_BYTES, shorten
from lightning_rl.core.outputs import PROGRAM, checksum

CONFIG = "config.json"
FORMAT = 1
_RULES = {
    "library": word(PROGRAM),
    "library_version": text(NAME_BYTES),
    "format": count(FORMAT, FORMAT),
    "action_mode": word("sampled", "greedy"),
    "hyper_parameters": PLAIN_DICT,
    "environment": PLAIN_DICT,
    "inputs": PLAIN_DICT,
    "outputs": list_of(text(NAME_BYTES), 10),
    "files": PLAIN_DICT,
}


_INFINITE = {".inf": math.inf, "-.inf": -math.inf}
"""As YAML spells what JSON has no numbers for."""


def without_infinity(value: Any) -> Any:
    """Plain values as JSON can hold them; tuples become lists."""
    if isinstance(value, dict):
        return {key: without_infinity(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [without_infinity(each) for each in value]
    if isinstance(value, float) and math.isinf(value):
        return ".inf" if value > 0 else "-.inf"
    return value


def with_infinity(value: Any) -> Any:
    """What ``without_infinity`` was given."""
    if isinstance(value, dict):
        return {key: with_infinity(each) for key, each in value.items()}
    if isinstance(value, list):
        return [with_infinity(each) for each in value]
    return _INFINITE.get(value, value) if isinstance(value, str) else value


def read_config(path: Path) -> dict[str, Any]:
    """The ``config.json`` of an exported policy; UserError for any other file."""

    def no_number(word: str) -> NoReturn:
        raise ValueError(f"{word} is no number of JSON")

    try:
        content = json.loads(read_text(path, "config"), parse_constant=no_number)
        check(content, _RULES)
    except (ValueError, RecursionError) as error:
        reason = shorten(str(error) or type(error).__name__, 200)
        raise UserError(
            f"config '{path}' was not written by lightning-rl export ({reason}); export the agent "
            "anew"
        ) from error
    return dict(content)


def read_exported(path: Path) -> dict[str, Any]:
    """The weights at ``path`` and the config beside them, as a checkpoint that holds what acting
    takes; what is in them is not checked yet.

    UserError where they are missing, damaged or do not belong together.
    """
    config = read_config(path.with_name(CONFIG))
    require("an exported policy", "safetensors")
    from safetensors import torch as tensors

    content = read_bytes(path, "weights", CHECKPOINT_BYTES)
    if checksum(content) != config["files"].get(path.name):
        raise UserError(
            f"weights '{path}' are not those that '{CONFIG}' beside them tells of; export the "
            "agent anew"
        )
    try:
        state = tensors.load(content)
    except Exception as error:  # whatever the package makes of foreign bytes
        reason = shorten(str(error), 200)
        raise UserError(
            f"weights '{path}' are damaged ({reason}); export the agent anew"
        ) from error
    return {
        "hyper_parameters": with_infinity(config["hyper_parameters"]),
        "state_dict": state,
        "acting_only": True,
        "action_mode": config["action_mode"],
    }
