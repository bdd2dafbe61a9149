"""The pages about the methods: their tables are what their commands print, their links lead somewhere."""

import ast
import re

import pytest
from helpers import ROOT

from lightning_rl.cli import main
from lightning_rl.core.catalogue import entry
from lightning_rl.lab.reports.config_table import config_rows
from lightning_rl.lab.reports.docs import refreshed
from lightning_rl.methods.registry import IMPLEMENTATIONS
from lightning_rl.tools import use

PAGES = [*sorted((ROOT / "docs").rglob("*.md")), ROOT / "README.md", ROOT / "CONTRIBUTING.md"]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_tables_are_those_of_results(page, monkeypatch):
    monkeypatch.chdir(ROOT)
    text = page.read_text()
    assert refreshed(text, use) == text, f"run: python -m lightning_rl docs {page.relative_to(ROOT)}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\((?!http)([^)#]+)\)", page.read_text()):
        assert (page.parent / target).exists(), target


@pytest.mark.parametrize("page", sorted((ROOT / "docs" / "reading").glob("*.md")), ids=lambda page: page.name)
def test_readings_name_functions_that_are_there(page):
    links = re.findall(r"^\[`([\w.]+)`\]\(([^)#]+)#([\w.]+)\)$", page.read_text(), re.MULTILINE)
    assert len(links) > 5
    for text, target, symbol in links:
        assert text == symbol
        body = ast.parse((page.parent / target).read_text()).body
        for name in symbol.split("."):
            (body,) = (node.body for node in body if getattr(node, "name", None) == name)


@pytest.mark.parametrize("name", IMPLEMENTATIONS)
def test_config_tables_have_every_key(name):
    import dataclasses

    keys = [row.key for row in config_rows(entry(name))]
    assert sorted(keys) == sorted(field.name for field in dataclasses.fields(IMPLEMENTATIONS[name].Config))


def test_a_row_has_the_value_that_stands_last_and_the_words_that_stand_first():
    rows = {row.key: row for row in config_rows(entry("DDQN"))}
    assert (rows["gamma"].value, rows["gamma"].explanation, rows["gamma"].source) == ("0.988", "discount", "[S, B]")
    assert rows["tau"].heading == "learning"
    assert list(dict.fromkeys(row.heading for row in rows.values())) == [
        "budget", "exploration", "learning", "network", "evaluation and checkpoints",
    ]  # fmt: skip


def test_refreshing_by_hand(tmp_path, capsys):
    page = tmp_path / "page.md"
    page.write_text("before\n\n<!-- made by: lightning-rl config QL -->\n| stale row |\n\nafter\n")
    assert main(["docs", str(page)]) == 0
    text = page.read_text()
    assert text.startswith("before\n\n<!-- made by: lightning-rl config QL -->\n| key | default | meaning and source |\n")
    assert text.endswith("|\n\nafter\n")
    assert "stale row" not in text
    assert main(["docs", str(page)]) == 0
    assert "up to date" in capsys.readouterr().out
    assert main(["docs", str(tmp_path / "no.md")]) == 2
