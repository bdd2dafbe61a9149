"""What is refused before anything is made or changed: limits of sizes, a second run, budgets
below what is done, numbers.
"""

import functools
import os
import shutil
import signal
import time

import numpy as np
import pytest
import torch
import yaml
from helpers.budgets import tiny_flags, tiny_settings
from helpers.runs import run_cli, run_dir, train_cli
from pytorch_lightning import Callback

import lightning_rl
from lightning_rl.cli import main
from lightning_rl.core.config import build_config, merged_values
from lightning_rl.core.errors import UserError
from lightning_rl.core.limits import within
from lightning_rl.envs.spec import env_spec
from lightning_rl.lab.words import parse_command, parse_sweep
from lightning_rl.methods.registry import IMPLEMENTATIONS
from lightning_rl.methods.restoring import first_change
from lightning_rl.methods.upside_down import UDRL
from lightning_rl.run import footprint
from lightning_rl.run.asking import full_command
from lightning_rl.run.state import read_state


def config_of(name, **values):
    """A config for cartpole with some values of its own."""
    layers = [*merged_values(name, "cartpole"), ("", values)]
    return build_config(IMPLEMENTATIONS[name].Config, layers)


def contents(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    logdir = tmp_path_factory.mktemp("finished")
    train_cli(logdir, 3)
    return logdir


@pytest.fixture
def copied(finished, tmp_path):
    shutil.copytree(finished, tmp_path / "exp")
    return tmp_path / "exp"


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (
            ["--no_checkpoint"],
            "already holds a run; continue with --resume, or choose another --exp_name or --seed",
        ),
        ([], "already holds a run; continue with --resume"),
        (
            ["--resume", "--max_epochs", "2"],
            "has done 3 epochs, more than the 2 that are asked for; ask for 3 or more",
        ),
        (["--resume", "--set=max_env_steps=7"], "more than max_env_steps=7; ask for "),
        (["--resume", "--set=learning_rate=0.5"], "learning_rate is 0.5 now but 0.001"),
        (["--resume", "--max_epochs", "5", "--set=num_updates_per_iter=1000000000"], "of memory"),
    ],
)
def test_a_refused_run_changes_nothing_of_the_one_that_is_there(flags, words, copied, capsys):
    before = contents(copied)
    settings = [flag for flag in tiny_flags() if "num_updates" not in flag or "memory" not in words]
    where = ["--gamename", "cartpole", "--logdir", str(copied), "--num_workers", "0"]
    assert main([*where, *settings, *flags]) == 2
    assert words in capsys.readouterr().err
    assert contents(copied) == before
    assert read_state(run_dir(copied)) == ("finished", "")


@pytest.mark.parametrize(
    "steps", [None, "7", torch.tensor(9 + 1j), torch.tensor([9, 9]), torch.zeros((), device="meta")]
)
@pytest.mark.parametrize("weights", [lambda steps: steps, lambda steps: {"env_steps": steps}])
def test_a_budget_beside_damaged_counters_is_refused_in_a_line(weights, steps, copied, capsys):
    path = run_dir(copied) / "last.ckpt"
    torch.save({**torch.load(path, weights_only=True), "state_dict": weights(steps)}, path)
    words = ["--gamename", "cartpole", "--logdir", str(copied), "--num_workers", "0", *tiny_flags()]
    assert main([*words, "--max_epochs", "4", "--resume", "--set=max_env_steps=7"]) == 2
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert "state_dict" in line


@pytest.mark.parametrize("kept", ["config.yaml", "state.yaml", "logger"])
def test_any_trace_of_a_run_refuses_a_second(kept, copied, capsys):
    for path in run_dir(copied).iterdir():
        if path.name != kept:
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    before = contents(copied)
    assert run_cli(copied, "--no_checkpoint") == 2
    assert "already holds a run" in capsys.readouterr().err
    assert contents(copied) == before


