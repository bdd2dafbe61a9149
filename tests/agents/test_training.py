import functools
import re

import pytest
import torch
from helpers.members import HORIZON, Match, Task, config, ddqn_of, epsilon, table_of, train, varied

from lightning_rl.agents.judged_training import JudgedTraining, mean_test_return
from lightning_rl.agents.tabular import QLearning
from lightning_rl.agents.testing import evaluate_agents
from lightning_rl.agents.training import MemberTraining, solved
from lightning_rl.agents.variation import Variation
from lightning_rl.envs.batch import FuncBatch
from lightning_rl.envs.grids import GRID_WORLDS
from lightning_rl.nets.embedding import embed


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


def test_q_learning_on_the_cliff_meets_minus_20_within_the_reference_steps():
    """Learning rate 1, gamma 0.8, epsilon 0.01; the mean of the last ten greedy tests:
    1,400-1,550 steps, optimum -12.
    """
    env, seeds = GRID_WORLDS["cliff"](), list(range(10))

    def make(seeds):
        return FuncBatch(env, 50, seeds)

    agent = table_of(48, 4, seeds, 0.8, 1.0, 0.01, 0.01, 0.0)
    rule = functools.partial(solved, window=10, threshold=-20.0)
    training = JudgedTraining(
        agent, make(seeds), 100, 0.8, 0, rule, True, score=mean_test_return(make, 1)
    )
    training.run()
    assert training.results.stopped.all()
    assert training.results.env_steps.min() >= 1400
    assert training.results.env_steps.max() <= 1550
    returns, lengths = evaluate_agents(agent, make(seeds), 1)
    assert returns.tolist() == [[-12.0]] * 10
    assert lengths.tolist() == [[13]] * 10


def test_members_end_by_their_own_returns():
    _, training = train(
        "ql", [1, 2, 3], episodes=60, stop=functools.partial(solved, window=3, threshold=9.0)
    )
    training.run()
    r = training.results
    assert r.stopped.all()
    assert len(r.episodes.unique()) > 1
    for n, count in enumerate(r.episodes.tolist()):
        assert r.returns[n, count - 3 : count].mean() >= 9
        assert r.returns[n, count - 4 : count - 1].mean() < 9
        assert r.env_steps[n] == count * HORIZON == r.lengths[n].sum()


def test_time_limits_are_stored_as_told():
    class Spy(QLearning):
        def learn(self, transition, over, step, active):
            seen.append(transition.discount.item())

    for faithful, last in ((False, 0.5), (True, 0.0)):
        seen = []
        settings = {"gamma": 0.5, "learning_rate": 0.1, **epsilon(0.1, 0.1, 0.1)}
        agent = Spy(config("QL", **settings), Task(3, 3), [0])
        MemberTraining(
            agent, FuncBatch(Match(), HORIZON, [0]), 1, 0.5, limit_terminates=faithful
        ).run()
        assert seen == [0.5] * 9 + [last]


def dqn(variation, seeds):
    return ddqn_of(3, 3, seeds, activation="tanh", replay_size=100, variation=variation)


def test_varied_members_equal_the_small_agents_alone():
    """Own width, batch size and learning rate. Tolerance: a padded matrix product adds up in
    another order.
    """
    seeds = [7, 8, 9]
    variation = Variation((1e-3, 1e-2, 3e-3), (8, 20, 32), (5, 16, 9), (2, 2, 2))
    together = dqn(variation, seeds)
    _, training = train("ddqn", seeds, agent=together)
    training.run()
    for n, seed in enumerate(seeds):
        rate, batch, width, depth = (
            x[n]
            for x in (
                variation.learning_rates,
                variation.batch_sizes,
                variation.widths,
                variation.depths,
            )
        )
        alone = dqn(Variation((rate,), (batch,), (width,), (depth,)), [seed])
        assert alone.net.hidden == (width, width)
        _, single = train("ddqn", [seed], agent=alone)
        single.run()
        expected = embed(together.net, alone.net, alone.params)
        torch.testing.assert_close(together.params.data[n : n + 1], expected, rtol=1e-3, atol=1e-5)
        assert torch.equal(training.results.returns[n], single.results.returns[0])


def test_members_of_several_depths_are_no_stack():
    with pytest.raises(ValueError, match=r"need one depth, got \(1, 2\)"):
        dqn(Variation((1e-3, 1e-2), (8, 8), (5, 5), (1, 2)), [1, 2])


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
