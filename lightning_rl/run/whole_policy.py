"""All that acts of a trained policy as one function of tensors, which a graph can hold: what is
asked for becomes a command and its guidance, commands go on, and actions are the environment's own.
"""

from __future__ import annotations

import copy
import math
from typing import Any

import torch
from torch import Tensor, nn

from lightning_rl.core.errors import UserError
from lightning_rl.functional.command_rule import Decrease
from lightning_rl.methods.base import Method
from lightning_rl.methods.model_based import WorldPolicy
from lightning_rl.nets.categorical_latent import CategoricalLatent
from lightning_rl.nets.command import CommandPolicy
from lightning_rl.nets.latent_model import LatentModel
from lightning_rl.nets.noisy_command import NoisyCommandPolicy
from lightning_rl.nets.policies import Actor, Policy
from lightning_rl.run.asking import RAW

_BATCH = 2  # of the example: a batch of 1 is taken for a constant


class WholePolicy(nn.Module):
    """From observations, and what is asked for, to actions of the environment's own space.

    Attributes:
        inputs: an example ``[B, ..]`` of each input, by name: of obs zeros, of the others what an
            episode begins with.
        outputs: names of what ``forward`` gives.
        command_names: of the columns of the input ``command``. Of a calibrated policy the first is
            the return that the episode is to obtain; nan there asks for the rest as it is.
    """

    low: Tensor
    high: Tensor
    start: Tensor

    def __init__(self, method: Method):
        super().__init__()
        actor = copy.deepcopy(method.policy).cpu().requires_grad_(False).eval()
        self.actor = LayeredWorldPolicy(actor) if isinstance(actor, WorldPolicy) else actor
        self.calibration = copy.deepcopy(method.calibrated())
        rule = method.command_rule()
        if not isinstance(rule, Decrease | None):
            raise UserError(
                f"export: command {method.cfg.command} goes on by code of its own, which no graph "
                "holds; train with command_rule=hold"
            )
        self.rule = rule
        usual = method.first_command() or ()
        self.command_names = method.command_names
        if self.calibration is not None:
            self.command_names = ("return", *(RAW + name for name in method.command_names))
            usual = (math.nan, *usual)
        space: Any = method.spec.action_space
        self.continuous, self.masked = method.spec.continuous, method.spec.masked
        if self.continuous:
            self.register_buffer("low", torch.from_numpy(space.low.copy()))
            self.register_buffer("high", torch.from_numpy(space.high.copy()))
        elif method.spec.factors:
            self.register_buffer("start", torch.from_numpy(space.start.copy()))
        else:
            self.register_buffer("start", torch.tensor(int(space.start)))
        self.inputs = self._example(method, usual)
        self.outputs = ["action"]
        if "noise" in self.inputs:
            self.outputs.append("deterministic_action")
        if self.rule is not None:
            self.outputs.append("next_state")

    @property
    def limits(self) -> tuple[float, float] | None:
        """The lowest and the highest return that can be asked for; None: the policy is not
        calibrated.
        """
        return None if self.calibration is None else self.calibration.limits

    @property
    def noise_kind(self) -> str:
        """What is to be drawn for ``noise``, in words."""
        actor = self.actor
        if isinstance(actor, LayeredWorldPolicy):
            kind = f"{actor.action_size} Gumbel numbers"
            return kind if actor.latent is None else f"{kind}, then {actor.latent.noise_kind} ones"
        if not isinstance(actor, Policy):
            return "as its `draw_noise` does"
        kind = "standard normal" if self.continuous else "Gumbel"
        noisy = isinstance(actor, NoisyCommandPolicy)
        return f"{kind} numbers, then a standard normal one" if noisy else f"{kind} numbers"

    def _example(self, method: Method, usual: tuple[float, ...]) -> dict[str, Tensor]:
        inputs = {"obs": torch.zeros(_BATCH, method.spec.obs_size)}
        frames = method.spec.frames
        if frames is not None:
            inputs["obs"] = torch.zeros(_BATCH, *frames.shape, dtype=torch.uint8)
        if usual:
            inputs["command"] = torch.tensor([usual] * _BATCH)
        if self.rule is not None:
            inputs["state"] = torch.zeros(_BATCH, len(method.command_names))
            inputs["reward"] = torch.zeros(_BATCH)
            if method.objectives:
                inputs["reward"] = torch.zeros(_BATCH, len(method.objectives))
            inputs["episode_start"] = torch.ones(_BATCH, dtype=torch.bool)
        if self.actor.noise_size:
            inputs["noise"] = torch.zeros(_BATCH, self.actor.noise_size)
        return inputs

    def forward(
        self,
        obs: Tensor,
        command: Tensor | None = None,
        state: Tensor | None = None,
        reward: Tensor | None = None,
        episode_start: Tensor | None = None,
        noise: Tensor | None = None,
    ) -> dict[str, Tensor]:
        """The ``outputs`` for a batch.

        Args:
            obs: observations ``[B, O]``, flattened; of images the newest frames, bytes
                ``[B, K, H, W]``.
            command: what is asked of each episode ``[B, C]``, the same at all of its steps.
            state: the ``next_state`` of the step before ``[B, S]``.
            reward: of the step before ``[B]``, of several objectives ``[B, K]``.
            episode_start: where an episode begins ``[B]`` bool; state and reward do not count
                there.
            noise: ``[B, A]``, which makes ``action`` a sample.
        """
        obs = obs.flatten(1)
        more: dict[str, Tensor] = {}
        if command is not None:
            command, guidance = self._asked(command)
            if guidance is not None:
                more["guidance"] = guidance
        if self.rule is not None:
            assert command is not None
            assert episode_start is not None
            command = torch.where(episode_start.unsqueeze(-1), command, self.rule(state, reward))
        action = self._own(self.actor(obs, command, noise, **more))
        outputs = {"action": action}
        if noise is not None:
            outputs["deterministic_action"] = self._own(self.actor(obs, command, **more))
        if self.rule is not None:
            assert command is not None
            outputs["next_state"] = command
        return outputs

    def _asked(self, command: Tensor) -> tuple[Tensor, Tensor | None]:
        """The command that the network takes, and its guidance where that is not the policy's."""
        if self.calibration is None:
            return command, None
        assert isinstance(self.actor, CommandPolicy)
        asked, raw = command[:, 0], command[:, 1:]
        is_asked = ~asked.isnan()
        within = torch.where(is_asked, asked, 0.0).double()
        first, guidance = self.calibration.commands(within)
        first = torch.where(is_asked, first.float(), raw[:, 0])
        guidance = torch.where(is_asked, guidance, self.actor.guidance)
        return torch.cat([first.unsqueeze(-1), raw[:, 1:]], dim=-1), guidance.unsqueeze(-1)

    def _own(self, action: Tensor) -> Tensor:
        """The action of the environment's own space, see ``envs.spaces.OwnAction``."""
        if not self.continuous:
            return (action + self.start).to(self.start.dtype)
        share = (action.to(self.low.dtype) + 1) / 2
        return (self.low + share * (self.high - self.low)).clamp(self.low, self.high)


