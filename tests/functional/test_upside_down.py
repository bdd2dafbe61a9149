import numpy as np
import pytest

from lightning_rl.functional.upside_down import SEGMENTS, CommandRange, command_range, draw_commands, next_command


def test_command_range_by_hand():
    # mean 20, population std sqrt((100 + 0 + 100) / 3), mean length 14.67 -> 15
    among = command_range(np.array([10.0, 20.0, 30.0]), np.array([10, 14, 20]), max_return=100.0)
    assert among.low == 20.0
    assert among.high == pytest.approx(20 + np.sqrt(200 / 3))
    assert among.horizon == 15.0


def test_command_range_is_capped_and_survives_equal_returns():
    assert command_range(np.array([90.0, 110.0]), np.array([5, 5]), max_return=95.0)[:2] == (95.0, 95.0)
    assert command_range(np.array([7.0, 7.0]), np.array([3, 4]), max_return=50.0)[:2] == (7.0, 7.0)


def test_command_range_refuses_other_shapes():
    with pytest.raises(ValueError, match="share a shape"):
        command_range(np.ones((3, 1)), np.ones(3, dtype=int), 1.0)
    with pytest.raises(ValueError, match="n > 0"):
        command_range(np.ones(0), np.ones(0, dtype=int), 1.0)


def test_drawn_commands_fill_the_range():
    uniform = np.random.default_rng(0).random(2000)
    commands = draw_commands(CommandRange(10.0, 30.0, 55.0), uniform)
    assert commands.shape == (2000, 2)
    assert (commands[:, 1] == 55.0).all()
    assert commands[:, 0].min() >= 10.0
    assert commands[:, 0].max() <= 30.0
    assert commands[:, 0].mean() == pytest.approx(20.0, abs=0.5)


def test_next_command_by_hand():
    command = np.array([[100.0, 5.0], [310.0, 1.0], [50.0, 2.0]])
    after = next_command(command, np.array([30.0, -40.0, 0.0]), max_return=320.0)
    assert after.tolist() == [[70.0, 4.0], [320.0, 1.0], [50.0, 1.0]]


def test_next_command_keeps_float32_and_refuses_broadcasting():
    command = np.ones((4, 2), dtype=np.float32)
    assert next_command(command, np.ones(4, dtype=np.float32), 9.0).dtype == np.float32
    with pytest.raises(ValueError, match=r"reward \[B\]"):
        next_command(command, np.ones((4, 1)), 9.0)


def test_segments():
    start, length = np.repeat([0, 3, 9], 1000), np.full(3000, 10)
    uniform = np.random.default_rng(0).random(3000)
    assert (SEGMENTS["trailing"](start, length, uniform) == 10).all()
    end = SEGMENTS["any"](start, length, uniform)
    assert (end > start).all()
    assert (end <= length).all()
    assert set(end[start == 3]) == set(range(4, 11))
    assert set(end[start == 9]) == {10}
