"""The memory of images gives back what was seen, put together of single frames."""

import pytest
import torch
from helpers.frames import FRAMES, played

from lightning_rl.agents.frame_replay import FrameReplay
from lightning_rl.envs.images import Frames


def all_rows(replay):
    """Every row of the memory, in the order of the ring."""
    count = len(replay)
    noise = (torch.arange(count, dtype=torch.float64) + 0.5) / count
    return replay.batch(noise.expand(len(replay.first), -1))


def test_what_is_drawn_is_what_was_seen():
    replay = FrameReplay(2, 20, FRAMES, 4)
    steps = played(16)
    for step in steps:
        replay.store(*step)
    batch = all_rows(replay)
    assert batch.obs.dtype == batch.next_obs.dtype == torch.uint8
    for time, (step, _) in enumerate(steps):
        for name, value in step._asdict().items():
            assert torch.equal(getattr(batch, name)[:, time], value), (time, name)


def test_where_frames_are_overwritten_the_oldest_that_is_left_is_seen():
    replay = FrameReplay(1, 3, FRAMES, 4)
    steps = played(14, members=1)  # the ring holds steps 11 to 13, of an episode that began at 10
    for step in steps:
        replay.store(*step)
    obs = all_rows(replay).obs.roll(1, dims=1)[0, :, :: FRAMES.size]  # the oldest is at place 2
    oldest = int(steps[11][0].obs[0, -1])
    assert obs[0].tolist() == [oldest, oldest, oldest]
    assert obs[1].tolist() == [oldest, oldest, oldest + 1]
    assert obs[2].tolist() == steps[13][0].obs[0, :: FRAMES.size].tolist()


def test_a_snapshot_goes_on_in_the_middle_of_an_episode():
    whole, half, other = (FrameReplay(2, 12, FRAMES, 4) for _ in range(3))
    steps = played(16)
    for step in steps:
        whole.store(*step)
    for step in steps[:12]:
        half.store(*step)
    other.restore(half.snapshot())
    for step in steps[12:]:
        other.store(*step)
    for ours, theirs in zip(all_rows(other), all_rows(whole), strict=True):
        assert torch.equal(ours, theirs)


def test_a_member_that_leaves_takes_its_episode_with_it():
    replay = FrameReplay(2, 20, FRAMES, 4)
    first, _ = played(1)[0]
    replay.store(first, torch.tensor([True, False]))
    replay.keep(torch.tensor([1]))
    step, over = played(4, members=1)[3]
    replay.store(step, over)
    obs = all_rows(replay).obs[0, 1, :: FRAMES.size]
    assert obs.tolist() == [100, 100, int(step.obs[0, -1])]


def test_a_frame_is_kept_twice():
    replay = FrameReplay(2, 100, Frames(1, 32, 32, 8), 4)
    assert sum(data.nbytes for data in replay.data.values()) <= 2 * 100 * (2 * 32 * 32 + 32)


@pytest.mark.parametrize("action", [-1, 4])
def test_an_action_that_there_is_not_is_refused(action):
    replay = FrameReplay(2, 4, FRAMES, 4)
    replay.store(*played(1)[0])
    state = replay.snapshot()
    state["action"][0] = action
    with pytest.raises(ValueError, match="an action that is none of 0 to 3"):
        replay.restore(state)
