import csv
import dataclasses
import itertools
import math
import shutil
import subprocess
import sys
import time
from types import SimpleNamespace

import numpy as np
import pytest
import torch
import yaml
from helpers import ROOT
from helpers.budgets import tiny_settings
from helpers.runs import cli, run_dir, train_cli

from lightning_rl.core.errors import UserError
from lightning_rl.core.files import hold
from lightning_rl.core.outputs import Out
from lightning_rl.lab.figures.tuning import draw_search
from lightning_rl.lab.scalars import read_scalar
from lightning_rl.lab.tuning.results import (
    Trial,
    best_trial,
    read_search,
    read_trials,
    require_same,
    state_of,
    write_results,
    write_search,
)
from lightning_rl.lab.tuning.search import NEEDS
from lightning_rl.lab.tuning.space import load_tune_config
from lightning_rl.lab.tuning.trial import (
    SETTINGS,
    Plan,
    fail,
    read_reports,
    run_trial,
    stretch_score,
)
from lightning_rl.lab.tuning.with_ray import Progress
from lightning_rl.run.callbacks import StopAtBudget
from lightning_rl.run.options import RunOptions
from lightning_rl.run.shipped import SHIPPED
from lightning_rl.run.train import run_training

SEARCH = {"learning_rate": {"log": [1e-4, 1e-2]}, "hidden": {"choice": [[8, 8], [8, 16]]}}


def plan_of(tmp_path, name="UDRL", **tune) -> Plan:
    tune = {"seeds": 2, "reports": 3, "budget": {"max_env_steps": 600}, "search": SEARCH, **tune}
    options = RunOptions(name, "cartpole", logdir=tmp_path, settings=tiny_settings(name))
    return Plan(options, load_tune_config(name, "cartpole", tune))


def search_flags(logdir, *tune, gamename="cartpole"):
    """The words of a small search of UDRL, with these ``--tune`` settings."""
    settings = [f"--set={key}={value}" for key, value in tiny_settings("UDRL").items()]
    where = ["--implementation", "UDRL", "--gamename", gamename, "--logdir", str(logdir)]
    return [*where, "--use_tune", *settings, *(f"--tune={setting}" for setting in tune)]


LOG_RATES = "search={learning_rate: {log: [1.0e-4, 1.0e-2]}}"
RATES = "search={learning_rate: {choice: [1.0e-4, 1.0e-3, 1.0e-2, 1.0e-1]}}"


@pytest.mark.parametrize("name", ["UDRL", "DDQN"])  # seeds one by one, and stacked
@pytest.mark.slow
def test_a_trial_trains_its_seeds_in_stretches_and_reports_their_mean(tmp_path, name):
    plan = plan_of(tmp_path, name)
    settings = {"learning_rate": 1e-3, "hidden": [8, 8]}
    fail(plan.folder / "one", UserError("an earlier start had no luck"))
    reports = list(run_trial(plan, "one", settings))
    assert [(report["report"], report["budget"]) for report in reports] == [
        (1, 200),
        (2, 400),
        (3, 600),
    ]
    folders = [run.run_dir for whole in plan.runs("one", settings) for run in whole.single_runs()]
    assert [folder.name for folder in folders] == ["seed_25", "seed_26"]
    curves = [read_scalar(folder, "rollout/return_mean") for folder in folders]
    newest = [curve.value[curve.env_steps > 400].mean() for curve in curves]
    assert reports[-1]["score"] == pytest.approx(sum(newest) / 2)
    # one logger folder, not one per stretch
    assert [len(list((folder / "logger").iterdir())) for folder in folders] == [1, 1]
    # the record is what read_trials and a second start see
    (trial,) = read_trials(plan.folder)
    assert (trial.name, trial.settings, len(trial.reports), state_of(trial, 3)) == (
        "one",
        settings,
        3,
        "finished",
    )
    assert [float(score) for score in trial.seed_scores.split()] == pytest.approx(newest, rel=1e-4)
    before = {folder: (folder / "last.ckpt").read_bytes() for folder in folders}
    assert list(run_trial(plan, "one", settings)) == [reports[-1]]
    assert before == {folder: (folder / "last.ckpt").read_bytes() for folder in folders}


