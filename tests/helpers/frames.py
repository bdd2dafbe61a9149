"""What members see in a task of small images."""

import torch

from lightning_rl.agents.base import Transition
from lightning_rl.envs.images import Frames

FRAMES = Frames(channels=1, height=1, width=2, stack=3)
ENDS = (0, 4, 5, 9, 14)  # steps at which an episode ends


def played(steps, members=2):
    """What is seen in ``steps`` steps: transitions ``[N, ..]`` with frames that count them."""
    transitions = []
    count, frames = 0, None
    for time in range(steps):
        if frames is None:
            frames = [count] * FRAMES.stack
        count += 1
        after = [*frames[1:], count]
        transitions.append((frames, after, time in ENDS))
        frames = after
        if time in ENDS:
            frames, count = None, count + 10

    def images(stack):
        newest = torch.tensor(stack, dtype=torch.uint8).repeat_interleave(FRAMES.size)
        return torch.stack([newest + 100 * n for n in range(members)])

    number = torch.arange(members)
    return [
        (
            Transition(images(seen), number, number + 0.5, number + 0.25, images(after)),
            torch.full((members,), over),
        )
        for seen, after, over in transitions
    ]
