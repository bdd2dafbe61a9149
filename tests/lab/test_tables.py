"""Tables on a terminal of 80 columns: no word of them is cut, whatever they hold."""

import io
import sys

import pytest
import yaml
from helpers.runs import cli

from lightning_rl.lab.tables import put_rows
from lightning_rl.run.options import RunOptions
from lightning_rl.run.run_config import run_config
from lightning_rl.run.shipped import shipped_agents

NARROW = [("name", "about"), ("RCP-A-lunarlander", "an agent of this package " * 4), ("b", "c")]
WIDE = [("environment", "seed", "reason", "state"), ("ALE/Pong-v5" * 6, "7", "", "run" * 5)]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def begin_terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """A terminal of 80 columns, from now on."""
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("TERM", "dumb")  # of which all characters are visible
    terminal = Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    return terminal


def test_a_table_breaks_between_words_alone(monkeypatch):
    terminal = begin_terminal(monkeypatch)
    put_rows(NARROW, "two", "a caption", end="the end")
    lines = terminal.getvalue().splitlines()
    assert max(map(len, lines)) == 80
    assert lines[3].startswith("RCP-A-lunarlander  an agent of")
    assert " ".join(" ".join(lines).split()).count("an agent of") == 4


def test_rows_that_do_not_fit_stand_below_each_other(monkeypatch):
    terminal = begin_terminal(monkeypatch)
    put_rows(WIDE, "one", "a caption", end="the end")
    lines = [line.rstrip() for line in terminal.getvalue().splitlines()]
    assert lines == ["one", WIDE[1][0], f"  seed 7 · state {WIDE[1][3]}", "a caption", "the end"]


def test_what_is_piped_is_as_wide_as_it_has_to_be(capsys):
    put_rows([*WIDE, ("word " * 60, "8", "", "")])
    out = capsys.readouterr().out
    assert WIDE[1][0] in out
    assert ("word " * 60).strip() in out


def test_agents_are_listed_by_the_names_that_one_types(monkeypatch):
    terminal = begin_terminal(monkeypatch)
    assert cli("agents") == 0
    lines = terminal.getvalue().splitlines()
    for name in shipped_agents():
        assert any(line.startswith(f"{name} ") for line in lines)


def test_a_config_is_a_table_on_a_terminal(monkeypatch):
    terminal = begin_terminal(monkeypatch)
    assert cli("config", "RCP-A", "--gamename", "lunarlander") == 0
    out = terminal.getvalue()
    assert "| key" not in out
    assert "max_env_steps" in out
    assert max(map(len, out.splitlines())) <= 80


def test_a_config_that_is_piped_is_one_that_a_run_takes(capsys):
    assert cli("config", "RCP-A", "--gamename", "lunarlander") == 0
    values = yaml.safe_load(capsys.readouterr().out)
    options = RunOptions("RCP-A", "lunarlander")
    assert values == yaml.safe_load(yaml.safe_dump(vars(run_config(options))))
