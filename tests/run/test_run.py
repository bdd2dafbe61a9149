"""Runs as a user starts them: what they leave on disk, resuming, interruption, failure."""

import contextlib
import errno
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
import warm
import yaml
from helpers.budgets import SMALL_CRITIC, covering, fitting, tiny_flags, tiny_settings
from helpers.runs import forget_last, run_cli, run_dir, train_cli
from pytorch_lightning import Callback
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

import lightning_rl
from lightning_rl.cli import main
from lightning_rl.envs.gym import can_film
from lightning_rl.envs.spec import env_spec
from lightning_rl.lab.scalars import event_files, read_scalar
from lightning_rl.methods.registry import IMPLEMENTATIONS
from lightning_rl.run import state
from lightning_rl.run.callbacks import StopAtReturn


def weights(path: Path) -> dict[str, torch.Tensor]:
    return torch.load(path, weights_only=True)["state_dict"]


def same(a: dict[str, torch.Tensor], b: dict[str, torch.Tensor], equal=torch.equal) -> bool:
    return a.keys() == b.keys() and all(equal(a[k], b[k]) for k in a)


def scalars(folder: Path) -> EventAccumulator:
    events = EventAccumulator(str(next((folder / "logger").iterdir())))
    events.Reload()
    return events


def start(logdir: Path, *flags: str, **settings) -> warm.Command:
    return warm.Command(
        [
            "trainer.py",
            "--gamename",
            "cartpole",
            "--logdir",
            logdir,
            *tiny_flags(**settings),
            *flags,
        ]
    )


def wait_for(condition, seconds: float = 60) -> None:
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until, "waited in vain"
        time.sleep(0.05)


def test_run_directory_is_as_documented(tmp_path, capsys):
    train_cli(tmp_path, 4, "--recording_epoch_interval", "4")
    folder = run_dir(tmp_path)
    config = yaml.safe_load((folder / "config.yaml").read_text())
    assert config["config"]["batch_size"] == 16
    assert config["versions"]["torch"] == torch.__version__
    assert {"git_commit", "seed", "implementation", "gamename", "command"} <= config.keys()
    assert (folder / "last.ckpt").exists()
    assert len(list(folder.glob("epoch=*.ckpt"))) == 1
    assert sorted(p.name for p in (folder / "recordings" / "epoch_3").iterdir()) == [
        "greedy.mp4",
        "sampled.mp4",
    ]
    assert [p.name for p in (folder / "logger").iterdir()] == ["version_0"]
    assert "finished at" in capsys.readouterr().out
    assert not list(folder.rglob("*.tmp"))


def test_the_commit_is_none_of_a_repository_that_the_package_is_only_installed_in(
    tmp_path, monkeypatch
):
    def git(*words):
        subprocess.run(
            [*"git -c user.name=a -c user.email=a@b".split(), *words], cwd=tmp_path, check=True
        )

    module = tmp_path / "state.py"
    module.touch()
    monkeypatch.setattr(state, "__file__", str(module))
    git("init", "-q")
    git("commit", "-q", "--allow-empty", "-m", "theirs")
    commit = state._git_commit.__wrapped__  # which is looked up once in a process
    assert commit() is None
    git("add", "state.py")
    git("commit", "-q", "-m", "ours")
    assert re.fullmatch("[0-9a-f]{40}", commit())


# Drawing the hundreds of frames of their episodes takes seconds, of halfcheetah minutes; how films
# are made differs in nothing, so each environment is filmed once.
LONG = tuple("acrobot halfcheetah mountaincar mountaincar-continuous pendulum".split())


