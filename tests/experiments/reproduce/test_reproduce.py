"""``lightning-rl reproduce`` in a small repository: what is run, what is stored, what the ledger
says of it.
"""

import csv
import dataclasses
import json
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from argparse import Namespace
from pathlib import Path
from types import SimpleNamespace

import crash
import numpy as np
import pytest
from helpers.claims import entry
from helpers.runs import die
from PIL import Image

from experiments.reproduce import store, verify
from experiments.reproduce.checkout import MANIFEST, PAGE, commit_of, require_clean, require_commit
from experiments.reproduce.claims import EarlierSeeds, Goal
from experiments.reproduce.command import ROOT, lacking, missing, possible, reproduce
from experiments.reproduce.entries import (
    MET,
    NOT_MET,
    difference_of_claims,
    read_sweeps,
    value_of_claim,
)
from experiments.reproduce.export import scores
from experiments.reproduce.ledger import _earlier_seeds, counts, ledger
from experiments.reproduce.manifest import load_claims
from experiments.reproduce.reading import read_rows
from experiments.reproduce.runs import Job, Outcome, Step, _run_step, shown_command
from lightning_rl.cli import main
from lightning_rl.cli.tools import use
from lightning_rl.core import files
from lightning_rl.core.errors import UserError
from lightning_rl.functional.intervals import difference_interval
from lightning_rl.methods.agents import AgentMethod

OURS = load_claims(ROOT / MANIFEST).claims
CLAIMS = """
tolerance: 0.05
_tiny: &tiny
  family: Tiny runs
  task: a tiny run
  unit: return
  published: {value: -12, text: a number, source: a paper,
              here: {method: a smaller cliff, budget: none, evaluation: none, seeds: none, schedule: none}}
  seeds: 100-101
  cpu_hours: 0.01
  tried: 7
claims:
  table:
    <<: *tiny
    goal: {mean: -100000, every: -100000}
    commands: [train --implementation QL --gamename cliff --set steps_per_epoch=40]
    budget: {max_env_steps: 400}
    read: {tag: rollout/return_mean, last: 2}
    curves: [rollout/return_mean, rollout/length_mean]
    csv: results/claims/table.csv
    smoke: {max_env_steps: 80}
    earlier_seeds:
      - {seeds: "90, 91", values: [-20.0, -10.0, .inf], then: a smaller cliff}
      - {seeds: "92", values: [], then: nothing}
  report:
    <<: *tiny
    goal: {mean: 100000}
    commands:
      - train --implementation SARSA --gamename cliff --set steps_per_epoch=40
      - eval {run} --episodes 2
    budget: {max_env_steps: 120}
    read: {report: evaluation.json, key: sampled.return.mean}
    curves: [rollout/return_mean]
    csv: results/claims/report.csv
    smoke: {max_env_steps: 80}
    smoke_flags: --episodes 1
elsewhere:
  speed: {task: how fast, goal: fast, see: results/speed.md}
"""  # noqa: E501


def git(root, *words):
    command = ["git", "-c", "user.name=a", "-c", "user.email=a@b", *words]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def commit(root):
    git(root, "add", "-A")
    git(root, "commit", "-qm", "now", "--allow-empty")
    return git(root, "rev-parse", "HEAD")


@pytest.fixture
def checkout(tmp_path):
    git(tmp_path, "init", "-q")
    (tmp_path / "results").mkdir()
    (tmp_path / MANIFEST).write_text(CLAIMS)
    (tmp_path / ".gitignore").write_text("exp_dir/\n*.lock\n")
    commit(tmp_path)
    return tmp_path


def again(root, *ids, run=main, **flags):
    given = {"list": False, "verify": None, "smoke": False, "ledger": False, "figures": False}
    given |= {"jobs": 1, "executor": "serial", "ray_address": None}
    reproduce(Namespace(ids=list(ids), **{**given, **flags}), run, root)


def counting(calls, stop_at=None):
    def run(words, program):
        calls.append((words[0], words[words.index("--seed") + 1] if "--seed" in words else ""))
        if len(calls) == stop_at:
            return 143  # as a run that SIGTERM has ended
        return main(words, program)

    return run