@pytest.mark.slow
def test_a_trial_killed_on_its_way_goes_on_to_the_same_result(tmp_path):
    whole, broken = (plan_of(tmp_path / name) for name in ("whole", "broken"))
    settings = {"learning_rate": 1e-3, "hidden": [8, 8]}
    expected = list(run_trial(whole, "one", settings))
    half = run_trial(broken, "one", settings)
    next(half)
    half.close()
    # as if the first seed had just finished the second stretch when the machine went down
    (first, _) = broken.runs("one", settings)
    first = dataclasses.replace(
        first, settings={**first.settings, "max_env_steps": 600}, resume=True
    )
    assert run_training(first, [StopAtBudget("max_env_steps", 400)]).signal == 0
    assert list(run_trial(broken, "one", settings)) == expected[1:]


@pytest.mark.parametrize(
    ("name", "budget", "own"),
    [
        ("RCP-A", {"max_env_steps": 600}, {"anneal_from": 0.2}),
        ("AAC", {"max_episodes": 12}, {"anneal_from": 0.2, "num_episodes_per_iter": 2}),
        ("UDRL", {"max_epochs": 6}, {}),
    ],
)
def test_a_trial_trains_what_a_run_with_its_settings_does(tmp_path, name, budget, own):
    """Though it stops on its way: learning rates fall with the whole budget, not to 0 at each
    stop.
    """
    plan = plan_of(tmp_path, name, seeds=1, budget=budget)
    settings = {"learning_rate": 1e-2, "hidden": [8, 8], **own}
    assert len(list(run_trial(plan, "one", settings))) == 3
    (trial,) = plan.runs("one", settings)
    run = dataclasses.replace(trial, exp_name="straight", settings={**trial.settings, **budget})
    assert run_training(run).signal == 0
    stopped, straight = (
        torch.load(each.run_dir / "last.ckpt", weights_only=True) for each in (trial, run)
    )
    assert stopped["epoch"] == straight["epoch"] >= 3
    for saved in (stopped, straight):
        del saved["state_dict"]["eval_env_steps"]  # it is evaluated at each stop, too
    assert all(
        value.equal(straight["state_dict"][key]) for key, value in stopped["state_dict"].items()
    )


def test_an_evolution_is_a_trial_that_reports_its_generations(tmp_path):
    """Three levels: settings of the evolution, and of the agents in its inner loop (a key inside
    a key).
    """
    tiny = {
        "population": 2,
        "center_agents": 2,
        "hidden": [8],
        "eval_agents": 1,
        "eval_episodes": 1,
        "stop_when_solved": False,
    }
    options = RunOptions("SE", "emptyroom22", logdir=tmp_path, settings=tiny)
    tune = {"seeds": 1, "reports": 2, "budget": {"max_epochs": 2}}
    plan = Plan(options, load_tune_config("SE", "emptyroom22", tune))
    plan.check()
    settings = {"noise_std": 0.2, "agent.QL.gamma": 0.5}
    reports = list(run_trial(plan, "one", settings))
    assert [(report["report"], report["budget"]) for report in reports] == [(1, 1), (2, 2)]
    (run,) = plan.runs("one", settings)
    config = yaml.safe_load((run.run_dir / "config.yaml").read_text())["config"]
    assert config["agent"]["QL"]["gamma"] == 0.5
    assert config["agent"]["QL"]["learning_starts"] == 5  # of the environment's block
    curve = read_scalar(run.run_dir, plan.tune.metric)
    assert [report["score"] for report in reports] == pytest.approx(curve.value[-2:].tolist())
    assert read_trials(plan.folder)[0].settings == settings


def test_a_score_is_of_the_newest_stretch_or_the_last_value(tmp_path, monkeypatch):
    curve = SimpleNamespace(
        env_steps=np.array([100.0, 200.0, 300.0]), value=np.array([1.0, 2.0, 4.0])
    )
    monkeypatch.setattr("lightning_rl.lab.tuning.trial.read_scalar", lambda run_dir, metric: curve)
    assert [stretch_score(tmp_path, "a", after) for after in (0.0, 100.0, 300.0, None)] == [
        7 / 3,
        3,
        4,
        4,
    ]
    assert plan_of(tmp_path, settings={"tau": 0.1}).fixed["tau"] == 0.1  # all trials set it


