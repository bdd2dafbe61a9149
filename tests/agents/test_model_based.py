"""The five agents' core: stacking, schedule, experience."""

from types import SimpleNamespace

import pytest
import torch
from helpers.chain import Chain
from helpers.model_based import config
from helpers.runs import resident_bytes

from lightning_rl.agents.experience import UpdateBatch
from lightning_rl.agents.model_based import ModelBasedDQN
from lightning_rl.core.config import build_config, merged_values
from lightning_rl.envs.func_env import Step
from lightning_rl.envs.panflute import PanFlute
from lightning_rl.envs.procmaze import ProcMaze
from lightning_rl.functional.world_model import in_order
from lightning_rl.methods.model_based import StepTraining, WorldPolicy, _rollout_scalars, play
from lightning_rl.methods.registry import implementation
from lightning_rl.nets.categorical_latent import CategoricalLatent
from lightning_rl.nets.latent_model import LatentModel
from lightning_rl.nets.recorded_pass import RecordedPass
from lightning_rl.nets.world_models import PlainMLP


def make(kind, env, seeds, **changes):
    variables = 16 if kind == "gaussian" else 4
    return ModelBasedDQN(config(kind, **{"variables": variables, **changes}), env, seeds)


def test_a_snapshot_of_more_steps_than_are_remembered_is_refused():
    training = StepTraining(make("replay", PanFlute(3), [0, 1]))
    training.run(8)
    state = training.snapshot()
    training.restore(state)
    memory = {**state["memory"], "written": torch.tensor([9, 9])}
    with pytest.raises(ValueError, match="do not fit 2 members of capacity"):
        training.restore({**state, "memory": memory})
    memory = {**state["memory"], "bytes": state["memory"]["bytes"] + 2}
    with pytest.raises(ValueError, match="memory: observations that are no bits"):
        training.restore({**state, "memory": memory})


def test_schedule_of_target_and_updates():
    """Learning starts at step 20; the target is copied at 20, 30, .. before the updates and
    stays still in between.
    """
    training = StepTraining(make("replay", PanFlute(3), [0], updates_per_step=3))
    training.run(20)
    agent = training.agent
    start = agent.online.params.detach().clone()
    assert agent.num_updates == 0
    training.run(1)
    assert agent.num_updates == 3
    assert torch.equal(agent.target, start)
    assert not torch.equal(agent.online.params, start)
    training.run(9)
    before = agent.online.params.detach().clone()
    assert torch.equal(agent.target, start)
    training.run(1)
    assert torch.equal(agent.target, before)


def test_imagined_steps_are_joined_step_after_step():
    q = [torch.full((1, 2, 3), float(k)) for k in range(3)]
    alive = [torch.tensor([[1.0, 0.5]]), torch.tensor([[0.0, 0.5]]), torch.tensor([[1.0, 1.0]])]
    steps = [
        (q[k], torch.full((1, 2), k), torch.full((1, 2), float(-k)), alive[k], q[k])
        for k in range(3)
    ]
    for env, weight in ((ProcMaze(2), [[1.0, 1.0, 1.0, 0.5, 0.0, 0.25]]), (PanFlute(3), None)):
        batch = make("environment", env, [0], batch_size=2).source.imagined(*in_order(steps))
        assert batch.action.tolist() == [[0, 0, 1, 1, 2, 2]]
        assert (batch.weight if weight is None else batch.weight.tolist()) == weight
        torch.testing.assert_close(batch.discount, torch.tensor([[0.9, 0.45, 0.0, 0.45, 0.9, 0.9]]))


def test_the_perfect_model_imagines_what_the_environment_does():
    """Every imagined step is one that the environment makes, from a state that was visited;
    nothing counts after the end.
    """
    env = ProcMaze(2)
    agent = make("environment", env, [0], learning_starts=10**6)
    StepTraining(agent).run(40)
    online = RecordedPass(agent.net, agent.online.layers)
    batch = agent.source.batch(online, 0, agent.source.sample(0))
    assert (batch.reward == -1).all()
    ended = (batch.discount == 0).view(4, 8)
    weight = batch.weight.view(4, 8)
    assert ended.any()
    for column in range(8):
        over = ended[:, column].nonzero().flatten().tolist()
        first = over[0] if over else 4
        assert weight[:, column].tolist() == [float(k <= first) for k in range(4)]