def test_what_is_left_of_a_run_that_failed_is_said_with_what_to_do(copied, capsys):
    for path in run_dir(copied).glob("*.ckpt"):
        path.unlink()
    (run_dir(copied) / "state.yaml").write_text("state: failed\nreason: no rewards\n")
    assert run_cli(copied) == 2
    assert (
        "holds a run that failed (no rewards) and left no checkpoint; begin it again with "
        "--resume, or choose another --exp_name or --seed, or move that folder away"
    ) in capsys.readouterr().err


def test_a_run_with_nothing_left_to_do_stays_finished(copied, capsys):
    train_cli(copied, 3, "--resume")
    assert "finished at" in capsys.readouterr().out
    assert yaml.safe_load((run_dir(copied) / "state.yaml").read_text()) == {"state": "finished"}


def test_a_budget_is_refused_only_where_it_is_new_and_less_than_is_done(copied):
    done = int(
        torch.load(run_dir(copied) / "last.ckpt", weights_only=True)["state_dict"]["env_steps"]
    )
    train_cli(copied, 3, "--resume", max_env_steps=done)
    for _ in range(2):  # the epoch that reaches it goes on to its end, beyond it
        train_cli(copied, 4, "--resume", max_env_steps=done + 1)


def test_a_budget_of_episodes_counts_episodes(tmp_path, capsys):
    run = functools.partial(
        run_cli, tmp_path, "--max_epochs", "2", "--resume", implementation="REINFORCE"
    )
    assert run() == run(max_episodes=9) == 0  # of which 8 are done, in more steps
    assert run(max_episodes=7) == 2
    assert "has episodes 8, more than max_episodes=7; ask for 8 or more" in capsys.readouterr().err


SIZES = {
    "UDRL": [
        "hidden=[1000000,1000000]",
        "hidden=[60000,60000,60000]",
        f"hidden={[1] * 65}",
        *(
            "batch_size=1000000000000 batch_size=16000000 replay_size=10000000000000000 "
            "replay_size=100000000 num_episodes_per_iter=100001 learning_starts=999999999 "
            "num_updates_per_iter=100000000 eval_episodes=1000000"
        ).split(),
    ],
    "DDQN": [
        "replay_size=10000000000",
        "hidden=[65537]",
        "icm_hidden_size=100000",
        "batch_size=99999999",
    ],
    "PPO": ["rollout_steps=100000000000"],
    "RCP-A": [
        "window_steps=1000000000000",
        "steps_per_iter=1000000000",
        "num_critic_updates_per_iter=10000000",
        "critic_hidden=[65000,65000,65000]",
    ],
    "REINFORCE": ["num_episodes_per_iter=10000000"],
    "SE": (
        "population=1000000 population=99999 center_agents=1000000 test_episodes=1000000 "
        "latent_size=100000"
    ).split(),
    "MBRL": ["data_steps=1000000000000", "data_agents=100001"],
}


@pytest.mark.parametrize(
    ("implementation", "setting"),
    [(name, setting) for name, own in SIZES.items() for setting in own],
)
def test_sizes_beyond_the_limits_are_refused_before_a_folder_is_made(
    implementation, setting, tmp_path, capsys, monkeypatch
):
    monkeypatch.setattr(footprint, "memory", lambda: 16 * 10**9)
    what = ["--implementation", implementation, "--gamename", "cartpole", "--set", setting]
    assert main([*what, "--logdir", str(tmp_path)]) == 2
    captured = capsys.readouterr().err.strip().splitlines()
    assert len(captured) == 1
    assert setting.partition("=")[0] in captured[0]
    assert not list(tmp_path.iterdir())


def test_seeds_together_take_the_memory_of_each(monkeypatch):
    config = config_of("DDQN", replay_size=10**6)
    monkeypatch.setattr(footprint, "memory", lambda: 10**8)
    # a step takes 4 (2 x 4 + 2 + 2) bytes
    footprint.require_memory(config, env_spec("cartpole"), 2)
    with pytest.raises(
        UserError, match=r"replay_size 1000000 .* with 4 seed\(s\) .* about 0.2 GB of memory"
    ):
        footprint.require_memory(config, env_spec("cartpole"), 4)


