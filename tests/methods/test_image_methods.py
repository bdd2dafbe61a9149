"""Methods that learn from images: their encoders, their runs, what they learn."""

import numpy as np
import pytest
import torch
from helpers.budgets import tiny_settings
from helpers.runs import last, run_cli, train_cli

import lightning_rl
from lightning_rl.core.errors import UserError
from lightning_rl.envs.images import Frames
from lightning_rl.methods.policy_gradient import PolicyGradient
from lightning_rl.methods.upside_down.method import RCPA, UDRL
from lightning_rl.nets.images import Encoded, Encoder

OF_WHOLE_EPISODES = ["UDRL", "RCP-R", "RCP-A", "REINFORCE", "AAC"]


@pytest.mark.parametrize(("name", "size"), [("udrl", 2 * 2 * 128), ("nature", 64)])
def test_an_encoder_is_its_convolutions_one_after_the_other(name, size):
    frames = Frames(channels=1, height=36, width=36, stack=2)
    encoder = Encoder(name, frames)
    images = torch.randint(256, (3, 5, *frames.shape), dtype=torch.uint8)
    expected = images.flatten(0, 1) / 255
    for layer in encoder.layers:
        if isinstance(layer, torch.nn.Conv2d):
            expected = torch.nn.functional.conv2d(
                expected, layer.weight, layer.bias, layer.stride, layer.padding
            ).relu()
    found = encoder(images.flatten(2))
    assert found.shape == (3, 5, encoder.size)
    torch.testing.assert_close(found, expected.reshape(3, 5, -1))
    if name == "nature":
        assert encoder.size == size


def test_large_batches_in_pieces_have_the_same_gradient(monkeypatch):
    encoder = Encoder("udrl", Frames(1, 8, 8, 1))
    images = torch.randint(256, (10, 64), dtype=torch.uint8)
    number = torch.arange(10).unsqueeze(1)
    (number * encoder(images)).sum().backward()
    whole = [parameter.grad.clone() for parameter in encoder.parameters()]
    encoder.zero_grad()
    monkeypatch.setattr("lightning_rl.nets.images._PIECE", 3)
    (number * encoder(images)).sum().backward()
    for parameter, grad in zip(encoder.parameters(), whole, strict=True):
        torch.testing.assert_close(parameter.grad, grad)


def test_too_small_images_are_refused():
    with pytest.raises(UserError, match="too small"):
        UDRL("square", screen_size=16, encoder="nature")


def test_the_gate_multiplies_the_features():
    net = UDRL("square").learner.net.net
    assert isinstance(net, Encoded)
    obs, command = torch.randint(256, (2, 576), dtype=torch.uint8), torch.randn(2, 2)
    gate = net.net.embed_command(command).sigmoid()
    expected = net.net.body(net.encoder(obs) * gate)
    torch.testing.assert_close(net(obs, command), expected)


def test_a_critic_has_an_encoder_of_its_own():
    method = RCPA("square")
    assert isinstance(method.critic, Encoded)
    assert method.critic.encoder is not method.learner.net.net.encoder


def test_actor_and_critic_may_share_one():
    method = PolicyGradient("square", implementation="AAC", network="shared")
    assert method.policy.net[0] is method.critic.body


@pytest.mark.parametrize("name", OF_WHOLE_EPISODES)
def test_a_run_resumes_exactly_and_its_agent_plays(name, tmp_path):
    run = {"implementation": name, "gamename": "square", "frame_stack": 2}
    for folder, stops in (("once", "3"), ("twice", "23")):
        for epochs in stops:
            assert run_cli(tmp_path / folder, "--resume", "--max_epochs", epochs, **run) == 0
    once, twice = (
        last(tmp_path / each, name, "square")["state_dict"] for each in ("once", "twice")
    )
    assert all(torch.equal(once[key], twice[key]) for key in once)

    agent = lightning_rl.load(tmp_path / "once" / "square" / "default" / name / "seed_25")
    env = lightning_rl.make_env(agent.method.spec)
    obs, _ = env.reset(seed=0)
    assert (obs.shape, obs.dtype) == ((2, 24, 24), np.uint8)
    env.step(agent.act(obs))
    with pytest.raises(UserError, match="the newest frames"):
        agent.act(obs[:1])


def test_workers_play_the_same(tmp_path):
    for workers in (0, 1):
        settings = {**tiny_settings("UDRL"), "max_epochs": 2, "num_workers": workers}
        lightning_rl.train("UDRL", "square", logdir=tmp_path / str(workers), **settings)
    alone, beside = (last(tmp_path / each, "UDRL", "square")["state_dict"] for each in "01")
    assert all(torch.equal(alone[key], beside[key]) for key in alone)


def test_checkpoints_keep_single_frames(tmp_path):
    train_cli(tmp_path, 2, gamename="square", frame_stack=8)
    (buffer,) = (
        each["buffer"]
        for each in last(tmp_path, "UDRL", "square").values()
        if isinstance(each, dict) and "buffer" in each
    )
    assert (buffer["obs"].dtype, buffer["obs"].shape[1]) == (torch.uint8, 576)
