import dataclasses
import functools
import math
from pathlib import Path

import numpy as np
import pytest
import torch
import yaml
from helpers import make_episode, run_cli, run_dir, same_episodes, tiny_settings
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from lightning_rl.cli import main
from lightning_rl.config import build_config, config_path, merged_values
from lightning_rl.data.steps import step_batch
from lightning_rl.envs.spec import env_spec
from lightning_rl.figures.curves import read_scalar
from lightning_rl.functional.distributions import Categorical
from lightning_rl.functional.policy_gradient import normalised
from lightning_rl.methods.on_policy import STALE_UPDATES
from lightning_rl.methods.policy_gradient import PolicyGradient, make_loaders
from lightning_rl.registry import ALIASES, IMPLEMENTATIONS
from lightning_rl.types import Episode, UserError

METHODS = list(ALIASES.values())


def build(name: str = "AAC", gamename: str = "cartpole", num_workers: int = 0, preset: str | None = None, **settings):
    entry = IMPLEMENTATIONS[name]
    config = build_config(entry.config, [*merged_values(name, gamename, preset), ("test", {**tiny_settings(name), **settings})])
    method = entry.method({"implementation": name, "gamename": gamename, "seed": 3, "config": dataclasses.asdict(config)})
    return method, make_loaders(method, num_workers)[0]


run_aac = functools.partial(run_cli, implementation="AAC")


def last(logdir: Path, name: str = "AAC") -> dict:
    return torch.load(run_dir(logdir, implementation=name) / "last.ckpt", weights_only=True)


def same(a: dict[str, torch.Tensor], b: dict[str, torch.Tensor]) -> bool:
    return a.keys() == b.keys() and all(torch.equal(a[k], b[k]) for k in a)


def with_end(episode: Episode, truncated: bool) -> Episode:
    return dataclasses.replace(episode, terminated=not truncated, truncated=truncated)


def some_batch(gamename: str = "cartpole"):
    episodes = build("REINFORCE", gamename)[1].collector
    played = episodes.collect(build("REINFORCE", gamename)[1].requests(0), episodes.behaviour.state_dict(), 0)
    return step_batch(played, {})


# -- batches


def test_step_batch_by_hand():
    episodes = [make_episode([1.0, 2.0]), with_end(make_episode([5.0, 6.0, 7.0]), truncated=True)]
    batch = step_batch(episodes, {})
    assert batch.reward.tolist() == [1, 2, 5, 6, 7]
    assert batch.obs[:, 0].tolist() == [0, 1, 0, 1, 2]
    assert batch.action.tolist() == [0, 1, 0, 1, 0]
    assert batch.last.tolist() == [False, True, False, False, True]
    assert batch.final_obs[:, 0].tolist() == [2, 3]
    assert batch.truncated.tolist() == [False, True]


def test_an_end_that_is_both_is_a_termination():
    both = dataclasses.replace(make_episode([1.0]), terminated=True, truncated=True)
    assert step_batch([both], {}).truncated.tolist() == [False]


def test_batches_that_cannot_be_learned_from_are_named():
    unfinished = dataclasses.replace(make_episode([1.0]), terminated=False)
    for episodes in ([], [unfinished]):
        with pytest.raises(UserError, match=r"the batch has no finished episode.*n_episodes_per_iter"):
            step_batch(episodes, {})
    with pytest.raises(UserError, match=r"the return of toy is nan: reward nan at step 1 \(request seed 0\)"):
        step_batch([make_episode([1.0, float("nan"), 2.0])], {})


def test_a_batch_has_exactly_the_asked_number_of_whole_episodes():
    _, experience = build("REINFORCE", "beresheet", n_episodes_per_iter=5)
    batch = next(iter(experience))
    assert int(batch.last.sum()) == len(batch.final_obs) == 5
    assert batch.last[-1]
    assert batch.scalars["rollout/length_mean"] <= 300


# -- on-policy data


def drift(method: PolicyGradient) -> None:
    """Stands in for training: the policy changes."""
    with torch.no_grad():
        for parameter in method.policy.parameters():
            parameter.add_(0.01)


