"""Every promised error: one line that names value, limit and remedy, exit code 2, nothing lost on disk."""

import errno
import os
import pickle
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from helpers import ROOT, run_cli, run_dir, tiny_flags

import lightning_rl
from lightning_rl.cli import main, with_flags
from lightning_rl.core.arguments import Group
from lightning_rl.core.catalogue import aliases
from lightning_rl.evolution import cluster
from lightning_rl.flags import COMMANDS, EXECUTORS, FLAGS, MODES, REPRODUCE, build_parser, mode_of, parse
from lightning_rl.methods.registry import IMPLEMENTATIONS
from lightning_rl.run.options import RunOptions, accelerator_of
from lightning_rl.run.state import checkpoint_at
from lightning_rl.tools import TOOLS


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
        (["--implementation", "UDLR"], ["implementation 'UDLR' is unknown; did you mean 'UDRL'?"]),
        (["--implementation", "rpc-a"], ["did you mean 'RCP-A'?"]),
        (["--implementation", "alphazero"], ["'alphazero' is unknown; choose one of:", "UDRL"]),
        (["--gamename", "pong"], ["unknown gamename 'pong'", "lunarlander-sparse"]),
        (["--set", "learning_rat=1"], ["--set: unknown key 'learning_rat'; did you mean 'learning_rate'?"]),
        (["--set", "lr=1"], ["did you mean 'learning_rate'?"]),
        (["--set", "batch_size=big"], ["--set: key 'batch_size'", "valid integer", "got 'big'"]),
        (["--set", "batch_size=1.5"], ["key 'batch_size'", "got 1.5"]),
        (["--set", "batch_size=-4"], ["key 'batch_size'", "greater than 0", "got -4"]),
        (["--set", "overlap=3"], ["key 'overlap'", "valid boolean", "got 3"]),
        (["--set", "hidden=[]"], ["key 'hidden'", "at least 1 item"]),
        (["--set", "hidden=[32, 0]"], ["key 'hidden'", "greater than 0"]),
        (["--set", "network=transformer"], ["key 'network'", "'gated', 'layers', 'hyper' or 'bilinear'", "got 'transformer'"]),
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
        (["--accelerator", "gup"], ["invalid choice: 'gup'; did you mean 'gpu'? See --help"]),
        (["--gamename", "lunarlandr"], ["unknown gamename 'lunarlandr'; did you mean 'lunarlander'?"]),
        (["--gamename", "cartpole-v9"], ["unknown gamename", "did you mean 'CartPole-v1'?"]),
        (["--use_tune", "--tune", "trails=3"], ["--tune: unknown key 'trails'; did you mean 'trials'?"]),
        (["--reload", "RCP-A-lunarlandr"], ["checkpoint 'RCP-A-lunarlandr' does not exist; did you mean 'RCP-A-lunarlander'?"]),
        (["--accelerator", "abacus"], ["--accelerator", "invalid choice: 'abacus'"]),
        (["--num_seeds", "3"], ["--num_seeds 3: UDRL trains one seed at a time"]),
        (["--implementation", "DDQN", "--gamename", "pendulum"], ["DDQN does not fit gamename 'pendulum'", "use TD3 or PPO"]),
        (["--implementation", "QL"], ["QL does not fit gamename 'lunarlander'", "use a grid world, e.g. cliff"]),
        (["--implementation", "PPO", "--set", "batch_size=60"], ["batch_size 60 does not divide rollout_steps 2048"]),
        (["--executor", "ray"], ["--executor ray: UDRL evaluates no population", "leave it out"]),
        (["--eval_command", "return=3"], ["--eval_command goes with --eval_agent"]),
        (["--implementation", "vpg", "--no_expo_weighting"], ["--no_expo_weighting: REINFORCE has no exponential weights"]),
        (["--preset", "paper"], ["--preset 'paper' is not in upside_down.yaml, block 'UDRL'; it has: weighted, original"]),
        (["--implementation", "RCP-A", "--preset", "originl"], ["'originl' is not in", "'RCP-A'; did you mean 'original'?"]),
        (["--implementation", "RCP-A", "--set", "target=mean"], ["key 'target'", "'tilted', 'quantile' or 'max'"]),
        (["--implementation", "RCP-A", "--set", "gae_lambda=1.5"], ["key 'gae_lambda'", "less than or equal to 1"]),
        (["--seeds", "3"], ["unrecognized arguments: --seeds 3; did you mean --seed? See --help"]),
        (["--exp_name", "x" * 5000], ["--exp_name 'xxxx", "(5,000 characters)", "at most 255 bytes"]),
        (["--exp_name", "é" * 200], ["is not a folder name", "at most 255 bytes"]),
        (["--exp_name", "a\nb"], ["--exp_name 'a\\nb' is not a folder name"]),
        (["--exp_name", "a\x1b[31m"], ["--exp_name 'a\\x1b[31m' is not a folder name"]),
        (["--exp_name", "\udcff"], ["'\\udcff' holds bytes that are no text"]),
        (["--exp_name", "a\0b"], ["'a\\x00b' holds bytes that are no text"]),
        (["--logdir", ""], ["--logdir: '' cannot be a path"]),
        (["--logdir", "a" * 300], ["cannot be a path", "255 a name"]),
        (["--logdir", "a/" * 3000], ["cannot be a path", "at most 4096 bytes"]),
        (["--config", "a\nb"], ["--config: 'a\\nb' cannot be a path"]),
        (["--seed", "9" * 5000], ["--seed: invalid whole number: '9999", "(5,000 characters)"]),
        (["--seed", "4294967296"], ["--seed: 4294967296 is too large, it must be 4,294,967,295 or less"]),
        (["--implementation", "DDQN", "--gamename", "cartpole", "--seed", "4294967295", "--num_seeds", "2"],
         ["--seed 4294967295 --num_seeds 2: the last seed is beyond 4,294,967,295"]),
        (["--num_seeds", "1000000"], ["--num_seeds: 1000000 is too large, it must be 256 or less"]),
        (["--max_epochs", "1" + "0" * 30], ["--max_epochs", "is too large, it must be 1,000,000,000,000 or less"]),
        (["--eval_episodes", "100001"], ["--eval_episodes", "100001 is too large, it must be 100,000 or less"]),
        (["--recording_epoch_interval", "x"], ["--recording_epoch_interval", "invalid whole number: 'x'"]),
        (["--" + "x" * 5000], ["unrecognized arguments: --xxx", "..."]),
        (["--eval_agent", "nowhere.ckpt"], ["checkpoint 'nowhere.ckpt' does not exist"]),
        (["--reload", "nowhere.ckpt"], ["checkpoint 'nowhere.ckpt' does not exist"]),
    ],
)  # fmt: skip
def test_bad_flags(flags, words, capsys, tmp_path):
    logdir = [] if "--eval_agent" in flags else ["--logdir", str(tmp_path)]
    line = refused(capsys, main([*logdir, *flags]))
    for word in words:
        assert word in line
    assert not list(tmp_path.iterdir())  # nothing is made before everything is checked


