"""One epoch of RCP-R and of RCP-A against the formulas written out in plain torch: labels, weights,
steps, averages, target.

The optimizers are plain gradient descent, so that a weight or a factor that is lost shows: Adam's
first step hides both.
"""

import copy
import dataclasses

import numpy as np
import pytest
import torch
from helpers import methods
from helpers.method_updates import assert_close, descend, leaves, log_softmax_of, relu_net
from helpers.methods import attach
from helpers.toys import make_episode
from torch.optim import Adam

from lightning_rl.methods.upside_down import critic
from lightning_rl.methods.upside_down.rollouts import UpsideDownEpoch
from lightning_rl.rollouts.episode_buffer import flatten

RATE, CRITIC_RATE, AVERAGING, GATE_SCALE = 0.05, 0.02, 0.8, 2.0
SHARED = {
    "gamma": 0.5,
    "temperature": 0.5,
    "max_weight": 10.0,
    "tau": 1 - AVERAGING,
    "gate_scale": GATE_SCALE,
    "max_grad_norm": None,
    "anneal_from": 1.0,
    "target": "tilted",
    "target_temperature": 0.7,
    "output_scale": 1.0,
    "label_max": None,
}


def build(name, gamename="cartpole", **settings):
    """A method whose optimizers are plain gradient descent, and whose average is not the
    learner.
    """
    method = methods.build(name, gamename, **{**SHARED, **settings})
    descents = [torch.optim.SGD(method.learner.parameters(), RATE)]
    if name == "RCP-A":
        descents.append(torch.optim.SGD(method.critic.parameters(), CRITIC_RATE))
    attach(method, *descents)
    with torch.no_grad():
        for parameter in method.policy.parameters():
            parameter.add_(0.1)
    return method


def epoch_of(rewards, ends, policy, critic=()):
    """An epoch on these episodes; obs count the steps, further apart for later episodes."""
    episodes = []
    for number, (reward, truncated) in enumerate(zip(rewards, ends, strict=True)):
        episode = make_episode(reward)
        obs = (0.3 * episode.obs + 0.5 * number) * np.array([1.0, -0.5, 0.2, 0.8], dtype=np.float32)
        episodes.append(
            dataclasses.replace(
                episode, obs=obs.astype(np.float32), terminated=not truncated, truncated=truncated
            )
        )
    flat, index = (
        flatten(episodes),
        {"policy": torch.tensor(policy), **({"critic": torch.tensor(critic)} if critic else {})},
    )
    return UpsideDownEpoch(flat, index, None, None, 9, len(rewards), 0, {})


def gated(parameters, obs, command):
    """Logits of a network of ReLU layers that are multiplied by gates."""
    *_, gates, gate_bias, out, out_bias = parameters
    layers, gate, x, start = (
        parameters[:-4],
        GATE_SCALE * torch.sigmoid(command @ gates.T + gate_bias),
        obs,
        0,
    )
    for weight, bias in zip(layers[::2], layers[1::2], strict=True):
        x = torch.relu(x @ weight.T + bias) * gate[:, start : start + len(bias)]
        start += len(bias)
    return x @ out.T + out_bias


def written_out_policy_steps(method, flat, index, scaled, weight):
    """The learner and its average after the steps that ``index`` asks for; scaled: what the
    network makes of the commands.
    """
    learner, average = leaves(method.learner), [p.clone() for p in method.policy.parameters()]
    losses = []
    for rows in index:
        logits = gated(learner, flat.obs[flat.row[rows]], scaled[rows, None])
        loss = -(weight[rows] * log_softmax_of(logits, flat.action[rows])).sum() / len(rows)
        losses.append(float(loss.detach()))
        descend(learner, loss, RATE)
        average = [
            AVERAGING * old + (1 - AVERAGING) * new.detach()
            for old, new in zip(average, learner, strict=True)
        ]
    return learner, average, sum(losses) / len(losses)


def exponential(value_of, temperature):
    """exp of the standardised value over the temperature, at most 10, scaled to mean 1."""
    z = (value_of - value_of.mean()) / (value_of.std(correction=0) + 1e-5)
    weight = (z / temperature).exp().clamp(max=10.0)
    return weight / weight.mean()


def tilted(command, weight):
    share = weight / weight.sum()
    mean = (share * command).sum()
    return [
        float(mean),
        float((share * (command - mean).square()).sum().sqrt()),
        float(command.min()),
        float(command.max()),
    ]


