"""``lightning-rl play``: what was asked and obtained, and three episodes to look at."""

from types import SimpleNamespace

import pytest
from PIL import Image

from lightning_rl.cli import main
from lightning_rl.lab.play import obtained, three_of


def play(*words):
    return main(["play", *words], "lightning-rl")


def test_the_lowest_the_nearest_and_the_highest_are_shown():
    episodes = [SimpleNamespace(ret=float(ret)) for ret in (250, -90, 110, 280, -100, 20)]
    assert [each.ret for each in three_of(episodes, 100)] == [-100, 110, 280]
    assert [each.ret for each in three_of(episodes, None)] == [-100, 110, 280]
    assert [each.ret for each in three_of(episodes, 900)] == [-100, 250, 280]
    assert [each.ret for each in three_of(episodes[:2], 100)] == [-90, 250]


def test_what_was_obtained_in_words():
    assert obtained([0.953]) == "obtained a return of 0.953"
    assert obtained([1.0, 3.0]) == (
        "obtained 2.00 on average of 2 episodes; standard deviation 1.41, lowest 1.00, highest 3.00"
    )


def test_an_agent_is_asked_and_filmed_where_there_is_no_screen(tmp_path, monkeypatch, capsys):
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "SDL_VIDEODRIVER"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    filmed = []

    def act_a_little(method, request, env):
        env.reset(seed=0)
        for _ in range(12):
            env.step(0)
        filmed.append(request)

    monkeypatch.setattr("lightning_rl.lab.films.play_filmed", act_a_little)
    assert play("RCP-A-lunarlander", "--return", "-250", "--episodes", "3") == 0
    first, second, third, film = capsys.readouterr().out.splitlines()[-4:]
    assert first == "RCP-A on lunarlander, asked for return -250"
    assert second.startswith("obtained -")
    assert "on average of 3 episodes" in second
    assert third.startswith("to look at: episodes with the returns -")
    path = tmp_path / film.removeprefix("film: ").partition(" (")[0]
    assert path == tmp_path / "exp_dir/agents/RCP-A-lunarlander/play_return=-250.gif"
    assert Image.open(path).n_frames > 3
    assert len({request.seed for request in filmed}) == 3


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["--return", "much"], "'much' is not a number; write return=250"),
        (["--return", "900"], "this policy obtains -256 .. 277 on average"),
        (["--return", "9", "--command", "advantage=1"], "leave one of them out"),
        (["--return", "9", "--out", "x.mov"], "films are written as GIF"),  # before it plays
    ],
)
def test_what_cannot_be_asked_is_said_in_one_line(words, line, capsys):
    assert play("RCP-A-lunarlander", *words) == 2
    said = capsys.readouterr()
    (error,) = [each for each in said.err.splitlines() if "loading" not in each]
    assert line in error
    assert "obtained" not in said.out