@pytest.mark.parametrize(("implementation", "gamename"), covering())
def test_every_environment_trains_resumes_and_is_evaluated(
    tmp_path, monkeypatch, gamename, implementation
):
    films = can_film(env_spec(gamename)) and gamename not in LONG and implementation == "UDRL"
    monkeypatch.setattr("lightning_rl.lab.evaluate.can_film", lambda spec: films)
    few = (
        {"learning_starts": 1, "num_episodes_per_iter": 1}
        if implementation == "UDRL" and gamename in LONG
        else {}
    )
    # one evaluation in the training, of one episode
    few |= {"eval_interval": 4, "eval_episodes": 1}
    for epochs in ("2", "4"):
        flags = ("--max_epochs", epochs, "--resume")
        assert (
            run_cli(tmp_path, *flags, gamename=gamename, implementation=implementation, **few) == 0
        )
    last = run_dir(tmp_path, gamename, implementation=implementation) / "last.ckpt"
    assert torch.load(last, weights_only=True)["epoch"] == 3
    assert main(["--eval_agent", str(last), "--eval_episodes", "1", "--num_workers", "0"]) == 0
    assert last.with_name("evaluation.mp4").exists() is films


def test_scalars_over_env_steps_and_the_hparams_tab(tmp_path):
    train_cli(tmp_path, 4, num_held_out_episodes_per_iter=1)
    events = scalars(run_dir(tmp_path))
    tags = set(events.Tags()["scalars"])
    promised = {
        f"rollout/{k}" for k in "return_mean return_std return_min return_max length_mean".split()
    }
    promised |= {"Returns/rollout", "Returns/eval", "Returns/greedy"}
    promised |= {
        "eval/return_mean",
        "eval_greedy/return_mean",
        "train/policy_loss",
        "train/entropy",
        "command/return",
    }
    promised |= {
        "eval_low/return_mean",
        "eval_high/return_mean",
        "eval/command_sensitivity",
        "eval/rank_correlation",
    }
    promised |= {
        "command/horizon",
        "time/env_steps_per_second",
        "time/held_out_env_steps",
        "time/eval_env_steps",
    }
    assert promised | {"held_out/policy_loss", "train/gate_saturation"} <= tags
    last = weights(run_dir(tmp_path) / "last.ckpt")
    loss = events.Scalars("train/policy_loss")
    assert loss[-1].step == int(last["env_steps"])
    assert len(loss) == 4
    assert len(events.Scalars("eval/return_mean")) == 2
    assert int(last["held_out_env_steps"]) > 0
    assert int(last["eval_env_steps"]) > 0
    assert int(last["num_updates"]) == 12
    assert "_hparams_/session_start_info" in events.summary_metadata


# One of each class: its implementations differ in their updates, of which workers know nothing.
PLAYERS = {IMPLEMENTATIONS[name]: name for name, _ in fitting(games=["cartpole"])}


@pytest.mark.parametrize("implementation", PLAYERS.values())
def test_num_workers_do_not_change_a_run(tmp_path, implementation):
    finals, less = [], SMALL_CRITIC if implementation == "RCP-R" else {}
    for num_workers in ("0", "1", "2"):
        logdir = tmp_path / num_workers
        train_cli(logdir, 4, "--num_workers", num_workers, implementation=implementation, **less)
        finals.append(weights(run_dir(logdir, implementation=implementation) / "last.ckpt"))
    assert same(finals[0], finals[1])
    # A population in two processes is in other stacks, which may be rounded differently; all else
    # has the same shapes.
    assert same(
        finals[0],
        finals[2],
        torch.allclose if implementation in ("SE", "RN", "SD") else torch.equal,
    )


@pytest.mark.parametrize(
    ("implementation", "settings"),
    [
        ("UDRL", {"overlap": "true", "buffer": "both", "recent_episodes": 3, "noise_hold": 0.5}),
        ("RCP-R", {"overlap": "false", **SMALL_CRITIC}),
        ("RCP-A", {"overlap": "true", **SMALL_CRITIC}),
    ],
)
def test_resuming_equals_not_having_stopped(tmp_path, implementation, settings):
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    train_cli(whole, 7, implementation=implementation, **settings)
    for epochs in ("2", "5", "7"):
        train_cli(parts, epochs, "--resume", implementation=implementation, **settings)
    lasts = (
        run_dir(logdir, implementation=implementation) / "last.ckpt" for logdir in (whole, parts)
    )
    a, b = (torch.load(last, weights_only=True) for last in lasts)
    assert same(a["state_dict"], b["state_dict"])
    assert a["epoch"] == b["epoch"] == 6
    assert a["global_step"] == b["global_step"] >= 7
    assert str(a["optimizer_states"]) == str(b["optimizer_states"])


