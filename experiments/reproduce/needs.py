"""What a claim takes besides this package and a processor."""

from __future__ import annotations

import importlib.util

from experiments.reproduce.claims import Claim


def on_gpu(claim: Claim) -> bool:
    """Whether its trainings ask for a GPU."""
    return any("--accelerator gpu" in command for command in claim.commands)


def of_baseline(claim: Claim) -> bool:
    """Whether it is of Stable-Baselines3's agents."""
    return any(command.startswith("baseline ") for command in claim.commands)


def lacking(claim: Claim, smoke: bool = False) -> str:
    """What this machine lacks for the claim, empty where it has all; smoke: trainings on a GPU
    are moved to the processor.
    """
    if of_baseline(claim) and importlib.util.find_spec("stable_baselines3") is None:
        return "Stable-Baselines3 (pip install 'lightning_rl[baselines]')"
    if (
        any("kernels=numba" in command for command in claim.commands)
        and importlib.util.find_spec("numba") is None
    ):
        return "numba (pip install 'lightning_rl[fast]')"
    if on_gpu(claim) and not smoke:
        import torch

        return "" if torch.cuda.is_available() else "a GPU"
    return ""
