"""Flags of training that are wrong, contradict each other or mean nothing there: one line, exit
code 2, nothing written.
"""

import shlex

import pytest
from helpers.runs import refused

from lightning_rl.cli import main
from lightning_rl.cli.commands import with_flags
from lightning_rl.cli.flags import FLAGS, Mode
from lightning_rl.cli.parser import mode_of
from lightning_rl.core.errors import UserError


@pytest.mark.parametrize(
    "case",
    [
        ("--implementation UDLR", "implementation 'UDLR' is unknown; did you mean 'UDRL'?"),
        ("--implementation rpc-a", "did you mean 'RCP-A'?"),
        ("--implementation alphazero", "'alphazero' is unknown; choose one of:", "UDRL"),
        ("--gamename snooker", "unknown gamename 'snooker'", "lunarlander-sparse"),
        (
            "--set learning_rat=1",
            "--set: unknown key 'learning_rat'; did you mean 'learning_rate'?",
        ),
        ("--set lr=1", "did you mean 'learning_rate'?"),
        (
            "--implementation TD3 --gamename pendulum --set normalise_obs=true",
            "unknown key 'normalise_obs'; it is one of UDRL, RCP-R, RCP-A, REINFORCE, ",
        ),
        ("--set batch_size=big", "--set: key 'batch_size'", "valid integer", "got 'big'"),
        ("--set batch_size=1.5", "key 'batch_size'", "got 1.5"),
        ("--set batch_size=-4", "key 'batch_size'", "greater than 0", "got -4"),
        ("--set overlap=3", "key 'overlap'", "valid boolean", "got 3"),
        ("--set hidden=[]", "key 'hidden'", "at least 1 item"),
        ("--set 'hidden=[32, 0]'", "key 'hidden'", "greater than 0"),
        ("--set network=transformer", "key 'network'", "'gated' or 'layers'", "got 'transformer'"),
        ("--set learning_rate", "expected key=value"),
        ("--set hidden=[1,", "--set hidden: not valid YAML"),
        ("--seed -1", "--seed", "-1 is negative"),
        ("--max_epochs 0", "--max_epochs", "0 is too small", "1 or more"),
        ("--max_epochs many", "--max_epochs", "invalid", "'many'"),
        ("--num_workers -2", "--num_workers", "-2 is negative"),
        ("--num_workers 9999", "9999 workers on", "cores", "or fewer"),
        ("--eval_episodes -3", "--eval_episodes", "-3 is too small"),
        ("--recording_epoch_interval 0", "0 is not an interval", "-1 for never"),
        ("--exp_name ../up", "--exp_name '../up' is not a folder name"),
        ("--accelerator gup", "invalid choice: 'gup'; did you mean 'gpu'? See --help"),
        ("--gamename lunarlandr", "unknown gamename 'lunarlandr'; did you mean 'lunarlander'?"),
        ("--gamename cartpole-v9", "unknown gamename", "did you mean 'CartPole-v1'?"),
        (
            "--gamename MountainCar",
            "unknown gamename 'MountainCar'; did you mean 'MountainCar-v0'?",
        ),
        ("--use_tune --tune trails=3", "--tune: unknown key 'trails'; did you mean 'trials'?"),
        (
            "--reload RCP-A-lunarlandr",
            "checkpoint 'RCP-A-lunarlandr' does not exist; did you mean 'RCP-A-lunarlander'?",
        ),
        ("--accelerator abacus", "--accelerator", "invalid choice: 'abacus'"),
        ("--num_seeds 3", "--num_seeds 3: UDRL trains one seed at a time"),
        (
            "--implementation DDQN --gamename pendulum",
            "DDQN does not fit gamename 'pendulum'",
            "use TD3 or PPO",
        ),
        (
            "--implementation QL",
            "QL does not fit gamename 'lunarlander'",
            "use a grid world, e.g. cliff",
        ),
        (
            "--implementation PPO --set batch_size=1",
            "batch_size 1: advantages are standardised",
            "use 2 or more",
        ),
        (
            "--implementation PPO --set batch_size=60",
            "batch_size 60 does not divide rollout_steps 2048",
        ),
        ("--executor ray", "--executor ray: UDRL evaluates no population", "leave it out"),
        ("--eval_command return=3", "--eval_command goes with --eval_agent"),
        (
            "--implementation vpg --no_expo_weighting",
            "--no_expo_weighting: REINFORCE has no exponential weights",
        ),
        (
            "--preset paper",
            "--preset 'paper' is not in upside_down.yaml, block 'UDRL'; it has: skip4, "
            "skip4-weighted, weighted, "
            "original",
        ),
        (
            "--implementation RCP-A --preset originl",
            "'originl' is not in",
            "'RCP-A'; did you mean 'original'?",
        ),
        (
            "--implementation RCP-A --set target=mean",
            "key 'target'",
            "unknown 'mean'; known are: range, tilted, quantile, max",
        ),
        (
            "--implementation RCP-A --set gae_lambda=1.5",
            "key 'gae_lambda'",
            "less than or equal to 1",
        ),
        ("--seeds 3", "unrecognized arguments: --seeds 3; did you mean --seed? See --help"),
        (
            "--max_env_steps 9",
            "--max_env_steps 9; did you mean --set max_env_steps=VALUE? See --help",
        ),
        (
            "--batch-size=9",
            "unrecognized arguments: --batch-size=9; did you mean --set batch_size=VALUE?",
        ),
        ("--total_timesteps 9", "did you mean --set max_env_steps=VALUE?"),
        ("--steps 1000", "arguments: --steps 1000; did you mean --set max_env_steps=VALUE? See"),
        ("--sets 1", "arguments: --sets 1; did you mean --set? See"),
        ("--sights 1", "arguments: --sights 1; see --help"),
        ("--epochs 9", "did you mean --set epochs=VALUE, or --max_epochs?"),
        ("--env cartpole", "did you mean --gamename?"),
        ("--method=UDRL", "did you mean --implementation?"),
        ("--device cuda", "did you mean --accelerator?"),
        ("RCP-A lunarlander", "did you mean --implementation RCP-A?"),
        ("lunarlander", "did you mean --gamename lunarlander?"),
        (["--exp_name", "x" * 5000], "--exp_name 'xxxx", "(5,000 characters)", "at most 255 bytes"),
        (["--exp_name", "é" * 200], "is not a folder name", "at most 255 bytes"),
        (["--exp_name", "a\nb"], "--exp_name 'a\\nb' is not a folder name"),
        (["--exp_name", "a\x1b[31m"], "--exp_name 'a\\x1b[31m' is not a folder name"),
        (["--exp_name", "\udcff"], "'\\udcff' holds bytes that are no text"),
        (["--exp_name", "a\0b"], "'a\\x00b' holds bytes that are no text"),
        ("--logdir ''", "--logdir: path '' cannot be a path"),
        (["--logdir", "a" * 300], "cannot be a path", "255 a name"),
        (["--logdir", "a/" * 3000], "cannot be a path", "at most 4096 bytes"),
        (["--config", "a\nb"], "--config: path 'a\\nb' cannot be a path"),
        (["--seed", "9" * 5000], "--seed: invalid whole number: '9999", "(5,000 characters)"),
        ("--seed 4294967296", "--seed: 4294967296 is too large, it must be 4,294,967,295 or less"),
        (
            "--implementation DDQN --gamename cartpole --seed 4294967295 --num_seeds 2",
            "--seed 4294967295 --num_seeds 2: the last seed is beyond 4,294,967,295",
        ),
        ("--num_seeds 1000000", "--num_seeds: 1000000 is too large, it must be 256 or less"),
        (
            ["--max_epochs", "1" + "0" * 30],
            "--max_epochs",
            "is too large, it must be 1,000,000,000,000 or less",
        ),
        (
            "--eval_episodes 100001",
            "--eval_episodes",
            "100001 is too large, it must be 100,000 or less",
        ),
        ("--recording_epoch_interval x", "--recording_epoch_interval", "invalid whole number: 'x'"),
        (["--" + "x" * 5000], "unrecognized arguments: --xxx", "..."),
        ("--eval_agent nowhere.ckpt", "checkpoint 'nowhere.ckpt' does not exist"),
        ("--reload nowhere.ckpt", "checkpoint 'nowhere.ckpt' does not exist"),
    ],
)
def test_bad_flags(case, capsys, tmp_path):
    flags, *words = case
    if isinstance(flags, str):
        flags = shlex.split(flags)
    logdir = [] if "--eval_agent" in flags else ["--logdir", str(tmp_path)]
    line = refused(capsys, main([*logdir, *flags]))
    for word in words:
        assert word in line
    assert not list(tmp_path.iterdir())  # nothing is made before everything is checked


