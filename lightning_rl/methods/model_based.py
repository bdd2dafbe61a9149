"""Model-based generalisation: does experience from a learned model beat replay?

Young et al. 2023, arXiv 2211.02222.

Five agents over one DQN core (``agents/model_based.py``), which differ in where the transitions of
an update come from: ER replays real ones, the others imagine as many, with the environment itself
(perfect), with a model of observations (simple) or of latents (categorical, Gaussian). An epoch is
``steps_per_epoch`` environment steps of every seed, with their updates.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from lightning_rl.agents.model_based import ModelBasedConfig, ModelBasedDQN
from lightning_rl.agents.model_rollouts import ModelRollouts
from lightning_rl.core.contents import check_alike
from lightning_rl.core.seeding import NOISE, MemberNoise, derive_seed
from lightning_rl.core.types import FloatArray
from lightning_rl.envs.adapters import func_env
from lightning_rl.envs.pooled_batch import PooledBatch
from lightning_rl.envs.spec import EnvSpec
from lightning_rl.functional.distributions import Categorical
from lightning_rl.functional.value_learning import boltzmann
from lightning_rl.methods.registry import register_method
from lightning_rl.methods.stacked import StackedMethod, StackedRollouts
from lightning_rl.nets.members import MemberMLP
from lightning_rl.nets.policies import Actor
from lightning_rl.nets.world_models import RealSteps, WorldModel

_LOOP = ("obs", "_return", "_length")


class StepTraining:
    """Trains the members of ``agent`` in lock-step, one environment each.

    Episodes end where the environment ends them.

    stale_observation: as in the paper's code, an episode's first action and first transition start
    from the last observation of the episode before, but for the first step of a fresh ``run``.
    """

    def __init__(self, agent: ModelBasedDQN, stale_observation: bool = False):
        self.agent, self.stale_observation = agent, stale_observation
        self.envs = PooledBatch(agent.env, agent.seeds)
        self.step = 0
        n = len(agent.seeds)
        self.obs = self.envs.obs
        self._return = torch.zeros(n)
        self._length = torch.zeros(n, dtype=torch.int64)
        self.reward = torch.zeros(n)  # sum of rewards over the last call of ``run``
        # (return, length) of each member's episodes that ended in it.
        self.ended: list[list[tuple[float, int]]] = [[] for _ in range(n)]

    def to(self, device: torch.device) -> StepTraining:
        """Goes on where the agent is; Lightning asks for it at each epoch, as for any batch."""
        if device != self.obs.device:
            self.envs.to(device)
            for name in (*_LOOP, "reward"):
                setattr(self, name, getattr(self, name).to(device))
        return self

    def run(self, steps: int, fresh: bool = True, optimizers: Sequence[Any] | None = None) -> None:
        """``steps`` environment steps of every member, with the learning that goes with them.

        fresh: at the start of an epoch. optimizers: those of the agent as Lightning wraps them;
        None: as they are.
        """
        optimizers = self.agent.optimizers() if optimizers is None else optimizers
        if fresh:
            self.obs = self.envs.obs
        self.reward = torch.zeros_like(self._return)
        self.ended = [[] for _ in self.ended]
        for _ in range(steps):
            self._step(optimizers)

    def _step(self, optimizers: Sequence[Any]) -> None:
        agent, state, obs = self.agent, self.envs.state, self.obs
        action = agent.act(obs, self.step)
        outcome = self.envs.step(action)
        continues = (~outcome.terminated).float()
        real = RealSteps(obs, action, outcome.reward, continues, outcome.obs)
        agent.source.remember(state, real)
        self._return += outcome.reward
        self._length += 1
        self.reward += outcome.reward
        self.obs = outcome.obs
        if outcome.terminated.any():
            self._episodes_end(outcome.terminated)
        agent.learn(self.step, optimizers)
        self.step += 1

    def _episodes_end(self, over: Tensor) -> None:
        fresh = self.envs.reset(over)
        if not self.stale_observation:
            self.obs = fresh
        for n in over.nonzero().flatten().tolist():
            self.ended[n].append((float(self._return[n]), int(self._length[n])))
        self._return.masked_fill_(over, 0)
        self._length.masked_fill_(over, 0)

    def snapshot(self) -> dict[str, Any]:
        """All that the rest of the training depends on, the members' rows in order.

        See ``run.member_checkpoints``.
        """
        return {
            "step": self.step,
            "members": torch.arange(len(self.agent.seeds)),
            "results": {},
            "loop": {name: getattr(self, name) for name in _LOOP},
            "envs": self.envs.snapshot(),
            "memory": self.agent.source.memory.snapshot(),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Goes on from a snapshot."""
        self.step = state["step"]
        check_alike(state["loop"], {name: getattr(self, name) for name in _LOOP}, "loop")
        for name, value in state["loop"].items():
            setattr(self, name, value.to(self.obs.device))
        self.envs.restore(state["envs"])
        self.agent.source.restore(state["memory"])


