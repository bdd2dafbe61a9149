"""Four families of reinforcement-learning research on PyTorch Lightning."""

__version__ = "0.1.0"
