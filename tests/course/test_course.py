"""The lessons: blanks fail, solutions pass, slightly wrong answers fail, trainings learn."""

import os
import re
import shlex
import subprocess
import sys

import pytest
from helpers import ROOT

sys.path.append(str(ROOT / "course"))
import grade
from checks import BLANKS, WrongAnswerError

each = pytest.mark.parametrize("lesson", range(1, 9))


@each
def test_a_lesson_says_at_its_top_how_long_it_takes(lesson):
    top = grade.LESSONS[lesson].read_text().splitlines()[:4]
    assert re.fullmatch(r"# \*\d+ minutes of yours; the training takes a minute.*\*", top[3])


@each
def test_blanks_fail_and_solutions_pass(lesson):
    blanks = grade.failures(lesson, grade.LESSONS[lesson].read_text())
    assert len(blanks) >= 2
    assert all(reason.startswith("NotImplementedError: write ") for reason in blanks.values())
    assert not any(grade.failures(lesson, grade.solution(lesson)).values())
    assert not any(grade.failures(lesson, grade.solved(lesson)).values())


@each
def test_answers_that_are_a_little_wrong_fail(lesson):
    solutions = grade.definitions(grade.solution(lesson))
    for name, check in BLANKS[lesson].items():

        def wrong(*given, right=solutions[name]):
            found = right(*given)
            off = [1.02 * part + 0.01 for part in (found if isinstance(found, tuple) else [found])]
            return tuple(off) if isinstance(found, tuple) else off[0]

        with pytest.raises(WrongAnswerError, match="expected"):
            check(wrong)


def test_what_was_handed_in_is_graded_as_notebook_and_as_file(tmp_path, monkeypatch, capsys):
    notebook = tmp_path / "handed_in.ipynb"
    notebook.write_text(grade.json.dumps(grade.notebook(1, folded=True)))
    solved = tmp_path / "solved.py"
    solved.write_text(grade.solved(1))
    broken = tmp_path / "broken.py"
    broken.write_text("def returns_to_go(reward, gamma):")
    (tmp_path / "torn.ipynb").write_text('{"cells": [')
    missing = str(tmp_path / "missing.ipynb")
    monkeypatch.setattr(sys, "argv", ["grade.py", "1", str(tmp_path), missing])
    with pytest.raises(SystemExit) as ended:
        grade.main()
    assert ended.value.code == 1
    said = capsys.readouterr().out
    assert said.count("NotImplementedError") == said.count(": right") == 2
    assert said.count("IndentationError: expected an indented block") == 2
    assert "torn.ipynb\n  is no notebook or text: " in said
    assert "missing.ipynb\n  cannot be read: No such file" in said


def test_a_loop_that_does_not_end_is_a_wrong_answer(monkeypatch):
    monkeypatch.setattr(grade, "LIMIT_S", 0.2)
    endless = """
def returns_to_go(reward, gamma):
    while True:
        try:
            pass
        except Exception:
            pass
"""
    found = grade.failures(1, grade.solution(1) + endless)
    assert found["returns_to_go"].startswith("it did not end within 0 seconds; look for a loop")
    assert found["policy_loss"] == ""
    found = grade.failures(1, "def policy_loss(a, b=[0 for _ in iter(int, 1)]): pass")
    assert all("did not end" in reason for reason in found.values())


@each
def test_a_notebook_has_the_cells_of_its_lesson_and_folded_solutions(lesson):
    text = grade.LESSONS[lesson].read_text()
    cells = grade.notebook(lesson, folded=True)["cells"]
    code = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    assert code
    assert all(cell in text for cell in code)
    folded = [cell for cell in cells if "<details>" in "".join(cell["source"])]
    assert len(folded) == len(BLANKS[lesson])
    assert len(grade.notebook(lesson, folded=False)["cells"]) == len(cells) - len(folded)


LEARNED = {
    1: {"seed 0": 150},
    2: {"baseline": 150},
    3: {"lesson-3": 250},
    4: {"asked 100": 70},
    5: {"lesson_5, asked 100": 80},
    6: {"after": 100},
    7: {"shaped reward": 0.4},
    8: {"model": 0.85},
}


@each
@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_its_training_learns(lesson):
    code = f"import grade, json; print(json.dumps(grade.run({lesson})))"
    where = {"PYTHONPATH": f"{ROOT / 'course'}{os.pathsep}{ROOT}"}
    words = [sys.executable, "-c", code]  # a process of its own, as it registers methods
    said = subprocess.run(words, env=os.environ | where, stdout=subprocess.PIPE, check=True)
    result = grade.json.loads(said.stdout.splitlines()[-1])
    for name, least in LEARNED[lesson].items():
        assert result[name] >= least


@pytest.mark.slow
def test_the_loss_on_the_page_for_teachers_trains(tmp_path):
    page = (ROOT / "docs" / "course.md").read_text()
    code = re.search(r'title="my_loss.py"\n(.*?)```', page, re.DOTALL)[1]
    assert f"One loss in {len(code.splitlines())} lines" in page
    (tmp_path / "my_loss.py").write_text(code)
    variable, command = re.search(r"^(LIGHTNING\S+) lightning-rl (train .*)$", page, re.M).groups()
    name, _, value = variable.partition("=")
    words = [sys.executable, "-m", "lightning_rl", *shlex.split(command), "--max_epochs", "2"]
    where = {"PYTHONPATH": str(ROOT), name: value}
    subprocess.run(words, cwd=tmp_path, env=os.environ | where, check=True)
    assert list(tmp_path.glob("exp_dir/cartpole/default/my-loss/seed_*/last.ckpt"))
