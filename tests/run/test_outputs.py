"""Nothing is overwritten that the command did not write, whatever OUT is."""

import json
import os

import pandas as pd
import pytest
from helpers import ROOT
from helpers.runs import run_dir, train_cli
from PIL import Image

from lightning_rl.cli import main
from lightning_rl.core.errors import UserError
from lightning_rl.core.files import adopt, keep_record
from lightning_rl.core.outputs import owned_table
from lightning_rl.run.state import owned, read_state

CURVE = "seed,env_steps,value\n" + "".join(
    f"{seed},{step},{step / 10 + seed}\n" for seed in (1, 2) for step in (100, 200, 300)
)
SWEEP = "run,command,commanded,obtained_mean,obtained_sd\na,return,0,1,1\na,return,10,9,1\n"


def files(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def refused(capsys, *words, says):
    """The command fails with one line that says so, and changes no file."""
    capsys.readouterr()  # what was said before
    assert main([str(word) for word in words]) == 2
    printed = capsys.readouterr().err.strip().splitlines()
    assert len(printed) == 1, printed
    assert says in printed[0]


@pytest.fixture
def sources(tmp_path):
    for name in ("a.csv", "b.csv", "ref.csv"):
        (tmp_path / name).write_text(CURVE)
    for name in ("sweep_a.csv", "sweep_b.csv"):
        (tmp_path / name).write_text(SWEEP)
    (tmp_path / "notes.png").write_bytes(b"my holiday")
    (tmp_path / "notes-marks.csv").write_text("mine\n")
    return tmp_path


CURVES = ("figures", "curves")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ((*CURVES, "a.csv", "b.csv"), "a.csv' was not written by this command"),  # OUT forgotten
        ((*CURVES, "./a", "b.csv"), "a.csv' was not written by this command"),
        ((*CURVES, "./a", "a.csv"), "a.csv' is read by this command"),
        ((*CURVES, "./a", "a.csv:ours"), "a.csv' is read by this command"),
        ((*CURVES, "./ref", "b.csv", "--reference", "ref.csv"), "ref.csv' is read by this command"),
        (
            (*CURVES, "./ref", "b.csv", "--reference", "ref.csv:paper", "--force"),
            "ref.csv' is read by this command",
        ),
        ((*CURVES, "./link", "b.csv"), "link.csv' is read by this command"),
        ((*CURVES, "./notes", "b.csv"), "notes.png' was not written by this command"),
        ((*CURVES, "./folder", "b.csv"), "folder.csv' is no plain file"),
        ((*CURVES, "runs", "b.csv"), "'runs' is a folder; the first path is OUT"),  # forgotten
        (
            ("figures", "commands", "sweep_a.csv", "sweep_b.csv"),
            "sweep_a.csv' was not written by this command",
        ),
        (
            (
                "figures",
                "marks",
                "./notes",
                "b.csv",
                "--at",
                "200",
                "--window",
                "10",
                "--tag",
                "value",
            ),
            "notes-marks.csv' was not",
        ),
    ],
)
def test_figures_leave_inputs_and_foreign_files_alone(words, says, sources, monkeypatch, capsys):
    monkeypatch.chdir(sources)
    (sources / "link.csv").symlink_to("b.csv")
    (sources / "folder.csv").mkdir()
    (sources / "runs").mkdir()
    before = files(sources)
    refused(capsys, *words, says=says)
    assert files(sources) == before


def test_a_figure_is_drawn_again_until_its_numbers_are_edited(sources, monkeypatch, capsys):
    monkeypatch.chdir(sources)
    words = [*CURVES, "./out", "a.csv"]
    assert main(words) == main([*CURVES, "./out.png", "b.csv"]) == 0
    assert Image.open("out.png").text["Software"] == "lightning_rl"
    edited = (sources / "out.csv").read_bytes() + b",mine,seed_3,100,7\n"
    (sources / "out.csv").write_bytes(edited)
    refused(
        capsys,
        *words,
        says="out.csv' was not written by this command; choose another OUT, or --force",
    )
    assert (sources / "out.csv").read_bytes() == edited
    assert main([*words, "--force"]) == 0
    assert b"mine" not in (sources / "out.csv").read_bytes()


def test_tables_are_made_again_but_not_over_other_tables(sources, monkeypatch, capsys):
    monkeypatch.chdir(sources)
    words = ["figures", "scores", "table.csv", "a.csv", "--tag", "value"]
    assert main(words) == main(words) == 0
    refused(capsys, *words[:2], "b.csv", *words[3:], says="b.csv' was not written by this command")
    assert (sources / "b.csv").read_text() == CURVE


