"""Trains, resumes and evaluates methods: see ``python trainer.py --help``."""

import sys

from lightning_rl.cli import main

if __name__ == "__main__":
    sys.exit(main())
