"""What lies in a run directory or is named as a table may be anything: it is named and left out,
and nothing waits for it.
"""

import os

import pytest
from helpers.runs import cli, run_cli
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from torch.utils.tensorboard import SummaryWriter

from lightning_rl.core.errors import UserError
from lightning_rl.lab.figures.csv_files import read_csv
from lightning_rl.lab.scalars import read_events

CONFIG = (
    "implementation: UDRL\ngamename: cartpole\nexp_name: default\nseed: 1\nconfig: "
    "{batch_size: 16}\n"
)


@pytest.fixture
def run(tmp_path):
    """A run directory with a curve."""
    folder = tmp_path / "cartpole" / "default" / "UDRL" / "seed_1"
    with SummaryWriter(folder / "logger" / "version_0") as writer:
        for step in (10, 20, 30):
            writer.add_scalar("eval/return_mean", step / 10, step)
    (folder / "config.yaml").write_text(CONFIG)
    return folder


@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    "name",
    (
        ".lock state.yaml config.yaml evaluation.json sweep.png evaluation.mp4 "
        "logger/version_0/events.out.tfevents.9"
    ).split(),
)
def test_a_pipe_in_a_run_stops_no_listing_and_no_report(run, tmp_path, capsys, name):
    (run / name).unlink(missing_ok=True)
    os.mkfifo(run / name)
    assert cli("runs", tmp_path) == 0
    assert cli("report", tmp_path, "-o", tmp_path / "page.html", "--tag", "eval/return_mean") == 0
    assert "UDRL" in capsys.readouterr().out


@pytest.mark.parametrize(
    "content", ["[[[", "config: 3", "config: {1: 2}", "a: &a [*a]", "3", "seed: [1]\nconfig: {}"]
)
def test_a_damaged_record_is_named_and_the_other_runs_are_listed(run, tmp_path, capsys, content):
    other = tmp_path / "cartpole" / "default" / "UDRL" / "seed_2"
    (other / "logger").mkdir(parents=True)
    (other / "config.yaml").write_text(content)
    assert cli("runs", tmp_path) == 0
    captured = capsys.readouterr()
    assert captured.err.count("skipped") == 1
    assert f"{other}" in captured.err
    assert captured.out.strip().startswith("1 run, ")


def test_event_files_are_read_as_tensorboard_reads_them(run):
    (path,) = run.glob("logger/version_0/events*")
    expected = EventAccumulator(str(path), size_guidance={"scalars": 0}).Reload()
    scalars = read_events(path).scalars
    assert set(scalars) == set(expected.Tags()["scalars"])
    for tag, points in scalars.items():
        begin = expected.FirstEventTimestamp()
        assert points == [
            (event.step, event.wall_time - begin, event.value) for event in expected.Scalars(tag)
        ]


@pytest.mark.parametrize("damage", ["flipped", "cut"])
def test_a_damaged_event_file_counts_up_to_the_damage(run, tmp_path, capsys, damage):
    (path,) = run.glob("logger/version_0/events*")
    content = bytearray(path.read_bytes())
    place = len(content) - 10  # in the last of three
    content[place] ^= 4
    (tmp_path / "events").write_bytes(content if damage == "flipped" else content[:place])
    whole, left = (
        sum(map(len, read_events(each).scalars.values())) for each in (path, tmp_path / "events")
    )
    assert (left, whole) == (2, 3)
    assert "it is not a whole event file" in capsys.readouterr().err


def test_an_event_file_of_other_bytes_is_named_and_the_rest_counts(run, capsys):
    (run / "logger" / "version_0" / "events.out.tfevents.9").write_bytes(os.urandom(200))
    assert cli("runs", run) == 0
    captured = capsys.readouterr()
    assert "events.out.tfevents.9': it is not a whole event file" in captured.err
    assert "3.0" in captured.out


@pytest.mark.timeout(60)
@pytest.mark.parametrize("path", ["pipe.csv", "/dev/zero"])
def test_a_pipe_or_device_is_no_config_and_no_table(tmp_path, capsys, path):
    os.mkfifo(tmp_path / "pipe.csv")
    given = str(tmp_path / path)
    assert cli("--config", given, "--logdir", tmp_path) == 2
    assert (
        cli("figures", "curves", given + ("" if path.endswith("csv") else ".csv"), tmp_path / "out")
        == 2
    )
    assert "is not a file" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("content", "named"),
    [
        (b"", "cannot be read as a CSV: No columns"),
        (b"x,value\n1,2\n3,\0\n", "cannot be read as a CSV: line 3 holds a NUL byte"),
        (b"x,value\n1,2\n3,four\n", "row 2, column value: 'four' is not a finite number"),
        (b"x,value\n1,2\n3,\n", "row 2, column value: nan is not a finite number"),
        (b"x,value\n1,inf\n", "row 1, column value: inf is not a finite number"),
        (b"x,value\n1,1e300\n", "row 1, column value: 1e+300 is not a finite number"),
        (
            b"x,value\n1,2\n3,4,5,6\n",
            "cannot be read as a CSV: Error tokenizing data. C error: Expected 2 fields in line 3",
        ),
        (b"\xff\xfe\n", "cannot be read as a CSV: 'utf-8' codec"),
        (
            b"x" + b"," * 9000 + b"\n" * 9000,
            "it has about 81,018,001 cells, the limit is 67,108,864",
        ),
    ],
)
def test_a_table_that_is_none_is_named_with_the_row(tmp_path, content, named):
    path = tmp_path / "a.csv"
    path.write_bytes(content)
    with pytest.raises(UserError) as refusal:
        read_csv(path, numbers=["value"])
    assert named in str(refusal.value)
    assert str(path) in str(refusal.value)


@pytest.mark.timeout(60)
def test_a_pipe_where_the_lock_should_be_stops_no_run(tmp_path, capsys):
    folder = tmp_path / "cartpole" / "default" / "UDRL" / "seed_1"
    folder.mkdir(parents=True)
    os.mkfifo(folder / ".lock")
    assert run_cli(tmp_path, "--seed", "1", "--max_epochs", "1") == 2
    assert ".lock' is not a file; remove it" in capsys.readouterr().err


@pytest.mark.parametrize("generation", ["1e99", "-1", "0.5", "1000000"])
def test_a_generation_that_cannot_be_one_is_named(tmp_path, capsys, generation):
    (tmp_path / "a.csv").write_text(
        f"gamename,seed,generation,fitness_mean\ncartpole,1,0,10\ncartpole,1,{generation},20\n"
    )
    assert cli("figures", "proxy-success", tmp_path / "out", tmp_path / "a.csv") == 2
    assert "row 2, column generation: " in capsys.readouterr().err
    assert not (tmp_path / "out.png").exists()


def test_more_cells_than_the_header_and_more_columns_than_anybody_has_are_refused(tmp_path):
    refused = {
        "seed,value\n1,2,3\n1,2,4\n": "rows have more cells than its header",
        "a," * 20_000: "20,001 columns",
    }
    for text, words in refused.items():
        (tmp_path / "a.csv").write_text(text)
        with pytest.raises(UserError, match=words):
            read_csv(tmp_path / "a.csv")
