"""The warm commands of the tests are what fresh interpreters are."""

import os
import signal
import subprocess
import time

import pytest
import warm


@pytest.mark.slow
def test_arguments_folder_environment_streams_and_exit_code(tmp_path):
    code = (
        "import os, sys; print(sys.argv[1:], os.getcwd(), os.environ['COLOUR']); print('x', "
        "file=sys.stderr); sys.exit(7)"
    )
    command = warm.run("-c", code, "a b", cwd=tmp_path, env={"COLOUR": "red"})
    assert command.stdout == f"['a b'] {tmp_path} red\n"
    assert (command.stderr, command.returncode) == ("x\n", 7)
    shell = subprocess.run(
        [warm.shell(), "-c", code, "a b"],
        cwd=tmp_path,
        env={"COLOUR": "red"},
        capture_output=True,
        text=True,
    )
    assert (shell.stdout, shell.stderr, shell.returncode) == (command.stdout, "x\n", 7)


def test_errors_are_tracebacks_and_commands_see_nothing_of_each_other():
    failed = warm.run("-c", "import lightning_rl; lightning_rl.mark = 1 / 0")
    assert failed.returncode == 1
    assert failed.stderr.rstrip().endswith("ZeroDivisionError: division by zero")
    assert warm.run("-c", "import lightning_rl; lightning_rl.mark = 1").returncode == 0
    assert (
        warm.run("-c", "import lightning_rl; assert not hasattr(lightning_rl, 'mark')").returncode
        == 0
    )


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_signals_end_the_command_and_the_executable_in_its_place(tmp_path, number):
    # Short sleeps: Python handles a signal that comes just before a sleep after it.
    code = (
        f"import os, pathlib, time\npathlib.Path(r'{tmp_path}', str(os.getpid())).touch()\nfor "
        "_ in range(99): time.sleep(0.6)"
    )

    def pid():
        while not (names := list(tmp_path.iterdir())):
            time.sleep(0.01)
        names[0].unlink()
        return int(names[0].name)

    command = warm.Command(["-c", code])
    assert command.poll() is None
    assert pid() == command.pid
    command.send_signal(number)
    assert command.wait() == -number
    shell = subprocess.Popen([warm.shell(), "-c", code], stderr=subprocess.DEVNULL)
    child = pid()
    shell.send_signal(number)
    assert shell.wait(60) == -number
    until = time.monotonic() + 60
    while os.path.exists(f"/proc/{child}"):  # noqa: PTH110
        assert time.monotonic() < until
        time.sleep(0.01)


def test_communicating_waits_for_forked_children():
    command = warm.Command(
        ["-c", "import os, time; os.fork() or (time.sleep(0.3), print('late', flush=True))"]
    )
    assert command.communicate()[0] == "late\n"
