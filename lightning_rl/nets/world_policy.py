"""The policy of agents that learn values of a world model's features."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from lightning_rl.core.seeding import NOISE
from lightning_rl.core.types import FloatArray
from lightning_rl.functional.distributions import Categorical
from lightning_rl.nets.members import MemberMLP
from lightning_rl.nets.policies import Policy
from lightning_rl.nets.world_models import WorldModel


class WorldPolicy(Policy):
    """Boltzmann actions for the values of features. The parameters ``[1, D]`` are those of one member.

    learned: a world model and its parameters, which travel with the policy; None: features are observations.
    """

    values: Tensor
    world: Tensor

    def __init__(self, net: MemberMLP, values: Tensor, temperature: float, learned: tuple[WorldModel, Tensor] | None):
        super().__init__(torch.nn.Module(), Categorical, net.out_size)
        self.value_net, self.temperature = net, temperature
        self.model: WorldModel | None = learned[0] if learned else None
        world = learned[1] if learned else torch.empty(1, 0)
        self.register_buffer("values", values.clone())
        self.register_buffer("world", world.clone())

    @property
    def noise_size(self) -> int:
        return self.action_size + (0 if self.model is None else self.model.encode_noise_size)

    def draw_noise(self, rng: np.random.Generator, shape: tuple[int, ...]) -> FloatArray:
        action = super().draw_noise(rng, (*shape[:-1], self.action_size))
        if self.model is None:
            return action
        code = NOISE[self.model.noise_kind](rng, (*shape[:-1], self.model.encode_noise_size))
        return np.concatenate([action, code.astype(np.float32)], axis=-1)

    def act(self, obs: Tensor, command: Tensor | None, noise: Tensor) -> Tensor:
        """Actions ``[B]`` for obs ``[B, O]``; zero noise gives the greedy action, for the mode of a latent."""
        action, code = noise.split([self.action_size, noise.shape[-1] - self.action_size], dim=-1)
        features = self.features(obs, code)
        q = self.value_net(self.values, features.unsqueeze(0)).squeeze(0)
        return (q / self.temperature + action).argmax(-1)

    def features(self, obs: Tensor, code: Tensor) -> Tensor:
        """Features ``[B, X]`` for obs ``[B, O]`` and noise ``[B, Z]``, where zeros ask for the mode."""
        if self.model is None:
            return obs
        layers, x = self.model.layers(self.world), obs.unsqueeze(0)
        mode = self.model.encode(layers, x, None).squeeze(0)
        if not code.any():
            return mode
        sample = self.model.encode(layers, x, code.unsqueeze(0)).squeeze(0)
        return torch.where((code == 0).all(-1, keepdim=True), mode, sample) if code.shape[-1] else sample
