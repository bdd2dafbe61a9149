"""Actions that ``info["action_mask"]`` forbids: the key ``action_masks``."""

import gymnasium
import numpy as np
import pytest
import torch
from helpers.methods import build
from helpers.runs import last, run_cli, run_dir, train_cli
from helpers.toys import MaskedTask

import lightning_rl
from lightning_rl.core.errors import RolloutError, UserError
from lightning_rl.envs.gym import rollout_env
from lightning_rl.envs.spec import env_spec
from lightning_rl.functional.distributions import Categorical
from lightning_rl.functional.value_learning import double_q_target
from lightning_rl.nets.masked import Masked, epsilon_greedy_of_possible, masked
from lightning_rl.run.acting import LoadedAgent

pytestmark = pytest.mark.usefixtures("toy_games")


def test_what_a_mask_leaves_by_hand():
    obs = torch.tensor([[7.0, 1, 0, 1]])
    logits = masked(torch.tensor([[0.0, 9.0, 0.0]]), obs)
    assert logits.tolist() == [[0, -1e9, 0]]
    distribution = Categorical(logits)
    torch.testing.assert_close(distribution.log_prob(torch.tensor([2])), torch.tensor([-0.6931472]))
    torch.testing.assert_close(distribution.entropy(), torch.tensor([0.6931472]))
    # r + 0.5 * the target network's value of the better one of the actions 0 and 2
    target = double_q_target(torch.tensor([1.0]), torch.tensor([0.5]), logits, logits + 4)
    assert target.tolist() == [1 + 0.5 * 4]


def test_random_actions_are_drawn_from_possible_ones():
    q = masked(torch.tensor([[1.0, 5.0, 2.0, 0.0]]), torch.tensor([[1.0, 0, 1, 1]])).expand(4, -1)
    draws = torch.tensor([[0.0, 0.0], [0.0, 0.34], [0.0, 0.99], [0.9, 0.0]])
    assert epsilon_greedy_of_possible(q, torch.full((4,), 0.5), draws).tolist() == [0, 2, 3, 2]


QUICK = ("RCP-A", "DDQN")


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[] if name in QUICK else [pytest.mark.slow])
        for name in ("UDRL", "RCP-R", "RCP-A", "AAC", "DDQN", "DuelingDDQN", "PPO")
    ],
)
def test_a_forbidden_action_is_never_taken_however_well_it_pays(name, tmp_path):
    MaskedTask.forbidden = 0
    for folder, stops in (("once", "2"), ("twice", "12")):
        for epochs in stops:
            flags = ("--resume", "--max_epochs", epochs)
            game = {"implementation": name, "gamename": "masked", "action_masks": True}
            assert run_cli(tmp_path / folder, *flags, **game) == 0
    once, twice = (
        last(tmp_path / each, name, "masked")["state_dict"] for each in ("once", "twice")
    )
    assert all(torch.equal(once[key], twice[key]) for key in once)
    assert once["env_steps"] >= 60
    assert MaskedTask.forbidden == 0
    agent = lightning_rl.load(run_dir(tmp_path / "once", "masked", implementation=name))
    assert lightning_rl.evaluate(agent, episodes=5)["sampled"]["return"]["max"] <= 10
    assert MaskedTask.forbidden == 0


def test_the_better_one_of_two_possible_actions_is_learned(tmp_path):
    settings = {"learning_rate": 0.05, "hidden": [32], "num_episodes_per_iter": 8}
    settings |= {"eval_interval": 20, "eval_episodes": 2, "max_epochs": 20}
    where = {"logger": False, "num_workers": 0, "logdir": str(tmp_path)}
    run = lightning_rl.train("AAC", "masked", action_masks=True, **where, **settings)
    assert run.method.scalars["eval_greedy/return_mean"] == 10


