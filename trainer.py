"""Trains, resumes and evaluates methods: see ``python trainer.py --help``."""

from lightning_rl.cli import leave, main

if __name__ == "__main__":
    leave(main())