CPU_ONLY = ("SE", "RN", "SD", "MBRL", "QL", "SARSA", "DDQN", "DuelingDDQN", "TD3", "TD3-discrete", "PPO")


@pytest.mark.parametrize("name", IMPLEMENTATIONS)
def test_auto_takes_a_gpu_where_there_is_one_and_the_method_can_use_it(name, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    means = {asked: accelerator_of(RunOptions(name, "cliff", accelerator=asked)) for asked in ("cpu", "auto")}
    assert means == {"cpu": "cpu", "auto": "cpu" if name in CPU_ONLY else "gpu"}
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert accelerator_of(RunOptions(name, "cliff", accelerator="auto")) == "cpu"


def test_a_gpu_for_a_method_that_cannot_use_it_is_refused_before_anything_is_written(capsys, tmp_path, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    for name, game in (("SE", "cartpole"), ("RN", "cartpole"), ("MBRL", "cartpole"), ("DDQN", "cartpole"), ("QL", "cliff")):
        error = refused(capsys, run_cli(tmp_path, "--accelerator", "gpu", implementation=name, gamename=game))
        assert f"--accelerator gpu: {name} trains on the CPU only, use cpu or auto; on a GPU: UDRL, RCP-R, RCP-A," in error
    assert not list(tmp_path.iterdir())


def test_accelerator_that_is_not_there(capsys, tmp_path):
    if torch.cuda.is_available():
        pytest.skip("this machine has a GPU")
    assert "--accelerator gpu" in refused(capsys, run_cli(tmp_path, "--accelerator", "gpu"))


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("trian --seed 3", "command 'trian' is unknown; did you mean 'train'?"),
        ("figures curvs out a.csv", "figures 'curvs' is unknown; did you mean 'curves'?"),
        ("figures curves ./out a.csv --x env_step", "invalid choice: 'env_step'; did you mean 'env_steps'?"),
        ("figures phase ./out a.csv --baseline simple-modl", "method 'simple-modl' is unknown; did you mean 'simple-model'?"),
        ("proxies transfr out.csv", "proxies 'transfr' is unknown; did you mean 'transfer'?"),
        ("proxies transfer out.csv SE-CartPol-v0 --agents DDQN", "did you mean 'SE-CartPole-v0'?"),
        ("proxies transfer out.csv SE-CartPole-v0 --agents DQNN", "did you mean 'DDQN'?"),
        ("runs . --sort bset", "invalid choice: 'bset'; did you mean 'best'?"),
        ("config RPC-A", "did you mean 'RCP-A'?"),
        ("reproduce rcp-a-lunarlandr", "claim 'rcp-a-lunarlandr' is unknown; did you mean 'rcp-a-lunarlander'?"),
        ("reproduce --verify rcp-a-lunarlandr", "did you mean 'rcp-a-lunarlander'?"),
        ("eval DDQN-cartpol", "did you mean 'DDQN-cartpole'?"),
        ("film DDQN-cartpol", "did you mean 'DDQN-cartpole'?"),
        ("demo RCP-A-lunarlandr", "did you mean 'RCP-A-lunarlander'?"),
        ("eval RCP-A-lunarlander --command retrun=150", "unknown name 'retrun'; did you mean 'return'?"),
        ("eval RCP-A-lunarlander --episode 3", "unrecognized arguments: --episode 3; did you mean --episodes?"),
    ],
)
def test_a_slip_is_answered_with_what_was_meant(words, says, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    rows = [f"panflute-3,{name},{seed},100,{seed}" for name in ("ER", "simple-model") for seed in (1, 2)]
    (tmp_path / "a.csv").write_text("\n".join(["gamename,implementation,seed,env_steps,value", *rows]))
    code = main(words.split(), "lightning-rl")
    err = capsys.readouterr().err
    assert code == 2
    assert says in err.splitlines()[-1]


def test_scalars_and_keys_of_runs_are_suggested(trained, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    run = str(trained.parent)
    assert main(["figures", "curves", "out", run, "--tag", "eval/retrun_mean"], "lightning-rl") == 2
    assert "has no scalar 'eval/retrun_mean'; did you mean 'eval/return_mean'?" in capsys.readouterr().err
    assert main(["figures", "curves", "out", run, "--group", "learning_rte"], "lightning-rl") == 2
    assert "has no key 'learning_rte' in its config.yaml; did you mean 'learning_rate'?" in capsys.readouterr().err
    assert main(["report", run, "--tag", "eval/retrun_mean"], "lightning-rl") == 0
    assert "did you mean &#39;eval/return_mean&#39;?" in Path("figures/report.html").read_text()
    monkeypatch.chdir(ROOT)
    assert main(["claims", "rcp-a-lunarlandr"], "lightning-rl") == 2
    assert "claim 'rcp-a-lunarlandr' is unknown; did you mean 'rcp-a-lunarlander'?" in capsys.readouterr().err


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
    assert all(name in unwrapped for name in (*IMPLEMENTATIONS, *aliases()))
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
    tensor = torch.load(trained, weights_only=True)["state_dict"]["policy.net.net.embed_obs.weight"]
    changed[whole.index(tensor.numpy().tobytes())] ^= 0xFF
    (tmp_path / "flipped.ckpt").write_bytes(bytes(changed))
    for name, expected in {
        "short": "truncated or not a checkpoint",
        "empty": "truncated or not a checkpoint (0 bytes)",
        "bare": "truncated or not a checkpoint",
        "evil": "objects other than plain data and was refused",
        "foreign": "was not written by lightning_rl",
        "flipped": "is damaged",
    }.items():
        words = [flag, str(tmp_path / f"{name}.ckpt")]
        line = refused(capsys, main(words) if flag == "--eval_agent" else run_cli(tmp_path / "exp", *words))
        assert expected in line, (name, line)
        assert f"{name}.ckpt" in line
    assert not (tmp_path / "ran").exists()


def test_reload_of_another_environment_or_size(trained, capsys, tmp_path):
    line = refused(capsys, run_cli(tmp_path, "--reload", str(trained), gamename="acrobot"))
    assert "its gamename is 'cartpole', this run's is 'acrobot'" in line
    line = refused(capsys, run_cli(tmp_path, "--reload", str(trained), hidden=[8, 16]))
    assert "body.0.weight: float32 [8, 8], expected float32 [16, 8]; use another, or the config that it was trained with" in line


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


TRAINING = [
    *(["--implementation", "UDRL"], ["--gamename", "cartpole"], ["--exp_name", "a"], ["--seed", "1"], ["--preset", "a"]),
    *(["--max_epochs", "1"], ["--set", "a=1"], ["--config", "a"], ["--no_expo_weighting"], ["--logdir", "a"]),
    *(["--accelerator", "cpu"], ["--executor", "serial"], ["--ray_address", "a:1"], ["--resume"], ["--reload", "a"]),
    *(["--recording_epoch_interval", "1"], ["--num_seeds", "1"], ["--num_processes", "1"], ["--no_checkpoint"]),
    *(["--stop_return", "1"], ["--stop_evaluations", "1"]),
]


@pytest.mark.parametrize("flags", TRAINING, ids=lambda flags: flags[0])
def test_a_flag_of_training_is_refused_where_a_checkpoint_is_evaluated(flags, capsys):
    line = refused(capsys, main(["--eval_agent", "nowhere.ckpt", *flags]))
    assert f"{flags[0]} goes with" in line
    assert "not with --eval_agent; leave it out" in line


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--eval_agent", "a", "--use_tune"], "--use_tune goes with --use_tune, not with --eval_agent"),
        (["--eval_agent", "a", "--imagine", "--eval_command", "return=1"], "goes with --eval_agent, not with --imagine"),
        (["--eval_agent", "a", "--imagine", "--num_workers", "0"], "--num_workers goes with"),
        (["--imagine"], "--imagine goes with --eval_agent CKPT"),
        (["--force"], "--force goes with --imagine or --eval_agent, not with training"),
        (["--tune", "trials=3"], "--tune goes with --use_tune, not with training; leave it out"),
        (["--use_tune", "--num_seeds", "3"], "a search takes its seeds per trial from --tune seeds=N"),
        (["--use_tune", "--num_processes", "1"], "--num_processes goes with training, not with --use_tune"),
        (["--use_tune", "--no_checkpoint"], "a trial goes on from its checkpoints"),
        (["--seed", "3", "--figure", "curves"], "--seed goes with --use_tune or training, not with --figure"),
        (["--resume", "--reload", "a.ckpt"], "--resume and --reload exclude each other"),
        (["--resume", "--no_checkpoint"], "--resume and --no_checkpoint exclude each other"),
        (["--ray_address", "a:1"], "--ray_address goes with --executor ray or --use_tune; leave it out"),
        (["--ray_address", "a:1", "--executor", "serial"], "--ray_address goes with --executor ray"),
        (["--stop_evaluations", "5"], "--stop_evaluations goes with --stop_return R; leave it out"),
        (["--use_tune", "--stop_return", "5"], "--stop_return goes with training, not with --use_tune"),
        (["--max_epochs", "2", "--set", "max_epochs=5"], "--max_epochs contradicts --set max_epochs=5; leave one of them out"),
        (["--eval_episodes", "2", "--set", "eval_episodes=5"], "--eval_episodes contradicts --set eval_episodes=5"),
        (["--implementation", "RCP-A", "--no_expo_weighting", "--set", "weights=advantage"],
         "--no_expo_weighting contradicts --set weights='advantage'"),
        (["--set", "batch_size=2", "--set", "batch_size=3"], "--set batch_size is given twice, 2 and 3; leave one out"),
        (["--use_tune", "--max_epochs", "3", "--tune", "budget={max_epochs: 2}"], "max_epochs (or its flag): the search sets it"),
        (["--use_tune", "--set", "batch_size=3", "--tune", "search={batch_size: {choice: [1, 2]}}"], "--set batch_size"),
        (["--use_tune", "--tune", "search={max_grad_norm: {uniform: [.nan, 1]}}"], "tune search 'max_grad_norm': uniform needs"),
        (["--use_tune", "--tune", "trials=1000000"], "key 'trials': Input should be less than or equal to 100000, got 1000000"),
        (["--num_processes", "2"], "--num_processes 2: more than the 1 seed(s) of --num_seeds"),
    ],
)  # fmt: skip
def test_flags_that_contradict_each_other_or_would_be_ignored(flags, words, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert words in refused(capsys, main(flags))
    assert not list(tmp_path.iterdir())


def test_flags_that_agree_are_taken():
    assert with_flags({"max_epochs": 2}, {"--max_epochs": ("max_epochs", 2)}) == {"max_epochs": 2}
    assert mode_of({"--eval_agent": "a", "--eval_command": "sweep", "--num_workers": 0, "--force": True}) == "--eval_agent"
    assert mode_of({"--executor": "ray", "--ray_address": "a:1", "--max_epochs": 3, "--resume": True}) == "training"
    assert mode_of({"--use_tune": True, "--tune": ["trials=3"], "--resume": True, "--ray_address": "a:1"}) == "--use_tune"


def test_every_flag_means_something_in_some_mode():
    flags = {action.option_strings[0] for action in build_parser()._actions if action.option_strings}
    assert set().union(*MODES.values()) == set(FLAGS)
    assert flags - {"-h", "--version"} == {name for name, flag in FLAGS.items() if flag.modes != (REPRODUCE,)}


def test_every_command_is_listed_with_one_line(capsys):
    assert main([], program="lightning-rl") == main(["--help"], program="lightning-rl") == 0
    text = capsys.readouterr().out
    assert text.startswith("usage: lightning-rl ")
    for name in ("train", "eval", "tune", "proxies", "figures", "report", "runs", "compare", "config", "docs", "reproduce"):
        assert re.search(rf"^    {name}\s+\w", text, re.MULTILINE), name


@pytest.mark.parametrize(
    ("command", "words", "mode", "flags"),
    [
        ("train", ["--seed", "3", "--set", "a=1"], "training", ["--seed", "3", "--set", "a=1"]),
        ("tune", ["--tune", "trials=3"], "--use_tune", ["--use_tune", "--tune", "trials=3"]),
        ("eval", ["a.ckpt", "--episodes", "3", "--command", "sweep"], "--eval_agent",
         ["--eval_agent", "a.ckpt", "--eval_episodes", "3", "--eval_command", "sweep"]),
        ("eval", ["a.ckpt", "--imagine", "--force"], "--imagine", ["--eval_agent", "a.ckpt", "--imagine", "--force"]),
    ],
)  # fmt: skip
def test_a_command_means_what_its_flags_mean(command, words, mode, flags):
    assert parse(words, "lightning-rl", command) == parse(flags)
    assert parse(flags)[0] == mode


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["trian"], "command 'trian' is unknown; did you mean 'train'?"),
        (["Runs", "a"], "did you mean 'runs'?"),
        (["eval"], "the following arguments are required: CKPT"),
        (["eval", "nowhere"], "checkpoint 'nowhere' does not exist"),
        (["eval", "a.ckpt", "--seed", "3"], "unrecognized arguments: --seed 3; it goes with tune or train; see --help"),
        (["eval", "a.ckpt", "--imagine", "--command", "return=1"], "--command goes with eval, not with eval --imagine"),
        (["train", "--tune", "trials=3"], "--tune trials=3; it goes with tune"),
        (["tune", "--num_seeds", "3"], "--num_seeds 3; it goes with train"),
        (["figures", "curvs"], "'curvs' is unknown; did you mean 'curves'?"),
        (["figures"], "the following arguments are required: NAME"),
        (["evaluate", "transfr"], "did you mean 'transfer'?"),
    ],
)
def test_mistakes_in_commands(words, expected, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert expected in refused(capsys, main(words, program="lightning-rl"))


def test_a_run_directory_stands_for_its_checkpoint(trained, capsys, tmp_path):
    folder = trained.parent
    assert checkpoint_at(folder) == trained
    assert checkpoint_at(trained) == trained
    (best,) = folder.glob("epoch=*.ckpt")
    shutil.copy(best, tmp_path / best.name)
    assert checkpoint_at(tmp_path) == tmp_path / best.name
    assert main(["eval", str(tmp_path), "--episodes", "2", "--num_workers", "0"]) == 0
    assert f"evaluating '{tmp_path / best.name}'" in capsys.readouterr().out
    (tmp_path / "empty").mkdir()
    assert "holds no checkpoint" in refused(capsys, main(["--eval_agent", str(tmp_path / "empty")]))


HEAVY = ("torch", "pytorch_lightning", "ray", "pandas", "matplotlib", "gymnasium", "scipy", "moviepy", "mujoco", "pydantic")
LIGHT = [
    ["--help"], ["--version"], ["trian"], ["figures", "curvs"], ["proxies", "transfr"], ["figures", "marks", "out", "a.csv"],
    ["train", "--seed", "x"], ["train", "--implementation", "UDLR"], ["train", "--gamename", "lunarlandr"],
    ["train", "--preset", "papr"], ["train", "--set", "learning_rat=1"], ["train", "--config", "nowhere.yaml"],
    ["train", "--reload", "nowhere.ckpt"], ["eval", "nowhere.ckpt"], ["runs", "a", "--sort", "speed"],
]  # fmt: skip


def run_python(program: str, folder: Path) -> str:
    """Runs Python code in a process of its own; what it prints."""
    env = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, "-c", program], cwd=folder, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_help_and_usage_errors_are_light(tmp_path):
    """Of every command: a quarter of a second of processor time for the first, then next to nothing."""
    groups = {name: tool.tools for name, tool in TOOLS.items() if isinstance(tool, Group)}
    commands = [[name] for name in (*COMMANDS, *TOOLS)] + [[group, name] for group, tools in groups.items() for name in tools]
    asked = [*LIGHT, *([*words, *rest] for words in commands for rest in (["--help"], ["--hlep"]))]
    program = f"""
import contextlib, io, sys, time
from lightning_rl.cli import main
for words in {asked}:
    before = time.process_time()
    with contextlib.redirect_stdout(io.StringIO()):
        try:
            code = main(words, program="lightning-rl")
        except SystemExit as leaving:
            code = leaving.code
    assert code == (0 if {{"--help", "--version"}} & set(words) else 2), words
    assert not (heavy := set(sys.modules) & set({HEAVY})), (words, heavy)
    assert time.process_time() - before < 0.25, words
"""
    assert len(asked) > 60
    run_python(program, tmp_path)


