"""A small part of ``make crash``, and that it notices what is wrong."""

import os
import random
from pathlib import Path

import crash
import pytest
from crash import KINDS, Disk, Fault, Killed, points, simulate

from lightning_rl.core import files
from lightning_rl.run import member_checkpoints
from lightning_rl.run import state as run_state


@pytest.fixture(autouse=True)
def _quick():
    with crash.quick():
        yield


def failures(family, kinds=KINDS, step=1):
    calls = range(0, len(crash.reference(family).calls), step)
    return [
        wrong for kind in kinds for at in calls if (wrong := simulate(at, family, Fault(kind, at)))
    ]


@pytest.mark.slow
def test_some_faults_of_every_family_leave_what_an_undisturbed_run_leaves():
    chosen = {
        (family, fault.kind): (number, family, fault)
        for number, (family, fault) in reversed([*enumerate(points())])
    }
    assert chosen.keys() == {(family, kind) for family in crash.FAMILIES for kind in KINDS}
    assert [wrong for point in chosen.values() if (wrong := simulate(*point))] == []


def test_a_results_table_survives_every_fault():
    assert failures("results CSV") == []


def test_runs_have_what_the_faults_are_about():
    for family, names in {
        "DDQN, 2 seeds": {".last.ckpt.next", "last.ckpt"},
        "SE": {"proxy.pt"},
        "results CSV": set(),
    }.items():
        calls = crash.reference(family).calls
        assert names <= {name for call, name in calls if call == "rename"}
        assert {"open", "write", "fsync", "fsync folder"} <= {call for call, _ in calls}
    assert (
        sum(call == "unlink" for call, _ in crash.reference("DDQN, 2 seeds").calls) > 0
    )  # of a best that is no longer


def test_names_before_contents_are_noticed(monkeypatch):
    """Files that are not synced before they get their names."""
    sync, calls = Disk.fsync, crash.reference("REINFORCE").calls
    fault = Fault("crash", calls.index(("rename", "last.ckpt")) + 6)  # its folder is synced
    monkeypatch.setattr(
        Disk,
        "fsync",
        lambda disk, file: sync(disk, file) if disk.calls[-1][0] == "open folder" else None,
    )
    found = [simulate(number, "REINFORCE", fault) for number in range(9)]
    assert any("is truncated or not a checkpoint" in wrong for wrong in found)


def test_seeds_that_are_not_written_together_are_noticed(monkeypatch):
    def one_by_one(paths, contents):
        for path, content in zip(paths, contents, strict=True):
            files.write_plain(path, content)

    monkeypatch.setattr(member_checkpoints, "write_together", one_by_one)
    crash.reference.cache_clear()
    try:
        names = [name for _, name in crash.reference("DDQN, 2 seeds").calls]
        first = names.index(
            "last.ckpt"
        )  # the first seed has its first last.ckpt, the other one has none
        wrong = simulate(0, "DDQN, 2 seeds", Fault("kill", first + 2))
    finally:
        crash.reference.cache_clear()
    assert "last.ckpt but another seed has" in wrong


def test_temporaries_that_are_not_swept_are_noticed(monkeypatch):
    monkeypatch.setattr(run_state, "sweep", lambda folder: None)
    calls = crash.reference("REINFORCE").calls
    first = next(
        n
        for n, (call, name) in enumerate(calls)
        if call == "write" and name.startswith(".state.yaml")
    )
    assert ": left ['.state.yaml." in simulate(0, "REINFORCE", Fault("torn", first))


@pytest.mark.parametrize("synced", [False, True])
def test_an_unsynced_name_may_be_lost_and_a_synced_one_stays(tmp_path, synced):
    outcomes = set()
    for seed in range(8):
        (tmp_path / "old").write_text("content")
        disk = Disk()
        disk.rename(tmp_path / "old", tmp_path / "new")
        if synced:
            files.system.close(sync_folder(disk, tmp_path))
        disk.lose(random.Random(seed))
        (left,) = tmp_path.iterdir()
        outcomes.add(left.name)
        assert left.read_text() == "content"
        left.unlink()
    assert outcomes == ({"new"} if synced else {"old", "new"})


@pytest.mark.parametrize("synced", [False, True])
def test_unsynced_content_may_be_lost_and_synced_content_stays(tmp_path, synced):
    outcomes = set()
    for seed in range(12):
        disk = Disk()
        descriptor = disk.open(tmp_path / "a", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        disk.write(descriptor, memoryview(b"0123"))
        if synced:
            disk.fsync(descriptor)
        disk.close(descriptor)
        files.system.close(sync_folder(disk, tmp_path))
        disk.lose(random.Random(seed))
        outcomes.add((tmp_path / "a").read_text())
        (tmp_path / "a").unlink()
    assert outcomes == ({"0123"} if synced else {"", "01", "0123"})


def sync_folder(disk, folder):
    descriptor = disk.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    disk.fsync(descriptor)
    return descriptor


def test_a_dead_process_does_nothing_more(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "system", Disk(Fault("torn", 2)))
    with pytest.raises(Killed):
        files.write_text(tmp_path / "a", "0123456789")
    (left,) = tmp_path.iterdir()
    assert left.name == f".a.{os.getpid()}.tmp"
    assert left.read_text() == "01234"
    with pytest.raises(Killed):
        files.write_text(Path(tmp_path / "b"), "")
    assert list(tmp_path.iterdir()) == [left]
