"""One step of each evolution strategy, worked from its formula: who is evaluated, what the
scores make of mean and deviation.
"""

import dataclasses
import math
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from cmaes import CMA
from helpers.strategies import strategy_config

from lightning_rl.core.seeding import derive_seed, generator
from lightning_rl.evolution.callback import Evolution
from lightning_rl.evolution.executors import SerialExecutor
from lightning_rl.evolution.strategies import STRATEGIES, Item

CONFIG = strategy_config(population=3)
START = torch.tensor([1.0, -1.0, 0.5, 7.0])
EVOLVED = torch.tensor([True, True, True, False])
MASK = EVOLVED.float()
SEED = 3


def make(name, **changes):
    return STRATEGIES[name](
        START, EVOLVED, dataclasses.replace(CONFIG, strategy=name, **changes), SEED
    )


def noise_of(generation, members=3):
    """Standard normal rows, one for each member, 0 where nothing evolves."""
    rows = [
        generator(SEED, "evolution noise", generation, m).standard_normal(4, "float32")
        for m in range(members)
    ]
    return torch.from_numpy(np.stack(rows)) * MASK


def step(strategy, generation, scores):
    strategy.ask(generation)
    fitness = strategy.tell(generation, torch.tensor(scores))
    strategy.optimizer().step()
    return fitness


@pytest.mark.parametrize("noise_decay", [1.0, 0.5])
@pytest.mark.parametrize("name", ["published", "openai"])
def test_candidates_are_the_mean_plus_and_minus_noise_of_the_scale_asked_for(name, noise_decay):
    proposal, items = make(name, noise_decay=noise_decay).ask(5)
    shift = 0.1 * noise_decay**5 * noise_of(5)
    expected = torch.cat([START.repeat(2, 1), START + shift, START - shift])
    torch.testing.assert_close(proposal.rows(items), expected)
    assert items == [
        Item(-1, 0, 0, 0),
        Item(-1, 0, 1, 1),
        Item(0, 1, 2, 0),
        Item(1, 1, 3, 1),
        Item(2, 1, 4, 2),
        Item(0, -1, 5, 0),
        Item(1, -1, 6, 1),
        Item(2, -1, 7, 2),
    ]


@pytest.mark.parametrize("noise_decay", [1.0, 0.5])
def test_the_published_step_takes_the_better_sign_of_each_pair(noise_decay):
    """Scores 4, 1, 2 of plus and 3, 6, 2 of minus: kept are +4, -6 and (a tie) +2, whose linear
    weights are 1/2, 1 and 0.
    """
    strategy = make("published", noise_decay=noise_decay)
    fitness = step(strategy, 2, [0.0, 1.0, 4.0, 1.0, 2.0, 3.0, 6.0, 2.0])
    z = 0.1 * noise_decay**2 * noise_of(2)
    torch.testing.assert_close(strategy.mean.detach(), START + 0.5 * (0.5 * z[0] - z[1]))
    assert fitness == strategy.best_score.item() == 0.5
    assert torch.equal(strategy.best, START)


def test_without_mirrors_the_published_step_weighs_every_candidate():
    strategy = make("published", mirrored=False)
    _, items = strategy.ask(2)
    assert len(items) == 5
    step(strategy, 2, [0.0, 0.0, 4.0, 1.0, 2.0])
    z = 0.1 * noise_of(2)
    torch.testing.assert_close(strategy.mean.detach(), START + 0.5 * (z[0] + z[2] / 3))


def test_transforms_see_the_mean_score_of_the_unperturbed_mean():
    """It scores 1 and 3: only scores above 2 count, by how much they are better: 4 by 2, 6 by 4."""
    strategy = make("published", score_transform="all_better_sum", mirrored=False)
    step(strategy, 1, [1.0, 3.0, 4.0, 1.0, 6.0])
    z = 0.1 * noise_of(1)
    torch.testing.assert_close(strategy.mean.detach(), START + 0.5 * (z[0] / 3 + 2 * z[2] / 3))


