"""How a critic is fitted, and the parts that read what it says; UDRL is read without this file."""

from __future__ import annotations

import dataclasses
import functools
from typing import TYPE_CHECKING, ClassVar

import torch
from pydantic import PositiveFloat, PositiveInt
from torch import Tensor, nn

from lightning_rl.core.parts import Part
from lightning_rl.core.schema import Share, Sizes
from lightning_rl.functional.critic import (
    action_features,
    critic_loss,
    explained_variance,
    feature_size,
    fitted_advantage,
)
from lightning_rl.functional.returns import lambda_returns
from lightning_rl.functional.upside_down import at_most
from lightning_rl.methods.base import Method
from lightning_rl.methods.compiling import differs, may_compile, one_by_one
from lightning_rl.methods.upside_down.commands import Command, register_command
from lightning_rl.methods.upside_down.weightings import ExponentialWeighting, register_weighting
from lightning_rl.nets.layers import evaluating, relu_mlp
from lightning_rl.rollouts.episode_buffer import FlatEpisodes

if TYPE_CHECKING:
    from lightning_rl.envs.spec import EnvSpec
    from lightning_rl.methods.upside_down.method import UpsideDown


_PIECE = 2048  # observations


@dataclasses.dataclass
class JudgedEpisodes(FlatEpisodes):
    """Episodes with what a critic says of them.

    value ``[M + E]``: V of each observation; discount ``[M]``: what V counts after a step;
    fitted_advantage ``[M]``: Q(s, a) - V(s) of each step, where the critic has a Q.
    """

    value: Tensor
    discount: Tensor
    fitted_advantage: Tensor | None = None

    def lambda_return(self, gae_lambda: float) -> Tensor:
        """TD(lambda) returns ``[M]``."""
        following = self.value[self.row + 1]
        return lambda_returns(self.reward, self.discount, following, self.last, gae_lambda)

    def sampled_advantage(self, gae_lambda: float) -> Tensor:
        """Lambda-return less V(s), ``[M]``: of the actions that happened to follow."""
        return self.lambda_return(gae_lambda) - self.value[self.row]

    def explained_variance(self) -> float:
        """How much of the returns that were obtained the values explain."""
        return float(explained_variance(self.value[self.row], self.lambda_return(1.0)))


class CriticFit(Part):
    """How a critic is fitted: V(s), and Q(s, a) beside it where advantages are fitted.

    Its network gives ``[..., 1]``, with a Q ``feature_size`` more numbers.
    """

    gamma: Share
    bootstrap_truncated: bool
    value_lambda: Share
    num_critic_updates_per_iter: PositiveInt
    critic_learning_rate: PositiveFloat
    critic_max_grad_norm: PositiveFloat
    value_scale: PositiveFloat
    critic_hidden: Sizes | None
    has_q: ClassVar[bool] = False

    def output_size(self, spec: EnvSpec) -> int:
        """How many numbers the network gives."""
        if not self.has_q:
            return 1
        return 1 + feature_size(spec.action_size, spec.continuous)

    def network(self, method: UpsideDown) -> nn.Module:
        """The critic, or the user's own."""
        outputs = self.output_size(method.spec)

        def build(size: int) -> nn.Module:
            return relu_mlp(size, self.critic_hidden or [], outputs)

        return method.network(
            "critic", lambda: method.encoded(build), takes=[method.spec.obs_size], gives=[outputs]
        )

    def fit(self, method: UpsideDown, episodes: FlatEpisodes, index: Tensor) -> float:
        """Fits the critic to lambda-returns that stay fixed meanwhile; the mean loss.

        index ``[U, B]``: the steps that each update sees.
        """
        judged = self._judged(episodes, self._outputs(method, episodes))
        target = judged.lambda_return(self.value_lambda) / self.value_scale
        method.check_finite("the value target", float(target.abs().max()))
        rows, examples = episodes.row[index], [target[index]]
        if self.has_q:
            examples.append(self._features(method, episodes)[index])
        own_way = differs(self, CriticFit, "update") or differs(method, Method, "descend")
        if not own_way and may_compile(method, 1, method.critic):
            from lightning_rl.methods.upside_down.fused import update_critic

            losses = update_critic(method, self, episodes.observed(rows), *examples)
        else:
            update = functools.partial(self.update, method)
            losses = one_by_one(update, episodes, rows, *examples)
        return method.count_updates("train/value_loss", losses)

    def update(
        self, method: UpsideDown, obs: Tensor, target: Tensor, features: Tensor | None = None
    ) -> Tensor:
        """One Adam step of the critic alone; the loss, detached. features ``[B, F]``: phi(a)."""
        loss = critic_loss(method.critic(obs), target, features)
        return method.descend(1, loss, self.critic_max_grad_norm)

    def judge(self, method: UpsideDown, episodes: FlatEpisodes) -> JudgedEpisodes:
        """The episodes with what the critic says of them."""
        output = self._outputs(method, episodes)
        judged = self._judged(episodes, output)
        if self.has_q:
            judged.fitted_advantage = fitted_advantage(
                output[episodes.row], self._features(method, episodes)
            )
        return judged

    def _features(self, method: UpsideDown, episodes: FlatEpisodes) -> Tensor:
        """Of all steps, ``[M, F]``."""
        executed = method.learner.distribution_class.executed(episodes.action)
        return action_features(executed, method.spec.factors or [method.spec.action_size])

    def _outputs(self, method: UpsideDown, episodes: FlatEpisodes) -> Tensor:
        """The network's outputs, in the task's units, for all observations ``[M + E, O]``."""
        net = method.critic
        rows = torch.arange(len(episodes.obs), device=episodes.obs.device)
        with evaluating(net):
            # in pieces whose activations stay in the processor's cache
            pieces = [net(episodes.observed(piece)) for piece in rows.split(_PIECE)]
            return torch.cat(pieces) * self.value_scale

    def _judged(self, episodes: FlatEpisodes, output: Tensor) -> JudgedEpisodes:
        ended = episodes.terminated if self.bootstrap_truncated else episodes.last
        discount = self.gamma * (~ended).to(output.dtype)
        return JudgedEpisodes(**vars(episodes), value=output[:, 0], discount=discount)


class FitWithQ(CriticFit):
    """The critic has a Q(s, a), too."""

    has_q = True


@register_command("advantage")
class Advantage(Command):
    """An advantage over a critic's value (RCP-A)."""

    names = ("advantage",)
    requires = (CriticFit,)
    in_deviations = True
    gae_lambda: Share
    label_max: float | None

    def fulfilled(self, episodes: FlatEpisodes) -> Tensor:
        assert isinstance(episodes, JudgedEpisodes)
        return at_most(self.label_max, episodes.sampled_advantage(self.gae_lambda)).unsqueeze(-1)


@register_weighting("advantage")
class ByAdvantage(ExponentialWeighting):
    """The label is the sampled advantage, as in the paper's RCP-A."""

    requires = (CriticFit,)
    gae_lambda: Share

    def label(self, episodes: FlatEpisodes) -> Tensor:
        assert isinstance(episodes, JudgedEpisodes)
        return episodes.sampled_advantage(self.gae_lambda)


@register_weighting("fitted_advantage")
class ByFittedAdvantage(ExponentialWeighting):
    """The label is Q(s, a) - V(s) of the critic, without the noise of single samples."""

    requires = (FitWithQ,)

    def label(self, episodes: FlatEpisodes) -> Tensor:
        assert isinstance(episodes, JudgedEpisodes)
        assert episodes.fitted_advantage is not None
        return episodes.fitted_advantage
