"""Evolution strategies besides the published one: antithetic pairs with Adam (OpenAI-ES), SNES
and CMA-ES.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from lightning_rl.core.errors import UserError
from lightning_rl.core.extras import require
from lightning_rl.core.seeding import derive_seed
from lightning_rl.evolution.strategies import (
    GaussianProposal,
    Item,
    Proposal,
    Strategy,
    StrategyConfig,
    vector,
)
from lightning_rl.functional import evolution as es


class OpenAIES(Strategy, name="openai"):
    """Antithetic pairs and Adam (Salimans et al. 2017, arXiv 1703.03864), weight decay as of
    AdamW (arXiv 1711.05101).
    """

    reads = ("step_size", "step_decay", "noise_decay", "score_transform", "weight_decay")
    mirrored = (True,)

    def estimate(self, generation: int, candidates: Tensor, baseline: float) -> None:
        plus, minus = self.weights(candidates.flatten(), baseline).unflatten(0, (2, -1))
        gradient = es.antithetic_gradient(
            plus, minus, self.noise(generation), self.noise_std(generation)
        )
        self.mean.grad = -gradient.to(self.mean.device)

    def optimizer(self) -> torch.optim.Optimizer:
        return self.decaying(
            torch.optim.Adam([self.mean], lr=self.cfg.step_size), by_step_size=True
        )


class SNES(Strategy, name="snes"):
    """Separable natural evolution strategy: a standard deviation for each parameter (Schaul,
    Glasmachers & Schmidhuber 2011).
    """

    reads = ("step_size", "step_decay")

    def __init__(self, start: Tensor, evolved: Tensor, cfg: StrategyConfig, run_seed: int):
        super().__init__(start, evolved, cfg, run_seed)
        self.log_std = nn.Parameter(torch.full_like(start, cfg.noise_std).log())

    def propose(self, generation: int) -> Proposal:
        std = self.log_std.exp() * self.evolved
        return GaussianProposal(self.run_seed, generation, vector(self.mean), vector(std))

    def estimate(self, generation: int, candidates: Tensor, baseline: float) -> None:
        drawn = self.noise(generation)
        noise = torch.cat([sign * drawn for sign in self.cfg.signs])
        utilities = es.nes_utilities(candidates.flatten())
        directions = es.snes_directions(utilities, noise, self.log_std.detach().exp().cpu())
        mean, log_std = (direction.to(self.mean.device) for direction in directions)
        self.mean.grad, self.log_std.grad = -mean, -log_std * self.evolved

    @torch.no_grad()
    def scale_noise(self, factor: float) -> None:
        self.log_std.add_(math.log(factor))

    def optimizer(self) -> torch.optim.Optimizer:
        std_rate = es.snes_std_rate(int(self.evolved.sum()))
        groups = [
            {"params": [self.mean], "lr": self.cfg.step_size},
            {"params": [self.log_std], "lr": std_rate},
        ]
        return torch.optim.SGD(groups)


@dataclass(frozen=True)
class SampledProposal(Proposal):
    """The candidates themselves ``[P, D]``."""

    samples: npt.NDArray[np.float32]

    def rows(self, items: Sequence[Item]) -> Tensor:
        return torch.stack(
            [torch.from_numpy(self.samples[i.member] if i.sign else self.mean) for i in items]
        )


class CMAES(Strategy, name="cmaes"):
    """Covariance matrix adaptation (Hansen 2016, arXiv 1604.00772) by the library ``cmaes``, for
    a few hundred parameters.
    """

    reads = ()
    mirrored = (False,)
    MAX_SIZE, MIN_POPULATION = 1000, 4

    def __init__(self, start: Tensor, evolved: Tensor, cfg: StrategyConfig, run_seed: int):
        require("strategy=cmaes", "cmaes")
        # It imports scipy, which nothing else here needs.
        from cmaes import CMA  # type: ignore[import-untyped]

        if len(start) > self.MAX_SIZE:
            raise UserError(
                f"strategy cmaes: {len(start):,} parameters are too many for a full covariance "
                f"matrix (limit {self.MAX_SIZE:,}); use strategy=snes, or fewer hidden units"
            )
        if cfg.population < self.MIN_POPULATION:
            raise UserError(
                f"population {cfg.population}: strategy cmaes learns no covariance from the better "
                f"half of them; use a population of {self.MIN_POPULATION} or more"
            )
        super().__init__(start, evolved, cfg, run_seed)
        mean = start[evolved].double().numpy()
        self.search = CMA(mean, cfg.noise_std, population_size=cfg.population)

    def _samples(self, generation: int) -> list[npt.NDArray[np.float64]]:
        self.search.reseed_rng(derive_seed(self.run_seed, "evolution noise", generation, 0) % 2**32)
        return [self.search.ask() for _ in range(self.cfg.population)]

    def propose(self, generation: int) -> Proposal:
        samples = self.mean.detach().cpu().repeat(self.cfg.population, 1)
        drawn = torch.from_numpy(np.stack(self._samples(generation)))
        samples[:, self.evolved.cpu()] = drawn.float()
        return SampledProposal(self.run_seed, generation, vector(self.mean), samples.numpy())

    def estimate(self, generation: int, candidates: Tensor, baseline: float) -> None:
        scored = zip(self._samples(generation), candidates[0].tolist(), strict=True)
        self.search.tell([(x, -score) for x, score in scored])
        # the library rounds what it saves: go on from that, as a resumed run would
        self.set_extra_state(self.get_extra_state())
        mean = torch.from_numpy(self.search.mean).float().to(self.mean.device)
        self.mean.grad = torch.zeros_like(self.mean)
        self.mean.grad[self.evolved] = self.mean[self.evolved] - mean

    def optimizer(self) -> torch.optim.Optimizer:
        return torch.optim.SGD([self.mean], lr=1.0)

    def get_extra_state(self) -> dict[str, Any]:
        """The search as plain data."""
        state = {key: _plain(value) for key, value in self.search.__getstate__().items()}
        # The library leaves what it has not used yet of this memory as it finds it.
        return {**state, "_funhist_values": state["_funhist_values"].nan_to_num(0.0, 0.0, 0.0)}

    def set_extra_state(self, state: dict[str, Any]) -> None:
        self.search.__setstate__(
            {key: v.numpy().copy() if isinstance(v, Tensor) else v for key, v in state.items()}
        )


def _plain(value: Any) -> Any:
    """numpy's arrays as tensors, its numbers as Python's."""
    if isinstance(value, np.ndarray):
        return torch.from_numpy(value)
    return value.item() if isinstance(value, np.generic) else value
