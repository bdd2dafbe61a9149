import pytest
import torch
from helpers.members import assert_same_runs, check_a_seed_of_many, compare, flat, ppo_of
from helpers.runs import last, run_cli, run_dir, train_cli
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from lightning_rl.cli import main
from lightning_rl.envs.spec import env_spec
from lightning_rl.lab.evaluate import evaluate
from lightning_rl.methods.agents import member_policy
from lightning_rl.run.options import RunOptions
from lightning_rl.run.run_config import run_config

# Agents that no test of stacks (below) or of plain Trainers (library/test_lightning.py) resumes,
# and one of the environments of Gymnasium for each way of acting.
CASES = [
    ("SARSA", "cliff"),
    ("DuelingDDQN", "cartpole"),
    ("TD3-discrete", "cartpole"),
    ("PPO", "pendulum"),
    ("DDQN", "lunarlander"),
    ("TD3", "lunarlander-continuous"),
]


@pytest.mark.parametrize(("implementation", "gamename"), CASES)
def test_resuming_equals_not_having_stopped(tmp_path, implementation, gamename):
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    train_cli(whole, 7, implementation=implementation, gamename=gamename)
    for epochs in ("2", "5", "7"):
        train_cli(parts, epochs, "--resume", implementation=implementation, gamename=gamename)
    assert_same_runs(*(last(folder, implementation, gamename) for folder in (whole, parts)))


@pytest.mark.parametrize(("implementation", "gamename"), [("QL", "cliff"), ("DDQN", "cartpole")])
def test_agents_whose_episodes_are_played_are_not_gone_on_with(tmp_path, implementation, gamename):
    """Neither the run's scalars nor its checkpoints change when it is resumed with nothing left
    to do.
    """

    def again():
        flags = ("--max_epochs", "50", "--resume", "--num_seeds", "2")
        assert (
            run_cli(
                tmp_path, *flags, implementation=implementation, gamename=gamename, train_episodes=2
            )
            == 0
        )
        folder = run_dir(tmp_path, gamename, 25, implementation)
        events = EventAccumulator(str(folder / "logger" / "version_0")).Reload()
        scalars = {
            tag: [(e.step, e.value) for e in events.Scalars(tag)]
            for tag in events.Tags()["scalars"]
        }
        checkpoint = torch.load(folder / "last.ckpt", weights_only=True)
        return (
            {tag: points for tag, points in scalars.items() if "/" in tag},
            sorted(folder.glob("*.ckpt")),
            checkpoint["epoch"],
        )

    scalars, checkpoints, epoch = again()
    assert scalars["rollout/return_mean"]
    assert scalars["eval/return_mean"]
    assert again() == (scalars, checkpoints, epoch)


@pytest.mark.parametrize(
    ("implementation", "gamename"),
    [("QL", "cliff"), ("DDQN", "cartpole"), ("TD3", "pendulum"), ("DDQN", "lunarlander")],
)
def test_a_seed_of_many_is_the_seed_alone(tmp_path, implementation, gamename):
    check_a_seed_of_many(tmp_path, implementation, gamename)


@pytest.mark.parametrize("implementation", ["DDQN", "DuelingDDQN", "PPO"])
@pytest.mark.slow
def test_a_seed_of_many_that_see_images_is_the_seed_alone(tmp_path, implementation):
    rate = 1.0e-4  # as Adam makes the rounding of the smallest gradients large
    check_a_seed_of_many(tmp_path, implementation, "square", frame_stack=3, learning_rate=rate)


@pytest.mark.parametrize("implementation", ["DDQN", "PPO"])
def test_a_run_that_sees_images_is_resumed_to_the_bit(tmp_path, implementation):
    """In the middle of an episode, of a memory that turns over and of a roll-out."""
    given = {"implementation": implementation, "gamename": "square", "frame_stack": 3}
    given |= {"steps_per_epoch": 37, "rollout_steps": 48} if implementation == "PPO" else {}
    runs = []
    for parts in ((2, 6), (6,)):
        for epochs in parts:
            train_cli(tmp_path / str(parts), epochs, "--resume", **given)
        runs.append(last(tmp_path / str(parts), implementation, "square"))
    assert_same_runs(*runs)


