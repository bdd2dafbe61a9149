import dataclasses

import numpy as np
import pytest
import torch
from helpers import methods
from helpers.methods import attach
from helpers.runs import last, run_cli, run_dir, train_cli
from helpers.toys import make_episode

from lightning_rl.core.config import build_config, merged_values
from lightning_rl.core.errors import UserError
from lightning_rl.core.types import Request
from lightning_rl.envs.spec import env_spec
from lightning_rl.lab.evaluate import evaluate
from lightning_rl.methods.registry import implementation
from lightning_rl.methods.upside_down.rollouts import UpsideDownEpoch
from lightning_rl.rollouts.episode_buffer import EpisodeBuffer, flatten
from lightning_rl.rollouts.player import Player


def build(name: str, gamename: str = "cartpole", **settings):
    method = methods.build(name, gamename, **settings)
    attach(method)
    return method


def epoch_of(*rewards: list[float], truncated: bool = False) -> UpsideDownEpoch:
    episodes = [make_episode(r) for r in rewards]
    flat = flatten(
        [dataclasses.replace(e, terminated=not truncated, truncated=truncated) for e in episodes]
    )
    index = {name: torch.arange(len(flat)).repeat(2, 1) for name in ("policy", "critic")}
    return UpsideDownEpoch(flat, index, None, None, len(flat), len(episodes), 0, {})


def test_a_held_command_is_made_of_every_steps_return_to_go():
    batch, label = epoch_of([1.0, 2.0, 4.0], [8.0]), torch.tensor([3.0, 4.0, 4.0, 8.0])
    batch.index["policy"] = torch.tensor([[3, 0], [3, 1]])  # as often as they are trained on
    for settings, expected in (
        ({"target_labels": "step"}, [8.0, 3.0, 8.0, 4.0]),
        ({"target_labels": "minibatch"}, [[8.0, 3.0], [8.0, 4.0]]),
        ({"target_labels": "episode"}, [3.0, 8.0]),
        ({"target_labels": "episode", "target_episodes": 1}, [8.0]),
        ({"target_labels": "buffer"}, label.tolist()),
    ):
        method, fitted = build("RCP-R", **settings), []
        method.target.fit = lambda labels, fitted=fitted: fitted.append(labels.tolist())
        method.set_target(label, batch)
        assert fitted == [expected]
    with pytest.raises(UserError, match="set target_labels=episode"):
        build("RCP-R", command_rule="decrease", target_labels="step")
    with pytest.raises(UserError, match="divides what is left by gamma; set gamma above 0"):
        build("RCP-R", command_rule="decrease", target_labels="episode", gamma=0.0)


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


def test_the_network_of_rcp_r_standardises_returns():
    method = build("RCP-R")
    label = torch.tensor([[100.0], [200.0], [300.0]])
    method.scale_commands(label)
    for policy in (method.policy, method.learner):
        torch.testing.assert_close(
            policy.net.scaled(label)[:, 0],
            torch.tensor([-1.2247, 0.0, 1.2247]),
            rtol=1e-4,
            atol=1e-4,
        )


@pytest.mark.parametrize("name", ["RCP-R", "RCP-A"])
def test_without_conditioning_the_command_makes_no_difference(name):
    obs = torch.randn(50, 4)
    for condition in (True, False):
        method = build(name, condition=condition)
        if name == "RCP-R":
            method.scale_commands(torch.randn(50, 1) * 10)
        a, b = (method.policy.distribution(obs, torch.full((50, 1), c)).output for c in (-1.0, 2.0))
        assert torch.equal(a, b) is not condition
    assert method.probe_commands() == {}
    assert method.command_limits() is None


