"""Strategies behind one ask and tell: ask says who is evaluated, tell writes the estimate as ``.grad``, an optimiser steps.

A strategy is a module: what it learns are parameters, so checkpoints and optimisers hold all of it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from lightning_rl.core.contents import Count, Number
from lightning_rl.core.seeding import derive_seed
from lightning_rl.functional import evolution as es

Vector = npt.NDArray[np.float32]


class Item(NamedTuple):
    """One evaluation: candidate ``mean + sign * noise(member)``, judged with random numbers ``agent`` of the generation.

    turn: evaluators that have several judges take the one whose turn it is; both signs of a member meet the same.
    """

    member: int
    sign: int
    agent: int
    turn: int


@dataclass(frozen=True)
class Proposal(ABC):
    """What an evaluator needs besides the items: small, plain and the same for all of a generation."""

    run_seed: int
    generation: int
    mean: Vector

    def seed(self, item: Item) -> int:
        """Of all randomness of an evaluation."""
        return derive_seed(self.run_seed, "inner agent", self.generation, item.agent)

    @abstractmethod
    def rows(self, items: Sequence[Item]) -> Tensor:
        """Parameters ``[len(items), D]``."""


@dataclass(frozen=True)
class GaussianProposal(Proposal):
    """mean, std ``[D]``; the noise is drawn again wherever it is needed, so that seeds travel instead of it."""

    std: Vector

    def rows(self, items: Sequence[Item]) -> Tensor:
        mean, std = torch.from_numpy(self.mean), torch.from_numpy(self.std)
        members = sorted({item.member for item in items if item.sign})
        noise = es.standard_noise(self.run_seed, self.generation, members, len(mean))
        place = {member: row for row, member in enumerate(members)}
        return torch.stack([mean + i.sign * std * noise[place[i.member]] if i.sign else mean for i in items])


@dataclass(frozen=True)
class SampledProposal(Proposal):
    """mean ``[D]`` and candidates ``[P, D]``."""

    samples: npt.NDArray[np.float32]

    def rows(self, items: Sequence[Item]) -> Tensor:
        return torch.stack([torch.from_numpy(self.samples[i.member] if i.sign else self.mean) for i in items])


@dataclass(frozen=True)
class StrategySettings:
    """population: noise draws N. noise_std: of the noise at the start. step_size: of the optimiser.

    mirrored: also evaluate ``mean - noise``. num_grad_evals: agents per candidate, whose scores grad_eval_aggregate
    (``mean`` or ``min``) brings together. center_agents: agents on the unperturbed parameters, the baseline of some
    transforms. shared_agents: all candidates of a generation meet the same random numbers. nes_step_size: step_size / N.
    keep: the result is the ``best`` mean so far, or the ``last``, where scores are so noisy that the best is luck.
    weight_decay: share by which evolved parameters shrink before a step; ``Strategy.reads`` says who reads which of these.
    """

    population: int
    noise_std: float
    step_size: float
    score_transform: str
    mirrored: bool
    num_grad_evals: int
    grad_eval_aggregate: str
    center_agents: int
    shared_agents: bool
    weight_decay: float
    nes_step_size: bool
    keep: str


OPTIONAL = ("step_size", "step_decay", "noise_decay", "score_transform", "weight_decay", "nes_step_size")
"""Keys of a config that not every strategy reads."""


class Strategy(nn.Module, ABC):
    """Search around ``mean`` ``[D]``; parameters outside ``evolved`` ``[D]`` bool stay as they are.

    best, best_score: the mean with the highest mean score of its own agents so far, or the last; see ``StrategySettings.keep``.
    reads: which of the ``OPTIONAL`` keys make a difference.
    """

    reads: ClassVar[tuple[str, ...]]
    best: Tensor
    best_score: Tensor

    def __init__(self, start: Tensor, evolved: Tensor, settings: StrategySettings, run_seed: int):
        super().__init__()
        self.settings, self.run_seed, self.evolved = settings, run_seed, evolved
        self.mean = nn.Parameter(start.clone())
        self.register_buffer("best", start.clone())
        self.register_buffer("best_score", torch.tensor(float("-inf"), dtype=torch.float64))

    def ask(self, generation: int, noise_scale: float = 1.0) -> tuple[Proposal, list[Item]]:
        """Who is evaluated: agents on the mean first, then every candidate of every sign."""
        s = self.settings
        signs = (1, -1) if s.mirrored else (1,)
        who = [(sign, member, k) for sign in signs for member in range(s.population) for k in range(s.num_grad_evals)]
        center = [Item(-1, 0, number, number) for number in range(s.center_agents)]
        agents = [k if s.shared_agents else n for n, (_, _, k) in enumerate(who)]
        items = [Item(i, sign, s.center_agents + n, i + k) for (sign, i, k), n in zip(who, agents, strict=True)]
        return self.propose(generation, noise_scale), center + items

    @torch.no_grad()
    def tell(self, generation: int, scores: Tensor, noise_scale: float = 1.0) -> float:
        """Takes the scores ``[items]`` in the order of ``ask`` and writes ``.grad``; the mean score of the center."""
        s = self.settings
        center, rest = scores.double().split([s.center_agents, len(scores) - s.center_agents])
        grouped = rest.unflatten(0, (2 if s.mirrored else 1, s.population, s.num_grad_evals))
        candidates = grouped.mean(-1) if s.grad_eval_aggregate == "mean" else grouped.amin(-1)
        baseline = float(center.mean())
        if s.keep == "last" or baseline > self.best_score:
            self.best.copy_(self.mean)
            self.best_score.fill_(baseline)
        self.estimate(generation, candidates, baseline, noise_scale)
        return baseline

    def noise(self, generation: int) -> Tensor:
        """Standard normal ``[N, D]``, 0 where nothing evolves."""
        size = len(self.mean)
        return es.standard_noise(self.run_seed, generation, range(self.settings.population), size) * self.evolved

    def propose(self, generation: int, noise_scale: float) -> Proposal:
        std = (self.settings.noise_std * noise_scale * self.evolved.float()).numpy()
        return GaussianProposal(self.run_seed, generation, _vector(self.mean), std)

    @abstractmethod
    def estimate(self, generation: int, candidates: Tensor, baseline: float, noise_scale: float) -> None:
        """Writes ``.grad`` from the candidates' scores ``[signs, N]``."""

    @abstractmethod
    def optimiser(self) -> torch.optim.Optimizer:
        """What steps along ``.grad``."""

    def schedule(self, optimiser: torch.optim.Optimizer, scale: float) -> None:
        """Sets the optimiser's steps to ``scale`` times those at the start."""
        for group, first in zip(optimiser.param_groups, self.optimiser().param_groups, strict=True):
            group["lr"] = first["lr"] * scale

    def decaying(self, optimiser: torch.optim.Optimizer, by_step_size: bool) -> torch.optim.Optimizer:
        """``optimiser`` with weight decay of what evolves before each of its steps; by_step_size: times its rate."""

        @torch.no_grad()
        def shrink(optimiser: torch.optim.Optimizer, args: Any, kwargs: Any) -> None:
            share = self.settings.weight_decay * (optimiser.param_groups[0]["lr"] if by_step_size else 1.0)
            self.mean.mul_(1 - share * self.evolved.to(self.mean.dtype))

        optimiser.register_step_pre_hook(shrink)
        return optimiser

    def weigh(self, scores: Tensor, baseline: float) -> Tensor:
        """The score transform."""
        return es.TRANSFORMS[self.settings.score_transform](scores, baseline)


