"""Commands without the seconds of their imports, for tests.

A server process imports the package once, then forks for each command. The command is a process of
its own, with its own arguments, folder, environment, streams, session and exit code, and can be
killed; only what Python does before the first line of the program is not repeated. ``SHELL`` is an
executable that stands for the interpreter in scripts (``PYTHON=`` of bash_train.sh). This file is
all three: the tests' side, that executable and the server; it imports nothing heavy itself.
"""

from __future__ import annotations

import array
import atexit
import contextlib
import gc
import json
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import traceback
import weakref
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

ROOT = Path(__file__).resolve().parent.parent
_PRELOAD = (
    "lightning_rl.cli",
    "lightning_rl.run.processes",
    "lightning_rl.lab.evaluate",
    "lightning_rl.lab.imagine",
    "gymnasium.envs.box2d",
    "gymnasium.envs.classic_control",
    "tensorboard.main",
    "mujoco",
    "pygame",
    "moviepy",
    "tqdm",
)
_SOCKET = "WARM_SOCKET"


# The tests' side


class _Server:
    """Started when it is first needed; it ends with this process."""

    def __init__(self) -> None:
        self.folder = tempfile.TemporaryDirectory(prefix="warm-")
        self.address = f"{self.folder.name}/socket"
        self.shell = Path(self.folder.name, "python")
        self.shell.write_text(
            f'#!/bin/sh\nexec "{sys.executable}" -I -S "{__file__}" --client "{self.address}" '
            '"$@"\n'
        )
        self.shell.chmod(0o755)
        path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
        env = {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
        command = [sys.executable, __file__, "--server", self.address]
        # Its standard input is a leash: when this process is gone, however it went, the server
        # reads the end of it and leaves.
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env, cwd=ROOT
        )
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == b"ready\n", (
            "the server of warm commands did not start"
        )
        atexit.register(self.close)

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()
        self.folder.cleanup()


_server: _Server | None = None


def server() -> _Server:
    global _server
    if _server is None:
        _server = _Server()
    return _server


def shell() -> str:
    """The path of an executable that runs its arguments as ``python`` would."""
    return str(server().shell)


class Command:
    """``python WORDS`` under way. ``stdout`` and ``stderr`` are whole once it has ended."""

    def __init__(
        self,
        words: Sequence[str | Path],
        cwd: str | Path | None = None,
        env: Mapping[str, str] | None = None,
    ):
        self.args = ["python", *map(str, words)]
        self.returncode: int | None = None
        self._files = [tempfile.TemporaryFile("w+", errors="replace") for _ in range(2)]  # noqa: SIM115  # open as long as this
        # The other end of this pipe is held by the command and by every process that it forks.
        family, held = os.pipe()
        self._family: int | None = family
        with Path(os.devnull).open() as nothing:
            fds = [nothing.fileno(), *(file.fileno() for file in self._files), held]
            env = os.environ if env is None else env
            self._line = _ask(server().address, self.args[1:], cwd or Path.cwd(), env, fds)
        os.close(held)
        self.pid = _number(self._line)

    def poll(self) -> int | None:
        """The exit code, negative for the signal that ended it; None while it runs."""
        if self.returncode is None and _readable(self._line, timeout=0):
            self.returncode = _number(self._line)
            self._line.close()
        return self.returncode

    def wait(self, timeout: float = 120) -> int:
        if self.returncode is None and not _readable(self._line, timeout=timeout):
            self.kill()
            raise subprocess.TimeoutExpired(self.args, timeout, self.stdout, self.stderr)
        code = self.poll()
        assert code is not None
        return code

    def _read(self, number: int) -> str:
        # Another descriptor would share the position of the writer: read without moving it.
        fd = self._files[number].fileno()
        return os.pread(fd, os.fstat(fd).st_size, 0).decode(errors="replace")

    @property
    def stdout(self) -> str:
        return self._read(0)

    @property
    def stderr(self) -> str:
        return self._read(1)

    def communicate(self, timeout: float = 120) -> tuple[str, str]:
        """Waits for its forked children as well, as reading a pipe to its end does."""
        self.wait(timeout)
        if self._family is not None:
            if not _readable(self._family, timeout=timeout):
                raise subprocess.TimeoutExpired(self.args, timeout, self.stdout, self.stderr)
            os.close(self._family)
            self._family = None
        return self.stdout, self.stderr

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


def run(
    *words: str | Path,
    cwd: str | Path | None = None,
    env: Mapping[str, str] | None = None,
    timeout: float = 120,
) -> subprocess.CompletedProcess[str]:
    """``python WORDS`` from start to end."""
    command = Command(words, cwd, env)
    out, err = command.communicate(timeout)
    return subprocess.CompletedProcess(command.args, command.wait(), out, err)


def _ask(
    address: str, words: Sequence[str], cwd: str | Path, env: Mapping[str, str], fds: Sequence[int]
) -> socket.socket:
    line = socket.socket(socket.AF_UNIX)
    line.connect(address)
    request = json.dumps({"words": list(words), "cwd": str(cwd), "env": dict(env)}).encode()
    # A byte with the streams, the length, the request.
    line.sendmsg([b"!"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))])
    line.sendall(len(request).to_bytes(8, "big") + request)
    return line


def _readable(*sources: Any, timeout: float | None = None) -> list[int]:
    """The descriptors with something to read or at their end; ``select`` knows 1,024 alone."""
    poll = select.poll()
    for source in sources:
        poll.register(source, select.POLLIN)
    return [fd for fd, _ in poll.poll(None if timeout is None else 1000 * timeout)]


def _number(line: socket.socket) -> int:
    data = _exactly(line, 8)
    return int.from_bytes(data, "big", signed=True)


