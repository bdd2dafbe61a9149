"""The supervised baseline of synthetic environments: a model of the task, learned from transitions, stands in for it.

Agents train on the real task at first, from random to good, and their transitions are the data. State and reward are learned by
squared error, the end of episodes by a log loss. ``published`` is the form of the paper's code instead: trained on
``[state, action]`` but used with ``[action, state]``, the done network left as it was initialised.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from pydantic import PositiveFloat, PositiveInt
from pydantic.dataclasses import dataclass as config_dataclass
from torch import Tensor, nn

from lightning_rl.agents.training import MemberTraining
from lightning_rl.core.schema import STRICT, Agents, Batch, Layers, MethodConfig
from lightning_rl.core.seeding import derive_seed, generator
from lightning_rl.core.types import UserError
from lightning_rl.envs.proxies import SyntheticProxy, make_envs
from lightning_rl.envs.spec import EnvSpec
from lightning_rl.envs.synthetic import DoneKind, SyntheticNet
from lightning_rl.methods.agent_configs import AGENTS
from lightning_rl.methods.inner_loop import InnerLoop
from lightning_rl.methods.proxy_search import ProxyEvaluation, ProxyMethod
from lightning_rl.methods.proxy_search_configs import agent_configs
from lightning_rl.methods.registry import register_method
from lightning_rl.nets.activations import ActivationName
from lightning_rl.rollouts.data_module import Rollouts

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
    hidden: Layers
    activation: ActivationName
    max_train_steps: PositiveInt
    eval_agents: Agents

    def stored_steps(self, spec: EnvSpec) -> dict[str, int]:
        return {"data_steps": self.data_agents * self.data_steps}

    def resolved(self, gamename: str) -> MBRLConfig:
        agents = {name: dataclasses.asdict(cfg) for name, cfg in agent_configs(self.agent, gamename)}
        return dataclasses.replace(self, agent=agents)  # type: ignore[arg-type]


class Data(NamedTuple):
    """Transitions: obs, next_obs ``[B, O]``, act ``[B, A]`` (one-hot, or the action), reward, terminated ``[B]``."""

    obs: Tensor
    act: Tensor
    reward: Tensor
    terminated: Tensor
    next_obs: Tensor

    def rows(self, index: Tensor) -> Data:
        return Data(*(column[index] for column in self))


def collect(cfg: MBRLConfig, spec: EnvSpec, run_seed: int) -> Data:
    """``data_steps`` transitions of each of ``data_agents`` agents that learn the real task, from random play on."""
    name, agent_cfg = agent_configs(cfg.agent, spec.gamename)[0]
    agent_cfg = dataclasses.replace(agent_cfg, replay_size=cfg.data_steps)
    seeds = [derive_seed(run_seed, "data", n) for n in range(cfg.data_agents)]
    agent = AGENTS[name].build(agent_cfg, spec, seeds, None)
    training = MemberTraining(agent, make_envs(spec, seeds), cfg.data_steps, agent_cfg.gamma, agent_cfg.learning_starts)
    training.run(cfg.data_steps)
    memory = agent.memory()
    assert memory is not None
    rows = memory.snapshot()["rows"].flatten(0, 1)
    columns = [spec.obs_size, spec.action_size if spec.continuous else 1, 1, 1, spec.obs_size]
    obs, act, reward, discount, next_obs = rows.split(columns, dim=1)
    vectors = act if spec.continuous else F.one_hot(act.squeeze(1).long(), spec.action_size).float()
    return Data(obs, vectors, reward.squeeze(1), (discount.squeeze(1) == 0).float(), next_obs)


def model_losses(net: SyntheticNet, params: Tensor, data: Data, published: bool) -> dict[str, Tensor]:
    """``state``, ``reward`` (mean squared errors) and ``done`` (log loss) of a model with params ``[1, D]``."""
    order = (data.obs, data.act) if published else (data.act, data.obs)
    x = torch.cat(order, dim=-1).unsqueeze(0)
    state, reward, done = (head(block, x)[0] for head, block in zip(net.heads, net.split(params), strict=True))
    return {
        "state": F.mse_loss(state, data.next_obs),
        "reward": F.mse_loss(reward.squeeze(-1), data.reward),
        "done": F.binary_cross_entropy_with_logits(done.squeeze(-1), data.terminated),
    }


@register_method("MBRL")
class MBRL(ProxyMethod):
    """A learned model of the task; an epoch is one pass over the data."""

    Config = MBRLConfig

    def __init__(self, gamename: str, **options: Any):
        super().__init__(gamename, **options)
        cfg = self.cfg
        done: DoneKind = "raw" if cfg.published else "classifier"
        proxy = SyntheticProxy(self.spec.gamename, tuple(cfg.hidden), cfg.activation, 0, self.spec.horizon, False, False, done)
        agents = agent_configs(cfg.agent, self.spec.gamename)
        if agents[0][0] not in _KEEP_TRANSITIONS:
            known = ", ".join(_KEEP_TRANSITIONS)
            raise UserError(f"agent {agents[0][0]} keeps no transitions to learn from; use one of: {known}")
        self.inner_loop = InnerLoop(
            proxy, agents, cfg.vary, "plateau", "final_return", None, 0.0, cfg.eval_episodes, 1, cfg.max_train_steps
        )
        start = proxy.net.init([torch.Generator().manual_seed(derive_seed(self.seed, "proxy start"))])
        self.params = nn.Parameter(start)
        self.policy = self.untrained_policy()

    def rollouts(self, num_workers: int = 0) -> Transitions:
        """The transitions of the task, collected in this process, and the evaluation by fresh agents on the model."""
        return Transitions(self)

    def proxy_params(self) -> Tensor:
        return self.params.detach()[0]

    def optimisers(self) -> list[torch.optim.Optimizer]:
        return [torch.optim.Adam([self.params], lr=self.cfg.learning_rate)]

    def log_scalars(self, values: Mapping[str, float]) -> None:
        """The x axis is the number of updates: all environment steps were taken before the first."""
        for logger in self.loggers:
            logger.log_metrics(dict(values), step=int(self.num_updates))

    def train_epoch(self, data: Data) -> None:
        """One pass over the training data in shuffled minibatches."""
        cfg, net = self.cfg, self.inner_loop.proxy.net
        assert isinstance(net, SyntheticNet)
        (optimiser,) = self.raw_optimisers()
        held_out = torch.arange(len(data.reward)) % _HELD_OUT == 0
        train = (~held_out).nonzero().squeeze(1)
        shuffled = train[torch.from_numpy(generator(self.seed, "shuffle", self.current_epoch).permutation(len(train)))]

        def update(index: Tensor) -> Tensor:
            losses = model_losses(net, self.params, data.rows(index), cfg.published)
            if cfg.published:
                del losses["done"]
            return self.descend(optimiser, sum(losses.values(), torch.zeros(())), None)

        self.fit("the model's loss", update, ((index,) for index in shuffled.split(cfg.batch_size)))
        with torch.no_grad():
            judged = model_losses(net, self.params, data.rows(held_out.nonzero().squeeze(1)), cfg.published)
        self.env_steps.fill_(len(data.reward))
        self.log_scalars({f"model/{name}_loss": float(value) for name, value in judged.items()} | self.speed_scalars(0))
        self.write_proxy(-float(sum(judged.values())), [])


class Transitions(Rollouts):
    """The data of a run, collected when it is first needed; it depends on the run's seed alone, so nothing is saved."""

    def __init__(self, method: MBRL):
        super().__init__(ProxyEvaluation(method, None))
        self.method = method
        self.data: Data | None = None

    def next_batch(self) -> Data:
        if self.data is None:
            with torch.enable_grad():
                self.data = collect(self.method.cfg, self.method.spec, self.method.seed)
        return self.data
