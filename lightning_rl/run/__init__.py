"""One training run: process settings, checkpoints, callbacks, run directories."""
