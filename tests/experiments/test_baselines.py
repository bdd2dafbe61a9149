"""``lightning-rl baseline``: another library's agents as runs that stand beside ours."""

import csv
import sys

import pytest
import yaml

from lightning_rl.cli import main
from lightning_rl.core.seeding import derive_seed
from lightning_rl.lab.scalars import read_scalar
from lightning_rl.run.state import read_state

pytest.importorskip("stable_baselines3")
from experiments import baselines

SHORT = "max_epochs=3 steps_per_epoch=60 eval_interval=1 eval_episodes=2"


def flags_of(tmp_path, settings="", name="DDQN", game="cartpole"):
    """settings: with spaces between."""
    flags = f"--implementation {name} --gamename {game} --seed 3 --logdir".split()
    values = dict(each.split("=") for each in f"{SHORT} {settings}".split())
    return [*flags, str(tmp_path), *(f"--set={key}={value}" for key, value in values.items())]


def run(tmp_path, settings="", *words, command="baseline", name="DDQN", game="cartpole"):
    assert main([command, *flags_of(tmp_path, settings, name, game), *words], "lightning-rl") == 0
    prefix = "SB3-" if command == "baseline" else ""
    return tmp_path / game / "default" / f"{prefix}{name}" / "seed_3"


@pytest.mark.parametrize(
    ("name", "game", "more"),
    [
        ("DDQN", "cartpole", "learning_starts=1 batch_size=8"),
        ("PPO", "cartpole", "rollout_steps=40 batch_size=20 epochs=1"),
        ("TD3", "pendulum", "learning_starts=1 batch_size=8 action_repeat=2"),
        (
            "DDQN",
            "square",
            "learning_starts=1 batch_size=8 train_interval=4 frame_stack=2 screen_size=36 "
            "encoder=nature",
        ),
    ],
)
def test_a_baseline_logs_where_ours_does_and_is_evaluated_in_the_same_environments(
    name, game, more, tmp_path, monkeypatch
):
    from lightning_rl.rollouts import data_module

    seeds = {"ours": [], "theirs": []}

    def noted(side):
        def derive(run_seed, purpose, *index):
            if purpose == "evaluation":
                seeds[side].append((run_seed, *index))
            return derive_seed(run_seed, purpose, *index)

        return derive

    monkeypatch.setattr(data_module, "derive_seed", noted("ours"))
    monkeypatch.setattr(baselines, "derive_seed", noted("theirs"))
    task = {"name": name, "game": game}
    theirs = run(tmp_path, more, **task)
    ours = run(tmp_path, f"{more} stop_rule=none", "--num_workers=0", command="train", **task)
    curves = [read_scalar(path, "eval_greedy/return_mean") for path in (theirs, ours)]
    repeat = 2 if name == "TD3" else 1
    assert (
        curves[0].env_steps.tolist()
        == curves[1].env_steps.tolist()
        == [60 * repeat, 120 * repeat, 180 * repeat]
    )
    assert (
        seeds["theirs"]
        == list(dict.fromkeys(seeds["ours"]))
        == [(3, epoch, k) for epoch in range(3) for k in range(2)]
    )
    if game == "pendulum":  # whose episodes all take 200 steps
        assert {
            read_scalar(path, "eval_greedy/length_mean").value[-1] for path in (theirs, ours)
        } == {200}
    config = yaml.safe_load((theirs / "config.yaml").read_text())
    found = [config[key] for key in ("implementation", "gamename", "seed")]
    assert found == [f"SB3-{name}", game, 3]
    assert read_state(theirs) == ("finished", "")


