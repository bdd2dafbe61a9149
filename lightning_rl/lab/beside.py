"""What is kept beside a checkpoint: reports, and the pictures and films of them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from lightning_rl.core.errors import UserError
from lightning_rl.core.files import read_text
from lightning_rl.core.outputs import File, Out
from lightning_rl.run.shipped import is_shipped, results_folder
from lightning_rl.run.state import LAST


def beside(checkpoint: Path, words: Sequence[str], force: bool) -> Out:
    """A file in the folder of a checkpoint, or in the results folder of an agent of the package,
    named by ``words``.

    After the first word comes the checkpoint's name, unless it is a run's last: results of one do
    not replace another's.
    """
    words = list(words)
    if checkpoint.name != LAST and not is_shipped(checkpoint):
        words.insert(1, checkpoint.stem)
    remedy = "copy the checkpoint to a folder of your own"
    return Out(results_folder(checkpoint) / "_".join(words), (), force, remedy)


def report_file(path: Path, report: Mapping[str, Any]) -> File:
    """The report as a JSON file."""
    return File(path, (json.dumps(report, indent=2) + "\n").encode(), owned_report)


def owned_report(path: Path) -> bool:
    """Whether a file is the report of an evaluation."""
    try:
        content = json.loads(read_text(path, "report"))
    except (UserError, ValueError, RecursionError):
        return False
    keys = {"checkpoint", "implementation", "gamename", "episodes"}
    return isinstance(content, dict) and keys <= content.keys()
