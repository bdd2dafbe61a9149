import dataclasses

import pytest
import torch
from helpers import methods
from helpers.toys import make_episode, same_episodes

from lightning_rl.core.types import Episode
from lightning_rl.methods.base import episode_scalars
from lightning_rl.methods.upside_down import UDRL
from lightning_rl.methods.upside_down.rollouts import UpsideDownRollouts


def build(gamename: str = "cartpole", num_workers: int = 0, **settings):
    method = methods.build("UDRL", gamename, **settings)
    return method, method.rollouts(num_workers)


def recorded(experience: UpsideDownRollouts) -> list[Episode]:
    """Lets the episodes of the next epochs be seen."""
    seen: list[Episode] = []
    finish = experience.collector.finish

    def spy() -> list[Episode]:
        seen[:] = finish()
        return list(seen)

    experience.collector.finish = spy
    return seen


def drift(method: UDRL) -> None:
    """Stands in for training: the policy changes."""
    with torch.no_grad():
        for parameter in method.policy.parameters():
            parameter.add_(0.01)


@pytest.mark.parametrize(("overlap", "num_workers"), [(True, 0), (True, 1), (False, 0)])
def test_staleness_is_exactly_one_epoch_with_overlap_and_zero_without(overlap, num_workers):
    method, experience = build(overlap=overlap, num_workers=num_workers)
    seen, versions, past = recorded(experience), [], []
    for epoch in range(4):
        experience.next_batch()
        versions.append({e.policy_version for e in seen})
        if epoch:  # replay under the parameters that the stamp names
            check = build(overlap=overlap)[1].collector
            stamp = epoch - 1 if overlap else epoch
            again = check.collect(
                [e.request for e in seen],
                past[stamp] if overlap else method.policy.state_dict(),
                stamp,
            )
            assert same_episodes(seen, again)
        past.append({k: v.clone() for k, v in method.policy.state_dict().items()})
        drift(method)
    assert versions == ([{0}, {0}, {1}, {2}] if overlap else [{0}, {1}, {2}, {3}])
    experience.collector.close()


def test_held_out_episodes_are_counted_apart_and_never_stored():
    _, experience = build(num_held_out_episodes_per_iter=2, replay_size=1000)
    seen = recorded(experience)
    experience.next_batch()
    batch = experience.next_batch()
    assert len(seen) == 6
    assert batch.env_steps == sum(e.length for e in seen[:4])
    assert batch.held_out_env_steps == sum(e.length for e in seen[4:])
    assert len(experience.buffer) == 4 + 4
    assert len(batch.held_out) == batch.held_out_env_steps
    experience.collector.close()


def test_the_share_of_episodes_that_a_time_limit_ended():
    ends = (
        (True, False),
        (False, True),
        (True, True),
        (False, True),
    )  # at its very end an episode may have reached its goal
    episodes = [
        dataclasses.replace(make_episode([1.0]), terminated=a, truncated=b) for a, b in ends
    ]
    assert episode_scalars("eval", episodes)["eval/truncated_share"] == 0.5