@pytest.mark.parametrize("name", ["RCP-R", "RCP-A"])
def test_one_command_per_episode_within_what_was_seen(name):
    method = build(name, target_spread=5.0)
    experience = method.rollouts()
    experience.next_batch()
    method.target.numbers.copy_(torch.tensor([1.0, 1.0, -0.5, 1.5]))
    requests = experience.requests(7)
    commands = [r.command[0] for r in requests]
    assert all(-0.5 <= c <= 1.5 for c in commands)
    experience.collector.finish()
    for episode in experience.collector.collect(requests, method.policy.state_dict(), 7):
        assert (episode.command == episode.request.command).all()


def original(name, **settings):
    """The earlier implementation's recipe, with tiny networks and as little data as the tests
    need.
    """
    return build(name, preset="original", **settings)


def test_the_earlier_rcp_r_asks_for_the_best_return_of_the_newest_twenty_episodes():
    """Discounted returns by hand, gamma 0.5: of episode n they are 1.5 n. The best, number 40,
    is older than twenty episodes.
    """
    method = original("RCP-R", gamma=0.5)
    batch = epoch_of(*([float(n), float(n)] for n in [40, *range(1, 22)]))
    method.set_target(method.command.fulfilled(batch.episodes)[:, 0], batch)
    newest = 1.5 * np.arange(2, 22)
    assert method.target.numbers[:2].tolist() == pytest.approx((31.5, float(newest.std())))
    commands = np.array(method.target.draw(np.random.default_rng(0), 4000))[:, 0]
    assert commands.max() > 31.5 + newest.std()  # not held down to what was seen
    assert (commands.mean(), commands.std()) == pytest.approx((31.5, newest.std()), rel=0.05)
    assert method.first_command() == pytest.approx((31.5,))
    with pytest.raises(UserError, match="target_episodes 20 is for first steps of the newest"):
        build("RCP-R", target_labels="step", target_episodes=20)


def test_the_earlier_rcp_a_asks_for_the_highest_advantage_of_a_minibatch_with_the_sd_of_that_one():
    method, batch = original("RCP-A"), epoch_of([1.0] * 6)
    label = torch.tensor([0.0, 1.0, 5.0, 3.0, -4.0, 90.0])  # no update sees the last
    batch.index["policy"] = torch.tensor([[0, 1, 1, 0], [2, 3, 3, 2], [4, 0, 4, 0]])
    method.set_target(label, batch)
    assert method.target.numbers[:2].tolist() == [5.0, 1.0]  # of 5, 3, 3, 5
    assert method.target.draw(np.random.default_rng(0), 2) == [
        (5.0,),
        (5.0,),
    ]  # the noise comes at every step
    assert method.policy.command_noise[0] == 1.0


def test_a_command_can_be_drawn_anew_at_every_step():
    """What the network is given is normal around the command; in greedy episodes it is the
    command itself.
    """
    method = original("RCP-A")
    method.policy.command_noise.copy_(torch.tensor([2.0, -1e30, 1e30]))
    given = []
    method.policy.net.register_forward_pre_hook(lambda net, inputs: given.append(inputs[1]))
    player = Player(env_spec("cartpole"), method.policy)
    requests = [Request(f"{n}", n, "sampled", (7.0,)) for n in range(40)]
    episodes = player.play(requests)
    numbers = torch.cat(given).flatten()
    assert (numbers.mean().item(), numbers.std().item()) == (
        pytest.approx(7, abs=0.3),
        pytest.approx(2, rel=0.1),
    )
    assert len(numbers.unique()) == len(numbers) == sum(episode.length for episode in episodes)
    given.clear()
    player.play([Request("greedy", 1, "greedy", (7.0,))])
    assert torch.cat(given).unique().tolist() == [7.0]
    method.policy.command_noise.copy_(torch.tensor([2.0, 6.5, 7.5]))
    given.clear()
    player.play(requests)
    assert (torch.cat(given).min(), torch.cat(given).max()) == (6.5, 7.5)