class LayeredWorldPolicy(Actor):
    """A ``WorldPolicy`` whose networks are plain modules, which a graph can hold."""

    def __init__(self, policy: WorldPolicy):
        super().__init__()
        self.value_net = policy.value_net.module(policy.values[0])
        self.temperature, self.action_size = policy.temperature, policy.action_size
        self.noise_size = policy.noise_size
        self.latent = None
        if isinstance(policy.model, LatentModel):
            self.latent = policy.model.latent
            encoder = policy.model.nets[0]
            self.encoder = encoder.module(policy.world[0, : encoder.size])

    def act(self, obs: Tensor, command: Tensor | None, noise: Tensor) -> Tensor:
        action, code = noise.split([self.action_size, self.noise_size - self.action_size], dim=-1)
        q = self.value_net(self._features(obs, code))
        return (q / self.temperature + action).argmax(-1)

    def _features(self, obs: Tensor, code: Tensor) -> Tensor:
        if self.latent is None:
            return obs
        output = self.encoder(obs)
        drawn = (code != 0).any(-1, keepdim=True)
        if not isinstance(self.latent, CategoricalLatent):
            mean, std, _ = self.latent.moments(output)
            return torch.where(drawn, mean + std * code, mean)
        logits = output.unflatten(-1, (self.latent.variables, self.latent.classes))
        cumulative = (logits - logits.amax(-1, keepdim=True)).exp().cumsum(-1)
        threshold = code.unsqueeze(-1) * cumulative[..., -1:]
        sample = (cumulative <= threshold).sum(-1).clamp(max=self.latent.classes - 1)
        chosen = torch.where(drawn, sample, logits.argmax(-1))
        return nn.functional.one_hot(chosen, self.latent.classes).flatten(-2).float()
