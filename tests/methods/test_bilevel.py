import dataclasses

import pytest
import torch
from helpers.proxies import synthetic_proxy
from helpers.runs import last, run_cli, run_dir, train_cli
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

import lightning_rl
from lightning_rl.cli import main
from lightning_rl.core.errors import UserError
from lightning_rl.envs.proxies import read_proxy, save_proxy
from lightning_rl.lab.evaluate import evaluate
from lightning_rl.methods.inner_loop import InnerLoop
from lightning_rl.methods.reward_network import RN
from lightning_rl.methods.synthetic_dataset import CloningLoop
from lightning_rl.run.options import RunOptions
from lightning_rl.run.run_config import run_config

STRATEGIES = [
    ("SE", "published", {"step_decay": 0.9, "noise_decay": 0.8}),
    ("SE", "openai", {"shared_agents": True}),
    ("SE", "snes", {}),
    ("RN", "cmaes", {"population": 5}),
    ("RN", "published", {"weight_decay": 0.01, "num_grad_evals": 2}),
    ("SD", "snes", {}),
]


@pytest.mark.parametrize(("implementation", "strategy", "settings"), STRATEGIES)
def test_resuming_equals_not_having_stopped(tmp_path, implementation, strategy, settings):
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    settings = {"strategy": strategy, **settings}
    train_cli(whole, 5, implementation=implementation, **settings)
    for epochs in ("2", "5"):
        train_cli(parts, epochs, "--resume", implementation=implementation, **settings)
    a, b = (last(folder, implementation) for folder in (whole, parts))
    for name, value in a["state_dict"].items():
        if isinstance(value, torch.Tensor):
            assert torch.equal(value, b["state_dict"][name]), name
    for state, other in zip(a["optimizer_states"], b["optimizer_states"], strict=True):
        for key, value in state["state"].items():
            assert all(
                torch.equal(torch.as_tensor(v), torch.as_tensor(other["state"][key][k]))
                for k, v in value.items()
            )
    assert a["callbacks"]["SaveProxy"] == b["callbacks"]["SaveProxy"]
    assert len(a["callbacks"]["SaveProxy"]["curve"]) == 5


def test_a_search_that_was_solved_is_not_gone_on_with(tmp_path):
    """Its second generation would change the proxy that solved the task."""
    settings = {"solved_return": -1.0, "stop_when_solved": True, "eval_interval": 50}
    for _ in range(2):
        train_cli(tmp_path, 3, "--resume", implementation="SE", **settings)
        state = last(tmp_path, "SE")["callbacks"]["SaveProxy"]
        assert (len(state["curve"]), state["solved"]) == (1, True)


@pytest.mark.two_cores
def test_processes_give_the_same_run(tmp_path):
    here, there = tmp_path / "here", tmp_path / "there"
    train_cli(here, 2, implementation="SE")
    train_cli(there, 2, "--num_workers", "2", implementation="SE")
    assert last(here, "SE")["callbacks"]["SaveProxy"] == last(there, "SE")["callbacks"]["SaveProxy"]
    means = [last(folder, "SE")["state_dict"]["strategy.mean"] for folder in (here, there)]
    torch.testing.assert_close(
        *means, rtol=1e-5, atol=1e-6
    )  # other stacks of agents: up to rounding


def test_a_run_leaves_its_best_proxy_and_its_metrics(tmp_path):
    train_cli(tmp_path, 2, implementation="SE", gamename="acrobot")
    folder = run_dir(tmp_path, "acrobot", implementation="SE")
    proxy, params, about = read_proxy(folder / "proxy.pt", "acrobot")
    state = last(tmp_path, "SE", "acrobot")["state_dict"]
    assert torch.equal(params, state["strategy.best"])
    assert about["score"] == max(about["curve"]) == state["strategy.best_score"].item()
    assert (
        about["config"]["agent"]["PPO"]["gamma"] > 0
    )  # every value of the inner agents is on record
    assert proxy.horizon == 20
    events = EventAccumulator(str(folder / "logger" / "version_0"))
    events.Reload()
    assert {"es/fitness_mean", "es/fitness_best", "agent/failed", "eval/return_mean"} <= set(
        events.Tags()["scalars"]
    )
    played = evaluate(folder / "last.ckpt", 2, None, 0)["greedy"]
    one, other = played["returns"]
    assert -500 <= played["return"]["mean"] == (one + other) / 2 < 0


