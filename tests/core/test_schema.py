import pytest

from lightning_rl.core.schema import ramp


def test_a_ramp_by_hand():
    assert [ramp(x, 0.2, 0.6) for x in (0.0, 0.2, 0.3, 0.4, 0.6, 2.0)] == pytest.approx(
        [0, 0, 0.25, 0.5, 1, 1]
    )
