"""Every executor gives the same results; a lost worker or node costs nothing but time."""

import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time

import grpc
import pytest
import ray
import torch
from helpers import ROOT
from helpers.proxies import synthetic_proxy
from helpers.strategies import strategy_config

from lightning_rl.agents.registry import AGENTS
from lightning_rl.core.config import build_config, merged_values
from lightning_rl.core.errors import RolloutError, UserError
from lightning_rl.evolution.cluster import RayExecutor, join_cluster
from lightning_rl.evolution.executors import SerialExecutor, shards, unshard
from lightning_rl.evolution.strategies import Published
from lightning_rl.methods.inner_loop import InnerLoop

QL = build_config(
    AGENTS["QL"].config, [*merged_values("QL", "emptyroom22"), ("test", {"train_episodes": 5})]
)
PROXY = synthetic_proxy("emptyroom22", horizon=10)
LOOP = InnerLoop(proxy=PROXY, agents=(("QL", QL),), test_episodes=2, max_train_steps=100)
CONFIG = strategy_config(step_size=0.7)
UNDER_WAY = multiprocessing.get_context("fork").Semaphore(0)


def asked():
    net = PROXY.net
    return Published(net.init([torch.Generator().manual_seed(0)])[0], net.evolved(), CONFIG, 7).ask(
        3
    )


@pytest.mark.parametrize(("items", "count"), [(1, 3), (7, 3), (9, 3), (4, 1)])
def test_shards_come_back_in_order(items, count):
    parts = shards(range(items), count)
    assert len(parts) == min(items, count)
    assert max(map(len, parts)) - min(map(len, parts)) <= 1
    assert unshard(parts) == list(range(items))


def test_processes_give_the_same_outcomes():
    here, there = SerialExecutor(0), SerialExecutor(2)
    assert (here.processes, there.processes) == (1, 2)
    try:
        for _ in range(2):
            assert there.map(LOOP, *asked()) == here.map(LOOP, *asked())
            there.close()  # until it is used again
    finally:
        there.close()


def test_a_dead_process_is_told():
    executor = SerialExecutor(2)
    try:
        with pytest.raises(
            RolloutError, match=r"an evaluating process died .* lower --num_workers, then --resume"
        ):
            executor.map(lambda_free_kill, *asked())
    finally:
        executor.close()


def test_closing_waits_for_nobody():
    """As after a second Ctrl-C: what is under way is thrown away."""
    executor, ended = SerialExecutor(2), threading.Event()

    def run():
        with pytest.raises(RolloutError):
            executor.map(sleepy, *asked())
        ended.set()

    threading.Thread(target=run, daemon=True).start()
    assert all(UNDER_WAY.acquire(timeout=30) for _ in range(2))
    processes = list(executor._pool._processes.values())
    executor.close()
    assert ended.wait(10)
    until = (
        time.monotonic() + 10
    )  # not by join: the pool's own thread may reap a process, and tell a moment later
    while any(process.is_alive() for process in processes):
        assert time.monotonic() < until
        time.sleep(0.01)


def sleepy(proposal, items):
    UNDER_WAY.release()
    time.sleep(60)


def lambda_free_kill(proposal, items):
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.slow
def test_ray_gives_the_same_outcomes(ray_cluster):
    """A killed worker is in tests/lab/tuning/test_three_levels.py."""
    executor = RayExecutor()
    assert executor.map(LOOP, *asked()) == LOOP(*asked())
    executor.close()
    assert ray.is_initialized()  # a cluster that was there before is left alone


@pytest.mark.slow
def test_a_mistake_of_the_user_on_a_cluster_is_the_same_one_line(ray_cluster):
    def mistaken(proposal, items):
        raise UserError("batch_size 0: it must be 1 or more")

    with pytest.raises(UserError, match=r"^batch_size 0: it must be 1 or more$"):
        RayExecutor().map(mistaken, *asked())