def test_a_value_near_zero_has_no_wider_tolerance():
    assert verify._within(-0.0163, -0.016, 0.05)
    assert not verify._within(0.065, 0.016, 0.05)
    assert not verify._within(-0.04, 0.009, 0.05)
    nan = float("nan")
    assert verify._within(nan, nan, 0.05)  # neither has a value there
    assert not verify._within(nan, 1.0, 0.05)


def test_a_value_may_be_where_a_further_seed_would_be():
    """Beside 1, 2 and 6, of 99 % of further seeds: 3 and 30.3 to both sides."""
    stored = [1.0, 2.0, 6.0, float("inf")]
    assert [verify._as_another_seed(now, stored) for now in (-28.0, 33.0, -27.0)] == [
        False,
        True,
        True,
    ]
    assert not verify._as_another_seed(34.0, stored)
    assert not verify._as_another_seed(2.0, stored[:2])  # of two nobody knows


def test_how_likely_a_false_alarm_is():
    assert "never refused" in verify.false_alarm(True, 25, 5)
    assert "not known: that takes 3 stored seeds" in verify.false_alarm(False, 25, 2)
    assert "at most 5 of 100 correct runs are refused" in verify.false_alarm(False, 5, 3)
    assert "if scores of seeds are normal" in verify.false_alarm(False, 5, 3)
    assert "at most 100 of 100" in verify.false_alarm(False, 150, 3)


def test_the_first_five_points_of_each_seed_are_compared():
    rows = [
        {"seed": seed, "env_steps": str(step)}
        for seed in ("100", "101", "102")
        for step in range(7)
    ]
    found = verify._first_points(rows, ["100", "102"])
    assert {seed: [row["env_steps"] for row in curve] for seed, curve in found.items()} == {
        seed: ["0", "1", "2", "3", "4"] for seed in ("100", "102")
    }


