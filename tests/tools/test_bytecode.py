"""``make install`` ends with the bytecode of what the commands import."""

import os
import subprocess
import sys

import bytecode
import gymnasium
import pytest
from helpers import ROOT
from helpers.budgets import PLAYABLE

from lightning_rl.core.gamenames import BUILT_IN, GAMES


def test_it_is_made_whatever_the_environment_says(tmp_path):
    (tmp_path / "own.py").touch()
    env = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "PYTHONPATH": str(ROOT / "tools")}
    program = "import bytecode; bytecode.import_all(['missing', 'own'])"
    subprocess.run([sys.executable, "-c", program], cwd=tmp_path, env=env, check=True)
    assert len(list((tmp_path / "__pycache__").glob("own.*.pyc"))) == 1


def test_all_that_the_package_imports_is_among_it():
    modules, others = bytecode.modules(), bytecode.others()
    assert {"lightning_rl", "lightning_rl.run.train", "lightning_rl.__main__"} <= set(modules)
    assert {"torch", "numba", "ray.tune.schedulers", "rich.progress", "scipy"} <= set(others)


@pytest.mark.parametrize("name", [name for name in PLAYABLE if name in BUILT_IN])
def test_the_environments_are_among_it(name):
    made_by = str(gymnasium.spec(GAMES[name].env).entry_point).partition(":")[0]
    known = {*bytecode.modules(), *bytecode.BY_NAME}
    assert any(f"{made_by}.".startswith(f"{module}.") for module in known)


def test_it_is_the_last_step_of_the_installation():
    environment = {key: value for key, value in os.environ.items() if not key.startswith("MAKE")}
    recipe = subprocess.run(
        ["make", "--dry-run", "--always-make", "install"],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    *_, packages, step, _ = recipe.stdout.splitlines()
    assert "pip install" in packages
    assert step == ".venv/bin/python tools/bytecode.py"
