"""Environments that this package has no name for: Gymnasium's ids, a user's modules and classes,
every kind of space.
"""

import subprocess
import sys
import warnings

import gymnasium
import numpy as np
import pytest
import torch
from gymnasium import spaces
from helpers import ROOT
from helpers.chain import Chain, ContinuousChain
from helpers.proxies import reward_proxy
from helpers.runs import last, run_dir, train_cli

import lightning_rl
from lightning_rl.cli import main
from lightning_rl.core.config import merged_values
from lightning_rl.core.errors import RolloutError, UserError
from lightning_rl.core.gamenames import GAMES, Game, register_env, same_game
from lightning_rl.core.modules import allow
from lightning_rl.core.types import Request
from lightning_rl.envs.adapters import FUNC_ENVS, func_env, make_envs
from lightning_rl.envs.cartpole import CartPole
from lightning_rl.envs.gym import can_film, make_env, rollout_env
from lightning_rl.envs.proxies import SyntheticProxy
from lightning_rl.envs.proxy_env import proxy_env
from lightning_rl.envs.spec import DEFAULT_HORIZON, env_spec, solved_return
from lightning_rl.methods.model_based import ModelBased
from lightning_rl.rollouts.player import Player, UniformActions


class Echo(gymnasium.Env):
    """Shows ``obs``, pays the action, never ends by itself."""

    def __init__(self, space, obs, actions=None):
        self.observation_space, self.obs = space, obs
        self.action_space = spaces.Discrete(2) if actions is None else actions

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return self.obs, {}

    def step(self, action):
        return self.obs, float(np.sum(action)), False, False, {}


@pytest.fixture
def register():
    """``register_env`` for the length of a test."""
    before = dict(GAMES)
    yield register_env
    GAMES.clear()
    GAMES.update(before)


@pytest.fixture
def module(tmp_path, monkeypatch):
    """A user's module on the path, in a folder of the test."""

    def write(name, text):
        (tmp_path / f"{name}.py").write_text(text)
        monkeypatch.syspath_prepend(tmp_path)
        monkeypatch.delitem(sys.modules, name, raising=False)

    return write


def typed_spec(gamename):
    """The facts of an environment whose name somebody typed."""
    allow(gamename)
    return env_spec(gamename)


# --- names and facts ---


def test_facts_are_read_from_gymnasium():
    spec = env_spec("MountainCar-v0")
    assert (spec.obs_size, spec.action_size, spec.continuous) == (2, 3, False)
    assert (spec.horizon, spec.solved_return) == (200, -110)
    assert (spec.max_return, spec.min_return, spec.one_hot) == (np.inf, None, False)
    walker = env_spec("BipedalWalker-v3")
    assert (walker.obs_size, walker.action_size, walker.continuous) == (24, 4, True)
    lander = env_spec("beresheet")
    assert (lander.env, lander.horizon, lander.solved_return) == ("LunarLander-v3", 300, 200)


@pytest.mark.parametrize(
    ("env_id", "name"),
    [
        ("CartPole-v1", "cartpole"),
        ("CartPole-v0", "cartpole-v0"),
        ("Pendulum-v1", "pendulum"),
        ("LunarLander-v3", "lunarlander"),
        ("HalfCheetah-v5", "halfcheetah"),
        ("lightning_rl.envs.adapters:lightning_rl/ProcMaze-v0", "procmaze"),
    ],
)
def test_an_id_is_the_same_as_its_name(env_id, name):
    """Facts, blocks of configs and the form in batched torch; only the folder is that of what
    was asked for.
    """
    by_id, by_name = env_spec(env_id), env_spec(name)
    assert (by_id.gamename, by_id.family) == (env_id, name)
    assert (by_id.max_return, by_id.min_return, by_id.horizon) == (
        by_name.max_return,
        by_name.min_return,
        by_name.horizon,
    )
    assert type(func_env(by_id)) is type(func_env(by_name))
    for implementation in ("UDRL", "RCP-A", "DDQN"):
        ours, theirs = (merged_values(implementation, game)[1] for game in (env_id, name))
        assert ours == theirs


