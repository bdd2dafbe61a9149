"""Stable-Baselines3's agents with the hyper-parameters of our configs: ``pip install -e '.[baselines]'``."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np

from lightning_rl.core.errors import UserError

try:
    from stable_baselines3 import DQN, PPO, TD3
    from stable_baselines3.common.base_class import BaseAlgorithm
    from stable_baselines3.common.noise import NormalActionNoise
except ImportError as error:
    raise UserError(f"Stable-Baselines3 is not installed ({error}); pip install -e '.[baselines]'") from error
import torch
from torch import nn

from lightning_rl.envs.gym import Env, RepeatAction, make_env
from lightning_rl.envs.spec import EnvSpec
from lightning_rl.functional.value_learning import epsilon_after

RANDOM_EPISODES = 20
ACTIVATIONS = {"relu": nn.ReLU, "tanh": nn.Tanh, "leakyrelu": nn.LeakyReLU}


def environment(cfg: Any, spec: EnvSpec) -> Env:
    """The task as our agents meet it."""
    env = make_env(spec)
    if spec.continuous:
        env.action_space = gymnasium.spaces.Box(-1, 1, (spec.action_size,), np.float32)  # it clips, hence claims no bounds
    return RepeatAction(env, cfg.action_repeat)


def _first_updates(cfg: Any, spec: EnvSpec) -> int:
    """Decisions before learning starts: of so many episodes of random actions, and at least a batch."""
    env, lengths = environment(cfg, spec), []
    env.action_space.seed(0)
    for seed in range(RANDOM_EPISODES):
        env.reset(seed=seed)
        lengths.append(1)
        while not any(env.step(env.action_space.sample())[2:4]):
            lengths[-1] += 1
    return max(cfg.learning_starts * sum(lengths) // RANDOM_EPISODES, cfg.batch_size)


def _net(cfg: Any) -> dict[str, Any]:
    return {"net_arch": list(cfg.hidden), "activation_fn": ACTIVATIONS[cfg.activation]}


def td3(cfg: Any, spec: EnvSpec, seed: int) -> BaseAlgorithm:
    """Its noise is in units of the box [-1, 1], like ours."""
    size = spec.action_size
    return TD3(
        "MlpPolicy", environment(cfg, spec), learning_rate=cfg.learning_rate, buffer_size=cfg.replay_size,
        learning_starts=_first_updates(cfg, spec), batch_size=cfg.batch_size, tau=cfg.tau, gamma=cfg.gamma, train_freq=1,
        gradient_steps=1, action_noise=NormalActionNoise(np.zeros(size), cfg.action_std * np.ones(size)),
        policy_delay=cfg.policy_delay, target_policy_noise=cfg.target_std, target_noise_clip=cfg.target_clip,
        policy_kwargs=_net(cfg), seed=seed, device="cpu",
    )  # fmt: skip


def ppo(cfg: Any, spec: EnvSpec, seed: int) -> BaseAlgorithm:
    """Its orthogonal initialisation, which ours lacks, stays on."""
    return PPO(
        "MlpPolicy", environment(cfg, spec), learning_rate=cfg.learning_rate, n_steps=cfg.rollout_steps,
        batch_size=cfg.batch_size or cfg.rollout_steps, n_epochs=cfg.epochs, gamma=cfg.gamma, gae_lambda=cfg.gae_lambda,
        clip_range=cfg.clip, ent_coef=cfg.entropy_coef, vf_coef=cfg.value_coef, max_grad_norm=cfg.max_grad_norm,
        policy_kwargs=_net(cfg), seed=seed, device="cpu",
    )  # fmt: skip


def dqn(cfg: Any, spec: EnvSpec, seed: int) -> BaseAlgorithm:
    """Not double, with its Huber loss and its clipping of gradients at a norm of 10.

    One update and one soft target update per step, and exploration, like ours.
    """
    model = DQN(
        "MlpPolicy", environment(cfg, spec), learning_rate=cfg.learning_rate, buffer_size=cfg.replay_size,
        learning_starts=_first_updates(cfg, spec), batch_size=cfg.batch_size, tau=cfg.tau, gamma=cfg.gamma, train_freq=1,
        gradient_steps=1, target_update_interval=1, policy_kwargs=_net(cfg), seed=seed, device="cpu",
    )  # fmt: skip

    def epsilon(progress_remaining: float) -> float:
        return float(epsilon_after(torch.tensor(model._episode_num), cfg.epsilon_init, cfg.epsilon_min, cfg.epsilon_decay))

    model.exploration_schedule = epsilon
    return model


MODELS = {"TD3": td3, "PPO": ppo, "DDQN": dqn}
"""By our name of the implementation."""
