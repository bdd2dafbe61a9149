"""rejax in ``make peers``: whole loops in JAX, environments of gymnax included; seeds by vmap."""

from __future__ import annotations

import functools
from typing import Any

import gymnax
import jax
from flax import linen
from harness import cpu
from peer_cases import EPISODES, Case, Side
from rejax import get_algo
from rejax.evaluate import evaluate
from rejax.networks import DeterministicPolicy, DiscreteQNetwork, EpsilonGreedyPolicy, QNetwork

ENVIRONMENTS = {"cartpole": "CartPole-v1", "cartpole-v0": "CartPole-v1", "pendulum": "Pendulum-v1"}
"""Of gymnax, by gamename; the time limit is the task's."""


def activation(cfg: Any) -> Any:
    """Of Flax."""
    return getattr(linen, cfg.activation)


def dqn(cfg: Any, case: Case, actions: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Keys of rejax's DQN, and the networks that it cannot be asked for.

    The share of random actions falls over the first turn.
    """
    keys = {
        **_off_policy(cfg),
        "eps_start": cfg.epsilon_init,
        "eps_end": cfg.epsilon_min,
        "exploration_fraction": 1.0,
    }
    agent = EpsilonGreedyPolicy(DiscreteQNetwork)(
        hidden_layer_sizes=tuple(cfg.hidden), action_dim=actions.n, activation=activation(cfg)
    )
    return keys, {"agent": agent}


def td3(cfg: Any, case: Case, actions: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Our noise is in units of the box [-1, 1], rejax's in those of the task."""
    scale = float(actions.high)
    keys = {
        **_off_policy(cfg),
        "policy_delay": cfg.policy_delay,
        "exploration_noise": scale * cfg.action_std,
        "target_noise": scale * cfg.target_std,
        "target_noise_clip": scale * cfg.target_clip,
    }
    layers = {"hidden_layer_sizes": tuple(cfg.hidden), "activation": activation(cfg)}
    box = (actions.low, actions.high)
    actor = DeterministicPolicy(case.spec.action_size, box, **layers)
    return keys, {"actor": actor, "critic": QNetwork(**layers)}


def ppo(cfg: Any, case: Case, actions: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """One environment, as ours."""
    keys = {
        "num_envs": 1,
        "num_steps": cfg.rollout_steps,
        "num_minibatches": cfg.rollout_steps // cfg.batch_size,
        "num_epochs": cfg.epochs,
        "gae_lambda": cfg.gae_lambda,
        "clip_eps": cfg.clip,
        "vf_coef": cfg.value_coef,
        "ent_coef": cfg.entropy_coef,
        "max_grad_norm": cfg.max_grad_norm,
        "agent_kwargs": {"hidden_layer_sizes": tuple(cfg.hidden), "activation": cfg.activation},
    }
    return keys, {}


def _off_policy(cfg: Any) -> dict[str, Any]:
    """Learning starts with the first batch."""
    return {
        "buffer_size": cfg.replay_size,
        "fill_buffer": cfg.batch_size,
        "batch_size": cfg.batch_size,
        "polyak": 1 - cfg.tau,
    }


def most_likely(actor: Any, params: Any, obs: Any, key: Any) -> Any:
    """The action that a policy takes without exploration."""
    return actor.apply(params, obs[None], method="_action_dist").mode()[0]


MAKE = {"DDQN": ("dqn", dqn), "TD3": ("td3", td3), "PPO": ("ppo", ppo)}


class Stack:
    """Seeds that train in one compiled loop."""

    def __init__(self, case: Case, seeds: int):
        cfg, horizon = case.config, case.spec.horizon
        env, params = gymnax.make(ENVIRONMENTS[case.gamename])
        params = params.replace(max_steps_in_episode=horizon)
        name, make = MAKE[case.name]
        keys, networks = make(cfg, case, env.action_space(params))
        algorithm = get_algo(name).create(
            env=env,
            env_params=params,
            learning_rate=cfg.learning_rate,
            gamma=cfg.gamma,
            total_timesteps=case.steps,
            eval_freq=case.steps,
            skip_initial_evaluation=True,
            **keys,
        )
        untested = {"eval_callback": lambda algorithm, state, key: ()}
        algorithm = algorithm.replace(**networks, **untested)

        def train(state: Any) -> Any:
            return algorithm.train(train_state=state)[0]

        def test(state: Any, key: Any) -> Any:
            act = algorithm.make_act(state)
            if case.name == "PPO":  # whose actions are sampled there
                act = functools.partial(most_likely, algorithm.actor, state.actor_ts.params)
            return evaluate(act, key, env, params, EPISODES, horizon)[1].mean()

        self.keys = jax.random.split(jax.random.PRNGKey(0), seeds)
        state = jax.vmap(algorithm.init_state)(self.keys)
        # Of weak types, which training makes strong ones, the loop would be compiled twice.
        self.state = jax.tree.map(lambda leaf: leaf.astype(leaf.dtype), state)
        self.train, self.test = jax.jit(jax.vmap(train)), jax.jit(jax.vmap(test))
        self.turn = cpu(self.go_on, case.steps * seeds)

    def go_on(self) -> None:
        self.state = jax.block_until_ready(self.train(self.state))

    def returns(self) -> list[float]:
        return self.test(self.state, self.keys).tolist()


def side(library: str, case: Case, seeds: int) -> Side:
    """The only kind that it has."""
    return Stack(case, seeds)
