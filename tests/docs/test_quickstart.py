"""The quickstart prints what its commands print: run as they stand, on full budgets.

``UPDATE_QUICKSTART=1`` writes what they print now into the page. Numbers and widths may differ, as
processors round differently.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from helpers import ROOT

PAGE = ROOT / "docs" / "quickstart.md"
STEP = re.compile(
    r"```(bash|python)\n(?P<code>(?:(?!```).)*)```\n\n"
    r'```text title="output"\n(?P<out>(?:(?!```).)*)```',
    re.S,
)


def printed(language: str, code: str, folder: Path) -> str:
    """What a step prints on standard output, without the empty lines around it."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    words = ["bash", "-euc", code] if language == "bash" else [sys.executable, "-c", code]
    where = {**os.environ, "PATH": path, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        words, cwd=folder, env=where, stdout=subprocess.PIPE, text=True, check=True
    )
    lines = [line.rstrip() for line in done.stdout.strip("\n").splitlines()]
    lines = [line for line in lines if not line.startswith("compiling ")]  # where it is needed
    return "\n".join(lines) + "\n"


def without_numbers(text: str) -> str:
    text = re.sub(r"-?\d[\d.,]*", "0", re.sub("─+", "─", text))
    return " ".join(text.split())


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_each_step_prints_what_the_page_says(tmp_path):
    page = PAGE.read_text()
    steps = list(STEP.finditer(page))
    assert len(steps) >= 6
    found = [printed(step[1], step["code"], tmp_path) for step in steps]
    if "UPDATE_QUICKSTART" in os.environ:
        for step, out in zip(reversed(steps), reversed(found), strict=True):
            page = page[: step.start("out")] + out + page[step.end("out") :]
        PAGE.write_text(page)
    for step, out in zip(STEP.finditer(page), found, strict=True):
        assert without_numbers(out) == without_numbers(step["out"])