def test_a_search_goes_on_from_a_proxy(tmp_path):
    train_cli(tmp_path / "first", 2, implementation="SE")
    start = run_dir(tmp_path / "first", "cartpole", implementation="SE") / "proxy.pt"
    train_cli(tmp_path / "second", 1, implementation="SE", start=str(start))
    _, best, _ = read_proxy(
        run_dir(tmp_path / "second", "cartpole", implementation="SE") / "proxy.pt"
    )
    assert torch.equal(
        best, read_proxy(start)[1]
    )  # the first generation judges what it starts from


def test_a_model_whose_ends_are_log_odds_starts_no_search(tmp_path):
    proxy = synthetic_proxy("cartpole", done="classifier")
    save_proxy(tmp_path / "model.pt", proxy, torch.zeros(proxy.net.size), {"score": 1.0})
    with pytest.raises(
        UserError, match="is a model of MBRL, which tells ends otherwise; use a proxy of SE"
    ):
        lightning_rl.SE("cartpole", start=str(tmp_path / "model.pt"), hidden=[8], activation="tanh")


def test_the_agent_of_a_proxy_is_played_as_it_was_tested(tmp_path, monkeypatch):
    """Greedily, and with the action repeat of its config; a run says so too, and its film does
    not end it.
    """
    train_cli(tmp_path, 1, "--recording_epoch_interval", "1", implementation="SD")
    folder = run_dir(tmp_path, implementation="SD")
    assert (folder / "recordings" / "epoch_0" / "greedy.mp4").stat().st_size > 0
    weights = last(tmp_path, "SD")["state_dict"]
    assert not any(name.startswith("policy") for name in weights)  # of the agent in the film
    trained = []
    monkeypatch.setattr(
        CloningLoop, "train", lambda *given: trained.append(1) or InnerLoop.train(*given)
    )
    evaluate(folder / "last.ckpt", 2, None, 0)
    assert trained == [1]  # once, however many are asked for it
    agent = lightning_rl.load(folder)
    seen = torch.randn(50, 4, generator=torch.Generator().manual_seed(0)).numpy()
    chosen = {}
    for greedy in (None, True, False):
        agent.reset(seed=0, greedy=greedy)
        chosen[greedy] = [agent.act(each) for each in seen]
    assert chosen[None] == chosen[True] != chosen[False]
    ours = lightning_rl.SE(
        "mountaincar-continuous",
        agent={"TD3": {"train_episodes": 1, "action_repeat": 2}},
        max_train_steps=40,
    )
    ours.prepare_evaluation()
    assert ours.spec == ours.inner_loop.task(0)
    assert ours.spec.repeat == 2
    report = lightning_rl.evaluate(lightning_rl.SD("cartpole", hidden=[8], num_updates=3), 2)
    assert len(report["greedy"]["returns"]) == 2


def test_empty_room_is_solved_in_seconds(tmp_path, capsys):
    """The outer and the inner loop end to end, with the values of the config."""
    flags = [
        "--implementation",
        "SE",
        "--gamename",
        "emptyroom22",
        "--num_workers",
        "0",
        "--seed",
        "1",
    ]
    assert main([*flags, "--logdir", str(tmp_path)]) == 0
    state = last_of(run_dir(tmp_path, "emptyroom22", 1, "SE"))
    assert state["strategy.best_score"] > 0.8


def last_of(folder):
    return torch.load(folder / "last.ckpt", weights_only=True)["state_dict"]


