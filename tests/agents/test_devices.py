"""Learners work where they are: on ``meta`` a tensor of another device among the others raises, and so does looking at a number.

There is no GPU in these tests. What a step copies between devices, and how often it waits for one, is counted as torch's
operations are dispatched.
"""

from collections import Counter

import pytest
import torch
from member_helpers import AGENTS, env_for, train
from model_based_helpers import KINDS, config
from torch.utils._python_dispatch import TorchDispatchMode

from lightning_rl.agents import dqn, td3
from lightning_rl.agents.base import Transition
from lightning_rl.agents.model_based import ModelBasedDQN
from lightning_rl.envs.buttongrid import ButtonGrid
from lightning_rl.envs.panflute import PanFlute
from lightning_rl.envs.procmaze import ProcMaze
from lightning_rl.methods.model_based import StepTraining, play
from lightning_rl.nets.world_models import RealSteps

META = torch.device("meta")
WAITS = ("_local_scalar_dense", "nonzero", "masked_select", "equal")
"""Operations whose result is a number or a size that the program goes on with: a GPU finishes all that it was given before."""


class Traffic(TorchDispatchMode):
    """Counts copies from one device to another, and waits for one."""

    def __init__(self):
        super().__init__()
        self.count = Counter()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs, name = kwargs or {}, func.overloadpacket.__name__
        tensors = [value for value in args if isinstance(value, torch.Tensor)]
        moves = name == "_to_copy" and kwargs.get("device") not in (None, tensors[0].device)
        self.count["copies"] += moves or (name == "copy_" and tensors[0].device != tensors[1].device)
        masks = [index for value in args if isinstance(value, list | tuple) for index in value if isinstance(index, torch.Tensor)]
        self.count["waits"] += name in WAITS or any(mask.dtype == torch.bool for mask in masks if name.startswith("index"))
        return func(*args, **kwargs)


class Blind(TorchDispatchMode):
    """Whoever looks at a number sees 0: no episode ends."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        return 0 if func is torch.ops.aten._local_scalar_dense.default else func(*args, **(kwargs or {}))


def on_meta(agent):
    """The agent on ``meta``, where, unlike on any other device, its parameters are new ones that no optimizer has."""
    names = {id(parameter): name for name, parameter in agent.named_parameters()}
    trained = [names[id(optimizer.params)] for optimizer in agent.optimizers()]
    agent.to(META)
    parameters = dict(agent.named_parameters())
    for name, optimizer in zip(trained, agent.optimizers(), strict=True):
        optimizer.param_groups[0]["params"] = [parameters[name]]
        optimizer._in_step = (optimizer.num_steps, True)  # found out once, by looking
    return agent


@pytest.mark.parametrize("name", AGENTS)
def test_acting_storing_and_updating_happen_where_the_agent_is(name, monkeypatch):
    """Of SE's and RN's inner agents, too, which are these."""
    for module in (dqn, td3):
        monkeypatch.setattr(module, "anything_follows", lambda discount: True)  # it looks
    agent, env = on_meta(AGENTS[name]([0, 1])), env_for(name)
    episode, over = torch.zeros(2, dtype=torch.int64, device=META), torch.zeros(2, dtype=torch.bool, device=META)
    state = env.reset(torch.zeros(2, 1, device=META))
    obs, discount = env.observe(state), torch.zeros(2, device=META)
    steps = agent.cfg.rollout_steps if name.startswith("ppo") else 3
    for step in range(steps):
        with Traffic() as traffic:
            action = agent.act(obs, episode, step)
            outcome = env.step(state, agent.to_env(action), torch.zeros(2, 1, device=META))
            agent.learn(Transition(obs, action, outcome.reward, discount, outcome.obs), over, step, None)
        state, obs = outcome.state, outcome.obs
    assert not traffic.count["waits"]
    assert not traffic.count["copies"] or steps == 64  # PPO draws the noise of its shuffles here
    assert {value.device.type for value in agent.rows().values()} == {"meta"}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("env", [ProcMaze(2), ButtonGrid(2, 2), PanFlute(4)], ids=lambda env: type(env).__name__)
def test_model_based_steps_and_updates_happen_where_the_agent_is(kind, env):
    cfg = config(kind, **{"variables": 16 if kind == "gaussian" else 4, "learning_starts": 2})
    agent = on_meta(ModelBasedDQN(cfg, env, [0, 1]))
    state = env.reset(torch.zeros(2, env.reset_noise_size, device=META))
    obs = env.observe(state)
    for step in range(5):
        with Traffic() as traffic:
            action = agent.act(obs, step)
            after = env.step(state, action, torch.zeros(2, env.step_noise_size, device=META))
            agent.source.remember(state, RealSteps(obs, action, after.reward, (~after.terminated).float(), after.obs))
            agent.learn(step, agent.optimizers())
    assert {losses.device.type for losses in agent.take_losses().values()} == {"meta"}
    assert traffic.count == Counter(copies=0, waits=0)  # tables and noise are there after the first


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("env", [ProcMaze(2), PanFlute(4)], ids=lambda env: type(env).__name__)
def test_an_epoch_and_its_evaluation_happen_where_the_agent_has_been_moved(kind, env):
    """The loop was made on the CPU, and its environments have been reset there; a checkpoint goes back there."""
    agent = ModelBasedDQN(config(kind, **{"variables": 16 if kind == "gaussian" else 4, "learning_starts": 2}), env, [0, 1])
    training = StepTraining(agent)
    on_meta(agent)
    assert training.to(META) is training
    with Blind():
        training.run(4)
        played = play(agent, [5, 6], 3, 4, greedy=False)
    snapshot = training.snapshot()
    tensors = [*snapshot["loop"].values(), *snapshot["envs"].values(), training.reward, agent.target, *played]
    assert {tensor.device.type for tensor in tensors} == {"meta"}
    assert agent.online.adam.moments["exp_avg"].device == META


def waits(training, monkeypatch, *given):
    """Of one step that learns and ends no episode."""
    one_hot = lambda index, size: torch.eye(size, dtype=torch.int64)[index]  # noqa: E731
    monkeypatch.setattr(torch.nn.functional, "one_hot", one_hot)  # torch's looks whether indices are in range, on the CPU alone
    with Traffic() as traffic:
        training._step(*given)
    return traffic.count["waits"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_step_of_the_model_based_agents_waits_once(kind, monkeypatch):
    """To know whether an episode ended."""
    training = StepTraining(ModelBasedDQN(config(kind, variables=4, learning_starts=2), PanFlute(3), [0, 1]))
    training.run(5)
    assert waits(training, monkeypatch, training.agent.optimizers()) == 1


@pytest.mark.parametrize(("name", "times"), [("ddqn", 2), ("dueling", 2), ("td3", 2), ("td3-discrete-fixed", 2), ("ppo", 1)])
def test_a_step_of_the_stacked_agents_waits_once_or_twice(name, times, monkeypatch):
    """To know whether an episode ended, and off policy whether anything follows the batch."""
    _, training = train(name, [0, 1], learning_starts=0)
    training.run(15)
    assert waits(training, monkeypatch) == times
