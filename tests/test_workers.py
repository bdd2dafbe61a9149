"""Worker processes leave with their parent, however it goes, and honour SIGTERM. A forked stand-in plays the parent."""

import multiprocessing
import os
import signal
import time
from pathlib import Path

import pytest
import torch
from helpers import toy_policy

import lightning_rl.core.workers
from lightning_rl.core.types import Request
from lightning_rl.core.workers import begin_worker, finish_epoch, leave_with_parent
from lightning_rl.envs.gym_batch import GymBatch
from lightning_rl.envs.spec import env_spec
from lightning_rl.evolution.executors import SerialExecutor
from lightning_rl.rollouts.player import Collector

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
    signal.signal(signal.SIGTERM, lambda number, frame: os._exit(3))  # a run that finishes its epoch
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
    """The parent may be finishing its epoch; one that does not get to an end holds no worker for ever."""
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
    os.kill(worker.pid, signal.SIGTERM)
    worker.join(0.3)
    assert worker.is_alive()
    worker.join(10)
    assert worker.exitcode == -signal.SIGALRM
