"""What is asked for next, by hand."""

import math

import numpy as np
import pytest
import torch
from helpers.budgets import tiny_settings

import lightning_rl as lrl
from lightning_rl.functional.upside_down import quantiles
from lightning_rl.methods.upside_down.targets import Highest, Quantile, Range, Tilted
from lightning_rl.run.asking import full_command

TARGETS = {
    "range": Range(max_return=1e9),
    "tilted": Tilted(target_temperature=1.0, max_weight=20.0),
    "quantile": Quantile(target_quantile=0.9),
    "max": Highest(),
}


def fit(target, label):
    mean, sd = target.fit(torch.as_tensor(label))
    return float(mean), float(sd)


def labels(count: int = 20_000) -> torch.Tensor:
    return torch.randn(count, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


def test_range_by_hand():
    """Mean 20, population standard deviation sqrt((100 + 0 + 100) / 3); limited and constant."""
    assert fit(Range(max_return=100.0), [30.0, 20.0, 10.0]) == pytest.approx(
        (20.0, math.sqrt(200 / 3))
    )
    assert fit(Range(max_return=95.0), [90.0, 110.0]) == (95.0, 0.0)
    assert fit(Range(max_return=95.0), [80.0, 100.0]) == (90.0, 5.0)
    assert fit(Range(max_return=None), [80.0, 100.0]) == (90.0, 10.0)


def test_noise_is_uniform_in_a_range_and_normal_elsewhere():
    rng = np.random.default_rng(0)
    uniform, normal = (TARGETS[name].draw_noise(rng, 4000) for name in ("range", "tilted"))
    assert uniform.min() >= 0
    assert uniform.max() < 1
    assert float(uniform.mean()) == pytest.approx(0.5, abs=0.02)
    assert (float(normal.mean()), float(normal.std())) == pytest.approx((0, 1), abs=0.05)


def test_tilting_a_normal_distribution_by_exp_z_moves_its_mean_by_one():
    z = labels()
    assert fit(Tilted(target_temperature=1.0, max_weight=1e9), z) == pytest.approx((1, 1), abs=0.05)


def test_tilted_by_hand():
    """Of 0 and 4 in deviations -1 and 1: with the temperature 2 / ln 3 the weights are 1 to 3."""
    target = Tilted(target_temperature=2 / math.log(3), max_weight=20.0)
    assert fit(target, [0.0, 4.0]) == pytest.approx((3.0, math.sqrt(3)), rel=1e-4)


def test_quantile_and_max_hand_worked():
    z = torch.arange(11.0)
    assert fit(Quantile(target_quantile=0.8), z) == (8.0, pytest.approx(math.sqrt(2 / 3)))
    assert fit(Highest(), z) == (10.0, pytest.approx(math.sqrt(10)))
    minibatches = [[0.0, 4.0, 8.0], [1.0, 1.0, 10.0]]
    assert fit(Highest(), minibatches) == (10.0, pytest.approx(math.sqrt(18)))  # of the second


@pytest.mark.parametrize("value", [0.0, -7.0, 1e8])
@pytest.mark.parametrize("name", TARGETS)
def test_constant_labels_are_harmless(name, value):
    assert fit(TARGETS[name], torch.full((10,), value)) == pytest.approx((value, 0.0), abs=1e-5)


@pytest.mark.parametrize("name", TARGETS)
def test_the_mean_of_a_target_is_no_less_than_that_of_the_labels(name):
    z = labels().exp()  # skewed
    assert fit(TARGETS[name], z)[0] >= float(z.mean())


def test_quantiles_of_more_values_than_torch_sorts_are_the_nearest_of_them():
    many = torch.arange(2**24 + 2, dtype=torch.float64).flip(0)
    assert quantiles(many, [0.0, 0.25, 1.0]).tolist() == [0.0, round(0.25 * (2**24 + 1)), 2**24 + 1]
    few = torch.randn(3, 5)
    assert torch.equal(quantiles(few, [0.1, 0.9]), torch.quantile(few, torch.tensor([0.1, 0.9])))
    assert fit(Quantile(target_quantile=0.5), many)[0] == round(0.5 * (2**24 + 1))


def test_numbers_beside_a_return_that_is_asked_for_are_those_of_training():
    """Survival: a quarter of a step for each unit of return; else the best episodes' horizon."""
    settings = {**tiny_settings("UDRL"), "standardise": False}
    for command, horizon in (("survival", 25.0), ("return_horizon", 0.25)):
        method = lrl.UDRL("cartpole", config={**settings, "command": command})
        method.target.horizon.fill_(0.25)
        assert full_command(method, {"return": 100.0}).command == (100.0, horizon)
        assert full_command(method, {"return": 100.0, "horizon": 7.0}).command == (100.0, 7.0)
        assert full_command(method, {"horizon": 7.0}).command == (0.0, 7.0)
        assert full_command(method, {}).command == method.first_command()


def test_draws_by_hand():
    """Mean 1, half of the sd 2, within -1.5 and 1.9; a draw at every step leaves the mean."""
    settings = {**tiny_settings("RCP-A"), "target_spread": 0.5}
    method = lrl.RCPA("cartpole", config=settings)
    method.target.numbers.copy_(torch.tensor([1.0, 2.0, -1.5, 1.9]))
    normal = 1 + np.random.default_rng(5).standard_normal(6, dtype=np.float32)
    drawn = method.target.draw(np.random.default_rng(5), 6)
    assert [first for (first,) in drawn] == pytest.approx(normal.clip(-1.5, 1.9).tolist())
    assert method.first_command() == (1.0,)
    assert method.command_limits() == pytest.approx((-1.5, 1.9))
    method.target.probes.copy_(torch.tensor([-0.5, 1.5]))
    assert method.probe_commands() == {"eval_low": (-0.5,), "eval_high": (1.5,)}
    free = lrl.RCPA("cartpole", config={**settings, "target_limit": False})
    free.target.numbers.copy_(torch.tensor([1.0, 2.0, -1.5, 1.9]))
    drawn = free.target.draw(np.random.default_rng(5), 6)
    assert [first for (first,) in drawn] == pytest.approx(normal.tolist())
