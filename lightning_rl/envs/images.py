"""Images: how the pictures that an environment gives become what networks see.

A picture is made grey and shrunk to a frame ``[C, height, width]`` of bytes; policies see the
newest few frames together, oldest first. Episodes and memories keep single frames.
"""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import Any

import numpy as np
from gymnasium import spaces
from gymnasium.utils import RecordConstructorArgs
from gymnasium.wrappers import TransformObservation

from lightning_rl.core.errors import UserError
from lightning_rl.core.gamenames import Images
from lightning_rl.core.limits import SCREEN, shown
from lightning_rl.core.types import Array, FloatArray
from lightning_rl.envs.spaces import Env, ObsWrapper, ResetOutcome, image_key

_LUMA = np.array([0.299, 0.587, 0.114], dtype=np.float32)
"""Weights of red, green and blue in a grey (ITU-R BT.601)."""
_MOST_COLOURS = 4


@dataclass(frozen=True)
class Frames:
    """What networks see of images: the newest ``stack`` frames ``[channels, height, width]``."""

    channels: int
    height: int
    width: int
    stack: int

    @property
    def size(self) -> int:
        """Bytes of one frame."""
        return self.channels * self.height * self.width

    @property
    def shape(self) -> tuple[int, int, int]:
        """Of all frames that a policy sees."""
        return self.stack * self.channels, self.height, self.width


def frames_of(env_id: str, space: spaces.Box, images: Images) -> Frames:
    """The frames of pictures; UserError where they are no bytes, or no pictures of a usual form."""
    colours, height, width = _colours_first(space.shape)
    if space.dtype != np.uint8 or colours > SCREEN or not min(height, width) >= 1:
        raise UserError(
            f"the observations of {env_id} are {shown(space)}; images here are bytes (uint8) of "
            "the shape (height, width), (height, width, colours) or (colours, height, width): wrap "
            "the environment"
        )
    side = images.screen_size
    if images.grayscale and colours == len(_LUMA):
        colours = 1
    return Frames(colours, side or height, side or width, images.frame_stack)


def _colours_first(shape: tuple[int, ...]) -> tuple[int, int, int]:
    """Colours, height and width of a picture of this shape."""
    if len(shape) == 2:
        return 1, *shape
    if _colours_are_last(shape):
        return shape[2], shape[0], shape[1]
    return shape  # type: ignore[return-value]


def _colours_are_last(shape: tuple[int, ...]) -> bool:
    return len(shape) == 3 and shape[2] <= _MOST_COLOURS


def area_weights(size: int, target: int) -> FloatArray:
    """The matrix ``[target, size]`` that averages ``size`` pixels to ``target``, each by its area.

    ``rows @ picture @ columns.T`` is what image libraries call area interpolation.
    """
    edges = np.arange(target + 1) * size / target
    pixels = np.arange(size)
    end = np.minimum(edges[1:, None], pixels + 1)
    begin = np.maximum(edges[:-1, None], pixels)
    overlap = np.maximum(end - begin, 0.0)
    return (overlap * target / size).astype(np.float32)


def only_image(env: Env) -> Env:
    """The environment with the image of a Dict as its observation."""
    key = image_key(env.observation_space)
    if key is None:
        return env
    space = env.observation_space[key]  # type: ignore[index]
    return TransformObservation(env, operator.itemgetter(key), space)


class FrameEnv(ObsWrapper, RecordConstructorArgs):
    """Gives the frame of each picture, as one row of bytes."""

    def __init__(self, env: Env, frames: Frames):
        RecordConstructorArgs.__init__(self, frames=frames)
        super().__init__(env)
        shape = env.observation_space.shape
        assert shape is not None
        colours, height, width = _colours_first(shape)
        self._colours_are_last = _colours_are_last(shape)
        self._is_made_grey = frames.channels < colours
        self._rows: FloatArray | None = None
        if (frames.height, frames.width) != (height, width):
            self._rows = area_weights(height, frames.height)
            self._columns = area_weights(width, frames.width).T
        self.observation_space = spaces.Box(0, 255, (frames.size,), np.uint8)

    def observation(self, picture: Array) -> Array:
        """The frame of a picture, ``[C * height * width]``."""
        if picture.ndim == 2:
            picture = picture[np.newaxis]
        elif self._colours_are_last:
            picture = np.moveaxis(picture, 2, 0)
        if self._is_made_grey:
            picture = np.tensordot(_LUMA, picture, 1)[np.newaxis]
        if self._rows is not None:
            picture = self._rows @ picture.astype(np.float32) @ self._columns
        if picture.dtype != np.uint8:
            picture = np.rint(picture).astype(np.uint8)
        return picture.reshape(-1)


class StackFrames(ObsWrapper, RecordConstructorArgs):
    """Gives the newest frames together, ``frames.shape``, oldest first; at first the same ones."""

    def __init__(self, env: Env, frames: Frames):
        RecordConstructorArgs.__init__(self, frames=frames)
        super().__init__(env)
        self.frames = frames
        self._kept = np.zeros((frames.stack, frames.size), np.uint8)
        self.observation_space = spaces.Box(0, 255, frames.shape, np.uint8)

    def reset(self, **kwargs: Any) -> ResetOutcome:
        frame, info = self.env.reset(**kwargs)
        self._kept = np.repeat(frame[np.newaxis], self.frames.stack, axis=0)
        return self._kept.reshape(self.frames.shape), info

    def observation(self, frame: Array) -> Array:
        """The newest frames, of which this is the last."""
        self._kept = np.concatenate([self._kept[1:], frame[np.newaxis]])
        return self._kept.reshape(self.frames.shape)
