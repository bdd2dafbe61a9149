"""Model-based generalisation (Young et al. 2023, arXiv 2211.02222): does experience from a learned model beat replay?

Five agents over one DQN core (``agents/model_based.py``), which differ in where the transitions of an update come from: ER
replays real ones, the others imagine as many, with the environment itself (perfect), with a model of observations (simple) or
of latents (categorical, Gaussian). An epoch is ``steps_per_epoch`` environment steps of every seed, with their updates.
"""

from __future__ import annotations

from typing import Any, cast

import torch
from pytorch_lightning.core.optimizer import LightningOptimizer

from lightning_rl.agents.model_based import ModelBasedConfig, ModelBasedDQN
from lightning_rl.agents.step_training import StepTraining, play
from lightning_rl.core.seeding import derive_seed
from lightning_rl.envs.adapters import func_env
from lightning_rl.envs.spec import EnvSpec
from lightning_rl.methods.registry import register_method
from lightning_rl.methods.stacked import Scores, StackedMethod
from lightning_rl.nets.policies import Policy
from lightning_rl.nets.world_policy import WorldPolicy
from lightning_rl.rollouts.data_module import Evaluation, Rollouts


@register_method("ER", "perfect-model", "simple-model", "categorical-latent", "gaussian-latent")
class ModelBased(StackedMethod):
    """A stack of one of the five agents and its training."""

    Config = ModelBasedConfig
    agent: ModelBasedDQN

    @classmethod
    def misfit(cls, spec: EnvSpec) -> str | None:
        env = func_env(spec)
        fits = env is not None and env.binary_obs and not env.continuous
        games = "procmaze, buttongrid, panflute or a grid world"
        return None if fits else f"its observations must be bits in batched torch; use {games}"

    def build(self) -> ModelBasedDQN:
        env = func_env(self.spec)
        assert env is not None  # or it would be a misfit
        return ModelBasedDQN(self.cfg, env, self.seeds)

    def optimisers(self) -> list[torch.optim.Optimizer]:
        return self.agent.optimizers()

    def make_policy(self, row: int) -> Policy:
        agent, rows = self.agent, slice(row, row + 1)
        source: Any = agent.source
        learned = (source.model, source.weights.params.detach()[rows]) if hasattr(source, "model") else None
        return WorldPolicy(agent.net, agent.online.params.detach()[rows], self.cfg.temperature, learned)

    def rollouts(self, num_workers: int = 0) -> ModelBasedRollouts:
        """The training and the evaluation of the agents; both play in this process, in batches."""
        return ModelBasedRollouts(self)

    def train_epoch(self, batch: StepTraining) -> None:
        steps = self.decisions(batch.step, batch.step)
        _, *optimizers = cast(list[LightningOptimizer], self.optimizers())  # without the clock
        batch.run(steps, batch.step % self.cfg.steps_per_epoch == 0, optimizers)
        self.member_counters[:, 0] = batch.step
        self.member_counters[:, 1] = self.agent.num_updates
        self.member_counters[:, 3] += torch.tensor([len(ended) for ended in batch.ended])
        for member, policy in enumerate(self.policies):
            policy.load_state_dict(self.make_policy(member).state_dict())
            self.check_member(member, sum(float(value.sum()) for value in policy.state_dict().values()))
        self.sum_up()
        losses = self.agent.take_losses()
        speed = self.speed_scalars(steps * len(self.seeds))
        self.log_members([
            {**_rollout_scalars(batch, n, steps), **{name: float(value[n]) for name, value in losses.items()}, **speed}
            for n in range(len(self.seeds))
        ])  # fmt: skip

    def validation_step(self, evaluated: list[Scores], batch_idx: int) -> None:  # type: ignore[override]
        self.take_evaluation(evaluated)


def _rollout_scalars(training: StepTraining, member: int, steps: int) -> dict[str, float]:
    """Reward per step of the last ``steps``, and what their episodes returned, if any ended."""
    scalars = {"rollout/reward_rate": float(training.reward[member]) / steps}
    if training.ended[member]:
        returns, lengths = zip(*training.ended[member], strict=True)
        scalars |= {"rollout/return_mean": sum(returns) / len(returns), "rollout/length_mean": sum(lengths) / len(lengths)}
    return scalars


class ModelBasedRollouts(Rollouts):
    """Hands the training to the method once per epoch, and carries it in checkpoints."""

    def __init__(self, method: ModelBased):
        super().__init__(ModelBasedEvaluation(method, None))
        self.steps_per_epoch = method.cfg.steps_per_epoch
        self.training = StepTraining(method.agent, "stale-observation" in method.cfg.faithful)

    def next_batch(self) -> StepTraining:
        return self.training

    def state_dict(self) -> dict[str, Any]:
        return self.training.snapshot()

    def layout(self, done: int) -> dict[str, Any]:
        return self.training.layout(done * self.steps_per_epoch)

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.training.restore(state_dict)


class ModelBasedEvaluation(Evaluation):
    """Evaluates all members in one batch, sampled and greedy; each episode is cut at the environment's horizon."""

    method: ModelBased

    def play(self) -> list[dict[str, Any]]:
        method, epoch = self.method, self.method.current_epoch
        seeds = [derive_seed(seed, "evaluation", epoch) for seed in method.seeds]
        members: list[dict[str, Any]] = [{} for _ in seeds]
        for prefix, greedy in (("eval", False), ("eval_greedy", True)):
            returns, lengths = play(method.agent, seeds, method.cfg.eval_episodes, method.spec.horizon, greedy)
            for scores, own, steps in zip(members, returns.tolist(), lengths.tolist(), strict=True):
                scores[prefix] = (own, steps)
        return members
