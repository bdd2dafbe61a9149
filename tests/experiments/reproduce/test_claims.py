"""The manifest: what it may say, and that each of its commands can be run."""

import csv
import dataclasses
import itertools
import json
import re
import shlex
import subprocess
import sys
from collections import defaultdict
from fnmatch import fnmatch
from pathlib import Path

import numpy as np
import pytest
from helpers import ROOT
from helpers.claims import claim_of

from experiments.reproduce import store
from experiments.reproduce.changes import code_of
from experiments.reproduce.checkout import PAGE
from experiments.reproduce.claims import Manifest, Read, seed_list
from experiments.reproduce.ledger import ledger
from experiments.reproduce.manifest import load_claims
from experiments.reproduce.reading import POINTS, counted, statistic
from experiments.reproduce.runs import Job, budget_of, hash_of_settings, shown_command, steps_of
from lightning_rl.cli.commands import run_options
from lightning_rl.cli.parser import parse
from lightning_rl.cli.tools import tools
from lightning_rl.core.catalogue import BASELINE
from lightning_rl.core.config import ADDED
from lightning_rl.core.errors import UserError
from lightning_rl.envs.proxies import proxy_path, read_proxy, shipped
from lightning_rl.lab.figures.runs import AGGREGATES
from lightning_rl.run.run_config import run_config

MANIFEST = ROOT / "results" / "claims.yaml"
CLAIMS = load_claims(MANIFEST).claims
GOOD = """
tolerance: 0.01
_budget: &budget {budget: {max_env_steps: 100}}
claims:
  first:
    <<: *budget
    family: f
    task: t
    unit: return
    published: {value: 3, text: p, source: s, here: {method: m, budget: none, evaluation: none, seeds: two, schedule: none}}
    goal: {mean: 2.5}
    commands: ["train --implementation RCP-A --gamename cartpole"]
    seeds: 100-101
    read: {tag: eval/return_mean}
    curves: [eval/return_mean]
    csv: results/claims/first.csv
    smoke: {max_env_steps: 1}
    cpu_hours: 1
    tried: 3
elsewhere: {}
"""  # noqa: E501


@pytest.mark.parametrize("name", CLAIMS)
def test_every_training_of_the_manifest_has_a_config_that_holds(name, tmp_path, capsys):
    """Also with the tiny budgets of --smoke and the few epochs of --verify."""
    claim = CLAIMS[name]
    for smoke in (False, True):
        job = Job(
            name,
            claim,
            seed_list(claim.seeds)[0],
            "c",
            tmp_path,
            lambda words, program: 0,
            None,
            smoke,
        )
        for budget in (
            budget_of(claim, smoke),
            {**budget_of(claim, smoke), "max_epochs": claim.verify_epochs},
        ):
            for step in steps_of(job, budget):
                if step.run is not None:
                    _, arguments = parse(step.words[1:], "lightning-rl", "train")
                    options = run_options(arguments)
                    prefix = BASELINE if step.words[0] == "baseline" else ""
                    assert (
                        dataclasses.replace(
                            options, implementation=prefix + options.implementation
                        ).run_dir
                        == step.run
                    )
                    assert run_config(options).max_env_steps == budget.get("max_env_steps", None)


ADDED_SINCE = {key: value for key, value in ADDED.items() if key != "max_grad_norm"}
"""See ``without`` for the one that other methods had before."""


@pytest.mark.parametrize(
    "name", [name for name, claim in CLAIMS.items() if store.read_runs(ROOT, claim)]
)
def test_seeds_were_run_with_the_settings_that_ship(name, tmp_path, capsys):
    """Whoever changes a value of a measured method moves its claim to fresh seeds, and runs
    these.
    """
    claim = CLAIMS[name]
    seeds = {row["config_hash"]: int(row["seed"]) for row in store.read_runs(ROOT, claim)}
    for stored, seed in seeds.items():
        job = Job(name, claim, seed, "c", tmp_path, lambda words, program: 0, None)
        trainings = [
            step for step in steps_of(job, budget_of(claim, smoke=False)) if step.run is not None
        ]
        configs = [training_config(step.words) for step in trainings]
        assert stored in [hash_of(job, trainings, each) for each in in_time(configs)]


