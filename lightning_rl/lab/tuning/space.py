"""The ``tune:`` block of a method's YAML: what is searched, over which budget, and how."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import Field, PositiveInt
from pydantic.dataclasses import dataclass as config_dataclass

from lightning_rl.core.catalogue import entry
from lightning_rl.core.config import block_layers, build_config
from lightning_rl.core.errors import UserError
from lightning_rl.core.gamenames import base_name
from lightning_rl.core.limits import SEEDS, WHOLE
from lightning_rl.core.schema import STRICT, Agents
from lightning_rl.run.callbacks import BUDGETS


@config_dataclass(frozen=True, config=STRICT, kw_only=True)
class TuneConfig:
    """Keys of a ``tune:`` block; ``configs/upside_down.yaml`` explains them."""

    algorithm: Literal["asha", "bohb", "grid", "optuna"]
    trials: Agents
    seeds: Annotated[int, Field(gt=0, le=SEEDS)]
    metric: str
    mode: Literal["max", "min"]
    budget: dict[str, PositiveInt]
    reports: Agents
    settings: dict[str, Any]
    search: dict[str, dict[str, Any]]

    def __post_init__(self) -> None:
        if len(self.budget) != 1 or not self.budget.keys() <= set(BUDGETS):
            raise ValueError(
                f"tune budget {self.budget}: expected one of {', '.join(BUDGETS)}; "
                '--tune "budget={max_epochs: 4}" sets it anew, budget.KEY=... adds to it'
            )
        if both := {*self.budget, *self.settings} & self.search.keys():
            raise ValueError(
                f"tune search '{min(both)}' is in the budget or the settings of the search, too; "
                "leave one out"
            )
        if not self.search:
            raise ValueError(
                "tune search is empty: name the keys to search, e.g. {learning_rate: {log: "
                "[1.0e-4, 1.0e-2]}}"
            )
        if self.algorithm == "grid":
            for key, description in self.search.items():
                if "choice" not in description:
                    raise ValueError(
                        f"tune algorithm grid: '{key}' has no list of values; give "
                        f"search.{key}={{choice: [..]}}"
                    )

    def require_offline(self) -> None:
        """UserError for a search that needs steps of an environment, where nothing is played."""
        if "max_epochs" not in self.budget:
            raise UserError(
                f"--dataset: nothing is played, of which the budget {self.budget} of a trial is; "
                'give --tune "budget={max_epochs: 40}"'
            )
        if self.metric.startswith("rollout/"):
            raise UserError(
                f"--dataset: nothing is played, so that there is no {self.metric}; give --tune "
                "metric=eval/return_mean"
            )


def load_tune_config(
    implementation: str,
    gamename: str,
    settings: Mapping[str, Any],
    ignored_keys: Iterable[str] = (),
) -> TuneConfig:
    """``tune: default:`` < ``tune: <gamename>:`` < settings; UserError where the method has no such
    block.

    ignored_keys: keys that make no difference; the YAML's spaces of these are left out.
    """
    found = entry(implementation)
    names = dict.fromkeys(("default", base_name(gamename), gamename))
    blocks = [layer for name in names for layer in block_layers(found, "tune", name)]
    if not blocks:
        where = f"{found.blocks[-1].file}, block '{found.name}'"
        raise UserError(
            f"--use_tune: {where} has no tune: block; add one, upside_down.yaml explains its keys"
        )
    for _, values in blocks:
        for key in ignored_keys:
            values.pop(key, None)
            for part in ("search", "settings"):
                values.pop(f"{part}.{key}", None)
                if isinstance(values.get(part), dict):
                    values[part].pop(key, None)
    config = build_config(TuneConfig, [*blocks, ("--tune", settings)])
    (total,) = config.budget.values()
    # With more reports than the budget, nothing would be trained before the first.
    config = dataclasses.replace(config, reports=min(config.reports, total))
    if config.algorithm == "grid":
        sizes = [len(space.values) for space in spaces(config.search)]
        config = dataclasses.replace(config, trials=math.prod(sizes))
    return config


FORMS = {
    "choice": "a list of values",
    "uniform": "[low, high]",
    "log": "[low, high], evenly in the logarithm",
    "one_minus_log": "[low, high] of one minus the value, evenly in the logarithm",
    "int": "[low, high], whole numbers, both included",
    "log_int": "the same, evenly in the logarithm",
}


@dataclass(frozen=True)
class Space:
    """The space of one key. form: one of ``FORMS``; values: the choices, or [low, high]."""

    key: str
    form: str
    values: list[Any]

    def decode(self, drawn: Any) -> Any:
        """The config's value for what the search algorithm drew."""
        if self.form == "choice":
            return self.values[self.codes().index(drawn)]
        if self.form == "one_minus_log":
            return 1.0 - drawn
        return math.floor(drawn) if "int" in self.form else float(drawn)

    def codes(self) -> list[Any]:
        """Choices as plain values: search algorithms cannot hash lists."""
        return [
            value if isinstance(value, bool | int | float | str) else json.dumps(value)
            for value in self.values
        ]

    def bounds(self) -> list[Any]:
        """The key's values at both ends of the space (of ``one_minus_log`` the highest first),
        or all its choices.
        """
        if self.form == "choice":
            return self.values
        return [self.decode(value) for value in self.values]


def spaces(search: Mapping[str, Mapping[str, Any]]) -> list[Space]:
    """The spaces of a ``search:`` mapping; UserError for one that is none."""
    return [_space(key, description) for key, description in search.items()]


def _space(key: str, description: Mapping[str, Any]) -> Space:
    if len(description) != 1 or next(iter(description)) not in FORMS:
        known = "; ".join(f"{form}: {meaning}" for form, meaning in FORMS.items())
        raise UserError(
            f"tune search '{key}': {dict(description)!r} is no space; write one of {known}"
        )
    ((form, values),) = description.items()
    if not isinstance(values, list) or len(values) < (1 if form == "choice" else 2):
        raise UserError(f"tune search '{key}': {form} needs {FORMS[form]}, got {values!r}")
    if form == "choice":
        return Space(key, form, values)
    numbers = all(type(value) in (int, float) and abs(value) <= WHOLE for value in values)
    least = 0 if "log" in form else -math.inf
    if not numbers or len(values) != 2 or values[0] >= values[1] or values[0] <= least:
        limit = "with 0 < low < high" if "log" in form else "with low < high"
        raise UserError(f"tune search '{key}': {form} needs {FORMS[form]} {limit}, got {values!r}")
    return Space(key, form, values)
