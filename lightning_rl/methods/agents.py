"""Value-based and actor-critic agents (``agents``) as methods.

One LightningModule for all, one Config each.

An epoch is ``steps_per_epoch`` decisions with the learning that goes with them. The agent is a
stack of members, one per seed; what a member does is a function of its own seed, so one seed of
many is, up to rounding, the run of that seed alone (except that with repeated actions all stop when
the first has spent its budget).
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, cast

from torch import Tensor, nn

from lightning_rl.agents.base import Actors, Agent, RegisteredAgent
from lightning_rl.agents.judged_training import JudgedTraining, mean_test_return
from lightning_rl.agents.registry import AGENTS
from lightning_rl.agents.training import MemberTraining, Results, stop_rule
from lightning_rl.envs.adapters import make_envs
from lightning_rl.envs.spec import EnvSpec
from lightning_rl.methods.base import return_scalars, scores_of
from lightning_rl.methods.registry import register
from lightning_rl.methods.stacked import Scores, StackedMethod, StackedRollouts
from lightning_rl.nets.policies import Actor, Policy


class GreedyActor(Actor):
    """The action of the highest value, of equal ones the first.

    Continuous: the tanh of what the network gives.
    """

    def __init__(self, net: nn.Module, continuous: bool):
        super().__init__()
        self.net, self.continuous = net, continuous

    def act(self, obs: Tensor, command: Tensor | None, noise: Tensor) -> Tensor:
        output = self.net(obs)
        return output.tanh() if self.continuous else output.argmax(-1)


def member_policy(agent: Actors, row: int, spec: EnvSpec) -> Policy | GreedyActor:
    """One member as a plain policy."""
    net = agent.module(row)
    if agent.distribution_class is None:
        return GreedyActor(net, spec.continuous)
    return Policy(net, agent.distribution_class, spec.action_size)


class AgentMethod(StackedMethod):
    """A stack of agents and its training."""

    kind: ClassVar[RegisteredAgent]
    reloadable = True
    agent: Agent
    policies: Any  # each a Policy or a GreedyActor

    @classmethod
    def why_unsupported(cls, spec: EnvSpec) -> str | None:
        return cast(str | None, cls.kind.agent.why_unsupported(spec))

    def build(self) -> Agent:
        self.spec = replace(self.spec, repeat=self.spec.repeat * self.cfg.action_repeat)
        return self.kind.agent(self.cfg, self.spec, self.seeds, None)

    def adopt(self, weights: Mapping[str, Tensor]) -> None:
        """Every seed starts from the policy.

        Critics, optimizers, memory and counters start anew.
        """
        super().adopt(weights)
        self.agent.adopt(self.policies[0].net)
        self.take_policies()

    def rollouts(self, num_workers: int = 0) -> AgentRollouts:
        """The training and the evaluation of the agents; num_workers play the evaluation."""
        return AgentRollouts(self, num_workers)

    def make_policy(self, row: int) -> Actor:
        return member_policy(self.agent, row, self.spec)

    def finished(self) -> bool:
        return super().finished() or cast(Any, self.trainer).datamodule.training.done

    def train_epoch(self, batch: MemberTraining) -> None:
        results = batch.results
        episodes, judge_steps = results.episodes.clone(), results.judge_steps.clone()
        played = batch.env_steps.sum()
        end = batch.step + self.decisions(batch.step, 0)
        while not batch.done and batch.step < end:
            spent = int(batch.env_steps.max())
            decisions = self.decisions(batch.step, spent, self.spec.repeat)
            if decisions == 0:
                break
            batch.run(decisions)  # once, but where an episode ended within a repeated action
        self.counter("env_steps").copy_(batch.env_steps)
        self.counter("num_updates").copy_(self.agent.num_updates)
        self.counter("eval_env_steps").add_((results.judge_steps - judge_steps).to(self.device))
        self.counter("episodes").copy_(results.episodes)
        self.take_policies()
        self.sum_up()
        speed = self.speed_scalars(int(batch.env_steps.sum() - played))
        members = range(len(self.seeds))
        self.log_members([rollout_scalars(results, episodes, n) | speed for n in members])


def rollout_scalars(results: Results, before: Tensor, member: int) -> dict[str, float]:
    """``rollout/...`` over the episodes of a member that have ended in an epoch.

    before ``[N]``: how many there were at its start. None if none ended.
    """
    new = slice(int(before[member]), int(results.episodes[member]))
    returns = results.returns[member, new].tolist()
    if not returns:
        return {}
    return return_scalars("rollout", returns, results.lengths[member, new].tolist())


class AgentRollouts(StackedRollouts):
    """The training of the agents, and the evaluation of their policies."""

    method: AgentMethod

    def __init__(self, method: AgentMethod, num_workers: int):
        super().__init__(method, method.collector(num_workers))
        cfg, spec = method.cfg, method.spec
        solved = spec.solved_return if cfg.solved_return is None else cfg.solved_return
        rule = stop_rule(cfg, cfg.stop_rule, solved)
        envs = make_envs(spec, method.seeds, cfg.simulator)
        if cfg.judge == "test" and rule:
            score = mean_test_return(functools.partial(make_envs, spec), 1)
            self.training: MemberTraining = JudgedTraining.of(
                method.agent, envs, cfg, rule, spec=spec, score=score
            )
        else:
            self.training = MemberTraining.of(method.agent, envs, cfg, rule, spec=spec)

    def evaluate(self) -> list[Scores]:
        """Every member's own policy."""
        scores: list[Scores] = []
        for seed, policy in zip(self.method.seeds, self.method.policies, strict=True):
            played = self.play_policy(seed, policy)
            scores.append({prefix: scores_of(episodes) for prefix, episodes in played.items()})
        return scores

    def close(self) -> None:
        super().close()
        self.training.envs.close()


def agent_method(
    name: str,
    kind: RegisteredAgent | None = None,
    configs: Path | str | Mapping[str, Any] | None = None,
) -> type[AgentMethod]:
    """Registers the method that trains agents on their own.

    kind: which; None: those of this name in the table. configs: see ``register_agent``.
    """
    kind = kind or AGENTS[name]
    doc = (
        f"{name} as a method of its own; see ``Method`` for arguments and errors, and "
        "``StackedMethod`` for ``num_seeds``."
    )
    body = {"kind": kind, "Config": kind.config, "__module__": __name__, "__doc__": doc}
    method = type(name.replace("-", ""), (AgentMethod,), body)
    return register("register_agent", (name,), configs)(method)


METHODS = {name: agent_method(name) for name in AGENTS}

QL, SARSA = METHODS["QL"], METHODS["SARSA"]
DDQN, DuelingDDQN = METHODS["DDQN"], METHODS["DuelingDDQN"]
TD3, TD3Discrete = METHODS["TD3"], METHODS["TD3-discrete"]
PPO = METHODS["PPO"]
