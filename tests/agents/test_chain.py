"""Every agent finds the known values of a chain with an end, a time limit and a discount, and the
best policy.

A bootstrap over the end, none at the time limit, another discount, a target network that stands
still or a reward of the wrong step each move a value by more than the tolerance;
``helpers/chain.py`` works the values out.
"""

import pytest
import torch
from helpers.chain import BEST, EYE, GAMMA, HORIZON, Chain, ContinuousChain, Q, V
from helpers.members import agent_of, ddqn_of, epsilon, off_policy, ppo_of, table_of
from helpers.model_based import config

from lightning_rl.agents.model_based import ModelBasedDQN
from lightning_rl.agents.training import MemberTraining
from lightning_rl.envs.batch import FuncBatch
from lightning_rl.methods.model_based import StepTraining
from lightning_rl.nets.members import MemberMLP

SEEDS = [1, 2, 3, 4, 5]
OBS = EYE.expand(len(SEEDS), 3, 3)


def trained(agent, env, steps):
    """The agent after so many steps of every member."""
    training = MemberTraining(agent, FuncBatch(env, HORIZON, agent.seeds), steps, GAMMA)
    training.run(steps)
    return agent


def close(values, known, tolerance):
    """The median of the members: one may still be on its way."""
    torch.testing.assert_close(values.median(0).values, known, rtol=0, atol=tolerance)


def acts_best(agent):
    """Whether most members go on where that is best, and nowhere else."""
    action = agent.greedy(OBS)
    on = action.squeeze(-1) > 0 if action.is_floating_point() else action == 1
    return torch.equal(on.sum(0) > len(SEEDS) / 2, BEST == 1)


def tabular(members, rate, share, sarsa):
    return table_of(
        3, 2, list(range(members)), GAMMA, rate, share, share, 1.0, name="SARSA" if sarsa else "QL"
    )


def test_q_learning_finds_the_values_of_the_best_policy_while_it_explores():
    agent = trained(tabular(8, rate=0.5, share=0.5, sarsa=False), Chain(), 400)
    close(agent.table, Q, 1e-3)


def test_sarsa_finds_the_values_of_the_policy_that_explores():
    """At epsilon 0.4 the best action has probability 0.8, the other 0.2, and V = 0.8 max Q + 0.2
    min Q:

    state 2: V = 0.8 * 1 + 0.2 * 0.8 V = 0.8 / 0.84 = 0.95238, stay 0.8 V = 0.76190.
    state 1: on 0.76190, V = 0.8 * 0.76190 + 0.2 * 0.8 V = 0.72562, stay 0.58050.
    state 0: on -0.84 + 0.8 * 0.72562 = -0.25950, V = 0.8 (0.15 + 0.8 V) + 0.2 * -0.25950 = 0.18917,
    stay 0.30133.
    """
    agent = trained(tabular(100, rate=0.1, share=0.4, sarsa=True), Chain(), 1500)
    known = torch.tensor([[0.30133, -0.25950], [0.58050, 0.76190], [0.76190, 1.0]])
    torch.testing.assert_close(
        agent.table.mean(0), known, rtol=0, atol=0.02
    )  # the table follows a random target


@pytest.mark.parametrize("name", ["DDQN", "DuelingDDQN"])
def test_double_dqn_finds_the_values(name):
    own = {"activation": "tanh", "feature_size": 8} if name == "DuelingDDQN" else {}
    settings = {
        "gamma": GAMMA,
        "learning_rate": 0.02,
        "replay_size": 500,
        **epsilon(1.0, 0.5, 0.99),
        **own,
    }
    agent = trained(ddqn_of(3, 2, SEEDS, name, **settings), Chain(), 450)
    close(agent.greedy_values(OBS), Q, 0.03)
    assert acts_best(agent)


NOISE = {
    "action_std": 0.5,
    "target_std": 0.02,
    "target_clip": 0.05,
}  # smoothing is noise on the values: little of it
TD3_SETTINGS = off_policy(
    GAMMA, 0.02, 32, 1000, 0.1, (16,), policy_delay=2, learning_starts=60, **NOISE
)


def linear_actor(agent):
    """The agent with an actor without hidden layers, which learns this chain faster than its
    critic does.
    """
    agent.actor = MemberMLP(3, (), agent.actor.out_size)
    agent.actor_params.data = agent.extended(agent.actor.init(agent.generators("actor")))
    agent.actor_target.data = agent.actor_params.data.clone()
    return agent


def critics(agent, actions):
    """The smaller value of both critics at each state for each of two actions, ``[N, 3, 2]``."""
    return torch.stack(
        [
            agent.critic(agent.critic_params, OBS, a.expand(*OBS.shape[:2], -1)).amin(1)
            for a in actions
        ],
        -1,
    )


def test_td3_finds_the_values():
    agent = trained(
        linear_actor(agent_of("TD3", 3, 1, SEEDS, continuous=True, **TD3_SETTINGS)),
        ContinuousChain(),
        1000,
    )
    q = critics(agent, torch.tensor([[-1.0], [1.0]]))
    close(q, Q, 0.25)  # what is rarely done is known less well
    close(q.amax(-1), V, 0.12)
    assert acts_best(agent)


@pytest.mark.parametrize("temperature", ["fixed", "learnable"])
def test_discrete_td3_finds_the_values(temperature):
    heat = {
        "temperature": temperature,
        "temperature_init": 1.0,
        "hard": temperature == "learnable",
        "layer_norm": False,
    }
    agent = trained(
        linear_actor(agent_of("TD3-discrete", 3, 2, SEEDS, **TD3_SETTINGS, **heat)), Chain(), 800
    )
    close(critics(agent, torch.eye(2)), Q, 0.15)
    assert acts_best(agent)


@pytest.mark.parametrize("env", [Chain(), ContinuousChain()], ids=["discrete", "continuous"])
def test_ppo_finds_the_values(env):
    out = 1 if env.continuous else 2
    agent = ppo_of(3, out, SEEDS, env.continuous, gamma=GAMMA)
    trained(agent, env, 20 * 64)
    close(
        agent.critic(agent.params[:, agent.actor.size :][:, : agent.critic.size], OBS).squeeze(-1),
        V,
        0.1,
    )
    assert acts_best(agent)


def model_based(kind):
    cfg = config(
        kind,
        gamma=GAMMA,
        temperature=1.0,
        learning_rate=0.01,
        model_learning_rate=0.02,
        weight_decay=1e-9,
        batch_size=16,
        rollout_length=3,
        replay_size=500,
        target_interval=20,
        hidden=[16],
        variables=8 if kind == "gaussian" else 3,
    )
    return ModelBasedDQN(cfg, Chain(), SEEDS)


@pytest.mark.parametrize(
    ("kind", "steps", "tolerance"),
    [
        ("replay", 400, 0.05),
        ("environment", 400, 0.05),
        ("simple", 450, 0.1),
        ("categorical", 600, 0.15),
        ("gaussian", 700, 0.2),
    ],
)
def test_model_based_agents_find_the_values(kind, steps, tolerance):
    """Nothing cuts their episodes; what was seen at the end of one is the state that pays."""
    agent = model_based(kind)
    StepTraining(agent).run(steps)
    q = agent.values(OBS, None)
    close(q, Q, tolerance)
    assert torch.equal(q.median(0).values.argmax(-1), BEST)