@pytest.mark.parametrize("noise_decay", [1.0, 0.5])
def test_the_step_of_openai_es(noise_decay):
    """``1 / (2 P std) sum (f+ - f-) z`` with linear weights over both signs (0 to 1 of scores 1
    to 6), then Adam.
    """
    strategy = make("openai", noise_decay=noise_decay)
    strategy.ask(4)
    strategy.tell(4, torch.tensor([0.0, 0.0, 4.0, 1.0, 2.0, 3.0, 6.0, 2.0]))
    weight = (torch.tensor([4.0, 1.0, 2.0, 3.0, 6.0, 2.0]) - 1) / 5
    gradient = (weight[:3] - weight[3:]) @ noise_of(4) / (2 * 3 * 0.1 * noise_decay**4)
    torch.testing.assert_close(strategy.mean.grad, -gradient)
    strategy.optimizer().step()
    adam = 0.5 * gradient / (gradient.abs() + 1e-8)
    torch.testing.assert_close(strategy.mean.detach(), START + adam * MASK)


@pytest.mark.parametrize("mirrored", [True, False])
def test_the_steps_of_snes(mirrored):
    """``mean += rate std sum u z`` and ``log std += rate' / 2 sum u (z^2 - 1)``, with utilities
    by rank.
    """
    strategy, count = make("snes", mirrored=mirrored), 6 if mirrored else 3
    mean, log_std = START.clone(), torch.full((4,), math.log(0.1))
    logs = [max(0.0, math.log(count / 2 + 1) - math.log(rank)) for rank in range(1, count + 1)]
    utility = torch.tensor([u / sum(logs) - 1 / count for u in logs])
    for generation in range(2):
        proposal, items = strategy.ask(generation)
        z = noise_of(generation)
        both = torch.cat([z, -z]) if mirrored else z
        torch.testing.assert_close(proposal.rows(items)[2:], mean + log_std.exp() * both)
        order = torch.tensor(
            [3, 0, 5, 1, 4, 2] if mirrored else [2, 0, 1]
        )  # ranks of the candidates
        strategy.tell(generation, torch.cat([torch.zeros(2), -order.float()]))
        strategy.optimizer().step()
        u = utility[order]
        mean = mean + 0.5 * log_std.exp() * (u @ both)
        rate = (3 + math.log(3)) / (5 * math.sqrt(3))  # of three evolved parameters
        log_std = log_std + rate * 0.5 * (u @ (both.square() - 1)) * MASK
        torch.testing.assert_close(strategy.mean.detach(), mean)
        torch.testing.assert_close(strategy.log_std.detach(), log_std)
    assert len(set(log_std[:3].tolist())) == 3
    assert log_std[3] == math.log(0.1)


def test_cma_es_asks_and_tells_as_the_library_does():
    """Three generations: the candidates asked for are those that are told, best first is lowest
    for the library.
    """
    strategy, target = make("cmaes", population=6), torch.tensor([0.2, 0.4, -0.6])
    library = CMA(START[:3].double().numpy(), 0.1, population_size=6)
    for generation in range(3):
        proposal, items = strategy.ask(generation)
        rows = proposal.rows(items)
        library.reseed_rng(derive_seed(SEED, "evolution noise", generation, 0) % 2**32)
        candidates = [library.ask() for _ in range(6)]
        torch.testing.assert_close(rows[2:, :3], torch.from_numpy(np.stack(candidates)).float())
        assert (rows[:, 3] == 7.0).all()
        torch.testing.assert_close(rows[0, :3], torch.from_numpy(library.mean).float())
        scores = -(rows[:, :3] - target).square().sum(1)
        library.tell(
            [(x, -score) for x, score in zip(candidates, scores[2:].tolist(), strict=True)]
        )
        assert strategy.tell(generation, scores) == pytest.approx(float(scores[0]), rel=1e-6)
        strategy.optimizer().step()
        torch.testing.assert_close(
            strategy.mean.detach()[:3], torch.from_numpy(library.mean).float(), rtol=1e-4, atol=1e-5
        )
        assert strategy.mean[3] == 7.0
    assert strategy.search.generation == 3


