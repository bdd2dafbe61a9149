import gc
import os
import sys
from pathlib import Path

# until all is imported and collected: a quarter of that time goes into searching for garbage
gc.disable()

import pytest
import torch

TESTS = Path(__file__).parent
sys.path[:0] = [str(TESTS), str(TESTS.parent / "tools"), str(TESTS.parent)]

from helpers.toys import toy_games

from lightning_rl.core.gamenames import GAMES
from lightning_rl.core.workers import cores
from lightning_rl.evolution.cluster import join_cluster

__all__ = ["toy_games"]

# nobody pulls the plug; what is asked for, and when, tests see all the same
os.fsync = lambda descriptor: None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests with Ray come first, so that one of several test processes has them all, and alone
    starts it. On one core, those that need two are skipped.
    """
    items.sort(key=lambda item: "ray_cluster" not in getattr(item, "fixturenames", ()))
    if cores() > 1:
        return
    for item in items:
        if item.get_closest_marker("two_cores"):
            item.add_marker(pytest.mark.skip(reason="needs two cores"))


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.enable()


@pytest.fixture(autouse=True)
def _own_process() -> None:
    """What a command of an earlier test did to this process is undone: typed modules, and tiny
    numbers counted as zero.

    What a test draws without a seed of its own depends on no other test either.
    """
    os.environ.pop("LIGHTNING_RL_TYPED", None)
    torch.manual_seed(0)
    torch.set_num_threads(1)
    torch.set_flush_denormal(False)


@pytest.fixture
def ray_cluster() -> None:
    """Ray on this machine, started once for all tests of a process."""
    pytest.importorskip("ray")
    join_cluster(None)


@pytest.fixture(autouse=True)
def _own_gamenames():
    """What a test registers is gone after it."""
    before = set(GAMES)
    yield
    for name in GAMES.keys() - before:
        del GAMES[name]
