"""Configs: a strict dataclass is the schema, the YAML file of the implementation the only place of values.

``default:`` < the block of the gamename < the block of ``--preset`` under ``presets:`` < ``--config`` <
``--set key=value``. A preset may hold blocks ``by_gamename``, too; ``procmaze-3`` reads those of ``procmaze`` and then its own,
``CartPole-v1`` those of ``cartpole``, which is the same environment.
"""

from __future__ import annotations

import copy
import dataclasses
import difflib
import functools
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import pydantic
import yaml

from lightning_rl.core.gamenames import base_name
from lightning_rl.core.limits import WHOLE, YAML_BYTES, YAML_DEPTH, YAML_VALUES, shorten, shown
from lightning_rl.core.types import UserError

C = TypeVar("C")

BY_GAMENAME = "by_gamename"
"""Key of a preset under which it has blocks for single environments."""


class _Loader(yaml.SafeLoader):
    """Plain data of a bounded size, aliases counted as what they stand for; no dates, no second value of a key.

    YAML 1.1 reads ``1e-3`` as text; here it is the number it looks like.
    """

    def construct_document(self, node: yaml.Node) -> Any:
        self._left = YAML_VALUES
        self._check(node, 0)
        return super().construct_document(node)

    def _check(self, node: yaml.Node, depth: int) -> None:
        self._left -= 1
        if self._left < 0 or depth > YAML_DEPTH:
            raise ValueError(f"more than {YAML_VALUES:,} values, or nested deeper than {YAML_DEPTH} levels")
        if isinstance(node, yaml.MappingNode):
            keys = [key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode)]
            if twice := [key for key in dict.fromkeys(keys) if keys.count(key) > 1]:
                raise ValueError(f"key '{shorten(twice[0])}' stands there twice")
            for pair in node.value:
                for part in pair:
                    self._check(part, depth + 1)
        elif isinstance(node, yaml.SequenceNode):
            for part in node.value:
                self._check(part, depth + 1)


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in known if tag != "tag:yaml.org,2002:timestamp"]
    for first, known in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(r"^[-+]?(\d+\.?\d*([eE][-+]?\d+)|\d+\.\d*|\.\d+([eE][-+]?\d+)?|\.inf|\.nan)$", re.IGNORECASE),
    list("-+0123456789."),
)


def parse_yaml(text: str, where: str) -> Any:
    """Plain data from YAML text; UserError names ``where``."""
    if len(text) > YAML_BYTES:
        raise UserError(f"{where}: {len(text):,} characters of YAML; at most {YAML_BYTES:,} are taken, which no config needs")
    try:
        return yaml.load(text, Loader=_Loader)
    except Exception as error:  # PyYAML's constructors raise whatever int(), float() and the like do
        raise UserError(f"{where}: not valid YAML: {shorten(' '.join(str(error).split()), 200)}") from error


def read_yaml(path: Path) -> Any:
    """The plain data of a YAML file; UserError, naming ``path``, where it is no file, too long, or no YAML.

    A process parses a file once, until it changes: parsing takes longer than all checks of a config together.
    """
    try:
        if not path.is_file():
            raise UserError(f"'{path}' cannot be read, it is not a file; give the path of a YAML file")
        about = path.stat()
        return copy.deepcopy(_parsed(path, (about.st_ino, about.st_mtime_ns, about.st_size)))
    except OSError as error:
        raise UserError(f"'{path}' cannot be read: {error.strerror}; give the path of a YAML file") from error


@functools.lru_cache(maxsize=1024)
def _parsed(path: Path, version: tuple[int, ...]) -> Any:
    """What is in a file; version: part of the key, so that a file that has changed is read again."""
    del version
    try:
        with path.open("rb") as file:
            content = file.read(YAML_BYTES + 1)
        if len(content) > YAML_BYTES:
            raise UserError(f"'{path}' is longer than the {YAML_BYTES:,} bytes that are taken, as no config is; give another")
        return parse_yaml(content.decode(), f"'{path}' is damaged")
    except ValueError as error:
        raise UserError(f"'{path}' is damaged: {error}; give the path of a YAML file") from error


