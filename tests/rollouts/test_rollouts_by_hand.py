"""Roll-outs in scripted environments under a policy that writes down what it is asked: every
entry of the episodes by hand.
"""

import dataclasses
import types

import numpy as np
import pytest
import torch
from helpers.toys import make_episode

from lightning_rl.core.seeding import derive_seed
from lightning_rl.core.types import Request
from lightning_rl.envs.spaces import STEPS
from lightning_rl.envs.spec import EnvSpec
from lightning_rl.methods.upside_down.commands import ReturnHorizon
from lightning_rl.rollouts.collected import CollectedRollouts, training_requests, warm_up_requests
from lightning_rl.rollouts.data_module import Rollouts, evaluation_requests
from lightning_rl.rollouts.player import ActionNoise, Player, UniformActions, held

SPEC = EnvSpec("toy", "Toy-v0", 1, 2, False, 150, 100.0, None)


class Script:
    """Pays ``rewards`` one by one, then ends as told; observations are 10 x the number of the
    environment plus the step.
    """

    def __init__(self, number, rewards, terminated=True, truncated=False, repeat=1):
        self.number, self.rewards, self.ends, self.repeat = (
            number,
            rewards,
            (terminated, truncated),
            repeat,
        )
        self.seeds, self.actions = [], []

    def obs(self):
        return np.array([10 * self.number + len(self.actions)], dtype=np.float32)

    def reset(self, seed):
        self.seeds.append(seed)
        self.actions = []
        return self.obs(), {}

    def step(self, action):
        self.actions.append(action)
        assert len(self.actions) <= len(self.rewards), "stepped after its end"
        over = len(self.actions) == len(self.rewards)
        info = {"length": 50.0} | (
            {STEPS: self.repeat} if self.repeat > 1 else {}
        )  # the former is an environment's own
        return (
            self.obs(),
            self.rewards[len(self.actions) - 1],
            over and self.ends[0],
            over and self.ends[1],
            info,
        )


class Witness:
    """Acts by the parity of the observation, and writes down observation, command and noise of
    each step.
    """

    noise_size = 2

    def __init__(self):
        self.asked, self.guidance = [], []

    def draw_noise(self, rng, shape):
        return rng.standard_normal(shape, dtype=np.float32)

    def act(self, obs, command, noise, guidance=None):
        self.guidance.append(None if guidance is None else guidance.tolist())
        self.asked.append((obs[:, 0].tolist(), command, noise.clone()))
        return obs[:, 0].long() % 2


def play(envs, requests, rule=None, version=7):
    witness = Witness()
    player = Player(SPEC, witness, torch.tensor(version), rule)
    return player.play(requests, envs), witness


def asked(count, mode="sampled", command=None):
    return [Request(f"toy {k}", 2**33 + 5 + k, mode, command) for k in range(count)]


def test_each_episode_keeps_its_guidance_when_others_are_over():
    requests = [
        Request(f"toy {k}", k, command=(1.0,), guidance=each) for k, each in enumerate((0.5, 2.0))
    ]
    _, witness = play([Script(0, [1.0]), Script(1, [1.0, 1.0])], requests)
    assert witness.guidance == [[[0.5], [2.0]], [[2.0]]]
    _, witness = play([Script(0, [1.0])], asked(1, command=(1.0,)))
    assert witness.guidance == [None]


