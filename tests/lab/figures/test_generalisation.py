import numpy as np
import pytest
from helpers import run_cli

from lightning_rl.cli import main
from lightning_rl.core.errors import UserError
from lightning_rl.lab.figures.curves import areas, read_line
from lightning_rl.lab.figures.groups import Group


def group(label, rows):
    values = np.array(rows, dtype=float)
    return Group(label, [str(n) for n in range(len(values))], np.arange(1.0, values.shape[1] + 1), values)


def test_area_is_the_mean_over_the_steps_that_all_runs_have():
    """The second group lacks its last bin, so bins 1 and 2 count: (1 + 2) / 2, and the mean of 3.5 and 4.5."""
    nan = float("nan")
    rows = areas([group("a", [[1, 2, 9]]), group("b", [[3, 4, nan], [4, 5, 7]])])
    label, seeds, end, middle, low, high = rows[0]
    assert (label, seeds, end, middle) == ("a", 1, 2.0, 1.5)
    assert np.isnan([low, high]).all()
    assert rows[1][:4] == ("b", 2, 2.0, 4.0)
    assert rows[1][4:] == pytest.approx((4 - 6.3531, 4 + 6.3531), abs=1e-4)


def test_runs_without_common_steps_are_refused():
    nan = float("nan")
    with pytest.raises(UserError, match="no part of the axis in common"):
        areas([group("a", [[1, nan]]), group("b", [[nan, 1]])])


def test_a_line_needs_a_number():
    assert read_line("1.6:random") == (1.6, "random")
    with pytest.raises(UserError, match="--line 'high:best': 'high' is not a number"):
        read_line("high:best")


def test_one_command_from_run_directories(tmp_path, capsys):
    for implementation in ("ER", "simple-model"):
        flags = ("--max_epochs", "4", "--num_seeds", "2")
        assert run_cli(tmp_path / "exp", *flags, implementation=implementation, gamename="panflute-3") == 0
    out = tmp_path / "figure"
    assert main(["--figure", "generalisation", str(out), str(tmp_path / "exp"), "--line", "13:best"]) == 0
    assert out.with_suffix(".png").stat().st_size > 10_000
    rows = (tmp_path / "figure-areas.csv").read_text().splitlines()
    assert rows[0] == "gamename,group,seeds,steps,mean,low,high"
    assert [row.split(",")[:3] for row in rows[1:]] == [["panflute-3", "ER", "2"], ["panflute-3", "simple-model", "2"]]
    assert out.with_suffix(".csv").read_text().startswith("gamename,group,run,env_steps,value")