@pytest.mark.parametrize("num_workers", [0, 1])
@pytest.mark.parametrize("stale", [False, True])
def test_staleness_is_zero_or_what_was_asked_for(stale, num_workers):
    method, experience = build("REINFORCE", num_workers=num_workers, stale_rollouts=stale)
    fresh, past = build("REINFORCE")[1].collector, []
    finish = experience.collector.finish
    for epoch in range(STALE_UPDATES + 3):
        seen: list[Episode] = []
        experience.collector.finish = lambda seen=seen: seen.extend(finish()) or list(seen)
        past.append({k: v.clone() for k, v in method.policy.state_dict().items()})
        batch = next(iter(experience))
        played_by = max(epoch - STALE_UPDATES, 0) if stale else epoch
        assert {e.policy_version for e in seen} == {played_by}
        assert batch.scalars["rollout/policy_age"] == epoch - played_by
        assert same_episodes(seen, fresh.collect([e.request for e in seen], past[played_by], played_by))
        drift(method)
    experience.collector.close()


@pytest.mark.parametrize("stale", [False, True])
def test_snapshot_resumes_the_running_mean_and_the_age(stale):
    method, experience = build("REINFORCE", stale_rollouts=stale)
    for _ in range(3):
        next(iter(experience))
        drift(method)
    other_method, other = build("REINFORCE", stale_rollouts=stale)
    other_method.policy.load_state_dict(method.policy.state_dict())
    other.restore(experience.snapshot())
    a, b = next(iter(experience)), next(iter(other))
    assert torch.equal(a.obs, b.obs)
    for name in ("rollout/return_running_mean", "rollout/policy_age"):
        assert a.scalars[name] == b.scalars[name]


# -- losses


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


def test_the_formulas_on_a_batch():
    """With one policy and one batch: weights, entropy share and totals as the five definitions say."""
    batch = some_batch()
    method, _ = build("REINFORCE-combined", entropy_beta=0.4)
    dist = method.policy.distribution(batch.obs)
    q, start = [], 0
    for end in (batch.last.nonzero().flatten() + 1).tolist():
        reward, to_go = batch.reward[start:end].double().numpy(), 0.0
        returns = [to_go := r + method.cfg.gamma * to_go for r in reward[::-1]][::-1]
        q, start = q + returns, end
    q = torch.tensor(q)
    log_prob = dist.log_prob(batch.action).detach().double()
    with torch.no_grad():
        loss = method.loss(batch, dist)
    assert float(loss.terms["policy_loss"]) == pytest.approx(float(-((q - q.mean()) * log_prob).mean()), rel=1e-4)
    entropy = float(dist.entropy().detach().mean())
    assert float(loss.terms["entropy_loss"]) == pytest.approx(-0.4 * entropy / math.log(2), rel=1e-5)
    assert float(loss.logged["baseline"]) == pytest.approx(float(q.mean()), rel=1e-5)
    vanilla, _ = build("REINFORCE", gamma=method.cfg.gamma)
    with torch.no_grad():
        loss = vanilla.loss(batch, dist)
    assert float(loss.terms["policy_loss"]) == pytest.approx(float(-(q * log_prob).mean()), rel=1e-4)


class Constant(torch.nn.Module):
    """A critic that says 10 everywhere."""

    def forward(self, obs):
        return torch.full(obs.shape[:-1], 10.0)


def test_actor_critic_targets_by_hand():
    episodes = [make_episode([1.0, 2.0]), with_end(make_episode([3.0, 4.0]), truncated=True)]
    batch = step_batch(episodes, {})
    for settings, expected in (
        ({"trace_decay": 1.0, "bootstrap_truncated": False}, [2.0, 2.0, 5.0, 4.0]),
        ({"trace_decay": 1.0, "bootstrap_truncated": True}, [2.0, 2.0, 7.5, 9.0]),  # 4 + .5*10; 3 + .5*9
        ({"trace_decay": 0.0, "bootstrap_truncated": True}, [6.0, 2.0, 8.0, 9.0]),  # r + .5*10, but at the termination
    ):
        method, _ = build(gamma=0.5, **settings)
        method.critic = Constant()
        assert method.targets(batch, method.critic(batch.obs)).tolist() == expected


