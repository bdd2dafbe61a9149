"""What nobody typed: a module that a file names is not imported, and what a file says moves
nothing on a terminal.
"""

import itertools
import json
import logging
import re
import shutil
import sys
import warnings

import pytest
import torch
import yaml
from helpers import ROOT
from helpers.runs import run_cli, train_cli

import lightning_rl as lrl
from lightning_rl.cli import main
from lightning_rl.core.errors import UserError
from lightning_rl.core.lines import guard_terminal
from lightning_rl.core.modules import allow

NUMBER = itertools.count()
HOSTILE = "\x1b]0;title\x07\x1b[2J\x9b31m\u202ereversed\u2066\u200b\r\n\x08error: forged"
SPELT_OUT = r"\x1b]0;title\x07\x1b[2J\x9b31m\u202ereversed\u2066\u200b\r\n\x08error: forged"


def rewritten(path, change):
    content = torch.load(path, weights_only=True)
    change(content)
    torch.save(content, path)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Runs of the folder exp: an agent, a search for a proxy, a model-based method."""
    folder = tmp_path_factory.mktemp("made") / "exp"
    for name, game in (("UDRL", "cartpole"), ("SE", "cartpole"), ("ER", "cliff")):
        train_cli(folder, 2, implementation=name, gamename=game)
    return folder


@pytest.fixture
def folder(made, tmp_path, monkeypatch):
    """A folder with these runs, in which Python would find any module."""
    shutil.copytree(made, tmp_path / "exp")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


@pytest.fixture
def planted(folder):
    """The gamename of a module that is there; it must not be imported."""
    module = f"planted_{next(NUMBER)}"
    (folder / f"{module}.py").write_text("")
    yield f"{module}:CartPole-v1"
    assert module not in sys.modules


@pytest.fixture
def named(folder, planted):
    """All files of the runs name that module."""
    for path in folder.rglob("*.ckpt"):
        rewritten(path, lambda content: content["hyper_parameters"].update(gamename=planted))
    for path in folder.rglob("*.pt"):
        rewritten(path, lambda content: content["settings"].update(gamename=planted))
    for path in folder.rglob("config.yaml"):
        path.write_text(yaml.safe_dump(yaml.safe_load(path.read_text()) | {"gamename": planted}))
    return planted


AGENT, SEARCH, MODEL = (
    f"exp/{game}/default/{name}/seed_25"
    for game, name in (("cartpole", "UDRL"), ("cartpole", "SE"), ("cliff", "ER"))
)
REFUSED = [
    f"eval {AGENT}",
    f"eval {AGENT}/last.ckpt --command sweep",
    f"eval {SEARCH}",
    f"eval {MODEL} --imagine",
    f"film {AGENT} -o film.gif",
    f"demo {AGENT} --out page.html",
    f"proxies list {SEARCH}/proxy.pt",
    f"proxies transfer out.csv {SEARCH}/proxy.pt",
    f"proxies reward-curves out.csv {SEARCH}/proxy.pt",
    f"proxies transitions out.csv {SEARCH}/proxy.pt",
    f"train --gamename cartpole --exp_name new --implementation SE --set start={SEARCH}/proxy.pt",
]


@pytest.mark.parametrize("words", REFUSED)
def test_a_command_imports_no_module_that_a_file_names(named, words, capsys):
    assert main(words.split(), "lightning-rl") == 2
    module = named.partition(":")[0]
    said = capsys.readouterr().err
    assert said.endswith(
        f"only a file names the module '{module}', so it is not imported; "
        f"if you trust it: export LIGHTNING_RL_MODULES={module}\n"
    )


def test_a_calibration_imports_no_module_that_a_file_names(named):
    """It writes to the checkpoint, and so asks first whose it is."""
    assert main(["eval", AGENT, "--calibrate"], "lightning-rl") == 2


READ = [
    "runs .",
    "report . -o page.html --tag rollout/return_mean",
    f"figures curves out {AGENT} --tag rollout/return_mean",
    f"figures scores out {AGENT} --tag rollout/return_mean",
    f"compare {AGENT} {AGENT} --tag rollout/return_mean",
]


@pytest.mark.parametrize("words", READ)
def test_what_needs_no_environment_does_without(named, words, capsys):
    assert main(words.split(), "lightning-rl") == 0
    assert "not imported" not in capsys.readouterr().err


@pytest.mark.parametrize(
    "flags",
    [
        ["--resume"],
        ["--reload", f"{AGENT}/last.ckpt", "--exp_name", "reloaded"],
        ["--config", f"{AGENT}/config.yaml", "--exp_name", "configured"],
    ],
)
def test_a_training_imports_no_module_of_the_files_it_takes(named, folder, flags):
    run_cli(folder / "exp", "--max_epochs", "3", *flags)


@pytest.mark.parametrize(
    "door",
    [
        lambda: lrl.load(AGENT),
        lambda: lrl.evaluate(AGENT),
        lambda: lrl.load_proxy(f"{SEARCH}/proxy.pt"),
        lambda: lrl.UDRL.load_from_checkpoint(f"{AGENT}/last.ckpt"),
    ],
)
def test_a_function_imports_no_module_that_a_file_names(named, door):
    with pytest.raises(UserError, match="only a file names the module 'planted_"):
        door()


CSVS = {
    "clones_cartpole": ["synthetic-dataset"],
    "transitions": ["proxy-histograms"],
    "cliff_cells": ["grid-rewards"],
    "step_sizes_runs": ["step-sizes"],
}


@pytest.mark.slow
@pytest.mark.parametrize("name", CSVS)
def test_a_figure_of_a_table_imports_nothing(planted, folder, name):
    text = (ROOT / "results" / "proxies" / f"{name}.csv").read_text()
    (folder / "table.csv").write_text(
        re.sub(r"\b(cartpole|cartpole-v0|cliff|emptyroom22)\b", planted, text)
    )
    main(["figures", *CSVS[name], "out", "table.csv"], "lightning-rl")


def test_a_document_allows_nothing(planted, folder, capsys):
    command = f"lightning-rl config DDQN --gamename {planted}"
    (folder / "page.md").write_text(f"<!-- made by: {command} -->\n")
    assert main(["docs", "page.md"], "lightning-rl") == 2
    assert "only a file names the module" in capsys.readouterr().err


def test_what_was_typed_is_imported(folder, monkeypatch):
    """By a flag, an argument or the variable; also what was imported already."""
    for name in ("flag", "argument", "method", "variable", "there"):
        (folder / f"typed_{name}.py").write_text("")
    assert main(["config", "DDQN", "--gamename", "typed_flag:CartPole-v1"], "lightning-rl") == 0
    lrl.make_env("typed_argument:CartPole-v1").close()
    lrl.UDRL("typed_method:CartPole-v1")
    rewritten(
        f"{AGENT}/last.ckpt",
        lambda content: content["hyper_parameters"].update(gamename="typed_variable:CartPole-v1"),
    )
    with pytest.raises(UserError, match="typed_variable"):
        lrl.load(AGENT)
    monkeypatch.setenv("LIGHTNING_RL_MODULES", "typed_variable")
    assert lrl.load(AGENT).gamename == "typed_variable:CartPole-v1"
    rewritten(
        f"{AGENT}/last.ckpt",
        lambda content: content["hyper_parameters"].update(gamename="typed_there:CartPole-v1"),
    )
    __import__("typed_there")
    assert lrl.load(AGENT).gamename == "typed_there:CartPole-v1"


def test_what_was_typed_is_one_module(folder, planted):
    """Neither its package, nor others of the package, nor what looks like several."""
    module = planted.partition(":")[0]
    allow(f"{module}.envs:X-v0")
    allow(f"other,{module}:X-v0")
    allow(f"other\n{module}:X-v0")
    rewritten(
        f"{AGENT}/last.ckpt", lambda content: content["hyper_parameters"].update(gamename=planted)
    )
    with pytest.raises(UserError, match="only a file names the module"):
        lrl.load(AGENT)


# --- what is shown


@pytest.fixture
def hostile(folder):
    """Runs whose files say HOSTILE wherever they may say anything."""
    for path in (folder / "exp").rglob("config.yaml"):
        content = yaml.safe_load(path.read_text())
        content |= {
            "exp_name": HOSTILE,
            "gamename": HOSTILE,
            "implementation": HOSTILE,
            HOSTILE: HOSTILE,
        }
        path.write_text(yaml.safe_dump(content))
    for path in (folder / "exp").rglob("state.yaml"):
        path.write_text(yaml.safe_dump({"state": "failed", "reason": HOSTILE}))
    for path in folder.rglob("*.pt"):
        rewritten(path, lambda content: content["settings"].update(gamename=HOSTILE[:40]))
    for path in folder.rglob("*.ckpt"):
        rewritten(
            path,
            lambda content: content["hyper_parameters"].update(
                gamename=HOSTILE, implementation=HOSTILE
            ),
        )
    (folder / AGENT / "evaluation.json").write_text(
        json.dumps({"gamename": HOSTILE, HOSTILE: HOSTILE})
    )
    (folder / HOSTILE.replace("/", "")).mkdir()
    shutil.copytree(folder / AGENT, folder / HOSTILE.replace("/", "") / "seed_1")
    rows = f'gamename,implementation,env_steps,eval/return_mean\n"{HOSTILE}","{HOSTILE}",1,2\n'
    (folder / "table.csv").write_bytes(rows.encode())
    shutil.copy(folder / SEARCH / "proxy.pt", folder / f"{HOSTILE.replace('/', '')}.pt")
    return folder


SHOWN = [
    *REFUSED,
    *READ,
    f"--config {AGENT}/config.yaml",
    f"--reload {AGENT} --gamename cartpole --exp_name b",
    "train --gamename cartpole --logdir exp --resume",
    "runs . --csv table.csv",
    "figures curves out table.csv",
    "figures scores out table.csv --markdown",
    "figures marks out table.csv --at 1 --window 1",
    "figures scores out table.csv",
    "proxies list .",
    f"figures tune out {AGENT}",
    "compare table.csv table.csv",
]


@pytest.mark.parametrize("words", SHOWN)
def test_what_files_say_is_spelt_out(hostile, words, capfd):
    main(words.split(), "lightning-rl")
    captured = capfd.readouterr()
    said = captured.out + captured.err
    assert said
    assert not [c for c in said if not c.isprintable() and c != "\n"], said
    assert "\nerror: forged" not in said


def test_a_listing_shows_them(hostile, capsys):
    assert main(["runs", "exp"], "lightning-rl") == 0
    assert f"failed: {AGENT}: {SPELT_OUT}\n" in capsys.readouterr().out


def test_warnings_logs_and_defects_are_spelt_out(capsys, monkeypatch):
    monkeypatch.setattr(warnings, "formatwarning", warnings.formatwarning)
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)
    guard_terminal()
    assert "\x1b" not in warnings.formatwarning(HOSTILE, UserWarning, HOSTILE, 1)
    sys.excepthook(ValueError, ValueError(HOSTILE), None)
    assert r"ValueError: \x1b]0;title\x07\x1b[2J" in capsys.readouterr().err
    record = logging.LogRecord("a", logging.WARNING, "", 1, HOSTILE, (), None)
    assert "\x1b" not in logging.lastResort.format(record)


def test_other_scripts_stay_readable(folder, capsys):
    (folder / AGENT / "state.yaml").write_text(
        yaml.safe_dump({"state": "failed", "reason": "Größe 大きさ naïve 🙂"})
    )
    assert main(["runs", "exp"], "lightning-rl") == 0
    assert "Größe 大きさ naïve 🙂" in capsys.readouterr().out
