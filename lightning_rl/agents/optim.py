"""Adam for a stack of members."""

from __future__ import annotations

import torch
from torch import Tensor

from lightning_rl.nets.stacked import Stacked


def learners_only(x: Tensor, active: Tensor) -> Tensor:
    """``x`` ``[N, D]`` with zeros for inactive members: times a weight of 0, an infinite number would still be nan."""
    return x if active.all() else x.masked_fill(~active.unsqueeze(1), 0)


class MemberAdam(Stacked):
    """Adam (Kingma & Ba 2015, algorithm 1) over a block ``[N, D]``: one elementwise step is ``N`` independent Adams.

    learning_rate ``[N]``; each member counts its own steps. Inactive members keep parameters, moments and count,
    whatever their gradient, nan included.
    max_grad_norm: each member's gradient is scaled down to this 2-norm, as ``torch.nn.utils.clip_grad_norm_`` does.
    Moments are rounded as ``torch.optim.Adam`` rounds them; parameters may differ by one unit in the last place, as the
    step size is single precision here.
    """

    member_tensors = ("learning_rate", "exp_avg", "exp_avg_sq", "num_steps")

    def __init__(
        self, params: Tensor, learning_rate: Tensor, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8,
        max_grad_norm: float | None = None,
    ):  # fmt: skip
        if learning_rate.shape != params.shape[:1]:
            raise ValueError(f"learning_rate must be [N] = {list(params.shape[:1])}, got {list(learning_rate.shape)}")
        self.learning_rate = learning_rate.to(torch.float64)
        self.betas, self.eps, self.max_grad_norm = betas, eps, max_grad_norm
        self.exp_avg, self.exp_avg_sq = torch.zeros_like(params), torch.zeros_like(params)
        self.num_steps = torch.zeros(len(params), dtype=torch.int64, device=params.device)

    @torch.no_grad()
    def step(self, params: Tensor, grad: Tensor, active: Tensor) -> None:
        """Updates ``params`` ``[N, D]`` in place along ``-grad`` ``[N, D]`` for the members in ``active`` ``[N]`` bool."""
        grad = learners_only(grad, active)
        if self.max_grad_norm is not None:
            norm = torch.linalg.vector_norm(grad, dim=1, keepdim=True)
            grad = grad * (self.max_grad_norm / (norm + 1e-6)).clamp(max=1)
        beta1, beta2 = self.betas
        # Everything that depends on the member alone is [N, 1], in double precision, and rounded once.
        on = active.to(torch.float64).unsqueeze(1)
        self.num_steps += active
        count = self.num_steps.unsqueeze(1).clamp(min=1).to(torch.float64)
        step_size = on * self.learning_rate.unsqueeze(1) / (1 - beta1**count)
        scale = (1 - beta2**count).sqrt()
        kind = params.dtype
        self.exp_avg.lerp_(grad, ((1 - beta1) * on).to(kind))
        self.exp_avg_sq.mul_((1 - (1 - beta2) * on).to(kind)).addcmul_(grad * ((1 - beta2) * on).to(kind), grad)
        denominator = (self.exp_avg_sq.sqrt() / scale.to(kind)).add_(self.eps)
        params.addcdiv_(self.exp_avg * -step_size.to(kind), denominator)


class LockstepAdam(Stacked):
    """Adam for members that always step together and share one step size: a single pass over memory.

    decay is decoupled (Loshchilov & Hutter 2019, arXiv 1711.05101) and *not* scaled by the step size: ``x <- (1 - decay) x``
    before each step. A sixth of the time of ``MemberAdam`` on a CPU.
    """

    member_tensors = ("exp_avg", "exp_avg_sq", "num_steps")

    def __init__(self, params: Tensor, learning_rate: float, betas: tuple[float, float], eps: float, decay: float = 0.0):
        self.learning_rate, self.betas, self.eps, self.decay = learning_rate, betas, eps, decay
        self.exp_avg, self.exp_avg_sq = torch.zeros_like(params), torch.zeros_like(params)
        self.num_steps = torch.zeros(len(params), dtype=torch.int64, device=params.device)

    @torch.no_grad()
    def step(self, params: Tensor, grad: Tensor, members: slice) -> None:
        """Updates the rows ``members`` of ``params`` ``[N, D]`` in place along ``-grad`` ``[M, D]``."""
        count = self.num_steps[members].add_(1)
        # What torch.optim.AdamW(fused=True) calls, without its bookkeeping, which takes three times as long.
        torch._fused_adamw_(
            [params[members]], [grad], [self.exp_avg[members]], [self.exp_avg_sq[members]], [], [count[0].float()],
            lr=self.learning_rate, beta1=self.betas[0], beta2=self.betas[1], weight_decay=self.decay / self.learning_rate,
            eps=self.eps, amsgrad=False, maximize=False,
        )  # fmt: skip
