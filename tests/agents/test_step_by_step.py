"""Updates of TD3, PPO and DDQN are those of Stable-Baselines3, from equal weights on equal batches.

What differs by intention is set aside here: each by a key of ours, or, where there is none, by what
a test changes in theirs. ``docs/ppo_details.md`` and ``docs/stacked_agents/details.md`` list it.
"""

import gymnasium
import numpy as np
import pytest
import torch
from gymnasium import spaces
from helpers.members import agent_of, epsilon, off_policy
from helpers.reference_updates import Given
from torch import nn

from lightning_rl.agents.base import Transition

sb3 = pytest.importorskip("stable_baselines3")

OBS, ACTIONS, MEMORY, BATCH = 4, 2, 300, 16
GAMMA, TAU, RATE, HIDDEN = 0.95, 0.02, 1e-3, (32, 32)
CLOSE = 1e-5
UPDATES = [100, pytest.param(1000, marks=pytest.mark.slow)]
KERNELS = ["torch", "numba"]


class Spaces(gymnasium.Env):
    """A task that nobody plays."""

    observation_space = spaces.Box(-np.inf, np.inf, (OBS,))

    def __init__(self, action_space):
        self.action_space = action_space


def theirs(kind, action_space, env=Spaces, **settings):
    """An agent of Stable-Baselines3 that logs nothing."""
    settings = {"learning_rate": RATE, "gamma": GAMMA, "batch_size": BATCH, **settings}
    layers = {"net_arch": list(HIDDEN), "activation_fn": nn.Tanh}
    task = env(action_space)
    agent = kind("MlpPolicy", task, seed=0, device="cpu", policy_kwargs=layers, **settings)
    agent.set_logger(sb3.common.logger.configure(None, []))
    return agent


def off_policy_keys(**settings):
    return off_policy(GAMMA, RATE, BATCH, MEMORY, TAU, HIDDEN, "tanh", **settings)


def steps_of(discrete):
    """Transitions ``[1, ..]`` of which every seventh terminates; every fifth is cut by time."""
    draw = torch.Generator().manual_seed(1)
    for k in range(MEMORY):
        obs, next_obs = torch.randn(2, 1, OBS, generator=draw)
        action = 2 * torch.rand(1, ACTIONS, generator=draw) - 1
        if discrete:
            action = torch.randint(ACTIONS, (1,), generator=draw)
        terminated = torch.tensor([k % 7 == 0])
        reward = 3 * torch.randn(1, generator=draw)
        yield Transition(obs, action, reward, GAMMA * ~terminated, next_obs), terminated


def fill(ours, others, discrete):
    """The same transitions for both."""
    for k, (step, terminated) in enumerate(steps_of(discrete)):
        cut = not terminated and k % 5 == 0
        over = terminated | cut
        ours.replay.store(step, over)
        obs, action, reward, _, next_obs = (each.numpy() for each in step)
        info = {"TimeLimit.truncated": cut}
        others.replay_buffer.add(obs, next_obs, action, reward, over.numpy(), [info])


def draws(number):
    """Rows of the memory of each batch: as numbers, and as noise that draws them."""
    rows = np.random.default_rng(2).integers(MEMORY, size=(number, BATCH))
    return rows, torch.from_numpy((rows + 0.5) / MEMORY).unsqueeze(1)


def give(others, rows):
    """The next batch of theirs has these rows."""
    buffer = others.replay_buffer
    buffer.sample = lambda size, env: buffer._get_samples(rows, env)


def assert_equal(net, params, modules, moved_from):
    """Each network of a block ``[1, D]`` has their weights, and these have moved."""
    expected = torch.cat([net.from_modules([each]) for each in modules], dim=1)
    torch.testing.assert_close(params, expected, rtol=CLOSE, atol=CLOSE)
    assert (params - moved_from).abs().max() > 0.01


@torch.no_grad()
def start_as(net, params, modules):
    params.copy_(torch.cat([net.from_modules([each]) for each in modules], dim=1))


@pytest.mark.parametrize("kernels", KERNELS)
@pytest.mark.parametrize("updates", UPDATES)
def test_updates_of_td3(updates, kernels):
    """Theirs counts updates from 1, ours decisions from 0, so that it is told those numbers."""
    keys = {"policy_delay": 2, "target_std": 0.3, "target_clip": 0.4}
    ours = agent_of(
        "TD3", OBS, ACTIONS, [0], continuous=True, kernels=kernels, **off_policy_keys(**keys)
    )
    others = theirs(
        sb3.TD3,
        spaces.Box(-1, 1, (ACTIONS,)),
        buffer_size=MEMORY,
        tau=TAU,
        policy_delay=2,
        target_policy_noise=0.3,
        target_noise_clip=0.4,
    )
    nets = {
        "actor": (ours.actor, ours.actor_params, [others.actor.mu]),
        "critic": (ours.critic.net, ours.critic_params, others.critic.q_networks),
        "actor target": (ours.actor, ours.actor_target, [others.actor_target.mu]),
        "critic target": (ours.critic.net, ours.critic_target, others.critic_target.q_networks),
    }
    for net, params, modules in nets.values():
        start_as(net, params, modules)
    start = {name: params.clone() for name, (_, params, _) in nets.items()}
    fill(ours, others, discrete=False)
    rows, noise = draws(updates)
    for k in range(updates):
        give(others, rows[k])
        torch.manual_seed(k)
        others.train(1, BATCH)
        torch.manual_seed(k)
        ours.smoothing_noise = Given({k + 1: torch.empty(1, BATCH, ACTIONS).normal_()})
        ours.learn_from_replay(noise[k], None, k + 1)
    for name, (net, params, modules) in nets.items():
        assert_equal(net, params, modules, start[name])


