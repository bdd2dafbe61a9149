"""The largest sizes that are taken from outside, each stated once, and how an error message shows
what was given.

``docs/limits.md`` explains them.
"""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Iterable

WHOLE = 10**12
"""Any whole number without a limit of its own: steps, epochs, updates."""
SEED = 2**32 - 1
SEEDS = 256  # of one command: each has files that stay open
EPISODES = 100_000  # that are asked for at once
STEPS = 10_000_000  # that are collected at once
AGENTS = 100_000  # candidates, inner agents, trials
BATCH = 2**24
WIDTH, LAYERS = 2**16, 64  # of a network
GENERATIONS = 1_000_000  # of a table of generations: a figure has a place for each
SCREEN = 256  # pixels of a side of an image that a network sees
ENV_SIZE = 64  # of a panflute-N, procmaze-N or buttongrid-N-M

PLAIN_DEPTH = 20  # levels of a config in a checkpoint
TEXT_BYTES = 2**24  # of a YAML, JSON or record; those that are written have some thousands
TABLE_BYTES, TABLE_CELLS = 2**28, 2**26  # of a CSV
TABLE_COLUMNS = 10_000
LARGEST_NUMBER = 1e100  # in a CSV or an event file: means and squares of these are finite
EVENT_BYTES = 2**32  # of a TensorBoard file
PICTURE_BYTES = 2**26  # of a picture or film in a report
CHECKPOINT_BYTES, PROXY_BYTES = 2**36, 2**30
# of a torch file: its tensors, and all that is no number in a tensor
ARCHIVE_PARTS, STRUCTURE_BYTES = 50_000, 2**25
NAME_BYTES, PATH_BYTES = 255, 4096  # of Linux
YAML_BYTES, YAML_VALUES, YAML_DEPTH = 2**20, 50_000, 20

SHOWN = 80
_WORD, _LINE = 300, 2000


def escaped(text: str) -> str:
    """The text with control characters and broken bytes spelt out."""
    if text.isprintable():  # almost always
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def is_text(text: str) -> bool:
    """Whether it holds no bytes that are no text, as words and names of files may."""
    return not any("\ud800" <= character <= "\udfff" for character in text)


def shorten(text: str, most: int = SHOWN) -> str:
    """A text as an error message shows it: at most ``most`` characters of it, and how many there
    are.
    """
    text = escaped(text)
    return text if len(text) <= most else f"{text[:most]}... ({len(text):,} characters)"


def shown(value: object) -> str:
    """A value of any kind as an error message shows it."""
    try:
        return f"'{shorten(value)}'" if isinstance(value, str) else shorten(repr(value))
    except ValueError:  # Python writes out no whole number of more than 4300 digits
        return f"({type(value).__name__} with a number of thousands of digits)"
    except Exception:  # of a class of the user's
        return f"(a {type(value).__name__} that cannot be shown)"


def within(low: float, high: float) -> str:
    """``low .. high`` in three digits, rounded inwards, so that every number in the printed
    range is within the limits.
    """
    largest = max(abs(low), abs(high))
    # more, where no number of three lies between
    for digits in range(3, 12) if math.isfinite(largest) else ():
        unit = 10.0 ** (math.floor(math.log10(largest)) + 1 - digits) if largest else 1.0
        inner = [unit * math.ceil(low / unit - 1e-9), unit * math.floor(high / unit + 1e-9)]
        if inner[0] <= inner[1]:
            return " .. ".join(f"{value:.{digits + 3}g}" for value in inner)
    return f"{low!r} .. {high!r}"


def nearest(word: str, known: Iterable[str], alike: float = 0.6) -> str | None:
    """The one of ``known`` that was probably meant, in whatever case, or by its initials (``lr``);
    None if none is near.

    alike: the share of their letters that two words must have in common, as ``difflib`` counts it.
    """
    known = list(known)
    initials = {
        "".join(part[:1] for part in re.split("[-_]", name.lower())): name for name in known
    }
    names = {name.lower(): name for name in known}
    near = difflib.get_close_matches(word.lower(), names, n=1, cutoff=alike)
    return names[near[0]] if near else initials.get(word.lower())


def did_you_mean(word: str, known: Iterable[str], otherwise: str = "choose one of") -> str:
    """The remedy for a word that is none of ``known``: the nearest of them, or all."""
    near = nearest(word, known := list(known))
    return f"did you mean '{near}'?" if near else f"{otherwise}: {', '.join(known) or 'none'}"


def unknown(what: str, word: str, known: Iterable[str]) -> str:
    """What an error message says of a word that is none of ``known``."""
    return f"{what} '{shorten(word)}' is unknown; {did_you_mean(word, known)}"


def one_line(text: str) -> str:
    """A whole message on one line of a length that can be read; long words lose their end, long
    messages their middle.
    """
    text = escaped(" ".join(text.splitlines()))
    text = re.sub(rf"\S{{{_WORD + 1},}}", lambda word: word[0][:_WORD] + "...", text)
    return text if len(text) <= _LINE else f"{text[: _LINE - 500]} ... {text[-500:]}"
