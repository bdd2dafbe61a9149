import pytest
import torch
from helpers.members import ddqn_of
from helpers.runs import resident_bytes

from lightning_rl.agents.base import Transition
from lightning_rl.agents.replay import MemberReplay
from lightning_rl.agents.ring import Column, MemberRing
from lightning_rl.agents.training import MemberTraining
from lightning_rl.envs.batch import FuncBatch
from lightning_rl.envs.cartpole import CartPole

NOWHERE = torch.zeros(3, dtype=torch.bool)  # does an episode end


def step(value, members=3, action_size=0):
    base = torch.arange(members) * 100.0 + value
    action = base[:, None].expand(-1, action_size) if action_size else base.long()
    return Transition(
        torch.stack([base, -base], 1),
        action,
        base + 0.5,
        base + 0.25,
        torch.stack([base + 1, base + 2], 1),
    )


@pytest.mark.parametrize("action_size", [0, 2])
def test_what_is_drawn_is_what_was_written(action_size):
    replay = MemberReplay(3, 10, 2, action_size)
    for value in range(4):
        replay.store(step(value, action_size=action_size), NOWHERE)
    noise = torch.tensor([[0.0, 0.3, 0.5, 0.999999]] * 3, dtype=torch.float64)
    batch = replay.batch(noise)
    for n in range(3):
        for b, value in enumerate((0, 1, 2, 3)):
            for drawn, written in zip(batch, step(value, action_size=action_size), strict=True):
                assert drawn[n, b].tolist() == written[n].tolist()
    assert batch.action.dtype == (torch.float32 if action_size else torch.int64)


def test_the_oldest_gives_way():
    replay = MemberReplay(1, 4, 2, 0)
    for value in range(7):
        replay.store(step(value, members=1), NOWHERE[:1])
        assert len(replay) == min(value + 1, 4)
    drawn = replay.batch(torch.rand(1, 1000, dtype=torch.float64)).obs[0, :, 0]
    assert drawn.unique().tolist() == [3, 4, 5, 6]
    assert torch.bincount(drawn.long())[3:].tolist() == pytest.approx([250] * 4, rel=0.25)


def test_keeping_members_copies_nothing():
    replay = MemberReplay(3, 5, 2, 0)
    replay.store(step(0), NOWHERE)
    rows = replay.data["rows"]
    replay.keep(torch.tensor([2, 0]))
    two = step(7)._replace(**{k: v[[2, 0]] for k, v in step(7)._asdict().items()})
    replay.store(two, NOWHERE[:2])
    batch = replay.batch(torch.tensor([[0.0, 0.6]] * 2, dtype=torch.float64))
    assert batch.obs[:, :, 0].tolist() == [[200, 207], [0, 7]]
    assert replay.data["rows"] is rows


def test_48_agents_with_full_memories_take_less_than_a_gibibyte():
    """Measured: what the process grows by, parameters, noise and an update included."""
    before, seeds = resident_bytes(), list(range(48))
    agent = ddqn_of(
        4, 2, seeds, hidden=[57], activation="tanh", batch_size=199, replay_size=100_000
    )
    agent.replay.data["rows"].fill_(0.5)
    training = MemberTraining(agent, FuncBatch(CartPole(), 200, seeds), 5, 0.99)
    training.run(2)
    assert agent.replay.data["rows"].nbytes == 48 * 100_000 * 11 * 4
    assert resident_bytes() - before < 2**30


def test_draws_are_from_all_that_is_there_and_nothing_else():
    """Of a memory that fills, that is restored, and that turns over."""
    ring, other = (MemberRing(2, 4, {"x": Column(1, torch.float32)}) for _ in range(2))
    for step in range(6):
        ring.add({"x": torch.tensor([[step], [10 + step]])})
        if step == 1:
            other.restore(ring.snapshot())
        there = [0, 1, 2, 3][: step + 1]
        noise = ((torch.tensor(there, dtype=torch.float64) + 0.5) / len(there)).expand(2, -1)
        drawn = ring.sample(noise)["x"].squeeze(-1)
        newest = list(range(max(0, step - 3), step + 1))
        assert [sorted(row) for row in drawn.tolist()] == [newest, [10 + each for each in newest]]
    halves = torch.tensor([[0.25, 0.75]] * 2, dtype=torch.float64)
    assert other.sample(halves)["x"].squeeze(-1).tolist() == [[0, 1], [10, 11]]
