"""Hostile command lines: whatever is typed ends with exit code 0, or 2 and one line; nothing hangs,
and no file is touched.

Everything is checked for real; only the training, the playing and the cluster are stubbed.
"""

import contextlib
import dataclasses
import io
import os
import shutil
import signal

import pytest
from helpers.budgets import fitting
from helpers.runs import run_dir, train_cli
from helpers.toys import make_episode
from hypothesis import event, example, given, settings
from hypothesis import strategies as st

from lightning_rl.cli import main
from lightning_rl.cli.flags import FLAGS, Mode
from lightning_rl.cli.parser import build_parser
from lightning_rl.cli.tools import tools
from lightning_rl.core.catalogue import aliases
from lightning_rl.core.errors import UserError
from lightning_rl.core.gamenames import GAMES
from lightning_rl.lab.tuning.space import FORMS, TuneConfig
from lightning_rl.methods.registry import IMPLEMENTATIONS
from lightning_rl.run import footprint

CPU_S, WALL_S = 30.0, 60.0
BOMB = (
    "["
    + ", ".join(f"&a{n} [" + ", ".join([f"*a{n - 1}"] * 9 if n else "x") + "]" for n in range(9))
    + "]"
)
NUMBERS = (
    *"0 1 2 7 -1 100 3.5 1e-3 1e400 -1e400 nan .nan inf -.inf 1e308 1e-320".split(),
    *(
        "1000000",
        "100000000",
        "1000000000000",
        "10000000000000",
        "9" * 30,
        "9" * 5000,
        "0x" + "f" * 5000,
    ),
    *("1_000", "１２", "1:30", "-0.0"),
)
PLAIN = (*"1 2 3 0.5 0.9 1.0 true false null [8]".split(), "[8, 8]", "none", "best", "100")
YAMLS = (
    *(
        *"null ~ true no [] {}".split(),
        "[1, 2]",
        "[0]",
        "[8, 8]",
        "[a, 1.5]",
        "[[1]]",
        "{a: 1}",
        "{a: 1, a: 2}",
    ),
    *(
        "[" * 3000,
        "{a: " * 3000,
        "!!int abc",
        "!!int ''",
        "!!float x",
        "!!bool x",
        "!!timestamp x",
        "!!binary '%'",
        "!!set {a}",
    ),
    *(
        "!!python/object/apply:os.system [ls]",
        "2024-13-45",
        "2024-11-12",
        "&a [*a]",
        BOMB,
        *"[1, *x ' @ %".split(),
    ),
    *(
        "[" + "9, " * 3000 + "9]",
        "{DDQN: {hidden: [1000000]}}",
        "{PPO: null}",
        "[DDQN, PPO]",
        "{QL: {gamma: .nan}}",
        "DDQN",
    ),
    "{[1]: 2}",
)
TEXTS = (
    *(
        "",
        " ",
        "\n",
        "a\nb",
        "\t",
        "\x1b[31m",
        "\udcff",
        "\0",
        "a\0b",
        "é" * 200,
        "💥",
        "x" * 300,
        "x" * 5000,
        "a/" * 3000,
    ),
    *(*".. ../.. / - -- = a=b=c =1 %s%n {0} [/] [lr=0.1]".split(), r"$\frac{$", "*", "~", ":", ","),
    *(
        "/dev/null /dev/zero /proc/self/mem /proc/self/environ panflute-3 panflute-99999 "
        "procmaze- cliff"
    ).split(),
    *(
        "sweep sweep=0:1 sweep=5:1 sweep=nan:1 sweep=0:inf return=1,return=2 return=nan return=200"
    ).split(),
    *("horizon=0", "---\n---"),
)
FILES = (
    *"@fifo @folder @missing @empty @binary @text.csv @table.csv @hostile.yaml @plain.yaml".split(),
    *"@short.ckpt @good.ckpt @closed @run @broken @dangling @notes.md @new @new.csv".split(),
    *("@run/config.yaml", "@huge.yaml", "@nameless.csv"),
)