def test_a_run_on_an_id_is_the_run_on_its_name(tmp_path):
    """Bit for bit, with the blocks of the name in the configs."""
    weights = []
    for gamename in ("CartPole-v1", "cartpole"):
        train_cli(tmp_path, 2, gamename=gamename, implementation="RCP-A")
        weights.append(last(tmp_path, "RCP-A", gamename)["state_dict"])
    assert weights[0].keys() == weights[1].keys()
    assert all(torch.equal(weights[0][key], weights[1][key]) for key in weights[0])


@pytest.mark.parametrize(
    ("asked", "near"),
    [
        ("LunarLander-v2", "LunarLander-v3"),
        ("Cartpole", "cartpole"),
        ("ACROBOT", "acrobot"),
        ("mountaincar-v0", "MountainCar-v0"),
        ("lunarlander_sparse", "lunarlander-sparse"),
        ("MountainCar", "MountainCar-v0"),
        ("Taxy", "Taxi-v4"),
        ("LunarLander-v17", "LunarLander-v3"),
    ],
)
def test_an_unknown_name_is_told_the_nearest(asked, near):
    with pytest.raises(UserError, match=f"unknown gamename '{asked}'; did you mean '{near}'?"):
        env_spec(asked)
    with pytest.raises(
        UserError, match=r"\? if it is yours: export LIGHTNING_RL_MODULES=its_module$"
    ):
        env_spec(asked)


def test_names_are_there_without_gymnasium_and_torch():
    code = (
        "import sys; import lightning_rl.core.gamenames as g; import lightning_rl.core.config; "
        "print(len(g.GAMES));"
        "assert not {'torch', 'gymnasium', 'pytorch_lightning'} & sys.modules.keys(), "
        "sorted(sys.modules)"
    )
    package = (
        "import types, sys; p = types.ModuleType('lightning_rl'); p.__path__ = "
        "['lightning_rl']; sys.modules['lightning_rl'] = p;"
    )
    done = subprocess.run(
        [sys.executable, "-c", package + code], cwd=ROOT, capture_output=True, text=True
    )
    assert (done.stdout.strip(), done.stderr) == (str(len(GAMES)), "")


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("CartPole-v1", "cartpole", True),
        ("procmaze", "procmaze-4", True),
        ("procmaze-3", "procmaze-4", False),
        ("lunarlander", "beresheet", False),
        ("Taxi-v4", "Taxi-v4", True),
        ("Taxi-v4", "CartPole-v1", False),
    ],
)
def test_two_names_of_one_environment(one, other, same):
    assert same_game(one, other) == same


def test_solved_returns_without_making_the_environment(monkeypatch):
    monkeypatch.setattr(gymnasium, "make", None)
    assert [
        solved_return(name)
        for name in ("lunarlander", "CartPole-v1", "cliff", "panflute-8", "nobody")
    ] == [
        200,
        475,
        -20,
        None,
        None,
    ]


def test_without_a_time_limit_there_is_one_and_a_warning(monkeypatch):
    monkeypatch.setattr("lightning_rl.envs.spec._READ", {})
    with pytest.warns(
        UserWarning,
        match=r"no time limit is known for 'CliffWalkingSlippery-v1': .* cut after 1000 steps",
    ):
        assert env_spec("CliffWalkingSlippery-v1").horizon == DEFAULT_HORIZON
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        env_spec("CliffWalkingSlippery-v1")  # said once


# --- a user's own ---

MODULE = """
import gymnasium, numpy as np

class Walk(gymnasium.Env):
    observation_space = gymnasium.spaces.Discrete(6, start=2)
    action_space = gymnasium.spaces.Discrete(2, start=1)
    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.place = 2
        return self.place, {}
    def step(self, action):
        assert action in (1, 2), action
        self.place += int(action)
        return self.place, 1.0, self.place >= 6, False, {}
"""


