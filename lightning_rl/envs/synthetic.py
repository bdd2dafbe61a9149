"""Synthetic environments: networks that stand in for a task (arXiv 2202.02790), one for each member
of a population.

State, reward and done are three networks of one shape, linear and unbounded at the output, of
``[action, state]``. The predicted state is the next input. The raw done d ends the episode above
0.5; ``1 - d`` is also what the agent's bootstrap is multiplied by: a discount that depends on the
state and is learned.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, Self

import torch
import torch.nn.functional as F
from torch import Tensor

from lightning_rl.envs.func_env import FuncEnv, State, Step, standard_normal
from lightning_rl.nets.members import PRELU_SLOPE, ActivationName, Layers, MemberMLP

_STEP = ("state", "reward", "done")
"""The heads that give a step."""


@dataclass(frozen=True)
class SyntheticNet:
    """The heads side by side in one block ``[N, D]``: state, reward, done, and with ``latent_size``
    the start state.

    latent_size: the start state is a network of so many standard normal numbers; 0: the real task
    gives it.
    """

    obs_size: int
    action_size: int
    hidden: tuple[int, ...]
    activation: ActivationName
    latent_size: int = 0

    @cached_property
    def heads(self) -> dict[str, MemberMLP]:
        """The networks by name, in the order of their blocks."""
        size = self.action_size + self.obs_size
        shapes = {"state": (size, self.obs_size), "reward": (size, 1), "done": (size, 1)}
        if self.latent_size:
            shapes["start"] = (self.latent_size, self.obs_size)
        return {
            name: MemberMLP(i, self.hidden, o, self.activation) for name, (i, o) in shapes.items()
        }

    @property
    def joined(self) -> MemberMLP:
        """State, reward and done as one network, whose layers hold those of the three.

        Slopes of PReLU are no parameters of it.
        """
        size = self.action_size + self.obs_size
        hidden = tuple(len(_STEP) * width for width in self.hidden)
        activation = "leakyrelu" if self.activation == "prelu" else self.activation
        return MemberMLP(size, hidden, self.obs_size + 2, activation)

    @property
    def size(self) -> int:
        """Columns ``D`` of the parameter block."""
        return sum(head.size for head in self.heads.values())

    def init(self, generators: Sequence[torch.Generator]) -> Tensor:
        """Fresh parameters ``[N, D]``."""
        return torch.cat([head.init(generators) for head in self.heads.values()], dim=1)

    def evolved(self) -> Tensor:
        """Which columns evolve ``[D]``: weights and biases; PReLU slopes stay at 0.25."""
        return torch.cat([head.columns("weight", "bias") for head in self.heads.values()])

    def split(self, params: Tensor) -> dict[str, Tensor]:
        """The block of each head."""
        blocks = params.split([head.size for head in self.heads.values()], dim=1)
        return dict(zip(self.heads, blocks, strict=True))


class StartStates(FuncEnv):
    """A task of which only its bounds and a sample ``[K, O]`` of start states are known; a reset
    draws one of these.
    """

    reset_noise_size = 1

    def __init__(
        self,
        starts: Tensor,
        action_size: int,
        continuous: bool,
        obs_low: tuple[float, ...],
        obs_high: tuple[float, ...],
    ):
        self.starts, self.action_size, self.continuous = starts, action_size, continuous
        self.obs_low, self.obs_high = obs_low, obs_high

    def reset(self, noise: Tensor) -> State:
        return self.starts[(noise[..., 0] * len(self.starts)).long()]

    def step(self, state: State, action: Tensor, noise: Tensor) -> Step:
        raise NotImplementedError("only the start states of this task are known")

    def to(self, device: torch.device) -> StartStates:
        return StartStates(
            self.starts.to(device), self.action_size, self.continuous, self.obs_low, self.obs_high
        )


DoneKind = Literal["raw", "classifier", "always"]


class SyntheticEnv(FuncEnv):
    """Member ``n`` of the first dimension lives in the environment with parameters ``params[n]``
    ``[N, D]``.

    real: the task, for sizes and start states; its dynamics are not used.
    one_hot: the agent sees the largest output as a one-hot vector. The networks' next input is
    the raw output, so that what the agent sees is not Markov.
    done: ``raw`` as above; ``classifier`` for models that are trained with a log loss: d =
    sigmoid(output); ``always`` is ``one_step.OneStepEnv``.
    """

    def __init__(
        self,
        net: SyntheticNet,
        params: Tensor,
        real: FuncEnv,
        one_hot: bool = False,
        done: DoneKind = "raw",
    ):
        self.net, self.params, self.real = net, params, real
        self.one_hot, self.done = one_hot, done
        low, high = (0.0, 1.0) if one_hot else (-math.inf, math.inf)
        self.obs_low, self.obs_high = (low,) * net.obs_size, (high,) * net.obs_size
        self.action_size, self.continuous = real.action_size, real.continuous
        self.reset_noise_size = net.latent_size or real.reset_noise_size
        self.blocks = net.split(params)

    def _head(self, name: str, x: Tensor) -> Tensor:
        """What a head gives for inputs ``[..., I]``."""
        rows = x.reshape(len(self.params), -1, x.shape[-1])
        return self.net.heads[name](self.blocks[name], rows).reshape(*x.shape[:-1], -1)

    @torch.no_grad()
    def reset(self, noise: Tensor) -> State:
        if self.net.latent_size:
            return self._head("start", standard_normal(noise))
        return self.real.observe(self.real.reset(noise))

    def observe(self, state: State) -> Tensor:
        if not self.one_hot:
            return state
        return F.one_hot(state.argmax(-1), state.shape[-1]).to(state.dtype)

    @torch.no_grad()
    def step(self, state: State, action: Tensor, noise: Tensor) -> Step:
        del noise
        if self.continuous:
            act = action.clamp(-1, 1)
        else:
            act = F.one_hot(action, self.action_size).to(state.dtype)
        x = torch.cat([act, state], dim=-1)
        after = self._head("state", x)
        reward = self._head("reward", x).squeeze(-1)
        done = self._head("done", x).squeeze(-1)
        if self.done == "classifier":
            done = done.sigmoid()
        return Step(after, self.observe(after), reward, done > 0.5, 1 - done)

    @property
    def fresh_slopes(self) -> bool:
        """Whether all slopes of PReLU are what they are at first: they do not evolve."""
        layers = [layer for name in _STEP for layer in self._layers(name)]
        return all(
            layer.slope is None or bool((layer.slope == PRELU_SLOPE).all()) for layer in layers
        )

    def _layers(self, name: str) -> Layers:
        return self.net.heads[name].layers(self.blocks[name])

    @cached_property
    def joined(self) -> Tensor:
        """The parameters of ``net.joined``."""
        net = self.net.joined
        params = torch.zeros(len(self.params), net.size)
        heads = [self._layers(name) for name in _STEP]
        for number, whole in enumerate(net.layers(params)):
            row = column = 0
            for head in heads:
                weight, bias = head[number].weight, head[number].bias
                rows, columns = weight.shape[1:]
                whole.weight[:, row : row + rows, column : column + columns] = weight
                whole.bias[:, :, column : column + columns] = bias
                column += columns
                if number > 0:  # all heads have the same input
                    row += rows
        return params

    def keep(self, rows: Tensor) -> SyntheticEnv:
        return self.with_params(self.params[rows], self.real)

    def to(self, device: torch.device) -> SyntheticEnv:
        return self.with_params(self.params.to(device), self.real.to(device))

    def with_params(self, params: Tensor, real: FuncEnv) -> Self:
        """The same with other parameters, and the task for their device."""
        return type(self)(self.net, params, real, self.one_hot, self.done)
