import contextlib
import dataclasses
import errno
import gc
import multiprocessing
import os
import signal
import subprocess
import sys
import types
import weakref

import pytest
import torch
from helpers import ROOT
from helpers.budgets import tiny_settings
from helpers.toys import same_episodes, toy_policy

import lightning_rl
from lightning_rl.core.errors import RolloutError, UserError
from lightning_rl.core.types import Request
from lightning_rl.envs.gym_batch import GymBatch
from lightning_rl.envs.spec import env_spec
from lightning_rl.rollouts.player import Collector, Player
from lightning_rl.run.logger import RunLogger
from lightning_rl.run.options import RunOptions
from lightning_rl.run.train import worker_died


def collector(num_workers: int, gamename: str = "cartpole", chunk_size: int = 3) -> Collector:
    spec = env_spec(gamename)
    return Collector(spec, toy_policy(spec), num_workers, chunk_size)


def requests(count: int, epoch: int = 0) -> list[Request]:
    return [
        Request(f"epoch {epoch}, episode {i}", 100 * epoch + i, "sampled", (100.0, 50.0))
        for i in range(count)
    ]


@pytest.mark.parametrize("gamename", ["cartpole", "pendulum"])
def test_episodes_do_not_depend_on_the_number_of_workers(gamename):
    results = []
    for num_workers in (0, 1, 2):
        c = collector(num_workers, gamename)
        parameters = toy_policy(env_spec(gamename), seed=5).state_dict()
        results.append(
            c.collect(requests(8), parameters, 4) + c.collect(requests(5, 1), parameters, 5)
        )
        c.close()
    assert same_episodes(results[0], results[1])
    assert same_episodes(results[0], results[2])
    assert [e.request.name for e in results[2]][:2] == ["epoch 0, episode 0", "epoch 0, episode 1"]


@pytest.mark.parametrize("num_workers", [0, 2])
def test_the_policy_is_frozen_and_stamped_while_a_collection_runs(num_workers):
    spec = env_spec("cartpole")
    policy = toy_policy(spec, seed=1)
    c = Collector(spec, toy_policy(spec, seed=2), num_workers, 3)
    player = Player(spec, policy, torch.tensor(7))
    expected = player.play(requests(6)[:3]) + player.play(requests(6)[3:])
    assert same_episodes(expected, c.collect(requests(6), policy.state_dict(), 7))
    assert {e.policy_version for e in expected} == {7}
    c.start(requests(6), policy.state_dict(), 7)
    with torch.no_grad():
        for parameter in policy.parameters():
            parameter.add_(1.0)
    assert same_episodes(expected, c.finish())
    moved = c.collect(requests(6), policy.state_dict(), 8)
    assert {e.policy_version for e in moved} == {8}
    assert not same_episodes(expected, moved)
    c.close()


def test_a_collector_plays_a_copy_and_leaves_the_policy_alone():
    spec = env_spec("cartpole")
    policy = toy_policy(spec, seed=1)
    c, state = Collector(spec, policy, 0, 3), toy_policy(spec, seed=2).state_dict()
    c.collect(requests(2), state, 0)
    assert all(parameter.requires_grad for parameter in policy.parameters())
    assert not any(parameter.requires_grad for parameter in c.behaviour.parameters())
    assert policy.training > c.behaviour.training
    assert not any(
        torch.equal(parameter, state[name]) for name, parameter in policy.named_parameters()
    )


def test_what_has_no_episode_yet_is_outstanding():
    c = collector(0)
    c.start(requests(5), c.behaviour.state_dict(), 0)
    assert c.outstanding == [request.name for request in requests(5)]
    for _ in range(2):
        assert [e.request.name for e in c.finish()] == [request.name for request in requests(5)]
        assert c.outstanding == []
        c.start(requests(5), c.behaviour.state_dict(), 0)
        assert c.outstanding == [request.name for request in requests(5)]


