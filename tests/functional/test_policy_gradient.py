"""The losses against the published fixture (float64, 1e-9) and the properties that define them.

``data_files/pg_fixture.npz``: 450 steps of four episodes, with action scores and state values;
``pg_expected.json``: its values, and those that the course notebook prints, asserted there to 1e-3.
"""

import json
import math

import numpy as np
import pytest
import torch
from helpers import ROOT

from lightning_rl.functional.distributions import Categorical, Gaussian
from lightning_rl.functional.policy_gradient import (
    batch_baseline,
    entropy_loss,
    next_values,
    normalised,
    reinforce_loss,
    time_step_baseline,
    value_loss,
)
from lightning_rl.functional.returns import discounted_returns, lambda_returns

DATA = ROOT / "tests" / "data_files"
EXPECTED = json.loads((DATA / "pg_expected.json").read_text())
FIXTURE = dict(np.load(DATA / "pg_fixture.npz"))
LN4 = math.log(4)


class Steps:
    """The fixture as tensors; scores and values are leaves, so that gradients can be asked for."""

    def __init__(self, dtype=torch.float64, values="varied"):
        def to(key):
            return torch.from_numpy(FIXTURE[key])

        self.scores = to("action_scores").to(dtype).requires_grad_()
        self.value = to(f"state_values_{values}").squeeze(-1).to(dtype).requires_grad_()
        self.action, self.q, self.reward = (
            to("actions"),
            to("q_vals").to(dtype),
            to("rewards").to(dtype),
        )
        self.last = to("terminated") | to("truncated")
        self.dist = Categorical(self.scores)
        self.log_prob = self.dist.log_prob(self.action)

    def entropy_loss(self, beta):
        return entropy_loss(self.dist.entropy(), Categorical.max_entropy(4), beta)


def losses(s: Steps, values: Steps) -> dict[str, torch.Tensor]:
    baseline = batch_baseline(s.q, s.last)
    vpg, bpg = reinforce_loss(s.log_prob, s.q), reinforce_loss(s.log_prob, s.q - baseline)
    ones = torch.ones_like(s.q)
    critic = {"varied": s.value, "ones": ones}
    policy = {name: reinforce_loss(s.log_prob, s.q - v) for name, v in critic.items()}
    return {
        "vpg": vpg,
        "bpg": bpg,
        "baseline": baseline,
        "mean_log_prob": s.log_prob.mean(),
        "mean_entropy": s.dist.entropy().mean(),
        "entropy_beta1": s.entropy_loss(1.0),
        "entropy_beta0.7": s.entropy_loss(0.7),
        "epg_total_beta0.7": vpg + s.entropy_loss(0.7),
        "cpg_total_beta0.7": bpg + s.entropy_loss(0.7),
        "aac_ones_loss_p": policy["ones"],
        "aac_ones_loss_v": value_loss(ones, s.q, 1.0),
        "aac_ones_adv_m": (s.q - ones).mean(),
        "aac_ones_total_delta1": policy["ones"] + value_loss(ones, s.q, 1.0),
        "aac_varied_loss_p": policy["varied"],
        "aac_varied_mse": value_loss(s.value, s.q, 1.0),
        "aac_varied_adv_m": (s.q - s.value).mean(),
        "aac_varied_total_delta0.5": policy["varied"] + value_loss(s.value, s.q, 0.5),
        "aac_varied_total_delta0.5_beta0.7": policy["varied"]
        + value_loss(s.value, s.q, 0.5)
        + s.entropy_loss(0.7),
        "bpg_normalised_population_std": reinforce_loss(s.log_prob, normalised(s.q)),
    }


@pytest.mark.parametrize(
    ("dtype", "rel", "absolute"), [(torch.float64, 1e-9, 0.0), (torch.float32, 1e-4, 1e-5)]
)
def test_published_fixture(dtype, rel, absolute):
    found = losses(Steps(dtype), Steps(dtype))
    for name, loss in found.items():
        assert float(loss.detach()) == pytest.approx(
            EXPECTED["pg_fixture"][name], rel=rel, abs=absolute
        ), name


