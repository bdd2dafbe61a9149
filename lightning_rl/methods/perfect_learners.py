"""The first generations of a search for one-step environments, without training of agents.

Searched are synthetic environments whose episodes have one step.

In such an environment an agent learns the reward of each action and no more: an agent that learned
without error would take the action of the highest reward. These *perfect learners* need no
training, so evolving rewards by their test returns is hundreds of times cheaper. Real agents come
in when the rewards are good: they select which states have to be seen, and how distinct rewards
must be. Until then nothing selects start states and the scale of rewards: the first agents get
start states from the box of states that the perfect learner met in the real task, and rewards of a
scale that they learn fast.

Nor do perfect learners select rewards that are easy to learn. So in between there may be
generations of clones: small networks that are trained briefly, by supervised learning, on the
actions of the highest reward in the start states.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

import torch
from torch import Tensor, nn

from lightning_rl.agents.base import Actors
from lightning_rl.agents.cloning import CloneConfig, Clones
from lightning_rl.agents.training import Results
from lightning_rl.core.seeding import derive_seed
from lightning_rl.envs.adapters import make_envs
from lightning_rl.envs.batch import EnvBatch
from lightning_rl.envs.one_step import OneStepEnv
from lightning_rl.envs.proxies import Proxy, SyntheticProxy
from lightning_rl.envs.spec import EnvSpec
from lightning_rl.evolution.strategies import Item, Proposal, Strategy
from lightning_rl.methods.inner_loop import InnerLoop, Outcome

REAL_EPISODES, DRAWN_STARTS = 20, 4096  # whose states are compared
CLONED_STARTS = 512  # in which a clone is taught


class PerfectLearners(Actors):
    """Agents on one-step environments as if they had learned without error.

    Member ``n`` takes the actions of ``env.meant``.
    """

    def __init__(self, env: OneStepEnv, seeds: Sequence[int]):
        super().__init__(seeds)
        self.env = env
        self.params = nn.Parameter(env.params, requires_grad=False)

    def greedy(self, obs: Tensor) -> Tensor:
        return self.env.meant(obs)

    def load_rows(self, rows: Mapping[str, Tensor]) -> None:
        super().load_rows(rows)
        self.env = self.env.with_params(self.params.data, self.env.real)

    @property
    def num_updates(self) -> Tensor:
        return torch.zeros(len(self.seeds), dtype=torch.int64)

    def module(self, row: int) -> nn.Module:
        raise NotImplementedError("what is paid best is no network from observations")


@dataclass(frozen=True, kw_only=True)
class PerfectFirst(InnerLoop):
    """An inner loop whose first generations take no training of agents.

    ``perfect_generations`` are judged by ``PerfectLearners``, the next ``clone_generations`` by
    clones, which learn as ``clone`` says.
    """

    perfect_generations: int
    clone_generations: int
    clone: CloneConfig

    def __call__(
        self, proposal: Proposal, items: Sequence[Item], device: str = "cpu"
    ) -> list[Outcome]:
        """The outcome of every item of a generation.

        Those that take no steps on proxies are on the CPU.
        """
        if proposal.generation >= self.perfect_generations + self.clone_generations:
            return super().__call__(proposal, items, device)
        spec = self.proxy.spec
        seeds = [proposal.seed(item) for item in items]
        learners = perfect_learners(self.proxy, proposal.rows(items), seeds)
        judges: Actors = learners
        if proposal.generation >= self.perfect_generations:
            judges = clones(self.clone, learners, spec)
        nothing = Results.empty(len(seeds), 1)
        return self.outcomes(self.tested(judges, nothing, spec, seeds))


def perfect_learners(proxy: Proxy, params: Tensor, seeds: Sequence[int]) -> PerfectLearners:
    """The perfect learners of one-step proxies with params ``[N, D]``."""
    env = cast(SyntheticProxy, proxy).env(params.detach().cpu())
    assert isinstance(env, OneStepEnv)
    return PerfectLearners(env, seeds)


@torch.no_grad()
def clones(cfg: CloneConfig, learners: PerfectLearners, spec: EnvSpec) -> Clones:
    """Networks that are cloned from the best-paid actions in start states of the learners'
    environments.
    """
    env = learners.env
    shape = (CLONED_STARTS, env.reset_noise_size)
    noise = [torch.rand(shape, generator=each) for each in learners.generators("starts")]
    state = env.reset(torch.stack(noise))
    cloned = Clones(cfg, spec, learners.seeds)
    cloned.fit(env.observe(state), env.best(state))
    return cloned


@torch.no_grad()
def agents_come_in(
    proxy: Proxy, strategy: Strategy, noise: float, spread: float, seed: int
) -> None:
    """Prepares a search for generations of real agents, once those of perfect learners are over.

    Let the box be the range of the states that the perfect learner of the strategy's mean visits in
    ``REAL_EPISODES`` real episodes. Learned start states get its middle as their mean and
    ``spread`` thirds of its width as their standard deviation; rewards get the scale
    ``REWARD_STD``, which agents learn fast; the strategy's noise is multiplied by ``noise``.

    The box is used, not mean and standard deviation of the visited states: after a swing-up nearly
    all of these are upright.
    """
    learner = perfect_learners(proxy, strategy.mean.unsqueeze(0), [seed])
    seeds = [derive_seed(seed, "met", k) for k in range(REAL_EPISODES)]
    met = states_met(learner, make_envs(proxy.spec, seeds))
    generator = torch.Generator().manual_seed(seed)
    drawn = torch.rand(1, DRAWN_STARTS, learner.env.reset_noise_size, generator=generator)
    low, high = met.amin(0), met.amax(0)
    std = spread * (high - low) / 3
    strategy.mean.copy_(learner.env.in_units((low + high) / 2, std, drawn)[0])
    strategy.scale_noise(noise)


@torch.no_grad()
def states_met(learner: Actors, envs: EnvBatch) -> Tensor:
    """The observations ``[K, O]`` of one episode of one learner in each environment."""
    over = torch.zeros(len(envs.obs), dtype=torch.bool)
    obs = envs.reset(over)
    met = []
    while not over.all():
        met.append(obs[~over])
        step = envs.step(learner.greedy(obs.unsqueeze(0))[0])
        ended = step.terminated | step.truncated
        over |= ended
        obs = envs.reset(ended)
    return torch.cat(met)