def test_a_hash_of_settings_holds_no_name_of_a_seed(tmp_path, capsys):
    """The second training of these starts from the file that the first has left in the folder of
    its seed.
    """
    found = set()
    for seed in (100, 101):
        job = Job(
            "se-cartpole-ddqn",
            CLAIMS["se-cartpole-ddqn"],
            seed,
            "c",
            tmp_path,
            lambda words, program: 0,
            None,
        )
        trainings = [step for step in steps_of(job, job.claim.budget) if step.run is not None]
        assert any(f"seed_{seed}" in word for word in trainings[1].words)
        found.add(hash_of(job, trainings, [training_config(step.words) for step in trainings]))
    assert len(found) == 1


def whole_budget(claim):
    """Environment steps, where the budget says them; decisions of agents, each a step or more."""
    budget = claim.budget
    return budget.get("max_env_steps") or budget.get("max_epochs", 0) * budget.get(
        "steps_per_epoch", 0
    )


@pytest.mark.parametrize(
    "name", [name for name, claim in CLAIMS.items() if whole_budget(claim) and claim.curves]
)
def test_seeds_were_trained_for_the_whole_budget(name):
    """No other limit of the config ended them; curves are thinned, and some scalars have no
    value at the end.
    """
    claim = CLAIMS[name]
    last = {row["seed"]: int(row["env_steps"]) for row in store.read_curves(ROOT, claim)}
    assert all(steps >= 0.97 * whole_budget(claim) for steps in last.values()), last


def test_a_training_is_another_claims_where_that_one_has_its_seeds():
    owners = load_claims(MANIFEST).shared_trainings
    assert owners["se-suite-cartpole-ppo"] == "se-suite-cartpole-ddqn"
    assert owners["replication-cartpole-ppo"] == "replication-cartpole-ddqn"
    assert "replication-cartpole-ddqn" not in owners


def test_trainings_of_another_budget_or_of_more_seeds_are_others():
    first, evaluation = (
        claim_of(None),
        {"commands": ["eval"], "curves": [], "read": Read(report="a.json", key="b", where={})},
    )
    others = {
        "same": {"seeds": "100-101"},
        "longer": {"budget": {"max_epochs": 9}},
        "more": {"seeds": "100-109"},
        "played": evaluation,
        "played-too": evaluation,
    }
    claims = {
        name: dataclasses.replace(first, csv=f"results/{name}.csv", **changes)
        for name, changes in others.items()
    }
    assert Manifest(
        tolerance=0.1, claims={"first": first, **claims}, elsewhere={}
    ).shared_trainings == {"same": "first"}


LEFT_SINCE = {
    "early_out_virtual_diff": {"faithful": False},
    "updates_per_step": {"double_q": False},
    "min_std": {"std": "sigmoid2"},
    "num_grad_evals": {"grad_eval_aggregate": "mean", "nes_step_size": False, "test_horizon": None},
    "latent_size": {"reencode": False},
}
"""Keys that are gone, with the value that all runs had, by a key that stood beside them."""


def with_left(value):
    """With the entries of ``LEFT_SINCE``, however deep they were."""
    if isinstance(value, list):
        return [with_left(each) for each in value]
    if not isinstance(value, dict):
        return value
    whole = {key: with_left(each) for key, each in value.items()}
    for beside, left in LEFT_SINCE.items():
        if beside in value:
            whole |= left
    return whole


def in_time(value):
    """Settings as they were before each key that was added since, and as they are."""
    added = list(ADDED_SINCE.items())
    forms = [value]
    forms += [with_kernels(of_ddqn, with_left(value)) for of_ddqn in (None, "torch", "numba")]
    return [without(dict(added[count:]), form) for count in range(len(added) + 1) for form in forms]


def with_kernels(of_ddqn, value):
    """With the key ``kernels``, which says how and not what, where it was: at first nowhere, then
    in DDQN, and as torch in DuelingDDQN.
    """
    if isinstance(value, list):
        return [with_kernels(of_ddqn, each) for each in value]
    if not isinstance(value, dict):
        return value
    whole = {key: with_kernels(of_ddqn, each) for key, each in value.items()}
    whole.pop("kernels", None)
    if of_ddqn is not None and {"tau", "epsilon_init"} <= value.keys():
        whole["kernels"] = "torch" if "feature_size" in value else of_ddqn
    return whole


