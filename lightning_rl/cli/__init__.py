"""The command line: ``lightning-rl``, ``python -m lightning_rl`` or ``python trainer.py``.

A first word that is no flag names a command. ``trainer.py`` also takes the flags of training,
searching and evaluating without one.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

from lightning_rl import __version__
from lightning_rl.cli.commands import ACTIONS
from lightning_rl.cli.parser import SUMMARIES, parse
from lightning_rl.cli.tools import tools, use
from lightning_rl.core.arguments import Parser, list_commands
from lightning_rl.core.catalogue import import_own_modules
from lightning_rl.core.errors import user_message
from lightning_rl.core.extras import missing
from lightning_rl.core.lines import guard_terminal, say
from lightning_rl.core.modules import look_in
from lightning_rl.core.stopping import Stopped, after, exit_code, stoppable


def main(argv: Sequence[str] | None = None, program: str = "trainer.py") -> int:
    """Runs the command line; the exit code. Errors of the user are one line and code 2.

    program: what the user typed, ``trainer.py`` or the name of the command.
    """
    guard_terminal()
    words = list(sys.argv[1:] if argv is None else argv)
    try:
        with stoppable():
            return _run(words, program)
    except KeyboardInterrupt as stop:
        message = "left at once; what is written is whole"
        if _resumable(words):
            when = stop.resumes if isinstance(stop, Stopped) else "goes on"
            message += f": --resume {when}"
        say(message, error=True)
        return exit_code(stop)
    except Exception as error:
        line = user_message(error, _resumable(words)) or missing(error)
        if line is None:
            raise
        say(f"error: {line}", error=True)
        return 2


def _run(words: Sequence[str], program: str) -> int:
    if program != "trainer.py" and (not words or words[0] in ("-h", "--help")):
        _print_help(program)
        return 0
    import_own_modules()
    if not words or words[0].startswith("-"):
        mode, arguments = parse(words, program)
    elif words[0] in SUMMARIES:
        mode, arguments = parse(words[1:], program, words[0])
    else:
        try:
            use(words, program)
        except BrokenPipeError:  # who reads the output has left, e.g. head
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    return ACTIONS[mode](arguments)


def _print_help(program: str) -> None:
    """The commands, with one line each."""
    parser = Parser(
        prog=program,
        description="Reinforcement-learning research on PyTorch Lightning: train, evaluate, search "
        "and compare methods.",
        epilog=f"{program} NAME --help describes a command and its flags.",
    )
    parser.add_argument("--version", action="version", version=__version__)
    list_commands(parser, {**SUMMARIES, **{name: tool.summary for name, tool in tools().items()}})
    parser.print_help()


def _resumable(words: Sequence[str]) -> bool:
    """Whether --resume goes on with what the words of a command line began."""
    words = [word.partition("=")[0] for word in words]
    if "--no_checkpoint" in words:
        return False
    if words and not words[0].startswith("-"):
        return words[0] in ("train", "tune")
    return "--figure" not in words and "--eval_agent" not in words


def leave(code: int) -> NoReturn:
    """Ends the process; after a signal in good time, whatever still waits for whom."""
    if code > 128:
        after(1.0, os._exit, code)
    sys.exit(code)


def entry_point() -> NoReturn:
    """``lightning-rl``, ``python -m lightning_rl`` or ``trainer.py``; of the present folder only
    typed modules are run.
    """
    with suppress(OSError):  # it may have been deleted
        look_in(str(Path.cwd()))
    name = Path(sys.argv[0]).name
    leave(main(program="python -m lightning_rl" if name == "__main__.py" else name))