texts = st.one_of(st.sampled_from(TEXTS), st.text(max_size=12), st.sampled_from(FILES))
floats = st.floats(
    allow_subnormal=False
)  # a command before may have made them zero; NUMBERS has one
values = st.one_of(
    st.sampled_from(NUMBERS), st.sampled_from(YAMLS), texts, st.integers().map(str), floats.map(str)
)
names = st.sampled_from((*IMPLEMENTATIONS, *aliases(), "SE", "DDQN", "UDRL"))
_GIVEN = {
    "--figure",
    "--eval_agent",
    "--imagine",
    "--implementation",
    "--gamename",
    "--preset",
    "--ray_address",
}
FITTING = [(name, game) for name, game in fitting() if name != "UDRL"] + [("UDRL", "cartpole")] * 9
games = st.sampled_from((*GAMES, "panflute-3", "procmaze-2", "cartpole", "cartpole"))


def keys_of(name):
    return [
        field.name
        for field in dataclasses.fields(IMPLEMENTATIONS[aliases().get(name, name)].Config)
    ]


def mostly(ordinary, hostile, draw):
    return ordinary if draw(st.integers(0, 3)) else hostile


@st.composite
def settings_of(draw, keys):
    odd = st.one_of(st.sampled_from(["agent.DDQN.hidden", "hidden.0", "agent.x.y", "."]), texts)
    return f"{draw(mostly(st.sampled_from(keys), odd, draw))}={draw(mostly(st.sampled_from(PLAIN), values, draw))}"  # noqa: E501


@st.composite
def flags(draw, chosen, name):
    """A flag with a value of its kind or a hostile one."""
    action = next((a for a in build_parser()._actions if chosen in a.option_strings), None)
    if action is None or action.nargs == 0:  # one of another command alone
        return [chosen]
    if chosen == "--set":
        return [chosen, draw(settings_of(keys_of(name)))]
    if chosen == "--tune":
        keys = [field.name for field in dataclasses.fields(TuneConfig)]
        searched = st.tuples(st.sampled_from(keys_of(name)), st.sampled_from(list(FORMS)), values)
        space = searched.map(lambda drawn: f"search={{{drawn[0]}: {{{drawn[1]}: {drawn[2]}}}}}")
        return [chosen, draw(st.one_of(space, settings_of(keys)))]
    known = {
        "--implementation": names,
        "--gamename": games,
        **dict.fromkeys(("--config", "--reload"), st.sampled_from(FILES)),
    }
    ordinary = (
        st.sampled_from(action.choices) if action.choices else known.get(chosen, st.just("1"))
    )
    return [chosen, draw(mostly(ordinary, values, draw))]


@st.composite
def training_lines(draw):
    """A command line of the trainer, ordinary but for one to four flags."""
    name, game = draw(mostly(st.sampled_from(FITTING), st.tuples(names, games), draw))
    often = [Mode.TRAIN] * 7 + [Mode.TUNE] * 2
    mode = draw(st.sampled_from([*often, Mode.EVAL, Mode.IMAGINE]))
    if mode in (Mode.EVAL, Mode.IMAGINE):
        words = ["--eval_agent", "@good.ckpt"]
    else:
        words = ["--implementation", name, "--gamename", game]
    if mode in (Mode.TUNE, Mode.IMAGINE):
        words.append(mode.flag)
    own = {name for name, flag in FLAGS.items() if mode in flag.modes}
    fitting_flags = st.sampled_from(sorted(own - _GIVEN))
    anything = st.sampled_from(sorted(FLAGS.keys() - {"--figure"}))
    usual = st.just(
        {Mode.EVAL: "--eval_command", Mode.IMAGINE: "--eval_episodes"}.get(mode, "--set")
    )
    for _ in range(draw(st.integers(1, 3))):
        chosen = draw(mostly(usual, mostly(fitting_flags, anything, draw), draw))
        words += draw(flags(chosen, name))
    return words


