"""The published batch is played again, live: environment, episodes, returns and losses in one go.

The recipe is the assignment's: a numpy generator seeded through SHA-512, a linear policy from
torch's seed 42, two resets before the first step and one after each episode. It depends on Box2D's
and torch's floating-point results, so that another platform may differ; the arrays of the fixture
are the hard tests (tests/functional/test_policy_gradient.py).
"""

import hashlib
import platform
import warnings

import gymnasium
import numpy as np
import pytest
import torch
from helpers import ROOT

from lightning_rl.core.types import Episode, Request
from lightning_rl.envs.gym import make_env
from lightning_rl.envs.spec import env_spec
from lightning_rl.functional.distributions import Categorical
from lightning_rl.functional.policy_gradient import reinforce_loss
from lightning_rl.functional.returns import discounted_returns
from lightning_rl.methods.policy_gradient import step_batch


def played_again(env: gymnasium.Env) -> tuple[list[Episode], torch.Tensor]:
    words = np.frombuffer(hashlib.sha512(b"42").digest()[:8], dtype="<u4")
    env.unwrapped.np_random = np.random.RandomState(words)
    torch.manual_seed(42)
    policy = torch.nn.Linear(8, 4)
    env.reset()
    episodes, obs = [], [env.reset()[0]]
    actions, rewards = [], []
    while len(episodes) < 4:
        with torch.no_grad():
            cumulative = policy(torch.from_numpy(obs[-1])).softmax(-1).cumsum(-1)
        cumulative = cumulative / cumulative[-1]
        cumulative[-1] = 1.0
        uniform = torch.rand(1, dtype=torch.float64)
        actions.append(int((cumulative.double() < uniform).sum()))
        after, reward, terminated, truncated, _ = env.step(actions[-1])
        obs.append(after)
        rewards.append(float(reward))
        if terminated or truncated:
            record = (
                np.stack(obs),
                np.array(actions),
                np.array(rewards),
                terminated,
                truncated,
                None,
            )
            episodes.append(Episode(*record, Request("again", 0), 0, len(rewards)))
            obs, actions, rewards = [env.reset()[0]], [], []
    return episodes, torch.randn(sum(e.length for e in episodes), 4)


def test_the_published_batch_is_played_again():
    fixture = np.load(ROOT / "tests" / "data_files" / "pg_fixture.npz")
    episodes, scores = played_again(make_env(env_spec("beresheet")))
    batch = step_batch(episodes, {})
    if not np.array_equal(batch.obs.numpy(), fixture["states"]):
        bare, _ = played_again(gymnasium.make("LunarLander-v3", max_episode_steps=300))
        if not np.array_equal(step_batch(bare, {}).obs.numpy(), fixture["states"]):
            warnings.warn(
                f"Box2D or torch plays another batch on {platform.platform()}", stacklevel=1
            )
            pytest.skip("other floating-point results on this platform")
    np.testing.assert_array_equal(batch.obs.numpy(), fixture["states"])
    np.testing.assert_array_equal(batch.action.numpy(), fixture["actions"])
    assert [e.length for e in episodes] == [131, 113, 96, 110]
    q = discounted_returns(batch.reward, 0.9, batch.last)
    np.testing.assert_allclose(q.numpy(), fixture["q_vals"], rtol=1e-9)
    loss = reinforce_loss(Categorical(scores).log_prob(batch.action), q.float())
    assert float(loss) == pytest.approx(-35.535522, abs=1e-3)