def _exactly(line: socket.socket, count: int) -> bytes:
    data = b""
    while len(data) < count:
        if not (more := line.recv(count - len(data))):
            raise ConnectionError("the other end of a warm command is gone")
        data += more
    return data


# The executable


def _client(address: str, words: Sequence[str]) -> NoReturn:
    handed_on = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    signal.pthread_sigmask(signal.SIG_BLOCK, handed_on)  # until there is a process for them
    line = _ask(address, words, Path.cwd(), os.environ, (0, 1, 2))
    pid = _number(line)
    for number in handed_on:
        signal.signal(number, lambda number, frame: os.kill(pid, number))
    signal.pthread_sigmask(signal.SIG_UNBLOCK, handed_on)
    code = _number(line)
    if code < 0:  # ended by a signal: so ends this process
        signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code)


# The server


def _serve(address: str) -> dict[str, Any]:
    """Tells the end of each command; returns in each command's process, with its request."""
    door = socket.socket(socket.AF_UNIX)
    door.bind(address)
    door.listen(64)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the tests
    os.write(1, b"ready\n")
    # By a descriptor that is readable at the command's end.
    running: dict[int, tuple[int, socket.socket]] = {}
    while True:
        ready = _readable(0, door, *running, *(line for _, line in running.values()))
        for end, (pid, line) in list(running.items()):
            if end in ready:
                code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
                with contextlib.suppress(OSError):
                    line.sendall(code.to_bytes(8, "big", signed=True))
                line.close()
                os.close(end)
                del running[end]
            elif 0 in ready or line.fileno() in ready:
                os.kill(pid, signal.SIGKILL)
        if 0 in ready:
            for pid, _ in running.values():
                os.waitpid(pid, 0)  # so that their time is counted as that of the tests
            os._exit(0)
        if door.fileno() in ready:
            line = door.accept()[0]
            request, fds = _hear(line)
            if (pid := os.fork()) == 0:
                os.setsid()
                signal.signal(signal.SIGINT, signal.default_int_handler)
                # Told by the command itself: from here on it takes signals.
                line.sendall(os.getpid().to_bytes(8, "big", signed=True))
                for source in (door, line, *(other for _, other in running.values())):
                    source.close()
                for number, fd in enumerate(fds[:3]):
                    os.dup2(fd, number)
                for fd in (*fds[:3], *running):
                    os.close(fd)
                return request
            for fd in fds:
                os.close(fd)
            running[os.pidfd_open(pid)] = pid, line


def _hear(line: socket.socket) -> tuple[dict[str, Any], array.array[int]]:
    """A request and the streams that came with it."""
    _, [(_, _, rights)], *_ = line.recvmsg(1, socket.CMSG_SPACE(4 * 4))
    fds = array.array("i")
    fds.frombytes(rights)
    return json.loads(_exactly(line, int.from_bytes(_exactly(line, 8), "big"))), fds


def _execute(request: dict[str, Any]) -> NoReturn:
    """Runs the program, and ends as the interpreter does."""
    sys.stdin, sys.stdout = open(0), open(1, "w")  # noqa: SIM115  # they live as long as the process
    sys.stderr = open(2, "w", buffering=1, errors="backslashreplace")  # noqa: SIM115
    os.environ.clear()
    os.environ.update(request["env"])
    os.chdir(request["cwd"])
    code: object = 0
    try:
        _run_program(request["words"])
    except SystemExit as end:
        code = end.code
    except KeyboardInterrupt:
        traceback.print_exc()
        code = -signal.SIGINT
    except BaseException:
        traceback.print_exc()
        code = 1
    if code is not None and not isinstance(code, int):
        print(code, file=sys.stderr)
        code = 1
    threading._shutdown()  # type: ignore[attr-defined]  # waits for threads, as the interpreter does
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    if code == -signal.SIGINT:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGINT)
    os._exit((code or 0) & 255)


def _run_program(words: Sequence[str]) -> None:
    if words[0] == "-c":
        sys.argv, sys.path[0] = ["-c", *words[2:]], ""
        exec(words[1], {"__name__": "__main__"})
    elif words[0] == "-m":
        sys.argv, sys.path[0] = [words[1], *words[2:]], str(Path.cwd())
        runpy.run_module(words[1], run_name="__main__", alter_sys=True)
    else:
        script = str((ROOT / words[0]).resolve()) if words[0] == "trainer.py" else words[0]
        sys.argv, sys.path[0] = [script, *words[1:]], str(Path(script).parent)
        runpy.run_path(script, run_name="__main__")


def _be_a_server(address: str) -> NoReturn:
    from lightning_rl.cli.tools import tools
    from lightning_rl.methods.registry import IMPLEMENTATIONS

    gc.disable()  # nothing of what is imported is garbage
    commands: list[Any] = []
    for entry in tools().values():
        commands += getattr(entry, "tools", {"": entry}).values()
    modules = {command.run.partition(":")[0] for command in commands}
    for name in (*_PRELOAD, *sorted(modules)):
        __import__(name)
    assert all(IMPLEMENTATIONS.values())  # imports each
    for finalizer in weakref.finalize._registry:  # type: ignore[attr-defined]
        finalizer.atexit = False  # of what was imported: nothing to a command's process, and slow
    import torch

    torch.set_num_threads(1)
    gc.freeze()  # fewer pages to copy
    gc.enable()
    assert threading.active_count() == 1, "threads do not survive a fork"
    _execute(_serve(address))


if __name__ == "__main__":
    if sys.argv[1] == "--client":
        _client(sys.argv[2], sys.argv[3:])
    _be_a_server(sys.argv[2])
