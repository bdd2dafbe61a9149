"""``results/claims.yaml``: what is claimed, and how anybody makes each number again.

Settings are tuned on seeds 0 to 9; evidence is on seeds from 100 on, run once, none left out.
"""

from __future__ import annotations

import dataclasses
import functools
import re
import shlex
from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import Field, PositiveFloat, PositiveInt, model_validator
from pydantic.dataclasses import dataclass

from lightning_rl.core.errors import UserError
from lightning_rl.core.limits import SEED, SEEDS, shorten, unknown
from lightning_rl.core.schema import STRICT

TRAININGS, COMMANDS = ("train", "baseline"), ("train", "baseline", "eval", "proxies")
CSV = r"^results/[\w./-]+\.csv$"
Value = bool | int | float | str | list[int] | None

FIRST_SEED = 100
"""Of evidence: on seeds below, settings are chosen, so that numbers on them say too much."""


def seed_list(text: str) -> list[int]:
    """The seeds of ``first-last``; ValueError for those that are no evidence."""
    match = re.fullmatch(r"(\d{1,10})-(\d{1,10})", text)
    if match is None:
        raise ValueError(f"seeds: '{shorten(text)}' is no range; write 100-109")
    first, last = int(match[1]), int(match[2])
    if first < FIRST_SEED:
        raise ValueError(
            f"seeds: {text} begins below {FIRST_SEED}; these are for tuning, evidence takes "
            f"{FIRST_SEED} and up"
        )
    if not first <= last <= min(SEED, first + SEEDS - 1):
        raise ValueError(f"seeds: {text} is not a range of 1 to {SEEDS} seeds up to {SEED:,}")
    return list(range(first, last + 1))


Words = Annotated[str, Field(min_length=1)]


@dataclass(frozen=True, config=STRICT, kw_only=True)
class Differences:
    """How the runs here differ from those that they stand beside, each in words, or ``none``.

    Attributes:
        method: task, algorithm, networks and other values.
        budget: steps, episodes or generations.
        evaluation: what is read from a run, at which command, over how many episodes.
        seeds: how many runs, and which of them count.
        schedule: what changes during a run, and what ends it.
    """

    method: Words
    budget: Words
    evaluation: Words
    seeds: Words
    schedule: Words

    @property
    def found(self) -> dict[str, str]:
        """What differs, by key."""
        every = dataclasses.asdict(self).items()
        return {name: words for name, words in every if words != "none"}

    @property
    def text(self) -> str:
        """One line of what differs."""
        found = [f"{name}: {words}" for name, words in self.found.items()]
        return "; ".join(found) or "nothing that is known"

    @model_validator(mode="after")
    def _check(self) -> Self:
        for name, words in self.found.items():
            if words.startswith("as "):
                raise ValueError(
                    f"{name}: '{shorten(words)}' sends to another row; say what differs"
                )
        return self


@dataclass(frozen=True, config=STRICT, kw_only=True)
class Published:
    """What a paper or public run reports.

    Attributes:
        text: of what.
        source: where it is printed or drawn.
        here: what is otherwise in the runs here.
    """

    value: float | None
    text: str
    source: str
    here: Differences


@dataclass(frozen=True, config=STRICT, kw_only=True)
class Goal:
    """What is to be reached.

    Attributes:
        mean: by the mean over seeds.
        every: by each seed, or by ``seeds`` of them.
        seeds: see ``every``.
        above: the name of a claim; the 95 % interval of the difference of both means is to lie
            above 0. Higher values are better.
        lower: lower values are better.
    """

    mean: float | None = None
    every: float | None = None
    seeds: PositiveInt | None = None
    above: str | None = None
    lower: bool = False

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.mean is None and self.every is None and self.above is None:
            raise ValueError("a goal needs a mean, every or above")
        if self.seeds is not None and self.every is None:
            raise ValueError("seeds says how many have to reach every; give every as well")
        if self.above is not None and self.lower:
            raise ValueError("above: a goal of lower values is no other claim; give mean or every")
        return self


