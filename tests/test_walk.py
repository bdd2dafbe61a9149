"""How much there is to read of the package in one run: the tokens of the files whose functions it
calls, without the plumbing.

What a reader trusts as words is plumbing: ``core`` and ``run`` (configs, files, checkpoints), the
command line, what makes an environment, and the compiled form of updates (``fused``), which tests
compare with what is read. A file counts whole, however little of it runs;
comments and docstrings do not count.
"""

import re
import sys
import threading
from pathlib import Path

import pytest
from helpers import ROOT
from helpers.runs import train_cli

import lightning_rl
from lightning_rl.methods.registry import IMPLEMENTATIONS

sys.path.insert(0, str(ROOT / "tools"))
from density import code_tokens

PACKAGE = Path(lightning_rl.__file__).parent
PLUMBING = re.compile(
    r"(core|run|cli)/|.*fused\w*\.py|nets/flat\.py|(agents|methods|nets)/compiling\.py"
    r"|(__init__|methods/registry|envs/(spec|spaces|gym|films|checked))\.py"
)

AT_MOST = {
    ("RCP-A", "cartpole"): 22_713,
    ("UDRL", "cartpole"): 21_058,
    ("REINFORCE", "cartpole"): 13_051,
    ("DDQN", "cartpole"): 25_009,
    ("SE", "cartpole"): 30_239,
    ("categorical-latent", "panflute-2"): 23_762,
}
"""Tokens, as they are: a walk may become shorter, not longer."""


def walk(logdir, implementation, gamename):
    """Tokens of each file that a run of two epochs calls a function of."""
    seen = set()
    assert all(IMPLEMENTATIONS.values())  # imported, or the bodies of classes would count

    def note(frame, event, _):
        code = frame.f_code
        if (
            event == "call"
            and code.co_name != "<module>"
            and code.co_filename.startswith(str(PACKAGE))
        ):
            seen.add(code.co_filename)

    sys.setprofile(note)
    threading.setprofile(note)
    try:
        train_cli(logdir, 2, gamename=gamename, implementation=implementation)
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    files = {str(Path(name).relative_to(PACKAGE)): len(code_tokens(Path(name))) for name in seen}
    return {name: tokens for name, tokens in files.items() if not PLUMBING.match(name)}


@pytest.mark.parametrize("case", AT_MOST, ids=lambda case: case[0])
def test_a_walk_does_not_grow(tmp_path, case):
    found = walk(tmp_path, *case)
    assert sum(found.values()) <= AT_MOST[case], found
