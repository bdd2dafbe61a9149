import numpy as np
import pytest
from helpers.runs import cli, log_scalars

from lightning_rl.lab.reports.compare import compare_scores, over_environments, verdict


def write_runs(root, game, method, finals, steps=10):
    for seed, final in enumerate(finals):
        points = {100 * step: final + step / 10 for step in range(1, steps + 1)}
        run = root / game / "exp" / method / f"seed_{seed}"
        log_scalars(run, {"rollout/return_mean": points})


def test_by_hand():
    high, low = np.array([5.0, 7.0, 6.0]), np.array([1.0, 3.0, 2.0])
    better = compare_scores("g", high, low)
    half = 2.77645 * (2 / 3) ** 0.5  # Student's quantile of four degrees of freedom
    assert better.difference == pytest.approx((4, 4 - half, 4 + half), abs=1e-4)
    assert better.improvement[0] == better.improvement[2] == 1
    assert verdict(better) == "A is higher"
    assert verdict(compare_scores("g", low, high)) == "B is higher"
    same = compare_scores("g", high, high)
    assert same.improvement[0] == 0.5
    assert verdict(same) == "no difference shown"
    alike = compare_scores("g", np.array([500.0, 500.0]), np.array([499.0, 499.0]))
    assert (
        verdict(alike) == "A is higher in seeds that are all alike: how sure that is cannot be said"
    )
    assert over_environments([better, same])[0] == 0.75
    assert (
        verdict(compare_scores("g", high[:1], low))
        == "one run on a side: nothing can be said of seeds"
    )


def test_from_run_directories(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "160")
    for game in ("one", "two"):
        write_runs(tmp_path / "a", game, "A", [5.0, 7.0, 6.0])
        write_runs(tmp_path / "b", game, "B", [1.0, 3.0, 2.0])
    write_runs(tmp_path / "b", "three", "B", [1.0])
    assert cli("compare", tmp_path / "a", tmp_path / "b") == 0
    out = capsys.readouterr().out
    assert "skipped three: only B has runs on it" in out
    assert "4.0 [1.7, 6.3]" in out
    assert "mean over environments" in out


@pytest.mark.parametrize("score", ["area", "final", "best"])
def test_runs_of_unequal_lengths_are_compared_where_all_have_data(
    tmp_path, capsys, monkeypatch, score
):
    """Returns that grow with the steps, and twice as many steps: the same learner is no better
    for that.
    """
    monkeypatch.setenv("COLUMNS", "160")
    write_runs(tmp_path / "a", "one", "A", [5.0, 7.0, 6.0], steps=40)
    write_runs(tmp_path / "b", "one", "B", [5.0, 7.0, 6.0], steps=20)
    assert cli("compare", tmp_path / "a", tmp_path / "b", "--score", score) == 0
    out = capsys.readouterr().out
    assert "one: compared up to 2,000 environment steps, where the shortest run ends" in out
    assert "no difference shown" in out
    assert " 0.0 [" in out


def test_what_only_one_side_has_of_the_beginning_is_told(tmp_path, capsys):
    write_runs(tmp_path / "a", "one", "A", [5.0, 7.0, 6.0], steps=40)
    for seed in range(3):
        run = tmp_path / "b" / "one" / "exp" / "B" / f"seed_{seed}"
        log_scalars(run, {"rollout/return_mean": {2000: 6.0, 4000: 6.0}})
    assert cli("compare", tmp_path / "a", tmp_path / "b") == 0
    assert "one: compared from 2,000 environment steps on" in capsys.readouterr().out


def test_methods_of_one_csv_stay_apart_under_a_label(tmp_path, capsys):
    """Their seeds are the same numbers, but not the same runs."""
    head = "gamename,implementation,seed,env_steps,value\n"
    rows = [
        f"one,{name},{seed},1,{value}" for name, value in (("A", 1), ("B", 9)) for seed in (1, 2)
    ]
    (tmp_path / "both.csv").write_text(head + "\n".join(rows))
    (tmp_path / "one.csv").write_text(head + "\n".join(rows[:2]))
    assert cli("compare", f"{tmp_path}/both.csv:ours", tmp_path / "one.csv", "--tag", "value") == 2
    assert "several methods on one (ours A; ours B)" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("a", "b", "words"),
    [
        ("a", "b", "they share none; compare runs of one environment"),
        ("both", "a", "several methods on one"),
    ],
)
def test_refusals(tmp_path, capsys, a, b, words):
    write_runs(tmp_path / "a", "one", "A", [1.0])
    write_runs(tmp_path / "b", "two", "B", [1.0])
    write_runs(tmp_path / "both", "one", "A", [1.0])
    write_runs(tmp_path / "both", "one", "B", [1.0])
    assert cli("compare", tmp_path / a, tmp_path / b) == 2
    assert words in capsys.readouterr().err
