"""ProcMaze, ButtonGrid and PanFlute: transitions worked by hand, properties, and returns of
known policies.
"""

import pytest
import torch

from lightning_rl.core.errors import UserError
from lightning_rl.envs.buttongrid import ButtonGrid
from lightning_rl.envs.panflute import PanFlute
from lightning_rl.envs.procmaze import ProcMaze
from lightning_rl.envs.spec import env_spec

STAY, UP, LEFT, DOWN, RIGHT = range(5)
NEVER, ALWAYS = 0.999, 0.0  # noise of events


def act(action):
    return torch.tensor(action)


def fresh(env, count, seed=0):
    noise = torch.rand(count, env.reset_noise_size, generator=torch.Generator().manual_seed(seed))
    return env.reset(noise)


def neighbours(size, cell):
    row, column = divmod(cell, size)
    around = [(row - 1, column), (row, column - 1), (row + 1, column), (row, column + 1)]
    return [r * size + c for r, c in around if 0 <= r < size and 0 <= c < size]


def distances(size, is_open, goal):
    """Moves to the goal from each open cell that it can be reached from."""
    found, frontier = {goal: 0}, [goal]
    for cell in frontier:
        new = [c for c in neighbours(size, cell) if is_open[c] and c not in found]
        found.update(dict.fromkeys(new, found[cell] + 1))
        frontier.extend(new)
    return found


# --- ProcMaze ---

# . G     cells 0 1
# P #           2 3
CORNER = torch.tensor([2, 1, 1, 1, 1, 0])


def test_maze_observation_has_four_bits_for_each_cell():
    bits = ProcMaze(2).observe(CORNER).reshape(4, 4)
    assert bits.tolist() == [[0, 0, 0, 1], [0, 1, 0, 1], [1, 0, 0, 1], [0, 0, 1, 0]]


@pytest.mark.parametrize(("action", "cell"), [(STAY, 2), (UP, 0), (LEFT, 2), (DOWN, 2), (RIGHT, 2)])
def test_maze_moves(action, cell):
    """Left and down are off the grid, right is a wall."""
    step = ProcMaze(2).step(CORNER, act(action), torch.tensor([NEVER]))
    assert step.state.tolist() == [cell, *CORNER.tolist()[1:]]
    assert step.reward.item() == -1
    assert not step.terminated


def test_maze_terminates_on_the_step_after_the_goal_is_reached():
    env, noise = ProcMaze(2), torch.tensor([NEVER])
    before = env.step(CORNER, act(UP), noise)
    arrived = env.step(before.state, act(RIGHT), noise)
    assert arrived.state[0] == 1
    assert not arrived.terminated
    after = env.step(arrived.state, act(STAY), noise)
    assert after.terminated
    assert after.reward.item() == -1


def test_maze_teleport_comes_after_the_move_and_does_not_terminate():
    step = ProcMaze(2).step(CORNER, act(UP), torch.tensor([ALWAYS]))
    assert step.state[0] == 1
    assert not step.terminated


@pytest.mark.parametrize(
    ("size", "probability"),
    [
        (2, 0.03333),
        (3, 0.01429),
        (4, 0.01),
        (5, 0.00588),
        (6, 0.00476),
        (8, 0.00278),
        (10, 0.00182),
    ],
)
def test_maze_teleport_probability(size, probability):
    assert ProcMaze(size).teleport == pytest.approx(probability, abs=5e-6)


@pytest.mark.parametrize(
    ("size", "open_cells", "low", "high"),
    [(2, 3, 3, 3), (3, 6.69, 5, 7), (4, 11.43, 7, 12), (5, 17.14, 9, 19)],
)
def test_mazes_are_trees_of_the_known_sizes(size, open_cells, low, high):
    state = fresh(ProcMaze(size), 1500)
    counts = state[:, 2:].sum(-1)
    assert counts.float().mean().item() == pytest.approx(open_cells, abs=0.12)
    assert low <= int(counts.min())
    assert int(counts.max()) <= high
    for row in state[:300].tolist():
        position, goal, *is_open = row
        assert is_open[position]
        assert is_open[goal]
        assert len(distances(size, is_open, goal)) == sum(is_open)  # connected, so solvable ...
        links = (
            sum(
                is_open[c]
                for cell in range(size**2)
                if is_open[cell]
                for c in neighbours(size, cell)
            )
            // 2
        )
        assert links == sum(is_open) - 1  # ... by one path


