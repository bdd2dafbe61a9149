"""An agent from outside the package is a class, the schema of its values and their defaults."""

import re
import subprocess
import sys

import pytest
import torch
from helpers import ROOT
from helpers.members import HORIZON, Match, Task
from helpers.methods import quiet_trainer
from pydantic.dataclasses import dataclass

from lightning_rl.agents.dqn import DDQN, DDQNConfig
from lightning_rl.agents.registry import AGENTS
from lightning_rl.agents.training import MemberTraining
from lightning_rl.core import catalogue
from lightning_rl.core.errors import UserError
from lightning_rl.core.schema import STRICT, Share
from lightning_rl.envs.batch import FuncBatch
from lightning_rl.envs.reward_network import RewardProxy
from lightning_rl.methods import registry
from lightning_rl.methods.inner_loop import InnerLoop, agent_configs
from lightning_rl.methods.own_agents import register_agent
from lightning_rl.methods.registry import implementation


@dataclass(frozen=True, config=STRICT, kw_only=True)
class HalvingConfig(DDQNConfig):
    share: Share


class Halving(DDQN):
    """Learns from a share of the reward."""

    def learn(self, transition, over, step, active):
        super().learn(
            transition._replace(reward=self.cfg.share * transition.reward), over, step, active
        )


VALUES = {
    "Halving": {
        "about": "double DQN on half of the reward",
        "extends": "DDQN",
        "default": {"share": 0.5, "hidden": [4]},
    }
}


@pytest.fixture
def halving(monkeypatch):
    monkeypatch.setattr(catalogue, "_added", {})
    monkeypatch.setitem(AGENTS, "Halving", None)
    monkeypatch.setitem(registry._REGISTERED, "Halving", None)
    register_agent("Halving", HalvingConfig, configs=VALUES)(Halving)
    return VALUES["Halving"]


@pytest.mark.usefixtures("halving")
def test_it_trains_on_its_own():
    method = implementation("halving")(
        "cartpole", steps_per_epoch=30, learning_starts=0, eval_episodes=2
    )
    trainer = quiet_trainer(2, limit_val_batches=0)
    trainer.fit(method, datamodule=method.rollouts())
    assert isinstance(method.agent, Halving)
    assert int(method.num_updates) == int(method.env_steps) == 60
    weights = method.state_dict()
    assert {"agent.params", "agent.target"} <= weights.keys()
    _, adam = trainer.optimizers
    assert adam.state_dict()["state"][0]["step"].tolist() == [60]
    assert adam.params is method.agent.params


@pytest.mark.usefixtures("halving")
def test_it_judges_proxies():
    ((name, cfg),) = agent_configs({"Halving": {"share": 0.25}}, "cartpole-v0")
    agent = AGENTS[name].agent(cfg, Task(3, 3), [1, 2])
    MemberTraining(agent, FuncBatch(Match(), HORIZON, [1, 2]), 3, cfg.gamma, 0).run()
    assert set(agent.replay.data["rows"][: 3 * HORIZON, 4].tolist()) == {0.0, 0.25}


def test_a_name_that_is_taken_is_refused(monkeypatch):
    monkeypatch.setattr(catalogue, "_added", {})
    with pytest.raises(UserError, match="'DDQN' cannot be added, the name is taken"):
        register_agent("DDQN", HalvingConfig, configs={"DDQN": {"about": "another"}})(Halving)
    assert AGENTS["DDQN"].config is DDQNConfig


@pytest.mark.parametrize(
    ("gave", "words"),
    [
        (None, "Halving.act gave None; it must give a tensor int64 [1], numbers from 0 to 1"),
        (torch.zeros(1, 1, dtype=torch.int64), "gave int64 [1, 1]; it must"),
        (torch.zeros(1), "gave float32 [1]; it must"),
        (torch.tensor([2]), "gave action 2; it must"),
    ],
)
@pytest.mark.usefixtures("halving")
def test_an_action_that_the_environment_does_not_take_is_refused(gave, words, monkeypatch):
    monkeypatch.setattr(Halving, "act", lambda *_: gave)
    alone = implementation("halving")("cartpole").rollouts().training
    real = RewardProxy(
        gamename="cartpole-v0", hidden=(1,), activation="relu", form="native", gamma=0.9
    )
    loop = InnerLoop(
        proxy=real,
        agents=agent_configs("Halving", "cartpole-v0"),
        test_episodes=1,
        max_train_steps=9,
    )
    for training in (alone, loop.training(0, torch.zeros(1, real.net.size), [1])):
        with pytest.raises(UserError, match=re.escape(words)):
            training.run(1)


def test_a_key_without_a_value_is_missed_in_the_block_of_the_agent(halving, monkeypatch):
    monkeypatch.setitem(halving, "default", {})
    with pytest.raises(UserError, match=r"^configs, block 'Halving.default': key 'share': Field "):
        implementation("halving")("cartpole", hidden=[4])


def test_a_misspelt_block_is_told(monkeypatch):
    monkeypatch.setattr(catalogue, "_added", {})
    with pytest.raises(
        UserError,
        match=r"register_agent: configs has no block 'Halvng' .*; did you mean 'Halving'",
    ):
        register_agent("Halvng", HalvingConfig, configs=VALUES)(Halving)


@pytest.mark.parametrize(
    ("modules", "code", "words"),
    [
        ("my_agent", 0, "warning: 1 agents munchausen had no update, as their training ended"),
        ("", 2, "agent 'munchausen' is unknown; .* export LIGHTNING_RL_MODULES=its_module"),
    ],
)
@pytest.mark.slow
def test_a_fresh_command_knows_an_agent_by_the_module_that_is_named(
    modules, code, words, tmp_path, monkeypatch
):
    page = (ROOT / "docs" / "how_to" / "own_agent.md").read_text()
    for name, text in re.findall(r'```\w+ title="(my_agent.*?)"\n(.*?)```', page, re.DOTALL):
        (tmp_path / name).write_text(text)
    monkeypatch.setenv("PYTHONPATH", f"{ROOT}:{tmp_path}")
    monkeypatch.setenv("LIGHTNING_RL_MODULES", modules)
    words_of_command = "proxies transfer out.csv --gamename cartpole-v0 --real 1 --tests 1"
    done = subprocess.run(
        [sys.executable, "-m", "lightning_rl", *words_of_command.split()]
        + ["--agents", "munchausen", "--steps", "5"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        check=False,
    )
    assert done.returncode == code, done.stderr
    assert re.search(words, done.stderr)