OF_TRAINING = [name for name, flag in FLAGS.items() if Mode.TRAIN in flag.modes]


@pytest.mark.parametrize("name", OF_TRAINING)
def test_a_flag_of_training_is_refused_where_a_checkpoint_is_evaluated(name):
    if Mode.EVAL in FLAGS[name].modes:
        assert mode_of(["--eval_agent", name]) is Mode.EVAL
        return
    with pytest.raises(UserError, match=f"{name} goes with .*, not with --eval_agent; leave it"):
        mode_of(["--eval_agent", name])


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        ("--eval_agent a --use_tune", "--use_tune goes with --use_tune, not with --eval_agent"),
        (
            "--eval_agent a --imagine --eval_command return=1",
            "goes with --eval_agent, not with --imagine",
        ),
        ("--eval_agent a --imagine --num_workers 0", "--num_workers goes with"),
        ("--imagine", "--imagine goes with --eval_agent CKPT"),
        ("--force", "--force goes with --imagine or --eval_agent, not with training"),
        ("--tune trials=3", "--tune goes with --use_tune, not with training; leave it out"),
        ("--use_tune --num_seeds 3", "a search takes its seeds per trial from --tune seeds=N"),
        ("--use_tune --num_processes 1", "--num_processes goes with training, not with --use_tune"),
        ("--use_tune --no_checkpoint", "a trial goes on from its checkpoints"),
        ("--seed 3 --figure curves", "--seed goes with --use_tune or training, not with --figure"),
        ("--resume --reload a.ckpt", "--resume and --reload exclude each other"),
        ("--resume --no_checkpoint", "--resume and --no_checkpoint exclude each other"),
        ("--ray_address a:1", "--ray_address goes with --executor ray or --use_tune; leave it out"),
        ("--ray_address a:1 --executor serial", "--ray_address goes with --executor ray"),
        ("--stop_evaluations 5", "--stop_evaluations goes with --stop_return R; leave it out"),
        ("--use_tune --stop_return 5", "--stop_return goes with training, not with --use_tune"),
        (
            "--max_epochs 2 --set max_epochs=5",
            "--max_epochs contradicts --set max_epochs=5; leave one of them out",
        ),
        (
            "--eval_episodes 2 --set eval_episodes=5",
            "--eval_episodes contradicts --set eval_episodes=5",
        ),
        (
            "--implementation RCP-A --no_expo_weighting --set weights=advantage",
            "--no_expo_weighting contradicts --set weights='advantage'",
        ),
        (
            "--set batch_size=2 --set batch_size=3",
            "--set batch_size is given twice, 2 and 3; leave one out",
        ),
        (
            "--use_tune --max_epochs 3 --tune 'budget={max_epochs: 2}'",
            "max_epochs (or its flag): the search sets it",
        ),
        (
            "--use_tune --set batch_size=3 --tune 'search={batch_size: {choice: [1, 2]}}'",
            "--set batch_size",
        ),
        (
            "--use_tune --tune 'search={max_grad_norm: {uniform: [.nan, 1]}}'",
            "tune search 'max_grad_norm': uniform needs",
        ),
        (
            "--use_tune --tune trials=1000000",
            "key 'trials': Input should be less than or equal to 100000, got 1000000",
        ),
        pytest.param(
            "--num_processes 2",
            "--num_processes 2: more than the 1 seed(s) of --num_seeds",
            marks=pytest.mark.two_cores,
        ),
    ],
)
def test_flags_that_contradict_each_other_or_would_be_ignored(
    flags, words, capsys, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    assert words in refused(capsys, main(shlex.split(flags)))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("flags", "mode"),
    [
        (["--eval_agent", "--eval_command", "--num_workers", "--force"], Mode.EVAL),
        (["--executor", "--ray_address", "--max_epochs", "--resume"], Mode.TRAIN),
        (["--use_tune", "--tune", "--resume", "--ray_address"], Mode.TUNE),
    ],
)
def test_flags_that_go_together(flags, mode):
    assert mode_of(flags) is mode


def test_a_flag_and_a_setting_may_say_the_same():
    assert with_flags({"max_epochs": 2}, {"--max_epochs": ("max_epochs", 2)}) == {"max_epochs": 2}
