"""The five agents: where the experience of the DQN core comes from.

An update of every agent learns from ``B L`` transitions: B L replayed ones, or L steps of imagination from B replayed starts.
Only the source differs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from lightning_rl.agents.model_based import CoreSettings, Experience, ModelBasedDQN
from lightning_rl.agents.optim import LockstepAdam
from lightning_rl.agents.ring import Column
from lightning_rl.core.contents import Also
from lightning_rl.envs.func_env import FuncEnv
from lightning_rl.functional.world_model import imagined_weights
from lightning_rl.nets.trunks import RecordedPass, TrunkNet
from lightning_rl.nets.world_models import RealSteps, WorldModel


class StepMemory(ModelBasedDQN):
    """Remembers real transitions: bits as bytes."""

    def columns(self) -> Mapping[str, Column]:
        return {"bytes": Column(2 * self.env.obs_size + 2, torch.uint8), "reward": Column(1, torch.float32)}

    def memory_layout(self) -> Any:
        return Also(self.memory.layout(len(self.seeds), {"bytes": (0, max(1, self.env.action_size - 1))}), self._no_bits)

    def _no_bits(self, memory: Mapping[str, Tensor]) -> str | None:
        bits = memory["bytes"].index_fill(-1, torch.tensor([2 * self.env.obs_size]), 0)
        return "observations that are no bits" if bool((bits > 1).any()) else None

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

    def exploration(self, members: slice, number: int) -> tuple[Tensor, ...]:
        """Gumbel noise ``[M, B, A]`` for each step of the roll-outs."""
        return self._imagined_actions.at(number)[members].unbind(1)

    def imagined(self, q: Tensor, action: Tensor, reward: Tensor, continues: Tensor, features: Tensor) -> Experience:
        """What to learn from roll-outs, ``[M, L B, ..]`` each, step after step; features: those that a step led to."""
        weight = survival(continues, self.settings.batch_size) if self.env.episodic else None
        return Experience(q, action, reward, self.settings.gamma * continues, features, weight)


def in_order(steps: Sequence[Sequence[Tensor]]) -> list[Tensor]:
    """One batch ``[M, L B, ..]`` of each kind of number ``[M, B, ..]`` that the L steps of a roll-out have."""
    return [torch.cat(rows, dim=1) for rows in zip(*steps, strict=True)]


def survival(continues: Tensor, starts: int) -> Tensor:
    """Probability ``[M, L B]`` that an episode was still going on, for the probabilities of going on ``[M, L B]``, B starts."""
    return imagined_weights(continues.unflatten(1, (-1, starts)).mT).mT.flatten(1)


class PerfectModelDQN(Imagination):
    """Imagines with the environment itself: remembers states, and plays on from them."""

    def __init__(self, env: FuncEnv, net: TrunkNet, settings: CoreSettings, seeds: Sequence[int], device: str = "cpu"):
        self._example = env.reset(torch.zeros(1, env.reset_noise_size))
        super().__init__(env, net, settings, seeds, device)
        shape = (settings.rollout_length, settings.batch_size, env.step_noise_size)
        self._chance = self.noise("imagined events", shape, "uniform")

    def columns(self) -> Mapping[str, Column]:
        return {"state": Column(self._example.shape[-1], torch.int16)}  # cells and bits

    def memory_layout(self) -> Any:
        return Also(self.memory.layout(len(self.seeds), {"state": (0, torch.iinfo(torch.int16).max)}), self._fault)

    def _fault(self, memory: Mapping[str, Tensor]) -> str | None:
        state = memory["state"].flatten(0, 1).to(self._example.dtype)
        return self.env.fault(state, self.env.observe(state)) if len(state) else None

    def remember(self, state: Tensor, real: RealSteps) -> None:
        self.memory.add({"state": state})

    def experience(self, online: RecordedPass, members: slice, number: int) -> Experience:
        state = self.memory.sample(self._draw.at(number)[members], members)["state"].to(self._example.dtype)
        obs, chance, steps = self.env.observe(state), self._chance.at(number)[members].unbind(1), []
        for gumbel, event in zip(self.exploration(members, number), chance, strict=True):
            q = online(obs)
            action = self.boltzmann(q, gumbel)
            state, obs, reward, terminated, _ = self.env.step(state, action, event)
            steps.append((q, action, reward, (~terminated).float(), obs))
        return self.imagined(*in_order(steps))


class LearnedModelDQN(StepMemory, Imagination):
    """Trains a world model on real transitions and imagines with it."""

    member_tensors = (*ModelBasedDQN.member_tensors, "model_params")
    member_parts = (*ModelBasedDQN.member_parts, "model_adam")

    def __init__(
        self, env: FuncEnv, net: TrunkNet, model: WorldModel, model_learning_rate: float, settings: CoreSettings,
        seeds: Sequence[int], device: str = "cpu",
    ):  # fmt: skip
        self.model, self.encode_noise_size, self.noise_kind = model, model.encode_noise_size, model.noise_kind
        self.loss_names = ("train/value_loss", *(f"model/{name}_loss" for name in model.parts))
        super().__init__(env, net, settings, seeds, device)
        s, kind = settings, self.noise_kind
        self.model_params = model.init(self.generators("model initialisation")).to(device)
        self._model_grad = torch.zeros_like(self.model_params[: s.group_size])
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
        layers, dreams = self.layers(self.model, "model_params", members), self._dreams.at(number)[members].unbind(1)
        features, steps = self.model.encode(layers, real.obs, codes[:, 1]), []
        for gumbel, dream in zip(self.exploration(members, number), dreams, strict=True):
            q = online(features)
            action = self.boltzmann(q, gumbel)
            joined = self.model.join(features, action)
            features = self.model.imagine(layers, joined, dream)
            steps.append((q, action, joined, features))
        q, action, joined, features = in_order(steps)
        return self.imagined(q, action, *self.model.outcome(layers, joined), features)

    def _fit_model(self, real: RealSteps, noise: Tensor, members: slice) -> None:
        rows = slice(0, len(noise))
        layers, into = self.layers(self.model, "model_params", members), self.layers(self.model, "_model_grad", rows)
        self.losses[1:, members] += self.model.gradient(layers, real, noise, into)
        self.model_adam.step(self.model_params, self._model_grad[rows], members)
