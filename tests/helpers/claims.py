"""Claims for tests, without a manifest."""

from experiments.reproduce.claims import Claim, Read
from experiments.reproduce.entries import Entry


def claim_of(goal, seeds="100-102"):
    return Claim(
        family="f",
        task="t",
        unit="return",
        published=None,
        goal=goal,
        commands=["train"],
        budget={},
        seeds=seeds,
        read=Read(tag="a", where={}),
        curves=["a"],
        csv="results/a.csv",
        smoke={},
        cpu_hours=1.0,
        tried=None,
    )


def entry(goal, *values):
    return Entry("a", claim_of(goal), values, [], [], ["c"] * len(values), ["m"])
