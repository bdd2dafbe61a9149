"""What holds for every agent: members alone and together are the same, equal seeds give equal runs, and all of them learn."""

import tempfile

import pytest
import torch
from member_helpers import AGENTS, HORIZON, env_for, train

from lightning_rl.agents.training import evaluate_agents
from lightning_rl.envs.batch import FuncBatch
from lightning_rl.functional.value_learning import double_q_target, weighted_squared_error

SEEDS = [3, 1, 4, 15, 9, 2, 6, 5]


def assert_same(together, alone, exactly):
    for key, value in alone.items():
        if exactly:
            assert torch.equal(together[key], value), key
        else:
            torch.testing.assert_close(together[key], value, rtol=1e-3, atol=1e-5)
        assert torch.isfinite(value).all()


@pytest.mark.parametrize("name", AGENTS)
def test_eight_stacked_equal_eight_alone(name):
    """Bit by bit, but for networks with one output: the library multiplies a single matrix by a vector with another kernel than
    a batch of them. (It also rounds by where in memory an operand lies, so bits need batch sizes in multiples of 16.)
    """
    together, training = train(name, SEEDS)
    training.run()
    for n in (0, 5):
        alone, single = train(name, SEEDS[n : n + 1])
        single.run()
        exactly = not name.startswith(("td3", "ppo"))
        torch.testing.assert_close(training.results.returns[n], single.results.returns[0], rtol=0, atol=0 if exactly else 1e-4)
        assert_same({key: value[n : n + 1] for key, value in together.state_dict().items()}, alone.state_dict(), exactly)


@pytest.mark.parametrize("name", AGENTS)
def test_leaving_the_stack_changes_nothing_for_the_others(name):
    def at_five(returns, count):
        return (count >= 5) & (torch.arange(len(count)) % 2 == 0) & (len(count) == len(SEEDS))

    shrunk, training = train(name, SEEDS, stop=at_five)
    training.run()
    whole, full = train(name, SEEDS)
    full.run()
    left = [1, 3, 5, 7]
    assert training.results.stopped.tolist() == [n not in left for n in range(8)]
    assert training.results.episodes.tolist() == [12 if n in left else 5 for n in range(8)]
    assert torch.equal(training.results.returns[left], full.results.returns[left])
    rows = {key: value[left] for key, value in shrunk.state_dict().items()}
    assert_same(rows, {key: value[left] for key, value in whole.state_dict().items()}, exactly=True)
    assert shrunk.num_members == 8


@pytest.mark.parametrize("name", AGENTS)
def test_runs_in_pieces_equal_runs_in_one(name):
    one, whole = train(name, SEEDS[:2])
    whole.run()
    two, pieces = train(name, SEEDS[:2])
    while not pieces.done:
        pieces.run(7)
    assert all(torch.equal(value, two.state_dict()[key]) for key, value in one.state_dict().items())


@pytest.mark.parametrize("name", AGENTS)
def test_learns_the_identity_task(name):
    """Chance gives 3.3 of 10 (continuous: about 3)."""
    seeds = [1, 2, 3, 4]
    agent, training = train(name, seeds, episodes=60)
    training.run()
    envs = FuncBatch(env_for(name), HORIZON, list(range(100, 120)))
    returns, lengths = evaluate_agents(agent, envs, 5)
    assert lengths.unique().tolist() == [HORIZON]
    assert returns.mean() > 8.0, returns


@pytest.mark.parametrize("name", ["td3", "ddqn", "td3-discrete-fixed"])
def test_evaluation_explores_only_when_asked(name):
    agent, training = train(name, [1, 2], episodes=6)
    training.run()

    def play(noisy_as):
        torch.manual_seed(0)
        return evaluate_agents(agent, FuncBatch(env_for(name), HORIZON, [5, 6]), 1, noisy_as)[0]

    assert torch.equal(play(None), play(None))
    assert not torch.equal(play(None), play(4))


