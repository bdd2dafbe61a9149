"""Upside-Down RL (Srivastava et al. 2019, arXiv 1912.02877), in the order of the algorithm.

A behaviour function is taught, by supervised learning on the agent's own episodes, to answer "which action
collects this return in this many steps". Commands that ask for a little more than the best episodes
so far then yield better episodes.

Where we differ from the paper: commands are capped at the environment's highest return, and the next
epoch's episodes are collected while the network trains, under the parameters of one epoch ago (``overlap``).
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np
import torch
from pydantic import Field, NonNegativeInt, PositiveFloat, PositiveInt
from pydantic.dataclasses import dataclass as config_dataclass
from torch import Tensor

from lightning_rl.core.contents import Number
from lightning_rl.core.limits import EPISODES
from lightning_rl.core.schema import STRICT, Batch, Episodes, MethodConfig, Sizes
from lightning_rl.core.seeding import generator, seed_torch
from lightning_rl.core.types import Episode, Request
from lightning_rl.envs.spec import EnvSpec
from lightning_rl.functional.distributions import distribution_for
from lightning_rl.functional.returns import returns_to_go
from lightning_rl.functional.upside_down import SEGMENTS, CommandRange, command_range, draw_commands, next_command
from lightning_rl.methods.base import Method, episode_scalars
from lightning_rl.methods.registry import register_method
from lightning_rl.nets.command import COMMAND_NETS
from lightning_rl.nets.policies import Policy
from lightning_rl.rollouts.data_module import CollectedRollouts, Evaluation, training_requests, warm_up_requests
from lightning_rl.rollouts.episode_buffer import SortedEpisodeBuffer
from lightning_rl.rollouts.player import CommandRule


@config_dataclass(frozen=True, config=STRICT, kw_only=True)
class UDRLConfig(MethodConfig):
    """Keys of UDRL; ``configs/upside_down.yaml`` explains them."""

    learning_starts: Episodes
    num_episodes_per_iter: Episodes
    num_held_out_episodes_per_iter: Annotated[int, Field(ge=0, le=EPISODES)]
    replay_size: PositiveInt
    recent_episodes: NonNegativeInt
    last_few: PositiveInt
    sample_by: Literal["episode", "transition"]
    segments: Literal["trailing", "any"]
    max_return: float | None
    overlap: bool
    num_updates_per_iter: PositiveInt
    batch_size: Batch
    learning_rate: PositiveFloat
    max_grad_norm: PositiveFloat
    network: Literal["gated", "hyper", "bilinear"]
    hidden: Sizes
    return_scale: PositiveFloat
    horizon_scale: PositiveFloat

    def stored_steps(self, spec: EnvSpec) -> dict[str, int]:
        return {"replay_size": self.replay_size * spec.horizon, "recent_episodes": self.recent_episodes * spec.horizon}


@dataclass(frozen=True)
class CommandedSteps:
    """Supervised examples: obs ``[..., O]``, command ``[..., C]``, action ``[...]`` or ``[..., A]``."""

    obs: Tensor
    command: Tensor
    action: Tensor

    def to(self, device: torch.device) -> CommandedSteps:
        return CommandedSteps(self.obs.to(device), self.command.to(device), self.action.to(device))

    def minibatches(self) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
        return zip(self.obs, self.command, self.action, strict=True)


@dataclass(frozen=True)
class UpsideDownEpoch:
    """What one epoch trains on: ``U`` minibatches ``[U, B, ...]``, and what was measured while collecting."""

    steps: CommandedSteps
    held_out: CommandedSteps | None
    env_steps: int
    episodes: int
    held_out_env_steps: int
    command_range: CommandRange
    scalars: Mapping[str, float]

    def to(self, device: torch.device) -> UpsideDownEpoch:
        held_out = None if self.held_out is None else self.held_out.to(device)
        return dataclasses.replace(self, steps=self.steps.to(device), held_out=held_out)


class UpsideDownRollouts(CollectedRollouts):
    """Asks for a little more than the best episodes so far, keeps the best, draws the epoch's minibatches.

    Epoch 0 plays uniformly random actions.
    """

    command = (Number(), Number())

    def __init__(self, method: UDRL, num_workers: int):
        self.cfg, self.spec, self.max_return = method.cfg, method.spec, method.max_return
        evaluation = Evaluation(method, method.collector(num_workers))
        super().__init__(method.collector(num_workers), evaluation, method.policy, method.seed, self.cfg.overlap)
        self.buffer = SortedEpisodeBuffer(self.cfg.replay_size, self.spec, self.cfg.recent_episodes)

    def requests(self, epoch: int) -> list[Request]:
        if epoch == 0:
            return warm_up_requests(self.run_seed, self.cfg.learning_starts)
        count = self.cfg.num_episodes_per_iter + self.cfg.num_held_out_episodes_per_iter
        commands = draw_commands(self._command_range(), generator(self.run_seed, "command", epoch).random(count))
        return training_requests(self.run_seed, epoch, [tuple(command) for command in commands.tolist()])

    def _split(self, epoch: int, episodes: list[Episode]) -> tuple[list[Episode], list[Episode]]:
        """Episodes to train on, and those held out."""
        held_out = self.cfg.num_held_out_episodes_per_iter if epoch else 0
        return episodes[: len(episodes) - held_out], episodes[len(episodes) - held_out :]

    def absorb(self, epoch: int, episodes: list[Episode]) -> None:
        fresh, _ = self._split(epoch, episodes)
        self.buffer.add(fresh)

    def prepare(self, epoch: int, episodes: list[Episode], waited: float) -> UpsideDownEpoch:
        fresh, held_out = self._split(epoch, episodes)
        return UpsideDownEpoch(
            steps=self._minibatches(epoch),
            held_out=commanded_steps(held_out) if held_out else None,
            env_steps=sum(episode.env_steps for episode in fresh),
            episodes=len(fresh),
            held_out_env_steps=sum(episode.env_steps for episode in held_out),
            command_range=self._command_range(),
            scalars={**self._scalars(fresh), "time/collection_wait": waited},
        )

    def contents(self) -> dict[str, Any]:
        return {"buffer": self.buffer.state_dict()}

    def refill(self, contents: dict[str, Any]) -> None:
        self.buffer.load_state_dict(contents["buffer"])

    def contents_layout(self, done: int) -> dict[str, Any]:
        return {"buffer": self.buffer.layout(self.spec)}

    def most_requests(self) -> int:
        return self.cfg.num_episodes_per_iter + self.cfg.num_held_out_episodes_per_iter

    def _command_range(self) -> CommandRange:
        return command_range(*self.buffer.best(self.cfg.last_few), self.max_return)

    def _minibatches(self, epoch: int) -> CommandedSteps:
        """``num_updates_per_iter`` minibatches in one gather: the command is what really happened from the step on."""
        rng = generator(self.run_seed, "minibatch", epoch)
        shape = (self.cfg.num_updates_per_iter, self.cfg.batch_size)
        draw = {"episode": self.buffer.draw_episodes, "transition": self.buffer.draw_transitions}[self.cfg.sample_by]
        slot, start = draw(rng, shape)
        end = SEGMENTS[self.cfg.segments](start, self.buffer.length(slot), rng.random(shape))
        obs, action, achieved, steps = self.buffer.gather(slot, start, end)
        command = np.stack([achieved, steps], axis=-1, dtype=np.float32)
        return CommandedSteps(torch.from_numpy(obs), torch.from_numpy(command), torch.from_numpy(action))

    def _scalars(self, episodes: list[Episode]) -> dict[str, float]:
        kept, _ = self.buffer.best(len(self.buffer))
        scalars = {
            **episode_scalars("rollout", episodes),
            "buffer/episodes": len(kept),
            "buffer/return_mean": float(kept.mean()),
            "buffer/return_min": float(kept[-1]),
            "buffer/return_max": float(kept[0]),
        }
        commands = [episode.command[0] for episode in episodes if episode.command is not None]
        if commands:
            desired, horizon = np.mean(commands, axis=0).tolist()
            scalars |= {"command/return": desired, "command/horizon": horizon}
        return scalars


def commanded_steps(episodes: list[Episode]) -> CommandedSteps:
    """Every step of ``episodes`` with its trailing segment as the command, ``[sum T, ...]``."""
    to_go = [returns_to_go(episode.reward)[:-1] for episode in episodes]
    left = [np.arange(episode.length, 0, -1) for episode in episodes]
    command = np.stack([np.concatenate(to_go), np.concatenate(left)], axis=-1).astype(np.float32)
    obs = np.concatenate([episode.obs[:-1] for episode in episodes])
    action = np.concatenate([episode.action for episode in episodes])
    return CommandedSteps(torch.from_numpy(obs), torch.from_numpy(command), torch.from_numpy(action))


@register_method("UDRL")
class UDRL(Method):
    """The behaviour function and its supervised training."""

    Config = UDRLConfig
    command_names = ("return", "horizon")
    eval_command: Tensor
    observed_returns: Tensor

    def __init__(self, gamename: str, **options: Any):
        super().__init__(gamename, **options)
        cfg, spec = self.cfg, self.spec
        self.max_return = spec.max_return if cfg.max_return is None else cfg.max_return
        seed_torch(self.seed, "initialisation")
        distribution = distribution_for(spec.continuous)
        self.net = COMMAND_NETS[cfg.network](
            spec.obs_size,
            distribution.output_size(spec.action_size),
            cfg.hidden,
            command_scale=(cfg.return_scale, cfg.horizon_scale),
        )
        self.policy = Policy(self.net, distribution, spec.action_size)
        self.register_buffer("eval_command", torch.zeros(2))
        self.register_buffer("observed_returns", torch.zeros(2))

    def first_command(self) -> tuple[float, ...]:
        return tuple(self.eval_command.tolist())

    def command_rule(self) -> CommandRule:
        return functools.partial(next_command, max_return=self.max_return)

    def command_limits(self) -> tuple[float, float]:
        low, high = self.observed_returns.tolist()
        return low, high

    def rollouts(self, num_workers: int = 0) -> UpsideDownRollouts:
        return UpsideDownRollouts(self, num_workers)

    def optimisers(self) -> list[torch.optim.Optimizer]:
        return [torch.optim.Adam(self.policy.parameters(), lr=self.cfg.learning_rate, fused=True)]

    def train_epoch(self, batch: UpsideDownEpoch) -> None:
        policy_loss = self.fit("train/policy_loss", self.update, batch.steps.minibatches())
        self.env_steps += batch.env_steps
        self.episodes += batch.episodes
        self.held_out_env_steps += batch.held_out_env_steps
        # Evaluation asks for the lower end of the exploratory range, as the paper does.
        self.eval_command.copy_(torch.tensor([batch.command_range.low, batch.command_range.horizon]))
        observed = [batch.scalars[f"buffer/return_{end}"] for end in ("min", "max")]
        self.observed_returns.copy_(torch.tensor(observed))
        self.log_scalars({**batch.scalars, "train/policy_loss": policy_loss, **self._diagnostics(batch)})

    def update(self, obs: Tensor, command: Tensor, action: Tensor) -> Tensor:
        """One Adam step on the negative log-likelihood of the actions really taken; the loss, detached."""
        loss = -self.policy.executed_log_prob(obs, command, action).mean()
        return self.descend(0, loss, self.cfg.max_grad_norm)

    @torch.no_grad()
    def _diagnostics(self, batch: UpsideDownEpoch) -> dict[str, float]:
        obs, command = batch.steps.obs[-1], batch.steps.command[-1]
        scalars = {"train/entropy": float(self.policy.distribution(obs, command).entropy().mean())}
        if (saturation := self.net.saturation(command)) is not None:
            scalars["train/gate_saturation"] = saturation
        if batch.held_out is not None:
            held = batch.held_out
            loss = -self.policy.executed_log_prob(held.obs, held.command, held.action).mean()
            scalars["held_out/policy_loss"] = float(loss)
        scalars["time/held_out_env_steps"] = float(self.held_out_env_steps)
        return {**scalars, **self.speed_scalars(batch.env_steps)}

