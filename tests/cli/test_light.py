"""What is imported when: help and errors load nothing heavy, a run loads what it needs."""

import os
import subprocess
import sys

import pytest
from helpers import ROOT
from helpers.budgets import tiny_flags
from helpers.runs import run_python

import lightning_rl
from lightning_rl.cli.flags import COMMANDS
from lightning_rl.cli.tools import tools
from lightning_rl.core.arguments import Group

HEAVY = tuple(
    "torch pytorch_lightning ray pandas matplotlib gymnasium scipy moviepy mujoco pydantic".split()
)
LIGHT = [
    ["--help"],
    ["--version"],
    ["trian"],
    ["figures", "curvs"],
    ["proxies", "transfr"],
    ["figures", "marks", "out", "a.csv"],
    ["train", "--seed", "x"],
    ["train", "--implementation", "UDLR"],
    ["train", "--gamename", "lunarlandr"],
    ["train", "--preset", "papr"],
    ["train", "--set", "learning_rat=1"],
    ["train", "--config", "nowhere.yaml"],
    ["train", "--reload", "nowhere.ckpt"],
    ["train", "--dataset", "nowhere"],
    ["train", "--implementation", "DDQN", "--dataset", "D4RL/some-v0"],
    ["eval", "nowhere.ckpt"],
    ["runs", "a", "--sort", "speed"],
    ["film", "nowhere.ckpt"],
    ["demo", "nowhere.ckpt"],
    ["train", "--gamename", "acrobot"],  # of which there is a run
]
PLAYS = [
    ["train", "--gamename", "cartpole"],
    ["tune", "--implementation", "DDQN", "--gamename", "cartpole"],
    ["eval", "RCP-A-lunarlander"],
    ["film", "RCP-A-lunarlander"],
    ["demo"],
    ["proxies", "transfer", "out.csv"],
]


def test_help_and_usage_errors_are_light(tmp_path):
    """Of every command: a quarter of a second of processor time for the first, then next to
    nothing.
    """
    groups = {name: tool.tools for name, tool in tools().items() if isinstance(tool, Group)}
    commands = [[name] for name in (*COMMANDS, *tools())] + [
        [group, name] for group, tools in groups.items() for name in tools
    ]
    asked = [*LIGHT, *([*words, *rest] for words in commands for rest in (["--help"], ["--hlep"]))]
    program = f"""
import contextlib, io, sys, time
from lightning_rl.cli import main
for words in {asked}:
    before = time.process_time()
    with contextlib.redirect_stdout(io.StringIO()):
        try:
            code = main(words, program="lightning-rl")
        except SystemExit as leaving:
            code = leaving.code
    assert code == (0 if {{"--help", "--version"}} & set(words) else 2), words
    assert not (heavy := set(sys.modules) & set({HEAVY})), (words, heavy)
    assert time.process_time() - before < 0.25, words
"""
    assert len(asked) > 60
    run = tmp_path / "exp_dir" / "acrobot" / "default" / "UDRL" / "seed_25"
    run.mkdir(parents=True)
    (run / "config.yaml").touch()
    run_python(program, tmp_path, tries=3)


def test_an_unknown_environment_needs_gymnasium_alone(tmp_path):
    program = f"""
import sys
from lightning_rl.cli import main
assert main(["train", "--gamename", "CartPole-v9"]) == 2
assert set(sys.modules) & set({HEAVY}) == {{"gymnasium"}}
"""
    run_python(program, tmp_path)


def test_what_plays_says_first_what_it_loads(tmp_path):
    """Half a second of processor time at the most, then a line, then the packages that take
    seconds, without what no command uses of them.
    """
    program = f"""
import contextlib, io, sys, time
from lightning_rl.cli import main
from lightning_rl.run import imports

class Loads(BaseException):
    pass

def load():
    assert error.getvalue() == "loading PyTorch and Lightning ..\\n", error.getvalue()
    assert not (heavy := set(sys.modules) & set({HEAVY})), heavy
    raise Loads

imports._import_what_is_used = load
for words in {PLAYS}:
    before = time.process_time()
    with contextlib.redirect_stderr(io.StringIO()) as error, contextlib.suppress(Loads):
        main(words, program="lightning-rl")
        raise AssertionError(f"nothing is loaded for {{words}}")
    assert time.process_time() - before < 0.5, words
"""
    run_python(program, tmp_path, tries=3)


