"""Parts from outside the package: those of ``docs/how_to/own_command.md`` go wherever ours go, and
what cannot be is refused in one line.
"""

import math
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
from lightning_rl.methods.upside_down import config
from lightning_rl.methods.upside_down.config import CONFIG
from lightning_rl.methods.upside_down.owed import Owed
from lightning_rl.methods.upside_down.survival import Survival
from lightning_rl.methods.upside_down.weightings import WEIGHTINGS
from lightning_rl.rollouts.episode_buffer import EpisodeBuffer, flatten

PAGE = (ROOT / "docs" / "how_to" / "own_command.md").read_text()
FILES = dict(re.findall(r'```python title="(.*?)"\n(.*?)```', PAGE, re.DOTALL))
KINDS = {kind.key: kind for kind in config.KINDS}
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
    survive, top_share, record = parts
    episodes = flatten([make_episode([1.0, 2.0, 4.0]), make_episode([8.0])])
    assert survive(longest=2).fulfilled(episodes).tolist() == [[2.0], [2.0], [1.0], [1.0]]
    assert survive().after(np.array([[3.0], [1.0]]), np.zeros(2)).tolist() == [[2.0], [1.0]]
    assert top_share().weights(episodes).tolist() == [0.0, 0.0, 0.0, 4.0]
    mean, sd = record(more=0.5).fit(torch.tensor([1.0, 3.0]))
    assert float(mean) == pytest.approx(3 + 0.5 * float(sd))


def test_an_own_command_that_extends_one_of_ours_completes_and_keeps_what_that_does(monkeypatch):
    for ours, name in ((Survival, "survival"), (Owed, "owed")):
        monkeypatch.setitem(KINDS["command"].classes, "mine", type("Mine", (ours,), {}))
        commands = []
        for command in (name, "mine"):
            given = {"standardise": False} if ours is Survival else {"preset": "obedient"}
            method = lrl.RCPR("lunarlander", command=command, command_limit=math.inf, **given)
            commands.append(method.command)
        assert commands[0].buffer is commands[1].buffer
        assert commands[0].completed(100.0, (0.5,)) == commands[1].completed(100.0, (0.5,))
    assert commands[0].buffer is not EpisodeBuffer


@pytest.mark.parametrize("num_workers", [0, 1])
def test_own_parts_train_resume_and_are_evaluated(parts, tmp_path, num_workers, capsys):
    own = {"weights": "top_share", "target": "record", "longest": 50, "num_workers": num_workers}
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
    from lightning_rl.lab import calibration

    monkeypatch.setattr(calibration, "_ROUNDS", 1)
    monkeypatch.setattr(calibration, "_FINE_EPISODES", 2)
    run = lrl.train("RCP-R", "cartpole", max_epochs=3, **settings(tmp_path))
    low, high = calibration.calibrate(run.method).limits
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
        ({"target_labels": "best"}, "which command survive does not ask for; set target_labels=ep"),
        (
            {"target_labels": "best", "segments": "any"},
            "or is in_deviations; set segments=trailing; target_labels best are",
        ),
    ],
)
def test_own_commands_that_do_not_go_together_with_other_keys(parts, own, words):
    with pytest.raises(UserError, match=words):
        lrl.RCPR("cartpole", **{**OWN, **own})


def test_commands_in_deviations_have_none_for_segments_nor_held_out_episodes(tmp_path):
    content = {"in_deviations": True, "fulfilled_within": _one}
    with pytest.raises(UserError, match="is in_deviations; set segments=trailing"):
        trained(tmp_path, "command", "fulfilled", _one, content=content, segments="any")
    settings = {"content": {"in_deviations": True}, "num_held_out_episodes_per_iter": 1}
    with pytest.raises(UserError, match="no x to be asked for; set num_held_out_episodes_per_iter"):
        trained(tmp_path, "command", "fulfilled", _one, **settings)
    settings |= {"standardise": False, "command_limit": np.inf}
    trained(tmp_path, "command", "fulfilled", _one, **settings)


def test_what_cannot_be_registered_is_refused(parts):
    with pytest.raises(UserError, match="register_command decorates a class of lightning_rl's Com"):
        lrl.register_command("a")(3)
    taken = (
        r"register_target: 'tilted' is taken, by Tilted of module lightning_rl\S+; choose another"
    )
    with pytest.raises(UserError, match=taken):

        @lrl.register_target("tilted")
        class Other(lrl.Target):
            pass

    with pytest.raises(UserError, match="register_weighting 3: give its name"):
        lrl.register_weighting(3)

    @lrl.register_weighting("without_default")
    class WithoutDefault(lrl.Weighting):
        strength: float

        def weights(self, episodes):
            return None

    with pytest.raises(UserError, match="key 'strength' of WithoutDefault has no default; give"):
        lrl.RCPR("cartpole", weights="without_default")
    del WEIGHTINGS.classes["without_default"]


