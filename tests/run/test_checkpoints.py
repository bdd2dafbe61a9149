"""What is best stands in the files of the run, and several seeds' checkpoints are written all or
not at all.
"""

import functools
import shutil
from collections import OrderedDict
from types import SimpleNamespace

import pytest
import torch
from helpers.members import compare, flat
from helpers.runs import Killed, forget_last, last, run_cli, run_dir, train_cli

from lightning_rl.core import files
from lightning_rl.core.errors import UserError
from lightning_rl.methods.stacked import MEMBER_COUNTERS
from lightning_rl.run.callbacks import BestCheckpoint, scores
from lightning_rl.run.checkpoints import committed, next_to, settle, write_together
from lightning_rl.run.member_checkpoints import (
    MemberCheckpointIO,
    join_checkpoints,
    member_checkpoint,
)


def best(folder):
    return sorted(path.name for path in folder.glob("epoch=*.ckpt"))


def test_a_run_that_was_moved_keeps_its_best(tmp_path):
    whole, parts, moved = tmp_path / "whole", tmp_path / "parts", tmp_path / "moved"
    train_cli(whole, 8, eval_interval=1)
    train_cli(parts, 4, eval_interval=1)
    parts.rename(moved)
    train_cli(moved, 8, "--resume", eval_interval=1)
    assert best(run_dir(moved)) == best(run_dir(whole))
    assert len(best(run_dir(moved))) == 1
    assert scores(run_dir(moved), "eval/return_mean") == scores(run_dir(whole), "eval/return_mean")


@pytest.mark.parametrize(
    ("found", "kept"),
    [({3: 10.0, 5: 20.0}, [5]), ({3: 1e9, 5: 20.0, 7: 0.0}, [3]), ({3: "1e9", 5: 1.0}, [3, 5])],
)
def test_of_several_best_the_highest_number_stays(tmp_path, found, kept):
    """Kills may leave two; what is no number is not ours, and stays as well."""
    train_cli(tmp_path, 2, eval_interval=1)
    folder = run_dir(tmp_path)
    (path,) = folder.glob("epoch=*.ckpt")
    content = torch.load(path, weights_only=True)
    path.unlink()
    for epoch, score in found.items():
        torch.save({**content, "eval/return_mean": score}, folder / f"epoch={epoch}.ckpt")
        files.adopt(folder / f"epoch={epoch}.ckpt")
    train_cli(tmp_path, 3, "--resume", eval_interval=100)
    assert best(folder) == [f"epoch={epoch}.ckpt" for epoch in kept]


@pytest.mark.parametrize("seeds", [1, 2])
def test_an_attempt_without_last_begins_anew_with_the_same_settings(tmp_path, seeds):
    play = functools.partial(
        run_cli,
        tmp_path,
        f"--num_seeds={seeds}",
        implementation="QL",
        gamename="cliff",
        eval_interval=1,
    )
    assert play("--max_epochs=2") == 0
    folders = [run_dir(tmp_path, "cliff", 25 + n, "QL") for n in range(seeds)]
    made = [{path.name: path.read_bytes() for path in folder.glob("*.ckpt")} for folder in folders]
    for folder in folders:
        forget_last(folder)
        (folder / "epoch=mine.ckpt").write_text("mine")
    assert play("--max_epochs=2", "--resume", gamma=0.5) == 2
    assert play("--max_epochs=2", "--resume") == 0
    for folder, before in zip(folders, made, strict=True):
        assert {path.name for path in folder.glob("*.ckpt")} == {*before, "epoch=mine.ckpt"}
        assert len(best(folder)) == 2


@pytest.mark.parametrize("also_gone", [(), ("state.yaml",), ("state.yaml", files.RECORD)])
def test_the_best_of_a_run_whose_last_is_gone_stays(tmp_path, also_gone, capsys):
    train_cli(tmp_path, 3, eval_interval=1)
    folder = run_dir(tmp_path)
    (name,) = best(folder)
    content = (folder / name).read_bytes()
    for gone in ("last.ckpt", *also_gone):
        (folder / gone).unlink()
    code = run_cli(tmp_path, "--max_epochs", "6", "--resume", eval_interval=1)
    assert (folder / name).read_bytes() == content
    if files.RECORD not in also_gone:
        assert code == 2
        assert f"--reload '{folder / name}'" in capsys.readouterr().err


