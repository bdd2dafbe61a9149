import pytest
import torch

from lightning_rl.functional.reward_shaping import REWARD_FORMS, potential_shaping, shaped_reward

GAMMA, REWARD, INFO = 0.5, torch.tensor([3.0]), torch.tensor([[100.0]])
OBS, NEXT = torch.tensor([[10.0]]), torch.tensor([[20.0]])
# What the table of the reference gives with phi = the sum of what the network sees.
TABLE = {
    "native": 3,
    "exclusive_potential": 0.5 * 20 - 10,
    "additive_potential": 3 + 0.5 * 20 - 10,
    "exclusive_potential_info": 0.5 * 120 - 110,
    "additive_potential_info": 3 + 0.5 * 120 - 110,
    "exclusive": 20,
    "additive": 23,
    "exclusive_info": 120,
    "additive_info": 123,
    "exclusive_weighted_info": 100,
    "additive_weighted_info": 103,
}


@pytest.mark.parametrize("name", REWARD_FORMS)
def test_every_form_by_hand(name):
    form = REWARD_FORMS[name]

    def value(obs, info):
        return (obs.sum(-1) if form.state else 0) + (info.sum(-1) if form.info else 0)

    assert shaped_reward(form, value, REWARD, OBS, NEXT, INFO, GAMMA).tolist() == [TABLE[name]]


def test_codes_are_those_of_the_earlier_code():
    assert [form.code for form in REWARD_FORMS.values()] == [*range(9), 101, 102]


def test_shaping_telescopes():
    phi, gamma = torch.randn(8, dtype=torch.float64), 0.9
    total = sum(gamma**t * potential_shaping(phi[t], phi[t + 1], gamma) for t in range(7))
    assert total == pytest.approx(gamma**7 * phi[7] - phi[0])
