"""How much of the package one run walks through: the files whose functions a run of a method calls, without the plumbing.

What a reader trusts as words is plumbing: ``core`` and ``run`` (configs, files, checkpoints), the command line, and what makes an
environment. A file counts whole, however little of it runs.
"""

import re
import sys
import threading
from pathlib import Path

import pytest
from helpers import run_cli

import lightning_rl
from lightning_rl.methods.registry import IMPLEMENTATIONS

PACKAGE = Path(lightning_rl.__file__).parent
PLUMBING = re.compile(r"(core|run)/|(cli|flags|tools|__init__|methods/registry|envs/(spec|spaces|gym|films|checked))\.py")

AT_MOST = {
    ("RCP-A", "cartpole"): (12, 2543), ("UDRL", "cartpole"): (11, 2493), ("REINFORCE", "cartpole"): (8, 1519),
    ("DDQN", "cartpole"): (17, 3482), ("SE", "cartpole"): (20, 4449), ("categorical-latent", "panflute-2"): (16, 3503),
}  # fmt: skip
"""Files and lines, as they are: a walk may become shorter, not longer."""


def walk(logdir, implementation, gamename):
    """Lines of each file that a run of two epochs calls a function of."""
    seen = set()
    assert all(IMPLEMENTATIONS.values())  # imported, or the bodies of classes would count

    def note(frame, event, _):
        code = frame.f_code
        if event == "call" and code.co_name != "<module>" and code.co_filename.startswith(str(PACKAGE)):
            seen.add(code.co_filename)

    sys.setprofile(note)
    threading.setprofile(note)
    try:
        assert run_cli(logdir, "--max_epochs", "2", gamename=gamename, implementation=implementation) == 0
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    files = {str(Path(name).relative_to(PACKAGE)): len(Path(name).read_text().splitlines()) for name in seen}
    return {name: lines for name, lines in files.items() if not PLUMBING.match(name)}


@pytest.mark.parametrize("case", AT_MOST, ids=lambda case: case[0])
def test_a_reader_of_a_method_walks_through_few_files(tmp_path, case):
    found = walk(tmp_path, *case)
    files, lines = AT_MOST[case]
    assert len(found) <= files, sorted(found)
    assert sum(found.values()) <= lines, found
