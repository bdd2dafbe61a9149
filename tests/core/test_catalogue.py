"""The light list of implementations: what the command line knows before it imports a library."""

import ast
import importlib.util
import os
import subprocess
import sys
import time

import pytest
import yaml
from helpers import ROOT

from lightning_rl.core import catalogue
from lightning_rl.core.config import merged_values
from lightning_rl.core.errors import UserError
from lightning_rl.methods.registry import register_method


@pytest.fixture(autouse=True)
def nothing_stays_added(monkeypatch):
    monkeypatch.setattr(catalogue, "_added", {})


@pytest.mark.parametrize(
    ("word", "name"), [("udrl", "UDRL"), ("rcp-a", "RCP-A"), ("VPG", "REINFORCE"), ("aac", "AAC")]
)
def test_names_and_aliases_are_known_in_any_case(word, name):
    assert catalogue.canonical(word) == catalogue.entry(word).name == name


@pytest.mark.parametrize(
    ("word", "name"), [("UDLR", "UDRL"), ("reinfroce", "REINFORCE"), ("dueling", "DuelingDDQN")]
)
def test_a_mistyped_name_is_told_what_was_near(word, name):
    with pytest.raises(
        UserError, match=f"implementation '{word}' is unknown; did you mean '{name}'"
    ):
        catalogue.entry(word)


def test_every_implementation_says_what_it_is():
    assert catalogue.aliases() == {
        "vpg": "REINFORCE",
        "bpg": "REINFORCE-baseline",
        "epg": "REINFORCE-entropy",
        "cpg": "REINFORCE-combined",
        "aac": "AAC",
    }
    for entry in catalogue.entries().values():
        assert entry.about
        assert importlib.util.find_spec(f"lightning_rl.methods.{entry.module}") is not None


OUTSIDE = """
Own:
  about: a variant of ours
  aliases: [own-short]
  extends: AAC
  default: {gamma: 0.5, own_key: 3}
"""


def test_an_implementation_from_outside_brings_its_file_and_extends_ours(tmp_path):
    path = tmp_path / "own.yaml"
    path.write_text(OUTSIDE)
    assert catalogue.add(path) == ["Own"]
    *below, (where, values) = merged_values("OWN-SHORT", "acrobot")
    assert below == merged_values("AAC", "acrobot")
    assert (where, values) == ("own.yaml, block 'Own.default'", {"gamma": 0.5, "own_key": 3})
    assert "Own" in catalogue.entries()


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ({"udrl": {"about": "x"}}, "implementation 'udrl' cannot be added, the name is taken"),
        ({"New": {"about": "x", "aliases": ["vpg"]}}, "implementation 'vpg' cannot be added"),
        (
            {"legend": {}, "shared": {}, "New": {}, "B": {}},
            "no block is of an implementation, .* lack .* about: 'New', 'B'; ",
        ),
        ({}, "no block is of an implementation, it has none; give one 'about: "),
        ({"New": 3}, "expected blocks of implementations by name"),
        (
            {"New": {"about": "x", "extends": "AACC"}},
            "implementation 'AACC' is unknown; did you mean 'AAC'",
        ),
        (
            {"New": {"about": "x", "extends": "A"}, "A": {"extends": "New"}},
            "block 'New': it extends itself, by New and A",
        ),
        ({"New": {"about": "x", "aliases": [3]}}, "aliases must be a name or a list of names"),
    ],
)
def test_what_cannot_be_added_is_refused(source, words):
    with pytest.raises(UserError, match=words):
        catalogue.add(source)
    assert "New" not in catalogue.entries()


def test_a_decorator_that_registers_nothing_is_refused(tmp_path):
    path = tmp_path / "own.yaml"
    path.write_text(OUTSIDE.replace("  about: a variant of ours\n", ""))
    with pytest.raises(
        UserError,
        match=r"^'.*own\.yaml': no block is of an implementation, these lack the line about: "
        r"'Own'; ",
    ):
        register_method(configs=path)
    with pytest.raises(
        UserError, match=r"register_method\(\) names no implementation; give names, or configs="
    ):
        register_method()


FIRST = """
from lightning_rl.methods.base import Method
from lightning_rl.methods.registry import register_method
@register_method(configs={"first": {"about": "one", "extends": "AAC"}})
class First(Method):
    value = 3
"""
SECOND = """
from first_module import First
from lightning_rl.methods.registry import register_method
@register_method(configs={"second": {"about": "another", "extends": "first", "default": {"own_key": First.value}}})
class Second(First):
    pass
"""  # noqa: E501


@pytest.mark.parametrize("start", ["pass", "import first_module"])
@pytest.mark.slow
def test_a_module_of_the_user_may_import_from_another(tmp_path, start):
    """Whichever way they are reached: by the list alone, or by a program that imports one of
    them itself.
    """
    (tmp_path / "first_module.py").write_text(FIRST)
    (tmp_path / "second_module.py").write_text(SECOND)
    program = f"{start}\nfrom lightning_rl.core.catalogue import entries\nprint([*entries()][-2:])"
    env = {
        **os.environ,
        "PYTHONPATH": f"{ROOT}:{tmp_path}",
        "LIGHTNING_RL_MODULES": "first_module, second_module",
    }
    done = subprocess.run([sys.executable, "-c", program], env=env, capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("['first', 'second']\n", "")


def test_a_module_that_fails_is_told_every_time(tmp_path, monkeypatch):
    (tmp_path / "failing_module.py").write_text(
        "from lightning_rl.core.catalogue import entries\nentries()\n1 / 0\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("LIGHTNING_RL_MODULES", "failing_module")
    for _ in range(2):
        with pytest.raises(
            UserError,
            match="LIGHTNING_RL_MODULES=failing_module: importing failing_module: "
            "ZeroDivisionError",
        ):
            catalogue.entries()


def test_reading_all_files_takes_hardly_longer_than_libyaml_takes_to_parse_them():
    def seconds(work):
        start = time.process_time()
        work()
        return time.process_time() - start

    def parse():
        for family in catalogue.FAMILIES:
            yaml.load((catalogue.CONFIGS / f"{family}.yaml").read_text(), yaml.CSafeLoader)

    # in turns, on any processor
    both = [(seconds(catalogue._shipped.__wrapped__), seconds(parse)) for _ in range(5)]
    ours, theirs = (min(each) for each in zip(*both, strict=True))
    assert ours < 2 * theirs  # some 0.02 s; the parser in Python takes eight times as long


def test_names_and_values_are_read_without_the_libraries_that_run_them():
    waiting, seen, libraries = {"lightning_rl.core.config"}, set(), set()
    while waiting:
        seen.add(module := waiting.pop())
        tree = ast.parse(ROOT.joinpath(*module.split(".")).with_suffix(".py").read_text())
        names = {node.module for node in tree.body if isinstance(node, ast.ImportFrom)}
        names |= {
            alias.name for node in tree.body if isinstance(node, ast.Import) for alias in node.names
        }
        libraries |= {name.split(".")[0] for name in names}
        waiting |= {name for name in names if name.startswith("lightning_rl.core.")} - seen
    assert "lightning_rl.core.catalogue" in seen
    assert not libraries & {"torch", "pytorch_lightning", "gymnasium", "pydantic"}
