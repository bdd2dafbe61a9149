"""Training, loading and acting where only requirements-light.txt is installed."""

import re
from importlib import metadata

import pytest
from helpers import ROOT
from helpers.runs import run_python

from lightning_rl.core.extras import require

ABSENT = ("cmaes", "matplotlib", "moviepy", "mujoco", "numba", "pandas", "PIL", "ray", "scipy")
ABSENT = (*ABSENT, "tensorboard", "threadpoolctl")
BEGIN = f"""
import sys
sys.modules.update(dict.fromkeys({ABSENT}))
from lightning_rl.run.imports import without
absent = without(*{ABSENT})
absent.__enter__()
import lightning_rl as lrl
from lightning_rl.cli import main
"""


@pytest.mark.parametrize(("method", "gamename"), [("RCP-A", "lunarlander"), ("DDQN", "cartpole")])
def test_it_trains_resumes_evaluates_and_acts(method, gamename, tmp_path):
    program = f"""{BEGIN}
from pathlib import Path
settings = {{"learning_starts": 2, "steps_per_iter": 20}} if {method!r} == "RCP-A" else {{}}
for epochs in (2, 4):
    run = lrl.train({method!r}, {gamename!r}, seed=0, num_workers=0, resume=epochs == 4,
                    max_epochs=epochs, eval_episodes=1, eval_interval=2, **settings)
agent, env = lrl.load(run.path), lrl.make_env({gamename!r})
assert env.action_space.contains(agent.act(env.reset(seed=0)[0]))
assert lrl.evaluate(agent, episodes=2)["sampled"]["returns"]
for version in (0, 1):
    log = run.path / f"logger/version_{{version}}/metrics.csv"
    assert "env_steps" in log.read_text() and "eval/return_mean" in log.read_text()
assert main(["eval", str(run.path), "--episodes", "2"], program="lightning-rl") == 0
"""
    said = run_python(program, tmp_path)
    assert "none, a film needs moviepy: pip install 'lightning_rl[films]'" in " ".join(said.split())


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["runs"], "this needs pandas: pip install 'lightning_rl[figures]'"),
        (["report"], "this needs pandas: pip install 'lightning_rl[figures]'"),
        (["film", "RCP-A-lunarlander"], "this needs PIL: pip install 'lightning_rl[films]'"),
        (
            ["train", "--gamename", "halfcheetah", "--implementation", "REINFORCE"],
            "'HalfCheetah-v5' needs mujoco: pip install 'mujoco'",
        ),
        (
            ["train", "--implementation", "SE", "--gamename", "cartpole", "--executor", "ray"],
            "executor=ray needs ray: pip install 'ray[tune]'",
        ),
        (
            ["eval", "RCP-A-lunarlander", "--calibrate"],
            "a calibration needs scipy: pip install 'scipy'",
        ),
        (
            ["eval", "RCP-A-lunarlander", "--command", "sweep"],
            "the figure of a sweep needs matplotlib: pip install 'lightning_rl[figures]'",
        ),
        (
            ["train", "--gamename", "cartpole", "--recording_epoch_interval", "1"],
            "--recording_epoch_interval needs moviepy: pip install 'lightning_rl[films]'",
        ),
        (["tune", "--gamename", "cartpole"], "this needs tensorboard: pip install 'tensorboard'"),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)
def test_what_is_missing_names_what_installs_it(words, line, tmp_path):
    program = f"""{BEGIN}
import contextlib, io
with contextlib.redirect_stderr(io.StringIO()) as said:
    assert main({words}, program="lightning-rl") == 2
assert {line!r} in said.getvalue(), said.getvalue()
"""
    run_python(program, tmp_path)


def test_what_is_installed_is_not_asked_for():
    require("a test", "numpy", "scipy")


def plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def required(name: str) -> set[str]:
    """What a package requires on this machine, without its extras."""
    wanted = [each for each in metadata.requires(name) or () if "extra ==" not in each]
    wanted = [each for each in wanted if not re.search("sys_platform|python_version", each)]
    return {plain(re.match(r"[\w.-]+", each)[0]) for each in wanted}


def test_the_list_has_all_that_its_packages_require():
    lines = (ROOT / "requirements-light.txt").read_text().splitlines()
    listed = {plain(re.match(r"[\w.-]+", line)[0]) for line in lines if line[0] != "#"}
    pinned = {
        plain(line.partition("==")[0]) for line in (ROOT / "constraints.txt").open() if "==" in line
    }
    assert listed <= pinned
    of_torch = {"torch", *required("torch")}
    for name in sorted(listed):
        assert required(name) <= listed | of_torch, name
