"""Bi-level learning of proxies (Ferreira, Nierhoff, Sälinger & Hutter, ICLR 2022, arXiv 2202.02790).

The inner loop trains fresh agents on a proxy of a task: a synthetic environment (``SE``) or the real one with a learned reward
(``RN``). The outer loop evolves the proxy's parameters by how these agents do on the real task. An epoch is a generation.

Where we differ from the earlier code: budgets in steps, never in seconds; a diverged agent scores the worst legal return;
agents are tested without exploration noise; equal scores share their weights; everything is seeded.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal

import torch
from pydantic import NonNegativeFloat, NonNegativeInt, PositiveFloat, PositiveInt, model_validator
from pydantic.dataclasses import dataclass as config_dataclass
from pytorch_lightning import Callback

from lightning_rl.config import build_config, merged_values
from lightning_rl.data.loaders import Collector
from lightning_rl.envs.proxies import RewardProxy, SyntheticProxy, save_proxy
from lightning_rl.envs.spec import env_spec
from lightning_rl.evolution.callback import Evolution
from lightning_rl.evolution.executors import EXECUTORS, Executor, SerialExecutor
from lightning_rl.evolution.strategies import CMAES, STRATEGIES, StrategySettings
from lightning_rl.functional.evolution import NEED_TWO, TRANSFORMS
from lightning_rl.functional.reward_shaping import REWARD_FORMS
from lightning_rl.methods.agent import member_policy
from lightning_rl.methods.agent_configs import AGENTS
from lightning_rl.methods.base import STRICT, Evaluation, Method, MethodConfig, Share
from lightning_rl.methods.inner_loop import OBJECTIVES, InnerLoop, Outcome
from lightning_rl.nets.members import ActivationName
from lightning_rl.seeding import derive_seed
from lightning_rl.types import UserError

PROXY_FILE = "proxy.pt"


@config_dataclass(frozen=True, config=STRICT, kw_only=True)
class BilevelConfig(MethodConfig):
    """Keys of ``configs/SE.yaml`` and ``configs/RN.yaml``, explained there."""

    agent: str | list[str] | dict[str, dict[str, Any] | None] | None
    vary: bool
    stop_rule: Literal["plateau", "solved", "none"]
    solved_return: float | None
    unsolved_penalty: NonNegativeFloat
    test_episodes: PositiveInt
    judge_episodes: PositiveInt
    max_train_steps: PositiveInt
    action_repeat: PositiveInt
    strategy: str
    population: PositiveInt
    noise_std: PositiveFloat
    step_size: PositiveFloat
    score_transform: str
    mirrored: bool
    num_grad_evals: PositiveInt
    grad_eval_aggregate: Literal["mean", "min"]
    center_agents: PositiveInt
    shared_agents: bool
    weight_decay: Share
    nes_step_size: bool
    step_decay: PositiveFloat
    noise_decay: PositiveFloat
    hidden: list[PositiveInt]
    activation: ActivationName
    eval_agents: PositiveInt

    @model_validator(mode="after")
    def _check(self) -> BilevelConfig:
        for key, value, known in (
            ("strategy", self.strategy, STRATEGIES), ("score_transform", self.score_transform, TRANSFORMS),
        ):  # fmt: skip
            if value not in known:
                raise ValueError(f"{key} '{value}' is unknown; choose one of: {', '.join(known)}")
        compares = self.strategy != "published" or self.score_transform in NEED_TWO
        if self.population == 1 and compares:
            what = f"strategy {self.strategy}" if self.strategy != "published" else f"score_transform {self.score_transform}"
            raise ValueError(f"population 1: {what} compares candidates with each other; use a population of 2 or more")
        if self.strategy == "openai" and not self.mirrored:
            raise ValueError("mirrored false: strategy openai works on mirrored pairs; use mirrored=true, or strategy=snes")
        if self.strategy == "cmaes" and self.mirrored:
            raise ValueError("mirrored true: strategy cmaes draws its own candidates; use mirrored=false")
        if self.strategy in ("snes", "cmaes") and self.noise_decay != 1:
            raise ValueError(f"noise_decay {self.noise_decay}: strategy {self.strategy} adapts its noise itself; use 1.0")
        return self

    def resolved(self, gamename: str) -> BilevelConfig:
        """With every value of the inner agents, so that a run's record is complete."""
        agents = {name: dataclasses.asdict(cfg) for name, cfg in agent_configs(self.agent, gamename)}
        return dataclasses.replace(self, agent=agents)  # type: ignore[arg-type]


