"""The five agents: where the experience of the DQN core comes from.

An update of every agent learns from ``B L`` transitions: B L replayed ones, or L steps of imagination from B replayed starts.
Only the source differs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from lightning_rl.agents.base import value_and_grad
from lightning_rl.agents.model_based import CoreSettings, Experience, ModelBasedDQN
from lightning_rl.agents.optim import LockstepAdam
from lightning_rl.data.member_ring import Column
from lightning_rl.envs.func_env import FuncEnv
from lightning_rl.functional.world_model import imagined_weights
from lightning_rl.nets.trunks import RecordedPass, TrunkNet
from lightning_rl.nets.world_models import RealSteps, WorldModel


class StepMemory(ModelBasedDQN):
    """Remembers real transitions: bits as bytes."""

    def columns(self) -> Mapping[str, Column]:
        return {"bytes": Column(2 * self.env.obs_size + 2, torch.uint8), "reward": Column(1, torch.float32)}

    def remember(self, state: Tensor, real: RealSteps) -> None:
        rest = torch.stack([real.action, real.continues.long()], dim=-1)
        row = torch.cat([real.obs.byte(), real.next_obs.byte(), rest.byte()], dim=-1)
        self.memory.add({"bytes": row, "reward": real.reward.unsqueeze(-1)})

    def replay(self, members: slice, number: int) -> RealSteps:
        """A batch ``[M, B]`` for update ``number``."""
        rows, size = self.memory.sample(self._draw.at(number)[members], members), self.env.obs_size
        obs, next_obs, action, continues = rows["bytes"].split([size, size, 1, 1], dim=-1)
        rest = (action.squeeze(-1).long(), rows["reward"].squeeze(-1), continues.squeeze(-1).float())
        return RealSteps(obs.float(), *rest, next_obs.float())


class ReplayDQN(StepMemory):
    """Experience replay only: no model."""

    def experience(self, online: RecordedPass, members: slice, number: int) -> Experience:
        real = self.replay(members, number)
        discount = self.settings.gamma * real.continues
        return Experience(online(real.obs), real.action, real.reward, discount, real.next_obs, None)


class Imagination(ModelBasedDQN):
    """Learns from roll-outs of Boltzmann actions."""

    def __init__(self, env: FuncEnv, net: TrunkNet, settings: CoreSettings, seeds: Sequence[int], device: str = "cpu"):
        super().__init__(env, net, settings, seeds, device)
        shape = (settings.rollout_length, settings.batch_size, env.action_size)
        self._imagined_actions = self.noise("imagined actions", shape, "gumbel")

    def choose(self, q: Tensor, members: slice, number: int, step: int) -> Tensor:
        """Actions of step ``step`` of the roll-outs for values ``[M, B, A]``."""
        return self.boltzmann(q, self._imagined_actions.at(number)[members, step])


def joined(steps: Sequence[tuple[Tensor, Tensor, Tensor, Tensor, Tensor]], gamma: float, weighted: bool) -> Experience:
    """One batch ``[M, L B, ..]`` of the steps of a roll-out: (q, action, reward, continues, next_features) ``[M, B, ..]`` each.

    weighted: by the probability that the episode was still going on.
    """
    q, action, reward, continues, features = (torch.cat(rows, dim=1) for rows in zip(*steps, strict=True))
    weight = None
    if weighted:
        weight = imagined_weights(torch.stack([step[3] for step in steps], dim=-1)).transpose(1, 2).flatten(1, 2)
    return Experience(q, action, reward, gamma * continues, features, weight)


class PerfectModelDQN(Imagination):
    """Imagines with the environment itself: remembers states, and plays on from them."""

    def __init__(self, env: FuncEnv, net: TrunkNet, settings: CoreSettings, seeds: Sequence[int], device: str = "cpu"):
        self._example = env.reset(torch.zeros(1, env.reset_noise_size))
        super().__init__(env, net, settings, seeds, device)
        shape = (settings.rollout_length, settings.batch_size, env.step_noise_size)
        self._chance = self.noise("imagined events", shape, "uniform")

    def columns(self) -> Mapping[str, Column]:
        return {"state": Column(self._example.shape[-1], torch.int16)}  # cells and bits

    def remember(self, state: Tensor, real: RealSteps) -> None:
        self.memory.add({"state": state})

    def experience(self, online: RecordedPass, members: slice, number: int) -> Experience:
        state = self.memory.sample(self._draw.at(number)[members], members)["state"].to(self._example.dtype)
        obs, chance, steps = self.env.observe(state), self._chance.at(number)[members], []
        for k in range(self.settings.rollout_length):
            q = online(obs)
            action = self.choose(q, members, number, k)
            state, obs, reward, terminated, _ = self.env.step(state, action, chance[:, k])
            steps.append((q, action, reward, (~terminated).float(), obs))
        return joined(steps, self.settings.gamma, weighted=self.env.episodic)


class LearnedModelDQN(StepMemory, Imagination):
    """Trains a world model on real transitions and imagines with it."""

    member_tensors = (*ModelBasedDQN.member_tensors, "model_params")
    member_parts = (*ModelBasedDQN.member_parts, "model_adam")

    def __init__(
        self, env: FuncEnv, net: TrunkNet, model: WorldModel, model_learning_rate: float, settings: CoreSettings,
        seeds: Sequence[int], device: str = "cpu",
    ):  # fmt: skip
        self.model, self.encode_noise_size, self.noise_kind = model, model.encode_noise_size, model.noise_kind
        names = ("reward", "continuation", "obs", *(("kl_prior", "kl_posterior") if model.weights.kl_prior else ()))
        self.loss_names = ("train/value_loss", *(f"model/{name}_loss" for name in names))
        super().__init__(env, net, settings, seeds, device)
        s, kind = settings, self.noise_kind
        self.model_params = model.init(self.generators("model initialisation")).to(device)
        self.model_adam = LockstepAdam(self.model_params, model_learning_rate, s.betas, s.eps, s.decay)
        self._dreams = self.noise("imagined states", (s.rollout_length, s.batch_size, model.noise_size), kind)
        self._codes = self.noise("codes", (2, s.batch_size, model.encode_noise_size), kind)
        self._acting_codes = self.noise("acting codes", (1, model.encode_noise_size), kind)

    def features(self, obs: Tensor, noise: Tensor | None) -> Tensor:
        return self.model.encode(self.layers(self.model, "model_params", self.everyone), obs, noise)

    def encode_noise(self, step: int) -> Tensor | None:
        return self._acting_codes.at(step)

    def experience(self, online: RecordedPass, members: slice, number: int) -> Experience:
        real, codes = self.replay(members, number), self._codes.at(number)[members]
        self._fit_model(real, codes[:, 0], members)
        layers, dreams, steps = self.layers(self.model, "model_params", members), self._dreams.at(number)[members], []
        features = self.model.encode(layers, real.obs, codes[:, 1])
        for k in range(self.settings.rollout_length):
            q = online(features)
            action = self.choose(q, members, number, k)
            reward, continues, features = self.model.imagine(layers, features, action, dreams[:, k])
            steps.append((q, action, reward, continues, features))
        return joined(steps, self.settings.gamma, weighted=self.env.episodic)

    def _fit_model(self, real: RealSteps, noise: Tensor, members: slice) -> None:
        parts: dict[str, Tensor] = {}

        def loss(params: Tensor) -> Tensor:
            value, named = self.model.loss(params, real, noise)
            parts.update(named)
            return value

        _, grad = value_and_grad(loss, self.model_params[members])
        for row, name in enumerate(self.loss_names[1:], start=1):
            self.losses[row, members] += parts[name.removeprefix("model/").removesuffix("_loss")].detach()
        self.model_adam.step(self.model_params, grad, members)