@pytest.mark.parametrize(
    ("implementation", "settings", "message"),
    [
        (
            "SE",
            {"population": 1, "score_transform": "rank"},
            "population 1: score_transform rank compares candidates",
        ),
        (
            "SE",
            {"population": 1, "strategy": "snes"},
            "population 1: strategy snes compares candidates",
        ),
        (
            "SE",
            {"population": 3, "strategy": "cmaes"},
            "population 3: strategy cmaes learns no covariance from the better half "
            "of them; use a population of 4 or more",
        ),
        (
            "SE",
            {"agent": "TD3"},
            "agent TD3 does not fit gamename 'cartpole': it is for continuous actions; use "
            "TD3-discrete",
        ),
        ("SE", {"agent": "QL"}, "agent QL does not fit gamename 'cartpole': tables need one-hot"),
        ("SE", {"agent": "DQN"}, "agent 'DQN' is unknown; did you mean 'DDQN'"),
        (
            "SE",
            {"agent": "{DDQN: {gama: 0.9}}"},
            "key 'agent', DDQN: unknown key 'gama'; did you mean 'gamma'",
        ),
        ("SE", {"agent": []}, "key 'agent' is empty"),
        ("SE", {"strategy": "adam"}, "strategy 'adam' is unknown; choose one of: published"),
        (
            "SE",
            {"strategy": "openai", "mirrored": False},
            "mirrored false: the candidates of strategy openai are always",
        ),
        (
            "SE",
            {"strategy": "cmaes", "mirrored": True},
            "mirrored true: the candidates of strategy cmaes are never",
        ),
        (
            "SE",
            {"strategy": "cmaes", "population": 4, "hidden": [200]},
            "too many for a full covariance matrix",
        ),
        (
            "SE",
            {"strategy": "snes", "noise_decay": 0.9},
            "noise_decay 0.9: strategy snes adapts its noise itself",
        ),
        (
            "SE",
            {"strategy": "cmaes", "population": 4, "step_decay": 0.9},
            "step_decay 0.9: strategy cmaes adapts its steps",
        ),
        (
            "SE",
            {"step_decay": 1.1},
            "key 'step_decay': Input should be less than or equal to 1, got 1.1",
        ),
        (
            "SE",
            {"strategy": "snes", "score_transform": "rank"},
            "--set: key 'score_transform': strategy snes does not read it; "
            "leave it out, or use strategy=published or openai",
        ),
        (
            "RN",
            {"strategy": "snes", "weight_decay": 0.1},
            "key 'weight_decay': strategy snes does not read it",
        ),
        (
            "SE",
            {"strategy": "cmaes", "population": 4, "step_size": 0.3},
            "key 'step_size': strategy cmaes does not read it",
        ),
        ("SE", {"start": "nowhere.pt"}, "'nowhere.pt'"),
        (
            "SE",
            {"start": "SE-CartPole-v0"},
            "SE-CartPole-v0.pt' is of gamename 'cartpole-v0', not of 'cartpole'",
        ),
        ("RN", {"reward": "potential"}, "reward 'potential' is unknown; choose one of: native"),
        ("RN", {"reward": -1}, "reward -1: use reward=native and agent={DDQN: {curiosity: icm}}"),
        ("RN", {"reward": 9}, "reward '9' is unknown; choose one of: native"),
        ("SE", {"score_transform": 8}, "score_transform '8' is unknown; choose one of: linear"),
        (
            "RN",
            {"reward": "additive_info"},
            "needs the info of the task, but 'cartpole' gives none",
        ),
        (
            "RN",
            {"objective": "auc", "judge_episodes": 0},
            "judge_episodes 0: learned returns judge nothing; use 1",
        ),
        ("RN", {"objective": "speed"}, "objective 'speed' is unknown"),
        (
            "SE",
            {"vary": True, "agent": "{DDQN: {hidden: []}}"},
            "hidden []: agents that vary draw one width for all",
        ),
        (
            "SD",
            {"vary": True, "hidden": [64, 8]},
            "hidden [64, 8]: agents that vary draw one width",
        ),
        (
            "SD",
            {"solved_return": 100.0},
            "key 'solved_return': objective final_return does not read it",
        ),
        (
            "SE",
            {"unsolved_penalty": 3.0},
            "key 'unsolved_penalty': objective final_return does not read it",
        ),
        (
            "RN",
            {"objective": "auc"},
            "objective auc: with stop_rule solved early success has a small area; set "
            "stop_rule=none",
        ),
        (
            "RN",
            {"stop_rule": "none"},
            "steps_to_threshold: with stop_rule none all train to the end; set stop_rule=solved",
        ),
        (
            "RN",
            {"objective": "auc", "stop_rule": "none", "unsolved_penalty": 3.0},
            "key 'unsolved_penalty': objective auc does not read it",
        ),
        (
            "SE",
            {"judge_episodes": 3},
            "key 'judge_episodes': stop_rule plateau judges no real episode; leave it out, or use",
        ),
        (
            "SE",
            {"stop_rule": "solved", "judge_episodes": 0},
            "judge_episodes 0: stop_rule solved is of real episodes; use 1",
        ),
        (
            "SE",
            {"agent.PPO.stop_rule": "none"},
            "key 'agent.PPO.stop_rule': agents read it in runs of their own alone",
        ),
        (
            "SE",
            {"agent": "{PPO: {stop_rule: none}}"},
            "key 'agent.PPO.stop_rule': agents read it in runs of their own alone",
        ),
    ],
)
def test_mistakes_are_told_in_one_line(tmp_path, capsys, implementation, settings, message):
    assert run_cli(tmp_path, implementation=implementation, **settings) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


