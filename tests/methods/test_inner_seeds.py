"""Inner agents, their proxies and their tests draw numbers of their own; what an outcome is made
of.
"""

import dataclasses
import itertools

import numpy as np
import pytest
import torch
from helpers.members import table_of
from helpers.proxies import synthetic_proxy
from helpers.strategies import strategy_config

from lightning_rl.agents.judged_training import JudgedTraining, mean_test_return
from lightning_rl.agents.registry import AGENTS
from lightning_rl.agents.training import stop_rule
from lightning_rl.core.config import build_config, merged_values
from lightning_rl.envs.batch import FuncBatch
from lightning_rl.envs.grids import GRID_WORLDS
from lightning_rl.envs.proxies import SyntheticProxy
from lightning_rl.evolution.variants import OpenAIES
from lightning_rl.methods import inner_loop
from lightning_rl.methods.inner_loop import InnerLoop

SEARCH = strategy_config(
    strategy="openai",
    population=3,
    mirrored=True,
    score_transform="nes_unnormalised",
    num_grad_evals=2,
)


def strategy(run_seed=3, **changes):
    return OpenAIES(
        torch.zeros(4), torch.ones(4) > 0, dataclasses.replace(SEARCH, **changes), run_seed
    )


def test_every_agent_of_every_generation_has_a_seed_of_its_own():
    """Two on the mean and 3 members x 2 signs x 2 agents, in three generations of two runs."""
    seeds = []
    for run_seed, generation in itertools.product((3, 4), range(3)):
        proposal, items = strategy(run_seed).ask(generation)
        assert len(items) == 2 + 3 * 2 * 2
        seeds += [proposal.seed(item) for item in items]
    assert len(set(seeds)) == len(seeds) == 6 * 14


def test_shared_agents_are_shared_by_the_candidates_of_a_generation_alone():
    runs = [strategy(shared_agents=True).ask(generation) for generation in range(2)]
    seeds = [[proposal.seed(item) for item in items] for proposal, items in runs]
    for row in seeds:
        assert len(set(row)) == 2 + 2  # the mean's, and two for all candidates
        assert row[2::2] == [row[2]] * 6
        assert row[3::2] == [row[3]] * 6
    assert not set(seeds[0]) & set(seeds[1])


SMALL = {
    "train_episodes": 1,
    "batch_size": 4,
    "hidden": [4],
    "learning_starts": 1,
    "replay_size": 20,
}
CONFIG = build_config(
    AGENTS["DDQN"].config, [*merged_values("DDQN", "cartpole-v0"), ("test", SMALL)]
)
PROXY = synthetic_proxy(hidden=(4,), horizon=5)
LOOP = InnerLoop(
    proxy=PROXY,
    agents=(("DDQN", CONFIG),),
    solved_return=195.0,
    test_episodes=3,
    judge_episodes=1,
    max_train_steps=10,
)


def test_the_inner_loop_trains_each_item_with_its_seed(monkeypatch):
    proposal, items = strategy(num_grad_evals=1).ask(5)
    monkeypatch.setattr(InnerLoop, "evaluate", lambda self, *given: given)
    params, seeds, turns = LOOP(proposal, items)
    assert seeds == [proposal.seed(item) for item in items]
    assert turns == [item.turn for item in items]
    torch.testing.assert_close(params, proposal.rows(items))


def test_start_states_of_proxies_and_tests_all_differ(monkeypatch):
    """Two agents, three test episodes each: nobody starts where another does, nor a test where a
    training did.
    """
    made, starts = inner_loop.make_envs, []

    def make_envs(spec, seeds):
        envs = made(spec, seeds)
        starts.extend(envs.obs)
        return envs

    batch = SyntheticProxy.batch

    def proxies(self, params, seeds, gamma, repeat=1):
        envs = batch(self, params, seeds, gamma, repeat)
        starts.extend(envs.obs)
        return envs

    monkeypatch.setattr(inner_loop, "make_envs", make_envs)
    monkeypatch.setattr(SyntheticProxy, "batch", proxies)
    params = PROXY.net.init([torch.Generator().manual_seed(n) for n in range(2)])
    PROXY.net.split(params)["done"].zero_()
    LOOP.train(0, params, [7, 8])
    assert len(starts) == 2 + 2 * 3
    assert len({tuple(start.tolist()) for start in starts}) == len(starts)


def test_judges_meet_other_episodes_every_time():
    """Two members, three training episodes, two test episodes after each: twelve seeds."""
    seen = []

    def make_envs(seeds):
        seen.extend(seeds)
        return FuncBatch(GRID_WORLDS["emptyroom22"](), 3, seeds)

    agent = table_of(4, 4, [0, 1], 0.8, 0.5, 0.5, 0.5, 1.0)
    JudgedTraining(
        agent,
        FuncBatch(GRID_WORLDS["emptyroom22"](), 3, [0, 1]),
        3,
        0.8,
        score=mean_test_return(make_envs, 2),
    ).run()
    assert len(set(seen)) == len(seen) == 2 * 3 * 2


@pytest.mark.parametrize("varied", [False, True])
def test_inner_agents_begin_with_weights_of_their_own(varied):
    loop = dataclasses.replace(LOOP, vary=varied, max_train_steps=1)
    params = PROXY.net.init([torch.Generator().manual_seed(0)]).expand(2, -1)
    agent = loop.train(
        0, params, [5, 6]
    ).agent  # varied ones have different widths, and the one depth that a stack has
    assert not np.array_equal(*(agent.module(n)(torch.ones(4)).detach().numpy() for n in range(2)))


def test_a_score_is_the_mean_of_the_test_episodes():
    trained = LOOP.train(0, torch.zeros(2, PROXY.net.size), [7, 8])
    outcomes = LOOP.outcomes(
        trained._replace(test_returns=torch.tensor([[1.0, 2.0, 9.0], [3.0, 3.0, 6.0]]))
    )
    assert [(outcome.fitness, outcome.test_return) for outcome in outcomes] == [
        (4.0, 4.0),
        (4.0, 4.0),
    ]


def test_solved_means_the_solved_return():
    loop = dataclasses.replace(LOOP, stop_rule="solved")
    rule = stop_rule(
        dataclasses.replace(CONFIG, early_out_num=2), loop.stop_rule, loop.solved_return
    )
    assert rule(torch.tensor([[190.0, 199.0], [190.0, 200.0]]), torch.tensor([2, 2])).tolist() == [
        False,
        True,
    ]
    assert stop_rule(CONFIG, "solved", None) is None
