"""Of the present folder, and of that of trainer.py, nothing runs but the modules that were
typed.
"""

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from helpers import ROOT
from helpers.budgets import tiny_flags

RECORDER = """
import atexit, sys
class Recorder:
    def find_spec(name, path=None, target=None):
        if path is None:
            with open({log!r}, "a") as log:
                log.write(name + "\\n")
sys.meta_path.append(Recorder)
@atexit.register
def _():
    for name in list(sys.modules):
        Recorder.find_spec(name.partition(".")[0])
"""
PLANT = "open({marker!r}, 'a').write(__name__ + '\\n')\nraise ImportError('planted')\n"
OPTIONAL = tuple(
    "tensorflow pytz numexpr dill onnx sklearn wandb jax cupy IPython tkinter socks".split()
)
PROGRAMS = ("lightning-rl", "python -m lightning_rl", "trainer.py")


@pytest.fixture
def place(tmp_path):
    """Two folders: ``here``, the present one, with a copy of trainer.py and the package, and one
    with the command.
    """
    here, bin = tmp_path / "here", tmp_path / "bin"
    here.mkdir()
    bin.mkdir()
    shutil.copy(ROOT / "trainer.py", here)
    (here / "lightning_rl").symlink_to(ROOT / "lightning_rl")
    (bin / "lightning-rl").write_text("from lightning_rl.cli import entry_point\nentry_point()\n")
    return tmp_path


def run(place, program, *words, path=ROOT, **env):
    """(exit code, output) of a command in ``here``."""
    start = {"lightning-rl": [place / "bin" / "lightning-rl"], "trainer.py": ["trainer.py"]}.get(
        program, ["-m", "lightning_rl"]
    )
    words = words[1:] if program == "trainer.py" and words[0] == "train" else words
    env = {
        **os.environ,
        "PYTHONPATH": str(path),
        "OMP_NUM_THREADS": "1",
        "TMPDIR": str(place / "bin"),
        **env,
    }
    done = subprocess.run(
        [sys.executable, *map(str, start), *words],
        cwd=place / "here",
        env=env,
        capture_output=True,
        text=True,
    )
    return done.returncode, done.stdout + done.stderr


def startup(*words):
    """The modules that Python itself loads, before the first line of a program."""
    code = [sys.executable, *words]
    return set(subprocess.run(code, capture_output=True, text=True, check=True).stdout.split())


def plant(place, names):
    """What notes that it is run, under each of these names."""
    for name in names:
        if name.isidentifier() and name not in ("lightning_rl", "sitecustomize", "usercustomize"):
            (place / "here" / f"{name}.py").write_text(PLANT.format(marker=str(place / "ran")))


def ran(place):
    return sorted(set((place / "ran").read_text().split())) if (place / "ran").exists() else []


@pytest.mark.parametrize("program", PROGRAMS)
def test_nothing_of_the_present_folder_runs_before_arguments_are_checked(place, program):
    plant(
        place,
        {*OPTIONAL, *sys.stdlib_module_names, "yaml", "rich", "numpy", "torch", "gymnasium"}
        - first_modules(program),
    )
    code, said = run(place, program, "train", "--gamename", "nothing")
    assert (code, ran(place)) == (2, []), said
    assert said.startswith("error: unknown gamename 'nothing'"), said


def first_modules(program):
    """What ``python -m`` itself looks for in the present folder before this package is there."""
    if program != "python -m lightning_rl":
        return set()
    show = "import sys; print(*{name.partition('.')[0] for name in sys.modules})"
    folder = Path(__file__).parent
    return {
        "runpy",
        *subprocess.run(
            [sys.executable, "-c", f"import runpy; exec({show!r})"],
            cwd=folder,
            capture_output=True,
            text=True,
            check=True,
        ).stdout.split(),
    }


