"""Updates of the off-policy and tabular agents against the same written out in plain torch,
member by member.
"""

import pytest
import torch
import torch.nn.functional as F
from helpers.members import Task, agent_of, config, ddqn_of, off_policy, table_of
from helpers.reference_updates import (
    Given,
    close,
    close_to_adam,
    count,
    descend,
    leaf,
    of_member,
    perceptron,
    random_batch,
)

from lightning_rl.agents.base import Transition
from lightning_rl.agents.dqn import DDQN
from lightning_rl.agents.td3 import saturation
from lightning_rl.agents.variation import Variation

SEEDS, RATES, SIZES = [1, 2, 3], (0.05, 0.02, 0.05), (8, 5, 8)
ACTIVE = torch.tensor([True, True, False])
TAU = 0.3
OBS, ACTIONS, HIDDEN = 4, 3, 8
VARIED = Variation(RATES, SIZES, (HIDDEN,) * 3, (1,) * 3)


def plain_q(params, obs):
    return perceptron(params, (OBS, HIDDEN, ACTIONS), obs, torch.tanh)


def dueling_q(params, obs):
    """Features, then the value's head and the advantages'; the advantages of one observation
    have mean 0.
    """
    features, value = (OBS, HIDDEN, 6), (6, 6, 1)
    first, second = count(features), count(features) + count(value)
    z = perceptron(params[:first], features, obs, torch.tanh)
    advantage = perceptron(params[second:], (6, 6, ACTIONS), z, torch.tanh)
    return (
        perceptron(params[first:second], value, z, torch.tanh)
        + advantage
        - advantage.mean(-1, keepdim=True)
    )


def copy(source, target):
    """``target <- (1 - tau) target + tau source``."""
    with torch.no_grad():
        target.copy_((1 - TAU) * target + TAU * source)


@pytest.mark.parametrize(
    ("name", "own", "q_of"),
    [("DDQN", {}, plain_q), ("DuelingDDQN", {"feature_size": 6}, dueling_q)],
    ids=["ddqn", "dueling"],
)
def test_three_updates_of_double_dqn(name, own, q_of):
    """The online network chooses, the target network judges, nothing follows a termination;
    squared error, mean of the batch.
    """
    agent = ddqn_of(OBS, ACTIONS, SEEDS, name, VARIED, gamma=0.9, tau=TAU, activation="tanh", **own)
    agent.target.data.add_(
        0.5 * torch.randn(agent.target.shape, generator=torch.Generator().manual_seed(0))
    )
    start, start_target = agent.params.clone(), agent.target.clone()
    batches, losses, differ = [random_batch(k, 3, 8, OBS, ACTIONS) for k in range(3)], [], 0
    for batch in batches:
        losses.append(agent.update(batch, ACTIVE, 0))
    for n, (rate, size) in enumerate(zip(RATES[:2], SIZES, strict=False)):
        online, target = leaf(start[n]), start_target[n].clone()
        adam = torch.optim.Adam([online], lr=rate)
        for k, batch in enumerate(batches):
            b = of_member(batch, n, size)
            chosen = q_of(online, b.next_obs).argmax(-1)
            judged = q_of(target, b.next_obs)
            differ += int((chosen != judged.argmax(-1)).sum())
            goal = b.reward + b.discount * judged[torch.arange(size), chosen]
            loss = (
                (q_of(online, b.obs)[torch.arange(size), b.action] - goal.detach()).square().mean()
            )
            close(losses[k][n], loss)
            descend(adam, loss)
            copy(online, target)
        close(agent.params[n], online)
        close_to_adam(agent.adam, n, adam, [online])
        close(agent.greedy_values(batches[0].obs)[n], q_of(online, batches[0].obs[n]))
        close(agent.target[n], target)
    assert differ > 5
    assert torch.equal(agent.params[2], start[2])
    assert torch.equal(agent.target[2], start_target[2])
    assert agent.num_updates.tolist() == [3, 3, 0]


