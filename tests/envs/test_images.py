"""Images: frames of pictures, stacks of frames, and who refuses them."""

import gymnasium
import numpy as np
import pytest
import torch
from gymnasium import spaces
from PIL import Image

import lightning_rl
from lightning_rl.core import extras
from lightning_rl.core.errors import UserError
from lightning_rl.core.gamenames import Images
from lightning_rl.core.types import Request
from lightning_rl.envs.gym import make_env, rollout_env
from lightning_rl.envs.images import area_weights
from lightning_rl.envs.spec import env_spec
from lightning_rl.methods.upside_down.method import UDRL
from lightning_rl.rollouts.episode_buffer import flatten
from lightning_rl.rollouts.player import Player, UniformActions


class Pictures(gymnasium.Env):
    """Noise as pictures of this space; the first pixel counts the steps."""

    def __init__(self, space, render_mode=None):
        self.observation_space, self.action_space = space, spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.step_number = 0
        return self._obs(), {}

    def step(self, action):
        self.step_number += 1
        return self._obs(), 1.0, self.step_number == 7, False, {}

    def _obs(self):
        self.observation_space.seed(int(self.np_random.integers(2**31)))
        obs = self.observation_space.sample()
        picture = obs["image"] if isinstance(obs, dict) else obs
        picture.flat[0] = self.step_number
        return obs


def bytes_of(*shape):
    return spaces.Box(0, 255, shape, np.uint8)


@pytest.fixture
def game():
    """Registers pictures of a space, seen so; the gamename."""

    def register(space, **images):
        lightning_rl.register_env(
            "pictures", Pictures, horizon=20, kwargs={"space": space}, images=Images(**images)
        )
        return "pictures"

    return register


FORMS = {
    "grey": (bytes_of(12, 10), (1, 12, 10)),
    "colours last": (bytes_of(12, 10, 3), (3, 12, 10)),
    "colours first": (bytes_of(3, 12, 10), (3, 12, 10)),
    "of a dict": (spaces.Dict(image=bytes_of(12, 10, 3), word=spaces.Text(5)), (3, 12, 10)),
}


@pytest.mark.parametrize(("space", "frame"), FORMS.values(), ids=FORMS)
def test_pictures_of_each_form_become_frames_colours_first(game, space, frame):
    spec = env_spec(game(space, frame_stack=2))
    picture = Pictures(space).reset(seed=5)[0]
    picture = picture["image"] if isinstance(picture, dict) else picture
    if picture.shape[-1] == 3:
        picture = np.moveaxis(picture, -1, 0)
    obs, _ = make_env(spec).reset(seed=5)
    assert obs.shape == (2 * frame[0], *frame[1:]) == spec.frames.shape
    assert (obs.reshape(2, *frame) == picture.reshape(frame)).all()


def test_colours_become_grey_as_image_libraries_have_it(game):
    spec = env_spec(game(bytes_of(12, 10, 3), frame_stack=1, grayscale=True))
    obs, _ = make_env(spec).reset(seed=5)
    picture = Pictures(bytes_of(12, 10, 3)).reset(seed=5)[0]
    expected = np.asarray(Image.fromarray(picture).convert("L"))
    assert obs.shape == (1, 12, 10)
    assert np.abs(obs[0].astype(int) - expected).max() <= 1


@pytest.mark.parametrize(("size", "target"), [(12, 4), (120, 32), (7, 3), (4, 8)])
def test_shrunk_pixels_are_means_by_area(size, target):
    weights = area_weights(size, target)
    fine = np.kron(np.eye(size), np.ones((1, target)))  # each pixel as so many
    expected = fine.reshape(size, target, size).mean(2).T
    assert weights == pytest.approx(expected, abs=1e-6)


def test_a_screen_is_shrunk(game):
    spec = env_spec(game(bytes_of(12, 10), frame_stack=1, screen_size=5))
    obs, _ = make_env(spec).reset(seed=5)
    picture = Pictures(bytes_of(12, 10)).reset(seed=5)[0].astype(float)
    fine = picture.repeat(5, axis=0)  # 60 rows of 10 columns: each pixel of the screen is 12 x 2
    by_hand = fine.reshape(5, 12, 5, 2).mean(axis=(1, 3))
    assert np.abs(obs[0] - by_hand).max() <= 1


