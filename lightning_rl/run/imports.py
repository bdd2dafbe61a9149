"""How the command line imports torch and Lightning: once, and without what no command uses of them.

A third of Lightning's own import is scipy.signal and matplotlib, which torchmetrics loads wherever
they are installed, and another third is torch's compiler, of which it needs the name of one class.
"""

from __future__ import annotations

import contextlib
import gc
import sys
from collections.abc import Iterator
from importlib.machinery import ModuleSpec
from importlib.metadata import Distribution, DistributionFinder, PackageNotFoundError
from types import ModuleType
from typing import Any

from lightning_rl.core.lines import say
from lightning_rl.core.modules import readable_ranks, typed

_COMPILER = "torch._dynamo"


def import_lightning() -> None:
    """Imports torch and Lightning, and says so.

    Python's garbage collector is off meanwhile, and exempts their objects from all later
    collections: they make hundreds of thousands of objects that stay. To search these for garbage
    takes a quarter of the time of the import, half a second now and then afterwards, and a second
    when the process ends.

    Code of a user's in this process may plot metrics or compile: for it nothing is left out.
    """
    if "pytorch_lightning" in sys.modules:
        return
    say("loading PyTorch and Lightning ..", error=True)
    enabled = gc.isenabled()
    gc.disable()
    try:
        with readable_ranks():
            if not typed():
                _import_what_is_used()
            import pytorch_lightning  # noqa: F401
    finally:
        gc.freeze()
        if enabled:
            gc.enable()


def _import_what_is_used() -> None:
    """Imports Lightning without plots of metrics and without torch's compiler.

    Another version of these packages may ask for more: what it then misses is an error of its
    import, which is made anew, whole.
    """
    import torch

    with contextlib.suppress(AttributeError, ImportError):
        with without("matplotlib", "scipy"):
            import torchmetrics  # noqa: F401
        with _no_compiler():
            import pytorch_lightning  # noqa: F401

            # At their first call, these ask the compiler to leave them as they are.
            optimizer = torch.optim.SGD([torch.zeros(())])
            optimizer.zero_grad()
            optimizer.load_state_dict(optimizer.state_dict())


@contextlib.contextmanager
def without(*packages: str) -> Iterator[None]:
    """Meanwhile these packages are not installed, however one asks."""
    absent = _Absent(packages)
    sys.meta_path.insert(0, absent)
    try:
        yield
    finally:
        sys.meta_path.remove(absent)


class _Absent(DistributionFinder):
    """Stands before Python's finders and says that packages are not there."""

    def __init__(self, packages: tuple[str, ...]):
        self.packages = packages

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        if name in self.packages:
            raise ModuleNotFoundError(f"No module named '{name}'", name=name)
        return None

    def find_distributions(
        self, context: DistributionFinder.Context | None = None
    ) -> Iterator[Distribution]:
        if context is not None and context.name in self.packages:
            raise PackageNotFoundError(context.name)
        return iter(())


@contextlib.contextmanager
def _no_compiler() -> Iterator[None]:
    """Meanwhile torch's compiler is one that has compiled nothing and leaves all functions as they
    are; afterwards who asks for it imports it.
    """
    if _COMPILER in sys.modules:
        yield
        return
    compiler: Any = ModuleType(_COMPILER)
    compiler.OptimizedModule = type("OptimizedModule", (), {})
    compiler.disable = lambda function, *args, **options: function
    sys.modules[_COMPILER] = compiler
    try:
        yield
    finally:
        del sys.modules[_COMPILER]
