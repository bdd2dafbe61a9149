"""Films: their story on every frame, several commands side by side, and a window where there is
a display.
"""

import io
import os
import sys
from types import SimpleNamespace

import gymnasium
import numpy as np
import pytest
from PIL import Image

from lightning_rl.cli import main
from lightning_rl.core.types import Request
from lightning_rl.envs import films
from lightning_rl.envs.films import Story, captioned, shown_env
from lightning_rl.envs.spec import env_spec
from lightning_rl.lab.films import evenly, gif, strips


@pytest.fixture
def told(monkeypatch):
    """What stands on the frames."""
    lines = []
    monkeypatch.setattr(films, "captioned", lambda frame, told: lines.append(list(told)) or frame)
    return lines


def test_every_frame_tells_the_command_the_step_and_the_return_so_far(told):
    frames = []
    story = Story(
        ("return", "horizon"),
        (20.0, 9.0),
        lambda command, reward: command - np.array([[reward[0], 1.0]], np.float32),
    )
    with shown_env(env_spec("cartpole"), story, frames.append) as env:
        env.reset(seed=0)
        for _ in range(2):
            env.step(0)
    assert told == [
        ["asked: return 20, horizon 9", "return 0.00   step 0"],
        ["asked: return 19, horizon 8", "return 1.00   step 1"],
        ["asked: return 18, horizon 7", "return 2.00   step 2"],
    ]
    assert len(frames) == 3
    with shown_env(env_spec("cartpole"), Story(asked="return 150"), frames.append) as env:
        env.reset(seed=0)
    assert told[-1] == ["asked: return 150", "return 0.00   step 0"]


def test_a_film_of_fewer_frames_has_the_last_one(told):
    frames = []
    with shown_env(env_spec("cartpole"), Story(), frames.append, at_most=12.5) as env:
        assert env.fps == 12.5
        env.reset(seed=0)
        steps, over = 0, False
        while not over:
            over = env.step(0)[2]
            steps += 1
    assert steps % 4  # else it proves nothing
    shown = [line for (line,) in told]
    assert [line.split()[-1] for line in shown] == [*map(str, range(0, steps, 4)), str(steps)]


@pytest.mark.parametrize(
    ("platform", "drawn"), [("linux", ["dummy", "egl"]), ("darwin", [None, None])]
)
def test_without_a_display_only_linux_is_told_how_to_draw(platform, drawn, monkeypatch):
    """macOS has no DISPLAY, but draws without being told; it has no EGL."""
    for each in ("DISPLAY", "WAYLAND_DISPLAY", "SDL_VIDEODRIVER", "MUJOCO_GL"):
        monkeypatch.setenv(each, "")  # so that it is put back, however the test leaves it
        monkeypatch.delenv(each)
    monkeypatch.setattr(sys, "platform", platform)
    monkeypatch.setattr(films, "rollout_env", lambda spec, render: gymnasium.Env())
    with shown_env(env_spec("cartpole"), Story(), print):
        assert [os.environ.get(each) for each in ("SDL_VIDEODRIVER", "MUJOCO_GL")] == drawn


def test_a_caption_stands_below_the_picture_and_small_ones_grow():
    frame = np.full((33, 65, 3), 200, np.uint8)
    page = captioned(frame, ["step 3"])
    assert page.shape[1] >= 400
    assert not page.shape[0] % 2
    assert not page.shape[1] % 2
    picture = 33 * 7 & ~1
    assert (page[:picture] == 200).all()
    below = page[picture:]
    assert below.max() > 200  # letters
    assert (captioned(frame, [])[picture:] == below[0, 0]).all()
    long = captioned(frame, ["step 3", "asked: " + 9 * "return 20, "])
    assert len(long) > len(page)
    assert (long[picture:, -4:] == below[0, 0]).all()  # a long line fits, too


def test_a_gif_has_commands_side_by_side_and_a_last_picture_that_stays():
    reels = [[np.zeros((20, 40, 3), np.uint8) for _ in range(count)] for count in (4, 8)]
    for reel in reels:
        for k, frame in enumerate(reel):
            frame[:, 4 * k : 4 * k + 4] = 250  # moves to the right
    picture = Image.open(io.BytesIO(gif(reels, 25.0)))
    assert picture.size == (40 + 8 + 40, 20)
    assert picture.n_frames == 5  # each second one of eight, and the last
    picture.seek(4)
    last = np.asarray(picture.convert("L"))
    assert (last[10] > 200).nonzero()[0].tolist() == [
        *range(12, 16),
        *range(40, 48),
        *range(76, 80),
    ]
    assert picture.info["duration"] == 3000