def test_every_episode_is_what_its_environment_gave():
    envs = [
        Script(1, [1.0, 2.0, 4.0]),
        Script(2, [8.0], False, True),
        Script(3, [0.5] * 5, True, True, repeat=3),
    ]
    episodes, witness = play(envs, asked(3))
    assert [e.obs[:, 0].tolist() for e in episodes] == [
        [10, 11, 12, 13],
        [20, 21],
        [30, 31, 32, 33, 34, 35],
    ]
    assert [e.action.tolist() for e in episodes] == [[0, 1, 0], [0], [0, 1, 0, 1, 0]]
    assert [env.actions for env in envs] == [e.action.tolist() for e in episodes]
    assert [e.reward.tolist() for e in episodes] == [[1, 2, 4], [8], [0.5] * 5]
    assert [(e.terminated, e.truncated) for e in episodes] == [
        (True, False),
        (False, True),
        (True, True),
    ]
    assert [(e.length, e.env_steps, e.ret) for e in episodes] == [
        (3, 3, 7.0),
        (1, 1, 8.0),
        (5, 15, 2.5),
    ]
    assert {e.policy_version for e in episodes} == {7}
    assert [e.request.name for e in episodes] == ["toy 0", "toy 1", "toy 2"]
    assert [e.command for e in episodes] == [None] * 3
    assert [env.seeds for env in envs] == [
        [5],
        [6],
        [7],
    ]  # of 2^33 + 5 and on, what Gymnasium takes
    assert [step[0] for step in witness.asked] == [
        [10, 20, 30],
        [11, 31],
        [12, 32],
        [33],
        [34],
    ]  # who is over is not asked


def test_the_command_is_lowered_by_what_was_collected_and_by_a_step():
    """Return 5 in 2 steps: the reward is taken off, never above 6; the horizon falls to 1 and
    stays there.
    """
    rule = ReturnHorizon(max_return=6.0, last_few=1, horizon_scale=1.0).after
    (short, long), witness = play(
        [Script(1, [4.0, 4.0]), Script(0, [1.0, -9.0, 2.0, 0.5])],
        asked(2, command=(5.0, 2.0)),
        rule,
    )
    assert short.command.tolist() == [[5, 2], [1, 1]]
    assert long.command.tolist() == [[5, 2], [4, 1], [6, 1], [4, 1]]
    assert [step[1].tolist() for step in witness.asked] == [
        [[5, 2], [5, 2]],
        [[1, 1], [4, 1]],
        [[6, 1]],
        [[4, 1]],
    ]


def test_action_noise_is_fresh_at_every_step_and_for_every_episode():
    """Over blocks of 64 steps: no number comes twice, and an episode alone meets what it meets
    in company.
    """
    lengths = [140, 3, 100]
    _, together = play([Script(k, [0.0] * n) for k, n in enumerate(lengths)], asked(3))
    drawn = torch.cat([noise.flatten() for _, _, noise in together.asked])
    assert len(drawn.unique()) == len(drawn) == 2 * sum(lengths)
    _, alone = play([Script(2, [0.0] * 100)], asked(3)[2:])
    for (_, _, here), (_, _, there) in zip(together.asked, alone.asked, strict=False):
        assert torch.equal(here[-1], there[0])


def test_held_noise_by_hand():
    fresh, before = (
        np.array([[1.0, 10.0], [2.0, 20.0], [3.0, 30.0], [4.0, 40.0]], dtype=np.float32),
        np.array([9.0, 90.0]),
    )
    assert held(fresh, np.array([False, True, True, False]), before)[:, 0].tolist() == [1, 1, 1, 4]
    assert held(fresh, np.array([True, True, False, True]), before)[:, 1].tolist() == [
        90,
        90,
        30,
        30,
    ]


@pytest.mark.parametrize("hold", [0.0, 0.75, 1.0])
def test_noise_is_held_for_the_share_of_steps_that_was_asked_for(hold):
    """Over blocks of 64 steps; an episode alone meets what it meets in company, and its first
    step has noise of its own.
    """
    requests = [dataclasses.replace(request, noise_hold=hold) for request in asked(9)]
    _, together = play([Script(k, [0.0] * 140) for k in range(9)], requests)
    noise = torch.stack([noise for _, _, noise in together.asked])  # [T, 9, 2]
    kept = (noise[1:] == noise[:-1]).all(-1).float()
    assert kept.mean().item() == pytest.approx(hold, abs=0.06)
    assert (kept[63::64].mean() > 0) == (hold > 0)  # from one block to the next
    assert (noise[0] != 0).all()
    assert len(noise[0].unique()) == 18
    _, alone = play([Script(8, [0.0] * 140)], requests[8:])
    assert torch.equal(torch.stack([noise[0] for _, _, noise in alone.asked]), noise[:, 8])


