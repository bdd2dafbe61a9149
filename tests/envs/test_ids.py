"""Gymnasium's ids of our environments and proxies: made by name, accepted by the checkers,
copied, drawn, and fast.
"""

import copy
import pickle
import sys
import warnings

import gymnasium
import numpy as np
import pytest
import torch
from gymnasium.utils.env_checker import check_env
from torch.utils._python_dispatch import TorchDispatchMode

import lightning_rl.gym  # noqa: F401
from lightning_rl.core.errors import UserError
from lightning_rl.envs.func_env import FuncEnv
from lightning_rl.envs.proxies import proxy_path, read_proxy
from lightning_rl.envs.proxy_env import load_proxy, proxy_env
from lightning_rl.envs.reward_network import RewardProxy

IDS = sorted(name for name in gymnasium.registry if name.startswith("lightning_rl/"))
FIRST = [
    name
    for name in IDS
    if not any(f"-{number}-v" in name for number in range(2, 6))  # of five proxies of a task
    and "TakeCover" not in name  # has a test of its own
    and "Square" not in name  # an image without an axis of colours, which Stable-Baselines3 minds
]
SYNTHETIC = [name for name in FIRST if "/SE-" in name or "/SD-" in name]
# what both checkers recommend and Pendulum, with a box of [-2, 2], does not have
TASKS_OWN_BOX = "symmetric and normalized"


def test_every_environment_and_proxy_has_one():
    assert {
        f"lightning_rl/{name}-v0" for name in ("ProcMaze", "cliff", "bandit10", "SE-CartPole")
    } <= set(IDS)
    assert len(IDS) == 81


def played(env, steps=5):
    """Observations and rewards of an episode's first steps."""
    env.action_space.seed(3)
    obs, rewards = [env.reset(seed=3)[0]], []
    for _ in range(steps):
        seen, reward, terminated, truncated, _ = env.step(env.action_space.sample())
        obs.append(seen)
        rewards.append(reward)
        if terminated or truncated:
            break
    return np.stack(obs), rewards


@pytest.mark.parametrize("name", FIRST)
def test_checkers_have_nothing_to_say(name):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", message=f".*{TASKS_OWN_BOX}")
        warnings.filterwarnings("ignore", message="builtin type .* has no __module__")  # of Box2D
        check_env(gymnasium.make(name).unwrapped)
        sb3 = pytest.importorskip("stable_baselines3.common.env_checker")
        sb3.check_env(gymnasium.make(name).unwrapped)


@pytest.mark.parametrize("name", FIRST)
def test_copies_of_any_kind_play_the_same(name):
    env = gymnasium.make(name)
    copies = [env.spec.make(), gymnasium.make(env.spec), gymnasium.make(f"lightning_rl.gym:{name}")]
    copies += [pickle.loads(pickle.dumps(env)), copy.deepcopy(env)]
    obs, rewards = played(env)
    for other in copies:
        again, paid = played(other)
        np.testing.assert_array_equal(again, obs)
        assert paid == rewards


@pytest.mark.parametrize("name", FIRST)
def test_it_is_drawn_or_refuses_in_one_line(name):
    if "bandit" in name or "Gamble" in name:
        with pytest.raises(
            UserError,
            match="render_mode 'rgb_array': this environment does not draw so; it gives no "
            "pictures",
        ):
            gymnasium.make(name, render_mode="rgb_array")
        return
    env = gymnasium.make(name, render_mode="rgb_array")
    env.reset(seed=0)
    first = env.render()
    assert (first.dtype, first.ndim, first.shape[2]) == (np.uint8, 3, 3)
    if "/SE-" in name:
        env.reset(seed=1)
        assert not np.array_equal(first, env.render())


def test_pictures_that_there_are_none_of_are_refused():
    for name in ("SE-CartPole-v0", "SD-CartPole-v1", "RN-Cliff-v0"):
        with pytest.raises(
            UserError,
            match="render_mode 'human': this environment does not draw so; choose one of: "
            "rgb_array",
        ):
            load_proxy(name, render_mode="human")


