"""The roll-out of images gives back what was seen, put together of single frames."""

import pytest
import torch
from helpers.frames import FRAMES, played

from lightning_rl.agents.frame_rollout import FrameRollout

STEPS = 8


@pytest.mark.parametrize("start", [0, 3])
def test_what_was_seen_is_given_back(start):
    """Roll-outs one after the other, the first of which begins in an episode or at its start."""
    images = FrameRollout(2, STEPS, FRAMES)
    assert images.frame.dtype == images.next_frame.dtype == torch.uint8
    steps = played(start + 2 * STEPS)[start:]
    for begin in (0, STEPS):
        part = steps[begin : begin + STEPS]
        for place, (step, _) in enumerate(part):
            images.store(place, step)
        over = torch.stack([ended for _, ended in part], dim=1)
        obs = torch.stack([step.obs for step, _ in part], dim=1)
        assert torch.equal(images.obs(over), obs)
        assert torch.equal(
            images.next_obs(over), torch.stack([step.next_obs for step, _ in part], dim=1)
        )
        rows = torch.tensor([[5, 1, 5], [0, 7, 2]])
        assert torch.equal(images.obs(over, rows), obs[torch.tensor([[0], [1]]), rows])
