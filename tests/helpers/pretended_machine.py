"""A folder in which the commands of the documents run as they are typed, with tiny budgets.

The commands below come before the real ones on the PATH: ``python`` adds a budget to ``trainer.py``
and starts without the seconds of its imports, ``make`` uses the environment that is there, and what
belongs to other machines (``sbatch``, ``ssh``, ``rsync``) stays here.
"""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar, NamedTuple

import warm

from helpers import ROOT
from helpers.budgets import tiny_flags, tiny_settings
from lightning_rl.core.catalogue import aliases
from lightning_rl.methods.registry import IMPLEMENTATIONS
from lightning_rl.methods.upside_down.config import OF_PLAYING

SEARCH = "search={learning_rate: {log: [1.0e-4, 1.0e-2]}}"
TUNE = [
    f"--tune={setting}"
    for setting in ("seeds=1", "reports=1", "budget={max_env_steps: 200}", SEARCH)
]

PYTHON = """#!{python} -IS
import json, os, sys

words = sys.argv[1:]
tiny = json.load(open("{folder}/tiny.json"))
if words[0].endswith("trainer.py"):
    words[0] = "{root}/trainer.py"
if words[0].endswith("trainer.py") or words[:3] == ["-m", "lightning_rl", "train"]:
    if "--eval_agent" in words:
        budget = ["--eval_episodes", "2"]
    else:
        name = words[words.index("--implementation") + 1] if "--implementation" in words else "UDRL"
        given = {{word.split("=")[0] for word in words if "=" in word}}
        if "command" in given:  # another than UDRL's own, which nothing of the best episodes belongs to
            given.add("last_few")
        if "--dataset" in words:  # from which nothing is played
            given.update(tiny["playing"])
        budget = [flag for flag in tiny["flags"].get(name, []) if flag.removeprefix("--set=").split("=")[0] not in given]
        if "--reload" in words or "--recording_epoch_interval" in words:
            budget.append("--set=checkpoint_interval=1")
            budget.remove("--set=checkpoint_interval=2")
        epochs = 2
        if "--max_epochs" in words:
            at = words.index("--max_epochs")
            epochs = max(2, int(words[at + 1]) // 10)
            del words[at : at + 2]
        budget += ["--max_epochs", str(epochs)]
        if "--use_tune" in words:
            budget += tiny["tune"]
            words = ["trials=2" if word.startswith("trials=") else word for word in words]
    words += budget
elif words[:3] == ["-m", "lightning_rl", "baseline"]:
    words += ["--set=" + each for each in ("max_epochs=2", "steps_per_epoch=40", "eval_interval=2", "eval_episodes=2")]
elif words[:3] in (["-m", "lightning_rl", "eval"], ["-m", "lightning_rl", "play"]):
    words += ["--episodes", "2"]
os.execv("{shell}", ["{shell}", *words])
"""  # noqa: E501
SHELL_COMMANDS = {
    "lightning-rl": 'exec python -m lightning_rl "$@"',
    "tensorboard": 'exec python -m tensorboard.main --inspect "$@"',
    "make": """case "$1" in
    train) shift; flags="--logdir $PWD/exp_dir --max_epochs 2 ${{*#ARGS=}}"
        exec {make} -C {root} -o .venv/.installed BIN={folder} train ARGS="$flags" ;;
    *) exec {make} -C {root} -n "$@" ;;  # running the tests inside the tests would not end
esac""",
    "sbatch": """tasks=$(sed -n 's/^#SBATCH --array=//p' "$1" | tr - ' ')
export SLURM_JOB_ID=77 SLURM_JOB_NAME=train SLURM_NTASKS=4 SLURM_PROCID=0 SLURM_LOCALID=0 SLURM_NODEID=0 SLURM_NNODES=1
for task in $(seq ${{tasks:-0}}); do SLURM_ARRAY_TASK_ID=$task bash "$1"; done""",  # noqa: E501
    "srun": """while [[ $1 == -* ]]; do shift; done
export SLURM_NTASKS_PER_NODE=4 SLURM_PROCID=3 SLURM_LOCALID=3 SLURM_STEP_ID=1
exec "$@\"""",
    "scontrol": "printf '127.0.0.1\nanother\nthird\n'",
    "ssh": 'exec bash -c "$2"',
    "rsync": """while [[ $1 == -* ]]; do [[ $1 == --exclude ]] && shift; shift; done
mkdir -p "${{2#*:}}" && cp -rn "${{1#*:}}." "${{2#*:}}" 2>/dev/null || true""",
}


class Block(NamedTuple):
    """A fenced block of a page; with a title it is a file."""

    language: str
    title: str
    text: str