@pytest.mark.parametrize("name", ["RCP-R", "RCP-A"])
def test_the_earlier_recipe_runs_stops_and_goes_on(tmp_path, name):
    """Resumed equals uninterrupted, and what is evaluated is the policy with the noise of its
    commands.
    """
    for folder, stops in (("once", ["3"]), ("twice", ["2", "3"])):
        for epochs in stops:
            flags = ("--preset", "original", "--resume", "--max_epochs", epochs)
            assert run_cli(tmp_path / folder, *flags, implementation=name) == 0
    once, twice = (
        last(tmp_path / folder, name, "cartpole")["state_dict"] for folder in ("once", "twice")
    )
    assert all(torch.equal(once[key], twice[key]) for key in once)
    assert ("policy.command_noise" in once) == (name == "RCP-A")
    if name == "RCP-A":
        assert once["policy.command_noise"][0] > 0


def test_decreasing_commands_say_what_is_left_to_collect():
    method = build("RCP-R", command_rule="decrease", target_labels="episode", gamma=1.0)
    experience = method.rollouts()
    experience.next_batch()
    experience.collector.finish()
    (episode, *_) = experience.collector.collect(
        experience.requests(1), method.policy.state_dict(), 1
    )
    assert (np.diff(episode.command[:, 0]) == -1).all()  # CartPole pays 1 a step


@pytest.mark.parametrize("name", ["RCP-R", "RCP-A"])
def test_a_reward_that_is_not_finite_never_reaches_a_checkpoint(
    tmp_path, capsys, monkeypatch, name
):
    flags = {"implementation": name, "checkpoint_interval": 1, "eval_interval": 100}
    train_cli(tmp_path, 1, **flags)
    last = run_dir(tmp_path, implementation=name) / "last.ckpt"
    before = last.read_bytes()
    flat = EpisodeBuffer.flat

    def poisoned(self):
        stored = flat(self)
        stored.reward[0] = float("inf")
        return stored

    monkeypatch.setattr(EpisodeBuffer, "flat", poisoned)
    assert run_cli(tmp_path, "--max_epochs", "3", "--resume", **flags) == 2
    assert "training diverged" in capsys.readouterr().err
    assert last.read_bytes() == before


@pytest.mark.parametrize(("name", "command"), [("RCP-R", "return"), ("RCP-A", "advantage")])
def test_obeys_commands_on_the_identity_task(tmp_path, toy_games, name, command):
    """Ten steps, action 1 pays 1: asked for little, it gives little; asked for much, it gives
    all.
    """
    settings = {
        "learning_starts": 40,
        "steps_per_iter": 200,
        "num_updates_per_iter": 50,
        "batch_size": 128,
        "learning_rate": 0.01,
        "hidden": [32, 32],
        "window_steps": 2000,
        "tau": 0.1,
        "eval_interval": 30,
        "target_spread": 1.0,
    }
    own: dict[str, dict[str, object]] = {
        "RCP-R": {
            "weights": "return_to_go",
            "temperature": 0.5,
        },  # fitted advantages weigh so much here that commands drown
        "RCP-A": {"gae_lambda": 0.0, "num_critic_updates_per_iter": 50, "value_scale": 10.0},
    }
    settings |= own[name]
    train_cli(tmp_path, 25, gamename="count", implementation=name, **settings)
    checkpoint = run_dir(tmp_path, "count", implementation=name) / "last.ckpt"
    asked = (2, 10) if name == "RCP-R" else (-1.5, 1.0)
    low, high = (
        evaluate(checkpoint, 40, {command: value})["sampled"]["return"]["mean"] for value in asked
    )
    assert high > 9.0
    assert low < 6.0


def rcpa_config(*settings):
    return build_config(
        implementation("RCP-A").Config,
        [*merged_values("RCP-A", "lunarlander", None), ("--set", dict(settings))],
    )


def test_schedules_that_cannot_be_are_refused():
    with pytest.raises(UserError, match=r"anneal_from 0\.6 is of max_env_steps, which is null"):
        rcpa_config(("max_env_steps", None))
