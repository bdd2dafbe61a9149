import dataclasses
import functools
import signal
import time

import gymnasium
import numpy as np
import pytest
import torch
from gymnasium.envs.classic_control import PendulumEnv
from helpers.members import table_of
from helpers.proxies import reward_proxy
from helpers.toys import same_episodes

from experiments.protocols.recording import RecordedBatch
from lightning_rl.agents.testing import evaluate_agents
from lightning_rl.core.gamenames import GAMES, Game
from lightning_rl.core.types import Request
from lightning_rl.envs.adapters import FUNC_ENVS
from lightning_rl.envs.batch import BatchStep, FuncBatch
from lightning_rl.envs.func_env import FuncEnv, Step
from lightning_rl.envs.gym import RepeatAction
from lightning_rl.envs.gym_batch import GymBatch
from lightning_rl.envs.spec import EnvSpec, env_spec
from lightning_rl.envs.wrapped_batch import CopiedBatch
from lightning_rl.rollouts.player import Player

SEEDS = [11, 12, 13, 14]
CARTPOLE = EnvSpec("cartpole-v1", "CartPole-v1", 4, 2, False, 30, 500.0, None)


def batches():
    return [
        lambda seeds: FuncBatch(FUNC_ENVS["cartpole"](), 30, seeds),
        lambda seeds: GymBatch(CARTPOLE, seeds),
    ]


def repeating(spec, seeds, repeat):
    return GymBatch(spec, seeds, wrapper=functools.partial(RepeatAction, repeat=repeat))


