
import numpy as np

from lightning_rl.core.types import Request
from lightning_rl.envs.gym import make_env
from lightning_rl.envs.spec import env_spec
from lightning_rl.rollouts.player import Collector, Player


def test_facts():
    spec = env_spec("beresheet")
    assert (spec.env, spec.horizon, spec.solved_return) == ("LunarLander-v3", 300, 200)


def test_lunarlander_but_for_the_time_limit():
    action = np.random.default_rng(0).integers(4, size=60).tolist()
    trajectories = []
    for gamename in ("beresheet", "lunarlander"):
        env = make_env(env_spec(gamename))
        trajectories.append([env.reset(seed=7)[0], *(env.step(a)[0] for a in action)])
    np.testing.assert_array_equal(*trajectories)


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
