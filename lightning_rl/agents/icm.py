"""Intrinsic curiosity (Pathak et al. 2017, arXiv 1705.05363).

The error of a forward model of learned features is the reward.

As in the code of the synthetic-environments paper, gradients reach the encoder through both sides
of the forward error. Unlike there, the inverse loss of tasks with two actions is a cross-entropy of
two logits, as with more (there binary, of one logit), and for discrete TD3, whose actions are
vectors, it is a squared error (there a cross-entropy).
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from lightning_rl.agents.base import NetConfig, Transition
from lightning_rl.agents.optim import MemberAdam
from lightning_rl.agents.stack import MemberModule
from lightning_rl.core.errors import UserError
from lightning_rl.envs.spec import EnvSpec
from lightning_rl.functional.curiosity import forward_error, inverse_loss
from lightning_rl.nets.members import MemberMLP

_BLOCKS = 4


class ICM(MemberModule):
    """Encoder, inverse model and forward model of ``N`` members in one block, one Adam over all.

    vectors: actions are vectors, not indices.
    """

    def __init__(
        self, cfg: NetConfig, spec: EnvSpec, vectors: bool, generators: Sequence[torch.Generator]
    ):
        super().__init__()
        if spec.frames is not None:
            raise UserError(
                "curiosity icm: its networks do not see images; set curiosity=none, or take a task "
                "whose observations are vectors"
            )
        self.cfg, self.action_size, self.vectors = cfg, spec.action_size, vectors
        features, width = cfg.icm_feature_size, cfg.icm_hidden_size
        hidden, entry = (width, width), width + spec.action_size
        self._encoder = MemberMLP(spec.obs_size, hidden, features, "leakyrelu")
        self._inverse = MemberMLP(2 * features, hidden, spec.action_size, "relu")
        self._enter = MemberMLP(features + spec.action_size, hidden, width, "leakyrelu")
        # A residual block: Linear and leaky ReLU on [x, a], Linear on [that, a], added to x.
        self._linear = MemberMLP(entry, (), width)
        self._leave = MemberMLP(entry, (width,), features, "leakyrelu")
        blocks = [self._linear] * (2 * _BLOCKS)
        nets = [self._encoder, self._inverse, self._enter, *blocks, self._leave]
        self._sizes = [net.size for net in nets]
        self.params = nn.Parameter(torch.cat([net.init(generators) for net in nets], dim=1))
        self.adam = MemberAdam(self.params, cfg.icm_learning_rate)

    def _predict(self, params: Tensor, batch: Transition) -> tuple[Tensor, Tensor]:
        """(inverse loss, forward error), each ``[N, B]``."""
        encoder, inverse, enter, *blocks, leave = params.split(self._sizes, dim=1)
        action = batch.action
        if not self.vectors:
            action = F.one_hot(action, self.action_size).to(batch.obs.dtype)
        before, after = self._encoder(encoder, batch.obs), self._encoder(encoder, batch.next_obs)
        predicted_action = self._inverse(inverse, torch.cat([before, after], -1))
        x = self._enter(enter, torch.cat([before, action], -1))
        for first, second in zip(blocks[::2], blocks[1::2], strict=True):
            z = F.leaky_relu(self._linear(first, torch.cat([x, action], -1)))
            x = x + self._linear(second, torch.cat([z, action], -1))
        predicted = self._leave(leave, torch.cat([x, action], -1))
        return inverse_loss(predicted_action, batch.action), forward_error(predicted, after)

    @torch.enable_grad()
    def learn(self, batch: Transition, weight: Tensor, active: Tensor | None) -> Tensor:
        """The bonus ``[N, B]`` for a batch, before one step of learning on it.

        Weight ``[N, B]`` averages over the batch.
        """
        inverse, error = self._predict(self.params, batch)
        beta = self.cfg.icm_beta
        loss = weight * ((1 - beta) * inverse + beta * error)
        self.adam.descend(loss.sum(-1), active)
        return self.cfg.icm_eta * error.detach()
