"""Sweeps of commands: what a policy obtains of what it is asked for, as a table and a picture."""

from pathlib import Path

import pytest
from helpers.runs import cli, run_dir, train_cli

from lightning_rl.core.errors import UserError
from lightning_rl.lab.obedience import misses, obedience
from lightning_rl.lab.sweeps import print_sweep
from lightning_rl.lab.words import parse_sweep


def swept(last: Path, words: str) -> None:
    few = ("--eval_episodes", "1", "--num_workers", "0")
    assert cli("--eval_agent", last, "--eval_command", words, *few) == 0


def commanded(table: Path) -> list[float]:
    return [float(row.split(",")[-7]) for row in table.read_text().splitlines()[1:]]


@pytest.mark.parametrize(("implementation", "name"), [("UDRL", "return"), ("RCP-A", "advantage")])
def test_sweep_prints_and_draws_obtained_against_commanded(tmp_path, capsys, implementation, name):
    train_cli(tmp_path, 1, implementation=implementation, checkpoint_interval=1)
    last = run_dir(tmp_path, implementation=implementation) / "last.ckpt"
    capsys.readouterr()
    swept(last, "sweep")
    shown = capsys.readouterr().out
    assert f"commanded {name}" in shown
    assert ("single episodes miss by" in shown) == (name == "return")
    assert (
        last.with_name("sweep.csv")
        .read_text()
        .startswith(
            "run,command,commanded,obtained_mean,obtained_sd,episodes,"
            "episode_error,within_25,within_75\n"
        )
    )
    found = commanded(last.with_name("sweep.csv"))
    assert len(found) == 13
    assert found == sorted(found)
    assert last.with_name("sweep.png").stat().st_size > 10_000


def test_sweeps_of_other_commands_keep_each_others_tables(tmp_path):
    train_cli(tmp_path, 1, implementation="RCP-A", checkpoint_interval=1)
    last = run_dir(tmp_path, implementation="RCP-A") / "last.ckpt"
    kept: dict[Path, bytes] = {}
    for words, name, ends in (
        ("sweep=-1,0.5", "sweep_of_-1_0.5", (-1.0, 0.5)),
        ("sweep=-1:0.5", "sweep_-1_0.5", (-1.0, 0.5)),
        ("sweep=-1,0", "sweep_of_-1_0", (-1.0, 0.0)),
    ):
        table = last.with_name(f"{name}.csv")
        swept(last, words)
        found = commanded(table)
        # two commands are not the range between them
        assert (found[0], found[-1], len(found) == 2) == (*ends, "of" in name)
        kept[table] = table.read_bytes()
    assert not last.with_name("sweep.csv").exists()  # that of the whole range
    assert {table: table.read_bytes() for table in kept} == kept


def test_sweep_over_a_range_of_ones_own():
    assert parse_sweep("sweep=-300:300") == tuple(range(-300, 301, 50))
    assert parse_sweep("sweep=-100,0,250") == (-100.0, 0.0, 250.0)
    assert parse_sweep("sweep") == ()
    assert parse_sweep("return=250,horizon=300") is None
    assert parse_sweep(None) is None
    for text, words in (
        ("sweep=3", "expected sweep, sweep=LOW:HIGH or sweep=A,B"),
        ("sweep=5:1", "5 is not below 1"),
    ):
        with pytest.raises(UserError, match=words):
            parse_sweep(text)


@pytest.mark.parametrize(("highest", "said"), [(1.0, False), (200.0, True)])
def test_how_many_episodes_are_near_is_said_of_large_returns(capsys, highest, said):
    asked, obtained = [0.0, highest], [[0.0], [highest - 0.5]]
    rows = []
    for value, returns in zip(asked, obtained, strict=True):
        row = {"commanded": value, "obtained_mean": returns[0], "obtained_sd": 0.0}
        rows.append(row | misses(value, returns))
    about = {"implementation": "UDRL", "gamename": "cliff", "episodes": 1, "picture": "a.png"}
    print_sweep({**about, "command_name": "return", "rows": rows, **obedience(asked, obtained)})
    shown = capsys.readouterr().out
    assert "episodes miss by" in shown
    assert ("within 75" in shown) == ("100% by at most 25" in shown) == said


def test_sweep_needs_a_policy_that_takes_a_command(tmp_path, capsys):
    train_cli(tmp_path, 2, implementation="RCP-A", condition="false")
    last = run_dir(tmp_path, implementation="RCP-A") / "last.ckpt"
    capsys.readouterr()
    assert cli("--eval_agent", last, "--eval_command", "sweep", "--num_workers", "0") == 2
    assert "command sweep: the policy of" in capsys.readouterr().err
