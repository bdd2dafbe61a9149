import math

import pytest
import torch

from lightning_rl.agents.base import Agent
from lightning_rl.agents.training import MemberTraining
from lightning_rl.envs.adapters import FUNC_ENVS
from lightning_rl.envs.batch import FuncBatch
from lightning_rl.envs.grids import Bandit
from lightning_rl.envs.one_step import INWARD, REWARD_STD, OneStepEnv, OneStepNet
from lightning_rl.envs.proxies import SyntheticProxy
from lightning_rl.envs.synthetic import SyntheticEnv, SyntheticNet
from lightning_rl.methods.perfect_learners import PerfectLearners

NET = SyntheticNet(4, 2, (8,), "leakyrelu")


def generators(count):
    return [torch.Generator().manual_seed(n) for n in range(count)]


def make(members=3, net=NET, gamename="cartpole", **options):
    return SyntheticEnv(net, net.init(generators(members)), FUNC_ENVS[gamename](), **options)


def plain(net, params, member):
    """The heads of one member as torch modules."""
    pieces = net.split(params[member : member + 1])
    return {name: head.module(pieces[name][0]) for name, head in net.heads.items()}


def test_sizes_are_the_papers():
    assert SyntheticNet(4, 2, (83,), "leakyrelu").size == 2247
    assert SyntheticNet(4, 2, (128,), "leakyrelu").size == 3462
    acrobot = SyntheticNet(6, 3, (167,), "prelu")
    assert acrobot.size == 6354 + 3
    assert int(acrobot.evolved().sum()) == 6354


def test_heads_see_action_then_state_and_are_unbounded():
    env = make()
    state, action = torch.randn(3, 4), torch.tensor([0, 1, 1])
    step = env.step(state, action, torch.empty(3, 0))
    for n in range(3):
        x = torch.cat([torch.eye(2)[action[n]], state[n]])
        after, reward, done = (head(x) for head in plain(NET, env.params, n).values())
        torch.testing.assert_close(step.state[n], after)
        torch.testing.assert_close(step.reward[n], reward[0])
        torch.testing.assert_close(step.continuation[n], 1 - done[0])
        assert bool(step.terminated[n]) == (done.item() > 0.5)
    assert torch.equal(step.obs, step.state)


def test_a_member_alone_and_further_dimensions():
    env, state, action = make(), torch.randn(3, 5, 4), torch.randint(2, (3, 5))
    whole = env.step(state, action, torch.empty(3, 5, 0))
    rows = torch.tensor([2, 0])
    part = env.keep(rows).step(state[rows, 1], action[rows, 1], torch.empty(2, 0))
    torch.testing.assert_close(part.state, whole.state[rows, 1])
    torch.testing.assert_close(part.reward, whole.reward[rows, 1])


def test_starts_are_the_tasks_or_learned():
    noise = torch.rand(3, 4)
    assert torch.equal(make().reset(noise), FUNC_ENVS["cartpole"]().reset(noise))
    net = SyntheticNet(4, 2, (8,), "tanh", latent_size=2)
    env = make(net=net)
    assert env.reset_noise_size == 2
    starts = env.reset(torch.full((3, 2), 0.5))  # the middle of the normal distribution is 0
    for n in range(3):
        torch.testing.assert_close(
            starts[n], plain(net, env.params, n)["start"](torch.zeros(2)), atol=1e-5, rtol=0
        )


ONE_STEP = OneStepNet(4, 2, (8,), "tanh", latent_size=2)


def one_step(gamename="cartpole", net=ONE_STEP):
    return OneStepEnv(net, net.init(generators(3)), FUNC_ENVS[gamename]())


def test_a_one_step_world_pays_for_actions_and_nothing_follows():
    env = one_step()
    assert list(env.net.heads) == ["pay", "start"]
    assert env.net.size == (4 * 8 + 8 + 8 * 2 + 2) + (2 * 8 + 8 + 8 * 4 + 4) + 2 * 4 + 1
    assert (
        OneStepNet(4, 2, (8,), "tanh").size == (4 * 8 + 8 + 8 * 2 + 2) + 1
    )  # where no start states are learned
    env.params[:, -1] = torch.tensor([1.0, 0.5, 3])
    state, action = torch.randn(3, 4), torch.tensor([0, 1, 1])
    step = env.step(state, action, torch.empty(3, 0))
    assert step.terminated.all()
    assert (step.continuation == 0).all()
    # of the four bounds those of the velocities are infinite
    units = torch.tensor([4.8, 1.0, 24 * math.pi / 180, 1.0])
    for n in range(3):
        pay = plain(env.net, env.params, n)["pay"](state[n] / units)
        torch.testing.assert_close(
            step.reward[n], env.params[n, -1] * (pay[action[n]] - pay.mean())
        )
        assert env.best(state)[n] == pay.argmax()


