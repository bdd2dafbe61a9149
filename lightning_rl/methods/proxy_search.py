"""Bi-level learning of proxies (Ferreira, Nierhoff, Sälinger & Hutter, ICLR 2022, arXiv 2202.02790).

The inner loop trains fresh agents on a proxy of a task: a synthetic environment (``SE``) or the real one with a learned reward
(``RN``). The outer loop evolves the proxy's parameters by how these agents do on the real task. An epoch is a generation.

Where we differ from the earlier code: budgets in steps, never in seconds; a diverged agent scores the worst legal return;
agents are tested without exploration noise; equal scores share their weights; everything is seeded.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import torch
from pytorch_lightning import Callback
from torch import Tensor

from lightning_rl.core.seeding import derive_seed
from lightning_rl.core.types import UserError
from lightning_rl.envs.proxies import RewardProxy, SyntheticProxy, proxy_path, read_proxy, save_proxy
from lightning_rl.evolution.callback import Evolution, Generation
from lightning_rl.evolution.executors import EXECUTORS, Executor, SerialExecutor
from lightning_rl.evolution.strategies import CMAES, STRATEGIES, StrategySettings
from lightning_rl.methods.agent_configs import AGENTS
from lightning_rl.methods.agents import member_policy
from lightning_rl.methods.base import Method
from lightning_rl.methods.inner_loop import InnerLoop, Outcome
from lightning_rl.methods.proxy_search_configs import BilevelConfig, RNConfig, SEConfig, agent_configs
from lightning_rl.methods.registry import register_method
from lightning_rl.nets.policies import Policy
from lightning_rl.rollouts.data_module import Evaluation, Rollouts

PROXY_FILE = "proxy.pt"


class ProxyMethod(Method):
    """A method whose result is a proxy: fresh agents on it are its evaluation.

    ``policy`` is that of an agent trained on the proxy, once ``prepare_evaluation`` was called.
    """

    reloadable, cpu_only = False, True
    inner_loop: InnerLoop
    cfg: Any

    def proxy_params(self) -> Tensor:
        """The proxy to be evaluated ``[D]``."""
        raise NotImplementedError

    def untrained_policy(self) -> Policy:
        """The policy of a fresh inner agent."""
        name, cfg = self.inner_loop.agents[0]
        return member_policy(AGENTS[name].build(cfg, self.spec, [self.seed], None), 0, self.spec)

    def write_proxy(self, score: float, curve: Sequence[float]) -> None:
        """Writes ``proxy.pt`` into the run's folder: the proxy, and how it came about."""
        about = {
            "gamename": self.spec.gamename, "seed": self.seed, "score": score,
            "curve": list(curve), "config": dict(self.hparams["config"]),
        }  # fmt: skip
        folder = Path(self.trainer.log_dir or ".").parents[1]
        save_proxy(folder / PROXY_FILE, self.inner_loop.proxy, self.proxy_params(), about)

    def validation_step(self, evaluated: Mapping[str, list[Any]], batch_idx: int) -> None:
        """What came of fresh agents on the proxy."""
        for prefix, outcomes in evaluated.items():
            returns = torch.tensor([outcome.test_return for outcome in outcomes], dtype=torch.float64)
            values = {"mean": returns.mean(), "std": returns.std(correction=0), "min": returns.min(), "max": returns.max()}
            self.eval_env_steps += sum(outcome.test_steps for outcome in outcomes)
            self.log(f"{prefix}/return_mean", float(returns.mean()), batch_size=len(outcomes), logger=False)
            self.log_scalars({f"{prefix}/return_{key}": float(value) for key, value in values.items()})

    def prepare_evaluation(self) -> None:
        """Trains an agent on the proxy and takes its policy."""
        trained = self.inner_loop.train(0, self.proxy_params().unsqueeze(0), [derive_seed(self.seed, "final agent")])
        self.policy = member_policy(trained.agent, 0, self.spec)


