import shutil

import pytest
from helpers.runs import cli, log_scalars, train_cli

from lightning_rl.core.errors import UserError
from lightning_rl.lab.figures.groups import label_groups, labelled_runs
from lightning_rl.lab.figures.runs import find_runs, open_run, read_table, require_one_run_per_seed
from lightning_rl.lab.scalars import read_scalar


def write_run(folder, points, tag="rollout/return_mean", version=0):
    return log_scalars(folder, {tag: points}, version)


def test_a_resumed_run_is_one_curve_without_what_was_done_twice(tmp_path):
    for version, points in (
        (0, {10: 1.0, 20: 2.0, 30: 3.0}),
        (1, {20: 20.0, 25: 25.0}),
        (10, {40: 4.0}),
    ):
        write_run(tmp_path, points, "x", version)
    curve = read_scalar(tmp_path, "x")
    assert curve.env_steps.tolist() == [10, 20, 25, 40]
    assert curve.value.tolist() == [1.0, 20.0, 25.0, 4.0]
    assert (curve.seconds[1:] >= curve.seconds[:-1]).all()
    with pytest.raises(UserError, match="has no scalar 'y'"):
        read_scalar(tmp_path, "y")


def test_a_run_that_began_again_has_no_scalar_of_the_attempt_before(tmp_path):
    """One that the later attempt has not logged yet, as its evaluations are rare, is void from
    where that began.
    """
    write_run(tmp_path, {10: 1.0, 20: 2.0, 30: 3.0}, "eval/return_mean", 0)
    write_run(tmp_path, {2: 1e-3, 3: 1e-4}, "lr-Adam", 0)  # over another axis
    write_run(tmp_path, {20: 1.0}, "time/episodes", 1)
    write_run(tmp_path, {4: 1e-5}, "lr-Adam", 1)
    assert read_scalar(tmp_path, "eval/return_mean").env_steps.tolist() == [10]
    assert read_scalar(tmp_path, "lr-Adam").env_steps.tolist() == [2, 3, 4]
    write_run(tmp_path, {0: 0.0}, "time/episodes", 2)
    with pytest.raises(UserError, match="has no scalar 'eval/return_mean'"):
        read_scalar(tmp_path, "eval/return_mean")


def test_what_a_run_is(tmp_path):
    train_cli(tmp_path, 2)
    (run,) = find_runs([tmp_path])
    known = [run.key(name) for name in ("gamename", "implementation", "seed", "batch_size")]
    assert known == ["cartpole", "UDRL", 25, 16]
    with pytest.raises(
        UserError, match=r"no key 'batch_sise' in its config.yaml; did you mean 'batch_size'\?"
    ):
        run.key("batch_sise")
    (
        run.path / "config.yaml"
    ).unlink()  # older runs and those of other programs: what the folders say
    assert dict(open_run(run.path).about) == {
        "gamename": "cartpole",
        "exp_name": "default",
        "implementation": "UDRL",
        "seed": 25,
    }


def test_runs_are_found_in_the_order_of_their_numbers(tmp_path):
    for seed in (10, 9):
        write_run(tmp_path / f"seed_{seed}", {1: 1.0})
    assert [run.path.name for run in find_runs([tmp_path])] == ["seed_9", "seed_10"]


def test_trials_of_a_search_are_found_in_its_own_folder_alone(tmp_path):
    search, named = tmp_path / "game" / "exp" / "M" / "tune", tmp_path / "game" / "tune" / "M"
    write_run(search / "1f" / "M" / "seed_1", {1: 1.0})
    write_run(named / "seed_2", {1: 1.0})  # of an experiment of that name
    (search / "search.yaml").write_text("{}")
    assert [run.path.name for run in find_runs([tmp_path])] == ["seed_2"]
    assert [run.path.name for run in find_runs([search])] == ["seed_1"]


def test_a_broken_run_never_hides_the_good_ones(tmp_path, capsys):
    good = write_run(tmp_path / "game" / "exp" / "M" / "seed_1", {1: 1.0, 2: 2.0})
    cut = write_run(tmp_path / "game" / "exp" / "M" / "seed_2", {1: 1.0, 2: 2.0, 3: 3.0})
    (events,) = (cut / "logger" / "version_0").iterdir()
    events.write_bytes(events.read_bytes()[:-10])  # as after kill -9 while writing
    foreign = tmp_path / "game" / "exp" / "M" / "seed_3" / "logger" / "version_0"
    foreign.mkdir(parents=True)
    (foreign / "events.out.tfevents.1").write_bytes(b"\x00\xff" * 500)
    shutil.copytree(good, tmp_path / "game" / "exp" / "M" / "seed_4")
    (tmp_path / "game" / "exp" / "M" / "seed_4" / "config.yaml").write_text("config: [1,")
    (tmp_path / "empty").mkdir()
    (tmp_path / "half.csv").write_text("run,value\nseed_1,3\n")
    sources = [tmp_path / "game", tmp_path / "empty", tmp_path / "nowhere", tmp_path / "half.csv"]
    table = read_table([str(source) for source in sources], "rollout/return_mean")
    assert table.groupby("seed")["value"].agg(list).to_dict() == {"1": [1.0, 2.0], "2": [1.0, 2.0]}
    lines = capsys.readouterr().err.strip().splitlines()
    assert all(line.startswith("skipped '") for line in lines)
    for words in (
        "seed_3': has no scalar",  # the path once
        "config.yaml' is damaged",
        "empty': no run at or below",
        "nowhere': it does not exist",
        "half.csv': it lacks a column 'env_steps' or 'env_step'; its columns: run, value",
    ):
        assert sum(words in line for line in lines) == 1, (words, lines)


