"""What holds for every agent: members alone and together are the same, equal seeds give equal
runs, and all of them learn.
"""

import tempfile

import pytest
import torch
from helpers.members import AGENTS, HORIZON, env_for, train

from lightning_rl.agents.testing import evaluate_agents
from lightning_rl.envs.batch import FuncBatch

SEEDS = [3, 1, 4, 15]


def assert_same(ours, theirs):
    assert ours.keys() == theirs.keys()
    for key, value in theirs.items():
        assert torch.equal(ours[key], value), key


def saved(agent):
    """All that checkpoints keep of an agent."""
    return {
        name: value
        for name, value in agent.rows().items()
        if name in agent.state_dict() or name.startswith("optimizers.")
    }


def assert_same_up_to_rounding(ours, theirs):
    """Across numbers of members: the library may add up in another order. One foreign number
    would show in all digits.
    """
    for key, value in theirs.items():
        torch.testing.assert_close(
            ours[key], value, rtol=1e-3, atol=1e-4, msg=lambda text, key=key: f"{key}: {text}"
        )
        assert torch.isfinite(value).all()


def at_five(returns, count):
    """Seeds 3 and 4 leave a stack of all after their fifth episode."""
    return (count >= 5) & (torch.arange(len(count)) % 2 == 0) & (len(count) == len(SEEDS))


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.slow if name == "dueling" else [])
        for name in AGENTS
        if name not in ("dueling-icm", "td3-discrete-fixed-icm")
    ],
)
def test_a_member_is_the_agent_alone_and_who_leaves_changes_nothing_for_the_others(name):
    together, training = train(name, SEEDS, episodes=9, stop=at_five)
    training.run()
    assert training.results.stopped.tolist() == [True, False, True, False]
    assert together.num_members == 4
    for n, episodes in ((2, 5), (3, 9)):
        alone, single = train(name, SEEDS[n : n + 1], episodes=episodes)
        single.run()
        assert training.results.episodes[n] == episodes
        returns = training.results.returns[n, :episodes]
        torch.testing.assert_close(returns, single.results.returns[0], rtol=0, atol=1e-3)
        assert_same_up_to_rounding(
            {key: value[n : n + 1] for key, value in saved(together).items()}, saved(alone)
        )


@pytest.mark.parametrize(
    "name",
    [
        "ql-count",
        "ddqn-icm",
        pytest.param("td3-icm", marks=pytest.mark.slow),
        "td3-discrete-annealed",
        "ppo-icm",
        "ppo-paper-continuous",
    ],
)
def test_learns_the_identity_task(name):
    """Chance gives 3.3 of 10 (continuous: about 3). The others' values are known, see
    ``test_chain``.
    """
    seeds = [1, 2]
    agent, training = train(name, seeds, episodes=60)
    training.run()
    envs = FuncBatch(env_for(name), HORIZON, list(range(100, 110)))
    returns, lengths = evaluate_agents(agent, envs, 5)
    assert lengths.unique().tolist() == [HORIZON]
    assert returns.mean() > 8.0, returns


@pytest.mark.parametrize("name", ["ddqn", "td3", "sarsa"])
def test_no_learning_in_the_first_episodes(name):
    agent, training = train(name, [1, 2], learning_starts=3)
    start = {key: value.clone() for key, value in saved(agent).items()}
    training.run(3 * HORIZON)
    assert all(torch.equal(value, start[key]) for key, value in saved(agent).items())
    training.run(HORIZON)
    assert not all(torch.equal(value, start[key]) for key, value in saved(agent).items())


@pytest.mark.parametrize("name", AGENTS)
def test_a_snapshot_goes_on_as_if_nothing_had_happened(name):
    """In the middle of an episode, after a member has left the stack, and through
    ``torch.save``: bit by bit.
    """

    def early(returns, count):
        return (count >= 3) & (torch.arange(len(count)) == 1) & (len(count) == 3)

    one, whole = train(name, SEEDS[:3], episodes=8, stop=early)
    whole.run()
    stopped, half = train(name, SEEDS[:3], episodes=8, stop=early)
    half.run(66)
    with tempfile.TemporaryFile() as file:
        torch.save(
            (
                stopped.state_dict(),
                [each.state_dict() for each in stopped.optimizers()],
                half.snapshot(),
            ),
            file,
        )
        file.seek(0)
        weights, moments, state = torch.load(file, weights_only=True)
    assert len(state["members"]) == 2
    two, other = train(name, SEEDS[:3], episodes=8, stop=early)
    two.load_state_dict(weights)
    for optimizer, state_of in zip(two.optimizers(), moments, strict=True):
        optimizer.load_state_dict(state_of)
    other.restore(state)
    other.run()
    assert_same(saved(one), saved(two))
    assert_same(vars(whole.results), vars(other.results))


@pytest.mark.parametrize("name", AGENTS)
def test_a_member_as_a_plain_module_acts_alike(name):
    agent, training = train(name, SEEDS[:2], episodes=6)
    training.run()
    obs = torch.eye(3).expand(2, 3, 3)
    for n in range(2):
        out = agent.module(n)(obs[n])
        if name in ("td3", "td3-icm"):
            action = out.tanh()
        elif "continuous" in name:
            action = out[..., :1].tanh()
            assert torch.allclose(out[..., 1:], agent.params[n, -1:])
        else:
            action = out.argmax(-1)
        torch.testing.assert_close(action, agent.greedy(obs)[n], rtol=1e-5, atol=1e-6)


def test_members_in_blocks_are_members_at_once():
    one, whole = train("ddqn", SEEDS, episodes=6)
    two, blocks = train("ddqn", SEEDS, episodes=6)
    two._members_per_block = 3
    whole.run()
    blocks.run()
    assert_same_up_to_rounding(saved(one), saved(two))


@pytest.mark.parametrize("name", AGENTS)
def test_members_adopt_a_plain_module(name):
    source, training = train(name, SEEDS[:2], episodes=4)
    training.run()
    agent = AGENTS[name]([4, 9, 2])
    agent.adopt(source.module(1))
    for n in range(3):
        theirs, ours = source.module(1).state_dict(), agent.module(n).state_dict()
        assert all(torch.equal(ours[key], value) for key, value in theirs.items())
    weights = agent.state_dict()
    for learned, target in (("params", "target"), ("actor_params", "actor_target")):
        assert target not in weights or torch.equal(weights[target], weights[learned])
