"""Every promised error: one line that names value, limit and remedy, exit code 2, nothing lost on disk."""

import os
import pickle
from pathlib import Path

import pytest
import torch
from helpers import run_cli, run_dir

from lightning_rl.cli import build_parser, main
from lightning_rl.registry import ALIASES, IMPLEMENTATIONS


def refused(capsys, code: int) -> str:
    """The one line of an error."""
    captured = capsys.readouterr()
    assert code == 2, captured
    lines = captured.err.strip().splitlines()
    assert len(lines) == 1
    assert lines[0].startswith("error: ")
    return lines[0]


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--implementation", "UDLR"], ["'UDLR' is unknown", "choose one of: UDRL"]),
        (["--gamename", "pong"], ["unknown gamename 'pong'", "lunarlander-sparse"]),
        (["--set", "learning_rat=1"], ["--set: unknown key 'learning_rat'", "did you mean 'learning_rate'?"]),
        (["--set", "batch_size=big"], ["--set: key 'batch_size'", "valid integer", "got 'big'"]),
        (["--set", "batch_size=1.5"], ["key 'batch_size'", "got 1.5"]),
        (["--set", "batch_size=-4"], ["key 'batch_size'", "greater than 0", "got -4"]),
        (["--set", "overlap=3"], ["key 'overlap'", "valid boolean", "got 3"]),
        (["--set", "hidden=[]"], ["key 'hidden'", "at least 1 item"]),
        (["--set", "hidden=[32, 0]"], ["key 'hidden'", "greater than 0"]),
        (["--set", "network=transformer"], ["key 'network'", "'gated', 'hyper' or 'bilinear'", "got 'transformer'"]),
        (["--set", "learning_rate"], ["expected key=value"]),
        (["--set", "hidden=[1,"], ["--set hidden: not valid YAML"]),
        (["--seed", "-1"], ["--seed", "-1 is negative"]),
        (["--max_epochs", "0"], ["--max_epochs", "0 is too small", "1 or more"]),
        (["--max_epochs", "many"], ["--max_epochs", "invalid", "'many'"]),
        (["--num_workers", "-2"], ["--num_workers", "-2 is negative"]),
        (["--num_workers", "9999"], ["9999 workers on", "cores", "or fewer"]),
        (["--eval_episodes", "-3"], ["--eval_episodes", "-3 is too small"]),
        (["--recording_epoch_interval", "0"], ["0 is not an interval", "-1 for never"]),
        (["--exp_name", "../up"], ["--exp_name '../up' is not a folder name"]),
        (["--accelerator", "abacus"], ["--accelerator", "invalid choice: 'abacus'"]),
        (["--num_seeds", "3"], ["--num_seeds 3: UDRL trains one seed at a time"]),
        (["--implementation", "DDQN", "--gamename", "pendulum"], ["DDQN does not fit gamename 'pendulum'", "use TD3 or PPO"]),
        (["--implementation", "QL"], ["QL does not fit gamename 'lunarlander'", "use a grid world, e.g. cliff"]),
        (["--implementation", "PPO", "--set", "batch_size=60"], ["batch_size 60 does not divide rollout_steps 2048"]),
        (["--executor", "ray"], ["--executor ray: UDRL evaluates no population", "leave it out"]),
        (["--eval_command", "return=3"], ["--eval_command goes with --eval_agent"]),
        (["--no_expo_weighting"], ["--no_expo_weighting: UDRL has no exponential weights"]),
        (["--implementation", "vpg", "--no_expo_weighting"], ["--no_expo_weighting: REINFORCE has no exponential weights"]),
        (["--preset", "paper"], ["--preset 'paper' is not in UDRL.yaml; it has: none"]),
        (["--implementation", "RCP-A", "--preset", "originl"], ["'originl' is not in RCP-A.yaml", "original"]),
        (["--implementation", "RCP-A", "--set", "target=mean"], ["key 'target'", "'tilted', 'quantile' or 'max'"]),
        (["--implementation", "RCP-A", "--set", "trace_decay=1.5"], ["key 'trace_decay'", "less than or equal to 1"]),
        (["--seeds", "3"], ["unrecognized arguments: --seeds 3", "see --help"]),
        (["--eval_agent", "nowhere.ckpt"], ["checkpoint 'nowhere.ckpt' does not exist"]),
        (["--reload", "nowhere.ckpt"], ["checkpoint 'nowhere.ckpt' does not exist"]),
    ],
)  # fmt: skip
def test_bad_flags(flags, words, capsys, tmp_path):
    line = refused(capsys, main(["--logdir", str(tmp_path), *flags]))
    for word in words:
        assert word in line
    assert not list(tmp_path.iterdir())  # nothing is made before everything is checked


def test_accelerator_that_is_not_there(capsys, tmp_path):
    if torch.cuda.is_available():
        pytest.skip("this machine has a GPU")
    assert "--accelerator gpu" in refused(capsys, run_cli(tmp_path, "--accelerator", "gpu"))


def test_unwritable_logdir(capsys, tmp_path):
    in_the_way = tmp_path / "file"
    in_the_way.write_text("mine")
    assert "choose another --logdir" in refused(capsys, run_cli(in_the_way))
    assert in_the_way.read_text() == "mine"


