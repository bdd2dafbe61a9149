"""``python -m lightning_rl``: the same as the command ``lightning-rl``."""

from lightning_rl.cli import entry_point

if __name__ == "__main__":
    entry_point()
