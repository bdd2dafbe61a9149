"""Bi-level learning of proxies (Ferreira, Nierhoff, Sälinger & Hutter, ICLR 2022, arXiv
2202.02790).

The inner loop trains fresh agents on a proxy of a task: a synthetic environment (``SE``) or the
real one with a learned reward (``RN``). The outer loop evolves the proxy's parameters by how these
agents do on the real task. An epoch is a generation.

Where we differ from the paper's code: budgets in steps, never in seconds; a diverged agent scores
the worst possible return; agents are tested without exploration noise; equal scores share their
weights; everything is seeded.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self, cast

import torch
from pydantic import Field, NonNegativeFloat, PositiveFloat, PositiveInt, model_validator
from pydantic.dataclasses import dataclass as config_dataclass
from pytorch_lightning import Callback, Trainer
from torch import Tensor
from torch.optim.lr_scheduler import LambdaLR, LRScheduler

from lightning_rl.agents.base import Actors
from lightning_rl.core.contents import check_tensors
from lightning_rl.core.errors import UserError
from lightning_rl.core.files import refuse_foreign
from lightning_rl.core.limits import EPISODES, GENERATIONS, WIDTH
from lightning_rl.core.schema import STRICT, Agents, Episodes, HiddenSizes, MethodConfig
from lightning_rl.core.seeding import derive_seed
from lightning_rl.envs.proxies import Proxy, SyntheticProxy, proxy_path, read_proxy, save_proxy
from lightning_rl.envs.spec import EnvSpec, env_spec
from lightning_rl.evolution.callback import Evolution, Generation, worst_for_failed
from lightning_rl.evolution.executors import Executor, SerialExecutor
from lightning_rl.evolution.strategies import STRATEGIES, StrategyConfig
from lightning_rl.methods.base import Method
from lightning_rl.methods.inner_loop import (
    InnerLoop,
    Outcome,
    agent_configs,
    ignored_keys_of_agents,
    outcome_scalars,
)
from lightning_rl.methods.registry import register_method
from lightning_rl.nets.members import ActivationName
from lightning_rl.rollouts.data_module import Rollouts

PROXY_FILE = "proxy.pt"


# What is configured


@config_dataclass(frozen=True, config=STRICT, kw_only=True)
class ProxySearchConfig(StrategyConfig, MethodConfig):
    """Keys of all searches; ``configs/proxy_search.yaml`` explains them."""

    objective: ClassVar[str] = "final_return"
    stop_when_solved: ClassVar[bool] = False
    vary: bool
    solved_return: float | None
    test_episodes: Episodes
    hidden: HiddenSizes
    activation: ActivationName
    start: str | None
    eval_agents: Agents

    def resolved(self, gamename: str) -> Self:
        """With every value of the strategy, so that a run's record is complete."""
        return dataclasses.replace(self, mirrored=len(self.signs) == 2)

    def loop(self, spec: EnvSpec) -> InnerLoop:
        """What a proxy of the task is judged by."""
        raise NotImplementedError


@config_dataclass(frozen=True, config=STRICT, kw_only=True)
class AgentSearchConfig(ProxySearchConfig):
    """Keys of searches whose proxies are environments, in which agents learn: SE and RN."""

    agent: str | list[str] | dict[str, dict[str, Any] | None] | None
    stop_rule: Literal["plateau", "solved", "none"]
    unsolved_penalty: NonNegativeFloat
    judge_episodes: Annotated[int, Field(ge=0, le=EPISODES)]
    max_train_steps: PositiveInt

    def ignored_keys(self) -> dict[str, str]:
        """Also the keys ``agent.NAME.KEY`` that no agent of the search reads."""
        found = super().ignored_keys() | ignored_keys_of_agents(self.agent)
        if self.objective != "steps_to_threshold":
            found["unsolved_penalty"] = f"objective {self.objective} does not read it; leave it out"
        return found

    def resolved(self, gamename: str) -> Self:
        """With every value of the inner agents, too."""
        agents = {
            name: dataclasses.asdict(cfg) for name, cfg in agent_configs(self.agent, gamename)
        }
        return dataclasses.replace(super().resolved(gamename), agent=cast(Any, agents))

    def proxy(self, gamename: str) -> Proxy:
        """The kind of proxy that is evolved."""
        raise NotImplementedError

    def loop(self, spec: EnvSpec) -> InnerLoop:
        return InnerLoop(
            proxy=self.proxy(spec.gamename),
            agents=agent_configs(self.agent, spec.gamename),
            vary=self.vary,
            stop_rule=self.stop_rule,
            objective=self.objective,
            unsolved_penalty=self.unsolved_penalty,
            solved_return=spec.solved_return if self.solved_return is None else self.solved_return,
            test_episodes=self.test_episodes,
            judge_episodes=self.judge_episodes,
            max_train_steps=self.max_train_steps,
        )


