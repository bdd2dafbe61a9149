"""What people read on a terminal."""

from __future__ import annotations

import sys

from rich.console import Console, RenderableType

_PIPED_WIDTH = 200  # for files and pipes, which would otherwise be cut to 80 columns


def put(*parts: RenderableType) -> None:
    """Prints tables and lines to standard output; lines are never broken."""
    # Names that users give may look like markup.
    console = Console(width=None if sys.stdout.isatty() else _PIPED_WIDTH, markup=False)
    for part in parts:
        console.print(part, soft_wrap=isinstance(part, str))
