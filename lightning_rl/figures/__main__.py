"""``python -m lightning_rl.figures NAME ...``."""

import sys

from lightning_rl.arguments import run_tool
from lightning_rl.figures.registry import FIGURES
from lightning_rl.types import UserError

if __name__ == "__main__":
    try:
        run_tool("python -m lightning_rl.figures", FIGURES, sys.argv[1:])
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)