@pytest.mark.parametrize(
    ("weights", "value_of"), [("return_to_go", [3.0, 4, 4, 8]), ("episode_return", [7.0, 7, 7, 8])]
)
@pytest.mark.parametrize("target_labels", ["step", "episode"])
def test_an_epoch_of_rcp_r_by_hand(weights, value_of, target_labels):
    """Rewards 1, 2, 4 and 8 with discount 1/2: returns-to-go 3, 4, 4 and 8."""
    method = build("RCP-R", weights=weights, target_labels=target_labels)
    with torch.no_grad():
        list(method.policy.parameters())[-3][:4] = 10.0  # the biases of 4 of the 16 gates
    logged = {}
    method.log_scalars = logged.update
    epoch = epoch_of([[1.0, 2.0, 4.0], [8.0]], [False, True], [[3, 0, 1], [2, 3, 3]])
    label = torch.tensor([3.0, 4.0, 4.0, 8.0])
    weight = exponential(torch.tensor(value_of), 0.5)
    assert weight.max() > 2 * weight.min()
    scaled = (label - 4.75) / (float(np.sqrt(3.6875)) + 1e-5)
    learner, average, loss = written_out_policy_steps(
        method, epoch.episodes, epoch.index["policy"], scaled, weight
    )
    method.train_epoch(epoch)
    assert_close(method.learner, learner)
    assert_close(method.policy, average)
    assert logged["train/policy_loss"] == pytest.approx(loss, rel=1e-5)
    asked = label[[3, 0, 1, 2, 3, 3]] if target_labels == "step" else label[[0, 3]]
    assert method.target.numbers.tolist() == pytest.approx(
        tilted(asked, exponential(asked, 0.7)), rel=1e-5
    )
    assert [logged[f"command/target_{name}"] for name in ("mean", "sd")] == method.target.numbers[
        :2
    ].tolist()
    assert method.target.probes.tolist() == pytest.approx(
        [float(asked.quantile(0.1)), float(asked.quantile(0.9))]
    )
    assert logged["train/label_sd"] == pytest.approx(float(np.sqrt(3.6875)))
    assert logged["train/gate_saturation"] == 4 / 16
    rows = epoch.index["policy"][-1]
    shares = (
        gated(average, epoch.episodes.obs[epoch.episodes.row[rows]], scaled[rows, None])
        .detach()
        .softmax(-1)
    )
    assert logged["train/entropy"] == pytest.approx(
        -float((shares * shares.log()).sum(-1).mean()), rel=1e-5
    )
    assert (int(method.env_steps), int(method.episodes), int(method.num_updates)) == (9, 2, 2)
    assert logged["train/effective_sample_share"] == pytest.approx(
        float(weight.sum() ** 2 / (weight.square().sum() * 4))
    )


def lambda_returns(rewards, truncated, values, discount, trace):
    """Backwards through each episode; values hold one more entry for each than it has steps."""
    labels, start = [], 0
    for number, reward in enumerate(rewards):
        end, after, episode = len(reward), 0.0, []
        following = values[start + 1 : start + end + 1].tolist()
        for t in reversed(range(end)):
            if t == end - 1:
                after = reward[t] + (discount * following[t] if truncated[number] else 0.0)
            else:
                after = reward[t] + discount * ((1 - trace) * following[t] + trace * after)
            episode.insert(0, after)
        labels, start = labels + episode, start + end + 1
    return torch.tensor(labels)