def test_the_footprint_of_a_config_by_hand():
    config = config_of("DDQN", hidden=[10, 20], batch_size=3, replay_size=100)
    needed = footprint.footprint(config, env_spec("cartpole"))
    assert needed["replay_size"] == 4 * 100 * 12
    assert needed["hidden"] == 16 * (6 * 10 + 10 * 20 + 20 * 2)
    assert needed["batch_size"] == 4 * 3 * (12 + 2 * (6 + 10 + 20 + 2) + 2 * (6 + 2))
    sizes = {"hidden": [10, 20], "critic_hidden": [5], "batch_size": 3}
    config = config_of("RCP-A", **sizes, num_updates_per_iter=7)
    needed = footprint.footprint(config, env_spec("cartpole"))
    assert needed["critic_hidden"] == 16 * (6 * 5 + 5 * 2)
    assert needed["batch_size"] == 4 * 3 * (12 + 2 * (6 + 10 + 20 + 2) + 2 * (6 + 5 + 2))
    assert config.num_critic_updates_per_iter > 7
    assert needed["num_critic_updates_per_iter"] == 8 * 4 * 3 * (
        7 + config.num_critic_updates_per_iter
    )
    assert needed["steps_per_iter"] == 4 * 12 * config.steps_per_iter


def test_every_candidate_of_a_population_takes_a_network_and_an_agent():
    """The agent: 4,800 bytes of memory, as many of its network, 192 of a critic, 1,248 of a
    minibatch.
    """
    agent = {"DDQN": {"hidden": [10, 20], "batch_size": 3, "replay_size": 100}}
    values = {"agent": agent, "hidden": [8], "population": 5, "center_agents": 2, "eval_agents": 3}
    config = config_of("SE", **values).resolved("cartpole")
    assert footprint.footprint(config, env_spec("cartpole"))["population"] == 5 * (
        11_040 + 16 * (6 * 8 + 8 * 2)
    )


@pytest.mark.parametrize(
    ("gamename", "words"),
    [
        ("panflute-100000", "sizes go up to 64"),
        ("procmaze-99999999999", "sizes go up to 64"),
        ("procmaze-5000", "sizes go up to 64"),
        ("buttongrid-65-1", "sizes go up to 64"),
        ("panflute-" + "9" * 4000, "sizes go up to 64"),
        ("panflute-٣", "sizes are whole numbers"),
        ("procmaze-0", "the smallest is 2"),
        ("buttongrid-2-4", "fewer buttons than cells"),
        ("x" * 4000, "unknown gamename 'xxx"),
    ],
)
def test_sizes_of_environments(gamename, words):
    with pytest.raises(UserError, match=words) as error:
        env_spec(gamename)
    assert len(str(error.value)) < 700
    assert env_spec("panflute-64").obs_size == 64 * 65 // 2


@pytest.mark.parametrize("text", ["return=", "return=high", "=3", "return=1,return=2", "", ","])
def test_commands_that_cannot_be_read(text):
    with pytest.raises(UserError, match=r"^command '"):
        parse_command(text, ("return", "horizon"))


@pytest.mark.parametrize(
    ("text", "remedy"),
    [("return", "write return=VALUE"), ("100", "write advantage or return=VALUE")],
)
def test_a_command_without_a_value_names_what_it_can_be(text, remedy):
    with pytest.raises(UserError, match=f"^command '{text}': it has no value; {remedy}$"):
        parse_command(text, ("advantage", "return"))


def test_a_policy_that_is_not_calibrated_says_how_it_can_be_asked_for_returns():
    with pytest.raises(
        UserError,
        match=r"unknown name 'return'; .*; it can be asked for returns after eval CKPT --calibrate",
    ):
        parse_command("return=150", ("advantage",))