@config_dataclass(frozen=True, config=STRICT, kw_only=True)
class SEConfig(AgentSearchConfig):
    """Keys of SE."""

    unsaved: ClassVar = frozenset({"clone_hidden"})
    # Of this one alone; plain, it would take over the value of its base.
    stop_when_solved: bool = Field()  # type: ignore[misc]
    perfect_generations: Annotated[int, Field(ge=0, le=GENERATIONS)]
    clone_generations: Annotated[int, Field(ge=0, le=GENERATIONS)]
    clone_hidden: HiddenSizes
    clone_learning_rate: PositiveFloat
    num_clone_updates: PositiveInt
    agent_noise: PositiveFloat
    start_spread: PositiveFloat
    one_step: bool
    proxy_horizon: PositiveInt | None
    cap_ends: bool
    latent_size: Annotated[int, Field(ge=0, le=WIDTH)]

    def ignored_keys(self) -> dict[str, str]:
        found = super().ignored_keys()
        if self.stop_rule != "solved":
            found["judge_episodes"] = (
                f"stop_rule {self.stop_rule} judges no real episode; leave it out, or use "
                "stop_rule=solved"
            )
        if not self.perfect_generations:
            found["start_spread"] = "it needs perfect_generations; set these, or leave it out"
        if not self.clone_generations:
            for key in ("clone_hidden", "clone_learning_rate", "num_clone_updates"):
                found[key] = "it needs clone_generations; set these, or leave it out"
        return found

    def loop(self, spec: EnvSpec) -> InnerLoop:
        loop = super().loop(spec)
        if not self.perfect_generations:
            return loop
        # other searches need neither
        from lightning_rl.agents.cloning import CloneConfig
        from lightning_rl.methods.perfect_learners import PerfectFirst

        return PerfectFirst(
            **vars(loop),
            perfect_generations=self.perfect_generations,
            clone_generations=self.clone_generations,
            clone=CloneConfig(
                hidden=self.clone_hidden,
                activation="relu",
                learning_rate=self.clone_learning_rate,
                num_updates=self.num_clone_updates,
            ),
        )

    @model_validator(mode="after")
    def _check_one_step(self) -> SEConfig:
        if self.stop_rule == "solved" and not self.judge_episodes:
            raise ValueError(
                "judge_episodes 0: stop_rule solved is of real episodes; use 1, or "
                "stop_rule=plateau"
            )
        if self.one_step and (self.proxy_horizon is not None or self.cap_ends):
            raise ValueError(
                "one_step true: its episodes end after one step anyway; leave out proxy_horizon "
                "and cap_ends"
            )
        if self.perfect_generations and not self.one_step:
            raise ValueError(
                f"perfect_generations {self.perfect_generations}: they need one_step true; use "
                "that, or 0"
            )
        if self.clone_generations and not self.perfect_generations:
            raise ValueError(
                f"clone_generations {self.clone_generations}: clones follow perfect_generations; "
                "set that, or use 0"
            )
        if self.agent_noise != 1 and not (self.perfect_generations and self.strategy == "snes"):
            raise ValueError(
                f"agent_noise {self.agent_noise:g}: it needs perfect_generations and strategy "
                "snes; or use 1.0"
            )
        if self.perfect_generations and self.keep == "best":
            raise ValueError(
                f"perfect_generations {self.perfect_generations}: their scores are no agents'; use "
                "keep=last, or 0"
            )
        return self

    def proxy(self, gamename: str) -> SyntheticProxy:
        proxy = SyntheticProxy(
            gamename=gamename,
            hidden=tuple(self.hidden),
            activation=self.activation,
            horizon=self.proxy_horizon or env_spec(gamename).horizon,
            latent_size=self.latent_size,
            cap_ends=self.cap_ends,
        )
        if self.one_step:
            return dataclasses.replace(proxy, horizon=1, cap_ends=True, done="always")
        return proxy


