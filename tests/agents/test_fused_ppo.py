"""Compiled updates of PPO against those in torch."""

import pytest
import torch
from helpers.members import assert_same, ppo_of, stops_at_three, train

pytest.importorskip("numba")

from lightning_rl.agents.training import MemberTraining
from lightning_rl.agents.variation import Variation
from lightning_rl.envs.batch import FuncBatch
from lightning_rl.envs.cartpole import CartPole
from lightning_rl.envs.classic import Pendulum

SEEDS = [3, 4, 5]
VARIED = Variation((0.02, 0.01, 0.005), (1, 1, 1), (8, 4, 8), (1,) * 3)
RETURNS = {"standardise": "returns", "batch_size": None, "max_grad_norm": None}
CASES = {
    "discrete": (False, {"entropy_coef": 0.01, "hidden": [9, 7]}),
    "continuous": (True, {"entropy_coef": 0.01, "hidden": [9, 7], "activation": "leakyrelu"}),
    "returns": (False, {**RETURNS, "activation": "relu"}),
    "returns, continuous": (True, {**RETURNS, "entropy_coef": 0.01}),
    "no hidden layer": (False, {"hidden": [], "batch_size": 16}),
    "varied": (True, {"hidden": [8], "variation": VARIED}),
}


def agent_with_rollout(case, kernels, scale):
    """Members with moments and a roll-out with observations and rewards of this size."""
    continuous, settings = CASES[case]
    agent = ppo_of(3, 2, SEEDS, continuous, epochs=2, kernels=kernels, **settings)
    draw = torch.Generator().manual_seed(0)
    for name in ("obs", "next_obs", "reward"):
        getattr(agent, name).normal_(generator=draw).mul_(scale)
    agent.discount.bernoulli_(0.9, generator=draw).mul_(0.9)
    agent.over.bernoulli_(0.2, generator=draw)
    if continuous:
        agent.action.normal_(generator=draw)
    else:
        agent.action.random_(2, generator=draw)
    moments = agent.adam.moments
    moments["step"] += torch.tensor([3, 0, 70])
    moments["exp_avg"].normal_(generator=draw).mul_(0.1)
    moments["exp_avg_sq"].uniform_(0.1, 1, generator=draw)
    return agent


@pytest.mark.parametrize("scale", [1.0, 30.0])
@pytest.mark.parametrize("case", CASES)
def test_the_updates_on_a_roll_out_are_those_of_torch(case, scale):
    """Members have taken unequal numbers of steps, and one does not learn."""
    rows = []
    for kernels in ("torch", "numba"):
        agent = agent_with_rollout(case, kernels, scale)
        assert agent.compiles == (kernels == "numba")
        agent.learn_from_rollout(torch.tensor([True, False, True]), 1)
        rows.append(agent.rows())
    for name, expected in rows[0].items():
        size = float(expected.double().abs().max())
        torch.testing.assert_close(rows[1][name], expected, rtol=1e-5, atol=2e-6 * size)


@pytest.mark.parametrize("case", CASES)
def test_a_whole_training_is_that_of_torch_up_to_rounding(case):
    """Equal runs have equal bits."""
    continuous, settings = CASES[case]
    name = "ppo-continuous" if continuous else "ppo"
    rows = []
    for kernels in ("torch", "numba", "numba"):
        agent = ppo_of(3, 1 if continuous else 3, SEEDS, continuous, kernels=kernels, **settings)
        start = agent.params.data.clone()
        train(name, SEEDS, episodes=20, agent=agent)[1].run()
        rows.append(agent.rows())
    expected, first, again = rows
    assert (expected["params"] - start).abs().amax(1).min() > 1e-2
    for key, value in expected.items():
        torch.testing.assert_close(first[key], value, rtol=1e-3, atol=1e-4)
        assert torch.equal(first[key], again[key]), key


def test_a_diverged_member_stays_so_and_alone():
    agent = agent_with_rollout("discrete", "numba", 1.0)
    agent.reward[1, 5] = torch.nan
    agent.learn_from_rollout(None, 0)
    assert agent.params.isfinite().all(1).tolist() == [True, False, True]


@pytest.mark.parametrize("settings", [{"activation": "prelu"}, {"curiosity": "icm"}])
def test_what_has_no_compiled_form_is_learned_by_torch(settings):
    assert not ppo_of(3, 3, SEEDS, kernels="numba", **settings).compiles


def played(game, kernels, steps, seeds=SEEDS, stop=None):
    """A training in an environment with a compiled twin, whose episodes have 30 steps at most."""
    continuous = game is Pendulum
    env = game()
    agent = ppo_of(env.obs_size, env.action_size, seeds, continuous, kernels=kernels)
    training = MemberTraining(agent, FuncBatch(env, 30, seeds), 40, 0.9, stop=stop)
    training.run(steps)
    return training


@pytest.mark.parametrize("game", [CartPole, Pendulum])
def test_compiled_play_is_that_of_torch_up_to_rounding(game):
    """Two updates and some steps more; a member leaves meanwhile."""
    expected, compiled = (
        played(game, kernels, 150, stop=stops_at_three) for kernels in ("torch", "numba")
    )
    assert_same(vars(compiled.results), vars(expected.results), rtol=1e-4, atol=1e-4)
    assert_same(compiled.agent.rows(), expected.agent.rows(), rtol=1e-3, atol=1e-4)
    assert_same(compiled.envs.snapshot(), expected.envs.snapshot(), rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("game", [CartPole, Pendulum])
def test_compiled_play_goes_on_bit_by_bit_from_a_snapshot(game):
    whole, half, other = (played(game, "numba", steps) for steps in (200, 77, 0))
    other.agent.load_rows(half.agent.rows())
    other.restore(half.snapshot())
    other.run(123)
    assert_same(vars(other.results), vars(whole.results), rtol=0, atol=0)
    assert_same(other.agent.rows(), whole.agent.rows(), rtol=0, atol=0)


def test_a_member_plays_compiled_as_it_does_alone():
    together, alone = (played(CartPole, "numba", 150, seeds) for seeds in (SEEDS, SEEDS[1:2]))
    assert torch.equal(together.agent.params[1], alone.agent.params[0])