def test_without_vizdoom_one_line_says_how_to_install_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "vizdoom", None)
    with pytest.raises(
        UserError, match=r"^TakeCover needs vizdoom: pip install 'lightning_rl\[doom\]'$"
    ):
        gymnasium.make("lightning_rl/TakeCover-v0")


@pytest.mark.parametrize("name", SYNTHETIC)
def test_alone_in_numpy_it_is_the_batch_of_one(name):
    proxy, params, _ = read_proxy(proxy_path(name.removeprefix("lightning_rl/")))
    assert not isinstance(proxy, RewardProxy)
    env, batch, rng = (
        proxy_env(proxy, params),
        proxy.env(params.unsqueeze(0)),
        np.random.default_rng(4),
    )
    assert isinstance(batch, FuncEnv)
    obs, _ = env.reset(seed=4)
    state = batch.reset(torch.from_numpy(rng.random(batch.reset_noise_size, dtype=np.float32)))
    np.testing.assert_allclose(obs, batch.observe(state), rtol=1e-5, atol=1e-5)
    env.action_space.seed(4)
    for _ in range(4):
        action = env.action_space.sample()
        step = batch.step(state, torch.as_tensor(env._acted(action)), torch.empty(0))
        obs, reward, *_ = env.step(action)
        state = step.state
        np.testing.assert_allclose(obs, step.obs, rtol=1e-4, atol=1e-4)
        assert reward == pytest.approx(step.reward.item(), rel=1e-4, abs=1e-5)


class Operations(TorchDispatchMode):
    """Counts what PyTorch computes inside of it."""

    def __init__(self):
        super().__init__()
        self.count = 0

    def __torch_dispatch__(self, operation, types, args=(), kwargs=None):
        self.count += 1
        return operation(*args, **(kwargs or {}))


def work_of(call):
    """Operations of PyTorch and calls of Python in a call."""
    calls = []
    with Operations() as operations:
        call()
    sys.setprofile(lambda frame, event, function: calls.append(event))
    call()
    sys.setprofile(None)
    return operations.count, calls.count("call") + calls.count("c_call")


@pytest.mark.parametrize(
    "name", ["SE-CartPole-v0", "SE-Suite-Pendulum-v1", "SD-CartPole-v1", "RN-CartPole-v0"]
)
def test_a_step_of_a_proxy_is_hardly_more_work_than_one_of_the_task(name):
    # counted, as seconds depend on what else the machine does; in PyTorch a step was 20 times
    # as long as the task's
    task = gymnasium.make("CartPole-v1", max_episode_steps=10**9)
    proxy = gymnasium.make(f"lightning_rl/{name}")
    for env in (task, proxy):
        env.reset(seed=0)
    _, calls = work_of(lambda: task.step(0))
    action = proxy.action_space.sample()
    of_step = work_of(lambda: proxy.step(action))
    of_reset = work_of(proxy.reset)
    assert of_step[0] == 0
    assert of_step[1] < 4 * calls
    assert of_reset[0] < 15  # the initial state of a network's noise
    assert of_reset[1] < 4 * calls


@pytest.mark.parametrize(
    "name", ["lightning_rl/SE-CartPole-v0", "lightning_rl/cliff-v0", "lightning_rl/RN-CartPole-v0"]
)
def test_what_is_no_action_or_seed_is_one_line(name):
    env = gymnasium.make(name).unwrapped
    with pytest.raises(UserError, match=r"call reset\(\) first"):
        env.step(0)
    env.reset(seed=0)
    for action in ("x", 7, None, np.zeros(3), 0.5):
        with pytest.raises(UserError, match=r"action .*: it must be one of Discrete"):
            env.step(action)
    for asked, words in (
        ({"seed": "x"}, "seed 'x': it must be a whole number"),
        ({"options": 3}, "options 3: give a dict"),
    ):
        with pytest.raises(UserError, match=words):
            env.reset(**asked)
