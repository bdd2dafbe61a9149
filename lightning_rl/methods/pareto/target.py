"""The target: what the next episodes are asked for."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn

from lightning_rl.core.types import Array
from lightning_rl.functional.pareto import crowding_distance, in_ranges, non_dominated

Commanded = tuple[float, ...]


class FrontTarget(nn.Module):
    """The best returns so far, none of which beats another, and commands a little beyond them.

    Attributes:
        rows: their commands ``[size, K + 1]``: the returns, and the fewest steps that obtained
            them; ``count`` of them are there, those that are furthest from others.
        spread: standard deviation of each objective over them ``[K]``.
    """

    rows: Tensor
    count: Tensor
    spread: Tensor

    def __init__(self, objectives: int, size: int):
        super().__init__()
        self.register_buffer("rows", torch.zeros(size, objectives + 1))
        self.register_buffer("count", torch.zeros((), dtype=torch.int64))
        self.register_buffer("spread", torch.zeros(objectives))

    def update(self, returns: Array, lengths: Array) -> None:
        """Sets the front from what episodes obtained ``[E, K]``, and their lengths ``[E]``."""
        best = non_dominated(returns)
        found = np.column_stack([returns, lengths])[best]
        found = found[np.lexsort(found.T[::-1])]
        _, first = np.unique(found[:, :-1], axis=0, return_index=True)
        found = found[first]
        if len(found) > len(self.rows):
            apart = crowding_distance(found[:, :-1])
            found = found[np.sort(apart.argsort(kind="stable")[-len(self.rows) :])]
        self.count.fill_(len(found))
        self.rows.zero_()
        self.rows[: len(found)] = torch.from_numpy(found)
        self.spread.copy_(torch.from_numpy(found[:, :-1].std(0)))

    def commands(self) -> list[Commanded]:
        """The commands of the front, in the order of the first objective."""
        return [tuple(row) for row in self.rows[: int(self.count)].tolist()]

    def draw(self, rng: np.random.Generator, count: int) -> list[Commanded]:
        """Commands of ``count`` episodes: of the front, each with more of one objective.

        As PCN has it, section 4.3: ``U(0, sd)`` more, two steps sooner. One command an episode; PCN
        has one a collection.
        """
        rows = self.rows[: int(self.count)].double().numpy()
        asked = rows[rng.integers(len(rows), size=count)]
        objective = rng.integers(len(self.spread), size=count)
        more = rng.random(count) * self.spread.double().numpy()[objective]
        asked[np.arange(count), objective] += more
        asked[:, -1] = np.maximum(asked[:, -1] - 2, 1)
        return [tuple(row) for row in asked.tolist()]

    def nearest(self, given: dict[int, float]) -> Commanded:
        """The command of the front that is nearest to the numbers ``given`` by their places.

        Of none: nearest to the best of each objective, the best compromise.
        """
        rows = self.rows[: max(int(self.count), 1)].double().numpy()
        points = rows[:, list(given) or list(range(len(self.spread)))]
        asked = np.array(list(given.values())) if given else points.max(0)
        scaled = in_ranges(np.concatenate([points, asked[None]]))
        away = np.linalg.norm(scaled[:-1] - scaled[-1], axis=-1)
        return tuple(rows[away.argmin()].tolist())