def test_a_run_that_was_stopped_begins_again_and_is_the_same(tmp_path, capsys, monkeypatch):
    whole = read_scalar(run(tmp_path / "whole"), "eval_greedy/return_mean")
    log, count = baselines.RunLogger.log_metrics, []

    def stopped(self, metrics, step):
        log(self, metrics, step)
        count.append(step)
        if len(count) == 2:
            raise KeyboardInterrupt

    words = ["baseline", *flags_of(tmp_path)]
    with monkeypatch.context() as patch:
        patch.setattr(baselines.RunLogger, "log_metrics", stopped)
        assert main(words, "lightning-rl") == 130
    assert main(words, "lightning-rl") == 2
    assert "already holds a run; continue with --resume" in capsys.readouterr().err
    path = run(tmp_path, "", "--resume")
    again = read_scalar(path, "eval_greedy/return_mean")
    assert again.env_steps.tolist() == whole.env_steps.tolist()
    assert again.value.tolist() == whole.value.tolist()
    before = sorted(path.rglob("*"))
    run(tmp_path, "", "--resume")
    assert sorted(path.rglob("*")) == before
    assert main([*words, "--resume", "--set", "gamma=0.5"], "lightning-rl") == 2
    assert (
        "holds a run with other settings; choose another --exp_name or --seed"
        in capsys.readouterr().err
    )


@pytest.mark.parametrize(
    ("budget", "episodes", "steps"),
    [("train_episodes=5", 5, None), ("max_env_steps=100", None, 100)],
)
def test_a_budget_that_is_spent_before_the_epochs_ends_a_run_with_an_evaluation(
    budget, episodes, steps, tmp_path, monkeypatch
):
    log, played = baselines.Epochs._log, []

    def noted(self, prefix, ended):
        played.extend(ended if prefix == "rollout" else [])
        log(self, prefix, ended)

    monkeypatch.setattr(baselines.Epochs, "_log", noted)
    last = read_scalar(run(tmp_path, budget), "eval_greedy/return_mean").env_steps[-1]
    assert last < 180
    assert last == (steps or sum(length for _, length in played))
    assert episodes in (None, len(played))


@pytest.mark.parametrize(("budget", "steps"), [("", [120]), ("max_env_steps=150", [120, 150])])
def test_the_last_epoch_is_evaluated_where_ours_is(budget, steps, tmp_path):
    settings = f"eval_interval=2 {budget}"
    theirs = run(tmp_path, settings)
    ours = run(tmp_path, f"{settings} stop_rule=none", "--num_workers=0", command="train")
    for path in (theirs, ours):
        assert read_scalar(path, "eval_greedy/return_mean").env_steps.tolist() == steps


def test_the_other_dqn_explores_and_begins_to_learn_as_ours(tmp_path, monkeypatch):
    """From the first step with the share of random actions that our schedule says, and after so
    many episodes.
    """
    rates, learned = [], []
    train, log = baselines.DQN.train, baselines.Epochs._on_step

    def noted(self, *given, **named):
        learned.append(self._episode_num)
        train(self, *given, **named)

    def step(self):
        rates.append((self.model._episode_num, self.model.exploration_rate))
        return log(self)

    monkeypatch.setattr(baselines.DQN, "train", noted)
    monkeypatch.setattr(baselines.Epochs, "_on_step", step)
    run(tmp_path, "epsilon_init=0.8 epsilon_decay=0.5 epsilon_min=0.1 learning_starts=2")
    assert all(rate == pytest.approx(max(0.1, 0.8 * 0.5**episode)) for episode, rate in rates)
    assert len({episode for episode, _ in rates}) > 3
    assert min(learned) == 2


