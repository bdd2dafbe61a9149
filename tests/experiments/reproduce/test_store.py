"""The CSVs of a claim."""

import dataclasses
import math

import numpy as np
import pytest
from helpers.claims import claim_of

from experiments.reproduce import store
from experiments.reproduce.claims import Read
from experiments.reproduce.entries import lost_seeds
from experiments.reproduce.reading import read_kept
from experiments.reproduce.runs import Job, Outcome, shown_command
from lightning_rl.cli import main
from lightning_rl.core.errors import UserError


def test_curves_of_one_training_are_kept_once(tmp_path):
    owner = claim_of(None)
    sharer = dataclasses.replace(owner, csv="results/b.csv", curves_csv="results/a.csv")

    def add(claim, seed, value):
        about = {
            **dict.fromkeys(store.RUN_COLUMNS, "1"),
            "seed": seed,
            "command": shown_command(claim, seed),
        }
        about["read"] = claim.read.text
        curve = [{"env_steps": 1, "a": value}]
        store.add(tmp_path, Outcome(Job("x", claim, seed, "c", tmp_path, main, None), about, curve))

    add(owner, 100, 1.0)
    add(sharer, 100, 2.0)  # of a training made again elsewhere
    add(sharer, 101, 3.0)
    assert [row["a"] for row in store.read_curves(tmp_path, owner)] == ["1.0", "3.0"]
    assert store.read_curves(tmp_path, sharer) == store.read_curves(tmp_path, owner)
    assert [row["seed"] for row in store.read_runs(tmp_path, sharer)] == ["100", "101"]
    assert [row["seed"] for row in store.read_runs(tmp_path, owner)] == ["100"]
    assert sorted(path.name for path in (tmp_path / "results").glob("*.csv")) == [
        "a.csv",
        "a.runs.csv",
        "b.runs.csv",
    ]
    (tmp_path / "results" / "a.csv").unlink()
    assert store.read_runs(tmp_path, owner) == []  # its row is made again, and nothing else
    assert len(store.read_runs(tmp_path, sharer)) == 2


def test_what_is_kept_of_tables_is_replaced_seed_by_seed_and_made_again_where_it_is_gone(tmp_path):
    read = Read(table="t.csv", key="returns", keep="means", where={})
    claim = dataclasses.replace(claim_of(None, seeds="999-1000"), read=read, curves=[])
    for seed, value in (
        (1000, 1),
        (999, 2),
        (1000, 3),
        (999, 4),
    ):  # the third in place of the first, the fourth of the second
        job = Job("table", claim, seed, "c", tmp_path, main, None)
        job.folder.mkdir(parents=True, exist_ok=True)
        (job.folder / "t.csv").write_text(
            f"gamename,trained_on,agent,protocol,every,returns\ncliff,additive,QL,p,5,{value}\n"
        )
        about = {
            **dict.fromkeys(store.RUN_COLUMNS, "1"),
            "seed": seed,
            "command": shown_command(claim, seed),
            "read": read.text,
        }
        store.add(tmp_path, Outcome(job, about, [], kept=read_kept(read, job.folder, seed)))
    path = tmp_path / "results" / "a.means.csv"
    first, *rows = path.read_text().splitlines()
    assert first == "gamename,trained_on,proxy,agent,protocol,seed,number,agents,every,returns"
    assert rows == [
        f"cliff,additive,seed {seed},QL,p,{seed},{seed},1,5,{value}"
        for seed, value in ((999, 4), (1000, 3))
    ]
    assert len(store.read_runs(tmp_path, claim)) == 2
    path.unlink()
    assert store.read_runs(tmp_path, claim) == []


@pytest.mark.parametrize(
    ("read", "lost"),
    [
        ({"tag": "a", "last": 2}, ["101"]),  # 2.5 of 1, 2, 3; and 2
        ({"tag": "a", "statistic": "first", "threshold": 2.5}, ["100", "101"]),  # the third
        ({"table": "t.csv", "key": "returns", "keep": "means", "last": 2}, ["101"]),
        (
            {"table": "t.csv", "key": "return_mean", "keep": "agents", "where": {"agent": "QL"}},
            ["101"],
        ),
        # nothing is kept that it could be computed from
        ({"table": "t.csv", "key": "return_mean"}, []),
    ],
)
def test_seeds_whose_values_what_is_kept_does_not_give(tmp_path, read, lost):
    read = Read(**{"where": {}, "rows": [], **read})
    claim = dataclasses.replace(claim_of(None), read=read, curves=["a"] if read.tag else [])
    means = [{"agent": "QL", "every": 5, "returns": "1 2 3"}]
    agents = [
        {"agent": "QL", "return_mean": 2.0},
        {"agent": "QL", "return_mean": 3.0},
        {"agent": "PPO", "return_mean": 9.0},
    ]
    rows = {"means": means, "agents": agents}.get(str(read.keep), [])
    curve = [{"env_steps": step, "a": float(step)} for step in (1, 2, 3)] if read.tag else []
    for seed, value in ((100, 2.5), (101, 2.0)):
        about = {
            **dict.fromkeys(store.RUN_COLUMNS, "1"),
            "seed": seed,
            "command": shown_command(claim, seed),
        }
        about |= {"read": read.text, "value": value}
        kept = [
            {**dict.fromkeys(store.KEPT_COLUMNS[str(read.keep)], "x"), "seed": seed, **row}
            for row in rows
        ]
        store.add(
            tmp_path,
            Outcome(Job("x", claim, seed, "c", tmp_path, main, None), about, curve, kept=kept),
        )
    assert lost_seeds(tmp_path, claim) == lost


def test_numbers_are_as_short_as_gives_them_back(tmp_path):
    assert [store.shortest(value) for value in (float(np.float32(0.1)), float("nan"), 3, "x")] == [
        "0.1",
        "",
        "3",
        "x",
    ]
    row = {"seed": "100", "best": "", "value": "x"}
    assert math.isnan(store.number(row, "best", tmp_path))
    with pytest.raises(
        UserError, match="seed 100: value is 'x', no number; mend or remove the file"
    ):
        store.number(row, "value", tmp_path)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("seed,env_steps\n100,1\n", "lacks the column 'a'"),
        ("seed,env_steps,a\n100,1\n", "has a row that is not whole"),
    ],
)
def test_a_damaged_file_is_named(content, says, tmp_path):
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "a.csv").write_text(content)
    with pytest.raises(
        UserError, match=f"a.csv' {says}; remove the file, and its runs are made again"
    ):
        store.read_curves(tmp_path, claim_of(None))
