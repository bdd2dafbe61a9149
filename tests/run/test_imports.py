"""Lightning is imported without what commands do not use; whole, where that may be used."""

import gc
import subprocess
import sys

import pytest
from helpers import ROOT

from lightning_rl.core.modules import MODULES
from lightning_rl.run import imports


@pytest.mark.parametrize("modules", ["", "own_metrics"])
def test_code_of_a_user_may_use_all_of_it(tmp_path, monkeypatch, modules):
    (tmp_path / "pytorch_lightning.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(sys.modules, "pytorch_lightning", None)  # so that what was there comes back
    del sys.modules["pytorch_lightning"]
    monkeypatch.setenv(MODULES, modules)
    monkeypatch.delenv("LIGHTNING_RL_TYPED", raising=False)
    left_out = []
    monkeypatch.setattr(imports, "_import_what_is_used", lambda: left_out.append(True))
    monkeypatch.setattr(gc, "freeze", lambda: None)
    imports.import_lightning()
    assert bool(left_out) == (modules == "")


def test_another_version_that_needs_more_is_imported_whole(tmp_path):
    """Of torchmetrics one that cannot do without matplotlib, of Lightning one that compiles."""
    program = """
import importlib.metadata
from lightning_rl.run import imports

def metadata(self, context=None):
    return iter(())

imports._Absent.find_distributions = metadata
imports.import_lightning()
import lightning_fabric.wrappers, torchmetrics.utilities.plot
assert torchmetrics.utilities.plot.plt.figure
"""
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        env={"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
