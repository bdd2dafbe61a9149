"""Policies as folders: onnxruntime and torch's own graph act as the library does, and what is
written is read back, but nothing that was changed.
"""

import io
import json
import sys

import numpy as np
import pytest
import torch
from helpers import ROOT
from helpers.methods import build

import lightning_rl
from lightning_rl.cli import main
from lightning_rl.core.errors import UserError
from lightning_rl.lab.demo.page import page
from lightning_rl.methods.registry import IMPLEMENTATIONS
from lightning_rl.nets.command import Calibration
from lightning_rl.run.acting import LoadedAgent
from lightning_rl.run.shipped import shipped_agents

onnxruntime = pytest.importorskip("onnxruntime")
pytest.importorskip("onnxscript")
safetensors = pytest.importorskip("safetensors.torch")

from lightning_rl.run.export import graph, onnx_model  # noqa: E402
from lightning_rl.run.whole_policy import WholePolicy  # noqa: E402

COUNT = 1000
PLACES = {
    "QL": "emptyroom22",
    "SARSA": "emptyroom22",
    "TD3": "pendulum",
    "PCN": "deep-sea-treasure",
    **dict.fromkeys(
        ("ER", "perfect-model", "simple-model", "categorical-latent", "gaussian-latent"),
        "panflute-5",
    ),
}
"""Where a method is tried; others on cartpole, and on pendulum if they fit."""
LEARN_A_PROXY = ("SE", "RN", "SD", "MBRL")


def tried():
    for name in IMPLEMENTATIONS:
        if name in LEARN_A_PROXY:
            continue
        yield name, PLACES.get(name, "cartpole")
        spec = lightning_rl.envs.spec.env_spec("pendulum")
        if name not in PLACES and IMPLEMENTATIONS[name].why_unsupported(spec) is None:
            yield name, "pendulum"


def runs(whole):
    """The policy in onnxruntime, and as the graph that torch reads back: functions of named arrays
    that give named arrays.
    """
    program = graph(whole)
    session = onnxruntime.InferenceSession(onnx_model(program, whole))
    assert [each.name for each in session.get_inputs()] == list(whole.inputs)
    data = io.BytesIO()
    torch.export.save(program, data)
    data.seek(0)
    module = torch.export.load(data).module()

    def by_onnx(inputs):
        found = session.run(whole.outputs, inputs)
        return dict(zip(whole.outputs, found, strict=True))

    def by_torch(inputs):
        given = {name: torch.from_numpy(value) for name, value in inputs.items()}
        return {name: value.numpy() for name, value in module(**given).items()}

    return by_onnx, by_torch


def by_hand(method, obs, command, guidance, noise):
    """The actions of the policy as episodes are played with it."""
    agent = LoadedAgent(method)
    given = [torch.from_numpy(obs).flatten(1), command, torch.from_numpy(noise)]
    if command is not None:
        given[1] = torch.from_numpy(command)
    if guidance is not None:
        given.append(torch.from_numpy(guidance))
    with torch.inference_mode():
        return agent._own_action(method.policy.act(*given).numpy())