@torch.no_grad()
def play(
    agent: ModelBasedDQN, seeds: Sequence[int], episodes: int, horizon: int, greedy: bool
) -> tuple[Tensor, Tensor, Tensor]:
    """Returns and lengths ``[N, K]`` of fresh episodes, and which were cut at ``horizon`` steps.

    episodes: K, of each member.

    seeds: one for each member, from which all that happens follows.
    """
    env, device = agent.env, agent.device

    def noise(purpose: str, size: int, kind: str) -> MemberNoise:
        block = max(1, 20_000 // (episodes * max(size, 1)))
        return MemberNoise(seeds, purpose, (episodes, size), kind, device, block=block)

    chance = noise("play events", env.step_noise_size, "uniform")
    gumbel = noise("play actions", env.action_size, "gumbel")
    codes = noise("play codes", agent.source.encode_noise_size, agent.source.noise_kind)
    state = env.reset(noise("play starts", env.reset_noise_size, "uniform").at(0))
    obs = env.observe(state)
    total = torch.zeros(len(seeds), episodes, device=device)
    length = torch.zeros_like(total, dtype=torch.int64)
    over = torch.zeros_like(total, dtype=torch.bool)
    for t in range(horizon):
        q = agent.values(obs, None if greedy else codes.at(t))
        action = q.argmax(-1) if greedy else boltzmann(q, agent.cfg.temperature, gumbel.at(t))
        state, obs, reward, terminated, _ = env.step(state, action, chance.at(t))
        total += reward.masked_fill(over, 0)
        length += ~over
        over |= terminated
        if env.episodic and over.all():
            break
    return total, length, ~over


class ModelBasedRollouts(StackedRollouts):
    """The training of the agents, and their evaluation in one batch."""

    method: ModelBased

    def __init__(self, method: ModelBased):
        super().__init__(method)
        self.training = StepTraining(method.agent, "stale-observation" in method.cfg.faithful)

    def evaluate(self) -> list[dict[str, Any]]:
        """All members in one batch, sampled and greedy.

        Each episode is cut at the environment's horizon.
        """
        method, epoch = self.method, self.method.current_epoch
        episodes, horizon = method.cfg.eval_episodes, method.spec.horizon
        seeds = [derive_seed(seed, "evaluation", epoch) for seed in method.seeds]
        members: list[dict[str, Any]] = [{} for _ in seeds]
        for prefix, greedy in (("eval", False), ("eval_greedy", True)):
            returns, lengths, cut = play(method.agent, seeds, episodes, horizon, greedy)
            for n, scores in enumerate(members):
                scores[prefix] = (returns[n].tolist(), lengths[n].tolist(), cut[n].tolist())
        return members


class WorldPolicy(Actor):
    """Boltzmann actions for the values of features.

    Its parameters ``[1, D]``, of one member, are given and not copied.

    model, world: a world model and its parameters, which are saved with the policy; None: features
    are observations.
    """

    values: Tensor
    world: Tensor

    def __init__(
        self,
        net: MemberMLP,
        values: Tensor,
        temperature: float,
        model: WorldModel | None = None,
        world: Tensor | None = None,
    ):
        super().__init__()
        self.value_net, self.temperature, self.action_size = net, temperature, net.out_size
        self.model = model
        self.register_buffer("values", values)
        self.register_buffer("world", torch.empty(1, 0) if world is None else world)
        self.noise_size = self.action_size
        if model is not None:
            self.noise_size += model.encode_noise_size

    def draw_noise(self, rng: np.random.Generator, shape: tuple[int, ...]) -> FloatArray:
        action = Categorical.draw_noise(rng, (*shape[:-1], self.action_size))
        if self.model is None:
            return action
        code = NOISE[self.model.noise_kind](rng, (*shape[:-1], self.model.encode_noise_size))
        return np.concatenate([action, code.astype(np.float32)], axis=-1)

    def act(self, obs: Tensor, command: Tensor | None, noise: Tensor) -> Tensor:
        """Actions ``[B]`` for obs ``[B, O]``.

        Zero noise gives the greedy action, for the mode of a latent.
        """
        action, code = noise.split([self.action_size, noise.shape[-1] - self.action_size], dim=-1)
        features = self.features(obs, code)
        q = self.value_net(self.values, features.unsqueeze(0)).squeeze(0)
        return (q / self.temperature + action).argmax(-1)

    def features(self, obs: Tensor, code: Tensor) -> Tensor:
        """Features ``[B, X]`` for obs ``[B, O]`` and noise ``[B, Z]``.

        A row of zeros stands for the mode of the latent.
        """
        if self.model is None:
            return obs
        layers, x = self.model.kept_layers(self.world), obs.unsqueeze(0)
        mode = self.model.encode(layers, x, None).squeeze(0)
        if not code.any():
            return mode
        sample = self.model.encode(layers, x, code.unsqueeze(0)).squeeze(0)
        return torch.where((code == 0).all(-1, keepdim=True), mode, sample)


@register_method("ER", "perfect-model", "simple-model", "categorical-latent", "gaussian-latent")
class ModelBased(StackedMethod):
    """A stack of one of the five agents and its training."""

    Config = ModelBasedConfig
    # Its softmax is there to explore; the paper evaluates the best actions.
    action_mode = "greedy"
    monitor = "eval_greedy/return_mean"
    agent: ModelBasedDQN

    @classmethod
    def why_unsupported(cls, spec: EnvSpec) -> str | None:
        env = func_env(spec)
        if env and env.binary_obs and not env.continuous and env.action_size <= 256:
            return None  # bits and actions are kept as bytes
        return (
            "it needs observations of bits in batched torch, 256 actions at most and rewards "
            "that are not held back; use procmaze, buttongrid, panflute or a grid world"
        )

    def build(self) -> ModelBasedDQN:
        env = func_env(self.spec)
        assert env is not None  # or it would be a why_unsupported
        return ModelBasedDQN(self.cfg, env, self.seeds)

    def make_policy(self, row: int) -> Actor:
        agent, source = self.agent, self.agent.source
        values = agent.online.params.detach()[row : row + 1]
        if not isinstance(source, ModelRollouts):
            return WorldPolicy(agent.net, values, self.cfg.temperature)
        world = source.weights.params.detach()[row : row + 1]
        return WorldPolicy(agent.net, values, self.cfg.temperature, source.model, world)

    def rollouts(self, num_workers: int = 0) -> ModelBasedRollouts:
        """The training and the evaluation of the agents; both play in this process, in batches."""
        return ModelBasedRollouts(self)

    def train_epoch(self, batch: StepTraining) -> None:
        steps = self.decisions(batch.step, batch.step)
        batch.run(steps, batch.step % self.cfg.steps_per_epoch == 0, self.optimizers())
        ended = torch.tensor([len(episodes) for episodes in batch.ended], device=self.device)
        self.counter("env_steps").fill_(batch.step)
        self.counter("num_updates").fill_(self.agent.num_updates)
        self.counter("episodes").add_(ended)
        self.take_policies()
        self.sum_up()
        losses = self.agent.take_losses()
        speed = self.speed_scalars(steps * len(self.seeds))
        logged = []
        for n in range(len(self.seeds)):
            of_member = {name: float(value[n]) for name, value in losses.items()}
            logged.append(_rollout_scalars(batch, n, steps) | of_member | speed)
        self.log_members(logged)


def _rollout_scalars(training: StepTraining, member: int, steps: int) -> dict[str, float]:
    """Reward per step of the last ``steps``, and what their episodes returned, if any ended."""
    # No step at all where the budget was spent before.
    scalars = {"rollout/reward_rate": float(training.reward[member]) / max(steps, 1)}
    if training.ended[member]:
        returns, lengths = zip(*training.ended[member], strict=True)
        scalars["rollout/return_mean"] = sum(returns) / len(returns)
        scalars["rollout/length_mean"] = sum(lengths) / len(lengths)
    return scalars