@pytest.mark.parametrize("name", ["ddqn", "td3", "sarsa"])
def test_no_learning_in_the_first_episodes(name):
    agent, training = train(name, [1, 2], init_episodes=3)
    start = {key: value.clone() for key, value in agent.state_dict().items()}
    training.run(3 * HORIZON)
    assert all(torch.equal(value, start[key]) for key, value in agent.state_dict().items())
    training.run(HORIZON)
    assert not all(torch.equal(value, start[key]) for key, value in agent.state_dict().items())


@pytest.mark.parametrize("name", AGENTS)
def test_a_snapshot_goes_on_as_before(name):
    """Also after members have left the stack, and through ``torch.save``."""

    def early(returns, count):
        return (count >= 4) & (torch.arange(len(count)) == 1) & (len(count) == 3)

    one, whole = train(name, SEEDS[:3], stop=early)
    whole.run(73)
    with tempfile.TemporaryFile() as file:
        torch.save(whole.snapshot(), file)
        file.seek(0)
        state = torch.load(file, weights_only=True)
    assert len(state["members"]) == 2
    two, other = train(name, SEEDS[:3], stop=early)
    other.restore(state)
    whole.run()
    other.run()
    assert all(torch.equal(value, two.state_dict()[key]) for key, value in one.state_dict().items())
    assert all(torch.equal(a, b) for a, b in zip(vars(whole.results).values(), vars(other.results).values(), strict=True))


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


@pytest.mark.parametrize("going_on", [1.0, 0.0])  # 0: no next state counts, so none is looked at
@pytest.mark.parametrize("name", ["ddqn", "dueling"])
def test_the_gradient_by_hand_is_that_of_the_loss(name, going_on):
    agent, training = train(name, SEEDS[:3], episodes=6)
    training.run()
    batch = agent.replay.sample(torch.rand(3, 32, dtype=torch.float64))
    batch = batch._replace(discount=going_on * batch.discount)
    leaf = agent.params.clone().requires_grad_()
    with torch.no_grad():
        target = double_q_target(
            batch.reward, batch.discount, agent.net(agent.params, batch.next_obs), agent.net(agent.target, batch.next_obs)
        )
    q = agent.net(leaf, batch.obs).gather(-1, batch.action.unsqueeze(-1)).squeeze(-1)
    loss = weighted_squared_error(q, target, agent.weight)
    (grad,) = torch.autograd.grad(loss.sum(), leaf)
    by_hand = agent._gradient(agent.params, agent.target, batch, agent.weight)
    torch.testing.assert_close(by_hand[0], loss.detach())
    torch.testing.assert_close(by_hand[1], grad, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("name", ["td3", "td3-discrete-fixed"])
def test_where_nothing_follows_the_target_is_the_reward(name):
    agent, training = train(name, SEEDS[:2], episodes=4)
    training.run()
    batch = agent.replay.sample(torch.rand(2, 32, dtype=torch.float64))
    last = torch.arange(32) < 8
    some, none = batch.discount.masked_fill(last, 0), torch.zeros_like(batch.discount)
    mixed, alone = (agent._target(batch._replace(discount=discount), 0) for discount in (some, none))
    assert torch.equal(mixed[:, last], batch.reward[:, last])
    assert torch.equal(alone, batch.reward)


def test_members_in_blocks_are_members_at_once():
    one, whole = train("ddqn", SEEDS)
    two, blocks = train("ddqn", SEEDS)
    two._at_once = 3
    whole.run()
    blocks.run()
    assert_same(one.state_dict(), two.state_dict(), exactly=True)


@pytest.mark.parametrize("name", AGENTS)
def test_members_adopt_a_plain_module(name):
    source, training = train(name, SEEDS[:2], episodes=4)
    training.run()
    agent = AGENTS[name](SEEDS[2:5])
    agent.adopt(source.module(1))
    for n in range(3):
        theirs, ours = source.module(1).state_dict(), agent.module(n).state_dict()
        assert all(torch.equal(ours[key], value) for key, value in theirs.items())
