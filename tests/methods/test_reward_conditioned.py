import dataclasses

import numpy as np
import pytest
import torch
from helpers import attach, last, make_episode, run_cli, run_dir, tiny_settings

from lightning_rl.core.catalogue import entry
from lightning_rl.core.config import block_layers, build_config, merged_values
from lightning_rl.core.errors import UserError
from lightning_rl.core.types import Request
from lightning_rl.envs.spec import env_spec
from lightning_rl.lab.evaluate import evaluate
from lightning_rl.methods.registry import implementation
from lightning_rl.methods.reward_conditioned_configs import RCPAConfig
from lightning_rl.methods.window import WindowEpoch
from lightning_rl.rollouts.episode_buffer import EpisodeWindow
from lightning_rl.rollouts.player import Player


def build(name: str, gamename: str = "cartpole", layers=(), **settings):
    entry = implementation(name)
    config = build_config(entry.Config, [*merged_values(name, gamename), *layers, ("test", {**tiny_settings(name), **settings})])
    hparams = {"implementation": name, "gamename": gamename, "seed": 3, "config": dataclasses.asdict(config)}
    method = entry(**hparams)
    attach(method)
    return method


def window_epoch(*rewards: list[float], truncated: bool = False) -> WindowEpoch:
    window = EpisodeWindow(1000)
    episodes = [make_episode(r) for r in rewards]
    window.add(dataclasses.replace(e, terminated=not truncated, truncated=truncated) for e in episodes)
    steps = window.num_steps
    index = {name: torch.arange(steps).repeat(2, 1) for name in ("policy", "critic")}
    return WindowEpoch(window.flat(), index, env_steps=steps, episodes=len(episodes), scalars={})


def test_return_labels_by_hand():
    batch = window_epoch([1.0, 2.0, 4.0], [8.0])
    label, _ = build("RCP-R", gamma=0.5).label(batch)
    assert label.tolist() == [3.0, 4.0, 4.0, 8.0]


def test_a_held_command_is_made_of_every_steps_return_to_go():
    batch, label = window_epoch([1.0, 2.0, 4.0], [8.0]), torch.tensor([3.0, 4.0, 4.0, 8.0])
    batch.index["policy"] = torch.tensor([[3, 0], [3, 1]])  # as often as they are trained on
    assert build("RCP-R", target_labels="step").target_labels(label, batch).tolist() == [8.0, 3.0, 8.0, 4.0]
    assert build("RCP-R", target_labels="episode").target_labels(label, batch).tolist() == [3.0, 8.0]
    with pytest.raises(UserError, match="set target_labels=episode"):
        build("RCP-R", command="anneal", target_labels="step")


@pytest.mark.parametrize(("truncated", "bootstrap", "expected"), [(False, True, 4.0), (True, True, 9.0), (True, False, 4.0)])
def test_advantages_bootstrap_where_truncated(truncated, bootstrap, expected):
    """A critic that says 10 everywhere: the last step is worth its reward, and gamma * 10 if the episode goes on."""
    method = build("RCP-A", gamma=0.5, bootstrap_truncated=bootstrap, critic_learning_rate=1e-30, value_scale=100.0)
    for parameter in method.critic.parameters():
        parameter.data.zero_()
    method.critic[-1].bias.data.fill_(0.1)
    label, scalars = method.label(window_epoch([1.0, 4.0], truncated=truncated))
    assert float(label[-1]) == pytest.approx(expected - 10)
    assert np.isfinite(scalars["train/value_loss"])


def test_lambda_changes_the_label_from_one_step_to_monte_carlo():
    batch = window_epoch([1.0, 1.0, 1.0])
    settings = {"gamma": 1.0, "critic_learning_rate": 1e-30}
    labels = []
    for value_lambda in (0.0, 1.0):
        method = build("RCP-A", gae_lambda=value_lambda, **settings)
        with torch.no_grad():
            value = method._values(batch.window)[batch.window.row]
        labels.append((method.label(batch)[0], value))
    (one_step, value), (monte_carlo, _) = labels
    following = torch.cat([value[1:], torch.zeros(1)])
    torch.testing.assert_close(one_step, 1 + following - value)
    torch.testing.assert_close(monte_carlo, torch.tensor([3.0, 2.0, 1.0]) - value)


