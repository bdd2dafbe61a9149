"""A run that tests of the command line read and leave as it is."""

from pathlib import Path

import pytest
import pytorch_lightning  # noqa: F401, as the first command that needs it would say that it loads it
from helpers.runs import run_dir, train_cli


@pytest.fixture(scope="session")
def trained(tmp_path_factory) -> Path:
    logdir = tmp_path_factory.mktemp("exp")
    train_cli(logdir, 2)
    return run_dir(logdir) / "last.ckpt"