def without(keys, value):
    """Without the entries that ``keys`` gives, however deep they are; with ``double`` came DDQN's
    ``max_grad_norm``, which other methods had before.
    """
    if isinstance(value, list):
        return [without(keys, each) for each in value]
    if not isinstance(value, dict):
        return value
    if {"double"} <= keys.keys() & value.keys():
        keys = {**keys, "max_grad_norm": None}
    return {key: without(keys, each) for key, each in value.items() if keys.get(key, ...) != each}


def training_config(words):
    """All values of a training, as its files hold them."""
    _, arguments = parse(words[1:], "lightning-rl", "train")
    return json.loads(json.dumps(dataclasses.asdict(run_config(run_options(arguments)))))


def hash_of(job, trainings, configs):
    """As if these had been run."""
    return hash_of_settings(configs, [step.run for step in trainings], job)


def test_proxies_of_the_suite_and_datasets_are_those_of_their_claims():
    """Nothing was picked: the n-th of a task is that of the claim's n-th seed, made by its
    command with what is in configs.
    """
    of_claims = [
        name
        for name in sorted(shipped(), key=lambda name: (len(name), name))
        if "-Suite-" in name or name[:2] == "SD"
    ]
    made = [(name[:2], read_proxy(proxy_path(name))[2]) for name in of_claims]
    trainings = {
        claim.commands[0]: claim
        for name, claim in CLAIMS.items()
        if name.startswith(("se-suite-", "sd-"))
    }
    found = 0
    for command, claim in trainings.items():
        config = training_config(
            [
                *shlex.split(command),
                *(f"--set={key}={value}" for key, value in claim.budget.items()),
            ]
        )
        its = [
            about
            for method, about in made
            if f"--implementation {method} --gamename {about['gamename']} " in command + " "
        ]
        assert [about["seed"] for about in its] == seed_list(claim.seeds)[: len(its)]
        for about in its:
            assert len(about["curve"]) == config["max_epochs"]
            assert json.loads(json.dumps(about["config"])) in in_time(config)
        found += len(its)
    assert found == len(made) > 0


def test_who_searches_otherwise_than_the_source_has_tried_more_than_its_settings():
    for name, claim in CLAIMS.items():
        otherwise = claim.published is not None and "another search" in claim.published.here.method
        assert not (claim.tried == 1 and otherwise), name


def test_the_ledger_is_that_of_the_manifest_and_the_csvs():
    """After a change: lightning-rl reproduce --ledger."""
    page = (ROOT / PAGE).read_text()
    (commit,) = re.findall(r"^Built at commit (\w+)\.$", page, re.MULTILINE)
    assert page == ledger(load_claims(MANIFEST), ROOT, commit)


def test_every_file_of_results_is_accounted_for():
    """A picture is drawn from what is there, an older file says how it was made; nothing repeats
    a figure.
    """
    manifest = load_claims(MANIFEST)
    files = {
        str(path.relative_to(ROOT)) for path in (ROOT / "results").rglob("*") if path.is_file()
    }
    known = set()
    for claim in CLAIMS.values():
        known |= {
            claim.curves_file,
            *map(str, (store.runs_path(Path(), claim), store.kept_path(Path(), claim))),
        }
    for name in sorted(files - known - set(manifest.figures)):
        notes = name.endswith((".md", ".yaml", ".lock"))
        assert notes or any(fnmatch(name, pattern) for pattern in manifest.earlier), name
        assert not name.endswith((".svg", ".sh"))
    assert all(any(fnmatch(name, pattern) for name in files) for pattern in manifest.earlier)
    sources = {
        word.partition(":")[0] for words in manifest.figures.values() for word in shlex.split(words)
    }
    assert {name for name in sources if name.startswith("results/")} <= files
    assert sum((ROOT / name).stat().st_size for name in files - known) < 6_500_000
    assert sum((ROOT / name).stat().st_size for name in files) < 8 * 2**20


def test_commits_of_measurements_are_in_the_history_or_named_as_lost():
    git = ["git", "-C", str(ROOT), "log", "--all", "--format=%H"]
    history = subprocess.run(git, capture_output=True, text=True).stdout.split()
    if len(history) < 100:
        pytest.skip("a checkout without its history")
    known = {commit[:12] for commit in history}
    lost = [
        (path.name, row["commit"])
        for path in ROOT.glob("results/claims/*.runs.csv")
        for row in csv.DictReader(path.open())
        if row["commit"] not in known
    ]
    page = " ".join((ROOT / "docs" / "evidence.md").read_text().split())
    (said,) = re.findall(r"Some rows \((\d+), of (\d+) claims\) name commits (.*?)\.", page)
    rows, claims, sentence = said
    assert set(re.findall(r"`(\w{12})`", sentence)) == {commit for _, commit in lost}
    assert (int(rows), int(claims)) == (len(lost), len({name for name, _ in lost}))


