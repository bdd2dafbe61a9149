"""Every environment of Gymnasium with vector observations that needs no further package trains
with every method that fits.
"""

import itertools
import warnings

import gymnasium
import pytest
import torch
from helpers.budgets import why_not
from helpers.runs import train_cli

from lightning_rl.envs.images import Frames
from lightning_rl.envs.spec import env_spec
from lightning_rl.methods.registry import IMPLEMENTATIONS

SUITES = ("classic_control", "toy_text", "box2d")
IDS = sorted(
    name
    for name, entry in gymnasium.registry.items()
    if str(entry.entry_point).split(".")[2:3] in ([s] for s in SUITES)
)
VECTORS = [name for name in IDS if name != "CarRacing-v3"]
FAMILIES = (("UDRL",), ("AAC",), ("DDQN", "TD3"), ("SE",))
"""One after the other, or the second where the first does not fit."""


def fits(name, gamename):
    return why_not(name, gamename) is None


with warnings.catch_warnings(action="ignore"):  # of environments without a time limit
    PAIRS = [
        (name, gamename)
        for name, gamename in itertools.product(IMPLEMENTATIONS, VECTORS)
        if fits(name, gamename)
    ]
OF_GAMES = [
    (next(name for name in names if fits(name, game)), game)
    for names, game in zip(itertools.cycle(FAMILIES), VECTORS, strict=False)
]
OF_METHODS = [next(pairs) for _, pairs in itertools.groupby(PAIRS, key=lambda pair: pair[0])]
LONG = [("SE", "Blackjack-v1"), ("TD3", "Pendulum-v1"), ("DuelingDDQN", "Acrobot-v1")]
FAST = [pair for pair in dict.fromkeys([*OF_GAMES, *OF_METHODS]) if pair not in LONG]
SLOW = [pytest.param(*pair, marks=pytest.mark.slow) for pair in PAIRS if pair not in FAST]


def test_the_sixteen_are_there():
    assert len(VECTORS) == 16
    assert env_spec("CarRacing-v3").frames == Frames(channels=3, height=96, width=96, stack=4)


@pytest.mark.filterwarnings("ignore:no time limit is known")
@pytest.mark.parametrize(("implementation", "gamename"), [*FAST, *SLOW])
def test_an_epoch_of_training(tmp_path, implementation, gamename):
    train_cli(tmp_path, 1, gamename=gamename, implementation=implementation)
    (last,) = tmp_path.glob(f"{gamename}/default/{implementation}/seed_25/last.ckpt")
    checkpoint = torch.load(last, weights_only=True)
    assert checkpoint["epoch"] == 0
    weights = [value for value in checkpoint["state_dict"].values() if value.is_floating_point()]
    assert all(value.isfinite().all() for value in weights)
