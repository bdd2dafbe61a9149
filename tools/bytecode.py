"""Makes the bytecode of what the commands import; ``make install`` ends with it.

pip would make that of all packages, of which a command imports a fifth. Python makes it where
something is imported, unless PYTHONDONTWRITEBYTECODE is set, as in many containers: each command
would then compile all that it imports, most of the time of its start. So everything is imported
here once, by two processes: torch and this package by one, other packages by the other.
"""

from __future__ import annotations

import ast
import contextlib
import gc
import importlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent.parent / "lightning_rl"
BY_NAME = (
    "ale_py",
    "gymnasium.envs.box2d",
    "gymnasium.envs.classic_control",
    "gymnasium.envs.mujoco.half_cheetah_v5",
    "gymnasium.envs.toy_text",
    "moviepy",
    "pygame",
)
"""Imported by commands, but in no import statement of this package."""


def modules() -> list[str]:
    """The modules of this package."""
    paths = [path.relative_to(PACKAGE.parent).with_suffix("") for path in PACKAGE.rglob("*.py")]
    return sorted(".".join(path.parts).removesuffix(".__init__") for path in paths)


def others() -> list[str]:
    """What the files of this package import of other packages, also within functions."""
    found = {name for path in PACKAGE.rglob("*.py") for name in _imports(path)}
    return sorted({*found, *BY_NAME})


def _imports(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            yield node.module


def import_all(names: list[str]) -> None:
    """Imports the modules that can be imported here: others are missed by who uses them."""
    sys.dont_write_bytecode = False
    gc.disable()  # nothing of what is imported is garbage
    for name in names:
        with contextlib.suppress(Exception):
            importlib.import_module(name)


def main() -> None:
    quiet = {**os.environ, "PYGAME_HIDE_SUPPORT_PROMPT": "1"}
    other = subprocess.Popen([sys.executable, __file__, "others"], env=quiet)
    import_all(["pytorch_lightning", *modules()])
    other.wait()


if __name__ == "__main__":
    sys.path[0] = str(PACKAGE.parent)
    if sys.argv[1:]:
        heavy = ("torch", "pytorch_lightning", "lightning_fabric", "lightning_rl")
        import_all([name for name in others() if name.partition(".")[0] not in heavy])
    else:
        main()