def test_each_seed_of_many_has_an_ordinary_run_directory(tmp_path):
    train_cli(tmp_path, 4, "--num_seeds", "3", implementation="DDQN")
    for seed in (25, 26, 27):
        folder = run_dir(tmp_path, seed=seed, implementation="DDQN")
        assert {"config.yaml", "last.ckpt", "logger"} <= {path.name for path in folder.iterdir()}
        assert len(list(folder.glob("epoch=*.ckpt"))) == 1
        events = EventAccumulator(str(folder / "logger" / "version_0"))
        events.Reload()
        assert {"eval/return_mean", "rollout/return_mean", "time/env_steps_per_second"} <= set(
            events.Tags()["scalars"]
        )
        assert events.Scalars("time/num_updates")[-1].step == 160
        assert evaluate(folder / "last.ckpt", 2, None, 0)["env_steps"] == 160
    # one of them goes on alone
    train_cli(tmp_path, 5, "--seed", "26", "--resume", implementation="DDQN")
    assert last(tmp_path, "DDQN", "cartpole", 26)["global_step"] == 5


def test_seeds_that_do_not_fit_together_are_not_resumed(tmp_path, capsys):
    run_cli(tmp_path, "--max_epochs", "2", implementation="QL", gamename="cliff")
    flags = ("--num_seeds", "2", "--resume", "--max_epochs", "4")
    assert run_cli(tmp_path, *flags, implementation="QL", gamename="cliff") == 2
    assert "seed_26' has no last.ckpt but another seed has" in capsys.readouterr().err
    run_cli(tmp_path, "--max_epochs", "4", "--seed", "26", implementation="QL", gamename="cliff")
    assert run_cli(tmp_path, *flags, implementation="QL", gamename="cliff") == 2
    assert "of different epochs [1, 3]; resume them one by one" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["QL", "DDQN", "PPO"])
def test_reload_starts_every_seed_from_the_policy(tmp_path, name):
    what = {"implementation": name, "gamename": "cliff", "checkpoint_interval": 1}
    run_cli(tmp_path, "--max_epochs", "3", **what)
    path = run_dir(tmp_path, "cliff", implementation=name) / "last.ckpt"
    flags = ("--max_epochs", "1", "--num_seeds", "2", "--reload", str(path))
    assert run_cli(tmp_path / "b", *flags, learning_rate=1e-30, **what) == 0
    before = torch.load(path, weights_only=True)["state_dict"]
    for seed in (25, 26):
        after = last(tmp_path / "b", name, "cliff", seed)
        weights = {key: value for key, value in before.items() if key.startswith("policies.0.")}
        assert weights
        assert all(
            torch.allclose(after["state_dict"][key], value, rtol=0, atol=1e-9)
            for key, value in weights.items()
        )
        assert after["state_dict"]["env_steps"] == 40


def without_evaluations(state):
    """A checkpoint's weights and counters but for those that count evaluation steps."""
    counters = {"eval_env_steps", "member_counters"}
    kept = {name: value for name, value in state["state_dict"].items() if name not in counters}
    return {**kept, "member_counters": state["state_dict"]["member_counters"][:, [0, 1, 3]]}


@pytest.mark.parametrize(
    ("implementation", "gamename", "settings"),
    [
        ("TD3", "pendulum", {}),
        ("PPO", "cartpole", {}),
        ("simple-model", "emptyroom22", {"faithful": "[stale-observation]"}),
    ],
)
def test_a_budget_ends_within_an_epoch_and_a_larger_one_goes_on_as_if_it_had_not(
    tmp_path, implementation, gamename, settings
):
    """Epochs of 40: 2.5 of them, then on to 5.25, against 5.25 at once; and not to 200 or 240."""
    settings = {"steps_per_epoch": 40, "eval_interval": 100, **settings}
    how = {"implementation": implementation, "gamename": gamename, **settings}
    for limit in (100, 210):
        assert run_cli(tmp_path / "twice", "--resume", max_env_steps=limit, **how) == 0
        assert (
            int(last(tmp_path / "twice", implementation, gamename)["state_dict"]["env_steps"])
            == limit
        )
    assert run_cli(tmp_path / "once", max_env_steps=210, **how) == 0
    twice, once = (last(tmp_path / name, implementation, gamename) for name in ("twice", "once"))
    assert once["epoch"] == 5
    for pick in (
        without_evaluations,
        lambda state: next(value for key, value in state.items() if key.endswith("Rollouts")),
    ):
        compare(flat(pick(twice)), flat(pick(once)), exactly=True)


