"""What the documentation site adds to the pages, which are written for a reader of the repository.

* A link out of ``docs/`` leads to a copy of the file on the site: Markdown as a page, code as a
  page with its source.
* A link to a function that stands alone, ``[`name`](../lightning_rl/module.py#name)``, is followed
  by its lines.
* Equations become MathML, which browsers draw without a script or a network.
* Search leaves out pages of code and notes about results, which hold every word.
* A number of arXiv leads to its paper.
* The reference of the command line and of every key of the configs is made from the package.
"""

from __future__ import annotations

import ast
import html
import os
import re
from collections.abc import Iterator
from pathlib import Path
from posixpath import dirname, join, normpath, relpath
from typing import Any

from latex2mathml.converter import convert
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from lightning_rl.cli.flags import COMMANDS
from lightning_rl.cli.parser import build_parser
from lightning_rl.cli.tools import tools
from lightning_rl.core.arguments import Group, Parser
from lightning_rl.core.catalogue import entries, entry
from lightning_rl.lab.reports.config_table import SOURCE, config_rows, legend

ROOT = Path(__file__).resolve().parent.parent
OUTSIDE = "source/"
"""Where files from outside ``docs/`` are on the site."""

_LINK = re.compile(
    r"(?P<text>!?\[[^\]]*\])\((?!https?:|mailto:|#)(?P<path>[^)#\s]+)(?P<anchor>#[^)\s]*)?\)"
)
_ALONE = re.compile(r"^\[`[\w.]+`\]\((?P<path>[^)#\s]+\.py)#(?P<symbol>[\w.]+)\)$", re.MULTILINE)
_FENCE = re.compile(r"^(`{3,}).*?^\1$|`[^`\n]+`", re.MULTILINE | re.DOTALL)
_MATH = re.compile(r'<(span|div) class="arithmatex">\\[(\[](.*?)\\[)\]]</\1>', re.DOTALL)
_MENDED = {
    r"<mi>\arg</mi>": "<mi>arg</mi>",  # latex2mathml does not know it
    "<mi>&#x0007E;</mi>": "<mo>&#x0223C;</mo>",  # \sim, as a relation with its spaces
    # a prime, which browsers draw too small and high as an identifier
    "<mi>&#x02032;</mi>": "<mo>&#x02032;</mo>",
}
_ARXIV = re.compile(r"\barXiv[ :](\d{4}\.\d{4,5})")
_TAG = re.compile(r"(<[^>]*>)")
_NOT_LINKED = ("a", "code", "pre", "script", "title")  # what stands in them stays as it is
_FOUND = (
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "CODE_OF_CONDUCT.md",
    "SECURITY.md",
    "course/README.md",
)
"""Pages from outside ``docs/`` that search finds."""
_LANGUAGES = {".py": "python", ".yaml": "yaml", ".sh": "bash", ".cfg": "ini", ".csv": "text"}
_WITHOUT_CONTENTS = (
    "results.md",
    "reading/",
)  # pages of wide tables or of code, which need the room
_SHOWN_BYTES = 100_000  # of a file as a page; a larger one is only to be downloaded


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds the generated pages and, link by link, the files outside ``docs/`` that pages lead
    to.
    """
    for name, text in (("command_line", command_line()), ("configs", all_configs())):
        files.append(File.generated(config, f"reference/{name}.md", content=text))
    wanted = ["results/speed.md", *_FOUND]
    wanted += [path for file in files.documentation_pages() for path in outside(file)]
    while wanted:
        path = wanted.pop()
        if (ROOT / path).is_dir() or files.get_file_from_path(address(path)) is not None:
            continue
        if address(path) == OUTSIDE + path:
            files.append(File.generated(config, OUTSIDE + path, abs_src_path=str(ROOT / path)))
        else:
            text = (
                "# "
                f"{path}\n\n```{_LANGUAGES.get(Path(path).suffix, 'text')}\n{(ROOT / path).read_text()}\n```\n"  # noqa: E501
            )
            files.append(File.generated(config, address(path), content=text))
        if path.endswith(".md"):
            found = files.get_file_from_path(address(path))
            assert found is not None
            wanted += outside(found)
    return files


def repository_path(src_uri: str) -> str:
    """Where a page of the site is in the repository."""
    return src_uri.removeprefix(OUTSIDE) if src_uri.startswith(OUTSIDE) else f"docs/{src_uri}"


def address(path: str) -> str:
    """The ``src_uri`` on the site of a file of the repository."""
    if path.startswith("docs/"):
        return path.removeprefix("docs/")
    as_page = Path(path).suffix in {".py", ".yaml", ".sh", ".cfg"} or path in (
        "LICENSE",
        "Makefile",
        "CITATION.cff",
    )
    return (
        f"{OUTSIDE}{path}.md"
        if as_page and (ROOT / path).stat().st_size < _SHOWN_BYTES
        else OUTSIDE + path
    )


def outside(file: File) -> Iterator[str]:
    """The files of the repository, beyond ``docs/``, that a page leads to."""
    here = dirname(repository_path(file.src_uri))
    for link in _LINK.finditer(_FENCE.sub("", file.content_string)):
        path = normpath(join(here, link["path"]))
        if not path.startswith("docs/") and (ROOT / path).exists():
            yield path


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Shows the lines of functions, and leads links out of ``docs/`` to their copies."""
    uri = page.file.src_uri
    if uri.startswith(_WITHOUT_CONTENTS):
        page.meta["hide"] = ["toc"]
    outside = uri.startswith(OUTSIDE) and uri.removeprefix(OUTSIDE) not in _FOUND
    if outside or uri == "results.md":
        page.meta["search"] = {"exclude": True}
    here = dirname(repository_path(page.file.src_uri))

    def lead(link: re.Match[str]) -> str:
        path = normpath(join(here, link["path"]))
        if (ROOT / path).is_dir():
            return link["text"][1:-1]
        if not (ROOT / path).exists():
            return link[0]  # mkdocs says that it leads nowhere
        target = relpath(address(path), dirname(page.file.src_uri) or ".")
        anchor = "" if link["anchor"] is None or not path.endswith(".md") else link["anchor"]
        return f"{link['text']}({target}{anchor})"

    def with_lines(link: re.Match[str]) -> str:
        return f"{link[0]}\n\n{source(normpath(join(here, link['path'])), link['symbol'])}"

    markdown = _ALONE.sub(with_lines, markdown)
    kept: list[str] = []

    def keep(code: re.Match[str]) -> str:
        kept.append(code[0])
        return f"\0{len(kept) - 1}\0"

    markdown = _LINK.sub(lead, _FENCE.sub(keep, markdown))
    return re.sub(r"\0(\d+)\0", lambda place: kept[int(place[1])], markdown)


