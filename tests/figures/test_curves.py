import csv

import numpy as np
import pytest
from helpers import run_cli, run_dir
from torch.utils.tensorboard import SummaryWriter

from lightning_rl.figures.curves import Curve, binned, main, read_scalar
from lightning_rl.types import UserError


def test_bins_by_hand():
    curve = Curve("r", np.array([5.0, 10.0, 11.0, 30.0, 99.0]), np.array([1.0, 3.0, 10.0, 7.0, 1000.0]))
    edges, value = binned(curve, 10.0, 40.0)
    assert edges.tolist() == [10.0, 20.0, 30.0, 40.0]
    np.testing.assert_array_equal(value, [2.0, 10.0, 7.0, np.nan])  # what lies beyond the end is left out


def test_a_resumed_run_is_one_curve_without_what_was_done_twice(tmp_path):
    for version, points in ((0, {10: 1.0, 20: 2.0, 30: 3.0}), (1, {20: 20.0, 25: 25.0}), (10, {40: 4.0})):
        with SummaryWriter(str(tmp_path / "logger" / f"version_{version}")) as writer:
            for step, value in points.items():
                writer.add_scalar("x", value, step)
    curve = read_scalar(tmp_path, "x")
    assert curve.env_steps.tolist() == [10, 20, 25, 40]
    assert curve.value.tolist() == [1.0, 20.0, 25.0, 4.0]
    with pytest.raises(UserError, match="has no scalar 'y'"):
        read_scalar(tmp_path, "y")


def test_the_csv_is_what_is_plotted(tmp_path):
    for seed in ("1", "2"):
        assert run_cli(tmp_path, "--max_epochs", "4", "--seed", seed) == 0
    (tmp_path / "paper.csv").write_text("env_steps,value\n100,7\n200,9\n999999,1\n")
    runs = [str(run_dir(tmp_path, seed=s)) for s in (1, 2)]
    main([str(tmp_path / "out"), *runs, "--bin", "100", "--reference", f"{tmp_path}/paper.csv:the paper"])
    assert (tmp_path / "out.png").stat().st_size > 10_000
    rows = list(csv.DictReader((tmp_path / "out.csv").open()))
    assert {row["run"] for row in rows} == {"seed_1", "seed_2", "mean", "the paper"}
    value = {(row["run"], row["env_steps"]): float(row["value"]) for row in rows}
    assert value["the paper", "100"] == 7
    assert ("the paper", "999999") not in value
    assert value["mean", "100"] == pytest.approx((value["seed_1", "100"] + value["seed_2", "100"]) / 2, abs=1e-3)