class Halves(Chain):
    """The chain, its state half the number of its place."""

    def reset(self, noise):
        return super().reset(noise) / 2

    def observe(self, state):
        return super().observe((2 * state).long())

    def _move(self, state, on):
        place = (2 * state[..., 0]).long()
        after = torch.where(on, (place + 1).clamp(max=2), place).unsqueeze(-1) / 2
        return Step(after, self.observe(after), on.float(), on & (place == 2))


def test_the_perfect_model_remembers_states_that_are_no_whole_numbers():
    agent = make("environment", Halves(), [0], learning_starts=10**6)
    StepTraining(agent).run(40)
    assert set(agent.source.memory.data["state"][:40].flatten().tolist()) == {0.0, 0.5, 1.0}
    assert set(agent.source.sample(0).flatten().tolist()) == {0.0, 0.5, 1.0}


def test_the_stale_observation_is_the_last_one_of_the_episode_before():
    """One bogus transition an episode, as in the paper's code; without it, the first observation
    of the new maze.
    """
    env = ProcMaze(2)
    for stale in (False, True):
        agent = make("replay", env, [0], learning_starts=10**6, replay_size=400)
        training = StepTraining(agent, stale_observation=stale)
        training.run(300)
        rows = agent.source.memory.data["bytes"][:300].float()
        obs, after, continues = (
            rows[:, : env.obs_size],
            rows[:, env.obs_size : 2 * env.obs_size],
            rows[:, -1],
        )
        ends = (continues[:-1] == 0).nonzero().flatten()
        assert len(ends) > 5
        kept = (obs[ends + 1] == after[ends]).all(-1)
        assert (
            kept.all() if stale else kept.float().mean() < 0.3
        )  # a new maze may look like the last one


def test_play_cuts_at_the_horizon_and_stops_at_the_end():
    maze = make("replay", ProcMaze(3), [0, 1])
    returns, lengths, cut = play(maze, [5, 6], 8, 15, greedy=True)
    assert torch.equal(returns, -lengths.float())
    assert (lengths[cut] == 15).all()
    assert cut[lengths < 15].sum() == 0
    assert int(lengths.max()) <= 15
    flute = make("replay", PanFlute(3), [0])
    returns, lengths, cut = play(flute, [5], 8, 15, greedy=False)
    assert (lengths == 15).all()
    assert cut.all()
    assert (returns >= 0).all()


def test_memory_of_a_hundred_thousand_steps_is_small():
    """Bits as bytes: 13.4 MB a seed for ProcMaze 4, a quarter of what single precision takes."""
    agent = make("replay", ProcMaze(4), [0], replay_size=100_000)
    assert sum(data.nbytes for data in agent.source.memory.data.values()) == 100_000 * (
        2 * 64 + 2 + 4
    )
    perfect = make("environment", ProcMaze(4), [0], replay_size=100_000)
    assert sum(data.nbytes for data in perfect.source.memory.data.values()) == 100_000 * 2 * 18


@pytest.mark.parametrize(
    ("name", "megabytes"),
    [
        ("ER", 300),
        ("simple-model", 550),
        pytest.param("perfect-model", 350, marks=pytest.mark.slow),
        pytest.param("categorical-latent", 1200, marks=pytest.mark.slow),
        pytest.param("gaussian-latent", 600, marks=pytest.mark.slow),
    ],
)
def test_thirty_seeds_begin_within_the_memory_that_is_stated(name, megabytes):
    """Beside some 400 MB of libraries; docs/model_based/method.md. Measured: what the process
    grows by with the first updates.
    """
    cls, before = implementation(name), resident_bytes()
    cfg = build_config(
        cls.Config, [*merged_values(name, "procmaze"), ("test", {"learning_starts": 11})]
    )
    method = cls("procmaze", implementation=name, seed=0, num_seeds=30, config=vars(cfg))
    StepTraining(method.agent).run(13)
    assert resident_bytes() - before < megabytes * 2**20


def table(*rows):
    """A value network whose values for each of its inputs stand in a row, and its parameters."""
    net, values = PlainMLP(len(rows), (), len(rows[0]), "elu"), torch.tensor(rows)
    return net, torch.cat([values.flatten(), torch.zeros(values.shape[1])]).unsqueeze(0)