def rows_of_seeds(path):
    found = defaultdict(list)
    with path.open(newline="") as file:
        for row in csv.DictReader(file):
            found[row["seed"]].append(row)
    return found


def test_values_are_those_of_what_is_kept():
    """The last of a scalar, the mean of agents, and what searches reach, again from curves and
    agents.
    """
    checked = set()
    for name, claim in CLAIMS.items():
        read, curve = claim.read, ROOT / claim.curves_file
        if not (ROOT / store.runs_path(Path(), claim)).is_file():
            continue
        values = {
            seed: float(row["value"])
            for seed, (row,) in rows_of_seeds(ROOT / store.runs_path(Path(), claim)).items()
        }
        if read.keep == "agents" and read.statistic == "mean":
            kept = rows_of_seeds(ROOT / store.kept_path(Path(), claim))
            found = {
                seed: np.mean([float(row["return_mean"]) for row in kept[seed] if kind(row, read)])
                for seed in values
            }
        elif read.tag in claim.curves and curve.is_file():
            rows = rows_of_seeds(curve)
            thinned = any(len(rows[seed]) >= POINTS for seed in values) and read.every is None
            if thinned and not (read.last == 1 and read.statistic == "mean"):
                continue
            found = {}
            for seed in values:
                logged = [row for row in rows[seed] if row[read.tag]]
                steps = np.array([float(row["env_steps"]) for row in logged])
                kept = counted(read, steps, np.array([float(row[read.tag]) for row in logged]))
                found[seed] = statistic(read, np.arange(1.0, len(kept) + 1), kept)
        else:
            continue
        assert found == pytest.approx(values, rel=1e-5), name
        checked.add(name)
    assert {"mb-procmaze-er", "pg-tuned-aac", "se-acrobot-ddqn", "se-emptyroom22-search"} <= checked
    assert len(checked) > 60


@pytest.mark.parametrize(
    ("name", "files"),
    [
        (
            "acrobot-real-td3",
            {"lightning_rl/lab/protocols/transfer.py", "lightning_rl/agents/td3.py"},
        ),
        ("peers-cartpole-dqn", {"experiments/protocols/peers.py"}),
        ("obedience-rcp-a-slope", {"lightning_rl/lab/obedience.py"}),
        ("mb-procmaze-er", {"lightning_rl/agents/model_based.py"}),
        ("a2c-takecover", {"lightning_rl/envs/takecover.py", "lightning_rl/envs/doom.py"}),
        ("udrl-dense", {"lightning_rl/core/adam.py", "lightning_rl/core/seeding.py"}),
        ("sb3-pendulum-td3", {"experiments/baselines.py"}),
    ],
)
def test_the_code_of_a_claim_is_behind_all_of_its_commands(name, files):
    assert files <= code_of(CLAIMS[name])
    assert all(map(code_of, CLAIMS.values()))


def kind(row, read):
    return all(row.get(name, wanted) == wanted for name, wanted in read.where.items())


def test_no_table_of_results_repeats_what_a_figure_computes():
    tables = [
        list(csv.DictReader(path.open(newline="")))
        for path in sorted((ROOT / "results").rglob("*.csv"))
    ]
    runs = [{row["run"] for row in rows} for rows in tables if rows and "run" in rows[0]]
    assert len(runs) > 5
    assert not set().union(*runs) & set(AGGREGATES)


@pytest.mark.parametrize("path", load_claims(MANIFEST).earlier)
def test_older_commands_can_still_be_given(path, tmp_path):
    for command in load_claims(MANIFEST).earlier[path].commands:
        name, *words = shlex.split(command)
        words = [
            word.format(run=tmp_path, out=tmp_path / "out.csv")
            if word in ("{run}", "{out}")
            else word
            for word in words
        ]
        if name in ("train", "eval", "tune"):
            parse(words, "lightning-rl", name)
        else:
            assert words[0] in tools()[name].tools