def play(batch, members, steps=80, keep_at=None, rows=None):
    """Observations met by each member under actions that depend on step and member alone."""
    obs, seen = batch.obs, []
    for t in range(steps):
        if t == keep_at:
            batch.keep(torch.tensor(rows))
            members, obs = [members[r] for r in rows], obs[rows]
        action = torch.tensor([(t * (m + 3) // 7) % 2 for m in members])
        step = batch.step(action)
        over = step.terminated | step.truncated
        seen.append({m: (step.obs[i], step.reward[i], over[i]) for i, m in enumerate(members)})
        obs = batch.reset(over) if over.any() else step.obs
    return seen


def same_steps(one, other):
    for a, b in zip(one, other, strict=True):
        assert all(torch.equal(x, y) for m in a for x, y in zip(a[m], b[m], strict=True))


@pytest.mark.parametrize("make", batches(), ids=["func", "gym"])
def test_a_member_alone_meets_what_it_meets_in_a_stack(make):
    together = play(make(SEEDS), [0, 1, 2, 3], keep_at=40, rows=[3, 1])
    assert any(seen[m][2] for seen in together for m in seen)
    for member in (1, 3):
        alone = play(make(SEEDS[member : member + 1]), [member])
        for here, there in zip(together, alone, strict=True):
            torch.testing.assert_close(
                here[member][0], there[member][0], rtol=0, atol=1e-4
            )  # sines may be rounded


@pytest.mark.parametrize("make", batches(), ids=["func", "gym"])
def test_time_limit_and_reset(make):
    batch = make(SEEDS)
    before = obs = batch.obs.clone()
    for _ in range(30):
        step = batch.step((obs[:, 2] + obs[:, 3] > 0).long())  # holds the pole
        obs = step.obs
    assert step.truncated.tolist() == [True] * 4
    assert step.terminated.tolist() == [False] * 4
    obs = batch.reset(torch.tensor([True, False, True, False]))
    assert torch.equal(obs[1], step.obs[1])
    assert obs[0].abs().max() <= 0.05
    assert not torch.equal(obs[0], before[0])


@pytest.mark.parametrize("repeat", [1, 3])
def test_func_and_gym_repeat_actions_alike(repeat):
    """Ten decisions from a start that both can take; the fall ends the repeat early."""
    func = FuncBatch(FUNC_ENVS["cartpole"](), 30, [5], repeat)
    gym = repeating(CARTPOLE, [5], repeat)
    gym.envs.envs[0].unwrapped.state = func.state[0].double().numpy()
    lengths, over = 0, False
    while not over:
        here, there = func.step(torch.tensor([1])), gym.step(torch.tensor([1]))
        torch.testing.assert_close(here.obs, there.obs, rtol=1e-4, atol=1e-5)
        for a, b in zip(here[1:5], there[1:5], strict=True):
            assert a.tolist() == b.tolist()
        assert here.reward.item() == here.length.item()
        lengths += here.length.item()
        over = bool(here.terminated)
    raw = gymnasium.make("CartPole-v1").unwrapped
    raw.reset(seed=0)
    raw.state, count = FuncBatch(FUNC_ENVS["cartpole"](), 30, [5]).state[0].double().numpy(), 1
    while not raw.step(1)[2]:
        count += 1
    assert lengths == count


def test_a_repeat_stops_at_the_time_limit():
    func, gym = (
        FuncBatch(FUNC_ENVS["pendulum"](), 10, [5], repeat=4),
        repeating(pendulum(), [5], 4),
    )
    for batch in (func, gym):
        steps = [batch.step(torch.zeros(1, 1)) for _ in range(3)]
        assert [s.length.item() for s in steps] == [4, 4, 2]
        assert [s.truncated.item() for s in steps] == [False, False, True]


class OwnLength(PendulumEnv):
    """Has a length of its own to tell of."""

    def step(self, action):
        return *super().step(action)[:-1], {"length": 0.5}


def test_an_environment_may_say_a_length_of_its_own():
    batch = repeating(dataclasses.replace(pendulum(), env=OwnLength), [5, 6], 4)
    assert [batch.step(torch.zeros(2, 1)).length.tolist() for _ in range(3)] == [
        [4, 4],
        [4, 4],
        [2, 2],
    ]


def pendulum():
    spec = env_spec("pendulum")
    return EnvSpec("p", spec.env, 3, 1, True, 10, 0.0, None)


def test_processes_play_the_same_and_end():
    here, there = GymBatch(CARTPOLE, SEEDS), GymBatch(CARTPOLE, SEEDS, processes=True)
    try:
        ours, theirs = (
            play(batch, [0, 1, 2, 3], 40, keep_at=20, rows=[0, 2]) for batch in (here, there)
        )
        for a, b in zip(ours, theirs, strict=True):
            assert all(torch.equal(a[m][0], b[m][0]) for m in a)
    finally:
        there.close()


def in_processes(seeds):
    return GymBatch(CARTPOLE, seeds, processes=True)


@pytest.mark.parametrize("make", [*batches(), in_processes], ids=["func", "gym", "processes"])
def test_a_snapshot_goes_on_as_before(make):
    """Taken in the middle of episodes, with one member gone."""
    batch, rows = make(SEEDS), torch.tensor([0, 2, 3])
    play(batch, [0, 1, 2, 3], 37)
    batch.keep(rows)
    state = {name: value.clone() for name, value in batch.snapshot().items()}
    obs = batch.reset(torch.zeros(3, dtype=torch.bool))
    other = make(SEEDS)
    other.keep(rows)
    other.restore(state)
    assert torch.equal(other.obs, obs)
    same_steps(play(batch, [0, 2, 3], 60), play(other, [0, 2, 3], 60))


class Counted(gymnasium.Env):
    """Ends after as many steps as its first observation says; ``taken`` counts the steps of all,
    ``begun`` the episodes.
    """

    observation_space, action_space = (
        gymnasium.spaces.Box(0, 99, (1,)),
        gymnasium.spaces.Discrete(2),
    )
    taken = begun = 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.left = int(self.np_random.integers(3, 20))
        Counted.begun += 1
        return np.array([self.left], np.float32), {}

    def step(self, action):
        self.left -= 1
        Counted.taken += 1
        return np.array([self.left], np.float32), 1.0, self.left == 0, False, {}


class Talker(Counted):
    """Says in ``info`` what cannot be put into arrays of all environments."""

    def said(self):
        return {
            "path": np.zeros(self.left),
            "score": None if self.left % 2 else 1.5,
            "_path": {"deep": object()},
            "final_obs": "over",
            "words": ["one"] * self.left,
            "steps": lambda: None,
            7: {self.left: {}},
            f"at {self.left}": 1,
        }

    def reset(self, **options):
        return super().reset(**options)[0], self.said()

    def step(self, action):
        return *super().step(action)[:4], self.said()


@pytest.mark.parametrize("processes", [False, True])
def test_whatever_an_environment_says_in_info_is_left_alone(monkeypatch, processes):
    for game, env in (("counted", Counted), ("talker", Talker)):
        monkeypatch.setitem(GAMES, game, Game(env, horizon=50))
    plain, talker = (
        GymBatch(env_spec("counted"), SEEDS),
        GymBatch(env_spec("talker"), SEEDS, processes=processes),
    )
    same_steps(play(plain, [0, 1, 2, 3]), play(talker, [0, 1, 2, 3]))
    talker.close()


def test_logs_grow_with_episodes_and_not_with_the_time_limit(monkeypatch):
    """10**12 steps: no limit. What was stored with room for all of a time limit is restored,
    too.
    """
    monkeypatch.setattr("lightning_rl.envs.gym_batch._LOG_STEPS", 2)
    monkeypatch.setattr("lightning_rl.rollouts.player._LOG_STEPS", 2)
    for game, horizon in (("counted", 50), ("endless", 10**12)):
        monkeypatch.setitem(GAMES, game, Game(Counted, horizon=horizon))
    batch, seen = GymBatch(env_spec("endless"), SEEDS), []
    for _ in range(11):
        step = batch.step(torch.tensor([0, 1, 0, 1]))
        batch.reset(step.terminated | step.truncated)
    state = batch.snapshot()
    assert state["actions"].shape == (4, int(state["length"].max()))
    older = {
        **state,
        "actions": torch.nn.functional.pad(state["actions"], (0, 50 - state["actions"].shape[1])),
    }
    with pytest.raises(ValueError, match="actions, not all are there"):
        batch.restore({**state, "actions": state["actions"][:, :1]})
    for game, stored in (("endless", state), ("counted", older)):
        other = GymBatch(env_spec(game), SEEDS)
        other.restore(stored)
        seen.append(play(other, [0, 1, 2, 3], 30))
    same_steps(seen[0], seen[1])
    same_steps(seen[0], play(batch, [0, 1, 2, 3], 30))
    batch.retire(torch.tensor([True, False, False, False]))
    batch.step(torch.tensor([0, 1, 0, 1]))
    assert batch.snapshot()["length"][0] == 0  # who is retired adds nothing
    requests = [Request(str(k), k, "uniform") for k in range(4)]
    episodes = [Player(env_spec(game), None).play(requests) for game in ("counted", "endless")]
    assert max(len(episode.reward) for episode in episodes[0]) > 8
    assert same_episodes(*episodes)


def test_tests_of_agents_take_no_steps_that_nobody_asks_for(monkeypatch):
    """Neither in an episode that begins after the one that counts, nor does one begin."""
    monkeypatch.setitem(GAMES, "counted", Game(Counted, horizon=50))
    envs = GymBatch(env_spec("counted"), list(range(6)))
    asked = envs.obs.flatten()
    assert len(set(asked.tolist())) > 1
    Counted.taken = Counted.begun = 0
    returns, lengths = evaluate_agents(table_of(1, 2, [0, 1], 0.9, 0.1, 0.0, 0.0, 0.0), envs, 3)
    assert torch.equal(returns.flatten(), asked)
    assert torch.equal(lengths.flatten(), asked.long())
    assert (Counted.taken, Counted.begun) == (int(asked.sum()), 0)


def test_who_is_kept_has_its_own_steps_and_the_others_stand_still(monkeypatch):
    """Of a repeated action: those until its episode ends, if that is sooner."""
    monkeypatch.setitem(GAMES, "counted", Game(Counted, horizon=50))
    envs = repeating(env_spec("counted"), list(range(6)), 7)
    envs.keep(envs.obs.flatten().argsort()[[-1, 0]])
    left = envs.obs.flatten().long()
    Counted.taken = 0
    assert envs.step(torch.ones(2, dtype=torch.int64)).length.tolist() == left.clamp(max=7).tolist()
    assert Counted.taken == left.clamp(max=7).sum()
    envs.reset(torch.tensor([False, True]))
    state = envs.snapshot()
    assert (
        state["length"].tolist() == state["actions"].sum(1).tolist() == [1, 0]
    )  # nothing of an earlier episode


@pytest.mark.parametrize(
    "wrap",
    [lambda envs: CopiedBatch(envs, torch.device("cpu")), lambda envs: RecordedBatch(envs, [])],
)
def test_batches_around_others_let_them_stand_still(wrap, monkeypatch):
    monkeypatch.setitem(GAMES, "counted", Game(Counted, horizon=50))
    envs = wrap(GymBatch(env_spec("counted"), [1, 2]))
    while not (step := envs.step(torch.zeros(2, dtype=torch.int64))).terminated.any():
        pass
    Counted.taken = Counted.begun = 0
    obs = envs.retire(step.terminated)
    assert obs[step.terminated].tolist() == [[0.0]]
    envs.step(torch.zeros(2, dtype=torch.int64))
    assert (Counted.taken, Counted.begun) == (1, 0)


@pytest.mark.parametrize("make", batches(), ids=["func", "gym"])
def test_who_is_retired_changes_nothing_for_the_others(make):
    batch, other, seen = make(SEEDS), make(SEEDS), []
    for each in (batch, other):
        rows, retired = [], torch.zeros(4, dtype=torch.bool)
        for t in range(60):
            step = each.step(torch.tensor([(t * (m + 3) // 7) % 2 for m in range(4)]))
            rows.append((step.obs[[1, 3]], step.terminated[[1, 3]]))
            over = step.terminated | step.truncated
            leaves = over & torch.tensor([each is batch, False, each is batch, False]) & ~retired
            if leaves.any():
                each.retire(leaves)
                retired |= leaves
            if (over & ~leaves).any():
                each.reset(over & ~leaves)
        seen.append(rows)
        assert retired.tolist() == [each is batch, False, each is batch, False]
    for (obs, over), (obs_too, over_too) in zip(*seen, strict=True):
        assert torch.equal(obs, obs_too)
        assert torch.equal(over, over_too)


class Sleeper(gymnasium.Env):
    """A step takes as long as a test may not."""

    observation_space, action_space = (
        gymnasium.spaces.Box(-1, 1, (1,)),
        gymnasium.spaces.Discrete(2),
    )

    def reset(self, *, seed=None, options=None):
        return np.zeros(1, np.float32), {}

    def step(self, action):
        time.sleep(20)
        return np.zeros(1, np.float32), 0.0, False, False, {}


@pytest.mark.filterwarnings("ignore:.*Calling `close` while waiting")
def test_processes_in_a_step_end_whatever_handles_signals_in_this_one(monkeypatch):
    monkeypatch.setitem(GAMES, "sleeper", Game(Sleeper, horizon=5))
    before = signal.signal(signal.SIGTERM, lambda number, frame: None)
    try:
        batch, started = GymBatch(env_spec("sleeper"), [1, 2], processes=True), time.monotonic()
        batch.envs.step_async(np.zeros(2, dtype=np.int64))
        batch.envs.close(terminate=True)
    finally:
        signal.signal(signal.SIGTERM, before)
    assert time.monotonic() - started < 10


class Countdown(FuncEnv):
    """Walks 0, 1, 2, .. whatever is done; the likelihood of an end is given by the place that is
    reached: DONE[place].
    """

    obs_low, obs_high, action_size = (0.0,), (9.0,), 2
    DONE = torch.tensor([0.0, 0.25, 0.75, 0.5, 0.5, 0.5])

    def __init__(self, starts):
        self.starts = torch.tensor(starts, dtype=torch.float32).unsqueeze(1)

    def reset(self, noise):
        return self.starts.clone()

    def observe(self, state):
        return state

    def step(self, state, action, noise):
        after = state + 1
        done = self.DONE[after[:, 0].long()]
        return Step(after, after, after[:, 0], done > 0.5, 1 - done)

    def keep(self, rows):
        raise NotImplementedError


def test_a_repeated_action_keeps_what_its_last_step_said_of_the_end():
    """From 0: steps to 1 and 2, where it ends. From 1: ends at 2, the second step is never taken.
    From 3: to 4 and 5, goes on.

    By hand, gamma 0.9: 0.9 * 0.25, 0.9 * 0.25 and 0.9 * 0.5; at the time limit, after one step from
    2 to 3, 0.9 * 0.5.
    """
    batch = FuncBatch(Countdown([0, 1, 3, 2]), 99, [1, 2, 3, 4], repeat=2)
    batch.length = torch.tensor([0, 0, 0, 98])
    step = batch.step(torch.zeros(4, dtype=torch.int64))
    assert step.obs.flatten().tolist() == [2, 2, 5, 3]
    assert step.reward.tolist() == [3, 2, 9, 3]
    assert step.length.tolist() == [2, 1, 2, 1]
    assert step.terminated.tolist() == [True, True, False, False]
    assert step.truncated.tolist() == [False, False, False, True]
    discount = step.discount(0.9)
    torch.testing.assert_close(discount, torch.tensor([0.225, 0.225, 0.45, 0.45]))


def test_learned_rewards_of_a_repeated_action_are_the_sum_over_its_steps():
    """Beside single steps of the same members: potentials see each step, and an end that comes
    early ends the sum.
    """
    proxy = reward_proxy("mountaincar-continuous", form="additive_potential")
    params = proxy.net.init([torch.Generator().manual_seed(n) for n in range(3)])
    single, double = (proxy.batch(params, [1, 2, 3], 0.9, repeat) for repeat in (1, 2))
    for batch in (single, double):
        batch.state = batch.obs = torch.tensor(
            [[-0.5, 0.0], [0.44, 0.07], [0.4, 0.06]]
        )  # the goal is at 0.45
    action = torch.ones(3, 1)
    first = single.step(action)
    second = single.step(action)
    both = double.step(action)
    assert first.terminated.tolist() == [False, True, True]
    torch.testing.assert_close(
        both.reward, first.reward + second.reward.masked_fill(first.terminated, 0)
    )
    assert both.terminated.tolist() == [False, True, True]
    torch.testing.assert_close(both.obs[1:], first.obs[1:])
    torch.testing.assert_close(both.obs[:1], second.obs[:1])


def test_nothing_follows_a_termination_and_a_learned_continuation_is_the_discount():
    nothing, terminated = torch.zeros(2), torch.tensor([False, True])
    step = BatchStep(nothing, nothing, terminated, ~terminated, nothing)
    assert step.discount(0.9).tolist() == pytest.approx([0.9, 0])
    learned = step._replace(continuation=torch.tensor([1.1, 0.5]))
    for thresholded in (terminated, ~terminated):  # what it was thresholded to does not count
        assert learned._replace(terminated=thresholded).discount(0.9).tolist() == pytest.approx(
            [0.99, 0.45]
        )
