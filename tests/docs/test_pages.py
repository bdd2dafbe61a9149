"""Every block of code in the pages is run, in its order, with tiny budgets."""

import ast
import inspect
import re
import shutil

import pytest
from helpers import ROOT
from helpers.pretended_machine import Machine, blocks
from pytorch_lightning import loggers

HOW_TOS = sorted((ROOT / "docs" / "how_to").glob("*.md"))
HEAVY = {"tune", "images", "own_command", "own_agent", "many_seeds", "league"}  # train longer
PAGES = [
    pytest.param(page, marks=[pytest.mark.slow] if page.stem in HEAVY else []) for page in HOW_TOS
]
needs_parallel = pytest.mark.skipif(
    shutil.which("parallel") is None, reason="GNU parallel is not installed"
)


@pytest.fixture
def machine(tmp_path):
    (tmp_path / "here").mkdir()
    return Machine(tmp_path / "here", tmp_path / "bin")


@needs_parallel
@pytest.mark.timeout(1800)
@pytest.mark.parametrize(
    "page",
    [
        pytest.param(ROOT / "README.md", id="README"),
        pytest.param(ROOT / "docs" / "command_line.md", id="command_line", marks=pytest.mark.slow),
    ],
)
def test_a_tour(page, machine):
    machine.follow(page)
    assert list(
        machine.folder.glob("exp_dir/lunarlander/*/RCP-A/seed_25/evaluation_advantage=*.json")
    )
    if page.stem == "command_line":
        assert (machine.folder / "figures/figure.png").stat().st_size > 10_000
        assert (
            len(list(machine.folder.glob("exp_dir/lunarlander/paper/UDRL/seed_*/last.ckpt"))) == 5
        )


@needs_parallel
@pytest.mark.timeout(900)
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_how_to(page, machine):
    assert list(blocks(page))
    machine.follow(page)


@pytest.mark.timeout(900)
def test_learning_from_a_dataset(machine):
    pytest.importorskip("minari")
    machine.follow(ROOT / "docs" / "offline.md")
    assert (machine.folder / "data/cartpole-random-v0/data/metadata.json").is_file()
    assert list(machine.folder.glob("exp_dir/cartpole/*/RCP-R/seed_25/last.ckpt"))


def test_loggers_that_are_not_installed_here_take_what_the_page_gives_them():
    page = (ROOT / "docs" / "how_to" / "loggers.md").read_text()
    calls = [
        ast.parse(call, mode="eval").body for call in re.findall(r"`logger=(\w+\(.*?\))`", page)
    ]
    assert [call.func.id for call in calls] == ["WandbLogger", "MLFlowLogger"]
    for call in calls:
        named = {each.arg: each.value.value for each in call.keywords}
        inspect.signature(getattr(loggers, call.func.id)).bind(
            *(each.value for each in call.args), **named
        )


@pytest.mark.timeout(600)
@pytest.mark.slow
def test_a_rented_machine(machine):
    (script,) = blocks(ROOT / "docs" / "how_to" / "rented_machine.md")
    assert "rented" in machine.shell(script.text)
    assert (machine.folder / "exp_dir/lunarlander/rented/UDRL/seed_25/last.ckpt").is_file()


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    "names", [("head.sh", "node.sh", "search.sh"), ("search.sbatch",)], ids=["by hand", "slurm"]
)
def test_a_ray_cluster_of_two_nodes(machine, names):
    scripts = {block.title: block.text for block in blocks(ROOT / "docs" / "how_to" / "cluster.md")}
    try:
        for name in names:
            machine.shell(scripts[name], timeout=300)
    finally:
        machine.shell("ray stop --force")
    assert list(machine.folder.glob("shared/exp_dir/emptyroom22/default/SE/seed_25/last.ckpt"))
