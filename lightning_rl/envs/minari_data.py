"""Datasets in the form of Minari (Younis et al. 2024): read, and written as others read them.

They hold what an environment itself takes and gives: its own observations and actions, of every
step. What networks see of that, and what policies give, is made of it here.
"""

from __future__ import annotations

import contextlib
import copy
import importlib
import json
import os
import shutil
import tempfile
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import gymnasium
import numpy as np
from gymnasium import Space, spaces
from gymnasium.envs.registration import EnvSpec as GymSpec

from lightning_rl.core.errors import UserError
from lightning_rl.core.extras import require
from lightning_rl.core.files import explained, make_folder, read_text
from lightning_rl.core.kinds import MINARI
from lightning_rl.core.limits import shorten, shown
from lightning_rl.core.types import Array, Episode
from lightning_rl.envs.gym import rollout_env
from lightning_rl.envs.images import FrameEnv
from lightning_rl.envs.spaces import (
    Env,
    ResetOutcome,
    StepOutcome,
    Wrapper,
    action_box_of,
    image_key,
    image_space,
    other_box,
)
from lightning_rl.envs.spec import EnvSpec
from lightning_rl.gym import registered

_METADATA = "metadata.json"
_ROUNDING = 1e-4  # in units of the box: how far an action that was rounded may leave it


def minari(submodule: str = "") -> ModuleType:
    """The package, or a module of it; UserError where it, or what reads its files, is missing."""
    require("a Minari dataset", "minari", "h5py", "PIL")
    return importlib.import_module(f"minari{submodule}")


def folder_of(source: str) -> Path | None:
    """The folder that has the files of a dataset, by its path or id; None where none is there."""
    places = [Path(source)]
    if source.startswith(MINARI):
        places = []
    if not places or not places[0].exists():
        places = [shared_folder() / source.removeprefix(MINARI)]
    for folder in (places[0], places[0] / "data"):
        if (folder / _METADATA).is_file():
            return folder
    return None


def shared_folder() -> Path:
    """Where Minari has the datasets that are called by their id."""
    return Path(os.environ.get("MINARI_DATASETS_PATH", Path.home() / ".minari" / "datasets"))


# Reading


def read_minari(folder: Path, spec: EnvSpec) -> tuple[str | None, Iterator[Episode]]:
    """The id of the environment that a dataset says it is of, if any, and its episodes.

    Raises:
        UserError: it is damaged, or its actions are not those of ``spec``. While the episodes are
            read: ValueError, for one that is not as its spaces say.
    """
    package = minari()
    try:
        metadata = json.loads(read_text(folder / _METADATA, "dataset"))
        for key in ("observation_space", "action_space"):
            if not isinstance(metadata[key], str):  # else Minari would make its environment
                raise ValueError(f"its {key} is {shown(metadata[key])}")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            data = package.MinariDataset(folder)
        episodes = data.iterate_episodes()
        space = data.action_space
    except UserError:
        raise
    except Exception as error:  # whatever is raised by files that are not as they should be
        reason = f"lacks {error}" if isinstance(error, KeyError) else shorten(str(error), 200)
        raise UserError(
            f"'{folder}' cannot be read as a Minari dataset: {reason}; give another, or write it "
            "anew"
        ) from error
    env_id = getattr(data.env_spec, "id", None)
    if spec.repeat > 1:
        raise UserError(
            f"dataset: '{spec.gamename}' repeats each action {spec.repeat} times, a Minari dataset "
            "has single steps; set frame_skip=1"
        )
    if spec.masked:
        raise UserError("dataset: a Minari dataset has no masks of actions; leave out action_masks")
    require_actions(space, spec, env_id or "NAME, where it was recorded")
    return env_id, (_played(each, spec) for each in episodes)


def require_actions(space: Space[Any], spec: EnvSpec, recorded_in: str) -> None:
    """UserError where the actions of a dataset are others than those of the environment."""
    own = spec.action_space
    same = space == own
    if isinstance(space, spaces.Box) and isinstance(own, spaces.Box) and space.shape == own.shape:
        reason = other_box(action_box_of(space), action_box_of(own), spec.gamename)
        if reason is not None:
            raise UserError(f"dataset: {reason.partition(';')[0]}; record it without rescaling")
        same = True
    if not same:
        raise UserError(
            f"dataset: its actions are {shown(space)}, those of '{spec.gamename}' {shown(own)}; "
            f"give another dataset, or --gamename {recorded_in}"
        )