def test_what_is_missing_is_run_stored_and_written_down(checkout, capsys):
    calls, began = [], time.process_time()
    head = commit(checkout)
    again(checkout, run=counting(calls))
    spent = (time.process_time() - began) / 3600
    assert calls == [
        ("train", "100"),
        ("train", "101"),
        ("train", "100"),
        ("eval", ""),
        ("train", "101"),
        ("eval", ""),
    ]
    claim = load_claims(checkout / MANIFEST).claims["table"]
    rows = store.read_runs(checkout, claim)
    assert [row["seed"] for row in rows] == ["100", "101"]
    assert 0 < sum(float(row["cpu_hours"]) for row in rows) < spent
    for row in rows:
        assert (row["commit"], len(row["config_hash"])) == (head[:12], 12)
        assert "torch" in row["versions"]
        assert "," in row["machine"]
        assert row["command"].startswith("lightning-rl train --implementation QL --gamename cliff")
        assert row["command"].endswith(f"--seed {row['seed']} --set max_env_steps=400")
        curve = [
            float(each["rollout/return_mean"])
            for each in store.read_curves(checkout, claim)
            if each["seed"] == row["seed"]
        ]
        # the last two values are the headline
        assert float(row["value"]) == pytest.approx(np.mean(curve[-2:]))
        assert float(row["best"]) == max(curve)
    page = (checkout / PAGE).read_text()
    assert (
        "|  | claims | met | of these after earlier seeds | not met | reported | some seeds | not "
        "run yet |" in page
    )
    assert "| **all** | 2 | 1 | 1 | 1 | 0 | 0 | 0 |" in page
    assert "| `table` | -12 | method: a smaller cliff |" in page
    earlier = "90, 91: -15 (-20 to -10), 1 never; 92: not kept"
    goal = "mean ≥ -100000, every seed ≥ -100000"
    met = "**met** (after earlier seeds)"
    assert f"| {met} | {goal} | 100-101 | {earlier} | 7 | return | {rows[0]['machine']} |" in page
    assert (
        "  Earlier seeds 90, 91: -15 (-20 to -10), 1 never; then: a smaller cliff.\n  Earlier "
        "seeds 92: not kept; then" in page
    )
    assert f"  Made at commit {head[:12]}.\n" in page
    assert "results/speed.md" in page

    # nothing is missing, so nothing is run; what is deleted is made again from what its run has
    # left, and nothing else
    calls.clear()
    before = {
        path.name: path.read_bytes() for path in (checkout / "results" / "claims").glob("*.csv")
    }
    again(checkout, run=counting(calls))
    assert calls == []
    (checkout / claim.csv).unlink()
    again(checkout, run=counting(calls))
    assert calls == [("train", "100"), ("train", "101")]
    after = {
        path.name: path.read_bytes() for path in (checkout / "results" / "claims").glob("*.csv")
    }
    assert after["table.csv"] == before["table.csv"]
    assert after["report.runs.csv"] == before["report.runs.csv"]
    calls.clear()
    runs = store.runs_path(checkout, claim)
    runs.write_text(
        "".join(line for line in runs.read_text().splitlines(True) if not line.startswith("101,"))
    )
    again(checkout, run=counting(calls))
    assert calls == [("train", "101")]
    again_there = store.read_runs(checkout, claim)[1]
    # what was left of a run took hardly any
    assert (again_there["value"], again_there["cpu_hours"]) == (rows[1]["value"], "")

    # the first epochs again: equal; an altered curve is found
    capsys.readouterr()
    again(checkout, verify="")
    assert re.search("table .* never ", capsys.readouterr().out)
    again(checkout, verify="table")
    said = capsys.readouterr().out
    assert (
        "3 points up to step 120 equal the stored curve digit for digit\n9 of 9 values have the "
        "same digits\nOn the same processor, with these versions and this compiled code, a correct "
        "run is never refused.\n" in said
    )
    again(checkout, verify="")
    assert re.search(r"9 of 9 .* digit for digit", capsys.readouterr().out)
    path = checkout / claim.csv
    content = path.read_text()
    first = next(csv.DictReader(content.splitlines()))["rollout/return_mean"]
    path.write_text(content.replace(f",{first},", f",{float(first) * 1.001},", 1))
    with pytest.raises(
        UserError, match=r"table, seed 100: rollout/return_mean at step 40 is .* digit for digit"
    ):
        again(checkout, verify="table")

    # a later commit is said only where it changed what the agents do
    for name, stale in (
        ("cli/flags.py", ""),
        ("agents/tabular.py", "stale"),
        ("nets/fused.py", "stale, compiled"),
    ):
        changed = checkout / "lightning_rl" / name
        changed.parent.mkdir(parents=True, exist_ok=True)
        changed.touch()
        assert commit(checkout) != head
        again(checkout, ledger=True)
        assert f"| {rows[0]['machine']} | {stale} |" in (checkout / PAGE).read_text()
    assert f"commit {head[:12]}, since when 2 of the" in (checkout / PAGE).read_text()

    # elsewhere, or since compiled code has changed, within the tolerance
    again(checkout, verify="table")
    said = capsys.readouterr().out
    assert "with other versions, or since compiled code has changed" in said
    runs = store.runs_path(checkout, claim)
    runs.write_text(runs.read_text().replace("python 3", "python 2"))
    again(checkout, verify="table")
    said = capsys.readouterr().out
    assert "within 5%, or as another seed may be, on another machine" in said
    assert (
        "8 of 9 values have the same digits, 9 are within 5%; the others are as another seed may be"
        in said
    )
    path.write_text(content.replace(f",{first},", f",{float(first) * 1.2},", 1))
    with pytest.raises(UserError, match=r"at step 40 is .* within 5%, or as another seed may be"):
        again(checkout, verify="table")
    again(checkout, verify="")
    assert re.search(r"8 of 9 .* refused", capsys.readouterr().out)
    again(checkout, ledger=True)
    assert re.search(r"Last verified 20\S+ on .*: refused\.", (checkout / PAGE).read_text())

    # with another budget, or read otherwise, it is another claim: its seeds are missing
    (checkout / MANIFEST).write_text(CLAIMS.replace("max_env_steps: 400", "max_env_steps: 440"))
    assert store.read_runs(checkout, load_claims(checkout / MANIFEST).claims["table"]) == []
    (checkout / MANIFEST).write_text(CLAIMS.replace("last: 2", "last: 3"))
    assert store.read_runs(checkout, load_claims(checkout / MANIFEST).claims["table"]) == []


def test_a_killed_reproduction_goes_on(checkout):
    calls = []
    with pytest.raises(KeyboardInterrupt):
        again(checkout, "table", run=counting(calls, stop_at=2))
    assert calls == [("train", "100"), ("train", "101")]
    calls.clear()
    again(checkout, "table", run=counting(calls))
    assert calls == [("train", "101")]


