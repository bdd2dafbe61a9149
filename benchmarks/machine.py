"""Which machine, at which load, ran which commit: what every measured number is worth nothing
without.
"""

from __future__ import annotations

import os
import platform
import subprocess
from importlib import metadata
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
_PACKAGES = ("torch", "pytorch-lightning", "gymnasium", "numpy", "stable-baselines3")
_VECTORS = ("avx2", "fma", "avx512f", "avx512_bf16", "amx_tile")


def processor() -> str:
    """The model of the processor, as the system names it."""
    return _cpuinfo("model name") or platform.processor() or platform.machine()


def vector_flags() -> str:
    """Which of the vector instructions that matrix products use the processor has."""
    flags = _cpuinfo("flags").split()
    return " ".join(flag for flag in _VECTORS if flag in flags) or "unknown"


def _cpuinfo(key: str) -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:  # not Linux
        return ""
    return next((line.partition(":")[2].strip() for line in lines if line.startswith(key)), "")


def load() -> float:
    """How many processes wanted a core in the last minute, on average."""
    return os.getloadavg()[0]


def versions() -> str:
    """Of Python and of the packages that speed depends on, as far as they are installed."""
    installed = {each.name.lower(): each.version for each in metadata.distributions()}
    found = [f"{name} {installed[name]}" for name in _PACKAGES if name in installed]
    return ", ".join([f"Python {platform.python_version()}", *found])


def commit() -> str:
    """The commit of the source tree, with ``-dirty`` where files other than results and documents
    have changed since.
    """
    status = ("git", "status", "--porcelain", "--untracked-files=no")
    changed = (*status, "--", ".", ":!results", ":!*.md")
    try:
        return _output("git", "rev-parse", "--short=12", "HEAD") + (
            "-dirty" if _output(*changed) else ""
        )
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def _output(*command: str) -> str:
    return subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.strip()
