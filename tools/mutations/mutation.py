"""What a mutation is."""

from __future__ import annotations

from typing import NamedTuple


class Mutation(NamedTuple):
    """``old``, which stands once in the file ``path`` of the package, becomes ``new``; tests: files, or tests in them.

    A mutation whose ``reason`` is given is known to survive: it changes nothing that a result depends on, or nothing that can be
    told from chance.
    """

    path: str
    old: str
    new: str
    tests: tuple[str, ...]
    reason: str = ""


def area(path: str, tests: str, *changes: tuple[str, ...]) -> list[Mutation]:
    """Mutations of one file which the same tests have to notice; changes: (old, new) or (old, new, reason)."""
    return [
        Mutation(path, old, new, tuple(tests.split()), *reason) for old, new, *reason in changes
    ]