def blocks(page: Path) -> Iterator[Block]:
    """The blocks of code of a page, in order."""
    for fence in re.finditer(
        r'^```(\w+)(?: title="([^"]+)")?\n(.*?)^```$', page.read_text(), re.M | re.S
    ):
        yield Block(fence[1], fence[2] or "", fence[3])


class Machine:
    """Runs blocks of pages in ``folder``."""

    def __init__(self, folder: Path, commands: Path):
        self.folder = folder
        commands.mkdir()
        names = [*IMPLEMENTATIONS, *aliases()]
        flags = {name: tiny_flags(name) for name in names}
        tiny = {"flags": flags, "tune": TUNE, "playing": OF_PLAYING}
        (commands / "tiny.json").write_text(json.dumps(tiny))
        make = subprocess.run(["which", "make"], capture_output=True, text=True).stdout.strip()
        places = {
            "python": sys.executable,
            "folder": commands,
            "root": ROOT,
            "shell": warm.shell(),
            "make": make,
        }
        scripts = {
            name: f"#!/usr/bin/env bash\n{text}\n" for name, text in SHELL_COMMANDS.items()
        } | {"python": PYTHON}
        for name, text in scripts.items():
            (commands / name).write_text(text.format(**places))
            (commands / name).chmod(0o755)
        (folder / ".venv" / "bin").mkdir(parents=True)
        (folder / ".venv" / "bin" / "activate").touch()
        for name in ("trainer.py", "bash_train.sh"):
            (folder / name).symlink_to(ROOT / name)
        # ray is beside the interpreter
        path = os.pathsep.join(
            [str(commands), os.environ["PATH"], str(Path(sys.executable).parent)]
        )
        self.env = {
            **os.environ,
            "PATH": path,
            "PYTHON": str(commands / "python"),
            "HOST": "box",
            "HEAD": "127.0.0.1",
        }

    def shell(self, script: str, timeout: float = 300) -> str:
        """What a script prints; it must end well, without a traceback."""
        command = ["bash", "-euo", "pipefail", "-c", script]
        result = subprocess.run(
            command, cwd=self.folder, capture_output=True, text=True, env=self.env, timeout=timeout
        )
        assert result.returncode == 0, f"{script}\n{result.stdout}\n{result.stderr}"
        assert "Traceback" not in result.stderr, result.stderr
        return result.stdout

    def follow(self, page: Path) -> None:
        """Does what a page says: writes its files and runs its commands in order, then its
        Python as one program.
        """
        program = []
        for block in blocks(page):
            if block.title:
                (self.folder / block.title).write_text(block.text)
            elif block.language == "bash":
                for line in block.text.replace("\\\n", "").splitlines():
                    self.shell(line)
            elif block.language == "python":
                program.append(smaller(block.text))
        if program:
            (self.folder / "program.py").write_text("\n".join(program))
            self.shell("python program.py")


class _Smaller(ast.NodeTransformer):
    """A thousandth of the environment steps, a tenth of epochs and episodes; tiny settings where
    a method is trained or made.
    """

    SHARES: ClassVar = {"max_env_steps": 1000, "max_epochs": 10, "episodes": 10}

    def visit_Call(self, call: ast.Call) -> ast.Call:
        self.generic_visit(call)
        given = {keyword.arg: keyword.value for keyword in call.keywords}
        match call.args:
            case [
                ast.Constant(key),
                ast.Constant() as value,
            ]:  # as in StopAtBudget("max_env_steps", 20_000)
                given[key] = value
        for key, share in self.SHARES.items():
            if isinstance(value := given.get(key), ast.Constant):
                value.value = max(1, value.value // share)
        settings = tiny_settings(name) if (name := _trained(call)) else {}
        if "dataset" in given or "offline" in given:
            settings = {key: settings[key] for key in settings.keys() - set(OF_PLAYING)}
        missing = (
            settings.keys() - given - {"hidden"}
        )  # which a network of the page's own may refuse
        call.keywords += [ast.keyword(key, ast.Constant(settings[key])) for key in sorted(missing)]
        return call


def _trained(call: ast.Call) -> str | None:
    """The implementation of ``lrl.train("NAME", ..)`` or ``lrl.CLASS(..)``."""
    words = ast.unparse(call.func).split(".")
    if words == ["lrl", "train"] and isinstance(call.args[0], ast.Constant):
        return call.args[0].value if call.args[0].value in IMPLEMENTATIONS else None
    return next(
        (name for name, each in IMPLEMENTATIONS.items() if words == ["lrl", each.__name__]), None
    )


def smaller(code: str) -> str:
    """Python code with tiny budgets."""
    return ast.unparse(_Smaller().visit(ast.parse(code)))
