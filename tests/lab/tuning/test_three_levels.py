"""A search whose trials are evolutions, whose populations are workers on the same cluster."""

import csv
import dataclasses
import importlib.util
import os
import signal
import threading
import time
from pathlib import Path

import pytest
import yaml

from lightning_rl.cli import main
from lightning_rl.core.errors import UserError
from lightning_rl.lab.tuning.search import check_room, trial_bundles
from lightning_rl.lab.tuning.space import load_tune_config
from lightning_rl.lab.tuning.trial import Plan, run_trial
from lightning_rl.run.options import RunOptions

SETTINGS = {
    "population": 4,
    "center_agents": 2,
    "hidden": [8],
    "eval_agents": 1,
    "eval_episodes": 1,
    "stop_rule": "none",
    "agent": {"QL": {"train_episodes": 200}},
}
TUNE = {
    "algorithm": "bohb" if importlib.util.find_spec("hpbandster") else "asha",
    "trials": 2,
    "seeds": 1,
    "reports": 2,
    "budget": {"max_epochs": 2},
    "search": {"noise_std": {"log": [0.01, 1.0]}},
}


def flags(tmp_path, *more):
    what = [
        "--implementation",
        "SE",
        "--gamename",
        "emptyroom22",
        "--logdir",
        str(tmp_path),
        "--use_tune",
    ]
    return [
        *what,
        *(f"--set={k}={v}" for k, v in SETTINGS.items()),
        *(f"--tune={k}={v}" for k, v in TUNE.items()),
        *more,
    ]


