"""Losses of the policy gradients, what they reach, and the presets that they are made with."""

import dataclasses

import numpy as np
import pytest
import torch
from helpers.policy_gradient import METHODS, build, same, some_batch, update
from helpers.runs import run_cli

from lightning_rl.core import catalogue
from lightning_rl.core.catalogue import entry
from lightning_rl.core.config import build_config, merged_values, presets
from lightning_rl.core.errors import UserError
from lightning_rl.methods import registry
from lightning_rl.methods.policy_gradient import PolicyGradient
from lightning_rl.methods.registry import IMPLEMENTATIONS, register_method
from lightning_rl.run.train import train


@pytest.mark.parametrize("network", ["separate", "shared"])
def test_one_optimizer_step_moves_actor_and_critic_once(network):
    method, _ = build(network=network)
    parameters = list(method.parameters())
    assert (
        len({id(p) for p in parameters}) == len(parameters) == (12 if network == "separate" else 8)
    )
    before = [p.clone() for p in parameters]
    update(method, some_batch())
    assert all(not torch.equal(p, q) for p, q in zip(parameters, before, strict=True))


def test_further_critic_updates_leave_the_actor_alone_and_fit_better():
    batch, policies, errors = some_batch(), [], []
    for count in (1, 30):
        method, _ = build(num_critic_updates=count, learning_rate=0.01)
        update(method, batch)
        policies.append(method.policy.state_dict())
        with torch.no_grad():
            returns, value = method.returns(batch)
        errors.append(float((value - returns).square().mean()))
    assert same(*policies)
    assert errors[1] < 0.9 * errors[0]


def test_sizes_of_the_assignment():
    def count(module):
        return sum(p.numel() for p in module.parameters())

    method, _ = build("REINFORCE", "beresheet", hidden=[512, 256])
    assert count(method.policy) == 136_964
    method, _ = build("AAC", "beresheet", hidden=[32, 32])
    assert (count(method.policy), count(method.critic)) == (1476, 1377)


EXACT = {
    "max_episodes": 6000,
    "stale_rollouts": False,
    "normalise_weights": False,
    "max_grad_norm": None,
}
EXACT_PG = {
    "num_episodes_per_iter": 32,
    "gamma": 0.995,
    "learning_rate": 1e-3,
    "hidden": [512, 256],
}
EXACT_AAC = {
    "num_episodes_per_iter": 64,
    "gamma": 0.95,
    "entropy_coef": 0.8,
    "value_delta": 0.7,
    "learning_rate": 8e-3,
    "hidden": [32, 32],
    "network": "separate",
    "num_critic_updates": 1,
    "gae_lambda": 1.0,
    "bootstrap_truncated": False,
}


@pytest.mark.parametrize("name", METHODS)
def test_exact_presets_are_the_assignment_and_are_what_default_says(name):
    assert presets(entry(name)) == ["skip4", "exact", "tuned"]
    assert merged_values(name, "beresheet", "exact") == merged_values(name, "beresheet")
    config = dataclasses.asdict(
        build_config(IMPLEMENTATIONS[name].Config, merged_values(name, "beresheet", "exact"))
    )
    expected = {**EXACT, **(EXACT_AAC if name == "AAC" else EXACT_PG)}
    if name in ("REINFORCE-entropy", "REINFORCE-combined"):
        expected["entropy_coef"] = 0.7
    if name in ("REINFORCE-baseline", "REINFORCE-combined"):
        expected["baseline"] = "batch"
    assert {key: config[key] for key in expected} == expected


@pytest.mark.parametrize("gamename", ["cartpole", "pendulum", "beresheet"])
@pytest.mark.parametrize("preset", ["exact", "tuned"])
@pytest.mark.parametrize("name", METHODS)
def test_every_preset_builds_and_learns_from_a_batch(name, preset, gamename):
    found = IMPLEMENTATIONS[name]
    config = build_config(found.Config, merged_values(name, gamename, preset))
    method = found(
        **{
            "implementation": name,
            "gamename": gamename,
            "seed": 0,
            "config": dataclasses.asdict(config),
        }
    )
    assert all(np.isfinite(value) for value in update(method, some_batch(gamename)).values())


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (
            {"max_episodes": "null"},
            ["no stop rule", "max_episodes, target_return and max_env_steps are all null"],
        ),
        ({"gamma": "1.5"}, ["key 'gamma'", "less than or equal to 1", "got 1.5"]),
        ({"num_episodes_per_iter": "0"}, ["key 'num_episodes_per_iter'", "greater than 0"]),
        ({"max_grad_norm": "0"}, ["key 'max_grad_norm'", "greater than 0"]),
        ({"network": "double"}, ["key 'network'", "'separate' or 'shared'"]),
        ({"entropy_bet": "1"}, ["unknown key 'entropy_bet'", "did you mean 'entropy_coef'?"]),
    ],
)
def test_bad_settings(settings, words, tmp_path, capsys):
    assert run_cli(tmp_path, implementation="AAC", **settings) == 2
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert line.startswith("error: ")
    assert all(word in line for word in words), line
    assert not list(tmp_path.iterdir())


