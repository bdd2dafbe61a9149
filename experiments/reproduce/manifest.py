"""Reads ``results/claims.yaml``; a mistake in it is one line with the claim and the key."""

from __future__ import annotations

import dataclasses
import functools
import json
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from experiments.reproduce.claims import (
    Claim,
    Differences,
    Earlier,
    EarlierSeeds,
    Elsewhere,
    Goal,
    Manifest,
    Published,
    Read,
)
from lightning_rl.core.errors import UserError
from lightning_rl.core.files import read_text
from lightning_rl.core.limits import did_you_mean, shorten, shown
from lightning_rl.core.yaml_files import parse_yaml


def load_claims(path: Path) -> Manifest:
    """The manifest; UserError names the file, the claim, the key and what was probably meant."""
    if not path.is_file():
        raise UserError(
            f"'{path}' is missing: only a checkout of the repository holds the claims; clone it "
            "and work there"
        )
    return _manifest(read_text(path, "manifest"), path)


@functools.lru_cache(maxsize=1)  # a page asks for hundreds of numbers, one by one
def _manifest(text: str, path: Path) -> Manifest:
    raw = parse_yaml(text, f"'{path}'", trusted=True)
    if isinstance(raw, dict):  # keys that begin with _ hold what others repeat
        raw = {key: value for key, value in raw.items() if not str(key).startswith("_")}
    try:  # as JSON, whose mappings may become dataclasses
        return TypeAdapter(Manifest).validate_json(json.dumps(raw, default=str))
    except ValidationError as error:
        raise UserError(f"'{path}'{_complaint(error)}") from error


_PARTS: dict[str, type] = {
    "published": Published,
    "here": Differences,
    "goal": Goal,
    "read": Read,
    "earlier_seeds": EarlierSeeds,
}
_SECTIONS: dict[str, type] = {"claims": Claim, "elsewhere": Elsewhere, "earlier": Earlier}


def _complaint(error: ValidationError) -> str:
    """The first mistake: claim, key, what is wrong; a misspelt key before the one it leaves out."""
    first = min(error.errors(), key=lambda each: each["type"] != "unexpected_keyword_argument")
    loc = [str(part) for part in first["loc"]]
    message = first["msg"].removeprefix("Value error, ")
    section, name, keys = (loc[0], loc[1], loc[2:]) if len(loc) > 1 else ("", "", loc)
    where = f", {'claim' if section == 'claims' else section} '{shorten(name)}'" if name else ""
    if keys:
        where += f", key '{shorten('.'.join(keys))}'"
    if first["type"] == "unexpected_keyword_argument":
        around = [_PARTS[key] for key in keys[:-1] if key in _PARTS]
        schema = around[-1] if around else _SECTIONS.get(section, Manifest)
        known = [field.name for field in dataclasses.fields(schema)]
        return f"{where}: unknown; {did_you_mean(keys[-1], known, 'known keys')}"
    if first["type"] == "missing":
        return f"{where}: it is missing"
    if first["type"] == "value_error":
        return f": {message}" if message.startswith("claim '") else f"{where}: {message}"
    return f"{where}: {message}, got {shown(first['input'])}"