class Published(Strategy):
    """The synthetic-environments paper's strategy: the better half of each pair, weighted, times step_size.

    The step is divided neither by noise_std nor (without ``nes_step_size``) by N, and weight decay does not depend on it.
    """

    reads = OPTIONAL

    def estimate(self, generation: int, candidates: Tensor, baseline: float, noise_scale: float) -> None:
        signed = self.noise(generation) * (self.settings.noise_std * noise_scale)
        kept = candidates[0]
        if self.settings.mirrored:
            kept, sign = es.best_of_pair(candidates[0], candidates[1])
            signed = signed * sign.to(signed.dtype).unsqueeze(1)
        self.mean.grad = -es.weighted_noise(self.weigh(kept, baseline), signed)

    def optimiser(self) -> torch.optim.Optimizer:
        s = self.settings
        rate = s.step_size / s.population if s.nes_step_size else s.step_size
        return self.decaying(torch.optim.SGD([self.mean], lr=rate), by_step_size=False)


class OpenAIES(Strategy):
    """Antithetic pairs and Adam (Salimans et al. 2017, arXiv 1703.03864), weight decay as of AdamW (arXiv 1711.05101)."""

    reads = ("step_size", "step_decay", "noise_decay", "score_transform", "weight_decay")

    def estimate(self, generation: int, candidates: Tensor, baseline: float, noise_scale: float) -> None:
        plus, minus = self.weigh(candidates.flatten(), baseline).unflatten(0, (2, -1))
        std = self.settings.noise_std * noise_scale
        self.mean.grad = -es.antithetic_gradient(plus, minus, self.noise(generation), std)

    def optimiser(self) -> torch.optim.Optimizer:
        return self.decaying(torch.optim.Adam([self.mean], lr=self.settings.step_size), by_step_size=True)


