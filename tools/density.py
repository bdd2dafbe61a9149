"""How much there is to read, and how densely it is packed: a mirror, which fails nothing.

    make density ARGS="lightning_rl tests"

Lines say how code is packed, tokens how much of it there is. Stable-Baselines3 has 7.8 tokens a
code line, rejax 8.3, CleanRL 8.6. Comments and docstrings do not count.
"""

from __future__ import annotations

import ast
import io
import sys
import tokenize
from pathlib import Path

WIDE = 100
LAYOUT = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
}


def docstring_lines(tree: ast.AST) -> set[int]:
    """The numbers of the lines that are docstrings."""
    lines: set[int] = set()
    for node in ast.walk(tree):
        if not isinstance(node, ast.Expr) or not isinstance(node.value, ast.Constant):
            continue
        if isinstance(node.value.value, str):
            lines.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return lines


def code_tokens(path: Path) -> list[tokenize.TokenInfo]:
    """The tokens of a file without comments, docstrings and layout."""
    text = path.read_text()
    docstrings = docstring_lines(ast.parse(text))
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    return [each for each in tokens if each.type not in LAYOUT and each.start[0] not in docstrings]


def describe(folder: Path) -> str:
    """One line on a folder, or a file."""
    paths = [folder] if folder.is_file() else sorted(folder.rglob("*.py"))
    tokens = lines = wide = 0
    for path in paths:
        found = code_tokens(path)
        rows = path.read_text().splitlines()
        code: set[int] = set()
        for token in found:
            code.update(range(token.start[0], token.end[0] + 1))
        tokens += len(found)
        lines += len(code)
        wide += sum(len(rows[number - 1]) > WIDE for number in code)
    return (
        f"{folder}: {len(paths)} files, {lines:,} code lines, {tokens:,} tokens, "
        f"{tokens / max(1, lines):.1f} tokens a code line, {wide} code lines above {WIDE} columns"
    )


if __name__ == "__main__":
    for name in sys.argv[1:] or ["lightning_rl"]:
        print(describe(Path(name)))
