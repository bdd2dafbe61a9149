"""Evolution strategies: ``ask`` for evaluations, ``tell`` their scores, which writes ``.grad``; an
optimizer then steps.

What it proposes is small plain data that travels to wherever candidates are evaluated.
A strategy is a module: its mean is a parameter and what it remembers are buffers, so checkpoints
hold all of it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from pydantic import BeforeValidator, Field, PositiveFloat, model_validator
from pydantic.dataclasses import dataclass as config_dataclass
from torch import Tensor, nn

from lightning_rl.core.schema import STRICT, Agents, Share
from lightning_rl.core.seeding import derive_seed
from lightning_rl.functional import evolution as es

Vector = npt.NDArray[np.float32]

OPTIONAL = (
    "step_size",
    "step_decay",
    "noise_decay",
    "score_transform",
    "weight_decay",
)
"""Keys that not every strategy reads; ``Strategy.reads`` says which it does."""


def _transform_name(value: Any) -> Any:
    """The name of a score transform that may be given by its number in the paper's code."""
    return dict(enumerate(es.TRANSFORMS)).get(value, str(value)) if type(value) is int else value


@config_dataclass(frozen=True, config=STRICT, kw_only=True)
class StrategyConfig:
    """Keys of the outer loop; ``configs/proxy_search.yaml`` explains them."""

    strategy: str
    population: Agents
    mirrored: bool | None
    noise_std: PositiveFloat
    noise_decay: PositiveFloat
    step_size: PositiveFloat
    step_decay: Annotated[float, Field(gt=0, le=1)]
    score_transform: Annotated[str, BeforeValidator(_transform_name)]
    num_grad_evals: Agents
    center_agents: Agents
    shared_agents: bool
    weight_decay: Share
    keep: Literal["best", "last"]

    @model_validator(mode="after")
    def _check_strategy(self) -> StrategyConfig:
        for key, known in (("strategy", STRATEGIES), ("score_transform", es.TRANSFORMS)):
            if getattr(self, key) not in known:
                raise ValueError(
                    f"{key} '{getattr(self, key)}' is unknown; choose one of: {', '.join(known)}"
                )
        kind = STRATEGIES[self.strategy]
        if self.population == 1 and (kind.compares or self.score_transform in es.NEED_TWO):
            which = (
                f"strategy {self.strategy}"
                if kind.compares
                else f"score_transform {self.score_transform}"
            )
            raise ValueError(
                f"population 1: {which} compares candidates with each other; use a population of 2 "
                "or more"
            )
        if self.mirrored is not None and self.mirrored not in kind.mirrored:
            always = "never" if self.mirrored else "always"
            raise ValueError(
                f"mirrored {str(self.mirrored).lower()}: the candidates of strategy "
                f"{self.strategy} are {always} "
                "mirrored; leave the key out, or use strategy=published or snes"
            )
        for key, adapted in (("noise_decay", "noise"), ("step_decay", "steps")):
            decay = getattr(self, key)
            if decay != 1 and key not in kind.reads:
                raise ValueError(
                    f"{key} {decay}: strategy {self.strategy} adapts its {adapted} itself; use 1.0"
                )
        return self

    @property
    def signs(self) -> tuple[int, ...]:
        """Signs of the noise that is added to the mean: with mirrored candidates each draw is
        used twice.
        """
        mirrored = STRATEGIES[self.strategy].mirrored[0] if self.mirrored is None else self.mirrored
        return (1, -1) if mirrored else (1,)

    def ignored_keys(self) -> dict[str, str]:
        """Keys that the strategy does not read, each with the reason and the remedy."""
        found = {}
        for key in OPTIONAL:
            readers = [name for name, strategy in STRATEGIES.items() if key in strategy.reads]
            if self.strategy not in readers:
                found[key] = (
                    f"strategy {self.strategy} does not read it; leave it out, or use "
                    f"strategy={' or '.join(readers)}"
                )
        return found


