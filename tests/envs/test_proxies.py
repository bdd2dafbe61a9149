import dataclasses
import hashlib
import os
import pickle
import zipfile

import gymnasium
import numpy as np
import pytest
import torch
from gymnasium.utils.env_checker import check_env
from helpers.proxies import reward_proxy, synthetic_proxy

import lightning_rl
from lightning_rl.core.errors import UserError
from lightning_rl.envs.proxies import SyntheticProxy, read_proxy, save_proxy, shipped
from lightning_rl.envs.proxy_env import load_proxy, proxy_env
from lightning_rl.envs.reward_network import RewardProxy
from lightning_rl.envs.spec import env_spec, plain_env
from lightning_rl.envs.synthetic_dataset import DatasetProxy
from lightning_rl.lab.protocols.models import content_hash

SE = synthetic_proxy(horizon=7, latent_size=2, cap_ends=True)
RN = reward_proxy(form="exclusive_potential")
SCALED = reward_proxy("pendulum", form="additive", scale_states=True)


def params(proxy):
    return proxy.net.init([torch.Generator().manual_seed(5)])[0]


@pytest.fixture
def path(tmp_path):
    save_proxy(tmp_path / "se.pt", SE, params(SE), {"score": 12.5})
    return tmp_path / "se.pt"


KINDS = [
    SE,
    RN,
    SCALED,
    SyntheticProxy(gamename="pendulum", hidden=(8,), activation="relu", horizon=9),
    SyntheticProxy(gamename="emptyroom22", hidden=(8,), activation="relu", horizon=9),
    SyntheticProxy(gamename="lunarlander", hidden=(8,), activation="relu", horizon=9),
    DatasetProxy(gamename="cartpole", num_pairs=3),
    DatasetProxy(gamename="pendulum", num_pairs=2),
]


@pytest.mark.parametrize(
    "proxy", KINDS, ids=lambda proxy: f"{type(proxy).__name__}-{proxy.gamename}"
)
@pytest.mark.filterwarnings("ignore")
def test_files_come_back_as_gymnasium_environments(tmp_path, proxy):
    save_proxy(tmp_path / "p.pt", proxy, params(proxy), {"score": 1.0})
    again, values, about = read_proxy(tmp_path / "p.pt")
    assert again == proxy
    assert torch.equal(values, params(proxy))
    env = lightning_rl.load_proxy(tmp_path / "p.pt", proxy.gamename)
    check_env(env, skip_render_check=True)
    assert env.unwrapped.about == about == {"score": 1.0}
    env.reset(seed=3)
    env.action_space.seed(3)
    over = steps = 0
    while not over:
        _, _, terminated, truncated, _ = env.step(env.action_space.sample())
        over, steps = terminated or truncated, steps + 1
    assert steps <= 200


def test_scaled_states_are_those_of_the_tasks_bounds():
    """Pendulum: cosine, sine, velocity; the mountain car: position, velocity; LunarLander is
    Gymnasium's, and says its own.
    """
    assert SCALED.net.bounds == ((-1.0, -1.0, -8.0), (1.0, 1.0, 8.0))
    low, high = dataclasses.replace(SCALED, gamename="MountainCarContinuous-v0").net.bounds
    assert low == pytest.approx((-1.2, -0.07))
    assert high == pytest.approx((0.6, 0.07))
    low, high = dataclasses.replace(SCALED, gamename="lunarlander").net.bounds
    assert (low[0], high[0], high[-1]) == (-2.5, 2.5, 1.0)
    assert RN.net.bounds is None


def test_a_setting_that_is_off_does_not_change_a_hash():
    """The hash is as it was before networks could read states in other units: rows of
    evaluations are keyed by it.
    """
    proxy = RewardProxy(
        gamename="cliff", hidden=(4,), activation="prelu", form="additive", gamma=0.8
    )
    known = (
        "RN [('activation', 'prelu'), ('form', 'additive'), ('gamename', 'cliff'), ('gamma', "
        "0.8), ('hidden', (4,))]"
    )
    values = torch.arange(3.0)
    as_it_was = hashlib.sha256(known.encode() + values.numpy().tobytes()).hexdigest()[:12]
    assert content_hash(proxy, values) == as_it_was
    assert content_hash(dataclasses.replace(proxy, scale_states=True), values) != as_it_was