def test_normalised_weights_and_clipped_gradients_are_switches():
    batch = some_batch()
    plain, switched = build("REINFORCE")[0], build("REINFORCE", normalise_weights=True)[0]
    dist = plain.policy.distribution(batch.obs)
    expected = -(normalised(plain.returns(batch)) * dist.log_prob(batch.action)).mean()
    torch.testing.assert_close(switched.loss(batch, dist).terms["policy_loss"], expected)
    norms = []
    for clip in (None, 1e-3):
        method, _ = build("REINFORCE", gradient_clip=clip)
        sgd = torch.optim.SGD(method.learned(), lr=1e-9)
        method.raw_optimisers = lambda sgd=sgd: [sgd]
        method.update(batch)
        norms.append(float(torch.stack([p.grad.norm() for p in method.learned()]).norm()))
    assert norms[0] > 0.1
    assert norms[1] == pytest.approx(1e-3, rel=1e-3)


@pytest.mark.parametrize("network", ["separate", "shared"])
def test_one_optimiser_step_moves_actor_and_critic_once(network):
    method, _ = build(network=network)
    parameters = method.learned()
    assert len({id(p) for p in parameters}) == len(parameters) == (12 if network == "separate" else 8)
    adam = torch.optim.Adam(parameters, 1e-2)
    method.raw_optimisers = lambda: [adam]
    before = [p.clone() for p in parameters]
    method.update(some_batch())
    assert all(not torch.equal(p, q) for p, q in zip(parameters, before, strict=True))


def test_further_critic_updates_leave_the_actor_alone_and_fit_better():
    batch, policies, errors = some_batch(), [], []
    for count in (1, 30):
        method, _ = build(n_critic_updates=count, learning_rate=0.01)
        adam = torch.optim.Adam(method.learned(), 0.01)
        method.raw_optimisers = lambda adam=adam: [adam]
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


# -- configs


def test_sizes_of_the_assignment():
    def count(module):
        return sum(p.numel() for p in module.parameters())

    method, _ = build("REINFORCE", "beresheet", hidden=[512, 256])
    assert count(method.policy) == 136_964
    method, _ = build("AAC", "beresheet", hidden=[32, 32])
    assert (count(method.policy), count(method.critic)) == (1476, 1377)


EXACT = {
    "max_episodes": 6000, "stale_rollouts": False, "normalise_weights": False, "gradient_clip": None,
}  # fmt: skip
EXACT_PG = {"n_episodes_per_iter": 32, "gamma": 0.995, "learning_rate": 1e-3, "hidden": [512, 256]}
EXACT_AAC = {
    "n_episodes_per_iter": 64, "gamma": 0.95, "entropy_beta": 0.8, "value_delta": 0.7, "learning_rate": 8e-3, "hidden": [32, 32],
    "network": "separate", "n_critic_updates": 1, "trace_decay": 1.0, "bootstrap_truncated": False,
}  # fmt: skip


@pytest.mark.parametrize("name", METHODS)
def test_exact_presets_are_the_assignment_and_are_what_default_says(name):
    document = yaml.safe_load(config_path(name).read_text())
    assert document["presets"]["exact"] == {}
    assert set(document["presets"]) == {"exact", "tuned"}
    config = dataclasses.asdict(build_config(IMPLEMENTATIONS[name].config, merged_values(name, "beresheet", "exact")))
    expected = {**EXACT, **(EXACT_AAC if name == "AAC" else EXACT_PG)}
    if name in ("REINFORCE-entropy", "REINFORCE-combined"):
        expected["entropy_beta"] = 0.7
    if name in ("REINFORCE-baseline", "REINFORCE-combined"):
        expected["baseline"] = "batch"
    assert {key: config[key] for key in expected} == expected


def test_configs_of_the_reinforce_family_do_not_drift_apart():
    documents = {n: yaml.safe_load(config_path(n).read_text()) for n in METHODS if n != "AAC"}
    default = documents["REINFORCE-combined"]["default"]
    for document in documents.values():
        assert {**default, **document["default"]} == default


