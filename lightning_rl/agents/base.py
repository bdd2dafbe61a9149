"""What every learner shares: ``N`` members in one object, each of which learns exactly what it
would learn alone.

Up to rounding: the order of summation in a matrix product may depend on the number of members.
Equal shapes give equal bits.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, Self, TypeVar

import torch
from pydantic import NonNegativeFloat, NonNegativeInt, PositiveFloat, PositiveInt
from pydantic.dataclasses import dataclass as config_dataclass
from torch import Tensor, nn

from lightning_rl.agents.optim import MemberAdam, learners_only
from lightning_rl.agents.variation import Variation
from lightning_rl.core.schema import STRICT, HiddenSizes, MethodConfig, Share, Width
from lightning_rl.core.seeding import NOISE_BLOCK, MemberNoise, derive_seed
from lightning_rl.envs.spec import EnvSpec
from lightning_rl.functional.distributions import Distribution
from lightning_rl.nets.members import ActivationName

if TYPE_CHECKING:
    from lightning_rl.agents.replay import MemberReplay, MemberRing


_OF_STOP_RULES = {
    "solved_return": ("solved",),
    "judge": ("solved", "plateau"),
    "early_out_num": ("solved", "plateau"),
    "early_out_virtual_diff": ("plateau",),
}
"""Keys that only some stop rules read, with these rules."""


@config_dataclass(frozen=True, config=STRICT, kw_only=True)
class AgentConfig(MethodConfig):
    """Keys of all agents; ``configs/agents.yaml`` explains them."""

    steps_per_epoch: PositiveInt
    train_episodes: PositiveInt
    action_repeat: PositiveInt
    simulator: Literal["serial", "processes"]
    gamma: Share
    learning_rate: PositiveFloat
    stop_rule: Literal["none", "solved", "plateau"]
    solved_return: float | None
    judge: Literal["training", "test"]
    early_out_num: PositiveInt
    early_out_virtual_diff: PositiveFloat
    faithful: bool

    def unread(self) -> dict[str, str]:
        """Keys of stop rules that are not chosen, and of kinds of curiosity (``icm_..``,
        ``count_..``) that are off.
        """
        found = {}
        for key, rules in _OF_STOP_RULES.items():
            if self.stop_rule not in rules:
                found[key] = (
                    f"stop_rule={self.stop_rule} does not read it; leave it out, or set "
                    f"stop_rule={rules[0]} as well"
                )
        for key in vars(self):
            kind = key.partition("_")[0]
            if kind in ("icm", "count") and kind != vars(self).get("curiosity", kind):
                found[key] = (
                    f"there is no curiosity of this kind; leave it out, or set curiosity={kind} as "
                    "well"
                )
        return found


@config_dataclass(frozen=True, config=STRICT, kw_only=True)
class EpsilonGreedyConfig(AgentConfig):
    """Keys of agents that explore by epsilon; see ``epsilon_after``."""

    learning_starts: NonNegativeInt
    epsilon_init: Share
    epsilon_min: Share
    epsilon_decay: Share


@config_dataclass(frozen=True, config=STRICT, kw_only=True)
class NetConfig:
    """Keys of agents with networks."""

    hidden: HiddenSizes
    activation: ActivationName
    curiosity: Literal["none", "icm"]
    icm_learning_rate: PositiveFloat
    icm_beta: Share
    icm_eta: NonNegativeFloat
    icm_hidden_size: Width
    icm_feature_size: Width


class Transition(NamedTuple):
    """obs ``[..., O]``, action ``[...]`` int64 or ``[..., A]``, reward ``[...]``, discount
    ``[...]``, next_obs ``[..., O]``; the leading dimensions are ``[N]`` for one step of every
    member, ``[N, B]`` for a batch.
    """

    obs: Tensor
    action: Tensor
    reward: Tensor
    discount: Tensor
    next_obs: Tensor


class MemberModule(nn.Module):
    """``N`` members in one module: parameters and buffers are ``[N, ...]``, and rows ``n`` of all
    of them are member ``n``.

    So a selection of rows is a smaller stack. Non-persistent buffers are among the rows as well.
    """

    @property
    def device(self) -> torch.device:
        """Where the members are."""
        return next(self.parameters()).device

    @property
    def num_members(self) -> int:
        return len(next(self.parameters()))

    def optimizers(self) -> list[Any]:
        """The optimizers of the members, in a fixed order."""
        return [
            optimizer
            for child in self.children()
            if isinstance(child, MemberModule)
            for optimizer in child.optimizers()
        ]

    def rows(self) -> dict[str, Tensor]:
        """The live tensors ``[N, ...]`` by name, with those of the optimizers."""
        rows = {
            name: value.data for name, value in (*self.named_parameters(), *self.named_buffers())
        }
        for number, optimizer in enumerate(self.optimizers()):
            rows |= {
                f"optimizers.{number}.{name}": value for name, value in optimizer.rows().items()
            }
        return rows

    def load_rows(self, rows: Mapping[str, Tensor]) -> None:
        """Replaces all tensors by these, without copying; they may be of another number of
        members.
        """
        for name, parameter in self.named_parameters():
            parameter.data, parameter.grad = rows[name], None
        for prefix, module in self.named_modules():
            for name in module._buffers:
                module._buffers[name] = rows[f"{prefix}.{name}" if prefix else name]
        for number, optimizer in enumerate(self.optimizers()):
            prefix = f"optimizers.{number}."
            optimizer.load_rows(
                {
                    name.removeprefix(prefix): value
                    for name, value in rows.items()
                    if name.startswith(prefix)
                }
            )

    @contextmanager
    def holding(self, rows: Mapping[str, Tensor]) -> Iterator[None]:
        """Inside, the members are those of ``rows``, possibly another number; changes to them
        are discarded afterwards.
        """
        everyone = self.rows()
        self.load_rows(rows)
        try:
            yield
        finally:
            self.load_rows(everyone)

    def holding_only(self, members: Tensor) -> AbstractContextManager[None]:
        """``holding`` those with the numbers ``members`` ``[K]``."""
        return self.holding(
            {name: value[members.to(value.device)] for name, value in self.rows().items()}
        )


class SeededMembers(MemberModule):
    """Members with noise streams and maybe a memory, which move to a device with them; member
    ``n`` depends on ``seeds[n]``.
    """

    def __init__(self, seeds: Sequence[int]):
        super().__init__()
        self.seeds = list(seeds)
        self._noises: list[MemberNoise] = []

    def memory(self) -> MemberRing | None:
        """What the members remember, if they do."""
        return None

    def generators(self, purpose: str) -> list[torch.Generator]:
        """One generator per member, e.g. for the initialisation."""
        return [torch.Generator().manual_seed(derive_seed(seed, purpose)) for seed in self.seeds]

    def noise(
        self,
        purpose: str,
        shape: tuple[int, ...],
        kind: str,
        lengths: Sequence[int] | None = None,
        block: int = NOISE_BLOCK,
    ) -> MemberNoise:
        """A stream of noise that follows the members."""
        self._noises.append(
            MemberNoise(self.seeds, purpose, shape, kind, lengths=lengths, block=block)
        )
        return self._noises[-1]

    def _apply(self, fn: Callable[..., Any], recurse: bool = True) -> Self:
        super()._apply(fn, recurse)
        for follower in (*self._noises, *self.optimizers()):
            follower.to(self.device)
        if (memory := self.memory()) is not None:
            memory.to(self.device)
        return self


class Actors(SeededMembers, ABC):
    """``N`` policies that can be tested. distribution_class: reads the output of ``module``;
    None: the best action is taken.
    """

    distribution_class: type[Distribution] | None = None

    @abstractmethod
    def greedy(self, obs: Tensor) -> Tensor:
        """Actions for the environment without exploration, for obs ``[N, K, O]``: ``[N, K]`` or
        ``[N, K, A]``.
        """

    @property
    @abstractmethod
    def num_updates(self) -> Tensor:
        """Optimizer steps of each member so far ``[N]`` int64."""

    @abstractmethod
    def module(self, row: int) -> nn.Module:
        """One member's actor, or its action values, as a plain network from obs ``[..., O]``."""