@st.composite
def tool_lines(draw):
    """A command line of a tool: a command, its sources, a flag of its own or none."""
    tool = draw(st.sampled_from("figures proxies report runs compare config docs".split()))
    inner = getattr(tools()[tool], "tools", None)
    words = [tool, *([draw(st.sampled_from(sorted(inner)))] if inner else [])]
    # All runs of the whole disk are no fault of a report that is asked for them.
    sources = st.one_of(st.sampled_from(FILES), texts).filter(
        lambda word: word not in ("/", "..", "../..")
    )
    words += draw(st.lists(sources, max_size=4))
    extra = tuple(
        (
            "--tag --group --csv --sort --x --bin --at --window --threshold --title --count "
            "--seed --set --runs --steps --force --markdown -o --reference --until --last"
        ).split()
    )
    for flag in draw(st.lists(st.sampled_from(extra), max_size=2)):
        words += [flag, *([] if flag in ("--force", "--markdown") else [draw(values)])]
    return words


class Hang(BaseException):
    """An example took too long."""


@contextlib.contextmanager
def time_limit():
    def stop(*_):
        raise Hang

    kinds = {
        signal.SIGPROF: (signal.ITIMER_PROF, CPU_S),
        signal.SIGALRM: (signal.ITIMER_REAL, WALL_S),
    }
    before = {
        number: (signal.signal(number, stop), signal.setitimer(*timer))
        for number, timer in kinds.items()
    }
    try:
        yield
    finally:
        for number, (handler, (left, _)) in before.items():
            signal.setitimer(kinds[number][0], left)
            signal.signal(number, handler or signal.SIG_DFL)


def contents(*folders):
    """Every file, and of ordinary ones the content."""
    return {
        path: path.read_bytes() if path.is_file() and os.access(path, os.R_OK) else b""
        for folder in folders
        for path in folder.rglob("*")
    }


