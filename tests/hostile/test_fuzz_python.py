"""Hostile calls from Python: every public function and method either does its work or raises a
UserError of one line.

The calls are made from the signatures: an ordinary argument for each parameter, of which one to
three are replaced by anything. Only the training and the playing of whole evaluations are stubbed.
"""

import dataclasses
import inspect
import math
import shutil
from fractions import Fraction
from pathlib import Path

import gymnasium
import numpy as np
import pytest
import torch
from helpers.budgets import tiny_settings
from helpers.toys import make_episode
from hostile.test_fuzz_cli import TEXTS, contents, time_limit
from hypothesis import event, given
from hypothesis import strategies as st
from pytorch_lightning.callbacks import EarlyStopping
from pytorch_lightning.loggers import CSVLogger

import lightning_rl
from lightning_rl.core import gamenames
from lightning_rl.core.errors import UserError
from lightning_rl.core.schema import MethodConfig
from lightning_rl.methods.base import Method
from lightning_rl.run import footprint


class Odd:
    """Whatever is asked of it, it raises."""

    def __getattr__(self, name):
        raise RuntimeError("odd")

    def __repr__(self):
        return "odd\x1b[31m"


NUMBERS = (
    *(
        0,
        1,
        -1,
        2,
        7,
        100,
        10**6,
        2**31,
        2**64,
        10**400,
        -(10**30),
        True,
        False,
        0.5,
        -0.5,
        1e-320,
        1e308,
        math.nan,
        math.inf,
    ),
    *(
        np.int8(3),
        np.uint64(2**63),
        np.float16(0.5),
        np.float64(math.nan),
        np.longdouble(1.5),
        np.bool_(True),
    ),
    *(1 + 2j, Fraction(1, 3), np.datetime64("2026-01-01"), np.timedelta64(1, "s")),
)
ARRAYS = (
    *(np.zeros(shape) for shape in (0, 1, 2, 3, 4, 5, 8, (2, 2), (1, 4), (4, 1), (2, 4))),
    *(
        np.ones(4, kind)
        for kind in (np.float16, np.float32, np.int64, bool, complex, object, "U3", "S2", "M8[s]")
    ),
    *(
        np.ones(8, np.float32)[::-2],
        np.full(4, math.nan),
        np.full(4, 1e300),
        np.array(1.0),
        np.array(["a", "b", "c", "d"]),
    ),
    *(
        torch.zeros(4),
        torch.zeros(4, requires_grad=True),
        torch.zeros(2, 2),
        torch.tensor(1),
        torch.zeros(4, device="meta"),
    ),
    *(torch.zeros(4, dtype=torch.bfloat16), torch.zeros(4).to_sparse()),
)
OBJECTS = (
    *(
        None,
        ...,
        NotImplemented,
        [],
        {},
        (),
        set(),
        b"",
        b"x",
        bytearray(4),
        range(4),
        slice(1),
        iter([]),
        object(),
        Odd(),
        Odd,
    ),
    *(
        [1, 2, 3, 4],
        [1.0] * 4,
        (0.0,) * 4,
        [[1], [2, 3]],
        ["1"] * 4,
        {"return": 1},
        {"return": "x"},
        {"return": None},
        {1: 2},
    ),
    *(
        {"return": math.nan},
        {"return": 1e300, "horizon": -1},
        {"advantage": np.ones(3)},
        {"x": {}},
        {"hidden": [8, 8]},
    ),
    *(
        len,
        print,
        lambda *_: None,
        type,
        int,
        Exception(),
        Path(),
        Path("x" * 300),
        Path("/dev/null"),
        Path("/dev/zero"),
    ),
    *(
        gymnasium.spaces.Discrete(3),
        gymnasium.spaces.Box(-1, 1, (2,)),
        gymnasium.Env(),
        torch.nn.Linear(2, 2),
        CSVLogger("x"),
    ),
    *(
        EarlyStopping("x"),
        math,
        lightning_rl,
        np.random.default_rng(0),
        torch.device("cpu"),
        float,
        "cartpole",
        "RCP-A",
    ),
)


