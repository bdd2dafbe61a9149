"""Compiled updates of value networks against those in torch."""

import pytest
import torch
from helpers.members import Task, ddqn_of, train

pytest.importorskip("numba")

from lightning_rl.agents.base import Transition
from lightning_rl.agents.dqn import DDQN
from lightning_rl.agents.replay import MemberReplay
from lightning_rl.agents.variation import Variation

SEEDS = [3, 4, 5]
VARIED = Variation((0.05, 0.02, 0.01), (13, 5, 8), (8, 4, 8), (1,) * 3)
CASES = {
    "plain": ("DDQN", {"activation": "tanh"}),
    "two layers": ("DDQN", {"hidden": [9, 7], "batch_size": 13}),
    "DQN": ("DDQN", {"double": False, "loss": "huber", "max_grad_norm": 0.3}),
    "no hidden layer": ("DDQN", {"hidden": []}),
    "varied": ("DDQN", {"hidden": [8], "variation": VARIED}),
    "dueling": ("DuelingDDQN", {"feature_size": 4, "activation": "leakyrelu"}),
    "one action": ("DuelingDDQN", {"feature_size": 4}),  # both heads are of one shape
    "dueling, varied": ("DuelingDDQN", {"feature_size": 4, "hidden": [8], "variation": VARIED}),
}


def agent_with_memory(case, kernels, scale=1.0, discount=0.9):
    """Members with moments, which remember 50 transitions with observations of this size."""
    name, settings = CASES[case]
    actions = 1 if case == "one action" else 4
    agent = ddqn_of(3, actions, SEEDS, name, kernels=kernels, **settings)
    draw = torch.Generator().manual_seed(0)
    for _ in range(50):
        obs, next_obs = torch.randn(2, 3, 3, generator=draw) * scale
        action = torch.randint(actions, (3,), generator=draw)
        reward, share = torch.randn(2, 3, generator=draw)
        follows = discount * (share > -1)
        agent.replay.store(Transition(obs, action, reward, follows, next_obs), share <= -1)
    moments = agent.adam.moments
    moments["step"] += torch.tensor([3, 0, 70])
    moments["exp_avg"].normal_(generator=draw)
    moments["exp_avg_sq"].uniform_(0.1, 1, generator=draw)
    agent.target.data.normal_(generator=draw)
    return agent


@pytest.mark.parametrize(("scale", "discount"), [(1.0, 0.9), (1e3, 0.9), (1.0, 0.0)])
@pytest.mark.parametrize("case", CASES)
def test_an_update_is_that_of_torch(case, scale, discount):
    """Members have taken unequal numbers of steps, and one does not learn."""
    rows = []
    for kernels in ("torch", "numba"):
        agent = agent_with_memory(case, kernels, scale, discount)
        assert agent.compiles == (kernels == "numba")
        agent.learn_from_replay(agent.replay_noise.at(0), torch.tensor([True, False, True]), 0)
        rows.append(agent.rows())
    assert rows[1]["optimizers.0.step"].tolist() == [4, 0, 71]
    for name, expected in rows[0].items():
        size = float(expected.abs().max())
        torch.testing.assert_close(rows[1][name], expected, rtol=2e-6, atol=1e-6 * size)


@pytest.mark.parametrize("case", CASES)
def test_a_whole_training_is_that_of_torch_up_to_rounding(case):
    """Members that start to learn one after the other; equal runs have equal bits."""
    name, settings = CASES[case]
    rows = []
    for kernels in ("torch", "numba", "numba"):
        agent = ddqn_of(3, 3, SEEDS, name, kernels=kernels, **settings)
        start = agent.params.data.clone()
        train("ddqn", SEEDS, episodes=6, learning_starts=2, agent=agent)[1].run()
        rows.append(agent.rows())
    expected, first, again = rows
    assert (expected["params"] - start).abs().amax(1).min() > 1e-2
    for key, value in expected.items():
        torch.testing.assert_close(first[key], value, rtol=1e-4, atol=1e-5)
        assert torch.equal(first[key], again[key]), key


def test_a_diverged_member_stays_so_and_alone():
    agent = agent_with_memory("plain", "numba")
    agent.params.data[1] = torch.nan
    for step in range(3):
        agent.learn_from_replay(agent.replay_noise.at(step), None, step)
    assert agent.params.isfinite().all(1).tolist() == [True, False, True]


@pytest.mark.parametrize(
    "settings", [{"activation": "prelu"}, {"activation": "elu"}, {"curiosity": "icm"}]
)
def test_what_has_no_compiled_form_is_learned_by_torch(settings):
    assert not ddqn_of(3, 3, SEEDS, kernels="numba", **settings).compiles


class OwnActions(DDQN):
    def act(self, obs, episode, step):
        return self.greedy_values(obs.unsqueeze(1)).squeeze(1).argmin(-1)


class OwnGradient(DDQN):
    def _gradient(self, rows, batch, into):
        return super()._gradient(rows, batch, into)


class OwnBatches(MemberReplay):
    def batch(self, noise):
        return super().batch(noise)


def test_an_agent_of_a_user_is_compiled_where_it_only_acts_in_an_own_way():
    agent = ddqn_of(3, 3, SEEDS, kernels="numba")
    own = [cls(agent.cfg, Task(3, 3), SEEDS) for cls in (OwnActions, OwnGradient)]
    assert [each.compiles for each in own] == [True, False]
    agent.replay = OwnBatches(3, 50, 3, 0, 3)
    assert not agent.compiles