def test_a_resumed_run_says_how_it_began(tmp_path, monkeypatch):
    train_cli(tmp_path / "a", 1)
    source = run_dir(tmp_path / "a") / "last.ckpt"
    config = run_dir(tmp_path / "b") / "config.yaml"
    for epochs, flag in (("1", ["--reload", str(source)]), ("2", ["--resume"])):
        monkeypatch.setattr(sys, "argv", ["trainer.py", "--set", "hidden=[8, 8]", *flag])
        train_cli(tmp_path / "b", epochs, *flag)
        content = yaml.safe_load(config.read_text())
        assert shlex.split(content["command"]) == [
            "trainer.py",
            "--set",
            "hidden=[8, 8]",
            "--reload",
            str(source),
        ]
        assert (content["reload"], content["config"]["max_epochs"]) == (str(source), int(epochs))
    config.write_text("config: [")  # damaged
    assert run_cli(tmp_path / "b", "--max_epochs", "2", "--resume") == 2
    config.unlink()
    train_cli(tmp_path / "b", 2, "--resume")
    assert yaml.safe_load(config.read_text())["reload"] is None


def test_a_preset_of_which_a_record_leaves_nothing_is_refused(tmp_path, capsys):
    train_cli(tmp_path / "a", 1, implementation="RCP-A")
    record = str(run_dir(tmp_path / "a", implementation="RCP-A") / "config.yaml")
    words = [
        *"--implementation RCP-A --gamename cartpole --logdir".split(),
        str(tmp_path / "b"),
        "--config",
        record,
    ]
    assert main([*words, "--preset", "original"]) == 2
    assert "--preset original: --config has other values of all its keys" in capsys.readouterr().err
    assert not (tmp_path / "b").exists()
    (tmp_path / "part.yaml").write_text("config: {learning_rate: 0.01, max_epochs: 1}")
    words[-1] = str(tmp_path / "part.yaml")
    assert (
        main(
            [
                *words,
                *"--preset original --no_checkpoint --num_workers 0".split(),
                *tiny_flags("RCP-A"),
            ]
        )
        == 0
    )


def test_a_run_that_was_killed_before_its_first_checkpoint_begins_again_with_its_weights(tmp_path):
    train_cli(tmp_path / "a", 1)
    source = run_dir(tmp_path / "a") / "last.ckpt"
    train_cli(tmp_path / "b", 1, "--reload", str(source), learning_rate=1e-30)
    forget_last(run_dir(tmp_path / "b"))
    train_cli(tmp_path / "b", 1, "--resume", learning_rate=1e-30)
    a, b = weights(source), weights(run_dir(tmp_path / "b") / "last.ckpt")
    assert torch.equal(a["policy.net.net.embed_obs.weight"], b["policy.net.net.embed_obs.weight"])
    assert yaml.safe_load((run_dir(tmp_path / "b") / "config.yaml").read_text())["reload"] == str(
        source
    )


@pytest.mark.parametrize(
    ("settings", "epochs"),
    [({"max_epochs": 1}, []), ({"max_epochs": 5}, [1, 3]), ({"max_env_steps": 1}, [0])],
)
def test_evaluations_come_at_intervals_and_where_a_run_is_stopped(tmp_path, settings, epochs):
    """Not at the end of its epochs: resumed with more, it is to be the run that had them from
    the start.
    """
    evaluated = []

    class Seen(Callback):
        def on_validation_end(self, trainer, pl_module):
            evaluated.append(trainer.current_epoch)

    options = {
        **tiny_settings("UDRL"),
        "eval_interval": 2,
        "logdir": tmp_path,
        "num_workers": 0,
        **settings,
    }
    run = lightning_rl.train("UDRL", "cartpole", callbacks=[Seen()], **options)
    assert evaluated == epochs
    assert bool(run.metrics) == bool(epochs)