@pytest.mark.parametrize("gamename", ["cartpole", "pendulum", "beresheet"])
@pytest.mark.parametrize("preset", ["exact", "tuned"])
@pytest.mark.parametrize("name", METHODS)
def test_every_preset_builds_and_learns_from_a_batch(name, preset, gamename):
    entry = IMPLEMENTATIONS[name]
    config = build_config(entry.config, merged_values(name, gamename, preset))
    method = entry.method({"implementation": name, "gamename": gamename, "seed": 0, "config": dataclasses.asdict(config)})
    optimisers = method.optimisers()
    method.raw_optimisers = lambda: optimisers
    assert all(np.isfinite(value) for value in method.update(some_batch(gamename)).values())


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"max_episodes": "null"}, ["no stop rule", "max_episodes, target_return and max_env_steps are all null"]),
        ({"gamma": "1.5"}, ["key 'gamma'", "less than or equal to 1", "got 1.5"]),
        ({"n_episodes_per_iter": "0"}, ["key 'n_episodes_per_iter'", "greater than 0"]),
        ({"gradient_clip": "0"}, ["key 'gradient_clip'", "greater than 0"]),
        ({"network": "double"}, ["key 'network'", "'separate' or 'shared'"]),
        ({"entropy_bet": "1"}, ["unknown key 'entropy_bet'", "did you mean 'entropy_beta'?"]),
    ],
)
def test_bad_settings(settings, words, tmp_path, capsys):
    assert run_aac(tmp_path, **settings) == 2
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert line.startswith("error: ")
    assert all(word in line for word in words), line
    assert not list(tmp_path.iterdir())


def test_keys_of_another_method_and_unknown_presets_are_refused(tmp_path, capsys):
    assert run_cli(tmp_path, implementation="REINFORCE", entropy_beta=1.0) == 2
    assert "unknown key 'entropy_beta'" in capsys.readouterr().err
    assert run_aac(tmp_path, "--preset", "tunned") == 2
    assert "--preset 'tunned' is not in AAC.yaml; it has: exact, tuned" in capsys.readouterr().err


# -- runs


@pytest.mark.parametrize("name", METHODS)
def test_runs_are_equal_over_workers_and_when_resumed(tmp_path, name):
    stale = "true" if name == "REINFORCE" else "false"
    play = functools.partial(run_cli, implementation=name, stale_rollouts=stale)
    for workers in (0, 1, 2):
        assert play(tmp_path / str(workers), "--max_epochs=5", f"--num_workers={workers}") == 0
    for epochs in (2, 3, 5):
        assert play(tmp_path / "parts", f"--max_epochs={epochs}", "--resume") == 0
    whole, *others = (last(tmp_path / part, name) for part in ("0", "1", "2", "parts"))
    for other in others:
        assert same(whole["state_dict"], other["state_dict"])
        assert str(whole["optimizer_states"]) == str(other["optimizer_states"])
    assert whole["global_step"] == 5


@pytest.mark.parametrize(("alias", "name"), ALIASES.items())
def test_aliases_stand_for_the_long_names_everywhere(tmp_path, alias, name):
    assert run_cli(tmp_path, "--max_epochs", "2", implementation=alias) == 0
    checkpoint = run_dir(tmp_path, implementation=name) / "last.ckpt"
    assert torch.load(checkpoint, weights_only=True)["hyper_parameters"]["hparams"]["implementation"] == name
    assert main(["--eval_agent", str(checkpoint), "--eval_episodes", "1", "--num_workers", "0"]) == 0
    assert checkpoint.with_name("evaluation.mp4").exists()


@pytest.mark.parametrize("gamename", ["lunarlander-continuous", "pendulum", "acrobot", "beresheet"])
def test_other_environments_run(tmp_path, gamename):
    assert run_aac(tmp_path, "--max_epochs", "2", gamename=gamename) == 0


