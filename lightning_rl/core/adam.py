"""Optimizers whose steps cost little for small networks."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch.optim import optimizer as torch_optimizer


def is_observed(optimizer: torch.optim.Optimizer) -> bool:
    """Whether a hook or the profiler wants to see its steps."""
    return bool(
        optimizer._optimizer_step_pre_hooks
        or optimizer._optimizer_step_post_hooks
        or torch.autograd.profiler._is_profiler_enabled
        or torch_optimizer._global_optimizer_pre_hooks
        or torch_optimizer._global_optimizer_post_hooks
    )


class LeanStep(torch.optim.Optimizer):
    """An optimizer whose ``step`` goes through torch's wrapper for hooks and profiling only where
    there is a hook or a profiler.

    That wrapper takes as long as the arithmetic of a small network.
    """

    @staticmethod
    def profile_hook_step(func: Callable[..., Any]) -> Callable[..., Any]:
        """Replaces torch's method of this name: torch's wrapper of ``step`` is entered only if a
        hook or the profiler is on.
        """
        hooked = torch.optim.Optimizer.profile_hook_step(func)

        @functools.wraps(func)
        def step(self: LeanStep, *args: Any, **kwargs: Any) -> Any:
            return (hooked if is_observed(self) else func)(self, *args, **kwargs)

        return step
