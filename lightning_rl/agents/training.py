"""Training members in their environments, in lock-step."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Self, cast

import torch
from torch import Tensor

from lightning_rl.agents.base import Agent, AgentConfig, Progress, Transition
from lightning_rl.core.console import under_way
from lightning_rl.core.contents import check_alike
from lightning_rl.core.errors import UserError
from lightning_rl.core.limits import shown
from lightning_rl.envs.batch import EnvBatch
from lightning_rl.envs.spec import EnvSpec

StopRule = Callable[[Tensor, Tensor], Tensor]
"""(returns ``[N, E]``, how many of them are there yet ``[N]``) -> ``[N]`` bool: the members
whose training ends.
"""


def window_mean(returns: Tensor, start: Tensor, end: Tensor) -> Tensor:
    """Mean of ``returns[n, start[n]:end[n]]``; nan where that is empty."""
    column = torch.arange(returns.shape[1], device=returns.device)
    inside = (column >= start.unsqueeze(1)) & (column < end.unsqueeze(1))
    return torch.where(inside, returns, 0.0).sum(1) / inside.sum(1)


def solved(returns: Tensor, count: Tensor, window: int, threshold: float) -> Tensor:
    """Whether the mean of the last ``window`` returns has reached ``threshold``, ``[N]`` bool.

    returns ``[N, E]`` of a member's episodes so far, of which the first count ``[N]`` are there.
    The whole window must be there; in the code of arXiv 2202.02790, a lucky first episode ends the
    training.
    """
    mean = window_mean(returns, (count - window).clamp(min=0), count)
    return (mean >= threshold) & (count >= window)


def plateaued(
    returns: Tensor, count: Tensor, window: int, tolerance: float, learning_starts: int
) -> Tensor:
    """Whether the mean R of the last ``window`` returns is about the mean R' of those before.

    About: it differs by less than ``tolerance * |R'|``, judged from the episode after
    ``learning_starts + window`` on.

    R' averages fewer values while there are fewer. returns and count as in ``solved``.
    """
    middle = (count - window).clamp(min=0)
    now = window_mean(returns, middle, count)
    before = window_mean(returns, (middle - window).clamp(min=0), middle)
    same = (now - before).abs() / (before.abs() + 1e-9) < tolerance
    return same & (count > learning_starts + window)


def stop_rule(cfg: AgentConfig, name: str, solved_return: float | None) -> StopRule | None:
    """The rule of that name, ``none``, ``plateau`` or ``solved``, as the config has it.

    None where nothing is solved.
    """
    window = cfg.early_out_num
    if name == "plateau":
        return partial(
            plateaued,
            window=window,
            tolerance=cfg.early_out_virtual_diff,
            learning_starts=getattr(cfg, "learning_starts", 0),
        )
    if name == "none" or solved_return is None:
        return None
    return partial(solved, window=window, threshold=solved_return)


@dataclass
class Results:
    """What happened to each of ``N`` members, finished or not.

    returns, lengths ``[N, E]`` of the training episodes (sum of rewards, environment steps), of
    which member n has the first ``episodes[n]``; scores ``[N, E]``: what the stop rule judges;
    env_steps ``[N]``; stopped ``[N]``: by the rule, not by the budget; judge_steps ``[N]``:
    environment steps that the scores took.
    """

    returns: Tensor
    scores: Tensor
    lengths: Tensor
    episodes: Tensor
    env_steps: Tensor
    stopped: Tensor
    judge_steps: Tensor

    @classmethod
    def empty(cls, members: int, episodes: int) -> Results:
        """Of a training that has not begun."""
        curve = torch.zeros(members, episodes)
        count = torch.zeros(members, dtype=torch.int64)
        return cls(
            returns=curve,
            scores=curve.clone(),
            lengths=curve.long(),
            episodes=count,
            env_steps=count.clone(),
            stopped=count.bool(),
            judge_steps=count.clone(),
        )


def check_first_action(agent: Agent, action: Any, spec: EnvSpec, members: int) -> None:
    """UserError where ``agent.act`` of a user's class gave an action that the environment would
    not take, or take for another.
    """
    shape, kind, values = [members], "int64", f", numbers from 0 to {spec.action_size - 1}"
    if spec.continuous:
        shape, kind, values = [members, spec.action_size], "float32", ""
    problem = shown(action)
    if isinstance(action, Tensor):
        action = agent.to_env(action)
        problem = f"{str(action.dtype).removeprefix('torch.')} {list(action.shape)}"
        right_kind = action.is_floating_point() if spec.continuous else action.dtype == torch.int64
        if right_kind and list(action.shape) == shape:
            if spec.continuous or action.is_meta:  # a meta tensor has no numbers
                return
            outside = action[(action < 0) | (action >= spec.action_size)]
            if not len(outside):
                return
            problem = f"action {int(outside[0])}"
    raise UserError(
        f"{type(agent).__name__}.act gave {problem}; it must give a tensor {kind} {shape}{values}"
    )


_OF_EPISODES = ("obs", "_episode", "_return", "_length")
"""Attributes of the episodes under way, ``[N, ...]``."""


class MemberTraining:
    """Trains the members of ``agent`` in ``envs``.

    Until each has played ``max_episodes`` or its stop rule holds.

    Members that are done leave the stack, so that they cost nothing; between two calls of ``run``
    the agent holds all members. Parameters and moments are in the agent's ``state_dict``;
    ``snapshot`` has the rest, the state of the loop.

    Args:
        agent: the members.
        envs: one environment for each.
        max_episodes: of each member.
        gamma: discount factor.
        learning_starts: episodes without learning (and of uniform actions, for agents that start
            so).
        stop: ends a member's training, judged by its training returns.
        spec: of the environment, by which the first action is checked; None: it is not.
    """

    def __init__(
        self,
        agent: Agent,
        envs: EnvBatch,
        max_episodes: int,
        gamma: float,
        learning_starts: int = 0,
        stop: StopRule | None = None,
        spec: EnvSpec | None = None,
    ):
        self.agent = agent
        self.spec = spec
        self.stop = stop
        self.max_episodes = max_episodes
        self.learning_starts = learning_starts
        self.gamma = gamma
        n = agent.num_members
        self.step = 0
        self.members = torch.arange(n)  # who is left
        # The rows of all, while the agent has those that are left.
        self._everyone: dict[str, Tensor] | None = None
        self.results = Results.empty(n, max_episodes)
        self.envs = envs.to(agent.device)
        self.obs = self.envs.reset(torch.zeros(n, dtype=torch.bool, device=agent.device))
        self._episode = torch.zeros(n, dtype=torch.int64, device=agent.device)
        self._return = torch.zeros(n, device=agent.device)
        self._length = torch.zeros_like(self._episode)
        self._active = self._learners()

    @classmethod
    def of(
        cls,
        agent: Agent,
        envs: EnvBatch,
        cfg: AgentConfig,
        stop: StopRule | None,
        **options: Any,
    ) -> Self:
        """Training as the agent's config asks for it."""
        learning_starts = getattr(cfg, "learning_starts", 0)
        return cls(agent, envs, cfg.train_episodes, cfg.gamma, learning_starts, stop, **options)

    def to(self, device: torch.device) -> MemberTraining:
        """Goes on where the agent has been moved.

        Lightning asks for it at each epoch, as for any batch.
        """
        if device != self.obs.device:
            self.envs = self.envs.to(device)
            for name in _OF_EPISODES:
                setattr(self, name, getattr(self, name).to(device))
            self._active = None if self._active is None else self._active.to(device)
        return self

    @property
    def done(self) -> bool:
        return len(self.members) == 0

    @property
    def env_steps(self) -> Tensor:
        """Environment steps of each member so far ``[N]``, with those of the episode under way."""
        total = self.results.env_steps.clone()
        total[self.members] += self._length.cpu()
        return total

    def snapshot(self) -> dict[str, Any]:
        """The state of the loop: plain data and tensors, the members' rows in order."""
        memory = self.agent.memory()
        return {
            "step": self.step,
            "members": self.members,
            "results": vars(self.results).copy(),
            "loop": {name: getattr(self, name) for name in _OF_EPISODES},
            "envs": {} if self.done else self.envs.snapshot(),
            "memory": {} if self.done or memory is None else memory.snapshot(),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Goes on from a snapshot, with the environments as they were at the start.

        The agent's own state is restored apart.
        """
        self._check(state)
        device = self.agent.device
        self.step = state["step"]
        self.members = state["members"]
        self.results = Results(**state["results"])
        for name, value in state["loop"].items():
            setattr(self, name, value.to(device))
        self._active = self._learners()
        if self.done:
            return
        if len(self.members) < len(self.results.episodes):
            self.agent.keep_streams(self.members.to(device))
            self.envs.keep(self.members.to(device))
        self.envs.restore(state["envs"])
        if not torch.equal(self.obs, self.envs.obs):
            raise ValueError("the environments are not where they were: their observations differ")
        memory = self.agent.memory()
        if memory is not None:
            memory.restore(state["memory"])

    def _check(self, state: dict[str, Any]) -> None:
        """ValueError for counters of a snapshot that would lead out of the tables of results."""
        check_alike(state["results"], vars(self.results), "results")
        members, episodes = state["members"], state["results"]["episodes"]
        if (members < 0).any() or (members.diff() <= 0).any():
            raise ValueError("members that are not in order")
        begun = state["loop"]["_episode"]
        if not torch.equal(episodes[members], begun) or (begun >= self.max_episodes).any():
            raise ValueError(
                f"episodes {begun.tolist()} under way, expected {episodes[members].tolist()}"
            )
        if (episodes < 0).any() or (episodes > self.max_episodes).any():
            raise ValueError(f"{episodes.tolist()} episodes of {self.max_episodes}")
        for name in _OF_EPISODES:
            if len(state["loop"][name]) != len(members):
                raise ValueError(f"{name}: expected one for each of {len(members)} members")

    def run(self, steps: int | None = None) -> None:
        """Goes on for ``steps`` decisions of every member, or until all are done."""
        count = len(self.results.episodes)
        last = None if steps is None else self.step + steps
        if not self.done and len(self.members) < count:
            self._everyone = self.agent.rows()
            self.agent.load_rows(self.agent.rows(self.members))
        while not self.done and self.step != last:
            self._advance(math.inf if last is None else last - self.step)
            of_steps = 1 - (last - self.step) / steps if steps and last else 0.0
            under_way(1 - len(self.members) / count, of_steps)
        self._settle()
        if self._everyone is not None:
            if not self.done:
                self._store()
            self.agent.load_rows(self._everyone)
            self._everyone = None

    def train_until(self, env_steps: int, repeat: int) -> None:
        """Trains each member until it is done or has taken ``env_steps``.

        A decision takes at most ``repeat`` of them.
        """
        while not self.done:
            most = int(self.env_steps[self.members].max())
            self.run(math.ceil((env_steps - most) / repeat))
            spent = self.env_steps[self.members] >= env_steps  # in the middle of their episodes
            self.results.env_steps[self.members[spent]] += self._length.cpu()[spent]
            rows = self._without(spent)
            self._active = self._learners()
            if not self.done:
                self.agent.keep_streams(rows)

    def _advance(self, most: float) -> None:
        """Plays and learns for up to ``most`` steps, at least one, until an episode ends."""
        progress = Progress(
            self.step, self.gamma, self._active, self._episode, self._return, self._length
        )
        played = self.agent.play(self.envs, progress, most)
        if played is None:
            played = 1, self._step()
        steps, over = played
        self.step += steps
        self.obs = self.envs.obs
        if over.any():
            self.obs = self.envs.reset(over)
            self._episodes_end(over)

    def _step(self) -> Tensor:
        """One step; where an episode ended ``[N]``."""
        agent = self.agent
        action = agent.act(self.obs, self._episode, self.step)
        if self.step == 0 and self.spec is not None:
            check_first_action(agent, action, self.spec, len(self.members))
        step = self.envs.step(agent.to_env(action))
        over = step.terminated | step.truncated
        discount = step.discount(self.gamma)
        if self.envs.cap_ends:
            discount = discount.masked_fill(step.truncated, 0)
        transition = Transition(self.obs, action, step.reward, discount, step.obs)
        agent.learn(transition, over, self.step, self._active)
        self._return += step.reward
        self._length += step.length
        return over

    def _learners(self) -> Tensor | None:
        """Who learns in the episode under way ``[N]``; None: all."""
        active = self._episode >= self.learning_starts
        return None if bool(active.all()) else active

    def _episodes_end(self, over: Tensor) -> None:
        results = self.results
        members = self.members[over.cpu()]
        episode = self._episode[over].cpu()
        length = self._length[over].cpu()
        results.returns[members, episode] = self._return[over].cpu()
        results.lengths[members, episode] = length
        results.env_steps[members] += length
        self._episode += over
        results.episodes[self.members] = self._episode.cpu()
        self._return.masked_fill_(over, 0)
        self._length.masked_fill_(over, 0)
        self._judge(over, members, episode)
        self._members_end()

    def _judge(self, over: Tensor, members: Tensor, episode: Tensor) -> None:
        """Scores an episode of each of these members, and says whose training ends.

        episode ``[M]``: the number of the one that they have just ended.
        """
        results = self.results
        results.scores[members, episode] = results.returns[members, episode]
        if self.stop is not None:
            results.stopped[members] = self._holds(members, episode, self.stop)

    def _settle(self) -> None:
        """Called at the end of ``run``: judges what still waits to be judged.

        Here nothing does.
        """

    def _holds(self, members: Tensor, episode: Tensor, stop: StopRule) -> Tensor:
        """``[M]`` bool: which of these members' training ends after their ``episode`` ``[M]``."""
        return stop(self.results.scores[members], episode + 1) & (episode >= self.learning_starts)

    def _members_end(self) -> None:
        """Goes on without those whose rule held, or who have played all episodes."""
        played_all = self.results.episodes[self.members] >= self.max_episodes
        finished = self.results.stopped[self.members] | played_all
        if finished.any():
            if self._everyone is None:
                rows = self.agent.rows()
                self._everyone = {name: value.clone() for name, value in rows.items()}
            self._store()
            left = self._without(finished)
            if not self.done:
                self.agent.keep(left)
        self._active = self._learners()

    def _store(self) -> None:
        """Writes the rows of the members that are left among those of all."""
        everyone = cast(dict[str, Tensor], self._everyone)
        for name, value in self.agent.rows().items():
            everyone[name][self.members.to(value.device)] = value

    def _without(self, gone: Tensor) -> Tensor:
        """Takes members ``gone`` ``[N]`` out of loop and environments.

        The rows of those that stay, where the agent is.
        """
        rows = (~gone).nonzero().squeeze(1)
        self.members = self.members[rows]
        there = rows.to(self.obs.device)
        for name in _OF_EPISODES:
            setattr(self, name, getattr(self, name)[there])
        if not self.done:
            self.envs.keep(there)
        return there
