import numpy as np
import pytest
from helpers import make_episode

from lightning_rl.envs.spec import EnvSpec
from lightning_rl.rollouts.episode_buffer import SortedEpisodeBuffer

SPEC = EnvSpec("toy", "Toy-v0", 4, 2, False, 20, 100.0, None)


def buffer_with(rewards: list[list[float]], capacity: int = 10) -> SortedEpisodeBuffer:
    buffer = SortedEpisodeBuffer(capacity, SPEC)
    buffer.add(make_episode(r) for r in rewards)
    return buffer


def test_keeps_the_best_sorted():
    buffer = buffer_with([[1.0], [5.0], [3.0, 1.0], [0.0], [2.0]], capacity=3)
    assert buffer.best(10)[0].tolist() == [5.0, 4.0, 2.0]
    assert buffer.best(2)[1].tolist() == [1, 2]
    buffer.add([make_episode([-7.0])])
    assert buffer.best(10)[0].tolist() == [5.0, 4.0, 2.0]


def test_equal_returns_are_all_kept_and_the_oldest_of_the_worst_gives_way():
    buffer = buffer_with([[1.0, 0.0], [1.0], [0.5, 0.5, 0.0]], capacity=3)
    assert buffer.best(3)[0].tolist() == [1.0, 1.0, 1.0]
    assert buffer.best(3)[1].tolist() == [3, 1, 2]  # youngest first
    buffer.add([make_episode([1.0, 0.0, 0.0, 0.0])])
    assert buffer.best(3)[1].tolist() == [4, 3, 1]


def test_against_a_plain_sort():
    rng = np.random.default_rng(0)
    returns = rng.integers(0, 30, 200).astype(float)
    buffer = buffer_with([[r] for r in returns], capacity=50)
    assert buffer.best(50)[0].tolist() == sorted(returns, reverse=True)[:50]


def test_gather_by_hand():
    buffer = buffer_with([[1.0, 2.0, 4.0], [10.0, 20.0]])
    best = buffer._order[0]
    assert buffer.best(1)[0] == [30.0]
    other = buffer._order[1]
    slot, start, end = np.array([[other, other, best]]), np.array([[0, 1, 1]]), np.array([[3, 2, 2]])
    obs, action, achieved, steps = buffer.gather(slot, start, end)
    assert obs.shape == (1, 3, 4)
    assert obs[0, :, 0].tolist() == [0.0, 1.0, 1.0]
    assert action.tolist() == [[0, 1, 1]]
    assert achieved.tolist() == [[7.0, 2.0, 20.0]]
    assert steps.tolist() == [[3, 1, 1]]


def test_sampling_by_episode_and_by_transition():
    buffer = buffer_with([[1.0], [0.0] * 9])
    rng = np.random.default_rng(0)
    long = buffer._order[1]
    slot, step = buffer.draw_episodes(rng, (100, 100))
    assert (slot == long).mean() == pytest.approx(0.5, abs=0.02)
    assert step[slot == long].mean() == pytest.approx(4.0, abs=0.1)
    assert (step < buffer.length(slot)).all()
    slot, step = buffer.draw_transitions(rng, (100, 100))
    assert (slot == long).mean() == pytest.approx(0.9, abs=0.02)
    assert sorted(set(step[slot == long])) == list(range(9))
    assert (step < buffer.length(slot)).all()


def test_state_dict_rebuilds_the_buffer():
    rng = np.random.default_rng(1)
    original = buffer_with([rng.normal(size=rng.integers(1, 20)).tolist() for _ in range(30)], capacity=12)
    copy = SortedEpisodeBuffer(12, SPEC)
    copy.load_state_dict(original.state_dict())
    original.add([make_episode([0.1, 0.2])])
    copy.add([make_episode([0.1, 0.2])])
    for a, b in zip(original.best(12), copy.best(12), strict=True):
        np.testing.assert_array_equal(a, b)
    for draw in ("draw_episodes", "draw_transitions"):
        rows = []
        for buffer in (original, copy):
            slot, start = getattr(buffer, draw)(np.random.default_rng(3), (5, 7))
            rows.append(buffer.gather(slot, start, buffer.length(slot)))
        for a, b in zip(*rows, strict=True):
            np.testing.assert_array_equal(a, b)


def test_state_of_an_empty_buffer_and_one_too_small():
    empty = SortedEpisodeBuffer(3, SPEC)
    empty.load_state_dict(SortedEpisodeBuffer(3, SPEC).state_dict())
    assert len(empty) == 0
    with pytest.raises(ValueError, match="2 best of 2 episodes do not fit 1"):
        SortedEpisodeBuffer(1, SPEC).load_state_dict(buffer_with([[1.0], [2.0]]).state_dict())


def test_the_recent_episodes_are_kept_whatever_their_return():
    """Two best and the three newest: the ring of the newest goes round, the best are drawn beside them."""
    buffer = SortedEpisodeBuffer(2, SPEC, recent=3)
    for number, value in enumerate([5.0, 9.0, 1.0, 2.0, 3.0, 0.0]):
        buffer.add([make_episode([value] + [0.0] * number)])
    assert buffer.best(9)[0].tolist() == [9.0, 5.0]
    assert buffer.best(9)[1].tolist() == [2, 1]
    assert buffer._return[buffer._slots].tolist() == [9.0, 5.0, 2.0, 3.0, 0.0]
    slot, step = buffer.draw_episodes(np.random.default_rng(0), (5000,))
    values, counts = np.unique(buffer._return[slot], return_counts=True)
    assert values.tolist() == [0, 2, 3, 5, 9]
    assert counts / 5000 == pytest.approx(np.full(5, 0.2), abs=0.02)
    assert (step < buffer.length(slot)).all()
    copy = SortedEpisodeBuffer(2, SPEC, recent=3)
    copy.load_state_dict(buffer.state_dict())
    for either in (buffer, copy):
        either.add([make_episode([7.0])])
        assert either.best(9)[0].tolist() == [9.0, 7.0]
        assert sorted(either._return[either._slots].tolist()) == [0.0, 3.0, 7.0, 7.0, 9.0]  # the oldest of the newest, 2, is gone


def test_a_slot_that_is_used_again_holds_the_new_episode_alone():
    buffer = buffer_with([[1.0, 1.0, 1.0], [0.5]], capacity=2)
    buffer.add([make_episode([2.0, 4.0])])
    best = buffer._order[0]
    assert buffer.best(2)[0].tolist() == [6.0, 3.0]
    obs, action, achieved, steps = buffer.gather(np.array([best, best]), np.array([0, 1]), np.array([2, 2]))
    assert obs[:, 0].tolist() == [0, 1]
    assert action.tolist() == [0, 1]
    assert achieved.tolist() == [6.0, 4.0]
    assert steps.tolist() == [2, 1]