def test_agents_take_masks_beside_observations():
    method = build("UDRL", "masked", action_masks=True).eval()
    agent, env = LoadedAgent(method), lightning_rl.make_env(method.spec)
    seen, info = env.reset(seed=0)
    assert seen.tolist() == [1, *info["action_mask"]]
    assert env.observation_space.contains(seen)
    obs = np.tile(seen[:1], (200, 1))
    masks = np.tile(np.eye(3), (67, 1))[:200]
    actions = agent.predict(obs, action_mask=masks)[0]
    assert actions.tolist() == [0, 1, 2] * 66 + [0, 1]
    assert agent.act(obs[0], action_mask=(0, 1, 0)) == 1 == agent.act(np.array([1.0, 0, 1, 0]))
    for wrong in ([0, 0, 0], [1, 2, 0], [1, 1], "all"):
        with pytest.raises(UserError, match="give 3 numbers 0 or 1, at least one of"):
            agent.act(obs[0], action_mask=wrong)
    with pytest.raises(UserError, match="obs has 1 numbers; an observation of 'masked' has 4"):
        agent.act(obs[0])
    with pytest.raises(UserError, match="action_mask: this agent was trained without"):
        LoadedAgent(build("UDRL", "masked")).act(obs[0], action_mask=[1, 1, 1])


class MaskedParts(MaskedTask):
    """The same task, seen in two parts."""

    observation_space = gymnasium.spaces.Dict(
        {"left": MaskedTask.observation_space, "twice": MaskedTask.observation_space}
    )

    def reset(self, **kwargs):
        obs, info = super().reset(**kwargs)
        return {"left": obs, "twice": obs}, info

    def step(self, action):
        obs, *rest = super().step(action)
        return {"left": obs, "twice": obs}, *rest


def test_masks_go_with_batches_of_dictionaries():
    lightning_rl.register_env("masked-parts", MaskedParts, horizon=10)
    agent = LoadedAgent(build("UDRL", "masked-parts", action_masks=True).eval())
    column = np.ones((3, 1), np.float32)
    actions, _ = agent.predict({"left": column, "twice": column}, action_mask=np.eye(3))
    assert actions.tolist() == [0, 1, 2]
    with pytest.raises(UserError, match="action_mask has 2 rows, obs 3; give one for each"):
        agent.predict({"left": column, "twice": column}, action_mask=np.eye(3)[:2])


def test_own_networks_are_masked():
    method = build("AAC", "masked", action_masks=True)
    own = type(method)(
        "masked",
        implementation="AAC",
        config=method.cfg,
        networks={"policy": torch.nn.Linear(4, 3)},
    )
    assert isinstance(own.policy.net, Masked)
    output = own.policy.distribution(torch.tensor([[1.0, 0, 1, 0]])).output
    assert (output < -1e8).tolist() == [[True, False, True]]


class Forgetful(MaskedTask):
    """Gives no mask after its second step."""

    def step(self, action):
        *outcome, info = super().step(action)
        return (*outcome, info if self.left > 8 else {})


def test_masks_that_are_none_are_reported_with_the_line(monkeypatch):
    lightning_rl.register_env("forgetful", Forgetful, horizon=10)
    env = rollout_env(env_spec("forgetful").with_masks())
    env.reset(seed=3)
    env.step(0)
    with pytest.raises(
        RolloutError, match=r"action_mask None in info.*Forgetful at .*seed 3, step 2"
    ):
        env.step(0)


@pytest.mark.parametrize(
    ("gamename", "reason"),
    [
        ("count", "gives no action_mask in info"),
        ("pendulum", "has continuous actions"),
        ("square", "has images"),
    ],
)
def test_where_there_are_no_masks_the_key_is_refused(gamename, reason):
    with pytest.raises(UserError, match=f"action_masks: gamename '{gamename}' {reason}"):
        build("UDRL", gamename, action_masks=True)


@pytest.mark.parametrize(("name", "remedy"), [("AAC", "action_masks=true"), ("QL", "QL cannot")])
def test_masks_that_are_not_used_are_said(name, remedy, tmp_path, capsys):
    game = {"gamename": "masked" if name == "AAC" else "Taxi-v4", "implementation": name}
    train_cli(tmp_path, 1, **game)
    (line,) = [line for line in capsys.readouterr().out.splitlines() if "action_mask" in line]
    assert remedy in line
