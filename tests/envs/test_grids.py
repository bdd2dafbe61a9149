import pytest
import torch

from lightning_rl.envs.grids import GRID_WORLDS, Bandit, GridWorld

NO_NOISE = torch.zeros(())
RIGHT, LEFT, DOWN, UP = range(4)
ROOMS = {
    "emptyroom22": ([RIGHT, DOWN], 1 - 0.01),
    "emptyroom23": ([RIGHT, DOWN, RIGHT], 1 - 2 * 0.01),
    "emptyroom33": ([DOWN, DOWN, RIGHT, RIGHT], 1 - 3 * 0.01),
    "wallroom": ([DOWN] * 2 + [RIGHT] * 4 + [DOWN] * 2, 1 - 7 * 0.01),
    "holeroom": ([DOWN] * 2 + [RIGHT] * 4 + [DOWN] * 2, 1 - 7 * 0.01),
    "holeroomlarge": ([DOWN] * 2 + [RIGHT] * 6 + [DOWN] * 2, 1 - 9 * 0.01),
    "holeroomlargeshifted": (
        [DOWN] * 4 + [RIGHT] * 3 + [UP] * 4 + [RIGHT] * 3 + [DOWN] * 4,
        1 - 17 * 0.01,
    ),
    "cliff": ([UP] + [RIGHT] * 11 + [DOWN], -12.0),
}


def play(env, actions):
    """(return, cells visited, terminated) of a sequence of actions; fails if the episode ends
    before the last.
    """
    state, total, cells = env.reset(torch.zeros(1, 0)), 0.0, []
    for i, action in enumerate(actions):
        step = env.step(state, torch.tensor([action]), NO_NOISE)
        state, total = step.state, total + step.reward.item()
        cells.append(state.item())
        assert step.obs.argmax().item() == state.item()
        assert step.obs.sum() == 1
        assert not step.terminated.item() or i == len(actions) - 1
    return total, cells, step.terminated.item()


@pytest.mark.parametrize("name", GRID_WORLDS)
def test_the_shortest_path_gives_the_best_return(name):
    path, best = ROOMS[name]
    total, cells, terminated = play(GRID_WORLDS[name](), path)
    assert terminated
    assert total == pytest.approx(best, abs=1e-5)
    assert len(set(cells)) == len(cells)


@pytest.mark.parametrize("name", GRID_WORLDS)
def test_no_path_is_shorter(name):
    """Breadth-first search over the tables."""
    path, _ = ROOMS[name]
    env = GRID_WORLDS[name]()
    reached, steps = {env.start}, 0
    goal = env.reset(torch.zeros(1, 0)).new_tensor([[play(env, path)[1][-1]]])
    while goal.item() not in reached:
        state = torch.tensor(sorted(reached)).repeat_interleave(4)[:, None]
        step = env.step(state, torch.arange(4).repeat(len(reached)), NO_NOISE)
        alive = ~step.terminated | (step.state[:, 0] == goal.item())
        reached |= set(step.state[alive, 0].tolist())
        steps += 1
    assert steps == len(path)


def test_cliff_by_hand():
    env = GRID_WORLDS["cliff"]()
    assert env.obs_size == 48
    assert play(env, [RIGHT]) == (-100.0, [37], True)
    assert play(env, [DOWN]) == (-1.0, [36], False)  # off the board
    assert play(env, [LEFT, UP, UP, UP, UP]) == (-5.0, [36, 24, 12, 0, 0], False)


def test_moves_off_any_edge_stay():
    """The six cells of two rows of three, by hand; row by row right, left, down, up."""
    env = GridWorld(("S . .", ". . ."), cost=0.0, goal=0.0, hole=0.0)
    step = env.step(
        torch.arange(6).repeat_interleave(4)[:, None], torch.arange(4).repeat(6), NO_NOISE
    )
    assert step.state.view(6, 4).tolist() == [
        [1, 0, 3, 0],
        [2, 0, 4, 1],
        [2, 1, 5, 2],
        [4, 3, 3, 0],
        [5, 3, 4, 1],
        [5, 4, 5, 2],
    ]


def test_walls_stop_and_holes_end():
    assert play(GRID_WORLDS["wallroom"](), [RIGHT, RIGHT]) == (pytest.approx(-0.02), [1, 1], False)
    assert play(GRID_WORLDS["holeroom"](), [RIGHT, RIGHT]) == (pytest.approx(-1.01), [1, 2], True)


def test_a_bad_drawing_is_refused():
    for rows in (("S .", "."), (". .",), ("S S",)):
        with pytest.raises(ValueError, match="a rectangle with one start"):
            GridWorld(rows, 0, 0, 0)


def test_bandit_arms_have_their_means_and_unit_variance():
    env = Bandit(10)
    assert sorted(env.means.tolist()) == pytest.approx([k / 10 for k in range(10)])
    noise = (torch.arange(20_000, dtype=torch.float64) / 20_000).float()
    for arm in (0, 7):
        step = env.step(torch.ones(20_000, 1), torch.full((20_000,), arm), noise[:, None])
        assert step.reward.mean().item() == pytest.approx(env.means[arm].item(), abs=2e-3)
        assert step.reward.std().item() == pytest.approx(1.0, abs=2e-3)
        assert not step.terminated.any()