def test_a_kill_at_any_moment_loses_at_most_one_checkpoint_interval(checkout, monkeypatch):
    """At every so many of the calls that write: of runs, of their checkpoints, of the claim's
    CSVs.
    """
    every, rounds = 2, 4
    settings = "steps_per_epoch=40"
    (checkout / MANIFEST).write_text(
        CLAIMS.replace(settings, f"{settings} --set checkpoint_interval={every}")
    )
    commit(checkout)
    claim, epochs, train_epoch = (
        load_claims(checkout / MANIFEST).claims["table"],
        [],
        AgentMethod.train_epoch,
    )
    monkeypatch.setattr(
        AgentMethod,
        "train_epoch",
        lambda method, batch: epochs.append(1) or train_epoch(method, batch),
    )
    monkeypatch.setitem(crash.FAMILIES, "reproduce", lambda folder: again(folder, "table") or 0)

    def results():
        values = [
            (row["seed"], row["value"], row["best"], row["config_hash"])
            for row in store.read_runs(checkout, claim)
        ]
        return values, (checkout / claim.csv).read_bytes()

    def attempt(fault=None):
        disk = crash.Disk(fault)
        return crash.attempt("reproduce", checkout, disk, random.Random())[0], len(disk.calls)

    with crash.quick():
        code, calls = attempt()
        expected, whole = results(), len(epochs)
        assert (code, whole) == (0, 20)
        for number in range(rounds):
            shutil.rmtree(checkout / "results" / "claims")
            shutil.rmtree(checkout / "exp_dir")
            epochs.clear()
            assert attempt(crash.Fault("kill", calls * number // rounds + 3))[0] is None
            assert attempt()[0] == 0
            assert results() == expected
            assert len(epochs) <= whole + every


def test_claims_prints_what_is_published_and_measured_and_figures_draws_the_pictures(
    checkout, monkeypatch, capsys
):
    (checkout / MANIFEST).write_text(
        CLAIMS + "figures:\n  results/before.png: curves results/before.csv --title t\n"
    )
    rows = (
        "A,seed_1,9",
        "A,seed_1,1",
        "A,seed_1,3",
        "A,seed_2,5",
        "A,seed_2,7",
        "B,seed_1,99",
        "A,mean,50",
    )
    lines = [f"cliff,{10 * i},{row}" for i, row in enumerate(rows)]
    (checkout / "results" / "before.csv").write_text(
        "\n".join(["gamename,env_steps,group,run,value", *lines, ""])
    )
    monkeypatch.chdir(checkout)
    use(["claims", "table"])
    *_, row = capsys.readouterr().out.splitlines()
    goal = "mean ≥ -100000, every seed ≥ -100000"
    assert row == (
        f"| a tiny run | -12 | method: a smaller cliff | not run yet | {goal} | not run yet | "
        "`table` |"
    )
    use(["claims", "--brief", "table"])
    *_, row = capsys.readouterr().out.splitlines()
    assert row.startswith("| [a tiny run](results.md#table) |")
    assert row.endswith(f"| 0 | -12 | method | {goal}: not run yet |")
    assert value_of_claim("table", "published") == -12
    with pytest.raises(UserError, match="it may not be measured yet"):
        value_of_claim("table", "mean")
    commit(checkout)
    again(checkout, "table")
    capsys.readouterr()
    use(["claims", "table"])
    met = "**met** (after earlier seeds)"
    assert f", seeds 100-101 | {goal} | {met} | `table` |" in capsys.readouterr().out
    claims = {"table": load_claims(checkout / MANIFEST).claims["table"]}
    values = [float(each["value"]) for each in store.read_runs(checkout, claims["table"])]
    assert value_of_claim("table", "mean") == pytest.approx(np.mean(values))
    assert value_of_claim("table", "seeds") == 2
    use(["claims", "table", "--export", "out"])
    of_method = json.loads(Path("out", "rliable.json").read_text())["QL"]
    assert of_method == {"tasks": ["cliff"], "scores": [[value] for value in values]}
    curve = list(csv.DictReader(Path("out", "openrlbenchmark.csv").read_text().splitlines()))
    assert {row["seed"] for row in curve} == {"100", "101"}
    assert curve[0]["env_id"] == "cliff"
    assert float(curve[-1]["charts/episodic_return"]) == pytest.approx(
        float(store.read_curves(checkout, claims["table"])[-1]["rollout/return_mean"])
    )
    claims["other"] = claims["table"]
    with pytest.raises(UserError, match="claim 'other': another one is of QL on cliff"):
        scores(claims, checkout)
    with pytest.raises(UserError, match="claim 'report' has no measured seed"):
        use(["claims", "report", "--export", "out"])
    assert [
        difference_of_claims("table", "table", what) for what in ("mean", "low", "high")
    ] == pytest.approx(list(map(float, difference_interval(values, values))))
    with pytest.raises(UserError, match="'table' less 'report' has no 'low' to be printed"):
        difference_of_claims("table", "report", "low")

    # the manifest's pictures: small, and nothing beside them
    again(checkout, figures=True)
    assert Image.open(checkout / "results" / "before.png").mode == "P"
    assert sorted(path.name for path in (checkout / "results").iterdir()) == [
        "before.csv",
        "before.png",
        "claims",
        "claims.yaml",
        "code.csv",
    ]


@pytest.mark.parametrize(
    ("key", "floor", "shown"), [("error", 5.9841, "5.98"), ("error_share", 0.0398942, "0.04")]
)
def test_beside_an_error_of_obedience_stand_what_chance_leaves_of_it_and_the_worst_command(
    tmp_path, key, floor, shown
):
    """sqrt(2 / pi) times sds of 5 and 10 of a mean, 3 and 12; over ranges of 100 and 300."""
    read = (
        "    read: {report: sweep.json, key: KEY, rows: [commanded, obtained_mean, "
        "obtained_sd, episodes]}\n    curves: []\n"
    )
    before = CLAIMS[
        CLAIMS.index("    read: {report") : CLAIMS.index("    csv: results/claims/report")
    ]
    (tmp_path / "claims.yaml").write_text(CLAIMS.replace(before, read.replace("KEY", key)))
    claim = load_claims(tmp_path / "claims.yaml").claims["report"]
    assert read_sweeps(tmp_path, claim) is None
    (tmp_path / claim.csv).parent.mkdir(parents=True)
    rows = ["100,-50,0,50,100", "100,50,44,100,100", "101,-100,-90,30,100", "101,200,90,120,100"]
    (tmp_path / claim.csv).write_text(
        "\n".join(["seed,commanded,obtained_mean,obtained_sd,episodes", *rows, ""])
    )
    found = read_sweeps(tmp_path, claim)
    assert found.floor == pytest.approx(floor, rel=1e-4)
    assert (found.seed, found.asked, found.obtained, found.error) == (101, 200, 90, 110)
    assert found.chance == f"chance alone: {shown}"
    assert found.worst == "worst: seed 101 asked for a return of 200.0 obtains 90.0"
    slope = dataclasses.replace(claim, read=dataclasses.replace(claim.read, key="slope"))
    assert read_sweeps(tmp_path, slope) is None  # what chance leaves of an error is no slope


def test_rows_of_a_report_are_kept_for_figures(tmp_path):
    rows = [
        {"commanded": -50.0, "obtained_mean": 0.1, "obtained_sd": 2.0},
        {"commanded": 50.0, "obtained_mean": 44.0},
    ]
    (tmp_path / "sweep.json").write_text(json.dumps({"error": 28.05, "rows": rows}))
    before, after = (
        CLAIMS[CLAIMS.index("    read: {report") : CLAIMS.index("    csv: results/claims/report")],
        "    curves: []\n",
    )
    after += "    read: {report: sweep.json, key: error, rows: [commanded, obtained_mean]}\n"
    (tmp_path / "claims.yaml").write_text(CLAIMS.replace(before, after))
    claim = load_claims(tmp_path / "claims.yaml").claims["report"]
    about = {
        **dict.fromkeys(store.RUN_COLUMNS, "x"),
        "seed": 100,
        "value": 28.05,
        "command": shown_command(claim, 100),
    }
    about["read"] = claim.read.text
    job = Job("report", claim, 100, "c", tmp_path, main, None)
    store.add(tmp_path, Outcome(job, about, read_rows(claim.read, [tmp_path])))
    head, *kept = (tmp_path / claim.csv).read_text().splitlines()
    assert head == "seed,commanded,obtained_mean"
    assert kept == ["100,-50.0,0.1", "100,50.0,44.0"]
    assert [row["value"] for row in store.read_runs(tmp_path, claim)] == ["28.05"]
    (tmp_path / claim.csv).unlink()  # a value whose picture cannot be drawn again is measured again
    assert store.read_runs(tmp_path, claim) == []
    with pytest.raises(
        UserError, match=r"has no rows of commanded, obtained_median; mend read.rows"
    ):
        read_rows(
            dataclasses.replace(claim.read, rows=["commanded", "obtained_median"]), [tmp_path]
        )
    # agents on the real task alone have no run directory
    assert read_rows(dataclasses.replace(claim.read, rows=[]), []) == []


def test_claims_share_their_trainings_and_evaluations(checkout, monkeypatch, capsys):
    text = CLAIMS[CLAIMS.index("  report:") : CLAIMS.index("elsewhere:")]
    other = (
        text.replace("report:", "other:", 1)
        .replace("report.csv", "other.csv")
        .replace("sampled", "greedy")
    )
    (checkout / MANIFEST).write_text(CLAIMS.replace("elsewhere:", f"{other}elsewhere:"))
    commit(checkout)
    calls, epochs, train_epoch = [], [], AgentMethod.train_epoch
    monkeypatch.setattr(
        AgentMethod,
        "train_epoch",
        lambda method, batch: epochs.append(1) or train_epoch(method, batch),
    )
    again(checkout, "report", "other", run=counting(calls))
    assert calls == [
        *[("train", "100"), ("eval", ""), ("train", "101"), ("eval", "")],
        ("train", "100"),
        ("train", "101"),
    ]
    assert len(epochs) == 2 * 3  # of two seeds; the others find theirs done
    text = capsys.readouterr().out
    assert "4 runs of 2 claims are missing: about 0.02 CPU-hours\n" in text
    assert "again" not in text
    assert (
        "0.01 CPU-hours expected after the trainings of `report` (0.005 a seed more"
        in (checkout / PAGE).read_text()
    )

    # where the run directories are gone, the training of a finished claim has to be made again, and
    # this is said
    shutil.rmtree(checkout / "exp_dir")
    store.runs_path(checkout, load_claims(checkout / MANIFEST).claims["other"]).unlink()
    again(checkout, "other")
    said = (
        "and the trainings of report again, whose run directories are not here: seeds 100, "
        "101, about 0.01 CPU-hours\n"
    )
    assert said in capsys.readouterr().out
    assert len(epochs) == 2 * 2 * 3


def test_evidence_is_of_a_commit(checkout, capsys):
    (checkout / MANIFEST).write_text(CLAIMS + "\n")
    with pytest.raises(
        UserError, match=r"'results/claims.yaml' is not committed; commit or stash it"
    ):
        again(checkout, "table")
    commit(checkout)
    (checkout / "lightning_rl").mkdir()
    (checkout / "lightning_rl" / "new.py").write_text("")
    with pytest.raises(UserError, match=r"'lightning_rl/new.py' is not committed"):
        again(checkout, "table")
    with pytest.raises(UserError, match=r"'lightning_rl/new.py' is not committed"):
        require_commit(checkout, commit_of(checkout))
    (checkout / "lightning_rl" / "new.py").unlink()
    (checkout / "notes.txt").write_text("mine")

    def moved(words, program):
        commit(checkout)
        return main(words, program)

    with pytest.raises(
        UserError, match=r"2 of 2 runs failed.* was at commit .* when this began and is no longer"
    ):
        again(checkout, "table", run=moved)
    assert store.read_runs(checkout, load_claims(checkout / MANIFEST).claims["table"]) == []


def test_what_this_command_writes_is_no_change_of_the_checkout(checkout):
    for path in (PAGE, "results/a.csv", "notes.md"):
        files.write_text(checkout / path, "before")
    commit(checkout)
    for path in (PAGE, "results/a.csv"):
        files.write_text(checkout / path, "after")
    require_clean(checkout)
    for path in (MANIFEST, "notes.md"):
        files.write_text(checkout / path, "after")
    with pytest.raises(UserError, match=r"and 1 more are not committed"):
        require_clean(checkout)


def test_an_evaluation_that_failed_is_not_done(tmp_path):
    codes = [2, 0]
    job = SimpleNamespace(folder=tmp_path, main=lambda words, program: codes.pop(0))
    step = Step(["eval"], tmp_path, 100, done=tmp_path / ".a.done")
    (tmp_path / "log.txt").write_text("error: no such luck\n")
    with pytest.raises(UserError, match=r"^no such luck$"):
        _run_step(job, step)
    for _ in range(2):  # the second finds it done
        _run_step(job, step)
    assert codes == []


def test_smoke_measures_all_claims_and_touches_no_result(checkout, capsys, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(checkout / "exp_dir"))
    (checkout / "exp_dir").mkdir()
    # a dirty tree is no obstacle
    (checkout / MANIFEST).write_text(CLAIMS.replace("cpu_hours: 0.01", "cpu_hours: 0.03"))
    again(checkout, smoke=True)
    page = capsys.readouterr().out.splitlines()[-1].removeprefix("tiny budgets, no evidence: ")
    assert "| **all** | 2 | 0 | 0 | 0 | 0 | 2 | 0 |" in Path(page).read_text()  # one seed of two
    assert not (checkout / "results" / "claims").exists()
    assert not (checkout / PAGE).exists()
    assert not (Path(page).parents[1] / "exp_dir").exists()


def test_claims_that_this_machine_cannot_run_are_left_out_unless_they_are_asked_for(
    checkout, capsys, monkeypatch
):
    monkeypatch.setitem(sys.modules, "stable_baselines3", None)
    there = CLAIMS.replace(
        "train --implementation QL --gamename cliff",
        "baseline --implementation DDQN --gamename cartpole",
    )
    (checkout / MANIFEST).write_text(there)
    commit(checkout)
    calls = []
    again(checkout, run=counting(calls))
    lacks = "this machine lacks Stable-Baselines3 (pip install 'lightning_rl[baselines]')"
    assert f"left out, as {lacks}: table" in capsys.readouterr().out
    assert {name for name, _ in calls} == {"train", "eval"}
    with pytest.raises(UserError, match=re.escape(f"table: {lacks}; leave it out")):
        again(checkout, "table")
    again(checkout, smoke=True)
    assert "left out" in capsys.readouterr().out


def test_a_claim_that_is_measured_lacks_nothing(checkout, monkeypatch):
    again(checkout, "table")
    monkeypatch.setattr("experiments.reproduce.command.lacking", lambda claim, smoke: "a GPU")
    again(checkout, "table")
    with pytest.raises(UserError, match="report: this machine lacks a GPU; leave it out"):
        again(checkout, "report")
    asked = Namespace(ids=["report"], executor="ray")
    jobs = missing(load_claims(checkout / MANIFEST).chosen(["report"]), checkout, main)
    assert possible(jobs, asked) == jobs != []  # other machines may have one


def refuses(words, program):
    if "--seed" in words and words[words.index("--seed") + 1] == "100":
        print("error: no such luck")
        return 2
    return main(words, program)


def raises(words, program):
    if "--seed" in words and words[words.index("--seed") + 1] == "100":
        raise ZeroDivisionError("no such luck")
    return main(words, program)


def writes_half_a_report(words, program):
    code = main(words, program)
    if words[0] == "eval":
        for path in Path(words[1]).rglob("evaluation.json"):
            if "seed_100" in str(path):
                path.write_text('{"sampled": ')
    return code


@pytest.mark.parametrize(
    ("run", "claim", "reason"),
    [
        (refuses, "table", "no such luck"),
        (raises, "table", "ZeroDivisionError: no such luck"),
        (writes_half_a_report, "report", "JSONDecodeError"),
    ],
)
def test_a_failed_run_is_named_and_the_others_go_on(checkout, run, claim, reason):
    failed = f"1 of 2 runs failed; .* {claim}, seed 100: {reason}"
    with pytest.raises(UserError, match=failed) as refused:
        again(checkout, claim, run=run)
    if run is not refuses:
        log = Path(str(refused.value).rpartition("; its traceback is in ")[2])
        assert "Traceback (most recent call last)" in log.read_text()
    rows = store.read_runs(checkout, load_claims(checkout / MANIFEST).claims[claim])
    assert [row["seed"] for row in rows] == ["101"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["tabel"], "claim 'tabel' is unknown; did you mean 'table'?"),
        (["speed"], "claim 'speed' is not measured here: results/speed.md"),
    ],
)
def test_unknown_claims(words, message, checkout):
    with pytest.raises(UserError, match="claim") as refused:
        again(checkout, *words)
    assert message in str(refused.value)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--list", "--smoke"], "--list and --smoke exclude each other; leave one out"),
        (["--jobs", "0"], "0 is too small"),
        (["--verify", "rcp-a-lunarlandr"], "did you mean 'rcp-a-lunarlander"),
        (["rcp-a-lunarlander", "--verify", "x"], "--verify names its claim; leave it out"),
        (["--ray_address", "a:1"], "--ray_address goes with --executor ray"),
    ],
)
def test_mistakes(words, message, capsys):
    assert main(["reproduce", *words], "lightning-rl") == 2
    assert message in capsys.readouterr().err


