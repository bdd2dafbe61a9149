"""Learners work where they are: on ``meta`` a tensor of another device among the others raises, and
so does looking at a number.

There is no GPU in these tests. What a step copies between devices, how often it waits for one, and
what it asks for that a GPU has no deterministic form of, is counted as torch's operations are
dispatched.
"""

import dataclasses
from collections import Counter

import pytest
import torch
from helpers.members import AGENTS, train
from helpers.model_based import KINDS, config
from helpers.proxies import synthetic_proxy
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from lightning_rl.agents.cloning import CloneConfig, Clones
from lightning_rl.agents.model_based import ModelBasedDQN
from lightning_rl.agents.registry import AGENTS as KINDS_OF_AGENTS
from lightning_rl.core.config import build_config, merged_values
from lightning_rl.envs.adapters import FUNC_ENVS, make_envs
from lightning_rl.envs.buttongrid import ButtonGrid
from lightning_rl.envs.panflute import PanFlute
from lightning_rl.envs.procmaze import ProcMaze
from lightning_rl.envs.proxies import SyntheticProxy
from lightning_rl.envs.reward_network import RewardProxy
from lightning_rl.envs.spec import env_spec
from lightning_rl.envs.synthetic_dataset import DatasetProxy
from lightning_rl.envs.wrapped_batch import CopiedBatch, copied
from lightning_rl.functional.world_model import sums_by_product
from lightning_rl.methods import registry
from lightning_rl.methods.inner_loop import InnerLoop
from lightning_rl.methods.model_based import StepTraining, play
from lightning_rl.methods.supervised_model import Data
from lightning_rl.nets.world_models import RealSteps
from lightning_rl.run.options import RunOptions
from lightning_rl.run.run_config import run_config

META = torch.device("meta")
WAITS = ("_local_scalar_dense", "nonzero", "masked_select", "equal")
"""Operations whose result is a number or a size that the program goes on with: a GPU finishes
all that it was given before.
"""
REFUSED = ("cumsum", "nll_loss2d_forward", "put_", "histc", "kthvalue", "median")
"""What raises on a GPU under ``torch.use_deterministic_algorithms``, as the command line has it;
whole numbers are no trouble.
"""


def check_together(func, args):
    """As on a GPU: on ``meta`` some operations let a tensor of the CPU in, ``add_`` and ``bmm``
    among them.
    """
    if func.overloadpacket.__name__ in (
        "_to_copy",
        "copy_",
        "index",
        "index_put_",
        "_index_put_impl_",
    ):
        return
    tensors = [
        value for value in tree_leaves(args) if isinstance(value, torch.Tensor) and value.ndim
    ]
    if len({tensor.device.type for tensor in tensors}) > 1:
        raise RuntimeError(f"{func}: tensors on {[str(tensor.device) for tensor in tensors]}")


class Traffic(TorchDispatchMode):
    """Counts copies from one device to another, waits for one, and what a GPU would refuse."""

    def __init__(self):
        super().__init__()
        self.count = Counter()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        check_together(func, args)
        kwargs, name = kwargs or {}, func.overloadpacket.__name__
        tensors = [value for value in args if isinstance(value, torch.Tensor)]
        moves = name == "_to_copy" and kwargs.get("device") not in (None, tensors[0].device)
        self.count["copies"] += moves or (
            name == "copy_" and tensors[0].device != tensors[1].device
        )
        masks = [
            index
            for value in args
            if isinstance(value, list | tuple)
            for index in value
            if isinstance(index, torch.Tensor)
        ]
        self.count["waits"] += name in WAITS or any(
            mask.dtype == torch.bool for mask in masks if name.startswith("index")
        )
        self.count["refused"] += name in REFUSED and tensors[0].is_floating_point()
        return func(*args, **kwargs)


class Blind(TorchDispatchMode):
    """Whoever looks at a number sees the next one given; without any given 0, always: no episode
    ends.

    A copy to the CPU is of zeros, or leaves what is there.
    """

    def __init__(self, given=None):
        super().__init__()
        self.given, self.left = given, list(given or ())

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        check_together(func, args)
        if func is torch.ops.aten._to_copy.default and kwargs.get("device") == torch.device("cpu"):
            return torch.zeros(args[0].shape, dtype=kwargs.get("dtype") or args[0].dtype)
        if func is torch.ops.aten.copy_.default and args[0].device != META:
            return args[0]
        if func is not torch.ops.aten._local_scalar_dense.default:
            return func(*args, **(kwargs or {}))
        return 0 if self.given is None else self.left.pop(0)


