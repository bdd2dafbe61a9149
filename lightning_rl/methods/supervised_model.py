"""The supervised baseline of synthetic environments: a model of the task, learned from transitions,
stands in for it.

Agents train on the real task at first, from random to good, and their transitions are the data.
State and reward are learned by squared error, the end of episodes by a log loss. ``published`` is
the paper's code with its errors instead: trained on ``[state, action]`` but used with ``[action,
state]``, the done network left as it was initialised.
"""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from pydantic import PositiveFloat, PositiveInt, model_validator
from pydantic.dataclasses import dataclass as config_dataclass
from torch import Tensor, nn

from lightning_rl.agents.registry import AGENTS
from lightning_rl.agents.training import MemberTraining
from lightning_rl.core.errors import UserError
from lightning_rl.core.schema import STRICT, Agents, Batch, HiddenSizes, MethodConfig
from lightning_rl.core.seeding import derive_seed, generator
from lightning_rl.envs.proxies import SyntheticProxy
from lightning_rl.envs.spec import EnvSpec
from lightning_rl.functional import compat
from lightning_rl.methods.inner_loop import (
    InnerLoop,
    agent_configs,
    ignored_keys_of_agents,
    task_envs,
)
from lightning_rl.methods.proxy_search import ProxyMethod, ProxyRollouts
from lightning_rl.methods.registry import register_method
from lightning_rl.nets.members import ActivationName

_KEEP_TRANSITIONS = ("DDQN", "DuelingDDQN", "TD3")
_HELD_OUT = 10  # every tenth transition judges the model


@config_dataclass(frozen=True, config=STRICT, kw_only=True)
class MBRLConfig(MethodConfig):
    """Keys of MBRL; ``configs/supervised_model.yaml`` explains them."""

    agent: str | list[str] | dict[str, dict[str, Any] | None] | None
    vary: bool
    data_agents: Agents
    data_steps: PositiveInt
    published: bool
    learning_rate: PositiveFloat
    batch_size: Batch
    hidden: HiddenSizes
    activation: ActivationName
    max_train_steps: PositiveInt
    eval_agents: Agents

    @model_validator(mode="after")
    def _check_data(self) -> MBRLConfig:
        if self.data_agents * self.data_steps == 1:
            raise ValueError(
                "data_steps 1 of one agent: it judges the model, and none is left to learn from; "
                "use 2 or more"
            )
        return self

    def ignored_keys(self) -> dict[str, str]:
        return super().ignored_keys() | ignored_keys_of_agents(self.agent)

    def stored_steps(self, spec: EnvSpec) -> dict[str, int]:
        return {"data_steps": self.data_agents * self.data_steps}

    def resolved(self, gamename: str) -> MBRLConfig:
        agents = {
            name: dataclasses.asdict(cfg) for name, cfg in agent_configs(self.agent, gamename)
        }
        return dataclasses.replace(self, agent=agents)  # type: ignore[arg-type]


class Data(NamedTuple):
    """Transitions: obs, next_obs ``[B, O]``, act ``[B, A]`` (one-hot, or the action), reward,
    terminated ``[B]``.
    """

    obs: Tensor
    act: Tensor
    reward: Tensor
    terminated: Tensor
    next_obs: Tensor

    def rows(self, index: Tensor) -> Data:
        return Data(*(column[index] for column in self))


def collect(cfg: MBRLConfig, spec: EnvSpec, run_seed: int, device: torch.device) -> Data:
    """``data_steps`` transitions of each of ``data_agents`` agents that learn the real task, from
    random play on.

    They are of single environment steps: ``action_repeat`` is for agents that are trained on the
    model.
    """
    name, agent_cfg = agent_configs(cfg.agent, spec.gamename)[0]
    agent_cfg = dataclasses.replace(agent_cfg, replay_size=cfg.data_steps)
    seeds = [derive_seed(run_seed, "data", n) for n in range(cfg.data_agents)]
    agent = AGENTS[name].agent(agent_cfg, spec, seeds, None).to(device)
    episodes = cfg.data_steps + 1  # more than are played: who is done would take its data along
    training = MemberTraining(
        agent, task_envs(spec, seeds), episodes, agent_cfg.gamma, agent_cfg.learning_starts
    )
    training.run(cfg.data_steps)
    memory = agent.memory()
    assert memory is not None
    obs, action, reward, discount, next_obs = memory.transitions(
        memory.snapshot()["rows"].flatten(0, 1)
    )
    if not all(bool(values.isfinite().all()) for values in (obs, action, reward, next_obs)):
        raise UserError(
            f"agent {name} diverged while it collected transitions; use a lower --set "
            f"agent.{name}.learning_rate=..."
        )
    act = action if spec.continuous else F.one_hot(action, spec.action_size).float()
    return Data(obs, act, reward, (discount == 0).float(), next_obs)


