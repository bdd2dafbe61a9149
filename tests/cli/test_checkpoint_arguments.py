"""Checkpoints and run directories on the command line: which are refused, and what each error
says.
"""

import os
import shutil

import pytest
import torch
from helpers.runs import refused, run_cli, run_dir, train_cli

from lightning_rl.cli import main
from lightning_rl.core.files import adopt
from lightning_rl.run.state import checkpoint_at


def test_reload_of_another_environment_or_size(trained, capsys, tmp_path):
    line = refused(capsys, run_cli(tmp_path, "--reload", str(trained), gamename="acrobot"))
    assert "its gamename is 'cartpole', this run's is 'acrobot'" in line
    line = refused(capsys, run_cli(tmp_path, "--reload", str(trained), hidden=[8, 16]))
    assert "body.0.weight" in line
    assert "use another, or the config that it was trained with" in line


def test_a_run_from_before_a_key_goes_on_where_its_value_changes_nothing(tmp_path, capsys):
    train_cli(tmp_path, 1)
    last = run_dir(tmp_path) / "last.ckpt"
    checkpoint = torch.load(last, weights_only=True)
    for key in ("action_masks", "normalise_obs"):
        checkpoint["hyper_parameters"]["config"].pop(key, None)
    torch.save(checkpoint, last)
    adopt(last)
    capsys.readouterr()
    line = refused(capsys, run_cli(tmp_path, "--resume", normalise_obs=True))
    assert "normalise_obs is True now but False" in line
    train_cli(tmp_path, 2, "--resume")
    assert torch.load(last, weights_only=True)["epoch"] == 1


def test_resume_of_another_method_or_other_settings(trained, capsys, tmp_path):
    logdir = trained.parents[4]
    before = trained.read_bytes()
    line = refused(capsys, run_cli(logdir, "--resume", learning_rate=0.5))
    assert "learning_rate is 0.5 now but 0.001" in line
    assert "another --exp_name" in line
    checkpoint = torch.load(trained, weights_only=True)
    checkpoint["hyper_parameters"]["implementation"] = "SE"
    other = run_dir(tmp_path)
    other.mkdir(parents=True)
    torch.save(checkpoint, other / "last.ckpt")
    assert "is of SE on cartpole" in refused(capsys, run_cli(tmp_path, "--resume"))
    assert "does not fit this version's SE" in refused(
        capsys, main(["--eval_agent", str(other / "last.ckpt")])
    )
    shutil.copytree(trained.parent, run_dir(tmp_path, "acrobot"))
    assert "is of UDRL on cartpole" in refused(
        capsys, run_cli(tmp_path, "--resume", gamename="acrobot")
    )
    assert trained.read_bytes() == before


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("speed=3", "unknown name 'speed'; this checkpoint knows: return, horizon"),
        ("return=high", "'high' is not a number"),
    ],
)
def test_bad_eval_command(text, words, trained, capsys):
    assert words in refused(capsys, main(["--eval_agent", str(trained), "--eval_command", text]))


def test_a_run_directory_stands_for_its_checkpoint(trained, capsys, tmp_path):
    folder = trained.parent
    assert checkpoint_at(folder) == trained
    assert checkpoint_at(trained) == trained
    (best,) = folder.glob("epoch=*.ckpt")
    shutil.copy(best, tmp_path / best.name)
    shutil.copy(best, tmp_path / "epoch=99.ckpt")
    os.utime(tmp_path / "epoch=99.ckpt", (0, 0))  # an earlier one, whatever its name
    assert checkpoint_at(tmp_path) == tmp_path / best.name
    assert main(["eval", str(tmp_path), "--episodes", "2", "--num_workers", "0"]) == 0
    assert f"evaluating '{tmp_path / best.name}'" in capsys.readouterr().out
    (tmp_path / "empty").mkdir()
    assert "holds no checkpoint" in refused(capsys, main(["--eval_agent", str(tmp_path / "empty")]))