def test_a_module_of_the_user_is_imported_and_trained_on(module, tmp_path):
    module(
        "walks_a",
        MODULE + "gymnasium.register('Walk-v0', Walk, max_episode_steps=9, reward_threshold=2.0)",
    )
    spec = typed_spec("walks_a:Walk-v0")
    assert (spec.obs_size, spec.action_size, spec.horizon, spec.solved_return, spec.one_hot) == (
        6,
        2,
        9,
        2.0,
        True,
    )
    for env, right in (
        (make_env("walks_a:Walk-v0"), 2),
        (rollout_env(spec), 1),
    ):  # the actions begin at 1
        assert env.reset(seed=0)[0].tolist() == [1, 0, 0, 0, 0, 0]  # the space begins at 2
        assert env.step(right)[0].tolist() == [0, 0, 1, 0, 0, 0]
    for implementation in ("UDRL", "QL"):
        train_cli(tmp_path, 1, gamename="walks_a:Walk-v0", implementation=implementation)
        assert last(tmp_path, implementation, "walks_a-Walk-v0")["epoch"] == 0
        path = run_dir(tmp_path, "walks_a-Walk-v0", implementation=implementation) / "last.ckpt"
        assert main(["--eval_agent", str(path), "--eval_episodes", "1", "--num_workers", "0"]) == 0


@pytest.mark.usefixtures("register")
def test_a_run_from_python_is_evaluated_on_the_command_line_by_its_module(
    module, tmp_path, monkeypatch, capsys
):
    module(
        "walks_d",
        f"{MODULE}\nfrom lightning_rl.core.gamenames import register_env\nregister_env('zigzag', "
        "Walk, horizon=4)",
    )
    __import__("walks_d")
    path = lightning_rl.train(
        "REINFORCE", "zigzag", logdir=tmp_path, num_workers=0, max_epochs=1
    ).path
    del GAMES["zigzag"], sys.modules["walks_d"]  # as in another process
    words = ["eval", str(path), "--episodes", "1", "--num_workers", "0"]
    assert main(words) == 2
    told = capsys.readouterr().err
    assert (
        "does not fit this version's REINFORCE: unknown gamename 'zigzag'; choose one of: " in told
    )
    assert told.endswith("; if it is yours: export LIGHTNING_RL_MODULES=its_module\n")
    monkeypatch.setenv("LIGHTNING_RL_MODULES", "walks_d")
    assert main(words) == 0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1 / 0", r"importing broken: ZeroDivisionError: division by zero at .*broken.py:1$"),
        ("raise SystemExit(3)", r"importing broken: SystemExit: 3 at .*broken.py:1$"),
        (
            "import nowhere_at_all",
            r"importing broken: ModuleNotFoundError: No module named 'nowhere_at_all' at "
            r".*broken.py:1$",
        ),
        ("", "unknown gamename 'broken:Env-v0'"),
    ],
)
def test_a_module_that_cannot_be_imported_is_one_line(module, text, message):
    module("broken", text)
    with pytest.raises(UserError, match=message):
        typed_spec("broken:Env-v0")


def test_modules_that_are_not_there_or_pythons_own():
    with pytest.raises(
        UserError, match="there is no module 'nowhere'; install it, or add its folder to PYTHONPATH"
    ):
        typed_spec("nowhere:Env-v0")
    with pytest.raises(UserError, match="antigravity is no module that registers environments"):
        typed_spec("antigravity:Env-v0")
    with pytest.raises(UserError, match=r"pip\.__main__ is no module that registers environments"):
        typed_spec("pip.__main__:Env-v0")
    assert not {"antigravity", "pip.__main__"} & sys.modules.keys()


