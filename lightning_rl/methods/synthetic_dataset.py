"""Behaviour distillation (Lupu, Lu, Liesen, Lange & Foerster, ICLR 2024, arXiv 2406.15042): a task
in a handful of pairs.

A proxy is a dataset of state-action pairs. A policy that is cloned from it, from fresh weights in a
few updates, is tested on the real task, and evolution makes the pairs such that this goes well: the
paper's HaDES, in its form with fresh weights for every policy (HaDES-R). No expert is needed, and
the states need not be any that the task has.

Where we differ from the paper's code: clones are tested greedily; observations are not normalised;
the actions of discrete tasks take turns in the dataset, where theirs lie in blocks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from pydantic import Field
from pydantic.dataclasses import dataclass as config_dataclass
from torch import Tensor

from lightning_rl.agents.base import Actors
from lightning_rl.agents.cloning import CloneConfig, Clones
from lightning_rl.agents.training import Results
from lightning_rl.agents.variation import vary_agents
from lightning_rl.core.limits import WIDTH
from lightning_rl.core.schema import STRICT
from lightning_rl.envs.proxies import Proxy
from lightning_rl.envs.spec import EnvSpec
from lightning_rl.envs.synthetic_dataset import DatasetProxy
from lightning_rl.methods.inner_loop import InnerLoop
from lightning_rl.methods.proxy_search import ProxySearch, ProxySearchConfig
from lightning_rl.methods.registry import register_method


@config_dataclass(frozen=True, config=STRICT, kw_only=True)
class SDConfig(ProxySearchConfig, CloneConfig):
    """Keys of SD; ``configs/proxy_search.yaml`` explains them."""

    num_pairs: Annotated[int, Field(gt=0, le=WIDTH)]

    def ignored_keys(self) -> dict[str, str]:
        reason = f"objective {self.objective} does not read it; leave it out"
        return super().ignored_keys() | {"solved_return": reason}

    def loop(self, spec: EnvSpec) -> InnerLoop:
        proxy = DatasetProxy(gamename=spec.gamename, num_pairs=self.num_pairs)
        return cloning_loop(proxy, self, self.test_episodes, vary=self.vary)


def cloning_loop(proxy: Proxy, cfg: CloneConfig, test_episodes: int, vary: bool) -> CloningLoop:
    """Clones as ``cfg`` says, ``test_episodes`` real episodes of each."""
    return CloningLoop(
        proxy=proxy,
        agents=(("clone", cfg),),
        test_episodes=test_episodes,
        vary=vary,
        max_train_steps=cfg.num_updates,
    )


@dataclass(frozen=True, kw_only=True)
class CloningLoop(InnerLoop):
    """Policies are cloned from datasets instead of learning in an environment; an update counts
    as a step on the proxy.
    """

    def task(self, number: int) -> EnvSpec:
        return self.proxy.spec

    def fresh(self, number: int, seeds: Sequence[int]) -> Clones:
        _, cfg = self.agents[number]
        variation = vary_agents(cfg, seeds) if self.vary else None
        return Clones(cfg, self.proxy.spec, seeds, variation)

    def learn(self, number: int, params: Tensor, seeds: Sequence[int]) -> tuple[Actors, Results]:
        """Clones of the datasets ``[N, D]``. Results: one episode of all updates, whose return
        is minus the last loss.
        """
        assert isinstance(self.proxy, DatasetProxy)
        clones = self.fresh(number, seeds).to(params.device)
        loss = clones.fit(*self.proxy.net.split(params))
        results = Results.empty(len(seeds), 1)
        results.returns = results.scores = -loss.unsqueeze(1).cpu()
        results.env_steps = clones.num_updates.cpu().clone()
        results.lengths = results.env_steps.unsqueeze(1)
        results.episodes += 1
        return clones, results


@register_method("SD")
class SD(ProxySearch):
    """Synthetic datasets: the pairs are learned, from which policies are cloned."""

    Config = SDConfig