@dataclass(frozen=True, config=STRICT, kw_only=True)
class Read:
    """What is read of a seed's run: from a scalar, a table that a command wrote, or its report.

    Attributes:
        tag: a scalar that the run logs.
        table: a CSV in the claim's folder; its rows are agents, of which the mean counts.
        report: a JSON file in the run directory.
        key: column of the table; a.b.c within the report.
        rows: columns of the ``rows`` of the report, which are kept in the claim's CSV for figures.
        where: columns of the table, each with the value of the rows that count.
        every: of a scalar, only values at multiples of this many environment steps count (of a run
            too short for one, all).
        last: window at the end, in values that count, whose mean is the headline. Not of a report
            or a single number.
        statistic: ``mean``; ``first``: where the curve first reaches the threshold, in environment
            steps (of a scalar: in values logged, which are epochs or generations); ``above``: share
            of the window at or above the threshold.
        threshold: see ``statistic``.
        keep: of a table, for figures, beside the claim's CSV: the ``means`` of its curves, by kind,
            in ``.means.csv``, or its ``agents``, row by row, in ``.agents.csv``.
    """

    tag: str | None = None
    table: str | None = None
    report: str | None = None
    key: str | None = None
    rows: Annotated[list[str], Field(default_factory=list)]
    where: Annotated[Mapping[str, str], Field(default_factory=dict)]
    every: PositiveInt | None = None
    last: PositiveInt = 1
    statistic: Literal["mean", "first", "above"] = "mean"
    threshold: float | None = None
    keep: Literal["means", "agents"] | None = None

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.keep is not None and self.table is None:
            raise ValueError("what is kept is of a table; give it as well")
        if sum(source is not None for source in (self.tag, self.table, self.report)) != 1:
            raise ValueError("give one of tag, table and report")
        if (self.tag is None) != (self.key is not None):
            raise ValueError("key goes with table and report, which need it")
        if self.rows and self.report is None:
            raise ValueError("rows are those of a report; give it as well")
        if self.every is not None and self.tag is None:
            raise ValueError("every is of a scalar; give its tag as well")
        if (self.statistic == "mean") != (self.threshold is None):
            raise ValueError("threshold goes with the statistics first and above, which need it")
        return self

    @property
    def in_unit_of_curve(self) -> bool:
        """Whether it has the unit of the curve, so that the best can stand beside it."""
        return self.statistic == "mean"

    @property
    def text(self) -> str:
        """What says which number is read: without what is kept beside it, and without defaults."""
        values: dict[str, Any] = {}
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if field.name not in ("keep", "rows", "where") and value != field.default:
                values[field.name] = value
        return "; ".join(f"{name}: {value}" for name, value in {**values, **self.where}.items())


@dataclass(frozen=True, config=STRICT, kw_only=True)
class EarlierSeeds:
    """Fresh seeds that were looked at before the settings or judges were final: no evidence now.

    Attributes:
        seeds: which, in words.
        values: what they reached, or their mean alone; .inf: never got there; empty: not kept.
        then: what was changed after they were seen.
    """

    seeds: str
    values: list[Annotated[float, Field(allow_inf_nan=True)]]
    then: str


@dataclass(frozen=True, config=STRICT, kw_only=True)
class Earlier:
    """Files of before the manifest.

    made: on which seeds, by which commit, or where it was published; commands: that made it.
    """

    made: str
    commands: Annotated[list[str], Field(default_factory=list)]


@dataclass(frozen=True, config=STRICT, kw_only=True)
class Claim:
    """One number with all that is needed to make it again.

    Attributes:
        family: heading of the ledger below which it stands.
        task: what is measured, on which environment.
        unit: of the number.
        published: what others report.
        goal: what is to be reached; null: the number is reported, whatever it is.
        commands: of ``lightning-rl``, in their order, for one seed (a training with
            ``--num_seeds``: for all), training first. ``{seed}``; ``{run}``: the run directory of
            the training before; ``{folder}``: for files of other commands.
        budget: keys of the config that say how long the trainings are.
        seeds: first-last.
        read: what counts of a run.
        curves: scalars of the (first) training that are kept, the one of the figure first.
        csv: where they land, or the rows of the report.
        curves_csv: where they are already: the CSV of a claim with the same first training; null:
            in ``csv``.
        verify_epochs: how many epochs ``--verify`` runs again.
        smoke, smoke_flags: of ``--smoke``: other keys of the config of trainings; flags for the
            other commands.
        cpu_hours: expected, all seeds together; without a training that a claim above has as well.
        tried: how many settings were tried before these, on tuning seeds.
        earlier_seeds: fresh ones that these replace, in their order.
    """

    family: str
    task: str
    unit: str
    published: Published | None
    goal: Goal | None
    commands: Annotated[list[str], Field(min_length=1)]
    budget: Mapping[str, Value]
    seeds: str
    read: Read
    curves: list[str]
    csv: Annotated[str, Field(pattern=CSV)]
    curves_csv: str | None = None
    verify_epochs: PositiveInt = 3
    smoke: Mapping[str, Value]
    smoke_flags: str = ""
    cpu_hours: PositiveFloat
    tried: int | None
    earlier_seeds: Annotated[list[EarlierSeeds], Field(default_factory=list)]

    @property
    def columns(self) -> tuple[str, ...]:
        """What ``csv`` has of a run besides its value; nothing where there is no such file."""
        kept = ("env_steps", *self.curves) if self.curves else tuple(self.read.rows)
        return ("seed", *kept) if kept else ()

    @property
    def curves_file(self) -> str:
        """Where the curves are."""
        return self.curves_csv or self.csv

    @property
    def on_gpu(self) -> bool:
        """Whether its trainings ask for a GPU."""
        return any("--accelerator gpu" in command for command in self.commands)

    @property
    def of_baseline(self) -> bool:
        """Whether it is of Stable-Baselines3's agents."""
        return any(command.startswith(("baseline ", "proxies peers ")) for command in self.commands)

    @property
    def curves_of(self) -> tuple[str, Mapping[str, Value], str, list[str]]:
        """What the curves are of: the first command, its budget, the seeds, the scalars."""
        return self.commands[0], self.budget, self.seeds, self.curves

    @model_validator(mode="after")
    def _check(self) -> Self:
        seed_list(self.seeds)
        for command in self.commands:
            if (words := shlex.split(command))[0] not in COMMANDS:
                raise ValueError(f"commands: {unknown('command', words[0], COMMANDS)}")
            for name in re.findall(r"\{(.*?)\}", command):
                if name not in ("seed", "run", "folder"):
                    raise ValueError(
                        f"commands: {unknown('placeholder', name, ('seed', 'run', 'folder'))}"
                    )
        if self.read.tag is not None and self.read.tag not in self.curves:
            raise ValueError(f"curves lacks read.tag, '{self.read.tag}'; add it")
        if self.curves and self.read.rows:
            raise ValueError("csv has room for curves or for rows of the report; leave one out")
        trained = self.commands[0].split()[0] in TRAININGS
        if (self.curves or self.read.rows or self.read.tag) and not trained:
            raise ValueError("curves and rows are of a training, and no command is one")
        return self