def make_td3(name, learning_starts=0, **options):
    own = off_policy(
        0.9,
        0.01,
        8,
        50,
        TAU,
        (HIDDEN,),
        policy_delay=2,
        action_std=0.1,
        target_std=0.4,
        target_clip=0.5,
    )
    own |= {
        "learning_starts": learning_starts,
        **({} if name == "TD3" else {"layer_norm": False}),
        **options,
    }
    agent = agent_of(name, OBS, 2, SEEDS, VARIED, continuous=name == "TD3", **own)
    g = torch.Generator().manual_seed(1)
    for block, size in (
        (agent.actor_target, agent.actor.size),
        (agent.critic_target, agent.critic.size),
    ):
        block.data[:, :size] += 0.3 * torch.randn(3, size, generator=g)
    agent.smoothing_noise = Given(torch.randn(3, 3, 8, 2, generator=g))
    return agent


def critic_q(params, obs, action):
    return perceptron(params, (OBS + 2, HIDDEN, 1), torch.cat([obs, action], -1), F.relu).squeeze(
        -1
    )


def check_td3(agent, act, clip, penalty=lambda actor, obs: 0.0):
    """Three updates at steps 0, 1, 2 with a policy delay of 2: the actor and all targets move at
    the first and the last.

    act: (actor's parameters, obs, member, step, purpose) -> actions. penalty: (actor's parameters,
    obs) -> of each obs.
    """
    half = count((OBS + 2, HIDDEN, 1))
    start = {
        name: getattr(agent, name).clone()
        for name in ("actor_params", "critic_params", "actor_target", "critic_target")
    }
    batches, losses = [random_batch(10 + k, 3, 8, OBS, action_size=2) for k in range(3)], []
    for step, batch in enumerate(batches):
        losses.append(agent.update(batch, ACTIVE, step))
    for n, (rate, size) in enumerate(zip(RATES[:2], SIZES, strict=False)):
        actor, actor_target = leaf(start["actor_params"][n]), start["actor_target"][n].clone()
        first, second = (leaf(half_of) for half_of in start["critic_params"][n].split(half))
        first_target, second_target = (x.clone() for x in start["critic_target"][n].split(half))
        actor_adam, critic_adam = (
            torch.optim.Adam([actor], lr=rate),
            torch.optim.Adam([first, second], lr=rate),
        )
        for step, batch in enumerate(batches):
            b = of_member(batch, n, size)
            with torch.no_grad():
                noise = (0.4 * agent.smoothing_noise.at(step)[n, :size]).clamp(-0.5, 0.5)
                following = clip(act(actor_target, b.next_obs, n, step, "target") + noise)
                both = [
                    critic_q(target, b.next_obs, following)
                    for target in (first_target, second_target)
                ]
                goal = b.reward + b.discount * torch.minimum(*both)
            loss = sum(
                (critic_q(critic, b.obs, b.action) - goal).square().mean()
                for critic in (first, second)
            )
            close(losses[step][n], loss)
            descend(critic_adam, loss)
            if step % 2 == 0:
                q = critic_q(first, b.obs, act(actor, b.obs, n, step, "actor"))
                descend(actor_adam, (penalty(actor, b.obs) - q).mean())
                for source, target in (
                    (actor, actor_target),
                    (first, first_target),
                    (second, second_target),
                ):
                    copy(source, target)
        close_to_adam(agent.critic_adam, n, critic_adam, [first, second])
        close_to_adam(agent.actor_adam, n, actor_adam, [actor])
        close(agent.critic_params[n], torch.cat([first, second]))
        close(agent.actor_params[n], actor)
        close(agent.actor_target[n], actor_target)
        close(agent.critic_target[n], torch.cat([first_target, second_target]))
    for name, value in start.items():
        assert torch.equal(getattr(agent, name)[2], value[2]), name
    assert agent.actor_adam.num_steps.tolist() == [2, 2, 0]


def test_three_updates_of_td3():
    """Smoothing noise cut at 0.5 on the target's actions, which stay in the box; the smaller of
    two critics; delayed targets.
    """

    def act(params, obs, n, step, purpose):
        return perceptron(params, (OBS, HIDDEN, 2), obs, F.relu).tanh()

    agent = make_td3("TD3")
    assert (0.4 * agent.smoothing_noise.values).abs().max() > 0.5
    check_td3(agent, act, lambda action: action.clamp(-1, 1))


