"""Grades the lessons of the course and shows how they go; see README.md.

``python course/grade.py 3`` checks lesson 3, ``python course/grade.py 3 HANDED_IN ..`` what others
have handed in (files, or a folder of them), ``--solve`` runs the lesson with the solutions in its
blanks, ``--notebooks`` makes the notebooks from the lessons.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

from checks import BLANKS, WrongAnswerError  # noqa: E402

LIMIT_S = 20.0
"""For the check of one function, of which ours take a fraction of a second."""

_OF_JUPYTER = ("%", "!", "?")
"""What lines begin with that are no Python."""

LESSONS = {int(path.stem.split("_")[1]): path for path in sorted(HERE.glob("lesson_*.py"))}


class TooLongError(BaseException):
    """Raised in code that runs for too long; no ``except Exception`` of its own catches it."""


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """TooLongError after so many seconds, and each second after that, until the code ends."""

    def stop(number: int, frame: Any) -> None:
        raise TooLongError(
            f"it did not end within {seconds:.0f} seconds; look for a loop that never ends"
        )

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds, 1.0)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)


def solution(lesson: int) -> str:
    """The text of a lesson's solutions."""
    return (HERE / "solutions" / f"lesson_{lesson}.py").read_text()


def source(path: Path) -> str:
    """The code of a lesson, of its notebook or its ``.py`` file; ValueError if there is none."""
    try:
        text = path.read_text()
        if path.suffix != ".ipynb":
            return text
        cells = json.loads(text)["cells"]
        code = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    except OSError as error:
        raise ValueError(f"cannot be read: {error.strerror}") from error
    except (ValueError, LookupError, TypeError) as error:
        raise ValueError(f"is no notebook or text: {error}") from error
    lines = "\n".join(code).splitlines()
    return "\n".join(line for line in lines if not line.startswith(_OF_JUPYTER))


def handed_in(paths: list[Path]) -> Iterator[Path]:
    """Files, and of a folder the notebooks and ``.py`` files in it."""
    for path in paths:
        if path.is_dir():
            yield from sorted([*path.glob("*.ipynb"), *path.glob("*.py")])
        else:
            yield path


def functions(text: str) -> dict[str, ast.FunctionDef]:
    """The functions of a source, by name."""
    body = ast.parse(text).body
    return {node.name: node for node in body if isinstance(node, ast.FunctionDef)}


def definitions(text: str) -> dict[str, Any]:
    """What the imports and functions of a source define; nothing else of it is run."""
    kinds = (ast.Import, ast.ImportFrom, ast.FunctionDef)
    kept = [node for node in ast.parse(text).body if isinstance(node, kinds)]
    found: dict[str, Any] = {}
    exec(compile(ast.Module(kept, []), "lesson", "exec"), found)
    return found


def failures(lesson: int, text: str) -> dict[str, str]:
    """What is wrong with each blank of a lesson; empty where it is right."""
    try:
        with time_limit(LIMIT_S):
            found = definitions(text)
    except TooLongError as error:
        return dict.fromkeys(BLANKS[lesson], str(error))
    except Exception as error:  # whatever may be handed in
        return dict.fromkeys(BLANKS[lesson], f"{type(error).__name__}: {error}")
    wrong = {}
    for name, check in BLANKS[lesson].items():
        wrong[name] = ""
        if name not in found:
            wrong[name] = "there is no function of this name"
            continue
        try:
            with time_limit(LIMIT_S):
                check(found[name])
        except (WrongAnswerError, TooLongError) as error:
            wrong[name] = str(error)
        except Exception as error:  # whatever a student's code may do
            wrong[name] = f"{type(error).__name__}: {error}"
    return wrong


def solved(lesson: int) -> str:
    """The source of a lesson with the solutions in its blanks."""
    lines, answers = LESSONS[lesson].read_text().splitlines(), solution(lesson)
    blanks = functions("\n".join(lines))
    filled = [node for name, node in functions(answers).items() if name in blanks]
    for answer in sorted(filled, key=lambda node: -blanks[node.name].lineno):
        blank, text = blanks[answer.name], ast.get_source_segment(answers, answer)
        assert text is not None
        lines[blank.lineno - 1 : blank.end_lineno] = text.splitlines()
    return "\n".join(lines)


def run(lesson: int) -> dict[str, float]:
    """The ``result`` of a lesson with the solutions in its blanks, in an empty folder."""
    import matplotlib

    matplotlib.use("Agg")
    here = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            found: dict[str, Any] = {"__name__": "__main__"}
            exec(compile(solved(lesson), str(LESSONS[lesson]), "exec"), found)
        finally:
            os.chdir(here)
    return found["result"]


def notebook(lesson: int, folded: bool) -> dict[str, Any]:
    """The notebook of a lesson; folded: with a folded solution below each blank."""
    answers, cells = solution(lesson), []
    for part in LESSONS[lesson].read_text().split("# %%")[1:]:
        heading, _, text = part.partition("\n")
        text = text.strip("\n")
        if heading.strip() == "[markdown]":
            lines = [line.removeprefix("#").removeprefix(" ") for line in text.splitlines()]
            cells.append(("markdown", "\n".join(lines)))
            continue
        cells.append(("code", text))
        for name, node in functions(answers).items():
            if folded and f"check({name})" in text:
                code = ast.get_source_segment(answers, node)
                cells.append(
                    (
                        "markdown",
                        f"<details><summary>Solution: <code>{name}</code></summary>\n\n"
                        f"```python\n{code}\n```\n</details>",
                    )
                )
    return {
        "cells": [cell(number, *each) for number, each in enumerate(cells)],
        "metadata": {
            "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}
        },
        "nbformat": 4,
        "nbformat_minor": 5,
    }


def cell(number: int, kind: str, text: str) -> dict[str, Any]:
    """One cell of a notebook."""
    found = {
        "cell_type": kind,
        "id": f"cell-{number}",
        "metadata": {},
        "source": text.splitlines(keepends=True),
    }
    return found | ({"execution_count": None, "outputs": []} if kind == "code" else {})


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("lesson", type=int, nargs="?", choices=sorted(LESSONS), help="its number")
    parser.add_argument("files", type=Path, nargs="*", help="handed in, or their folder")
    parser.add_argument("--solve", action="store_true", help="run it with the solutions")
    parser.add_argument("--notebooks", action="store_true", help="write them beside the lessons")
    parser.add_argument("--no-solutions", action="store_true", help="leave them out of notebooks")
    asked = parser.parse_args()
    lessons = [asked.lesson] if asked.lesson else sorted(LESSONS)
    if asked.notebooks:
        for lesson in lessons:
            content = json.dumps(notebook(lesson, not asked.no_solutions), indent=1)
            path = LESSONS[lesson].with_suffix(".ipynb")
            path.write_text(content + "\n")
            print(f"wrote {os.path.relpath(path)}")
        return
    wrong = 0
    for lesson in lessons:
        if asked.solve:
            started = time.process_time()
            result = {name: round(value, 3) for name, value in run(lesson).items()}
            print(f"lesson {lesson}: {(time.process_time() - started) / 60:.1f} minutes, {result}")
            continue
        for path in handed_in(asked.files or [LESSONS[lesson]]):
            print(path.name)
            try:
                text = source(path)
            except ValueError as error:
                wrong += 1
                print(f"  {error}")
                continue
            for name, reason in failures(lesson, text).items():
                wrong += bool(reason)
                print(f"  {name}: {reason or 'right'}")
    sys.exit(min(wrong, 1))


if __name__ == "__main__":
    main()