def test_an_evaluation_comes_after_the_updates_that_follow_its_last_decision(tmp_path, monkeypatch):
    """PPO learns at the end of each roll-out: of 40 steps once before step 60, of 60 steps at
    step 60 as well.
    """
    updates = []
    evaluate = baselines.Epochs._log

    def noted(self, prefix, episodes):
        if prefix == "eval_greedy":
            updates.append(self.model._n_updates)
        evaluate(self, prefix, episodes)

    monkeypatch.setattr(baselines.Epochs, "_log", noted)
    for steps in (40, 60):
        settings = f"rollout_steps={steps} batch_size=20 epochs=1"
        run(tmp_path / str(steps), settings, name="PPO")
    assert updates == [1, 3, 4, 1, 2, 3]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ["--implementation", "SARSA"],
            "baseline 'SARSA' is unknown; choose one of: TD3, PPO, DDQN",
        ),
        (
            ["--gamename", "pendulum"],
            "gamename 'pendulum' does not fit DDQN: it is for discrete actions; use TD3 or PPO",
        ),
        (
            ["--set", "curiosity=icm"],
            "curiosity icm: SB3-DDQN has none alone; --set curiosity=none",
        ),
        (["--set", "stop_rule=none"], "--set stop_rule: SB3-DDQN does not read it; leave it out"),
        (
            ["--implementation", "PPO", "--set", "rollout_steps=1"],
            "SB3-PPO refuses these settings: ",
        ),
        (
            ["--set", "activation=prelu"],
            "activation prelu: a baseline has relu, tanh, leakyrelu; --set activation=relu",
        ),
        (["--gamename", "square"], "encoder udrl: a baseline has nature alone"),
        (["--set", "gamm=0.5"], "did you mean 'gamma'?"),
        (["--exp_name", "a/b"], "--exp_name 'a/b' is not a folder name"),
    ],
)
def test_what_a_baseline_refuses(words, message, tmp_path, capsys):
    assert main(["baseline", *flags_of(tmp_path), *words], "lightning-rl") == 2
    assert message in capsys.readouterr().err
    assert list(tmp_path.rglob("*.yaml")) == []


def test_a_run_that_diverges_is_one_line(tmp_path, capsys):
    settings = "learning_rate=1e30 rollout_steps=40 batch_size=20 max_grad_norm=null"
    flags = flags_of(tmp_path, settings, name="PPO")
    assert main(["baseline", *flags], "lightning-rl") == 2
    assert "SB3-PPO diverged after" in capsys.readouterr().err
    assert read_state(tmp_path / "cartpole" / "default" / "SB3-PPO" / "seed_3")[0] == "failed"


def test_without_the_library_the_error_says_what_to_install(monkeypatch, capsys, tmp_path):
    monkeypatch.setitem(sys.modules, "stable_baselines3", None)
    monkeypatch.delitem(sys.modules, "experiments.baselines")
    assert main(["baseline", *flags_of(tmp_path)], "lightning-rl") == 2
    assert "pip install 'lightning_rl[baselines]'" in capsys.readouterr().err


def test_peers_judge_proxies_and_go_on_where_they_stopped(tmp_path, capsys):
    words = f"proxies peers {tmp_path / 'out.csv'} SE-Suite-CartPole-v1 --agents A2C --tests 2"
    assert main([*words.split(), "--steps", "10"]) == 0
    before = (tmp_path / "out.csv").read_text()
    more = [*words.split(), "--steps", "10", "15", "--real=1", "--set=n_steps=3"]
    assert main(more) == 0
    assert (tmp_path / "out.csv").read_text().startswith(before)
    with (tmp_path / "out.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [row["proxy"] for row in rows] == ["SE-Suite-CartPole-v1"] * 2 + ["real"] + [
        "SE-Suite-CartPole-v1",
        "real",
    ]
    assert [row["train_steps"] for row in rows] == ["10", "12", "12", "15", "15"]
    assert {row["protocol"] for row in rows[1:3]} == {"fixed, 10 steps, 2 tests, n_steps=3"}
    for row in rows:
        lengths = sum(float(word) for word in row["test_returns"].split())
        assert (lengths, lengths / 2) == (float(row["test_steps"]), float(row["return_mean"]))
    capsys.readouterr()
    for words, said in (
        ("--agents DQNN", "did you mean 'DQN'"),
        ("--set=n_stepz=3", "SB3-A2C refuses this"),
        ("--agents TD3", "SB3-TD3 refuses this"),
    ):
        given = f"proxies peers {tmp_path / 'out.csv'} SE-Suite-CartPole-v1 --agents A2C {words}"
        assert main(given.split()) == 2
        assert said in capsys.readouterr().err
