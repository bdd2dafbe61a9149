"""Imports run one way, and the big libraries stay where they belong."""

import ast
import re

import pytest
from helpers import ROOT

from experiments import commands
from lightning_rl.cli.tools import IN_REPOSITORY

ORDER = [
    {"core"},
    {"gym"},
    {"functional"},
    {"nets"},
    {"envs"},
    {"rollouts"},
    {"agents"},
    {"evolution"},
    {"methods"},
    {"run"},
    {"lab"},
    {"cli"},
]
LEVEL = {name: level for level, names in enumerate(ORDER) for name in names}
ONLY_IN = {
    "pytorch_lightning": {"rollouts", "evolution", "methods", "run"},
    "lightning_fabric": {"run", "methods"},
    "gymnasium": {"envs", "gym"},
    "ray": {"evolution", "lab"},
    "matplotlib": {"lab"},
    "argparse": {"core", "cli", "lab"},
    "pandas": {"lab"},
    "tensorboard": {"lab", "run"},
    "vizdoom": {"envs"},
}
FILES = sorted((ROOT / "lightning_rl").rglob("*.py"))


EXPERIMENTS = sorted((ROOT / "experiments").rglob("*.py"))


def imports(path):
    tree = ast.parse(path.read_text())
    for_types = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        for inner in ast.walk(node)
    }
    for node in ast.walk(tree):
        if id(node) in for_types:
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            yield node.module


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(ROOT)))
def test_imports_run_one_way(path):
    place = path.relative_to(ROOT / "lightning_rl").with_suffix("").parts[0]
    for module in imports(path):
        head, *rest = module.split(".")
        if head == "lightning_rl" and rest and place in LEVEL:
            assert rest[0] == place or LEVEL[rest[0]] <= LEVEL[place], (
                f"{place} must not import {rest[0]}"
            )
        assert place in ONLY_IN.get(head, {place}), f"{head} is imported in {place}"


@pytest.mark.parametrize("path", EXPERIMENTS, ids=lambda p: str(p.relative_to(ROOT)))
def test_experiments_import_the_package_and_nothing_else_of_the_repository(path):
    heads = {module.split(".")[0] for module in imports(path)}
    assert not heads & {"tests", "tools", "benchmarks"}


def test_the_package_imports_nothing_from_experiments():
    for path in FILES:
        assert not {name for name in imports(path) if name.split(".")[0] == "experiments"}, path


def test_the_package_knows_the_names_of_what_experiments_declare():
    for kind, names in IN_REPOSITORY.items():
        assert tuple(getattr(commands, kind)) == names


def test_the_page_about_the_code_draws_these_layers():
    drawn = re.findall(
        r"^│ (\w+(?:, \w+)*)  ", (ROOT / "docs" / "architecture.md").read_text(), re.MULTILINE
    )
    assert [name for row in drawn for name in row.split(", ")] == [
        name for names in reversed(ORDER) for name in names
    ]


def test_every_load_is_safe():
    for path in [*FILES, *EXPERIMENTS]:
        text = path.read_text()
        assert "weights_only=False" not in text
        assert (
            text.count("torch.load(") == text.count("weights_only=True)")
            or "torch.load(" not in text
        )
        assert "pickle.load" not in text


def test_the_workers_of_a_population_start_without_lightning():
    """It doubles the seconds that each new process on a cluster needs before it evaluates
    anything.
    """
    waiting, seen = {"lightning_rl.methods.inner_loop", "lightning_rl.evolution.executors"}, set()
    while waiting:
        seen.add(module := waiting.pop())
        path = ROOT.joinpath(*module.split("."))
        tree = ast.parse(
            (path / "__init__.py" if path.is_dir() else path.with_suffix(".py")).read_text()
        )
        found = {node.module for node in tree.body if isinstance(node, ast.ImportFrom)}
        assert not {name for name in found if name.startswith("pytorch_lightning")}, module
        ours = {name for name in found if name.split(".")[0] == "lightning_rl"}
        waiting |= (ours | {"lightning_rl", module.rpartition(".")[0]} - {""}) - seen
    assert "lightning_rl.core.schema" in seen
