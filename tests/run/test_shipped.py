"""What comes with the package: each agent loads, reaches its score and obtains what it is asked
for; a dataset is made again.
"""

import json
import shlex

import gymnasium
import numpy as np
import pytest
import torch
from helpers import ROOT
from helpers.runs import train_cli

import lightning_rl
from experiments.reproduce import store
from experiments.reproduce.checkout import MANIFEST
from experiments.reproduce.claims import seed_list
from experiments.reproduce.manifest import load_claims
from experiments.reproduce.runs import machine, shown_command, versions
from experiments.shipping import command_of, ship
from lightning_rl.cli import main
from lightning_rl.cli.commands import run_options
from lightning_rl.cli.parser import parse
from lightning_rl.core.config import with_added, without_retired
from lightning_rl.core.errors import UserError
from lightning_rl.core.gamenames import same_game
from lightning_rl.envs import proxies
from lightning_rl.envs.gym import rollout_env
from lightning_rl.envs.spec import env_spec
from lightning_rl.lab.evaluate import play
from lightning_rl.lab.protocols.models import content_hash, find_models
from lightning_rl.lab.reports.agents import commands, score
from lightning_rl.methods.base import TRAINING_ONLY
from lightning_rl.run import shipped
from lightning_rl.run.asking import Asked, full_command
from lightning_rl.run.loading import ACTING_ONLY
from lightning_rl.run.run_config import run_config
from lightning_rl.run.shipped import SHIPPED, shipped_agents
from lightning_rl.run.state import checkpoint_at

AGENTS = shipped_agents()
EPISODES = 8
CALIBRATED = [
    name
    for name, agent in AGENTS.items()
    if "return" in agent.commands and agent.implementation.startswith("RCP")
]


LONG = {"UDRL-takecover": [pytest.mark.slow]}


@pytest.mark.parametrize("name", [pytest.param(name, marks=LONG.get(name, [])) for name in AGENTS])
def test_an_agent_reaches_its_score(name):
    agent, method = AGENTS[name], lightning_rl.load(name).method
    assert (method.implementation, method.gamename, method.seed) == (
        agent.implementation,
        agent.gamename,
        agent.seed,
    )
    ((episodes),) = play(method, [(Asked(method.first_command()), agent.mode)], EPISODES, 0)
    mean = np.mean([episode.ret for episode in episodes])
    assert mean == pytest.approx(
        agent.score, abs=4 * agent.sd * (1 / EPISODES + 1 / agent.episodes) ** 0.5 + 1e-6
    )


@pytest.mark.parametrize("name", CALIBRATED)
def test_an_agent_obtains_what_it_is_asked_for(name):
    method, (low, high) = lightning_rl.load(name).method, AGENTS[name].commands["return"]
    asked = np.linspace(low, high, 5)[1:4]
    played = play(
        method, [(full_command(method, {"return": value}), "sampled") for value in asked], 12, 0
    )
    obtained = [np.mean([episode.ret for episode in episodes]) for episodes in played]
    assert obtained == sorted(obtained)
    assert np.abs(obtained - asked).mean() < 0.2 * (high - low)


def test_files_are_small_and_hold_what_acting_takes():
    files = sorted(SHIPPED.glob("*.ckpt"))
    assert [path.stem for path in files] == sorted(AGENTS)
    assert sum(path.stat().st_size for path in files) < 1_900_000
    for path in files:
        content = torch.load(path, weights_only=True)
        assert content.keys() == {"epoch", "hyper_parameters", "state_dict", ACTING_ONLY}
        assert not [name for name in content["state_dict"] if name.startswith(TRAINING_ONLY)]


def test_an_unknown_name_is_refused_with_the_nearest():
    name = next(iter(AGENTS))
    with pytest.raises(UserError, match=f"did you mean '{name}'"):
        lightning_rl.load(name.lower())
    with pytest.raises(UserError, match="or a name of lightning-rl agents"):
        lightning_rl.load("exp_dir/nothing.ckpt")


