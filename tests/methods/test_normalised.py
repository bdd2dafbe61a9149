"""Observations in standard deviations of those collected so far: the key ``normalise_obs``."""

import numpy as np
import pytest
import torch
from helpers.budgets import tiny_settings
from helpers.methods import build
from helpers.runs import last, run_cli, train_cli
from helpers.toys import make_episode

import lightning_rl
from lightning_rl.core.contents import MismatchError
from lightning_rl.core.errors import UserError
from lightning_rl.functional.moments import merged
from lightning_rl.methods.restoring import load_state
from lightning_rl.nets.normalised import ObsNormaliser


def test_moments_of_pieces_are_those_of_all_rows():
    rows = 1e6 + np.random.default_rng(0).normal(size=(50, 3)) * [1e-2, 1.0, 0.0]
    moments = torch.zeros(()), torch.zeros(3).double(), torch.ones(3).double()
    for piece in np.split(rows, [1, 2, 30]):
        moments = merged(moments, torch.from_numpy(piece))
    count, mean, variance = moments
    assert count == 50
    np.testing.assert_allclose(mean, rows.mean(0), rtol=1e-12)
    np.testing.assert_allclose(variance, rows.var(0), rtol=1e-4, atol=1e-12)


def test_what_a_network_sees():
    normaliser = ObsNormaliser(2)
    obs = torch.tensor([[3.0, 5.0], [7.0, 5.0], [500.0, 5.0]])
    assert torch.equal(normaliser(obs[:2]), obs[:2])  # nothing was seen, nothing is changed
    normaliser.see(obs[:2])
    expected = torch.tensor([[-1.0, 0.0], [1.0, 0.0], [10.0, 0.0]])
    torch.testing.assert_close(normaliser(obs), expected)
    assert np.array_equal(normaliser.frozen()(obs.numpy()), normaliser(obs).numpy())


@pytest.mark.parametrize("name", ["AAC", "RCP-R"])
def test_runs_resume_exactly_with_any_workers(name, tmp_path):
    run = {"implementation": name, "gamename": "pendulum", "normalise_obs": True}
    if name == "RCP-R":
        run["num_held_out_episodes_per_iter"] = 1
    for folder, stops, workers in (("once", "3", 1), ("twice", "23", 0)):
        for epochs in stops:
            flags = ("--resume", "--max_epochs", epochs, "--num_workers", str(workers))
            assert run_cli(tmp_path / folder, *flags, **run) == 0
    once, twice = (
        last(tmp_path / each, name, "pendulum")["state_dict"] for each in ("once", "twice")
    )
    assert all(torch.equal(once[key], twice[key]) for key in once)
    # each episode has a final observation, too; those held out do not count
    assert once["normaliser.count"] == once["env_steps"] + once["episodes"]
    assert (once["held_out_env_steps"] > 0) == (name == "RCP-R")
    assert once["normaliser.variance"][2] > 2 * once["normaliser.variance"][0]  # of the speed
    agent = lightning_rl.load(tmp_path / "once" / "pendulum" / "default" / name / "seed_25")
    (mean,) = (each for name, each in agent.method.policy.named_buffers() if "mean" in name)
    assert torch.equal(mean, once["normaliser.mean"])


@pytest.mark.parametrize("tau", [1.0, 0.5])
def test_compiled_updates_are_those_of_torch(tau, tmp_path):
    for kernels in ("numba", "torch"):
        run = {"implementation": "RCP-A", "gamename": "pendulum", "normalise_obs": True}
        train_cli(tmp_path / kernels, 2, kernels=kernels, tau=tau, **run)
    compiled, by_torch = (
        last(tmp_path / each, "RCP-A", "pendulum")["state_dict"] for each in ("numba", "torch")
    )
    for key, value in compiled.items():
        torch.testing.assert_close(value, by_torch[key], rtol=1e-3, atol=1e-4, msg=key)


@pytest.mark.parametrize(("gamename", "kind"), [("square", "images"), ("cliff", "one-hot")])
def test_observations_of_a_known_scale_are_refused(gamename, kind):
    with pytest.raises(UserError, match=rf"normalise_obs: the observations of .* are {kind}"):
        build("UDRL", gamename, normalise_obs=True)


def test_own_networks_see_normalised_observations():
    net = torch.nn.Linear(4, 2)
    method = lightning_rl.PolicyGradient(
        "cartpole", networks={"policy": net}, config=tiny_settings("REINFORCE"), normalise_obs=True
    )
    method.normaliser.see(torch.tensor([[2.0, 0, 0, 0], [4.0, 0, 0, 0]]))
    obs = torch.tensor([[5.0, 0, 0, 0]])
    seen = torch.tensor([[2.0, 0, 0, 0]])
    torch.testing.assert_close(method.policy.distribution(obs).output, net(seen))


def test_a_dataset_counts_once():
    method = lightning_rl.RCPR("cartpole", normalise_obs=True, offline=True, num_updates_per_iter=1)
    rollouts = method.rollouts(dataset=[make_episode([1.0] * 9), make_episode([1.0] * 4)])
    for _ in range(2):
        rollouts.next_batch()
    assert (method.normaliser.count, method.normaliser.mean[0]) == (15, (45 + 10) / 15)


@pytest.mark.parametrize(("name", "value"), [("variance", [1.0, -2, 1, 1]), ("count", -2.0)])
def test_moments_below_0_are_refused_by_name(name, value):
    method = build("REINFORCE", "cartpole", normalise_obs=True)
    weights = {**method.state_dict(), f"normaliser.{name}": torch.tensor(value).double()}
    with pytest.raises(MismatchError, match=rf"normaliser\.{name}: -2, expected 0 or more"):
        load_state(method, weights)
