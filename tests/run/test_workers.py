"""Worker processes leave with their parent, however it goes, and honour SIGTERM. A forked
stand-in plays the parent.
"""

import errno
import multiprocessing
import os
import signal
import time
from pathlib import Path

import pytest
import torch
from helpers.toys import toy_policy

import lightning_rl.core.workers
from lightning_rl.core.errors import UserError
from lightning_rl.core.types import Request
from lightning_rl.core.workers import begin_worker, finish_epoch, leave_with_parent
from lightning_rl.envs.gym_batch import GymBatch
from lightning_rl.envs.spec import env_spec
from lightning_rl.evolution.executors import SerialExecutor
from lightning_rl.rollouts.player import Collector
from lightning_rl.run import processes
from lightning_rl.run.options import RunOptions

FORK = multiprocessing.get_context("fork")


def until(condition, seconds=10.0):
    deadline = time.monotonic() + seconds
    while not (found := condition()) and time.monotonic() < deadline:
        time.sleep(0.02)
    return found


def alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def children(pid):
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def busy(proposal, items):
    while True:
        time.sleep(0.05)


def evaluates():
    SerialExecutor(2).map(busy, None, [1, 2])


def rolls_out():
    spec = env_spec("cartpole")
    collector = Collector(spec, toy_policy(spec), 2, 2)
    requests = [Request(str(k), k, command=(200.0, 100.0)) for k in range(4)]
    while True:
        collector.collect(requests, toy_policy(spec).state_dict(), 0)


def steps_environments():
    envs = GymBatch(env_spec("cartpole"), [1, 2], processes=True)
    while True:
        envs.reset(envs.step(torch.zeros(2, dtype=torch.int64)).terminated)


def trains_groups():
    # a run that finishes its epoch
    signal.signal(signal.SIGTERM, lambda number, frame: os._exit(3))
    for _ in range(2):
        FORK.Process(target=group).start()
    time.sleep(60)


def group():
    leave_with_parent(finish_epoch)
    time.sleep(60)


@pytest.mark.parametrize("parent", [evaluates, rolls_out, steps_environments, trains_groups])
def test_workers_leave_when_their_parent_is_killed(parent):
    trainer = FORK.Process(target=parent)
    trainer.start()
    workers = until(lambda: len(found := children(trainer.pid)) >= 2 and found)
    assert all(map(alive, workers))
    time.sleep(0.3)  # they are at work
    assert trainer.is_alive()  # what it did raised nothing: it is the kill that ends it
    os.kill(trainer.pid, signal.SIGKILL)
    trainer.join()
    left = until(lambda: not any(map(alive, workers)))
    for pid in filter(alive, workers):
        os.kill(pid, signal.SIGKILL)
    assert left


def test_a_worker_outlives_sigterm_by_the_grace_only(monkeypatch):
    """The parent may be finishing its epoch; one that does not get to an end holds no worker for
    ever.
    """
    monkeypatch.setattr(lightning_rl.core.workers, "GRACE_S", 1)
    ready = FORK.Event()

    def work():
        begin_worker()
        ready.set()
        while True:  # a signal just before one long sleep would be handled at its end only
            time.sleep(0.05)

    worker = FORK.Process(target=work)
    worker.start()
    assert ready.wait(10)
    told = time.monotonic()
    os.kill(worker.pid, signal.SIGTERM)
    worker.join(10)
    assert time.monotonic() - told >= 0.9
    assert worker.exitcode == -signal.SIGALRM


def fails(options):
    raise UserError("a mistake")


def finds_the_disk_full(options):
    raise OSError(errno.ENOSPC, "No space left on device")


def finds_no_memory(options):
    raise RuntimeError(
        "DefaultCPUAllocator: not enough memory: you tried to allocate 80000000000 bytes"
    )


def is_defective(options):
    raise ZeroDivisionError


def is_interrupted(options):
    raise KeyboardInterrupt


def is_killed(options):
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.parametrize(
    ("second", "code"),
    [
        (lambda options: 0, 0),
        (lambda options: 3, 3),
        (fails, 2),
        (finds_the_disk_full, 2),
        (finds_no_memory, 2),
        (is_defective, 1),
        (is_interrupted, 130),
        (is_killed, 128 + 9),
    ],
)
def test_the_exit_code_of_groups_is_that_of_the_worst(monkeypatch, second, code):
    """Of seeds 5, 6 and 7; what ``train_and_report`` does, the forked processes inherit."""
    monkeypatch.setattr(
        processes, "train_and_report", lambda options: second(options) if options.seed == 6 else 0
    )
    assert processes.train_groups(RunOptions("ER", "panflute-3", seed=5, num_seeds=3), 3) == code


def test_sigterm_is_passed_on_to_the_groups_while_they_are_waited_for():
    ready = FORK.Event()

    def heard(number, frame):
        pass

    def work():
        signal.signal(signal.SIGTERM, lambda number, frame: os._exit(7))
        ready.set()
        while True:
            time.sleep(0.02)

    worker = FORK.Process(target=work)
    worker.start()
    assert ready.wait(10)
    before = signal.signal(signal.SIGTERM, heard)
    with processes.signals_to([worker]):
        os.kill(os.getpid(), signal.SIGTERM)
        worker.join(10)
    code, after = worker.exitcode, signal.signal(signal.SIGTERM, before)
    worker.kill()
    assert (code, after) == (7, heard)