class Agent(Actors, ABC):
    """``N`` learners trained in lock-step.

    A registered agent is made as ``Agent(config, spec, seeds, variation)`` for the environment of
    ``spec``. All randomness of member ``n`` is a function of ``seeds[n]`` and the step, so the
    other members of a stack change nothing. ``step`` counts the lock-step decisions of a training
    run from 0; ``active`` ``[N]`` bool: the members that learn, None: all.
    """

    actions: ClassVar[Literal["discrete", "continuous", "any"]] = "any"
    cfg: Any

    @classmethod
    def misfit(cls, spec: EnvSpec) -> str | None:
        """Why it cannot play an environment, with the remedy; None where it can."""
        if cls.actions == "discrete" and spec.continuous:
            return "it is for discrete actions; use TD3 or PPO"
        if cls.actions == "continuous" and not spec.continuous:
            return "it is for continuous actions; use TD3-discrete, DDQN or PPO"
        return None

    @abstractmethod
    def act(self, obs: Tensor, episode: Tensor, step: int) -> Tensor:
        """Exploring actions for obs ``[N, O]`` in each member's ``episode`` ``[N]`` (0, 1, ..),
        as ``learn`` takes them.
        """

    @abstractmethod
    def learn(self, transition: Transition, over: Tensor, step: int, active: Tensor | None) -> None:
        """Takes in one transition of every member; active members learn. over ``[N]``: the
        episode ended here.
        """

    @abstractmethod
    def adopt(self, net: nn.Module) -> None:
        """Every member starts from the weights of a network like those of ``module``;
        RuntimeError if they do not fit.
        """

    def memory(self) -> MemberReplay | None:
        """The replay memory, for agents that have one."""
        return None

    def to_env(self, action: Tensor) -> Tensor:
        """The environment's action for one of ``act``."""
        return action

    def keep(self, rows: Tensor) -> None:
        """Goes on with the members ``rows`` ``[M]`` int64 alone."""
        self.load_rows({name: value[rows] for name, value in self.rows().items()})
        self.keep_streams(rows)

    def keep_streams(self, rows: Tensor) -> None:
        """Noise and memory go on with the members ``rows`` alone."""
        for noise in self._noises:
            noise.keep(rows)
        if (memory := self.memory()) is not None:
            memory.keep(rows)