def _played(data: Any, spec: EnvSpec) -> Episode:
    """An episode as it would have been played here; ValueError where it does not hold together."""
    reward = np.asarray(data.rewards)
    ends = np.asarray(data.terminations, bool), np.asarray(data.truncations, bool)
    if any(end.shape != reward.shape for end in ends):
        raise ValueError(f"its {len(reward)} steps have {len(ends[0])} terminations")
    if any(end[:-1].any() for end in ends):
        raise ValueError("it goes on after its end; split it there")
    return Episode(
        obs=_stored_rows(spec, data.observations),
        action=_in_units(spec.action_space, np.asarray(data.actions)),
        reward=reward,
        terminated=bool(ends[0][-1:].any()),
        truncated=bool(ends[1][-1:].any()),
    )


def _stored_rows(spec: EnvSpec, obs: Any) -> Array:
    """Observations as episodes keep them; ValueError where they are none of the environment."""
    assert spec.observation_space is not None
    if spec.frames is None:
        return flat_rows(spec.observation_space, obs)
    space, key = image_space(spec.observation_space), image_key(spec.observation_space)
    assert space is not None
    if key is not None and not isinstance(obs, dict):
        raise ValueError(f"its observations are no Dict with '{key}', as the environment's are")
    pictures = np.asarray(obs if key is None else obs[key])
    if pictures.shape[1:] != space.shape or pictures.dtype != np.uint8:
        raise ValueError(f"its images are {pictures.dtype} {pictures.shape[1:]}, not of {space}")
    maker = FrameEnv(_Pictures(space), spec.frames)
    return np.stack([maker.observation(picture) for picture in pictures])


class _Pictures(gymnasium.Env[Any, Any]):
    """Has a space of pictures, and is not played."""

    def __init__(self, space: Space[Any]):
        self.observation_space = space


def flat_rows(space: Space[Any], obs: Any) -> Array:
    """Observations that are stacked part by part, each as one vector, ``[T, O]``.

    ValueError where they are none of the space. What is stacked as vectors stays as it is.
    """
    if isinstance(obs, np.ndarray) and obs.ndim == 2 and obs.shape[1] == spaces.flatdim(space):
        return obs
    try:
        return np.concatenate(list(_flat_parts(space, obs)), axis=1)
    except (KeyError, IndexError, TypeError, AttributeError, ValueError) as error:
        what = shown(space)
        raise ValueError(f"its observations are not of {what}, as the environment's are") from error


def _flat_parts(space: Space[Any], obs: Any) -> Iterator[Array]:
    if isinstance(space, spaces.Dict):
        for name, part in space.spaces.items():
            yield from _flat_parts(part, obs[name])
    elif isinstance(space, spaces.Tuple):
        for number, part in enumerate(space.spaces):
            yield from _flat_parts(part, obs[number])
    elif isinstance(space, spaces.Discrete):
        yield _one_hot(np.asarray(obs) - space.start, int(space.n))
    elif isinstance(space, spaces.MultiDiscrete):
        columns = (np.asarray(obs) - space.start).reshape(len(obs), -1)
        for column, count in zip(columns.T, space.nvec.flatten(), strict=True):
            yield _one_hot(column, int(count))
    else:
        if np.shape(obs)[1:] != space.shape:
            raise ValueError
        yield np.reshape(obs, (len(obs), -1))


def _one_hot(index: Array, count: int) -> Array:
    if index.ndim != 1 or index.min() < 0:  # which would count from the end
        raise ValueError
    return np.eye(count, dtype=np.float32)[index]


def _in_units(space: Space[Any] | None, action: Array) -> Array:
    """An environment's own actions as policies give them, see ``OwnAction``."""
    if isinstance(space, spaces.Discrete):
        return action - int(space.start)
    if isinstance(space, spaces.MultiDiscrete):
        return action - space.start
    assert isinstance(space, spaces.Box)
    low, high = space.low.astype(np.float64), space.high.astype(np.float64)
    units = 2 * (action - low) / (high - low) - 1
    most = np.abs(units).max(initial=0.0)
    if most > 1 + _ROUNDING:
        raise ValueError(
            f"its actions go from {action.min():g} to {action.max():g}, out of {shown(space)}; "
            "clip them as the environment does, or leave it out"
        )
    return units.clip(-1, 1)


# Writing


