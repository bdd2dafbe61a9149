"""Parts from outside the package: those of ``docs/how_to/own_command.md`` go wherever ours go, and
what cannot be is refused in one line.
"""

import re
import subprocess
import sys

import numpy as np
import pytest
import torch
from helpers import ROOT
from helpers.budgets import tiny_settings
from helpers.toys import make_episode

import lightning_rl as lrl
from lightning_rl.cli import main
from lightning_rl.core.errors import UserError
from lightning_rl.methods.upside_down.config import CONFIG
from lightning_rl.methods.upside_down.weightings import WEIGHTINGS
from lightning_rl.rollouts.episode_buffer import flatten

PAGE = (ROOT / "docs" / "how_to" / "own_command.md").read_text()
FILES = dict(re.findall(r'```python title="(.*?)"\n(.*?)```', PAGE, re.DOTALL))
OWN = {"command": "survive", "command_rule": "decrease", "target_labels": "episode"}


@pytest.fixture(scope="module")
def parts(tmp_path_factory):
    """The modules of the page, in a folder where Python looks."""
    folder = tmp_path_factory.mktemp("own")
    for name, text in FILES.items():
        (folder / name).write_text(text)
    sys.path.insert(0, str(folder))
    import my_command
    import my_target
    import my_weighting

    yield my_command.Survive, my_weighting.BestShare, my_target.Record
    sys.path.remove(str(folder))


def settings(tmp_path, **others):
    tiny = tiny_settings("RCP-R")
    return {**tiny, **OWN, "num_workers": 0, "logdir": tmp_path, "exp_name": "own", **others}


def test_the_example_is_short(parts):
    assert len([line for line in FILES["my_command.py"].splitlines() if line.strip()]) <= 30


def test_own_parts_by_hand(parts):
    survive, best_share, record = parts
    episodes = flatten([make_episode([1.0, 2.0, 4.0]), make_episode([8.0])])
    assert survive(longest=2).fulfilled(episodes).tolist() == [[2.0], [2.0], [1.0], [1.0]]
    assert survive().after(np.array([[3.0], [1.0]]), np.zeros(2)).tolist() == [[2.0], [1.0]]
    assert best_share().weights(episodes).tolist() == [0.0, 0.0, 0.0, 4.0]
    mean, sd = record(more=0.5).fit(torch.tensor([1.0, 3.0]))
    assert float(mean) == pytest.approx(3 + 0.5 * float(sd))


@pytest.mark.parametrize("num_workers", [0, 1])
def test_own_parts_train_resume_and_are_evaluated(parts, tmp_path, num_workers, capsys):
    own = {"weights": "best_share", "target": "record", "longest": 50, "num_workers": num_workers}
    once = lrl.train("RCP-R", "cartpole", max_epochs=3, **settings(tmp_path / "once", **own)).path
    for epochs in (2, 3):
        given = settings(tmp_path / "twice", **own)
        twice = lrl.train("RCP-R", "cartpole", max_epochs=epochs, resume=True, **given).path
    saved = [torch.load(path / "last.ckpt", weights_only=True) for path in (once, twice)]
    weights = [content["state_dict"] for content in saved]
    assert all(torch.equal(value, weights[1][name]) for name, value in weights[0].items())
    assert saved[0]["hyper_parameters"]["config"]["longest"] == 50
    report = lrl.evaluate(once, episodes=2, command={"steps": 30})
    assert report["command"] == {"steps": 30.0}
    assert main(["eval", str(once), "--episodes", "2", "--command", "sweep"]) == 0
    film = tmp_path / "film.gif"
    assert main(["film", str(once), "steps=5", "--out", str(film)]) == 0
    assert film.stat().st_size > 1000
    agent = lrl.load(once)
    agent.reset(command={"steps": 2})
    agent.act(np.zeros(4))
    agent.act(np.zeros(4), 1.0)
    assert agent._command.tolist() == [[1.0]]


def test_an_own_command_is_calibrated(parts, tmp_path, monkeypatch):
    from lightning_rl.lab import obedience

    monkeypatch.setattr(obedience, "_ROUNDS", 1)
    monkeypatch.setattr(obedience, "_FINE_EPISODES", 2)
    run = lrl.train("RCP-R", "cartpole", max_epochs=3, **settings(tmp_path))
    calibration = obedience.calibrate(run.method)
    low, high = calibration.limits
    assert low < high


def test_who_does_not_name_the_module_is_told_what_to_do(parts, tmp_path):
    run = lrl.train("RCP-R", "cartpole", max_epochs=1, **settings(tmp_path))
    script = f"from lightning_rl.cli import main; exit(main(['eval', {str(run.path)!r}]))"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, cwd=ROOT, check=False
    )
    assert done.returncode == 2
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("error")]
    assert "last.ckpt': config: key 'command': unknown 'survive'" in line
    assert "export LIGHTNING_RL_MODULES=its_module" in line


def test_keys_of_own_parts_are_there_when_these_are_chosen(parts):
    assert lrl.RCPR("cartpole", **OWN).cfg.longest == 200
    assert "longest" not in CONFIG.__dataclass_fields__
    assert not hasattr(lrl.RCPR("cartpole").cfg, "longest")
    with pytest.raises(UserError, match="unknown key 'longest'"):
        lrl.RCPR("cartpole", longest=3)
    with pytest.raises(UserError, match="key 'longest': Input should be a valid integer"):
        lrl.RCPR("cartpole", **OWN, longest="x")
    with pytest.raises(UserError, match="key 'gamma': nothing reads it; set command="):
        lrl.UDRL(
            "cartpole", command="survive", target_labels="episode", segments="trailing", gamma=0.5
        )


@pytest.mark.parametrize(
    ("own", "words"),
    [
        ({"command": "surviv"}, "did you mean 'survive'"),
        ({"command": 3}, "key 'command': unknown 3"),
        ({"target_labels": "best"}, "not command survive; set target_labels=episode"),
        ({"segments": "any"}, "which command survive does not say; set segments=trailing"),
    ],
)
def test_own_commands_that_do_not_go_together_with_other_keys(parts, own, words):
    with pytest.raises(UserError, match=words):
        lrl.RCPR("cartpole", **{**OWN, **own})


def test_what_cannot_be_registered_is_refused(parts):
    with pytest.raises(UserError, match="register_command decorates a class of lightning_rl's Com"):
        lrl.register_command("a")(3)
    with pytest.raises(UserError, match="register_target: 'tilted' is taken; choose another name"):

        @lrl.register_target("tilted")
        class Other(lrl.Target):
            pass

    with pytest.raises(UserError, match="register_weighting 3: give its name"):
        lrl.register_weighting(3)

    @lrl.register_weighting("without_default")
    class WithoutDefault(lrl.Weighting):
        strength: float

    with pytest.raises(UserError, match="key 'strength' of WithoutDefault has no default; give"):
        lrl.RCPR("cartpole", weights="without_default")
    del WEIGHTINGS.classes["without_default"]