@pytest.mark.parametrize(
    ("weights", "bootstrap", "label_max"),
    [
        ("advantage", True, None),
        ("advantage", False, 0.3),
        ("fitted_advantage", True, None),
        ("fitted_advantage", False, 0.3),
    ],
)
def test_an_epoch_of_rcp_a_by_hand(weights, bootstrap, label_max):
    """The critic is fitted first, to returns that stay fixed meanwhile; advantages come from its
    values after that.
    """
    rewards, truncated = [[1.0, 2.0, -1.0], [2.0, 0.5]], [False, True]
    method = build(
        "RCP-A",
        bootstrap_truncated=bootstrap,
        value_scale=2.0,
        value_lambda=0.8,
        gae_lambda=0.6,
        weights=weights,
        critic_max_grad_norm=1e9,
        command_limit=1.2,
        label_max=label_max,
    )
    logged = {}
    method.log_scalars = logged.update
    epoch = epoch_of(
        rewards,
        truncated,
        [[4, 0, 1], [2, 3, 0]],
        [[0, 1, 2, 3, 4], [4, 3, 3, 1, 0], [1, 1, 2, 4, 0]],
    )
    window, ends = epoch.episodes, [t and bootstrap for t in truncated]
    critic = leaves(method.critic)

    def values():
        return 2.0 * relu_net(critic, window.obs).detach()[:, 0]

    before = values()
    target = lambda_returns(rewards, ends, before, 0.5, 0.8) / 2.0
    for rows in epoch.index["critic"]:
        output = relu_net(critic, window.obs[window.row[rows]])
        loss = (output[:, 0] - target[rows]).square().mean()
        if (
            weights == "fitted_advantage"
        ):  # an output for each action, which learns from the steps that took it
            loss = (
                loss
                + (output[torch.arange(len(rows)), 1 + window.action[rows]] - target[rows])
                .square()
                .mean()
            )
        descend(critic, loss, CRITIC_RATE)
    after = values()
    assert (after - before).abs().max() > 0.05
    label = lambda_returns(rewards, ends, after, 0.5, 0.6) - after[window.row]
    label = label if label_max is None else label.clamp(max=label_max)
    assert label_max is None or (label == label_max).any()
    command = ((label - label.mean()) / (label.std(correction=0) + 1e-5)).clamp(-1.2, 1.2)
    fitted = 2.0 * relu_net(critic, window.obs[window.row]).detach()
    fitted = (
        fitted[torch.arange(len(label)), 1 + window.action] - fitted[:, 0]
        if weights == "fitted_advantage"
        else label
    )
    weight = exponential(fitted if label_max is None else fitted.clamp(max=label_max), 0.5)
    learner, average, loss = written_out_policy_steps(
        method, window, epoch.index["policy"], command, weight
    )
    method.train_epoch(epoch)
    assert_close(method.critic, critic)
    assert_close(method.learner, learner)
    assert_close(method.policy, average)
    assert logged["train/policy_loss"] == pytest.approx(loss, rel=1e-4)
    assert method.target.numbers.tolist() == pytest.approx(
        tilted(command, exponential(command, 0.7)), rel=1e-4, abs=1e-5
    )
    assert (int(method.env_steps), int(method.episodes), int(method.num_updates)) == (9, 2, 5)
    monte_carlo = lambda_returns(rewards, ends, after, 0.5, 1.0)
    explained = 1 - float(
        (monte_carlo - after[window.row]).var(correction=0) / monte_carlo.var(correction=0)
    )
    assert logged["train/explained_variance"] == pytest.approx(explained, rel=1e-4)


def test_a_critic_hears_of_the_actions_that_were_executed(monkeypatch):
    """Samples outside the box count as its edge, for the policy and for Q(s, a)."""
    heard = []

    def note(function):
        def noting(output, *rest):
            heard.append(rest[-1][:, 1:2])  # of 1, a and a^2
            return function(output, *rest)

        return noting

    for name in ("critic_loss", "fitted_advantage"):
        monkeypatch.setattr(critic, name, note(getattr(critic, name)))
    method = build("RCP-A", "pendulum", weights="fitted_advantage")
    method.log_scalars = lambda scalars: None
    epoch = epoch_of(
        [[1.0, 2.0, -1.0], [2.0, 0.5]], [False, True], [[4, 0, 1]], [[0, 1, 2], [4, 3, 3]]
    )
    action = torch.tensor([[-3.0], [-0.5], [0.2], [1.0], [1.5]])
    flat = dataclasses.replace(epoch.episodes, obs=epoch.episodes.obs[:, :3], action=action)
    method.train_epoch(dataclasses.replace(epoch, episodes=flat))
    executed = action.clamp(-1, 1)
    assert [each.tolist() for each in heard] == [
        executed[rows].tolist() for rows in ([0, 1, 2], [4, 3, 3], [0, 1, 2, 3, 4])
    ]