def test_a_range_is_said_from_within():
    assert within(-256.95, 277.94) == "-256 .. 277"
    assert within(-5.0, 5.0) == "-5 .. 5"
    assert within(0.0123, 0.4567) == "0.013 .. 0.456"
    assert within(-1234.5, 12.0) == "-1230 .. 10"
    assert within(0.0, 0.0) == "0 .. 0"
    assert within(277.1, 277.9) == "277.1 .. 277.9"  # no whole number is
    low, high = map(float, within(1284.6344565974462, 1286.948479572993).split(" .. "))
    assert 1284.6344565974462 <= low < high <= 1286.948479572993
    assert within(0.5, 0.5) == "0.5 .. 0.5"
    assert within(0.0, float("inf")) == "0.0 .. inf"


@pytest.mark.parametrize("value", "nan inf -inf 1e400 1e39".split())
def test_commands_that_no_network_can_take(value):
    method = IMPLEMENTATIONS["UDRL"]("cartpole", seed=0)
    method.target.numbers.copy_(torch.tensor([150.0, 20.0, 9.0, 200.0]))
    given = parse_command(f"return={value}", method.command_names)
    with pytest.raises(
        UserError, match=r"^command return=\S+: it is not within .*; training saw 9 \.\. 200$"
    ):
        full_command(method, given)
    with pytest.raises(
        UserError, match=r"^command horizon=\S+: it is not within .*; e\.g\. horizon=100$"
    ):
        full_command(method, {"horizon": given["return"]})


@pytest.mark.parametrize(
    "text", "sweep=0:inf sweep=nan:1 sweep=5:1 sweep=1:1 sweep=1:2:3 sweep= sweep=-1e400:0".split()
)
def test_sweeps_that_no_network_can_take(text):
    with pytest.raises(UserError, match=f"command '{text}'"):
        parse_sweep(text)


def test_divergence_names_a_remedy_that_the_method_has():
    for name, rate, kept in (("UDRL", "learning_rate", True), ("SE", "step_size", False)):
        config = config_of(name).resolved("cartpole")
        method = IMPLEMENTATIONS[name](
            implementation=name, gamename="cartpole", seed=0, config=config.__dict__
        )
        with pytest.raises(
            UserError, match=f"loss is nan in epoch 0: .* lower --set {rate}="
        ) as error:
            method.check_finite("loss", float(np.nan))
        assert ("--reload" in str(error.value)) is kept
        assert "from before that" not in str(error.value)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_second_signal_leaves_at_once_with_its_sentence(number, tmp_path, capsys, monkeypatch):
    before = signal.getsignal(signal.SIGINT)

    def twice(*_):
        os.kill(os.getpid(), number)
        os.kill(os.getpid(), number)  # the same, of a parent
        time.sleep(0.4)
        os.kill(os.getpid(), number)

    monkeypatch.setattr("lightning_rl.methods.upside_down.UDRL.train_epoch", twice)
    assert run_cli(tmp_path, "--max_epochs", "3") == 128 + number
    err = capsys.readouterr().err
    assert (
        "finishing this epoch and writing last.ckpt, for 7 seconds at most; once more to leave at "
        "once" in err
    )
    assert err.splitlines()[-1].startswith("left at once; what is written is whole")
    assert read_state(run_dir(tmp_path)) == ("interrupted", "")
    assert signal.getsignal(signal.SIGINT) is before


@pytest.mark.parametrize(("interval", "resumes"), [(1, "goes on from epoch 1"), (9, "begins anew")])
def test_an_epoch_that_takes_too_long_after_a_signal_is_left(
    interval, resumes, tmp_path, capsys, monkeypatch
):
    monkeypatch.setattr("lightning_rl.run.callbacks.EPOCH_S", 0.5)
    train_epoch = UDRL.train_epoch

    def hangs(method, batch):
        if method.current_epoch < 1:
            return train_epoch(method, batch)
        os.kill(os.getpid(), signal.SIGTERM)
        while True:
            time.sleep(0.05)

    monkeypatch.setattr(UDRL, "train_epoch", hangs)
    assert run_cli(tmp_path, "--max_epochs", "3", checkpoint_interval=interval) == 143
    assert (
        capsys.readouterr().err.splitlines()[-1]
        == f"left at once; what is written is whole: --resume {resumes}"
    )
    assert read_state(run_dir(tmp_path)) == ("interrupted", "")


