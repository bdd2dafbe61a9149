"""d3rlpy's learners on a dataset of LunarLander: ``offline.py`` calls this with the Python of an
environment that has d3rlpy and ``gymnasium[box2d]``; nothing of this package is there.

    python offline_d3rlpy.py DATA.npz METHOD SEED EPISODES ASKED ..

Prints a line of JSON: CPU seconds of training, and of each return that was asked for those that
were obtained.
"""

from __future__ import annotations

import json
import sys
import time

import d3rlpy
import gymnasium
import numpy as np
import torch
from d3rlpy.algos import (
    DiscreteBCConfig,
    DiscreteDecisionTransformerConfig,
    SoftmaxTransformerActionSampler,
)
from d3rlpy.preprocessing import MultiplyRewardScaler, StandardObservationScaler

FIRST_SEED = 1_000_000  # of the episodes that test
BC_UPDATES, BC_BATCH = 100_000, 256
DT_UPDATES, DT_BATCH, DT_CONTEXT = 10_000, 64, 20


def read(path: str) -> d3rlpy.dataset.ReplayBuffer:
    """The dataset, which is a file of arrays."""
    data = np.load(path)
    dataset = d3rlpy.dataset.MDPDataset(
        data["obs"],
        data["action"][:, None],
        data["reward"][:, None],
        data["terminated"],
        data["truncated"],
        action_space=d3rlpy.ActionSpace.DISCRETE,
        action_size=4,
    )
    return dataset


def behaviour_cloning(dataset, asked):
    learner = DiscreteBCConfig(
        batch_size=BC_BATCH, observation_scaler=StandardObservationScaler()
    ).create("cpu:0")
    learner.fit(dataset, n_steps=BC_UPDATES, n_steps_per_epoch=BC_UPDATES, **QUIET)
    return lambda _: lambda obs, reward: int(learner.predict(obs[None])[0])


def decision_transformer(dataset, asked):
    """Size, context and batch of Chen et al. 2021 (arXiv 2106.01345) for tasks with vectors."""
    learner = DiscreteDecisionTransformerConfig(
        batch_size=DT_BATCH,
        context_size=DT_CONTEXT,
        num_heads=1,
        num_layers=3,
        max_timestep=1001,
        final_tokens=DT_UPDATES * DT_BATCH * DT_CONTEXT,
        observation_scaler=StandardObservationScaler(),
        reward_scaler=MultiplyRewardScaler(0.01),
    ).create("cpu:0")
    learner.fit(dataset, n_steps=DT_UPDATES, n_steps_per_epoch=DT_UPDATES, **QUIET)

    def asked_for(target):
        actor = learner.as_stateful_wrapper(target, SoftmaxTransformerActionSampler())
        return lambda obs, reward: int(actor.predict(obs, reward))

    return asked_for


def play(act, seed):
    """The return of an episode."""
    env = gymnasium.make("LunarLander-v3")
    obs, _ = env.reset(seed=seed)
    total = reward = 0.0
    over = False
    while not over:
        obs, reward, terminated, truncated, _ = env.step(act(obs, reward))
        total += float(reward)
        over = terminated or truncated
    return total


QUIET = {
    "show_progress": False,
    "save_interval": 10**9,
    "logger_adapter": d3rlpy.logging.NoopAdapterFactory(),
}
METHODS = {"BC": behaviour_cloning, "DT": decision_transformer}


def main() -> None:
    path, method, seed, episodes, *asked = sys.argv[1:]
    torch.set_num_threads(1)
    d3rlpy.seed(int(seed))
    started = time.process_time()
    policy = METHODS[method](read(path), asked)
    seconds = time.process_time() - started
    returns = {
        target: [play(policy(float(target)), FIRST_SEED + k) for k in range(int(episodes))]
        for target in asked
    }
    print(json.dumps({"version": d3rlpy.__version__, "seconds": seconds, "returns": returns}))


if __name__ == "__main__":
    main()
