"""Every command in the README is run, in its order, with a tiny budget."""

import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
import warm
import yaml
from helpers import ROOT, tiny_flags

import lightning_rl
from lightning_rl.cli import main
from lightning_rl.core.gamenames import GAMES
from lightning_rl.envs.spec import env_spec
from lightning_rl.methods.registry import IMPLEMENTATIONS

README = (ROOT / "README.md").read_text()
CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text()
COMMANDS = [line for block in re.findall(r"```bash\n(.*?)```", README, re.S) for line in block.strip().splitlines()]


def implementation_of(words: list[str]) -> str:
    return words[words.index("--implementation") + 1] if "--implementation" in words else "UDRL"


def tiny(command: str) -> list[str]:
    """The words of a command with a tiny budget added and the interpreter of the tests."""
    words = shlex.split(command)
    saved = "--reload" in words or "--recording_epoch_interval" in words
    budget = ["--max_epochs", "2", *tiny_flags(implementation_of(words), **({"checkpoint_interval": 1} if saved else {}))]
    if words[:2] == ["python", "trainer.py"]:
        if "--eval_agent" in words:
            budget = ["--eval_episodes", "2"]
        given = tuple(f"--set={word.split('=')[0]}=" for word in words if "=" in word)
        budget = [word for word in budget if not word.startswith(given)] if given else budget
        return [warm.shell(), str(ROOT / "trainer.py"), *words[2:], *budget]
    if words[0] == "python":
        return [warm.shell(), *words[1:]]
    if words[0] == "bash":
        end = words.index("--")
        return ["bash", str(ROOT / words[1]), *words[2:end], *budget, *words[end:]]
    if words[0] == "tensorboard":
        return [warm.shell(), "-m", "tensorboard.main", "--inspect", *words[1:]]
    assert words[0] == "make", command
    if words[1] == "train":
        logdir = f"--logdir {Path.cwd()} --max_epochs 2 {' '.join(tiny_flags(hidden='[8,8]'))}"
        return ["make", "-C", str(ROOT), "-o", ".venv/.installed", f"BIN={Path(warm.shell()).parent}", "train", f"ARGS={logdir}"]
    return ["make", "-C", str(ROOT), "-n", *words[1:]]  # running the tests inside the tests would not end


@pytest.mark.timeout(1800)
def test_every_command(tmp_path, monkeypatch):
    assert len(COMMANDS) > 10
    monkeypatch.chdir(tmp_path)
    environment = {**os.environ, "PYTHON": warm.shell()}
    swept = shutil.which("parallel") is not None  # without GNU parallel there is no sweep, nor a figure of one
    for command in COMMANDS:
        if not swept and ("bash_train" in command or "figures curves" in command):
            continue
        words = shlex.split(command)
        if words[:2] == ["python", "-m"] and words[2].startswith("lightning_rl"):  # in this process: a second sooner
            tool = ["figures"] if words[2].endswith("figures") else []
            assert main([*tool, *words[3:]]) == 0, command
            continue
        result = subprocess.run(tiny(command), capture_output=True, text=True, env=environment, timeout=300)
        assert result.returncode == 0, f"{command}\n{result.stdout}\n{result.stderr}"
        assert "Traceback" not in result.stderr
    if swept:
        assert (tmp_path / "figure.png").stat().st_size > 10_000
        assert len(list(tmp_path.glob("exp_dir/lunarlander/paper/UDRL/seed_*/last.ckpt"))) == 5


@pytest.mark.parametrize("name", [*GAMES, *IMPLEMENTATIONS])
def test_tables_are_complete(name):
    assert f"`{name}`" in README


def test_every_suite_that_is_named_is_there():
    suites = re.findall(r"`make ([\w-]+)", CONTRIBUTING)
    targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.M)
    assert len(suites) > 5
    assert not set(suites) - set(targets)


def test_the_citation_is_of_this_version_and_names_the_papers_of_every_family():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert citation["version"] == lightning_rl.__version__
    notes = " ".join(paper["notes"] for paper in citation["references"])
    assert all(name in notes for name in ("UDRL", "RCP-A", "REINFORCE", "SE", "RN", "MBRL", "ER", "gaussian-latent"))


def test_links_and_pictures_exist():
    for target in re.findall(r"\]\((?!http)([^)]+)\)", README):
        assert (ROOT / target.split("#")[0]).exists(), target


EXAMPLES = re.findall(r"```python\n(.*?)```", README, re.S)
TINY = {
    "max_env_steps=200_000": "max_env_steps=2_000, num_updates_per_iter=2", "episodes=100": "episodes=1",
    "max_epochs=50": "max_epochs=2",
}  # fmt: skip


def test_the_examples_in_python_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code = "\n".join(EXAMPLES)
    for size, tiny in TINY.items():
        assert size in code
        code = code.replace(size, tiny)
    names = {}
    exec(code, names)
    assert names["run"].path == Path("exp_dir/lunarlander/default/RCP-A/seed_0")
    assert names["report"]["episodes"] == 1
    assert list(tmp_path.glob("logs/**/metrics.csv"))


def test_the_environment_example_registers_one():
    (example,) = re.findall(r"```python\n(.*?)```", CONTRIBUTING, re.S)
    try:
        exec(example, {})
        spec = env_spec("mountaincar")
    finally:
        del GAMES["mountaincar"]
    assert (spec.obs_size, spec.horizon, spec.max_return) == (2, 200, -90.0)
