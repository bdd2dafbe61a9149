import pandas as pd
import pytest
from helpers import ROOT
from helpers.runs import cli

from lightning_rl.lab.figures import style

SWEEP = (
    "run,command,commanded,obtained_mean,obtained_sd\nseed_1,return,0,5,1\nseed_1,return,100,60,2\n"
)


def test_sweeps_are_drawn_together_with_published_ones(tmp_path, capsys, monkeypatch):
    drawn, describe = [], style.describe
    monkeypatch.setattr(
        style, "describe", lambda figure, *words: (drawn.append(figure), describe(figure, *words))
    )
    run = tmp_path / "run"
    run.mkdir()
    (run / "sweep.csv").write_text(SWEEP)
    (tmp_path / "bad.csv").write_text("run,commanded\na,1\n")
    published = f"{ROOT}/results/udrl_lunarlander/reference_paper_commands.csv:paper"
    out = tmp_path / "out"
    assert cli("figures", "commands", out, run, tmp_path / "bad.csv", "--reference", published) == 0
    colours = {line.get_label(): line.get_color() for line in drawn[0].axes[0].lines}
    assert colours["paper"] == "black" != colours["seed_1"]
    table = pd.read_csv(f"{out}.csv")
    assert table["run"].drop_duplicates().tolist() == ["seed_1", "paper"]
    said = capsys.readouterr().err
    assert "bad.csv': it lacks the column obtained_mean, obtained_sd" in said
    assert "obtained_sd; its columns: run, commanded\n" in said
    (run / "sweep.csv").write_text(SWEEP.replace("return", "advantage"))
    assert cli("figures", "commands", out, run, published) == 2
    assert (
        "different commands (advantage and return) do not share an axis" in capsys.readouterr().err
    )
    assert cli("figures", "commands", out, tmp_path) == 2
    assert "make one with lightning-rl eval CKPT --command sweep" in capsys.readouterr().err


CLAIM = """seed,commanded,obtained_mean,obtained_sd,episodes
100,0,10,5,50
100,100,90,5,50
101,0,20,25,50
101,200,170,25,50
"""


def test_methods_are_drawn_side_by_side(tmp_path, capsys):
    """Both seeds were asked for 0 .. 100: there they obtain 10 and 20, and 90 and, on a line
    from 20 to 170, 95.
    """
    claim, run, out = tmp_path / "claim.csv", tmp_path / "run", tmp_path / "out"
    claim.write_text(CLAIM)
    run.mkdir()
    missed = SWEEP.replace("_sd\n", "_sd,episode_error\n").replace(",1\n", ",1,7\n")
    (run / "sweep.csv").write_text(missed.replace(",2\n", ",2,43\n"))
    assert cli("figures", "obedience", out, f"{claim}:RCP-A", run) == 0
    table = pd.read_csv(f"{out}.csv")
    assert table["method"].drop_duplicates().tolist() == ["RCP-A", "run"]
    assert table.loc[table["method"] == "RCP-A", "run"].drop_duplicates().tolist() == [
        "seed_100",
        "seed_101",
        "mean",
    ]
    means = table[(table["run"] == "mean") & (table["method"] == "RCP-A")]
    ends = means.iloc[[0, -1]][["commanded", "obtained_mean"]].to_numpy().ravel().tolist()
    assert ends == pytest.approx([0, 15, 100, 92.5])
    # Student's quantile of one degree
    assert (means["high"] - means["low"]).iloc[0] / 2 == pytest.approx(12.706 * 5, rel=1e-4)
    one = table[(table["run"] == "mean") & (table["method"] == "run")]
    assert one[["low", "high"]].to_numpy().tolist() == [[4, 6], [58, 62]]
    drawn = (tmp_path / "out.svg").read_text()
    assert "RCP-A, 2 seeds" in drawn
    assert "mean error 17.5, worst 30.0" in drawn  # 10 10 20 30
    assert "by chance alone 1.69" in drawn  # 15 / sqrt(50) * sqrt(2 / pi) = 1.7
    # 5 and 40, on average 22.5; it does not say of how many episodes
    assert "mean error 22.5, worst 40.0" in drawn
    assert drawn.count("single episodes: ") == 1  # the claim does not say
    assert "single episodes: 25.0" in drawn
    (run / "sweep.csv").write_text(SWEEP.replace("return", "advantage"))
    assert cli("figures", "obedience", out, run) == 2
    assert "its commands are no returns (but: advantage)" in capsys.readouterr().err


def test_runs_go_by_what_their_configs_say(tmp_path, capsys):
    """Their folders, and the rows of their sweeps, are all called seed_1."""
    runs = []
    for number, (exp_name, method) in enumerate(
        [("default", "RCP-A"), ("default", "UDRL"), ("wide", "UDRL")]
    ):
        run = tmp_path / exp_name / method / "seed_1"
        run.mkdir(parents=True)
        (run / "config.yaml").write_text(f"implementation: {method}\nseed: 1\nconfig: {{}}\n")
        (run / "sweep.csv").write_text(SWEEP.replace("60", f"6{number}"))
        runs.append(str(run))
    out = tmp_path / "out"
    for figure, column in (("commands", "run"), ("obedience", "method")):
        for sources in (runs[:2], [f"{run}/sweep.csv" for run in runs[:2]]):
            assert cli("figures", figure, out, *sources) == 0
            assert pd.read_csv(f"{out}.csv")[column].drop_duplicates().tolist() == [
                "RCP-A seed_1",
                "UDRL seed_1",
            ]
        capsys.readouterr()
        assert cli("figures", figure, out, *runs) == 2
        error = capsys.readouterr().err
        assert (
            f"'{runs[1]}' and '{runs[2]}' are both called 'UDRL seed_1'; tell them apart with a "
            "name each, as CSV:LABEL" in error
        )
        assert cli("figures", figure, out, *runs[:2], f"{runs[2]}/sweep.csv:wide") == 0