def test_scores_of_several_agents_on_a_candidate_become_one():
    strategy, seen = make("published", population=2, num_grad_evals=2), []
    strategy.estimate = lambda generation, candidates, baseline: seen.append(
        (generation, candidates.tolist(), baseline)
    )
    strategy.tell(4, torch.tensor([1.0, 2.0, 1.0, 2.0, 4.0, 5.0, 7.0, 5.0, -3.0, 3.0]))
    assert seen == [(4, [[1.5, 4.5], [6.0, 0.0]], 1.5)]


def test_the_best_mean_is_the_one_whose_own_agents_scored_best():
    strategy = make("published")
    scores = {0: [1.0, 2.0], 1: [5.0, 6.0], 2: [5.0, 6.0], 3: [3.0, 3.0]}
    means = []
    for generation, of_mean in scores.items():
        means.append(strategy.mean.detach().clone())
        step(strategy, generation, [*of_mean, 4.0, 1.0, 2.0, 3.0, 6.0, 9.0 + generation])
    assert torch.equal(strategy.best, means[1])  # the first of equals
    assert strategy.best_score.item() == 5.5


def evaluate(proposal, items):
    rows = proposal.rows(items)
    return [SimpleNamespace(row=row, fitness=-float(row.square().sum())) for row in rows]


def test_the_callback_evaluates_a_generation_and_leaves_the_gradient():
    """The noise of generation 2 has fallen twice; of the module only its number is needed."""
    strategy = make("published", population=2, center_agents=1, noise_decay=0.8)
    optimizer, method = strategy.optimizer(), SimpleNamespace(num_updates=2)
    Evolution(strategy, evaluate, SerialExecutor()).on_train_epoch_start(None, method)
    generation = method.generation
    torch.testing.assert_close(generation.outcomes[1].row, START + 0.1 * 0.8**2 * noise_of(2, 2)[0])
    assert generation.items == strategy.ask(2)[1]
    assert generation.fitness == pytest.approx(-(1 + 1 + 0.25 + 49))
    assert generation.is_best
    before = strategy.mean.detach().clone()
    optimizer.step()
    scores = torch.tensor([outcome.fitness for outcome in generation.outcomes[1:]])
    better = torch.maximum(scores[:2], scores[2:])
    sign = torch.where(scores[2:] > scores[:2], -1.0, 1.0)
    weight = (better - better.min()) / (better.max() - better.min())
    direction = (weight * sign) @ (0.1 * 0.8**2 * noise_of(2, 2))
    torch.testing.assert_close(strategy.mean.detach(), before + 0.5 * direction)


def test_steps_fall_with_the_generations():
    assert [
        make("published", step_decay=0.5).step_factor(generation) for generation in range(3)
    ] == [1.0, 0.5, 0.25]


def test_a_generation_that_is_no_better_is_not_the_best():
    strategy, score = (
        make("published", population=2, center_agents=1),
        iter([5.0] + [0.0] * 4 + [4.0] + [0.0] * 4),
    )
    loop = Evolution(
        strategy,
        lambda proposal, items: [SimpleNamespace(fitness=next(score)) for _ in items],
        SerialExecutor(),
    )
    generations = [loop.run(number) for number in range(2)]
    assert [generation.is_best for generation in generations] == [True, False]
    assert [generation.fitness for generation in generations] == [5.0, 4.0]


def test_score_transforms_have_the_numbers_of_the_papers_code():
    assert make("published", score_transform=7).cfg.score_transform == "all_better_sum"
    with pytest.raises(
        ValueError, match="score_transform '8' is unknown; choose one of: linear, rank"
    ):
        make("published", score_transform=8)


def test_noise_that_decays_never_becomes_zero_in_single_precision():
    assert np.float32(make("openai", noise_decay=0.5).noise_std(10_000)) > 0
