"""Pareto-conditioned networks: how an epoch goes.

A policy is taught, by supervised learning on the agent's own episodes, which action comes before a
given return of each objective. It is asked for the best returns so far with a little more of one
objective, and the episodes nearest to the best ones are kept. So one policy learns all compromises
at once, and is told at the beginning of an episode which one is meant.

Where we differ from the paper (Reymond et al. 2022, arXiv 2204.05036) and its code: commands are
standardised by what is in the buffer; each episode has a command of its own; of equal episodes in
the buffer each return keeps about as many; an update sees a step of a uniformly drawn episode, as
in the code.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from lightning_rl.core.errors import UserError
from lightning_rl.core.limits import shown
from lightning_rl.core.seeding import seeded_torch
from lightning_rl.core.types import ActionMode, Episode
from lightning_rl.functional.command_rule import Decrease
from lightning_rl.functional.pareto import hypervolume, non_dominated
from lightning_rl.methods.pareto.buffer import vector_returns
from lightning_rl.methods.pareto.config import ParetoConfig
from lightning_rl.methods.pareto.rollouts import ParetoEpoch, ParetoRollouts
from lightning_rl.methods.pareto.target import FrontTarget
from lightning_rl.methods.registry import register_method
from lightning_rl.methods.upside_down.method import Commanded
from lightning_rl.nets.command import GatedNet
from lightning_rl.rollouts.player import Collector, CommandRule
from lightning_rl.rollouts.vector_player import VectorPlayer


@register_method("PCN")
class PCN(Commanded):
    """A policy that is asked for a return of each objective, and its supervised training.

    Arguments and errors are those of ``Method``. Own network: ``policy`` takes obs ``[..., O]`` and
    command ``[..., K + 1]``, gives logits ``[..., A]`` or mean and log deviation ``[..., 2A]``.

    Example:
        >>> method = PCN("deep-sea-treasure", seed=0)
        >>> pl.Trainer(max_epochs=50).fit(method, datamodule=method.rollouts())

    Attributes:
        objectives: their names; of a task with one reward ``("return",)``.
        target: the best returns so far, and the commands of the next episodes.
        reference: the returns that a hypervolume is measured from ``[K]``.
    """

    Config = ParetoConfig
    action_mode: ActionMode = "greedy"
    monitor = "eval/hypervolume"
    auto_gpu = False  # it was not tried on one
    cfg: ParetoConfig
    reference: Tensor

    def __init__(self, gamename: str, **options: Any):
        super().__init__(gamename, **options)
        cfg, spec = self.cfg, self.spec
        self.objectives = spec.objectives or ("return",)
        self.command_names = (*self.objectives, "horizon")
        count = len(self.objectives)
        if cfg.reference is not None and len(cfg.reference) != count:
            raise UserError(
                f"reference {shown(cfg.reference)}: gamename '{gamename}' has the objectives "
                f"{', '.join(self.objectives)}; give a number for each"
            )
        outputs = spec.distribution().output_size(spec.action_size)
        with seeded_torch(self.seed, "initialisation"):
            net = self.network(
                "policy",
                lambda: GatedNet(spec.obs_size, count + 1, outputs, cfg.hidden),
                takes=[spec.obs_size, count + 1],
                gives=[outputs],
            )
        self.make_policies(net, [1.0] * (count + 1))
        self.target = FrontTarget(count, cfg.front_size)
        self.register_buffer("reference", torch.tensor(cfg.reference or [0.0] * count))

    def rollouts(self, num_workers: int = 0) -> ParetoRollouts:
        return ParetoRollouts(self, num_workers)

    def collector(self, num_workers: int, nice: int = 0) -> Collector:
        collector = super().collector(num_workers, nice)
        collector.player = VectorPlayer(
            self.spec, collector.behaviour, collector.version, self.command_rule()
        )
        return collector

    # An epoch

    def train_epoch(self, batch: ParetoEpoch) -> None:
        """Fits the policy to what was obtained."""
        if self.cfg.reference is None and self.current_epoch == 0:
            self.reference.copy_(batch.worst)  # of random actions
        self.check_finite("the command", float(batch.command.abs().max()))
        self.see_in_deviations(batch.command)
        index = batch.index
        loss = self.fit_policy(batch.episodes, index, batch.command[index])
        self.env_steps += batch.env_steps
        self.episodes += batch.num_episodes
        speed = self.speed_scalars(batch.env_steps)
        self.log_scalars({**batch.scalars, "train/policy_loss": loss, **speed})

    # What is asked of the policy

    def first_command(self, given: Mapping[str, float] | None = None) -> tuple[float, ...]:
        """The return of the front that is nearest to the numbers given; of none, its best
        compromise.
        """
        numbers = (given or {}).items()
        return self.target.nearest({self.command_names.index(name): x for name, x in numbers})

    def command_rule(self) -> CommandRule:
        return Decrease()

    def validation_step(self, evaluated: Mapping[str, list[Episode]], batch_idx: int) -> None:
        super().validation_step(evaluated, batch_idx)
        episodes, count = evaluated["eval"], self.cfg.eval_episodes
        commands = [episode.request.command for episode in episodes[::count]]
        asked = np.array(commands)[:, :-1]
        obtained = vector_returns(episodes).reshape(len(asked), count, -1).mean(1)
        volume = hypervolume(obtained, self.reference.double().numpy())
        best = np.unique(obtained[non_dominated(obtained)].round(6), axis=0)
        scalars = {"eval/hypervolume": volume, "eval/front_size": float(len(best))}
        for name, error in zip(self.objectives, np.abs(obtained - asked).mean(0), strict=True):
            scalars[f"eval/{name}_error"] = float(error)
        self.log_scalars(scalars)
        self.report("eval/hypervolume", volume, len(episodes))
