import dataclasses
import re

import pytest
import torch
from helpers.members import HORIZON, Match, Task, config, ddqn_of, epsilon, table_of, train, varied

from lightning_rl.agents.registry import AGENTS
from lightning_rl.agents.tabular import QLearning
from lightning_rl.agents.training import MemberTraining
from lightning_rl.envs.adapters import make_envs
from lightning_rl.envs.batch import FuncBatch
from lightning_rl.envs.grids import GRID_WORLDS
from lightning_rl.envs.spec import env_spec


def test_q_learning_by_hand_on_the_smallest_room():
    """alpha 0.5, gamma 0.8, no exploration: right, left (ties go right), .. worked out below."""
    agent = table_of(4, 4, [0], 0.8, 0.5, 0.0, 0.0, 0.0)
    training = MemberTraining(agent, FuncBatch(GRID_WORLDS["emptyroom22"](), 10, [0]), 1, 0.8)
    training.run(4)
    # cell 0: right to 1 (q -0.005); cell 1: right, a wall (-0.005), left to 0 (-0.005 + 0: its best
    # is 0); cell 0: left, a wall
    table = agent.table[0]
    assert table[0].tolist() == pytest.approx([-0.005, -0.005, 0, 0])
    assert table[1].tolist() == pytest.approx([-0.005, -0.005, 0, 0])
    training.run(2)  # cell 0: down to 2; cell 2: right to the goal
    assert table[0, 2].item() == pytest.approx(-0.005)
    assert table[2, 0].item() == pytest.approx(0.5)
    assert training.done
    assert training.results.returns.tolist() == [[pytest.approx(1 - 5 * 0.01)]]
    assert training.results.env_steps.tolist() == [6]


def test_time_limits_are_stored_as_told():
    class Spy(QLearning):
        def learn(self, transition, over, step, active):
            seen.append(transition.discount.item())

    for cap_ends, last in ((False, 0.5), (True, 0.0)):
        seen = []
        settings = {"gamma": 0.5, "learning_rate": 0.1, **epsilon(0.1, 0.1, 0.1)}
        agent = Spy(config("QL", **settings), Task(3, 3), [0])
        envs = FuncBatch(Match(), HORIZON, [0])
        envs.cap_ends = cap_ends
        MemberTraining(agent, envs, 1, 0.5).run()
        assert seen == [0.5] * 9 + [last]


def dqn(variation, seeds):
    return ddqn_of(3, 3, seeds, activation="tanh", replay_size=100, variation=variation)


def test_variation_stays_in_its_ranges_and_covers_them():
    v = varied(2, range(2000))
    for values, low, high in (
        (v.learning_rates, 1e-3 / 3, 3e-3),
        (v.batch_sizes, 42, 384),
        (v.widths, 42, 384),
    ):
        assert low <= min(values) <= low * 1.03
        assert high * 0.97 <= max(values) <= high * 1.0000001
        middle = torch.tensor(values, dtype=torch.float64).log().mean().exp().item()
        assert middle == pytest.approx((low * high) ** 0.5, rel=0.04)  # log-uniform
    assert set(v.depths) == {1, 2, 3}
    assert set(varied(1, range(50)).depths) == {1, 2}
    assert varied(2, [5]).widths == varied(2, [4, 5]).widths[1:]


@pytest.mark.parametrize(
    ("part", "name", "value", "reason"),
    [
        ("results", "episodes", [1, 2], "episodes [1, 1] under way, expected [1, 2]"),
        ("loop", "_episode", [3, 3], "episodes [3, 3] under way"),
        ("loop", "_return", [0.0], "_return: expected one for each of 2 members"),
        ("results", "lengths", [[1], [2]], "results.lengths: int64 [2, 1], expected int64 [2, 3]"),
    ],
)
def test_a_snapshot_whose_counts_contradict_each_other_is_refused(part, name, value, reason):
    _, training = train("ddqn", [0, 1], episodes=3)
    training.run(13)
    state = training.snapshot()
    state[part][name] = torch.tensor(value)
    with pytest.raises(ValueError, match=re.escape(reason)):
        train("ddqn", [0, 1], episodes=3)[1].restore(state)


@pytest.mark.parametrize("kernels", ["torch", "numba"])
def test_who_has_spent_its_steps_leaves_the_others_as_they_were(kernels):
    """Members that repeat actions spend them at different decisions; some do not learn yet."""
    if kernels == "numba":
        pytest.importorskip("numba")
    spec = dataclasses.replace(env_spec("cartpole"), repeat=4)
    cfg = config("DDQN", kernels=kernels, hidden=[8], batch_size=8, train_episodes=100)

    def updates(seeds):
        agent = AGENTS["DDQN"].agent(cfg, spec, seeds, None)
        training = MemberTraining(agent, make_envs(spec, seeds), 100, 0.9, learning_starts=20)
        training.train_until(300, 4)
        return agent.num_updates.tolist()

    alone = [updates([seed])[0] for seed in (1, 2, 3, 4)]
    assert len(set(alone)) > 2
    assert updates([1, 2, 3, 4]) == alone