@pytest.mark.parametrize("name", ["RCP-R", "RCP-A"])
def test_optimizers_have_the_rates_of_the_config(name):
    rates = {"learning_rate": 0.01, "critic_learning_rate": 0.03}
    method = build(name, **rates)
    adams = method.make_optimizers()
    assert [(type(a), a.param_groups[0]["lr"]) for a in adams] == [
        (Adam, rate) for rate in rates.values()
    ]
    for adam, owner in zip(adams, (method.learner, method.critic), strict=True):
        assert {id(p) for p in adam.param_groups[0]["params"]} == {
            id(p) for p in owner.parameters()
        }


def test_gradients_are_clipped_each_to_its_own_limit():
    method = build("RCP-A", max_grad_norm=1e-3, critic_max_grad_norm=2e-3)
    before = copy.deepcopy((method.learner, method.critic))
    obs = torch.randn(16, 4, generator=torch.Generator().manual_seed(0))
    method.update(obs, torch.ones(16, 1), torch.zeros(16, dtype=torch.int64), torch.ones(16))
    method.critic_fit.update(
        method, obs, torch.full((16,), 50.0), torch.eye(2)[torch.zeros(16, dtype=torch.int64)]
    )
    for old, new, expected in zip(
        before, (method.learner, method.critic), (RATE * 1e-3, CRITIC_RATE * 2e-3), strict=True
    ):
        moved = torch.cat(
            [(a - b).flatten() for a, b in zip(old.parameters(), new.parameters(), strict=True)]
        )
        assert float(moved.norm().detach()) == pytest.approx(expected, rel=1e-2)


def test_an_evaluation_says_how_far_returns_follow_commands():
    """Ranks of the commands: 1.5, 3.5 and 5.5, twice each; of the returns: 3, 1.5 and 1.5, 5, 5 and
    5. Less their mean 3.5, the products sum to 11, the squares to 16 and 15.
    """
    method = build("RCP-A")
    method.target.numbers.copy_(torch.tensor([1.0, 2.0, -10.0, 1.9]))
    method.target.probes.copy_(torch.tensor([-0.5, 1.5]))
    returns = {
        "eval": (2.0, 8.0),
        "eval_greedy": (100.0, -100.0),
        "eval_low": (3.0, 2.0),
        "eval_high": (8.0, 8.0),
    }
    method.log = lambda *words, **more: None
    method.validation_step(
        {name: [make_episode([ret]) for ret in each] for name, each in returns.items()}, 0
    )
    assert method.scalars["eval/command_sensitivity"] == 5.5
    assert method.scalars["eval/rank_correlation"] == pytest.approx(11 / np.sqrt(16 * 15))
    assert method.scalars["eval/truncated_share"] == 0


def data_of(method, episodes):
    """The data of a method, whose buffer holds these episodes."""
    data = method.rollouts()
    data.store_episodes(0, episodes)
    return data


def test_enough_episodes_are_asked_for_to_make_the_steps_of_an_epoch():
    """Mean length of the newest 20 episodes: 5; 61 steps take 13 episodes, rounded up."""
    method = build("RCP-A", steps_per_iter=61, learning_starts=7)
    data = data_of(method, [make_episode([1.0] * length) for length in [30] * 3 + [5] * 20])
    requests = data.requests(4)
    assert len(requests) == 13
    assert {r.mode for r in requests} == {"sampled"}
    assert len({r.seed for r in requests} | {r.seed for r in data.requests(5)}) == 13 + len(
        data.requests(5)
    )
    assert [(r.mode, r.command) for r in data.requests(0)] == [("uniform", None)] * 7


@pytest.mark.parametrize(("steps", "expected"), [(100, 30), (150, 45), (1, 1), (100_000, 120)])
def test_updates_follow_the_steps_played_up_to_four_times_as_many(steps, expected):
    method = build("RCP-R", steps_per_iter=100, num_updates_per_iter=30, batch_size=8)
    episode = make_episode([1.0, 2.0])
    epoch = data_of(method, [episode]).make_batch(
        0, [dataclasses.replace(episode, env_steps=steps)], 0.0
    )
    assert epoch.index["policy"].shape == (expected, 8)
    assert epoch.env_steps == steps


def test_minibatches_of_two_epochs_differ():
    data = data_of(build("RCP-R", batch_size=64), [make_episode([1.0] * 50)])
    first, second, other = (
        data.make_batch(k, [make_episode([1.0])], 0.0).index["policy"] for k in (0, 0, 1)
    )
    assert torch.equal(first, second)
    assert not torch.equal(first, other)