@config_dataclass(frozen=True, config=STRICT, kw_only=True)
class SEConfig(BilevelConfig):
    """Keys of ``configs/SE.yaml``."""

    stop_when_solved: bool
    proxy_horizon: PositiveInt | None
    cap_ends: bool
    latent_size: NonNegativeInt
    reencode: bool


@config_dataclass(frozen=True, config=STRICT, kw_only=True)
class RNConfig(BilevelConfig):
    """Keys of ``configs/RN.yaml``."""

    reward: str
    objective: str

    @model_validator(mode="after")
    def _check_reward(self) -> RNConfig:
        for key, value, known in (("reward", self.reward, REWARD_FORMS), ("objective", self.objective, OBJECTIVES)):
            if value not in known:
                raise ValueError(f"{key} '{value}' is unknown; choose one of: {', '.join(known)}")
        return self


def agent_configs(
    asked: str | Sequence[str] | Mapping[str, Mapping[str, Any] | None] | None, gamename: str
) -> tuple[tuple[str, Any], ...]:
    """(implementation, config) of the inner agents: their own YAML for the gamename, with the settings that are asked for.

    asked: a name, several, or names with settings; None: DDQN, or TD3 for continuous actions. UserError for an unknown one,
    and for one that does not fit the actions.
    """
    spec = env_spec(gamename)
    if asked is None:
        asked = "TD3" if spec.continuous else "DDQN"
    names = [asked] if isinstance(asked, str) else list(asked)
    if not names:
        raise UserError("key 'agent' is empty; name one or more agents, e.g. agent=DDQN")
    settings = asked if isinstance(asked, Mapping) else {}
    found = []
    for name in names:
        if name not in AGENTS:
            raise UserError(f"agent '{name}' is unknown; choose one of: {', '.join(AGENTS)}")
        if (reason := AGENTS[name].misfit(spec)) is not None:
            raise UserError(f"agent {name} does not fit gamename '{gamename}': {reason}")
        layers = [*merged_values(name, gamename), (f"key 'agent', {name}", settings.get(name) or {})]
        found.append((name, build_config(AGENTS[name].config, layers)))
    return tuple(found)


