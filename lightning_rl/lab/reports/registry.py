"""Commands about runs and configs, by name: ``lightning-rl NAME ...``."""

from __future__ import annotations

from lightning_rl.core.arguments import Tool, argument, checked_path, figure_path, force, whole
from lightning_rl.lab.figures.registry import BINNED, SCORE

RUN_COLUMNS = (
    "implementation", "gamename", "exp_name", "seed", "env_steps", "hours", "last", "best", "state", "scalar", "run", "reason",
)  # fmt: skip
PAGE_TAGS = ("rollout/return_mean", "eval/return_mean", "eval_greedy/return_mean")

_FOLDERS = argument("folders", "run directory, or folder above some", type=checked_path, nargs="+", metavar="DIR")
_SIDE = "folder with the runs of one method, or a results CSV[:LABEL]"
_REPORTS = "lightning_rl.lab.reports"

REPORTS = {
    "report": Tool(
        "one self-contained HTML page about runs", f"{_REPORTS}.page:show",
        (
            _FOLDERS,
            argument("-o --out", "(figures/report.html)", type=figure_path, default="report.html", metavar="FILE"),
            force(),
            argument("--tag", f"scalar to draw; repeatable (default {', '.join(PAGE_TAGS)})", action="append"),
            argument("--group", "as of lightning-rl figures curves; repeatable", action="append", metavar="KEY"),
            argument("--videos", "whole films instead of stills", action="store_true"),
            argument("--title", "of the page", default="Runs"),
        ),
    ),
    "runs": Tool(
        "a table of all runs: method, environment, seed, steps, last and best return, state", f"{_REPORTS}.listing:show",
        (
            _FOLDERS,
            argument(
                "--sort", f"one of {', '.join(RUN_COLUMNS)}", action="append", default=[], choices=RUN_COLUMNS, metavar="COLUMN"
            ),
            argument("--reverse", "highest first", action="store_true"),
            argument("--csv", "write the table there, too", type=checked_path, metavar="FILE"),
            force("--csv FILE"),
        ),
    ),
    "compare": Tool(
        "difference of two methods with its interval, and probability of improvement", f"{_REPORTS}.compare:show",
        (argument("a", _SIDE, metavar="A"), argument("b", _SIDE, metavar="B"), *BINNED, SCORE),
    ),
    "agents": Tool(
        "the trained agents that come with the package: scores, commands, how they were made", f"{_REPORTS}.agents:show", ()
    ),
    "film": Tool(
        "an agent asked for one thing or several: a GIF, strips of frames in a PNG, or a window", "lightning_rl.lab.films:show",
        (
            argument("agent", "of the package, or a checkpoint, or a run directory"),
            argument("commands", "e.g. return=-100 return=250 (default: the agent's own)", nargs="*", metavar="NAME=VALUE,..."),
            argument("-o --out", "GIF or PNG by its ending (film.gif beside the checkpoint)", type=checked_path, metavar="FILE"),
            force("FILE"),
            argument("--seed", "of the environment and the actions (0)", type=whole(0, 2**31 - 1), default=0, metavar="N"),
            argument("--window", "show it on the screen instead", action="store_true"),
        ),
    ),
    "demo": Tool(
        "a web page in which a lander flies the return that a slider asks for", "lightning_rl.lab.demo.page:show",
        (
            argument("agent", "of the package, or a checkpoint (RCP-A-lunarlander)", nargs="?", default="RCP-A-lunarlander"),
            argument("-o --out", "save the page there instead of serving it", type=checked_path, metavar="FILE"),
            force("FILE"),
            argument("--port", "on this machine (8000)", type=whole(0, 65535), default=8000, metavar="N"),
        ),
    ),
    "config": Tool(
        "the keys of a method's config with their values and sources, as Markdown", f"{_REPORTS}.config_table:show",
        (
            argument("implementation", "an implementation, e.g. UDRL", metavar="NAME"),
            argument("--gamename", "with what its block changes", metavar="NAME"),
            argument("--preset", "with what it changes", metavar="NAME"),
        ),
    ),
}  # fmt: skip
