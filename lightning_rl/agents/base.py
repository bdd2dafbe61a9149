"""What every learner shares: the keys of its config, and what is asked of its members."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar, Literal, NamedTuple

from pydantic import NonNegativeFloat, NonNegativeInt, PositiveFloat, PositiveInt
from pydantic.dataclasses import dataclass
from torch import Tensor, nn

from lightning_rl.agents.stack import SeededMembers
from lightning_rl.agents.variation import Variation
from lightning_rl.core.schema import STRICT, HiddenSizes, MethodConfig, Share, Width
from lightning_rl.envs.batch import EnvBatch
from lightning_rl.envs.spec import EnvSpec
from lightning_rl.functional.distributions import Distribution
from lightning_rl.functional.value_learning import epsilon_after
from lightning_rl.nets.members import ActivationName

_STOP_RULES_OF_KEYS = {
    "solved_return": ("solved",),
    "judge": ("solved", "plateau"),
    "early_out_num": ("solved", "plateau"),
    "early_out_virtual_diff": ("plateau",),
}
"""Keys that only some stop rules read, with these rules."""


@dataclass(frozen=True, config=STRICT, kw_only=True)
class AgentConfig(MethodConfig):
    """Keys of all agents; ``configs/agents.yaml`` explains them."""

    steps_per_epoch: PositiveInt
    train_episodes: PositiveInt
    action_repeat: PositiveInt
    simulator: Literal["serial", "processes"]
    kernels: Literal["numba", "torch"]
    gamma: Share
    learning_rate: PositiveFloat
    stop_rule: Literal["none", "solved", "plateau"]
    solved_return: float | None
    judge: Literal["training", "test"]
    early_out_num: PositiveInt
    early_out_virtual_diff: PositiveFloat

    def ignored_keys(self) -> dict[str, str]:
        """Keys of stop rules that are not chosen, and of kinds of curiosity that are off.

        Those of a kind begin with its name, ``icm_..`` or ``count_..``.
        """
        found = {}
        for key, rules in _STOP_RULES_OF_KEYS.items():
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


@dataclass(frozen=True, config=STRICT, kw_only=True)
class EpsilonGreedyConfig(AgentConfig):
    """Keys of agents that explore by epsilon; see ``epsilon_after``."""

    learning_starts: NonNegativeInt
    epsilon_init: Share
    epsilon_min: Share
    epsilon_decay: Share

    def epsilon(self, episode: Tensor) -> Tensor:
        """How often actions are random ``[N]``."""
        return epsilon_after(episode, self.epsilon_init, self.epsilon_min, self.epsilon_decay)


@dataclass(frozen=True, config=STRICT, kw_only=True)
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
    """One step of every member, leading dimensions ``[N]``, or a batch, ``[N, B]``.

    obs ``[..., O]``, action ``[...]`` int64 or ``[..., A]``, reward ``[...]``, discount ``[...]``,
    next_obs ``[..., O]``.
    """

    obs: Tensor
    action: Tensor
    reward: Tensor
    discount: Tensor
    next_obs: Tensor


class Progress(NamedTuple):
    """Where a training of ``N`` members stands.

    step, active: see ``Agent``. gamma: discount factor. episode ``[N]``: see ``Agent.act``. total,
    length ``[N]``: sum of rewards and environment steps of the episode under way.
    """

    step: int
    gamma: float
    active: Tensor | None
    episode: Tensor
    total: Tensor
    length: Tensor


class Actors(SeededMembers, ABC):
    """``N`` policies that can be tested.

    distribution_class: reads the output of ``module``; None: the best action is taken.
    """

    distribution_class: type[Distribution] | None = None

    @abstractmethod
    def greedy(self, obs: Tensor) -> Tensor:
        """Actions for the environment without exploration, for obs ``[N, K, O]``.

        ``[N, K]`` or ``[N, K, A]``.
        """

    @property
    def num_updates(self) -> Tensor:
        """Optimizer steps of each member so far ``[N]`` int64: here of the first optimizer."""
        return self.optimizers()[0].num_steps

    @abstractmethod
    def module(self, row: int) -> nn.Module:
        """One member's actor, or its action values, as a plain network from obs ``[..., O]``."""


class Agent(Actors):
    """``N`` learners trained in lock-step.

    A registered agent is made as ``Agent(config, spec, seeds, variation)`` for the environment of
    ``spec``. All randomness of member ``n`` is a function of ``seeds[n]`` and the step, so the
    other members of a stack change nothing. ``step`` counts the lock-step decisions of a training
    run from 0; ``active`` ``[N]`` bool: the members that learn, None: all.
    """

    actions: ClassVar[Literal["discrete", "continuous", "any"]] = "any"
    cfg: Any

    @classmethod
    def why_unsupported(cls, spec: EnvSpec) -> str | None:
        """Why it cannot play an environment, with the remedy; None where it can."""
        if cls.actions == "discrete" and spec.continuous:
            return "it is for discrete actions; use TD3 or PPO"
        if cls.actions == "continuous" and not spec.continuous:
            return "it is for continuous actions; use TD3-discrete, DDQN or PPO"
        return None

    @abstractmethod
    def act(self, obs: Tensor, episode: Tensor, step: int) -> Tensor:
        """Exploring actions for obs ``[N, O]``, as ``learn`` takes them.

        episode ``[N]``: the number of each member's, from 0.
        """

    @abstractmethod
    def learn(self, transition: Transition, over: Tensor, step: int, active: Tensor | None) -> None:
        """Takes in one transition of every member; active members learn.

        over ``[N]``: the episode ended here.
        """

    def play(self, envs: EnvBatch, progress: Progress, most: float) -> tuple[int, Tensor] | None:
        """Up to ``most`` steps in one go, until an episode ends, with the learning between them.

        How many, and where an episode ended ``[N]`` bool; None where they are to be made one by
        one. Changes ``progress.total`` and ``length`` in place.
        """
        return None

    @abstractmethod
    def adopt(self, net: nn.Module) -> None:
        """Every member starts from the weights of a network like those of ``module``.

        RuntimeError if they do not fit.
        """

    def to_env(self, action: Tensor) -> Tensor:
        """The environment's action for one of ``act``."""
        return action

    def keep(self, members: Tensor) -> None:
        """Goes on with the members ``[M]`` int64 alone."""
        self.load_rows(self.rows(members))
        self.keep_streams(members)

    def keep_streams(self, members: Tensor) -> None:
        """Noise and memory go on with these members alone."""
        for noise in self._noises:
            noise.keep(members)
        memory = self.memory()
        if memory is not None:
            memory.keep(members)


class RegisteredAgent(NamedTuple):
    """config: the schema of its YAML.

    agent: a class of ``Agent``, which is made from (config, spec, seeds, variation).
    """

    config: type[AgentConfig]
    agent: type[Any]


def member_hyperparameters(
    cfg: Any, variation: Variation | None
) -> tuple[Any, tuple[int, ...], tuple[int, ...] | None]:
    """Learning rate, hidden layers of the stack, and the members' widths if they vary.

    The learning rate is one for all, or one for each member; the layers hold every member.
    """
    if variation is None:
        return cfg.learning_rate, tuple(cfg.hidden), None
    return variation.learning_rates, variation.hidden, variation.widths
