"""``make speedrun``: what of each seed is a row, and what it says where a seed fails."""

import csv
import importlib
import time

import pytest
from helpers import ROOT
from helpers.budgets import tiny_flags

FLAGS = [
    "--implementation",
    "RCP-A",
    "--gamename",
    "cartpole",
    "--num_seeds",
    "2",
    "--num_workers",
    "0",
]


@pytest.fixture
def speedrun(monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    monkeypatch.chdir(tmp_path)
    return importlib.import_module("speedrun")


def rows(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_seeds_that_stay_at_the_return_make_a_record(speedrun, tmp_path, capsys):
    before, records = time.time() - speedrun.STARTED, tmp_path / "records.csv"
    flags = [
        *FLAGS,
        *tiny_flags("RCP-A", eval_interval=1),
        "--stop_return",
        "1",
        "--stop_evaluations",
        "2",
    ]
    assert speedrun.speedrun(flags, records) == 0
    found = rows(records)
    assert [(row["seed"], row["outcome"]) for row in found] == [
        ("25", "reached"),
        ("26", "reached"),
    ]
    assert all(
        before < float(row["seconds"]) < before + 60 and float(row["last_return"]) > 1
        for row in found
    )
    assert found[0]["evaluations"] == found[0]["episodes"] == "2"
    assert found[0]["flags"].startswith("--implementation RCP-A --gamename cartpole --num_seeds 2")
    assert (
        speedrun.speedrun(
            [*flags, "--stop_return", "1e9", "--max_epochs", "2", "--exp_name", "b"], records
        )
        == 0
    )
    assert [row["outcome"] for row in rows(records)[2:]] == ["not reached", "not reached"]
    printed = capsys.readouterr().out
    assert "seed 26: not reached, " in printed
    assert "| seconds | seeds that hold 250 |" in printed


def test_an_error_of_training_is_in_its_row(speedrun, tmp_path):
    flags = [
        *FLAGS,
        *tiny_flags("RCP-A"),
        "--reload",
        str(tmp_path / "no.ckpt"),
        "--num_seeds",
        "1",
    ]
    with pytest.raises(speedrun.UserError, match=r"' does not exist"):
        speedrun.speedrun(flags, tmp_path / "records.csv")
    (tmp_path / "no.ckpt").write_text("no checkpoint")
    assert speedrun.speedrun(flags, tmp_path / "records.csv") == 2
    (found,) = rows(tmp_path / "records.csv")
    assert found["outcome"].startswith("failed: ")
    assert (found["seconds"], found["env_steps"]) == ("", "0")


@pytest.mark.parametrize(
    "flags",
    [["--resume"], pytest.param(["--num_processes", "2"], marks=pytest.mark.two_cores)],
    ids=lambda flags: flags[0],
)
def test_what_cannot_be_timed_is_refused(speedrun, flags, tmp_path):
    with pytest.raises(speedrun.UserError, match="leave it out"):
        speedrun.speedrun([*FLAGS, *flags], tmp_path / "records.csv")
    assert not list(tmp_path.iterdir())
