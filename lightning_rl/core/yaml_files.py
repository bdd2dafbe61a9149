"""YAML text and files as plain data: bounded in size, without dates, without a second value of a
key.
"""

from __future__ import annotations

import copy
import functools
import re
from pathlib import Path
from typing import Any

import yaml

from lightning_rl.core.errors import UserError
from lightning_rl.core.files import read_text
from lightning_rl.core.limits import YAML_BYTES, YAML_DEPTH, YAML_VALUES, shorten


class _Strict(yaml.constructor.SafeConstructor, yaml.resolver.Resolver):
    """Plain data of a bounded size, each alias counted as all that it repeats; no dates, no second
    value of a key.

    YAML 1.1 reads ``1e-3`` as text, here it is the number it looks like; and 010 as 8 and 1:30 as
    90, here they are text.
    """

    def construct_document(self, node: yaml.Node) -> Any:
        self._left = YAML_VALUES
        self._check(node, 0)
        return super().construct_document(node)

    def _check(self, node: yaml.Node, depth: int) -> None:
        self._left -= 1
        if self._left < 0 or depth > YAML_DEPTH:
            raise ValueError(
                f"more than {YAML_VALUES:,} values, or nested deeper than {YAML_DEPTH} levels"
            )
        if isinstance(node, yaml.MappingNode):
            keys = [key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode)]
            if twice := [key for key in dict.fromkeys(keys) if keys.count(key) > 1]:
                raise ValueError(f"key '{shorten(twice[0])}' is given twice")
            for pair in node.value:
                for part in pair:
                    self._check(part, depth + 1)
        elif isinstance(node, yaml.SequenceNode):
            for part in node.value:
                self._check(part, depth + 1)


_Strict.yaml_implicit_resolvers = {
    first: [
        (tag, pattern)
        for tag, pattern in known
        if tag.rpartition(":")[2] not in ("timestamp", "int", "float")
    ]
    for first, known in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_Strict.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(
        r"^[-+]?(\d[\d_]*\.?\d*([eE][-+]?\d+)|\d[\d_]*\.\d*|\.\d+([eE][-+]?\d+)?|\.inf|\.nan)$",
        re.IGNORECASE,
    ),
    list("-+0123456789."),
)
_Strict.add_implicit_resolver(
    "tag:yaml.org,2002:int",
    re.compile(r"^[-+]?(0|[1-9][0-9_]*|0x[0-9a-fA-F_]+|0b[01_]+)$"),
    list("-+0123456789"),
)


class _Loader(_Strict, yaml.SafeLoader):
    """For text from anywhere."""


class _FastLoader(_Strict, getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """Eight times as fast, but libyaml crashes the process on text that is nested some ten
    thousand levels deep.
    """


_INDICATORS = "[{-?:"
"""Each level of nesting begins with one of these."""

_FEW = 5_000


def parse_yaml(text: str, where: str, *, trusted: bool = False) -> Any:
    """Plain data from YAML text; UserError names ``where``. trusted: a file of this package."""
    if len(text) > YAML_BYTES:
        raise UserError(
            f"{where}: {len(text):,} characters of YAML; at most {YAML_BYTES:,} are taken, which "
            "no config needs"
        )
    try:
        shallow = trusted or sum(map(text.count, _INDICATORS)) < _FEW
        return yaml.load(text, Loader=_FastLoader if shallow else _Loader)
    except Exception as error:  # PyYAML's constructors raise what int(), float() and the like do
        raise UserError(
            f"{where}: not valid YAML: {shorten(' '.join(str(error).split()), 200)}"
        ) from error


def read_yaml(path: Path) -> Any:
    """The plain data of a YAML file; UserError, naming ``path``, where it is no file, too long, or
    no YAML.

    A process parses a file once, until it changes: parsing takes longer than all checks of a config
    together.
    """
    try:
        about = path.stat()
        version: tuple[int, ...] = (about.st_ino, about.st_mtime_ns, about.st_size)
    except (OSError, ValueError):
        version = ()  # reading it says why
    return copy.deepcopy(_parsed(path, version))


@functools.lru_cache(maxsize=1024)
def _parsed(path: Path, version: tuple[int, ...]) -> Any:
    """What is in a file; version: part of the key, so that a file that has changed is read
    again.
    """
    del version
    return parse_yaml(read_text(path, "YAML file", YAML_BYTES), f"'{path}' is damaged")
