import pytest
import torch
import torch.nn.functional as F

from lightning_rl.nets.command import GatedLayersNet, GatedNet, ScaledCommand

SCALES = (0.025, 0.01)
NETS = {"gated": GatedNet, "layers": GatedLayersNet}


def build(name: str, hidden: list[int], obs_size: int = 8, out: int = 4):
    torch.manual_seed(0)
    return ScaledCommand(NETS[name](obs_size, 2, out, hidden), SCALES)


def real_commands(count: int) -> torch.Tensor:
    """At the scale of LunarLander: returns -200 .. 300, horizons 1 .. 400."""
    return torch.stack([torch.rand(count) * 500 - 200, torch.rand(count) * 400 + 1], dim=-1)


@pytest.mark.parametrize("name", NETS)
def test_command_alone_changes_the_output(name):
    net = build(name, [32, 64, 64])
    obs, command = torch.randn(100, 8), real_commands(100)
    moved = (net(obs, command) - net(obs, command.flip(0))).abs().mean()
    assert moved > 0.01 * net(obs, command).std()


@pytest.mark.parametrize("name", NETS)
def test_output_is_sane_at_real_commands(name):
    output = build(name, [32, 64, 64])(torch.randn(500, 8), real_commands(500))
    assert output.shape == (500, 4)
    assert output.abs().max() < 100  # unscaled commands gave 1e5
    assert (output < 0).any()
    assert (output > 0).any()


def test_gates_are_open_at_initialisation():
    net = ScaledCommand(GatedNet(8, 2, 4, [32, 64]), SCALES)
    assert net.saturation(real_commands(1000)) < 0.1


def test_scales_travel_in_the_state_dict_and_sizes_are_not_modified():
    hidden = [16, 32]
    net = build("gated", hidden)
    assert hidden == [16, 32]
    assert net.state_dict()["scale"].tolist() == pytest.approx(list(SCALES))


def standard_commands(count: int) -> torch.Tensor:
    return torch.randn(count, 1).clamp(-5, 5)


def test_gates_per_layer_start_open_and_react_to_the_command():
    torch.manual_seed(0)
    gated = GatedLayersNet(8, 1, 4, [128, 128], output_scale=1.0)
    net = ScaledCommand(gated, (1.0,))
    command, obs = standard_commands(1000), torch.randn(1000, 8)
    assert net.saturation(command) < 0.1
    assert 0.9 < 2 * gated.gate(command).mean().item() < 1.1
    moved = (net(obs, command) - net(obs, command.flip(0))).abs().mean()
    assert moved > 0.1 * net(obs, command).std()
    shut = ScaledCommand(GatedLayersNet(8, 1, 4, [128, 128]), (1.0,))
    assert (
        shut.saturation(torch.full((10, 1), 200.0)) > 0.9
    )  # an unscaled command, as in the earlier implementation


def test_half_open_gates_leave_a_plain_network_with_a_small_output():
    obs, command = torch.randn(5, 8), standard_commands(5)
    torch.manual_seed(0)
    net = GatedLayersNet(8, 1, 4, [16])
    torch.manual_seed(0)
    whole = GatedLayersNet(8, 1, 4, [16], output_scale=1.0)
    torch.testing.assert_close(net(obs, command), 0.1 * whole(obs, command))
    for parameter in net.gates.parameters():
        torch.nn.init.zeros_(parameter)
    torch.testing.assert_close(net(obs, command), net.output(net.layers[0](obs).relu()))


def test_the_first_policy_is_nearly_uniform():
    output = GatedLayersNet(8, 1, 4, [128, 128])(torch.randn(1000, 8), standard_commands(1000))
    assert output.softmax(-1).amax() < 0.4


def test_a_bandit_whose_best_action_depends_on_the_command():
    torch.manual_seed(0)
    net = GatedLayersNet(1, 1, 2, [32, 32])
    adam = torch.optim.Adam(net.parameters(), 1e-2)
    for _ in range(200):
        command = standard_commands(128)
        loss = F.cross_entropy(net(torch.ones(128, 1), command), (command[:, 0] > 0.5).long())
        adam.zero_grad()
        loss.backward()
        adam.step()
    right = net(torch.ones(2, 1), torch.tensor([[-1.0], [1.5]])).argmax(-1)
    assert right.tolist() == [0, 1]
    assert loss < 0.2


def test_commands_are_shifted_scaled_and_clipped():
    net = ScaledCommand(GatedLayersNet(1, 1, 2, [4]), (0.5,), limit=3.0)
    net.shift.fill_(10.0)
    assert net.scaled(torch.tensor([[12.0], [100.0], [-100.0]])).tolist() == [[1.0], [3.0], [-3.0]]
