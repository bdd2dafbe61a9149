"""Dyna with warm-up.

Values learn from replayed steps until the world model's loss on new ones has settled.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from lightning_rl.agents.experience import UpdateBatch
from lightning_rl.agents.stack import MemberModule, SeededMembers
from lightning_rl.functional.world_model import REWARD_LOSS_FLOOR
from lightning_rl.nets.recorded_pass import RecordedPass
from lightning_rl.nets.world_models import RealSteps, WorldModel

if TYPE_CHECKING:
    from lightning_rl.agents.model_based import ModelBasedConfig
    from lightning_rl.agents.model_rollouts import ModelRollouts

SETTLED = 0.1
"""A loss has settled where it fell by less than this share from one window to the next."""


class WarmUp(MemberModule):
    """Decides for each member when imagination starts.

    Until then it learns from as many replayed steps as it would imagine.

    The held-out loss is that of each new real step before the model is trained on it. Once its mean
    over ``cfg.warm_up`` environment steps is less than a tenth below the mean over those before,
    the member imagines, for good.
    """

    settled: Tensor
    loss: Tensor
    loss_before: Tensor

    def __init__(self, cfg: ModelBasedConfig, members: SeededMembers, model: WorldModel):
        super().__init__()
        self.cfg = cfg
        count = len(members.seeds)
        rows = cfg.batch_size * cfg.rollout_length
        self.register_buffer("settled", torch.zeros(count, dtype=torch.bool))
        # The sum over the steps since the last decision, and the mean over those before.
        self.register_buffer("loss", torch.zeros(count))
        self.register_buffer("loss_before", torch.zeros(count))
        self._replay = members.noise("warm-up replay", (rows,), "uniform64")
        code, kind = model.encode_noise_size, model.noise_kind
        self._codes = members.noise("warm-up codes", (2, rows, code), kind, block=8)
        self._new_codes = members.noise("warm-up new codes", (1, code), kind)

    @property
    def over(self) -> bool:
        """Whether every member imagines."""
        return bool(self.settled.all())

    def watch(self, source: ModelRollouts, new: RealSteps, number: int) -> None:
        """Takes in the loss of the newest step ``[N]`` before update ``number``.

        Only if it is the first update since that step.
        """
        step, repeated = divmod(number, self.cfg.updates_per_step)
        if repeated or self.over:
            return
        scratch = source.model.layers(torch.empty_like(source.weights.params))
        new = RealSteps(*(value.unsqueeze(1) for value in new))
        codes = self._new_codes.at(step)
        losses = source.model.gradient(source.weights.layers, new, codes, self.cfg, scratch)
        self.loss += losses.sum(0) - REWARD_LOSS_FLOOR
        if (step + 1) % self.cfg.warm_up == 0:
            mean = self.loss / self.cfg.warm_up
            if step + 1 > self.cfg.warm_up:
                self.settled |= mean > (1 - SETTLED) * self.loss_before
            self.loss_before.copy_(mean)
            self.loss.zero_()

    def batch(
        self, source: ModelRollouts, values: RecordedPass, number: int, sample: RealSteps
    ) -> UpdateBatch:
        """The batch of update ``number``: replayed steps while no member imagines.

        Then both kinds, one of them of weight 0.
        """
        real = source.real_steps(self._replay.at(number))
        now, after = self._codes.at(number).unbind(1)
        q = values(source.features(real.obs, now))
        replayed = source.replayed(q, real, source.features(real.next_obs, after))
        if not self.settled.any():
            return replayed
        imagined = source.imagine(values, number, sample)
        chosen = 2 * self.settled.float().unsqueeze(1)  # the mean is over twice as many transitions
        weight = torch.ones_like(imagined.reward) if imagined.weight is None else imagined.weight
        replayed = replayed._replace(weight=(2 - chosen).expand_as(weight))
        imagined = imagined._replace(weight=chosen * weight)
        both: Any = zip(replayed, imagined, strict=True)
        return UpdateBatch(*(torch.cat(pair, dim=1) for pair in both))
