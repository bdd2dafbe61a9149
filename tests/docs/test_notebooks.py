"""The notebooks are those of their sources, hold what they show, and run."""

import json
import sys

import pytest
from helpers import ROOT

SOURCES = sorted(path for path in (ROOT / "notebooks").glob("*.py") if path.name != "execute.py")
each = pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.stem)


def code(cells):
    return ["".join(cell["source"]).strip() for cell in cells if cell["cell_type"] == "code"]


@each
def test_it_is_committed_as_executed_with_pictures(source):
    cells = json.loads(source.with_suffix(".ipynb").read_text())["cells"]
    text = source.read_text()
    assert code(cells)
    assert all(cell in text for cell in code(cells))
    in_source = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    assert sum(len(cell.split("\n")) for cell in code(cells)) >= len(
        in_source
    )  # no cell is missing
    outputs = [
        output for cell in cells if cell["cell_type"] == "code" for output in cell["outputs"]
    ]
    assert any("image/png" in output.get("data", {}) for output in outputs)
    assert not [
        output
        for output in outputs
        if output["output_type"] == "error" or output.get("name") == "stderr"
    ]
    assert source.with_suffix(".ipynb").stat().st_size < 300_000


@each
@pytest.mark.slow
@pytest.mark.timeout(900)
def test_it_runs(source, monkeypatch):
    pytest.importorskip("jupytext")
    pytest.importorskip("nbclient")
    monkeypatch.setattr(sys, "path", [str(ROOT / "notebooks"), *sys.path])
    from execute import executed

    assert executed(source).cells


def test_the_family_of_every_page_has_one():
    assert {path.stem for path in SOURCES} == {
        path.stem for path in (ROOT / "docs" / "reading").glob("*.md")
    } | {"tour"}