def test_keys_that_make_no_difference_and_unknown_presets_are_refused(tmp_path, capsys):
    for key, value in (("value_delta", 1.0), ("num_critic_updates", 2), ("network", "shared")):
        assert run_cli(tmp_path, implementation="REINFORCE-baseline", **{key: value}) == 2
        words = (
            f"error: --set: key '{key}': baseline=batch has no critic; set baseline=critic as "
            "well, or leave it out"
        )
        assert capsys.readouterr().err.strip() == words
    assert run_cli(tmp_path, "--preset", "tunned", implementation="AAC") == 2
    words = (
        "--preset 'tunned' is not in policy_gradient.yaml, block 'AAC'; did you mean 'tuned'? "
        "It has: skip4, exact, tuned"
    )
    assert words in capsys.readouterr().err


def test_a_variant_is_a_preset(monkeypatch):
    """A critic with generalised advantages and no entropy bonus, on the values of REINFORCE."""
    variant = {
        "about": "REINFORCE with a critic",
        "extends": "REINFORCE",
        "default": {"baseline": "critic", "gae_lambda": 0.9},
    }
    monkeypatch.setattr(catalogue, "_added", {})
    monkeypatch.setattr(registry, "_REGISTERED", dict(registry._REGISTERED))
    monkeypatch.setattr(PolicyGradient, "implementations", PolicyGradient.implementations)
    register_method(configs={"GAE": variant})(PolicyGradient)
    method = IMPLEMENTATIONS["GAE"]("cartpole", implementation="GAE", hidden=[8])
    assert (method.cfg.gae_lambda, method.cfg.gamma) == (0.9, 0.995)
    assert {"train/policy_loss", "train/value_loss"} < update(method, some_batch()).keys()
    assert "train/entropy_loss" not in method.scalars
    assert PolicyGradient("cartpole").implementation == "REINFORCE"


@pytest.mark.parametrize("network", ["separate", "shared"])
def test_own_networks_are_trained(tmp_path, network):
    class Squashed(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(4, 2)

        def forward(self, obs):
            return self.layer(obs.tanh())

    given = Squashed(), torch.nn.Sequential(torch.nn.Linear(4, 1), torch.nn.Flatten(0))
    before = [parameter.clone() for net in given for parameter in net.parameters()]
    settings = {"network": network, "num_episodes_per_iter": 2, "max_epochs": 2, "logger": False}
    networks = dict(zip(("policy", "critic"), given, strict=True))
    method = train("AAC", "cartpole", networks=networks, logdir=tmp_path, **settings).method
    assert (method.policy.net, method.critic) == given
    after = [parameter for net in given for parameter in net.parameters()]
    assert {id(parameter) for parameter in after} == {
        id(parameter) for parameter in method.parameters()
    }
    assert all(not torch.equal(a, b) for a, b in zip(after, before, strict=True))


@pytest.mark.parametrize(
    ("settings", "name", "words"),
    [
        ({}, "value", "networks: AAC takes no 'value'; it takes: policy, critic"),
        (
            {"baseline": "batch"},
            "critic",
            "networks: baseline=batch has no critic; set baseline=critic or leave it out",
        ),
        (
            {"network": "shared"},
            "critic",
            "networks: network=shared takes policy and critic together; give both",
        ),
    ],
)
def test_own_networks_that_do_not_fit_the_config_are_refused(settings, name, words):
    with pytest.raises(UserError, match=words):
        PolicyGradient(
            "cartpole", implementation="AAC", networks={name: torch.nn.Linear(4, 1)}, **settings
        )
