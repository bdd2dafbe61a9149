import subprocess
import sys

import gymnasium
import numpy as np
import pytest

from lightning_rl.core.types import Request, UserError
from lightning_rl.envs.gym import make_env
from lightning_rl.envs.spec import EnvSpec, env_spec
from lightning_rl.rollouts.collector import Collector
from lightning_rl.rollouts.player import Player


def test_facts():
    env = gymnasium.make("lightning_rl.envs.beresheet:Beresheet-v0")
    assert env.spec.max_episode_steps == 300
    assert env.spec.reward_threshold == 200
    assert env_spec("beresheet").horizon == 300


def test_lunarlander_but_for_the_time_limit():
    action = np.random.default_rng(0).integers(4, size=60).tolist()
    trajectories = []
    for gamename in ("beresheet", "lunarlander"):
        env = make_env(env_spec(gamename))
        trajectories.append([env.reset(seed=7)[0], *(env.step(a)[0] for a in action)])
    np.testing.assert_array_equal(*trajectories)


def test_a_fresh_interpreter_and_a_worker_know_it():
    """Nothing but the id: no module of ours is imported before."""
    code = "import gymnasium; print(gymnasium.make('lightning_rl.envs.beresheet:Beresheet-v0').spec.max_episode_steps)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "300"


def test_episodes_end_at_300(monkeypatch):
    from helpers import toy_policy

    spec = env_spec("beresheet")
    requests = [Request(f"test {i}", i, "uniform") for i in range(4)]
    collector = Collector(spec, toy_policy(spec), 1, 2)
    played = collector.collect(requests, collector.behaviour.state_dict(), 0)
    collector.close()
    here = Player(spec, toy_policy(spec)).play(requests)
    assert [e.ret for e in played] == [e.ret for e in here]
    assert all(e.length <= 300 for e in played)


class OddActions(gymnasium.Env):
    observation_space = gymnasium.spaces.Box(0, 1, (1,), np.float32)


@pytest.mark.parametrize(
    "space",
    [
        gymnasium.spaces.MultiDiscrete([3, 2]),
        gymnasium.spaces.MultiBinary(2),
        gymnasium.spaces.Dict({"a": gymnasium.spaces.Discrete(2)}),
        gymnasium.spaces.Box(-1, 1, (2, 2)),
    ],
)
def test_action_spaces_that_no_policy_fits_are_refused_with_those_that_do(space, monkeypatch):
    monkeypatch.setattr(OddActions, "action_space", space, raising=False)
    monkeypatch.delitem(gymnasium.registry, "OddActions-v0", raising=False)
    gymnasium.register("OddActions-v0", entry_point=OddActions)
    with pytest.raises(UserError, match=r"action space of OddActions-v0 is .*no policy here fits.*: Discrete .* and Box of one"):
        make_env(EnvSpec("odd", "OddActions-v0", 1, 2, False, 10, 10, 1.0, None))