def test_the_best_is_looked_for_among_those_that_came_furthest():
    short = Trial("short", {}, [(1.0, 99.0)], "", "")
    good, bad = (
        Trial(name, {}, [(1.0, 1.0), (2.0, score)], "", "")
        for name, score in (("good", 5.0), ("bad", 3.0))
    )
    failed = Trial("failed", {}, [], "", "it diverged")
    trials = [short, bad, good, failed]
    assert best_trial(trials, "max") is good
    assert best_trial(trials, "min") is bad
    assert best_trial([failed], "max") is None
    no_number = Trial("a", {}, [(1.0, 1.0), (2.0, math.nan)], "", "")
    for order in itertools.permutations([no_number, bad, good]):
        assert (best_trial(order, "max"), best_trial(order, "min")) == (good, bad)
    assert [state_of(trial, 2) for trial in trials] == [
        "stopped early",
        "finished",
        "finished",
        "failed: it diverged",
    ]


def test_what_came_of_a_search_is_written_and_said(tmp_path, capsys):
    plan = plan_of(tmp_path, seeds=3)
    good, early = ({"learning_rate": rate, "hidden": [8, 16]} for rate in (0.003, 0.005))
    stopped = Trial("early", early, [(200.0, 99.0)], "99 99 99", "")
    write_results(
        plan,
        [stopped, Trial("good", good, [(200.0, 1.0), (400.0, 2.0), (600.0, 7.5)], "7 8 7.5", "")],
    )
    best = (plan.folder / "best.yaml").read_text()
    assert f"{plan.tune.metric} 7.5, mean of seeds 25 .. 27 at max_env_steps 600 of 600." in best
    assert yaml.safe_load(best)["config"]["learning_rate"] == 0.003
    with (plan.folder / "trials.csv").open() as file:
        rows = [
            [row[key] for key in ("trial", "state", "max_env_steps", "score", "learning_rate")]
            for row in csv.DictReader(file)
        ]
    assert rows == [
        ["good", "finished", "600", "7.5", "0.003"],
        ["early", "stopped early", "200", "99", "0.005"],
    ]
    assert "on a seed not searched: " in (said := capsys.readouterr().out)
    assert said.endswith(" --seed 100\n")


def test_a_search_is_known_by_its_config_and_what_was_set_over_it(tmp_path):
    plan = plan_of(tmp_path)
    plan = dataclasses.replace(
        plan, options=dataclasses.replace(plan.options, config={"hidden": [4], "tau": 0.1})
    )
    write_search(plan)
    config = read_search(plan.folder)["config"]
    assert (config["hidden"], config["tau"]) == (tiny_settings("UDRL")["hidden"], 0.1)
    require_same(plan)
    with pytest.raises(
        UserError, match=r"--resume: config.tau is None now but 0.1 in '.*search.yaml'"
    ):
        require_same(plan_of(tmp_path))


def test_a_key_that_the_best_trial_does_not_read_is_drawn_of_the_others(tmp_path):
    trials = [
        Trial("one", {"weights": "none"}, [(1.0, 2.0)], "", ""),
        Trial("two", {"weights": "return_to_go", "temperature": 0.5}, [(1.0, 1.0)], "", ""),
    ]
    tune = {
        "metric": "eval/return_mean",
        "budget": {"max_epochs": 1},
        "algorithm": "asha",
        "mode": "max",
        "seeds": 1,
    }
    draw_search(
        Out(tmp_path / "search", [], False),
        trials,
        {"tune": tune, "implementation": "RCP-R", "gamename": "cartpole"},
    )
    with (tmp_path / "search.csv").open() as file:
        assert [row["temperature"] for row in csv.DictReader(file)] == ["", "0.5"]
    assert (tmp_path / "search.png").stat().st_size > 5000


