"""Compiled updates against those in torch."""

import sys

import pytest
import torch
from helpers.members import ddqn_of, train

from lightning_rl.agents.variation import Variation
from lightning_rl.core.errors import UserError

SEEDS = [3, 4, 5]
VARIED = Variation((0.05, 0.02, 0.05), (8, 5, 8), (8, 4, 8), (1,) * 3)


def trained(kernels, activation="tanh", hidden=(16,), variation=None, poisoned=(), **settings):
    """Members that start to learn one after the other."""
    agent = ddqn_of(
        3,
        3,
        SEEDS,
        kernels=kernels,
        activation=activation,
        hidden=list(hidden),
        variation=variation,
        **settings,
    )
    agent.params.data[list(poisoned)] = torch.nan
    train("ddqn", SEEDS, episodes=6, learning_starts=2, agent=agent)[1].run()
    return agent


@pytest.mark.parametrize(
    ("activation", "hidden", "variation"),
    [
        ("tanh", (16,), None),
        ("relu", (9, 7), None),
        ("leakyrelu", (), None),
        ("tanh", (8,), VARIED),
    ],
)
def test_compiled_updates_are_those_of_torch_up_to_rounding(activation, hidden, variation):
    pytest.importorskip("numba")
    agents = [
        trained(kernels, activation, hidden, variation) for kernels in ("torch", "numba", "numba")
    ]
    start = ddqn_of(
        3, 3, SEEDS, activation=activation, hidden=list(hidden), variation=variation
    ).params
    expected, first, again = (agent.rows() for agent in agents)
    assert (expected["params"] - start).abs().amax(1).min() > 1e-2
    for name, value in expected.items():
        torch.testing.assert_close(first[name], value, rtol=1e-4, atol=1e-5)
        assert torch.equal(first[name], again[name]), name


def test_batches_that_do_not_fill_vector_instructions_are_filled_up_with_nothing():
    pytest.importorskip("numba")
    expected, compiled = (trained(kernels, batch_size=13).rows() for kernels in ("torch", "numba"))
    for name, value in expected.items():
        torch.testing.assert_close(compiled[name], value, rtol=1e-4, atol=1e-5)


def test_a_diverged_member_stays_so_and_alone():
    pytest.importorskip("numba")
    agent = trained("numba", poisoned=[1])
    assert agent.params.isfinite().all(1).tolist() == [True, False, True]


def test_what_has_no_compiled_form_is_refused(monkeypatch):
    for settings in ({"activation": "prelu"}, {"curiosity": "icm"}):
        with pytest.raises(
            UserError,
            match="kernels numba: needs curiosity none and activation relu, leakyrelu, tanh",
        ):
            ddqn_of(3, 3, SEEDS, kernels="numba", **settings)
    with pytest.raises(UserError, match="kernels"):
        ddqn_of(3, 3, SEEDS, "DuelingDDQN", kernels="numba", feature_size=4)
    monkeypatch.setitem(sys.modules, "numba", None)
    monkeypatch.delitem(sys.modules, "lightning_rl.agents.kernels", raising=False)
    with pytest.raises(
        UserError, match=r"^kernels 'numba' is not installed .*; pip install 'lightning_rl\[fast\]'"
    ):
        trained("numba")