def test_td3_whose_policy_pays_for_saturation():
    """0.7 times the mean over actions of the squared distance to [-1.5, 1.5], by hand 0.7 (0 +
    0.5^2) / 2 for (1, -2).
    """

    def outputs(params, obs):
        return perceptron(params, (OBS, HIDDEN, 2), obs, F.relu)

    def penalty(params, obs):
        outside = outputs(params, obs).abs() - 1.5
        return 0.7 * torch.where(outside > 0, outside**2, 0.0).sum(-1) / 2

    close(0.7 * saturation(torch.tensor([[1.0, -2.0]])), torch.tensor([0.7 * 0.25 / 2]))
    agent = make_td3("TD3", saturation_penalty=0.7)
    agent.actor_params.data *= 4
    assert (
        penalty(agent.actor_params[0], random_batch(10, 3, 8, OBS, action_size=2).obs[0]).max() > 0
    )
    check_td3(
        agent,
        lambda params, obs, n, step, purpose: outputs(params, obs).tanh(),
        lambda a: a.clamp(-1, 1),
        penalty,
    )


@pytest.mark.parametrize(
    ("temperature", "hard"),
    [("fixed", False), ("learnable", True), ("learnable", False), ("annealed", False)],
)
def test_three_updates_of_discrete_td3(temperature, hard):
    """Gumbel-softmax actions; hard ones are one-hot with the gradient of the soft ones.
    Annealing counts the actor's updates.
    """
    agent = make_td3("TD3-discrete", temperature=temperature, temperature_init=0.7, hard=hard)
    g = torch.Generator().manual_seed(2)
    gumbel = {
        purpose: -torch.log(-torch.log(torch.rand(3, 3, 8, 2, generator=g)))
        for purpose in ("target", "actor")
    }
    agent._gumbel = {purpose: Given(values) for purpose, values in gumbel.items()}
    size = count((OBS, HIDDEN, 2))

    def act(params, obs, n, step, purpose):
        updates = {0: 0, 1: 1, 2: 1}[step]
        heat = {
            "fixed": 0.7,
            "learnable": params[-1],
            "annealed": 0.7 + (0.035 - 0.7) * updates / 2000,
        }[temperature]
        logits = perceptron(params[:size], (OBS, HIDDEN, 2), obs, F.relu)
        soft = ((logits + gumbel[purpose][step][n, : len(obs)]) / heat).softmax(-1)
        return F.one_hot(soft.argmax(-1), 2) + soft - soft.detach() if hard else soft

    check_td3(agent, act, lambda action: action)


def test_the_temperature_of_a_sample_has_a_floor():
    """It starts at 0.05, not at 0.01; soft samples of equal logits then have the odds exp((g1 -
    g2) / 0.05).
    """
    agent = make_td3("TD3-discrete", temperature="learnable", temperature_init=0.01, hard=False)
    agent.actor_params.data[:, :-1] = 0
    agent._gumbel["act"] = Given(torch.tensor([[[0.1, 0.0]] * 3]))
    agent.explore_noise = Given(torch.zeros(1, 3, 2))
    odds = torch.tensor(2.0).exp()
    close(
        agent.act(torch.ones(3, OBS), torch.ones(3), 0),
        torch.stack([odds, torch.tensor(1.0)]).expand(3, 2) / (1 + odds),
    )


def test_no_update_leaves_a_temperature_below_its_floor():
    agent = make_td3("TD3-discrete", temperature="learnable", temperature_init=0.01, hard=False)
    assert agent.actor_params[:, -1].tolist() == pytest.approx([0.05] * 3)
    agent.actor_params.data[:, -1] = -1.0
    agent.update(random_batch(10, 3, 8, OBS, action_size=2), None, 0)
    assert agent.actor_params[:, -1].tolist() == pytest.approx([0.05] * 3)