@pytest.mark.parametrize("name", ["RCP-R", "RCP-A", "UDRL"])
def test_actions_are_learned_as_they_were_executed(name):
    """Samples outside the box teach the same as its edge, to which the environment clips them."""
    obs, weight = torch.randn(16, 3), () if name == "UDRL" else (torch.ones(16),)
    command = torch.randn(16, 2 if name == "UDRL" else 1)
    sample = torch.randn(16, 1, generator=torch.Generator().manual_seed(1)) * 3
    assert (sample.abs() > 1).any()
    trained = []
    for action in (sample, sample.clamp(-1, 1)):
        method = build(name, "pendulum")
        loss = method.update(obs, command, action, *weight)
        trained.append((loss, [p.clone() for p in method.policy.parameters()]))
    assert torch.equal(trained[0][0], trained[1][0])
    assert all(torch.equal(a, b) for a, b in zip(trained[0][1], trained[1][1], strict=True))


def test_commands_of_rcp_a_are_standardised_and_clipped_unless_raw():
    label = torch.tensor([0.0, 0.0, 0.0, 100.0])
    z = build("RCP-A", command_limit=1.5).as_commands(label)
    torch.testing.assert_close(z, torch.tensor([-0.5774, -0.5774, -0.5774, 1.5]), rtol=1e-4, atol=1e-4)
    assert torch.equal(build("RCP-A", standardise=False).as_commands(label), label)


def test_the_network_of_rcp_r_standardises_returns():
    method = build("RCP-R")
    label = torch.tensor([100.0, 200.0, 300.0])
    assert torch.equal(method.as_commands(label), label)
    torch.testing.assert_close(
        method.net.scaled(label[:, None])[:, 0], torch.tensor([-1.2247, 0.0, 1.2247]), rtol=1e-4, atol=1e-4
    )


@pytest.mark.parametrize("name", ["RCP-R", "RCP-A"])
def test_without_conditioning_the_command_is_not_heard(name):
    obs = torch.randn(50, 4)
    for condition in (True, False):
        method = build(name, condition=condition)
        method.as_commands(torch.randn(50) * 10)
        a, b = (method.policy.distribution(obs, torch.full((50, 1), c)).output for c in (-1.0, 2.0))
        assert torch.equal(a, b) is not condition
    assert method.probe_commands() == {}
    assert method.command_limits() is None


@pytest.mark.parametrize("name", ["RCP-R", "RCP-A"])
def test_one_command_per_episode_within_what_was_seen(name):
    method = build(name, target_spread=5.0, **({"command": "hold"} if name == "RCP-R" else {}))
    experience = method.rollouts()
    experience.next_batch()
    method.target.copy_(torch.tensor([1.0, 1.0, -0.5, 1.5]))
    requests = experience.requests(7)
    commands = [r.command[0] for r in requests]
    assert all(-0.5 <= c <= 1.5 for c in commands)
    experience.collector.finish()
    for episode in experience.collector.collect(requests, method.policy.state_dict(), 7):
        assert (episode.command == episode.request.command).all()


def original(name, **settings):
    """The earlier implementation's recipe, with tiny networks and as little data as the tests need."""
    return build(name, layers=block_layers(entry(name), "presets", "original"), **settings)


