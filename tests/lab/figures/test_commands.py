import pandas as pd
from helpers import ROOT

from lightning_rl.cli import main

SWEEP = "run,command,commanded,obtained_mean,obtained_sd\nseed_1,return,0,5,1\nseed_1,return,100,60,2\n"


def test_sweeps_are_drawn_together_with_published_ones(tmp_path, capsys):
    run = tmp_path / "run"
    run.mkdir()
    (run / "sweep.csv").write_text(SWEEP)
    (tmp_path / "bad.csv").write_text("run,commanded\na,1\n")
    published = f"{ROOT}/results/udrl_lunarlander/reference_paper_commands.csv:paper"
    out = tmp_path / "out"
    assert main(["figures", "commands", str(out), str(run), published, str(tmp_path / "bad.csv"), "--title", "t"]) == 0
    table = pd.read_csv(f"{out}.csv")
    assert table["run"].drop_duplicates().tolist() == ["seed_1", "paper"]
    assert "bad.csv': it lacks the column obtained_mean, obtained_sd" in capsys.readouterr().err
    (run / "sweep.csv").write_text(SWEEP.replace("return", "advantage"))
    assert main(["figures", "commands", str(out), str(run), published]) == 2
    assert "different commands (advantage and return) do not share an axis" in capsys.readouterr().err
    assert main(["figures", "commands", str(out), str(tmp_path)]) == 2
    assert "make one with --eval_agent CKPT --eval_command sweep" in capsys.readouterr().err
