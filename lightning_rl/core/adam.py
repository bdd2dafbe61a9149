"""Adam and clipping for small networks."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import torch
from torch import nn
from torch.optim import optimizer as torch_optimizer


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
            observed = (
                self._optimizer_step_pre_hooks
                or self._optimizer_step_post_hooks
                or torch.autograd.profiler._is_profiler_enabled
                or torch_optimizer._global_optimizer_pre_hooks
                or torch_optimizer._global_optimizer_post_hooks
            )
            return (hooked if observed else func)(self, *args, **kwargs)

        return step


class Adam(LeanStep, torch.optim.Adam):
    """``torch.optim.Adam(params, lr, fused=True)``, bit for bit, in half of the time where networks
    are small.

    It leaves out torch's bookkeeping for several devices and dtypes. The first step, and any with
    several parameter groups, weight decay, ``amsgrad`` or ``maximize``, is torch's own.
    """

    def __init__(self, params: Iterable[nn.Parameter], lr: float):
        super().__init__(params, lr=lr, fused=True)

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        group, *others = self.param_groups
        if others or group["weight_decay"] or group["amsgrad"] or group["maximize"]:
            super().step()
            return loss
        params = [parameter for parameter in group["params"] if parameter.grad is not None]
        states = [self.state[parameter] for parameter in params]
        if not all(states):  # the first step makes the states
            super().step()
            return loss
        steps = [state["step"] for state in states]
        torch._foreach_add_(steps, 1)
        torch._fused_adam_(
            params,
            [parameter.grad for parameter in params],
            [state["exp_avg"] for state in states],
            [state["exp_avg_sq"] for state in states],
            [],
            steps,
            lr=group["lr"],
            beta1=group["betas"][0],
            beta2=group["betas"][1],
            eps=group["eps"],
            weight_decay=0.0,
            amsgrad=False,
            maximize=False,
        )
        return loss


def clip_gradients(param_groups: Sequence[Mapping[str, Any]], limit: float) -> None:
    """Scales all gradients so that their common 2-norm is at most ``limit``, as Lightning does,
    in half of the time.
    """
    grads = [
        parameter.grad
        for group in param_groups
        for parameter in group["params"]
        if parameter.grad is not None
    ]
    norm = torch.linalg.vector_norm(torch.stack(torch._foreach_norm(grads)))
    if (factor := limit / (float(norm) + 1e-6)) < 1:
        torch._foreach_mul_(grads, factor)
