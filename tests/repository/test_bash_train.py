"""bash_train.sh: seeds side by side, flags passed through, clear refusals."""

import os
import shutil
import signal
import subprocess

import pytest
import warm
from helpers import ROOT
from helpers.budgets import tiny_flags
from helpers.runs import run_dir


def bash_train(*arguments: str, **environment: str) -> subprocess.CompletedProcess:
    env = {**os.environ, "PYTHON": warm.shell(), **environment}
    bash = shutil.which("bash")
    return subprocess.run(
        [bash, str(ROOT / "bash_train.sh"), *arguments],
        capture_output=True,
        text=True,
        env=env,
        timeout=300,
    )


@pytest.mark.skipif(shutil.which("parallel") is None, reason="GNU parallel is not installed")
def test_seeds_run_side_by_side(tmp_path):
    flags = [
        "--gamename",
        "cartpole",
        "--logdir",
        str(tmp_path),
        "--max_epochs",
        "2",
        *tiny_flags(),
    ]
    slurm = {
        "SLURM_JOB_ID": "77",
        "SLURM_JOB_NAME": "train",
        "SLURM_NTASKS": "4",
        "SLURM_PROCID": "0",
    }  # of `sbatch --ntasks=4`
    result = bash_train(*flags, "--", "3", "4", **slurm)
    assert result.returncode == 0, result.stderr
    for seed in (3, 4):
        assert (run_dir(tmp_path, seed=seed) / "last.ckpt").exists()
    assert not run_dir(tmp_path, seed=5).exists()


@pytest.mark.skipif(shutil.which("parallel") is None, reason="GNU parallel is not installed")
def test_a_failing_seed_fails_the_sweep(tmp_path):
    result = bash_train("--gamename", "pong", "--logdir", str(tmp_path), "--", "1", "2")
    assert result.returncode == 100  # per cent that have failed
    assert result.stderr.count("error: ") == 2


@pytest.mark.skipif(shutil.which("parallel") is None, reason="GNU parallel is not installed")
def test_ctrl_c_lets_a_seed_finish_what_it_is_at(tmp_path):
    """GNU parallel alone gets Ctrl-C, which its jobs, in groups of their own, are told of by it."""
    seed, finished = tmp_path / "python", tmp_path / "finished"
    seed.write_text(
        f"#!/bin/sh\ntrap 'sleep 1; touch {finished}; exit' TERM\necho at work\nwhile :; do sleep "
        "0.1; done\n"
    )
    seed.chmod(0o755)
    command = [shutil.which("bash"), str(ROOT / "bash_train.sh"), "--", "1", "1"]
    with subprocess.Popen(
        command, env={**os.environ, "PYTHON": str(seed)}, stdout=subprocess.PIPE
    ) as sweep:
        sweep.stdout.readline()
        sweep.send_signal(signal.SIGINT)
        sweep.wait(20)
    assert finished.exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "expected FLAGS -- FIRST_SEED LAST_SEED"),
        (("--", "1"), "expected FLAGS"),
        (("--", "a", "2"), "'a' '2' are not whole numbers"),
        (("--", "5", "2"), "first seed 5 is above last seed 2"),
        (("--seed", "3", "--", "1", "2"), "--seed is set for each run"),
        (("--", "09", "08"), "first seed 9 is above last seed 8"),
        (
            ("--use_tune", "--", "0", "1"),
            "--use_tune trains no range of seeds; use trainer.py alone",
        ),
        (
            ("--eval_agent=run", "--", "0", "1"),
            "--eval_agent trains no range of seeds; use trainer.py alone",
        ),
        (("--num_seeds", "2", "--", "0", "1"), "--num_seeds: here each seed is a run of its own"),
    ],
)
def test_refusals(arguments, words):
    result = bash_train(*arguments)
    assert result.returncode == 2
    assert words in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1


def test_jobs_that_are_no_number_are_refused():
    result = bash_train("--", "1", "2", JOBS="x")
    assert result.returncode == 2
    assert "JOBS=x is no number of runs from 1 on, e.g. JOBS=2" in result.stderr


def test_missing_parallel_is_explained(tmp_path):
    for tool in ("dirname", "nproc", "seq"):
        (tmp_path / tool).symlink_to(shutil.which(tool))
    result = bash_train("--", "1", "2", PATH=str(tmp_path))
    assert result.returncode == 2
    assert "sudo apt-get install parallel" in result.stderr


def test_missing_python_is_explained(tmp_path):
    if shutil.which("parallel") is None:
        pytest.skip("GNU parallel is not installed")
    assert (
        "run 'make train' once"
        in bash_train("--", "1", "2", PYTHON=str(tmp_path / "nowhere")).stderr
    )
