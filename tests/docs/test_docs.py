"""The pages about the methods: their tables are what their commands print, their links lead
somewhere.
"""

import ast
import re

import pytest
import yaml
from helpers import ROOT

from experiments.docs import (
    BLOCK,
    CAPTION,
    MARKED,
    refreshed,
    with_captions,
    with_numbers,
)
from lightning_rl.cli import main
from lightning_rl.cli.tools import use
from lightning_rl.core.catalogue import entry
from lightning_rl.core.errors import UserError
from lightning_rl.lab.reports.config_table import config_rows
from lightning_rl.methods.registry import IMPLEMENTATIONS
from lightning_rl.run.options import RunOptions
from lightning_rl.run.run_config import run_config

NOTES = sorted((ROOT / "results").glob("*/README.md"))
READINGS = sorted((ROOT / "docs" / "reading").glob("*.md"))
PAGES = [
    *sorted((ROOT / "docs").rglob("*.md")),
    ROOT / "results" / "speed.md",
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "CODE_OF_CONDUCT.md",
    ROOT / "SECURITY.md",
]


@pytest.mark.parametrize("page", [*PAGES, *NOTES], ids=lambda page: str(page.relative_to(ROOT)))
def test_tables_are_those_of_results(page, monkeypatch):
    monkeypatch.chdir(ROOT)
    text = page.read_text()
    assert refreshed(text, use) == text, (
        f"run: python -m lightning_rl docs {page.relative_to(ROOT)}"
    )


