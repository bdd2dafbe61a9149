"""Fresh agents on trained proxies, tested on the real task: the paper's Figures 3 and 7 (arXiv
2202.02790).

On synthetic environments training ends when the agent's return there no longer changes; on reward
networks when one real test episode after each training episode reaches the solved return on
average; on the real task when training returns do.
"""

from __future__ import annotations

from argparse import Namespace
from typing import Any

from lightning_rl.envs.proxies import Proxy
from lightning_rl.envs.reward_network import RewardProxy
from lightning_rl.lab.protocols import agents
from lightning_rl.lab.protocols.agents import AGENT_KEY, AgentKind, Job, jobs_on, train_stacks
from lightning_rl.lab.protocols.models import real_task
from lightning_rl.methods.inner_loop import InnerLoop, Trained

COLUMNS = (
    "gamename",
    *AGENT_KEY,
    "return_mean",
    "train_steps",
    "episodes",
    "num_updates",
    "test_steps",
    "stopped",
    "failed",
    "test_returns",
)
OBTAINED = ("return_mean", "test_returns")


def training(tests: int, steps: int | None) -> agents.LoopFor:
    """How agents train on a proxy: by the published rules (see above), or ``steps`` steps in as
    many episodes as it takes.
    """

    def loop_for(kind: AgentKind, proxy: Proxy) -> InnerLoop:
        if steps is not None:
            return kind.for_steps(steps, proxy, tests)
        learned_reward = isinstance(proxy, RewardProxy) and proxy.form != "native"
        rule = "solved" if proxy.real_dynamics else "plateau"
        longest, solved = kind.config.train_episodes * proxy.spec.horizon, proxy.spec.solved_return
        return kind.loop(
            proxy,
            longest,
            tests,
            stop_rule=rule,
            solved_return=solved,
            judge_episodes=int(learned_reward),
        )

    return loop_for


def rule_text(tests: int, steps: int | None) -> tuple[str, str]:
    """How long agents train and how they are tested, for the column ``protocol``."""
    return "stop rule" if steps is None else f"{steps} steps", f"{tests} tests"


def outcome_values(loop: InnerLoop, trained: Trained) -> list[dict[str, Any]]:
    """The columns of each agent of a stack; returns of those that failed are nan where the
    task's worst one is not known.
    """
    rows = []
    for outcome, tested in zip(loop.outcomes(trained), trained.test_returns.tolist(), strict=True):
        mean = outcome.test_return
        row = {**outcome._asdict(), "return_mean": mean, "stopped": outcome.stopped}
        row["test_returns"] = [mean] * len(tested) if outcome.failed else tested
        rows.append(row)
    return rows


def tested_by(loop_for: agents.LoopFor, purpose: str, run_seed: int) -> agents.Train:
    """What ``write_agents`` trains by: agents of a kind, stack by stack, with
    ``outcome_values``.
    """

    def train(kind: AgentKind, left: list[Job]) -> agents.Stacks:
        for stack, loop, trained in train_stacks(
            kind.by_config(left, run_seed), loop_for, purpose, run_seed
        ):
            yield stack, outcome_values(loop, trained)

    return train


def run(given: Namespace) -> None:
    """Fills OUT.csv and prints a summary."""
    models, gamename = agents.asked_models(given)
    kinds = agents.asked_kinds(given.agents, gamename, "transfer", given, given.steps)
    jobs = jobs_on(models, given.count) + jobs_on([real_task(gamename)], given.real)
    train = tested_by(training(given.tests, given.steps), "transfer", given.seed)
    words = rule_text(given.tests, given.steps)
    agents.write_agents(
        given, COLUMNS, kinds, jobs, words, train, OBTAINED, ("return_mean", "train_steps")
    )
