"""Configs: a strict dataclass is the schema, the YAML file of the implementation the only place of values.

``default:`` < the block of the gamename < the block of ``--preset`` under ``presets:`` < ``--config`` <
``--set key=value``. A preset may hold blocks ``by_gamename``, too; ``procmaze-3`` reads those of ``procmaze`` and then its own.
"""

from __future__ import annotations

import dataclasses
import difflib
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import pydantic
import yaml

from lightning_rl.types import UserError

C = TypeVar("C")

BY_GAMENAME = "by_gamename"
"""Key of a preset under which it has blocks for single environments."""


class _Loader(yaml.SafeLoader):
    """YAML 1.1 reads ``1e-3`` as text; here it is the number it looks like."""


_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(r"^[-+]?(\d+\.?\d*([eE][-+]?\d+)|\d+\.\d*|\.\d+([eE][-+]?\d+)?|\.inf|\.nan)$", re.IGNORECASE),
    list("-+0123456789."),
)


def parse_yaml(text: str, where: str) -> Any:
    """Plain data from YAML text; UserError names ``where``."""
    try:
        return yaml.load(text, Loader=_Loader)
    except yaml.YAMLError as error:
        raise UserError(f"{where}: not valid YAML: {' '.join(str(error).split())}") from error


def config_path(implementation: str) -> Path:
    """The YAML of an implementation; in a checkout the package's ``configs`` is a link to the top-level folder."""
    return Path(__file__).resolve().parent / "configs" / f"{implementation}.yaml"


def parse_setting(setting: str, flag: str = "--set", example: str = "learning_rate=1e-3") -> tuple[str, Any]:
    """``key=value`` of ``--set``, the value read as YAML."""
    key, equals, value = setting.partition("=")
    if not equals or not key.strip():
        raise UserError(f"{flag} '{setting}': expected key=value, e.g. {flag} {example}")
    return key.strip(), parse_yaml(value, f"{flag} {key}")


def read_settings(path: Path, implementation: str) -> dict[str, Any]:
    """Keys and values of ``--config``: a run's config.yaml, a search's best.yaml, or a plain mapping of keys."""
    try:
        document = parse_yaml(path.read_text(), str(path))
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"--config '{path}' cannot be read: {error}; give the path of a YAML file") from error
    if not isinstance(document, dict):
        raise UserError(f"--config '{path}': expected a mapping of keys to values, got {document!r}")
    if (other := document.get("implementation", implementation)) != implementation:
        raise UserError(f"--config '{path}' is of {other}, this run's implementation is {implementation}; they must match")
    settings = document.get("config", document)
    if not isinstance(settings, dict):
        raise UserError(f"--config '{path}': config: must be a mapping of keys to values, got {settings!r}")
    return settings


def base_name(gamename: str) -> str:
    """The gamename without sizes: ``procmaze`` of ``procmaze-3``, ``buttongrid`` of ``buttongrid-4-2``; others as they are."""
    return re.sub(r"(-\d+)+$", "", gamename)


def merged_values(implementation: str, gamename: str, preset: str | None = None) -> list[tuple[str, dict[str, Any]]]:
    """(where, values) of the blocks ``default``, gamename and ``presets: <preset>``, in rising order of precedence."""
    games = list(dict.fromkeys((base_name(gamename), gamename)))
    path = config_path(implementation)
    document = parse_yaml(path.read_text(), path.name)
    presets = document.get("presets") or {}
    if preset is not None and preset not in presets:
        raise UserError(f"--preset '{preset}' is not in {path.name}; it has: {', '.join(presets) or 'none'}")
    blocks = [(f"{path.name}, block '{name}'", document.get(name) or {}) for name in ("default", *games)]
    if preset is not None:
        where, chosen = f"{path.name}, preset '{preset}'", presets[preset] or {}
        own = chosen.get(BY_GAMENAME) or {}
        blocks.append((where, {key: value for key, value in chosen.items() if key != BY_GAMENAME}))
        blocks += [(f"{where}, block '{name}'", own[name]) for name in games if name in own]
    for where, block in blocks:
        if not isinstance(block, dict):
            raise UserError(f"{where}: expected a mapping of keys to values, got {block!r}")
    return blocks


def has_key(schema: type[Any], key: str) -> bool:
    """Whether a config of ``schema`` has ``key``."""
    return key in {field.name for field in dataclasses.fields(schema)}


def _within(base: Any, path: list[str], value: Any) -> Any:
    """``base`` with ``value`` at ``path`` in its nested mappings; whatever is no mapping gives way to one."""
    if not path:
        return value
    mapping = dict(base) if isinstance(base, Mapping) else {}
    return {**mapping, path[0]: _within(mapping.get(path[0]), path[1:], value)}


def build_config(schema: type[C], layers: Iterable[tuple[str, Mapping[str, Any]]]) -> C:
    """A ``schema`` from layers of (where, values), later ones winning. ``a.b.c`` sets a value inside the mapping of key ``a``.

    UserError names the place and key of an unknown key, a wrong type or a value out of range.
    """
    known = [field.name for field in dataclasses.fields(schema)]  # type: ignore[arg-type]
    values: dict[str, Any] = {}
    source: dict[str, str] = {}
    for where, layer in layers:
        for key, value in layer.items():
            name, *inner = str(key).split(".")
            if name not in known:
                near = difflib.get_close_matches(name, known, n=1)
                hint = f"; did you mean '{near[0]}'?" if near else f"; known keys: {', '.join(known)}"
                raise UserError(f"{where}: unknown key '{key}'{hint}")
            values[name], source[name] = _within(values.get(name), inner, value), where
    try:
        return schema(**values)
    except pydantic.ValidationError as error:
        first = error.errors()[0]
        if not first["loc"]:  # about several keys together
            raise UserError(first["msg"].removeprefix("Value error, ")) from error
        key = str(first["loc"][0])
        got = "" if first["type"] == "missing" else f", got {first['input']!r}"
        raise UserError(f"{source.get(key, 'default')}: key '{key}': {first['msg']}{got}") from error


def changes(values: Mapping[str, Any], layers: Iterable[tuple[str, Mapping[str, Any]]]) -> dict[str, Any]:
    """Those of ``values`` that are others than the layers give."""
    below = {key: value for _, layer in layers for key, value in layer.items()}
    return {key: value for key, value in values.items() if value != below.get(key)}


def refuse_unread(unread: Mapping[str, str], *asked: tuple[str, Iterable[str]]) -> None:
    """UserError for a key that somebody asked for, (where, keys), though it makes no difference; unread: key -> reason."""
    for where, keys in asked:
        for key in keys:
            if key in unread:
                raise UserError(f"{where}: key '{key}': {unread[key]}")