@dataclass(frozen=True)
class RegisteredAgent:
    """config: the schema of its YAML. agent: the class, which is made from (config, spec, seeds,
    variation).
    """

    config: type[AgentConfig]
    agent: Callable[..., Agent]
    misfit: Callable[[EnvSpec], str | None]


AGENTS: dict[str, RegisteredAgent] = {}
"""Agents by implementation, for training on their own and in the inner loop alike; ``registry``
imports those of this package.
"""

AgentClass = TypeVar("AgentClass", bound=type[Agent])


def implements(name: str, config: type[AgentConfig]) -> Callable[[AgentClass], AgentClass]:
    """Puts a class of agents into the table; config: the schema of its values."""

    def register(agent: AgentClass) -> AgentClass:
        AGENTS[name] = RegisteredAgent(config, agent, agent.misfit)
        return agent

    return register


def varied(
    cfg: Any, variation: Variation | None
) -> tuple[Any, tuple[int, ...], tuple[int, ...] | None]:
    """Learning rate, one or one per member, the hidden layers that hold every member, and each
    member's width if they vary.
    """
    if variation is None:
        return cfg.learning_rate, tuple(cfg.hidden), None
    return variation.learning_rates, variation.hidden, variation.widths


def batch_weights(sizes: Sequence[int]) -> Tensor:
    """``[N, max(sizes)]``: 1 / sizes[n] for the first sizes[n] rows of member n's batch, 0 for
    the padding.
    """
    size = torch.tensor(sizes).unsqueeze(1)
    inside = torch.arange(max(sizes)) < size
    return inside / size.float()


def descend(loss: Tensor, adam: MemberAdam, active: Tensor | None) -> None:
    """One step of the active members down their own losses ``[N]``."""
    (adam.params.grad,) = torch.autograd.grad(loss.sum(), adam.params)
    adam.step(active=active)


def frozen(params: Tensor) -> nn.Parameter:
    """A copy of the parameters without gradient, e.g. for a target network."""
    return nn.Parameter(params.detach().clone(), requires_grad=False)


@torch.no_grad()
def track(target: Tensor, params: Tensor, tau: float, active: Tensor | None) -> None:
    """``target <- target + tau (params - target)`` in place for active members; all ``[N, D]``."""
    if active is None:
        target.lerp_(params, tau)
    else:
        target.lerp_(learners_only(params, active), (tau * active.to(target.dtype)).unsqueeze(1))