def test_the_package_is_light_until_it_is_used(tmp_path):
    program = f"""
import resource, sys
import lightning_rl
assert not (heavy := set(sys.modules) & {{"numpy", *{HEAVY}}}), heavy
assert set(lightning_rl.__all__) <= set(dir(lightning_rl))
used = resource.getrusage(resource.RUSAGE_SELF)
assert used.ru_utime + used.ru_stime < 0.2, used
"""
    run_python(program, tmp_path)


def test_a_run_starts_at_once_and_loads_what_it_needs(tmp_path):
    """Its first line comes before the imports, its first progress soon after. (Lightning itself loads matplotlib and scipy.)"""
    words = ["--gamename", "cartpole", "--logdir", str(tmp_path), "--num_workers", "0", "--max_epochs", "1", *tiny_flags()]
    program = f"""
import contextlib, gc, io, sys, time
from lightning_rl import cli
out, imported = io.StringIO(), []

def load():
    assert out.getvalue().startswith("UDRL on cartpole, seed 25"), out.getvalue()
    assert not {{"torch", "numpy"}} & set(sys.modules)
    original()
    imported.append(time.process_time())

class Watch(io.StringIO):
    def write(self, text):
        if "epoch 1/1" in text:
            assert time.process_time() < 1.3 * imported[0], (time.process_time(), imported)
            imported.append("progress")
        return super().write(text)

original, cli.import_lightning = cli.import_lightning, load
with contextlib.redirect_stdout(out), contextlib.redirect_stderr(Watch()):
    assert cli.main({words}) == 0
assert imported[1:] == ["progress"], imported
assert gc.isenabled() and gc.get_freeze_count() > 100_000
names = set(sys.modules)
assert not (heavy := names & {{"ray", "mujoco", "pandas", "moviepy", "cmaes", "Box2D", "pygame", "optuna"}}), heavy
lab = {{name for name in names if name.startswith("lightning_rl.lab.")}}
rooms = ("figures", "protocols", "reports")
lab -= {{f"lightning_rl.lab.{{room}}{{module}}" for room in rooms for module in ("", ".registry")}}
assert not lab, lab
import lightning_rl.lab.evaluate  # neither plots nor tables are loaded for it
assert not (heavy := set(sys.modules) & {{"pandas", "ray", "jinja2.environment", "lightning_rl.lab.figures.style"}}), heavy
"""
    run_python(program, tmp_path)


