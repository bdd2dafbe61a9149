"""Datasets of episodes: from Minari, from a run of ours, or from a list."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from lightning_rl.core.contents import check_tensors
from lightning_rl.core.errors import UserError
from lightning_rl.core.kinds import MINARI, MINARI_ID, source
from lightning_rl.core.limits import shown
from lightning_rl.core.lines import say
from lightning_rl.core.types import Episode
from lightning_rl.envs.spaces import action_box_of, other_box
from lightning_rl.envs.spec import EnvSpec, env_spec
from lightning_rl.methods.restoring import refused
from lightning_rl.methods.upside_down.rollouts import UpsideDownRollouts
from lightning_rl.rollouts.episode_buffer import EpisodeBuffer
from lightning_rl.rollouts.offline import Dataset, checked_dataset, distinct
from lightning_rl.run.checkpoints import read_checkpoint
from lightning_rl.run.state import checkpoint_at


def load_dataset(where: str | Path | Sequence[Episode], gamename: str) -> Dataset:
    """The episodes of a dataset, checked: what ``train(..., dataset=...)`` learns from.

    Args:
        where: a Minari dataset, by its folder or id; a run directory or checkpoint of UDRL, RCP-R
            or RCP-A, with the episodes that it keeps; or a list of ``Episode``.
        gamename: the environment that they are of.

    Returns:
        The dataset; ``episodes`` is the list.

    Raises:
        UserError: it is not there, damaged, empty, or of another environment.
    """
    return read_dataset(source.check("dataset", where), env_spec(gamename))


def read_dataset(where: str | Sequence[Any], spec: EnvSpec) -> Dataset:
    """``load_dataset`` of what is known to be a path, an id or a list."""
    if not isinstance(where, str):
        return checked_dataset("episodes", where, spec)
    from lightning_rl.envs.minari_data import folder_of, read_minari, shared_folder

    folder = folder_of(where)
    if folder is not None:
        env_id, episodes = read_minari(folder, spec)
        own_id = spec.env.rpartition(":")[2] if isinstance(spec.env, str) else spec.gamename
        if env_id not in (None, own_id):
            say(f"dataset '{where}' says that it is of {env_id}; '{spec.gamename}' is {own_id}")
        return checked_dataset(where, _whole(episodes, where), spec)
    if not Path(where).exists() and MINARI_ID.fullmatch(where):
        name = where.removeprefix(MINARI)
        raise UserError(
            f"dataset '{name}' is not in '{shared_folder()}'; minari download {name} gets it, if "
            "there is one"
        )
    return checked_dataset(where, _kept_by(checkpoint_at(Path(where)), spec), spec)


def _whole(episodes: Iterator[Episode], name: str) -> Iterator[Episode]:
    """The episodes of a file; UserError, with its number, for one that cannot be read."""
    for number in itertools.count():
        try:
            yield next(episodes)
        except StopIteration:
            return
        except (ValueError, TypeError, KeyError, OSError, AssertionError) as error:
            raise UserError(f"dataset '{name}', episode {number}: {error}") from error


def _kept_by(path: Path, spec: EnvSpec) -> Iterable[Episode]:
    """The episodes that a checkpoint keeps, each once."""
    content = read_checkpoint(path)
    hparams = content["hyper_parameters"]
    _require_same_task(path, hparams["gamename"], spec)
    state = content.get(UpsideDownRollouts.__qualname__)
    if not isinstance(state, dict) or not state.get("buffer"):
        raise UserError(
            f"checkpoint '{path}' keeps no episodes; give the last.ckpt of a run of UDRL, RCP-R or "
            "RCP-A that has played"
        )
    with refused(path, "give another dataset"):
        own_box = action_box_of(spec.action_space)
        reason = other_box(hparams.get("action_box"), own_box, spec.gamename)
        if reason is not None:
            raise ValueError(reason)
        check_tensors(state["buffer"], "buffer")
        buffer = EpisodeBuffer(newest=None)
        buffer.load_state_dict(state["buffer"], spec)
    return distinct(buffer.episodes)


def _require_same_task(path: Path, gamename: str, spec: EnvSpec) -> None:
    """UserError where episodes of ``gamename`` are none of ``spec``; those of a task that pays at
    each step are some of the one that pays at the end.
    """
    if gamename == spec.gamename:
        return
    played = env_spec(gamename)
    same = (played.env, played.kwargs, played.repeat) == (spec.env, spec.kwargs, spec.repeat)
    if not same or (played.sparse and not spec.sparse):
        raise UserError(
            f"'{path}' has episodes of {shown(gamename)}, not of '{spec.gamename}'; give another "
            f"dataset, or --gamename {gamename}"
        )