def test_the_package_is_light_until_it_is_used(tmp_path):
    program = f"""
import resource, sys
import lightning_rl
assert not (heavy := set(sys.modules) & {{"numpy", *{HEAVY}}}), heavy
assert set(lightning_rl.__all__) <= set(dir(lightning_rl))
used = resource.getrusage(resource.RUSAGE_SELF)
assert used.ru_utime + used.ru_stime < 0.2, used
"""
    run_python(program, tmp_path, tries=3)


def test_a_run_starts_at_once_and_loads_what_it_needs(tmp_path):
    """Its first line comes before the imports, its first episodes soon after, what compiles the
    updates then. What was left out can be used.
    """
    words = [
        "--gamename",
        "cartpole",
        "--logdir",
        str(tmp_path),
        "--num_workers",
        "0",
        "--max_epochs",
        "1",
        *tiny_flags(),
    ]
    program = f"""
import contextlib, gc, io, sys, time
from lightning_rl import cli
from lightning_rl.cli import commands
out, imported = io.StringIO(), []

def load():
    assert out.getvalue().startswith("UDRL on cartpole, seed 25"), out.getvalue()
    assert not {{"torch", "numpy"}} & set(sys.modules)
    original()
    imported.append(time.process_time())
    from lightning_rl.rollouts.player import Collector
    finish = Collector.finish

    def finish_first(self):
        episodes = finish(self)
        if imported[1:] == []:
            assert time.process_time() < 1.6 * imported[0], (time.process_time(), imported)
            assert not {{"numba", "scipy"}} & set(sys.modules)
            imported.append("episodes")
        return episodes

    Collector.finish = finish_first

class Watch(io.StringIO):
    def write(self, text):
        if "1 of 1 epoch" in text:
            imported.append("progress")
        return super().write(text)

original, commands.import_lightning = commands.import_lightning, load
with contextlib.redirect_stdout(out), contextlib.redirect_stderr(Watch()):
    assert cli.main({words}) == 0
assert imported[1:] == ["episodes", "progress"], imported
assert gc.isenabled() and gc.get_freeze_count() > 100_000
names = set(sys.modules)
assert not (heavy := names & {{"ray", "mujoco", "pandas", "moviepy", "cmaes", "Box2D", "pygame", "optuna"}}), heavy
assert not (heavy := names & {{"scipy.signal", "matplotlib", "sympy", "torch._dynamo"}}), heavy
lab = {{name for name in names if name.startswith("lightning_rl.lab.")}}
rooms = ("figures", "protocols", "reports")
lab -= {{f"lightning_rl.lab.{{room}}{{module}}" for room in rooms for module in ("", ".registry")}}
assert not lab, lab
import lightning_rl.lab.evaluate  # neither plots nor tables are loaded for it
assert not (heavy := set(sys.modules) & {{"pandas", "ray", "jinja2.environment", "lightning_rl.lab.figures.style"}}), heavy
import matplotlib.pyplot, scipy.signal, torch
weight = torch.nn.Parameter(torch.ones(1))
weight.grad = torch.ones(1)
torch.optim.SGD([weight], lr=1.0).step()
assert not weight and torch._dynamo.eval_frame
"""  # noqa: E501
    run_python(program, tmp_path)


def test_every_public_name_is_there():
    assert all(getattr(lightning_rl, name) is not None for name in lightning_rl.__all__)
    assert set(lightning_rl.__all__) == {"__version__", *lightning_rl._MODULES}
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = lightning_rl.nothing


def test_a_reader_may_leave_before_the_end_of_the_output(tmp_path):
    program = f"{sys.executable} -m lightning_rl config RCP-A | head -1"
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    words = ["bash", "-o", "pipefail", "-c", program]
    done = subprocess.run(words, cwd=tmp_path, env=env, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