def test_one_collection_at_a_time_and_a_closed_collector_begins_anew():
    c = collector(0)
    parameters = c.behaviour.state_dict()
    with pytest.raises(RuntimeError, match="no collection"):
        c.finish()
    c.start(requests(2), parameters, 0)
    with pytest.raises(RuntimeError, match="under way"):
        c.start(requests(2), parameters, 0)
    c.close()
    assert len(c.collect(requests(2), parameters, 0)) == 2


def test_a_closed_collector_is_let_go():
    """A process that trains many runs would keep the policies of all."""
    c = collector(0)
    c.collect(requests(2), c.behaviour.state_dict(), 0)
    seen = weakref.ref(c)
    c.close()
    del c
    gc.collect()
    assert seen() is None


def test_collections_leave_the_global_generator_alone():
    c = collector(0)
    before = torch.get_rng_state()
    c.collect(requests(2), c.behaviour.state_dict(), 0)
    assert torch.equal(before, torch.get_rng_state())


@pytest.mark.parametrize("num_workers", [0, 1])
def test_an_environment_that_raises_ends_the_collection(num_workers, toy_games):
    c = collector(num_workers, "raising")
    with pytest.raises(RolloutError, match=r"^ValueError: the ground gave way.*epoch 0, episode 0"):
        c.collect(requests(6), c.behaviour.state_dict(), 0)
    assert not c.busy  # the chunks that are left are not the next collection
    assert c.outstanding
    c.close()


def test_a_collection_after_one_that_was_cut_short_is_whole(monkeypatch):
    c, play = collector(0), Player.play
    for failure in (RolloutError("a slip"), KeyboardInterrupt()):
        monkeypatch.setattr(
            Player, "play", lambda *_, failure=failure: (_ for _ in ()).throw(failure)
        )
        with pytest.raises(type(failure)):
            c.collect(requests(6), c.behaviour.state_dict(), 0)
        monkeypatch.setattr(Player, "play", play)
        assert len(c.collect(requests(6), c.behaviour.state_dict(), 0)) == 6


def test_a_dead_worker_is_reported_with_the_outstanding_requests():
    c = collector(2, "lunarlander")
    c.collect(requests(2), c.behaviour.state_dict(), 0)
    workers = c._loader._iterator._workers
    with pytest.raises(RuntimeError, match="DataLoader worker") as death:  # noqa: PT012, torch raises it anywhere
        c.start(requests(300, 9), c.behaviour.state_dict(), 1)
        os.kill(workers[0].pid, signal.SIGKILL)
        c.finish()
    error = worker_died(death.value, [c])
    assert error is not None
    assert "epoch 9, episode" in str(error)
    assert "epoch 9, episode 299" in str(error)
    assert worker_died(RuntimeError("something else"), [c]) is None
    raised = (
        "Caught RuntimeError in DataLoader worker process 0.\nOriginal Traceback (most "
        "recent call last):"
    )
    assert worker_died(RuntimeError(raised), [c]) is None  # it raised, and lives
    c.close()


def test_a_worker_that_died_between_collections_is_reported_too():
    c = collector(1, "lunarlander")
    c.collect(requests(2), c.behaviour.state_dict(), 0)
    worker = c._loader._iterator._workers[0]
    with contextlib.suppress(RuntimeError):  # torch's handler of the signal, where it is in time
        worker.kill()
        worker.join(60)
    killed = RuntimeError("DataLoader worker (pid 7) is killed by signal: Killed.")
    assert "no episode was outstanding" in str(worker_died(killed, [c]))
    with pytest.raises(RuntimeError, match="DataLoader worker") as death:
        c.start(requests(3, 9), c.behaviour.state_dict(), 1)  # waits for the dead worker's answer
    assert not c.busy
    assert "epoch 9, episode 0 .. epoch 9, episode 2 (3 requests)" in str(
        worker_died(death.value, [c])
    )
    c.close()


