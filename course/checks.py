"""What the blanks of the lessons must do: numbers worked by hand, then the library's own functions
on random inputs. A notebook calls ``check(function)``.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from lightning_rl.functional import policy_gradient as pg
from lightning_rl.functional.evolution import antithetic_gradient, rank
from lightning_rl.functional.returns import discounted_returns, lambda_returns
from lightning_rl.functional.reward_shaping import REWARD_FORMS, shaped_reward
from lightning_rl.functional.upside_down import exponential_weights, standardise
from lightning_rl.functional.value_learning import q_learning_target

Check = Callable[[Callable[..., Any]], None]
BLANKS: dict[int, dict[str, Check]] = {}
"""The checks of each lesson, by the names of the functions."""

DATA = Path(__file__).resolve().parent.parent / "tests" / "data_files"


class WrongAnswerError(Exception):
    """What a function gives instead of what it should, in one line."""


def check(function: Callable[..., Any]) -> None:
    """Says that a function is right, or raises what is wrong with it."""
    known = {name: each for lesson in BLANKS.values() for name, each in lesson.items()}
    known[function.__name__](function)
    print(f"{function.__name__}: right")


def of(lesson: int) -> Callable[[Check], Check]:
    """A decorator that makes a check known under its function's name."""

    def add(each: Check) -> Check:
        BLANKS.setdefault(lesson, {})[each.__name__] = each
        return each

    return add


def same(found: Any, expected: Any, where: str, tolerance: float = 1e-4) -> None:
    """WrongAnswerError, unless shape and numbers are the expected ones."""
    if not isinstance(found, Tensor):
        raise WrongAnswerError(f"{where}: expected a tensor, got {type(found).__name__} {found!r}")
    expected = torch.as_tensor(expected, dtype=torch.float32)
    found = found.detach().float()
    if found.shape != expected.shape:
        raise WrongAnswerError(
            f"{where}: expected shape {list(expected.shape)}, got {list(found.shape)}"
        )
    if not torch.allclose(found, expected, rtol=tolerance, atol=tolerance):
        raise WrongAnswerError(f"{where}: expected {short(expected)}, got {short(found)}")


def short(values: Tensor) -> str:
    """A tensor's first numbers."""
    numbers = [round(value, 4) for value in values.flatten().tolist()]
    return f"{numbers[:6]} .." if len(numbers) > 6 else str(numbers if values.dim() else numbers[0])


def random(*shape: int) -> Tensor:
    """Standard normal numbers, always the same ones."""
    return torch.randn(*shape, generator=torch.Generator().manual_seed(len(shape) + sum(shape)))


class Printed:
    """The 450 steps whose losses the assignment prints, and what it prints."""

    def __init__(self) -> None:
        fixture = np.load(DATA / "pg_fixture.npz")
        expected = json.loads((DATA / "pg_expected.json").read_text())
        self.printed = expected["published"]["seed_2020"]
        self.scores = torch.from_numpy(fixture["action_scores"]).float()
        self.returns = torch.from_numpy(fixture["q_vals"]).float()
        action = torch.from_numpy(fixture["actions"])
        self.log_prob = self.scores.log_softmax(-1).gather(-1, action[:, None])[:, 0]


# 1 REINFORCE


@of(1)
def returns_to_go(f: Callable[..., Any]) -> None:
    same(f(torch.tensor([1.0, 2.0, 3.0]), 0.5), [2.75, 3.5, 3.0], "rewards 1, 2, 3, gamma 0.5")
    reward = random(50)
    last = torch.arange(50) == 49
    same(f(reward, 0.9), discounted_returns(reward, 0.9, last), "50 random rewards")


@of(1)
def policy_loss(f: Callable[..., Any]) -> None:
    found = f(torch.tensor([-1.0, -2.0]), torch.tensor([3.0, 5.0]))
    same(found, 6.5, "log-probabilities -1, -2, weights 3, 5")
    steps = Printed()
    same(f(steps.log_prob, steps.returns), steps.printed["vpg"], "the assignment's steps", 1e-3)


# 2 Baseline and entropy


