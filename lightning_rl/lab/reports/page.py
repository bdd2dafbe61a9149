"""``lightning-rl report DIR... -o report.html``: runs, tables, curves, configs and films on one
page that needs no network.

The page is ``page.html``; here is what it shows.
"""

from __future__ import annotations

import base64
import io
import json
import shlex
import sys
from argparse import Namespace
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import jinja2
import pandas as pd
from PIL import Image

from lightning_rl import __version__
from lightning_rl.core.errors import UserError
from lightning_rl.core.extras import require
from lightning_rl.core.files import read_bytes, read_text
from lightning_rl.core.limits import PICTURE_BYTES, did_you_mean
from lightning_rl.core.lines import say, three_digits
from lightning_rl.core.outputs import PROGRAM, File, Out, owned_picture
from lightning_rl.lab.figures import style
from lightning_rl.lab.figures.curves import Look, curves_figure
from lightning_rl.lab.figures.groups import LABELS, labelled_runs, make_groups, units_text
from lightning_rl.lab.figures.runs import IDENTITY, Run, find_runs, require_key
from lightning_rl.lab.figures.scores import score_table, summary_rows
from lightning_rl.lab.reports.listing import cells, run_row
from lightning_rl.lab.reports.registry import PAGE_TAGS, RUN_COLUMNS
from lightning_rl.lab.scalars import attempt, scalar_names
from lightning_rl.lab.tables import counted, is_number

FILMS_PER_RUN, FILM_LIMIT = 2, 4_000_000
"""How many films of a run are shown, newest first; larger ones (bytes) are shown as a still even
with --videos.
"""


class Skipped:
    """Collects what is left out, and says each thing once."""

    def __init__(self) -> None:
        self.lines: dict[str, None] = {}

    def __call__(self, path: Path, reason: str) -> None:
        self.lines.setdefault(f"{path}: {reason}")


def report(
    folders: Sequence[Path],
    tags: Sequence[str] | None,
    group: Sequence[str] | None,
    videos: bool,
    title: str,
) -> str:
    """The page of the runs at or below the folders as a text; UserError where there is none, or
    none has one of ``tags`` or a key of ``group``.

    tags: scalars to draw; None: those of ``PAGE_TAGS`` that a run has. group: keys whose values
    tell groups apart, None: the method. videos: whole films instead of stills.
    """
    skipped = Skipped()
    runs = find_runs(folders, skipped)
    for key in group or ():
        require_key(key, dict.fromkeys(name for run in runs for name in run.about))
    _require_scalars(tags or (), runs)
    command = shlex.join(["lightning-rl", *sys.argv[1:]])
    sources = [str(run.path) for run in runs]
    content = {
        "program": PROGRAM,
        "title": title,
        "made_by": f"{counted([len(runs)], 'run')} · lightning_rl {__version__} · made by: "
        f"{command}",
        "curves": list(_curves(sources, tags or PAGE_TAGS, group, skipped)),
        "runs": _runs_table(runs),
        "evaluations": [row for run in runs for row in _evaluations(run)],
        "pictures": _pictures(folders, runs),
        "films": list(_films(runs, videos, skipped)),
        "configs": list(_configs(runs)),
    }
    return _template().render(content, skipped=list(skipped.lines))


def _require_scalars(tags: Sequence[str], runs: Sequence[Run]) -> None:
    """UserError for a scalar that no run has."""
    known = {name for run in runs for name in scalar_names(run.path)} if tags else set()
    for tag in tags:
        if tag not in known:
            raise UserError(
                f"--tag {tag}: no run has that scalar; "
                f"{did_you_mean(tag, sorted(known), 'they have')}"
            )


def _template() -> jinja2.Template:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["base64"] = lambda content: base64.b64encode(content).decode()
    environment.tests["numeric"] = is_number
    return environment.get_template("page.html")


def _curves(
    sources: Sequence[str], tags: Sequence[str], group: Sequence[str] | None, skipped: Skipped
) -> Iterator[dict[str, Any]]:
    """For each scalar that some run has: its curves, its table, and the plotted numbers."""
    for tag in tags:
        missing = Skipped()
        try:
            table = labelled_runs(sources, tag, keys=group, skip=missing)
            games, width = make_groups(table, "env_steps", None)
        except UserError as error:
            skipped(Path(tag), "; ".join([str(error), *list(missing.lines)[:1]]))
            continue
        skipped.lines |= missing.lines
        figure, numbers = curves_figure(games, width, Look(tag))
        name = LABELS.get(tag, tag)
        header, *rows = summary_rows(score_table(games, None), units_text(table["unit"]))
        yield {
            "title": name[:1].upper() + name[1:],
            "picture": style.png(figure),
            "caption": f"{name}, of {tag}",
            "header": header,
            "rows": rows,
            "name": f"{tag.replace('/', '_')}.csv",
            "csv": numbers.to_csv(index=False).encode(),
        }


