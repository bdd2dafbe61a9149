"""What is installed: every file that the package reads, and a wheel that trains where nothing
else is.
"""

import configparser
import os
import re
import subprocess
import venv
from pathlib import Path

import pytest
import yaml
from helpers import ROOT
from helpers.budgets import tiny_flags

from lightning_rl.core.extras import INSTALLED_BY

PACKAGE = ROOT / "lightning_rl"


def setup() -> configparser.ConfigParser:
    parser = configparser.ConfigParser()
    parser.read(ROOT / "setup.cfg")
    return parser


APART = {"league"}  # brings JAX and Brax, of which nothing is used


def test_what_installs_a_missing_package_is_there():
    options, extras = setup()["options"], setup()["options.extras_require"]
    named = {*re.findall(r"\w+", extras["all"].partition("[")[2]), *APART}
    required = [line.partition(" >=")[0] for line in options["install_requires"].split("\n")]
    for remedy in INSTALLED_BY.values():
        extra = remedy.removeprefix("lightning_rl[").removesuffix("]")
        assert (extra in extras and extra in named) or remedy in required, remedy
    assert named == {
        remedy[13:-1] for remedy in INSTALLED_BY.values() if remedy.startswith("lightning_rl[")
    }


def test_the_workflow_tries_every_python_that_is_promised():
    promised = re.findall(r"Python :: (3\.\d+)", setup()["metadata"]["classifiers"])
    tests = yaml.safe_load((ROOT / ".github" / "workflows" / "tests.yml").read_text())
    assert tests["jobs"]["tests"]["strategy"]["matrix"]["python"] == promised
    assert len(promised) == 3


def test_every_file_that_is_no_python_is_installed():
    patterns = [
        pattern.strip() for pattern in setup()["options.package_data"]["lightning_rl"].split(",")
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


def build(folder: Path) -> tuple[Path, Path]:
    """``bin`` of an empty environment, and a wheel that was built from the source distribution,
    which is built from the files that git knows.
    """
    source, built = folder / "source", folder / "built"
    source.mkdir()
    built.mkdir()
    files = run("git", "ls-files", "-z", cwd=ROOT).strip("\0").split("\0")
    run("cp", "-R", "-P", "--parents", *files, source, cwd=ROOT)
    for name in ("tools", "venv"):
        venv.create(folder / name, with_pip=True)
    tools = folder / "tools" / "bin" / "python"
    run(tools, "-m", "pip", "install", "-q", "setuptools", "wheel", "twine", cwd=folder)
    make = f"from setuptools import build_meta; build_meta.build_sdist({str(built)!r})"
    run(tools, "-c", make, cwd=source)
    wheel = ("wheel", "-q", "--no-deps", "-w", built, *built.glob("*.tar.gz"))
    run(tools, "-m", "pip", *wheel, cwd=folder)
    run(tools, "-m", "twine", "check", "--strict", *built.iterdir(), cwd=folder)
    return folder / "venv" / "bin", next(built.glob("*.whl"))


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_a_wheel_trains_in_an_empty_environment(tmp_path):
    bin_, wheel = build(tmp_path)
    pip = (bin_ / "python", "-m", "pip", "install", "-q", "-c", ROOT / "constraints.txt")
    run(*pip, "torch", cwd=tmp_path)
    run(*pip, wheel, cwd=tmp_path)
    words = ("--gamename", "CartPole-v1", "--max_epochs", "2", "--num_workers", "0", *tiny_flags())
    assert "finished at" in run(bin_ / "lightning-rl", "train", *words, cwd=tmp_path)
    run_dir = tmp_path / "exp_dir/CartPole-v1/default/UDRL/seed_25"
    run(bin_ / "lightning-rl", "eval", run_dir, "--episodes", "2", cwd=tmp_path)
    proxy = (
        "import lightning_rl; "
        "print(lightning_rl.load_proxy('SE-CartPole-v0').reset(seed=0)[0].shape)"
    )
    assert run(bin_ / "python", "-c", proxy, cwd=tmp_path) == "(4,)\n"


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_a_light_installation_trains_and_acts(tmp_path):
    """At most 300 MB beside torch."""
    bin_, wheel = build(tmp_path)
    pip = (bin_ / "python", "-m", "pip", "install", "-q", "-c", ROOT / "constraints.txt")
    run(*pip, "torch", cwd=tmp_path)
    before = megabytes(bin_.parent)
    run(*pip, "--no-deps", "-r", ROOT / "requirements-light.txt", wheel, cwd=tmp_path)
    assert megabytes(bin_.parent) - before < 300
    for gamename in ("cartpole", "lunarlander"):
        words = ("--gamename", gamename, "--max_epochs", "2", *tiny_flags("RCP-A"))
        train = (bin_ / "lightning-rl", "train", "--implementation", "RCP-A", *words)
        assert "finished at" in run(*train, cwd=tmp_path)
        act = f"""
import lightning_rl
agent = lightning_rl.load("exp_dir/{gamename}/default/RCP-A/seed_25")
env = lightning_rl.make_env("{gamename}")
print(env.action_space.contains(agent.act(env.reset(seed=0)[0])))
"""
        assert run(bin_ / "python", "-c", act, cwd=tmp_path) == "True\n"


def megabytes(folder: Path) -> float:
    return sum(path.stat().st_size for path in folder.rglob("*") if not path.is_symlink()) / 1e6
