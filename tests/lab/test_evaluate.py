"""``lightning_rl.evaluate``: a report, and nothing else."""

import json
import random
import re
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
import torch
from helpers.runs import cli, run_dir, train_cli
from helpers.toys import CommandTask

import lightning_rl
from lightning_rl.core.errors import UserError
from lightning_rl.core.gamenames import GAMES, Game
from lightning_rl.lab.beside import beside
from lightning_rl.lab.evaluate import print_report
from lightning_rl.run.loading import load_method
from lightning_rl.run.shipped import SHIPPED


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    logdir = tmp_path_factory.mktemp("evaluate")
    train_cli(logdir, 2)
    return run_dir(logdir) / "last.ckpt"


def process_state():
    generators = (
        random.getstate()[1][:3],
        np.random.get_state()[1][:3].tolist(),
        torch.get_rng_state().sum().item(),
    )
    return torch.get_num_threads(), torch.are_deterministic_algorithms_enabled(), generators


def test_an_evaluation_gives_a_report_and_changes_nothing(checkpoint):
    files = {path: path.read_bytes() for path in checkpoint.parent.rglob("*") if path.is_file()}
    torch.set_num_threads(1)
    before = process_state()
    report = lightning_rl.evaluate(checkpoint, episodes=3)
    assert process_state() == before
    assert {
        path: path.read_bytes() for path in checkpoint.parent.rglob("*") if path.is_file()
    } == files
    assert (report["implementation"], report["gamename"], report["episodes"]) == (
        "UDRL",
        "cartpole",
        3,
    )
    assert report["sampled"]["return"]["mean"] == pytest.approx(
        np.mean(report["sampled"]["returns"])
    )
    returns = "return mean .*, sd .*, min .*, max .*"
    assert re.fullmatch(
        rf"Evaluation\(UDRL on cartpole, 3 episodes each, asked for return .*, horizon .*\n"
        rf"  sampled: {returns}\n  greedy: {returns}\)",
        repr(report),
    )
    assert report._repr_html_().count("<td>") == 8
    # a run directory, a method, an agent that has one, and workers: the same episodes
    method = load_method(checkpoint)
    agent = type("Agent", (), {"method": method})()
    for other in (str(checkpoint.parent), method, agent):
        assert lightning_rl.evaluate(other, 3) == report
    assert lightning_rl.evaluate(method, 3, num_workers=1) == report


class Blind(CommandTask):
    """Says that it draws, and does not, or in numbers that are no colours."""

    metadata: ClassVar = {"render_modes": ["rgb_array"]}
    frame = None

    def __init__(self, render_mode=None):
        self.render_mode = render_mode

    def render(self):
        return self.frame


@pytest.mark.parametrize(
    ("frame", "words"),
    [
        (None, "a NoneType"),
        (np.zeros((40, 40, 3), np.float32), r"an array of float32 \[40, 40, 3\]"),
        ([1], "a list"),
    ],
)
def test_an_evaluation_whose_film_fails_is_kept(tmp_path, monkeypatch, capsys, frame, words):
    monkeypatch.setitem(GAMES, "blind", Game(Blind, horizon=10))
    monkeypatch.setattr(Blind, "frame", frame)
    train_cli(tmp_path, 1, implementation="REINFORCE", gamename="blind")
    path = run_dir(tmp_path, "blind", implementation="REINFORCE")
    capsys.readouterr()
    assert cli("eval", path, "--episodes", "2", "--num_workers", "0") == 2
    progress, error = capsys.readouterr().err.splitlines()
    assert "1 of 4 episodes" in progress
    expected = r"expected a picture: an array of uint8 \[height, width, 3\] -- from Blind at"
    assert re.search(rf"render\(\) gave {words}, {expected}", error)
    report = json.loads((path / "evaluation.json").read_text())
    assert (len(report["sampled"]["returns"]), report["video"]) == (2, None)


@pytest.mark.parametrize(
    ("checkpoint", "name"),
    [
        ("run/last.ckpt", "run/sweep_of_1_2"),
        ("run/epoch=40.ckpt", "run/sweep_epoch=40_of_1_2"),
        (SHIPPED / "DDQN-cartpole.ckpt", "exp_dir/agents/DDQN-cartpole/sweep_of_1_2"),
    ],
)
def test_files_of_another_checkpoint_than_the_last_are_named_by_it(checkpoint, name):
    assert beside(Path(checkpoint), ["sweep", "of", "1", "2"], force=False).path == Path(name)


def test_a_command_is_by_name_and_checked(checkpoint):
    report = lightning_rl.evaluate(checkpoint, 1, command={"return": 30})
    kept = lightning_rl.evaluate(checkpoint, 1)["command"]
    assert report["command"] == {**kept, "return": 30}
    for command, words in (
        ({"height": 1.0}, "unknown name 'height'; this checkpoint knows: return, horizon"),
        ({"return": float("nan")}, "return=nan: it is not within"),
    ):
        with pytest.raises(UserError, match=words):
            lightning_rl.evaluate(checkpoint, 1, command)


def test_the_table_says_what_was_asked_and_who_plays(capsys):
    numbers = dict.fromkeys(("mean", "sd", "median", "iqm", "min", "max"), 1.0)
    mode = {"return": numbers, "length": numbers}
    about = {
        "gamename": "lunarlander",
        "episodes": 2,
        "sampled": mode,
        "greedy": mode,
        "video": None,
    }
    asked = {"asked": {"return": -100.0}, "command": {"advantage": -4.6, "guidance": 2.0}}
    print_report({**about, "implementation": "RCP-A", **asked})
    own = {"asked": {"return": 150.0}, "command": {"return": 50.0, "guidance": 0.5}}
    print_report({**about, "implementation": "RCP-R", **own})
    print_report(
        {
            **about,
            "implementation": "UDRL",
            "asked": {"return": 7.0},
            "command": {"return": 7.0, "horizon": 9.0},
        }
    )
    print_report({**about, "implementation": "SE", "agent": "DDQN", "asked": {}, "command": {}})
    printed = " ".join(capsys.readouterr().out.split())
    assert "asked: return -100, which is the command advantage -4.6, guidance 2" in printed
    assert "asked: return 150, which is the command return 50, guidance 0.5" in printed
    assert "asked: return 7" not in printed
    assert "SE on lunarlander, a DDQN agent that learned on its proxy, 2 episodes each" in printed