def test_help_is_grouped_and_complete(capsys):
    with pytest.raises(SystemExit) as leaving:
        main(["--help"])
    assert leaving.value.code == 0
    text = capsys.readouterr().out
    for heading in ("what to run", "where and how", "checkpoints and recordings", "evaluation"):
        assert heading in text
    unwrapped = "".join(text.split())  # argparse also breaks lines at hyphens
    assert all(name in unwrapped for name in (*IMPLEMENTATIONS, *ALIASES))
    design = {
        *("implementation", "gamename", "exp_name", "seed", "num_workers", "logdir", "no_checkpoint", "no_expo_weighting"),
        *("recording_epoch_interval", "reload", "eval_agent", "use_tune", "num_seeds", "max_epochs", "eval_episodes"),
        *("eval_command", "executor", "accelerator", "resume", "set"),
    }
    known = {option for action in build_parser()._actions for option in action.option_strings}
    assert {f"--{flag}" for flag in design} <= known


class Payload:
    """Unpickling this would create a file."""

    def __init__(self, path: Path):
        self.path = path

    def __reduce__(self):
        return (os.system, (f"touch {self.path}",))


@pytest.fixture(scope="module")
def trained(tmp_path_factory) -> Path:
    logdir = tmp_path_factory.mktemp("exp")
    assert run_cli(logdir, "--max_epochs", "2") == 0
    return run_dir(logdir) / "last.ckpt"


@pytest.mark.parametrize("flag", ["--eval_agent", "--reload"])
def test_bad_checkpoints(flag, trained, capsys, tmp_path):
    whole = trained.read_bytes()
    (tmp_path / "short.ckpt").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "empty.ckpt").write_bytes(b"")
    evil = tmp_path / "evil.ckpt"
    torch.save({"state_dict": Payload(tmp_path / "ran"), "hyper_parameters": {}}, evil)
    (tmp_path / "bare.ckpt").write_bytes(pickle.dumps(Payload(tmp_path / "ran")))
    torch.save({"state_dict": {}}, tmp_path / "foreign.ckpt")
    changed = bytearray(whole)
    tensor = torch.load(trained, weights_only=True)["state_dict"]["policy.net.embed_obs.weight"]
    changed[whole.index(tensor.numpy().tobytes())] ^= 0xFF
    (tmp_path / "flipped.ckpt").write_bytes(bytes(changed))
    for name, words in {
        "short": "truncated or not a checkpoint",
        "empty": "truncated or not a checkpoint (0 bytes)",
        "bare": "truncated or not a checkpoint",
        "evil": "objects other than plain data and was refused",
        "foreign": "was not written by lightning_rl",
        "flipped": "is damaged",
    }.items():
        line = refused(capsys, run_cli(tmp_path / "exp", flag, str(tmp_path / f"{name}.ckpt")))
        assert words in line, (name, line)
        assert f"{name}.ckpt" in line
    assert not (tmp_path / "ran").exists()


def test_reload_of_another_environment_or_size(trained, capsys, tmp_path):
    line = refused(capsys, run_cli(tmp_path, "--reload", str(trained), gamename="acrobot"))
    assert "its gamename is 'cartpole', this run's is 'acrobot'" in line
    line = refused(capsys, run_cli(tmp_path, "--reload", str(trained), hidden=[8, 16]))
    assert "its network has other sizes" in line


def test_resume_of_another_method_or_other_settings(trained, capsys, tmp_path):
    logdir = trained.parents[4]
    before = trained.read_bytes()
    line = refused(capsys, run_cli(logdir, "--resume", learning_rate=0.5))
    assert "learning_rate is 0.5 now but 0.001" in line
    assert "another --exp_name" in line
    checkpoint = torch.load(trained, weights_only=True)
    checkpoint["hyper_parameters"]["hparams"]["implementation"] = "SE"
    other = run_dir(tmp_path)
    other.mkdir(parents=True)
    torch.save(checkpoint, other / "last.ckpt")
    assert "is of SE on cartpole" in refused(capsys, run_cli(tmp_path, "--resume"))
    assert "does not fit this version's SE" in refused(capsys, main(["--eval_agent", str(other / "last.ckpt")]))
    assert trained.read_bytes() == before


def test_a_second_run_does_not_overwrite_the_first(trained, capsys):
    before = {p: p.read_bytes() for p in trained.parent.rglob("*") if p.is_file()}
    line = refused(capsys, run_cli(trained.parents[4], "--max_epochs", "2"))
    assert "already holds a run" in line
    assert "--resume" in line
    assert {p: p.read_bytes() for p in trained.parent.rglob("*") if p.is_file()} == before


@pytest.mark.parametrize(
    ("text", "words"),
    [("speed=3", "unknown name 'speed'; this checkpoint knows: return, horizon"), ("return=high", "'high' is not a number")],
)
def test_bad_eval_command(text, words, trained, capsys):
    assert words in refused(capsys, main(["--eval_agent", str(trained), "--eval_command", text]))
