"""What is read from the runs of a claim: by hand, and what is refused."""

import json
import math
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from experiments.reproduce.claims import Read
from experiments.reproduce.reading import KEPT_COLUMNS, read_curve, read_kept, read_value, statistic
from lightning_rl.core.errors import UserError


def test_statistics_of_a_curve_by_hand():
    x, values = np.array([10.0, 20.0, 30.0, 40.0]), np.array([1.0, 5.0, 2.0, 6.0])
    read = {"tag": "a", "where": {}}
    assert statistic(Read(**read, last=3), x, values) == 13 / 3
    assert statistic(Read(**read, statistic="first", threshold=5.0), x, values) == 20
    assert statistic(Read(**read, statistic="first", threshold=7.0), x, values) == float("inf")
    assert statistic(Read(**read, last=2, statistic="above", threshold=5.0), x, values) == 0.5


def test_mean_curves_of_each_kind_are_kept(tmp_path):
    read = Read(table="t.csv", key="returns", keep="means", where={})
    head = "gamename,trained_on,agent,protocol,every,returns"
    curves = [
        f"cliff,additive,QL,p,5,{' '.join(str(start + n) for n in range(60))}" for start in (0, 1)
    ]
    real = f"cliff,real,QL,p,5,{' '.join(['-3'] * 60)}"
    (tmp_path / "t.csv").write_text("\n".join([head, *curves, real, ""]))
    kept = [[row[name] for name in KEPT_COLUMNS["means"]] for row in read_kept(read, tmp_path, 101)]
    middle = " ".join(f"{value:g}" for value in np.arange(1.5, 60, 2))
    assert kept == [
        ["cliff", "additive", "seed 101", "QL", "p", 101, 101, 2, 10, middle],
        ["cliff", "real", "real", "QL", "p", 101, 101, 1, 10, " ".join(["-3"] * 30)],
    ]


def test_agents_are_kept_with_the_seed_of_their_proxy(tmp_path):
    head = "gamename,trained_on,proxy,proxy_hash,agent,protocol,seed,number,return_mean,train_steps,episodes,test_returns"  # noqa: E501
    rows = [
        "cliff,SE,0a1b-SE-seed_101,ff,QL,p,101,3,-13.5,50,2,-13 -14",
        "cliff,real,real,,QL,p,101,3,-100,60,1,-100 -100",
    ]
    (tmp_path / "t.csv").write_text("\n".join([head, *rows, ""]))
    read = Read(table="t.csv", key="return_mean", keep="agents", where={})
    kept = [
        ",".join(str(row[name]) for name in KEPT_COLUMNS["agents"])
        for row in read_kept(read, tmp_path, 101)
    ]
    assert kept == [
        "cliff,SE,seed 101,QL,p,101,3,-13.5,50,2,-13 -14",
        "cliff,real,real,QL,p,101,3,-100,60,1,-100 -100",
    ]
    assert read_kept(Read(table="t.csv", key="return_mean", where={}), tmp_path, 101) == []


def test_the_best_of_a_curve_stands_beside_its_mean_alone(tmp_path):
    """A step at which it got there, or a share of its values, is in another unit."""
    (tmp_path / "t.csv").write_text("every,score\n10,1 3 2\n")
    read = {"table": "t.csv", "key": "score", "where": {}}
    assert read_value(Read(**read), [], tmp_path) == (2, 3)
    for name, headline in (("first", 20), ("above", 1)):
        value, best = read_value(Read(**read, statistic=name, threshold=2), [], tmp_path)
        assert value == headline
        assert math.isnan(best)


def curve(steps, values):
    return SimpleNamespace(
        env_steps=np.array(steps, dtype=float), value=np.array(values, dtype=float)
    )