def test_claims_that_were_met_after_earlier_seeds_are_counted_apart():
    once = entry(Goal(mean=2.0), 1.0, 2.0, 3.0)
    seen = EarlierSeeds(seeds="90-92", values=[1.0], then="a change")
    again = dataclasses.replace(
        once, name="b", claim=dataclasses.replace(once.claim, earlier_seeds=[seen])
    )
    missed = dataclasses.replace(again, name="c")
    (_, *_), (_, *family), (_, *everything) = counts(
        {"f": [once, again, missed]}, {"a": MET, "b": MET, "c": NOT_MET}
    )
    assert family == everything == ["3", "2", "1", "1", "0", "0", "0"]


def test_values_of_earlier_seeds_have_no_exponent():
    seen = EarlierSeeds(
        seeds="90-93", values=[12345.6, 900.0, 12.34567, float("inf")], then="a change"
    )
    assert _earlier_seeds(seen) == "90-93: 4,419 (12.35 to 12,350), 1 never"


@pytest.mark.slow
@pytest.mark.timeout(1800)  # under three minutes on two cores
def test_every_claim_of_the_project_can_be_measured(capsys, monkeypatch, tmp_path):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    again(ROOT, smoke=True, jobs=2)
    claims = load_claims(ROOT / MANIFEST).claims
    page = capsys.readouterr().out.splitlines()[-1].removeprefix("tiny budgets, no evidence: ")
    # one is of a single seed
    assert len(re.findall(r"\| 1 of \d+ \|", Path(page).read_text())) >= len(claims) - 2


