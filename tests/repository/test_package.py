"""What is installed: every file that the package reads, and a wheel that trains where nothing
else is.
"""

import configparser
import os
import subprocess
import venv
from pathlib import Path

import pytest
from helpers import ROOT
from helpers.budgets import tiny_flags

PACKAGE = ROOT / "lightning_rl"


def test_every_file_that_is_no_python_is_installed():
    setup = configparser.ConfigParser()
    setup.read(ROOT / "setup.cfg")
    patterns = [
        pattern.strip() for pattern in setup["options.package_data"]["lightning_rl"].split(",")
    ]
    installed = {path for pattern in patterns for path in PACKAGE.glob(pattern)}
    found = (
        path
        for folder in (PACKAGE, PACKAGE / "configs")
        for path in folder.rglob("*")
        if path.is_file()
    )
    assert {
        path for path in found if path.suffix != ".py" and path.parent.name != "__pycache__"
    } == installed


def run(*words: str | Path, cwd: Path) -> str:
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [str(word) for word in words], cwd=cwd, env=env, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_a_wheel_trains_in_an_empty_environment(tmp_path):
    """The wheel is built from the source distribution, which is built from the files that git
    knows.
    """
    source, built, elsewhere = (tmp_path / name for name in ("source", "built", "elsewhere"))
    for folder in (source, built, elsewhere):
        folder.mkdir()
    files = run("git", "ls-files", "-z", cwd=ROOT).strip("\0").split("\0")
    run("cp", "-R", "-P", "--parents", *files, source, cwd=ROOT)
    venv.create(tmp_path / "venv", with_pip=True)
    bin_ = tmp_path / "venv" / "bin"
    pip = (bin_ / "python", "-m", "pip")
    run(*pip, "install", "-q", "setuptools", "wheel", cwd=tmp_path)
    make = f"from setuptools import build_meta; build_meta.build_sdist({str(built)!r})"
    run(bin_ / "python", "-c", make, cwd=source)
    run(*pip, "wheel", "-q", "--no-deps", "-w", built, *built.glob("*.tar.gz"), cwd=tmp_path)
    run(*pip, "install", "-q", "-c", ROOT / "constraints.txt", "torch", cwd=tmp_path)
    run(*pip, "install", "-q", "-c", ROOT / "constraints.txt", *built.glob("*.whl"), cwd=tmp_path)
    words = ("--gamename", "CartPole-v1", "--max_epochs", "2", "--num_workers", "0", *tiny_flags())
    assert "finished at" in run(bin_ / "lightning-rl", "train", *words, cwd=elsewhere)
    run_dir = elsewhere / "exp_dir/CartPole-v1/default/UDRL/seed_25"
    run(bin_ / "lightning-rl", "eval", run_dir, "--episodes", "2", cwd=elsewhere)
    proxy = (
        "import lightning_rl; "
        "print(lightning_rl.load_proxy('SE-CartPole-v0').reset(seed=0)[0].shape)"
    )
    assert run(bin_ / "python", "-c", proxy, cwd=elsewhere) == "(4,)\n"
