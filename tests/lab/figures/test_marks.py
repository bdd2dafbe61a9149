import numpy as np
import pandas as pd
import pytest

from lightning_rl.cli import main
from lightning_rl.lab.figures.scores import mark_table, near


def test_by_hand(tmp_path, capsys):
    assert near(np.array([90.0, 100.0, 111.0]), np.array([1.0, 3.0, 99.0]), 100.0, 20.0) == 2.0
    assert np.isnan(near(np.array([90.0]), np.array([1.0]), 200.0, 20.0))
    table = pd.DataFrame(
        [("g", "m", f"seed_{seed}", x, seed * x) for seed in (1, 3) for x in (10.0, 20.0, 30.0) if (seed, x) != (3, 30.0)],
        columns=["gamename", "group", "run", "env_steps", "value"],
    )
    marks = mark_table(table, "env_steps", [10.0, 30.0], 2.0)
    assert marks["value"].tolist()[0] == 20.0
    assert np.isnan(marks["value"].tolist()[1])  # one run has not come so far: no mean over fewer seeds
    assert (marks["low"][0], marks["high"][0]) == pytest.approx((20 - 127.062, 20 + 127.062))
    table.to_csv(tmp_path / "t.csv", index=False)
    (tmp_path / "paper.csv").write_text("env_steps,value\n10,7\n")
    flags = ["--at", "10", "--window", "2", "--reference", f"{tmp_path}/paper.csv:paper"]
    assert main(["figures", "marks", str(tmp_path / "o"), str(tmp_path / "t.csv"), *flags, "--markdown"]) == 0
    assert capsys.readouterr().out.splitlines()[-2:] == ["| m, g, 2 seeds | 20.0 [-107.1, 147.1] |", "| paper | 7.0 |"]
    assert main(["figures", "marks", str(tmp_path / "o"), str(tmp_path / "t.csv"), *flags]) == 0
    assert pd.read_csv(tmp_path / "o-marks.csv")["value"].tolist() == [20.0]