@pytest.mark.parametrize(
    ("content", "ours"),
    [("a,b\n1,2\n", True), ("a,b\r\n1,2\r\n", True), ("a,b,c\n", False), ("a\n", False)],
)
def test_a_table_is_known_by_its_whole_header(content, ours, tmp_path):
    (tmp_path / "t.csv").write_bytes(content.encode())
    assert owned_table(("a", "b"))(tmp_path / "t.csv") is ours


def test_reports_and_listings_leave_the_run_alone(tmp_path, capsys):
    train_cli(tmp_path / "exp", 2)
    run = run_dir(tmp_path / "exp")
    before = files(tmp_path)
    refused(capsys, "report", run, "-o", run / ".lock", says="was not written by this command")
    (events,) = run.rglob("events.out.*")
    for path in (run / "last.ckpt", run / "config.yaml", events):
        refused(capsys, "report", run, "-o", path, "--force", says="may be part of a run")
        refused(capsys, "runs", run, "--csv", path, "--force", says="may be part of a run")
        refused(
            capsys,
            "proxies",
            "clones",
            path,
            "SD-CartPole-v1",
            "--force",
            says="may be part of a run",
        )
    assert files(tmp_path) == before
    page, table = tmp_path / "page.html", tmp_path / "runs.csv"
    for _ in range(2):
        assert (
            main(["report", str(run), "-o", str(page)])
            == main(["runs", str(run), "--csv", str(table)])
            == 0
        )
    assert len(pd.read_csv(table)) == 1
    page.write_text("<html>my own page</html>")
    refused(capsys, "report", run, "-o", page, says="page.html' was not written by this command")


def test_an_evaluation_leaves_foreign_files_beside_the_checkpoint(tmp_path, capsys):
    train_cli(tmp_path / "exp", 2)
    run = run_dir(tmp_path / "exp")
    (run / "evaluation.json").write_text('{"mine": 1}')
    words = ["--eval_agent", run / "last.ckpt", "--eval_episodes", "1"]
    refused(capsys, *words, says="evaluation.json' was not written by this command")
    assert (run / "evaluation.json").read_text() == '{"mine": 1}'
    assert main([*map(str, words), "--force"]) == 0
    assert main([*map(str, words)]) == 0
    assert json.loads((run / "evaluation.json").read_text())["episodes"] == 1
    (run / "sweep.csv").write_text(SWEEP)
    capsys.readouterr()
    refused(
        capsys, *words, "--eval_command", "sweep", says="sweep.csv' was not written by this command"
    )


def test_a_folder_that_cannot_be_written_is_said_before_the_work(sources, monkeypatch, capsys):
    monkeypatch.chdir(sources)
    monkeypatch.setattr("lightning_rl.core.outputs.os.access", lambda folder, mode: False)
    before = files(sources)
    refused(
        capsys,
        *CURVES,
        "./out",
        "b.csv",
        says=f"cannot write 'out.csv': '{sources}' is not writable for this user",
    )
    refused(capsys, "report", "b.csv", says="cannot write 'figures/report.html'")
    refused(
        capsys,
        *CURVES,
        "b.csv/out",
        "b.csv",
        says=f"cannot write 'b.csv/out.csv': '{sources / 'b.csv'}' is not a folder",
    )
    assert files(sources) == before


def test_a_removed_lock_lets_no_second_process_in(tmp_path):
    with owned(tmp_path / "run"):
        (tmp_path / "run" / ".lock").unlink()
        with pytest.raises(UserError, match="in use by another process"), owned(tmp_path / "run"):
            pass
        assert read_state(tmp_path / "run") == ("running", "")


def test_a_run_begins_without_what_a_killed_writer_has_left(tmp_path):
    left = tmp_path / f".last.ckpt.{os.getpid()}.tmp"
    left.write_text("half")
    keep_record(tmp_path)
    adopt(left)
    with owned(tmp_path):
        assert not left.exists()


def test_a_name_without_a_folder_is_put_into_one_that_git_ignores(sources, monkeypatch):
    monkeypatch.chdir(sources)
    assert main([*CURVES, "mine", "b.csv"]) == 0
    assert sorted(path.name for path in (sources / "figures").iterdir()) == [
        "mine.csv",
        "mine.png",
        "mine.svg",
    ]
    assert "/figures/" in (ROOT / ".gitignore").read_text().splitlines()


def test_insisting_through_a_link_overwrites_no_file_of_a_run(tmp_path, capsys):
    train_cli(tmp_path / "exp", 1)
    run = run_dir(tmp_path / "exp")
    (tmp_path / "link.csv").symlink_to(run / "last.ckpt")
    before = (run / "last.ckpt").read_bytes()
    for csv in (tmp_path / "link.csv", run / "written.txt"):
        refused(
            capsys, "runs", tmp_path / "exp", "--csv", csv, "--force", says="may be part of a run"
        )
    assert (run / "last.ckpt").read_bytes() == before
