import pandas as pd
from helpers.runs import cli, log_scalars


def run_with(folder, **scalars):
    every_ten = {}
    for tag, values in scalars.items():
        every_ten[tag] = {10 * number: value for number, value in enumerate(values)}
    return log_scalars(folder, every_ten)


def test_rows_by_hand(tmp_path, capsys):
    runs = [
        run_with(tmp_path / "game" / "exp" / "M" / "seed_2", a=[9.0, 1.0, 3.0]),
        run_with(tmp_path / "game" / "exp" / "M" / "seed_1", a=[0.0, 4.0, 8.0, 1000.0], b=[7.0]),
        run_with(tmp_path / "game" / "other" / "M" / "seed_1", a=[2.0]),
    ]
    flags = ["--tag", "a", "--tag", "b", "--last", "2", "--until", "20"]
    assert cli("figures", "table", tmp_path / "t.csv", *runs, *flags) == 0
    table = pd.read_csv(tmp_path / "t.csv", dtype=str, keep_default_na=False)
    assert table.to_numpy().tolist() == [
        ["game/exp/M", "seed_1", "20", "6.00", "7.00"],
        ["game/exp/M", "seed_2", "20", "2.00", ""],
        ["game/exp/M", "mean", "", "4.00", ""],
        ["game/exp/M", "sd", "", "2.83", ""],
        ["game/exp/M", "min", "", "2.00", ""],
        ["game/other/M", "seed_1", "0", "2.00", ""],
        ["game/other/M", "mean", "", "2.00", ""],
        ["game/other/M", "sd", "", "", ""],
        ["game/other/M", "min", "", "2.00", ""],
    ]
    assert "game/exp/M" in capsys.readouterr().out


def test_errors(tmp_path, capsys):
    run = run_with(tmp_path / "r", a=[1.0], n=[1.0, float("nan"), 2.0])
    for flags, words in (
        (["--tag", "n"], "not all of its last 3 values are finite"),
        (["--tag", "zzz"], "has no scalar 'zzz'"),
        (["--tag", "a", "--last", "0"], "0 is too small"),
        (["--tag", "a", "--until", "-1"], "has no value before -1 env_steps"),
    ):
        assert cli("figures", "table", tmp_path / "t", run, *flags) == 2
        assert words in capsys.readouterr().err
    assert cli("figures", "table", tmp_path / "t", run, "--tag", "a") == 0
    # Not where a figure of the same name has its numbers.
    assert (tmp_path / "t-table.csv").exists()