def test_a_cluster_of_ours_answers_nobody_without_its_token(ray_cluster):
    """On each of the ports that it listens on. No method takes what is sent, but all that know
    the token get an answer.
    """

    def port_of_worker():
        import psutil  # Ray's own

        return next(
            each.laddr.port
            for each in psutil.Process().net_connections()
            if each.status == psutil.CONN_LISTEN
        )

    (node,) = ray.nodes()
    host, _, port = ray.get_runtime_context().gcs_address.rpartition(":")
    asked = {
        int(port): "JobInfoGcsService/GetAllJobInfo",
        node["NodeManagerPort"]: "NodeManagerService/GetNodeStats",
        node["ObjectManagerPort"]: "ObjectManagerService/Pull",
        ray.get(ray.remote(port_of_worker).remote()): "CoreWorkerService/GetCoreWorkerStats",
    }
    known = ("authorization", f"Bearer {os.environ['RAY_AUTH_TOKEN']}")
    for port, method in asked.items():
        call = grpc.insecure_channel(f"{host}:{port}").unary_unary(f"/ray.rpc.{method}")
        for foreign in ((), [("authorization", f"Bearer {'0' * 64}")]):
            with pytest.raises(grpc.RpcError, match="UNAUTHENTICATED"):
                call(b"", metadata=foreign, timeout=10)
        call(b"", metadata=[known], timeout=10)


LOCAL = """
import os, sys
from lightning_rl.evolution.cluster import join_cluster, leave_cluster
tokens = []
for _ in range(2):
    assert join_cluster(None)
    tokens.append(os.environ["RAY_AUTH_TOKEN"])
    leave_cluster()
    assert not {name for name in os.environ if name.startswith("RAY_AUTH_")}
assert tokens[0] != tokens[1]
assert min(map(len, tokens)) == 64
"""


@pytest.mark.slow
def test_each_cluster_has_a_token_of_its_own_and_nothing_stays_in_the_home(tmp_path):
    env = {name: value for name, value in os.environ.items() if not name.startswith("RAY_")} | {
        "HOME": str(tmp_path)
    }
    subprocess.run([sys.executable, "-c", LOCAL], env=env, check=True, cwd=ROOT)
    assert not (tmp_path / ".ray").exists()


@pytest.mark.slow
def test_a_killed_node_costs_nothing(tmp_path):
    """Two nodes on one machine; one of them is killed while it evaluates."""
    import ray
    from ray.cluster_utils import Cluster

    ray.shutdown()  # a process that other tests have joined a cluster in would stay with that one

    def slow(proposal, items):
        (tmp_path / f"{ray.get_runtime_context().get_node_id()}-{time.time_ns()}").touch()
        time.sleep(2)
        return [
            (item.member, item.sign, row.sum().item())
            for item, row in zip(items, proposal.rows(items), strict=True)
        ]

    expected = [
        (i.member, i.sign, row.sum().item())
        for i, row in zip(asked()[1], asked()[0].rows(asked()[1]), strict=True)
    ]
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0})
    try:
        cluster.add_node(num_cpus=1)
        doomed = cluster.add_node(num_cpus=1)
        executor = RayExecutor(cluster.address)
        killed = []

        def kill():
            deadline = time.monotonic() + 60
            while time.monotonic() < deadline:
                if any(path.name.startswith(doomed.node_id) for path in tmp_path.iterdir()):
                    cluster.remove_node(doomed, allow_graceful=False)
                    killed.append(True)
                    return
                time.sleep(0.05)

        thread = threading.Thread(target=kill)
        thread.start()
        assert executor.map(slow, *asked()) == expected
        thread.join()
        assert killed
        executor.close()
    finally:
        cluster.shutdown()


def test_the_cluster_that_the_environment_names_is_joined_as_ray_itself_would(monkeypatch):
    monkeypatch.setenv("RAY_ADDRESS", "127.0.0.1:1")
    with pytest.raises(
        UserError,
        match=r"'127.0.0.1:1': no Ray cluster answers there .* leave the flag and RAY_ADDRESS out",
    ):
        RayExecutor()


def test_a_local_cluster_that_does_not_start_is_one_line(monkeypatch):
    def late(**_):
        raise Exception("The current node timed out during startup.\nMore.")  # as Ray does

    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    monkeypatch.setattr(ray, "init", late)
    with pytest.raises(
        UserError,
        match=r"^no local Ray cluster has started \(The current node timed out .*startup\.\); try",
    ):
        join_cluster(None)


@pytest.mark.parametrize("address", ["127.0.0.1:1", "ray://127.0.0.1:1", "nonsense"])
def test_an_unreachable_cluster_is_told_at_once(address):
    with pytest.raises(UserError, match=f"--ray_address '{address}': no Ray cluster answers there"):
        RayExecutor(address)