def test_a_checkpoint_that_the_user_puts_into_a_run_is_left_alone(tmp_path):
    """Of another method, of another run, and a copy of the run's own under another name; the
    run's own is still replaced.
    """
    other, folder = tmp_path / "other", run_dir(tmp_path)
    train_cli(other, 2, implementation="RCP-R", eval_interval=1)
    train_cli(tmp_path, 2, eval_interval=1)
    (own,) = best(folder)
    (foreign,) = run_dir(other, implementation="RCP-R").glob("epoch=*.ckpt")
    theirs = {
        "epoch=3.ckpt": foreign.read_bytes(),
        "epoch=99.ckpt": (folder / own).read_bytes(),
        "epoch=4.ckpt": b"mine",
    }
    for name, content in theirs.items():
        (folder / name).write_bytes(content)
    (folder / own).write_bytes(b"no longer the run's")
    train_cli(tmp_path, 8, "--resume", eval_interval=1)
    for name, content in theirs.items():
        assert (folder / name).read_bytes() == content
    assert (folder / own).read_bytes() == b"no longer the run's"
    assert len(scores(folder, "eval/return_mean")) == 1


def test_a_better_model_of_one_seed_alone_survives_being_resumed_together(tmp_path):
    play = functools.partial(
        run_cli, tmp_path, "--resume", implementation="QL", gamename="cliff", eval_interval=1
    )
    folders = [run_dir(tmp_path, "cliff", 25 + n, "QL") for n in range(2)]
    for seed, folder in zip(("25", "26"), folders, strict=True):
        assert play("--seed", seed, "--max_epochs=1") == 0
        (name,) = best(folder)
        content = torch.load(folder / name, weights_only=True)
        # another name in each
        files.write_plain(folder / f"epoch={seed}.ckpt", {**content, "eval/return_mean": 1e3})
        files.remove(folder / name)
    assert play("--num_seeds=2", "--max_epochs=3") == 0
    for seed, folder in zip(("25", "26"), folders, strict=True):
        assert scores(folder, "eval/return_mean")[f"epoch={seed}.ckpt"] == 1e3


def evaluated(kept, epoch, score):
    """An evaluation after an epoch, of which a best checkpoint is one line of text."""
    trainer = SimpleNamespace(
        callback_metrics={"eval/return_mean": score},
        current_epoch=epoch,
        save_checkpoint=lambda path, **_: files.write_text(path, "ours"),
    )
    kept.on_validation_end(trainer, SimpleNamespace(monitor="eval/return_mean"))


def test_a_best_gets_another_name_where_the_user_has_taken_its_own(tmp_path):
    files.keep_record(tmp_path)
    (tmp_path / "epoch=0.ckpt").write_text("mine")
    evaluated(BestCheckpoint([tmp_path]), 0, 1.0)
    assert (tmp_path / "epoch=0.ckpt").read_text() == "mine"
    assert (tmp_path / "epoch=0-v1.ckpt").read_text() == "ours"


def test_an_old_best_that_the_user_has_changed_stays_and_one_of_a_later_epoch_until_it_is_reached(
    tmp_path,
):
    files.keep_record(tmp_path)
    kept = BestCheckpoint([tmp_path])
    evaluated(kept, 0, 1.0)
    evaluated(kept, 5, 2.0)
    (tmp_path / "epoch=5.ckpt").write_text("mine")
    evaluated(kept, 6, 3.0)
    assert best(tmp_path) == ["epoch=5.ckpt", "epoch=6.ckpt"]
    evaluated(kept, 1, 4.0)  # begun anew
    assert best(tmp_path) == ["epoch=1.ckpt", "epoch=5.ckpt", "epoch=6.ckpt"]
    evaluated(kept, 7, 5.0)
    assert best(tmp_path) == ["epoch=5.ckpt", "epoch=7.ckpt"]


