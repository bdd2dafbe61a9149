"""The names that ``docs/promises.md`` keeps, with their arguments, word for word.

``UPDATE_API=1`` writes the snapshot anew; what has changed then shows in the diff.
"""

import inspect
import os

from helpers import ROOT

import lightning_rl

SNAPSHOT = ROOT / "tests" / "data_files" / "api.txt"


def arguments(thing):
    """Its parameters as they are called: ``*`` before those that need their name."""
    found = inspect.signature(thing).parameters.values()
    bare = [each.replace(annotation=inspect.Parameter.empty) for each in found]
    return str(inspect.Signature(bare))


def test_names_and_arguments_are_those_that_are_promised():
    things = {name: getattr(lightning_rl, name) for name in lightning_rl.__all__}
    lines = [name + (arguments(thing) if callable(thing) else "") for name, thing in things.items()]
    text = "\n".join(lines) + "\n"
    if os.environ.get("UPDATE_API"):
        SNAPSHOT.write_text(text)
    assert text == SNAPSHOT.read_text()