def test_no_checkpoint(tmp_path):
    train_cli(tmp_path, 2, "--no_checkpoint")
    assert not list(tmp_path.rglob("*.ckpt"))


def test_max_env_steps_stops_and_evaluates(tmp_path):
    assert run_cli(tmp_path, max_env_steps=150, eval_interval=1000) == 0
    last = weights(run_dir(tmp_path) / "last.ckpt")
    assert 150 <= int(last["env_steps"]) < 800
    assert len(scalars(run_dir(tmp_path)).Scalars("eval/return_mean")) == 1


def test_a_return_that_stays_stops_the_run_after_a_resume_too(tmp_path):
    # an evaluation every second epoch; CartPole's returns are above 8
    stop = ("--stop_return", "1", "--stop_evaluations", "3")
    for epochs in ("4", "100"):
        train_cli(tmp_path, epochs, "--resume", *stop)
    last = torch.load(run_dir(tmp_path) / "last.ckpt", weights_only=True)
    assert last["epoch"] == 5
    assert last["callbacks"]["StopAtReturn"] == {"target": 1.0, "in_a_row": 3}
    train_cli(tmp_path, 7, "--resume")  # the flag may be left out again
    assert torch.load(run_dir(tmp_path) / "last.ckpt", weights_only=True)["epoch"] == 6


def test_a_return_that_no_evaluation_can_see_is_refused(tmp_path, capsys):
    assert run_cli(tmp_path, "--max_epochs", "4", "--stop_return", "1", eval_interval=5) == 2
    assert (
        "--stop_return 1: an evaluation comes every 5 epochs, of 4 in all; --set eval_interval=4"
        in capsys.readouterr().err
    )


def test_a_lower_return_starts_the_count_anew():
    stop, stops = StopAtReturn(250, 2), []
    for value in (250.0, 249.9, 250.1, 300.0):
        trainer = SimpleNamespace(callback_metrics={"eval/return_mean": value}, should_stop=False)
        stop.on_validation_end(trainer, SimpleNamespace(monitor="eval/return_mean"))
        stops.append(trainer.should_stop)
    assert stops == [False, False, False, True]
    other = StopAtReturn(200, 2)
    other.load_state_dict(stop.state_dict())
    assert not other.reached, "a count for another return"


def test_evaluation_needs_only_the_path(tmp_path, capsys):
    train_cli(tmp_path, 2)
    path = run_dir(tmp_path) / "last.ckpt"
    capsys.readouterr()
    assert (
        main(["--eval_agent", str(path), "--eval_episodes", "5", "--eval_command", "return=200"])
        == 0
    )
    out = capsys.readouterr().out
    for word in (*"sampled greedy mean sd median iqm min max length".split(), "return 200"):
        assert word in out
    report = json.loads((path.parent / "evaluation_return=200.json").read_text())
    assert report["command"]["return"] == 200.0
    assert report["command"]["horizon"] == pytest.approx(float(weights(path)["target.horizon"]))
    assert len(report["sampled"]["returns"]) == len(report["greedy"]["lengths"]) == 5
    assert report["sampled"]["return"]["mean"] == pytest.approx(
        sum(report["sampled"]["returns"]) / 5
    )
    assert (path.parent / "evaluation_return=200.mp4").stat().st_size > 500
    best = next(path.parent.glob("epoch=*.ckpt"))
    for checkpoint, name in (
        (path, "evaluation"),
        (best, f"evaluation_{best.stem}"),
    ):  # neither replaces the other
        assert main(["--eval_agent", str(checkpoint), "--eval_episodes", "1"]) == 0
        for found, played in (("evaluation", path), (name, checkpoint)):
            assert json.loads((path.parent / f"{found}.json").read_text())["checkpoint"] == str(
                played
            )
        assert (path.parent / f"{name}.mp4").exists()
    # the other command's is kept
    assert json.loads((path.parent / "evaluation_return=200.json").read_text()) == report


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_signals_write_last_and_the_run_resumes_exactly(tmp_path, number, code):
    process = start(tmp_path / "a", "--max_epochs", "100000", checkpoint_interval=100000)
    folder = run_dir(tmp_path / "a")
    wait_for(lambda: list(folder.glob("epoch=*.ckpt")))
    process.send_signal(number)
    _, err = process.communicate(timeout=60)
    assert process.returncode == code, err
    assert "writing last.ckpt" in err
    assert "Traceback" not in err
    epochs = torch.load(folder / "last.ckpt", weights_only=True)["global_step"]
    train_cli(tmp_path / "a", epochs + 3, "--resume", checkpoint_interval=100000)
    train_cli(tmp_path / "b", epochs + 3, checkpoint_interval=100000)
    assert same(weights(folder / "last.ckpt"), weights(run_dir(tmp_path / "b") / "last.ckpt"))