def on_meta(agent):
    """The agent on ``meta``, where, unlike on any other device, its parameters are new ones that
    no optimizer has.
    """
    names = {id(parameter): name for name, parameter in agent.named_parameters()}
    trained = [names[id(optimizer.params)] for optimizer in agent.optimizers()]
    agent.to(META)
    parameters = dict(agent.named_parameters())
    for name, optimizer in zip(trained, agent.optimizers(), strict=True):
        optimizer.param_groups[0]["params"] = [parameters[name]]
        optimizer._in_step = (optimizer.num_steps, True)  # found out once, by looking
    return agent


def steps_on_meta(training, monkeypatch):
    """Two steps of a training that was made on the CPU; what the second one copied, waited for
    and asked for.
    """
    on_meta(training.agent)
    assert training.to(META) is training
    with Blind():
        training._advance(1)
        with Traffic() as traffic:
            training._advance(1)
    tensors = [
        *training.snapshot()["loop"].values(),
        *training.envs.snapshot().values(),
        training.envs.obs,
    ]
    assert {tensor.device.type for tensor in (*tensors, *training.agent.rows().values())} == {
        "meta"
    }
    return traffic.count


@pytest.mark.parametrize("name", AGENTS)
def test_a_step_of_training_happens_where_the_agents_have_been_moved(name, monkeypatch):
    _, training = train(name, [0, 1], learning_starts=0)
    count = steps_on_meta(training, monkeypatch)
    assert count == Counter(waits=1)  # whether an episode ended


@pytest.mark.parametrize(
    "name", ["DDQN", "DuelingDDQN", "TD3", "PPO", "QL", "SARSA", "ER", "simple-model"]
)
def test_an_epoch_of_a_method_happens_where_it_has_been_moved(name, monkeypatch):
    """With its counters, the copies of its policies, and what it logs."""
    games = {
        "TD3": "pendulum",
        "QL": "cliff",
        "SARSA": "cliff",
        "ER": "panflute",
        "simple-model": "panflute",
    }
    game = games.get(name, "cartpole")
    settings = {"steps_per_epoch": 3, **({"learning_starts": 0} if name != "PPO" else {})}
    config = vars(run_config(RunOptions(name, game, settings=settings)))
    method = registry.implementation(name)(
        game, implementation=name, seed=0, num_seeds=2, config=config
    )
    training = method.rollouts().training
    on_meta(method.agent)
    method.to(META)
    logged = []
    monkeypatch.setattr(method, "log_members", logged.extend)
    monkeypatch.setattr(method, "optimizers", method.agent.optimizers)
    with Blind():
        method.train_epoch(training.to(META))
    assert len(logged) == 2
    assert method.member_counters.device == META


SMALL = {"hidden": [4], "batch_size": 4}
INNER = {
    "DDQN": ("cartpole", SMALL),
    "DuelingDDQN": ("cartpole", SMALL),
    "TD3": ("pendulum", SMALL),
    "TD3-discrete": ("acrobot", SMALL),
    "PPO": ("cartpole", {**SMALL, "rollout_steps": 8}),
    "QL": ("cliff", {}),
    "SARSA": ("emptyroom22", {}),
}


def inner_loop(name, proxy_of, vary):
    """Agents that learn from the first step on. Blind, a training would find none that learns
    among some that may.
    """
    game, changes = INNER[name]
    if "PPO" not in name:
        changes = {**changes, "learning_starts": 0}
    cfg = build_config(
        KINDS_OF_AGENTS[name].config, [*merged_values(name, game), ("test", changes)]
    )
    return InnerLoop(
        proxy=proxy_of(game), agents=((name, cfg),), test_episodes=1, max_train_steps=10, vary=vary
    )


@pytest.mark.parametrize(
    ("name", "vary"),
    [
        (name, vary)
        for name in INNER
        for vary in (False, True)
        if not (vary and name in ("QL", "SARSA"))
    ],
)
@pytest.mark.parametrize(
    "proxy_of",
    [
        lambda game: synthetic_proxy(game, hidden=(4,), latent_size=2),
        lambda game: SyntheticProxy(
            gamename=game, hidden=(4,), activation="tanh", horizon=1, done="always"
        ),
        lambda game: RewardProxy(
            gamename=game, hidden=(4,), activation="prelu", form="additive_potential", gamma=0.9
        ),
        lambda game: DatasetProxy(gamename=game, num_pairs=4),
    ],
    ids=["SE", "one-step SE", "RN", "SD"],
)
def test_the_inner_agents_of_searches_learn_where_their_proxies_are(
    proxy_of, name, vary, monkeypatch
):
    loop = inner_loop(name, proxy_of, vary)
    params = loop.proxy.net.init([torch.Generator().manual_seed(n) for n in range(2)])
    count = steps_on_meta(
        loop.training(0, params, [4, 4]), monkeypatch
    )  # of one depth, as a stack is
    assert count == Counter(waits=1)  # whether an episode ended


