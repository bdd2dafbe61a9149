"""The DQN core of the model-based agents (Young et al. 2023, arXiv 2211.02222). For its experience see ``imagination``.

Where we differ from the paper's code: greedy actions of latent agents are for the mode of the latent, not for a sample; the
double Q-learning switch works. Its errors are fixed, see ``configs/model_based.yaml``, key faithful.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor

from lightning_rl.agents.optim import LockstepAdam
from lightning_rl.agents.ring import Column, MemberRing
from lightning_rl.core.seeding import MemberNoise, derive_seed
from lightning_rl.envs.func_env import FuncEnv
from lightning_rl.functional.value_learning import double_q_target, q_learning_target
from lightning_rl.nets.stacked import Stacked
from lightning_rl.nets.trunks import RecordedPass, TrunkNet
from lightning_rl.nets.world_models import RealSteps, WorldModel


@dataclass(frozen=True)
class CoreSettings:
    """batch_size: replayed transitions or starts. rollout_length: imagined steps from each. target_interval: environment steps.

    decay: see ``LockstepAdam``. group_size: members that are updated together; changes the speed alone.
    """

    gamma: float
    temperature: float
    learning_rate: float
    betas: tuple[float, float]
    eps: float
    decay: float
    batch_size: int
    rollout_length: int
    replay_size: int
    updates_per_step: int
    target_interval: int
    learning_starts: int
    double_q: bool
    group_size: int


class Experience(NamedTuple):
    """Transitions ``[M, B]`` to learn from, of features ``[M, B, X]``; q ``[M, B, A]``: values of those that they start from.

    weight: of each in the mean, or None for 1.
    """

    q: Tensor
    action: Tensor
    reward: Tensor
    discount: Tensor
    next_features: Tensor
    weight: Tensor | None


class ModelBasedDQN(Stacked, ABC):
    """``N`` learners in lock-step; what member ``n`` does is a function of ``seeds[n]`` alone."""

    member_tensors: tuple[str, ...] = ("params", "target")
    member_parts: tuple[str, ...] = ("adam",)
    loss_names: tuple[str, ...] = ("train/value_loss",)
    encode_noise_size: int = 0  # numbers of noise that ``features`` takes
    noise_kind: str = "uniform"  # and their kind

    def __init__(self, env: FuncEnv, net: TrunkNet, settings: CoreSettings, seeds: Sequence[int], device: str = "cpu"):
        self.env, self.net, self.settings, self.seeds, self.device = env, net, settings, list(seeds), device
        self.params = net.init(self.generators("initialisation")).to(device)
        self.target = self.params.clone()
        self._grad = torch.zeros_like(self.params[: settings.group_size])
        self._views: dict[tuple[str, int, int], Any] = {}
        s = settings
        self.adam = LockstepAdam(self.params, s.learning_rate, s.betas, s.eps, s.decay)
        self.memory = MemberRing(len(self.seeds), s.replay_size, self.columns(), device)
        self._explore = self.noise("explore", (env.action_size,), "gumbel")
        self._draw = self.noise("replay", (s.batch_size,), "uniform64")
        self.losses = torch.zeros(len(self.loss_names), len(self.seeds), device=device)  # sums since they were last taken
        self._summed = 0

    def generators(self, purpose: str) -> list[torch.Generator]:
        """One generator per member, e.g. for the initialisation."""
        return [torch.Generator().manual_seed(derive_seed(seed, purpose)) for seed in self.seeds]

    def noise(self, purpose: str, shape: tuple[int, ...], kind: str) -> MemberNoise:
        """A stream of noise, drawn in blocks of about a hundred thousand numbers per member."""
        numbers = max(torch.Size(shape).numel(), 1)
        return MemberNoise(self.seeds, purpose, shape, kind, self.device, block=max(1, min(128, 100_000 // numbers)))

    def layers(self, net: TrunkNet | WorldModel, name: str, members: slice) -> Any:
        """The layers of ``net`` in the rows ``members`` of the block called ``name``; views of it, made once."""
        key = (name, members.start, members.stop)
        if key not in self._views:
            self._views[key] = net.layers(getattr(self, name)[members])
        return self._views[key]

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        super().load_state_dict(state)
        self._views.clear()

    @property
    def everyone(self) -> slice:
        """All members."""
        return slice(0, len(self.seeds))

    @property
    def num_updates(self) -> int:
        """Updates of every member so far."""
        return int(self.adam.num_steps[0])

    @abstractmethod
    def columns(self) -> Mapping[str, Column]:
        """What the memory keeps."""

    def memory_layout(self) -> Any:
        """What a snapshot of the memory may look like."""
        return self.memory.layout(len(self.seeds))

    @abstractmethod
    def remember(self, state: Tensor, real: RealSteps) -> None:
        """Keeps one real step of every member: from state ``[N, S]``, the rest ``[N, ..]``."""

    @abstractmethod
    def experience(self, online: RecordedPass, members: slice, number: int) -> Experience:
        """What update ``number`` of ``members`` learns from. online: the value network, which records what it is asked."""

    def features(self, obs: Tensor, noise: Tensor | None) -> Tensor:
        """What the value network reads for obs ``[N, K, O]``; noise ``[N, K, Z]``, None for the mode."""
        return obs

    @torch.no_grad()
    def values(self, obs: Tensor, noise: Tensor | None) -> Tensor:
        """Q values ``[N, K, A]`` of obs ``[N, K, O]``."""
        return self.net(self.layers(self.net, "params", self.everyone), self.features(obs, noise))

    def encode_noise(self, step: int) -> Tensor | None:
        """Noise for the features of the observation acted on at ``step``."""
        return None

    def act(self, obs: Tensor, step: int) -> Tensor:
        """Actions ``[N]`` of probability ``softmax(Q / temperature)`` for obs ``[N, O]`` at environment step ``step``."""
        q = self.values(obs.unsqueeze(1), self.encode_noise(step)).squeeze(1)
        return self.boltzmann(q, self._explore.at(step))

    def boltzmann(self, q: Tensor, gumbel: Tensor) -> Tensor:
        """A sample ``[...]`` for values and Gumbel noise ``[..., A]``."""
        return torch.add(q, gumbel, alpha=self.settings.temperature).argmax(-1)

    def learn(self, step: int) -> None:
        """The updates that go with environment step ``step``, if it is time to learn."""
        s = self.settings
        if step < s.learning_starts:
            return
        if step % s.target_interval == 0:
            self.target.copy_(self.params)
        for _ in range(s.updates_per_step):
            number = self.num_updates
            for first in range(0, len(self.seeds), s.group_size):
                self._update(slice(first, min(first + s.group_size, len(self.seeds))), number)
            self._summed += 1

    @torch.no_grad()
    def _update(self, members: slice, number: int) -> None:
        online = RecordedPass(self.net, self.layers(self.net, "params", members))
        batch = self.experience(online, members, number)
        next_q = self.net(self.layers(self.net, "target", members), batch.next_features)
        if self.settings.double_q:
            chosen = self.net(online.layers, batch.next_features)
            goal = double_q_target(batch.reward, batch.discount, chosen, next_q)
        else:
            goal = q_learning_target(batch.reward, batch.discount, next_q)
        index = batch.action.unsqueeze(-1)
        error = batch.q.gather(-1, index).squeeze(-1) - goal
        weighted = error if batch.weight is None else batch.weight * error
        self.losses[0, members] += (weighted * error).mean(-1)
        # The gradient of the mean of weight * error^2.
        grad = torch.zeros_like(batch.q).scatter_(-1, index, weighted.unsqueeze(-1) * (2 / error.shape[-1]))
        rows = slice(0, len(grad))
        online.gradient(grad, self.layers(self.net, "_grad", rows))
        self.adam.step(self.params, self._grad[rows], members)

    def take_losses(self) -> dict[str, Tensor]:
        """Mean losses ``[N]`` of the updates since the last call; none if there were none."""
        if not self._summed:
            return {}
        means = self.losses / self._summed
        self.losses, self._summed = torch.zeros_like(means), 0
        return dict(zip(self.loss_names, means, strict=True))