def test_what_is_played_stores_frames_and_sees_the_newest_together(game):
    spec = env_spec(game(bytes_of(4, 4), frame_stack=3))
    requests = [Request(f"{i}", i, "uniform") for i in range(2)]
    episodes = Player(spec, UniformActions(spec)).play(requests)
    flat = flatten(episodes)
    for episode, first in zip(episodes, (0, 8), strict=True):
        assert (episode.obs.shape, episode.obs.dtype) == ((8, 16), np.uint8)
        env = make_env(spec)
        obs = [env.reset(seed=episode.request.seed)[0]]
        obs += [env.step(action)[0] for action in episode.action]
        expected = np.stack(obs).reshape(8, -1)
        assert (episode.seen() == expected).all()
        assert (flat.observed(torch.arange(first, first + 8)).numpy() == expected).all()
        assert [frame[0] for frame in expected[4].reshape(3, 16)] == [2, 3, 4]
    assert (expected[1].reshape(3, 16)[:2] == episode.obs[0]).all()


def test_skipped_frames_count_as_steps_and_their_rewards_are_summed(game):
    spec = env_spec(game(bytes_of(4, 4), frame_skip=3))
    (episode,) = Player(spec, UniformActions(spec)).play([Request("one", 0, "uniform")])
    assert episode.reward.tolist() == [3, 3, 1]
    assert episode.env_steps == 7
    assert [frame[0] for frame in episode.obs] == [0, 3, 6, 7]


REFUSED = {
    "no bytes": (spaces.Box(0, 1, (4, 4, 3), np.float32), {}, "images here are bytes"),
    "two images": (spaces.Dict(a=bytes_of(4, 4), b=bytes_of(4, 4)), {}, "one image"),
}


@pytest.mark.parametrize(("space", "images", "message"), REFUSED.values(), ids=REFUSED)
def test_other_images_are_refused_in_one_line(game, space, images, message):
    with pytest.raises(UserError, match=message):
        env_spec(game(space, **images))


def test_large_images_are_refused_where_nothing_shrinks_them(game):
    large = game(bytes_of(300, 400, 3))
    with pytest.raises(UserError, match=r"images of 300 x 400; .* set screen_size, e\.g\."):
        UDRL(large)
    assert UDRL(large, screen_size=16).spec.frames.shape[1:] == (16, 16)


def test_memory_is_asked_for_shrunk_images(game, tmp_path):
    """As they are, 100,000 of them would take 36 GB."""
    large = game(bytes_of(300, 400, 3))
    run = lightning_rl.train(
        "DDQN", large, screen_size=16, grayscale=True, max_epochs=1, logdir=tmp_path
    )
    assert run.method.spec.frames.shape == (4, 16, 16)


def test_methods_without_encoders_refuse_images():
    from lightning_rl.methods.agents import TD3

    with pytest.raises(UserError, match="its observations are images"):
        TD3("square")


def test_keys_of_images_are_refused_where_there_are_none():
    with pytest.raises(UserError, match="frame_stack 4: the observations of gamename 'cartpole'"):
        UDRL("cartpole", frame_stack=4)


def test_keys_change_how_an_environment_is_seen():
    method = UDRL("square", frame_stack=3, screen_size=16)
    assert method.spec.frames.shape == (3, 16, 16)
    assert rollout_env(method.spec).reset(seed=0)[0].shape == (256,)


@pytest.mark.parametrize("gamename", ["pong", "ALE/Breakout-v5"])
def test_without_its_package_one_line_says_how_to_install_atari(gamename, monkeypatch):
    monkeypatch.setattr(extras, "is_installed", lambda package: package != "ale_py")
    with pytest.raises(UserError, match=r"needs ale_py: pip install 'lightning_rl\[atari\]'$"):
        env_spec(gamename)
