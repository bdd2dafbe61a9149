import csv

import numpy as np
import pandas as pd
import pytest
from torch.utils.tensorboard import SummaryWriter

from experiments.figures.policy_gradient import (
    PANELS,
    read_csv,
    read_run,
    read_runs,
    seed_mean,
    summary,
    thinned,
)
from lightning_rl.cli import main
from lightning_rl.core.errors import UserError
from lightning_rl.lab.figures.runs import open_run

TINY = [
    "--set=num_episodes_per_iter=2",
    "--set=chunk_size=2",
    "--set=hidden=[8]",
    "--no_checkpoint",
    "--max_epochs=3",
]


def test_every_method_and_seed_is_in_the_csv_and_what_is_missing_stays_empty(tmp_path):
    runs = [("vpg", 1), ("cpg", 1), ("cpg", 2)]
    for alias, seed in runs:
        where = ["--logdir", str(tmp_path), "--gamename", "cartpole", "--num_workers", "0"]
        assert main(["--implementation", alias, "--seed", str(seed), *where, *TINY]) == 0
    folder = tmp_path / "cartpole" / "default"
    names = ["REINFORCE", "REINFORCE-combined", "REINFORCE-combined"]
    dirs = [folder / name / f"seed_{seed}" for name, (_, seed) in zip(names, runs, strict=True)]
    assert main(["figures", "policy-gradient", str(tmp_path / "out"), *map(str, dirs)]) == 0
    assert (tmp_path / "out.png").stat().st_size > 5_000
    rows = list(csv.DictReader((tmp_path / "out.csv").open()))
    assert [(r["method"], r["seed"], r["episode"]) for r in rows] == [
        (name, str(seed), episode)
        for name, (_, seed) in zip(names, runs, strict=True)
        for episode in ("2", "4", "6")
    ]
    assert all(r["policy_loss"] and r["mean_return"] for r in rows)
    assert [bool(r["baseline"]) for r in rows] == [False] * 3 + [True] * 6
    assert [bool(r["entropy_loss"]) for r in rows] == [False] * 3 + [True] * 6
    # the CSV reads back as what was plotted, and can stand beside another figure
    run, again = read_run(open_run(dirs[1])), read_csv(tmp_path / "out.csv").iloc[3:6]
    assert set(zip(again["method"], again["seed"], strict=True)) == {("REINFORCE-combined", "1")}
    for name in PANELS:
        np.testing.assert_allclose(again[name], run[name], rtol=1e-3)
    main(
        [
            "figures",
            "policy-gradient",
            str(tmp_path / "second"),
            str(dirs[0]),
            "--reference",
            str(tmp_path / "out.csv"),
        ]
    )
    assert len((tmp_path / "second.csv").read_text().splitlines()) == 4


def test_mean_over_seeds_ends_with_the_shortest():
    a = pd.DataFrame({"episode": [2.0, 4.0], "baseline": [1.0, 3.0]})
    b = pd.DataFrame({"episode": [1.0, 3.0, 5.0], "baseline": [0.0, 2.0, 4.0]})
    episode, mean = seed_mean([a, b], "baseline")
    assert episode.tolist() == [2.0, 4.0]
    assert mean.tolist() == [1.0, 3.0]


def test_summary_counts_full_windows_only_and_thinning_keeps_the_last_of_each_stretch():
    episode = [40.0, 80.0, 120.0, 160.0, 200.0]
    run = pd.DataFrame({"episode": episode, "mean_return": [900.0, 800.0, 5.0, 70.0, 60.0]})
    run = run.assign(run="r", method="m", seed="1")
    assert summary(run) == "m seed 1: last 60.0, best 70.0 at episode 160"
    assert thinned(run, 100)["episode"].tolist() == [80.0, 200.0]
    assert thinned(run, 100)["mean_return"].tolist() == [800.0, 60.0]
    assert thinned(run, 1)["episode"].tolist() == episode
    assert "fewer than 100 episodes" in summary(run.iloc[:2])


def test_methods_are_named_with_their_experiment_only_where_there_are_several(tmp_path):
    for exp_name, method in (("a", "AAC"), ("a", "REINFORCE"), ("b", "AAC")):
        with SummaryWriter(
            str(tmp_path / exp_name / method / "seed_1" / "logger" / "version_0")
        ) as writer:
            writer.add_scalar("time/episodes", 2, 1)
            writer.add_scalar("rollout/return_running_mean", 20, 1)
    assert read_runs([str(tmp_path / "a")])["method"].tolist() == ["AAC", "REINFORCE"]
    assert read_runs([str(tmp_path)])["method"].tolist() == ["AAC a", "REINFORCE a", "AAC b"]


def test_runs_of_other_methods_are_named_and_left_out(tmp_path, capsys):
    for method, tags in (
        ("AAC", ["time/episodes", "rollout/return_running_mean"]),
        ("UDRL", ["time/episodes"]),
    ):
        with SummaryWriter(str(tmp_path / method / "seed_1" / "logger" / "version_0")) as writer:
            for tag in tags:
                writer.add_scalar(tag, 200, 1)
    assert main(["figures", "policy-gradient", str(tmp_path / "out"), str(tmp_path)]) == 0
    said = capsys.readouterr()
    assert "AAC seed 1: last 200.0" in said.out
    assert (
        "UDRL/seed_1': it has no scalar 'rollout/return_running_mean', which policy gradients log"
        in said.err
    )


def test_what_cannot_be_read_is_named(tmp_path, capsys):
    (tmp_path / "seed_1" / "logger").mkdir(parents=True)
    assert main(["figures", "policy-gradient", str(tmp_path / "out"), str(tmp_path)]) == 2
    assert "has no scalar 'time/episodes'" in capsys.readouterr().err
    (tmp_path / "bad.csv").write_text("a,b\n1,2\n")
    with pytest.raises(
        UserError, match="expected a CSV with columns method, seed, episode, policy_loss"
    ):
        read_csv(tmp_path / "bad.csv")


def test_a_claims_csv_is_drawn_as_its_runs_are(tmp_path):
    scalars = "rollout/return_running_mean,time/episodes,train/policy_loss"
    (tmp_path / "stale.csv").write_text(f"seed,env_steps,{scalars}\n100,900,-50.5,128,3.25\n")
    about = "gamename,exp_name,implementation,preset\n100,beresheet,default,REINFORCE,exact\n"
    (tmp_path / "stale.runs.csv").write_text(f"seed,{about}")
    (row,) = read_csv(tmp_path / "stale.csv", "old").to_dict("records")
    assert (row["method"], row["seed"], row["episode"]) == ("old REINFORCE", "100", 128)
    assert (row["mean_return"], row["policy_loss"]) == (-50.5, 3.25)
    assert np.isnan(row["baseline"])
    assert np.isnan(row["entropy_loss"])
    assert (
        main(["figures", "policy-gradient", str(tmp_path / "out"), str(tmp_path / "stale.csv")])
        == 0
    )
    (tmp_path / "stale.csv").write_text(f"seed,env_steps,{scalars}\n100,900,-50.5,many,3.25\n")
    with pytest.raises(
        UserError, match=r"row 1, column time/episodes: 'many' is not a finite number"
    ):
        read_csv(tmp_path / "stale.csv")