def test_a_class_is_registered_with_what_is_known_of_it(register):
    register(
        "echo",
        Echo,
        horizon=3,
        max_return=2.0,
        solved_return=1.5,
        kwargs={"space": spaces.Box(0, 1, (2,)), "obs": np.ones(2, np.float32)},
    )
    spec, env = env_spec("echo"), make_env("echo")
    assert (spec.obs_size, spec.horizon, spec.max_return, spec.solved_return) == (2, 3, 2.0, 1.5)
    env.reset(seed=0)
    assert [env.step(1)[3] for _ in range(3)] == [False, False, True]
    register("echo", "Pendulum-v1")
    assert (env_spec("echo").obs_size, env_spec("echo").horizon) == (3, 200)
    register("echo", "Pendulum-v1", horizon=5)
    assert env_spec("echo").horizon == 5


def test_a_batched_environment_holds_its_rewards_back(register):
    register("late", CartPole, horizon=3, sparse=True)
    envs = make_envs(env_spec("late"), [1, 2])
    rewards = [envs.step(torch.tensor([0, 1])).reward.tolist() for _ in range(3)]
    assert rewards == [[0, 0], [0, 0], [3, 3]]
    proxy = reward_proxy("late", form="additive_potential", hidden=(4,))
    task = proxy.batch(torch.zeros(1, proxy.net.size), [1], 0.9)
    assert [task.step(torch.tensor([0])).reward.item() for _ in range(3)] == [0, 0, 3]
    register("late", Chain, sparse=True)
    assert "rewards that are not held back" in ModelBased.why_unsupported(env_spec("late"))


def test_a_proxy_starts_where_the_last_registration_does(register):
    for kind in (Chain, CartPole, ContinuousChain):
        register("mine", kind, horizon=3)
        proxy = SyntheticProxy(gamename="mine", hidden=(4,), activation="tanh", horizon=3)
        assert type(proxy.env(torch.zeros(1, proxy.net.size)).real.env) is kind


def test_a_function_may_wrap_and_its_time_limit_is_seen(register):
    register(
        "short",
        lambda: gymnasium.wrappers.TimeLimit(gymnasium.make("CartPole-v1").unwrapped, 17),
        sparse=True,
    )
    assert (env_spec("short").horizon, env_spec("short").sparse) == (17, True)


@pytest.mark.parametrize(
    ("make", "films"),
    [
        (lambda: gymnasium.make("CartPole-v1"), False),
        (lambda **options: gymnasium.make("CartPole-v1", **options), True),
    ],
)
def test_a_function_is_filmed_if_it_takes_a_render_mode(register, make, films):
    register("films", make)
    assert can_film(env_spec("films")) == films
    if films:
        env = make_env("films", render=True)
        env.reset(seed=0)
        assert env.render().ndim == 3


def test_an_environment_in_batched_torch_is_played_as_one(register):
    register("my-chain", Chain, horizon=7, one_hot=True)
    spec, env = env_spec("my-chain"), make_env("my-chain")
    assert isinstance(func_env(spec).env, Chain)
    assert (spec.obs_size, spec.horizon, spec.one_hot) == (3, 7, True)
    assert env.reset(seed=0)[0].sum() == 1


def test_registrations_that_are_refused(register):
    with pytest.raises(
        UserError, match="gamename 'cartpole' is that of an environment of this package"
    ):
        register("cartpole", Echo)
    with pytest.raises(UserError, match="horizon 0: it must be a whole number from 1"):
        register("echo", Echo, horizon=0)
    for name, words in (
        ("procmaze-7", "means a size of this package's procmaze"),
        ("CartPole-v1", "has the form of Gymnasium's ids"),
        ("", "'' cannot be registered"),
        ("a:b", "cannot be registered"),
        ("../up", "cannot be registered"),
        (3, "3 cannot be"),
    ):
        with pytest.raises(UserError, match=words):
            register(name, "Pendulum-v1")
    for env in (Echo(spaces.Discrete(2), 0), None, ""):
        with pytest.raises(
            UserError,
            match="makes no environment; give a Gymnasium id, or a class or function that does",
        ):
            register("echo", env)
    assert "echo" not in GAMES
    register("lost", "NoSuch-v0")
    with pytest.raises(UserError, match="unknown gamename 'NoSuch-v0'"):
        env_spec("lost")


