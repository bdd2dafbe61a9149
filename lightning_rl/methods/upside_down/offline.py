"""Upside-down RL on episodes that others have played: epochs without a simulator."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from lightning_rl.core.errors import UserError
from lightning_rl.core.limits import shown
from lightning_rl.core.seeding import generator
from lightning_rl.core.types import Episode
from lightning_rl.methods.upside_down.rollouts import UpsideDownEpoch, UpsideDownRollouts
from lightning_rl.rollouts.episode_buffer import EpisodeBuffer, flatten
from lightning_rl.rollouts.offline import Dataset, best_episodes, checked_dataset

if TYPE_CHECKING:
    from lightning_rl.methods.upside_down.method import UpsideDown


class OfflineRollouts(UpsideDownRollouts):
    """The same without playing: every epoch draws its steps from all episodes of a dataset.

    Those that are held out are drawn once, from the share of the dataset that is used at all. A
    checkpoint has the dataset's digest, not its episodes: whoever resumes gives these again.

    Args:
        method: a method with ``offline``.
        num_workers: processes that play evaluations; 0: this one.
        dataset: the episodes; UserError where there are none, or they do not fit the environment.
    """

    def __init__(
        self, method: UpsideDown, num_workers: int, dataset: Dataset | Sequence[Episode] | None
    ):
        if not method.cfg.offline:
            raise UserError("a dataset goes with offline=True; give both, or neither")
        if dataset is None:
            raise UserError("offline=True learns from a dataset; give rollouts(dataset=episodes)")
        super().__init__(method, num_workers)
        if not isinstance(dataset, Dataset | Sequence):
            raise UserError(f"dataset {shown(dataset)}: give a list of lightning_rl.Episode")
        if not isinstance(dataset, Dataset):
            dataset = checked_dataset("episodes", dataset, method.spec)
        self.dataset = dataset
        best = best_episodes(dataset.episodes, self.cfg.best_share)
        count = self.cfg.num_held_out_episodes_per_iter
        if count >= len(best):
            raise UserError(
                f"num_held_out_episodes_per_iter {count}: of the dataset's "
                f"{len(dataset.episodes):,} episodes {len(best):,} are used, of which some must be "
                "left to learn from; hold out fewer"
            )
        places = generator(self.run_seed, "held-out").permutation(len(best))[:count]
        held_out = [best[place] for place in sorted(places)]
        self.buffer = EpisodeBuffer(newest=None)
        self.buffer.add(best[place] for place in np.setdiff1d(range(len(best)), places))
        self._steps = self.buffer.flat()
        self._held_out = flatten(held_out) if held_out else None
        self._scalars_of_data = self.buffer_scalars()
        # also those of low return were played, to find the best among them
        self._num_episodes = len(dataset.episodes) - count
        self._held_out_steps = sum(episode.env_steps for episode in held_out)
        every = sum(episode.env_steps for episode in dataset.episodes)
        self._env_steps = every - self._held_out_steps

    def next_batch(self) -> UpsideDownEpoch:
        epoch = self.epoch
        self.epoch += 1
        self.target.update_from_buffer(self.buffer)
        index, segment = self.minibatches(epoch, self.cfg.steps_per_iter or 0, self._steps)
        counts = epoch == 0  # the data was played once
        if counts and self.method.normaliser is not None:
            self.method.normaliser.see(self._steps.obs)
        return UpsideDownEpoch(
            episodes=self._steps,
            index=index,
            segment=segment,
            held_out=self._held_out,
            env_steps=counts * self._env_steps,
            num_episodes=counts * self._num_episodes,
            held_out_env_steps=counts * self._held_out_steps,
            scalars=self._scalars_of_data,
        )

    def state_dict(self) -> dict[str, Any]:
        digest = torch.tensor(list(self.dataset.digest), dtype=torch.uint8)
        return {"epoch": self.epoch, "dataset": digest}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        if bytes(state_dict["dataset"].tolist()) != self.dataset.digest:
            raise ValueError(
                f"dataset: it learned from other episodes than those of '{self.dataset.name}' now"
            )
        self.epoch = state_dict["epoch"]