def _one(self, episodes):
    return torch.ones(len(episodes), 1)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ({"fulfilled": _one}, "it has no 'names'; define names"),
        ({"fulfilled": _one, "name": ("x",)}, "it has no 'names', only 'name'; define names"),
        ({"fulfilled": _one, "names": "x"}, r"names 'x' is no tuple of texts; write \('steps',\)"),
        ({"fullfilled": _one, "names": ("x",)}, "it has no 'fulfilled', only 'fullfilled'; define"),
        (
            {"fulfilled": _one, "names": ("x",), "power": 3.0},
            "'power' has no type, so it is no key; write power: float = 3.0",
        ),
    ],
)
def test_classes_that_lack_something_are_refused(content, words):
    own = type("Own", (lrl.Command,), {**content, "__module__": "mine"})
    with pytest.raises(
        UserError, match=rf"register_command\('own'\): Own \(module mine\): {words}"
    ):
        lrl.register_command("own")(own)


def trained(tmp_path, kind, method, function, **settings):
    """A short training with a part of which one method is this function."""
    bases = {"command": lrl.Command, "weights": lrl.Weighting, "target": lrl.Target}
    content = {"names": ("x",), "fulfilled": _one} if kind == "command" else {}
    content |= settings.pop("content", {}) | {method: function}
    KINDS[kind].classes["own"] = type("Own", (bases[kind],), {**content, "__module__": "mine"})
    try:
        given = {
            **tiny_settings("RCP-R"),
            "weights": "none",
            kind: "own",
            "max_epochs": 1,
            **settings,
        }
        return lrl.train(
            "RCP-R", "cartpole", logdir=tmp_path, exp_name="own", num_workers=0, **given
        )
    finally:
        del KINDS[kind].classes["own"]


@pytest.mark.parametrize(
    ("kind", "method", "function", "words"),
    [
        (
            "command",
            "fulfilled",
            lambda self, e: e.reward,
            r"\[\d+\], needs \[\d+, 1\], a row of x for",
        ),
        ("command", "fulfilled", lambda self, e: e.obs[e.row, :2], r"\[\d+, 2\], needs \[\d+, 1\]"),
        ("command", "fulfilled", lambda self, e: None, r"None, needs \[\d+, 1\]"),
        (
            "command",
            "fulfilled",
            lambda self, e: _one(self, e) * np.nan,
            r"nan as (\d+) of \1 numbers",
        ),
        (
            "command",
            "after",
            lambda self, c, r: c[:, 0],
            r"\[(\d+)\], needs \[\1, 1\], what is left",
        ),
        (
            "command",
            "scales",
            lambda self, scale: (1.0, 2.0),
            r"\[2\], needs \[1\], a number for each",
        ),
        (
            "weights",
            "weights",
            lambda self, e: e.reward[e.first],
            r"\[\d+\], needs \[\d+\], a weight",
        ),
        ("weights", "weights", _one, r"\[\d+, 1\], needs \[\d+\], a weight for each step"),
        (
            "weights",
            "weights",
            lambda self, e: e.reward * 9,
            "numbers of mean 9, .* divide by the mean",
        ),
        ("weights", "weights", lambda self, e: -e.reward, "-1, .*none below 0"),
        ("weights", "weights", lambda self, e: e.reward.log() - np.inf, "-inf as"),
        ("target", "fit", lambda self, label: label.mean(), r"\[\], needs \[2\], a mean and an sd"),
        ("target", "fit", lambda self, label: (label.mean(), np.nan), "nan as 1 of 2 numbers"),
        ("target", "fit", lambda self, label: (1.0, -1.0), "-1, .*none below 0"),
        ("target", "draw_noise", lambda self, rng, count: torch.zeros(1, 1), r"\[1, 1\], needs \["),
    ],
)
def test_wrong_results_are_told_with_part_and_module(tmp_path, kind, method, function, words):
    more = {"command_rule": "decrease", "target_labels": "episode"} if method == "after" else {}
    if method == "scales":
        more = {"standardise": False, "command_limit": np.inf}
    given = {"fit": lambda self, label: (1.0, 1.0)} if method == "draw_noise" else {}
    with pytest.raises(UserError, match=rf"Own\.{method} \(module mine\) returned {words}"):
        trained(tmp_path, kind, method, function, content=given, **{"max_epochs": 2, **more})
    assert not list(tmp_path.rglob("*.ckpt"))


@pytest.mark.parametrize(
    ("kind", "method", "function"),
    [
        ("command", "fulfilled", lambda self, e: e.left.unsqueeze(-1)),
        ("command", "fulfilled", lambda self, e: e.left.numpy()[:, None]),
        ("target", "fit", lambda self, label: (3, 0.5)),
    ],
)
def test_whole_numbers_arrays_and_floats_are_taken(tmp_path, kind, method, function):
    assert (trained(tmp_path, kind, method, function).path / "last.ckpt").exists()


def test_names_without_following_numbers_are_told(tmp_path):
    two = {"names": ("x", "y")}
    words = r"Own\.following_numbers \(module mine\) returned \[0\], needs \[1\]"
    with pytest.raises(UserError, match=words):
        trained(tmp_path, "command", "fulfilled", lambda self, e: e.obs[e.row, :2], content=two)