@pytest.mark.parametrize(
    ("fact", "words"),
    [
        ({"horizon": 2.5}, "horizon 2.5: it must be a whole"),
        ({"horizon": "9"}, "horizon '9': it must"),
        ({"horizon": True}, "horizon True: it must"),
        ({"max_return": "a"}, "max_return 'a' is no finite number"),
        ({"max_return": np.nan}, "max_return nan is no finite"),
        ({"max_return": -np.inf}, "max_return -inf is"),
        ({"max_return": 10**400}, "max_return 1000.* is no"),
        ({"max_return": None}, "max_return None is"),
        ({"min_return": np.nan}, "min_return nan is no"),
        ({"min_return": np.inf}, "min_return inf is no"),
        ({"solved_return": "b"}, "solved_return 'b' is"),
        ({"min_return": 3, "max_return": 2}, "min_return 3 is above max_return 2"),
        ({"kwargs": ["a"]}, r"kwargs \['a'\] are no arguments by name"),
        ({"kwargs": {1: 2}}, "are no arguments by name"),
    ],
)
def test_facts_that_are_none_are_refused_at_once(register, fact, words):
    with pytest.raises(UserError, match=rf"^register_env\('echo'\): .*{words}"):
        register("echo", Echo, **fact)
    register("echo", Echo, horizon=np.int64(3), max_return=np.float32(2), min_return=2)


@pytest.mark.parametrize(
    "missing", [["observation_space"], ["action_space"], ["observation_space", "action_space"]]
)
def test_spaces_that_a_class_forgets_are_named(register, missing):
    class Forgetful(Echo):
        def __init__(self):
            super().__init__(spaces.Discrete(2), 0)
            for name in missing:
                delattr(self, name)

    register("forgetful", Forgetful, horizon=2)
    words = rf"^Forgetful \(gamename 'forgetful'\) has no {' and no '.join(missing)}; set in"
    with pytest.raises(UserError, match=words) as told:
        env_spec("forgetful")
    assert all(f"self.{name} = gymnasium.spaces." in str(told.value) for name in missing)


# --- spaces ---

BOX = spaces.Box(-1, 1, (2, 2), np.float32)
GRID = np.array([[0.1, 0.2], [0.3, 0.4]], np.float32)
FLAT = [
    (spaces.Discrete(3), 1, [0, 1, 0]),
    (spaces.Discrete(3, start=-1), np.int64(1), [0, 0, 1]),
    (spaces.MultiDiscrete([2, 3]), np.array([1, 0]), [0, 1, 1, 0, 0]),
    (spaces.MultiDiscrete([2, 2], start=[5, 7]), np.array([6, 7]), [0, 1, 1, 0]),
    (spaces.MultiBinary(3), np.array([1, 0, 1], np.int8), [1, 0, 1]),
    (BOX, GRID, [0.1, 0.2, 0.3, 0.4]),
    (spaces.Tuple((spaces.Discrete(2), spaces.Discrete(3, start=1))), (1, 2), [0, 1, 0, 1, 0]),
    (
        spaces.Dict({"b": spaces.Discrete(2), "a": BOX}),
        {"b": 0, "a": GRID},
        [0.1, 0.2, 0.3, 0.4, 1, 0],
    ),  # in order of the keys
    (spaces.Dict({"a": spaces.Tuple((spaces.MultiBinary(2),))}), {"a": ([0, 1],)}, [0, 1]),
]