def test_start_on_the_goal_is_as_frequent_as_measured():
    state = fresh(ProcMaze(4), 4000)
    assert (state[:, 0] == state[:, 1]).float().mean().item() == pytest.approx(0.097, abs=0.015)


def play(env, policy, count, steps=100, seed=1):
    """Returns ``[count]`` of fresh episodes; ``policy(state, generator)`` gives the actions."""
    g = torch.Generator().manual_seed(seed)
    state, total, over = (
        fresh(env, count, seed),
        torch.zeros(count),
        torch.zeros(count, dtype=torch.bool),
    )
    for _ in range(steps):
        step = env.step(
            state, policy(state, g), torch.rand(count, env.step_noise_size, generator=g)
        )
        total += step.reward * ~over
        over |= step.terminated
        state = step.state
    return total


def uniform(env):
    return lambda state, g: torch.randint(env.action_size, state.shape[:-1], generator=g)


@pytest.mark.parametrize(
    ("env", "known", "error"),
    [
        (ProcMaze(2), -6.1, 0.6),
        (ProcMaze(3), -20.3, 1.2),
        (ProcMaze(4), -35.6, 1.8),
        (ButtonGrid(3), 2.1, 0.15),
        (ButtonGrid(4), 1.06, 0.1),
        (PanFlute(5), 4.05, 0.2),
        (PanFlute(8), 1.6, 0.15),
    ],
)
def test_random_policy_scores_what_was_measured(env, known, error):
    assert play(env, uniform(env), 1500).mean().item() == pytest.approx(known, abs=error)


# --- ButtonGrid ---

# P b .     cells 0 1 2, buttons at 1 (off), 5 (on), 7 (on)
# . . B           3 4 5
# . B .           6 7 8
LAYOUT = torch.tensor([0, 1, 5, 7, 0, 1, 1])


def quiet(env):
    return torch.full((env.step_noise_size,), NEVER)


def test_buttons_observation_has_three_bits_for_each_cell():
    bits = ButtonGrid(3).observe(LAYOUT).reshape(9, 3)
    assert bits.nonzero().tolist() == [[0, 0], [1, 2], [5, 1], [7, 1]]


@pytest.mark.parametrize(
    ("cell", "action", "after"),
    [
        (0, RIGHT, [1, 1, 5, 7, 1, 1, 1]),
        (0, UP, [0, 1, 5, 7, 0, 1, 1]),
        (1, UP, [1, 1, 5, 7, 0, 1, 1]),
        (1, STAY, [1, 1, 5, 7, 0, 1, 1]),
        (2, DOWN, [5, 1, 5, 7, 0, 0, 1]),
        (4, DOWN, [7, 1, 5, 7, 0, 1, 0]),
    ],
)
def test_buttons_toggle_only_where_one_moves_onto_them(cell, action, after):
    env = ButtonGrid(3)
    state = torch.cat([torch.tensor([cell]), LAYOUT[1:]])
    step = env.step(state, act(action), quiet(env))
    assert step.state.tolist() == after
    assert step.reward.item() == 0
    assert not step.terminated


def test_buttons_pay_on_the_next_step_and_the_layout_is_new():
    env = ButtonGrid(3)
    on = env.step(LAYOUT, act(RIGHT), quiet(env))
    assert on.reward.item() == 0
    noise = torch.tensor(
        [NEVER, 0.5, 0.0, 0.0, 0.0]
    )  # reset: the middle cell, and the first cells that are left
    paid = env.step(on.state, act(LEFT), noise)
    assert paid.reward.item() == 1
    assert not paid.terminated
    assert paid.state.tolist() == [4, 0, 1, 2, 0, 0, 0]
    assert torch.equal(paid.obs, env.observe(paid.state))


