"""The page in which a lander flies what a slider asks for: its physics beside Box2D, its policy
beside torch, its use.
"""

import json
import math

import gymnasium
import numpy as np
import pytest
import torch
from helpers.chromium import Chromium, needs_chromium

import lightning_rl
from lightning_rl.cli import main
from lightning_rl.lab.demo.page import page

AGENT = "RCP-A-lunarlander"
OURS = ("file://", "data:")


@pytest.fixture(scope="module")
def tab(tmp_path_factory):
    folder = tmp_path_factory.mktemp("demo")
    file = folder / "demo.html"
    file.write_text(page(AGENT))
    with Chromium(folder / "profile") as tab:
        tab.open(file, "typeof demo === 'object' && demo.number >= 1")
        yield tab
        assert not tab.errors
        assert all(address.startswith(OURS) for address in tab.requests), tab.requests


def test_the_page_is_one_small_file_that_may_load_nothing(tmp_path, capsys):
    file = tmp_path / "demo.html"
    assert main(["demo", "--out", str(file)], "lightning-rl") == 0
    text = file.read_text()
    assert len(text) < 300_000
    assert "default-src 'none'" in text
    assert not [
        mark for mark in ("http://", "https://", '<link rel="stylesheet"', "src=") if mark in text
    ]
    file.write_text("mine")
    assert main(["demo", "--out", str(file)], "lightning-rl") == 2
    assert (
        main(["demo", "DDQN-cartpole", "--out", str(tmp_path / "other.html")], "lightning-rl") == 2
    )
    assert "the page plays RCP with network=layers, not the DDQN of" in capsys.readouterr().err


class Recorded:
    """A generator whose uniform numbers are kept."""

    def __init__(self, seed):
        self.rng, self.drawn = np.random.default_rng(seed), []

    def uniform(self, low, high, size=None):
        value = self.rng.uniform(low, high, size)
        self.drawn.append(np.asarray(value).tolist())
        return value

    def __getattr__(self, name):
        return getattr(self.rng, name)


def flight(seed):
    """A flight of Gymnasium's heuristic: what was drawn, the actions, observations and rewards."""
    from gymnasium.envs.box2d.lunar_lander import heuristic

    env = gymnasium.make("LunarLander-v3").unwrapped
    env._np_random = Recorded(seed)
    obs, over, actions, seen, rewards = env.reset()[0], False, [], [], []
    while not over:
        actions.append(int(heuristic(env, obs)))
        obs, reward, over, *_ = env.step(actions[-1])
        seen.append(obs.tolist())
        rewards.append(float(reward))
    return {"drawn": env._np_random.drawn, "actions": actions}, np.array(seen), rewards


REPLAY = """(flight => {
  const [heights, x, y, ...noise] = flight.drawn, lander = Object.create(Lander.prototype);
  for (let i = 3; i <= 7; i++) heights[i] = PAD;
  lander.dispersion = () => [noise.shift() / SCALE, noise.shift() / SCALE];
  const smooth = i => 0.33 * (heights[(i + 11) % 12] + heights[i] + heights[i + 1]);
  lander.start(Array.from({length: 11}, (_, i) => [2 * i, smooth(i)]), [x, y]);
  const seen = [], rewards = [];
  for (const action of flight.actions) { if (!lander.over) { rewards.push(lander.step(action)); seen.push(lander.obs()); } }
  return {seen, rewards, end: lander.end};
})"""  # noqa: E501


@needs_chromium
@pytest.mark.parametrize("seed", [4, 5, 10])
def test_the_physics_are_those_of_box2d(tab, seed):
    given, seen, rewards = flight(seed)
    found = tab.run(f"{REPLAY}({json.dumps(given)})")
    aloft = int((seen[:, 6:].sum(1) == 0).argmin())  # until a foot touches the ground
    assert aloft > 100
    assert np.abs(np.array(found["seen"])[:aloft] - seen[:aloft]).max() < 3e-3
    assert found["end"] == "landed"
    assert rewards[-1] == 100
    assert sum(found["rewards"]) == pytest.approx(sum(rewards), abs=1.0)


@needs_chromium
def test_the_policy_is_that_of_torch(tab):
    method = lightning_rl.load(AGENT).method
    policy, calibration = method.policy, method.calibrated()
    obs = np.random.default_rng(0).normal(size=(5, 8)).astype(np.float32)
    for asked in np.linspace(*calibration.limits, 7).tolist():
        first, guidance = calibration.command(asked)
        command = tab.run(f"policy.command({asked})")
        assert (command["first"], command["guidance"]) == pytest.approx((first, guidance), abs=1e-4)
        told = torch.full((5, 1), first)
        with torch.no_grad():
            output, usual = (
                policy.net(torch.from_numpy(obs), told),
                policy.net(torch.from_numpy(obs), policy.usual_command(told)),
            )
        expected = (output + guidance * (output - usual)).numpy()
        found = [
            tab.run(f"policy.logits({row.tolist()}, {{first: {first}, guidance: {guidance}}})")
            for row in obs
        ]
        assert np.abs(np.array(found) - expected).max() < 1e-3


@needs_chromium
def test_the_slider_asks_and_the_returns_follow(tab):
    tab.run("setPause(true); setSweep(false); $('asked').focus()")
    before = tab.run("[demo.asked, demo.number]")
    tab.key("ArrowLeft")
    tab.key("ArrowLeft")
    assert tab.run("[demo.asked, demo.number]") == [before[0] - 10, before[1] + 2]
    assert tab.run("$('asked-value').textContent") == str(before[0] - 10)
    obtained = {}
    for where in ("LOW + 40", "HIGH - 20"):
        fly = "begin(); while (!demo.lander.over) step(); all.push(demo.lander.total);"
        flights = f"const all = []; for (let i = 0; i < 12; i++) {{ {fly} }} return mean(all);"
        obtained[where] = tab.run(f"(() => {{ ask({where}); {flights} }})()")
    assert obtained["HIGH - 20"] - obtained["LOW + 40"] > 100
    assert "obtained" in tab.run("$('summary').textContent")
    tab.run("setPause(false)")
    tab.wait("demo.lander.steps > 5 || demo.flights.length > 24")
    tab.key("f", "f")
    assert tab.run("$('speed').textContent") == "4×"
    assert math.isfinite(float(tab.run("$('so-far').textContent")))
