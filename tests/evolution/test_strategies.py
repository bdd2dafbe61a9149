import dataclasses

import pytest
import torch
from helpers.strategies import strategy_config

from lightning_rl.evolution.strategies import OPTIONAL, STRATEGIES

CONFIG = strategy_config(population=8, score_transform="nes_unnormalised")
OWN = {"published": {}, "openai": {"step_size": 0.05}, "snes": {"step_size": 1.0}, "cmaes": {}}
START = torch.tensor([1.0, -1.0, 0.5, 7.0])
EVOLVED = torch.tensor([True, True, True, False])


def make(name, **changes):
    cfg = dataclasses.replace(CONFIG, strategy=name, **{**OWN[name], **changes})
    return STRATEGIES[name](START, EVOLVED, cfg, 3)


def bowl(rows):
    return -(rows[:, :3] - torch.tensor([0.2, 0.4, -0.6])).square().sum(1)


def evolve(strategy, generations, first=0, optimizer=None):
    optimizer = optimizer or strategy.optimizer()
    for number in range(first, first + generations):
        proposal, items = strategy.ask(number)
        strategy.tell(number, bowl(proposal.rows(items)))
        optimizer.step()
    return strategy


@pytest.mark.parametrize("name", STRATEGIES)
def test_finds_the_bottom_of_a_bowl_and_leaves_the_rest_alone(name):
    strategy = evolve(make(name), 80)
    assert bowl(strategy.mean.detach()[None]).item() > -0.05
    assert strategy.mean[3].item() == 7.0
    assert bowl(strategy.best[None]).item() == pytest.approx(strategy.best_score.item(), abs=1e-6)


@pytest.mark.parametrize(("keep", "expected"), [("best", [1, 5, 5]), ("last", [1, 5, 3])])
def test_the_result_is_the_best_mean_or_the_last(keep, expected):
    strategy = make("published", keep=keep)
    for number, score in enumerate([1.0, 5.0, 3.0]):
        mean, (_, items) = strategy.mean.detach().clone(), strategy.ask(number)
        strategy.tell(number, torch.full((len(items),), score))
        assert strategy.best_score.item() == expected[number]
        assert torch.equal(strategy.best, mean) == (expected[number] == score)
        strategy.mean.data += 1


@pytest.mark.parametrize("name", STRATEGIES)
def test_a_loaded_state_goes_on_exactly(name):
    whole, half, other = evolve(make(name), 6), make(name), make(name)
    before, after = half.optimizer(), other.optimizer()
    evolve(half, 3, optimizer=before)
    other.load_state_dict(half.state_dict())
    after.load_state_dict(before.state_dict())
    evolve(other, 3, first=3, optimizer=after)
    assert torch.equal(whole.mean, other.mean)
    assert not torch.equal(whole.mean, half.mean)


def test_weight_decay_does_not_depend_on_the_step_and_spares_what_does_not_evolve():
    strategy = make("published", weight_decay=0.25)
    strategy.mean.grad = torch.zeros(4)
    optimizer = strategy.optimizer()
    optimizer.param_groups[0]["lr"] *= 0.1
    optimizer.step()
    torch.testing.assert_close(strategy.mean.detach(), torch.tensor([0.75, -0.75, 0.375, 7.0]))


def test_openai_weight_decay_is_scaled_by_the_step_and_spares_what_does_not_evolve():
    """(1 - 0.1 * 0.5 * 0.25) * START where it evolves: Adam's own step for a gradient of 0 is 0."""
    strategy = make("openai", weight_decay=0.25, step_size=0.5)
    strategy.mean.grad = torch.zeros(4)
    optimizer = strategy.optimizer()
    optimizer.param_groups[0]["lr"] *= 0.1
    optimizer.step()
    torch.testing.assert_close(
        strategy.mean.detach(), torch.tensor([0.9875, -0.9875, 0.49375, 7.0])
    )


DIFFERENT = {
    "step_size": 0.3,
    "score_transform": "rank",
    "weight_decay": 0.5,
    "step_decay": 0.5,
    "noise_decay": 0.5,
}


@pytest.mark.parametrize("key", OPTIONAL)
@pytest.mark.parametrize("name", STRATEGIES)
def test_what_a_strategy_says_it_reads_is_what_makes_a_difference(name, key):
    def result(**changes):
        strategy = make(name, **changes)
        optimizer = strategy.optimizer()
        rates = [group["lr"] for group in optimizer.param_groups]
        for number in range(3):
            proposal, items = strategy.ask(number)
            strategy.tell(number, bowl(proposal.rows(items)))
            for group, rate in zip(optimizer.param_groups, rates, strict=True):
                group["lr"] = rate * strategy.step_factor(number)
            optimizer.step()
        return strategy.mean.detach()

    if key.endswith("decay") and key != "weight_decay" and key not in STRATEGIES[name].reads:
        with pytest.raises(ValueError, match=f"strategy {name} adapts its"):
            make(name, **{key: DIFFERENT[key]})
        return
    assert torch.equal(result(), result(**{key: DIFFERENT[key]})) == (
        key not in STRATEGIES[name].reads
    )


def test_all_candidates_of_a_generation_meet_the_same_kinds_of_shared_agents():
    strategy = make("snes", num_grad_evals=1, shared_agents=True)
    for generation in range(4):
        _, items = strategy.ask(generation)
        assert {item.turn % 2 for item in items if item.sign} == {
            generation % 2
        }  # of two kinds, one after the other
    alone = [item for item in make("snes", num_grad_evals=1).ask(1)[1] if item.sign]
    assert {item.turn % 2 for item in alone} == {0, 1}