def test_buttons_event_switches_all_on():
    env = ButtonGrid(3)
    noise = torch.full((env.step_noise_size,), ALWAYS)
    step = env.step(LAYOUT, act(STAY), noise)
    assert step.state.tolist() == [0, 1, 5, 7, 1, 1, 1]
    assert step.reward.item() == 0
    assert env.event == pytest.approx(1 / 90)


def test_button_layouts_are_distinct_and_uniform():
    env = ButtonGrid(3)
    state = fresh(env, 9000)
    assert (state[:, 4:] == 0).all()
    for column in range(4):
        share = torch.bincount(state[:, column], minlength=9) / 9000
        assert share.sub(1 / 9).abs().max() < 0.015
    buttons = state[:, 1:4].sort(-1).values
    assert (buttons.diff(dim=-1) > 0).all()


# --- PanFlute ---


def test_notes_played_from_the_longest_pipe_on_arrive_together():
    env = PanFlute(5)
    state, noise = env.reset(torch.zeros(0)), torch.tensor([NEVER])
    rewards = []
    for action in (4, 3, 2, 1, 0, 2):
        step = env.step(state, act(action), noise)
        state = step.state
        rewards.append(step.reward.item())
    assert rewards == [0, 0, 0, 0, 0, 1]


def test_a_note_travels_to_the_end_of_its_pipe_and_leaves():
    env = PanFlute(3)  # bits: pipe 0 | pipe 1 | pipe 2
    state, noise = env.reset(torch.zeros(0)), torch.tensor([NEVER])
    seen = []
    for action in (2, 0, 1, 1):
        state = env.step(state, act(action), noise).state
        seen.append(state.int().tolist())
    assert seen == [[0, 0, 0, 1, 0, 0], [1, 0, 0, 0, 1, 0], [0, 1, 0, 0, 0, 1], [0, 1, 1, 0, 0, 0]]


def test_flute_event_sets_all_ends_after_the_shift():
    env = PanFlute(3)
    step = env.step(env.reset(torch.zeros(0)), act(2), torch.tensor([ALWAYS]))
    assert step.state.int().tolist() == [1, 0, 1, 1, 0, 1]
    assert step.reward.item() == 0
    assert env.step(step.state, act(2), torch.tensor([NEVER])).reward.item() == 1
    assert env.event == pytest.approx(1 / 9)


# --- all three ---

SIZES = [ProcMaze(2), ProcMaze(6), ButtonGrid(2, 1), ButtonGrid(4, 2), PanFlute(2), PanFlute(6)]


@pytest.mark.parametrize("env", SIZES, ids=lambda e: f"{type(e).__name__}{e.obs_size}")
def test_leading_dimensions_are_batches(env):
    """A batch of shape [2, 3] gives what its six elements give alone."""
    g = torch.Generator().manual_seed(0)
    reset, noise = (
        torch.rand(2, 3, env.reset_noise_size, generator=g),
        torch.rand(2, 3, env.step_noise_size, generator=g),
    )
    action = torch.randint(env.action_size, (2, 3), generator=g)
    state = env.reset(reset)
    together = env.step(state, action, noise)
    for i in range(2):
        for j in range(3):
            alone = env.step(env.reset(reset[i, j]), action[i, j], noise[i, j])
            for a, b in zip(together[:4], alone[:4], strict=True):
                assert torch.equal(a[i, j], b)
    assert together.obs.shape == (2, 3, env.obs_size)
    assert set(together.obs.unique().tolist()) <= {0.0, 1.0}


@pytest.mark.parametrize(
    ("gamename", "words"),
    [
        ("procmaze-1", "grid size 1 cannot hold a maze; the smallest is 2"),
        ("procmaze-0", "grid size 0 cannot hold a maze"),
        ("procmaze-big", "sizes are whole numbers, grid_size, e.g. procmaze-4"),
        ("procmaze-3-3", "sizes are whole numbers"),
        ("buttongrid-2-4", "fewer buttons than cells"),
        ("panflute-1", "it takes 2 or more, e.g. panflute-5"),
        ("panflut", "unknown gamename 'panflut'"),
    ],
)
def test_sizes_that_cannot_be(gamename, words):
    with pytest.raises(UserError, match=words):
        env_spec(gamename)