@pytest.mark.parametrize("kernels", KERNELS)
@pytest.mark.parametrize("updates", UPDATES)
def test_updates_of_dqn(updates, kernels):
    """Theirs moves the target network before an update, ours after it: the first of theirs moves
    nothing, and the last one is made here.
    """
    keys = {"double": False, "loss": "huber", "max_grad_norm": 0.5, **epsilon(1.0, 0.1, 0.9)}
    ours = agent_of("DDQN", OBS, ACTIONS, [0], kernels=kernels, **off_policy_keys(**keys))
    others = theirs(
        sb3.DQN, spaces.Discrete(ACTIONS), buffer_size=MEMORY, tau=TAU, max_grad_norm=0.5
    )
    compare_values(ours, others, updates)


class DoubleTarget(nn.Module):
    """Of Stable-Baselines3's, which has no double DQN: the highest of what it gives is the target
    network's value of the action that the other network chooses.
    """

    def __init__(self, net, target):
        super().__init__()
        self.net, self.target = net, target

    def forward(self, obs):
        best = self.net(obs).argmax(1, keepdim=True)
        return self.target(obs).gather(1, best)


@pytest.mark.parametrize("kernels", KERNELS)
@pytest.mark.parametrize("updates", UPDATES)
def test_updates_of_double_dqn(updates, kernels, monkeypatch):
    """With the squared error of our default, and gradients that are not clipped."""
    monkeypatch.setattr("stable_baselines3.dqn.dqn.F.smooth_l1_loss", nn.functional.mse_loss)
    keys = epsilon(1.0, 0.1, 0.9)
    ours = agent_of("DDQN", OBS, ACTIONS, [0], kernels=kernels, **off_policy_keys(**keys))
    others = theirs(
        sb3.DQN, spaces.Discrete(ACTIONS), buffer_size=MEMORY, tau=TAU, max_grad_norm=np.inf
    )
    target = others.q_net_target
    others.q_net_target = DoubleTarget(others.q_net, target)
    compare_values(ours, others, updates, target)


def compare_values(ours, others, updates, target=None):
    """Trains both value networks, and compares them and their targets."""
    target = target or others.q_net_target
    nets = {
        "net": (ours.params, [others.q_net.q_net]),
        "target": (ours.target, [target.q_net]),
    }
    for params, modules in nets.values():
        start_as(ours.net, params, modules)
    start = {name: params.clone() for name, (params, _) in nets.items()}
    fill(ours, others, discrete=True)
    rows, noise = draws(updates)
    for k in range(updates):
        give(others, rows[k])
        others.train(1, BATCH)
        sb3.common.utils.polyak_update(others.q_net.parameters(), target.parameters(), TAU)
        ours.learn_from_replay(noise[k], None, k)
    for name, (params, modules) in nets.items():
        assert_equal(ours.net, params, modules, start[name])


class Script(Spaces):
    """A task whose observations and rewards are written down; every ninth step terminates, every
    seventh is cut by time.
    """

    def __init__(self, action_space):
        super().__init__(action_space)
        self.draw = np.random.default_rng(3)
        self.seen = []
        self.obs = None

    def reset(self, *, seed=None, options=None):
        self.obs = self.draw.normal(size=OBS).astype(np.float32)
        return self.obs, {}

    def step(self, action):
        k = len(self.seen)
        terminated, truncated = k % 9 == 8, k % 7 == 6
        reward = float(np.float32(self.draw.normal()))
        before = self.obs
        self.reset()
        self.seen.append((before, reward, terminated, terminated or truncated, self.obs))
        return self.obs, reward, terminated, truncated, {}


def scripted(script, t, action):
    """A transition ``[1, ..]`` of those that were seen, and whether the episode ended there."""
    obs, reward, terminated, over, next_obs = script.seen[t]
    step = Transition(
        torch.from_numpy(obs).unsqueeze(0),
        action,
        torch.tensor([reward]),
        torch.tensor([GAMMA * (not terminated)]),
        torch.from_numpy(next_obs).unsqueeze(0),
    )
    return step, torch.tensor([over])