def test_the_list_has_every_agent(capsys):
    assert main(["agents"], "lightning-rl") == 0
    printed = "".join(capsys.readouterr().out.split())
    for name, agent in AGENTS.items():
        assert "".join((name, agent.gamename)) in printed.replace("│", "")
        assert "".join(agent.made.split()) in printed
        assert "".join(score(agent).split()) in printed
        assert "".join(commands(agent).split()) in printed


def test_an_agent_is_evaluated_into_a_folder_of_its_own(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["eval", "DDQN-cartpole", "--episodes", "2"], "lightning-rl") == 0
    report = json.loads((tmp_path / "exp_dir/agents/DDQN-cartpole/evaluation.json").read_text())
    assert report["sampled"]["return"]["mean"] > 100
    assert main(["eval", "DDQN-cartpole", "--calibrate"], "lightning-rl") == 2
    assert "of your own" in capsys.readouterr().err


@pytest.mark.parametrize("mode", ["sampled", "greedy"])
def test_a_run_becomes_an_agent_that_acts_as_its_checkpoint(tmp_path, monkeypatch, mode):
    monkeypatch.setattr("lightning_rl.methods.base.Method.action_mode", mode)
    train_cli(tmp_path, 2, implementation="AAC", gamename="cartpole")
    (run_dir,) = tmp_path.glob("cartpole/*/AAC/seed_*")
    monkeypatch.setattr("experiments.shipping.SHIPPED", tmp_path)
    monkeypatch.setattr("experiments.shipping.EPISODES", 3)
    row = ship("mine", run_dir, None)
    acting = lightning_rl.load(tmp_path / "mine.ckpt")
    assert row.mode == mode
    assert row.score == pytest.approx(
        lightning_rl.evaluate(checkpoint_at(run_dir), 3)[mode]["return"]["mean"], abs=0.01
    )
    assert (
        acting.method.policy.state_dict().keys()
        == lightning_rl.load(run_dir).method.policy.state_dict().keys()
    )
    assert row.made.startswith("lightning-rl train ")
    assert "logdir" not in command_of(run_dir)


@pytest.mark.parametrize("program", ["trainer.py", "lightning-rl train"])
def test_an_agent_is_made_again_by_one_command_whatever_program_made_it(tmp_path, program):
    (tmp_path / "config.yaml").write_text(
        f"command: {program} --implementation AAC --exp_name mine --seed 3 --resume\n"
    )
    assert command_of(tmp_path) == "lightning-rl train --implementation AAC --seed 3"


def test_what_an_agent_lacks_is_only_what_training_uses(tmp_path):
    content = torch.load(checkpoint_at(shipped.SHIPPED / "DDQN-cartpole.ckpt"), weights_only=True)
    content["state_dict"].pop(
        next(name for name in content["state_dict"] if name.startswith("policies."))
    )
    torch.save(content, tmp_path / "bad.ckpt")
    with pytest.raises(UserError, match=r"state_dict.*policies"):
        lightning_rl.load(tmp_path / "bad.ckpt")


def test_an_agent_plays_as_its_method_is_meant_to(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["eval", "simple-model-panflute", "--episodes", "1"], "lightning-rl") == 0
    report = json.loads(
        (tmp_path / "exp_dir/agents/simple-model-panflute/evaluation.json").read_text()
    )
    assert report["greedy"]["return"]["mean"] > 15 > report["sampled"]["return"]["mean"]
    assert played(None) > 15 > played(False)


CONTINUOUS = [name for name, agent in AGENTS.items() if env_spec(agent.gamename).continuous]


def returns_in(env, agent):
    """Returns of some short episodes in any Gymnasium loop."""
    returns = []
    for seed in range(4):
        obs, _ = env.reset(seed=seed)
        agent.reset(seed=seed)
        total = 0.0
        for _ in range(60):
            action = agent.act(obs)
            assert env.action_space.contains(action)
            obs, reward, *_ = env.step(action)
            total += float(reward)
        returns.append(total)
    return returns


