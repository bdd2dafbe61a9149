"""When a training ends: not an episode early, nor late."""

import functools
import itertools

import pytest
import torch
from helpers.members import ddqn_of, table_of

from lightning_rl.agents.judged_training import JudgedTraining, mean_test_return
from lightning_rl.agents.training import MemberTraining, plateaued, solved
from lightning_rl.envs.batch import FuncBatch
from lightning_rl.envs.grids import GRID_WORLDS

ROOM, CUT = GRID_WORLDS["emptyroom22"], 3


def episodes(stop, learning_starts, returns=None, limit=12):
    """How many episodes one member plays. returns: what its episodes are judged by, instead of
    what they paid.
    """
    agent = table_of(4, 4, [0], 0.8, 0.5, 0.0, 0.0, 1.0)
    judged = itertools.chain(returns or (), itertools.repeat(-99.0))

    def score(agent, seeds):
        return torch.tensor([next(judged) for _ in seeds]), torch.zeros(
            len(seeds), dtype=torch.int64
        )

    settings = (agent, FuncBatch(ROOM(), CUT, [0]), limit, 0.8, learning_starts, stop)
    training = (
        MemberTraining(*settings) if returns is None else JudgedTraining(*settings, score=score)
    )
    training.run()
    return int(training.results.episodes), bool(training.results.stopped)


@pytest.mark.parametrize("learning_starts", [0, 1, 3])
def test_the_first_episode_of_learning_is_the_first_that_may_end_the_training(learning_starts):
    def always(returns, count):
        return count >= 0

    assert episodes(always, learning_starts) == (learning_starts + 1, True)


@pytest.mark.parametrize("learning_starts", [0, 1, 3])
def test_every_step_after_the_initialisation_is_learned_from(learning_starts):
    agent = table_of(4, 4, [0, 1], 0.8, 0.5, 0.0, 0.0, 1.0)
    training = MemberTraining(agent, FuncBatch(ROOM(), CUT, [0, 1]), 5, 0.8, learning_starts)
    training.run()
    learned = training.results.env_steps - training.results.lengths[:, :learning_starts].sum(1)
    assert torch.equal(agent.num_updates, learned)


def test_the_budget_of_episodes_is_kept():
    def never(returns, count):
        return count < 0

    assert episodes(never, 0, limit=5) == (5, False)
    assert episodes(None, 2, limit=5) == (5, False)


def test_solved_takes_a_whole_window_and_the_threshold_itself():
    """Mean 5 of the last two: [9, 0, 9, 1] has 4.5, 4.5 and 5 after episodes 2, 3 and 4."""
    rule = functools.partial(solved, window=2, threshold=5.0)
    assert episodes(rule, 0, [9.0, 0.0, 9.0, 1.0, 0.0]) == (4, True)
    assert episodes(rule, 0, [4.0, 5.9, 4.0, 5.9, 4.0], limit=5) == (5, False)
    assert episodes(rule, 0, [6.0, 4.0]) == (2, True)


@pytest.mark.parametrize(("window", "learning_starts", "first"), [(2, 0, 3), (2, 1, 4), (3, 2, 6)])
def test_a_plateau_takes_the_initialisation_a_window_and_one_more(window, learning_starts, first):
    rule = functools.partial(
        plateaued, window=window, tolerance=0.01, learning_starts=learning_starts
    )
    assert episodes(rule, learning_starts, [1.0] * 12) == (first, True)


def test_a_plateau_compares_a_window_with_the_window_before():
    """[1, 2, 3, 4, 3, 4]: 3.5 after 1.5 (133 %), 3.5 after 2.5 (40 %), then 3.5 after 3.5."""
    rule = functools.partial(plateaued, window=2, tolerance=0.3, learning_starts=0)
    assert episodes(rule, 0, [1.0, 2.0, 3.0, 4.0, 3.0, 4.0, 3.0]) == (6, True)


TOGETHER = "lightning_rl.agents.judged_training._TOGETHER"


