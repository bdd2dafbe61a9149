"""``python -m lightning_rl.lab.figures NAME ...``: the same as ``lightning-rl figures NAME ...``."""

import sys

from lightning_rl.core.arguments import Group
from lightning_rl.core.errors import UserError
from lightning_rl.lab.figures.registry import FIGURES

if __name__ == "__main__":
    try:
        Group("draw a figure", FIGURES).use("python -m lightning_rl.lab.figures", sys.argv[1:])
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)