class Item(NamedTuple):
    """One evaluation: of the candidate ``mean + sign * noise(member)``, with the random numbers
    ``agent`` of the generation.

    sign 0: of the mean itself. turn: which of several kinds of agents; equal for both signs, with
    ``shared_agents`` for all.
    """

    member: int
    sign: int
    agent: int
    turn: int


@dataclass(frozen=True)
class Proposal(ABC):
    """All that is needed to evaluate the items of a generation: small and plain, so that it can
    travel. mean ``[D]``.
    """

    run_seed: int
    generation: int
    mean: Vector

    def seed(self, item: Item) -> int:
        """Of all randomness of an evaluation."""
        return derive_seed(self.run_seed, "inner agent", self.generation, item.agent)

    @abstractmethod
    def rows(self, items: Sequence[Item]) -> Tensor:
        """The candidates' parameters ``[len(items), D]``."""


@dataclass(frozen=True)
class GaussianProposal(Proposal):
    """std ``[D]`` of the noise. The noise itself is not sent along: it is drawn again from the
    seeds wherever it is needed.
    """

    std: Vector

    def rows(self, items: Sequence[Item]) -> Tensor:
        mean, std = torch.from_numpy(self.mean), torch.from_numpy(self.std)
        members = sorted({item.member for item in items if item.sign})
        drawn = es.standard_noise(self.run_seed, self.generation, members, len(mean))
        noise = dict(zip(members, drawn, strict=True))
        rows = [mean + i.sign * std * noise[i.member] if i.sign else mean for i in items]
        return torch.stack(rows)


STRATEGIES: dict[str, type[Strategy]] = {}
"""Strategies by the name that configs use; all but ``Published`` are in ``variants``."""