def test_every_public_name_is_there():
    assert all(getattr(lightning_rl, name) is not None for name in lightning_rl.__all__)
    assert set(lightning_rl.__all__) == {"__version__", *lightning_rl._MODULES}
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = lightning_rl.nothing


def test_executors_are_those_that_there_are():
    assert tuple(cluster.EXECUTORS) == EXECUTORS


def test_a_full_disk_names_the_remedy_that_there_is(capsys, monkeypatch):
    def full(words, program):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("lightning_rl.cli._main", full)
    assert "free space, then --resume" in refused(capsys, main(["--seed", "3"]))
    assert "free space, then --resume" in refused(capsys, main(["train", "--seed", "3"]))
    assert "free space, then run the command again" in refused(capsys, main(["runs", "exp_dir", "--csv", "a.csv"]))
    assert "free space, then run the command again" in refused(capsys, main(["--eval_agent", "a.ckpt"]))


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (PermissionError(13, "Permission denied", "/a/b"), "'/a/b' cannot be used: Permission denied; check the path"),
        (MemoryError("Unable to allocate 4. TiB for an array"), "memory is short (Unable to allocate 4. TiB"),
        (RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 9 bytes"), "memory is short"),
    ],
)
def test_what_the_system_refuses_is_one_line(error, words, capsys, monkeypatch):
    def fail(words, program):
        raise error

    monkeypatch.setattr("lightning_rl.cli._main", fail)
    assert words in refused(capsys, main([]))


def test_a_defect_of_the_program_is_not_hidden(monkeypatch):
    def fail(words, program):
        raise RuntimeError("shapes (3,) and (4,) do not match")

    monkeypatch.setattr("lightning_rl.cli._main", fail)
    with pytest.raises(RuntimeError, match="do not match"):
        main([])
