"""Functions that numba compiles to machine code, which is kept in the user's cache folder.

This imports numba: only modules named ``fused`` import it, and only they are imported lazily.
"""

from __future__ import annotations

import functools
import hashlib
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from numba import njit
from numba.core import config, event
from threadpoolctl import LibController, ThreadpoolController

from lightning_rl.core.lines import say

_PACKAGE = Path(__file__).resolve().parents[1]
_CONSTANTS = (
    "agents/td3.py",
    "envs/cartpole.py",
    "envs/classic.py",
    "envs/twins.py",
    "functional/distributions.py",
)
"""Files whose constants are compiled."""
_OPTIONS: Any = {
    "error_model": "numpy",
    # no more: else the order of sums, or what is fused, and so how a run rounds, may be another
    # one in the process that compiles than in those that load what it has kept
    "fastmath": {"nsz"},
}


@functools.cache
def _folder() -> Path:
    """Where compiled code of these very sources is kept.

    numba looks at the file of a function alone, not at those of the functions that it calls.
    """
    digest = hashlib.sha256()
    for path in [*sorted(_PACKAGE.rglob("*fused*.py")), *(_PACKAGE / name for name in _CONSTANTS)]:
        digest.update(path.read_bytes())
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "lightning_rl" / digest.hexdigest()[:16]


@contextmanager
def _kept_in(folder: Path) -> Iterator[None]:
    """numba keeps what is declared meanwhile in ``folder``, unless the user has chosen one."""
    settings: Any = config
    before = settings.CACHE_DIR
    settings.CACHE_DIR = before or str(folder)
    try:
        yield
    finally:
        settings.CACHE_DIR = before


def compiled(function: Callable[..., Any]) -> Any:
    """A function that is compiled at its first call; later processes load it.

    Where no folder can be written, each process compiles it anew.
    """
    _announce()
    try:
        with _kept_in(_folder()):
            dispatcher = njit(cache=True, **_OPTIONS)(function)
    except (RuntimeError, OSError):
        return njit(**_OPTIONS)(function)
    _save_if_possible(dispatcher._cache)
    return dispatcher


def _save_if_possible(cache: Any) -> None:
    """What is compiled is used, also if it cannot be saved, e.g. on a full disk."""
    save = cache.save_overload

    def save_overload(signature: Any, data: Any) -> None:
        with suppress(OSError, RuntimeError):
            save(signature, data)

    cache.save_overload = save_overload


def inlined(function: Callable[..., Any]) -> Any:
    """A function that becomes part of the compiled ones that call it, which compiles sooner."""
    return njit(inline="always")(function)


@functools.cache
def _announce() -> None:
    event.register("numba:compile", _FirstCompile())


class _FirstCompile(event.Listener):
    """Says once that there is something to wait for."""

    said = False

    def on_start(self, event: Any) -> None:
        module = str(event.data["dispatcher"].py_func.__module__)
        if module.startswith("lightning_rl.") and not self.said:
            self.said = True
            say("compiling for this processor, once: up to half a minute ..", error=True)

    def on_end(self, event: Any) -> None: ...


@functools.cache
def _blas() -> list[LibController]:
    import scipy.linalg.cython_blas  # noqa: F401, which numba multiplies matrices by

    return ThreadpoolController().select(internal_api="openblas").lib_controllers


@contextmanager
def one_thread() -> Iterator[None]:
    """Compiled matrix products stay in this thread: sums do not depend on the number of cores.

    As ``ThreadpoolController.limit`` does it, in a hundredth of its time.
    """
    before = [each.num_threads for each in _blas()]
    for each in _blas():
        each.set_num_threads(1)
    try:
        yield
    finally:
        for each, threads in zip(_blas(), before, strict=True):
            each.set_num_threads(threads)