# What is trained on


class ProxyRollouts(Rollouts):
    """Data of a method whose result is a proxy: of a search, the generation that ``Evolution``
    has made as the epoch began.
    """

    method: Any

    def next_batch(self) -> Any:
        return self.method.generation

    def evaluate(self) -> dict[str, list[Outcome]]:
        """Fresh agents, other ones than those of a search, on the proxy; no generation sees
        their returns.
        """
        method, count = self.method, self.method.cfg.eval_agents
        seeds = [
            derive_seed(method.seed, "evaluation", method.current_epoch, n) for n in range(count)
        ]
        loop = dataclasses.replace(method.inner_loop, test_episodes=method.cfg.eval_episodes)
        params = method.proxy_params().expand(count, -1)
        with torch.inference_mode(False), torch.enable_grad():
            outcomes = loop.evaluate(params, seeds, range(count))
        return {"eval": worst_for_failed(outcomes)}


# What is learned


class ProxyMethod(Method):
    """A method whose result is a proxy. It is evaluated by fresh agents that train on the proxy.

    ``policy`` exists after ``prepare_evaluation``: that of an agent trained on the present proxy;
    checkpoints do not hold it.
    """

    reloadable = False
    auto_gpu = False
    action_mode = "greedy"  # as agents are tested during the search
    precisions = ("32-true",)
    inner_loop: InnerLoop
    score: float  # of the newest proxy, higher is better
    improved: bool  # whether the last training step gave a proxy to be kept
    solved = False  # whether it ended the search
    has_agent = False  # whether ``policy`` is of an agent that was trained before

    def proxy_params(self) -> Tensor:
        """The proxy to be evaluated ``[D]``."""
        raise NotImplementedError

    def configure_callbacks(self) -> list[Callback]:
        """``SaveProxy``, which Lightning adds to the Trainer's own callbacks."""
        return [SaveProxy()]

    def finished(self) -> bool:
        return self.solved

    def save_proxy(self, path: Path, curve: Sequence[float]) -> None:
        """Writes the proxy and how it was made. curve: the scores of all epochs."""
        about = {
            "gamename": self.spec.gamename,
            "seed": self.seed,
            "score": self.score,
            "curve": list(curve),
            "config": dict(self.hparams["config"]),
        }
        save_proxy(path, self.inner_loop.proxy, self.proxy_params(), about)

    def validation_step(self, evaluated: Mapping[str, list[Any]], batch_idx: int) -> None:
        """Test returns of fresh agents on the proxy."""
        outcomes = evaluated["eval"]
        returns = torch.tensor([outcome.test_return for outcome in outcomes], dtype=torch.float64)
        self.eval_env_steps += sum(outcome.test_steps for outcome in outcomes)
        if self.inner_loop.proxy.real_dynamics:
            self.eval_env_steps += sum(outcome.train_steps for outcome in outcomes)
        mean = float(returns.mean())
        self.report("eval/return_mean", mean, len(outcomes))
        self.log_scalars(
            {
                "eval/return_mean": mean,
                "eval/return_std": float(returns.std(correction=0)),
                "eval/return_min": float(returns.min()),
                "eval/return_max": float(returns.max()),
            }
        )

    def prepare_evaluation(self) -> None:
        """Trains an agent with the config's own values on the proxy and takes its policy, and
        the task as it plays it.
        """
        if self.has_agent:
            return
        loop = dataclasses.replace(self.inner_loop, vary=False)
        seed = derive_seed(self.seed, "final agent")
        trained = loop.train(0, self.proxy_params().unsqueeze(0), [seed])
        if trained.test_returns.isnan().any():
            raise UserError(
                "the agent that was trained on the proxy diverged; lightning-rl proxies transfer "
                "trains others"
            )
        self._take_policy(trained.agent)

    def acting_weights(self) -> dict[str, Tensor]:
        """Those of the agent that was trained on the proxy."""
        return dict(self.policy.state_dict())

    def take_acting_weights(self, weights: Any) -> None:
        """Takes the policy of an agent that was trained before, instead of training one."""
        check_tensors(weights, "state_dict")
        loop = dataclasses.replace(self.inner_loop, vary=False)
        self._take_policy(loop.fresh(0, [0]))
        self.policy.load_state_dict(weights)
        self.has_agent = True

    def _take_policy(self, agent: Actors) -> None:
        from lightning_rl.methods.agents import member_policy  # not needed to search

        self.spec = self.inner_loop.task(0)
        # not as a part, which checkpoints would hold
        vars(self)["policy"] = member_policy(agent, 0, self.spec)