def test_greedy_episodes_meet_no_noise_also_beside_sampled_ones():
    greedy, sampled = asked(1, "greedy")[0], asked(2)[1]
    _, witness = play([Script(0, [0.0] * 3), Script(1, [0.0] * 3)], [greedy, sampled])
    noise = torch.stack([step[2] for step in witness.asked])
    assert (noise[:, 0] == 0).all()
    assert (noise[:, 1] != 0).all()


def test_uniform_episodes_do_not_ask_the_policy():
    (episode,), witness = play([Script(0, [0.0] * 120)], asked(1, "uniform"))
    assert witness.asked == []
    assert 30 < episode.action.sum() < 90


def test_uniform_noise_fills_the_action_box():
    box = EnvSpec("toy", "Toy-v0", 1, 2, True, 150, 100.0, None)
    noise = torch.tensor([[0.0, 0.25], [0.5, 1.0]])
    assert UniformActions(box).act(noise, None, noise).tolist() == [[-1.0, -0.5], [0.0, 1.0]]
    assert UniformActions(SPEC).act(noise, None, noise).tolist() == [1, 1]
    drawn = UniformActions(box).draw_noise(np.random.default_rng(0), (500, 2))
    assert (drawn >= 0).all()
    assert (drawn < 1).all()


def test_noise_of_requests_with_other_seeds_differs_and_of_equal_ones_does_not():
    def first(seed):
        return ActionNoise([Request("r", seed)], Witness()).at(0, np.array([0]))

    assert (first(1) == first(1)).all()
    assert (first(1) != first(2)).all()


def test_requests_have_seeds_by_purpose_epoch_and_number():
    commands = [(1.0,), (2.0,)]
    training = training_requests(9, 4, commands, 0.5)
    assert [(r.name, r.mode, r.command) for r in training] == [
        ("epoch 4, episode 0", "sampled", (1.0,)),
        ("epoch 4, episode 1", "sampled", (2.0,)),
    ]
    assert [r.noise_hold for r in training] == [0.5, 0.5]
    assert [r.seed for r in training] == [derive_seed(9, "rollout", 4, k) for k in range(2)]
    warm_up = warm_up_requests(9, 2)
    assert [(r.seed, r.mode, r.command) for r in warm_up] == [
        (derive_seed(9, "warm-up", k), "uniform", None) for k in range(2)
    ]
    evaluation = [
        evaluation_requests(9, "evaluation", epoch, 2, (3.0,), "greedy") for epoch in (4, 5)
    ]
    assert [r.seed for r in evaluation[0]] == [derive_seed(9, "evaluation", 4, k) for k in range(2)]
    assert [(r.mode, r.command, r.noise_hold) for r in evaluation[0]] == [
        ("greedy", (3.0,), 0.0)
    ] * 2
    sampled = evaluation_requests(9, "evaluation", 4, 2, None, "sampled")
    assert [r.seed for r in sampled] == [
        r.seed for r in evaluation[0]
    ]  # both modes meet the same environments
    others = [
        *training_requests(9, 5, commands),
        *training_requests(8, 4, commands),
        *evaluation[0],
        *evaluation[1],
    ]
    everything = [*training, *warm_up, *others]
    assert len({r.seed for r in everything}) == len(everything)


class Echo:
    """A collector that writes down what it is asked, and answers with episodes that return the
    number of their request.
    """

    def __init__(self):
        self.calls, self.busy = [], False

    def start(self, requests, policy, version):
        self.calls.append((requests, policy["weight"].clone(), version))
        self.busy = True

    def finish(self):
        self.busy = False
        return [make_episode([float(k)]) for k in range(len(self.calls[-1][0]))]

    def collect(self, requests, policy, version):
        self.start(requests, policy, version)
        return self.finish()


