"""An agent from outside the package is a class, the schema of its values and their defaults."""

import pytest
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
from lightning_rl.methods import registry
from lightning_rl.methods.inner_loop import agent_configs
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
