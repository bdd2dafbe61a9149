"""A run that tests of the command line read and leave as it is."""

from pathlib import Path

import pytest
from helpers import run_cli, run_dir


@pytest.fixture(scope="session")
def trained(tmp_path_factory) -> Path:
    logdir = tmp_path_factory.mktemp("exp")
    assert run_cli(logdir, "--max_epochs", "2") == 0
    return run_dir(logdir) / "last.ckpt"