def test_numbers_that_the_notebook_prints():
    published = EXPECTED["published"]["seed_2020"]
    found = losses(Steps(torch.float32), Steps(torch.float32))
    for name in ("vpg", "bpg", "entropy_beta1", "aac_ones_total_delta1"):
        assert float(found[name].detach()) == pytest.approx(published[name], abs=1e-3)
    assert Categorical.max_entropy(4) == pytest.approx(published["max_entropy"])


def test_gradients_with_respect_to_scores():
    for name, loss in {
        "vpg": lambda s: reinforce_loss(s.log_prob, s.q),
        "bpg": lambda s: reinforce_loss(s.log_prob, s.q - batch_baseline(s.q, s.last)),
        "entropy_beta1": lambda s: s.entropy_loss(1.0),
        "aac_varied": lambda s: (
            reinforce_loss(s.log_prob, s.q - s.value) + value_loss(s.value, s.q, 0.5)
        ),
    }.items():
        s = Steps()
        loss(s).backward()
        expected = FIXTURE[f"grad_{name}_scores"]
        np.testing.assert_allclose(
            s.scores.grad.numpy(), expected, rtol=1e-9, atol=1e-12, err_msg=name
        )
        norm = EXPECTED["pg_fixture"][f"l2norm_grad_{name}_scores"]
        assert float(s.scores.grad.norm()) == pytest.approx(norm, rel=1e-9)


def test_gradient_with_respect_to_values():
    s = Steps()
    value_loss(s.value, s.q, 0.5).backward()
    np.testing.assert_allclose(
        s.value.grad.numpy(), FIXTURE["grad_aac_varied_values_delta0.5"][:, 0], rtol=1e-9
    )
    s = Steps()
    reinforce_loss(s.log_prob, s.q - s.value).backward()
    assert s.value.grad is None  # the policy term does not drive the critic


def test_no_gradient_flows_into_a_target():
    s = Steps()
    target = s.value * 2
    value_loss(s.value, target, 0.5).backward()
    torch.testing.assert_close(
        s.value.grad, (s.value - target).detach() / len(target)
    )  # 2 * 0.5 / B times the error


def test_discounted_returns_of_the_fixture():
    s = Steps()
    found = discounted_returns(s.reward, float(FIXTURE["gamma"]), s.last)
    torch.testing.assert_close(found, s.q, rtol=1e-9, atol=1e-12)


def test_hand_worked_returns_and_losses():
    # Two episodes: rewards (1, 0, 2) and (-1, 4), gamma 0.5.
    reward = torch.tensor([1.0, 0.0, 2.0, -1.0, 4.0], dtype=torch.float64)
    last = torch.tensor([False, False, True, False, True])
    q = discounted_returns(reward, 0.5, last)
    assert q.tolist() == [1.5, 1.0, 2.0, 1.0, 4.0]
    dist = Categorical(torch.zeros(5, 4, dtype=torch.float64))
    log_prob = dist.log_prob(torch.tensor([0, 3, 1, 2, 2]))
    assert float(reinforce_loss(log_prob, q)) == pytest.approx(1.9 * LN4)
    assert float(reinforce_loss(log_prob, q - batch_baseline(q, last))) == pytest.approx(
        0.0, abs=1e-12
    )
    assert float(entropy_loss(dist.entropy(), LN4, 0.7)) == pytest.approx(-0.7)
    alone = Categorical(torch.zeros(5, 1))
    assert float(entropy_loss(alone.entropy(), Categorical.max_entropy(1), 0.7)) == 0.0
    value = torch.full((5,), 1.9, dtype=torch.float64)
    assert float(reinforce_loss(log_prob, q - value)) == pytest.approx(0.0, abs=1e-12)
    assert float(value_loss(value, q, 1.0)) == pytest.approx(1.24)


