import copy

import numpy as np
import pytest
import torch

from lightning_rl.core import seeding
from lightning_rl.core.seeding import NOISE, MemberNoise, derive_seed, generator, seeded_torch


def test_numbers_depend_on_seed_purpose_and_index_only():
    draws = {
        generator(*key).integers(2**60)
        for key in [
            (1, "a", 0, 0),
            (1, "a", 0, 1),
            (1, "a", 1, 0),
            (1, "b", 0, 0),
            (2, "a", 0, 0),
            (1, "a", 1, 1),
        ]
    }
    assert len(draws) == 6
    np.random.seed(0)
    torch.manual_seed(0)
    first = (generator(3, "x", 7).random(), derive_seed(3, "x", 7))
    np.random.random(10)
    assert first == (generator(3, "x", 7).random(), derive_seed(3, "x", 7))


def test_known_values_hold_across_versions():
    """A published run must stay repeatable: these change only if every run changes."""
    assert derive_seed(25, "rollout", 1, 0) == 2_944_452_766_867_860_261
    assert generator(25, "minibatch", 3).integers(1000, size=4).tolist() == [635, 59, 832, 333]


def test_seed_range_and_torch():
    assert all(0 <= derive_seed(s, "p") < 2**63 for s in range(50))
    torch.manual_seed(7)
    outside = torch.rand(2)
    torch.manual_seed(7)
    drawn = []
    for _ in range(2):
        with seeded_torch(4, "initialisation"):
            drawn.append(torch.rand(3))
    assert torch.equal(*drawn)
    assert torch.equal(outside, torch.rand(2)), (
        "the user's own draws go on as if nothing had been built"
    )


@pytest.mark.parametrize("kind", NOISE)
def test_member_noise_is_a_function_of_seed_purpose_and_step(kind):
    seeds, steps = [3, 4, 5], (0, 1, 255, 256, 600, 2)
    stack = MemberNoise(seeds, "act", (2,), kind)
    together = {t: stack.at(t).clone() for t in steps}
    assert not torch.equal(together[0], together[1])
    for n, seed in enumerate(seeds):
        alone = MemberNoise([seed], "act", (2,), kind)
        assert all(torch.equal(alone.at(t)[0], together[t][n]) for t in steps)
    assert not torch.equal(MemberNoise(seeds, "other", (2,), kind).at(0), together[0])
    stack.at(1)
    stack.keep(torch.tensor([2, 0]))
    for t in (1, 600):
        assert torch.equal(stack.at(t), together[t][[2, 0]])


def test_members_may_draw_different_amounts():
    stack = MemberNoise([1, 2], "batch", (5,), "uniform64", lengths=[3, 5])
    for n, length in ((0, 3), (1, 5)):
        alone = MemberNoise([n + 1], "batch", (length,), "uniform64")
        assert torch.equal(stack.at(200)[n, :length], alone.at(200)[0])
    first = stack.at(7)[0, 0]
    assert stack.at(7)[0, 3:].tolist() == [first, first]  # padding that shows a member nothing new
    stack.keep(torch.tensor([0]))
    assert torch.equal(
        stack.at(300)[0, :3], MemberNoise([1], "batch", (3,), "uniform64").at(300)[0]
    )


def test_members_that_stay_keep_their_streams():
    """Within the block that is drawn already, and in later ones."""
    stack = MemberNoise([3, 4, 5], "act", (1,), "uniform64", block=4)
    expected = [MemberNoise([seed], "act", (1,), "uniform64", block=4) for seed in (5, 3)]
    stack.at(1)
    stack.keep(torch.tensor([2, 0]))
    for step in (1, 2, 3, 4, 9):
        assert stack.at(step)[:, 0].tolist() == [alone.at(step)[0, 0].item() for alone in expected]


@pytest.mark.parametrize("kind", NOISE)
def test_noise_that_is_drawn_ahead_is_the_noise(kind, monkeypatch):
    """By another thread, of the members that are there; also of a copy, after a jump, and where
    members have left.
    """
    monkeypatch.setattr(seeding, "AHEAD", {"cpu"})
    ahead = MemberNoise([1, 2, 3], "act", (2,), kind, block=4)
    for step in (0, 1, 4, 5, 9, 30, 31, 32):
        assert (
            ahead.at(step).tolist()
            == MemberNoise([1, 2, 3], "act", (2,), kind, block=4).at(step).tolist()
        )
    assert ahead._ahead[0] == 9
    copied = copy.deepcopy(ahead)
    ahead.keep(torch.tensor([0, 2]))
    for step in (33, 36):
        alone = MemberNoise([1, 3], "act", (2,), kind, block=4).at(step)
        assert ahead.at(step).tolist() == alone.tolist()
        assert copied.at(step)[[0, 2]].tolist() == alone.tolist()


def test_held_noise_lies_at_one_place():
    noise, other = (MemberNoise([1, 2], "act", (2,), "normal", block=4) for _ in range(2))
    places = set()
    for step in (0, 1, 3, 4, 9):
        places.add(noise.hold(step).data_ptr())
        assert noise.at(step).data_ptr() in places
        assert noise.at(step).tolist() == other.at(step).tolist()
        assert noise.at(step + 1).tolist() == other.at(step + 1).tolist()
    assert len(places) == 1
