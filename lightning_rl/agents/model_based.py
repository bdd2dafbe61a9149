"""DQN on replayed or imagined transitions (Young et al. 2023, arXiv 2211.02222).

An update learns from ``batch_size * rollout_length`` transitions (ER: ``batch_size``). The agents
differ only in their source, which is an object of its own: the replay memory, roll-outs of the
environment itself, or roll-outs of a learned world model.

Where we differ from the paper's code: greedy actions of agents with latents are for the mode of the
latent, not for a sample; there is no double Q-learning. Its errors are fixed unless the key
``faithful`` asks for them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, Any, Literal

import torch
from pydantic import Field, NonNegativeFloat, NonNegativeInt, PositiveFloat, PositiveInt
from pydantic.dataclasses import dataclass
from torch import Tensor

from lightning_rl.agents.environment_rollouts import EnvironmentRollouts
from lightning_rl.agents.experience import Replay, TrainedBlock, UpdateBatch
from lightning_rl.agents.graphs import Graphed
from lightning_rl.agents.model_rollouts import ModelRollouts
from lightning_rl.agents.ring import MemberRing
from lightning_rl.agents.stack import SeededMembers, frozen
from lightning_rl.core.schema import STRICT, Batch, MethodConfig, Share, Sizes, Width
from lightning_rl.envs.func_env import FuncEnv
from lightning_rl.functional.value_learning import boltzmann, q_learning_target
from lightning_rl.nets.categorical_latent import CategoricalLatent
from lightning_rl.nets.gaussian_latent import GaussianLatent
from lightning_rl.nets.latent_model import LatentModel
from lightning_rl.nets.recorded_pass import RecordedPass
from lightning_rl.nets.simple_model import SimpleModel
from lightning_rl.nets.world_models import LossWeights, PlainMLP, WorldModel

Beta = Annotated[float, Field(ge=0, lt=1)]


@dataclass(frozen=True, config=STRICT, kw_only=True)
class ModelBasedConfig(LossWeights, MethodConfig):
    """Keys of all five agents; ``configs/model_based.yaml`` explains them."""

    transitions: Literal["replay", "environment", "simple", "categorical", "gaussian"]
    steps_per_epoch: PositiveInt
    hidden: Sizes
    activation: Literal["elu", "relu"]
    gamma: Share
    temperature: PositiveFloat
    learning_rate: PositiveFloat
    betas: Annotated[list[Beta], Field(min_length=2, max_length=2)]
    adam_eps: PositiveFloat
    weight_decay: NonNegativeFloat
    batch_size: Batch
    rollout_length: PositiveInt
    updates_per_step: PositiveInt
    target_interval: PositiveInt
    learning_starts: NonNegativeInt
    replay_size: PositiveInt
    cuda_graphs: bool
    faithful: list[Literal["stale-observation", "logit-bits"]]
    warm_up: NonNegativeInt
    model_learning_rate: PositiveFloat
    variables: Width
    classes: Width
    min_std: NonNegativeFloat

    def stored_steps(self, spec: Any) -> dict[str, int]:
        return {"replay_size": self.replay_size}

    def gpu_only(self) -> str | None:
        if not self.cuda_graphs:
            return None
        return "cuda_graphs=true records what a GPU does; leave it out"

    def ignored_keys(self) -> dict[str, str]:
        reason = f"agents with transitions: {self.transitions} do not read it; leave it out"
        readers = dict(_READERS)
        if "logit-bits" in self.faithful:
            readers["faithful"] = ("simple",)
        found = {key: reason for key, kinds in readers.items() if self.transitions not in kinds}
        if self.cuda_graphs and self.warm_up:
            found["cuda_graphs"] = (
                "an update with warm_up looks at its numbers, which a graph cannot; leave one of "
                "them out"
            )
        return found


_LATENT = ("categorical", "gaussian")
_MODEL = ("simple", *_LATENT)
_READERS = {
    "warm_up": _MODEL,
    "model_learning_rate": _MODEL,
    "reward_weight": _MODEL,
    "continuation_weight": _MODEL,
    "obs_weight": _MODEL,
    "kl_prior_weight": _LATENT,
    "kl_posterior_weight": _LATENT,
    "variables": _LATENT,
    "rollout_length": ("environment", *_MODEL),
    "classes": ("categorical",),
    "min_std": ("gaussian",),
}
"""Keys that only some kinds of ``transitions`` read, with these kinds."""


def make_model(cfg: ModelBasedConfig, env: FuncEnv) -> WorldModel:
    """The world model that ``cfg.transitions`` names."""
    sizes = (env.obs_size, env.action_size, cfg.hidden, cfg.activation)
    if cfg.transitions == "simple":
        return SimpleModel(*sizes, logits_as_probabilities="logit-bits" in cfg.faithful)
    if cfg.transitions == "categorical":
        return LatentModel(*sizes, CategoricalLatent(cfg.variables, cfg.classes))
    return LatentModel(*sizes, GaussianLatent(cfg.variables, cfg.min_std))


def make_source(cfg: ModelBasedConfig, env: FuncEnv, members: SeededMembers) -> Replay:
    """Where the transitions of an update come from, by ``cfg.transitions``."""
    if cfg.transitions == "replay":
        return Replay(cfg, env, members)
    if cfg.transitions == "environment":
        return EnvironmentRollouts(cfg, env, members)
    return ModelRollouts(make_model(cfg, env), cfg, env, members)


class ModelBasedDQN(SeededMembers):
    """``N`` learners in lock-step; what member ``n`` does is a function of ``seeds[n]`` alone.

    Args:
        cfg: the agent's keys.
        env: where real steps are made, and imagined ones if ``cfg.transitions`` says so.
        seeds: one for each member.
    """

    losses: Tensor

    def __init__(self, cfg: ModelBasedConfig, env: FuncEnv, seeds: Sequence[int]):
        super().__init__(seeds)
        self.cfg, self.env = cfg, env
        source = make_source(cfg, env, self)
        self.net = PlainMLP(source.feature_size, tuple(cfg.hidden), env.action_size, cfg.activation)
        start = self.generators("initialisation")
        self.online = TrainedBlock(self.net, start, cfg.learning_rate, cfg)
        self.source = source
        self.target = frozen(self.online.params)
        self._explore = self.noise("explore", (env.action_size,), "gumbel")
        losses = torch.zeros(len(self.seeds))  # sums since ``take_losses``
        self.register_buffer("losses", losses, persistent=False)
        self._summed = 0
        self.draw: Callable[..., Any] = self._draw
        self.value_gradient: Callable[..., Any] = self._value_gradient
        if cfg.cuda_graphs:
            self.draw = Graphed(self._draw, source.update_noise, self)
            self.value_gradient = Graphed(self._value_gradient, source.update_noise, self)

    @property
    def num_updates(self) -> int:
        """Updates of every member so far."""
        return int(self.online.adam.num_steps[0])

    def memory(self) -> MemberRing:
        return self.source.memory

    @torch.no_grad()
    def values(self, obs: Tensor, noise: Tensor | None) -> Tensor:
        """Q values ``[N, K, A]`` of obs ``[N, K, O]``.

        Noise ``[N, K, Z]`` for the latent, None for its mode.
        """
        return self.net.forward(self.online.layers, self.source.features(obs, noise))[0]

    def act(self, obs: Tensor, step: int) -> Tensor:
        """Actions ``[N]`` of probability ``softmax(Q / temperature)`` for obs ``[N, O]``.

        step: the number of the environment step.
        """
        q = self.values(obs.unsqueeze(1), self.source.acting_noise(step)).squeeze(1)
        return boltzmann(q, self.cfg.temperature, self._explore.at(step))

    def learn(self, step: int, optimizers: Sequence[Any]) -> None:
        """The updates that go with environment step ``step``, if it is time to learn.

        optimizers: the agent's, as they are or as Lightning wraps them.
        """
        cfg = self.cfg
        if step < cfg.learning_starts:
            return
        if step % cfg.target_interval == 0:
            self.target.data.copy_(self.online.params.data)
        # Not ``num_updates``: asking the optimizer would wait for the device.
        first = (step - cfg.learning_starts) * cfg.updates_per_step
        for number in range(first, first + cfg.updates_per_step):
            self.update(number, optimizers)

    @torch.no_grad()
    def update(self, number: int, optimizers: Sequence[Any]) -> None:
        """Update ``number`` of all members: the source's own weights first, then the values."""
        optimizer, *others = optimizers
        sample = self.draw(number)
        for other in others:
            other.step()
        self.value_gradient(number, sample)
        optimizer.step()
        self._summed += 1

    def _draw(self, number: int) -> Any:
        """What update ``number`` learns from.

        Also writes the gradients of what the source itself learns from it.
        """
        sample = self.source.sample(number)
        self.source.fit(sample, number)
        return sample

    def _value_gradient(self, number: int, sample: Any) -> None:
        values = RecordedPass(self.net, self.online.layers)
        self._write_gradient(values, self.source.batch(values, number, sample))

    def _write_gradient(self, values: RecordedPass, batch: UpdateBatch) -> None:
        """The gradient of the mean of ``weight * error^2``, errors those of Q learning."""
        next_q = self.net(self.target, batch.next_features)
        target = q_learning_target(batch.reward, batch.discount, next_q)
        index = batch.action.unsqueeze(-1)
        error = batch.q.gather(-1, index).squeeze(-1) - target
        weighted = error if batch.weight is None else batch.weight * error
        self.losses.add_((weighted * error).mean(-1))
        slope = weighted.unsqueeze(-1) * (2 / error.shape[-1])
        grad = torch.zeros_like(batch.q).scatter_(-1, index, slope)
        values.gradient(grad, self.online.gradient)

    def take_losses(self) -> dict[str, Tensor]:
        """Mean losses ``[N]`` of the updates since the last call; none if there were none."""
        if not self._summed:
            return {}
        names = ("train/value_loss", *self.source.loss_names)
        sums = (self.losses, *self.source.losses.T)
        means = {name: each / self._summed for name, each in zip(names, sums, strict=True)}
        self._summed = 0
        self.losses.zero_()
        self.source.losses.zero_()
        return means
