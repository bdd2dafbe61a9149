"""Trains, resumes and evaluates methods: see ``python trainer.py --help``."""

import sys

if __name__ == "__main__" and not sys.flags.safe_path:
    del sys.path[0]  # this folder, of whose files only the package is to be run

import importlib
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
importlib.import_module("lightning_rl")
del sys.path[0]

if __name__ == "__main__":
    from lightning_rl.cli import entry_point

    entry_point()