class Bilevel(Method):
    """Evolves a proxy; ``strategy.best`` is the best so far.

    ``policy`` is that of an agent trained on the best proxy, once ``prepare_evaluation`` was called.
    """

    reloadable = False
    config_class: ClassVar[type[BilevelConfig]]

    def __init__(self, hparams: Mapping[str, Any]):
        super().__init__(hparams)
        self.cfg: Any = self.config_class(**hparams["config"])
        self.spec = env_spec(hparams["gamename"])
        self.seed = int(hparams["seed"])
        self.inner_loop = InnerLoop(
            self.make_proxy(), agent_configs(self.cfg.agent, self.spec.gamename), self.cfg.vary, self.cfg.stop_rule,
            self.objective, self.solved_return, self.cfg.unsolved_penalty, self.cfg.test_episodes, self.cfg.judge_episodes,
            self.cfg.max_train_steps, self.cfg.action_repeat, getattr(self.cfg, "cap_ends", False),
        )  # fmt: skip
        net = self.inner_loop.proxy.net
        if self.cfg.strategy == "cmaes" and net.size > CMAES.MAX_SIZE:
            raise UserError(f"strategy cmaes: {net.size:,} parameters are too many for a full covariance matrix (limit "
                            f"{CMAES.MAX_SIZE:,}); use strategy=snes, or fewer hidden units")  # fmt: skip
        keys = {field.name for field in dataclasses.fields(StrategySettings)}
        settings = StrategySettings(**{key: getattr(self.cfg, key) for key in keys})
        start = net.init([torch.Generator().manual_seed(derive_seed(self.seed, "proxy start"))])[0]
        self.strategy = STRATEGIES[self.cfg.strategy](start, net.evolved(), settings, self.seed)
        self.executor: Executor = SerialExecutor()
        self.evolution: Evolution | None = None
        name, cfg = self.inner_loop.agents[0]
        self.policy = member_policy(AGENTS[name].build(cfg, self.spec, [self.seed], None), 0, self.spec)

    @property
    def objective(self) -> str:
        raise NotImplementedError

    def make_proxy(self) -> SyntheticProxy | RewardProxy:
        """The kind of proxy that the config asks for."""
        raise NotImplementedError

    @property
    def solved_return(self) -> float | None:
        return self.spec.solved_return if self.cfg.solved_return is None else self.cfg.solved_return

    def distribute(self, executor: str, num_workers: int, ray_address: str | None) -> None:
        self.executor = EXECUTORS[executor](num_workers, ray_address)

    def configure_callbacks(self) -> list[Callback]:
        self.evolution = Evolution(
            self.strategy, self.inner_loop, score_of, self.executor, self.cfg.step_decay, self.cfg.noise_decay
        )
        return [self.evolution]

    def optimisers(self) -> list[torch.optim.Optimizer]:
        return [self.strategy.optimiser()]

    def training_step(self, batch: int, batch_idx: int) -> None:
        """The step of a generation, whose gradient the callback has written."""
        assert self.evolution is not None
        assert self.evolution.generation is not None
        before, generation = self.strategy.mean.detach().clone(), self.evolution.generation
        for optimiser in self.raw_optimisers():
            optimiser.step()
        self.tick()
        moved = float((self.strategy.mean.detach() - before).norm())
        self.check_finite("the proxy's parameters", moved)
        outcomes = list(generation.results)
        steps = sum(outcome.train_steps for outcome in outcomes)
        self.env_steps += steps
        self.eval_env_steps += sum(outcome.test_steps for outcome in outcomes)
        self.num_updates += 1
        self.log_scalars({
            **self.speed_scalars(steps),
            **outcome_scalars(outcomes),
            "es/fitness_mean": generation.center,
            "es/fitness_best": max(outcome.score for outcome in outcomes),
            "es/best": float(self.strategy.best_score),
            "es/step_norm": moved,
            "time/eval_env_steps": float(self.eval_env_steps),
        })  # fmt: skip
        if generation.improved:
            self.write_proxy(Path(self.trainer.log_dir or ".").parents[1] / PROXY_FILE)
        if self.solved([outcome for item, outcome in zip(generation.items, outcomes, strict=True) if item.sign == 0]):
            self.trainer.should_stop = True

    def solved(self, center: Sequence[Outcome]) -> bool:
        """Whether the run may end, by the agents of the unperturbed proxy."""
        return False

    def write_proxy(self, path: Path) -> None:
        """Writes the best proxy so far, how it came about, and its curve."""
        hparams = self.hparams["hparams"]
        about = {
            "gamename": self.spec.gamename, "seed": self.seed, "score": float(self.strategy.best_score),
            "curve": [] if self.evolution is None else list(self.evolution.curve), "config": hparams["config"],
        }  # fmt: skip
        save_proxy(path, self.inner_loop.proxy, self.strategy.best, about)

    def validation_step(self, evaluated: Mapping[str, list[Any]], batch_idx: int) -> None:
        """Fresh agents on the best proxy so far."""
        for prefix, outcomes in evaluated.items():
            returns = torch.tensor([outcome.test_return for outcome in outcomes], dtype=torch.float64)
            values = {"mean": returns.mean(), "std": returns.std(correction=0), "min": returns.min(), "max": returns.max()}
            self.eval_env_steps += sum(outcome.test_steps for outcome in outcomes)
            self.log(f"{prefix}/return_mean", float(returns.mean()), batch_size=len(outcomes), logger=False)
            self.log_scalars({f"{prefix}/return_{key}": float(value) for key, value in values.items()})

    def prepare_evaluation(self) -> None:
        """Trains an agent on the best proxy and takes its policy."""
        trained = self.inner_loop.train(0, self.strategy.best.unsqueeze(0), [derive_seed(self.seed, "final agent")])
        self.policy = member_policy(trained.agent, 0, self.spec)