def test_a_one_step_world_pays_by_what_is_seen():
    """Of a grid world, where an agent sees the largest number of a state alone, its rewards know
    no more.
    """
    net = OneStepNet(4, 4, (8,), "tanh", latent_size=2)
    env = OneStepEnv(net, net.init(generators(1)), FUNC_ENVS["emptyroom22"](), one_hot=True)
    states = torch.tensor([[[0.6, 0.4, 0, 0], [0.9, 0.1, 0, 0], [1, 0, 0, 0]]])
    paid = [
        env.step(states, torch.full((1, 3), action), torch.empty(1, 3, 0)).reward[0].tolist()
        for action in range(4)
    ]
    assert all(len(set(rewards)) == 1 for rewards in paid)
    assert len({rewards[0] for rewards in paid}) == 4
    assert len(set(env.best(states)[0].tolist())) == 1


def test_a_single_action_pays_nothing_in_any_units():
    net = OneStepNet(1, 1, (8,), "tanh")
    env = OneStepEnv(net, net.init(generators(2)), Bandit(1), one_hot=False)
    moved = OneStepEnv(
        net, env.in_units(torch.zeros(1), torch.ones(1), torch.rand(2, 5, 1)), env.real
    )
    assert moved.step(
        torch.ones(2, 1), torch.zeros(2, dtype=torch.int64), torch.empty(2, 0)
    ).reward.tolist() == [0, 0]


def test_a_continuous_action_pays_by_its_distance_to_the_best():
    net = OneStepNet(3, 2, (8,), "tanh")
    env = one_step("pendulum", net)
    env.params.mul_(
        3
        # so that some that are meant are at the edge of the box; rewards, too, are three times as
        # large
    )
    state, action = torch.randn(3, 5, 3), 3 * torch.rand(3, 5, 2) - 1.5
    step, best = env.step(state, action, torch.empty(3, 0)), env.best(state)
    for n in range(3):
        meant = plain(net, env.params, n)["pay"](state[n] / torch.tensor([1.0, 1, 8])).clamp(-1, 1)
        pay = INWARD * meant
        torch.testing.assert_close(env.meant(state)[n], meant)
        torch.testing.assert_close(best[n], pay)
        less = -(action[n].clamp(-1, 1) - pay).square() + pay.square()  # than what action 0 pays
        torch.testing.assert_close(step.reward[n], 3 * less.sum(-1))


def test_start_states_of_a_one_step_world_are_in_units_of_the_bounds():
    net = OneStepNet(2, 1, (8,), "tanh", latent_size=2)
    env = one_step("mountaincar-continuous", net)
    noise = torch.full((3, env.reset_noise_size), 0.5)  # the middle of the normal distribution is 0
    noise[:, 2] = 1.0  # all the way to the learned ones
    starts = env.reset(noise)
    for n in range(3):  # position -1.2 to 0.6, velocity -0.07 to 0.07
        at = plain(net, env.params, n)["start"](torch.zeros(2))
        torch.testing.assert_close(
            starts[n], torch.tensor([-0.3, 0]) + torch.tensor([0.9, 0.07]) * at, atol=1e-5, rtol=0
        )


def test_a_one_step_world_starts_between_the_task_and_learned_states():
    env, task = one_step(), FUNC_ENVS["cartpole"]()
    assert env.reset_noise_size == 2 + 1 + 4
    noise = torch.rand(3, 5, 7, generator=torch.Generator().manual_seed(0))
    near, far, third = noise.clone(), noise.clone(), noise.clone()
    near[..., 2], far[..., 2], third[..., 2] = 0, 1, 1 / 3
    assert torch.equal(env.reset(near), task.reset(noise[..., 3:]))
    torch.testing.assert_close(env.reset(third), (2 * env.reset(near) + env.reset(far)) / 3)
    far[..., 3:] = 0
    assert not torch.equal(env.reset(far), env.reset(near))
    fixed = one_step(net=OneStepNet(4, 2, (8,), "tanh"))  # none are learned: they are the task's
    assert torch.equal(fixed.reset(noise[..., :4]), task.reset(noise[..., :4]))


def test_start_states_are_given_a_mean_and_a_spread_and_rewards_a_size():
    env, noise = one_step(), torch.rand(3, 1000, 7, generator=torch.Generator().manual_seed(0))
    mean, std, before = (
        torch.tensor([1.0, -2, 0.1, 0]),
        torch.tensor([0.5, 2, 0.01, 0]),
        env.params.clone(),
    )
    moved = OneStepEnv(env.net, env.in_units(mean, std, noise), env.real)
    starts = moved.reset(noise)
    rewards = torch.cat(
        [moved.step(starts, torch.full((3, 1000), action), noise).reward for action in (0, 1)],
        dim=1,
    )
    noise[..., 2] = 1
    learned = moved.reset(noise)
    for n in range(3):
        torch.testing.assert_close(learned[n].mean(0), mean, atol=1e-4, rtol=1e-4)
        torch.testing.assert_close(learned[n].std(0), std, atol=1e-4, rtol=1e-3)
        torch.testing.assert_close(rewards[n].std(correction=0), torch.tensor(REWARD_STD))
    assert (moved.params == env.params)[:, : -2 * 4 - 1].all()
    assert torch.equal(moved.best(starts), env.best(starts))
    assert torch.equal(env.params, before)
    assert not env.net.evolved()[-2 * 4 - 1 :].any()


