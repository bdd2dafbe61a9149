"""Four families of reinforcement-learning research on PyTorch Lightning."""

__version__ = "0.1.0"

from lightning_rl.envs.proxies import load_proxy

__all__ = ["__version__", "load_proxy"]
