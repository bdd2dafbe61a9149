"""Adam for a stack of members."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import torch
from torch import Tensor, nn

from lightning_rl.core.adam import LeanStep

LearningRate = float | Sequence[float] | Tensor
"""One for all members, or one for each ``[N]``."""


def learners_only(x: Tensor, active: Tensor) -> Tensor:
    """``x`` ``[N, D]`` with zeros for inactive members.

    Times a weight of 0, an infinite number would still be nan.
    """
    return x.masked_fill(~active.unsqueeze(1), 0)


class MemberAdam(LeanStep):
    """Adam (Kingma & Ba 2015, algorithm 1) over a block ``[N, D]``.

    One elementwise step is ``N`` independent Adams.

    State of the parameter: ``step`` ``[N]`` int64, as each member counts its own steps, ``exp_avg``
    and ``exp_avg_sq`` ``[N, D]``. If all members step, with equal counts and one learning rate,
    torch's fused kernel is used: a sixth of the time. Moments are rounded as ``torch.optim.Adam``
    rounds them; parameters may differ by one unit in the last place, as the step size is single
    precision here.

    Args:
        params: the block.
        lr: the learning rate, one for all members or one for each.
        weight_decay: decoupled (Loshchilov & Hutter 2019, arXiv 1711.05101) and *not* scaled by the
            step size: ``x <- (1 - weight_decay) x`` before each step.
        max_grad_norm: each member's gradient is scaled down to this 2-norm, as
            ``torch.nn.utils.clip_grad_norm_`` does.
    """

    # Counts, and whether they are all equal. Of the class, so that a copy has it, too.
    _in_step: tuple[Tensor | None, bool] = (None, False)

    def __init__(
        self,
        params: nn.Parameter,
        lr: LearningRate,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        max_grad_norm: float | None = None,
    ):
        if not isinstance(lr, float):
            lr = torch.as_tensor(lr, dtype=torch.float64)
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "max_grad_norm": max_grad_norm,
        }
        super().__init__([params], defaults)

    @property
    def params(self) -> nn.Parameter:
        """The block ``[N, D]``."""
        block: nn.Parameter = self.param_groups[0]["params"][0]
        return block

    @property
    def moments(self) -> dict[str, Tensor]:
        """The state of the block, zeros before the first step."""
        params = self.params
        state: dict[str, Tensor] = self.state[params]
        if not state:
            state["step"] = torch.zeros(len(params), dtype=torch.int64, device=params.device)
            state["exp_avg"] = torch.zeros_like(params)
            state["exp_avg_sq"] = torch.zeros_like(params)
        return state

    @property
    def num_steps(self) -> Tensor:
        """Steps of each member so far ``[N]`` int64."""
        return self.moments["step"]

    def descend(self, loss: Tensor, active: Tensor | None) -> None:
        """One step of the active members down their own losses ``[N]``."""
        (self.params.grad,) = torch.autograd.grad(loss.sum(), self.params)
        self.step(active=active)

    @torch.no_grad()
    def step(
        self, closure: Callable[[], Any] | None = None, *, active: Tensor | None = None
    ) -> Any:
        """Updates the members' rows in place along ``-params.grad``.

        Args:
            closure: computes the gradients, as for any optimizer of torch.
            active: ``[N]`` bool; the other members keep parameters, moments and count, even if
                their gradient is nan. None: all.
        """
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        if active is not None and bool(active.all()):
            active = None
        group, state = self.param_groups[0], self.moments
        one_rate = isinstance(group["lr"], float) and group["lr"] > 0
        if one_rate and active is None and self._equal(state["step"]):
            self._step_together(group, state)
        else:
            self._step_apart(group, state, active)
        return loss

    def _equal(self, count: Tensor) -> bool:
        """Whether all members have taken equally many steps.

        Looked at again only when it may have changed.
        """
        if self._in_step[0] is not count:
            self._in_step = (count, bool((count == count[:1]).all()))
        return self._in_step[1]

    def counts_changed(self) -> None:
        """To be called where others change the counts in place."""
        self._in_step = (None, False)

    def _step_apart(
        self, group: dict[str, Any], state: dict[str, Tensor], active: Tensor | None
    ) -> None:
        params, grad = self.params, cast(Tensor, self.params.grad)
        if active is None:
            active = torch.ones_like(state["step"], dtype=torch.bool)
        else:
            grad = learners_only(grad, active)
            self.counts_changed()
        grad = _clipped(grad, group["max_grad_norm"])
        beta1, beta2 = group["betas"]
        rate = group["lr"] if isinstance(group["lr"], float) else group["lr"].unsqueeze(1)
        # Factors that depend only on the member are [N, 1], computed in double precision and
        # rounded once.
        on = active.to(torch.float64).unsqueeze(1)
        kind = params.dtype
        state["step"] += active
        count = state["step"].unsqueeze(1).clamp(min=1).to(torch.float64)
        step_size = on * rate / (1 - beta1**count)
        scale = (1 - beta2**count).sqrt()
        if group["weight_decay"]:
            params.mul_((1 - group["weight_decay"] * on).to(kind))
        state["exp_avg"].lerp_(grad, ((1 - beta1) * on).to(kind))
        # ``spare`` has two uses: at this size, new memory costs as much as arithmetic.
        spare = grad * ((1 - beta2) * on).to(kind)
        square = state["exp_avg_sq"].mul_((1 - (1 - beta2) * on).to(kind)).addcmul_(spare, grad)
        divisor = torch.sqrt(square, out=spare).div_(scale.to(kind)).add_(group["eps"])
        params.addcdiv_(state["exp_avg"] * -step_size.to(kind), divisor)

    def _step_together(self, group: dict[str, Any], state: dict[str, Tensor]) -> None:
        params = self.params
        grad = _clipped(cast(Tensor, params.grad), group["max_grad_norm"])
        count = state["step"].add_(1)
        # What torch.optim.AdamW(fused=True) calls, without its bookkeeping, which takes three times
        # as long.
        torch._fused_adamw_(
            [params.data],
            [grad],
            [state["exp_avg"]],
            [state["exp_avg_sq"]],
            [],
            [count[0].float()],
            lr=group["lr"],
            beta1=group["betas"][0],
            beta2=group["betas"][1],
            weight_decay=group["weight_decay"] / group["lr"],
            eps=group["eps"],
            amsgrad=False,
            maximize=False,
        )

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """As any optimizer's, and with the counts on the block's device.

        Torch and Lightning leave what is called ``step`` where it is.
        """
        super().load_state_dict(state_dict)
        self.to(self.params.device)

    def to(self, device: torch.device) -> None:
        """Goes on where its block has been moved.

        Moves learning rates of members, and moments that are there already.
        """
        for values in (self.param_groups[0], *self.state.values()):
            for name, value in values.items():
                if isinstance(value, Tensor):
                    values[name] = value.to(device)

    def rows(self) -> dict[str, Tensor]:
        """All that has a row for each member, by name."""
        rate = self.param_groups[0]["lr"]
        return self.moments | ({} if isinstance(rate, float) else {"lr": rate})

    def load_rows(self, rows: Mapping[str, Tensor]) -> None:
        """Goes on with these rows, maybe of another number of members."""
        for name in self.moments:
            self.state[self.params][name] = rows[name]
        if "lr" in rows:
            self.param_groups[0]["lr"] = rows["lr"]


def _clipped(grad: Tensor, max_norm: float | None) -> Tensor:
    """``grad`` ``[N, D]`` with rows of at most this norm."""
    if max_norm is None:
        return grad
    norm = torch.linalg.vector_norm(grad, dim=1, keepdim=True)
    return grad * (max_norm / (norm + 1e-6)).clamp(max=1)