def test_the_earlier_rcp_r_asks_for_the_best_return_of_the_newest_twenty_episodes():
    """Discounted returns by hand, gamma 0.5: of episode n they are 1.5 n. The best, number 40, is older than twenty episodes."""
    method = original("RCP-R", gamma=0.5)
    batch = window_epoch(*([float(n), float(n)] for n in [40, *range(1, 22)]))
    label, _ = method.label(batch)
    method._aim(method.target_labels(method.as_commands(label), batch))
    newest = 1.5 * np.arange(2, 22)
    assert (method.aim.mean, method.aim.sd) == pytest.approx((31.5, float(newest.std())))
    commands = method.draw(torch.tensor([-1.0, 0.0, 2.0]))  # not held down to what was seen
    assert commands.tolist() == pytest.approx([31.5 - newest.std(), 31.5, 31.5 + 2 * newest.std()], rel=1e-5)
    assert method.first_command() == pytest.approx((31.5,))
    with pytest.raises(UserError, match="target_episodes 20: labels of every step are of the whole window"):
        build("RCP-R", target_labels="step", target_episodes=20)


def test_the_earlier_rcp_a_asks_for_the_highest_advantage_of_a_minibatch_with_the_sd_of_that_one():
    method, batch = original("RCP-A"), window_epoch([1.0] * 6)
    label = torch.tensor([0.0, 1.0, 5.0, 3.0, -4.0, 90.0])  # no update sees the last
    batch.index["policy"] = torch.tensor([[0, 1, 1, 0], [2, 3, 3, 2], [4, 0, 4, 0]])
    method._aim(method.target_labels(method.as_commands(label), batch))
    assert (method.aim.mean, method.aim.sd) == (5.0, 1.0)  # of 5, 3, 3, 5
    assert method.draw(torch.tensor([-1.0, 2.0])).tolist() == [5.0, 5.0]  # the noise comes at every step
    assert method.policy.command_noise[0] == 1.0


def test_a_command_can_be_drawn_anew_at_every_step():
    """What the network hears is normal around the command; in greedy episodes it is the command itself."""
    method = original("RCP-A")
    method.policy.command_noise.copy_(torch.tensor([2.0, -1e30, 1e30]))
    heard = []
    method.policy.net.register_forward_pre_hook(lambda net, inputs: heard.append(inputs[1]))
    player = Player(env_spec("cartpole"), method.policy)
    requests = [Request(f"{n}", n, "sampled", (7.0,)) for n in range(40)]
    episodes = player.play(requests)
    numbers = torch.cat(heard).flatten()
    assert (numbers.mean().item(), numbers.std().item()) == (pytest.approx(7, abs=0.3), pytest.approx(2, rel=0.1))
    assert len(numbers.unique()) == len(numbers) == sum(episode.length for episode in episodes)
    heard.clear()
    player.play([Request("greedy", 1, "greedy", (7.0,))])
    assert torch.cat(heard).unique().tolist() == [7.0]
    method.policy.command_noise.copy_(torch.tensor([2.0, 6.5, 7.5]))
    heard.clear()
    player.play(requests)
    assert (torch.cat(heard).min(), torch.cat(heard).max()) == (6.5, 7.5)


@pytest.mark.parametrize("name", ["RCP-R", "RCP-A"])
def test_the_earlier_recipe_runs_stops_and_goes_on(tmp_path, name):
    """Resumed equals uninterrupted, and what is evaluated is the policy with the noise of its commands."""
    for folder, stops in (("once", ["3"]), ("twice", ["2", "3"])):
        for epochs in stops:
            flags = ("--preset", "original", "--resume", "--max_epochs", epochs)
            assert run_cli(tmp_path / folder, *flags, implementation=name) == 0
    once, twice = (last(tmp_path / folder, name, "cartpole")["state_dict"] for folder in ("once", "twice"))
    assert all(torch.equal(once[key], twice[key]) for key in once)
    assert ("policy.command_noise" in once) == (name == "RCP-A")
    if name == "RCP-A":
        assert once["policy.command_noise"][0] > 0


def test_annealed_commands_tell_what_is_left_to_collect():
    method = build("RCP-R", command="anneal", target_labels="episode", gamma=1.0)
    experience = method.rollouts()
    experience.next_batch()
    experience.collector.finish()
    (episode, *_) = experience.collector.collect(experience.requests(1), method.policy.state_dict(), 1)
    assert (np.diff(episode.command[:, 0]) == -1).all()  # CartPole pays 1 a step