@of(2)
def baseline(f: Callable[..., Any]) -> None:
    same(f(torch.tensor([1.0, 2.0, 6.0])), 3.0, "returns 1, 2, 6")
    steps = Printed()
    loss = pg.reinforce_loss(steps.log_prob, steps.returns - f(steps.returns))
    same(loss, steps.printed["bpg"], "the loss with it of the assignment's steps", 1e-3)


@of(2)
def entropy(f: Callable[..., Any]) -> None:
    same(f(torch.zeros(1, 4)), [1.3863], "four equal logits")
    same(f(torch.tensor([[0.0, 800.0]])), [0.0], "logits 0 and 800")
    logits = random(9, 3)
    same(f(logits), torch.distributions.Categorical(logits=logits).entropy(), "random logits")


@of(2)
def entropy_loss(f: Callable[..., Any]) -> None:
    same(f(torch.tensor([0.0, 1.3863]), 4, 0.7), -0.35, "entropies 0 and ln 4, 4 actions, beta 0.7")
    steps = Printed()
    entropies = torch.distributions.Categorical(logits=steps.scores).entropy()
    same(f(entropies, 4, 1.0), steps.printed["entropy_beta1"], "the assignment's steps", 1e-3)


# 3 Actor-critic


@of(3)
def td_errors(f: Callable[..., Any]) -> None:
    one = torch.tensor([1.0, 1.0])
    found = f(one, torch.tensor([0.9, 0.0]), torch.tensor([2.0, 3.0]), torch.tensor([3.0, 9.0]))
    same(found, [1.7, -2.0], "rewards 1, 1, discounts 0.9, 0, values 2, 3, next values 3, 9")


@of(3)
def advantages(f: Callable[..., Any]) -> None:
    same(f(torch.tensor([1.0, 2.0, 4.0]), 0.5), [3.0, 4.0, 4.0], "errors 1, 2, 4, decay 0.5")
    reward, value, last = random(20), random(21), torch.arange(20) == 19
    discount = torch.full((20,), 0.9).masked_fill(last, 0.0)
    errors = reward + discount * value[1:] - value[:-1]
    expected = lambda_returns(reward, discount, value[1:], last, 0.8) - value[:-1]
    same(f(errors, 0.9 * 0.8), expected, "20 random steps")


@of(3)
def critic_loss(f: Callable[..., Any]) -> None:
    value, target = torch.tensor([1.0, 2.0], requires_grad=True), torch.tensor([3.0, 2.0])
    same(f(value, target), 2.0, "values 1, 2, targets 3, 2")
    value, target = random(9).requires_grad_(), random(9).requires_grad_()
    (slope,) = torch.autograd.grad(f(value, target), target, allow_unused=True)
    if slope is not None and bool(slope.any()):
        raise WrongAnswerError("the gradient flows into the target; detach it")
    steps = Printed()
    ones = torch.ones_like(steps.returns)
    total = pg.reinforce_loss(steps.log_prob, steps.returns - 1) + f(ones, steps.returns)
    same(total, steps.printed["aac_ones_total_delta1"], "the assignment's steps", 1e-3)


# 4 Upside-down RL


@of(4)
def examples(f: Callable[..., Any]) -> None:
    expected = [[4.0, 3.0], [3.0, 2.0], [5.0, 1.0]]
    same(f(torch.tensor([1.0, -2.0, 5.0])), expected, "rewards 1, -2, 5")
    reward = random(40)
    to_go = discounted_returns(reward, 1.0, torch.arange(40) == 39)
    same(f(reward)[:, 0], to_go, "the returns of 40 random rewards", 1e-3)


@of(4)
def next_command(f: Callable[..., Any]) -> None:
    command = torch.tensor([[5.0, 3.0], [2.0, 1.0], [9.0, 4.0]])
    expected = [[4.0, 2.0], [0.0, 1.0], [10.0, 3.0]]
    found = f(command, torch.tensor([1.0, 2.0, -3.0]), 10.0)
    same(found, expected, "commands (5, 3), (2, 1), (9, 4), rewards 1, 2, -3, at most 10")


@of(4)
def command_range(f: Callable[..., Any]) -> None:
    low, high = f(torch.tensor([1.0, 3.0]))
    same(torch.stack([low, high]), [2.0, 3.0], "returns 1 and 3")
    returns = random(25)
    low, high = f(returns)
    expected = torch.stack([returns.mean(), returns.mean() + returns.std(correction=0)])
    same(torch.stack([low, high]), expected, "25 random returns")


