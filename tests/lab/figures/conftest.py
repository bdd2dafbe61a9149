from __future__ import annotations

from collections.abc import Iterator

import matplotlib.pyplot as plt
import pytest


@pytest.fixture(autouse=True)
def _close_figures() -> Iterator[None]:
    """Drawn figures stay open until they are closed, and matplotlib warns of more than twenty."""
    yield
    plt.close("all")