class Transitions(ProxyRollouts):
    """The data of a run, collected when it is first needed; it depends on the run's seed alone,
    so nothing is saved.
    """

    def __init__(self, method: MBRL):
        super().__init__(method)
        self.data: Data | None = None

    def next_batch(self) -> Data:
        if self.data is None:
            # an evaluation repeats the actions of its agent
            single = dataclasses.replace(self.method.spec, repeat=1)
            with torch.enable_grad():
                self.data = collect(self.method.cfg, single, self.method.seed, self.method.device)
        return self.data


@register_method("MBRL")
class MBRL(ProxyMethod):
    """A learned model of the task; an epoch is one pass over the data."""

    Config = MBRLConfig
    log_x_axis = "num_updates"  # all environment steps were taken before the first

    def __init__(self, gamename: str, **options: Any):
        super().__init__(gamename, **options)
        cfg = self.cfg
        agents = agent_configs(cfg.agent, self.spec.gamename)
        if agents[0][0] not in _KEEP_TRANSITIONS:
            known = ", ".join(_KEEP_TRANSITIONS)
            raise UserError(
                f"agent {agents[0][0]} keeps no transitions to learn from; use one of: {known}"
            )
        if agents[0][1].gamma == 0:
            raise UserError(
                f"agent {agents[0][0]}, gamma 0: its transitions do not tell ends from steps; use "
                "more than 0"
            )
        proxy = SyntheticProxy(
            gamename=self.spec.gamename,
            hidden=tuple(cfg.hidden),
            activation=cfg.activation,
            horizon=self.spec.horizon,
            done="raw" if cfg.published else "classifier",
        )
        self.inner_loop = InnerLoop(
            proxy=proxy,
            agents=agents,
            vary=cfg.vary,
            stop_rule="plateau",
            test_episodes=cfg.eval_episodes,
            max_train_steps=cfg.max_train_steps,
        )
        self.net = proxy.net
        self.params = nn.Parameter(
            self.net.init([torch.Generator().manual_seed(derive_seed(self.seed, "proxy start"))])
        )
        self.learned = ("state", "reward") if cfg.published else ("state", "reward", "done")

    def rollouts(self, num_workers: int = 0) -> Transitions:
        """The transitions of the task, collected in this process, and the evaluation by fresh
        agents on the model.
        """
        return Transitions(self)

    def proxy_params(self) -> Tensor:
        return self.params.detach()[0]

    def make_optimizers(self) -> list[torch.optim.Optimizer]:
        return [torch.optim.Adam([self.params], lr=self.cfg.learning_rate)]

    def losses(self, data: Data) -> dict[str, Tensor]:
        """Mean squared errors of ``state`` and ``reward``, log loss of ``done``."""
        x = torch.cat([data.act, data.obs], dim=-1)
        if self.cfg.published:
            x = compat.swapped_model_input(data.act, data.obs)
        blocks = self.net.split(self.params)
        state, reward, done = (
            head(blocks[name], x.unsqueeze(0))[0] for name, head in self.net.heads.items()
        )
        return {
            "state": F.mse_loss(state, data.next_obs),
            "reward": F.mse_loss(reward.squeeze(-1), data.reward),
            "done": F.binary_cross_entropy_with_logits(done.squeeze(-1), data.terminated),
        }

    def train_epoch(self, data: Data) -> None:
        """One pass over the training data in shuffled minibatches."""
        held_out = torch.arange(len(data.reward)) % _HELD_OUT == 0
        train = (~held_out).nonzero().squeeze(1)
        order = torch.from_numpy(
            generator(self.seed, "shuffle", self.current_epoch).permutation(len(train))
        )
        shuffled = train[order].to(self.device)

        def update(index: Tensor) -> Tensor:
            losses = self.losses(data.rows(index))
            loss = sum((losses[name] for name in self.learned), torch.zeros_like(losses["state"]))
            return self.descend(0, loss, None)

        losses = [update(index) for index in shuffled.split(self.cfg.batch_size)]
        self.count_updates("the model's loss", torch.stack(losses))
        with torch.no_grad():
            judged = self.losses(data.rows(held_out.nonzero().squeeze(1)))
        self.env_steps.fill_(len(data.reward))
        self.log_scalars(
            {f"model/{name}_loss": float(value) for name, value in judged.items()}
            | self.speed_scalars(0)
        )
        self.score, self.improved = -float(sum(judged.values())), True
