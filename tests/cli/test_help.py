"""The help of every command, word for word.

``UPDATE_HELP=1`` writes the snapshots anew; what has changed then shows in the diff.
"""

import contextlib
import os
from collections.abc import Iterator

import pytest
from helpers import ROOT

from lightning_rl.cli import main
from lightning_rl.cli.flags import COMMANDS
from lightning_rl.cli.tools import tools
from lightning_rl.core.arguments import Group

SNAPSHOTS = ROOT / "tests" / "data_files" / "help"


def command_lines() -> Iterator[tuple[str, ...]]:
    yield ("trainer.py",)
    yield ("lightning-rl",)
    for name in COMMANDS:
        yield "lightning-rl", name
    for name, tool in tools().items():
        yield "lightning-rl", name
        if isinstance(tool, Group):
            for inner in tool.tools:
                yield "lightning-rl", name, inner


@pytest.mark.parametrize("words", command_lines(), ids=" ".join)
def test_help_of_each_command(words, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    program, *command = words
    with contextlib.suppress(SystemExit):
        main([*command, "--help"], program)
    text = capsys.readouterr().out
    path = SNAPSHOTS / f"{'_'.join(words)}.txt"
    if os.environ.get("UPDATE_HELP"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    assert text == path.read_text()


def test_no_words_ask_for_help(capsys):
    assert main([], "lightning-rl") == main(["--help"], "lightning-rl") == 0
    text = capsys.readouterr().out
    assert text == 2 * text[: len(text) // 2]


def test_each_snapshot_has_its_command():
    names = {f"{'_'.join(words)}.txt" for words in command_lines()}
    assert {path.name for path in SNAPSHOTS.iterdir()} == names
