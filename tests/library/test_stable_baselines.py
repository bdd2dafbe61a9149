"""Another library's DQN, trained on a shipped synthetic environment alone, plays the real task."""

import gymnasium
import pytest

import lightning_rl


@pytest.mark.slow
def test_a_stable_baselines_dqn_learns_cartpole_on_a_proxy():
    sb3 = pytest.importorskip("stable_baselines3")
    from stable_baselines3.common.evaluation import evaluate_policy

    agent = sb3.DQN(
        "MlpPolicy",
        lightning_rl.load_proxy("SE-CartPole-v0"),
        learning_rate=1e-3,
        learning_starts=50,
        train_freq=1,
        batch_size=64,
        target_update_interval=50,
        exploration_fraction=0.5,
        seed=0,
    )
    agent.learn(2000)
    mean, _ = evaluate_policy(agent, gymnasium.make("CartPole-v0"), 20)
    assert mean >= 190