def _runs_table(runs: Sequence[Run]) -> dict[str, Any]:
    table = pd.DataFrame([run_row(run) for run in runs], columns=list(RUN_COLUMNS))
    header = [name for name in RUN_COLUMNS if name not in ("scalar", "run")]
    classes = ["failed" if state == "failed" else "" for state in table["state"]]
    return {"header": header, "rows": cells(table, header), "classes": classes}


def _pictures(folders: Sequence[Path], runs: Sequence[Run]) -> list[tuple[str, bytes]]:
    """What other commands have drawn: sweeps of commands, searches."""
    paths: list[Path] = []
    for run in runs:
        paths += sorted(run.path.glob("sweep*.png"))
    for folder in folders:
        paths += sorted(folder.rglob("tune/search.png"))
    found = []
    for path in paths:
        for content in attempt(path, read_bytes, path, "picture", PICTURE_BYTES):
            found.append((str(path), content))
    return found


def _evaluations(run: Run) -> Iterator[Sequence[str]]:
    """A row per mode of each whole evaluation.json of a run; nothing for one that is broken."""
    for path in sorted(run.path.glob("evaluation*.json")):
        try:
            content = json.loads(read_text(path, "report"))
            asked = ", ".join(f"{name}={value:g}" for name, value in content["command"].items())
            about = (str(run.path), Path(content["checkpoint"]).name, asked)
            for mode in ("sampled", "greedy"):
                found = content[mode]["return"]
                numbers = [three_digits(found[key]) for key in ("mean", "sd", "iqm", "min", "max")]
                yield (*about, mode, str(content["episodes"]), *numbers)
        except (UserError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
            continue


def _films(runs: Sequence[Run], videos: bool, skipped: Skipped) -> Iterator[dict[str, Any]]:
    for run in runs:
        films = sorted(
            run.path.glob("recordings/*/*.mp4"), key=lambda path: path.stat().st_mtime, reverse=True
        )
        for path in [*sorted(run.path.glob("evaluation*.mp4")), *films][:FILMS_PER_RUN]:
            try:
                content = read_bytes(path, "film", PICTURE_BYTES)
                frame = still(path)
            except UserError as error:
                skipped(path, str(error))
            except Exception as error:  # whatever the decoder makes of a damaged film
                skipped(path, f"it is not a whole film ({type(error).__name__})")
            else:
                yield {
                    "path": str(path),
                    "still": frame,
                    "content": content if videos and len(content) <= FILM_LIMIT else None,
                }


def still(path: Path) -> bytes:
    """The middle frame of a film as a JPEG."""
    require("a still of a film", "moviepy")
    from moviepy import VideoFileClip  # starts slowly

    with VideoFileClip(str(path)) as clip:
        frame: Any = clip.get_frame(clip.duration / 2)
    content = io.BytesIO()
    Image.fromarray(frame).save(content, "JPEG", quality=85)
    return content.getvalue()


def _configs(runs: Sequence[Run]) -> Iterator[dict[str, Any]]:
    """One table per method: a column for each distinct config, rows that differ marked."""
    methods: dict[str, dict[str, list[Run]]] = {}
    for run in runs:
        about = run.about.items()
        config = {key: value for key, value in about if key not in (*IDENTITY, "preset")}
        same = methods.setdefault(str(run.about["implementation"]), {})
        same.setdefault(json.dumps(config, default=str), []).append(run)
    for method, configs in methods.items():
        columns = [json.loads(text) for text in configs]
        rows = []
        for key in dict.fromkeys(key for column in columns for key in column):
            values = [json.dumps(column[key]) if key in column else "" for column in columns]
            rows.append([key, *values])
        yield {
            "summary": f"{method}: {len(rows)} keys, {counted([len(columns)], 'different config')}",
            "header": ["key", *map(_where, configs.values())],
            "rows": rows,
            "classes": ["differs" if len(set(row[1:])) > 1 else "" for row in rows],
        }


def _where(runs: Sequence[Run]) -> str:
    names = dict.fromkeys(f"{run.about['gamename']}/{run.about['exp_name']}" for run in runs)
    return f"{', '.join(names)} ({counted([len(runs)], 'run')})"


def show(given: Namespace) -> None:
    """Writes the page that the arguments ask for."""
    out = Out(given.out, given.folders, given.force)
    out.check(out.path, owned_picture)  # before the work
    text = report(given.folders, given.tag, given.group, given.videos, given.title)
    out.write(File(out.path, text.encode(), owned_picture))
    say(f"wrote {given.out} ({given.out.stat().st_size / 1e6:.1f} MB)")
