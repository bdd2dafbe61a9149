import fcntl
import threading

import pytest
from filelock import lock_descriptor
from helpers.budgets import tiny_flags
from helpers.runs import cli, run_cli, run_dir, train_cli

from lightning_rl.cli import main
from lightning_rl.lab.reports.listing import list_runs
from lightning_rl.run.state import owned, read_state, write_state


def test_states_of_real_runs(tmp_path, capsys, monkeypatch):
    train_cli(tmp_path, 2)
    assert run_cli(tmp_path, "--max_epochs", "2", "--seed", "26", learning_rate=1e38) == 2
    assert read_state(run_dir(tmp_path)) == ("finished", "")
    state, reason = read_state(run_dir(tmp_path, seed=26))
    assert state == "failed"
    assert "diverged" in reason
    # a third one is running, and a fourth was killed while it ran
    for seed in (27, 28):
        folder = run_dir(tmp_path, seed=seed)
        (folder / "logger").mkdir(parents=True)
        write_state(folder, "running")
    with (run_dir(tmp_path, seed=27) / ".lock").open("w") as lock:
        assert lock_descriptor(lock.fileno(), blocking=False)
        table = list_runs([tmp_path])
    assert table["state"].tolist() == ["finished", "failed", "running", "interrupted"]
    assert table["seed"].tolist() == [25, 26, 27, 28]
    first = table.iloc[0]
    assert (first["implementation"], first["gamename"], first["scalar"]) == (
        "UDRL",
        "cartpole",
        "eval/return_mean",
    )
    assert first["best"] >= first["last"] > 0
    capsys.readouterr()
    monkeypatch.setenv("COLUMNS", "200")
    assert (
        cli("runs", tmp_path, "--sort", "env_steps", "--reverse", "--csv", tmp_path / "t.csv") == 0
    )
    out = capsys.readouterr().out
    title = "4 runs, gamename cartpole, exp_name default, implementation UDRL"
    assert title in " ".join(out.split())
    assert "diverged" in out
    assert len((tmp_path / "t.csv").read_text().splitlines()) == 5


def test_steps_are_those_of_the_run_not_of_its_last_evaluation(tmp_path):
    train_cli(tmp_path, 5, implementation="DDQN", steps_per_epoch=30, eval_interval=2)
    (row,) = list_runs([tmp_path]).to_dict("records")
    assert row["env_steps"] == 150


def test_nothing_to_list(tmp_path, capsys):
    assert cli("runs", tmp_path) == 2
    assert (
        capsys.readouterr().err
        == f"error: no run at or below {tmp_path}; name a folder above some, e.g. exp_dir\n"
    )
    assert cli("runs", tmp_path / "nowhere") == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line == (
        f"error: '{tmp_path / 'nowhere'}' does not exist; give a run directory, or a folder "
        "above some"
    )
    assert cli("runs", tmp_path, "--sort", "speed") == 2
    assert "invalid choice: 'speed'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("raised", "state"),
    [
        (KeyboardInterrupt, ("interrupted", "")),
        (
            RuntimeError("the ground gave way\nand more"),
            ("failed", "RuntimeError: the ground gave way"),
        ),
        (AssertionError, ("failed", "AssertionError")),
    ],
)
def test_a_run_that_ends_early_says_so(tmp_path, monkeypatch, raised, state):
    def stop(*args, **kwargs):
        raise raised

    monkeypatch.setattr("pytorch_lightning.Trainer.fit", stop)
    flags = [
        "--gamename",
        "cartpole",
        "--logdir",
        str(tmp_path),
        "--num_workers",
        "0",
        *tiny_flags(),
    ]
    if raised is KeyboardInterrupt:
        assert main(flags) == 130
    else:
        with pytest.raises((RuntimeError, AssertionError)):
            main(flags)
    assert read_state(run_dir(tmp_path)) == state


def test_who_looks_neither_seems_to_be_at_work_nor_keeps_a_run_from_it(tmp_path):
    write_state(tmp_path, "finished")
    (tmp_path / ".lock").touch()
    looking = (tmp_path / ".lock").open()
    fcntl.flock(looking, fcntl.LOCK_SH)  # as another listing has it for an instant
    assert read_state(tmp_path) == ("finished", "")
    end = threading.Timer(0.05, looking.close)
    end.start()
    with owned(tmp_path):
        assert read_state(tmp_path) == ("running", "")
    end.join()


def test_folders_without_a_config_are_sorted_as_well(tmp_path):
    for name in ("seed_25_old", "seed_10", "seed_9"):
        (tmp_path / name / "logger").mkdir(parents=True)
    assert list_runs([tmp_path], sort=["seed"])["seed"].tolist() == [9, 10, "seed_25_old"]
