"""``lightning-rl demo``: the page, served on this machine or saved as a file. It holds all:
physics, policy, agent.
"""

from __future__ import annotations

import argparse
import base64
import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import jinja2
from torch import Tensor, nn

from lightning_rl.core.errors import UserError
from lightning_rl.core.lines import say
from lightning_rl.core.outputs import File, Out, owned_picture
from lightning_rl.methods.base import Method
from lightning_rl.nets.command import CommandPolicy, GatedLayersNet, ScaledCommand
from lightning_rl.nets.normalised import LIMIT, Normalised
from lightning_rl.run.loading import load_method
from lightning_rl.run.shipped import shipped_agents

_HERE = Path(__file__).resolve().parent
_PHYSICS = ("physics.js", "lander.js")
_SCRIPTS = (*_PHYSICS, "policy.js", "app.js")


def show(arguments: argparse.Namespace) -> None:
    """Serves the page of an agent, or saves it."""
    text = page(arguments.agent)
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
    say(f"http://localhost:{server.server_port} shows {arguments.agent}; Ctrl-C ends it")
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


def page(name: str) -> str:
    """The page of a calibrated RCP agent on LunarLander, by its name, its checkpoint or its run
    directory.
    """
    method = load_method(Path(name))
    made = f"{method.implementation} on {method.gamename}, seed {method.seed}"
    if shipped := shipped_agents().get(name):
        made = shipped.made
    parameters = sum(parameter.numel() for parameter in method.policy.parameters())
    about = {"name": name, "made": made, "parameters": f"{parameters:,}"}
    files = {path: (_HERE / path).read_text() for path in _SCRIPTS}
    environment = jinja2.Environment(loader=jinja2.FileSystemLoader(_HERE), autoescape=True)
    return environment.get_template("page.html").render(
        agent=about,
        agent_json=_inline(json.dumps(exported(method, name))),
        style=_inline((_HERE / "style.css").read_text()),
        script=_inline("\n".join(files[path].replace('"use strict";\n', "") for path in _SCRIPTS)),
        physics_lines=sum(len(files[path].splitlines()) for path in _PHYSICS),
    )


def _inline(text: str) -> str:
    """Text of this package, or JSON, that stands within a script or a style as it is."""
    from markupsafe import Markup

    return Markup(text.replace("</", "<\\/"))


def exported(method: Method, name: str) -> dict[str, Any]:
    """The policy as ``policy.js`` reads it; UserError for one that it cannot play."""
    policy = method.policy
    calibration = method.calibrated()
    net = policy.net.net if isinstance(policy.net, ScaledCommand) else None
    seen = None
    if isinstance(net, Normalised):
        shift, scale = net.normaliser.shift_and_scale()
        seen = {"shift": shift.tolist(), "scale": scale.tolist(), "limit": LIMIT}
        net = net.net
    if (
        type(policy) is not CommandPolicy
        or not isinstance(net, GatedLayersNet)
        or method.command_rule() is not None
    ):
        other = f"the {method.implementation} of '{name}'"
        raise UserError(
            f"demo: the page plays RCP with network=layers, not {other}; try RCP-A-lunarlander"
        )
    if method.spec.family != "lunarlander":
        raise UserError(
            f"demo: '{name}' is of {method.gamename}, the page has LunarLander; train RCP-A "
            "--gamename lunarlander"
        )
    if calibration is None:
        raise UserError(
            f"demo: '{name}' cannot be asked for returns yet; lightning-rl eval {name} --calibrate"
        )
    assert isinstance(policy.net, ScaledCommand)
    table = zip(
        *(
            buffer.tolist()
            for buffer in (calibration.asked, calibration.first, calibration.guidance)
        ),
        strict=True,
    )
    return {
        "layers": [_linear(layer) for layer in (*net.layers, net.output)],
        "gates": _linear(net.gates),
        "seen": seen,
        "gateScale": net.gate_scale,
        "scale": float(policy.net.scale),
        "shift": float(policy.net.shift),
        "limit": min(policy.net.limit, 1e30),
        "usual": float(policy.usual[0]),
        "calibration": [
            {"asked": asked, "first": first, "guidance": guidance}
            for asked, first, guidance in table
        ],
    }


def _linear(layer: nn.Module) -> dict[str, str]:
    """Weights ``[O, I]`` and biases ``[O]``, row by row, little endian in single precision."""
    return {name: _text(getattr(layer, name)) for name in ("weight", "bias")}


def _text(values: Tensor) -> str:
    return base64.b64encode(values.detach().numpy().astype("<f4").tobytes()).decode()