@dataclass
class OwnEpisode:
    """What an environment was asked and has answered, in its own words."""

    seed: int | None
    obs: list[Any]
    action: list[Any] = field(default_factory=list)
    reward: list[float] = field(default_factory=list)
    terminated: bool = False


class RecordedEnv(Wrapper):
    """Keeps what its environment is asked and answers, in ``record``: the last episode."""

    record: OwnEpisode

    def reset(self, **kwargs: Any) -> ResetOutcome:
        obs, info = self.env.reset(**kwargs)
        self.record = OwnEpisode(kwargs.get("seed"), [copy.deepcopy(obs)])
        return obs, info

    def step(self, action: Any) -> StepOutcome:
        asked = copy.deepcopy(action)
        obs, reward, terminated, truncated, info = self.env.step(action)
        self.record.obs.append(copy.deepcopy(obs))
        self.record.action.append(asked)
        self.record.reward.append(float(reward))
        self.record.terminated = bool(terminated)
        return obs, reward, terminated, truncated, info


def recorded_env(spec: EnvSpec) -> tuple[Env, RecordedEnv]:
    """An environment to play in, and the part of it that keeps what it does itself: each step of a
    repeated action, rewards as they are paid, actions in its own box.
    """
    inner: list[RecordedEnv] = []

    def keep(env: Env) -> Env:
        inner.append(RecordedEnv(env))
        return inner[0]

    return rollout_env(spec, around=keep), inner[0]


def write_minari(
    folder: Path,
    name: str,
    spec: EnvSpec,
    episodes: Sequence[OwnEpisode],
    about: Mapping[str, str],
) -> None:
    """Writes a dataset that Minari reads; where that fails nothing is there.

    Args:
        folder: of the dataset, which must not be there.
        name: the id of the dataset.
        spec: the environment, which can be recovered unless it is a function of the user's.
        episodes: an episode that is not terminated was truncated, by the time limit of ``spec``.
        about: further entries of its metadata.
    """
    package, storages = minari(), minari(".dataset.minari_storage")
    folder = folder.absolute()  # Minari does not find the files of a relative one
    make_folder(folder.parent)
    with explained(folder):
        part = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
    try:
        with warnings.catch_warnings(), explained(folder):
            warnings.simplefilter("ignore")  # of facts that nobody has to give
            storage = storages.MinariStorage.new(
                part / "data",
                observation_space=spec.observation_space,
                action_space=spec.action_space,
                env_spec=_recoverable(spec),
                jpeg_encoding=False,  # which would change images
            )
            storage.update_metadata(
                {"dataset_id": name, "minari_version": package.__version__, **about}
            )
            buffers = minari(".data_collector.episode_buffer")
            storage.update_episodes(
                buffers.EpisodeBuffer(**_content(episode, spec)) for episode in episodes
            )
            part.chmod(0o755)
            part.rename(folder)
    finally:
        with contextlib.suppress(OSError):
            shutil.rmtree(part)


def _content(episode: OwnEpisode, spec: EnvSpec) -> dict[str, Any]:
    assert spec.observation_space is not None
    assert spec.action_space is not None
    ends = np.zeros((2, len(episode.reward)), dtype=bool)
    ends[:, -1] = episode.terminated, not episode.terminated
    return {
        "seed": episode.seed,
        "observations": _stacked(spec.observation_space, episode.obs),
        "actions": _stacked(spec.action_space, episode.action),
        "rewards": np.array(episode.reward, dtype=np.float64),
        "terminations": ends[0],
        "truncations": ends[1],
        "infos": {},
    }


def _stacked(space: Space[Any], values: Sequence[Any]) -> Any:
    """Values of a space behind one another, part by part."""
    if isinstance(space, spaces.Dict):
        parts = space.spaces.items()
        return {name: _stacked(part, [each[name] for each in values]) for name, part in parts}
    if isinstance(space, spaces.Tuple):
        return tuple(
            _stacked(part, [each[number] for each in values])
            for number, part in enumerate(space.spaces)
        )
    return np.array(values, dtype=space.dtype)


def _recoverable(spec: EnvSpec) -> GymSpec | None:
    """What Gymnasium makes the environment from, with its time limit; None of a function."""
    if callable(spec.env):
        return None
    entry = copy.deepcopy(registered(spec.env))
    entry.kwargs = {**entry.kwargs, **dict(spec.kwargs)}
    entry.max_episode_steps = spec.horizon
    return entry