@pytest.mark.slow
def test_a_process_that_dies_is_one_line(checkout):
    with pytest.raises(UserError, match=r"a process died \(out of memory\?\)"):
        again(checkout, "table", run=die, jobs=2)


@pytest.mark.slow
@pytest.mark.parametrize("flags", [{"jobs": 2}, {"executor": "ray"}])
def test_processes_and_a_cluster_give_what_one_process_gives(flags, checkout):
    again(checkout, "table")
    alone = (checkout / "results" / "claims" / "table.csv").read_bytes()
    for path in (checkout / "results" / "claims").glob("*.csv"):
        path.unlink()
    commit(checkout)  # of another commit: nothing is left to be read
    again(checkout, "table", **flags)
    assert (checkout / "results" / "claims" / "table.csv").read_bytes() == alone
    assert ledger(load_claims(checkout / MANIFEST), checkout, "c").count("| `table` |") == 1


def test_a_claim_of_the_other_library_needs_it_and_no_other_claim_does(monkeypatch):
    monkeypatch.setitem(sys.modules, "stable_baselines3", None)
    assert (
        lacking(OURS["sb3-pendulum-td3"], smoke=True)
        == "Stable-Baselines3 (pip install 'lightning_rl[baselines]')"
    )
    assert lacking(OURS["beside-pendulum-td3"]) == ""


def test_a_claim_on_a_gpu_needs_one_but_for_a_smoke(monkeypatch):
    claim = OURS["mb-buttongrid-er-thirty"]
    for there, lacks in ((False, "a GPU"), (True, "")):
        monkeypatch.setattr("torch.cuda.is_available", lambda there=there: there)
        assert (lacking(claim), lacking(claim, smoke=True)) == (lacks, "")
