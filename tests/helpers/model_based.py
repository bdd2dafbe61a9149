"""Small agents for the tests of the model-based family."""

from lightning_rl.agents.model_based import ModelBasedConfig

VALUES = {
    "max_epochs": 1,
    "max_env_steps": None,
    "chunk_size": 1,
    "eval_interval": 1,
    "eval_episodes": 1,
    "checkpoint_interval": 1,
    "transitions": "replay",
    "steps_per_epoch": 10,
    "hidden": [16, 16],
    "activation": "elu",
    "gamma": 0.9,
    "temperature": 0.5,
    "learning_rate": 1e-3,
    "betas": [0.9, 0.99],
    "adam_eps": 1e-5,
    "weight_decay": 1e-6,
    "batch_size": 8,
    "rollout_length": 4,
    "updates_per_step": 1,
    "target_interval": 10,
    "learning_starts": 20,
    "replay_size": 40,
    "faithful": [],
    "warm_up": 0,
    "cuda_graphs": False,
    "model_learning_rate": 1e-3,
    "reward_weight": 1.0,
    "continuation_weight": 1.0,
    "obs_weight": 1.0,
    "kl_prior_weight": 0.8,
    "kl_posterior_weight": 0.2,
    "variables": 4,
    "classes": 4,
    "min_std": 0.1,
}
KINDS = ("replay", "environment", "simple", "categorical", "gaussian")


def config(transitions, **changes):
    """A config with small values."""
    return ModelBasedConfig(**{**VALUES, "transitions": transitions, **changes})
