"""The page in which agents play what a slider asks of them: its physics beside Gymnasium's, its
policies beside torch, its use.
"""

import json

import gymnasium
import numpy as np
import pytest
import torch
from helpers.chromium import Chromium, needs_chromium

import lightning_rl
from lightning_rl.cli import main
from lightning_rl.lab.demo.page import page

AGENTS = (
    "RCP-A-lunarlander",
    "obedient-lunarlander",
    "UDRL-lunarlander",
    "RCP-A-pendulum",
    "DDQN-cartpole",
    "TD3-pendulum",
)
OURS = ("file://", "data:")


@pytest.fixture(scope="module")
def tab(tmp_path_factory):
    folder = tmp_path_factory.mktemp("demo")
    file = folder / "demo.html"
    file.write_text(page(AGENTS))
    with Chromium(folder / "profile") as tab:
        tab.open(file, "typeof demo === 'object' && demo.number >= 1")
        yield tab
        assert not tab.errors
        assert all(address.startswith(OURS) for address in tab.requests), tab.requests


def test_the_page_is_one_small_file_that_may_load_nothing(tmp_path, capsys):
    file, code = tmp_path / "demo.html", "https://example.org/code"
    assert main(["demo", "--out", str(file), "--code", code], "lightning-rl") == 0
    text = file.read_text()
    assert len(text) < 500_000
    assert "default-src 'none'" in text
    assert not [mark for mark in ("http://", '<link rel="stylesheet"', "src=") if mark in text]
    assert f'<a href="{code}"' in text
    file.write_text("mine")
    assert main(["demo", "--out", str(file)], "lightning-rl") == 2
    other = str(tmp_path / "other.html")
    assert main(["demo", "simple-model-panflute", "--out", other], "lightning-rl") == 2
    assert "the page has lunarlander, cartpole and pendulum" in capsys.readouterr().err
    assert main(["demo", "--out", other, "--code", "javascript:x"], "lightning-rl") == 2


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
  lander.horizon = 1000;
  lander.dispersion = () => [noise.shift() / SCALE, noise.shift() / SCALE];
  lander.start(heights, [x, y]);
  const seen = [], rewards = [];
  for (const action of flight.actions) {
    if (lander.over) break;
    rewards.push(lander.step(action));
    seen.push(lander.obs());
  }
  return {seen, rewards, end: lander.end};
})"""


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


ROLL = """((Task, state, actions) => {
  const task = Object.create(Task.prototype);
  task.horizon = actions.length;
  task.start(state);
  return actions.map(action => [task.step(action), ...task.obs(), task.over]);
})"""


@needs_chromium
@pytest.mark.parametrize("name", ["CartPole", "Pendulum"])
def test_a_classic_task_is_that_of_gymnasium_step_by_step(tab, name):
    env = gymnasium.make(f"{name}-v1").unwrapped
    rng = np.random.default_rng(0)
    for episode in range(5):
        env.reset(seed=episode)
        start, over, actions, seen = list(env.state), False, [], []
        while not over and len(actions) < 200:
            action = int(rng.integers(2))
            if name == "Pendulum":
                action = rng.uniform(-3, 3, 1)
            obs, reward, over, *_ = env.step(action)
            actions.append(float(np.squeeze(action)))
            seen.append([reward, *obs])
        found = tab.run(f"{ROLL}({name}, {json.dumps(start)}, {json.dumps(actions)})")
        np.testing.assert_allclose([row[:-1] for row in found], seen, rtol=1e-6, atol=1e-6)
        assert [row[-1] for row in found] == [False] * (len(found) - 1) + [True]


@needs_chromium
@pytest.mark.parametrize("name", AGENTS)
def test_the_policy_is_that_of_torch(tab, name):
    method = lightning_rl.load(name).method
    policy, calibration = method.policy, method.calibrated()
    tab.run(f"policy = new Policy(AGENTS.find(each => each.name === '{name}')); 0")
    obs = np.random.default_rng(0).normal(size=(3, method.spec.obs_size)).astype(np.float32)
    seen = torch.from_numpy(obs)

    def outputs(command):
        js = json.dumps(command)
        return np.array([tab.run(f"policy.output({row.tolist()}, {js})") for row in obs])

    def acted(output, command):
        """With constant noise: of a normal one, -1.177 standard deviations."""
        found = tab.run(f"policy.act({obs[0].tolist()}, {json.dumps(command)}, () => 0.5)")
        if method.spec.continuous:
            spread = np.exp(np.clip(output[1:], -3, 0.5)).sum()
            return found == pytest.approx(2 * np.tanh(output[0]) - 2 * 1.17741 * spread, abs=1e-3)
        return found == output.argmax()

    if calibration is None:
        with torch.no_grad():
            expected = policy.net(seen).numpy()
        assert np.abs(outputs(None) - expected).max() < 1e-4
        assert acted(expected[0], None)
        return
    for asked in np.linspace(*calibration.limits, 4).tolist():
        first, guidance = calibration.command(asked)
        numbers = [first, *method.first_command()[1:]]
        command = tab.run(f"policy.command({asked})")
        assert command["numbers"] == pytest.approx(numbers, abs=1e-4)
        assert command["guidance"] == pytest.approx(guidance)
        told = torch.tensor([numbers] * 3)
        with torch.no_grad():
            output, usual = policy.net(seen, told), policy.net(seen, policy.usual_command(told))
        guided = policy.distribution_class.guided(output, usual, torch.tensor(guidance)).numpy()
        assert np.abs(outputs(command) - guided).max() < 2e-3
        assert acted(guided[0], command)
        after = tab.run(f"policy.after({json.dumps(command)}, 7.5).numbers")
        rule = method.command_rule()
        if rule is not None:
            numbers = rule(told[:1].numpy(), np.float32([7.5]))[0].tolist()
        assert after == pytest.approx(numbers, abs=1e-3)


@needs_chromium
def test_the_slider_asks_and_the_returns_follow(tab):
    tab.run("location.hash = '#asked=100'")
    tab.wait("demo.asked === 100")
    tab.run("setPause(true); $('asked').focus()")
    before = tab.run("demo.number")
    tab.key("ArrowLeft")
    tab.key("ArrowLeft")
    assert tab.run("[demo.asked, demo.number]") == [90, before + 2]
    assert tab.run("[$('asked-value').textContent, location.hash]") == ["90", "#asked=90"]
    obtained = {}
    for where in ("range.low + 40", "range.high - 20"):
        play = "begin(); while (!demo.task.over) step(); all.push(demo.task.total);"
        episodes = f"const all = []; for (let i = 0; i < 12; i++) {{ {play} }} return mean(all);"
        obtained[where] = tab.run(f"(() => {{ ask(demo.{where}); {episodes} }})()")
    assert obtained["range.high - 20"] - obtained["range.low + 40"] > 100
    assert "obtained" in tab.run("$('summary').textContent")
    assert not tab.run("demo.sweeping")
    tab.key("s", "s")
    tab.run("next()")
    assert tab.run("demo.sweeping && demo.asked") != tab.run("demo.range.high - 20")
    tab.key("s", "s")
    tab.key("f", "f")
    assert tab.run("$('speed').textContent") == "4×"


@needs_chromium
def test_the_user_takes_over_and_is_not_among_the_agents_episodes(tab):
    tab.run("location.hash = '#agent=DDQN-cartpole'")
    tab.wait("demo.agent.name === 'DDQN-cartpole'")
    tab.run("setPause(true)")
    tab.key("t", "t")
    assert tab.run("[demo.taken, demo.mine, demo.paused]") == [True, True, False]
    tab.run("setPause(true); demo.episodes = []; begin(); demo.keys = {}")
    tab.call("Input.dispatchKeyEvent", type="keyDown", key="ArrowRight")
    assert tab.run("step(), demo.task.state[1]") > 0.1
    tab.call("Input.dispatchKeyEvent", type="keyUp", key="ArrowRight")
    tab.call("Input.dispatchKeyEvent", type="keyDown", key="ArrowLeft")
    assert tab.run("step(), step(), demo.task.state[1]") < 0.1
    tab.run("while (!demo.task.over) step()")
    assert tab.run("demo.episodes.map(each => each.mine)") == [True]
    assert tab.run("$('summary').textContent") == "no episode has ended yet"
    tab.key("t", "t")
    tab.run("begin(); while (!demo.task.over) step()")
    assert tab.run("$('summary').textContent") == "1 episode, return 500"


@needs_chromium
def test_an_episode_beyond_the_plot_is_an_arrow(tab):
    shapes = """(() => {
      const drawn = [], pen = { beginPath() {}, moveTo() {}, lineTo() {}, fill() {}, stroke() {} };
      pen.arc = () => drawn.push("dot");
      pen.lineTo = (x, y) => drawn.push(y);
      const range = { asks: true, low: 0, high: 100, lowest: 0, highest: 100 };
      const axes = axesOf(300, 300, range, 0), at = obtained => (
        drawEpisode(pen, axes, 50, { obtained, mine: false }, "red"), drawn.splice(0));
      return [at(50), at(-500), at(500)].map(
        each => (each[0] === "dot" ? "dot" : Math.sign(each.at(-1) - each[0])));
    })()"""
    assert tab.run(shapes) == ["dot", 1, -1]  # down, up


@needs_chromium
def test_a_phone_shows_all_of_the_width(tab):
    size = {"width": 390, "height": 844, "deviceScaleFactor": 2, "mobile": True}
    tab.call("Emulation.setDeviceMetricsOverride", **size)
    tab.call("Page.reload")
    tab.wait("typeof demo === 'object' && innerWidth === 390")
    assert tab.run("document.documentElement.scrollWidth") == 390