@pytest.mark.parametrize(("space", "obs", "expected"), FLAT)
def test_observations_become_vectors(register, space, obs, expected):
    register("echo", Echo, horizon=2, kwargs={"space": space, "obs": obs})
    env = make_env("echo")
    assert env_spec("echo").obs_size == len(expected)
    assert env_spec("echo").one_hot == isinstance(space, spaces.Discrete)
    for seen in (env.reset(seed=0)[0], env.step(0)[0]):
        assert seen in env.observation_space
        assert seen.dtype == np.float32
        np.testing.assert_allclose(seen, expected, rtol=1e-6)


@pytest.mark.parametrize(
    ("space", "obs"),
    [
        (spaces.Discrete(3, start=1), 0),
        (spaces.Discrete(3), 3),
        (spaces.Discrete(3), 1.5),
        (BOX, np.zeros(4)),
        (spaces.MultiDiscrete([2, 2]), [3, 9]),
        (spaces.MultiDiscrete([3, 4]), [5, 0]),
        (spaces.MultiBinary(3), [0, 1]),
        (
            spaces.Dict({"a": spaces.Box(-1, 1, (2,)), "b": spaces.Box(-1, 1, (2,))}),
            {"a": [0, 0], "b": [0, 0, 0]},
        ),
        (spaces.Dict({"a": spaces.Box(-1, 1, (4,))}), {"a": 0.5}),
        (spaces.Tuple((spaces.Discrete(3),)), (3,)),
        (spaces.Dict({"a": spaces.Discrete(3), "b": spaces.Discrete(3)}), {"a": -1, "b": 0}),
        (spaces.Dict({"a": BOX}), {"b": GRID}),
        (spaces.Tuple((BOX,)), 1),
        (spaces.Tuple((spaces.Box(-1, 1, (4,)),)), (0.5,)),
    ],
)
def test_an_observation_that_is_not_in_its_space_is_one_line_with_its_place(register, space, obs):
    register("echo", Echo, horizon=2, kwargs={"space": space, "obs": obs})
    with pytest.raises(
        UserError,
        match=r"reset\(\) gave the observation .*, which is not in .* -- from Echo at "
        r".*test_any_environment",
    ):
        make_env("echo").reset(seed=0)


@pytest.mark.parametrize(
    ("space", "words"),
    [
        (
            spaces.Sequence(spaces.Discrete(2)),
            "is Sequence.*, which no network here takes; those that do: Box, Discrete",
        ),
        (spaces.Text(5), "is Text.*, which no network here takes"),
        (spaces.Discrete(10**6), "are 1,000,000 numbers; networks here take"),
    ],
)
def test_observations_that_networks_cannot_take_are_refused_with_those_that_they_can(
    register, space, words
):
    register("echo", Echo, horizon=2, kwargs={"space": space, "obs": None})
    with pytest.raises(UserError, match=f"the observation.* of echo-v0 {words}"):
        env_spec("echo")


@pytest.mark.parametrize(
    "actions",
    [
        spaces.MultiDiscrete([[3, 2]]),
        spaces.MultiBinary(2),
        spaces.Dict({"a": spaces.Discrete(2)}),
        spaces.Box(-1, 1, (2, 2)),
        spaces.Box(0, 3, (2,), np.int64),
        spaces.Tuple((spaces.Discrete(2),)),
    ],
)
def test_action_spaces_that_no_policy_fits_are_refused_with_those_that_do(register, actions):
    register(
        "echo", Echo, horizon=2, kwargs={"space": spaces.Discrete(2), "obs": 0, "actions": actions}
    )
    with pytest.raises(
        UserError,
        match=r"action space of echo-v0 is .*no policy here fits.*: Discrete .*, Box of shape",
    ):
        env_spec("echo")