class Bilevel(ProxyMethod):
    """Evolves a proxy; ``strategy.best`` is the best so far."""

    Config: ClassVar[type[BilevelConfig]]

    def __init__(self, gamename: str, **options: Any):
        super().__init__(gamename, **options)
        self.inner_loop = InnerLoop(
            self.make_proxy(), agent_configs(self.cfg.agent, self.spec.gamename), self.cfg.vary, self.cfg.stop_rule,
            self.objective, self.solved_return, self.cfg.unsolved_penalty, self.cfg.test_episodes, self.cfg.judge_episodes,
            self.cfg.max_train_steps,
        )  # fmt: skip
        net = self.inner_loop.proxy.net
        if self.cfg.strategy == "cmaes" and net.size > CMAES.MAX_SIZE:
            raise UserError(f"strategy cmaes: {net.size:,} parameters are too many for a full covariance matrix (limit "
                            f"{CMAES.MAX_SIZE:,}); use strategy=snes, or fewer hidden units")  # fmt: skip
        keys = {field.name for field in dataclasses.fields(StrategySettings)}
        settings = StrategySettings(**{key: getattr(self.cfg, key) for key in keys})
        self.strategy = STRATEGIES[self.cfg.strategy](self._start(), net.evolved(), settings, self.seed)
        self.executor: Executor = SerialExecutor()
        self.evolution: Evolution | None = None
        self.policy = self.untrained_policy()

    def proxy_params(self) -> Tensor:
        return self.strategy.best

    def _start(self) -> Tensor:
        """Where the search begins ``[D]``: at random, or at the proxy that the config names."""
        proxy = self.inner_loop.proxy
        if self.cfg.start is None:
            return proxy.net.init([torch.Generator().manual_seed(derive_seed(self.seed, "proxy start"))])[0]
        other, params, _ = read_proxy(proxy_path(self.cfg.start), self.spec.gamename)
        if other.net != proxy.net:
            raise UserError(f"key 'start': proxy '{self.cfg.start}' is {other.net}, not {proxy.net} as this run's")
        return params

    @property
    def objective(self) -> str:
        raise NotImplementedError

    def make_proxy(self) -> SyntheticProxy | RewardProxy:
        """The kind of proxy that the config asks for."""
        raise NotImplementedError

    @property
    def solved_return(self) -> float | None:
        return self.spec.solved_return if self.cfg.solved_return is None else self.cfg.solved_return

    def rollouts(self, num_workers: int = 0) -> Generations:
        """The clock of the generations, and the evaluation by fresh agents; for processes, see ``distribute``."""
        return Generations(ProxyEvaluation(self, None))

    def distribute(self, executor: str, num_workers: int, ray_address: str | None) -> None:
        self.executor = EXECUTORS[executor].make(num_workers, ray_address)

    def configure_callbacks(self) -> list[Callback]:
        self.evolution = self.outer_loop()
        return [self.evolution]

    def outer_loop(self) -> Evolution:
        """What makes the generations, as this method's config says."""
        return Evolution(self.strategy, self.inner_loop, score_of, self.executor, self.cfg.step_decay, self.cfg.noise_decay)

    def optimisers(self) -> list[torch.optim.Optimizer]:
        return [self.strategy.optimiser()]

    def train_epoch(self, batch: int) -> None:
        """The step of a generation, whose gradient the callback has written."""
        assert self.evolution is not None
        assert self.evolution.generation is not None
        before, generation = self.strategy.mean.detach().clone(), self.evolution.generation
        for optimiser in self.raw_optimisers():
            optimiser.step()
        moved = float((self.strategy.mean.detach() - before).norm())
        self.check_finite("the proxy's parameters", moved)
        outcomes = list(generation.results)
        steps = sum(outcome.train_steps for outcome in outcomes)
        self.env_steps += steps
        self.eval_env_steps += sum(outcome.test_steps for outcome in outcomes)
        self.num_updates += 1
        self.episodes += sum(outcome.episodes for outcome in outcomes)
        self.log_scalars({
            **self.speed_scalars(steps),
            **outcome_scalars(outcomes),
            "es/fitness_mean": generation.center,
            "es/fitness_best": max(outcome.score for outcome in outcomes),
            "es/best": float(self.strategy.best_score),
            "es/step_norm": moved,
            "time/eval_env_steps": float(self.eval_env_steps),
        })  # fmt: skip
        if generation.kept:
            self.write_proxy(float(self.strategy.best_score), self.evolution.curve)
        if self.solved(generation):
            self.trainer.should_stop = True

    def solved(self, generation: Generation) -> bool:
        """Whether the run may end, by the agents of the unperturbed proxy."""
        return False


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


@register_method("SE")
class SE(Bilevel):
    """Synthetic environments."""

    Config = SEConfig

    @property
    def objective(self) -> str:
        return "final_return"

    def make_proxy(self) -> SyntheticProxy:
        cfg = self.cfg
        horizon = self.spec.horizon if cfg.proxy_horizon is None else cfg.proxy_horizon
        hidden, kind = tuple(cfg.hidden), cfg.activation
        return SyntheticProxy(self.spec.gamename, hidden, kind, cfg.latent_size, horizon, cfg.cap_ends, cfg.reencode, "raw")

    def solved(self, generation: Generation) -> bool:
        center = [o.test_return for item, o in zip(generation.items, generation.results, strict=True) if item.sign == 0]
        mean = sum(center) / len(center)
        return self.cfg.stop_when_solved and self.solved_return is not None and mean > self.solved_return


@register_method("RN")
class RN(Bilevel):
    """Reward networks."""

    Config = RNConfig

    @property
    def objective(self) -> str:
        return str(self.cfg.objective)

    def make_proxy(self) -> RewardProxy:
        cfg, (_, agent) = self.cfg, agent_configs(self.cfg.agent, self.spec.gamename)[0]
        return RewardProxy(self.spec.gamename, tuple(cfg.hidden), cfg.activation, cfg.reward, agent.gamma)


class Generations(Rollouts):
    """An epoch is a generation; the callback makes all of it."""

    def next_batch(self) -> int:
        return 0


class ProxyEvaluation(Evaluation):
    """Fresh agents, other ones than those of a search, on the proxy; no generation sees their scores."""

    method: ProxyMethod

    def play(self) -> dict[str, list[Outcome]]:
        method, count = self.method, self.method.cfg.eval_agents
        seeds = [derive_seed(method.seed, "evaluation", method.current_epoch, n) for n in range(count)]
        loop = dataclasses.replace(method.inner_loop, test_episodes=method.cfg.eval_episodes)
        with torch.enable_grad():
            return {"eval": loop.evaluate(method.proxy_params().expand(count, -1), seeds, range(count))}