@pytest.fixture(scope="module")
def desk(tmp_path_factory):
    """Files of every kind, and nothing that trains, plays, or starts a process."""
    root = tmp_path_factory.mktemp("fuzz")
    files, patch = root / "files", pytest.MonkeyPatch()
    train_cli(root / "exp", 2)
    shutil.copytree(run_dir(root / "exp"), files / "run")
    shutil.copytree(files / "run", files / "broken")
    good = (files / "run" / "last.ckpt").read_bytes()
    for name, content in {
        "good.ckpt": good,
        "short.ckpt": good[: len(good) // 2],
        "empty": b"",
        "binary": bytes(range(256)) * 40,
        "text.csv": b"not a table, of mine\n",
        "table.csv": b"run,seed,env_steps,value\nseed_1,1,10,1.5\nseed_1,1,20,nan\n",
        "nameless.csv": b"run,gamename,seed,env_steps,value\nseed_1,,1,10,1.5\n",
        "hostile.yaml": BOMB.encode(),
        "plain.yaml": b"batch_size: 8\n",
        "huge.yaml": b"a: [" + b"1, " * 10**6 + b"1]",
        "closed": b"mine",
        "notes.md": b"<!-- made by: lightning-rl config [/] -->\nmine\n",
        "broken/config.yaml": BOMB.encode(),
    }.items():
        (files / name).write_bytes(content)
    (files / "folder").mkdir()
    (files / "closed").chmod(0)
    (files / "dangling").symlink_to(files / "nowhere")
    os.mkfifo(files / "fifo")
    os.mkfifo(files / "broken" / "evaluation.json")
    (root / "here").mkdir()
    patch.chdir(root / "here")

    def no_cluster(*_):
        raise UserError("no cluster in a test")

    def no_step(*_):
        raise UserError("nothing is played in a test")

    def no_table(*_):
        raise UserError("nothing is calibrated in a test")

    def played(method, asked, episodes, num_workers):
        return [[make_episode([1.0, 2.0])] for _ in asked]

    patch.setattr("pytorch_lightning.Trainer.fit", lambda *_, **__: None)
    patch.setattr("lightning_rl.run.processes.train_groups", lambda options, count: 0)
    patch.setattr("lightning_rl.lab.tuning.search.join_cluster", no_cluster)
    patch.setattr("lightning_rl.evolution.cluster.join_cluster", no_cluster)
    for module in ("evaluate", "sweeps"):
        patch.setattr(f"lightning_rl.lab.{module}.play", played)
    patch.setattr("lightning_rl.lab.calibration.calibrate", no_table)
    patch.setattr("lightning_rl.lab.evaluate.record_episode", lambda *_: None)
    patch.setattr("lightning_rl.lab.figures.commands.draw_sweep", lambda *_: None)
    for batch in ("batch.FuncBatch", "gym_batch.GymBatch"):
        patch.setattr(f"lightning_rl.envs.{batch}.step", no_step)  # evaluations of proxies
    patch.setattr(footprint, "memory", lambda: 5 * 10**8)
    yield root
    patch.undo()


def use(desk, words):
    """Runs one command line; its exit code."""
    words = [str(desk / "files" / word[1:]) if word.startswith("@") else word for word in words]
    before, said = contents(desk / "files", desk / "here"), io.StringIO()
    try:
        with (
            time_limit(),
            contextlib.redirect_stderr(said),
            contextlib.redirect_stdout(io.StringIO()),
        ):
            code = main(words)
    except SystemExit as leaving:  # --help and --version
        code = leaving.code
    event(f"{words[0]}: exit code {code}")
    after = contents(desk / "files", desk / "here")
    assert code in (0, 2)
    errors = [line for line in said.getvalue().splitlines() if line.startswith("error: ")]
    assert len(errors) == (code == 2)
    assert all(len(line) < 2100 and line.isprintable() for line in errors)
    for new in set(after) - set(before):
        with contextlib.suppress(OSError):
            shutil.rmtree(new) if new.is_dir() else new.unlink()
    for path in (path for path in before if before[path] == b"" and after.get(path)):
        path.write_bytes(b"")  # an OUT that holds nothing may be begun
        after[path] = b""
    assert {
        path: after.get(path) for path in before
    } == before  # nothing that was there has changed
    return code, sorted(set(after) - set(before))


@given(training_lines())
@example(["--logdir", "", "--exp_name", "a"])
@example(["--gamename", "procmaze-99999999999", "--implementation", "ER"])
def test_the_trainer_takes_whatever_is_typed(desk, words):
    logdir = desk / "exp_dir"
    here = [] if "--eval_agent" in words else ["--logdir", str(logdir)]
    code, new = use(desk, [*here, *words])
    made = list(logdir.rglob("*")) if logdir.exists() else []
    shutil.rmtree(logdir, ignore_errors=True)
    if code == 2:
        assert not made
        assert not [path for path in new if path.name in ("state.yaml", "config.yaml", ".lock")]


@given(tool_lines())
@example("runs @broken @fifo --csv @text.csv".split())
@example(["proxies", "generations", "@empty"])
@example(["figures", "scores", "@new", "@nameless.csv"])
@example(["report", "@broken", "-o", "@run/config.yaml"])
def test_tools_take_whatever_is_typed(desk, words):
    use(desk, words)


@settings(max_examples=settings().max_examples // 2)
@given(
    st.text(max_size=60)
    | st.sampled_from(YAMLS)
    | st.builds("{}: {}".format, st.sampled_from(keys_of("UDRL")), values)
)
def test_files_of_yaml_may_hold_anything(desk, text):
    content = text.encode(errors="surrogateescape" if text.isascii() else "replace")
    (desk / "drawn.yaml").write_bytes(content)
    run = desk / "drawn"
    (run / "logger").mkdir(parents=True, exist_ok=True)
    for name in ("config.yaml", "state.yaml", "evaluation.json"):
        (run / name).write_bytes(content)
    use(
        desk,
        [
            "--implementation",
            "UDRL",
            "--logdir",
            str(desk / "exp_dir"),
            "--config",
            str(desk / "drawn.yaml"),
        ],
    )
    shutil.rmtree(desk / "exp_dir", ignore_errors=True)
    use(desk, ["runs", str(run)])