@pytest.mark.parametrize("kind", ["synthetic", "reward"])
def test_proxies_of_discrete_observations(kind):
    """Both see the one-hot vector; the reward network's environment still shows Gymnasium's
    number.
    """
    if kind == "synthetic":
        proxy = SyntheticProxy(gamename="FrozenLake-v1", hidden=(4,), activation="tanh", horizon=5)
    else:
        proxy = reward_proxy("FrozenLake-v1", hidden=(4,))
    params = proxy.net.init([torch.Generator().manual_seed(0)])
    obs, reward, *_ = play_one(proxy_env(proxy, params[0]))
    batch = proxy.batch(params, [3], 0.9)
    step = batch.step(torch.tensor([1]))
    assert step.obs.shape == (1, 16)
    assert step.obs.sum() == 1
    assert np.isfinite(reward)
    assert np.asarray(obs).shape == ((16,) if kind == "synthetic" else ())


def play_one(env):
    env.reset(seed=3)
    return env.step(1)


def test_every_batched_environment_has_a_name():
    assert FUNC_ENVS.keys() <= GAMES.keys()
    assert all(isinstance(game, Game) for game in GAMES.values())


def test_arguments_that_have_no_hash_are_no_obstacle(register):
    desc = {"desc": ["SFF", "FHF", "FFG"]}
    register("small-lake", "FrozenLake-v1", kwargs=desc)
    spec = env_spec("small-lake")
    assert {spec: 1}[env_spec("small-lake")] == 1
    register("larger-lake", "FrozenLake-v1", kwargs={"desc": ["SFFF", "FHFF", "FFFG"]})
    assert spec != env_spec("larger-lake")
    assert [env_spec(name).obs_size for name in ("small-lake", "larger-lake", "FrozenLake-v1")] == [
        9,
        12,
        16,
    ]


@pytest.mark.parametrize("size", [5, 10])
def test_images_must_be_bytes_or_the_same_numbers(register, size):
    space = spaces.Box(0, 255, (size, size), np.uint8)
    for value, fits in ((7.0, True), (0.4, False), (300, False)):
        image = np.full((size, size), value)
        register("echo", Echo, horizon=5, kwargs={"space": space, "obs": image})
        env = rollout_env(env_spec("echo"))
        if fits:
            assert (env.reset(seed=0)[0] == value).all()
            assert (env.step(0)[0] == value).all()
            continue
        with pytest.raises(RolloutError, match="whose numbers are no bytes, expected uint8"):
            env.reset(seed=0)
        env.unwrapped.obs = image.astype(np.uint8)
        env.reset(seed=0)
        env.unwrapped.obs = image
        with pytest.raises(RolloutError, match="whose numbers are no bytes, expected uint8"):
            env.step(0)


def test_samples_of_an_environments_spaces_depend_on_its_seed(register):
    class Sampled(Echo):
        def reset(self, *, seed=None, options=None):
            super().reset(seed=seed)
            return self.observation_space.sample(), {"action": self.action_space.sample()}

    space, actions = spaces.Box(-1, 1, (4,)), spaces.Discrete(1000)
    kwargs = {"space": space, "obs": None, "actions": actions}
    register("sampled", Sampled, horizon=5, kwargs=kwargs)
    env = rollout_env(env_spec("sampled"))
    first, other, again = (env.reset(seed=seed) for seed in (3, 4, 3))
    assert (first[0] == again[0]).all()
    assert first[1] == again[1]
    assert (first[0] != other[0]).any()


def test_names_may_be_numpys(tmp_path):
    gamename, method = np.array(["emptyroom22", "QL"])
    run = lightning_rl.train(method, gamename, max_epochs=1, logdir=tmp_path)
    assert lightning_rl.load(run.path).gamename == "emptyroom22"


def test_environments_are_closed_where_episodes_were_played(register):
    closed = []

    class Closing(Echo):
        def close(self):
            closed.append(self)

    space = spaces.Box(-1, 1, (2,))
    register("closing", Closing, horizon=5, kwargs={"space": space, "obs": space.low})
    spec = env_spec("closing")
    closed.clear()  # of the one that was looked at
    player = Player(spec, UniformActions(spec))
    player.play([Request(str(n), n, "uniform") for n in range(3)])
    player.close()
    assert len(closed) == 3