def test_td3_acts_at_random_first_and_then_with_noise():
    """Two episodes of uniform actions; then tanh of the actor, plus 0.1 times normal noise, in
    the box.
    """
    agent = make_td3("TD3", learning_starts=2)
    uniform, normal = torch.rand(1, 3, 2), torch.tensor([[[9.0, -9.0], [1.0, -1.0], [20.0, -20.0]]])
    agent.uniform_noise, agent.explore_noise = Given(uniform), Given(normal)
    obs = torch.randn(3, OBS)
    action = agent.act(obs, torch.tensor([1, 2, 3]), 0)
    mean = torch.stack(
        [
            perceptron(agent.actor_params[n], (OBS, HIDDEN, 2), obs[n], F.relu).tanh()
            for n in range(3)
        ]
    )
    close(action[0], 2 * uniform[0, 0] - 1)
    close(action[1:], (mean + 0.1 * normal[0])[1:].clamp(-1, 1))
    close(agent.greedy(obs.unsqueeze(1)).squeeze(1), mean)


class Spy(DDQN):
    """Writes down its batches."""

    def update(self, batch, active, step):
        self.seen = [*getattr(self, "seen", []), batch.obs]
        return super().update(batch, active, step)


def test_every_update_draws_another_batch_for_every_member():
    """A memory of 20 whose place k always holds k, so equal draws would be equal batches; who is
    not active does not learn.
    """
    agent = Spy(config("DDQN", **off_policy(0.9, 0.01, 16, 20, TAU, (4,))), Task(1, 2), [1, 2])
    start, nobody = agent.params.clone(), torch.tensor([False, False])
    for step in range(40):
        obs, first = torch.full((2, 1), float(step % 20)), torch.tensor([True, False])
        transition = Transition(obs, torch.tensor([0, 1]), obs[:, 0], torch.zeros(2), obs)
        agent.learn(transition, nobody, step, first if step > 37 else nobody)
    one, two = agent.seen
    assert len(agent.seen) == 2
    assert not torch.equal(one, two)
    assert not torch.equal(one[0], one[1])
    assert len(torch.cat([one, two]).unique()) > 15
    assert not torch.equal(agent.params[0], start[0])
    assert torch.equal(agent.params[1], start[1])


def one_hot_step(place, action, reward, discount, after):
    eye = torch.eye(4)
    return Transition(
        eye[place], torch.tensor(action), torch.tensor(reward), torch.tensor(discount), eye[after]
    )


@pytest.mark.parametrize("sarsa", [False, True])
def test_two_updates_of_a_table(sarsa):
    """Rate 0.5, epsilon 0.5. SARSA's next action is drawn: member 0 explores action 0, member 1
    takes its best, 1.

    Member 2 does not learn. The second step terminates.
    """
    agent = table_of(4, 2, SEEDS, 0.8, 0.5, 0.5, 0.5, 1.0, name="SARSA" if sarsa else "QL")
    agent.table.data.copy_(torch.tensor([[1.0, 2.0], [3.0, 5.0], [4.0, 7.0], [6.0, 8.0]]))
    agent.explore_noise_next = Given(torch.tensor([[[0.4, 0.1], [0.6, 0.1], [0.4, 0.1]]] * 2))
    agent.act(
        torch.eye(4)[:3], torch.zeros(3, dtype=torch.int64), 0
    )  # which sets the rate of exploration
    step = one_hot_step([0, 1, 2], [1, 0, 1], [1.0, 2.0, 3.0], [0.8, 0.8, 0.8], [1, 2, 3])
    agent.learn(step, torch.zeros(3, dtype=torch.bool), 0, ACTIVE)
    end = one_hot_step([1, 1, 1], [1, 1, 1], [10.0, 10.0, 10.0], [0.0, 0.0, 0.0], [3, 3, 3])
    agent.learn(end, torch.ones(3, dtype=torch.bool), 1, ACTIVE)
    following = 3.0 if sarsa else 5.0
    first = [
        [1.0, 2 + 0.5 * (1 + 0.8 * following - 2)],
        [3.0, 5 + 0.5 * (10 - 5)],
        [4.0, 7.0],
        [6.0, 8.0],
    ]
    second = [[1.0, 2.0], [3 + 0.5 * (2 + 0.8 * 7 - 3), 5 + 0.5 * (10 - 5)], [4.0, 7.0], [6.0, 8.0]]
    third = [[1.0, 2.0], [3.0, 5.0], [4.0, 7.0], [6.0, 8.0]]
    torch.testing.assert_close(agent.table, torch.tensor([first, second, third]))
    assert agent.num_updates.tolist() == [2, 2, 0]