def descendants():
    """Process ids below this one, with their command lines."""
    parents, lines = {}, {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            parents[int(folder.name)] = int(
                (folder / "stat").read_text().rpartition(")")[2].split()[1]
            )
            lines[int(folder.name)] = (folder / "cmdline").read_text()
        except OSError:
            continue
    below, found = {os.getpid()}, {}
    while new := {pid for pid, parent in parents.items() if parent in below} - below:
        below |= new
        found |= {pid: lines[pid] for pid in new}
    return found


class Killer(threading.Thread):
    """Kills the first process that works on a Ray task of the name, once the condition holds."""

    def __init__(self, name, when=lambda: True):
        super().__init__(daemon=True)
        self.name, self.when, self.killed = f"ray::{name}", when, False

    def run(self):
        while not self.killed:
            found = (
                [pid for pid, line in descendants().items() if line.startswith(self.name)]
                if self.when()
                else []
            )
            for pid in found[:1]:
                os.kill(pid, signal.SIGKILL)
                self.killed = True
            time.sleep(0.1)


def assert_scores_of_one_process(tmp_path):
    folder = tmp_path / "emptyroom22" / "default" / "SE" / "tune"
    rows = list(csv.DictReader((folder / "trials.csv").open()))
    assert rows[0]["state"] == "finished"
    assert len(rows) == TUNE["trials"]
    alone = RunOptions(
        "SE", "emptyroom22", logdir=tmp_path / "alone", settings=SETTINGS, num_workers=0
    )
    plan = Plan(alone, load_tune_config("SE", "emptyroom22", TUNE))
    for row in rows:
        settings = yaml.safe_load((folder / row["trial"] / "settings.yaml").read_text())
        scores = [f"{report['score']:.6g}" for report in run_trial(plan, row["trial"], settings)]
        there = [
            f"{float(report['score']):.6g}"
            for report in csv.DictReader((folder / row["trial"] / "reports.csv").open())
        ]
        assert there == scores[: len(there)]


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_search_evolution_and_population_on_one_cluster(tmp_path, capsys, ray_cluster):
    """BOHB where it is installed, else ASHA -> the evolution -> two workers, one of which is
    killed: the scores of each trial are those of the same trial in one process.
    """
    killer = Killer("_evaluate")
    killer.start()
    assert main(flags(tmp_path, "--executor", "ray", "--num_workers", "2")) == 0, (
        capsys.readouterr().err
    )
    assert killer.killed
    assert_scores_of_one_process(tmp_path)


def test_a_trial_takes_a_cpu_for_each_worker_and_none_for_the_process_that_waits_for_them():
    options = RunOptions("SE", "emptyroom22", executor="ray", num_workers=3)
    assert trial_bundles(options) == [{}, {"CPU": 1}, {"CPU": 1}, {"CPU": 1}]
    assert trial_bundles(dataclasses.replace(options, num_workers=0)) == [{}, {"CPU": 1}]
    assert trial_bundles(dataclasses.replace(options, executor="serial")) == [{"CPU": 3}]
    assert trial_bundles(dataclasses.replace(options, executor="serial", num_workers=0)) == [
        {"CPU": 1}
    ]
    assert trial_bundles(dataclasses.replace(options, accelerator="gpu"))[0] == {"GPU": 1}
    assert trial_bundles(dataclasses.replace(options, executor="serial", accelerator="gpu")) == [
        {"CPU": 3, "GPU": 1}
    ]


def nodes(*cpus, alive=True):
    return [{"Alive": alive, "Resources": {"CPU": float(count)}} for count in cpus]


@pytest.mark.parametrize(("executor", "workers"), [("ray", 3), ("serial", 2), ("serial", 0)])
def test_a_trial_that_fits_is_let_through(executor, workers):
    check_room(
        trial_bundles(RunOptions("SE", "emptyroom22", executor=executor, num_workers=workers)),
        nodes(1, 2),
    )


@pytest.mark.parametrize(
    ("executor", "message"),
    [
        ("ray", "--num_workers: a trial takes 4 CPUs in all, the cluster has 3;"),
        ("serial", "--num_workers: a trial takes 4 CPUs on one machine, the cluster has 2;"),
    ],
)
def test_a_trial_that_never_fits_is_refused_before_it_waits_for_ever(executor, message):
    bundles = trial_bundles(RunOptions("SE", "emptyroom22", executor=executor, num_workers=4))
    with pytest.raises(UserError, match=message):
        check_room(bundles, [*nodes(1, 2), *nodes(8, alive=False)])
    with pytest.raises(
        UserError,
        match="--accelerator gpu: a trial takes 1 GPUs on one machine, the cluster has 0;",
    ):
        check_room(trial_bundles(RunOptions("SE", "emptyroom22", accelerator="gpu")), nodes(8))


def test_a_search_without_room_leaves_nothing_behind(tmp_path, capsys, ray_cluster):
    assert main(flags(tmp_path, "--executor", "ray", "--num_workers", "99")) == 2
    assert capsys.readouterr().err.startswith(
        "error: --num_workers: a trial takes 99 CPUs in all, the cluster has "
    )
    assert not list(tmp_path.rglob("tune"))


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("executor", ["ray", "serial"])
def test_a_killed_trial_goes_on_from_its_checkpoint(tmp_path, capsys, ray_cluster, executor):
    """The trial's own process is killed once it has a checkpoint, with two workers on the
    cluster or of its own.
    """
    killer = Killer("ImplicitFunc.train", lambda: any(tmp_path.rglob("last.ckpt")))
    killer.start()
    assert main(flags(tmp_path, "--executor", executor, "--num_workers", "2")) == 0, (
        capsys.readouterr().err
    )
    assert killer.killed
    assert_scores_of_one_process(tmp_path)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_population_of_a_trial_may_be_on_several_machines_of_a_cluster(tmp_path, capsys):
    """--ray_address of a cluster of two nodes with one CPU each."""
    import ray
    from ray.cluster_utils import Cluster

    ray.shutdown()
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    try:
        cluster.add_node(num_cpus=1)
        address = ["--ray_address", cluster.address]
        assert main(flags(tmp_path, "--executor", "ray", "--num_workers", "2", *address)) == 0, (
            capsys.readouterr().err
        )
        assert_scores_of_one_process(tmp_path)
        assert main(flags(tmp_path / "serial", "--num_workers", "2", *address)) == 2
        assert (
            "--num_workers: a trial takes 2 CPUs on one machine, the cluster has 1;"
            in capsys.readouterr().err
        )
    finally:
        ray.shutdown()
        cluster.shutdown()
