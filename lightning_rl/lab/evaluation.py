"""What an evaluation looks like at a prompt and in a notebook."""

from __future__ import annotations

import html
from typing import Any

from lightning_rl.core.lines import three_digits
from lightning_rl.lab.words import in_words

_SHOWN = ("mean", "sd", "min", "max")


class Evaluation(dict[str, Any]):
    """The report of ``evaluate``: a dict that prints as a few lines, not as all its returns."""

    def __repr__(self) -> str:
        lines = [f"Evaluation({self._title()}"]
        for mode in ("sampled", "greedy"):
            numbers = ", ".join(f"{name} {number}" for name, number in self._numbers(mode).items())
            lines.append(f"  {mode}: return {numbers}")
        return "\n".join(lines) + ")"

    def _repr_html_(self) -> str:
        heads = "".join(f"<th>{name}</th>" for name in ("return", *_SHOWN))
        rows = ""
        for mode in ("sampled", "greedy"):
            cells = "".join(f"<td>{number}</td>" for number in self._numbers(mode).values())
            rows += f"<tr><th>{mode}</th>{cells}</tr>"
        caption = html.escape(self._title())
        return f"<table><caption>{caption}</caption><tr>{heads}</tr>{rows}</table>"

    def _title(self) -> str:
        title = f"{self['implementation']} on {self['gamename']}, {self['episodes']} episodes each"
        command = in_words(self["command"])
        return f"{title}, asked for {command}" if command else title

    def _numbers(self, mode: str) -> dict[str, str]:
        return {name: three_digits(self[mode]["return"][name]) for name in _SHOWN}
