import csv

from helpers.runs import cli, log_scalars


def run_with(folder, **scalars):
    every_ten = {}
    for tag, values in scalars.items():
        every_ten[tag] = {10 * number: value for number, value in enumerate(values)}
    return log_scalars(folder, every_ten)


def test_rows_by_hand(tmp_path, capsys):
    runs = [
        run_with(tmp_path / "game" / "exp" / "M" / "seed_2", a=[9.0, 1.0, 3.0], b=[5.0]),
        run_with(tmp_path / "game" / "exp" / "M" / "seed_1", a=[0.0, 4.0, 8.0, 1000.0], b=[7.0]),
        run_with(tmp_path / "game" / "other" / "M" / "seed_1", a=[2.0]),
    ]
    cli(
        "figures",
        "table",
        tmp_path / "t.csv",
        *runs,
        "--tag",
        "a",
        "--tag",
        "b",
        "--last",
        "2",
        "--until",
        "20",
    )
    rows = {(r["group"], r["run"]): r for r in csv.DictReader((tmp_path / "t.csv").open())}
    assert rows["game/exp/M", "seed_1"] == {
        "group": "game/exp/M",
        "run": "seed_1",
        "env_steps": "20",
        "a": "6.00",
        "b": "7.00",
    }
    assert rows["game/exp/M", "seed_2"]["a"] == "2.00"
    assert [rows["game/exp/M", name]["a"] for name in ("mean", "sd", "min")] == [
        "4.00",
        "2.83",
        "2.00",
    ]
    assert rows["game/other/M", "mean"]["b"] == ""
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
    assert (
        tmp_path / "t-table.csv"
    ).exists()  # not where a figure of the same name has its numbers