def test_a_strip_shows_each_film_from_its_first_to_its_last_frame():
    assert evenly(11) == [0, 2, 4, 6, 8, 10]
    assert evenly(1) == [0] * 6
    reels = [[np.full((20, 40, 3), 10 * k, np.uint8) for k in range(count)] for count in (6, 11)]
    picture = Image.open(io.BytesIO(strips(reels, 25.0)))
    assert picture.size == (6 * 40 + 5 * 8, 2 * 20 + 8)
    seen = np.asarray(picture.convert("L"))
    assert seen[10, 20::48].tolist() == [0, 10, 20, 30, 40, 50]
    assert seen[38, 20::48].tolist() == [0, 20, 40, 60, 80, 100]
    assert seen[10, 44] == seen[24, 20] == 255
    assert picture.text["Comment"] == "lightning_rl film"
    wide = [[np.zeros((20, 400, 3), np.uint8)]]
    assert Image.open(io.BytesIO(strips(wide, 25.0))).width == 1800


def test_an_agent_is_filmed(tmp_path, monkeypatch, capsys):
    file = tmp_path / "film.gif"
    words = ["film", "DDQN-cartpole", "--out", str(file)]
    monkeypatch.setattr(
        "lightning_rl.lab.films.Request", lambda *words, **more: Request("short", *words[1:])
    )
    monkeypatch.setattr(
        "lightning_rl.rollouts.player.Player.play", lambda self, requests, envs: [played(envs[0])]
    )
    assert main(words, "lightning-rl") == 0
    assert Image.open(file).n_frames > 3
    assert "no command: return " in capsys.readouterr().out
    strip = tmp_path / "film.png"
    for _ in range(2):  # its own file may be written over
        assert main([*words[:-1], str(strip)], "lightning-rl") == 0
    assert Image.open(strip).format == "PNG"
    assert main([*words[:-1], str(tmp_path / "film.mp4")], "lightning-rl") == 2
    assert (
        "films are written as GIF, or as strips of frames in a PNG; e.g. film.gif"
        in capsys.readouterr().err
    )
    file.write_bytes(b"mine")
    assert main(words, "lightning-rl") == 2
    capsys.readouterr()
    assert main(["film", "RCP-A-lunarlander", "retrun=1"], "lightning-rl") == 2
    assert "did you mean 'return'?" in capsys.readouterr().err


def test_a_window_opens_where_there_is_a_display(monkeypatch, capsys):
    """SDL's display without a screen: what is shown can be read back."""
    import pygame

    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    monkeypatch.setattr("lightning_rl.lab.films._STILL_S", 0.0)
    shown = []
    monkeypatch.setattr(
        pygame.display,
        "flip",
        lambda: shown.append(pygame.surfarray.array3d(pygame.display.get_surface())),
    )
    monkeypatch.setattr(
        "lightning_rl.rollouts.player.Player.play", lambda self, requests, envs: [played(envs[0])]
    )
    assert main(["eval", "DDQN-cartpole", "--render", "human"], "lightning-rl") == 0
    assert len(shown) == 21
    assert shown[0].shape[0] == 600
    assert len({frame.tobytes() for frame in shown}) > 15  # the pole moves
    assert "return 20.0 in 20 steps" in capsys.readouterr().out
    assert pygame.display.get_init() is False


def test_closing_the_window_ends_the_show(monkeypatch, capsys):
    import pygame

    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    monkeypatch.setattr(pygame.event, "get", lambda: [pygame.event.Event(pygame.QUIT)])
    assert main(["film", "DDQN-cartpole", "--window"], "lightning-rl") == 0
    assert "return" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        (
            "SDL_VIDEODRIVER",
            None,
            "there is no display here (DISPLAY is not set); leave it out, for a film in a file",
        ),
        ("DISPLAY", ":987", "the display cannot be used ("),
    ],
)
def test_without_a_display_it_is_said_in_one_line(name, value, words, monkeypatch, capsys):
    for each in ("DISPLAY", "WAYLAND_DISPLAY", "SDL_VIDEODRIVER"):
        monkeypatch.delenv(each, raising=False)
    if value is not None:
        monkeypatch.setenv(name, value)
    assert main(["eval", "DDQN-cartpole", "--render", "human"], "lightning-rl") == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("error: --window: ")
    assert words in line


def played(env):
    """What is told of an episode of a few steps."""
    env.reset(seed=0)
    return SimpleNamespace(ret=sum(env.step(k % 2)[1] for k in range(20)), length=20, command=None)