@pytest.mark.slow
def test_a_search_from_the_command_line(tmp_path, capsys, ray_cluster):
    """Two tiny trials with Ray; one of them draws a learning rate that diverges, which the other
    outlives.
    """
    search = "search={learning_rate: {choice: [1.0e-3, 1.0e+38]}}"
    flags = search_flags(tmp_path, "trials=2", "seeds=1", "reports=1", search)
    flags += ["--seed", "1", "--preset", "original"]
    assert cli(*flags, "--tune", "budget={max_env_steps: 200}") == 0
    folder = tmp_path / "cartpole" / "default" / "UDRL" / "tune"
    rows = list(csv.DictReader((folder / "trials.csv").open()))
    assert len(rows) == 2
    assert rows[0]["state"] == "finished"
    assert "diverged" in rows[1]["state"]
    best = yaml.safe_load((folder / "best.yaml").read_text())
    assert best["config"]["learning_rate"] == 1e-3
    for name in ("search.png", "search.svg", "search.csv"):
        assert (folder / name).stat().st_size > 50
    assert "best settings" in capsys.readouterr().out
    # a second search of the name is refused; the best settings train
    assert cli(*flags, "--tune", "budget={max_env_steps: 200}") == 2
    assert "already holds a search; continue with --resume" in capsys.readouterr().err
    trained = ["--config", folder / "best.yaml", "--max_epochs", "1", "--num_workers", "0"]
    assert cli(*flags[:6], "--seed", "1", *trained) == 0
    config = yaml.safe_load(
        (tmp_path / "cartpole" / "default" / "UDRL" / "seed_1" / "config.yaml").read_text()
    )["config"]
    assert (config["learning_rate"], config["hidden"]) == (1e-3, [8, 8])
    (winner,) = folder.glob(f"{rows[0]['trial']}/UDRL/seed_1/config.yaml")
    tried = yaml.safe_load(winner.read_text())["config"]
    # also what the preset says
    assert {key for key in tried if tried[key] != config[key]} <= {"max_epochs", "max_env_steps"}
    # a search goes on as what it is, or not at all
    for other in (["--tune", "budget={max_env_steps: 300}"], ["--set=tau=0.5"], ["--seed=2"]):
        capsys.readouterr()
        same = [] if "--tune" in other else ["--tune", "budget={max_env_steps: 200}"]
        assert cli(*flags, *same, *other, "--resume") == 2
        assert (
            "use the same settings, or another --exp_name for a new search"
            in capsys.readouterr().err
        )
    with (folder / ".lock").open("w") as lock:
        hold(lock, folder, "")
        assert cli(*flags, "--tune", "budget={max_env_steps: 200}", "--resume") == 2
    assert (
        "is in use by another process; wait until that search has ended" in capsys.readouterr().err
    )


def test_a_grid_trains_every_combination_to_the_end(tmp_path, capsys):
    rates = "search={learning_rate: {choice: [1.0e-3, 1.0e+38]}, tau: {choice: [0.0, 1.0]}}"
    flags = search_flags(tmp_path, "algorithm=grid", "seeds=1", "reports=1", rates)
    flags += ["--preset", "original", "--tune", "budget={max_env_steps: 50}"]
    assert cli(*flags) == 0
    folder = tmp_path / "cartpole" / "default" / "UDRL" / "tune"
    rows = {row["trial"]: row for row in csv.DictReader((folder / "trials.csv").open())}
    found = [(row["learning_rate"], row["tau"]) for _, row in sorted(rows.items())]
    assert found == [("0.001", "0"), ("0.001", "1"), ("1e+38", "0"), ("1e+38", "1")]
    states = [rows[name]["state"].split(":")[0] for name in sorted(rows)]
    assert states == ["finished", "finished", "failed", "failed"]
    reports = {path: path.read_text() for path in folder.glob("*/reports.csv")}
    shutil.rmtree(folder / "001")  # as if it had been killed before that
    assert cli(*flags, "--resume") == 0
    assert {path: path.read_text() for path in folder.glob("*/reports.csv")} == reports
    assert cli(*flags) == 2
    assert "already holds a search" in capsys.readouterr().err


@pytest.mark.slow
def test_a_metric_that_no_trial_logs_ends_the_search_at_the_first(tmp_path, capsys, ray_cluster):
    tune = ("trials=12", "seeds=2", "reports=2", "budget={max_env_steps: 200}", LOG_RATES)
    assert cli(*search_flags(tmp_path, *tune, "metric=rollout/retrn_mean")) == 2
    last = capsys.readouterr().err.strip().splitlines()[-1]
    assert last.startswith("error: --tune metric: '")
    assert last.endswith(
        "/seed_25' has no scalar 'rollout/retrn_mean'; did you mean 'rollout/return_mean'?"
    )
    folder = tmp_path / "cartpole" / "default" / "UDRL" / "tune"
    assert len(list(folder.glob(f"*/{SETTINGS}"))) < 12  # as many as were at work at once
    assert not list(folder.glob("*/UDRL/seed_26"))  # the first seed told it