@pytest.mark.parametrize("kernels", KERNELS)
def test_an_update_after_every_third_decision(kernels):
    """Their key train_freq; their target network moves as often, before an update."""
    keys = {"double": False, "loss": "huber", "max_grad_norm": 0.5, **epsilon(1.0, 0.1, 0.9)}
    keys = {**off_policy_keys(**keys, train_interval=3), "tau": 0.5}
    ours = agent_of("DDQN", OBS, ACTIONS, [0], kernels=kernels, **keys)
    others = theirs(
        sb3.DQN,
        spaces.Discrete(ACTIONS),
        env=Script,
        buffer_size=MEMORY,
        tau=0.5,
        max_grad_norm=0.5,
        learning_starts=0,
        train_freq=3,
        target_update_interval=3,
    )
    start_as(ours.net, ours.params, [others.q_net.q_net])
    start_as(ours.net, ours.target, [others.q_net.q_net])
    start, buffer = ours.params.clone(), others.replay_buffer
    rows = [np.random.default_rng(t).integers(t + 1, size=BATCH) for t in range(51)]
    noise = {t: torch.from_numpy((rows[t] + 0.5) / (t + 1)).unsqueeze(0) for t in range(51)}
    buffer.sample = lambda size, env: buffer._get_samples(rows[buffer.pos - 1], env)
    others.learn(51)
    target = others.q_net_target
    sb3.common.utils.polyak_update(others.q_net.parameters(), target.parameters(), 0.5)
    ours.replay_noise = Given(noise)
    for t in range(51):
        step, over = scripted(
            others.env.envs[0].unwrapped, t, torch.from_numpy(buffer.actions[t, 0])
        )
        ours.learn(step, over, t, None)
    assert int(ours.num_updates[0]) == others._n_updates == 17
    assert_equal(ours.net, ours.params, [others.q_net.q_net], start)
    assert_equal(ours.net, ours.target, [target.q_net], start)


PPO_KEYS = {"clip": 0.1, "entropy_coef": 0.01, "value_coef": 0.7, "gae_lambda": 0.9}


def ppo_modules(policy):
    """Their actor and critic, laid out as ours."""
    actor = nn.Sequential(*policy.mlp_extractor.policy_net, policy.action_net)
    critic = nn.Sequential(*policy.mlp_extractor.value_net, policy.value_net)
    return actor, critic


def ppo_params(ours, policy):
    """The block ``[1, D]`` that their weights are."""
    actor, critic = ppo_modules(policy)
    blocks = [ours.actor.from_modules([actor]), ours.critic.from_modules([critic])]
    if ours.continuous:
        blocks.append(policy.log_std.detach().unsqueeze(0))
    return torch.cat(blocks, dim=1)


def play(ours, others, callback):
    """Both get a roll-out of theirs, and learn from the same minibatches."""
    steps, epochs = ours.cfg.rollout_steps, ours.cfg.epochs
    script = others.env.envs[0].unwrapped
    script.seen.clear()
    others.collect_rollouts(others.env, callback, others.rollout_buffer, steps)
    actions = torch.from_numpy(others.rollout_buffer.actions)
    np.random.seed(len(script.seen))
    orders = np.stack([np.random.permutation(steps) for _ in range(epochs)])
    np.random.seed(len(script.seen))
    others.train()
    ours._shuffle = Given(torch.from_numpy(orders.argsort(axis=1)).unsqueeze(1))
    for t in range(len(script.seen)):
        action = actions[t] if ours.continuous else actions[t, :, 0].long()
        step, over = scripted(script, t, action)
        ours.learn(step, over, t, None)


@pytest.mark.parametrize("kernels", KERNELS)
@pytest.mark.parametrize("continuous", [False, True])
@pytest.mark.parametrize("updates", UPDATES)
def test_updates_of_ppo(updates, continuous, kernels):
    """From orthogonal weights; the test puts the tanh of our means of actions behind theirs."""
    ours = agent_of(
        "PPO",
        OBS,
        ACTIONS,
        [0],
        continuous=continuous,
        kernels=kernels,
        gamma=GAMMA,
        learning_rate=RATE,
        hidden=list(HIDDEN),
        rollout_steps=2 * BATCH,
        batch_size=BATCH,
        epochs=5,
        max_grad_norm=0.5,
        adam_eps=1e-5,
        **PPO_KEYS,
    )
    others = theirs(
        sb3.PPO,
        spaces.Box(-1, 1, (ACTIONS,)) if continuous else spaces.Discrete(ACTIONS),
        env=Script,
        n_steps=2 * BATCH,
        n_epochs=5,
        clip_range=0.1,
        ent_coef=0.01,
        vf_coef=0.7,
        gae_lambda=0.9,
        max_grad_norm=0.5,
    )
    start = ppo_params(ours, others.policy)
    ours.params.data.copy_(start)
    if continuous:
        others.policy.action_net = nn.Sequential(others.policy.action_net, nn.Tanh())
    _, callback = others._setup_learn(10**6, None)
    for _ in range(updates // 10):
        play(ours, others, callback)
    expected = ppo_params(ours, others.policy)
    torch.testing.assert_close(ours.params.data, expected, rtol=CLOSE, atol=CLOSE)
    assert (expected - start).abs().max() > 0.01
