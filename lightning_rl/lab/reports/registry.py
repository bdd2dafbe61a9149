"""Commands about runs and configs, by name: ``lightning-rl NAME ...``."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

from lightning_rl.core.arguments import Argument, Tool, argument, force, repeated, switch
from lightning_rl.core.kinds import Whole, checked_path, figure_path, gamename, web_address
from lightning_rl.core.limits import EPISODES, SEED
from lightning_rl.lab.figures.registry import BINNED, SCORE
from lightning_rl.run.imports import import_lightning
from lightning_rl.run.state import checkpoint_at

RUN_COLUMNS = (
    "implementation",
    "gamename",
    "exp_name",
    "seed",
    "env_steps",
    "hours",
    "last",
    "best",
    "state",
    "scalar",
    "run",
    "reason",
)
EXPORT_EPISODES = 100
DEMO_AGENTS = ("obedient-lunarlander", "RCP-A-cartpole", "RCP-A-pendulum", "DDQN-cartpole")
PAGE_TAGS = ("rollout/return_mean", "eval/return_mean", "eval_greedy/return_mean")

_FOLDERS = argument(
    "folders", "run directory, or folder that holds some", checked_path, nargs="+", metavar="DIR"
)
_AGENT = argument("agent", "agent of the package, checkpoint or run directory")
_SEED = argument(
    "--seed", "seed of the environment and the actions (default 0)", Whole(0, SEED), default=0
)
_COMMANDS = "NAME=VALUE,..."


def _episodes(help: str, default: int = 100, least: int = 1) -> Argument:
    return argument("--episodes", help, Whole(least, EPISODES), default=default)


def _file(help: str) -> tuple[Argument, Argument]:
    return argument("-o --out", help, checked_path), force("FILE")


_SIDE = "folder with the runs of one method, or a results CSV[:LABEL]"
_REPORTS = "lightning_rl.lab.reports"


class _OfAgent(Tool):
    """A command that plays an agent, which must be there before Lightning is imported for it."""

    def call(self, given: Namespace) -> None:
        for agent in given.agent if isinstance(given.agent, list) else [given.agent]:
            checkpoint_at(Path(agent))
        import_lightning()
        super().call(given)


REPORTS = {
    "report": Tool(
        "make one self-contained HTML page about runs",
        f"{_REPORTS}.page:show",
        (
            _FOLDERS,
            argument(
                "-o --out",
                "where to write it (default: figures/report.html)",
                figure_path,
                default="report.html",
            ),
            force(),
            argument(
                "--tag",
                f"scalar to draw; repeatable (default {', '.join(PAGE_TAGS)})",
                action="append",
            ),
            argument(
                "--group",
                "as for lightning-rl figures curves; repeatable",
                action="append",
                metavar="KEY",
            ),
            switch("--videos", "include whole films instead of single frames"),
            argument("--title", "title of the page", default="Runs"),
        ),
    ),
    "runs": Tool(
        "list runs in a table: method, environment, seed, steps, last and best return, state",
        f"{_REPORTS}.listing:show",
        (
            _FOLDERS,
            repeated("--sort", f"one of {', '.join(RUN_COLUMNS)}", "COLUMN", choices=RUN_COLUMNS),
            switch("--reverse", "sort in descending order"),
            argument("--csv", "also write the table to this file", checked_path),
            force("--csv FILE"),
        ),
    ),
    "compare": Tool(
        "compare two methods: difference of means, probability of improvement, intervals",
        f"{_REPORTS}.compare:show",
        (argument("a", _SIDE, metavar="A"), argument("b", _SIDE, metavar="B"), *BINNED, SCORE),
    ),
    "agents": Tool(
        "list the trained agents of the package: scores, commands, how they were made",
        f"{_REPORTS}.agents:show",
        (),
    ),
    "record": _OfAgent(
        "record episodes of an agent as a Minari dataset, for offline training here or elsewhere",
        "lightning_rl.lab.record:show",
        (
            _AGENT,
            argument(
                "-o --out",
                "where to write it: a folder NAME-v0, or minari:NAME-v0 for Minari's own",
                required=True,
                metavar="DATASET",
            ),
            _episodes("how many (default 100)"),
            argument(
                "--command",
                "what is asked of it, e.g. return=150 (default: the agent's own)",
                metavar=_COMMANDS,
            ),
            argument(
                "--actions",
                "how it acts (default: as the method's agents are meant to; uniform: at random)",
                choices=("sampled", "greedy", "uniform"),
            ),
            _SEED,
        ),
    ),
    "play": _OfAgent(
        "ask an agent for a return and see what it obtains: in numbers, and in a window or film",
        "lightning_rl.lab.play:show",
        (
            _AGENT,
            argument(
                "--return",
                "the return to ask for, of agents that take one (default: the agent's own command)",
                dest="wanted",
                metavar="RETURN",
            ),
            argument("--command", "any other command, e.g. advantage=1.5", metavar=_COMMANDS),
            _episodes("how many are played, of which three are shown (default 100)"),
            *_file(
                "film them in a .gif or .png of this name (default: a window, or where there is no "
                "screen a .gif beside the checkpoint)"
            ),
            _SEED,
        ),
    ),
    "film": _OfAgent(
        "film an agent under one command or several: a GIF, frames in a PNG, or a window",
        "lightning_rl.lab.films:show",
        (
            _AGENT,
            argument(
                "commands",
                "commands, e.g. return=-100 return=250 (default: the agent's own)",
                nargs="*",
                metavar=_COMMANDS,
            ),
            *_file("where to write it, a .gif or .png (default: film.gif beside the checkpoint)"),
            _SEED,
            switch("--window", "show it on the screen instead"),
        ),
    ),
    "export": _OfAgent(
        "write a policy as a folder that others use: ONNX, torch.export, safetensors, a card",
        "lightning_rl.lab.exports:show",
        (
            _AGENT,
            argument("out", "folder to write", checked_path, metavar="OUT"),
            _episodes(
                "episodes that its score is of, with sampled and with greedy actions; 0: no score "
                f"(default {EXPORT_EPISODES})",
                EXPORT_EPISODES,
                0,
            ),
            argument(
                "--license",
                "of the policy, e.g. cc-by-4.0 (default mit)",
                default="mit",
                metavar="NAME",
            ),
            force(),
        ),
    ),
    "demo": _OfAgent(
        "serve a web page in which agents play what a slider asks of them",
        "lightning_rl.lab.demo.page:show",
        (
            argument(
                "agent",
                "agent of the package, checkpoint, run directory or export, of lunarlander, "
                f"cartpole or pendulum (default: {', '.join(DEMO_AGENTS)})",
                nargs="*",
                default=list(DEMO_AGENTS),
            ),
            *_file("save the page there instead of serving it"),
            argument("--code", "address that the page links to as its code", web_address),
            argument(
                "--port", "port of this machine (default 8000)", Whole(0, 65535), default=8000
            ),
        ),
    ),
    "config": Tool(
        "list the keys of a method's config with meaning, value and source; piped, they are YAML",
        f"{_REPORTS}.config_table:show",
        (
            argument("implementation", "method, e.g. UDRL", metavar="NAME"),
            argument("--gamename", "show the values for this environment", gamename),
            argument("--preset", "show the values with this preset", metavar="NAME"),
            switch("--markdown", "print a Markdown table"),
        ),
    ),
}