def disagreement(method):
    """The largest difference of an action over observations, commands and noise."""
    whole = WholePolicy(method)
    rng = np.random.default_rng(0)
    obs = rng.normal(size=(COUNT, method.spec.obs_size)).astype(np.float32)
    if method.spec.one_hot:
        obs = np.eye(method.spec.obs_size, dtype=np.float32)[rng.integers(0, obs.shape[1], COUNT)]
    if method.spec.frames is not None:
        obs = rng.integers(0, 256, (COUNT, *method.spec.frames.shape)).astype(np.uint8)
    noise = method.policy.draw_noise(rng, (COUNT, method.policy.noise_size))
    inputs = {"obs": obs}
    if method.policy.noise_size:
        inputs["noise"] = noise
    command = guidance = None
    if "command" in whole.inputs:
        usual = np.array(method.first_command(), np.float32)
        command = usual * rng.uniform(0.5, 1.5, (COUNT, len(usual))).astype(np.float32)
        inputs["command"] = command
    if whole.calibration is not None:
        low, high = whole.limits
        asked = rng.uniform(low, high, COUNT).astype(np.float32)
        asked[::2] = np.nan  # every other one is asked for the raw command
        inputs["command"] = np.concatenate([asked[:, None], command], axis=1)
        guidance = np.full((COUNT, 1), float(method.policy.guidance), np.float32)
        for row in range(1, COUNT, 2):
            command[row, 0], guidance[row, 0] = method.calibration.command(float(asked[row]))
    if whole.rule is not None:
        going = usual * rng.uniform(0.5, 1.5, (COUNT, len(usual))).astype(np.float32)
        shape = (COUNT, *whole.inputs["reward"].shape[1:])
        reward = rng.normal(size=shape).astype(np.float32)
        begins = rng.random(COUNT) < 0.5
        inputs |= {"state": going, "reward": reward, "episode_start": begins}
        command = np.where(begins[:, None], command, method.command_rule()(going, reward))
        command = command.astype(np.float32)
    sampled = by_hand(method, obs, command, guidance, noise)
    best = by_hand(method, obs, command, guidance, np.zeros_like(noise))
    worst = 0.0
    for act in runs(whole):
        found = act(inputs)
        worst = max(worst, np.abs(found["action"] - sampled).max())
        assert found["action"].dtype == np.asarray(sampled).dtype
        if "noise" in inputs:
            worst = max(worst, np.abs(found["deterministic_action"] - best).max())
        if whole.rule is not None:
            np.testing.assert_allclose(found["next_state"], command, rtol=1e-6)
    return worst


# Of each kind of action one, and one whose commands go on; all others are slow.
QUICK = ("UDRL-lunarlander", "TD3-pendulum", "DDQN-cartpole")


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[] if name in QUICK else [pytest.mark.slow])
        for name in shipped_agents()
    ],
)
def test_a_shipped_agent_acts_the_same(name):
    assert disagreement(lightning_rl.load(name).method) <= 1e-5


@pytest.mark.parametrize("name", ["AAC", pytest.param("UDRL", marks=pytest.mark.slow)])
def test_a_policy_of_images_acts_the_same(name):
    method = build(name, "square", frame_stack=2).eval()
    assert WholePolicy(method).inputs["obs"].shape[1:] == method.spec.frames.shape
    assert disagreement(method) <= 1e-5


@pytest.mark.slow
@pytest.mark.usefixtures("toy_games")
@pytest.mark.parametrize("name", ["UDRL", "DDQN"])
def test_a_policy_of_masked_actions_acts_the_same(name):
    assert disagreement(build(name, "masked", action_masks=True).eval()) <= 1e-5


@pytest.mark.slow
@pytest.mark.usefixtures("toy_games")
@pytest.mark.parametrize("name", ["RCP-R", "AAC"])
def test_a_policy_of_several_actions_acts_the_same(name):
    assert disagreement(build(name, "factored").eval()) <= 1e-5


@pytest.mark.slow
def test_a_policy_of_normalised_observations_acts_the_same():
    method = build("RCP-A", "pendulum", normalise_obs=True).eval()
    method.normaliser.see(torch.tensor([[0.5, -1.0, 6.0], [-0.5, 3.0, -9.0]]))
    assert disagreement(method) <= 1e-5


@pytest.mark.slow
@pytest.mark.parametrize(("name", "gamename"), tried())
def test_every_method_acts_the_same(name, gamename):
    method = build(name, gamename).eval()
    with torch.no_grad():
        for parameter in method.policy.parameters():  # the first policies hardly differ
            parameter.mul_(3)
    if hasattr(method, "calibration"):
        method.policy.guidance.fill_(0.5)
        method.target.ask_for(torch.tensor([3.0] * len(method.command_names)))
    assert disagreement(method) <= 1e-5


@pytest.mark.slow
def test_a_policy_that_is_told_what_is_owed_acts_the_same():
    settings = {"command_rule": "decrease", "target": "between", "target_labels": "episode"}
    method = build("RCP-A", "cartpole", command="owed", lowest=0.0, **settings).eval()
    method.target.ask_for(torch.tensor([3.0, 1.0]))
    assert disagreement(method) <= 1e-5