def test_a_policy_adds_noise_to_values_over_the_temperature():
    """At temperature 0.1, values 0, 0.2 and 0.3 are 0, 2 and 3, and values 0.5, 0 and 0 are 5, 0
    and 0.
    """
    policy = WorldPolicy(*table([0.0, 0.2, 0.3], [0.5, 0.0, 0.0]), 0.1, None)
    noise = torch.tensor(
        [[0.0, 0.0, 0.0], [0.0, 0.5, 0.0], [0.0, 1.5, 0.0], [0.0, 0.0, 4.5], [0.0, 0.0, 5.5]]
    )
    obs = torch.eye(2)[[0, 0, 0, 1, 1]]
    assert policy.act(obs, None, noise).tolist() == [2, 2, 1, 0, 2]


def test_a_policy_without_noise_sees_the_mode_of_a_latent():
    """Classes of probability 0.2, 0.3 and 0.5: the mode is the last, 0.1 asks for the first and
    0.4 for the second.
    """
    model = LatentModel(2, 3, (), "elu", CategoricalLatent(1, 3))
    params = torch.zeros(1, model.size)
    model.layers(params)[0][-1].bias[:] = torch.tensor([0.2, 0.3, 0.5]).log()
    policy = WorldPolicy(
        *table([1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]), 0.1, model, params
    )
    noise, obs = (
        torch.tensor([[0.0] * 4, [0.0, 0.0, 0.0, 0.1], [0.0, 0.0, 0.0, 0.4]]),
        torch.ones(3, 2),
    )
    assert policy.features(obs, noise[:, 3:]).tolist() == [[2], [0], [1]]
    assert policy.act(obs, None, noise).tolist() == [2, 0, 1]
    assert policy.act(obs, None, noise[:1].expand(3, -1)).tolist() == [2, 2, 2]


def test_losses_are_means_over_the_updates_since_they_were_last_taken(monkeypatch):
    """Values and discounts are 0, so that errors are the rewards; squared: 1 and 9, 0 and 4,
    then 1 and 1, 16 and 16.
    """
    agent = make("simple", PanFlute(3), [0, 1])
    source, still = agent.source, SimpleNamespace(step=lambda: None)
    agent.online.params.data.zero_()
    rewards = torch.tensor(
        [[[1.0, 3.0], [0.0, 2.0]], [[1.0, 1.0], [4.0, 4.0]], [[1.0, 3.0], [0.0, 2.0]]]
    )
    own = torch.tensor(
        [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]
    )  # of the model, which adds them once, three times and once

    def batch(values, number, sample):
        obs, none = torch.zeros(2, 2, agent.env.obs_size), torch.zeros(2, 2)
        return UpdateBatch(values(obs), none.long(), rewards[number], none, obs, None)

    monkeypatch.setattr(source, "sample", lambda number: None)
    monkeypatch.setattr(
        source,
        "fit",
        lambda sample, number, *others: source.losses.add_((1.0, 3.0, 1.0)[number] * own),
    )
    monkeypatch.setattr(source, "batch", batch)
    assert agent.take_losses() == {}
    names = ("train/value_loss", "model/reward_loss", "model/continuation_loss", "model/obs_loss")
    for updates, means in (
        ((0, 1), [[3.0, 9.0], [2.0, 8.0], [4.0, 10.0], [6.0, 12.0]]),
        ((2,), [[5.0, 2.0], [1.0, 4.0], [2.0, 5.0], [3.0, 6.0]]),
    ):
        for number in updates:
            agent.update(number, [still])
        assert {name: value.tolist() for name, value in agent.take_losses().items()} == dict(
            zip(names, means, strict=True)
        )
        assert agent.take_losses() == {}


def test_what_is_logged_of_the_last_steps_by_hand():
    training = SimpleNamespace(reward=torch.tensor([6.0, 0.5]), ended=[[(4.0, 2), (9.0, 6)], []])
    both = {"rollout/return_mean": 6.5, "rollout/length_mean": 4.0}
    assert _rollout_scalars(training, 0, 12) == {"rollout/reward_rate": 0.5, **both}
    assert _rollout_scalars(training, 1, 10) == pytest.approx({"rollout/reward_rate": 0.05})
    assert _rollout_scalars(training, 1, 0) == {"rollout/reward_rate": 0.5}