@dataclass(frozen=True, config=STRICT, kw_only=True)
class Elsewhere:
    """A claim that no command here can measure. see: where its numbers are, or what is missing."""

    task: str
    goal: str
    see: str


@dataclass(frozen=True, config=STRICT, kw_only=True)
class Manifest:
    """All claims by name, and what else is in ``results/``.

    Attributes:
        tolerance: relative, of --verify on another machine or with other versions.
        claims: those that a command measures.
        elsewhere: those that none does.
        earlier: files of before this one, by path or pattern.
        figures: pictures, each with the figure of ``lightning-rl figures`` and its sources; of
            ``--figures``.
    """

    tolerance: PositiveFloat
    claims: Mapping[str, Claim]
    elsewhere: Mapping[str, Elsewhere]
    earlier: Annotated[Mapping[str, Earlier], Field(default_factory=dict)]
    figures: Annotated[Mapping[str, str], Field(default_factory=dict)]

    @model_validator(mode="after")
    def _check(self) -> Self:
        for name, claim in self.claims.items():
            if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", name):
                raise ValueError(
                    f"claim '{shorten(name)}': a name has lower-case letters, digits and single "
                    "dashes"
                )
            for other, its in self.claims.items():
                if other < name and its.csv == claim.csv:
                    raise ValueError(
                        f"claim '{name}', key 'csv': '{claim.csv}' is that of '{other}'; give each "
                        "its own"
                    )
            same = (its.csv for its in self.claims.values() if its.curves_of == claim.curves_of)
            if claim.curves_csv is not None and claim.curves_csv not in same:
                raise ValueError(
                    f"claim '{name}', key 'curves_csv': '{claim.curves_csv}' is of no claim with "
                    "the same first training, budget, seeds and curves; leave it out"
                )
            if claim.goal and claim.goal.above and claim.goal.above not in self.claims:
                raise ValueError(
                    f"claim '{name}', key 'goal.above': "
                    f"{unknown('claim', claim.goal.above, self.claims)}"
                )
        return self

    @functools.cached_property
    def shared_trainings(self) -> dict[str, str]:
        """Of each claim whose trainings are those of one above it: that one's name."""
        owners: dict[str, list[str]] = {}
        found: dict[str, str] = {}
        for name, claim in self.claims.items():
            trainings = [command for command in claim.commands if command.split()[0] in TRAININGS]
            same = owners.setdefault(repr((trainings, claim.budget)), [])
            seeds = set(seed_list(claim.seeds))
            for other in same if trainings else ():
                if seeds <= set(seed_list(self.claims[other].seeds)):
                    found.setdefault(name, other)
            same.append(name)
        return found

    def chosen(self, names: list[str]) -> dict[str, Claim]:
        """The claims called ``names``, or all; UserError for an unknown one."""
        for name in names:
            if name in self.elsewhere:
                raise UserError(f"claim '{name}' is not measured here: {self.elsewhere[name].see}")
            if name not in self.claims:
                raise UserError(unknown("claim", name, self.claims))
        return {name: claim for name, claim in self.claims.items() if not names or name in names}
