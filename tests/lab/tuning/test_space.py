import pytest
from helpers.budgets import fitting
from helpers.runs import cli

from lightning_rl.core.catalogue import entry
from lightning_rl.core.errors import UserError
from lightning_rl.lab.tuning import search
from lightning_rl.lab.tuning.space import load_tune_config, spaces
from lightning_rl.lab.tuning.trial import Plan
from lightning_rl.methods.registry import IMPLEMENTATIONS
from lightning_rl.run.options import RunOptions
from lightning_rl.run.run_config import run_config


def test_what_is_drawn_becomes_what_the_config_takes():
    search = {
        "gamma": {"one_minus_log": [0.001, 0.1]},
        "hidden": {"choice": [[8], [8, 16]]},
        "batch_size": {"log_int": [4, 64]},
        "learning_rate": {"log": [1e-4, 1e-2]},
    }
    gamma, hidden, batch_size, learning_rate = spaces(search)
    assert gamma.decode(0.01) == 0.99
    assert gamma.bounds() == [0.999, 0.9]
    assert hidden.codes() == ["[8]", "[8, 16]"]  # search algorithms cannot hash a list
    assert hidden.decode("[8, 16]") == [8, 16]
    assert type(batch_size.decode(4.0)) is int
    assert learning_rate.bounds() == [1e-4, 1e-2]


@pytest.mark.parametrize(
    ("description", "words"),
    [
        ({"lgo": [1, 2]}, "is no space; write one of choice"),
        ({"log": [1, 2], "int": [1, 2]}, "is no space"),
        ({"log": [0, 1]}, r"0 < low < high, got \[0, 1\]"),
        ({"uniform": [2, 1]}, r"low < high, got \[2, 1\]"),
        ({"uniform": [2, 2]}, r"low < high, got \[2, 2\]"),
        ({"uniform": ["a", 1]}, "low < high"),
        ({"uniform": [False, 1]}, "low < high"),
        ({"int": [1, 2, 3]}, "low < high"),
        ({"choice": []}, r"choice needs a list of values, got \[\]"),
        ({"choice": 3}, "choice needs a list"),
    ],
)
def test_what_is_no_space_is_named(description, words):
    with pytest.raises(UserError, match=f"tune search 'x': .*{words}"):
        spaces({"x": description})


def test_every_implementation_can_be_searched_wherever_it_fits(tmp_path):
    for name in IMPLEMENTATIONS:
        games = {game for block in entry(name).blocks for game in block.values.get("tune", {})} - {
            "default"
        }
        for game in {fitting([name])[0][1], *(game for _, game in fitting([name], games))}:
            Plan(RunOptions(name, game, logdir=tmp_path), load_tune_config(name, game, {})).check()
    assert not list(tmp_path.iterdir())


def test_every_implementation_can_be_searched_from_the_command_line(tmp_path, monkeypatch):
    """Also where the budget of the search is the only stop rule, as of policy gradients."""
    begun = []
    monkeypatch.setattr(search, "tune", lambda plan, resume: begun.append(plan) or 0)
    for name in IMPLEMENTATIONS:
        words = [
            "tune",
            "--implementation",
            name,
            "--gamename",
            fitting([name])[0][1],
            "--logdir",
            str(tmp_path),
        ]
        assert cli(*words, "--tune", "trials=1") == 0, name
        ((key, total),) = begun[-1].tune.budget.items()
        # what best.yaml has is what was tried
        assert begun[-1].config({}) == run_config(begun[-1].runs("one", {})[0])
        assert getattr(begun[-1].config({}), key) == total
    assert len(begun) == len(IMPLEMENTATIONS)


@pytest.mark.parametrize(
    ("name", "preset"),
    [("UDRL", "weighted"), ("AAC", "tuned"), ("SE", "suite"), ("RCP-R", "returns")],
)
def test_a_preset_can_be_searched_from_the_command_line(tmp_path, monkeypatch, name, preset):
    begun = []
    monkeypatch.setattr(
        search, "tune", lambda plan, resume: begun.append(plan) or plan.check() or 0
    )
    words = [
        "tune",
        "--implementation",
        name,
        "--gamename",
        "cartpole",
        "--preset",
        preset,
        "--logdir",
        str(tmp_path),
    ]
    assert cli(*words, "--tune", "trials=1") == 0


def test_a_tune_block_adds_to_the_settings_of_those_that_it_extends():
    """Tables explore as long as the networks do, and have no stop rule but the budget either."""
    settings = load_tune_config("QL", "cliff", {}).settings
    assert settings == {"train_episodes": 1_000_000, "stop_rule": "none", "epsilon_decay": 1.0}


