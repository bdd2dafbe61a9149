"""A page in headless Chromium, driven over a pipe by the DevTools protocol."""

import json
import os
import shutil
import subprocess
import time
from pathlib import Path

import pytest

PROGRAM = (
    shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
)
QUIET = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
"""Flags of a browser that opens one page by itself, without a request of its own."""
needs_chromium = pytest.mark.skipif(PROGRAM is None, reason="no Chromium here")


class Chromium:
    """A tab. requests: the addresses that the page has asked for; errors: what its scripts
    raised.
    """

    def __init__(self, profile: Path, size=(1280, 900)):
        self._in, self._out = os.pipe(), os.pipe()
        given, taken = self._in[0], self._out[1]

        def connect():  # Chromium reads commands from 3 and writes answers to 4
            spare = (os.dup(given), os.dup(taken))
            os.dup2(spare[0], 3)
            os.dup2(spare[1], 4)

        words = (
            PROGRAM,
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--no-first-run",
            "--disable-background-networking",
            "--remote-debugging-pipe",
            f"--user-data-dir={profile}",
            f"--window-size={size[0]},{size[1]}",
            "about:blank",
        )
        self._process = subprocess.Popen(
            words,
            preexec_fn=connect,
            close_fds=False,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(given)
        os.close(taken)
        self._number, self._rest, self._session = 0, b"", None
        self.requests, self.errors = [], []
        (tab,) = [
            each for each in self.call("Target.getTargets")["targetInfos"] if each["type"] == "page"
        ]
        self._session = self.call("Target.attachToTarget", targetId=tab["targetId"], flatten=True)[
            "sessionId"
        ]
        for domain in ("Page", "Runtime", "Network"):
            self.call(f"{domain}.enable")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._process.kill()
        self._process.wait()
        os.close(self._in[1])
        os.close(self._out[0])

    def call(self, method, **params):
        self._number += 1
        message = {"id": self._number, "method": method, "params": params}
        message |= {"sessionId": self._session} if self._session else {}
        os.write(self._in[1], json.dumps(message).encode() + b"\0")
        while True:
            answer = self._read()
            if answer.get("id") == self._number:
                assert "error" not in answer, answer
                return answer["result"]
            if answer.get("method") == "Network.requestWillBeSent":
                self.requests.append(answer["params"]["request"]["url"])
            if answer.get("method") == "Runtime.exceptionThrown":
                self.errors.append(answer["params"]["exceptionDetails"])

    def _read(self):
        while b"\0" not in self._rest:
            part = os.read(self._out[0], 1 << 20)
            assert part, "Chromium has left"
            self._rest += part
        message, _, self._rest = self._rest.partition(b"\0")
        return json.loads(message)

    def open(self, path: Path, loaded="document.readyState === 'complete'"):
        self.call("Page.navigate", url=path.as_uri())
        self.wait(loaded)

    def run(self, script):
        """The value of an expression in the page."""
        found = self.call(
            "Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def wait(self, script, seconds=60):
        end = time.monotonic() + seconds
        while not self.run(script):
            assert time.monotonic() < end, script
            time.sleep(0.05)

    def key(self, name, text=""):
        code = {"ArrowLeft": 37, "ArrowRight": 39}.get(
            name, ord(name.upper()) if len(name) == 1 else 0
        )
        for kind, typed in (("keyDown", text), ("keyUp", "")):
            self.call(
                "Input.dispatchKeyEvent",
                type=kind,
                key=name,
                windowsVirtualKeyCode=code,
                text=typed,
            )

    def screenshot(self, path: Path):
        import base64

        path.write_bytes(
            base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"])
        )
