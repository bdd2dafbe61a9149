"""Losses of the policy gradients, what they reach, and the presets that they are made with."""

import dataclasses

import numpy as np
import pytest
import torch
from helpers import attach, make_episode, run_cli
from policy_gradient_helpers import METHODS, build, same, some_batch, with_end

from lightning_rl.core.catalogue import entry
from lightning_rl.core.config import build_config, merged_values, presets
from lightning_rl.methods.registry import IMPLEMENTATIONS
from lightning_rl.rollouts.steps import step_batch


@pytest.mark.parametrize(
    ("name", "terms", "logged"),
    [
        ("REINFORCE", {"policy_loss"}, set()),
        ("REINFORCE-baseline", {"policy_loss"}, {"baseline"}),
        ("REINFORCE-entropy", {"policy_loss", "entropy_loss"}, set()),
        ("REINFORCE-combined", {"policy_loss", "entropy_loss"}, {"baseline"}),
        ("AAC", {"policy_loss", "entropy_loss", "value_loss"}, {"advantage_mean"}),
    ],
)
def test_each_method_sums_its_terms(name, terms, logged):
    method, _ = build(name)
    batch = some_batch()
    loss = method.loss(batch, method.policy.distribution(batch.obs))
    assert set(loss.terms) == terms
    assert set(loss.logged) == logged


class Constant(torch.nn.Module):
    """A critic that says 10 everywhere."""

    def forward(self, obs):
        return torch.full(obs.shape[:-1], 10.0)


def test_actor_critic_targets_by_hand():
    episodes = [make_episode([1.0, 2.0]), with_end(make_episode([3.0, 4.0]), truncated=True)]
    batch = step_batch(episodes, {})
    for settings, expected in (
        ({"gae_lambda": 1.0, "bootstrap_truncated": False}, [2.0, 2.0, 5.0, 4.0]),
        ({"gae_lambda": 1.0, "bootstrap_truncated": True}, [2.0, 2.0, 7.5, 9.0]),  # 4 + .5*10; 3 + .5*9
        ({"gae_lambda": 0.0, "bootstrap_truncated": True}, [6.0, 2.0, 8.0, 9.0]),  # r + .5*10, but at the termination
    ):
        method, _ = build(gamma=0.5, **settings)
        method.critic = Constant()
        assert method.targets(batch, method.critic(batch.obs)).tolist() == expected


@pytest.mark.parametrize("network", ["separate", "shared"])
def test_one_optimiser_step_moves_actor_and_critic_once(network):
    method, _ = build(network=network)
    parameters = method.learned()
    assert len({id(p) for p in parameters}) == len(parameters) == (12 if network == "separate" else 8)
    adam = torch.optim.Adam(parameters, 1e-2)
    attach(method, adam)
    before = [p.clone() for p in parameters]
    method.update(some_batch())
    assert all(not torch.equal(p, q) for p, q in zip(parameters, before, strict=True))


def test_further_critic_updates_leave_the_actor_alone_and_fit_better():
    batch, policies, errors = some_batch(), [], []
    for count in (1, 30):
        method, _ = build(num_critic_updates=count, learning_rate=0.01)
        adam = torch.optim.Adam(method.learned(), 0.01)
        attach(method, adam)
        method.update(batch)
        policies.append(method.policy.state_dict())
        with torch.no_grad():
            errors.append(float((method.critic(batch.obs) - method.returns(batch)).square().mean()))
    assert same(*policies)
    assert errors[1] < 0.9 * errors[0]


def test_the_policy_term_does_not_drive_the_critic():
    method, _ = build(value_delta=0.0)
    batch = some_batch()
    loss = method.loss(batch, method.policy.distribution(batch.obs))
    torch.stack(list(loss.terms.values())).sum().backward()
    assert all(float(p.grad.abs().sum()) == 0.0 for p in method.critic.parameters())
    assert any(float(p.grad.abs().sum()) > 0.0 for p in method.policy.parameters())


def test_values_of_the_critic_are_flat():
    method, _ = build()
    assert method.critic(torch.zeros(7, 4)).shape == (7,)
    assert method.critic(torch.zeros(1, 4)).shape == (1,)


def test_sizes_of_the_assignment():
    def count(module):
        return sum(p.numel() for p in module.parameters())

    method, _ = build("REINFORCE", "beresheet", hidden=[512, 256])
    assert count(method.policy) == 136_964
    method, _ = build("AAC", "beresheet", hidden=[32, 32])
    assert (count(method.policy), count(method.critic)) == (1476, 1377)


EXACT = {
    "max_episodes": 6000, "stale_rollouts": False, "normalise_weights": False, "max_grad_norm": None,
}  # fmt: skip
EXACT_PG = {"num_episodes_per_iter": 32, "gamma": 0.995, "learning_rate": 1e-3, "hidden": [512, 256]}
EXACT_AAC = {
    "num_episodes_per_iter": 64, "gamma": 0.95, "entropy_coef": 0.8, "value_delta": 0.7, "learning_rate": 8e-3,
    "hidden": [32, 32],
    "network": "separate", "num_critic_updates": 1, "gae_lambda": 1.0, "bootstrap_truncated": False,
}  # fmt: skip


@pytest.mark.parametrize("name", METHODS)
def test_exact_presets_are_the_assignment_and_are_what_default_says(name):
    assert presets(entry(name)) == ["exact", "tuned"]
    assert merged_values(name, "beresheet", "exact") == merged_values(name, "beresheet")
    config = dataclasses.asdict(build_config(IMPLEMENTATIONS[name].Config, merged_values(name, "beresheet", "exact")))
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
    method = found(**{"implementation": name, "gamename": gamename, "seed": 0, "config": dataclasses.asdict(config)})
    attach(method)
    assert all(np.isfinite(value) for value in method.update(some_batch(gamename)).values())


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"max_episodes": "null"}, ["no stop rule", "max_episodes, target_return and max_env_steps are all null"]),
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


def test_keys_of_another_method_and_unknown_presets_are_refused(tmp_path, capsys):
    assert run_cli(tmp_path, implementation="REINFORCE", entropy_coef=1.0) == 2
    assert "unknown key 'entropy_coef'" in capsys.readouterr().err
    assert run_cli(tmp_path, "--preset", "tunned", implementation="AAC") == 2
    words = "--preset 'tunned' is not in policy_gradient.yaml, block 'AAC'; did you mean 'tuned'? It has: exact, tuned"
    assert words in capsys.readouterr().err
