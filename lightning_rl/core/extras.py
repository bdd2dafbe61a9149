"""Packages that not every installation has, and the line that says what installs them."""

from __future__ import annotations

import importlib.util

from lightning_rl.core.errors import UserError

INSTALLED_BY = {
    "moviepy": "lightning_rl[films]",
    "PIL": "lightning_rl[films]",
    "jinja2": "lightning_rl[figures]",
    "matplotlib": "lightning_rl[figures]",
    "pandas": "lightning_rl[figures]",
    "cmaes": "lightning_rl[cmaes]",
    "minari": "lightning_rl[offline]",
    "h5py": "lightning_rl[offline]",
    "onnx": "lightning_rl[export]",
    "onnxruntime": "lightning_rl[export]",
    "onnxscript": "lightning_rl[export]",
    "safetensors": "lightning_rl[export]",
    "vizdoom": "lightning_rl[doom]",
    "ale_py": "lightning_rl[atari]",
    "synthetic_gymnax": "lightning_rl[league]",
    # Required, but absent from a light installation (requirements-light.txt).
    "mujoco": "mujoco",
    "ray": "ray[tune]",
    "scipy": "scipy",
    "tensorboard": "tensorboard",
}
"""What pip is to install for each, by the name that is imported."""


def is_installed(package: str) -> bool:
    """Whether a package could be imported; imports nothing."""
    return importlib.util.find_spec(package) is not None


def lacking(what: str, *packages: str) -> str | None:
    """One line with what to install where one of these packages is missing, else None.

    what: needs them, e.g. "a film".
    """
    for package in packages:
        if not is_installed(package):
            return _line(what, package)
    return None


def require(what: str, *packages: str) -> None:
    """UserError with the line of ``lacking`` where one of these packages is missing."""
    line = lacking(what, *packages)
    if line is not None:
        raise UserError(line)


def missing(error: Exception) -> str | None:
    """One line about an import that failed for want of such a package; None for other errors."""
    if not isinstance(error, ModuleNotFoundError):
        return None
    package = (error.name or "").partition(".")[0]
    if package not in INSTALLED_BY or is_installed(package):
        return None
    return _line("this", package)


def _line(what: str, package: str) -> str:
    return f"{what} needs {package}: pip install '{INSTALLED_BY[package]}'"
