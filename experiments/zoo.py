"""``python -m experiments.zoo [NAME ...]``: the page of the agents of the package, docs/zoo.md.

Plays each agent, or those that are named, on the seeds of its final evaluation, which neither
training nor its evaluations have seen; films the episode in the middle, and writes the
agent's card. The numbers stay in results/zoo/scores.csv.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from lightning_rl.core.arguments import Parser
from lightning_rl.core.files import write_bytes, write_text
from lightning_rl.core.lines import say, three_digits
from lightning_rl.core.outputs import checksum
from lightning_rl.core.types import Array
from lightning_rl.envs.films import Story, shown_env
from lightning_rl.envs.gym import can_film
from lightning_rl.lab.evaluate import evaluate, requests_of
from lightning_rl.lab.films import animation
from lightning_rl.lab.tables import csv_of, read_rows
from lightning_rl.methods.base import Method
from lightning_rl.run.acting import load
from lightning_rl.run.asking import full_command
from lightning_rl.run.callbacks import play_filmed
from lightning_rl.run.export import interface, model_card
from lightning_rl.run.shipped import ShippedAgent, shipped_agents, shipped_checkpoint
from lightning_rl.run.whole_policy import WholePolicy

PAGE = Path("docs/zoo.md")
FOLDER = Path("results/zoo")
SCORES = FOLDER / "scores.csv"
EPISODES = 100
COLOURS, BYTES = 32, 40_000
LARGE, SMALL = (20, 180), (10, 120)
"""Frames of a film, and pixels of their width; small where the other takes too many bytes."""
COLUMNS = ("agent", "mode", "mean", "sd", "lowest", "highest", "filmed")
HEAD = f"""# A zoo of trained agents

Each row is an agent that comes with the package: `lightning-rl play NAME`, or
`lightning_rl.load("NAME")`. Score: mean and standard deviation of {EPISODES} episodes on seeds that
neither training nor its evaluations have seen, one training seed each; so a row says what this
agent does, not what its method does ([benchmarks](benchmarks.md)). The film shows the episode in
the middle of these {EPISODES}. The agent of a claim has its first seed, but AAC-beresheet the
second, as the first is one of three in ten that end near 170; other agents have seed 0, on which
settings were tuned. `SE-cartpole` is a DDQN agent that has learned in a synthetic environment
alone, and is scored on the real task; the proxies themselves are tasks (`lightning-rl proxies
list`).

"""
FOOT = """
Made by `python -m experiments.zoo`, which plays, films and writes the cards anew;
`lightning-rl export NAME FOLDER` writes an agent as ONNX and safetensors with its card
([export](export.md)). How to add one: `python -m experiments.shipping NAME RUN_DIR`, then
`python -m experiments.zoo NAME`.
"""


def main() -> None:
    """The command line of the module."""
    parser = Parser(description="the page of the agents of the package")
    parser.add_argument("names", help="agents (default: all)", nargs="*", metavar="NAME")
    agents = shipped_agents()
    rows = read_scores()
    for name in parser.parse_args().names or agents:
        rows[name] = add(name)
        say(f"{name}: {rows[name]['mean']}")
    rows = {name: rows[name] for name in agents if name in rows}
    write_text(SCORES, csv_of(COLUMNS, rows.values()))
    write_text(PAGE, page(rows))


def read_scores() -> dict[str, dict[str, str]]:
    """The rows of ``SCORES`` by name."""
    return {row["agent"]: row for row in read_rows(SCORES)}


def add(name: str) -> dict[str, str]:
    """Plays, films and describes an agent; its row."""
    agent = load(name)
    method = agent.method
    report = evaluate(agent, EPISODES)
    returns = report[method.action_mode]["returns"]
    middle = int(np.argsort(returns, kind="stable")[EPISODES // 2])
    if can_film(method.spec):
        write_bytes(FOLDER / f"{name}.gif", film(method, middle))
    write_text(FOLDER / f"{name}.md", card(name, method, report))
    stats = report[method.action_mode]["return"]
    numbers = (stats["mean"], stats["sd"], min(returns), max(returns), returns[middle])
    texts = [name, method.action_mode, *(f"{number:.2f}" for number in numbers)]
    return dict(zip(COLUMNS, texts, strict=True))


def film(method: Method, number: int) -> bytes:
    """A small GIF of an episode of the evaluation."""
    frames: list[Array] = []
    request = requests_of(method, EPISODES, full_command(method, {}), method.action_mode)[number]
    with shown_env(method.spec, Story(), frames.append) as env:
        play_filmed(method, request, env)
        seconds = len(frames) / env.fps
    large = _gif(frames, seconds, *LARGE)
    return large if len(large) <= BYTES else _gif(frames, seconds, *SMALL)


def _gif(frames: Sequence[Array], seconds: float, count: int, width: int) -> bytes:
    """A GIF of at most so many of the frames, from the first to the last."""
    places = np.linspace(0, len(frames) - 1, min(count, len(frames))).round().astype(int)
    pictures = [_small(frames[place], width) for place in places]
    palette = pictures[len(pictures) // 2].quantize(COLOURS, dither=Image.Dither.NONE)
    each = min(max(round(1000 * seconds / len(pictures)), 40), 300)
    return animation(pictures, palette, [each] * (len(pictures) - 1) + [1500])


def _small(frame: Array, width: int) -> Image.Image:
    size = (width, round(width * frame.shape[0] / frame.shape[1]))
    return Image.fromarray(frame).resize(size, Image.Resampling.LANCZOS)


def card(name: str, method: Method, report: Mapping[str, Any]) -> str:
    """The text of its card, as an export has it."""
    whole = WholePolicy(method)
    checkpoint = shipped_checkpoint(name)
    files = {checkpoint.name: checksum(checkpoint.read_bytes())}
    about = {**interface(method, whole), "files": files}
    return model_card(name, method, whole, about, report, "mit")


def page(rows: Mapping[str, Mapping[str, str]]) -> str:
    """The text of docs/zoo.md."""
    lines = [
        "| film | agent | task | score | lowest .. highest | asked for |",
        "|---|---|---|---|---|---|",
    ]
    for name, row in rows.items():
        agent = shipped_agents()[name]
        numbers = {key: three_digits(float(row[key])) for key in COLUMNS[2:]}
        picture = ""
        if (FOLDER / f"{name}.gif").exists():
            picture = f"![{name}, return {numbers['filmed']}](../{FOLDER}/{name}.gif)"
        claim = f" ([claim](results.md#{agent.claim}))" if agent.claim else ""
        cells = (
            picture,
            f"[{name}](../{FOLDER}/{name}.md)",
            f"{agent.gamename}, by {agent.implementation}{claim}, seed {agent.seed}",
            f"{numbers['mean']} ± {numbers['sd']}",
            f"{numbers['lowest']} .. {numbers['highest']}",
            asked(agent),
        )
        lines.append(f"| {' | '.join(cells)} |")
    return HEAD + "\n".join(lines) + "\n" + FOOT


def asked(agent: ShippedAgent) -> str:
    """What it can be asked for."""
    ranges: Sequence[str] = [
        f"{name} {low:g} .. {high:g}" for name, (low, high) in agent.commands.items()
    ]
    return ", ".join(ranges) or "–"


if __name__ == "__main__":
    main()