def config_path(implementation: str) -> Path:
    """The YAML of an implementation; in a checkout the package's ``configs`` is a link to the top-level folder."""
    return Path(__file__).resolve().parent.parent / "configs" / f"{implementation}.yaml"


def parse_setting(setting: str, flag: str = "--set", example: str = "learning_rate=1e-3") -> tuple[str, Any]:
    """``key=value`` of ``--set``, the value read as YAML."""
    key, equals, value = setting.partition("=")
    if not equals or not key.strip():
        raise UserError(f"{flag} '{shorten(setting)}': expected key=value, e.g. {flag} {example}")
    return key.strip(), parse_yaml(value, f"{flag} {shorten(key)}")


def parse_settings(settings: Iterable[str], flag: str = "--set", example: str = "learning_rate=1e-3") -> dict[str, Any]:
    """All of a repeatable ``--set``; UserError for a key that is given two values."""
    found: dict[str, Any] = {}
    for key, value in (parse_setting(setting, flag, example) for setting in settings):
        if key in found and repr(found[key]) != repr(value):
            raise UserError(f"{flag} {shorten(key)} is given twice, {shown(found[key])} and {shown(value)}; leave one out")
        found[key] = value
    return found


def read_settings(path: Path, implementation: str) -> dict[str, Any]:
    """Keys and values of ``--config``: a run's config.yaml, a search's best.yaml, or a plain mapping of keys."""
    try:
        document = read_yaml(path)
    except UserError as error:
        raise UserError(f"--config {error}") from error
    if not isinstance(document, dict):
        raise UserError(f"--config '{path}': expected a mapping of keys to values, got {shown(document)}")
    if (other := document.get("implementation", implementation)) != implementation:
        raise UserError(
            f"--config '{path}' is of {shown(other)}, this run's implementation is {implementation}; they must match"
        )
    settings = document.get("config", document)
    if not isinstance(settings, dict):
        raise UserError(f"--config '{path}': config: must be a mapping of keys to values, got {shown(settings)}")
    return settings


def _check_whole_numbers(where: str, value: Any) -> None:
    """UserError for a whole number within ``value`` that is too large for any key."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            _check_whole_numbers(f"{where}.{shorten(str(key))}", inner)
    elif isinstance(value, list | tuple | set):
        for inner in value:
            _check_whole_numbers(where, inner)
    elif isinstance(value, int) and abs(value) > WHOLE:
        raise UserError(f"{where}: {shown(value)} is beyond {WHOLE:,}, the largest whole number that is taken; give less")


def merged_values(implementation: str, gamename: str, preset: str | None = None) -> list[tuple[str, dict[str, Any]]]:
    """(where, values) of the blocks ``default``, gamename and ``presets: <preset>``, in rising order of precedence."""
    games = list(dict.fromkeys((base_name(gamename), gamename)))
    path = config_path(implementation)
    document = read_yaml(path)
    presets = document.get("presets") or {}
    if preset is not None and preset not in presets:
        raise UserError(f"--preset '{shorten(preset)}' is not in {path.name}; it has: {', '.join(presets) or 'none'}")
    blocks = [(f"{path.name}, block '{name}'", document.get(name) or {}) for name in ("default", *games)]
    if preset is not None:
        where, chosen = f"{path.name}, preset '{preset}'", presets[preset] or {}
        own = chosen.get(BY_GAMENAME) or {}
        blocks.append((where, {key: value for key, value in chosen.items() if key != BY_GAMENAME}))
        blocks += [(f"{where}, block '{name}'", own[name]) for name in games if name in own]
    for where, block in blocks:
        if not isinstance(block, dict):
            raise UserError(f"{where}: expected a mapping of keys to values, got {shown(block)}")
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
                raise UserError(f"{where}: unknown key '{shorten(str(key))}'{hint}")
            _check_whole_numbers(f"{where}: key '{shorten(str(key))}'", value)
            values[name], source[name] = _within(values.get(name), inner, value), where
    try:
        return schema(**values)
    except pydantic.ValidationError as error:
        first = error.errors()[0]
        if not first["loc"]:  # about several keys together
            raise UserError(first["msg"].removeprefix("Value error, ")) from error
        key = str(first["loc"][0])
        got = "" if first["type"] == "missing" else f", got {shown(first['input'])}"
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
