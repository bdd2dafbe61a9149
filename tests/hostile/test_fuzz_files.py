"""Files that are changed anywhere: a refusal of one line, or a whole result; never a traceback, a
hang or a foreign byte lost.

``make fuzz`` runs thousands; the suite always the same few.
"""

import contextlib
import copy
import io
import os
import shutil
import signal

import pytest
import torch
import yaml
from helpers.runs import last, run_cli, run_dir, train_cli
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.utils.tensorboard import SummaryWriter

from lightning_rl.cli import main
from lightning_rl.core.errors import UserError
from lightning_rl.envs.proxies import proxy_path
from lightning_rl.envs.proxy_env import load_proxy

SECONDS = 60  # for what takes one: more is a hang
GAMES = {
    "UDRL": "cartpole",
    "AAC": "cartpole",
    "DDQN": "cartpole",
    "SE": "cartpole",
    "categorical-latent": "cliff",
}
MORE = {
    "RCP-A": "cartpole",
    "PPO": "cartpole",
    "QL": "cliff",
    "TD3": "pendulum",
    "perfect-model": "cliff",
    "MBRL": "cartpole",
}
if os.environ.get("FUZZ") == "long":
    GAMES |= MORE
FEW = settings(max_examples=max(8, settings().max_examples // 5))

NUMBERS = [-1, 0, 1, 2, 3, 100, 255, 32767, 2**40, float("nan"), 1e30, -1e30]
VALUES = [
    None,
    True,
    0,
    -1,
    1,
    7,
    10**30,
    0.5,
    -0.5,
    float("nan"),
    float("inf"),
    1e38,
    "x",
    "",
    "../../victim",
    "\0",
    [],
    {},
    (),
    [1, 2],
    {"x": 1},
    {0: 1},
    torch.zeros(3),
    torch.tensor(-1),
    torch.tensor(2**62),
    torch.tensor(float("nan")),
    torch.zeros(0),
    torch.zeros(1).expand(10**9),
    torch.zeros(2, 2).to_sparse(),
    torch.zeros(2, device="meta"),
    torch.tensor([True]),
    torch.ones(2, dtype=torch.complex64),
]
RESHAPED = [
    lambda t: t.flatten(),
    lambda t: t.unsqueeze(0),
    lambda t: t[:-1] if t.dim() else t,
    lambda t: torch.cat([t, t]) if t.dim() else t,
    lambda t: t.double(),
    lambda t: t.half(),
    lambda t: t.long(),
    lambda t: t.bool(),
    lambda t: t * 0,
    lambda t: -t.float(),
    lambda t: t.mT if t.dim() > 1 else t,
    lambda t: t.flip(0) if t.dim() else t,
]


def leaves(content, path=()):
    """The paths of everything in nested containers."""
    if isinstance(content, dict | list | tuple):
        for key in content if isinstance(content, dict) else range(len(content)):
            yield (*path, key)
            yield from leaves(content[key], (*path, key))


def changed(content, path, change):
    """The content with ``change`` made to what is at ``path``; what it gives is put there, or
    nothing for a deletion.
    """
    if not path:
        return change(content)
    key, *rest = path
    if isinstance(content, tuple):
        return tuple(changed(list(content), path, change))
    new = copy.copy(content)
    if rest:
        new[key] = changed(new[key], rest, change)
    elif change is None:
        del new[key]
    else:
        new[key] = change(new[key])
    return new


def one_number(value, place, number):
    """A copy of a tensor with another number somewhere; other things stay."""
    if (
        not isinstance(value, torch.Tensor)
        or not value.numel()
        or value.layout != torch.strided
        or value.is_meta
    ):
        return number
    value = value.clone()
    value.view(-1)[place % value.numel()] = torch.tensor(number).to(value.dtype)
    return value


@st.composite
def mutations(draw, content):
    """The content with one to three changes."""
    for _ in range(draw(st.integers(1, 3))):
        paths = list(leaves(content))
        if not paths:  # all was deleted
            break
        path = draw(st.sampled_from(paths))
        kind = draw(st.sampled_from("delete replace swap reshape number number".split()))
        if kind == "delete":
            change = None
        elif kind == "replace":
            value = draw(st.sampled_from(VALUES))
            change = lambda _, value=value: value  # noqa: E731
        elif kind == "swap":
            other = content
            for key in draw(st.sampled_from(paths)):
                other = other[key]
            change = lambda _, other=other: other  # noqa: E731
        elif kind == "reshape":
            shape = draw(st.sampled_from(RESHAPED))
            change = lambda t, shape=shape: shape(t) if isinstance(t, torch.Tensor) else t  # noqa: E731
        else:
            place, number = draw(st.integers(0, 999)), draw(st.sampled_from(NUMBERS))
            change = lambda t, place=place, number=number: one_number(t, place, number)  # noqa: E731
        content = changed(content, path, change)
    return content


@contextlib.contextmanager
def limited():
    """Fails where the block takes more than SECONDS."""

    def over(*_):
        raise AssertionError(f"no answer after {SECONDS} s")

    before, (left, _) = (
        signal.signal(signal.SIGALRM, over),
        signal.setitimer(signal.ITIMER_REAL, SECONDS),
    )
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, left)  # the time limit of the test
        signal.signal(signal.SIGALRM, before or signal.SIG_DFL)


def outcome(*run):
    """Exit code of a command; where it is a refusal, it has one line."""
    out, err = io.StringIO(), io.StringIO()
    with limited(), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        function, *arguments = run
        code = function(*arguments)
    said = err.getvalue()
    assert "Traceback" not in said
    assert code in (0, 2)
    if code == 2:
        errors = [line for line in said.splitlines() if line.startswith("error: ")]
        assert len(errors) == 1
        assert said.strip().splitlines()[-1] == errors[0]
    return code, said


class Bases(dict):
    """Runs by name."""

    def __repr__(self):  # a failure shows what is drawn, not what it is drawn from
        return "bases"


@pytest.fixture(scope="module")
def bases(tmp_path_factory):
    """A tiny finished run of each method, and what its last.ckpt holds; beside it something that
    is not ours.
    """
    logdir = tmp_path_factory.mktemp("bases")
    found = Bases()
    for name, game in GAMES.items():
        train_cli(logdir, 2, gamename=game, implementation=name, checkpoint_interval=1)
        folder = run_dir(logdir, game, implementation=name)
        found[name] = folder, torch.load(folder / "last.ckpt", weights_only=True)
    return found


@pytest.fixture
def place(tmp_path):
    """An empty logdir beside a file of somebody else."""
    (tmp_path / "victim").mkdir()
    (tmp_path / "victim" / "theirs.txt").write_text("theirs")
    yield tmp_path / "logdir"
    assert (tmp_path / "victim" / "theirs.txt").read_text() == "theirs"
    assert sorted(path.name for path in tmp_path.iterdir()) in (["logdir", "victim"], ["victim"])


def placed(logdir, folder, name, content):
    """A fresh copy of the run with another last.ckpt."""
    target = run_dir(logdir, GAMES[name], implementation=name)
    shutil.rmtree(logdir, ignore_errors=True)
    shutil.copytree(folder, target)
    torch.save(content, target / "last.ckpt")
    return target


@given(st.data())
def test_a_changed_checkpoint_is_refused_or_resumed(bases, place, data):
    name = data.draw(st.sampled_from(list(GAMES)))
    folder, content = bases[name]
    target = placed(place, folder, name, data.draw(mutations(content)))
    before = {path: path.read_bytes() for path in target.rglob("*") if path.is_file()}
    flags = ("--max_epochs", "3", "--resume")
    code, said = outcome(
        lambda: run_cli(
            place, *flags, gamename=GAMES[name], implementation=name, checkpoint_interval=1
        )
    )
    state = yaml.safe_load((target / "state.yaml").read_text())["state"]
    if code == 0:
        after = torch.load(target / "last.ckpt", weights_only=True)
        assert after["epoch"] >= 2
        assert state == "finished"
        finite = (
            value
            for key, value in after["state_dict"].items()
            if value.is_floating_point() and "best_score" not in key
        )
        assert all(bool(value.isfinite().all()) for value in finite)
    elif state == "finished":  # refused before it began
        assert {path: path.read_bytes() for path in target.rglob("*") if path.is_file()} == before
    else:  # it diverged, or its environment did
        assert any(word in said for word in ("diverged", "epoch", "episode", "state")), said


@FEW
@given(st.data())
def test_a_changed_checkpoint_is_refused_or_evaluated(bases, place, data):
    name = data.draw(st.sampled_from([name for name in GAMES if name not in ("SE", "MBRL")]))
    folder, content = bases[name]
    kept = {key: content[key] for key in ("hyper_parameters", "state_dict")}
    target = placed(place, folder, name, {**content, **data.draw(mutations(kept))})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("lightning_rl.lab.evaluate.can_film", lambda spec: False)
        flags = [
            "--eval_agent",
            str(target / "last.ckpt"),
            "--eval_episodes",
            "1",
            "--num_workers",
            "0",
        ]
        code, _ = outcome(main, flags)
    assert (target / "evaluation.json").exists() == (code == 0)


@FEW
@given(st.data())
def test_a_changed_checkpoint_is_refused_or_reloaded(bases, place, data):
    name = data.draw(
        st.sampled_from([name for name in GAMES if name in ("UDRL", "AAC", "DDQN", "PPO", "QL")])
    )
    folder, content = bases[name]
    target = placed(place, folder, name, data.draw(mutations(content)))
    flags = ("--max_epochs", "1", "--reload", str(target / "last.ckpt"), "--seed", "1")
    code, _ = outcome(
        lambda: run_cli(
            place, *flags, gamename=GAMES[name], implementation=name, learning_rate=1e-30
        )
    )
    if code == 0:  # what was learned is there, and stays as it was
        given, kept = (last(place, name, GAMES[name], seed)["state_dict"] for seed in (25, 1))
        for key in kept:
            if key.startswith(("policy.", "policies.")) and not key.endswith(
                (".scale", ".shift", ".guidance", ".usual")  # which an epoch fits
            ):
                torch.testing.assert_close(kept[key], given[key], rtol=1e-6, atol=1e-20)


@FEW
@given(st.data())
def test_bytes_that_are_changed_are_never_content(bases, place, data):
    folder, content = bases["AAC"]
    target = placed(place, folder, "AAC", content)
    whole = bytearray((target / "last.ckpt").read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    (target / "last.ckpt").write_bytes(
        whole[: data.draw(st.integers(0, len(whole)))] if data.draw(st.booleans()) else whole
    )
    flags = ("--max_epochs", "2", "--resume")
    outcome(
        lambda: run_cli(
            place, *flags, gamename="cartpole", implementation="AAC", checkpoint_interval=1
        )
    )


@given(st.data())
def test_a_changed_proxy_is_refused_or_plays(place, data):
    place.mkdir(exist_ok=True)
    name = data.draw(st.sampled_from(["SE-CartPole-v0", "RN-CartPole-v0", "RN-Cliff-v0"]))
    path = place / "proxy.pt"
    torch.save(data.draw(mutations(torch.load(proxy_path(name), weights_only=True))), path)
    env, refusal = None, ""
    with limited():
        try:
            env = load_proxy(path)
        except UserError as error:
            refusal = str(error)
        if env is not None:
            env.reset(seed=0)
            assert isinstance(env.step(env.action_space.sample())[1], float)
    assert "\n" not in refusal


CSVS = {
    "curves": "gamename,exp_name,implementation,seed,env_steps,value\ncartpole,e,A,1,10,1.5\ncartpole,e,A,2,10,2.5\n"  # noqa: E501
    "cartpole,e,A,1,20,3\n",
    "commands": "run,command,commanded,obtained_mean,obtained_sd\nr,return,1,2,0.5\nr,return,2,3,0.5\n",  # noqa: E501
    "policy-gradient": "method,seed,episode,policy_loss,baseline,entropy_loss,mean_return\nA,1,100,1,,3,4\nA,1,200,2,,3,5\n",  # noqa: E501
    "proxy-success": "gamename,seed,generation,fitness_mean,settings\ncartpole,1,0,10,s\ncartpole,1,1,300,s\ncartpole,2,0,20,s\n",  # noqa: E501
    "proxy-transfer": "gamename,trained_on,proxy,agent,protocol,number,return_mean,train_steps,episodes,test_returns\n"  # noqa: E501
    "cartpole,real,real,DDQN,fixed,0,10,100,5,10 11\ncartpole,SE,p,DDQN,fixed,0,12,100,5,12 13\n",
    "reward-curves": "gamename,trained_on,proxy,agent,protocol,number,every,returns\ncliff,real,real,QL,fixed,0,10,1 "  # noqa: E501
    "2 3\n"
    "cliff,RN,p,QL,fixed,0,10,2 3 4\n",
    "proxy-histograms": "gamename,proxy,agent,protocol,agents,sample,component,width,lows,counts\n"
    "cartpole,p,DDQN,fixed,1,real,reward,1,0 1,5 "
    "2\ncartpole,p,DDQN,fixed,1,synthetic,reward,1,1,7\n",
}
CELLS = [
    "",
    *"x -1 0 1e308 inf nan".split(),
    "1 2",
    "1 x",
    '"',
    "=1+1",
    "\u2603",
    "9" * 400,
    "\0",
    "a,b",
    "\n",
    "$x_{$",
    "[/]",
    "1e99",
]


@st.composite
def tables(draw, text):
    """A CSV with one to three changes: cells, columns, rows, bytes."""
    rows = [line.split(",") for line in text.splitlines()]
    for _ in range(draw(st.integers(1, 3))):
        row = draw(st.integers(0, len(rows) - 1))
        kind = draw(
            st.sampled_from(
                ["cell", "cell", "cell", "drop row", "twice", "longer", "shorter", "drop column"]
            )
        )
        if kind == "cell" and rows[row]:
            rows[row][draw(st.integers(0, len(rows[row]) - 1))] = draw(st.sampled_from(CELLS))
        elif kind == "drop row" and len(rows) > 1:
            del rows[row]
        elif kind == "twice":
            rows.append(list(rows[row]))
        elif kind == "longer":
            rows[row].append("1")
        elif kind == "shorter":
            rows[row] = rows[row][:-1]
        elif kind == "drop column":
            rows = [line[1:] for line in rows]
    end = draw(st.sampled_from(["\n", "", "\r\n"]))
    return ("\n".join(",".join(line) for line in rows) + end).encode()


def test_the_tables_are_drawn_as_they_are(tmp_path):
    for figure in CSVS if os.environ.get("FUZZ") == "long" else ("curves", "reward-curves"):
        (tmp_path / "table.csv").write_text(CSVS[figure])
        assert (
            main(["figures", figure, str(tmp_path / figure), str(tmp_path / "table.csv")]) == 0
        ), figure


@FEW
@given(st.data())
def test_a_changed_table_is_refused_or_drawn(place, data):
    place.mkdir(exist_ok=True)
    figure = data.draw(st.sampled_from(list(CSVS)))
    (place / "table.csv").write_bytes(data.draw(tables(CSVS[figure])))
    for old in place.glob("out*"):
        old.unlink()
    code, _ = outcome(main, ["figures", figure, str(place / "out"), str(place / "table.csv")])
    assert (place / "out.png").exists() == (code == 0)


@given(st.data())
def test_changed_event_files_are_named_and_the_rest_is_listed(place, data):
    folder = place / "cartpole" / "default" / "UDRL" / "seed_1" / "logger" / "version_0"
    shutil.rmtree(place, ignore_errors=True)
    with SummaryWriter(folder) as writer:
        for step in range(5):
            writer.add_scalar("eval/return_mean", step, step * 10)
    (path,) = folder.glob("*tfevents*")
    whole = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 5))):
        whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(0, len(whole)))
    path.write_bytes(whole if data.draw(st.booleans()) else whole[:cut])
    code, _ = outcome(main, ["runs", str(place)])
    assert code == 0