class SNES(Strategy):
    """Separable natural evolution strategy: a standard deviation for each parameter (Schaul, Glasmachers & Schmidhuber 2011)."""

    reads = ("step_size", "step_decay")

    def __init__(self, start: Tensor, evolved: Tensor, settings: StrategySettings, run_seed: int):
        super().__init__(start, evolved, settings, run_seed)
        self.log_std = nn.Parameter(torch.full_like(start, settings.noise_std).log())

    def propose(self, generation: int, noise_scale: float) -> Proposal:
        std = _vector(self.log_std.exp() * self.evolved)
        return GaussianProposal(self.run_seed, generation, _vector(self.mean), std)

    def estimate(self, generation: int, candidates: Tensor, baseline: float, noise_scale: float) -> None:
        noise = self.noise(generation)
        both = torch.cat([noise, -noise]) if self.settings.mirrored else noise
        utilities = es.nes_utilities(candidates.flatten())
        mean, log_std = es.snes_directions(utilities, both, self.log_std.exp())
        self.mean.grad, self.log_std.grad = -mean, -log_std * self.evolved

    def optimiser(self) -> torch.optim.Optimizer:
        s = self.settings
        groups = [
            {"params": [self.mean], "lr": s.step_size},
            {"params": [self.log_std], "lr": es.snes_std_rate(int(self.evolved.sum()))},
        ]
        return torch.optim.SGD(groups)


class CMAES(Strategy):
    """Covariance matrix adaptation (Hansen 2016, arXiv 1604.00772) by the library ``cmaes``, for a few hundred parameters."""

    reads = ()
    MAX_SIZE = 1000

    def __init__(self, start: Tensor, evolved: Tensor, settings: StrategySettings, run_seed: int):
        from cmaes import CMA  # type: ignore[import-untyped]  # and scipy, which nothing else here needs

        super().__init__(start, evolved, settings, run_seed)
        mean = start[evolved].double().numpy()
        self.search = CMA(mean, settings.noise_std, population_size=settings.population)

    def _samples(self, generation: int) -> list[npt.NDArray[np.float64]]:
        self.search.reseed_rng(derive_seed(self.run_seed, "evolution noise", generation, 0) % 2**32)
        return [self.search.ask() for _ in range(self.settings.population)]

    def propose(self, generation: int, noise_scale: float) -> Proposal:
        samples = self.mean.detach().repeat(self.settings.population, 1)
        samples[:, self.evolved] = torch.from_numpy(np.stack(self._samples(generation))).float()
        return SampledProposal(self.run_seed, generation, _vector(self.mean), samples.numpy())

    def estimate(self, generation: int, candidates: Tensor, baseline: float, noise_scale: float) -> None:
        samples = self._samples(generation)
        self.search.tell([(x, -score) for x, score in zip(samples, candidates[0].tolist(), strict=True)])
        self.set_extra_state(self.get_extra_state())  # the library rounds what it saves: go on from that, as a resumed run would
        self.mean.grad = torch.zeros_like(self.mean)
        self.mean.grad[self.evolved] = self.mean[self.evolved] - torch.from_numpy(self.search.mean).float()

    def optimiser(self) -> torch.optim.Optimizer:
        return torch.optim.SGD([self.mean], lr=1.0)

    def schedule(self, optimiser: torch.optim.Optimizer, scale: float) -> None:
        """Nothing: the step leads to where the search is."""

    def get_extra_state(self) -> dict[str, Any]:
        """The search as plain data."""
        state = {key: _plain(value) for key, value in self.search.__getstate__().items()}
        # The library leaves what it has not used yet of this memory as it finds it.
        return {**state, "_funhist_values": state["_funhist_values"].nan_to_num(0.0, 0.0, 0.0)}

    def extra_layout(self) -> dict[str, Any]:
        """What a saved search may look like: one of these sizes and settings, in any generation."""
        plain = {key: Number() if isinstance(value, float) else value for key, value in self.get_extra_state().items()}
        return {**plain, "_g": Count()}

    def set_extra_state(self, state: dict[str, Any]) -> None:
        self.search.__setstate__({key: v.numpy().copy() if isinstance(v, Tensor) else v for key, v in state.items()})


STRATEGIES: dict[str, type[Strategy]] = {"published": Published, "openai": OpenAIES, "snes": SNES, "cmaes": CMAES}
"""Strategies by the name that configs use."""


def _plain(value: Any) -> Any:
    """numpy's arrays as tensors, its numbers as Python's."""
    if isinstance(value, np.ndarray):
        return torch.from_numpy(value)
    return value.item() if isinstance(value, np.generic) else value


def _vector(values: Tensor) -> Vector:
    return values.detach().numpy().astype(np.float32, copy=True)