def test_a_typed_module_is_found_here_and_one_that_it_imports_must_be_typed_too(place):
    (place / "here" / "mine.py").write_text("import other\n")
    register = "gymnasium.register('My-v0', 'gymnasium.envs.classic_control:CartPoleEnv')"
    (place / "here" / "other.py").write_text(f"import gymnasium\n{register}\n")
    words = ("config", "DDQN", "--gamename", "mine:My-v0")
    code, said = run(place, "lightning-rl", *words)
    assert code == 2
    assert "No module named 'other'" in said
    assert said.endswith(
        "; of the present folder only modules that you name are run: export "
        "LIGHTNING_RL_MODULES=other\n"
    )
    code, said = run(place, "lightning-rl", *words, LIGHTNING_RL_MODULES="other")
    assert code == 0, said


RUN = "exp_dir/cartpole/default/UDRL/seed_25"
TAG = "--tag rollout/return_mean"
RESULTS = ROOT / "results" / "proxies"


def training(implementation, flags, command="train"):
    return [
        command,
        "--implementation",
        implementation,
        *shlex.split(flags),
        *tiny_flags(implementation),
    ]


SEARCH = "--max_epochs 1 --tune trials=1 --tune seeds=1 --tune reports=1"
BUDGET = "--tune 'budget={max_epochs: 2}'"
COMMANDS = [
    training("UDRL", "--gamename cartpole --max_epochs 2"),
    training("UDRL", "--gamename cartpole --max_epochs 3 --resume --recording_epoch_interval 1"),
    training("SE", "--gamename cartpole --max_epochs 1"),
    training("SE", "--gamename cartpole --max_epochs 1 --executor ray --exp_name ray"),
    training("DDQN", "--gamename cartpole --max_epochs 1 --num_seeds 2 --num_processes 2"),
    training("TD3", "--gamename halfcheetah --max_epochs 1"),
    training("UDRL", f"--gamename cartpole {SEARCH} {BUDGET}", "tune"),
    *(
        line.split()
        for line in (
            f"eval {RUN} --episodes 2",
            f"eval {RUN} --command sweep --episodes 2",
            f"film {RUN} -o film.gif",
            f"film {RUN} -o film.mp4",
            "runs .",
            f"report . -o page.html {TAG}",
            f"compare {RUN} {RUN} {TAG}",
            "agents",
            "demo --out demo.html",
            f"figures curves out {RUN} {TAG}",
            f"figures scores out {RUN} {TAG}",
            f"figures synthetic-dataset out {RESULTS}/clones_cartpole.csv",
            f"figures proxy-histograms out {RESULTS}/transitions.csv",
            "proxies list",
            "proxies reward-curves out.csv exp_dir/cartpole/default/SE/seed_25/proxy.pt",
            "config UDRL",
            "claims rcpa-lunarlander",
        )
    ),
]


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_no_command_runs_a_file_of_the_present_folder(place):
    """Under every name that any of them looks for at any time, also in workers, on Ray, and in
    processes that are spawned.
    """
    watch, log = place / "watch", place / "names"
    watch.mkdir()
    (watch / "sitecustomize.py").write_text(RECORDER.format(log=str(log)))
    path = os.pathsep.join([str(watch), str(ROOT)])
    before = [run(place, "lightning-rl", *words, path=path) for words in COMMANDS]
    names = set(log.read_text().split())
    assert {"tensorflow", "pytz", "random"} <= names
    shutil.rmtree(place / "here" / "exp_dir")
    plant(place, names)
    after = [run(place, "lightning-rl", *words) for words in COMMANDS]
    assert ran(place) == []
    codes = zip(COMMANDS, before, after, strict=True)
    assert [
        (words[:2], said) for words, (code, _), (planted, said) in codes if planted != code
    ] == []
    for program in PROGRAMS[1:]:
        shutil.rmtree(place / "here" / "exp_dir")
        for name in first_modules(program):
            (place / "here" / f"{name}.py").unlink(missing_ok=True)
        for words in COMMANDS[:5]:
            run(place, program, *words)
        assert (program, ran(place)) == (program, [])