def test_what_is_refused_before_it_begins_leaves_no_folder(tmp_path, capsys, monkeypatch):
    def refuse(*_):
        raise UserError("not here")

    monkeypatch.setattr("lightning_rl.run.train.settle", refuse)
    assert run_cli(tmp_path, "--max_epochs", "1") == 2
    assert "not here" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("gone", ["run", "logger"])
def test_a_folder_that_is_moved_under_a_run_ends_it_and_is_not_made_again(gone, tmp_path, capsys):
    folder = run_dir(tmp_path)

    class Mover(Callback):
        def on_train_epoch_start(self, trainer, pl_module):
            if trainer.current_epoch == 2:
                (folder if gone == "run" else folder / "logger").rename(tmp_path / "moved")

    options = {
        "logdir": tmp_path,
        "num_workers": 0,
        "max_epochs": 4,
        "eval_interval": 1,
        "checkpoint_interval": 1,
    }
    settings = {**tiny_settings("UDRL"), **options}
    with pytest.raises(UserError, match=r"was moved or removed.*--resume"):
        lightning_rl.train("UDRL", "cartpole", callbacks=[Mover()], **settings)
    assert "Traceback" not in capsys.readouterr().err
    if gone == "run":
        assert not folder.exists()
        (tmp_path / "moved").rename(folder)
    assert (
        lightning_rl.train("UDRL", "cartpole", resume=True, **settings).method.trainer.current_epoch
        == 4
    )


@pytest.mark.parametrize("name", ["config.yaml", "state.yaml"])
@pytest.mark.parametrize("there", [False, True])
def test_what_is_no_runs_is_not_overwritten(name, there, tmp_path, capsys):
    """Where a run is begun with --resume, and where one is resumed."""
    folder = run_dir(tmp_path)
    if there:
        train_cli(tmp_path, 1)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / ".lock").write_text("mine")
    (folder / name).write_text("mine: 1")
    capsys.readouterr()
    assert run_cli(tmp_path, "--max_epochs", "2", "--resume") == 2
    assert (
        f"{name}' is not as this program wrote it, or not written by it, so it stays; move it away"
        in capsys.readouterr().err
    )
    assert (folder / name).read_text() == "mine: 1"
    assert (folder / ".lock").read_text() == "mine"


def test_a_config_that_was_edited_by_hand_is_refused_and_kept(tmp_path, capsys):
    train_cli(tmp_path, 1)
    config = run_dir(tmp_path) / "config.yaml"
    edited = config.read_text().replace("max_epochs: 1", "max_epochs: 1\n  mine: 2")
    config.write_text(edited)
    capsys.readouterr()
    assert run_cli(tmp_path, "--max_epochs", "1", "--resume") == 2
    assert "config.yaml' is not as this program wrote it" in capsys.readouterr().err
    assert config.read_text() == edited


def test_a_run_whose_record_is_gone_goes_on_and_keeps_what_is_there(tmp_path):
    train_cli(tmp_path, 2, eval_interval=1)
    folder = run_dir(tmp_path)
    (folder / "written.txt").unlink()
    best = {path: path.read_bytes() for path in folder.glob("epoch=*.ckpt")}
    train_cli(tmp_path, 4, "--resume", eval_interval=1)
    assert {path: path.read_bytes() for path in best} == best
    assert read_state(folder) == ("finished", "")


def test_of_two_agents_the_key_that_differs_is_told():
    before, now = ({"agent": {"DDQN": {"gamma": 0.9, "tau": tau}}} for tau in (0.5, 0.3))
    assert first_change(before, now) == ("agent.DDQN.tau", "0.5", "0.3")
    assert first_change(before, {"agent": {"QL": {}}})[0] == "agent"
    assert first_change(now, {"max_epochs": 3, **now}) is None
