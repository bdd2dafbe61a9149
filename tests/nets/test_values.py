import pytest
import torch

from lightning_rl.functional.compat import dueling_q_over_batch
from lightning_rl.functional.value_learning import dueling_q
from lightning_rl.nets.values import DuelingNet


def generators(count):
    return [torch.Generator().manual_seed(n) for n in range(count)]


@pytest.mark.parametrize("combine", [dueling_q, dueling_q_over_batch])
def test_a_dueling_member_as_a_plain_module_has_the_same_values(combine):
    net = DuelingNet(3, (8,), 4, 5, combine=combine)
    params, obs = net.init(generators(2)), torch.randn(2, 6, 3)
    for n, expected in enumerate(net(params, obs)):
        torch.testing.assert_close(net.module(params[n])(obs[n]), expected)


def test_the_earlier_codes_mean_runs_over_the_batch_and_one_sample_is_a_batch_of_its_own():
    """Q = V + A - mean(A), the mean over all samples and actions, written out."""
    net = DuelingNet(3, (8,), 4, 5, combine=dueling_q_over_batch)
    module, obs = net.module(net.init(generators(1))[0]), torch.randn(6, 3)
    z = module.features(obs)
    value, advantage = module.value(z), module.advantage(z)
    torch.testing.assert_close(module(obs), value + advantage - advantage.mean())
    torch.testing.assert_close(module(obs[2]), value[2] + advantage[2] - advantage[2].mean())