def test_what_interrupts_a_logger_is_raised_as_it_is(tmp_path, monkeypatch):
    """torch raises a worker's death anywhere, and Lightning's logger makes a ValueError about
    the logged number of it.
    """
    logger = RunLogger(RunOptions("REINFORCE", "cartpole", logdir=tmp_path))
    for cause in (
        RuntimeError("DataLoader worker (pid 7) is killed by signal: Killed."),
        OSError(errno.ENOSPC, "No space left"),
    ):
        monkeypatch.setattr(
            logger.experiment, "add_scalar", lambda *_, cause=cause: (_ for _ in ()).throw(cause)
        )
        with pytest.raises(type(cause)) as raised:
            logger.log_metrics({"train/policy_loss": 5.0}, 1)
        assert raised.value is cause
    logger.experiment.close()


@pytest.mark.parametrize(
    ("method", "guard"), [("fork", False), ("spawn", True), ("forkserver", True)]
)
def test_a_script_without_a_guard_is_told_of_it_where_workers_import_it(monkeypatch, method, guard):
    monkeypatch.setattr("lightning_rl.run.train.get_start_method", lambda: method)
    error = str(worker_died(RuntimeError("DataLoader worker (pid(s) 7) exited unexpectedly"), []))
    assert (
        "put the call below `if __name__ == '__main__':` and your own classes above it; else free "
        "memory" in error
    ) is guard
    assert error.endswith("free memory or lower --num_workers, then --resume")


def test_below_a_worker_of_multiprocessing_there_are_no_workers(monkeypatch, tmp_path):
    monkeypatch.setitem(multiprocessing.current_process()._config, "daemon", True)
    options = {**tiny_settings("AAC"), "max_epochs": 1, "logdir": tmp_path}
    assert lightning_rl.train("AAC", "cartpole", **options).path.is_dir()
    with pytest.raises(
        UserError, match=r"num_workers 1: this process is a worker .*give num_workers=0"
    ):
        lightning_rl.train("AAC", "cartpole", seed=1, num_workers=1, **options)
    with pytest.raises(UserError, match=r"simulator processes: .*use simulator=serial"):
        GymBatch(env_spec("cartpole"), [1], processes=True)


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_what_a_notebook_defines_is_no_work_for_processes_that_are_not_forked(monkeypatch, method):
    monkeypatch.setattr(multiprocessing, "get_start_method", lambda: method)
    spec = env_spec("cartpole")
    own = dataclasses.replace(spec, env=type("Warehouse", (), {"__module__": "__main__"}))
    monkeypatch.setitem(sys.modules, "__main__", types.ModuleType("__main__"))
    Collector(own, toy_policy(spec), 0, 2)
    with pytest.raises(
        UserError,
        match=r"'Warehouse' is defined in a notebook .*write it to a module and import it, or",
    ):
        Collector(own, toy_policy(spec), 1, 2)
    with pytest.raises(UserError, match=r"cannot be given this .*write it to a module"):
        Collector(dataclasses.replace(spec, env=lambda: None), toy_policy(spec), 1, 2)


def test_workers_of_a_server_of_forks_stay_while_their_run_does(tmp_path):
    """Their parent is the server, not the run."""
    settings = {**tiny_settings("UDRL"), "max_epochs": 1, "num_workers": 1}
    script = f"""
import multiprocessing
import lightning_rl
if __name__ == "__main__":
    multiprocessing.set_start_method("forkserver")
    lightning_rl.train("UDRL", "cartpole", logdir={str(tmp_path)!r}, **{settings!r})
"""
    (tmp_path / "script.py").write_text(script)
    subprocess.run([sys.executable, tmp_path / "script.py"], check=True, cwd=ROOT, timeout=120)


def test_without_workers_nothing_is_shared():
    """Each shared tensor holds a file descriptor, of which a process that trains many runs has
    not enough.
    """
    assert not any(tensor.is_shared() for tensor in collector(0).behaviour.state_dict().values())
    assert all(tensor.is_shared() for tensor in collector(1).behaviour.state_dict().values())