def test_only_a_better_evaluation_replaces_the_best(tmp_path):
    kept, method = BestCheckpoint([tmp_path]), SimpleNamespace(monitor="eval/return_mean")

    def save(path, weights_only, storage_options):
        assert weights_only
        path.write_text(str(storage_options))

    for epoch, (score, there) in enumerate([(10.0, 0), (20.0, 1), (5.0, 1), (15.0, 1), (20.0, 1)]):
        measured = {"eval/return_mean": score}
        kept.on_validation_end(
            SimpleNamespace(callback_metrics=measured, current_epoch=epoch, save_checkpoint=save),
            method,
        )
        assert best(tmp_path) == [f"epoch={there}.ckpt"]
    assert (tmp_path / "epoch=1.ckpt").read_text() == "{'epoch': 1, 'eval/return_mean': 20.0}"


class KilledAt(files.System):
    """The process is killed in its n-th renaming; nothing happens after that."""

    def __init__(self, number):
        self.left = number

    def rename(self, source, target):
        self.left -= 1
        if self.left < 0:
            raise Killed
        super().rename(source, target)

    def unlink(self, path):
        if self.left < 0:
            raise Killed
        super().unlink(path)


def waits(folder):
    return any(folder.glob(".*.next"))


def content(epoch):
    return {"epoch": epoch, "state_dict": {}}


def epochs(paths):
    return [torch.load(path, weights_only=True)["epoch"] for path in paths]


@pytest.mark.parametrize("number", range(7))
@pytest.mark.parametrize("again", range(7))
def test_seeds_are_written_together_whenever_they_are_killed(tmp_path, monkeypatch, number, again):
    """Three seeds: three renamings of files that wait, three to their names; then a kill in the
    next save.
    """
    paths = [tmp_path / str(n) / "last.ckpt" for n in range(3)]
    folders = [path.parent for path in paths]
    for folder in folders:
        folder.mkdir()
        files.keep_record(folder)
    write_together(paths, map(content, [1, 1, 1]))
    newest = 1
    for epoch, kill in ((2, number), (3, again)):
        with monkeypatch.context() as patched:
            patched.setattr(files, "system", KilledAt(kill))
            if kill < 6:
                with pytest.raises(Killed):
                    write_together(paths, map(content, [epoch] * 3))
            else:
                write_together(paths, map(content, [epoch] * 3))
        newest = epoch if kill >= 3 else newest
        assert epochs(committed(paths)) == [newest] * 3
        settle(folders)
        assert epochs(paths) == [newest] * 3
        assert not any(map(waits, folders))


def test_a_save_that_fails_leaves_nothing_behind(tmp_path, monkeypatch):
    class Full(files.System):
        def write(self, descriptor, content):
            if "1" in str(files.Path(f"/proc/self/fd/{descriptor}").readlink().parent.name):
                raise OSError(28, "full")
            return super().write(descriptor, content)

    paths = [tmp_path / f"seed_{n}" / "last.ckpt" for n in range(3)]
    write_together(paths, map(content, [1, 1, 1]))
    monkeypatch.setattr(files, "system", Full())
    with pytest.raises(UserError, match="the disk is full"):
        write_together(paths, map(content, [2, 2, 2]))
    assert sorted(path for path in tmp_path.rglob("*") if path.is_file()) == paths
    assert epochs(paths) == [1, 1, 1]


def test_a_waiting_file_that_is_damaged_is_one_line(tmp_path):
    path = tmp_path / "last.ckpt"
    files.keep_record(tmp_path)
    for damage in (OrderedDict(), {"epoch": "3"}, [1]):
        files.write_plain(next_to(path), damage)
        with pytest.raises(UserError, match=r"\.last\.ckpt\.next' has no epoch; remove it"):
            committed([path])