def test_a_signal_to_the_whole_group_is_survived_too(tmp_path):
    process = start(tmp_path)
    wait_for(lambda: list(run_dir(tmp_path).glob("epoch=*.ckpt")))
    os.killpg(process.pid, signal.SIGTERM)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 143, err
    assert weights(run_dir(tmp_path) / "last.ckpt")


def test_kill_nine_leaves_a_loadable_last(tmp_path):
    for delay in (0.0, 0.03, 0.11):
        process = start(tmp_path, "--resume", checkpoint_interval=1)
        last = run_dir(tmp_path) / "last.ckpt"
        before = last.stat().st_mtime_ns if last.exists() else 0
        wait_for(lambda: last.exists() and last.stat().st_mtime_ns > before)  # noqa: B023
        time.sleep(delay)
        process.kill()
        process.communicate()
        assert weights(last)


def kill_a_child_at_work(parent: int) -> bool:
    """Whether there was one that had computed for 20 ms: of one that dies within the fork,
    Python itself has something to say.
    """
    for child in subprocess.run(
        ["pgrep", "-P", str(parent)], capture_output=True, text=True
    ).stdout.split():
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # it has ended
            times = Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()[11:13]
            if sum(map(int, times)) >= 2:
                os.kill(int(child), signal.SIGKILL)
                return True
    return False


def test_a_dead_worker_ends_the_run_with_an_error_and_leaves_the_checkpoint(tmp_path):
    process = start(
        tmp_path, "--num_workers", "1", checkpoint_interval=1, num_episodes_per_iter=500
    )
    wait_for(lambda: (run_dir(tmp_path) / "last.ckpt").exists())
    wait_for(lambda: kill_a_child_at_work(process.pid))
    _, err = process.communicate(timeout=60)
    assert process.returncode == 2, err
    line = err.strip().splitlines()[-1]
    assert line.startswith("error: a roll-out worker died")
    assert "episode" in line
    assert "Traceback" not in err
    assert weights(run_dir(tmp_path) / "last.ckpt")


@pytest.mark.parametrize("num_workers", ["0", "1"])
def test_an_environment_that_raises_ends_the_run(tmp_path, capsys, toy_games, num_workers):
    assert run_cli(tmp_path, "--num_workers", num_workers, gamename="raising") == 2
    err = capsys.readouterr().err
    assert "error: ValueError: the ground gave way -- raised in step() of RaisingTask at " in err
    assert "this was warm-up, episode 0" in err


def test_filming_what_cannot_render(tmp_path, capsys, toy_games):
    assert run_cli(tmp_path, "--recording_epoch_interval", "1", gamename="count") == 2
    assert (
        "gamename 'count' cannot render; leave out --recording_epoch_interval"
        in capsys.readouterr().err
    )