# 5 Reward-conditioned policies


@of(5)
def in_deviations(f: Callable[..., Any]) -> None:
    same(f(torch.tensor([1.0, 3.0])), [-1.0, 1.0], "labels 1, 3")
    same(f(torch.tensor([2.0, 2.0])), [0.0, 0.0], "labels 2, 2")
    same(f(5 * random(60) + 3), standardise(5 * random(60) + 3), "60 random labels")


@of(5)
def weights(f: Callable[..., Any]) -> None:
    found = f(torch.tensor([0.0, 1.0986]), 1.0, 20.0)
    same(found, [0.5, 1.5], "z 0 and ln 3, temperature 1, at most 20")
    expected = exponential_weights(random(60), 0.3, 4.0)
    same(f(random(60), 0.3, 4.0), expected, "60 random z, temperature 0.3, at most 4")


@of(5)
def tilted(f: Callable[..., Any]) -> None:
    found = torch.stack(f(torch.tensor([0.0, 4.0]), torch.tensor([0.5, 1.5])))
    same(found, [3.0, 1.7321], "labels 0, 4, weights 0.5, 1.5")


# 6 A synthetic environment


@of(6)
def centred_ranks(f: Callable[..., Any]) -> None:
    same(f(torch.tensor([10.0, -70.0, 900.0])), [0.0, -0.5, 0.5], "scores 10, -70, 900")
    same(f(random(30)), rank(random(30)) - 0.5, "30 random scores")


@of(6)
def search_direction(f: Callable[..., Any]) -> None:
    noise = torch.tensor([[1.0, 0.0], [0.0, 2.0]])
    found = f(torch.tensor([3.0, 1.0]), torch.tensor([1.0, 2.0]), noise, 0.5)
    same(found, [1.0, -1.0], "scores 3, 1 and 1, 2 of mirrored noise (1, 0) and (0, 2), std 0.5")
    plus, minus, noise = random(8), random(9)[:8], random(8, 5)
    same(f(plus, minus, noise, 0.1), antithetic_gradient(plus, minus, noise, 0.1), "random scores")


# 7 A reward network


@of(7)
def shaped(f: Callable[..., Any]) -> None:
    one = torch.tensor([1.0])
    same(f(-one, 2 * one, 4 * one, 0.9), [0.6], "reward -1, phi 2, next phi 4, gamma 0.9")
    reward, phi, following = random(30), random(31)[:30], random(32)[:30]
    form = REWARD_FORMS["additive_potential"]
    expected = shaped_reward(form, lambda value, _: value, reward, phi, following, None, 0.8)
    same(f(reward, phi, following, 0.8), expected, "30 random steps")


@of(7)
def added_return(f: Callable[..., Any]) -> None:
    found = f(torch.tensor([2.0, 4.0, 8.0]), 0.5)
    same(found, 0.0, "phi 2, 4, 8 of two steps, gamma 0.5")
    phi = random(12)
    learned = 0.9 * phi[1:] - phi[:-1]
    expected = discounted_returns(learned, 0.9, torch.arange(11) == 10)[0]
    same(f(phi, 0.9), expected, "12 random phi")


# 8 Model or replay


@of(8)
def q_target(f: Callable[..., Any]) -> None:
    next_q = torch.tensor([[1.0, 5.0], [7.0, 2.0]])
    found = f(torch.tensor([1.0, 1.0]), torch.tensor([0.9, 0.0]), next_q)
    same(found, [5.5, 1.0], "rewards 1, 1, discounts 0.9, 0, next values (1, 5), (7, 2)")
    reward, discount = random(20), random(21)[:20].abs()
    expected = q_learning_target(reward, discount, random(20, 3))
    same(f(reward, discount, random(20, 3)), expected, "20 random transitions")


@of(8)
def imagine(f: Callable[..., Any]) -> None:
    table = torch.tensor([[[1, 0], [0, 1]], [[0, 1], [1, 0]]])
    state, action = torch.tensor([[0, 0], [1, 1], [0, 1]]), torch.tensor([0, 0, 1])
    expected = [[1, 0], [0, 1], [0, 0]]
    same(f(table, state, action), expected, "two dials of two places, three states")
