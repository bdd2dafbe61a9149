"""A few of the walks of ``make crash``, and that they notice what is wrong."""

import meddling
import pytest

from lightning_rl.core import files
from lightning_rl.run import callbacks


@pytest.fixture(autouse=True)
def _quick():
    with meddling.quick():
        yield


@pytest.mark.slow
def test_some_walks_lose_nothing():
    assert [wrong for number in range(2) if (wrong := meddling.simulate(number))] == []


@pytest.mark.slow
def test_files_that_are_overwritten_are_noticed(monkeypatch):
    monkeypatch.setattr(files, "refuse_foreign", lambda path: None)
    monkeypatch.setattr(callbacks, "is_foreign", lambda path: False)
    assert any("the user's" in meddling.simulate(number) for number in range(40))
