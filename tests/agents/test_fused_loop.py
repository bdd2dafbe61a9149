"""Trainings whose steps are one compiled loop against the same step by step in torch."""

import copy

import pytest
import torch
from helpers.members import ddqn_of

pytest.importorskip("numba")

from lightning_rl.agents.training import MemberTraining, solved
from lightning_rl.envs.batch import FuncBatch
from lightning_rl.envs.cartpole import CartPole
from lightning_rl.envs.classic import Acrobot
from lightning_rl.envs.synthetic import SyntheticEnv, SyntheticNet

SEEDS = [3, 4, 5]


def synthetic(horizon):
    net = SyntheticNet(4, 2, (8,), "prelu")
    params = net.init([torch.Generator().manual_seed(seed) for seed in SEEDS])
    envs = FuncBatch(SyntheticEnv(net, params, CartPole()), horizon, SEEDS)
    envs.cap_ends = True
    return envs


ENVS = {
    "cartpole": lambda: FuncBatch(CartPole(), 15, SEEDS),
    "acrobot": lambda: FuncBatch(Acrobot(), 40, SEEDS),
    "synthetic": lambda: synthetic(9),
}


INTERVALS = {"cartpole": 1, "acrobot": 3, "synthetic": 1}


def training(kernels, game, episodes=12):
    """Members that learn from their third episode on, some of which stop early."""
    envs = ENVS[game]()
    keys = {"kernels": kernels, "replay_size": 60, "train_interval": INTERVALS[game]}
    agent = ddqn_of(envs.env.obs_size, envs.env.action_size, SEEDS, **keys)

    def stop(returns, count):
        return solved(returns, count, 5, 13.5)

    return MemberTraining(agent, envs, episodes, 0.9, 2, stop)


def everything(training):
    results = {f"results.{name}": value for name, value in vars(training.results).items()}
    return {**training.agent.rows(), **results}


@pytest.mark.parametrize("game", ENVS)
def test_a_compiled_training_is_that_of_torch_up_to_rounding(game, monkeypatch):
    expected, compiled = training("torch", game), training("numba", game)
    expected.run()
    monkeypatch.setattr(compiled, "_step", None)  # no single steps
    compiled.run()
    assert compiled.step == expected.step
    found = everything(compiled)
    for name, value in everything(expected).items():
        torch.testing.assert_close(found[name], value, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("game", ENVS)
def test_pieces_and_snapshots_change_nothing(game):
    whole, pieces = training("numba", game), training("numba", game)
    whole.run()
    for _ in range(7):
        pieces.run(9)
    rest = training("numba", game)
    rest.agent.load_rows({name: value.clone() for name, value in pieces.agent.rows().items()})
    rest.restore(copy.deepcopy(pieces.snapshot()))
    pieces.run()
    rest.run()
    for other in (pieces, rest):
        found = everything(other)
        for name, value in everything(whole).items():
            assert torch.equal(found[name], value), name