class Asking(CollectedRollouts):
    """One request a epoch, named by it; writes down what is done in which order."""

    def __init__(self, policy, overlap):
        super().__init__(
            types.SimpleNamespace(
                policy=policy, seed=0, cfg=None, collector=lambda num_workers, nice: Echo()
            ),
            0,
            overlap,
        )
        self.order = []

    def requests(self, epoch):
        self.order.append(("ask", epoch))
        return training_requests(0, epoch, [None])

    def store_episodes(self, epoch, episodes):
        self.order.append(("store", epoch))

    def make_batch(self, epoch, episodes, waited):
        self.order.append(("make", epoch))
        return epoch


@pytest.mark.parametrize(("overlap", "versions"), [(False, [0, 1, 2]), (True, [0, 0, 1, 2])])
def test_a_collection_is_played_by_the_policy_of_its_version(overlap, versions):
    """The policy is its epoch's number here; with overlap the next collection starts before the
    training of this one.
    """
    policy = torch.nn.Linear(1, 1)
    experience = Asking(policy, overlap)
    for epoch in range(3):
        policy.weight.data.fill_(float(epoch))
        assert experience.next_batch() == epoch
    calls = experience.collector.calls
    assert [version for _, _, version in calls] == versions
    assert [float(weight) for _, weight, _ in calls] == versions
    assert [requests[0].name for requests, _, _ in calls] == [
        f"epoch {k}, episode 0" for k in range(len(calls))
    ]
    ahead = [
        ("ask", 0),
        ("store", 0),
        ("ask", 1),
        ("make", 0),
        ("store", 1),
        ("ask", 2),
        ("make", 1),
    ]
    at_once = [("ask", 0), ("store", 0), ("make", 0), ("ask", 1), ("store", 1), ("make", 1)]
    assert experience.order[: len(ahead if overlap else at_once)] == (ahead if overlap else at_once)


class Linear(torch.nn.Linear):
    """As far as an evaluation looks at a policy."""

    noise_size = 1


class Judged:
    """What an evaluation asks of a method."""

    current_epoch, policy, seed = 4, Linear(1, 1), 9
    cfg = types.SimpleNamespace(eval_episodes=2)

    def first_command(self):
        return (1.0,)

    def probe_commands(self):
        return {"eval_low": (-2.0,), "eval_high": (3.0,)}


def test_an_evaluation_plays_each_mode_and_each_probe_on_the_same_seeds():
    collector = Echo()
    batch = Rollouts(Judged(), collector).evaluate()
    assert {prefix: [e.ret for e in episodes] for prefix, episodes in batch.items()} == {
        "eval": [0, 1],
        "eval_greedy": [2, 3],
        "eval_low": [4, 5],
        "eval_high": [6, 7],
    }
    ((requests, _, version),) = collector.calls
    assert version == 5
    asked = [("sampled", (1.0,)), ("greedy", (1.0,)), ("sampled", (-2.0,)), ("sampled", (3.0,))]
    assert (
        [(r.mode, r.command) for r in requests[::2]]
        == [(r.mode, r.command) for r in requests[1::2]]
        == asked
    )
    assert [r.seed for r in requests] == [derive_seed(9, "evaluation", 4, k) for k in (0, 1)] * 4


def test_a_policy_without_noise_plays_once():
    judged, collector = Judged(), Echo()
    judged.policy = Linear(1, 1)
    judged.policy.noise_size = 0
    batch = Rollouts(judged, collector).evaluate()
    assert {prefix: [e.ret for e in episodes] for prefix, episodes in batch.items()} == {
        "eval": [0, 1],
        "eval_low": [2, 3],
        "eval_high": [4, 5],
    }
    assert [len(requests) for requests, _, _ in collector.calls] == [6]