def test_nothing_to_draw_is_an_error(tmp_path, capsys):
    assert cli("figures", "curves", tmp_path / "out", tmp_path) == 2
    assert capsys.readouterr().err.strip().splitlines()[-1].startswith("error: nothing to draw")
    assert cli("figures", "curve") == 2
    assert "'curve' is unknown; did you mean 'curves'?" in capsys.readouterr().err


def test_environments_are_never_mixed_and_a_seed_counts_once(tmp_path):
    for game, exp in (("a", "x"), ("b", "x"), ("a", "y")):
        write_run(tmp_path / game / exp / "M" / "seed_1", {1: 1.0})
    table = read_table([str(tmp_path)], "rollout/return_mean")
    own = label_groups(table, None)
    assert sorted(set(zip(own["gamename"], own["group"], strict=True))) == [
        ("a", "M, x"),
        ("a", "M, y"),
        ("b", "M, x"),
    ]
    require_one_run_per_seed(own)
    # tells no experiment
    (tmp_path / "old.csv").write_text("gamename,group,run,env_steps,value\na,M,seed_1,1,1.0\n")
    both = label_groups(
        read_table([str(tmp_path), f"{tmp_path}/old.csv:old"], "rollout/return_mean"), None
    )
    assert sorted(set(both["group"])) == ["M, x", "M, y", "old"]
    with pytest.raises(
        UserError, match="are of one seed and one group; tell them apart with --group exp_name"
    ):
        require_one_run_per_seed(label_groups(table, ["implementation"]))


def test_the_curves_of_a_claim_are_told_by_the_csv_of_its_runs(tmp_path, capsys):
    path, beside = tmp_path / "claim.csv", tmp_path / "claim.runs.csv"
    path.write_text("seed,env_steps,value\n100,1,5\n101,1,6\n")
    beside.write_text("seed,gamename,implementation\n101,cartpole,DDQN\n100,acrobot,PPO\n")
    table = read_table([str(path)], "value")
    of = table[["seed", "gamename", "implementation", "value"]].to_numpy().tolist()
    assert of == [["100", "acrobot", "PPO", 5.0], ["101", "cartpole", "DDQN", 6.0]]
    beside.write_text("seed,gamename,implementation\n101,cartpole,DDQN\n")
    with pytest.raises(UserError, match="nothing to draw"):
        read_table([str(path)], "value")
    assert (
        "claim.runs.csv' has no row of seed 100; run lightning-rl reproduce claim"
        in capsys.readouterr().err
    )
    beside.write_text("seed,value\n100,5\n")
    with pytest.raises(UserError, match="nothing to draw"):
        read_table([str(path)], "value")
    assert "lacks the column gamename, implementation" in capsys.readouterr().err


def test_what_all_runs_lack_is_said_once(tmp_path, capsys):
    for seed in (1, 2, 3):
        write_run(tmp_path / "a" / "x" / "M" / f"seed_{seed}", {1: 1.0})
    assert cli("figures", "curves", tmp_path / "out", tmp_path, "--tag", "rollout/retun_mean") == 2
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert line.startswith("error: nothing to draw: ")
    assert "seed_1' and 2 more: has no scalar 'rollout/retun_mean'; did you mean" in line


def test_what_a_results_csv_loses_is_said(tmp_path, capsys):
    path = tmp_path / "t.csv"
    path.write_text(
        "implementation,seed,env_steps,value\nm,1,10,1\nm,1,20,oops\nm,1,30,1e400\nm,1,40,\nm,1,50,3"
    )
    table = read_table([str(path)], "value")
    assert table["value"].tolist() == [1.0]
    err = capsys.readouterr().err
    assert "2 rows, the first is row 2, have no finite number there; the others count" in err
    assert "its last row is not whole" in err


def test_runs_of_one_seed_are_named_as_a_pair(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("implementation,seed,env_steps,value\nm,1,10,1\nm,2,10,1\n")
    copy = shutil.copy(path, tmp_path / "u.csv")
    with pytest.raises(UserError, match=rf"'{path}:m:::1' and '{copy}:m:::1' are of one seed"):
        labelled_runs([str(path), str(copy)], "value")


@pytest.mark.parametrize(
    ("figure", "tag"), [("curves", "rollout/return_mean"), ("proxy-success", "es/fitness_mean")]
)
def test_a_group_by_a_key_that_no_run_has_is_named_last(tmp_path, capsys, figure, tag):
    run = tmp_path / "cartpole" / "default" / "UDRL" / "seed_1"
    log_scalars(run, {tag: {1: 1.0}, "time/num_updates": {1: 1.0}})
    assert cli("figures", figure, tmp_path / "out", tmp_path, "--group", "lerning_rate") == 2
    last = (
        "error: --group lerning_rate: no source has that key; they have: gamename, exp_name, "
        "implementation, seed"
    )
    assert capsys.readouterr().err.splitlines()[-1] == last


def test_a_group_of_unequal_configs_is_named(tmp_path, capsys):
    train_cli(tmp_path, 2, "--seed", "1")
    train_cli(tmp_path, 3, "--seed", "2")  # a longer budget is no other method
    read = [str(tmp_path)], "rollout/return_mean"
    require_one_run_per_seed(label_groups(read_table(*read), None))
    assert "differ" not in capsys.readouterr().err
    train_cli(tmp_path, 2, "--seed", "3", batch_size=8)
    require_one_run_per_seed(label_groups(read_table(*read), None))
    assert (
        "the runs of cartpole, UDRL differ in their configs; --group KEY" in capsys.readouterr().err
    )
    table = label_groups(read_table(*read, keys=["batch_size"]), ["batch_size"])
    assert set(table["group"]) == {"batch_size 16", "batch_size 8"}
