"""Names that a user may give, without what they stand for."""

from __future__ import annotations

from typing import Any

from lightning_rl.core.config import config_path, read_yaml
from lightning_rl.core.gamenames import GAMES


def implementations() -> list[str]:
    """All methods."""
    return sorted(path.stem for path in config_path("x").parent.glob("*.yaml"))


ALIASES = {"vpg": "REINFORCE", "bpg": "REINFORCE-baseline", "epg": "REINFORCE-entropy", "cpg": "REINFORCE-combined", "aac": "AAC"}


def aliases() -> list[str]:
    """Short names of some methods."""
    return list(ALIASES)


def gamenames() -> list[str]:
    """The environments that have a name here."""
    return list(GAMES)


def _document(implementation: str) -> Any:
    return read_yaml(config_path(implementation))


def keys(implementation: str) -> list[str]:
    """The keys of a method's config."""
    return list(_document(implementation)["default"])


def presets(implementation: str) -> list[str]:
    """The presets of a method."""
    return list(_document(implementation).get("presets") or {})
