import dataclasses

import numpy as np
import pytest
import torch
from helpers import make_episode

from lightning_rl.rollouts.episode_buffer import EpisodeWindow


def window_of(*rewards: list[float], capacity: int = 100) -> EpisodeWindow:
    window = EpisodeWindow(capacity)
    window.add(make_episode(r) for r in rewards)
    return window


def test_flat_by_hand():
    flat = window_of([1.0, 2.0], [3.0]).flat()
    assert flat.obs[:, 0].tolist() == [0.0, 1.0, 2.0, 0.0, 1.0]
    assert flat.row.tolist() == [0, 1, 3]
    assert flat.reward.tolist() == [1.0, 2.0, 3.0]
    assert flat.last.tolist() == [False, True, True]
    assert flat.terminated.tolist() == [False, True, True]
    assert flat.episode_return.tolist() == [3.0, 3.0, 3.0]
    assert flat.first.tolist() == [0, 2]
    assert len(flat) == 3


def test_truncated_episodes_are_last_but_not_terminated():
    window = EpisodeWindow(10)
    window.add([dataclasses.replace(make_episode([1.0, 1.0]), terminated=False, truncated=True)])
    assert window.flat().last.tolist() == [False, True]
    assert not window.flat().terminated.any()


def test_the_oldest_whole_episodes_give_way():
    window = window_of([1.0] * 4, [2.0] * 3, [3.0] * 3, capacity=10)
    assert (len(window), window.num_steps) == (3, 10)
    window.add([make_episode([4.0])])
    assert sorted(set(window.flat().reward.tolist())) == [2.0, 3.0, 4.0]
    assert window.num_steps == 7


def test_an_episode_longer_than_the_window_is_kept_whole():
    window = window_of([1.0], [2.0] * 50, capacity=10)
    assert window.flat().reward.tolist() == [2.0] * 50


def test_mean_length_of_the_newest():
    window = window_of([1.0] * 9, [1.0] * 2, [1.0] * 4)
    assert window.mean_length(2) == 3.0
    assert window.mean_length(20) == 5.0


@pytest.mark.parametrize("seed", range(3))
def test_state_survives_a_checkpoint(seed, tmp_path):
    rng = np.random.default_rng(seed)
    window = window_of(*(rng.normal(size=n).tolist() for n in rng.integers(1, 9, size=12)), capacity=40)
    torch.save(window.state_dict(), tmp_path / "state.pt")
    other = EpisodeWindow(40)
    other.load_state_dict(torch.load(tmp_path / "state.pt", weights_only=True))
    for a, b in zip(vars(window.flat()).values(), vars(other.flat()).values(), strict=True):
        assert torch.equal(a, b)
    assert window.num_steps == other.num_steps


def test_draws_by_transition_and_by_episode():
    window = window_of([1.0] * 90, [2.0] * 10)
    rng = np.random.default_rng(0)
    reward = window.flat().reward.numpy()
    share = {draw: (reward[draw(rng, (200, 100))] == 2.0).mean() for draw in (window.draw_transitions, window.draw_episodes)}
    assert list(share.values()) == [pytest.approx(0.1, abs=0.01), pytest.approx(0.5, abs=0.01)]
    drawn = window.draw_episodes(rng, (5000,))
    assert sorted(set(drawn.tolist())) == list(range(100))
