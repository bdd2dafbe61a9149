"""Training, loading and acting where only requirements-light.txt is installed."""

from importlib import metadata
from pathlib import Path

import pytest
from helpers import ROOT
from helpers.runs import run_python
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from lightning_rl.core.extras import INSTALLED_BY, require

ABSENT = (*INSTALLED_BY.keys() - {"jinja2"}, "numba", "threadpoolctl")  # torch brings Jinja2
BEGIN = f"""
import sys
sys.modules.update(dict.fromkeys({ABSENT}))
from lightning_rl.run.imports import without
absent = without(*{ABSENT})
absent.__enter__()
import lightning_rl as lrl
from lightning_rl.cli import main
"""


@pytest.mark.slow
@pytest.mark.parametrize(("method", "gamename"), [("DDQN", "cartpole"), ("RCP-A", "lunarlander")])
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


MISSING = {
    "runs exp_dir": "this needs pandas: pip install 'lightning_rl[figures]'",
    "report exp_dir": "this needs pandas: pip install 'lightning_rl[figures]'",
    "film RCP-A-lunarlander": "this needs PIL: pip install 'lightning_rl[films]'",
    "agents": "a confidence interval needs scipy: pip install 'scipy'",
    "tune --gamename cartpole": "this needs tensorboard: pip install 'tensorboard'",
    "train --gamename halfcheetah --implementation REINFORCE": "'HalfCheetah-v5' needs mujoco: pip "
    "install 'mujoco'",
    "train --gamename cartpole --implementation SE --executor ray": "executor=ray needs ray: pip "
    "install 'ray[tune]'",
    "train --gamename cartpole --recording_epoch_interval 1": "--recording_epoch_interval needs "
    "moviepy: pip install 'lightning_rl[films]'",
    "eval RCP-A-lunarlander --command sweep": "the figure of a sweep needs matplotlib: pip install "
    "'lightning_rl[figures]'",
}
"""Commands that a light installation cannot do, and what they say."""


def test_what_is_missing_names_what_installs_it(tmp_path):
    program = f"""{BEGIN}
import contextlib, io
for words, line in {MISSING}.items():
    with contextlib.redirect_stderr(io.StringIO()) as said:
        assert main(words.split(), program="lightning-rl") == 2
    assert said.getvalue().endswith(f"error: {{line}}\\n"), said.getvalue()
"""
    run_python(program, tmp_path)


def test_what_is_installed_is_not_asked_for():
    require("a test", "numpy", "scipy")


def required(name: str, extra: str = "") -> set[str]:
    """What a package requires on this machine, by itself or with an extra."""
    wanted = [Requirement(each) for each in metadata.requires(name) or ()]
    return {
        canonicalize_name(each.name)
        for each in wanted
        if each.marker is None or each.marker.evaluate({"extra": extra})
    }


def names(path: Path) -> set[str]:
    """The packages in a file of requirements."""
    lines = path.read_text().splitlines()
    return {canonicalize_name(Requirement(line).name) for line in lines if line[0] != "#"}


def test_the_list_has_all_that_its_packages_require():
    listed = names(ROOT / "requirements-light.txt")
    assert listed <= names(ROOT / "constraints.txt")
    there = listed | {"torch"} | required("torch")
    assert required("gymnasium", extra="box2d") <= there
    for name in sorted(listed):
        assert required(name) <= there, name