def test_the_gymnasium_form_is_the_batched_one(path):
    env = load_proxy(path)
    obs, _ = env.reset(seed=1)
    batch = SE.env(params(SE).unsqueeze(0))
    after, reward, _, _, info = env.step(1)
    step = batch.step(torch.from_numpy(obs), torch.tensor(1), torch.empty(0))
    np.testing.assert_allclose(after, step.obs.numpy(), rtol=1e-6)
    assert reward == pytest.approx(step.reward.item())
    assert info["continuation"] == pytest.approx(step.continuation.item())


@pytest.mark.parametrize("cap_ends", [True, False])
def test_the_cap_is_a_termination_or_not(cap_ends):
    env = proxy_env(dataclasses.replace(SE, horizon=1, cap_ends=cap_ends), params(SE))
    env.reset(seed=0)
    assert env.step(0)[2:4] == (cap_ends, not cap_ends)


def test_learned_rewards_keep_the_real_one(tmp_path):
    save_proxy(tmp_path / "rn.pt", RN, params(RN), {})
    env = load_proxy(tmp_path / "rn.pt")
    before, _ = env.reset(seed=1)
    after, reward, _, _, info = env.step(0)
    phi = RN.net.net.module(params(RN))
    assert reward == pytest.approx(
        (0.9 * phi(torch.from_numpy(after)) - phi(torch.from_numpy(before))).item(), abs=1e-6
    )
    assert info["real_reward"] == 1.0


def test_learned_rewards_of_a_sparse_task_keep_it_sparse():
    """As agents in training meet it: nothing until the end, then the sum of the dense rewards."""
    native, envs = {"hidden": (1,), "activation": "relu", "form": "native", "gamma": 0.9}, []
    for name in ("lunarlander-sparse", "lunarlander"):
        proxy = RewardProxy(gamename=name, **native)
        envs.append(proxy_env(proxy, torch.zeros(proxy.net.size)))
    for env in envs:
        env.reset(seed=0)
    paid = [[float(env.step(0)[1])] for env in envs]
    over = False
    while not over:
        for env, rewards in zip(envs, paid, strict=True):
            _, reward, terminated, truncated, info = env.step(0)
            rewards.append(float(reward))
            over = terminated or truncated
            assert info["real_reward"] == pytest.approx(reward)
    sparse, dense = paid
    assert not any(sparse[:-1])
    assert sparse[-1] == pytest.approx(sum(dense), rel=1e-4)


def test_a_proxy_of_another_task_is_refused(path):
    with pytest.raises(
        UserError,
        match="is of gamename 'cartpole-v0', not of 'acrobot'; use a proxy of the same task",
    ):
        load_proxy(path, "acrobot")


class Bomb:
    def __reduce__(self):
        return (exec, ("raise SystemExit('run!')",))


def test_hostile_files_are_refused_unrun(tmp_path):
    torch.save({"format": "lightning_rl proxy 1", "params": Bomb()}, tmp_path / "bomb.pt")
    with pytest.raises(
        UserError, match="holds objects other than plain data and was refused; none of it was run"
    ):
        load_proxy(tmp_path / "bomb.pt")
    (tmp_path / "pickle.pt").write_bytes(pickle.dumps(Bomb()))
    with pytest.raises(UserError, match="is truncated or not a proxy file"):
        load_proxy(tmp_path / "pickle.pt")


def test_damaged_and_foreign_files_are_refused(path, tmp_path):
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(UserError, match="is truncated or not a proxy file"):
        load_proxy(path)
    spoiled = bytearray(whole)
    place = whole.index(np.asarray(params(SE))[:4].tobytes())
    spoiled[place] ^= 255
    path.write_bytes(bytes(spoiled))
    with pytest.raises(UserError, match="damaged"):
        load_proxy(path)
    with pytest.raises(
        UserError, match=r"proxy file '.*nothing.pt' does not exist; shipped ones are"
    ):
        load_proxy(tmp_path / "nothing.pt")
    torch.save({"state_dict": {}}, path)
    with pytest.raises(
        UserError, match="is not a proxy file of this version: top level: lacks format"
    ):
        load_proxy(path)


@pytest.mark.parametrize(
    "change", [lambda p: p[:-1], lambda p: p * float("nan"), lambda p: p.double()]
)
def test_parameters_that_do_not_fit_are_refused(path, change):
    content = torch.load(path, weights_only=True)
    torch.save({**content, "params": change(content["params"])}, path)
    with pytest.raises(
        UserError,
        match=r"params: .*(float32 .281., expected float32 .282.|NaN or infinite|float64)",
    ):
        load_proxy(path)


