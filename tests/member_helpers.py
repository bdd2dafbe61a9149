"""Shared by the tests of stacked agents: identity tasks and one small agent of each kind."""

import functools

import torch
from helpers import last, run_cli

from lightning_rl.agents.dqn import DDQN, DQNSettings
from lightning_rl.agents.icm import ICM, ICMSettings
from lightning_rl.agents.ppo import PPO, PPOSettings
from lightning_rl.agents.tabular import Tabular, TabularSettings
from lightning_rl.agents.td3 import TD3, DiscreteTD3, TD3Settings
from lightning_rl.agents.training import MemberTraining
from lightning_rl.envs.batch import FuncBatch
from lightning_rl.envs.func_env import FuncEnv, Step
from lightning_rl.nets.members import MemberMLP
from lightning_rl.nets.values import DuelingNet

HORIZON = 10


class Match(FuncEnv):
    """Identity task: one of three signs at random; the action that matches pays 1. Ten steps give 10, chance gives 10 / 3."""

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
        return Step(after, self.observe(after), 1 - (2 * error).clamp(max=1), torch.zeros_like(error, dtype=torch.bool))


def curiosity(name, seeds, continuous):
    if "icm" not in name:
        return None
    settings = ICMSettings(hidden_size=8, feature_size=4, eta=0.01)
    size = 1 if continuous and name.startswith("td3") and "discrete" not in name else 3
    return ICM(3, size, continuous, settings, [torch.Generator().manual_seed(s) for s in seeds])


def make_dqn(name, seeds):
    net = DuelingNet(3, (16,), 3, 8, "tanh") if name.startswith("dueling") else MemberMLP(3, (16,), 3, "relu")
    settings = DQNSettings(0.5, 0.01, 32, 300, 0.1, 1.0, 0.1, 0.9)
    return DDQN(net, 3, settings, seeds, curiosity=curiosity(name, seeds, False))


def make_td3(name, seeds):
    settings = TD3Settings(0.5, 0.01, 32, 300, 0.1, 2, 0.2, 0.2, 0.5, 3)
    discrete = "discrete" in name
    size = 3 if discrete else 1
    actor, critic = MemberMLP(3, (16,), size), MemberMLP(3 + size, (16,), 1)
    if not discrete:
        return TD3(actor, critic, settings, seeds, curiosity=curiosity(name, seeds, True))
    kind = name.split("-")[2]
    return DiscreteTD3(actor, critic, settings, seeds, kind, 1.0, kind == "learnable", curiosity=curiosity(name, seeds, True))


def make_ppo(name, seeds):
    continuous, paper = "continuous" in name, "paper" in name
    batch, norm, kind = (None, None, "returns") if paper else (32, 0.5, "advantages")
    settings = PPOSettings(0.5, 0.02, 64, 8, batch, 0.2, 0.5, 0.0, kind, max_grad_norm=norm)
    size = 1 if continuous else 3
    return PPO(
        MemberMLP(3, (16,), size, "tanh"), MemberMLP(3, (16,), 1, "tanh"), continuous, settings, seeds,
        curiosity(name, seeds, False),
    )  # fmt: skip


def make_tabular(name, seeds):
    settings = TabularSettings(0.5, 0.2, 1.0, 0.1, 0.9, 0.05 if "count" in name else 0.0)
    return Tabular(3, 3, settings, seeds, sarsa=name.startswith("sarsa"))


AGENTS = {
    name: functools.partial(make, name)
    for make, names in (
        (make_tabular, ("ql", "sarsa", "ql-count")),
        (make_dqn, ("ddqn", "dueling", "ddqn-icm", "dueling-icm")),
        (make_td3, ("td3", "td3-icm")),
        (make_td3, tuple(f"td3-discrete-{kind}" for kind in ("fixed", "learnable", "annealed", "fixed-icm"))),
        (make_ppo, ("ppo", "ppo-continuous", "ppo-paper", "ppo-paper-continuous", "ppo-icm")),
    )
    for name in names
}  # fmt: skip


def env_for(name):
    return MatchContinuous() if name in ("td3", "td3-icm") or "continuous" in name else Match()


def train(name, seeds, episodes=12, stop=None, learning_starts=3, agent=None):
    """An agent of this kind after training on its identity task, and the training."""
    agent = agent or AGENTS[name](seeds)
    init = 0 if name.startswith("ppo") else learning_starts
    training = MemberTraining(agent, FuncBatch(env_for(name), HORIZON, seeds), episodes, 0.5, init, stop)
    return agent, training


def flat(value, name=""):
    """(name, tensor) of everything in nested dictionaries and lists."""
    if isinstance(value, dict):
        return [pair for key, inner in sorted(value.items()) for pair in flat(inner, f"{name}.{key}")]
    if isinstance(value, list | tuple):
        return [pair for i, inner in enumerate(value) for pair in flat(inner, f"{name}.{i}")]
    return [(name, torch.as_tensor(value))]


def assert_same_runs(a, b, exactly=True):
    for part in ("state_dict", "epoch", "global_step"):
        compare(flat(a[part]), flat(b[part]), exactly)
    (key,) = (key for key in a if key.endswith("Rollouts"))
    compare(flat(a[key]), flat(b[key]), exactly)


def check_a_seed_of_many(tmp_path, implementation, gamename):
    """Its whole checkpoint, replay memory included, is that of the seed alone up to rounding: stacked, stopped and resumed on the
    way, against alone and uninterrupted.
    """
    together, alone = tmp_path / "together", tmp_path / "alone"
    for epochs in ("2", "5"):
        flags = ("--max_epochs", epochs, "--num_seeds", "3", "--resume")
        assert run_cli(together, *flags, implementation=implementation, gamename=gamename) == 0
    assert run_cli(alone, "--max_epochs", "5", "--seed", "26", implementation=implementation, gamename=gamename) == 0
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
            torch.testing.assert_close(left, right, rtol=1e-3, atol=1e-4, msg=lambda text, name=name: f"{name}: {text}")