def test_repeated_actions_end_with_the_decision_that_reaches_the_budget(tmp_path):
    assert (
        run_cli(
            tmp_path,
            implementation="TD3",
            gamename="mountaincar-continuous",
            action_repeat=3,
            max_env_steps=100,
        )
        == 0
    )
    assert int(last(tmp_path, "TD3", "mountaincar-continuous")["state_dict"]["env_steps"]) == 102


def test_q_learning_finds_the_best_path_on_the_cliff(tmp_path):
    """With the values of the config; the run ends by itself when the mean of ten tests reaches
    -20.
    """
    flags = [
        "--implementation",
        "QL",
        "--gamename",
        "cliff",
        "--logdir",
        str(tmp_path),
        "--num_workers",
        "0",
        "--num_seeds",
        "3",
    ]
    assert main(flags) == 0
    for seed in (25, 26, 27):
        report = evaluate(run_dir(tmp_path, "cliff", seed, "QL") / "last.ckpt", 1, None, 0)
        assert report["greedy"]["returns"] == [-12.0]
        assert 1400 <= report["env_steps"] <= 1550


@pytest.mark.parametrize("std", [0.01, 0.5, 2.0])
def test_ppo_acts_trains_and_is_evaluated_with_one_standard_deviation(std):
    """Also where the Gaussians of networks would be bounded: below exp(-3) and above exp(0.5)."""
    agent = ppo_of(3, 1, [1, 2, 3], continuous=True, std_init=std)
    obs, episode = torch.randn(3, 3), torch.zeros(3, dtype=torch.int64)
    actions = torch.stack([agent.act(obs, episode, step) for step in range(400)])
    means = agent.greedy(obs.unsqueeze(1)).squeeze(1)
    assert (actions - means).std().item() == pytest.approx(std, rel=0.1)
    learns_from = (
        agent.policy(agent.params, obs.unsqueeze(1)).log_prob(actions[-1].unsqueeze(1)).squeeze(1)
    )
    for n in range(3):
        distribution = member_policy(agent, n, env_spec("pendulum")).distribution(obs[n])
        assert distribution.log_std.exp().item() == pytest.approx(std)
        torch.testing.assert_close(distribution.sample(torch.ones(1)), means[n] + std)
        torch.testing.assert_close(
            distribution.log_prob(actions[-1, n]), learns_from[n], rtol=1e-4, atol=1e-4
        )


@pytest.mark.parametrize(
    ("implementation", "gamename", "settings", "message"),
    [
        (
            "DDQN",
            "cartpole",
            {"icm_eta": 3.0},
            "key 'icm_eta': there is no curiosity of this kind; leave it",
        ),
        (
            "QL",
            "cliff",
            {"count_beta": 0.1},
            "key 'count_beta': there is no curiosity of this kind",
        ),
        (
            "PPO",
            "cartpole",
            {"standardise": "returns", "gae_lambda": 0.1},
            "'gae_lambda': Monte-Carlo returns have no lambda",
        ),
    ],
)
def test_a_key_that_does_nothing_is_refused(
    tmp_path, capsys, implementation, gamename, settings, message
):
    assert run_cli(tmp_path, implementation=implementation, gamename=gamename, **settings) == 2
    assert message in capsys.readouterr().err


def test_a_key_of_a_curiosity_that_is_on_is_read():
    assert (
        run_config(
            RunOptions("DDQN", "cartpole", settings={"curiosity": "icm", "icm_eta": 3.0})
        ).icm_eta
        == 3.0
    )
