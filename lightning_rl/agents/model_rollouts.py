"""Experience of a learned world model."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch import Tensor

from lightning_rl.agents.experience import Replay, TrainedBlock, UpdateBatch
from lightning_rl.agents.stack import SeededMembers
from lightning_rl.agents.warm_up import WarmUp
from lightning_rl.envs.func_env import FuncEnv
from lightning_rl.functional.value_learning import boltzmann
from lightning_rl.functional.world_model import in_order
from lightning_rl.nets.recorded_pass import RecordedPass
from lightning_rl.nets.world_models import RealSteps, WorldModel

if TYPE_CHECKING:
    from lightning_rl.agents.model_based import ModelBasedConfig


class ModelRollouts(Replay):
    """Trains a world model on replayed transitions and imagines with it."""

    def __init__(
        self, model: WorldModel, cfg: ModelBasedConfig, env: FuncEnv, members: SeededMembers
    ):
        self.loss_names = tuple(f"model/{name}_loss" for name in model.parts)
        super().__init__(cfg, env, members)
        generators = members.generators("model initialisation")
        self.model = model
        self.weights = TrainedBlock(model, generators, cfg.model_learning_rate, cfg)
        self.feature_size = model.feature_size
        self.encode_noise_size = code = model.encode_noise_size
        self.noise_kind = kind = model.noise_kind
        of_each = (cfg.rollout_length, cfg.batch_size)
        actions, states = (*of_each, env.action_size), (*of_each, model.noise_size)
        self._actions = self.stream(members, "imagined actions", actions, "gumbel")
        self._states = self.stream(members, "imagined states", states, kind)
        # To encode in ``fit``, then in ``imagine``.
        self._codes = self.stream(members, "codes", (2, cfg.batch_size, code), kind)
        self._acting_codes = members.noise("acting codes", (1, code), kind)
        self.warm_up = WarmUp(cfg, members, model) if cfg.warm_up else None

    def features(self, obs: Tensor, noise: Tensor | None) -> Tensor:
        return self.model.encode(self.weights.layers, obs, noise)

    def acting_noise(self, step: int) -> Tensor | None:
        return self._acting_codes.at(step)

    def fit(self, sample: RealSteps, number: int) -> None:
        if self.warm_up is not None:
            self.warm_up.watch(self, self.newest, number)
        codes = self._codes.at(number)[:, 0]
        weights = self.weights
        losses = self.model.gradient(weights.layers, sample, codes, self.cfg, weights.gradient)
        self.losses.add_(losses.T)

    def batch(self, values: RecordedPass, number: int, sample: RealSteps) -> UpdateBatch:
        if self.warm_up is not None and not self.warm_up.over:
            return self.warm_up.batch(self, values, number, sample)
        return self.imagine(values, number, sample)

    def imagine(self, values: RecordedPass, number: int, sample: RealSteps) -> UpdateBatch:
        """Roll-outs in the model from the observations of ``sample``."""
        layers = self.weights.layers
        gumbels, noises = self._actions.at(number), self._states.at(number)
        features = self.model.encode(layers, sample.obs, self._codes.at(number)[:, 1])
        steps = []
        for gumbel, noise in zip(gumbels.unbind(1), noises.unbind(1), strict=True):
            q = values(features)
            action = boltzmann(q, self.cfg.temperature, gumbel)
            joined = self.model.join(features, action)
            features = self.model.imagine(layers, joined, noise)
            steps.append((q, action, joined, features))
        q, action, joined, features = in_order(steps)
        reward, continues = self.model.outcome(layers, joined)
        return self.imagined(q, action, reward, continues, features)