def test_nan_stops_the_run_before_it_is_saved(tmp_path, capsys):
    train_cli(tmp_path, 2)
    path = run_dir(tmp_path) / "last.ckpt"
    checkpoint = torch.load(path, weights_only=True)
    for name, value in checkpoint["state_dict"].items():
        if name.startswith("policy."):
            value.fill_(1e38)
    torch.save(checkpoint, path)
    poisoned = path.read_bytes()
    assert run_cli(tmp_path, "--resume", "--max_epochs", "4") == 2
    assert re.search(
        r"train/policy_loss is (nan|inf) in epoch 2: training diverged", capsys.readouterr().err
    )
    assert path.read_bytes() == poisoned


def test_a_full_disk_stops_the_run_and_keeps_the_old_checkpoint(tmp_path, capsys, monkeypatch):
    train_cli(tmp_path, 2)
    before = (run_dir(tmp_path) / "last.ckpt").read_bytes()

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    assert run_cli(tmp_path, "--resume", "--max_epochs", "4") == 2
    said = capsys.readouterr().err
    assert "error: the disk is full" in said
    assert "start again with --resume" in said
    assert (run_dir(tmp_path) / "last.ckpt").read_bytes() == before
    assert not list(run_dir(tmp_path).glob(".*.tmp"))


def test_two_processes_cannot_share_a_run_directory(tmp_path, capsys):
    process = start(tmp_path, "--no_checkpoint")
    wait_for(lambda: (run_dir(tmp_path) / "config.yaml").exists())
    assert run_cli(tmp_path, "--no_checkpoint") == 2
    assert "is in use by another process" in capsys.readouterr().err
    process.kill()
    process.communicate()


@pytest.mark.parametrize(
    ("implementation", "preset"), [("RCP-R", []), ("RCP-R", ["--preset", "returns"]), ("RCP-A", [])]
)
def test_what_rcp_logs(tmp_path, implementation, preset):
    train_cli(tmp_path, 4, *preset, implementation=implementation)
    tags = set(scalars(run_dir(tmp_path, implementation=implementation)).Tags()["scalars"])
    promised = {
        "eval/return_mean",
        "eval_greedy/return_mean",
        "eval/command_sensitivity",
        "eval/rank_correlation",
    }
    promised |= {
        "eval/truncated_share",
        "rollout/truncated_share",
        "train/entropy",
        "train/label_sd",
    }
    promised |= {
        "train/effective_sample_share",
        "train/gate_saturation",
        "command/target_mean",
        "command/target_sd",
    }
    critic = {"train/explained_variance", "train/value_loss"}
    assert promised <= tags
    assert (critic <= tags) is not bool(preset)  # the weights of `returns` need no critic


def test_a_resumed_run_is_one_curve_and_one_trial(tmp_path):
    train_cli(tmp_path, 3)  # the last checkpoint is of the third epoch
    folder, begun = run_dir(tmp_path), int(time.time())
    while (
        int(time.time()) == begun
    ):  # within one second of one process event files are ordered by number, 10 before 9
        time.sleep(0.05)
    train_cli(tmp_path, 5, "--resume")
    assert [path.name for path in (folder / "logger").iterdir()] == ["version_0"]
    assert len(event_files(folder)) == 2
    board = scalars(folder)
    steps = [event.step for event in board.Scalars("train/policy_loss")]
    assert len(steps) == 5
    assert steps == sorted(set(steps))
    assert read_scalar(folder, "train/policy_loss").env_steps.tolist() == steps
    # Killed after its last checkpoint: what it had logged beyond is void.
    first = (folder / "last.ckpt").read_bytes()
    train_cli(tmp_path, 8, "--resume")
    (folder / "last.ckpt").write_bytes(first)
    train_cli(tmp_path, 6, "--resume")
    steps = [event.step for event in scalars(folder).Scalars("train/policy_loss")]
    assert len(steps) == 6
    assert read_scalar(folder, "train/policy_loss").env_steps.tolist() == steps
