import dataclasses

import numpy as np
import pytest
import torch
from helpers.budgets import tiny_settings
from helpers.runs import attach
from helpers.toys import make_episode, same_episodes

from lightning_rl.core.config import build_config, merged_values
from lightning_rl.core.types import Episode
from lightning_rl.methods.base import episode_scalars
from lightning_rl.methods.upside_down import UDRL
from lightning_rl.methods.upside_down.rollouts import UpsideDownRollouts


def build(gamename: str = "cartpole", num_workers: int = 0, **settings):
    config = build_config(
        UDRL.Config,
        [*merged_values("UDRL", gamename), ("test", {**tiny_settings("UDRL"), **settings})],
    )
    hparams = {
        "implementation": "UDRL",
        "gamename": gamename,
        "seed": 3,
        "config": dataclasses.asdict(config),
    }
    method = UDRL(**hparams)
    experience = method.rollouts(num_workers)
    return method, experience


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


def test_two_methods_in_one_process_are_equal_and_configs_are_not_modified():
    (a, ea), (b, eb) = build(), build()
    assert all(
        torch.equal(p, q) for p, q in zip(a.policy.parameters(), b.policy.parameters(), strict=True)
    )
    assert a.cfg.hidden == [8, 8]
    batches = [e.next_batch() for e in (ea, eb)]
    assert torch.equal(batches[0].episodes.obs, batches[1].episodes.obs)
    assert torch.equal(batches[0].index["policy"], batches[1].index["policy"])


def test_snapshot_resumes_the_collection_that_was_under_way():
    method, experience = build()
    for _ in range(2):
        experience.next_batch()
        drift(method)
    state = experience.state_dict()
    expected = experience.next_batch()
    other_method, other = build()
    other_method.load_state_dict(method.state_dict())
    other.load_state_dict(state)
    resumed = other.next_batch()
    assert torch.equal(expected.episodes.obs, resumed.episodes.obs)
    assert torch.equal(expected.index["policy"], resumed.index["policy"])
    assert expected.scalars["rollout/return_mean"] == resumed.scalars["rollout/return_mean"]


@pytest.mark.parametrize("gamename", ["lunarlander", "pendulum"])
@pytest.mark.parametrize("network", ["gated", "layers"])
def test_loss_falls_on_fixed_examples(gamename, network):
    method, _ = build(gamename, network=network, hidden=[32, 32], learning_rate=1e-2)
    rng = torch.Generator().manual_seed(0)
    spec_obs, continuous = (3, True) if gamename == "pendulum" else (8, False)
    obs = torch.randn(256, spec_obs, generator=rng)
    command = torch.rand(256, 2, generator=rng) * torch.tensor([200.0, 200.0])
    action = obs[:, :1].tanh() if continuous else (command[:, 0] > 100).long()
    adam = torch.optim.Adam(method.policy.parameters(), 1e-2)
    attach(method, adam)
    first, *_, last = (float(method.update(obs, command, action)) for _ in range(200))
    assert last < first - 0.4


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


def test_scalars_are_named_as_promised():
    _, experience = build()
    experience.next_batch()
    scalars = experience.next_batch().scalars
    expected = {
        "rollout/return_mean",
        "rollout/return_std",
        "rollout/return_min",
        "rollout/return_max",
    }
    expected |= {
        "rollout/length_mean",
        "rollout/truncated_share",
        "command/return",
        "command/horizon",
    }
    assert expected <= scalars.keys()
    assert all(np.isfinite(v) for v in scalars.values())
