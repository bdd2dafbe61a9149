"""Shared by the tests of stacked agents: identity tasks and one small agent of each kind."""

import functools
from types import SimpleNamespace
from typing import NamedTuple

import torch

from helpers.runs import last, run_cli
from lightning_rl.agents.registry import AGENTS as KINDS
from lightning_rl.agents.training import MemberTraining
from lightning_rl.agents.variation import vary_agents
from lightning_rl.core.config import build_config, merged_values
from lightning_rl.envs.batch import FuncBatch
from lightning_rl.envs.func_env import FuncEnv, Step

HORIZON = 10


class Match(FuncEnv):
    """Identity task: one of three signs at random; the action that matches pays 1. Ten steps
    give 10, chance gives 10 / 3.
    """

    obs_low, obs_high, action_size = (0.0,) * 3, (1.0,) * 3, 3
    reset_noise_size = step_noise_size = 1

    def reset(self, noise):
        return (3 * noise).long()

    def observe(self, state):
        return torch.nn.functional.one_hot(state[..., 0], 3).float()

    def step(self, state, action, noise):
        after = self.reset(noise)
        reward = (state[..., 0] == action).float()
        return Step(after, self.observe(after), reward, torch.zeros_like(reward, dtype=torch.bool))


class MatchContinuous(Match):
    """The action shall be -0.5, 0 or 0.5; an error of e costs 2 e, at most 1."""

    action_size, continuous = 1, True

    def step(self, state, action, noise):
        after = self.reset(noise)
        error = (action[..., 0].clamp(-1, 1) - (state[..., 0] - 1) / 2).abs()
        return Step(
            after,
            self.observe(after),
            1 - (2 * error).clamp(max=1),
            torch.zeros_like(error, dtype=torch.bool),
        )


class Task(NamedTuple):
    obs_size: int
    action_size: int
    continuous: bool = False
    frames: None = None
    masked: bool = False


def config(name, **settings):
    """The YAML's values of an agent, with these."""
    return build_config(KINDS[name].config, [*merged_values(name, "none"), ("test", settings)])


def agent_of(name, obs_size, action_size, seeds, variation=None, continuous=False, **settings):
    """An agent with the YAML's values but for these."""
    return KINDS[name].agent(
        config(name, **settings), Task(obs_size, action_size, continuous), seeds, variation
    )


def varied(depth, seeds):
    """Hyper-parameters around 0.001, batches of 128 and so many layers of 128 units."""
    return vary_agents(
        SimpleNamespace(learning_rate=1e-3, batch_size=128, hidden=[128] * depth), seeds
    )


def off_policy(
    gamma, learning_rate, batch_size, replay_size, tau, hidden, activation="relu", **settings
):
    return {
        "gamma": gamma,
        "learning_rate": learning_rate,
        "batch_size": batch_size,
        "replay_size": replay_size,
        "tau": tau,
        "hidden": list(hidden),
        "activation": activation,
        **settings,
    }


def epsilon(init, least, decay):
    return {"epsilon_init": init, "epsilon_min": least, "epsilon_decay": decay}


def table_of(obs_size, action_size, seeds, gamma, learning_rate, *rates, name="QL", **settings):
    return agent_of(
        name,
        obs_size,
        action_size,
        seeds,
        gamma=gamma,
        learning_rate=learning_rate,
        **epsilon(*rates),
        **settings,
    )


def ddqn_of(obs_size, action_size, seeds, name="DDQN", variation=None, **settings):
    own = {**off_policy(0.5, 0.01, 32, 300, 0.1, (16,)), **epsilon(1.0, 0.1, 0.9), **settings}
    return agent_of(name, obs_size, action_size, seeds, variation, **own)


def curiosity(name):
    return (
        {"curiosity": "icm", "icm_hidden_size": 8, "icm_feature_size": 4, "icm_eta": 0.01}
        if "icm" in name
        else {}
    )


def make_dqn(name, seeds):
    if name.startswith("dueling"):
        return ddqn_of(
            3, 3, seeds, "DuelingDDQN", activation="tanh", feature_size=8, **curiosity(name)
        )
    return ddqn_of(3, 3, seeds, **curiosity(name))


def make_td3(name, seeds):
    own = off_policy(
        0.5,
        0.01,
        32,
        300,
        0.1,
        (16,),
        policy_delay=2,
        action_std=0.2,
        target_std=0.2,
        target_clip=0.5,
    )
    own |= {"learning_starts": 3, **curiosity(name)}
    if "discrete" not in name:
        return agent_of("TD3", 3, 1, seeds, continuous=True, **own)
    kind = name.split("-")[2]
    heat = {
        "temperature": kind,
        "temperature_init": 1.0,
        "hard": kind == "learnable",
        "layer_norm": False,
    }
    return agent_of("TD3-discrete", 3, 3, seeds, **own, **heat)


