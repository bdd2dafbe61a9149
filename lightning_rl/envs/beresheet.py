"""Beresheet: LunarLander with a time limit of 300 steps, solved at 200, as in the policy-gradient course assignment.

Importing this module registers it. The id ``lightning_rl.envs.beresheet:Beresheet-v0`` makes every process that asks for
the environment import it, spawned workers included.
"""

from __future__ import annotations

import gymnasium

ENV_ID = "Beresheet-v0"

if ENV_ID not in gymnasium.registry:
    gymnasium.register(
        ENV_ID,
        entry_point="gymnasium.envs.box2d.lunar_lander:LunarLander",
        max_episode_steps=300,
        reward_threshold=200,
    )