def test_trials_start_from_the_same_weights_wherever_they_work(tmp_path, monkeypatch):
    plans = []
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(
        "lightning_rl.lab.tuning.search.tune", lambda plan, resume: plans.append(plan) or 0
    )
    (tmp_path / "mine.ckpt").touch()
    flags = ["--implementation", "UDRL", "--gamename", "lunarlander", "--use_tune"]
    for reload in (["--reload", "mine.ckpt"], ["--reload", "UDRL-lunarlander"], []):
        assert cli(*flags, *reload) == 0
    assert [plan.options.reload for plan in plans] == [
        tmp_path / "mine.ckpt",
        SHIPPED / "UDRL-lunarlander.ckpt",
        None,
    ]
    write_search(plans[0])
    require_same(plans[0])
    with pytest.raises(UserError, match=r"--resume: reload is None now but '"):
        require_same(plans[2])


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("algorithm", NEEDS)
def test_a_killed_search_goes_on(tmp_path, algorithm):
    """kill -9 once the first reports are there, then --resume: all trials end, the reports from
    before are kept.
    """
    for package in NEEDS[algorithm]:
        pytest.importorskip(package)
    rates = RATES if algorithm == "grid" else LOG_RATES
    tune = (f"algorithm={algorithm}", "trials=4", "seeds=2", "reports=3", rates)
    flags = search_flags(tmp_path, *tune, "budget={max_env_steps: 900}")
    command = [sys.executable, str(ROOT / "trainer.py"), *flags]
    folder = tmp_path / "cartpole" / "default" / "UDRL" / "tune"
    first = subprocess.Popen(command, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    while not any(len(read_reports(path.parent)) >= 2 for path in folder.glob("*/reports.csv")):
        assert first.poll() is None, "the search ended before it could be killed"
        time.sleep(0.5)
    first.kill()
    first.wait()
    before = {path: path.read_text() for path in folder.glob("*/reports.csv")}
    second = subprocess.run([*command, "--resume"], capture_output=True, text=True)
    assert second.returncode == 0, second.stderr
    assert all(path.read_text().startswith(text) for path, text in before.items())
    rows = list(csv.DictReader((folder / "trials.csv").open()))
    assert len(rows) >= 4
    assert rows[0]["state"] == "finished"
    assert {row["state"] for row in rows} <= {"finished", "stopped early"}
    assert (folder / "best.yaml").exists()


def test_what_cannot_be_searched_is_refused(tmp_path, capsys, monkeypatch):
    base = ["--implementation", "DDQN", "--gamename", "cartpole", "--logdir", str(tmp_path)]
    for flags, words in (
        (["--tune", "trials=3"], "--tune goes with --use_tune"),
        (["--use_tune", "--num_seeds", "3"], "takes its seeds per trial from --tune seeds=N"),
        (
            ["--use_tune", "--tune", "trials"],
            "--tune 'trials': expected key=value, e.g. --tune trials=20",
        ),
        (
            ["--use_tune", "--tune", "budget={max_episodes:64}"],
            "--tune 'budget={max_episodes:64}': a space is missing after a colon; write "
            "'budget={max_episodes: 64}'",
        ),
        (["--config", str(tmp_path / "no.yaml")], "does not exist; give another"),
        (["--use_tune", "--gamename", "pendulum"], "DDQN does not fit gamename 'pendulum': "),
    ):
        assert cli(*base, *flags) == 2
        assert words in capsys.readouterr().err
    assert not list(tmp_path.rglob("tune"))  # nothing was tried
    (tmp_path / "other.yaml").write_text("implementation: UDRL\nconfig: {}\n")
    assert cli(*base, "--config", tmp_path / "other.yaml") == 2
    assert "is of 'UDRL', this run's implementation is DDQN" in capsys.readouterr().err
    monkeypatch.setitem(sys.modules, "ConfigSpace", None)  # as if it were not installed
    assert cli(*base, "--use_tune", "--tune", "algorithm=bohb") == 2
    message = capsys.readouterr().err
    assert message.startswith("error: --tune algorithm=bohb: ConfigSpace is not installed (")
    assert message.endswith("); pip install 'lightning_rl[bohb]', or take asha or grid or optuna\n")
    with pytest.raises(UserError, match="is not the tune/ folder of a search"):
        read_search(tmp_path)


def test_a_cluster_that_does_not_answer_is_named(tmp_path, capsys):
    assert cli(*search_flags(tmp_path, LOG_RATES), "--ray_address", "127.0.0.1:1") == 2
    assert "--ray_address '127.0.0.1:1': no Ray cluster answers there" in capsys.readouterr().err
    assert not list(tmp_path.rglob("tune"))


def test_a_small_budget_has_no_more_reports_than_that(tmp_path):
    """A report of no epoch would have no score, and the trial would end as if it were done."""
    tune = load_tune_config("SE", "emptyroom22", {"budget": {"max_epochs": 2}})
    assert tune.reports == 2
    settings = {**tiny_settings("SE"), "hidden": [8]}
    plan = Plan(
        RunOptions("SE", "emptyroom22", logdir=tmp_path, num_workers=0, settings=settings), tune
    )
    assert [report["budget"] for report in run_trial(plan, "small", {})] == [1, 2]


def test_the_time_left_of_a_resumed_search_goes_by_the_trials_since_then(
    tmp_path, monkeypatch, capsys
):
    """Ray keeps what shows the progress in the search's own state."""
    cloudpickle = pytest.importorskip("ray.cloudpickle")
    clock = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    plan = plan_of(tmp_path, trials=10)
    (plan.folder / "one").mkdir(parents=True)
    (plan.folder / "one" / SETTINGS).write_text("{}")
    before = Progress(plan)
    trials = [
        SimpleNamespace(is_finished=lambda done=done: done) for done in [True] * 5 + [False] * 5
    ]
    before.show(trials, True)
    clock[0] = 100_000.0
    after = cloudpickle.loads(cloudpickle.dumps(before))
    clock[0] += 120.0
    after.show(trials, True)
    assert "5/10 trials · no score yet · ETA 10 min" in capsys.readouterr().err
    clock[0] += 5.0
    after.show(trials, False)  # a line now and then is enough
    assert capsys.readouterr().err == ""


@pytest.fixture(scope="module")
def played(tmp_path_factory):
    """A run whose episodes others learn from."""
    logdir = tmp_path_factory.mktemp("played")
    train_cli(logdir, 1)
    return run_dir(logdir)


def offline(played, logdir, *tune):
    """The words of a search of RCP-R on the episodes of a run."""
    settings = ["hidden=[8]", "num_updates_per_iter=2", "eval_interval=1", "eval_episodes=2"]
    flags = ["--implementation", "RCP-R", "--gamename", "cartpole", "--dataset", str(played)]
    flags += ["--logdir", str(logdir), "--set=weights=none"]
    flags += [f"--set={each}" for each in settings] + [f"--tune={each}" for each in tune]
    return ["tune", *flags]


@pytest.mark.parametrize(
    ("tune", "said"),
    [
        (
            (),
            "the budget {'max_env_steps': 100000} of a trial is; give --tune \"budget={max_epochs",
        ),
        (
            ("budget={max_epochs: 4}", "metric=rollout/return_mean"),
            "no rollout/return_mean; give --tune metric=eval/return_mean",
        ),
        (("search={window_steps: {choice: [9]}}", "budget={max_epochs: 4}"), "window_steps"),
    ],
)
def test_what_needs_steps_is_refused_on_a_dataset(tune, said, played, tmp_path, capsys):
    assert cli(*offline(played, tmp_path, *tune)) == 2
    assert said in capsys.readouterr().err.splitlines()[-1]
    assert not list(tmp_path.glob("**/trials.csv"))


@pytest.mark.slow
def test_a_search_on_a_dataset(played, tmp_path, capsys):
    search = "search={learning_rate: {choice: [1.0e-3, 1.0e-2]}}"
    tune = ("algorithm=grid", search, "budget={max_epochs: 2}", "seeds=1", "reports=2")
    assert cli(*offline(played, tmp_path, *tune)) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert f"--dataset {played}" in out
    folder = tmp_path / "cartpole" / "default" / "RCP-R" / "tune"
    rows = list(csv.DictReader((folder / "trials.csv").open()))
    assert [(row["state"], row["max_epochs"]) for row in rows] == [("finished", "2")] * 2


def test_a_search_without_a_score_is_no_picture_yet():
    search = {"tune": {"budget": {"max_epochs": 1}, "metric": "eval/return_mean"}}
    with pytest.raises(UserError, match="no trial has a score yet"):
        draw_search(None, [], search)
