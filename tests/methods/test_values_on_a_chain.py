"""Methods that learn from whole episodes find the known values of the chain of
``helpers/chain.py``, and its best policy.
"""

import dataclasses

import numpy as np
import pytest
import torch
from helpers.budgets import tiny_settings
from helpers.chain import BEST, EYE, GAMMA, HORIZON, Chain, V, chain_episodes
from helpers.methods import attach
from helpers.policy_gradient import build, fit

from lightning_rl.core.config import build_config, merged_values
from lightning_rl.core.gamenames import GAMES, Game
from lightning_rl.methods.policy_gradient import step_batch
from lightning_rl.methods.registry import implementation
from lightning_rl.rollouts.episode_buffer import flatten

CHAIN = Game(Chain, horizon=HORIZON, max_return=1.0)


@pytest.mark.parametrize("name", ["REINFORCE", "AAC"])
def test_policy_gradients_find_the_best_policy_and_the_critic_its_values(name, monkeypatch):
    """The actor-critic bootstraps at the time limit and finds the values without one; REINFORCE
    stops there, and acts best.
    """
    monkeypatch.setitem(GAMES, "chain", CHAIN)
    own = {
        "gae_lambda": 0.7,
        "bootstrap_truncated": True,
        "network": "separate",
        "value_delta": 1.0,
        "entropy_coef": 0.02,
    }
    own = own if name == "AAC" else {}
    method, _ = build(
        name, "chain", gamma=GAMMA, learning_rate=0.02, hidden=[16], anneal_from=1.0, **own
    )

    def choose(obs, uniform):
        return (uniform < method.policy.distribution(obs).output.softmax(-1)[:, 1]).long()

    def batch():
        with torch.no_grad():
            episodes = chain_episodes(choose, 24, method.current_epoch)
        return step_batch(episodes, {})

    fit(method, batch, epochs=120)
    assert torch.equal(method.policy.distribution(EYE).output.argmax(-1), BEST)
    if name == "AAC":
        torch.testing.assert_close(method.critic(EYE).detach(), V, rtol=0, atol=0.12)


def test_the_critic_of_reward_conditioned_policies_finds_the_values_of_a_random_policy(monkeypatch):
    """Either action with probability one half:

    state 2: V = 0.5 * 1 + 0.5 * 0.8 V = 0.5 / 0.6 = 0.8333. State 1: V = 0.4 * 0.8333 + 0.4 V =
    0.5556.
    state 0: V = 0.5 (-0.84 + 0.8 * 0.5556) + 0.5 (0.15 + 0.8 V) = -0.1228 / 0.6 = -0.2046.
    """
    monkeypatch.setitem(GAMES, "chain", CHAIN)
    settings = {
        "gamma": GAMMA,
        "critic_learning_rate": 0.02,
        "critic_hidden": [16],
        "bootstrap_truncated": True,
    }
    settings |= {"value_scale": 1.0, "critic_max_grad_norm": 100.0, "gae_lambda": 0.7}
    entry = implementation("RCP-A")
    config = build_config(
        entry.Config,
        [*merged_values("RCP-A", "chain"), ("test", {**tiny_settings("RCP-A"), **settings})],
    )
    method = entry(
        **{
            "implementation": "RCP-A",
            "gamename": "chain",
            "seed": 3,
            "config": dataclasses.asdict(config),
        }
    )
    attach(method)
    flat = flatten(chain_episodes(lambda obs, uniform: (uniform < 0.5).long(), 600, 0)[-600:])
    rng = np.random.default_rng(0)
    for _ in range(30):
        index = torch.from_numpy(rng.integers(len(flat.reward), size=(10, 64)))
        method.critic_fit.fit(method, flat, index)
    values = (method.critic(EYE) * method.cfg.value_scale).detach()
    torch.testing.assert_close(
        values[:, 0], torch.tensor([-0.2046, 0.5556, 0.8333]), rtol=0, atol=0.08
    )
    of_actions = torch.tensor(
        [[-0.0137, -0.3955], [0.4445, 0.6667], [0.6667, 1.0]]
    )  # r + 0.8 V of where it leads
    torch.testing.assert_close(values[:, 1:], of_actions, rtol=0, atol=0.08)