@pytest.mark.parametrize("published", [False, True])
def test_a_supervised_model_learns_where_it_has_been_moved(published):
    small = {"published": published, "hidden": [4]}
    method = registry.implementation("MBRL")(
        "cartpole", implementation="MBRL", seed=0, config=small
    ).to(META)
    obs, column = torch.zeros(3, 4, device=META), torch.zeros(3, device=META)
    data = Data(obs, torch.zeros(3, 2, device=META), column, column, obs)
    with Traffic() as traffic:
        losses = method.losses(data)
        sum(losses[name] for name in method.learned).backward()
    assert {value.device.type for value in (*losses.values(), method.params.grad)} == {"meta"}
    assert traffic.count == Counter(copies=0, waits=0, refused=0)


def test_clones_learn_where_their_pairs_are():
    proxy = DatasetProxy(gamename="cartpole", num_pairs=4)
    cfg = CloneConfig(hidden=[4], activation="tanh", learning_rate=0.01, num_updates=2)
    clones = on_meta(Clones(cfg, proxy.spec, [0, 1]))
    obs, action = proxy.net.split(torch.zeros(2, proxy.net.size, device=META))
    with Traffic() as traffic:
        clones.update(obs, action)
    assert traffic.count == Counter(copies=0, waits=0, refused=0)


@pytest.mark.parametrize("implementation", ["DDQN", "simple-model"])
def test_the_data_module_brings_the_training_where_lightning_says(implementation):
    """And leaves evaluations, which are plain numbers, alone."""
    method = registry.implementation(implementation)("cliff", implementation=implementation, seed=0)
    data = method.rollouts()
    on_meta(method.agent)
    assert data.transfer_batch_to_device(data.next_batch(), META, 0) is data.training
    assert data.training.obs.device == data.training.envs.obs.device == META
    evaluated = [{"eval": ([1.0], [2], [False])}]
    assert data.transfer_batch_to_device(evaluated, META, 0) is evaluated


@pytest.mark.parametrize("game", FUNC_ENVS)
def test_environments_as_functions_happen_where_their_states_are(game):
    env = FUNC_ENVS[game]()
    for _ in range(2):  # tables are copied once
        with Traffic() as traffic:
            state = env.reset(torch.zeros(2, env.reset_noise_size, device=META))
            action = (
                torch.zeros(2, env.action_size, device=META)
                if env.continuous
                else state.new_zeros(2, dtype=torch.int64)
            )
            after = env.step(state, action, torch.zeros(2, env.step_noise_size, device=META))
    assert {value.device.type for value in (env.observe(state), *after) if value is not None} == {
        "meta"
    }
    assert traffic.count == Counter(copies=0, waits=0, refused=0)


def test_environments_of_the_cpu_are_reached_by_one_copy_each_way():
    """Of the device that they are copied to, the CPU again, the numbers are the same, and the
    kinds of numbers.
    """
    spec = dataclasses.replace(env_spec("LunarLander-v3"), repeat=2)
    plain, there = (
        make_envs(spec, [0, 1]),
        CopiedBatch(make_envs(spec, [0, 1]), torch.device("cpu")),
    )
    for action in ([0, 1], [2, 3], [3, 1]):
        one, other = plain.step(torch.tensor(action)), there.step(torch.tensor(action))
        for name, value in one._asdict().items():
            same = getattr(other, name)
            assert (same is None) == (value is None)
            assert value is None or (torch.equal(same, value) and same.dtype == value.dtype), name
    where = torch.tensor([False, True])
    assert torch.equal(plain.reset(where), there.reset(where))
    assert torch.equal(plain.obs, there.obs)
    for envs in (plain, there):
        envs.keep(torch.tensor([1]))
    assert there.obs.tolist() == plain.obs.tolist()
    there = plain.to(META)
    assert there.obs.device == META
    assert there.to(torch.device("cpu")) is plain
    with Traffic() as traffic:
        copied(one, META)
    assert traffic.count["copies"] == 1


