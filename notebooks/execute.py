"""Makes the notebooks from their sources: ``python notebooks/execute.py [NAME ...]``."""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

import jupytext
import nbformat
from nbclient import NotebookClient

HERE = Path(__file__).resolve().parent
SOURCES = sorted(path for path in HERE.glob("*.py") if path != Path(__file__).resolve())
MINUTES = 10


def executed(source: Path) -> nbformat.NotebookNode:
    """The notebook of a source, executed in an empty folder; an error in a cell ends it."""
    notebook = jupytext.read(source)
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    notebook.metadata["kernelspec"] = kernel
    os.environ["PYTHONPATH"] = os.pathsep.join([str(HERE.parent), os.environ.get("PYTHONPATH", "")])
    with tempfile.TemporaryDirectory() as folder:
        where = {"metadata": {"path": folder}}
        NotebookClient(
            notebook, timeout=60 * MINUTES, resources=where, record_timing=False
        ).execute()
    for number, cell in enumerate(notebook.cells):
        cell["id"] = f"cell-{number}"  # so that executing again changes only what has changed
        if "outputs" in cell:  # progress and warnings are not what a reader looks for
            cell["outputs"] = [output for output in cell.outputs if output.get("name") != "stderr"]
    return notebook


def main(names: Sequence[str] | None = None) -> None:
    """Writes ``NAME.ipynb`` beside ``NAME.py``."""
    parser = argparse.ArgumentParser(description=__doc__)
    known = [path.stem for path in SOURCES]
    parser.add_argument("names", nargs="*", choices=[*known, []], metavar="NAME")
    asked = parser.parse_args(names).names
    for source in SOURCES:
        if not asked or source.stem in asked:
            nbformat.write(executed(source), source.with_suffix(".ipynb"))
            print(f"executed {source.stem}")


if __name__ == "__main__":
    main()