def test_start_states_that_are_all_alike_get_the_mean_they_are_asked_for():
    env = one_step(
        "mountaincar-continuous", OneStepNet(2, 1, (8,), "tanh", latent_size=2)
    )  # the middle of whose bounds is -0.3
    env.net.split(env.params)["start"].zero_()
    mean, noise = torch.tensor([-0.5, 0.01]), torch.rand(3, 10, env.reset_noise_size)
    noise[..., 2] = 1  # all the way to the learned ones
    moved = OneStepEnv(env.net, env.in_units(mean, torch.ones(2), noise), env.real)
    torch.testing.assert_close(moved.reset(noise), mean.expand(3, 10, 2))


def test_rewards_of_random_continuous_actions_have_the_same_size():
    env = one_step("pendulum", OneStepNet(3, 2, (8,), "tanh"))
    noise = torch.rand(3, 20_000, 2, generator=torch.Generator().manual_seed(0))
    moved = OneStepEnv(env.net, env.in_units(torch.zeros(3), torch.ones(3), noise), env.real)
    action = 2 * torch.rand(3, 20_000, 2, generator=torch.Generator().manual_seed(1)) - 1
    rewards = moved.step(moved.reset(noise), action, noise).reward
    torch.testing.assert_close(rewards.std(1), torch.full((3,), REWARD_STD), atol=0.001, rtol=0)
    assert (moved.params == env.params)[:, :-1].all()


def test_one_hot_worlds():
    net = SyntheticNet(4, 4, (8,), "leakyrelu")
    env = make(net=net, gamename="emptyroom22", one_hot=True)
    state = env.reset(torch.empty(3, 0))
    assert state.tolist() == [[1, 0, 0, 0]] * 3
    first = env.step(state, torch.tensor([0, 1, 2]), torch.empty(3, 0))
    assert torch.equal(first.obs, torch.eye(4)[first.state.argmax(-1)])
    second = env.step(first.state, torch.tensor([0, 1, 2]), torch.empty(3, 0))
    x = torch.cat([torch.eye(4)[0], first.state[0]])
    torch.testing.assert_close(second.state[0], plain(net, env.params, 0)["state"](x))


def test_a_classifier_gives_probabilities():
    step = make(done="classifier").step(
        torch.randn(3, 4), torch.zeros(3, dtype=torch.int64), torch.empty(3, 0)
    )
    assert ((step.continuation > 0) & (step.continuation < 1)).all()
    assert torch.equal(step.terminated, step.continuation < 0.5)


class Spy(Agent):
    """Plays action 0 and writes down the discounts."""

    def __init__(self, seeds):
        super().__init__(seeds)
        self.nothing, self.seen = torch.nn.Parameter(torch.zeros(len(seeds))), []

    def act(self, obs, episode, step):
        return torch.zeros(len(obs), dtype=torch.int64)

    def greedy(self, obs):
        return torch.zeros(obs.shape[:2], dtype=torch.int64)

    def learn(self, transition, over, step, active):
        self.seen.append((transition.discount, over))

    @property
    def num_updates(self):
        return torch.zeros(self.num_members)

    def module(self, row):
        raise NotImplementedError

    def adopt(self, net):
        raise NotImplementedError


@pytest.mark.parametrize("cap_ends", [False, True])
def test_agents_learn_from_the_raw_done(cap_ends):
    """gamma (1 - d) is stored, also beyond [0, gamma]; the cap bootstraps unless it is told to
    end.
    """
    env, agent = make(2), Spy([0, 1])
    envs = FuncBatch(env, 3, [0, 1])
    expected = (
        0.9
        * env.step(envs.state, torch.zeros(2, dtype=torch.int64), torch.empty(2, 0)).continuation
    )
    envs.cap_ends = cap_ends
    training = MemberTraining(agent, envs, 2, 0.9)
    training.run(3)
    torch.testing.assert_close(agent.seen[0][0], expected)
    assert agent.seen[2][1].tolist() == [True, True]
    assert (agent.seen[2][0] == 0).all().item() == cap_ends
    training.train_until(3, repeat=1)
    assert training.results.env_steps.tolist() == [3, 3]


def test_rewards_of_a_one_step_grid_have_the_deviation_that_is_promised():
    """Its states are read as numbers of cells, also while the units are sought."""
    world = SyntheticProxy(
        gamename="emptyroom33",
        hidden=(32, 32),
        activation="tanh",
        horizon=1,
        done="always",
        latent_size=4,
    )
    env = world.env(world.net.init(generators(1)))
    noise = torch.rand(1, 500, env.reset_noise_size, generator=torch.Generator().manual_seed(1))
    env = world.env(env.in_units(torch.full((9,), 0.5), torch.full((9,), 0.3), noise))
    starts = env.reset(noise)
    paid = torch.stack(
        [
            env.step(starts, torch.full(starts.shape[:2], action), noise).reward
            for action in range(4)
        ],
        -1,
    )
    assert float(paid.var(-1, correction=0).mean().sqrt()) == pytest.approx(REWARD_STD, rel=1e-4)
    learners = PerfectLearners(env, [0])
    with learners.holding(learners.rows(torch.tensor([0]))):
        assert learners.env.one_hot