def test_scalars_and_counters_are_as_promised(tmp_path):
    assert run_aac(tmp_path, max_episodes=10, n_episodes_per_iter=4) == 0  # 3 batches: the last one overshoots
    events = EventAccumulator(str(run_dir(tmp_path, implementation="AAC") / "logger" / "version_0"))
    events.Reload()
    promised = {f"train/{k}" for k in ("policy_loss", "entropy_loss", "value_loss", "advantage_mean", "entropy")}
    promised |= {"rollout/return_running_mean", "rollout/policy_age", "time/episodes", "time/episodes_per_second"}
    assert promised <= set(events.Tags()["scalars"])
    assert [e.value for e in events.Scalars("time/episodes")] == [4, 8, 12]
    weights = last(tmp_path)["state_dict"]
    assert int(weights["episodes"]) == 12
    assert events.Scalars("train/policy_loss")[-1].step == int(weights["env_steps"])
    assert {e.value for e in events.Scalars("rollout/policy_age")} == {0.0}


def test_a_budget_of_episodes_can_be_raised_when_resuming(tmp_path):
    for episodes in (8, 20):
        assert run_aac(tmp_path, "--resume", max_episodes=episodes) == 0
        assert int(last(tmp_path)["state_dict"]["episodes"]) == episodes


def test_nan_from_the_environment_is_named(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("gymnasium.envs.classic_control.CartPoleEnv.step", lambda *_: (np.zeros(4), math.nan, True, False, {}))
    assert run_aac(tmp_path, "--max_epochs", "2") == 2
    assert "error: the return of epoch 0, episode 0 is nan: reward nan at step 0" in capsys.readouterr().err


# -- learning


@pytest.mark.parametrize("name", METHODS)
def test_the_identity_task_is_learned_and_the_target_ends_the_run(tmp_path, toy_games, name):
    """Ten steps, action 1 pays 1. The window of 100 episodes must be full and its mean above 9.5."""
    settings = {
        "n_episodes_per_iter": 20, "chunk_size": 20, "hidden": [16], "learning_rate": 0.05, "max_episodes": 4000,
        "target_return": 9.5, "normalise_weights": "true",
    }  # fmt: skip
    if name not in ("REINFORCE", "REINFORCE-baseline"):
        settings["entropy_beta"] = 0.01
    assert run_cli(tmp_path, implementation=name, gamename="count", **settings) == 0
    curve = read_scalar(run_dir(tmp_path, "count", implementation=name), "rollout/return_running_mean").value
    assert curve[-1] >= 9.5
    assert (curve[4:-1] < 9.5).all()
    assert 5 <= len(curve) < 200


def test_sanity_check_of_the_assignment(tmp_path):
    """Running mean of ten episodes above -150 within ten batches of 32, by REINFORCE-combined."""
    settings = {"n_episodes_per_iter": 32, "chunk_size": 32, "hidden": "[512,256]", "eval_interval": 100}
    assert run_cli(tmp_path, "--max_epochs", "10", "--no_checkpoint", implementation="cpg", gamename="beresheet", **settings) == 0
    value = read_scalar(run_dir(tmp_path, "beresheet", implementation="REINFORCE-combined"), "rollout/return_mean").value
    assert value.max() > -150


def test_gaussian_policies_learn_too():
    """One step, reward -(a - 0.6)^2: the mean of the policy moves to 0.6."""
    method, _ = build("REINFORCE-baseline", "pendulum", hidden=[16], learning_rate=0.02, normalise_weights=True)
    adam = torch.optim.Adam(method.learned(), 0.02)
    method.raw_optimisers = lambda: [adam]
    obs, rng = np.ones((2, 3), dtype=np.float32), np.random.default_rng(0)
    for _ in range(150):
        noise = method.policy.distribution_class.draw_noise(rng, (64, 1))
        with torch.no_grad():
            action = method.policy.act(torch.ones(64, 3), None, torch.from_numpy(noise)).numpy()
        episodes = [
            dataclasses.replace(make_episode([-float((a[0] - 0.6) ** 2)], obs_size=3), obs=obs, action=a[None]) for a in action
        ]
        method.update(step_batch(episodes, {}))
    assert float(method.policy.distribution(torch.ones(3)).mean.detach()) == pytest.approx(0.6, abs=0.1)
    assert env_spec("pendulum").continuous
    assert method.max_entropy != Categorical.max_entropy(1)