SETTINGS = [
    (
        "hidden",
        [100_000_000],
        "each a whole number from 1 to 65536",
    ),
    ("hidden", [65536] * 64, "params: float32 [282], expected float32 [1082"),
    ("hidden", "x", "settings.hidden: 'x', expected a list"),
    ("hidden", [0], "settings.hidden: a list of 1, expected a list"),
    ("activation", "x", "settings.activation: 'x', expected"),
    ("horizon", 0, "settings.horizon: 0, expected a whole number from 1"),
    ("cap_ends", "x", "settings.cap_ends: 'x', expected True or False"),
    ("latent_size", -1, "settings.latent_size: -1"),
    ("gamename", 3, "settings.gamename: 3, expected text"),
    ("gamename", "nothing", "unknown gamename 'nothing'"),
    ("more", 1, "settings: has 'more', which does not belong there"),
]


@pytest.mark.parametrize(("key", "value", "named"), SETTINGS)
def test_settings_that_cannot_be_are_named(path, key, value, named):
    content = torch.load(path, weights_only=True)
    torch.save({**content, "settings": {**content["settings"], key: value}}, path)
    with pytest.raises(UserError) as refusal:
        load_proxy(path)
    assert named in str(refusal.value)
    assert f"'{path}'" in str(refusal.value)
    assert "\n" not in str(refusal.value)


PARTS = [
    ({"about": None}, "about: None, expected a dict"),
    ({"about": {"score": "x"}}, "about.score: 'x'"),
    ({"about": {"seed": "1"}}, "about.seed: '1', expected a whole number"),
    ({"about": {"curve": [0.0, "1"]}}, "about.curve: a list of 2, expected"),
    ({"params": torch.zeros(1).expand(282)}, "params: float32 [282] of 4 stored bytes"),
    ({"params": torch.zeros(282).to_sparse()}, "params: a tensor of another kind"),
    ({"params": torch.zeros(282, device="meta")}, "params: a tensor of another kind"),
    ({"kind": "x"}, "kind: 'x', expected one of: SE, RN, SD"),
    ({"settings": [1]}, "settings: a list of 1, expected a dict"),
    (
        {"format": "lightning_rl proxy 2"},
        "format: 'lightning_rl proxy 2', expected one of: lightning_rl proxy 1",
    ),
]


@pytest.mark.parametrize(("parts", "named"), PARTS)
def test_contents_that_cannot_be_are_named(path, parts, named):
    torch.save({**torch.load(path, weights_only=True), **parts}, path)
    with pytest.raises(UserError) as refusal:
        load_proxy(path)
    assert named in str(refusal.value)


def test_a_compressed_archive_that_is_larger_than_its_file_is_refused_unread(path):
    parts = {
        info.filename: zipfile.ZipFile(path).read(info) for info in zipfile.ZipFile(path).infolist()
    }
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as bomb:
        for name, content in parts.items():
            bomb.writestr(name, content)
        bomb.writestr("archive/data/99", bytes(10_000_000))
    with pytest.raises(
        UserError, match=r"is damaged \(its parts have 10,\d+,\d+ bytes, the file \d+,\d+\)"
    ):
        load_proxy(path)


def test_a_pipe_is_no_proxy_file(tmp_path):
    os.mkfifo(tmp_path / "pipe.pt")
    with pytest.raises(UserError, match="is not a file; shipped ones are"):
        load_proxy(tmp_path / "pipe.pt")


@pytest.mark.parametrize("name", ["SE-CartPole-v0", "RN-CartPole-v0"])
def test_a_proxy_of_an_old_task_is_no_reason_to_warn(name, recwarn):
    load_proxy(name).reset(seed=0)
    gymnasium.make(f"lightning_rl/{name}").reset(seed=0)
    assert not recwarn.list


@pytest.mark.parametrize("name", shipped())
def test_shipped_proxies_are_registered_and_small(name):
    env = gymnasium.make(f"lightning_rl/{name}")
    real = plain_env(env_spec(load_proxy(name).unwrapped.about["gamename"]))
    assert env.action_space == real.action_space
    assert env.observation_space.shape == real.observation_space.shape
    env.reset(seed=0)
    env.step(env.action_space.sample())
    about = env.unwrapped.about
    assert about["curve"]
    assert about["config"]
