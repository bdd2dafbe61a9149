"""DQN on replayed or imagined transitions (Young et al. 2023, arXiv 2211.02222).

An update learns from ``batch_size * rollout_length`` transitions (ER: ``batch_size``). The agents
differ only in their source,
which is an object of its own: the replay memory, roll-outs of the environment itself, or roll-outs
of a learned world model.

Where we differ from the paper's code: greedy actions of agents with latents are for the mode of the
latent, not for a sample; the double Q-learning switch works. Its errors are fixed unless the key
``faithful`` asks for them.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, Literal, NamedTuple

import torch
from pydantic import Field, NonNegativeFloat, NonNegativeInt, PositiveFloat, PositiveInt
from pydantic.dataclasses import dataclass
from torch import Tensor, nn

from lightning_rl.agents.base import MemberModule, SeededMembers, frozen
from lightning_rl.agents.graphs import Graphed
from lightning_rl.agents.optim import MemberAdam
from lightning_rl.agents.replay import Column, MemberRing
from lightning_rl.agents.warm_up import WarmUp
from lightning_rl.core.schema import STRICT, Batch, MethodConfig, Share, Sizes, Width
from lightning_rl.core.seeding import NOISE_BLOCK, MemberNoise
from lightning_rl.envs.func_env import FuncEnv
from lightning_rl.functional.compat import bits_sample_of_logits
from lightning_rl.functional.value_learning import boltzmann, double_q_target, q_learning_target
from lightning_rl.functional.world_model import bits_sample, imagined_weights, in_order
from lightning_rl.nets.members import MemberMLP, RecordedPass
from lightning_rl.nets.simple_model import SimpleModel
from lightning_rl.nets.world_models import (
    CategoricalLatent,
    GaussianLatent,
    Latent,
    LatentModel,
    LossWeights,
    RealSteps,
    WorldModel,
    plain_mlp,
)

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
    double_q: bool
    cuda_graphs: bool
    faithful: list[Literal["stale-observation", "logit-bits"]]
    warm_up: NonNegativeInt
    model_learning_rate: PositiveFloat
    variables: Width
    classes: Width
    std: Literal["softplus", "sigmoid", "sigmoid2"]
    min_std: NonNegativeFloat

    def stored_steps(self, spec: Any) -> dict[str, int]:
        return {"replay_size": self.replay_size}

    def gpu_only(self) -> str | None:
        return (
            "cuda_graphs=true records what a GPU does; leave it out" if self.cuda_graphs else None
        )

    def unread(self) -> dict[str, str]:
        every = {**_READERS, **({"faithful": ("simple",)} if "logit-bits" in self.faithful else {})}
        reason = f"agents with transitions: {self.transitions} do not read it; leave it out"
        unread = {key: reason for key, readers in every.items() if self.transitions not in readers}
        looks = {
            "cuda_graphs": "an update with warm_up looks at its numbers, which a graph cannot; "
            "leave one of them out"
        }
        return {**unread, **looks} if self.cuda_graphs and self.warm_up else unread


_LATENT = ("categorical", "gaussian")
_MODEL = ("simple", *_LATENT)
_READERS = {
    **dict.fromkeys(
        ("warm_up", "model_learning_rate", "reward_weight", "continuation_weight", "obs_weight"),
        _MODEL,
    ),
    **dict.fromkeys(("kl_prior_weight", "kl_posterior_weight", "variables"), _LATENT),
    "rollout_length": ("environment", *_MODEL),
    "classes": ("categorical",),
    "std": ("gaussian",),
    "min_std": ("gaussian",),
}
"""Keys that only some kinds of ``transitions`` read, with these kinds."""


class UpdateBatch(NamedTuple):
    """Transitions ``[N, B]`` to learn from. q ``[N, B, A]``: values of their start states;
    next_features ``[N, B, X]``: input of the value network for their next states; weight ``[N,
    B]``: of each in the mean of the loss, None: 1.
    """

    q: Tensor
    action: Tensor
    reward: Tensor
    discount: Tensor
    next_features: Tensor
    weight: Tensor | None


class TrainedBlock(MemberModule):
    """The parameters ``[N, D]`` of a network or a world model, and the Adam that trains them;
    gradients are written by hand.
    """

    def __init__(
        self,
        net: MemberMLP | WorldModel,
        generators: Sequence[torch.Generator],
        rate: float,
        cfg: ModelBasedConfig,
    ):
        super().__init__()
        self.params = nn.Parameter(net.init(generators))
        self.net = net
        self.adam = MemberAdam(
            self.params, rate, (cfg.betas[0], cfg.betas[1]), cfg.adam_eps, cfg.weight_decay
        )

    def optimizers(self) -> list[Any]:
        return [self.adam]

    @property
    def layers(self) -> Any:
        """The layers of the parameters."""
        return self.net.kept_layers(self.params)

    @property
    def gradient(self) -> Any:
        """The layers of the gradient."""
        if self.params.grad is None:
            self.params.grad = torch.zeros_like(self.params)
        return self.net.kept_layers(self.params.grad)


class Replay(MemberModule):
    """Real transitions, replayed; the sources that imagine build on it. Observations are bits: the
    memory keeps a byte of each.

    members: gives the noise of each member.
    """

    loss_names: tuple[str, ...] = ()
    encode_noise_size: int = 0  # numbers of noise of ``noise_kind`` that ``features`` takes
    noise_kind: str = "uniform"

    losses: Tensor

    def __init__(self, cfg: ModelBasedConfig, env: FuncEnv, members: SeededMembers):
        super().__init__()
        self.cfg, self.env, count = cfg, env, len(members.seeds)
        self.feature_size = env.obs_size
        self.memory = MemberRing(count, cfg.replay_size, self.columns())
        self._draw = self.stream(members, "replay", (cfg.batch_size,), "uniform64")
        losses = torch.zeros(count, len(self.loss_names))  # sums since they were last taken
        self.register_buffer("losses", losses, persistent=False)

    @staticmethod
    def stream(
        members: SeededMembers, purpose: str, shape: tuple[int, ...], kind: str
    ) -> MemberNoise:
        """A noise stream, drawn in blocks of at most ``NOISE_BLOCK`` steps and about 100,000
        numbers per member.
        """
        return members.noise(
            purpose,
            shape,
            kind,
            block=min(NOISE_BLOCK, max(1, 100_000 // max(torch.Size(shape).numel(), 1))),
        )

    def columns(self) -> Mapping[str, Column]:
        """What the memory keeps."""
        return {
            "bytes": Column(2 * self.env.obs_size + 2, torch.uint8),
            "reward": Column(1, torch.float32),
        }

    def restore(self, memory: Mapping[str, Tensor]) -> None:
        """Goes on with remembered steps."""
        self.memory.restore(memory)
        bits, action = memory["bytes"].split([2 * self.env.obs_size, 2], dim=-1)
        if (bits > 1).any() or (action[..., 0] >= self.env.action_size).any():
            raise ValueError("memory: observations that are no bits, or unknown actions")

    def remember(self, state: Tensor, real: RealSteps) -> None:
        """Keeps one real step of every member: from the environment's state ``[N, S]``, the rest
        ``[N, ..]``.
        """
        rest = torch.stack([real.action, real.continues.long()], dim=-1)
        row = torch.cat([real.obs.byte(), real.next_obs.byte(), rest.byte()], dim=-1)
        self.memory.add({"bytes": row, "reward": real.reward.unsqueeze(-1)})
        self.newest = real  # for a warm-up

    def sample(self, number: int) -> Any:
        """A sample of the memory for update ``number``: here real steps ``[N, B]``."""
        return self.real_steps(self._draw.at(number))

    def real_steps(self, noise: Tensor) -> RealSteps:
        """Remembered steps, drawn for uniform noise ``[N, B]``."""
        rows, size = self.memory.sample(noise), self.env.obs_size
        obs, next_obs, action, continues = rows["bytes"].split([size, size, 1, 1], dim=-1)
        rest = (
            action.squeeze(-1).long(),
            rows["reward"].squeeze(-1),
            continues.squeeze(-1).float(),
        )
        return RealSteps(obs.float(), *rest, next_obs.float())

    def features(self, obs: Tensor, noise: Tensor | None) -> Tensor:
        """What the value network reads for obs ``[N, K, O]``; noise ``[N, K, Z]``, None for the
        mode.
        """
        return obs

    def acting_noise(self, step: int) -> Tensor | None:
        """Noise for the features of the observation acted on at environment step ``step``."""
        return None

    def update_noise(self) -> list[MemberNoise]:
        """The streams that an update takes its noise from."""
        return [self._draw]

    def fit(self, sample: Any, number: int) -> None:
        """Writes the gradients of the source's own parameters (a world model's), for the result
        of ``sample``; here none.
        """

    def batch(self, values: RecordedPass, number: int, sample: Any) -> UpdateBatch:
        """The transitions that update ``number`` learns from. values: the value network, whose
        forward passes are recorded.
        """
        return self.replayed(values(sample.obs), sample, sample.next_obs)

    def replayed(self, q: Tensor, real: RealSteps, next_features: Tensor) -> UpdateBatch:
        """What to learn from real steps ``[N, B]``, whose observations have values q ``[N, B,
        A]``.
        """
        return UpdateBatch(
            q, real.action, real.reward, self.cfg.gamma * real.continues, next_features, None
        )

    def imagined(
        self, q: Tensor, action: Tensor, reward: Tensor, continues: Tensor, next_features: Tensor
    ) -> UpdateBatch:
        """The batch of roll-outs ``[N, L B, ..]``, step after step; with episodes, weighted by
        the probability of each step.
        """
        each = continues.unflatten(1, (-1, self.cfg.batch_size)).mT
        weight = imagined_weights(each).mT.flatten(1) if self.env.episodic else None
        return UpdateBatch(q, action, reward, self.cfg.gamma * continues, next_features, weight)


class EnvironmentRollouts(Replay):
    """Roll-outs of the environment itself (a perfect model), from remembered states of it."""

    def __init__(self, cfg: ModelBasedConfig, env: FuncEnv, members: SeededMembers):
        super().__init__(cfg, env, members)
        shape = (cfg.rollout_length, cfg.batch_size)
        self._actions = self.stream(
            members, "imagined actions", (*shape, env.action_size), "gumbel"
        )
        self._events = self.stream(
            members, "imagined events", (*shape, env.step_noise_size), "uniform"
        )

    def columns(self) -> Mapping[str, Column]:
        state = self.env.reset(torch.zeros(1, self.env.reset_noise_size))
        self._state_type = state.dtype
        return {
            "state": Column(state.shape[-1], torch.int16 if self.env.small_state else state.dtype)
        }

    def restore(self, memory: Mapping[str, Tensor]) -> None:
        self.memory.restore(memory)
        state = memory["state"].flatten(0, 1).to(self._state_type)
        if len(state):
            self.env.require_possible(state, self.env.observe(state))

    def update_noise(self) -> list[MemberNoise]:
        return [self._draw, self._actions, self._events]

    def remember(self, state: Tensor, real: RealSteps) -> None:
        self.memory.add({"state": state})

    def sample(self, number: int) -> Tensor:
        return self.memory.sample(self._draw.at(number))["state"].to(self._state_type)

    def batch(self, values: RecordedPass, number: int, sample: Tensor) -> UpdateBatch:
        state, obs, steps = sample, self.env.observe(sample), []
        for gumbel, event in zip(
            self._actions.at(number).unbind(1), self._events.at(number).unbind(1), strict=True
        ):
            q = values(obs)
            action = boltzmann(q, self.cfg.temperature, gumbel)
            state, obs, reward, terminated, _ = self.env.step(state, action, event)
            steps.append((q, action, reward, (~terminated).float(), obs))
        q, action, reward, continues, obs = in_order(steps)
        return self.imagined(q, action, reward, continues, obs)


class ModelRollouts(Replay):
    """Trains a world model on replayed transitions and imagines with it."""

    def __init__(
        self,
        make_model: Callable[[ModelBasedConfig, FuncEnv], WorldModel],
        cfg: ModelBasedConfig,
        env: FuncEnv,
        members: SeededMembers,
    ):
        model = make_model(cfg, env)
        self.loss_names = tuple(f"model/{name}_loss" for name in model.parts)
        super().__init__(cfg, env, members)
        start = members.generators("model initialisation")
        self.model, self.weights = model, TrainedBlock(model, start, cfg.model_learning_rate, cfg)
        self.feature_size, self.encode_noise_size, self.noise_kind = (
            model.feature_size,
            model.encode_noise_size,
            model.noise_kind,
        )
        shape, code, kind = (
            (cfg.rollout_length, cfg.batch_size),
            model.encode_noise_size,
            model.noise_kind,
        )
        self._actions = self.stream(
            members, "imagined actions", (*shape, env.action_size), "gumbel"
        )
        self._states = self.stream(members, "imagined states", (*shape, model.noise_size), kind)
        self._codes = self.stream(
            members, "codes", (2, cfg.batch_size, code), kind
        )  # to encode in ``fit``, then in ``imagine``
        self._acting_codes = self.stream(members, "acting codes", (1, code), kind)
        self.warm_up = WarmUp(cfg, members, model) if cfg.warm_up else None

    def features(self, obs: Tensor, noise: Tensor | None) -> Tensor:
        return self.model.encode(self.weights.layers, obs, noise)

    def acting_noise(self, step: int) -> Tensor | None:
        return self._acting_codes.at(step)

    def update_noise(self) -> list[MemberNoise]:
        return [self._draw, self._actions, self._states, self._codes]

    def fit(self, sample: RealSteps, number: int) -> None:
        if self.warm_up is not None:
            self.warm_up.watch(self, self.newest, number)
        codes = self._codes.at(number)[:, 0]
        self.losses.add_(
            self.model.gradient(
                self.weights.layers, sample, codes, self.cfg, self.weights.gradient
            ).T
        )

    def batch(self, values: RecordedPass, number: int, sample: RealSteps) -> UpdateBatch:
        if self.warm_up is not None and not self.warm_up.over:
            return self.warm_up.batch(self, values, number, sample)
        return self.imagine(values, number, sample)

    def imagine(self, values: RecordedPass, number: int, sample: RealSteps) -> UpdateBatch:
        """Roll-outs in the model from the observations of ``sample``."""
        layers = self.weights.layers
        noise = (self._actions.at(number).unbind(1), self._states.at(number).unbind(1))
        features, steps = self.model.encode(layers, sample.obs, self._codes.at(number)[:, 1]), []
        for gumbel, state_noise in zip(*noise, strict=True):
            q = values(features)
            action = boltzmann(q, self.cfg.temperature, gumbel)
            joined = self.model.join(features, action)
            features = self.model.imagine(layers, joined, state_noise)
            steps.append((q, action, joined, features))
        q, action, joined, features = in_order(steps)
        return self.imagined(q, action, *self.model.outcome(layers, joined), features)


def simple_model(cfg: ModelBasedConfig, env: FuncEnv) -> WorldModel:
    """A model of observations."""
    sample_bits = bits_sample_of_logits if "logit-bits" in cfg.faithful else bits_sample
    return SimpleModel(env.obs_size, env.action_size, cfg.hidden, cfg.activation, sample_bits)


def latent_model(
    make_latent: Callable[[ModelBasedConfig], Latent], cfg: ModelBasedConfig, env: FuncEnv
) -> WorldModel:
    """A model of latents."""
    return LatentModel(env.obs_size, env.action_size, cfg.hidden, cfg.activation, make_latent(cfg))


MODELS: dict[str, Callable[[ModelBasedConfig, FuncEnv], WorldModel]] = {
    "simple": simple_model,
    "categorical": functools.partial(
        latent_model, lambda cfg: CategoricalLatent(cfg.variables, cfg.classes)
    ),
    "gaussian": functools.partial(
        latent_model, lambda cfg: GaussianLatent(cfg.variables, cfg.std, cfg.min_std)
    ),
}
SOURCES: dict[str, Callable[[ModelBasedConfig, FuncEnv, SeededMembers], Replay]] = {
    "replay": Replay,
    "environment": EnvironmentRollouts,
    **{kind: functools.partial(ModelRollouts, make) for kind, make in MODELS.items()},
}
"""Where the transitions of an update come from, by ``transitions``."""


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
        source = SOURCES[cfg.transitions](cfg, env, self)
        self.net = plain_mlp(source.feature_size, cfg.hidden, env.action_size, cfg.activation)
        self.online = TrainedBlock(
            self.net, self.generators("initialisation"), cfg.learning_rate, cfg
        )
        self.source = source
        self.target = frozen(self.online.params)
        self._explore = self.noise("explore", (env.action_size,), "gumbel")
        self.register_buffer(
            "losses", torch.zeros(len(self.seeds)), persistent=False
        )  # sums since ``take_losses``
        self._summed = 0
        parts: list[Callable[..., Any]] = [self._draw, self._value_gradient]
        if cfg.cuda_graphs:
            parts = [Graphed(part, source.update_noise(), self) for part in parts]
        self.draw, self.value_gradient = parts

    @property
    def num_updates(self) -> int:
        """Updates of every member so far."""
        return int(self.online.adam.num_steps[0])

    def memory(self) -> MemberRing:
        return self.source.memory

    @torch.no_grad()
    def values(self, obs: Tensor, noise: Tensor | None) -> Tensor:
        """Q values ``[N, K, A]`` of obs ``[N, K, O]``; noise ``[N, K, Z]`` for the latent, None
        for its mode.
        """
        return self.net.forward(self.online.layers, self.source.features(obs, noise))[0]

    def act(self, obs: Tensor, step: int) -> Tensor:
        """Actions ``[N]`` of probability ``softmax(Q / temperature)`` for obs ``[N, O]`` at
        environment step ``step``.
        """
        q = self.values(obs.unsqueeze(1), self.source.acting_noise(step)).squeeze(1)
        return boltzmann(q, self.cfg.temperature, self._explore.at(step))

    def learn(self, step: int, optimizers: Sequence[Any]) -> None:
        """The updates that go with environment step ``step``, if it is time to learn, by the
        agent's ``optimizers``.
        """
        cfg = self.cfg
        if step < cfg.learning_starts:
            return
        if step % cfg.target_interval == 0:
            self.target.data.copy_(self.online.params.data)
        first = (
            step - cfg.learning_starts
        ) * cfg.updates_per_step  # asking the optimizer would wait for the device
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
        """What update ``number`` learns from; also writes the gradients of what the source
        itself learns from it.
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
        if self.cfg.double_q:
            chosen = self.net.forward(values.layers, batch.next_features)[0]
            target = double_q_target(batch.reward, batch.discount, chosen, next_q)
        else:
            target = q_learning_target(batch.reward, batch.discount, next_q)
        index = batch.action.unsqueeze(-1)
        error = batch.q.gather(-1, index).squeeze(-1) - target
        weighted = error if batch.weight is None else batch.weight * error
        self.losses.add_((weighted * error).mean(-1))
        grad = torch.zeros_like(batch.q).scatter_(
            -1, index, weighted.unsqueeze(-1) * (2 / error.shape[-1])
        )
        values.gradient(grad, self.online.gradient)

    def take_losses(self) -> dict[str, Tensor]:
        """Mean losses ``[N]`` of the updates since the last call; none if there were none."""
        if not self._summed:
            return {}
        names, sums = (
            ("train/value_loss", *self.source.loss_names),
            (self.losses, *self.source.losses.T),
        )
        means = {name: each / self._summed for name, each in zip(names, sums, strict=True)}
        self._summed = 0
        self.losses.zero_()
        self.source.losses.zero_()
        return means
