"""From words to a mode and the values of all flags.

A flag that would be ignored is refused with an error that names it.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Collection, Sequence

from lightning_rl import __version__
from lightning_rl.cli.flags import COMMANDS, FLAGS, GROUPS, Mode
from lightning_rl.core.arguments import Parser
from lightning_rl.core.catalogue import aliases, entries
from lightning_rl.core.config import as_setting
from lightning_rl.core.errors import UserError
from lightning_rl.core.gamenames import GAMES
from lightning_rl.core.modules import NAME_MODULE

SUMMARIES = {
    "train": "train a method on an environment, or resume a run that was stopped",
    "eval": "evaluate a checkpoint, or that of a run: prints a table, writes evaluation.json and a "
    "film",
    "tune": "search hyper-parameters with Ray Tune",
}

_EPILOG = (
    "All files of a run are written to LOGDIR/GAMENAME/EXP_NAME/IMPLEMENTATION/seed_N/. "
    f"To use a method of your own: {NAME_MODULE}."
)
_REMEDIES = {
    (Mode.TUNE, "--num_seeds"): "a search takes its seeds per trial from --tune seeds=N",
    (Mode.TUNE, "--no_checkpoint"): "a trial goes on from its checkpoints",
    (Mode.IMAGINE, "--eval_command"): "the model's roll-outs take the checkpoint's command",
}


def build_parser(program: str = "trainer.py", command: str | None = None) -> Parser:
    """The parser of a command, or of ``trainer.py``, which has all flags."""
    if command is None:
        about = "Train, resume and evaluate reinforcement-learning methods."
    else:
        about = SUMMARIES[command]
        program = f"{program} {command}"
    trains = FLAGS["--set"].word(command) != ""
    parser = Parser(prog=program, description=about, epilog=_EPILOG if trains else None)
    if command is None:
        parser.add_argument("--version", action="version", version=__version__)
    names = {
        "entries": ", ".join(entries()),
        "aliases": ", ".join(aliases()),
        "games": ", ".join(GAMES),
    }
    for title, flags in GROUPS.items():
        own = [flag for flag in flags if flag.word(command)]
        if not own:
            continue
        group = parser.add_argument_group(title)
        for flag in own:
            flag.add_to(group, command, names)
    if trains:
        parser.suggest_replacement = as_setting
    for name, flag in FLAGS.items():
        if not flag.word(command):
            parser.flags_of_other_commands[name] = f"it goes with {_where(name, command)}"
    return parser


def parse(
    words: Sequence[str], program: str = "trainer.py", command: str | None = None
) -> tuple[Mode, Namespace]:
    """The mode that the words ask for, and the values of all flags; UserError for flags that do
    not go together.
    """
    given = vars(build_parser(program, command).parse_args(words))
    if command == "tune":
        given["use_tune"] = True
    mode = mode_of([name for name, flag in FLAGS.items() if flag.dest in given], command)
    defaults = {flag.dest: flag.default for flag in FLAGS.values()}
    return mode, Namespace(**{**defaults, **given})


def mode_of(given: Collection[str], command: str | None = None) -> Mode:
    """The mode that the names of the given flags ask for; UserError for flags that do not go
    together.
    """
    usual = Mode.TRAIN if command is None else COMMANDS[command][0]
    mode = next((mode for mode in Mode if mode.flag in given), usual)
    if mode is Mode.IMAGINE and "--eval_agent" not in given:
        raise UserError("--imagine goes with --eval_agent CKPT; leave it out for training")
    for name in given:
        flag = FLAGS[name]
        if mode not in flag.modes:
            remedy = _REMEDIES.get((mode, name), "leave it out")
            raise UserError(
                f"{flag.word(command)} goes with {_where(name, command)}, not with "
                f"{mode.called_in(command)}; {remedy}"
            )
    if "--render" in given:
        for name in given:
            if name not in ("--eval_agent", "--eval_command", "--render"):
                raise UserError(
                    f"{FLAGS[name].word(command)} and --render human, which plays one episode, "
                    "exclude each other; leave one out"
                )
    return mode


def _where(name: str, command: str | None) -> str:
    modes = [mode.called_in(command) for mode in Mode if mode in FLAGS[name].modes]
    return " or ".join(modes)