def score_of(outcome: Outcome) -> float:
    """What evolution maximises."""
    return outcome.score


def outcome_scalars(outcomes: Sequence[Outcome]) -> dict[str, float]:
    """``agent/...`` over all agents of a generation."""
    count = len(outcomes)
    return {
        "agent/return_mean": sum(o.test_return for o in outcomes) / count,
        "agent/return_max": max(o.test_return for o in outcomes),
        "agent/train_steps": sum(o.train_steps for o in outcomes) / count,
        "agent/episodes": sum(o.episodes for o in outcomes) / count,
        "agent/stopped_share": sum(o.solved for o in outcomes) / count,
        "agent/failed": float(sum(o.failed for o in outcomes)),
    }


class SE(Bilevel):
    """Synthetic environments."""

    config_class = SEConfig

    @property
    def objective(self) -> str:
        return "final_return"

    def make_proxy(self) -> SyntheticProxy:
        cfg = self.cfg
        horizon = self.spec.horizon if cfg.proxy_horizon is None else cfg.proxy_horizon
        hidden, kind = tuple(cfg.hidden), cfg.activation
        return SyntheticProxy(self.spec.gamename, hidden, kind, cfg.latent_size, horizon, cfg.reencode, "raw")

    def solved(self, center: Sequence[Outcome]) -> bool:
        mean = sum(outcome.test_return for outcome in center) / len(center)
        return self.cfg.stop_when_solved and self.solved_return is not None and mean > self.solved_return


class RN(Bilevel):
    """Reward networks."""

    config_class = RNConfig

    @property
    def objective(self) -> str:
        return str(self.cfg.objective)

    def make_proxy(self) -> RewardProxy:
        cfg, (_, agent) = self.cfg, agent_configs(self.cfg.agent, self.spec.gamename)[0]
        return RewardProxy(self.spec.gamename, tuple(cfg.hidden), cfg.activation, cfg.reward, agent.gamma)


class Generations:
    """The experience of bi-level learning: nothing but the number of the epoch; the callback makes the rest."""

    def __init__(self, collector: Collector):
        self.collector = collector

    def __len__(self) -> int:
        return 1

    def __iter__(self) -> Iterator[int]:
        yield 0

    def snapshot(self) -> dict[str, Any]:
        return {}

    def restore(self, state: dict[str, Any]) -> None:
        pass


class ProxyEvaluation(Evaluation):
    """Fresh agents, other ones than those of the search, on the best proxy so far; no generation sees their scores."""

    method: Bilevel

    def __iter__(self) -> Iterator[dict[str, list[Outcome]]]:  # type: ignore[override]
        method, count = self.method, self.method.cfg.eval_agents
        seeds = [derive_seed(self.run_seed, "evaluation", method.current_epoch, n) for n in range(count)]
        loop = dataclasses.replace(method.inner_loop, test_episodes=self.count)
        with torch.enable_grad():
            yield {"eval": loop.evaluate(method.strategy.best.expand(count, -1), seeds, range(count))}


def make_loaders(method: Bilevel, num_workers: int) -> tuple[Generations, Evaluation]:
    """The clock of the generations, and the evaluation."""
    collector = Collector(method.spec, method.policy, 0, method.cfg.chunk_size)
    return Generations(collector), ProxyEvaluation(collector, method, method.seed, method.cfg.eval_episodes)


