"""What a user may change of a network."""

import pytest
import torch
from torch import nn

from lightning_rl.nets.command import GatedNet
from lightning_rl.nets.compiling import as_built


def lora(net):
    class Lora(nn.Linear):
        def forward(self, x):
            return super().forward(x) * 2

    net.body[0] = Lora(8, 8)


@pytest.mark.parametrize(
    "change",
    [
        lambda net: nn.utils.parametrizations.weight_norm(net.body[2]),
        lora,
        lambda net: net.body.__setitem__(1, nn.Tanh()),
        lambda net: net.body[2].weight.register_hook(lambda grad: grad * 0),
        lambda net: net.embed_obs.register_forward_hook(lambda module, x, y: y * 2),
        lambda net: net.embed_obs.weight.register_post_accumulate_grad_hook(lambda parameter: None),
    ],
    ids=[
        "parametrization",
        "subclass",
        "activation",
        "gradient",
        "layer",
        "after the gradient",
    ],
)
def test_a_network_that_a_user_has_changed_is_not_as_built(change):
    torch.manual_seed(0)
    net = GatedNet(3, 2, 4, [8, 8])
    assert as_built(net)
    change(net)
    assert not as_built(net)