def test_stacked_seeds_resume_after_a_kill_between_their_files(tmp_path, monkeypatch):
    """In the save of the second epoch; one seed alone can go on from its own file as well."""
    whole, parts, alone = tmp_path / "whole", tmp_path / "parts", tmp_path / "alone"
    settings = {"checkpoint_interval": 1, "eval_interval": 100}
    run = {"implementation": "DDQN", **settings}
    stack = ("--num_seeds", "2")
    train_cli(whole, 2, *stack, **run)
    train_cli(parts, 1, *stack, **run)
    # state.yaml and config.yaml of each seed, what waits of each, the first one's last.ckpt
    renamed_before = 2 * 2 + 2 + 1
    with monkeypatch.context() as patched:
        patched.setattr(files, "system", KilledAt(renamed_before))
        with pytest.raises(Killed):
            run_cli(parts, "--max_epochs", "2", *stack, "--resume", **run)
    shutil.copytree(parts, alone)
    train_cli(parts, 2, *stack, "--resume", **run)
    train_cli(alone, 2, "--resume", "--seed", "26", **run)
    for logdir in (parts, alone):
        expected, got = (last(each, "DDQN", seed=26) for each in (whole, logdir))
        assert expected["state_dict"].keys() == got["state_dict"].keys()
        assert all(
            torch.equal(expected["state_dict"][name], got["state_dict"][name])
            for name in expected["state_dict"]
        )
    assert not any(waits(run_dir(parts, seed=seed, implementation="DDQN")) for seed in (25, 26))


def stack_of_three():
    """A stack whose second member has ended: it has results alone."""
    counters, block = (
        torch.tensor([[9, 4, 0, 2], [7, 8, 0, 3], [9, 4, 0, 1]]),
        torch.arange(6.0).reshape(3, 2),
    )
    weights = {"member_counters": counters, "agent.params": block + 10, "target": torch.ones(1)}
    weights |= {f"policies.{n}.weight": block[n] for n in range(3)}
    weights |= dict(zip(MEMBER_COUNTERS, counters.amax(0), strict=True))
    rows = {name: {"x": torch.tensor([5.0, 6.0])} for name in ("loop", "envs", "memory")}
    return {
        "epoch": 4,
        "hyper_parameters": {"seed": 7, "num_seeds": 3},
        "state_dict": weights,
        "optimizer_states": [
            {"clock": 1},
            {"state": {0: {"exp_avg": block.clone()}}, "param_groups": []},
        ],
        "data": {
            "step": 40,
            "members": torch.tensor([0, 2]),
            **rows,
            "results": {"returns": block + 20},
        },
    }


def test_a_stack_comes_apart_into_its_seeds_and_together_again():
    whole = stack_of_three()
    parts = [member_checkpoint(whole, member, "data") for member in range(3)]
    assert [part["hyper_parameters"] for part in parts] == [{"seed": 7}, {"seed": 8}, {"seed": 9}]
    assert [int(part["state_dict"]["num_updates"]) for part in parts] == [4, 8, 4]
    assert [part["state_dict"]["policies.0.weight"].tolist() for part in parts] == [
        [0, 1],
        [2, 3],
        [4, 5],
    ]
    assert [part["data"]["members"].tolist() for part in parts] == [[0], [], [0]]
    assert [part["data"]["loop"]["x"].tolist() for part in parts] == [[5], [], [6]]
    weight = parts[0]["state_dict"]["policies.0.weight"]
    # no view of all members' weights, which would be written with it
    assert weight.untyped_storage().nbytes() == 8
    joined = join_checkpoints(parts, "data")
    assert joined["hyper_parameters"] == whole["hyper_parameters"]
    compare(
        flat({**joined, "hyper_parameters": {}}),
        flat({**whole, "hyper_parameters": {}}),
        exactly=True,
    )
    nobody = join_checkpoints([parts[1], parts[1]], "data")["data"]
    assert (nobody["members"].tolist(), nobody["loop"]["x"].tolist()) == ([], [])
    assert nobody["results"]["returns"].tolist() == [[22, 23], [22, 23]]


def test_a_checkpoint_of_several_seeds_is_removed_of_each(tmp_path):
    paths = [tmp_path / seed / "epoch=1.ckpt" for seed in ("a", "b")]
    for path in paths:
        path.parent.mkdir()
        path.touch()
    MemberCheckpointIO([path.parent for path in paths], "data").remove_checkpoint(paths[0])
    assert not any(path.exists() for path in paths)
