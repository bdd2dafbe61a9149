"""``lightning-rl baseline``: agents of Stable-Baselines3 with our settings, as runs like ours.

    pip install 'lightning_rl[baselines]'
    lightning-rl baseline --implementation DDQN --gamename cartpole --seed 100
    lightning-rl compare exp_dir/cartpole/default/DDQN exp_dir/cartpole/default/SB3-DDQN --tag
    eval_greedy/return_mean

Budgets, hyper-parameters and the environments of the evaluations are those of ``lightning-rl
train`` with the same settings; no stop rule ends a run sooner.
"""

from __future__ import annotations

import contextlib
import dataclasses
import math
from argparse import Namespace
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
import yaml
from torch import nn

from lightning_rl.agents.registry import AGENTS
from lightning_rl.core.catalogue import BASELINE, entry
from lightning_rl.core.config import parse_settings
from lightning_rl.core.console import ProgressBar
from lightning_rl.core.errors import UserError
from lightning_rl.core.gamenames import Images
from lightning_rl.core.limits import shorten, unknown
from lightning_rl.core.lines import say
from lightning_rl.core.schema import MethodConfig
from lightning_rl.core.seeding import derive_seed
from lightning_rl.core.yaml_files import read_yaml
from lightning_rl.envs.gym import RepeatAction, rollout_env, stacked
from lightning_rl.envs.spaces import STEPS, Env
from lightning_rl.envs.spec import EnvSpec, env_spec
from lightning_rl.functional.value_learning import epsilon_after
from lightning_rl.methods.base import return_scalars
from lightning_rl.run.callbacks import last_returns
from lightning_rl.run.logger import RunLogger
from lightning_rl.run.options import RunOptions
from lightning_rl.run.run_config import run_config
from lightning_rl.run.runtime import prepare_process
from lightning_rl.run.state import (
    check_folder_names,
    config_content,
    owned,
    read_state,
    refuse_changed,
    refuse_second,
    write_config,
    write_state,
)

try:
    from stable_baselines3 import DQN, PPO, TD3
    from stable_baselines3.common.base_class import BaseAlgorithm
    from stable_baselines3.common.callbacks import BaseCallback
    from stable_baselines3.common.noise import NormalActionNoise
except ImportError as error:
    raise UserError(
        f"Stable-Baselines3 is not installed ({error}); pip install 'lightning_rl[baselines]'"
    ) from error

RANDOM_EPISODES = 20
ALONE = {"curiosity": "none", "standardise": "advantages", "saturation_penalty": 0.0}
"""Keys of our configs of which Stable-Baselines3 has one value only; setting a key to that value
is allowed.
"""
ACTIVATIONS = {"relu": nn.ReLU, "tanh": nn.Tanh, "leakyrelu": nn.LeakyReLU}


class Given:
    """A config that notes which of its keys were read: the others mean nothing to a baseline."""

    def __init__(self, config: Any):
        self.config = config
        self.read: set[str] = set()

    def __getattr__(self, key: str) -> Any:
        self.read.add(key)
        return getattr(self.config, key)


def environment(cfg: Any, spec: EnvSpec) -> Env:
    """The task as our agents meet it."""
    return stacked(RepeatAction(rollout_env(spec), cfg.action_repeat), spec)


