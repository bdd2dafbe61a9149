"""Environments of synthetic-gymnax, of checkpoints as that package has them."""

import os
import pickle
import sys
import types

import numpy as np
import pytest

import lightning_rl
from lightning_rl.core.errors import UserError
from lightning_rl.envs.league import CHECKPOINTS
from lightning_rl.lab.protocols.models import find_models

START = {"CartPole-v1": [0.1, 0.2, 0.3, 0.4], "Pendulum-v1": [0.6, 0.8, 1.5]}


@pytest.fixture
def package(tmp_path, monkeypatch):
    """The package, which cannot be imported."""
    (tmp_path / "synthetic_gymnax").mkdir()
    (tmp_path / "synthetic_gymnax/__init__.py").write_text("raise RuntimeError('imported')\n")
    monkeypatch.syspath_prepend(tmp_path)
    return tmp_path / "synthetic_gymnax"


def write(package, name, content):
    path = package / "checkpoints" / CHECKPOINTS[name][0] / "checkpoint.pkl"
    path.parent.mkdir(parents=True)
    path.write_bytes(pickle.dumps(content))


def frozen(monkeypatch, nets):
    """Networks that are pickled as JAX and Flax do it, which are not installed."""

    def stand_in(module, name, thing):
        thing.__module__, thing.__name__, thing.__qualname__ = module, name, name
        parts = module.split(".")
        for end in range(1, len(parts)):
            parent = ".".join(parts[:end])
            if parent not in sys.modules:
                monkeypatch.setitem(sys.modules, parent, types.ModuleType(parent))
        holder = types.ModuleType(module)
        setattr(holder, name, thing)
        monkeypatch.setitem(sys.modules, module, holder)
        return thing

    class Frozen(dict):
        def __reduce__(self):
            return type(self), (dict(self),)

    frozen_dict = stand_in("flax.core.frozen_dict", "FrozenDict", Frozen)
    rebuild = stand_in("jax._src.array", "_reconstruct_array", lambda *_: None)
    numpy_rebuild = stand_in("numpy.core.multiarray", "_reconstruct", lambda *_: None)

    class Array:
        def __init__(self, values):
            self.values = np.asarray(values, np.float32)

        def __reduce__(self):
            _, args, state = self.values.__reduce__()
            return rebuild, (numpy_rebuild, args, state, {"weak_type": False})

    def packed(net):
        if isinstance(net, dict):
            return {name: packed(part) for name, part in net.items()}
        return Array(net)

    return frozen_dict(params=packed(nets))


def layers(*pairs):
    return {f"Dense_{k}": {"kernel": w, "bias": b} for k, (w, b) in enumerate(pairs)}


def networks(name, action_size):
    """A start state that is always the same, and any reward of [obs, action]."""
    size, rng = len(START[name]), np.random.default_rng(3)
    first = rng.normal(size=(size + action_size, 5)), rng.normal(size=5)
    last = rng.normal(size=(5, 1)), [0.25]
    start = layers((np.ones((size, 5)), np.zeros(5)), (np.zeros((5, size)), START[name]))
    return {"reward": layers(first, last), "initial_state": start}


@pytest.mark.parametrize(
    ("name", "action", "seen"),
    [("CartPole-v1", 1, [0, 1]), ("Pendulum-v1", np.array([1.5], np.float32), [1.5])],
)
def test_an_episode_is_one_step_that_pays_what_the_network_says(
    name, action, seen, package, monkeypatch
):
    nets = networks(name, len(seen))
    write(package, name, frozen(monkeypatch, nets))
    env = lightning_rl.load_proxy(f"synthetic-gymnax:{name}")
    np.testing.assert_allclose(env.reset(seed=1)[0], START[name], rtol=1e-6)
    _, reward, terminated, _, info = env.step(action)
    assert (terminated, info["continuation"]) == (True, 0)
    (w0, b0), (w1, b1) = (layer.values() for layer in nets["reward"].values())
    expected = np.maximum([*START[name], *seen] @ w0 + b0, 0) @ w1 + b1
    assert reward == pytest.approx(expected[0], rel=1e-5)
    (model,) = find_models([f"synthetic-gymnax:{name}"])
    assert model.about()["trained_on"] == "synthetic-gymnax"


class Evil:
    def __reduce__(self):
        return os.mkdir, ("evil",)


def test_what_is_no_such_environment_is_one_line(package, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    write(package, "CartPole-v1", {"params": Evil()})
    flat = networks("Pendulum-v1", 1)
    flat["reward"]["Dense_0"]["bias"][0] = np.nan
    write(package, "Pendulum-v1", frozen(monkeypatch, flat))
    wide = {**START, "humanoidstandup": np.zeros(244)}
    monkeypatch.setattr(f"{__name__}.START", wide)
    write(package, "humanoidstandup", frozen(monkeypatch, networks("humanoidstandup", 17)))
    for name, words in (
        ("CartPole-v1", "it names posix.mkdir"),
        ("Pendulum-v1", "reward, Dense_0, bias is not finite"),
        ("Pendulum-v2", "did you mean 'Pendulum-v1'"),
        ("humanoidstandup", "244 observations, 'HumanoidStandup-v5' 348"),
    ):
        with pytest.raises(UserError, match=words):
            lightning_rl.load_proxy(f"synthetic-gymnax:{name}")
    with pytest.raises(UserError, match="of gamename 'cartpole', not of 'pendulum'"):
        lightning_rl.load_proxy("synthetic-gymnax:CartPole-v1", "pendulum")
    assert not (tmp_path / "evil").exists()
    monkeypatch.undo()
    with pytest.raises(UserError, match=r"synthetic_gymnax: pip install 'lightning_rl\[league\]'"):
        lightning_rl.load_proxy("synthetic-gymnax:CartPole-v1")