class Strategy(nn.Module, ABC):
    """Search around ``mean``; scores are to be maximised. Candidates, noise and scores are on the
    CPU, wherever the mean is.

    Attributes:
        mean: where the search is ``[D]``, a parameter.
        best, best_score: the mean whose own agents have scored highest so far, or the last one; see
            ``StrategyConfig.keep``.
        improved: whether the newest scores made the mean the ``best``.
        reads: which of the ``OPTIONAL`` keys make a difference.
        mirrored: the values that the key of this name may have, the default first.
        compares: whether it compares candidates with each other, so that it needs a population of 2
            or more.

    A subclass has a ``name``, which configs use; those of this package are known once
    ``lightning_rl.evolution`` is imported.
    """

    reads: ClassVar[tuple[str, ...]]
    mirrored: ClassVar[tuple[bool, ...]] = (True, False)
    compares: ClassVar[bool] = True
    best: Tensor
    best_score: Tensor
    evolved: Tensor

    def __init_subclass__(cls, *, name: str) -> None:
        STRATEGIES[name] = cls

    def __init__(self, start: Tensor, evolved: Tensor, cfg: StrategyConfig, run_seed: int):
        """start: the first mean ``[D]``; evolved: which parameters change ``[D]`` bool;
        run_seed: of all noise.
        """
        super().__init__()
        self.cfg, self.run_seed = cfg, run_seed
        self.mean = nn.Parameter(start.clone())
        self.register_buffer("evolved", evolved, persistent=False)
        self.register_buffer("best", start.clone())
        self.register_buffer("best_score", torch.tensor(float("-inf"), dtype=torch.float64))
        self.improved = False

    def ask(self, generation: int) -> tuple[Proposal, list[Item]]:
        """What is to be evaluated: agents on the mean first, then every candidate, sign by sign."""
        cfg, first = self.cfg, generation if self.cfg.shared_agents else 0
        items = [Item(member=-1, sign=0, agent=n, turn=first + n) for n in range(cfg.center_agents)]
        for sign in cfg.signs:
            for member in range(cfg.population):
                for k in range(cfg.num_grad_evals):
                    agent = cfg.center_agents + k if cfg.shared_agents else len(items)
                    items.append(
                        Item(member, sign, agent, turn=k + (first if cfg.shared_agents else member))
                    )
        return self.propose(generation), items

    @torch.no_grad()
    def tell(self, generation: int, scores: Tensor) -> float:
        """Takes the scores ``[items]`` in the order of ``ask`` and writes ``.grad``; the mean
        score of the mean's agents.
        """
        cfg = self.cfg
        of_mean, rest = scores.double().split([cfg.center_agents, len(scores) - cfg.center_agents])
        grouped = rest.unflatten(0, (len(cfg.signs), cfg.population, cfg.num_grad_evals))
        baseline = float(of_mean.mean())
        self.improved = cfg.keep == "last" or baseline > float(self.best_score)
        if self.improved:
            self.best.copy_(self.mean)
            self.best_score.fill_(baseline)
        self.estimate(generation, grouped.mean(-1), baseline)
        return baseline

    def noise_std(self, generation: int) -> float:
        """Standard deviation of the noise."""
        least = 1e-30  # it is divided by, in single precision
        return max(self.cfg.noise_std * self.cfg.noise_decay**generation, least)

    def step_factor(self, generation: int) -> float:
        """What the optimizer's learning rates are multiplied by."""
        return self.cfg.step_decay**generation

    def scale_noise(self, factor: float) -> None:  # others have theirs from their config
        """Multiplies the standard deviation of the noise from now on, in strategies that adapt
        it; here nothing.
        """

    def noise(self, generation: int) -> Tensor:
        """Standard normal ``[P, D]`` of the CPU, 0 where nothing evolves."""
        members = range(self.cfg.population)
        drawn = es.standard_noise(self.run_seed, generation, members, len(self.mean))
        return drawn * self.evolved.cpu()

    def propose(self, generation: int) -> Proposal:
        """The candidates of a generation."""
        std = self.noise_std(generation) * self.evolved.float()
        return GaussianProposal(self.run_seed, generation, vector(self.mean), vector(std))

    @abstractmethod
    def estimate(self, generation: int, candidates: Tensor, baseline: float) -> None:
        """Writes ``.grad`` from the candidates' scores ``[signs, P]`` and that of the mean."""

    @abstractmethod
    def optimizer(self) -> torch.optim.Optimizer:
        """What steps along ``.grad``."""

    def decaying(
        self, optimizer: torch.optim.Optimizer, by_step_size: bool
    ) -> torch.optim.Optimizer:
        """Adds weight decay of the evolved parameters before each step of ``optimizer``;
        by_step_size: times its rate.
        """

        @torch.no_grad()
        def shrink(optimizer: torch.optim.Optimizer, args: Any, kwargs: Any) -> None:
            share = self.cfg.weight_decay
            if by_step_size:
                share *= optimizer.param_groups[0]["lr"]
            self.mean.mul_(1 - share * self.evolved.to(self.mean.dtype))

        optimizer.register_step_pre_hook(shrink)
        return optimizer

    def weights(self, scores: Tensor, baseline: float) -> Tensor:
        """The scores as the score transform has them."""
        return es.TRANSFORMS[self.cfg.score_transform](scores, baseline)


class Published(Strategy, name="published"):
    """The strategy of arXiv 2202.02790: the better half of each pair, weighted, times step_size.

    The step is divided neither by noise_std nor by P, and weight decay does not depend on it.
    """

    reads = OPTIONAL
    compares = False

    def estimate(self, generation: int, candidates: Tensor, baseline: float) -> None:
        signed = self.noise(generation) * self.noise_std(generation)
        scores = candidates[0]
        if len(candidates) == 2:
            scores, sign = es.best_of_pair(candidates[0], candidates[1])
            signed = signed * sign.to(signed.dtype).unsqueeze(1)
        self.mean.grad = -es.weighted_noise(self.weights(scores, baseline), signed).to(
            self.mean.device
        )

    def optimizer(self) -> torch.optim.Optimizer:
        sgd = torch.optim.SGD([self.mean], lr=self.cfg.step_size)
        return self.decaying(sgd, by_step_size=False)


def vector(values: Tensor) -> Vector:
    """As a proposal has it."""
    return values.detach().cpu().numpy().astype(np.float32, copy=True)
