"""A command that single episodes obey: the return that is still owed.

Hindsight teaches which actions lead to a return on average, so that some episodes land and others
crash. Here an episode keeps the return that it was asked for, and obeying is the task itself. A
step pays by how much nearer to the command it comes::

    reward = |owed| - |owed after the step|,    owed = asked - obtained so far

These rewards sum up to ``|asked| - |asked - obtained|``. The critic sees what is owed beside the
observation, so its advantages say which actions obey; all else is RCP-A.
"""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn

from lightning_rl.core.contents import check_alike
from lightning_rl.core.errors import UserError
from lightning_rl.core.schema import Share
from lightning_rl.core.types import STORED
from lightning_rl.envs.spec import EnvSpec
from lightning_rl.functional.command_rule import Decrease
from lightning_rl.functional.upside_down import standardise
from lightning_rl.methods.upside_down.commands import register_command
from lightning_rl.methods.upside_down.critic import Advantage, FitWithQ, JudgedEpisodes
from lightning_rl.methods.upside_down.targets import Target, register_target
from lightning_rl.nets.layers import relu_mlp
from lightning_rl.rollouts.episode_buffer import EpisodeBuffer, FlatEpisodes

if TYPE_CHECKING:
    from lightning_rl.methods.upside_down.config import UpsideDownConfig
    from lightning_rl.methods.upside_down.method import UpsideDown

_BETTER = 1.0  # sd: the advantage that is asked for beside the return


@dataclasses.dataclass
class AskedEpisodes(FlatEpisodes):
    """Episodes with what was owed at each observation, owed ``[M + E]``."""

    owed: Tensor

    def of_obeying(self, scale: float) -> FlatEpisodes:
        """The same as episodes of the task to obey, obs ``[M + E, O + 1]``."""
        fields = {each.name: getattr(self, each.name) for each in dataclasses.fields(FlatEpisodes)}
        off = self.owed.abs()
        fields["obs"] = torch.cat([self.obs, self.owed.unsqueeze(-1) / scale], dim=-1)
        fields["reward"] = off[self.row] - off[self.row + 1]
        return FlatEpisodes(**fields)


@dataclasses.dataclass
class JudgedAskedEpisodes(JudgedEpisodes):
    """The same, with what the critic of the task to obey says; rewards are of this task."""

    owed: Tensor = dataclasses.field(kw_only=True)


class AskedBuffer(EpisodeBuffer):
    """Keeps what was asked of its episodes, of random actions what they obtained."""

    def asked(self) -> Tensor:
        """Of all episodes, ``[E]``."""
        return torch.tensor([(e.request.command or (e.ret,))[0] for e in self.episodes])

    def flat(self) -> AskedEpisodes:
        flat = super().flat()
        obtained = torch.from_numpy(self.returns()).float()
        length = torch.tensor([e.length + 1 for e in self.episodes])
        owed = flat.to_go + (self.asked() - obtained).repeat_interleave(length)
        return AskedEpisodes(**vars(flat), owed=owed)

    def state_dict(self) -> dict[str, Any]:
        state = super().state_dict()
        return state and {**state, "asked": self.asked()}

    def load_state_dict(self, state: dict[str, Any], spec: EnvSpec) -> None:
        super().load_state_dict(state, spec)
        if not state:
            return
        check_alike({"asked": state["asked"]}, {"asked": torch.empty(len(self))}, "buffer")
        for episode, command in zip(self.episodes, state["asked"].tolist(), strict=True):
            request = dataclasses.replace(STORED, command=(command,))
            object.__setattr__(episode, "request", request)


class CriticOfObeying(FitWithQ):
    """It is fitted to the task to obey, and sees what is owed, over ``value_scale``."""

    def network(self, method: UpsideDown) -> nn.Module:
        spec = method.spec
        if spec.frames is not None:
            raise UserError("command owed: its critic sees no images; set command=advantage")
        size, outputs, hidden = spec.obs_size + 1, self.output_size(spec), self.critic_hidden or []
        return method.network(
            "critic", lambda: relu_mlp(size, hidden, outputs), takes=[size], gives=[outputs]
        )

    def fit(self, method: UpsideDown, episodes: FlatEpisodes, index: Tensor) -> float:
        assert isinstance(episodes, AskedEpisodes)
        return super().fit(method, episodes.of_obeying(self.value_scale), index)

    def judge(self, method: UpsideDown, episodes: FlatEpisodes) -> JudgedEpisodes:
        assert isinstance(episodes, AskedEpisodes)
        judged = super().judge(method, episodes.of_obeying(self.value_scale))
        judged.obs = episodes.obs  # which the policy sees
        return JudgedAskedEpisodes(**vars(judged), owed=episodes.owed)


@register_command("owed")
class Owed(Advantage):
    """The return that is still owed, and how much better than others a step obeys.

    In training the return is the one that was asked for when the step was played, not the one that
    it led to; the advantage is that of hindsight, in standard deviations.
    """

    names = ("return", "advantage")  # type: ignore[assignment]  # one more than its base has
    requires = (CriticOfObeying,)
    in_deviations = False
    buffer = AskedBuffer

    def fulfilled(self, episodes: FlatEpisodes) -> Tensor:
        assert isinstance(episodes, JudgedAskedEpisodes)
        advantage = standardise(super().fulfilled(episodes))
        return torch.cat([episodes.owed[episodes.row].unsqueeze(-1), advantage], dim=-1)

    @property
    def after(self) -> Decrease:
        return Decrease(counts_steps=False)

    def following_numbers(self, buffer: EpisodeBuffer) -> tuple[float, ...]:
        return (_BETTER,)

    @property
    def is_episode_return(self) -> bool:
        return True

    def check(self, cfg: UpsideDownConfig) -> None:
        super().check(cfg)
        if cfg.offline or cfg.command_rule != "decrease" or cfg.normalise_obs:
            raise ValueError(
                "command owed is what is left of a return that was asked for in training; set "
                "offline=false, command_rule=decrease and normalise_obs=false"
            )


@register_target("between")
class Between(Target):
    """Uniform between ``lowest`` and ``max_return``; for a ``highest_share`` of the episodes it is
    ``max_return`` itself, so that the best is learned, too.
    """

    lowest: float | None
    max_return: float | None
    highest_share: Share

    def fit(self, label: Tensor) -> tuple[Tensor, Tensor]:
        lowest, highest = self.lowest, self.max_return
        if lowest is None or highest is None or not lowest < highest < math.inf:
            raise UserError(
                f"target between: lowest {lowest}, max_return {highest} are no range of returns; "
                "set both, e.g. lowest=-300 max_return=320"
            )
        return label.new_tensor(highest), label.new_tensor(highest - lowest)

    def check(self, cfg: UpsideDownConfig) -> None:
        if not cfg.targets_episode_returns:
            raise ValueError(
                "target between asks for returns of whole episodes; set target_labels=episode and "
                "command=owed or return_horizon"
            )

    def draw_noise(self, rng: np.random.Generator, count: int) -> Tensor:
        """0 for a ``highest_share``, else uniform in (-1, 0]."""
        below = rng.random(count) - self.highest_share
        others = max(1 - self.highest_share, 1e-9)
        return torch.from_numpy(-np.maximum(below, 0.0) / others).float()