def test_claims_are_on_fresh_seeds():
    assert (seed_list("100-102"), seed_list("100-100")) == ([100, 101, 102], [100])
    assert len(seed_list("100-355")) == 256
    for text, words in (
        ("0-9", "for tuning"),
        ("99-100", "for tuning"),
        ("109-100", "not a range"),
        ("100-356", "1 to 256 seeds"),
        ("100", "write 100-109"),
    ):
        with pytest.raises(ValueError, match=words):
            seed_list(text)
    assert min(seed for claim in CLAIMS.values() for seed in seed_list(claim.seeds)) == 100


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        (
            "goal: {mean",
            "goal: {meen",
            "claims.yaml', claim 'first', key 'goal.meen': unknown; did you mean 'mean'?",
        ),
        ("tried: 3", "tryed: 3", "claim 'first', key 'tryed': unknown; did you mean 'tried'?"),
        ("    tried: 3\n", "", "claim 'first', key 'tried': it is missing"),
        (
            "seeds: 100-101",
            "seeds: 0-9",
            "claim 'first': seeds: 0-9 begins below 100; these are for tuning",
        ),
        ("task: t", "task: 3", "claim 'first', key 'task': Input should be a valid string, got 3"),
        (
            "cpu_hours: 1",
            "cpu_hours: .nan",
            "key 'cpu_hours': Input should be a finite number, got nan",
        ),
        ("cartpole", "{game}", "placeholder 'game' is unknown; choose one of: seed, run, folder"),
        ("train --", "trian --", "command 'trian' is unknown; did you mean 'train'?"),
        (
            "read: {tag: eval/return_mean}",
            "read: {tag: a, table: b}",
            "key 'read': give one of tag, table and report",
        ),
        (
            "read: {tag: eval/return_mean}",
            "read: {tag: a, threshold: 1.0}",
            "threshold goes with the statistics first and above",
        ),
        ("curves: [eval/return_mean]", "curves: []", "curves lacks read.tag, 'eval/return_mean'"),
        (
            "read: {tag: eval/return_mean}",
            "read: {tag: a, rows: [b]}",
            "key 'read': rows are those of a report; give it as well",
        ),
        (
            "read: {tag: eval/return_mean}",
            "read: {report: a.json, key: b, rows: [c]}",
            "csv has room for curves or for rows",
        ),
        (
            "goal: {mean: 2.5}",
            "goal: {above: first, lower: true}",
            "above: a goal of lower values is no other claim",
        ),
        (
            "goal: {mean: 2.5}",
            "goal: {mean: 2.5, seeds: 1}",
            "seeds says how many have to reach every; give every as well",
        ),
        (
            "goal: {mean: 2.5}",
            "goal: {above: second}",
            "claim 'first', key 'goal.above': claim 'second' is unknown",
        ),
        ("  first:", "  First One:", "claim 'First One': a name has lower-case letters"),
        ("csv: results/claims", "csv: /etc", "key 'csv': String should match pattern"),
        ("elsewhere: {}", "elswhere: {}", "key 'elswhere': unknown; did you mean 'elsewhere'?"),
        ("source: s,", "sauce: s,", "'published.sauce': unknown; did you mean 'source'?"),
        *(
            (
                f"{name}: none",
                f"other_{name}: none",
                f"'published.here.other_{name}': unknown; did you mean '{name}'?",
            )
            for name in ("budget", "evaluation", "schedule")
        ),
        (", schedule: none", "", "claim 'first', key 'published.here.schedule': it is missing"),
        ("seeds: two", "seeds: as second", "seeds: 'as second' sends to another row; say what"),
        ("method: m, ", "", "claim 'first', key 'published.here.method': it is missing"),
        (
            "seeds: two",
            "seeds: ''",
            "key 'published.here.seeds': String should have at least 1 character, got ''",
        ),
        (
            "here: {method: m, budget: none, evaluation: none, seeds: two, schedule: none}",
            "here: all",
            "key 'published.here'",
        ),
        (
            "read: {tag: eval/return_mean}",
            "read: {tag: a, keep: means}",
            "key 'read': what is kept is of a table",
        ),
        (
            "tried: 3",
            "tried: 3\n    curves_csv: results/b.csv",
            "'results/b.csv' is of no claim with the same first training",
        ),
        ("tolerance: 0.01", "tolerance: [", "not valid YAML"),
    ],
)
def test_a_mistake_is_named_with_its_claim_and_key(before, after, words, tmp_path):
    path = tmp_path / "claims.yaml"
    path.write_text(GOOD)
    assert load_claims(path).claims["first"].budget == {"max_env_steps": 100}
    assert before in GOOD
    path.write_text(GOOD.replace(before, after, 1))
    with pytest.raises(UserError) as refused:
        load_claims(path)
    assert words in str(refused.value)
    assert str(path) in str(refused.value)