def test_a_dead_key_in_a_file_is_refused_and_a_runs_own_record_is_not(tmp_path, capsys):
    """The YAML's block of pendulum has a score_transform, which preset bandit (snes) does not
    read: no mistake of a user.
    """
    options = RunOptions("SE", "pendulum", preset="bandit")
    config = run_config(options)
    assert (config.strategy, config.score_transform) == ("snes", "all_better_sum")
    assert run_config(dataclasses.replace(options, config=dataclasses.asdict(config))) == config
    file = tmp_path / "own.yaml"
    file.write_text("{strategy: snes, score_transform: rank}")
    assert run_cli(tmp_path, "--config", str(file), implementation="SE", strategy="snes") == 2
    assert (
        "--config: key 'score_transform': strategy snes does not read it" in capsys.readouterr().err
    )


def test_rewards_have_the_numbers_of_the_papers_code():
    for number, name in ((0, "native"), (6, "additive"), (102, "additive_weighted_info")):
        assert RN("halfcheetah", reward=number).cfg.reward == name


@pytest.mark.parametrize("gamename", ["cartpole-v0", "acrobot"])
def test_the_environments_of_the_papers_figures_have_their_networks(gamename):
    """Those of Figures 3 and 7 are of one form; the tuned ones of Acrobot, the block of the
    gamename, are another.
    """
    config = run_config(RunOptions("SE", gamename, preset="figure3"))
    assert (config.hidden, config.activation) == ([128], "leakyrelu")


def test_executors_are_for_populations(tmp_path, capsys):
    assert run_cli(tmp_path, "--executor", "ray") == 2
    assert (
        "--executor ray: UDRL evaluates no population; leave it out (SE, RN and SD do)"
        in capsys.readouterr().err
    )


def test_what_tables_do_not_draw_is_refused(tmp_path, capsys):
    assert (
        run_cli(
            tmp_path,
            implementation="SE",
            gamename="emptyroom22",
            vary=True,
            agent="{QL: {train_episodes: 2}}",
        )
        == 2
    )
    assert (
        "key 'vary': what is drawn is of networks, and an agent that learns a table has none"
        in capsys.readouterr().err
    )
