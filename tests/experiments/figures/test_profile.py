import pandas as pd
from helpers import ROOT
from helpers.runs import cli

from experiments.figures.profile import above


def test_by_hand():
    assert above([1.0, 3.0], [0.0, 1.0, 2.0]).tolist() == [[1, 0, 0], [1, 1, 1]]


def test_from_committed_results(tmp_path):
    source = f"{ROOT}/results/claims/pg-tuned-aac.csv"
    flags = ["--tag", "rollout/return_running_mean"]
    assert cli("figures", "profile", tmp_path / "p", source, *flags) == 0
    (_, table), *others = pd.read_csv(tmp_path / "p.csv").groupby(["gamename", "group"])
    assert not others
    assert table["share"].iloc[0] == 1.0
    assert table["share"].iloc[-1] == 0.0
    assert (table["share"].diff().dropna() <= 0).all()
    assert ((table["low"] <= table["share"]) & (table["share"] <= table["high"])).all()
    assert (tmp_path / "p.png").stat().st_size > 5_000
