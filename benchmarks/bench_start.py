"""What a command costs before it does anything, beside the imports that training cannot do
without.
"""

from __future__ import annotations

import resource
import subprocess
import sys
from collections.abc import Iterator

from harness import NOTHING, Measure, Table, in_turns, number
from machine import ROOT

COMMANDS = {
    "trainer.py --help": ("trainer.py", "--help"),
    "an unknown flag": ("trainer.py", "--nothing"),
    "import lightning_rl": ("-c", "import lightning_rl"),
    "import torch, pytorch_lightning": ("-c", "import torch, pytorch_lightning"),
    "python": ("-c", ""),
}
GOALS = {"trainer.py --help": "0.5", "an unknown flag": "0.5", "import lightning_rl": "0.1"}
"""CPU seconds."""


def command(*words: str) -> Measure:
    """CPU seconds of ``python`` with these words, in a process of its own."""

    def spent() -> float:
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        return usage.ru_utime + usage.ru_stime

    def measure() -> float:
        before = spent()
        subprocess.run([sys.executable, *words], cwd=ROOT, capture_output=True, check=False)
        return spent() - before

    return measure


def tables(smoke: bool) -> Iterator[Table]:
    """Of all commands."""
    found = in_turns({name: command(*words) for name, words in COMMANDS.items()}, 1 if smoke else 5)
    limit = found["python"].median
    rows = [
        [
            name,
            str(seconds),
            GOALS.get(name, NOTHING),
            number(limit),
            number(seconds.median / limit),
        ]
        for name, seconds in found.items()
    ]
    about = "CPU seconds of a whole process, files in the page cache. Limit: Python alone."
    yield Table("Start", about, ["", "s", "goal", "limit, s", "times the limit"], rows)