def _first_updates(cfg: Any, spec: EnvSpec) -> int:
    """Decisions before learning starts: ``learning_starts`` random episodes, or a batch."""
    env = environment(cfg, spec)
    env.action_space.seed(0)
    decisions = 0
    for seed in range(RANDOM_EPISODES):
        env.reset(seed=seed)
        over = False
        while not over:
            _, _, terminated, truncated, _ = env.step(env.action_space.sample())
            over = terminated or truncated
            decisions += 1
    return max(cfg.learning_starts * decisions // RANDOM_EPISODES, cfg.batch_size)


def _net(cfg: Any, spec: EnvSpec) -> dict[str, Any]:
    """The layers of a policy. Of images actor and critic share the first one, behind the
    convolutions of Mnih et al. 2015.
    """
    if cfg.activation not in ACTIVATIONS:
        raise UserError(
            f"activation {cfg.activation}: a baseline has {', '.join(ACTIVATIONS)}; --set "
            "activation=relu"
        )
    net = {"net_arch": list(cfg.hidden), "activation_fn": ACTIVATIONS[cfg.activation]}
    if spec.frames is None:
        return net
    if (cfg.encoder, cfg.activation) != ("nature", "relu") or not cfg.hidden:
        raise UserError(
            f"encoder {cfg.encoder}: a baseline has nature alone, with a hidden layer and relu; "
            "--set encoder=nature --set activation=relu"
        )
    features, *layers = cfg.hidden
    return {**net, "net_arch": layers, "features_extractor_kwargs": {"features_dim": features}}


def _policy(spec: EnvSpec) -> str:
    return "MlpPolicy" if spec.frames is None else "CnnPolicy"


def td3(cfg: Any, spec: EnvSpec, seed: int, kind: Any = TD3) -> BaseAlgorithm:
    """Its noise is in units of the box [-1, 1], like ours."""
    size = spec.action_size
    return kind(
        "MlpPolicy",
        environment(cfg, spec),
        learning_rate=cfg.learning_rate,
        buffer_size=cfg.replay_size,
        learning_starts=_first_updates(cfg, spec),
        batch_size=cfg.batch_size,
        tau=cfg.tau,
        gamma=cfg.gamma,
        train_freq=1,
        gradient_steps=1,
        action_noise=NormalActionNoise(np.zeros(size), cfg.action_std * np.ones(size)),
        policy_delay=cfg.policy_delay,
        target_policy_noise=cfg.target_std,
        target_noise_clip=cfg.target_clip,
        policy_kwargs=_net(cfg, spec),
        seed=seed,
        device="cpu",
    )


def ppo(cfg: Any, spec: EnvSpec, seed: int, kind: Any = PPO) -> BaseAlgorithm:
    """With its own initialisation (orthogonal) and Adam's epsilon (1e-5, ours 1e-8)."""
    most = math.inf if cfg.max_grad_norm is None else cfg.max_grad_norm
    return kind(
        _policy(spec),
        environment(cfg, spec),
        learning_rate=cfg.learning_rate,
        n_steps=cfg.rollout_steps,
        batch_size=cfg.batch_size or cfg.rollout_steps,
        n_epochs=cfg.epochs,
        gamma=cfg.gamma,
        gae_lambda=cfg.gae_lambda,
        clip_range=cfg.clip,
        ent_coef=cfg.entropy_coef,
        vf_coef=cfg.value_coef,
        max_grad_norm=most,
        policy_kwargs={**_net(cfg, spec), "log_std_init": math.log(cfg.std_init)},
        seed=seed,
        device="cpu",
    )


class EpsilonGreedyDQN(DQN):
    """SB3's DQN that explores and begins to learn by episodes, as ours does, not by steps."""

    learning_episodes = 0

    def _sample_action(self, *given: Any, **named: Any) -> Any:
        # its own rate is a step late
        self.exploration_rate = self.exploration_schedule(self._current_progress_remaining)
        return super()._sample_action(*given, **named)

    def train(self, gradient_steps: int, batch_size: int = 100) -> None:
        if self._episode_num >= self.learning_episodes:
            super().train(gradient_steps, batch_size)


def dqn(cfg: Any, spec: EnvSpec, seed: int, kind: Any = EpsilonGreedyDQN) -> BaseAlgorithm:
    """Not double, with its Huber loss and its clipping of gradients at a norm of 10.

    One soft target update per update, exploration and the first update like ours.
    """
    model = kind(
        _policy(spec),
        environment(cfg, spec),
        learning_rate=cfg.learning_rate,
        buffer_size=cfg.replay_size,
        learning_starts=0,
        batch_size=cfg.batch_size,
        tau=cfg.tau,
        gamma=cfg.gamma,
        train_freq=cfg.train_interval,
        gradient_steps=1,
        target_update_interval=cfg.train_interval,
        policy_kwargs=_net(cfg, spec),
        seed=seed,
        device="cpu",
    )
    model.learning_episodes = cfg.learning_starts
    first, least, decay = cfg.epsilon_init, cfg.epsilon_min, cfg.epsilon_decay

    def epsilon(progress_remaining: float) -> float:
        return float(epsilon_after(torch.tensor(model._episode_num), first, least, decay))

    model.exploration_schedule = epsilon
    return model


def greedy_episode(agent: BaseAlgorithm, env: Env, seed: int) -> tuple[float, int]:
    """(return, environment steps) of an episode."""
    obs, _ = env.reset(seed=seed % 2**31)
    total, steps, over = 0.0, 0, False
    while not over:
        action, _ = agent.predict(obs, deterministic=True)
        chosen = action if action.ndim else int(action)
        obs, reward, terminated, truncated, info = env.step(chosen)
        total += float(reward)
        steps += info.get(STEPS, 1)
        over = terminated or truncated
    return total, steps


MODELS: dict[str, Callable[..., BaseAlgorithm]] = {"TD3": td3, "PPO": ppo, "DDQN": dqn}
"""(config, task, seed) -> agent, by the name of our implementation. ``kind``: a class with the
arguments of Stable-Baselines3's; sbx has such.
"""

GREEDY = "eval_greedy"
Log = Callable[[int, dict[str, float]], None]
"""Takes the environment steps and scalars."""


class Epochs(BaseCallback):
    """Logs what a run of ours logs: training episodes of each epoch, and greedy evaluations.

    An evaluation comes after the updates that follow its last decision: Stable-Baselines3 calls
    back before them.
    """

    def __init__(self, cfg: Any, spec: EnvSpec, seed: int, log: Log):
        super().__init__()
        self.epoch_steps = cfg.steps_per_epoch
        self.interval = cfg.eval_interval
        self.eval_episodes = cfg.eval_episodes
        self.max_steps = cfg.steps_per_epoch * cfg.max_epochs
        self.max_episodes = cfg.train_episodes
        self.max_env_steps = cfg.max_env_steps or float("inf")
        self.seed, self.log = seed, log
        self.env = environment(cfg, spec)
        self.env_steps = self.episodes = 0
        self._ended: list[tuple[float, int]] = []  # episodes of this epoch: returns, lengths
        self._return, self._length = 0.0, 0  # of the episode that is played
        self._due: int | None = None  # the epoch after which an evaluation is due
        self._over = False

    @property
    def share(self) -> float:
        """Of the budget that is spent."""
        return max(
            self.num_timesteps / self.max_steps,
            self.episodes / self.max_episodes,
            self.env_steps / self.max_env_steps,
        )

    def _on_step(self) -> bool:
        self._evaluate()
        if self._over:
            return False
        steps = self.locals["infos"][0].get(STEPS, 1)
        self.env_steps += steps
        self._length += steps
        self._return += float(self.locals["rewards"][0])
        if self.locals["dones"][0]:
            self._ended.append((self._return, self._length))
            self._return, self._length = 0.0, 0
            self.episodes += 1
        self._over = self.share >= 1
        epoch, step = divmod(self.num_timesteps - 1, self.epoch_steps)
        if self._over or step + 1 == self.epoch_steps:
            self._log("rollout", self._ended)
            self._ended = []
            early = self._over and self.num_timesteps < self.max_steps
            if early or (epoch + 1) % self.interval == 0:
                self._due = epoch
        return True

    def _log(self, prefix: str, episodes: Sequence[tuple[float, int]]) -> None:
        if episodes:
            returns, lengths = zip(*episodes, strict=True)
            self.log(self.env_steps, return_scalars(prefix, returns, lengths))

    def _on_rollout_start(self) -> None:
        self._evaluate()

    def _on_training_end(self) -> None:
        self._evaluate()

    def _evaluate(self) -> None:
        if self._due is None:
            return
        played = []
        for k in range(self.eval_episodes):
            seed = derive_seed(self.seed, "evaluation", self._due, k)
            played.append(greedy_episode(self.model, self.env, seed))
        self._log(GREEDY, played)
        self._due = None


def run(given: Namespace) -> None:
    """Trains what is asked for.

    With ``--resume`` a run that was stopped begins again, and a finished one is left as it is.
    """
    name = entry(given.implementation).name
    if name not in MODELS:
        raise UserError(unknown("baseline", name, MODELS))
    check_folder_names(given.exp_name, given.gamename)
    options = RunOptions(
        name,
        given.gamename,
        given.exp_name,
        given.seed,
        preset=given.preset,
        logdir=given.logdir,
        settings=parse_settings(given.settings),
    )
    config = run_config(options)
    spec = config.seen(env_spec(given.gamename))
    if (reason := AGENTS[name].agent.why_unsupported(spec)) is not None:
        raise UserError(f"gamename '{given.gamename}' does not fit {name}: {reason}")
    options = dataclasses.replace(options, implementation=f"{BASELINE}{name}")
    if given.resume and _finished(options, config):
        say(f"finished: {options.run_dir}")
        return
    if not given.resume:
        refuse_second(options.run_dir)
    with owned(options.run_dir) as begin:
        _train(MODELS[name], config, spec, options, begin)
    write_state(options.run_dir, "finished")
    say(f"run directory: {options.run_dir}")


def _finished(options: RunOptions, config: MethodConfig) -> bool:
    """Whether the run directory holds this run, whole; UserError for one with other settings."""
    if not (options.run_dir / "config.yaml").exists():
        return False
    there = read_yaml(options.run_dir / "config.yaml")
    if not isinstance(there, dict) or "config" not in there:
        return False  # no run's, which is said before it would be overwritten
    if there["config"] != yaml.safe_load(yaml.safe_dump(dataclasses.asdict(config))):
        raise UserError(
            f"'{options.run_dir}' holds a run with other settings; choose another --exp_name or "
            "--seed"
        )
    return read_state(options.run_dir)[0] == "finished"


def _train(
    build: Callable[[Any, EnvSpec, int], BaseAlgorithm],
    config: MethodConfig,
    spec: EnvSpec,
    options: RunOptions,
    begin: Callable[[], None],
) -> None:
    prepare_process()
    cfg = Given(config)
    logger = RunLogger(options)
    title = f"{options.implementation} {options.gamename} seed {options.seed}"
    with contextlib.closing(ProgressBar(title)) as bar:

        def log(env_steps: int, scalars: dict[str, float]) -> None:
            logger.log_metrics(scalars, env_steps)
            bar.show(min(1.0, epochs.share), f"{env_steps:,} steps", last_returns(scalars))

        epochs = Epochs(cfg, spec, options.seed, log)
        try:
            model = build(cfg, spec, options.seed)
        except AssertionError as error:
            reason = shorten(" ".join(str(error).split()), 200)
            raise UserError(f"{options.implementation} refuses these settings: {reason}") from error
        _refuse_unread(cfg, options)
        content = config_content(options, config)
        refuse_changed(options.run_dir)
        begin()
        write_config(options.run_dir, content)
        logger.log_hyperparams({"config": dataclasses.asdict(config)})
        try:
            model.learn(epochs.max_steps, callback=epochs)
        except ValueError as error:
            if "nan" not in str(error):
                raise
            raise UserError(
                f"{options.implementation} diverged after {epochs.env_steps:,} steps; start anew "
                "under another --exp_name with a lower --set learning_rate"
            ) from error
    logger.finalize("success")


def _refuse_unread(cfg: Given, options: RunOptions) -> None:
    """UserError for a setting that means nothing to the other library, or another thing."""
    for key, only in ALONE.items():
        if (value := getattr(cfg.config, key, only)) != only:
            raise UserError(
                f"{key} {value}: {options.implementation} has {only} alone; --set "
                f"{key}={str(only).lower()}"
            )
    of_images = [field.name for field in dataclasses.fields(Images)]
    for key in options.settings:
        if key not in (*cfg.read, *ALONE, *of_images):
            raise UserError(f"--set {key}: {options.implementation} does not read it; leave it out")