def judged_agents(kind, together, monkeypatch, steps=None):
    """Five agents on the smallest room, whose test returns end their training; together: see
    _TOGETHER.
    """
    monkeypatch.setattr(TOGETHER, together)
    seeds = [3, 1, 4, 1, 5]
    agent = (
        table_of(4, 4, seeds, 0.8, 0.1, 0.5, 0.5, 0.0) if kind == "table" else ddqn_of(4, 4, seeds)
    )
    rule = functools.partial(solved, window=2, threshold=0.9)
    make_envs = functools.partial(FuncBatch, ROOM(), 6)
    training = JudgedTraining(
        agent, make_envs(seeds), 60, 0.8, 1, rule, score=mean_test_return(make_envs, 1)
    )
    training.run(steps)
    return training


@pytest.mark.parametrize("kind", ["table", "ddqn"])
@pytest.mark.parametrize("steps", [None, 37])
def test_tests_that_wait_for_each_other_end_a_training_where_each_alone_does(
    kind, steps, monkeypatch
):
    """Also where that is noticed episodes later: what was learned in them is gone."""
    at_once = judged_agents(kind, 0, monkeypatch, steps=steps)
    for together in (1, 4, 1000):
        waited = judged_agents(kind, together, monkeypatch, steps=steps)
        for name, value in vars(at_once.results).items():
            torch.testing.assert_close(vars(waited.results)[name], value, msg=name)
        torch.testing.assert_close(
            waited.agent.state_dict(), at_once.agent.state_dict(), rtol=0, atol=1e-5
        )
        assert torch.equal(waited.members, at_once.members)
    assert at_once.results.stopped.any()
    assert steps or at_once.results.stopped.all()
    assert (at_once.results.episodes < 60).all()  # so with 1000 together, whoever stopped went back
    assert (
        at_once.results.episodes[at_once.results.stopped] % 4 > 0
    ).any()  # and with 4 some between two rounds of tests


def test_tests_of_episodes_that_are_taken_back_are_not_counted():
    """The third episode is the last; the fourth, with which it waited, was in vain."""

    def score(agent, seeds):
        return torch.zeros(len(seeds)), torch.full((len(seeds),), 5)

    agent = table_of(4, 4, [0], 0.8, 0.5, 0.0, 0.0, 1.0)
    training = JudgedTraining(
        agent, FuncBatch(ROOM(), CUT, [0]), 9, 0.8, 0, lambda scores, count: count == 3, score=score
    )
    training.run()
    assert training.results.judge_steps.tolist() == [15]
    assert training.results.episodes.tolist() == [3]
    assert training.results.env_steps.tolist() == [int(training.results.lengths.sum())]
    assert agent.num_updates.tolist() == training.results.env_steps.tolist()


def test_waiting_tests_are_few_calls(monkeypatch):
    """Where nothing ends a training: as many tests, in a quarter of the calls."""
    calls = []

    def counted(agent, seeds):
        calls.append(len(seeds))
        return torch.zeros(len(seeds)), torch.ones(len(seeds), dtype=torch.int64)

    agent = table_of(4, 4, [0, 1, 2], 0.8, 0.1, 0.5, 0.5, 0.0)
    training = JudgedTraining(agent, FuncBatch(ROOM(), 6, [0, 1, 2]), 10, 0.8, score=counted)
    training.run()
    assert sum(calls) == 30
    assert training.results.judge_steps.tolist() == [10, 10, 10]
    assert max(calls) >= 12


def pad(*rows):
    width = max(len(row) for row in rows)
    returns = torch.tensor(
        [[*row, *[99.0] * (width - len(row))] for row in rows], dtype=torch.float32
    )
    return returns, torch.tensor([len(row) for row in rows])


def test_plateau_by_hand():
    """Window 2: mean 10.05 after mean 10.0 is a change of 0.5 %."""
    returns, count = pad(
        [0, 0, 10, 10, 10, 10.1], [0, 0, 10, 10, 10, 10.4], [0, 0, -10, -10, -10, -10.1]
    )
    assert plateaued(returns, count, 2, 0.01, 1).tolist() == [True, False, True]


def test_the_window_before_may_be_short_but_not_empty():
    returns = torch.tensor([[4.0, 2, 2, 2, 2]])
    assert not plateaued(returns, torch.tensor([4]), 3, 0.5, 0).item()  # before: [4]
    assert plateaued(returns, torch.tensor([4]), 3, 0.51, 0).item()
    assert not plateaued(returns[:, :3], torch.tensor([3]), 3, 1e9, -1).item()  # before: nothing