def test_a_search_that_cannot_run_is_refused_before_it_starts(tmp_path):
    options = RunOptions("UDRL", "cartpole", logdir=tmp_path)
    for settings, words in (
        (
            {"search": {"batch_sise": {"int": [1, 2]}}},
            "unknown key 'batch_sise'; did you mean 'batch_size'",
        ),
        ({"search": {"batch_size": {"int": [-5, 2]}}}, "key 'batch_size': .* got -5"),
        ({"budget": {"max_env_step": 5}}, "expected one of max_env_steps"),
        (
            {"budget": {"max_env_steps": 5, "max_epochs": 3}},
            "expected one of max_env_steps, max_episodes, max_epochs",
        ),
        (
            {"budget": {"train_episodes": 5}},
            "expected one of max_env_steps, max_episodes, max_epochs",
        ),
        ({"algorithm": "tpe"}, "key 'algorithm': .*'asha', 'bohb', 'grid' or 'optuna'"),
        ({"algorithm": "grid"}, "tune algorithm grid: 'learning_rate' has no list of values"),
        (
            {"settings": {"tau": 0.1}, "search": {"tau": {"uniform": [0, 1]}}},
            "'tau' is in the budget or the settings",
        ),
        ({"trails": 3}, "unknown key 'trails'; did you mean 'trials'"),
        ({"search": {}}, "tune search is empty"),
    ):
        with pytest.raises(UserError, match=words):
            Plan(options, load_tune_config("UDRL", "cartpole", settings)).check()


def test_a_search_leaves_out_what_the_strategy_does_not_read(tmp_path):
    options = RunOptions("SE", "cartpole", preset="bandit", logdir=tmp_path)  # snes
    ignored_keys = run_config(options).ignored_keys()
    tune = load_tune_config("SE", "cartpole", {}, ignored_keys)
    assert "score_transform" not in tune.search
    assert "step_size" in tune.search
    Plan(options, tune).check()
    asked = load_tune_config(
        "SE", "cartpole", {"search": {"weight_decay": {"uniform": [0, 0.1]}}}, ignored_keys
    )
    with pytest.raises(
        UserError, match="tune search: key 'weight_decay': strategy snes does not read it"
    ):
        Plan(options, asked).check()


def test_a_trial_of_a_searched_strategy_sets_what_that_one_reads(tmp_path):
    search = {
        "strategy": {"choice": ["published", "snes"]},
        "score_transform": {"choice": ["rank", "nes"]},
    }
    plan = Plan(
        RunOptions("SE", "cartpole", logdir=tmp_path),
        load_tune_config("SE", "cartpole", {"search": search}),
    )
    plan.check()
    drawn = {"strategy": "snes", "score_transform": "rank"}
    assert plan.settings(drawn) == {"strategy": "snes"}
    assert plan.settings({**drawn, "strategy": "published"}) == {**drawn, "strategy": "published"}


GAMMA = {"agent.DDQN.gamma": {"uniform": [0.9, 0.99]}}


@pytest.mark.parametrize(
    "agent", ["DuelingDDQN", ["PPO", "DuelingDDQN"], {"DuelingDDQN": {"gamma": 0.9}}]
)
def test_a_search_keeps_to_the_agents_that_are_chosen(tmp_path, agent):
    """The YAML's spaces are of DDQN: a trial that set one of its keys would train DDQN instead."""
    options = RunOptions("SE", "cartpole", settings={"agent": agent}, logdir=tmp_path)
    tune = load_tune_config("SE", "cartpole", {}, run_config(options).ignored_keys())
    assert "noise_std" in tune.search
    assert not [key for key in tune.search if key.startswith("agent.")]
    Plan(options, tune).check()
    asked = load_tune_config("SE", "cartpole", {"search": GAMMA})
    with pytest.raises(
        UserError, match=r"tune search: key 'agent.DDQN.gamma': agent DDQN is none of this search's"
    ):
        Plan(options, asked).check()


@pytest.mark.parametrize("place", ["settings", "config"])
@pytest.mark.parametrize("agent", ["DDQN", ["DuelingDDQN", "DDQN"]])
def test_a_searched_key_of_an_agent_leaves_the_others_what_they_are(tmp_path, agent, place):
    plan = Plan(
        RunOptions("SE", "cartpole", logdir=tmp_path, **{place: {"agent": agent}}),
        load_tune_config("SE", "cartpole", {"search": GAMMA}),
    )
    plan.check()
    agents = plan.config(plan.settings({"agent.DDQN.gamma": 0.95})).agent
    assert list(agents) == ([agent] if isinstance(agent, str) else agent)
    assert agents["DDQN"]["gamma"] == 0.95


def test_a_trial_of_a_searched_agent_sets_the_keys_of_that_one(tmp_path):
    search = {"agent": {"choice": ["DDQN", "DuelingDDQN"]}, **GAMMA}
    plan = Plan(
        RunOptions("SE", "cartpole", logdir=tmp_path),
        load_tune_config("SE", "cartpole", {"search": search}),
    )
    plan.check()
    drawn = {"agent": "DDQN", "agent.DDQN.gamma": 0.95}
    assert plan.settings(drawn) == drawn
    assert list(plan.config(drawn).agent) == ["DDQN"]
    assert plan.settings({**drawn, "agent": "DuelingDDQN"}) == {"agent": "DuelingDDQN"}