def test_sums_so_far_by_a_product_are_those_of_cumsum():
    x = torch.rand(3, 5, 7, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(sums_by_product(x), x.cumsum(-1))


def model_based(kind, env, **changes):
    """Two members that learn from their third step on."""
    variables = 16 if kind == "gaussian" else 4
    return ModelBasedDQN(
        config(kind, **{"variables": variables, "learning_starts": 2, **changes}), env, [0, 1]
    )


def assert_works_on_meta(agent, looks=()):
    """Steps and updates. looks: what an update sees where it looks at its own tensors; anyone
    else who looks fails.
    """
    env, agent = agent.env, on_meta(agent)
    state = env.reset(torch.zeros(2, env.reset_noise_size, device=META))
    obs = env.observe(state)
    for step in range(5):
        with Blind(looks if step >= 2 else ()) as blind, Traffic() as traffic:
            action = agent.act(obs, step)
            after = env.step(state, action, torch.zeros(2, env.step_noise_size, device=META))
            agent.source.remember(
                state, RealSteps(obs, action, after.reward, (~after.terminated).float(), after.obs)
            )
            agent.learn(step, agent.optimizers())
        assert not blind.left
    assert {losses.device.type for losses in agent.take_losses().values()} == {"meta"}
    assert traffic.count == Counter(
        copies=0, waits=len(looks), refused=0
    )  # tables and noise are there after the first


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "env", [ProcMaze(2), ButtonGrid(2, 2), PanFlute(4)], ids=lambda env: type(env).__name__
)
def test_model_based_steps_and_updates_happen_where_the_agent_is(kind, env):
    assert_works_on_meta(model_based(kind, env))


def test_so_they_do_where_logits_are_taken_for_probabilities():
    assert_works_on_meta(model_based("simple", ProcMaze(2), faithful=["logit-bits"]))


@pytest.mark.parametrize("kind", ["simple", "categorical", "gaussian"])
@pytest.mark.parametrize(
    "looks", [(0, 0, 0), (0, 0, 1), (1, 1)], ids=["none imagines", "one imagines", "all imagine"]
)
def test_a_warm_up_looks_two_or_three_times_an_update_who_imagines(kind, looks):
    assert_works_on_meta(model_based(kind, ProcMaze(2), warm_up=1), looks)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("env", [ProcMaze(2), PanFlute(4)], ids=lambda env: type(env).__name__)
def test_an_epoch_and_its_evaluation_happen_where_the_agent_has_been_moved(kind, env):
    """The loop was made on the CPU, and its environments have been reset there; a checkpoint
    goes back there.
    """
    agent = model_based(kind, env)
    training = StepTraining(agent)
    on_meta(agent)
    assert training.to(META) is training
    with Blind():
        training.run(4)
        played = play(agent, [5, 6], 3, 4, greedy=False)
    snapshot = training.snapshot()
    tensors = [
        *snapshot["loop"].values(),
        *snapshot["envs"].values(),
        training.reward,
        agent.target,
        *played,
    ]
    assert {tensor.device.type for tensor in tensors} == {"meta"}
    assert agent.online.adam.moments["exp_avg"].device == META


def waits(monkeypatch, step, *given):
    """Of one step that learns and ends no episode."""
    one_hot = lambda index, size: torch.eye(size, dtype=torch.int64)[index]  # noqa: E731
    monkeypatch.setattr(
        torch.nn.functional, "one_hot", one_hot
    )  # torch's looks whether indices are in range, on the CPU alone
    with Traffic() as traffic:
        step(*given)
    return traffic.count["waits"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_step_of_the_model_based_agents_waits_once(kind, monkeypatch):
    """To know whether an episode ended."""
    training = StepTraining(
        ModelBasedDQN(config(kind, variables=4, learning_starts=2), PanFlute(3), [0, 1])
    )
    training.run(5)
    assert waits(monkeypatch, training._step, training.agent.optimizers()) == 1


@pytest.mark.parametrize(
    ("name", "times"),
    [("ddqn", 2), ("dueling", 2), ("td3", 2), ("td3-discrete-fixed", 2), ("ppo", 1)],
)
def test_a_step_of_the_stacked_agents_waits_once_or_twice(name, times, monkeypatch):
    """To know whether an episode ended, and off policy whether anything follows the batch.

    By torch, as on a GPU.
    """
    agent = AGENTS[name]([0, 1])
    agent.cfg = dataclasses.replace(agent.cfg, kernels="torch")
    _, training = train(name, [0, 1], learning_starts=0, agent=agent)
    training.run(15)
    assert waits(monkeypatch, training._advance, 1) == times


def test_a_gpu_takes_all_members_at_once():
    """Blocks are for a processor's cache."""
    agent = AGENTS["ddqn"]([0, 1])
    agent._members_per_block = 1
    assert agent._blocks() == [slice(0, 1), slice(1, 2)]
    assert on_meta(agent)._blocks() == [slice(0, 2)]
