"""A user's own ``FuncEnv``: whatever its states are, runs on it go on; its mistakes are told in
one line, with file and line.
"""

from pathlib import Path

import pytest
import torch
from helpers.runs import run_cli, train_cli

from lightning_rl import ModelBased
from lightning_rl.core.gamenames import GAMES, Game
from lightning_rl.envs.adapters import FUNC_ENVS, func_env, make_envs
from lightning_rl.envs.checked import CheckedFunc
from lightning_rl.envs.func_env import FuncEnv, Step
from lightning_rl.envs.spec import env_spec


class Swing(FuncEnv):
    """state: a number of ``SCALE``'s and a direction, -1 or 1; a step goes that way, and every
    third turns round.
    """

    obs_low, obs_high, action_size, binary_obs = (0.0, 0.0), (1.0, 1.0), 2, True
    SCALE = 1

    def reset(self, noise):
        return torch.tensor([0, -1]).expand(*noise.shape[:-1], 2).clone()

    def observe(self, state):
        return torch.stack([state[..., 0] % 2 == 0, state[..., 1] > 0], dim=-1).float()

    def step(self, state, action, noise):
        place, way = state.unbind(-1)
        way = torch.where((place % (3 * self.SCALE) == 0) & (place != 0), -way, way)
        after = torch.stack([place + self.SCALE * way, way], dim=-1)
        return Step(
            after, self.observe(after), action.float(), torch.zeros_like(place, dtype=torch.bool)
        )


class Far(Swing):
    SCALE = 40_000  # more than 16 bits hold


@pytest.fixture
def named(monkeypatch):
    def name(kind):
        monkeypatch.setitem(GAMES, "own", Game(kind, horizon=9))
        return env_spec("own")

    return name


@pytest.mark.parametrize("kind", [Swing, Far])
@pytest.mark.parametrize("implementation", ["ER", "perfect-model"])
def test_states_may_be_any_whole_numbers(tmp_path, named, kind, implementation):
    """Also where a run stops at a state below 0, or its memory holds what 16 bits do not."""
    named(kind)
    for epochs in ("1", "2", "3"):
        train_cli(tmp_path, epochs, "--resume", gamename="own", implementation=implementation)


def test_the_perfect_model_goes_on_from_states_that_were(named):
    spec = named(Far)
    source = ModelBased(
        "own", implementation="perfect-model", replay_size=8, batch_size=4
    ).agent.source
    states = make_envs(spec, [0]).env.reset(torch.zeros(1, 0))
    for _ in range(5):
        states = Far().step(states, torch.zeros(1, dtype=torch.int64), None).state
        source.remember(states, None)
    assert set(source.sample(0).flatten().tolist()) <= {
        -120_000,
        -80_000,
        -40_000,
        0,
        40_000,
        -1,
        1,
    }


def changed(call, change):
    """A class whose ``call`` gives something else, by ``change``."""
    return type(
        "Own", (Swing,), {call: lambda self, *inputs: change(getattr(Swing, call)(self, *inputs))}
    )


def raising(self, state, action, noise):
    raise KeyError("no such door")


MISTAKES = [
    (
        type("Own", (Swing,), {"step": raising}),
        "KeyError: 'no such door' -- raised in step() of Own at",
    ),
    (
        changed("step", lambda s: s._replace(terminated=s.terminated.float())),
        "gave terminated float32 [1], expected bool [1]",
    ),
    (
        changed("step", lambda s: s._replace(reward=s.reward * float("nan"))),
        "step() gave rewards nan, expected finite numbers",
    ),
    (
        changed("step", lambda s: s._replace(reward=s.reward.unsqueeze(-1))),
        "gave rewards float32 [1, 1], expected float32 [1]",
    ),
    (
        changed("step", lambda s: s._replace(state=s.state.float())),
        "step() gave states float32 [1, 2], expected int64 [1, 2]",
    ),
    (
        changed("step", lambda s: s._replace(obs=s.obs[..., :1])),
        "gave observations float32 [1, 1], expected float32 [1, 2]",
    ),
    (changed("step", lambda s: tuple(s)[:3]), "expected a Step of lightning_rl.envs.func_env"),
    (
        changed("observe", lambda o: 2 * o - 1),
        "gave an observation with -1.0, expected bits, as its binary_obs says: 0 and 1",
    ),
    (changed("reset", lambda s: s[0]), "reset() gave states int64 [2], expected [1, 'S']"),
]


@pytest.mark.parametrize(("kind", "said"), MISTAKES, ids=[said[-40:] for _, said in MISTAKES])
@pytest.mark.parametrize("implementation", ["ER", "DDQN"])
def test_a_mistake_is_one_line_with_its_place(tmp_path, capsys, named, kind, said, implementation):
    named(kind)
    assert (
        run_cli(tmp_path, "--max_epochs", "1", gamename="own", implementation=implementation) == 2
    )
    error = capsys.readouterr().err.strip().splitlines()[-1]
    assert error.startswith("error: ")
    assert said in error
    assert f"{Path(__file__).name}:" in error


def test_other_observations_than_bits_are_fine_where_none_are_promised(named):
    kind = type(
        "Own",
        (Swing,),
        {"binary_obs": False, "observe": lambda self, state: Swing.observe(self, state) - 0.5},
    )
    envs = make_envs(named(kind), [1, 2])
    assert envs.step(torch.zeros(2, dtype=torch.int64)).obs.abs().tolist() == [[0.5, 0.5]] * 2
    assert isinstance(envs.env, CheckedFunc)
    assert isinstance(envs.env.to(torch.device("cpu")).keep(torch.tensor([0])), CheckedFunc)


@pytest.mark.parametrize(
    "gamename",
    [
        "cartpole",
        "acrobot",
        "pendulum",
        "cliff",
        "bandit10",
        "procmaze-3",
        "buttongrid-3",
        "panflute-3",
        "gamble",
        "noisyroom-30",
    ],
)
def test_what_comes_with_the_package_keeps_its_promises(gamename):
    """It is not looked at when it is played."""
    spec = env_spec(gamename)
    assert not isinstance(func_env(spec), CheckedFunc)
    env = CheckedFunc(FUNC_ENVS[spec.family](**dict(spec.kwargs)), gamename)
    state = env.reset(torch.rand(4, env.reset_noise_size))
    action = (
        torch.zeros(4, env.action_size) if env.continuous else torch.zeros(4, dtype=torch.int64)
    )
    for _ in range(3):
        state = env.step(state, action, torch.rand(4, env.step_noise_size)).state
    env.observe(state)