def source(path: str, symbol: str) -> str:
    """A fenced block with the lines of a function or class; ValueError where the file has none
    of this name.
    """
    text = (ROOT / path).read_text()
    node: Any = ast.parse(text)
    for name in symbol.split("."):
        found = [child for child in node.body if getattr(child, "name", None) == name]
        if not found:
            raise ValueError(f"{path} has no {symbol}")
        node = found[-1]
    first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
    lines = text.splitlines()[first - 1 : node.end_lineno]
    indent = len(lines[0]) - len(lines[0].lstrip())
    body = "\n".join(line[indent:] for line in lines)
    return f'```python linenums="{first}" title="{path}"\n{body}\n```'


def on_page_content(content: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Turns equations into MathML, and numbers of arXiv into links."""

    def draw(equation: re.Match[str]) -> str:
        display = "block" if equation[1] == "div" else "inline"
        drawn = convert(html.unescape(equation[2]).strip(), display=display)
        for wrong, right in _MENDED.items():
            drawn = drawn.replace(wrong, right)
        return drawn

    return with_papers(_MATH.sub(draw, content))


def with_papers(content: str) -> str:
    """HTML in which a number of arXiv that is in no link and no code leads to its paper."""
    parts, within = _TAG.split(content), 0
    for number, part in enumerate(parts):
        name = re.match(r"</?(\w+)", part)
        if name is not None and name[1] in _NOT_LINKED:
            within += -1 if part.startswith("</") else 1
        elif name is None and not within:
            link = r'<a href="https://arxiv.org/abs/\1">arXiv \1</a>'
            parts[number] = _ARXIV.sub(link, part)
    return "".join(parts)


def command_line() -> str:
    """The flags of every command, as ``--help`` prints them."""
    os.environ["COLUMNS"] = "88"
    parts = ["# Command line", "A [tour](../command_line.md) shows the commands at work."]
    parts += [manual("##", build_parser("lightning-rl", command)) for command in COMMANDS]
    for name, tool in tools().items():
        parts.append(manual("##", tool.parser(f"lightning-rl {name}")))
        if isinstance(tool, Group):
            parts += [
                manual("###", each.parser(f"lightning-rl {name} {word}"))
                for word, each in tool.tools.items()
            ]
    return "\n\n".join([*parts, manual("##", build_parser("python trainer.py"))]) + "\n"


def manual(level: str, parser: Parser) -> str:
    """What a command's ``--help`` prints, below its name."""
    return f"{level} {parser.prog}\n\n```text\n{parser.format_help()}```"


def all_configs() -> str:
    """A table for each implementation: every key, its default, its meaning, and where the value
    comes from, in words.
    """
    parts = [
        "# All hyper-parameters",
        "What an implementation ends up with on an environment without values of its own. [How "
        "configs are read](../configs.md); "
        "`lightning-rl config NAME` prints the same table with letters for the sources.",
    ]
    for name in entries():
        found = entry(name)
        table = [
            "| key | default | meaning | source of the value |",
            "|---|---|---|---|",
            *rows(name, legend(found)),
        ]
        parts += [f"## {name}", f"{found.about[0].upper()}{found.about[1:]}.", "\n".join(table)]
    return "\n\n".join(parts) + "\n"


def rows(name: str, sources: dict[str, str]) -> Iterator[str]:
    """The rows of an implementation's table."""
    heading = ""
    for row in config_rows(entry(name)):
        if row.heading != heading:
            heading = row.heading
            yield f"| **{cell(heading)}** | | | |"
        yield (
            f"| `{row.key}` | `{cell(row.value)}` | {cell(row.explanation)} | "
            f"{cell(spelled_out(row.source, sources))} |"
        )


def spelled_out(source: str, sources: dict[str, str]) -> str:
    """``[W]; [E] 100000`` with the meanings of its letters."""

    def meaning(letters: re.Match[str]) -> str:
        return (
            ", ".join(sources.get(letter, letter) for letter in letters[0].strip("[]").split(", "))
            + ":"
        )

    return SOURCE.sub(meaning, source).removesuffix(":").replace(":;", ";").replace(":.", ".")


def cell(text: str) -> str:
    """Text in a cell of a table."""
    return text.replace("|", "\\|").replace("<", "&lt;").replace("*", "\\*")