@pytest.mark.parametrize("name", ["RCP-R", "RCP-A"])
def test_what_is_not_finite_is_named_and_stops_training(name):
    method = build(name)
    batch = window_epoch([1.0, float("nan")], [2.0])
    with pytest.raises(UserError, match=r"(label|value target) is nan in epoch 0: training diverged"):
        method.train_epoch(batch)


@pytest.mark.parametrize("name", ["RCP-R", "RCP-A"])
def test_a_reward_that_is_not_finite_never_reaches_a_checkpoint(tmp_path, capsys, monkeypatch, name):
    flags = {"implementation": name, "checkpoint_interval": 1, "eval_interval": 100}
    assert run_cli(tmp_path, "--max_epochs", "1", **flags) == 0
    last = run_dir(tmp_path, implementation=name) / "last.ckpt"
    before = last.read_bytes()
    flat = EpisodeWindow.flat

    def poisoned(self):
        window = flat(self)
        window.reward[0] = float("inf")
        return window

    monkeypatch.setattr(EpisodeWindow, "flat", poisoned)
    assert run_cli(tmp_path, "--max_epochs", "3", "--resume", **flags) == 2
    assert "training diverged" in capsys.readouterr().err
    assert last.read_bytes() == before


@pytest.mark.parametrize(("name", "command"), [("RCP-R", "return"), ("RCP-A", "advantage")])
def test_obeys_commands_on_the_identity_task(tmp_path, toy_games, name, command):
    """Ten steps, action 1 pays 1: asked for little, it gives little; asked for much, it gives all."""
    settings = {
        "learning_starts": 40, "steps_per_iter": 200, "num_updates_per_iter": 50, "batch_size": 128, "learning_rate": 0.01,
        "hidden": [32, 32], "window_steps": 2000, "tau": 0.1, "eval_interval": 30, "target_spread": 1.0,
    }  # fmt: skip
    if name == "RCP-A":
        settings |= {"gae_lambda": 0.0, "final_gae_lambda": 0.0}
        settings |= {"num_critic_updates_per_iter": 50, "value_scale": 10.0}
    assert run_cli(tmp_path, "--max_epochs", "25", gamename="count", implementation=name, **settings) == 0
    checkpoint = run_dir(tmp_path, "count", implementation=name) / "last.ckpt"
    asked = (2, 10) if name == "RCP-R" else (-1.5, 1.0)
    low, high = (evaluate(checkpoint, 40, {command: value})["sampled"]["return"]["mean"] for value in asked)
    assert high > 9.0
    assert low < 6.0


def rcpa_config(*settings):
    return build_config(RCPAConfig, [*merged_values("RCP-A", "lunarlander", None), ("--set", dict(settings))])


def test_lambda_changes_linearly_between_two_shares_of_the_budget():
    cfg = rcpa_config(
        ("max_env_steps", 1000), ("lambda_ramp", [0.2, 0.4]), ("gae_lambda", 0.9), ("final_gae_lambda", 1.0)
    )
    steps = (0, 200, 300, 400, 900)
    assert [cfg.gae_lambda_at(n) for n in steps] == pytest.approx([0.9, 0.9, 0.95, 1.0, 1.0])
    constant = rcpa_config(("max_env_steps", None), ("final_gae_lambda", 0.95), ("anneal_from", 1.0))
    assert constant.gae_lambda_at(10**6) == 0.95


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ([("lambda_ramp", [0.5, 0.5])], "start must be below the end"),
        ([("max_env_steps", None), ("anneal_from", 1.0)], "lambda_ramp is of max_env_steps, which is null"),
        ([("max_env_steps", None), ("final_gae_lambda", 0.95)], "anneal_from 0.6 is of max_env_steps, which is null"),
    ],
)
def test_schedules_that_cannot_be_are_refused(setting, message):
    with pytest.raises(UserError, match=message):
        rcpa_config(*setting)
