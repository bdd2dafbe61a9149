"""On-policy data: batches of whole episodes, and how old the policy is that played them."""

import dataclasses

import pytest
import torch
from helpers.policy_gradient import build, with_end
from helpers.toys import make_episode, same_episodes

from lightning_rl.core.types import Episode
from lightning_rl.methods.policy_gradient import STALE_UPDATES, PolicyGradient, step_batch


def test_step_batch_by_hand():
    episodes = [make_episode([1.0, 2.0]), with_end(make_episode([5.0, 6.0, 7.0]), truncated=True)]
    batch = step_batch(episodes, {})
    assert batch.reward.tolist() == [1, 2, 5, 6, 7]
    assert batch.obs[:, 0].tolist() == [0, 1, 0, 1, 2]
    assert batch.action.tolist() == [0, 1, 0, 1, 0]
    assert batch.last.tolist() == [False, True, False, False, True]
    assert batch.final_obs[:, 0].tolist() == [2, 3]
    assert batch.truncated.tolist() == [False, True]


def test_an_end_that_is_both_is_a_termination():
    both = dataclasses.replace(make_episode([1.0]), terminated=True, truncated=True)
    assert step_batch([both], {}).truncated.tolist() == [False]


def test_a_batch_has_exactly_the_asked_number_of_whole_episodes():
    _, experience = build("REINFORCE", "beresheet", num_episodes_per_iter=5)
    batch = experience.next_batch()
    assert int(batch.last.sum()) == len(batch.final_obs) == 5
    assert batch.last[-1]
    assert batch.scalars["rollout/length_mean"] <= 300


def test_the_running_mean_is_that_of_the_newest_episodes():
    _, rollouts = build("REINFORCE", num_episodes_per_iter=4, running_mean_len=6)
    returns = []
    for _ in range(3):
        batch = rollouts.next_batch()
        lengths = batch.last.nonzero().flatten().diff(prepend=torch.tensor([-1]))
        returns += [float(rewards.sum()) for rewards in batch.reward.split(lengths.tolist())]
        assert batch.scalars["rollout/return_running_mean"] == pytest.approx(
            sum(returns[-6:]) / len(returns[-6:]), abs=1e-4
        )
    assert len(returns) == 12


def drift(method: PolicyGradient) -> None:
    """Stands in for training: the policy changes."""
    with torch.no_grad():
        for parameter in method.policy.parameters():
            parameter.add_(0.01)


@pytest.mark.parametrize("num_workers", [0, 1])
@pytest.mark.parametrize("stale", [False, True])
def test_staleness_is_zero_or_what_was_asked_for(stale, num_workers):
    method, experience = build("REINFORCE", num_workers=num_workers, stale_rollouts=stale)
    fresh, past = build("REINFORCE")[1].collector, []
    finish = experience.collector.finish
    for epoch in range(STALE_UPDATES + 3):
        seen: list[Episode] = []
        experience.collector.finish = lambda seen=seen: seen.extend(finish()) or list(seen)
        past.append({k: v.clone() for k, v in method.policy.state_dict().items()})
        batch = experience.next_batch()
        played_by = max(epoch - STALE_UPDATES, 0) if stale else epoch
        assert {e.policy_version for e in seen} == {played_by}
        assert batch.scalars["rollout/policy_age"] == epoch - played_by
        assert same_episodes(
            seen, fresh.collect([e.request for e in seen], past[played_by], played_by)
        )
        drift(method)
    experience.collector.close()


def test_held_noise_is_less_and_less_and_none_beyond_the_budget():
    method, experience = build("REINFORCE", noise_hold=0.8, max_episodes=40)
    for episodes, hold in ((0, 0.8), (10, 0.6), (20, 0.4), (40, 0.0), (44, 0.0)):
        method.episodes.fill_(episodes)
        requests = experience.requests(1)
        assert [request.noise_hold for request in requests] == pytest.approx([hold] * len(requests))
    method, experience = build("REINFORCE", noise_hold=0.8, max_episodes=None, target_return=9.0)
    method.episodes.fill_(400)
    assert experience.noise_hold() == 0.8


def test_past_parameters_that_do_not_fit_are_refused():
    _, rollouts = build("REINFORCE", stale_rollouts=True, num_episodes_per_iter=4)
    rollouts.next_batch()
    state = rollouts.state_dict()
    (weights, version), *_ = state["past"]
    other = {name: value[..., :1] for name, value in weights.items()}
    with pytest.raises(RuntimeError, match="size mismatch"):
        rollouts.load_state_dict({**state, "past": [(other, version)]})