@pytest.mark.parametrize(
    ("name", "truncated"), [("gae_all_terminated", False), ("gae_last_truncated", True)]
)
def test_generalised_advantages_of_the_fixture(name, truncated):
    s = Steps()
    value = s.value.detach()
    terminated = s.last.clone()
    terminated[-1] = not truncated
    discount = float(FIXTURE["gamma"]) * (~terminated).double()
    final = torch.full((4,), 10.0, dtype=torch.float64)
    following = next_values(value, final, s.last)
    advantage = (
        lambda_returns(s.reward, discount, following, s.last, float(FIXTURE["gae_lambda"])) - value
    )
    np.testing.assert_allclose(advantage.numpy(), FIXTURE[name], rtol=1e-9, atol=1e-10)
    for place, index in (("first", 0), ("at_index_340", 340), ("last", -1)):
        assert float(advantage[index]) == pytest.approx(
            EXPECTED["pg_fixture"][f"{name}_{place}"], rel=1e-9
        )


def test_time_step_baseline_by_hand():
    # Episodes of 3, 1 and 2 steps: time 0 has (6, 3, 9), time 1 has (3, ended, 12), time 2 has (30,
    # ended, ended).
    returns = torch.tensor([6.0, 3.0, 30.0, 3.0, 9.0, 12.0])
    last = torch.tensor([False, False, True, True, False, True])
    assert time_step_baseline(returns, last).tolist() == [6.0, 5.0, 10.0, 6.0, 6.0, 5.0]
    assert time_step_baseline(returns[:1], last[2:3]).tolist() == [6.0]
    with pytest.raises(ValueError, match=r"'returns': \(6, 1\)"):
        time_step_baseline(returns[:, None], last)


def test_next_values_by_hand():
    value, final = torch.tensor([1.0, 2.0, 3.0, 4.0, 5.0]), torch.tensor([20.0, 50.0])
    last = torch.tensor([False, True, False, False, True])
    assert next_values(value, final, last).tolist() == [2.0, 20.0, 4.0, 5.0, 50.0]
    assert value.tolist() == [1.0, 2.0, 3.0, 4.0, 5.0]


def test_one_hot_scores_stay_finite():
    scores = (
        1e4 * torch.nn.functional.one_hot(torch.tensor([0, 1, 2, 3]), 4).float() - 5e3
    ).requires_grad_()
    dist = Categorical(scores)
    loss = entropy_loss(dist.entropy(), LN4, 1.0) + reinforce_loss(
        dist.log_prob(torch.tensor([1, 1, 1, 1])), torch.ones(4)
    )
    loss.backward()
    assert float(entropy_loss(dist.entropy(), LN4, 1.0).detach()) == pytest.approx(0.0, abs=1e-6)
    assert loss.isfinite()
    assert scores.grad.isfinite().all()


def test_a_batch_of_one_step():
    dist = Categorical(torch.tensor([[0.3, -0.2]]))
    log_prob, q = dist.log_prob(torch.tensor([1])), torch.tensor([5.0])
    assert float(reinforce_loss(log_prob, q - batch_baseline(q, torch.tensor([True])))) == 0.0
    assert float(reinforce_loss(log_prob, normalised(q))) == 0.0
    assert discounted_returns(q, 0.9, torch.tensor([True])).tolist() == [5.0]


def test_columns_are_refused():
    flat, column = torch.zeros(5), torch.zeros(5, 1)
    with pytest.raises(ValueError, match=r"'value': \(5, 1\), 'target': \(5,\)"):
        value_loss(column, flat, 1.0)
    with pytest.raises(ValueError, match=r"'weight': \(5, 1\)"):
        reinforce_loss(flat, column)
    with pytest.raises(ValueError, match=r"'value': \(5, 1\)"):
        next_values(column, flat[:1], torch.arange(5) == 4)


def test_max_entropy_is_reached_and_not_passed():
    assert float(Categorical(torch.zeros(1, 6)).entropy()) == pytest.approx(
        Categorical.max_entropy(6)
    )
    wide = Gaussian(torch.tensor([[0.0, 0.0, 9.0, 9.0]]))
    assert float(wide.entropy()) == pytest.approx(Gaussian.max_entropy(2))
