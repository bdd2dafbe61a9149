"""``python -m lightning_rl.lab.figures NAME ...``."""

import sys

from lightning_rl.core.arguments import run_tool
from lightning_rl.core.types import UserError
from lightning_rl.lab.figures.registry import FIGURES

if __name__ == "__main__":
    try:
        run_tool("python -m lightning_rl.lab.figures", FIGURES, sys.argv[1:])
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)
