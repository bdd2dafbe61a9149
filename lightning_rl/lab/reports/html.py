"""The few HTML elements that a report needs. A page is one file: its pictures are in it, and it may ask for nothing else."""

from __future__ import annotations

import base64
import html
from collections.abc import Iterable, Sequence

from lightning_rl.core.outputs import PROGRAM

# The browser is told to refuse every request; pictures, films and numbers are data in the page.
_POLICY = "default-src 'none'; img-src data:; media-src data:; style-src 'unsafe-inline'"

_STYLE = """
:root { color-scheme: light dark; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 1100px; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.6rem; } h2 { font-size: 1.2rem; margin-top: 2.2rem; border-bottom: 1px solid #8886; }
table { border-collapse: collapse; font-size: 13px; font-variant-numeric: tabular-nums; display: block; overflow-x: auto; }
th, td { padding: .2rem .6rem; text-align: left; border-bottom: 1px solid #8884; white-space: nowrap; }
td.number { text-align: right; } tr.differs td { font-weight: 600; background: #e69f0022; }
tr.failed td { color: #c33; }
figure { margin: 1rem 0; } img, video { max-width: 100%; background: white; }
figcaption, .note { font-size: 13px; color: #777; }
.films { display: flex; flex-wrap: wrap; gap: 1rem; } .films figure { width: 300px; }
"""


def page(title: str, sections: Iterable[str]) -> str:
    """A whole document."""
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><meta name="generator" content="{PROGRAM}">'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        f'<meta name="viewport" content="width=device-width">\n<title>{html.escape(title)}</title>\n'
        f"<style>{_STYLE}</style></head>\n"
        f"<body>\n<h1>{html.escape(title)}</h1>\n" + "\n".join(sections) + "\n</body></html>\n"
    )


def section(title: str, *content: str) -> str:
    """A part of the page."""
    return f"<section><h2>{html.escape(title)}</h2>\n" + "\n".join(content) + "\n</section>"


def note(text: str) -> str:
    """A line in small print."""
    return f'<p class="note">{html.escape(text)}</p>'


def table(header: Sequence[str], rows: Iterable[Sequence[str]], classes: Iterable[str] | None = None) -> str:
    """A table; a cell that is a number goes to the right. classes: of the rows."""
    head = "".join(f"<th>{html.escape(cell)}</th>" for cell in header)
    body = list(rows)
    kinds = list(classes) if classes is not None else [""] * len(body)
    lines = [f'<tr class="{kind}">{"".join(map(_cell, row))}</tr>' for row, kind in zip(body, kinds, strict=True)]
    return f"<table><thead><tr>{head}</tr></thead>\n<tbody>" + "\n".join(lines) + "</tbody></table>"


def _cell(text: str) -> str:
    kind = ' class="number"' if text and text.replace(",", "").lstrip("-")[:1].isdigit() else ""
    return f"<td{kind}>{html.escape(text)}</td>"


def details(summary: str, content: str) -> str:
    """Something that is shown on demand."""
    return f"<details><summary>{html.escape(summary)}</summary>{content}</details>"


def data(content: bytes, kind: str) -> str:
    """A data URI. kind: the media type."""
    return f"data:{kind};base64,{base64.b64encode(content).decode()}"


def picture(content: bytes, caption: str, kind: str = "image/png") -> str:
    """A picture that is in the page."""
    text = html.escape(caption)
    return f'<figure><img alt="{text}" src="{data(content, kind)}"><figcaption>{text}</figcaption></figure>'


def film(content: bytes, still: bytes, caption: str) -> str:
    """A film that is in the page, and the JPEG that is shown before it plays."""
    source = f'src="{data(content, "video/mp4")}" poster="{data(still, "image/jpeg")}"'
    return f"<figure><video controls muted {source}></video><figcaption>{html.escape(caption)}</figcaption></figure>"


def download(name: str, content: bytes, kind: str = "text/csv") -> str:
    """A link that saves what is in the page."""
    return f'<a download="{html.escape(name)}" href="{data(content, kind)}">{html.escape(name)}</a>'
