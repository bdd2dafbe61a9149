import numpy as np
import pandas as pd
import pytest
from helpers import ROOT
from helpers.runs import cli

from lightning_rl.cli import main
from lightning_rl.lab.figures.groups import Group
from lightning_rl.lab.figures.scores import group_scores, run_scores, score_table, summary_rows

X = np.arange(1.0, 21.0)


def test_scores_by_hand():
    rising, late = np.arange(20.0), np.where(X > 18, np.nan, 5.0)
    group = Group("m", ["1", "2"], X, np.array([rising, late]))
    runs = run_scores(group, 10.0)
    assert runs.to_dict("list") == {
        "run": ["seed_1", "seed_2"],
        "final": [18.5, 5.0],  # the last tenth: two of 20 bins, two of 18
        "best": [19.0, 5.0],
        "area": [9.5, 5.0],
        "to_threshold": [11.0, pytest.approx(float("nan"), nan_ok=True)],
        "reached": [1.0, 0.0],
    }
    both = group_scores(runs).set_index("run")
    assert both.loc["mean", "final"] == 11.75
    assert both.loc["high", "final"] == pytest.approx(11.75 + 12.7062 * 6.75)
    assert np.isnan(both.loc["iqm", "final"])  # two runs have no middle half
    # a mean over those that reached it would flatter
    assert np.isnan(both.loc["mean", "to_threshold"])
    assert both.loc["mean", "reached"] == 0.5


def test_the_summary_says_who_did_not_get_there():
    good = Group("good", ["1", "2"], X, np.stack([X, X + 1]))
    half = Group("half", ["1", "2"], X, np.stack([X, X * 0]))
    rows = summary_rows(score_table({"game": [good, half]}, 10.0), "environment steps")
    assert rows[1] == (
        "game",
        "good",
        "2",
        "20.0 [13.6, 26.4]",
        "20.5 [14.1, 26.9]",
        "11.0 [4.6, 17.4]",
        "9.5 to 10",
    )
    assert rows[2][-1] == "50% of seeds reach 10"
    (_, only) = summary_rows(
        score_table({"cartpole": [Group("one", ["1"], X, X[None])]}, None), "environment steps"
    )
    # what solves the environment, from its spec
    assert only[3:] == ("19.5", "20.0", "10.5", "0% of seeds reach 475")


@pytest.mark.parametrize(("ends", "said"), [((100, 60), True), ((100, 95), False)])
def test_runs_of_unlike_lengths_are_pointed_out(tmp_path, capsys, monkeypatch, ends, said):
    monkeypatch.setenv("COLUMNS", "200")
    rows = [f"m,{seed},{step},1" for seed, end in enumerate(ends) for step in range(1, end + 1)]
    (tmp_path / "t.csv").write_text("\n".join(["implementation,seed,env_steps,value", *rows, ""]))
    assert cli("figures", "scores", tmp_path / "s", tmp_path / "t.csv", "--bin", "5") == 0
    out = " ".join(capsys.readouterr().out.split())
    assert ("runs have 60 to 100 environment steps, each counts as far as it goes" in out) == said


def test_a_short_run_beside_a_long_one_has_bins_of_its_own_length(tmp_path, capsys, monkeypatch):
    """A rising run of 2,000 steps ends with the mean of its last values, also beside one of half
    a million.
    """
    monkeypatch.setenv("COLUMNS", "200")
    rows = [f"cartpole,short,0,{100 * k},{k}" for k in range(1, 21)] + [
        f"acrobot,long,0,{5_000 * k},1" for k in range(1, 101)
    ]
    (tmp_path / "t.csv").write_text(
        "\n".join(["gamename,implementation,seed,env_steps,value", *rows, ""])
    )
    assert cli("figures", "scores", tmp_path / "s", tmp_path / "t.csv") == 0
    scores = pd.read_csv(tmp_path / "s-scores.csv").set_index(["group", "run"])
    # bins of 200: of the values 19 and 20
    assert scores.loc[("short", "seed_0"), ["final", "best"]].tolist() == [19.5, 19.5]
    assert "runs have 2,000 to 500,000 environment steps" in " ".join(
        capsys.readouterr().out.split()
    )


def test_table_from_committed_results(tmp_path, capsys):
    source = f"{ROOT}/results/claims/pg-tuned-aac.csv"
    flags = ["--tag", "rollout/return_running_mean"]
    scored = ["figures", "scores", str(tmp_path / "p"), source, *flags, "--threshold", "200"]
    assert cli(*scored, "--markdown") == 0
    out = capsys.readouterr().out
    assert "| AAC | 10 |" in out
    assert not (tmp_path / "p-scores.csv").exists()
    assert main(scored) == 0
    assert "70% of seeds reach 200" in out
    scores = pd.read_csv(tmp_path / "p-scores.csv")
    assert set(scores["run"]) == {
        *(f"seed_{n}" for n in range(100, 110)),
        "mean",
        "iqm",
        "low",
        "high",
    }
