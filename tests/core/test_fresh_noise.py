"""Noise that is drawn in blocks does not repeat from block to block."""

import numpy as np
import pytest
import torch

from lightning_rl.core.seeding import NOISE, MemberNoise
from lightning_rl.core.types import Request
from lightning_rl.envs.spec import env_spec
from lightning_rl.functional.distributions import distribution_for
from lightning_rl.nets.policies import Policy
from lightning_rl.rollouts.player import ActionNoise, Player


@pytest.mark.parametrize("kind", NOISE)
def test_no_step_of_a_member_repeats_another(kind):
    """Over two ends of the blocks of 128 steps."""
    noise = MemberNoise([1, 2], "act", (2,), kind)
    rows = torch.cat([noise.at(step) for step in range(300)])
    assert len(rows.unique(dim=0)) == 600


def test_blocks_of_another_length_do_not_repeat_either():
    noise = MemberNoise([1], "act", (1,), "uniform64", block=5)
    assert len({noise.at(step).item() for step in range(20)}) == 20


def test_action_noise_is_fresh_at_every_step_and_of_every_request():
    """Over two ends of its blocks of 64 steps, for two requests; a greedy one has none."""
    requests = [Request("a", 5, "sampled"), Request("b", 6, "sampled"), Request("c", 7, "greedy")]
    noise = ActionNoise(requests, Policy(torch.nn.Identity(), distribution_for(True), 2))
    rows = np.stack([noise.at(step, np.arange(3)) for step in range(150)])
    assert len(np.unique(rows[:, :2].reshape(-1, 2), axis=0)) == 300
    assert not rows[:, 2].any()


class Still(torch.nn.Module):
    """Mean 0 and standard deviation 1 everywhere, so that actions are the noise."""

    def forward(self, obs):
        return torch.zeros(*obs.shape[:-1], 2)


def test_an_episode_of_200_steps_has_200_actions():
    spec = env_spec("pendulum")
    (episode,) = Player(spec, Policy(Still(), distribution_for(True), 1)).play(
        [Request("long", 9, "sampled")]
    )
    assert len(np.unique(episode.action)) == episode.length == 200