class SaveProxy(Callback):
    """Writes ``proxy.pt`` into the Trainer's ``default_root_dir`` after each training step that
    has improved the proxy.
    """

    def __init__(self) -> None:
        self.curve: list[float] = []  # the score after each step
        self.solved = False  # whether the last one ended the search

    def on_train_start(self, trainer: Trainer, pl_module: Any) -> None:
        pl_module.solved |= self.solved  # a search that is gone on with
        refuse_foreign(Path(trainer.default_root_dir) / PROXY_FILE)

    def on_train_batch_end(self, trainer: Trainer, pl_module: Any, *args: Any) -> None:
        self.curve.append(pl_module.score)
        self.solved = pl_module.solved
        if pl_module.improved and not getattr(trainer, "fast_dev_run", False):
            pl_module.save_proxy(Path(trainer.default_root_dir) / PROXY_FILE, self.curve)

    def state_dict(self) -> dict[str, Any]:
        return {"curve": list(self.curve), **({"solved": True} if self.solved else {})}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.curve = [float(score) for score in state_dict["curve"]]
        self.solved = "solved" in state_dict


class ProxySearch(ProxyMethod):
    """Evolves a proxy: ``Trainer(...).fit(method, datamodule=method.rollouts(num_workers=2))``.

    ``strategy`` holds the proxy's parameters and what the search remembers. The method brings two
    callbacks of its own (``configure_callbacks``): ``Evolution`` drives the outer loop, as an epoch
    starts it evaluates a generation and estimates the gradient that the training step follows;
    ``SaveProxy`` writes ``proxy.pt`` into the Trainer's ``default_root_dir``.
    """

    Config: ClassVar[type[ProxySearchConfig]]
    has_population = True
    generation: Generation  # the newest, which ``Evolution`` has made

    def __init__(self, gamename: str, **options: Any):
        super().__init__(gamename, **options)
        cfg: ProxySearchConfig = self.cfg
        self.inner_loop = cfg.loop(self.spec)
        evolved = self.inner_loop.proxy.net.evolved()
        self.strategy = STRATEGIES[cfg.strategy](self._start(), evolved, cfg, self.seed)
        self.executor: Executor | None = None  # of a command line's --executor
        self.num_workers = 0

    def _start(self) -> Tensor:
        """Where the search begins ``[D]``: at random, or at the proxy that the config names."""
        proxy, start = self.inner_loop.proxy, self.cfg.start
        if start is None:
            seed = derive_seed(self.seed, "proxy start")
            return proxy.net.init([torch.Generator().manual_seed(seed)])[0]
        other, params, _ = read_proxy(proxy_path(start), self.spec.gamename)
        if other.net != proxy.net:
            raise UserError(
                f"key 'start': '{start}' is {other.net}, not {proxy.net} as this run's; set its "
                "keys alike"
            )
        if getattr(other, "done", None) == "classifier":  # log-odds, where a half is compared with
            raise UserError(
                f"key 'start': '{start}' is a model of MBRL, which tells ends otherwise; use a "
                "proxy of SE"
            )
        return params

    def proxy_params(self) -> Tensor:
        return self.strategy.best

    def rollouts(self, num_workers: int = 0) -> ProxyRollouts:
        """The generations, and the evaluation by fresh agents; num_workers: processes that
        evaluate a generation.
        """
        self.num_workers = num_workers
        return ProxyRollouts(self)

    def configure_callbacks(self) -> list[Callback]:
        """``Evolution``, which drives the outer loop, and ``SaveProxy``; Lightning adds them to
        the Trainer's own callbacks.
        """
        return [self.outer_loop(), *super().configure_callbacks()]

    def outer_loop(self) -> Evolution:
        """What makes generations, as this method's config says."""
        executor = self.executor or SerialExecutor(self.num_workers)
        return Evolution(self.strategy, self.inner_loop, executor)

    def on_fit_start(self) -> None:
        super().on_fit_start()
        if not any(
            isinstance(callback, Evolution) for callback in cast(Any, self.trainer).callbacks
        ):
            raise UserError(
                "configure_callbacks(): Evolution evaluates generations; give "
                "[*super().configure_callbacks(), ...]"
            )

    def make_optimizers(self) -> list[torch.optim.Optimizer]:
        return [self.strategy.optimizer()]

    def schedulers(self, optimizers: Sequence[torch.optim.Optimizer]) -> list[LRScheduler]:
        """Steps fall with the generations of all Trainers, as the noise does, not with the
        epochs of the present one.
        """
        return [
            LambdaLR(each, lambda _: self.strategy.step_factor(int(self.num_updates)))
            for each in optimizers
        ]

    def train_epoch(self, generation: Generation) -> None:
        """Follows the gradient that was estimated from a generation's outcomes, and logs these."""
        (optimizer,) = self.optimizers()
        before = self.strategy.mean.detach().clone()
        optimizer.step()
        step_norm = float((self.strategy.mean.detach() - before).norm())
        self.check_finite("the proxy's parameters", step_norm)
        self.score, self.improved = generation.fitness, generation.is_best
        outcomes = generation.outcomes
        train_steps = sum(outcome.train_steps for outcome in outcomes)
        self.env_steps += train_steps
        self.eval_env_steps += sum(outcome.test_steps for outcome in outcomes)
        self.num_updates += 1
        self.episodes += sum(outcome.episodes for outcome in outcomes)
        self.log_scalars(
            {
                **self.speed_scalars(train_steps),
                **outcome_scalars(outcomes),
                "es/fitness_mean": generation.fitness,
                "es/fitness_best": max(outcome.fitness for outcome in outcomes),
                "es/best": float(self.strategy.best_score),
                "es/step_norm": step_norm,
                "time/eval_env_steps": float(self.eval_env_steps),
            }
        )
        self.solved = self.cfg.stop_when_solved and self.solves(generation)
        self.after_generation(generation.number)

    def after_generation(self, number: int) -> None:
        """What a search does to its strategy after the step of a generation; whoever drives the
        outer loop calls it.
        """

    def solves(self, generation: Generation) -> bool:
        """Whether agents of the unperturbed proxy pass the solved return of the real task on
        average.
        """
        threshold = self.inner_loop.solved_return
        if threshold is None:
            return False
        evaluated = zip(generation.items, generation.outcomes, strict=True)
        returns = [outcome.test_return for item, outcome in evaluated if item.sign == 0]
        return sum(returns) / len(returns) > threshold


@register_method("SE")
class SE(ProxySearch):
    """Synthetic environments: state, reward and end of episodes are learned."""

    Config = SEConfig

    def solves(self, generation: Generation) -> bool:
        """Agents solve a task, not the perfect learners and clones who judge the generations
        before theirs.
        """
        first = self.cfg.perfect_generations + self.cfg.clone_generations
        return generation.number >= first and super().solves(generation)

    def after_generation(self, number: int) -> None:
        if number + 1 == self.cfg.perfect_generations:
            from lightning_rl.methods.perfect_learners import agents_come_in

            agents_come_in(
                self.inner_loop.proxy,
                self.strategy,
                self.cfg.agent_noise,
                self.cfg.start_spread,
                self.seed,
            )
