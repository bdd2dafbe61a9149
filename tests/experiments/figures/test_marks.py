import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from helpers.runs import cli

from experiments.figures.marks import mark_rows, mark_table, near, near_reference
from lightning_rl.lab.figures.curves import Look, Panel, draw_panel, read_reference
from lightning_rl.lab.figures.groups import Group


def test_by_hand(tmp_path, capsys):
    assert near(pd.Series([90.0, 100.0, 111.0]), pd.Series([1.0, 3.0, 99.0]), 100.0, 20.0) == 2.0
    assert np.isnan(near(pd.Series([90.0]), pd.Series([1.0]), 200.0, 20.0))
    table = pd.DataFrame(
        [
            ("g", "m", f"seed_{seed}", x, seed * x)
            for seed in (1, 3)
            for x in (10.0, 20.0, 30.0)
            if (seed, x) != (3, 30.0)
        ],
        columns=["gamename", "group", "run", "env_steps", "value"],
    )
    marks = mark_table(table, "env_steps", [10.0, 30.0], 2.0)
    assert marks["value"].tolist()[0] == 20.0
    # one run has not come so far: no mean over fewer seeds
    assert np.isnan(marks["value"].tolist()[1])
    assert (marks["low"][0], marks["high"][0]) == pytest.approx((20 - 127.062, 20 + 127.062))
    table.to_csv(tmp_path / "t.csv", index=False)
    (tmp_path / "paper.csv").write_text("env_steps,value\n10,7\n")
    flags = ["--at", "10", "--window", "2", "--reference", f"{tmp_path}/paper.csv:paper"]
    assert cli("figures", "marks", tmp_path / "o", tmp_path / "t.csv", *flags, "--markdown") == 0
    assert capsys.readouterr().out.splitlines()[-2:] == [
        "| m, g, 2 seeds | 20.0 [-107.1, 147.1] |",
        "| paper | 7.0 |",
    ]
    assert cli("figures", "marks", tmp_path / "o", tmp_path / "t.csv", *flags) == 0
    assert pd.read_csv(tmp_path / "o-marks.csv")["value"].tolist() == [20.0]


def test_what_a_published_figure_does_not_show_is_a_bound(tmp_path, capsys):
    """Values of -500 and below lie under its axis."""
    rows = [(10, 100, -500, 1), (20, 0, -500, 1), (20, 100, -400, 0), (40, 0, 8, 0)]
    (tmp_path / "paper.csv").write_text(
        "env_steps,value,below\n" + "".join(f"{x + y / 100},{v},{b}\n" for x, y, v, b in rows)
    )
    paper = read_reference(f"{tmp_path}/paper.csv:paper", "env_steps")
    assert near_reference(paper, 11, 2) == (-500, True)
    assert near_reference(paper, 20.5, 2) == (-450, True)  # the mean is lower
    assert near_reference(paper, 40, 2) == (8, False)
    assert np.isnan(near_reference(paper, 41, 2)[0])  # at the edge
    runs = pd.DataFrame(
        [("g", "m", "seed_1", 11.0, 1.0)],
        columns=["gamename", "group", "run", "env_steps", "value"],
    )
    table = mark_table(runs, "env_steps", [11, 41, 40], 2)
    assert mark_rows(table, [paper], "environment steps", [11, 41, 40], 2)[-1] == [
        "paper",
        "< -500.0",
        "",
        "8.0",
    ]
    figure, axes = plt.subplots()
    panel = Panel("g", [Group("m", ["1"], np.array([50.0]), np.array([[1.0]]))])
    drawn = draw_panel(axes, panel, Look("t"), {"m": "red"}, [paper])
    (dashed,) = [line for line in axes.lines if line.get_label() == "paper"]
    assert np.isnan(np.asarray(dashed.get_ydata(), float)).tolist() == [True, True, False, False]
    assert drawn[drawn["run"] == "reference"]["value"].tolist() == [-400, 8]
    plt.close(figure)