def ppo_of(obs_size, action_size, seeds, continuous=False, variation=None, **settings):
    own = {
        "gamma": 0.5,
        "learning_rate": 0.02,
        "rollout_steps": 64,
        "epochs": 8,
        "batch_size": 32,
        "clip": 0.2,
        "value_coef": 0.5,
        "entropy_coef": 0.0,
        "standardise": "advantages",
        "gae_lambda": 0.95,
        "std_init": 0.5,
        "max_grad_norm": 0.5,
        "hidden": [16],
        "activation": "tanh",
        **settings,
    }
    return agent_of("PPO", obs_size, action_size, seeds, variation, continuous, **own)


def make_ppo(name, seeds):
    continuous = "continuous" in name
    paper = (
        {"batch_size": None, "max_grad_norm": None, "standardise": "returns"}
        if "paper" in name
        else {}
    )
    return ppo_of(3, 1 if continuous else 3, seeds, continuous, **paper, **curiosity(name))


def make_tabular(name, seeds):
    count = {"curiosity": "count", "count_beta": 0.05} if "count" in name else {}
    return table_of(
        3,
        3,
        seeds,
        0.5,
        0.2,
        1.0,
        0.1,
        0.9,
        name="SARSA" if name.startswith("sarsa") else "QL",
        **count,
    )


AGENTS = {
    name: functools.partial(make, name)
    for make, names in (
        (make_tabular, ("ql", "sarsa", "ql-count")),
        (make_dqn, ("ddqn", "dueling", "ddqn-icm", "dueling-icm")),
        (make_td3, ("td3", "td3-icm")),
        (
            make_td3,
            tuple(
                f"td3-discrete-{kind}" for kind in ("fixed", "learnable", "annealed", "fixed-icm")
            ),
        ),
        (make_ppo, ("ppo", "ppo-continuous", "ppo-paper", "ppo-paper-continuous", "ppo-icm")),
    )
    for name in names
}


def env_for(name):
    return MatchContinuous() if name in ("td3", "td3-icm") or "continuous" in name else Match()


def train(name, seeds, episodes=12, stop=None, learning_starts=3, agent=None):
    """An agent of this kind after training on its identity task, and the training."""
    agent = agent or AGENTS[name](seeds)
    init = 0 if name.startswith("ppo") else learning_starts
    training = MemberTraining(
        agent, FuncBatch(env_for(name), HORIZON, seeds), episodes, 0.5, init, stop
    )
    return agent, training


def flat(value, name=""):
    """(name, tensor) of everything in nested dictionaries and lists."""
    if isinstance(value, dict):
        return [
            pair for key, inner in sorted(value.items()) for pair in flat(inner, f"{name}.{key}")
        ]
    if isinstance(value, list | tuple):
        return [pair for i, inner in enumerate(value) for pair in flat(inner, f"{name}.{i}")]
    return [] if value is None else [(name, torch.as_tensor(value))]


def assert_same_runs(a, b, exactly=True):
    for part in ("state_dict", "epoch", "global_step"):
        compare(flat(a[part]), flat(b[part]), exactly)
    compare(flat(a["optimizer_states"][1:]), flat(b["optimizer_states"][1:]), exactly)
    (key,) = (key for key in a if key.endswith("Rollouts"))
    compare(flat(a[key]), flat(b[key]), exactly)


def check_a_seed_of_many(tmp_path, implementation, gamename, **settings):
    """Its whole checkpoint, replay memory included, is that of the seed alone up to rounding:
    stacked, stopped and resumed on the way, against alone and uninterrupted.
    """
    together, alone = tmp_path / "together", tmp_path / "alone"
    given = {"implementation": implementation, "gamename": gamename, **settings}
    for epochs in ("2", "5"):
        flags = ("--max_epochs", epochs, "--num_seeds", "3", "--resume")
        assert run_cli(together, *flags, **given) == 0
    assert run_cli(alone, "--max_epochs", "5", "--seed", "26", **given) == 0
    a, b = (last(folder, implementation, gamename, 26) for folder in (together, alone))
    assert a["hyper_parameters"] == b["hyper_parameters"]
    assert_same_runs(a, b, exactly=False)


def compare(a, b, exactly):
    assert [name for name, _ in a] == [name for name, _ in b]
    for (name, left), (_, right) in zip(a, b, strict=True):
        assert left.shape == right.shape, name
        if exactly or not left.is_floating_point():
            assert torch.equal(left, right), name
        else:
            torch.testing.assert_close(
                left, right, rtol=1e-3, atol=1e-4, msg=lambda text, name=name: f"{name}: {text}"
            )


def stops_at_three(returns, count):
    """The second of three members leaves the stack."""
    return (count >= 3) & (torch.arange(len(count)) == 1) & (len(count) == 3)


def assert_same(ours, theirs, **tolerance):
    for key, value in theirs.items():
        torch.testing.assert_close(ours[key], value, msg=lambda text, key=key: key, **tolerance)
