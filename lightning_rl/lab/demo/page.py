"""``lightning-rl demo``: the page, served on this machine or saved as a file. It holds all:
physics, policies, agents.
"""

from __future__ import annotations

import json
from argparse import Namespace
from collections.abc import Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import jinja2

from lightning_rl.core.errors import UserError
from lightning_rl.core.lines import say
from lightning_rl.core.outputs import File, Out, owned_picture
from lightning_rl.lab.demo.policy import exported
from lightning_rl.run.loading import load_method
from lightning_rl.run.shipped import shipped_agents

_HERE = Path(__file__).resolve().parent
_SCRIPTS = (
    "draw.js",
    "physics.js",
    "lander.js",
    "cartpole.js",
    "pendulum.js",
    "policy.js",
    "plot.js",
    "app.js",
)


def show(arguments: Namespace) -> None:
    """Serves the page of some agents, or saves it."""
    text = page(arguments.agent, arguments.code)
    if arguments.out is not None:
        Out(arguments.out, force=arguments.force).write(
            File(arguments.out, text.encode(), owned_picture)
        )
        say(f"written: '{arguments.out}'; any browser shows it")
        return
    try:
        server = ThreadingHTTPServer(("127.0.0.1", arguments.port), _handler(text.encode()))
    except OSError as error:
        raise UserError(
            f"--port {arguments.port}: {error.strerror}; choose another, or save the page with "
            "--out FILE"
        ) from error
    say(f"http://localhost:{server.server_port} shows {', '.join(arguments.agent)}; Ctrl-C ends it")
    with server:
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            say("")


def _handler(content: bytes) -> type[BaseHTTPRequestHandler]:
    class Page(BaseHTTPRequestHandler):
        """The page, whatever path is asked for."""

        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: Any) -> None:
            """Nothing: the terminal is the user's."""

    return Page


def page(names: Sequence[str], code: str | None = None) -> str:
    """The page of agents, each by its name, its checkpoint, its run directory or the folder that
    it was exported to.

    code: address that the page links to as its code.
    """
    agents = [_agent(name) for name in names]
    scripts = [(_HERE / name).read_text() for name in _SCRIPTS]
    environment = jinja2.Environment(loader=jinja2.FileSystemLoader(_HERE), autoescape=True)
    return environment.get_template("page.html").render(
        agents=_inline(json.dumps(agents)),
        style=_inline((_HERE / "style.css").read_text()),
        script=_inline("\n".join(text.replace('"use strict";\n', "") for text in scripts)),
        lines=f"{sum(len(text.splitlines()) for text in scripts):,}",
        code=code,
    )


def _agent(name: str) -> dict[str, Any]:
    """The policy of an agent, and what the page says about it."""
    method = load_method(Path(name))
    made = f"{method.implementation} on {method.gamename}, seed {method.seed}"
    if shipped := shipped_agents().get(name):
        made = shipped.made
    numbers = sum(parameter.numel() for parameter in method.policy.parameters())
    return {"name": name, "made": made, "parameters": f"{numbers:,}", **exported(method, name)}


def _inline(text: str) -> str:
    """Text of this package, or JSON, that stands within a script or a style as it is."""
    from markupsafe import Markup

    return Markup(text.replace("</", "<\\/"))
