"""The list of mutations stands as it says, and the tool that runs them tells the killed from the
survivors.
"""

import mutants
import pytest
from helpers import ROOT
from mutations import MUTATIONS, Mutation

TESTS = (
    "functional/test_returns.py::test_lambda_returns_hand_worked",
    "functional/test_returns.py::test_reverse_scan_equals_the_loop",
)
SCAN = "functional/returns.py"


@pytest.mark.parametrize("path", sorted({mutation.path for mutation in MUTATIONS}))
def test_every_snippet_stands_in_its_file_once(path):
    mine = [mutation for mutation in MUTATIONS if mutation.path == path]
    assert [mutation.old for mutation in mine if mutants.occurrences(mutation) != 1] == []
    for mutation in mine:
        compile(mutants.mutated(mutation), path, "exec")
        assert mutation.old != mutation.new


def test_the_tests_of_every_area_are_there():
    names = {test for mutation in MUTATIONS for test in mutation.tests}
    for test in names:
        file, _, function = test.partition("::")
        assert f"def {function.partition('[')[0]}" in (ROOT / "tests" / file).read_text(), test
    assert len({(m.path, m.old, m.new) for m in MUTATIONS}) == len(MUTATIONS) >= 100


def test_a_wrong_formula_is_killed_and_an_equal_one_survives():
    wrong = Mutation(SCAN, "(1 - trace) * next_value", "next_value", TESTS)
    equal = Mutation(SCAN, "while stride < length:", "while stride <= length:", TESTS)
    source = (ROOT / "lightning_rl" / SCAN).read_text()
    killed, survived = mutants.judge(wrong, 60.0), mutants.judge(equal, 60.0)
    assert (killed.outcome, killed.note) == (
        "killed",
        "test_returns.py::test_lambda_returns_hand_worked",
    )
    assert survived.outcome == "survived", survived.note
    assert (ROOT / "lightning_rl" / SCAN).read_text() == source


def test_a_mutant_that_never_ends_is_killed_and_one_that_cannot_be_imported_is_no_mutant():
    endless = Mutation(SCAN, "stride *= 2", "stride *= 1", TESTS)
    verdict = mutants.judge(endless, 3.0)
    assert (verdict.outcome, verdict.killed) == ("hung", True)
    broken = mutants.judge(Mutation(SCAN, "import torch\n", "import no_such_module\n", TESTS), 60.0)
    assert (broken.outcome, broken.killed) == ("broken", False)


def test_what_is_out_of_date_or_survives_too_often_fails_the_run(capsys):
    found, lost = (
        Mutation(SCAN, old, "", TESTS, "because")
        for old in ("while stride < length:", "no such text")
    )
    killed, survived = mutants.Verdict("killed", 1.0, "test"), mutants.Verdict("survived", 1.0, "")
    assert mutants.conclude({found: killed}, []) == 0
    assert mutants.conclude({found: killed}, [lost]) == 1
    assert (
        "stands 0 times in its file, must be once: functional/returns.py: no such text"
        in capsys.readouterr().out
    )
    many = {found._replace(new=str(k)): killed for k in range(19)}
    assert mutants.conclude({**many, found: survived}, []) == 0
    assert "because" in capsys.readouterr().out
    assert mutants.conclude({**dict(list(many.items())[:18]), found: survived}, []) == 1


def test_results_are_kept_until_what_they_depend_on_changes(tmp_path):
    memory, mutation = mutants.Memory(tmp_path / "results", fresh=False), MUTATIONS[0]
    key = memory.key(mutation.tests, mutation)
    memory.add(key, mutants.Verdict("killed", 1.5, "test"))
    (tmp_path / "results").open("a").write('["cut o')
    again = mutants.Memory(tmp_path / "results", fresh=False)
    assert again.known == {key: mutants.Verdict("killed", 1.5, "test")}
    assert key not in {
        memory.key(mutation.tests, m) for m in (mutation._replace(new="other"), MUTATIONS[1], None)
    }
    assert mutants.Memory(tmp_path / "results", fresh=True).known == {}