def test_a_curve_is_thinned_but_for_its_beginning_and_its_end(monkeypatch):
    """Of 250 points each third; where another scalar has no value at a step it has none."""
    curves = {"a": curve(range(1, 251), range(250)), "b": curve([3, 4, 250], [7, 8, 9])}
    monkeypatch.setattr("lightning_rl.lab.scalars.read_scalar", lambda run, tag: curves[tag])
    rows = read_curve(["a", "b"], Path("run"))
    assert [row["env_steps"] for row in rows] == [1, 2, 3, 4, 5, *range(6, 250, 3), 250]
    assert [row["a"] + 1 for row in rows] == [row["env_steps"] for row in rows]
    assert {row["env_steps"]: row["b"] for row in rows if not math.isnan(row["b"])} == {
        3: 7,
        4: 8,
        250: 9,
    }
    rows = read_curve(["a"], Path("run"), last=4)  # a claim's value can be computed again
    assert [row["env_steps"] for row in rows[-5:]] == [246, 247, 248, 249, 250]


def test_scalars_are_those_of_the_first_run_and_reports_those_of_the_last(monkeypatch, tmp_path):
    runs = [tmp_path / "first", tmp_path / "last"]
    curves = {runs[0]: curve([10, 20, 30], [1, 5, 3]), runs[1]: curve([10], [99])}
    monkeypatch.setattr("lightning_rl.lab.scalars.read_scalar", lambda run, tag: curves[run])
    assert read_value(Read(tag="a", where={}), runs, tmp_path) == (3, 5)
    every = Read(tag="a", every=20, last=2, where={})
    assert read_value(every, runs, tmp_path)[0] == 5  # that of 20 steps alone
    assert read_value(every, runs[1:], tmp_path)[0] == 99  # too short for one
    # of one value there is no best
    assert math.isnan(read_value(Read(tag="a", where={}), runs[1:], tmp_path)[1])
    # the second value
    assert (
        read_value(Read(tag="a", statistic="first", threshold=5.0, where={}), runs, tmp_path)[0]
        == 2
    )
    for run, score in zip(runs, (1.5, 2.5), strict=True):
        run.mkdir()
        (run / "report.json").write_text(json.dumps({"score": {"mean": score, "text": "x"}}))
    assert (
        read_value(Read(report="report.json", key="score.mean", where={}), runs, tmp_path)[0] == 2.5
    )
    for key, words in (
        ("score.sd", "has no 'score.sd'"),
        ("score.text", "'score.text' is 'x', no number"),
    ):
        with pytest.raises(UserError, match=words):
            read_value(Read(report="report.json", key=key, where={}), runs, tmp_path)


@pytest.mark.parametrize("column", ["trained_on", "agent", "protocol"])
def test_the_mean_over_rows_of_two_kinds_is_refused(column, tmp_path):
    rows = [
        {"trained_on": "real", "agent": "QL", "protocol": "p", "score": score}
        for score in ("1", "3")
    ]
    read = Read(table="t.csv", key="score", where={})

    def value():
        text = "\n".join(",".join(row.values()) for row in rows)
        (tmp_path / "t.csv").write_text(f"trained_on,agent,protocol,score\n{text}\n")
        return read_value(read, [], tmp_path)[0]

    assert value() == 2
    rows[1][column] = "other"
    with pytest.raises(
        UserError, match=f"rows of {column} '.*', '.*' count; say in read.where of the claim which"
    ):
        value()


def test_the_text_of_what_is_read_says_what_the_number_depends_on():
    read = {"table": "t.csv", "key": "returns", "where": {"agent": "QL"}}
    assert (
        Read(**read, keep="means").text
        == Read(**read).text
        == "table: t.csv; key: returns; agent: QL"
    )
    first = Read(**read, statistic="first", threshold=-12.0)
    assert first.text == "table: t.csv; key: returns; statistic: first; threshold: -12.0; agent: QL"
    assert Read(tag="a", last=20, where={}).text == "tag: a; last: 20"
    assert (
        Read(tag="a", statistic="above", threshold=1.0, where={}).text
        == "tag: a; statistic: above; threshold: 1.0"
    )
