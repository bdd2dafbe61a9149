"""Noise that is drawn in blocks does not repeat from block to block."""

import pytest
import torch

from lightning_rl.core.seeding import NOISE, MemberNoise


@pytest.mark.parametrize("kind", NOISE)
def test_no_step_of_a_member_repeats_another(kind):
    """Over two ends of the blocks of 128 steps."""
    noise = MemberNoise([1, 2], "act", (2,), kind)
    rows = torch.cat([noise.at(step) for step in range(300)])
    assert len(rows.unique(dim=0)) == 600


def test_blocks_of_another_length_do_not_repeat_either():
    noise = MemberNoise([1], "act", (1,), "uniform64", block=5)
    assert len({noise.at(step).item() for step in range(20)}) == 20
