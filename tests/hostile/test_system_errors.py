"""What the system refuses (paths, disk, memory) is one line with a remedy; a defect of the
program is not hidden.
"""

import errno

import pytest
from helpers.runs import refused, run_cli

from lightning_rl.cli import main


def test_unwritable_logdir(capsys, tmp_path):
    in_the_way = tmp_path / "file"
    in_the_way.write_text("mine")
    assert "choose another --logdir" in refused(capsys, run_cli(in_the_way))
    assert in_the_way.read_text() == "mine"


def test_a_full_disk_names_the_remedy_that_there_is(capsys, monkeypatch):
    def full(words, program):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("lightning_rl.cli._run", full)
    assert "free space, then --resume" in refused(capsys, main(["--seed", "3"]))
    assert "free space, then --resume" in refused(capsys, main(["train", "--seed", "3"]))
    assert "free space, then run the command again" in refused(
        capsys, main(["runs", "exp_dir", "--csv", "a.csv"])
    )
    assert "free space, then run the command again" in refused(
        capsys, main(["--eval_agent", "a.ckpt"])
    )
    assert "free space, then run the command again" in refused(
        capsys, main(["train", "--no_checkpoint"])
    )


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (
            PermissionError(13, "Permission denied", "/a/b"),
            "'/a/b' cannot be used: Permission denied; check the path",
        ),
        (
            MemoryError("Unable to allocate 4. TiB for an array"),
            "memory is short (Unable to allocate 4. TiB",
        ),
        (
            RuntimeError(
                "DefaultCPUAllocator: can't allocate memory: you tried to allocate 9 bytes"
            ),
            "memory is short",
        ),
    ],
)
def test_what_the_system_refuses_is_one_line(error, words, capsys, monkeypatch):
    def fail(words, program):
        raise error

    monkeypatch.setattr("lightning_rl.cli._run", fail)
    assert words in refused(capsys, main([]))


def test_a_defect_of_the_program_is_not_hidden(monkeypatch):
    def fail(words, program):
        raise RuntimeError("shapes (3,) and (4,) do not match")

    monkeypatch.setattr("lightning_rl.cli._run", fail)
    with pytest.raises(RuntimeError, match="do not match"):
        main([])
