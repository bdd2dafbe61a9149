"""Model-based generalisation (Young et al. 2023, arXiv 2211.02222): does experience from a learned model beat replay?

Five agents over one DQN core (``agents/model_based.py``), which differ in where the transitions of an update come from: ER
replays real ones, the others imagine as many, with the environment itself (perfect), with a model of observations (simple) or
of latents (categorical, Gaussian). An epoch is ``steps_per_epoch`` environment steps of every seed, with their updates.
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

import torch
from pydantic import Field, NonNegativeFloat, NonNegativeInt, PositiveFloat, PositiveInt
from pydantic.dataclasses import dataclass

from lightning_rl.agents.imagination import LearnedModelDQN, PerfectModelDQN, ReplayDQN
from lightning_rl.agents.model_based import CoreSettings, ModelBasedDQN
from lightning_rl.agents.step_training import StepTraining, play
from lightning_rl.core.schema import STRICT, Batch, MethodConfig, Share, Sizes, Width
from lightning_rl.core.seeding import derive_seed
from lightning_rl.envs.adapters import func_env
from lightning_rl.envs.func_env import FuncEnv
from lightning_rl.envs.spec import EnvSpec
from lightning_rl.methods.registry import register_method
from lightning_rl.methods.stacked import Scores, StackedMethod
from lightning_rl.nets.latents import CategoricalLatent, GaussianLatent
from lightning_rl.nets.policies import Policy
from lightning_rl.nets.trunks import TrunkActivation, TrunkNet
from lightning_rl.nets.world_models import LatentModel, LossWeights, SimpleModel, WorldModel
from lightning_rl.nets.world_policy import WorldPolicy
from lightning_rl.rollouts.data_module import Evaluation, Rollouts

Beta = Annotated[float, Field(ge=0, lt=1)]


@dataclass(frozen=True, config=STRICT, kw_only=True)
class ERConfig(MethodConfig):
    """Keys of ``configs/ER.yaml``, which explains them; those of all five agents."""

    steps_per_epoch: PositiveInt
    hidden: Sizes
    activation: TrunkActivation
    gamma: Share
    temperature: PositiveFloat
    learning_rate: PositiveFloat
    betas: Annotated[list[Beta], Field(min_length=2, max_length=2)]
    adam_eps: PositiveFloat
    weight_decay: NonNegativeFloat
    batch_size: Batch
    updates_per_step: PositiveInt
    target_interval: PositiveInt
    learning_starts: NonNegativeInt
    replay_size: PositiveInt
    double_q: bool
    group_size: PositiveInt
    faithful: list[Literal["stale-observation", "logit-bits"]]

    def stored_steps(self, spec: EnvSpec) -> dict[str, int]:
        return {"replay_size": self.replay_size}


@dataclass(frozen=True, config=STRICT, kw_only=True)
class PerfectConfig(ERConfig):
    """Keys of ``configs/perfect-model.yaml``."""

    rollout_length: PositiveInt


@dataclass(frozen=True, config=STRICT, kw_only=True)
class SimpleConfig(PerfectConfig):
    """Keys of ``configs/simple-model.yaml``."""

    model_learning_rate: PositiveFloat
    reward_weight: NonNegativeFloat
    continuation_weight: NonNegativeFloat
    obs_weight: NonNegativeFloat


@dataclass(frozen=True, config=STRICT, kw_only=True)
class CategoricalConfig(SimpleConfig):
    """Keys of ``configs/categorical-latent.yaml``."""

    variables: Width
    classes: Width
    kl_prior_weight: PositiveFloat
    kl_posterior_weight: NonNegativeFloat


@dataclass(frozen=True, config=STRICT, kw_only=True)
class GaussianConfig(SimpleConfig):
    """Keys of ``configs/gaussian-latent.yaml``."""

    variables: Width
    std: Literal["softplus", "sigmoid", "sigmoid2"]
    min_std: NonNegativeFloat
    kl_prior_weight: PositiveFloat
    kl_posterior_weight: NonNegativeFloat


class ModelBased(StackedMethod):
    """A stack of one of the five agents and its training."""

    agent: ModelBasedDQN

    @classmethod
    def misfit(cls, spec: EnvSpec) -> str | None:
        env = func_env(spec)
        fits = env is not None and env.binary_obs and not env.continuous
        games = "procmaze, buttongrid, panflute or a grid world"
        return None if fits else f"its observations must be bits in batched torch; use {games}"

    @property
    def env(self) -> FuncEnv:
        """The environment that the agents are trained in."""
        env = func_env(self.spec)
        assert env is not None  # or it would be a misfit
        return env

    def settings(self, rollout_length: int) -> CoreSettings:
        """What the core asks for."""
        c = self.cfg
        return CoreSettings(
            c.gamma, c.temperature, c.learning_rate, (c.betas[0], c.betas[1]), c.adam_eps, c.weight_decay, c.batch_size,
            rollout_length,
            c.replay_size, c.updates_per_step, c.target_interval, c.learning_starts, c.double_q, c.group_size,
        )  # fmt: skip

    def value_net(self, features: int) -> TrunkNet:
        """The value network."""
        return TrunkNet(features, tuple(self.cfg.hidden), self.spec.action_size, self.cfg.activation)

    def rollouts(self, num_workers: int = 0) -> ModelBasedRollouts:
        """The training and the evaluation of the agents; both play in this process, in batches."""
        return ModelBasedRollouts(self)

    def make_policy(self, row: int) -> Policy:
        agent, rows = self.agent, slice(row, row + 1)
        learned = (agent.model, agent.model_params[rows]) if isinstance(agent, LearnedModelDQN) else None
        return WorldPolicy(agent.net, agent.params[rows], self.cfg.temperature, learned)

    def train_epoch(self, batch: StepTraining) -> None:
        steps = self.decisions(batch.step, batch.step)
        batch.run(steps, fresh=batch.step % self.cfg.steps_per_epoch == 0)
        self.member_counters[:, 0] = batch.step
        self.member_counters[:, 1] = self.agent.num_updates
        self.member_counters[:, 3] += torch.tensor([len(ended) for ended in batch.ended])
        for member, policy in enumerate(self.policies):
            policy.load_state_dict(self.make_policy(member).state_dict())
            self.check_member(member, sum(float(value.sum()) for value in policy.state_dict().values()))
        self.sum_up()
        losses = self.agent.take_losses()
        speed = self.speed_scalars(steps * len(self.seeds))
        self.log_members([
            {**_rollout_scalars(batch, n, steps), **{name: float(value[n]) for name, value in losses.items()}, **speed}
            for n in range(len(self.seeds))
        ])  # fmt: skip

    def validation_step(self, evaluated: list[Scores], batch_idx: int) -> None:  # type: ignore[override]
        self.take_evaluation(evaluated)


def _rollout_scalars(training: StepTraining, member: int, steps: int) -> dict[str, float]:
    """Reward per step of the last ``steps``, and what their episodes returned, if any ended."""
    scalars = {"rollout/reward_rate": float(training.reward[member]) / steps}
    if training.ended[member]:
        returns, lengths = zip(*training.ended[member], strict=True)
        scalars |= {"rollout/return_mean": sum(returns) / len(returns), "rollout/length_mean": sum(lengths) / len(lengths)}
    return scalars


@register_method("ER")
class ER(ModelBased):
    """Experience replay."""

    Config: ClassVar[type[MethodConfig]] = ERConfig

    def build(self) -> ModelBasedDQN:
        return ReplayDQN(self.env, self.value_net(self.spec.obs_size), self.settings(1), self.seeds)


@register_method("perfect-model")
class PerfectModel(ModelBased):
    """Imagination with the environment itself."""

    Config = PerfectConfig

    def build(self) -> ModelBasedDQN:
        settings = self.settings(self.cfg.rollout_length)
        return PerfectModelDQN(self.env, self.value_net(self.spec.obs_size), settings, self.seeds)


class LearnedModel(ModelBased):
    """Imagination with a learned world model."""

    def world_model(self) -> WorldModel:
        """The model that the config asks for."""
        raise NotImplementedError

    def build(self) -> ModelBasedDQN:
        model, settings = self.world_model(), self.settings(self.cfg.rollout_length)
        net = self.value_net(model.feature_size)
        return LearnedModelDQN(self.env, net, model, self.cfg.model_learning_rate, settings, self.seeds)

    def sizes(self) -> tuple[int, int, tuple[int, ...], TrunkActivation]:
        """What every world model is made with."""
        return self.spec.obs_size, self.spec.action_size, tuple(self.cfg.hidden), self.cfg.activation


@register_method("simple-model")
class SimpleModelMethod(LearnedModel):
    """Imagination with a model of observations."""

    Config = SimpleConfig

    def world_model(self) -> WorldModel:
        c = self.cfg
        weights = LossWeights(c.reward_weight, c.continuation_weight, c.obs_weight)
        return SimpleModel(*self.sizes(), weights, faithful_bits="logit-bits" in c.faithful)


@register_method("categorical-latent")
class CategoricalLatentMethod(LearnedModel):
    """Imagination with a model of categorical latents."""

    Config = CategoricalConfig

    def world_model(self) -> WorldModel:
        return LatentModel(*self.sizes(), _latent_weights(self.cfg), CategoricalLatent(self.cfg.variables, self.cfg.classes))


@register_method("gaussian-latent")
class GaussianLatentMethod(LearnedModel):
    """Imagination with a model of Gaussian latents."""

    Config = GaussianConfig

    def world_model(self) -> WorldModel:
        c = self.cfg
        return LatentModel(*self.sizes(), _latent_weights(c), GaussianLatent(c.variables, c.std, c.min_std))


def _latent_weights(c: Any) -> LossWeights:
    return LossWeights(c.reward_weight, c.continuation_weight, c.obs_weight, c.kl_prior_weight, c.kl_posterior_weight)


class ModelBasedRollouts(Rollouts):
    """Hands the training to the method once per epoch, and carries it in checkpoints."""

    def __init__(self, method: ModelBased):
        super().__init__(ModelBasedEvaluation(method, None))
        self.steps_per_epoch = method.cfg.steps_per_epoch
        self.training = StepTraining(method.agent, "stale-observation" in method.cfg.faithful)

    def next_batch(self) -> StepTraining:
        return self.training

    def state_dict(self) -> dict[str, Any]:
        return self.training.snapshot()

    def layout(self, done: int) -> dict[str, Any]:
        return self.training.layout(done * self.steps_per_epoch)

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.training.restore(state_dict)


class ModelBasedEvaluation(Evaluation):
    """Evaluates all members in one batch, sampled and greedy; each episode is cut at the environment's horizon."""

    method: ModelBased

    def play(self) -> list[dict[str, Any]]:
        method, epoch = self.method, self.method.current_epoch
        seeds = [derive_seed(seed, "evaluation", epoch) for seed in method.seeds]
        members: list[dict[str, Any]] = [{} for _ in seeds]
        for prefix, greedy in (("eval", False), ("eval_greedy", True)):
            returns, lengths = play(method.agent, seeds, method.cfg.eval_episodes, method.spec.horizon, greedy)
            for scores, own, steps in zip(members, returns.tolist(), lengths.tolist(), strict=True):
                scores[prefix] = (own, steps)
        return members
