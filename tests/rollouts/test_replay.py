"""The store of whole episodes: the best, the newest, what lies behind one another, what is
drawn.
"""

import dataclasses

import numpy as np
import pytest
import torch
from helpers.toys import make_episode

from lightning_rl.envs.spec import env_spec
from lightning_rl.rollouts.episode_buffer import EpisodeBuffer, flatten


def buffer_with(rewards: list[list[float]], capacity: int = 10) -> EpisodeBuffer:
    buffer = EpisodeBuffer(best=capacity)
    buffer.add(make_episode(r) for r in rewards)
    return buffer


def newest(
    *rewards: list[float], steps: int | None = 100, count: int | None = None
) -> EpisodeBuffer:
    buffer = EpisodeBuffer(newest=count, steps=steps)
    buffer.add(make_episode(r) for r in rewards)
    return buffer


def test_equal_returns_are_all_kept_and_the_oldest_of_the_worst_gives_way():
    buffer = buffer_with([[1.0, 0.0], [1.0], [0.5, 0.5, 0.0]], capacity=3)
    assert buffer.highest(3)[0].tolist() == [1.0, 1.0, 1.0]
    assert buffer.highest(3)[1].tolist() == [3, 1, 2]  # youngest first
    buffer.add([make_episode([1.0, 0.0, 0.0, 0.0])])
    assert buffer.highest(3)[1].tolist() == [4, 3, 1]


def test_against_a_plain_sort():
    rng = np.random.default_rng(0)
    returns = rng.integers(0, 30, 200).astype(float)
    buffer = buffer_with([[r] for r in returns], capacity=50)
    assert buffer.highest(50)[0].tolist() == sorted(returns, reverse=True)[:50]


def test_a_buffer_without_episodes_has_a_state_too():
    buffer = newest()
    buffer.load_state_dict(buffer.state_dict(), env_spec("cartpole"))
    assert len(buffer) == 0


def test_flat_by_hand():
    flat = newest([1.0, 2.0], [3.0]).flat()
    assert flat.obs[:, 0].tolist() == [0.0, 1.0, 2.0, 0.0, 1.0]
    assert flat.row.tolist() == [0, 1, 3]
    assert flat.reward.tolist() == [1.0, 2.0, 3.0]
    assert flat.to_go.tolist() == [3.0, 2.0, 0.0, 3.0, 0.0]
    assert flat.left.tolist() == [2, 1, 1]
    assert flat.last.tolist() == [False, True, True]
    assert flat.terminated.tolist() == [False, True, True]
    assert flat.episode_return.tolist() == [3.0, 3.0, 3.0]
    assert flat.first.tolist() == [0, 2]
    assert len(flat) == 3


def test_truncated_episodes_are_last_but_not_terminated():
    flat = flatten(
        [
            dataclasses.replace(make_episode([1.0, 1.0]), terminated=False, truncated=True),
            make_episode([1.0]),
        ]
    )
    assert flat.last.tolist() == [False, True, True]
    assert flat.terminated.tolist() == [False, False, True]


def test_the_oldest_whole_episodes_give_way():
    buffer = newest([1.0] * 4, [2.0] * 3, [3.0] * 3, steps=10)
    assert len(buffer) == 3
    buffer.add([make_episode([4.0])])
    assert buffer.flat().reward.tolist() == [2.0] * 3 + [3.0] * 3 + [4.0]
    buffer.add([make_episode([5.0] * 3)])
    assert buffer.flat().reward.tolist() == [2.0] * 3 + [3.0] * 3 + [4.0] + [5.0] * 3


def test_an_episode_longer_than_the_limit_is_kept_whole():
    assert newest([1.0], [2.0] * 50, steps=10).flat().reward.tolist() == [2.0] * 50


def test_the_newest_are_counted_in_episodes_too():
    assert newest([1.0], [2.0] * 50, [3.0], steps=None, count=2).flat().reward.tolist() == [
        2.0
    ] * 50 + [3.0]
    assert newest([1.0], [2.0] * 50, [3.0], steps=3, count=2).flat().reward.tolist() == [3.0]


def test_mean_length_of_the_newest():
    buffer = newest([1.0] * 9, [1.0] * 2, [1.0] * 4)
    assert buffer.mean_length(2) == 3.0
    assert buffer.mean_length(20) == 5.0
    best = buffer_with([[1.0] * 9, [1.0] * 3])  # of highest return: the nine steps
    assert (best.mean_length(20), best.mean_length(1)) == (6.0, 9.0)


def test_the_highest_of_the_newest_where_no_best_are_kept():
    returns, lengths = newest([1.0], [5.0, 0.0], [3.0]).highest(2)
    assert returns.tolist() == [5.0, 3.0]
    assert lengths.tolist() == [2, 1]


@pytest.mark.parametrize("make", [buffer_with, lambda r: newest(*r)])
def test_draws_by_transition_and_by_episode(make):
    buffer, rng = make([[2.0] * 10, [1.0] * 90]), np.random.default_rng(0)
    reward = buffer.flat().reward.numpy()
    share = {
        by: (reward[buffer.draw(rng, (200, 100), by)] == 2.0).mean()
        for by in ("transition", "episode")
    }
    assert share == {
        "transition": pytest.approx(0.1, abs=0.01),
        "episode": pytest.approx(0.5, abs=0.01),
    }
    for by in share:
        assert sorted(set(buffer.draw(rng, (9000,), by).tolist())) == list(range(100))


def test_the_newest_are_kept_beside_the_best_whatever_their_return():
    """Two best and the three newest; what is both counts twice."""
    buffer = EpisodeBuffer(best=2, newest=3)
    for number, value in enumerate([5.0, 9.0, 1.0, 2.0, 3.0, 0.0]):
        buffer.add([make_episode([value] + [0.0] * number)])
    assert buffer.highest()[0].tolist() == [9.0, 5.0]
    assert buffer.highest()[1].tolist() == [2, 1]
    assert buffer.returns().tolist() == [9.0, 5.0, 2.0, 3.0, 0.0]
    copy = EpisodeBuffer(best=2, newest=3)
    copy.load_state_dict(buffer.state_dict(), env_spec("cartpole"))
    for either in (buffer, copy):
        either.add([make_episode([7.0])])
        assert either.returns().tolist() == [9.0, 7.0, 3.0, 0.0, 7.0]


@pytest.mark.parametrize(
    "limits", [{"best": 12}, {"newest": None, "steps": 40}, {"best": 4, "newest": 5}]
)
def test_state_survives_a_checkpoint(limits, tmp_path):
    rng = np.random.default_rng(1)
    original, other = EpisodeBuffer(**limits), EpisodeBuffer(**limits)
    original.add(make_episode(rng.normal(size=n).tolist()) for n in rng.integers(1, 9, size=30))
    torch.save(original.state_dict(), tmp_path / "state.pt")
    stored = torch.load(tmp_path / "state.pt", weights_only=True)
    other.load_state_dict(stored, env_spec("cartpole"))
    for _ in range(6):
        for name, tensor in vars(original.flat()).items():
            assert np.array_equal(tensor, getattr(other.flat(), name))
        assert torch.equal(
            torch.from_numpy(original.draw(np.random.default_rng(3), (5, 7), "episode")),
            torch.from_numpy(other.draw(np.random.default_rng(3), (5, 7), "episode")),
        )
        for buffer in (original, other):
            buffer.add([make_episode([0.1, 0.2])])