@pytest.mark.parametrize("name", CONTINUOUS)
def test_an_agent_flies_in_any_gymnasium_loop_as_in_ours(name):
    agent = lightning_rl.load(name)
    ours = lightning_rl.make_env(agent.gamename)
    raw = gymnasium.make(agent.method.spec.env)
    inner = rollout_env(agent.method.spec)
    assert returns_in(ours, agent) == returns_in(raw, agent)
    agent.reset(seed=0, greedy=True)
    obs, _ = ours.reset(seed=0)
    again, _ = inner.reset(seed=0)
    policy = agent.method.policy
    command = None if agent._command is None else torch.from_numpy(agent._command)
    for _ in range(20):  # and as episodes of evaluations
        seen = torch.from_numpy(np.asarray(again, np.float32))[None]
        with torch.inference_mode():
            acted = policy.act(seen, command, torch.zeros(1, policy.noise_size))[0].numpy()
        obs, *_ = ours.step(agent.act(obs))
        again, *_ = inner.step(acted)
        np.testing.assert_array_equal(obs, again)


def played(greedy):
    """The return of an episode of the agent step by step."""
    agent, env = lightning_rl.load("simple-model-panflute"), lightning_rl.make_env("panflute-5")
    obs, _ = env.reset(seed=0)
    agent.reset(seed=0, greedy=greedy)
    over, total = False, 0.0
    while not over:
        obs, reward, terminated, truncated, _ = env.step(agent.act(obs))
        over, total = terminated or truncated, total + float(reward)
    return total


def trainings():
    """(gamename, config, seeds) of the last training of each claim about a proxy."""
    for claim in load_claims(ROOT / "results/claims.yaml").claims.values():
        words = [shlex.split(step)[1:] for step in shown_command(claim, 0).split(" && ")]
        runs = [each for each in words if each[0] == "train" and {"SE", "RN", "SD"} & {*each}]
        if runs:
            words = [word.replace("{run}/proxy.pt", "SE-CartPole-v0") for word in runs[-1][1:]]
            _, arguments = parse(words, command="train")
            config = vars(run_config(run_options(arguments)))
            yield arguments.gamename, comparable(config), seed_list(claim.seeds)


def test_shipped_files_name_no_place_of_the_machine_that_made_them():
    for path in [*proxies.SHIPPED.glob("*.pt"), *SHIPPED.glob("*.ckpt")]:
        content = torch.load(path, weights_only=True)
        texts = [value for value in texts_in(content) if value.startswith("/")]
        assert not texts, (path.name, texts)


def texts_in(content):
    if isinstance(content, dict):
        content = [*content.keys(), *content.values()]
    if isinstance(content, list | tuple):
        return [text for each in content for text in texts_in(each)]
    return [content] if isinstance(content, str) else []


def comparable(config):
    """Without the keys that methods had when the proxy was made, here and in its agents, and
    without what only says how fast it is.
    """
    values = {
        key: comparable(value) if isinstance(value, dict) else value
        for key, value in config.items()
        if key != "kernels"
    }
    return without_retired(values, known=())


def test_every_proxy_is_of_a_claim():
    """Its search has the config and one of the seeds of a claim's training; only what it starts
    from has another name.
    """
    claimed = list(trainings())
    for name in proxies.shipped():
        proxy, _, about = proxies.read_proxy(proxies.proxy_path(name))
        config = comparable(about["config"])
        config.pop("start", None)
        assert any(
            same_game(proxy.gamename, gamename)
            and about["seed"] in seeds
            and with_added(config, asked).items() <= asked.items()
            for gamename, asked, seeds in claimed
        ), name


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_shipped_dataset_is_made_again_bit_for_bit(tmp_path, monkeypatch):
    """By the command of its claim, where the processor and the versions are those that it was
    made with.
    """
    monkeypatch.chdir(tmp_path)
    claim = load_claims(ROOT / MANIFEST).claims["sd-cartpole"]
    (row,) = (row for row in store.read_runs(ROOT, claim) if row["seed"] == "120")
    if (row["machine"], row["versions"]) != (machine(claim), versions(claim)):
        pytest.skip(f"made on {row['machine']}; {row['versions']}")
    assert main(shlex.split(row["command"].split(" && ")[0])[1:], "lightning-rl") == 0
    made, shipped_one = find_models(["exp_dir/cartpole/default/SD/seed_120", "SD-CartPole-v1"])
    assert content_hash(made.proxy, made.params) == content_hash(
        shipped_one.proxy, shipped_one.params
    )