@pytest.mark.slow
def test_a_calibrated_policy_of_noisy_commands_acts_the_same():
    method = build("RCP-A", "pendulum", command_draw="step", hidden=[8, 8]).eval()
    method.policy.command_noise.copy_(torch.tensor([0.5, -1.0, 2.0]))
    asked = np.linspace(-10, 10, Calibration.POINTS)
    guidance = np.repeat([0.0, 1.0, 0.5], Calibration.POINTS // 3)
    method.calibration.set(asked, np.sin(asked), guidance)
    assert disagreement(method) <= 1e-5
    method.policy.command_noise.zero_()
    method.calibration.clear()
    assert disagreement(method) <= 1e-5


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    """A calibrated agent of the package, as a folder."""
    folder = tmp_path_factory.mktemp("exported") / "lander"
    words = ["export", "RCP-A-lunarlander", str(folder), "--episodes", "2", "--license", "cc0-1.0"]
    assert main(words, "lightning-rl") == 0
    return folder


@pytest.fixture
def copied(exported, tmp_path):
    folder = tmp_path / "lander"
    folder.mkdir()
    for path in exported.iterdir():
        (folder / path.name).write_bytes(path.read_bytes())
    return folder


def test_a_folder_is_read_back_as_the_agent_that_it_was(exported, monkeypatch):
    before = lightning_rl.load("RCP-A-lunarlander")
    monkeypatch.setattr(torch, "load", None)  # no pickle is opened, nor a graph
    monkeypatch.setattr(torch.export, "load", None)
    after = lightning_rl.load(exported)
    assert repr(after) == repr(before)
    assert int(after.method.env_steps) == int(before.method.env_steps) > 0
    env = lightning_rl.make_env("lunarlander")
    for command in ({"return": 100}, {"advantage": 2}):
        actions = []
        for agent in (before, after):
            obs, _ = env.reset(seed=0)
            agent.reset(command=command, seed=1)
            actions.append([agent.act(env.step(agent.act(obs))[0]) for _ in range(20)])
        assert actions[0] == actions[1]


def test_no_file_names_a_place_of_the_machine_that_made_it(exported):
    for path in exported.iterdir():
        content = path.read_bytes()
        assert str(ROOT).encode() not in content, path.name
        assert str(exported.parent).encode() not in content, path.name


def test_the_page_of_a_folder_is_that_of_the_agent(exported):
    before, after = (
        page([name]).partition('"task"')[2].partition("</script>")[0]
        for name in ("RCP-A-lunarlander", str(exported))
    )
    assert len(before) > 10_000
    assert after == before


def test_the_card_says_how_to_act(exported, monkeypatch):
    text = (exported / "README.md").read_text()
    results = json.loads((exported / "results.json").read_text())
    assert f"value: {results['mean_reward']:.2f} +/- {results['std_reward']:.2f}" in text
    assert "license: cc0-1.0" in text
    code = text.partition("```python\n")[2].partition("```")[0]
    assert len(code.splitlines()) == 5
    monkeypatch.chdir(exported)
    names = {}
    exec(code, names)
    assert names["env"].action_space.contains(names["action"])
    agent = lightning_rl.load("RCP-A-lunarlander")
    agent.reset(greedy=True)
    assert agent.act(names["obs"]) == names["action"]


@pytest.mark.slow
def test_an_export_replaces_what_it_has_written_and_nothing_else(copied, capsys):
    agent = lightning_rl.load(copied)
    agent.export(copied)
    assert not (copied / "results.json").exists()  # of the agent that was evaluated
    (copied / "README.md").write_text("mine")
    with pytest.raises(UserError, match=r"README.md' was not written by this command"):
        agent.export(copied)
    assert (copied / "README.md").read_text() == "mine"
    agent.export(copied, force=True)
    assert "It was not evaluated." in (copied / "README.md").read_text()
    assert main(["eval", str(copied), "--calibrate"], "lightning-rl") == 2
    assert "an exported policy stays as it is" in capsys.readouterr().err


def edited(folder, change):
    config = json.loads((folder / "config.json").read_text())
    change(config)
    (folder / "config.json").write_text(json.dumps(config))


def with_weights(folder, change):
    """Other weights, of which the config tells."""
    state = safetensors.load((folder / "model.safetensors").read_bytes())
    change(state)
    data = safetensors.save(state)
    (folder / "model.safetensors").write_bytes(data)
    digest = lightning_rl.core.outputs.checksum(data)
    edited(folder, lambda config: config["files"].update({"model.safetensors": digest}))


FIRST = "policy.net.net.layers.0.weight"
SPOILT = {
    "a config of a wrong kind": (
        lambda folder: edited(folder, lambda config: config.update(format=2)),
        r"not written by lightning-rl export \(format: 2, expected",
    ),
    "a key too many": (
        lambda folder: edited(folder, lambda config: config.update(auto_map="code.py")),
        "'auto_map', which does not belong there",
    ),
    "no number": (
        lambda folder: (folder / "config.json").write_text('{"format": NaN}'),
        "NaN is no number of JSON",
    ),
    "too deep": (
        lambda folder: (folder / "config.json").write_text("[" * 10**5),
        "not written by lightning-rl export",
    ),
    "an unknown method": (
        lambda folder: edited(folder, lambda c: c["hyper_parameters"].update(implementation="X")),
        "implementation 'X' is unknown",
    ),
    "a large network": (
        lambda folder: edited(
            folder, lambda c: c["hyper_parameters"]["config"].update(hidden=[60000, 60000])
        ),
        "its file has room for",
    ),
    "other weights": (
        lambda folder: (folder / "model.safetensors").write_bytes(b"0" * 100),
        "are not those that 'config.json' beside them tells of",
    ),
    "no safetensors": (
        lambda folder: (
            (folder / "model.safetensors").write_bytes(b"0" * 100),
            edited(
                folder,
                lambda config: config["files"].update(
                    {"model.safetensors": lightning_rl.core.outputs.checksum(b"0" * 100)}
                ),
            ),
        ),
        "are damaged",
    ),
    "not finite": (
        lambda folder: with_weights(folder, lambda state: state[FIRST].fill_(np.nan)),
        f"{FIRST}: .* numbers are NaN or infinite",
    ),
    "another shape": (
        lambda folder: with_weights(folder, lambda s: s.update({FIRST: s[FIRST][:-1].clone()})),
        "size mismatch",
    ),
    "another name": (
        lambda folder: with_weights(folder, lambda s: s.update(more=s[FIRST].clone())),
        "more is missing, or does not belong there",
    ),
    "no config": (lambda folder: (folder / "config.json").unlink(), "does not exist"),
}


@pytest.mark.parametrize("fault", SPOILT)
def test_what_was_changed_is_refused(copied, fault):
    spoil, message = SPOILT[fault]
    spoil(copied)
    with pytest.raises(UserError, match=message):
        lightning_rl.load(copied)


def test_an_agent_that_learned_on_a_proxy_is_read_back_without_training(tmp_path, monkeypatch):
    method = build("SE", "cartpole").eval()
    method.prepare_evaluation()
    LoadedAgent(method).export(tmp_path / "se")
    monkeypatch.setattr(type(method.inner_loop), "train", None)
    again = lightning_rl.load(tmp_path / "se")
    obs = torch.randn(100, 4)
    assert torch.equal(again.method.policy(obs), method.policy(obs))
    assert lightning_rl.evaluate(tmp_path / "se", episodes=1)["agent"] == "PPO"


def test_a_missing_package_is_one_line_that_names_the_extra(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "onnxscript", None)
    out = tmp_path / "out"
    assert main(["export", "DDQN-cartpole", str(out)], "lightning-rl") == 2
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert "an export needs onnxscript: pip install 'lightning_rl[export]'" in line
    assert not out.exists()


def test_what_no_graph_can_hold_is_refused(tmp_path):
    class Branching(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(5, 2)

        def forward(self, obs, command):
            seen = torch.cat([obs, command], -1)
            return self.layer(seen if float(obs.sum()) > 0 else -seen)

    method = lightning_rl.RCPR("cartpole", networks={"policy": Branching()}, weights="none")
    with pytest.raises(UserError, match="no graph can hold this policy"):
        LoadedAgent(method).export(tmp_path / "own")