def one_of(values):
    """One of these, whatever hypothesis would make of comparing them."""
    return st.integers(0, len(values) - 1).map(values.__getitem__)


anything = st.one_of(
    one_of(NUMBERS),
    one_of(ARRAYS),
    one_of(OBJECTS),
    one_of(TEXTS),
    st.text(max_size=9),
    st.integers(),
    st.floats(),
)
NO_CALLS = (
    "Run",
    "ModelBased",
    "PolicyGradient",
    "Command",
    "Weighting",
    "Target",
    "Episode",
)  # made by calls, and bases of methods
EPISODE = [
    field
    for field in dataclasses.fields(lightning_rl.Episode)
    if field.name not in ("command", "request", "policy_version")  # which are not read
]
METHODS = [
    name
    for name in lightning_rl.__all__
    if name[0].isupper() and name not in ("LoadedAgent", *NO_CALLS)
]
TRAINED = {"QL": "cliff", "SARSA": "cliff", "TD3": "pendulum"}


@pytest.fixture(scope="module")
def stage(tmp_path_factory):
    """A folder of the caller's, one trained agent, and what would take long stubbed."""
    root, patch = tmp_path_factory.mktemp("python"), pytest.MonkeyPatch()
    patch.chdir(root)
    run = lightning_rl.train(
        "UDRL",
        "cartpole",
        logdir=root / "exp",
        num_workers=0,
        max_epochs=1,
        **tiny_settings("UDRL"),
    )
    (root / "mine.txt").write_text("mine")
    patch.setattr("pytorch_lightning.Trainer.fit", lambda *_, **__: None)
    patch.setattr(
        "lightning_rl.lab.evaluate.play",
        lambda method, asked, *_: [[make_episode([1.0, 2.0])] for _ in asked],
    )
    patch.setattr(footprint, "memory", lambda: 5 * 10**8)
    patch.setattr(gamenames, "GAMES", gamenames.GAMES)
    yield root, run
    patch.undo()


def calls(root, run):
    """Every public function and method: what to call, and an ordinary argument for each
    parameter.
    """
    agent = lightning_rl.load(run.path)
    env = lightning_rl.make_env("cartpole")
    proxy = lightning_rl.load_proxy("SE-CartPole-v0")
    obs, _ = env.reset(seed=0)
    proxy.reset(seed=0)
    tiny = tiny_settings("UDRL")
    train = {
        "implementation": "UDRL",
        "gamename": "cartpole",
        "logdir": root / "new",
        "num_workers": 0,
        "max_epochs": 1,
        **tiny,
    }
    train |= {
        "callbacks": (),
        "logger": False,
        "networks": None,
        "preset": None,
        "exp_name": "a",
        "seed": 1,
        "num_seeds": 1,
    }
    train |= {
        "accelerator": "cpu",
        "checkpoint": True,
        "executor": "serial",
        "ray_address": None,
        "recording_epoch_interval": -1,
    }
    train |= {
        "reload": None,
        "resume": False,
        "config": {},
        "stop_return": None,
        "stop_evaluations": 1,
        "dataset": None,
    }
    episode = {field.name: getattr(make_episode([1.0]), field.name) for field in EPISODE}
    register = {
        "gamename": "warehouse",
        "env": "CartPole-v1",
        "horizon": 9,
        "max_return": 9.0,
        "min_return": 0.0,
    }
    register |= {"solved_return": 8.0, "one_hot": False, "sparse": False, "kwargs": None}
    made = [
        ("train", lightning_rl.train, train),
        ("load", lightning_rl.load, {"path": run.path, "networks": None}),
        (
            "load_proxy",
            lightning_rl.load_proxy,
            ordinary(lightning_rl.load_proxy, "SE-CartPole-v0"),
        ),
        ("make_env", lightning_rl.make_env, {"game": "cartpole", "render": False}),
        (
            "evaluate",
            lightning_rl.evaluate,
            {"agent": run.path, "episodes": 2, "command": None, "num_workers": 0},
        ),
        ("register_env", lightning_rl.register_env, register),
        ("register_method", lightning_rl.register_method, {"configs": {"MINE": {"about": "mine"}}}),
        (
            "register_agent",
            lightning_rl.register_agent,
            {"name": "MINE", "config": MethodConfig, "configs": {"MINE": {}}},
        ),
        ("register_command", lightning_rl.register_command, {"name": "MINE"}),
        ("register_weighting", lightning_rl.register_weighting, {"name": "MINE"}),
        ("register_target", lightning_rl.register_target, {"name": "MINE"}),
        ("LoadedAgent", lightning_rl.LoadedAgent, {"method": run.method}),
        ("agent.reset", agent.reset, {"command": None, "seed": 0, "greedy": None}),
        ("agent.act", agent.act, {"obs": obs, "reward": 1.0}),
        ("env.reset", env.reset, {"seed": 0, "options": None}),
        ("env.step", env.step, {"action": 0}),
        ("proxy.reset", proxy.reset, {"seed": 0, "options": None}),
        ("proxy.step", proxy.step, {"action": 0}),
        ("rollouts", run.method.rollouts, {"num_workers": 0, "dataset": None}),
        ("load_dataset", lightning_rl.load_dataset, {"where": run.path, "gamename": "cartpole"}),
        ("episodes", learned_from, episode),
    ]
    for name in METHODS:
        made.append(
            (
                name,
                getattr(lightning_rl, name),
                {"gamename": TRAINED.get(name, "cartpole"), "seed": 0},
            )
        )
    return made