@pytest.mark.parametrize("page", [*PAGES, *NOTES], ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\((?!http)([^)#]+)\)", page.read_text()):
        assert (page.parent / target).exists(), target


@pytest.mark.parametrize("name", [page.stem for page in READINGS])
def test_the_page_of_a_family_has_two_screens(name):
    """Question, picture, algorithm and result; the rest is on the pages in its folder."""
    text = (ROOT / "docs" / f"{name}.md").read_text()
    prose = re.sub("<!--.*?-->", "", CAPTION.sub("", BLOCK.sub("", text)))
    assert len(prose.split()) <= 600
    pages = [page.name for page in (ROOT / "docs" / name).glob("*.md")]
    assert {"method.md", "results.md", "differences.md", "keys.md"} <= set(pages)
    assert all(f"({name}/{page})" in text for page in pages)


def test_captions_are_those_of_pictures(monkeypatch):
    monkeypatch.chdir(ROOT)
    texts = [page.read_text() for page in (*PAGES, *NOTES)]
    assert sum(len(CAPTION.findall(text)) for text in texts) > 40
    assert [with_captions(text) for text in texts] == texts


def test_every_picture_is_shown_on_a_page():
    shown = set()
    for page in (*PAGES, *NOTES):
        shown |= {
            (page.parent / target).resolve()
            for target in re.findall(r"!\[[^\]]+\]\(([^)]+)\)", page.read_text())
        }
    pictures = {path for kind in ("*.png", "*.gif") for path in (ROOT / "results").rglob(kind)}
    drawn = set((ROOT / "docs").rglob("*.svg"))
    assert pictures | drawn == shown


@pytest.mark.parametrize("page", READINGS, ids=lambda page: page.name)
def test_readings_name_functions_that_are_there(page):
    links = re.findall(r"^\[`([\w.]+)`\]\(([^)#]+)#([\w.]+)\)$", page.read_text(), re.MULTILINE)
    assert len(links) > 5
    for text, target, symbol in links:
        assert text == symbol
        body = ast.parse((page.parent / target).read_text()).body
        for name in symbol.split("."):
            (body,) = (node.body for node in body if getattr(node, "name", None) == name)


MEASURED = (
    "## Results",
    "## Learned proxies",
    "## What was reproduced",
    "## The stale observation",
)
UNITS = (
    "environment|gradient|synthetic|real|greedy|fresh|public|training|random|steps?|decisions|episodes?|seeds?|agents?|SEs|RNs|"
    "models|runs|updates|evaluations|generations|commands|pipes|%"
)
NOT_MEASURED = [  # what is taken out before numbers are looked for
    r"<!-- made by: .*? -->\n(?:.+\n)*",
    r"<!-- caption of: .*? -->\n(?:.+\n)*",
    MARKED.pattern,
    r"(?s)```.*?```",
    r"`[^`]*`",
    r"!?\[[^\]]*\]\([^)]*\)",
    r"https?://\S+",
    r"\b\d+ of \d+ runs",
    # how much was run
    rf"-?\d[\d,.]*[kM]?(?:(?:–|-| to | and | or |, )-?\d[\d,.]*[kM]?)*\s(?:{UNITS})",
    r"\(-?\d+ (?:is|counts)[^)]*\)",
    r"\b(?:about|average|return of) -?\d+",  # thresholds, and read off a published figure
    r"(?i)\bseeds? \d+(?:(?:, | and | to |-)\d+)*",
    r"\b20[12]\d\b",
    r"(?:PanFlute|ProcMaze|ButtonGrid) \d",
]


def measured_parts(text):
    """What stands below the headings of measured results."""
    return [
        part
        for part in re.split(r"^(?=## )", text, flags=re.MULTILINE)
        if part.startswith(MEASURED)
    ]


def bare_numbers(text):
    """Numbers that name no source, and are no count of what was run."""
    for pattern in NOT_MEASURED:
        text = re.sub(pattern.replace(" ", r"\s"), " ", text)  # words may stand in two lines
    return re.findall(r"(?<![\w.-])-?\d[\d,.]*\d|(?<![\w.-])-?\d(?![\w.])", text)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_measured_numbers_name_their_source(page):
    """Each is in a table that a command makes, or is followed by its source; see
    experiments/docs.py.
    """
    for part in measured_parts(page.read_text()):
        assert bare_numbers(part) == []


def test_a_bare_number_is_found():
    part = (
        "## Results\n\nIt has 96.2 after 1,000 steps, seed 3, [7](x), 5.0<!-- = a mean --> and "
        "`8`; then 12.\n"
    )
    assert bare_numbers(part) == ["96.2", "12"]


def test_numbers_are_those_of_their_source(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.csv").write_text("agent,seed,x,curve\nA,1,1.5,3 4\nA,2,2.25,5 7\nB,1,1000,0 0\n")
    marks = [
        ("0.0", "x sum seed=1..2"),
        ("0.00", "x mean agent=A"),
        ("0", "x max"),
        ("-0.0", "x min agent=A seed=2"),
    ]
    marks += [("1,0", "x max agent=B")]
    text = " ".join(
        f"{number}<!-- = a.csv {source} -->"
        for number, source in [*marks, ("5", "curve:2 mean agent=A")]
    )
    assert re.findall(r"(\S+)<!--", with_numbers(text)) == [
        "2.2",
        "1.88",
        "1000",
        "2.2",
        "1,000",
        "6",
    ]
    for source in (
        "a.csv y max",
        "a.csv x mode",
        "a.csv x max agent=C",
        "no.csv x max",
        "a.csv curve:9 max",
        "a.csv agent max",
        "a.csv x max seed=1..b",
        "a.csv x max agent=1..2",
        "a.csv x max z=1..2",
    ):
        with pytest.raises(UserError):
            with_numbers(f"5<!-- = {source} -->")


@pytest.mark.parametrize("name", IMPLEMENTATIONS)
def test_config_tables_have_every_key(name):
    import dataclasses

    keys = [row.key for row in config_rows(entry(name))]
    assert sorted(keys) == sorted(
        field.name for field in dataclasses.fields(IMPLEMENTATIONS[name].Config)
    )


def test_a_row_has_the_value_that_stands_last_and_the_words_that_stand_first():
    rows = {row.key: row for row in config_rows(entry("DDQN"))}
    assert (rows["gamma"].value, rows["gamma"].explanation, rows["gamma"].source) == (
        "0.988",
        "discount",
        "[S, B]",
    )
    assert rows["tau"].heading == "learning"
    assert list(dict.fromkeys(row.heading for row in rows.values())) == [
        "budget",
        "exploration",
        "learning",
        "network",
        "evaluation and checkpoints",
    ]


def test_a_config_table_with_what_a_gamename_and_a_preset_change(capsys):
    """Every value is the one that a run has, written as --set takes it."""
    assert (
        main(
            ["config", "UDRL", "--gamename", "LunarLander-v3", "--preset", "weighted", "--markdown"]
        )
        == 0
    )
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "| key | value | meaning and source |"
    assert (
        "| `num_updates_per_iter` | `400` | gradient steps of an epoch, or for each steps_per_iter"
        in "\n".join(lines)
    )
    found = {
        line.split("`")[1]: yaml.safe_load(line.split("`")[3])
        for line in lines
        if line.startswith("| `")
    }
    config = run_config(RunOptions("UDRL", "lunarlander", preset="weighted"))
    unknown = config.ignored_keys().keys() | config.absent_networks().keys()
    assert all(
        getattr(config, key) == value
        for key, value in found.items()
        if key not in (*unknown, "critic_hidden")
    )
    assert any(line.endswith("From `UDRL.presets.weighted` |") for line in lines)
    assert main(["config", "UDRL", "--gamename", "lunarlandr"]) == 2
    assert "did you mean 'lunarlander'?" in capsys.readouterr().err


def test_refreshing_by_hand(tmp_path, capsys):
    page = tmp_path / "page.md"
    page.write_text(
        "before\n\n<!-- made by: lightning-rl config QL --markdown -->\n| stale row |\n\nafter\n"
    )
    assert main(["docs", str(page)]) == 0
    text = page.read_text()
    assert text.startswith(
        "before\n\n<!-- made by: lightning-rl config QL --markdown -->\n"
        "| key | default | meaning and source |\n"
    )
    assert text.endswith("|\n\nafter\n")
    assert "stale row" not in text
    assert main(["docs", str(page)]) == 0
    assert "up to date" in capsys.readouterr().out
    assert main(["docs", str(tmp_path / "no.md")]) == 2
