"""What model-based agents learn from: here replayed transitions.

``environment_rollouts`` and ``model_rollouts`` build on it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor, nn

from lightning_rl.agents.optim import MemberAdam
from lightning_rl.agents.ring import Column, MemberRing
from lightning_rl.agents.stack import MemberModule, SeededMembers
from lightning_rl.core.seeding import NOISE_BLOCK, MemberNoise
from lightning_rl.envs.func_env import FuncEnv
from lightning_rl.functional.world_model import imagined_weights
from lightning_rl.nets.members import MemberMLP
from lightning_rl.nets.recorded_pass import RecordedPass
from lightning_rl.nets.world_models import RealSteps, WorldModel

if TYPE_CHECKING:
    from lightning_rl.agents.model_based import ModelBasedConfig


class TrainedBlock(MemberModule):
    """The parameters ``[N, D]`` of a network or a world model, and the Adam that trains them.

    Gradients are written by hand.
    """

    def __init__(
        self,
        net: MemberMLP | WorldModel,
        generators: Sequence[torch.Generator],
        rate: float,
        cfg: ModelBasedConfig,
    ):
        super().__init__()
        self.params = nn.Parameter(net.init(generators))
        self.net = net
        betas = (cfg.betas[0], cfg.betas[1])
        self.adam = MemberAdam(self.params, rate, betas, cfg.adam_eps, cfg.weight_decay)

    @property
    def layers(self) -> Any:
        """The layers of the parameters."""
        return self.net.kept_layers(self.params)

    @property
    def gradient(self) -> Any:
        """The layers of the gradient."""
        if self.params.grad is None:
            self.params.grad = torch.zeros_like(self.params)
        return self.net.kept_layers(self.params.grad)


class UpdateBatch(NamedTuple):
    """Transitions ``[N, B]`` to learn from.

    q ``[N, B, A]``: values of their start states; next_features ``[N, B, X]``: input of the value
    network for their next states; weight ``[N, B]``: of each in the mean of the loss, None: 1.
    """

    q: Tensor
    action: Tensor
    reward: Tensor
    discount: Tensor
    next_features: Tensor
    weight: Tensor | None


class Replay(MemberModule):
    """Real transitions, replayed; the sources that imagine build on it.

    Observations are bits: the memory keeps a byte of each.

    members: gives the noise of each member.
    """

    loss_names: tuple[str, ...] = ()
    encode_noise_size: int = 0  # numbers of noise of ``noise_kind`` that ``features`` takes
    noise_kind: str = "uniform"

    losses: Tensor

    def __init__(self, cfg: ModelBasedConfig, env: FuncEnv, members: SeededMembers):
        super().__init__()
        self.cfg, self.env = cfg, env
        count = len(members.seeds)
        self.feature_size = env.obs_size
        self.memory = MemberRing(count, cfg.replay_size, self.columns())
        self.update_noise: list[MemberNoise] = []
        self._draw = self.stream(members, "replay", (cfg.batch_size,), "uniform64")
        losses = torch.zeros(count, len(self.loss_names))  # sums since they were last taken
        self.register_buffer("losses", losses, persistent=False)

    def stream(
        self, members: SeededMembers, purpose: str, shape: tuple[int, ...], kind: str
    ) -> MemberNoise:
        """Noise for updates, drawn in blocks.

        A block has at most ``NOISE_BLOCK`` updates and about 100,000 numbers per member.
        """
        numbers = max(torch.Size(shape).numel(), 1)
        block = min(NOISE_BLOCK, max(1, 100_000 // numbers))
        self.update_noise.append(members.noise(purpose, shape, kind, block=block))
        return self.update_noise[-1]

    def columns(self) -> Mapping[str, Column]:
        """What the memory keeps."""
        return {
            "bytes": Column(2 * self.env.obs_size + 2, torch.uint8),
            "reward": Column(1, torch.float32),
        }

    def remember(self, state: Tensor, real: RealSteps) -> None:
        """Keeps one real step of every member, ``[N, ..]``.

        state ``[N, S]``: the environment's before it.
        """
        rest = torch.stack([real.action, real.continues.long()], dim=-1)
        row = torch.cat([real.obs.byte(), real.next_obs.byte(), rest.byte()], dim=-1)
        self.memory.add({"bytes": row, "reward": real.reward.unsqueeze(-1)})
        self.newest = real  # for a warm-up

    def restore(self, memory: Mapping[str, Tensor]) -> None:
        """Goes on with remembered steps."""
        self.memory.restore(memory)
        bits, action = memory["bytes"].split([2 * self.env.obs_size, 2], dim=-1)
        if (bits > 1).any() or (action[..., 0] >= self.env.action_size).any():
            raise ValueError("memory: observations that are no bits, or unknown actions")

    def sample(self, number: int) -> Any:
        """A sample of the memory for update ``number``: here real steps ``[N, B]``."""
        return self.real_steps(self._draw.at(number))

    def real_steps(self, noise: Tensor) -> RealSteps:
        """Remembered steps, drawn for uniform noise ``[N, B]``."""
        rows, size = self.memory.sample(noise), self.env.obs_size
        obs, next_obs, action, continues = rows["bytes"].split([size, size, 1, 1], dim=-1)
        return RealSteps(
            obs.float(),
            action.squeeze(-1).long(),
            rows["reward"].squeeze(-1),
            continues.squeeze(-1).float(),
            next_obs.float(),
        )

    def features(self, obs: Tensor, noise: Tensor | None) -> Tensor:
        """What the value network reads for obs ``[N, K, O]``.

        Noise ``[N, K, Z]``, None for the mode.
        """
        return obs

    def acting_noise(self, step: int) -> Tensor | None:
        """Noise for the features of the observation acted on at environment step ``step``."""
        return None

    def fit(self, sample: Any, number: int) -> None:
        """Writes the gradients of the source's own parameters (a world model's); here none.

        sample: the result of ``sample``.
        """

    def batch(self, values: RecordedPass, number: int, sample: Any) -> UpdateBatch:
        """The transitions that update ``number`` learns from.

        values: the value network, whose forward passes are recorded.
        """
        return self.replayed(values(sample.obs), sample, sample.next_obs)

    def replayed(self, q: Tensor, real: RealSteps, next_features: Tensor) -> UpdateBatch:
        """What to learn from real steps ``[N, B]``.

        q ``[N, B, A]``: the values of their observations.
        """
        discount = self.cfg.gamma * real.continues
        return UpdateBatch(q, real.action, real.reward, discount, next_features, None)

    def imagined(
        self, q: Tensor, action: Tensor, reward: Tensor, continues: Tensor, next_features: Tensor
    ) -> UpdateBatch:
        """The batch of roll-outs ``[N, L B, ..]``, step after step.

        With episodes, weighted by the probability of each step.
        """
        weight = None
        if self.env.episodic:
            rollouts = continues.unflatten(1, (-1, self.cfg.batch_size)).mT
            weight = imagined_weights(rollouts).mT.flatten(1)
        return UpdateBatch(q, action, reward, self.cfg.gamma * continues, next_features, weight)