def test_a_number_of_seeds_that_is_said_to_differ_is_that_of_the_claim():
    said = {}
    for name, claim in CLAIMS.items():
        seeds = claim.published.here.found.get("seeds", "") if claim.published else ""
        if found := re.match(r"(\d+)( searches| environments)?( instead|,)", seeds):
            said[name] = int(found[1]), len(seed_list(claim.seeds))
    assert len(said) > 50
    assert {name: both for name, both in said.items() if both[0] != both[1]} == {}


def test_what_differs_is_one_sentence(tmp_path):
    (tmp_path / "claims.yaml").write_text(GOOD)
    here = load_claims(tmp_path / "claims.yaml").claims["first"].published.here
    assert here.text == "method: m; seeds: two"
    assert dataclasses.replace(here, method="none", seeds="none").text == "nothing that is known"


def test_outside_a_checkout_the_error_says_where_the_claims_are(tmp_path):
    with pytest.raises(
        UserError,
        match=r"claims.yaml' is missing: only a checkout of the repository holds the claims; clone "
        r"it",
    ):
        load_claims(tmp_path / "claims.yaml")


def test_listing_all_claims_is_light():
    """A second on a slow machine, with the intervals of what is measured: counted in calls, as
    others may compute beside it.
    """
    program = """
import sys
from lightning_rl.cli import main
calls = 0

def count(frame, event, arg):
    global calls
    calls += event == "call"

sys.setprofile(count)
assert main(["reproduce", "--list"], "lightning-rl") == 0
sys.setprofile(None)
heavy = {"torch", "pytorch_lightning", "ray", "pandas", "matplotlib", "gymnasium", "tensorboard", "scipy.stats"}
assert not heavy & set(sys.modules), heavy & set(sys.modules)
assert calls < 2_000_000, calls
"""  # noqa: E501
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert {line.split()[0] for line in done.stdout.splitlines() if line} >= set(CLAIMS)


def test_seeds_that_are_trained_at_once_are_one_training(tmp_path):
    """On a GPU, but for a smoke; each seed is read from its own folder of the run that begins
    with the first.
    """
    claim = CLAIMS["mb-buttongrid-er-thirty"]
    jobs = [
        Job("x", claim, seed, "c", tmp_path, lambda words, program: 0, None) for seed in (200, 229)
    ]
    (first,), (last,) = (steps_of(job, claim.budget) for job in jobs)
    assert first.words == last.words
    assert (first.place, first.first) == (last.place, last.first) == (first.run.parent, 200)
    assert [step.run.name for step in (first, last)] == ["seed_200", "seed_229"]
    assert "--accelerator gpu --seed 200 " in shown_command(claim, 229)
    (smoke,) = steps_of(dataclasses.replace(jobs[0], smoke=True), budget_of(claim, smoke=True))
    assert [word for flag, word in itertools.pairwise(smoke.words) if flag == "--accelerator"] == [
        "gpu",
        "cpu",
    ]


def test_the_place_of_a_training_does_not_depend_on_where_all_are(tmp_path):
    """The second starts from a file of the first."""
    claim, places = CLAIMS["se-cartpole-ddqn"], []
    for logdir in (tmp_path / "a", tmp_path / "b"):
        steps = steps_of(
            Job("x", claim, 100, "c", logdir, lambda words, program: 0, None), claim.budget
        )
        places.append([step.run.relative_to(logdir) for step in steps if step.run is not None])
    assert places[0] == places[1]
    assert len(places[0]) == 2


def test_a_smoke_has_a_budget_of_its_own():
    claim = dataclasses.replace(
        claim_of(None), budget={"max_epochs": 9, "population": 4}, smoke={"max_epochs": 1}
    )
    assert budget_of(claim, smoke=True) == {"max_epochs": 1, "population": 4}
    assert budget_of(claim, smoke=False) == claim.budget
