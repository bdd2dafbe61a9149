"""Functional environments in lock-step, on the chain: ends, time limits and fresh numbers."""

import pytest
import torch
from helpers.chain import Chain, ContinuousChain

from lightning_rl.envs.batch import FuncBatch
from lightning_rl.envs.pooled_batch import PooledBatch

ON, STAY = torch.ones(2, dtype=torch.int64), torch.zeros(2, dtype=torch.int64)


def begin(batch, places):
    """Puts the members where they shall be."""
    batch.state = torch.tensor(places).unsqueeze(1)
    batch.obs = batch.env.observe(batch.state)
    return batch


def test_an_end_at_the_time_limit_is_an_end():
    """Member 0 reaches the end with its last step, member 1 stays and is cut."""
    batch = begin(FuncBatch(Chain(), 2, [0, 1]), [1, 1])
    first, second = batch.step(ON), batch.step(torch.tensor([1, 0]))
    assert not (first.terminated | first.truncated).any()
    assert second.terminated.tolist() == [True, False]
    assert second.truncated.tolist() == [False, True]
    assert second.length.tolist() == [1, 1]


def test_the_time_limit_counts_anew_after_each_reset_and_for_each_member():
    batch = begin(FuncBatch(Chain(), 3, [0, 1]), [0, 0])
    batch.step(STAY)
    batch.reset(torch.tensor([True, False]))
    cut = []
    for _ in range(4):
        step = batch.step(STAY)
        cut.append(step.truncated.tolist())
        batch.reset(step.truncated)
    assert cut == [[False, False], [False, True], [True, False], [False, False]]


def test_actions_are_repeated_until_the_end_and_not_beyond():
    """Member 0 goes on from 1: 0 + 1, the end after two of three repeats. Member 1 from 0: -0.84
    + 0 + 1, the end at the last.
    """
    batch = begin(FuncBatch(Chain(), 9, [0, 1], repeat=3), [1, 0])
    step = batch.step(ON)
    torch.testing.assert_close(step.reward, torch.tensor([1.0, 0.16]))
    assert step.terminated.tolist() == [True, True]
    assert step.length.tolist() == [2, 3]


def test_the_time_limit_counts_every_repeat():
    batch = begin(FuncBatch(Chain(), 4, [0, 1], repeat=3), [0, 0])
    batch.step(STAY)
    step = batch.step(STAY)
    assert step.truncated.tolist() == [True, True]
    assert step.length.tolist() == [1, 1]
    torch.testing.assert_close(step.reward, torch.tensor([0.15, 0.15]))


@pytest.mark.parametrize(
    "make", [lambda: FuncBatch(Chain(), 1, [0, 1]), lambda: PooledBatch(Chain(), [0, 1])]
)
def test_every_episode_of_every_member_starts_afresh(make):
    """40 starts are all three places, for each member in an order of its own."""
    batch, starts = make(), []
    for _ in range(40):
        batch.step(STAY)
        starts.append(batch.reset(torch.tensor([True, True])).argmax(-1))
    one, two = torch.stack(starts, 1).tolist()
    assert set(one) == set(two) == {0, 1, 2}
    assert one != two


def test_every_step_of_every_member_has_chances_of_its_own():
    """From state 1, with probability one half on: 200 steps over two blocks of numbers."""
    batch, gone = FuncBatch(ContinuousChain(), 10**6, [0, 1]), []
    for _ in range(200):
        gone.append(begin(batch, [1, 1]).step(torch.zeros(2, 1)).obs[:, 2])
    one, two = torch.stack(gone, 1)
    assert not torch.equal(one, two)
    assert not torch.equal(one[:72], one[128:])
    assert 70 < one.sum() < 130


@pytest.mark.parametrize(
    "make", [lambda: FuncBatch(Chain(), 9, [0, 1, 2]), lambda: PooledBatch(Chain(), [0, 1, 2])]
)
def test_members_that_stay_begin_anew_as_they_would_have(make):
    batch, whole = make(), make()
    for each, count in ((batch, 3), (whole, 3)):
        each.reset(torch.ones(count, dtype=torch.bool))
    batch.keep(torch.tensor([0, 2]))
    left = batch.reset(torch.ones(2, dtype=torch.bool))
    torch.testing.assert_close(
        left, whole.reset(torch.ones(3, dtype=torch.bool))[[0, 2]], rtol=0, atol=0
    )