def learned_from(**values):
    lightning_rl.load_dataset([lightning_rl.Episode(**values)], "cartpole")


def ordinary(function, first):
    """An argument for each parameter of a function: its default, or ``first``."""
    parameters = inspect.signature(function).parameters.values()
    named = [
        each for each in parameters if each.kind not in (each.VAR_POSITIONAL, each.VAR_KEYWORD)
    ]
    return {each.name: first if each.default is each.empty else each.default for each in named}


def test_every_public_name_is_called(stage):
    names = {name for name, _, _ in calls(*stage)}
    assert {name for name in lightning_rl.__all__ if not name.startswith("__")} <= {
        *names,
        *NO_CALLS,
    }
    assert all(issubclass(getattr(lightning_rl, name), Method) for name in METHODS)


@given(data=st.data())
def test_calls_take_whatever_is_given(stage, data):
    root, run = stage
    name, function, arguments = data.draw(st.sampled_from(calls(root, run)), label="call")
    known = (
        [*arguments, *(field.name for field in dataclasses.fields(function.Config))]
        if name in METHODS
        else list(arguments)
    )
    changed = data.draw(st.lists(st.sampled_from(known), min_size=1, max_size=3, unique=True))
    arguments = {
        **arguments,
        **{parameter: data.draw(anything, label=parameter) for parameter in changed},
    }
    games, before, said = dict(gamenames.GAMES), contents(root / "exp"), ""
    try:
        with time_limit():
            function(**arguments)
    except UserError as error:
        said = str(error)
    except (
        TypeError,
        RuntimeError,
    ) as error:  # Python's own, of a keyword that there is not; torch's, of what no machine has
        if not any(
            words in str(error)
            for words in ("unexpected keyword argument", "can't allocate memory")
        ):
            raise
    finally:
        gamenames.GAMES.clear()
        gamenames.GAMES.update(games)
        shutil.rmtree(root / "new", ignore_errors=True)
    event(f"{name}: {'refused' if said else 'done'}")
    assert said == "" or said.isprintable()
    assert len(said) < 2100
    assert contents(root / "exp") == before
    assert (root / "mine.txt").read_text() == "mine"
