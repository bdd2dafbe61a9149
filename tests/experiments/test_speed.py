"""``lightning-rl speed``: who is behind whom, and which races count."""

from argparse import Namespace

import pytest

from experiments.speed import agents, peers, records, show
from lightning_rl.core.errors import UserError


def measured(library, ms, learned="1", **more):
    values = {"ms": ms, "ms_low": ms, "ms_high": ms, "over": "1", "over_low": "1", "over_high": "2"}
    named = {"agent": "PPO", "gamename": "cartpole", "seeds": "1", "library": library}
    of_run = {"date": "2026-11-28 10:00", "commit": "abc", "processor": "CPU", "load": "0.1"}
    rest = {"compile_s": "", "return_mean": "", "learned": learned, "needed": "400"}
    return {**values, **named, **of_run, **rest, "version": "", "differs": "", **more}


def test_those_behind_the_fastest_are_named_and_those_that_do_not_learn_enough():
    rows = [
        measured("ours", "0.3"),
        measured("rejax", "0.0301", "0"),
        measured("Stable-Baselines3", "0.45"),
        measured("limit", "0.001", ""),
        measured("ours", "2", seeds="8"),
    ]
    assert agents(rows)[1:] == [
        (
            *("PPO, cartpole", "1", "0.3", "0.0301, ends below 400", "–", "0.45"),
            "ours 9.97, Stable-Baselines3 15",
        ),
        ("PPO, cartpole", "8", "2", "–", "–", "–", "–"),
    ]


def test_all_that_was_measured_of_a_library():
    row = measured("sbx", "1.234", version="0.28", compile_s="5.04", return_mean="456.7")
    assert peers([row])[1] == (
        *("PPO, cartpole", "1", "sbx 0.28", "1.23", "1 (1 – 2)", "5.04", "457"),
        *("1 of 1 reach 400", "–", "2026-11-28, abc, CPU, load 0.1"),
    )


def race(date, outcomes, **more):
    rule = {"gamename": "lunarlander", "return": "250.0", "evaluations": "5", "episodes": "10"}
    where = {"date": date, "commit": "abc", "processor": "CPU", "cores": "2"}
    what = {"implementation": "RCP-A", "flags": ""}
    return [
        {**rule, **where, **what, **more, "outcome": outcome, "seconds": seconds}
        for outcome, seconds in outcomes
    ]


def test_the_fastest_race_is_the_record_and_a_seed_that_does_not_hold_the_return_costs_it():
    reached = [("reached", str(seconds)) for seconds in (200.4, 300.6, 250, 210, 220)]
    rows = [
        *race("2026-01-01 10:00", reached),
        *race("2026-01-02 10:00", [*reached[:4], ("not reached", "100.0")]),
        *race("2026-01-03 10:00", [("reached", "290")] * 5, flags="--num_workers 2"),
        *race("2026-01-04 10:00", [("reached", "10")] * 4),
        *race("2026-01-05 10:00", [("reached", "10")] * 5, **{"return": "200.0"}),
        *race("2026-01-06 10:00", [("reached", "10")] * 4 + [("failed: why", "")]),
    ]
    assert [row[:4] for row in records(rows)[1:]] == [
        ("290", "5 of 5", "RCP-A --num_workers 2", "2026-01-03"),
        ("301", "5 of 5", "RCP-A", "2026-01-01"),
        ("–", "4 of 5", "RCP-A", "2026-01-02"),
        ("–", "4 of 5", "RCP-A", "2026-01-06"),
    ]


@pytest.mark.parametrize("text", ["a,b\n1,2\n", "agent,gamename,seeds,library,ms\nA,b,1,ours,x\n"])
def test_another_table_is_refused(text, tmp_path):
    (tmp_path / "other.csv").write_text(text)
    with pytest.raises(UserError, match=r"other\.csv' is no table of speeds"):
        show(Namespace(table="agents", csv=tmp_path / "other.csv"))
