"""The inner loop of bi-level learning: fresh agents train on a proxy each, then are tested on the
real task.

All agents of one kind are one stack, which is where the parameters of their proxies are. An agent's
outcome is a function of its proxy and its seed: the other agents of the stack and the place where
it is trained change nothing, up to rounding.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, NamedTuple, cast

import torch
from torch import Tensor

from lightning_rl.agents.base import Actors
from lightning_rl.agents.judged_training import JudgedTraining, mean_test_return
from lightning_rl.agents.registry import AGENTS
from lightning_rl.agents.testing import evaluate_agents
from lightning_rl.agents.training import MemberTraining, Results, stop_rule
from lightning_rl.agents.variation import check_variable, vary_agents
from lightning_rl.core.config import build_config, merged_values
from lightning_rl.core.errors import UnknownNameError, UserError
from lightning_rl.core.limits import unknown
from lightning_rl.core.modules import NAME_MODULE
from lightning_rl.core.schema import ImageConfig
from lightning_rl.core.seeding import derive_seed
from lightning_rl.envs.adapters import make_envs
from lightning_rl.envs.batch import EnvBatch
from lightning_rl.envs.proxies import Proxy
from lightning_rl.envs.spec import EnvSpec, env_spec
from lightning_rl.envs.wrapped_batch import FiniteActions
from lightning_rl.evolution.strategies import Item, Proposal


class Outcome(NamedTuple):
    """The result of training and testing one agent, as plain numbers.

    Attributes:
        fitness: what evolution maximises, by the loop's ``objective``.
        test_return: mean return of the test episodes on the real task.
        train_steps: environment steps on the proxy.
        test_steps: environment steps on the real task, those of ``judge_episodes`` included.
        stopped: whether the stop rule ended the training.
        failed: whether a parameter or a return was not finite. It then has the task's lowest
            return, or nan if none is known.
    """

    fitness: float
    test_return: float
    train_steps: int
    test_steps: int
    episodes: int
    num_updates: int
    stopped: bool
    failed: bool


class Trained(NamedTuple):
    """An agent of ``N`` members after training, the record of its training, and its tests on the
    real task.

    test_returns ``[N, K]``, nan of members that failed; test_steps ``[N]``: environment steps, with
    ``judge_episodes``.
    """

    agent: Actors
    results: Results
    test_returns: Tensor
    test_steps: Tensor


OBJECTIVES = ("final_return", "steps_to_threshold", "auc")
"""What evolution may maximise; see ``InnerLoop.fitness``."""


def agent_configs(
    asked: str | Sequence[str] | Mapping[str, Mapping[str, Any] | None] | None,
    gamename: str,
    preset: str | None = None,
) -> tuple[tuple[str, Any], ...]:
    """(implementation, config) of the inner agents: their own YAML for the gamename, with the
    settings that are asked for.

    asked: a name, several, or names with settings; None: DDQN, or TD3 for continuous actions. Of
    several, those that fit the actions are taken. preset: of their YAMLs. UserError for an unknown
    one, and where none fits.
    """
    spec = env_spec(gamename)
    if asked is None:
        asked = "TD3" if spec.continuous else "DDQN"
    names = [asked] if isinstance(asked, str) else list(asked)
    settings = asked if isinstance(asked, Mapping) else {}
    if not names:
        raise UserError("key 'agent' is empty; name one or more agents, e.g. agent=DDQN")
    for name in names:
        if name not in AGENTS:
            raise UnknownNameError(
                f"{unknown('agent', name, AGENTS)}; for an agent of yours, {NAME_MODULE}"
            )
    fitting = [name for name in names if AGENTS[name].agent.why_unsupported(spec) is None]
    if not fitting:
        reason = AGENTS[names[0]].agent.why_unsupported(spec)
        raise UserError(f"agent {names[0]} does not fit gamename '{gamename}': {reason}")
    found = []
    for name in fitting:
        own = (f"key 'agent', {name}", settings.get(name) or {})
        layers = [*merged_values(name, gamename, preset), own]
        found.append((name, build_config(AGENTS[name].config, layers)))
    return tuple(found)


OWN_RUN = (
    "stop_rule",
    "solved_return",
    "judge",
    "steps_per_epoch",
    "simulator",
    *(field.name for field in fields(ImageConfig)),
)
"""Keys that an agent reads in a run of its own alone: on proxies the inner loop has its own."""


def ignored_keys_of_agents(asked: str | Sequence[str] | Mapping[str, Any] | None) -> dict[str, str]:
    """The keys ``agent.NAME.KEY`` that no agent asked for reads on a proxy, each with the reason
    and the remedy.
    """
    chosen = [asked] if isinstance(asked, str) else list(asked or AGENTS)
    found: dict[str, str] = {}
    for name, agent in AGENTS.items():
        if name in chosen:
            keys: Sequence[str] = OWN_RUN
            reason = "agents read it in runs of their own alone; leave it out"
        else:
            keys = [field.name for field in fields(agent.config)]
            reason = (
                f"agent {name} is none of this search's ({', '.join(chosen)}); leave it out, or "
                f"choose agent={name}"
            )
        found |= {f"agent.{name}.{key}": reason for key in keys}
    return found


@dataclass(frozen=True, kw_only=True)
class InnerLoop:
    """Trains and tests agents on proxies. Plain data, so that it can travel to where a population
    is evaluated.

    Attributes:
        proxy: the kind of proxy; its parameters come with each call.
        agents: (implementation, its config), which take turns.
        vary: whether each agent draws hyper-parameters around its config's.
        stop_rule: what ends a training: ``plateau``: returns no longer change; ``solved``: on
            average the real test episodes after each training episode reach solved_return;
            ``none``. A plateau is judged by the returns on the proxy; where only the reward is
            learned, whose returns say nothing, by those tests.
        objective, unsolved_penalty: a name of ``OBJECTIVES``, see ``fitness``.
        test_episodes: real ones after the training.
        judge_episodes: real ones after each training episode, where the stop rule is ``solved`` or
            the reward alone is learned; 0: none, and the stop rule judges the returns on the proxy.
        max_train_steps: environment steps; an agent that takes longer is tested as it is then.
    """

    proxy: Proxy
    agents: tuple[tuple[str, Any], ...]
    test_episodes: int
    max_train_steps: int
    vary: bool = False
    stop_rule: str = "none"
    objective: str = "final_return"
    solved_return: float | None = None
    unsolved_penalty: float = 0.0
    judge_episodes: int = 0

    def __post_init__(self) -> None:
        if self.vary:
            for _, cfg in self.agents:
                check_variable(cfg)

    def __call__(
        self, proposal: Proposal, items: Sequence[Item], device: str = "cpu"
    ) -> list[Outcome]:
        """The outcome of every item of a generation, whose agents train on ``device``."""
        seeds = [proposal.seed(item) for item in items]
        turns = [item.turn for item in items]
        return self.evaluate(proposal.rows(items).to(device), seeds, turns)

    def evaluate(self, params: Tensor, seeds: Sequence[int], turns: Sequence[int]) -> list[Outcome]:
        """Outcomes of fresh agents on the proxies ``params`` ``[P, D]``."""
        outcomes: dict[int, Outcome] = {}
        for number in range(len(self.agents)):
            kind = [row for row, turn in enumerate(turns) if turn % len(self.agents) == number]
            for rows in self.stacks(number, kind, seeds, params.device.type):
                trained = self.train(number, params[rows], [seeds[row] for row in rows])
                outcomes |= dict(zip(rows, self.outcomes(trained), strict=True))
        return [outcomes[row] for row in range(len(seeds))]

    def stacks(
        self, number: int, rows: list[int], seeds: Sequence[int], device: str = "cpu"
    ) -> list[list[int]]:
        """Which agents of kind ``number`` train in one stack: all; varied ones with others of
        their depth and of similar size.
        """
        _, cfg = self.agents[number]
        if not rows:
            return []
        if not self.vary:
            return [rows]
        variation = vary_agents(cfg, [seeds[row] for row in rows])
        # a layer that is averaged over has no room for padding
        one_width = getattr(cfg, "layer_norm", False)
        ends = self.proxy.spec.obs_size + self.proxy.spec.action_size
        groups = variation.stacks(ends, getattr(cfg, "epochs", None), one_width, device)
        return [[rows[place] for place in group] for group in groups]

    def train(self, number: int, params: Tensor, seeds: Sequence[int]) -> Trained:
        """Trains and tests agents of kind ``number``, one for each proxy ``[N, D]`` and seed."""
        return self.tested(*self.learn(number, params, seeds), self.task(number), seeds)

    def tested(
        self, agent: Actors, results: Results, spec: EnvSpec, seeds: Sequence[int]
    ) -> Trained:
        """With ``test_episodes`` real episodes of each member that has not failed."""
        sound = (~_not_finite(agent, results)).nonzero().squeeze(1)
        returns = torch.full((len(seeds), self.test_episodes), math.nan)
        steps = results.judge_steps.clone()
        if len(sound):
            tested = [seeds[row] for row in sound.tolist()]
            with agent.holding(agent.rows(sound)):
                count = self.test_episodes
                episodes = [derive_seed(seed, "test", k) for seed in tested for k in range(count)]
                found, lengths = evaluate_agents(agent, task_envs(spec, episodes), count)
                returns[sound] = found.cpu()
                steps[sound] += lengths.sum(1).cpu()
        return Trained(agent, results, returns, steps)

    def task(self, number: int) -> EnvSpec:
        """The real task as agents of kind ``number`` play it."""
        _, cfg = self.agents[number]
        return dataclasses.replace(self.proxy.spec, repeat=cfg.action_repeat)

    def fresh(self, number: int, seeds: Sequence[int]) -> Actors:
        """Agents of kind ``number`` that have learned nothing."""
        name, cfg = self.agents[number]
        variation = vary_agents(cfg, seeds) if self.vary else None
        return cast(Actors, AGENTS[name].agent(cfg, self.task(number), seeds, variation))

    def learn(self, number: int, params: Tensor, seeds: Sequence[int]) -> tuple[Actors, Results]:
        """Agents of kind ``number`` that have learned on the proxies, and what happened to them
        there.
        """
        training = self.training(number, params, seeds)
        training.train_until(self.max_train_steps, self.agents[number][1].action_repeat)
        return training.agent, training.results

    def training(self, number: int, params: Tensor, seeds: Sequence[int]) -> MemberTraining:
        """Fresh agents of kind ``number`` about to learn on the proxies."""
        (_, cfg), spec, proxy = self.agents[number], self.task(number), self.proxy
        agent: Any = self.fresh(number, seeds).to(params.device)
        env_seeds = [derive_seed(seed, "proxy") for seed in seeds]
        envs = proxy.batch(params.cpu(), env_seeds, cfg.gamma, cfg.action_repeat)
        if proxy.real_dynamics and spec.continuous:
            envs = FiniteActions(envs)
        rule = stop_rule(cfg, self.stop_rule, self.solved_return)
        if self.judge_episodes and (proxy.real_dynamics or self.stop_rule == "solved"):
            score = mean_test_return(functools.partial(task_envs, spec), self.judge_episodes)
            return JudgedTraining.of(agent, envs, cfg, rule, spec=spec, score=score)
        return MemberTraining.of(agent, envs, cfg, rule, spec=spec)

    def outcomes(self, trained: Trained) -> list[Outcome]:
        """The outcome of each member."""
        results, worst = trained.results, self.proxy.spec.min_return
        tested, steps = trained.test_returns.double().mean(1), results.env_steps.double()
        scores, lengths = results.scores.double(), results.lengths.double()
        failed = ~trained.test_returns.isfinite().all(1)
        longest = self.max_train_steps
        worst = math.nan if worst is None else worst
        tested = tested.masked_fill(failed, worst)
        steps = steps.masked_fill(failed, longest)
        scores = torch.where(failed[:, None], tested[:, None], scores)
        smallest_area = longest / lengths.shape[1] if worst < 0 else 1.0
        lengths = torch.where(failed[:, None], smallest_area, lengths)
        columns = (
            self.fitness(tested, steps, scores, lengths),
            tested,
            results.env_steps,
            trained.test_steps,
            results.episodes,
            trained.agent.num_updates,
            results.stopped,
            failed,
        )
        return [Outcome(*row) for row in zip(*(column.tolist() for column in columns), strict=True)]

    def fitness(self, tested: Tensor, steps: Tensor, scores: Tensor, lengths: Tensor) -> Tensor:
        """What evolution maximises ``[N]``, by the ``objective``.

        ``final_return``: the mean return of the real test episodes. ``steps_to_threshold``: fewer
        training steps are better, and every unit of return missing to the solved return costs
        ``unsolved_penalty``; the final return where no return counts as solved. ``auc``: real test
        return after each training episode, times the length of that episode.

        Args:
            tested, steps: test returns and training steps ``[N]``, in double precision.
            scores, lengths: test return after each training episode and its length ``[N, E]``.
        """
        if self.objective == "auc":
            return (scores * lengths).sum(1)
        if self.objective == "final_return" or self.solved_return is None:
            return tested
        missing = (self.solved_return - tested).clamp(min=0)
        return -steps - self.unsolved_penalty * missing


def task_envs(spec: EnvSpec, seeds: Sequence[int]) -> EnvBatch:
    """The real task for agents that may have diverged; discrete actions are never nan."""
    envs = make_envs(spec, seeds)
    return FiniteActions(envs) if spec.continuous else envs


def outcome_scalars(outcomes: Sequence[Outcome]) -> dict[str, float]:
    """``agent/...`` over all agents of a generation."""

    def mean(name: str) -> float:
        return sum(getattr(outcome, name) for outcome in outcomes) / len(outcomes)

    return {
        "agent/return_mean": mean("test_return"),
        "agent/return_max": max(outcome.test_return for outcome in outcomes),
        "agent/train_steps": mean("train_steps"),
        "agent/episodes": mean("episodes"),
        "agent/stopped_share": mean("stopped"),
        "agent/failed": float(sum(outcome.failed for outcome in outcomes)),
    }


def _not_finite(agent: Actors, results: Results) -> Tensor:
    """Members ``[N]`` whose parameters or training returns are not finite."""
    failed = torch.zeros(len(results.episodes), dtype=torch.bool)
    for value in (results.returns, *agent.state_dict().values()):
        failed |= ~value.unsqueeze(-1).flatten(1).isfinite().all(1).cpu()
    return failed
