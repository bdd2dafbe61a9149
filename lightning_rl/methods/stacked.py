"""What methods share that train several seeds as one stack of members.

One run directory, logger and checkpoint for each.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, cast

import torch
from torch import Tensor, nn

from lightning_rl.core.checks import seeds_from, whole_number
from lightning_rl.core.errors import UserError
from lightning_rl.methods.base import Method, return_scalars
from lightning_rl.nets.policies import Actor
from lightning_rl.rollouts.data_module import Rollouts, with_greedy

MEMBER_COUNTERS = ("env_steps", "num_updates", "eval_env_steps", "episodes")
"""Columns of ``member_counters``; the plain counters are their maximum over the members."""

Scores = Mapping[str, tuple[Sequence[float], Sequence[int], Sequence[bool]]]
"""(returns, lengths, which of them a time limit ended) of evaluation episodes by the prefix of
their metrics.
"""


class StackedMethod(Method):
    """A stack of members; ``policies[n]`` is member n as a plain network.

    num_seeds: members with the seeds seed, seed + 1, ..
    """

    stackable, reloadable, policy_name = True, False, "policies.0"
    precisions = ("32-true",)
    auto_gpu = False  # whether a GPU is faster has not been measured
    member_counters: Tensor

    def __init__(self, gamename: str, *, num_seeds: int = 1, **options: Any):
        num_seeds = whole_number("--num_seeds", num_seeds, 1)
        super().__init__(gamename, **options)
        self.seeds = list(seeds_from(self.seed, num_seeds))
        if num_seeds > 1:
            # Lightning forgets what is ignored, also if it was saved.
            unsaved = [name for name in options if name not in self.hparams]
            self.save_hyperparameters({"num_seeds": num_seeds}, ignore=unsaved)
        self.agent = self.build()
        policies = nn.ModuleList(self.make_policy(n) for n in range(num_seeds))
        self.policies = cast(list[Actor], policies)
        counters = torch.zeros(num_seeds, len(MEMBER_COUNTERS), dtype=torch.int64)
        self.register_buffer("member_counters", counters)

    def build(self) -> Any:
        """The members that the config asks for."""
        raise NotImplementedError

    def make_policy(self, row: int) -> Actor:
        """Member ``row`` as a policy of its own."""
        raise NotImplementedError

    @property
    def policy(self) -> Actor:  # type: ignore[override]
        return self.policies[0]

    def make_optimizers(self) -> list[torch.optim.Optimizer]:
        return list(self.agent.optimizers())

    def decisions(self, taken: int, env_steps: int, repeat: int = 1) -> int:
        """How many decisions the epoch still has after ``taken`` in all.

        No more than lead to ``max_env_steps``.

        Epochs end at multiples of ``steps_per_epoch``, also where a run stopped within one and was
        resumed with a larger budget.
        repeat: the most environment steps that a decision takes.
        """
        rest = self.cfg.steps_per_epoch - taken % self.cfg.steps_per_epoch
        limit = self.cfg.max_env_steps
        if limit is None:
            return rest
        return max(0, min(rest, math.ceil((limit - env_steps) / repeat)))

    def setup(self, stage: str) -> None:
        super().setup(stage)
        loggers = len(self.loggers)
        seeds = len(self.seeds)
        if seeds > 1 and loggers not in (0, seeds):
            raise UserError(
                f"logger: {loggers} for {seeds} seeds; give one for each, in their order, or "
                "logger=False"
            )

    def finished(self) -> bool:
        """When ``max_env_steps`` are spent, as no epoch would take a step any more."""
        limit = self.cfg.max_env_steps
        return limit is not None and int(self.env_steps) >= limit

    def counter(self, name: str) -> Tensor:
        """The column of ``member_counters`` ``[N]`` of that name, to be written to."""
        return self.member_counters[:, MEMBER_COUNTERS.index(name)]

    def sum_up(self) -> None:
        """Fills the plain counters from those of the members."""
        for name, value in zip(MEMBER_COUNTERS, self.member_counters.amax(0), strict=True):
            getattr(self, name).copy_(value)

    def count_evaluation(self, env_steps: int) -> None:
        """Counts environment steps for the first member, whose policy ``policy`` is."""
        self.counter("eval_env_steps")[0] += env_steps
        self.sum_up()

    def log_members(self, scalars: Sequence[Mapping[str, float]]) -> None:
        """Writes each member's scalars to its own logger, over its own env_steps.

        A single member's go to all loggers.
        """
        for name in set.intersection(*map(set, scalars)):
            self.scalars[name] = sum(values[name] for values in scalars) / len(scalars)
        for n, values in enumerate(scalars):
            counters = dict(zip(MEMBER_COUNTERS, self.member_counters[n].tolist(), strict=True))
            own = {
                "time/num_updates": float(counters["num_updates"]),
                "time/episodes": float(counters["episodes"]),
            }
            loggers = self.loggers if len(self.seeds) == 1 else self.loggers[n : n + 1]
            for logger in loggers:
                logger.log_metrics({**values, **own}, step=counters["env_steps"])

    def validation_step(self, members: Sequence[Scores], batch_idx: int) -> None:  # type: ignore[override]
        """Logs each member's own evaluation.

        The best checkpoint is chosen by the mean over the members.
        """
        logged = []
        for n, scores in enumerate(members):
            eval_env_steps = self.counter("eval_env_steps")
            eval_env_steps[n] += sum(sum(lengths) for _, lengths, _ in scores.values())
            scalars = {"time/eval_env_steps": float(eval_env_steps[n])}
            for prefix, played in with_greedy(scores).items():
                scalars |= return_scalars(prefix, *played)
            logged.append(scalars)
        for prefix, (returns, *_) in with_greedy(members[0]).items():
            name = f"{prefix}/return_mean"
            mean = sum(scalars[name] for scalars in logged) / len(logged)
            self.report(name, mean, len(returns) * len(members))
        self.sum_up()
        self.log_members(logged)

    def take_policies(self) -> None:
        """Copies the members into ``policies``; stops the run where one is not finite."""
        for member, (seed, policy) in enumerate(zip(self.seeds, self.policies, strict=True)):
            state = self.make_policy(member).state_dict()
            total = sum(float(value.sum()) for value in state.values())
            self.check_finite(f"a network parameter of seed {seed}", total)
            policy.load_state_dict(state)


class StackedRollouts(Rollouts):
    """Hands ``training`` to the method once per epoch, and carries it in checkpoints.

    ``evaluate`` gives the scores of each.
    """

    training: Any

    def next_batch(self) -> Any:
        return self.training

    def transfer_batch_to_device(
        self, batch: Any, device: torch.device, dataloader_idx: int
    ) -> Any:
        return batch.to(device) if batch is self.training else batch

    def state_dict(self) -> dict[str, Any]:
        return cast(dict[str, Any], self.training.snapshot())

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.training.restore(state_dict)
