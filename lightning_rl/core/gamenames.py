"""Gamenames: what ``--gamename`` may say, and what Gymnasium does not know of the environments that
have a name here.

Nothing heavy is imported, so that names can be listed and compared at once. A gamename is one of
``GAMES``, one of these with a size (``procmaze-6``), or any Gymnasium id: ``MountainCar-v0``, or
``my_package:MyEnv-v0``, whose module is imported first if somebody typed it, see ``core.modules``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lightning_rl.core.checks import one_number, truth, whole_number
from lightning_rl.core.errors import UserError
from lightning_rl.core.limits import ENV_SIZE, nearest, shorten, shown
from lightning_rl.core.modules import NAME_MODULE, allow

OWN_IDS = "lightning_rl/"
"""How the ids of ``lightning_rl.gym`` begin."""
ATARI_IDS = "ALE/"
"""How the ids of the Arcade Learning Environment begin."""


@dataclass(frozen=True)
class Images:
    """How images are seen, in the words of Gymnasium's wrappers.

    frame_stack: how many frames a policy sees at once. frame_skip: how many of the environment's
    own frames an action is taken for; rewards are summed, and all of them count as steps.
    screen_size: pixels of each side that they are shrunk to; None: as they come. grayscale: make
    colours grey.
    """

    frame_stack: int = 4
    frame_skip: int = 1
    screen_size: int | None = None
    grayscale: bool = False


@dataclass(frozen=True)
class Game:
    """An environment and what Gymnasium does not know of it; ``register_env`` explains the
    fields.
    """

    env: str | Callable[..., Any]
    horizon: int | None = None
    max_return: float = math.inf
    min_return: float | None = None
    solved_return: float | None = None
    one_hot: bool = False
    sparse: bool = False
    kwargs: tuple[tuple[str, Any], ...] = ()
    images: Images | None = None
    objectives: tuple[str, ...] = ()


def _deep_sea(name: str, max_return: float) -> Game:
    """A task of two objectives; max_return: the highest sum of both."""
    env = f"{OWN_IDS}{name}-v0"
    return Game(env, 100, max_return, -100.0, objectives=("treasure", "time"))


def _grid(
    name: str, horizon: int, max_return: float, solved_return: float, min_return: float
) -> Game:
    """A grid world of the synthetic-environments paper."""
    return Game(f"{OWN_IDS}{name}-v0", horizon, max_return, min_return, solved_return, one_hot=True)


def _bandit(arms: int, max_return: float) -> Game:
    """max_return: the best arm's mean at every pull; single episodes can be luckier."""
    return Game(f"{OWN_IDS}bandit{arms}-v0", 50, max_return, one_hot=True)


def _sized(name: str, max_return: float, **sizes: int) -> Game:
    """The horizon is that of the paper's evaluation."""
    return Game(f"{OWN_IDS}{name}-v0", 100, max_return, kwargs=tuple(sizes.items()))


def _atari(name: str, max_return: float, min_return: float) -> Game:
    """A game of the Arcade Learning Environment, as agents usually see it.

    An action is repeated at random as its id has it (``repeat_action_probability`` 0.25, Machado et
    al. 2018): without that, and without random first actions, all episodes of a policy would be
    the same. The horizon counts frames; it is half an hour.
    """
    images = Images(frame_stack=4, frame_skip=4, screen_size=84, grayscale=True)
    return Game(
        f"{ATARI_IDS}{name}-v5",
        108_000,
        max_return,
        min_return,
        kwargs=(("frameskip", 1),),
        images=images,
    )


def _procmaze(grid_size: int = 4) -> Game:
    return _sized("ProcMaze", -1.0, grid_size=grid_size)  # best: the start is on the goal


def _buttongrid(grid_size: int = 5, num_buttons: int = 3) -> Game:
    best = 100 // (num_buttons + 1)  # a move for each button, and a step to be paid
    return _sized("ButtonGrid", best, grid_size=grid_size, num_buttons=num_buttons)


def _panflute(num_pipes: int = 5) -> Game:
    best = 200 / max(num_pipes, 1)  # the right order, and lucky events
    return _sized("PanFlute", best, num_pipes=num_pipes)


def _noisyroom(percent: int = 25) -> Game:
    """percent: of moves that are random; the returns are those of the task without any."""
    kwargs = (("percent", percent),)
    return Game(f"{OWN_IDS}NoisyRoom-v0", 30, 0.95, -1.29, one_hot=True, kwargs=kwargs)


SIZED: dict[str, Callable[..., Game]] = {
    "procmaze": _procmaze,
    "buttongrid": _buttongrid,
    "panflute": _panflute,
    "noisyroom": _noisyroom,
}
"""Environments of any size: ``panflute-8`` has 8 pipes, ``buttongrid-4-2`` 4 x 4 cells and 2
buttons, of ``noisyroom-30`` 30 percent of the moves are random.
"""

# LunarLander's max_return: earlier implementation. Others: the highest return reachable in
# principle, rounded up where it depends on the start state (Acrobot's best episodes last about 60
# steps; Pendulum's best returns are near -1); HalfCheetah: the best published agents reach about
# 16,000. Of names with the same id the first is what the id means.
GAMES: dict[str, Game] = {
    "lunarlander": Game("LunarLander-v3", max_return=320.0),
    "lunarlander-sparse": Game("LunarLander-v3", max_return=320.0, sparse=True),
    "lunarlander-continuous": Game("LunarLanderContinuous-v3", max_return=320.0),
    # of a course's assignment on policy gradients
    "beresheet": Game("LunarLander-v3", horizon=300, max_return=320.0),
    "cartpole": Game("CartPole-v1", max_return=500.0, min_return=1.0),
    "cartpole-v0": Game("CartPole-v0", max_return=200.0, min_return=1.0),
    "acrobot": Game("Acrobot-v1", max_return=-60.0, min_return=-500.0),
    "pendulum": Game("Pendulum-v1", max_return=0.0, min_return=-3254.8),
    "mountaincar-continuous": Game("MountainCarContinuous-v0", max_return=100.0, min_return=-99.9),
    "halfcheetah": Game("HalfCheetah-v5", max_return=16_000.0),
    "bandit10": _bandit(10, 45.0),
    "bandit20": _bandit(20, 47.5),
    "cliff": _grid("cliff", 50, -12.0, -20.0, -149.0),
    "emptyroom22": _grid("emptyroom22", 10, 0.99, 0.8, -0.1),
    "emptyroom23": _grid("emptyroom23", 15, 0.98, 0.8, -0.15),
    "emptyroom33": _grid("emptyroom33", 20, 0.97, 0.8, -0.2),
    "wallroom": _grid("wallroom", 30, 0.93, 0.8, -0.3),
    "holeroom": _grid("holeroom", 30, 0.93, 0.8, -1.29),
    "holeroomlarge": _grid("holeroomlarge", 30, 0.91, 0.8, -1.29),
    "holeroomlargeshifted": _grid("holeroomlargeshifted", 30, 0.83, 0.8, -1.29),
    # a toy of images
    "square": Game(f"{OWN_IDS}Square-v0", 10, 1.0, 0.0, 0.95, images=Images(frame_stack=1)),
    "deep-sea-treasure": _deep_sea("DeepSeaTreasure", 7.1),
    "deep-sea-treasure-concave": _deep_sea("DeepSeaTreasureConcave", 105.0),
    "gamble": Game(f"{OWN_IDS}Gamble-v0", 1, 5.0, -15.0, one_hot=True),
    "pong": _atari("Pong", 21.0, -21.0),
    "freeway": _atari("Freeway", 34.0, 0.0),
    **{name: game() for name, game in SIZED.items()},
    "takecover": Game(
        f"{OWN_IDS}TakeCover-v0",
        2100,
        2100.0,
        solved_return=750.0,
        images=Images(frame_stack=8, screen_size=32),
    ),
}
"""The environments by gamename; ``register_env`` adds to them."""

OWN_CLASSES = {
    "square": "lightning_rl.envs.square:Square",
    "takecover": "lightning_rl.envs.takecover:TakeCover",
    "deep-sea-treasure": "lightning_rl.envs.deep_sea:DeepSeaTreasure",
    "deep-sea-treasure-concave": "lightning_rl.envs.deep_sea:DeepSeaTreasureConcave",
}
"""The classes of those environments of this package that are no ``FuncEnv``."""

BUILT_IN = frozenset(GAMES)
"""Gamenames that are not a user's."""
_VERSION = re.compile(r"-v(\d+)$")  # of Gymnasium's ids


def register_env(
    gamename: str,
    env: str | Callable[..., Any],
    *,
    horizon: int | None = None,
    max_return: float = math.inf,
    min_return: float | None = None,
    solved_return: float | None = None,
    one_hot: bool = False,
    sparse: bool = False,
    kwargs: Mapping[str, Any] | None = None,
    images: Images | None = None,
    objectives: Sequence[str] = (),
) -> None:
    """Gives an environment a gamename, for this process and those that it starts by forking.

    So that the command line and a cluster know it too, call this (or ``gymnasium.register``) in a
    module of yours, and use the gamename ``my_module:<gamename>``, or export
    ``LIGHTNING_RL_MODULES=my_module``. A name of your own may be registered again; the last
    registration counts.

    Args:
        gamename: The new name, e.g. ``"warehouse"``: no name of this package, and without a version
            as Gymnasium's ids have it.
        env: A Gymnasium id (``"MountainCar-v0"``, ``"my_module:MyEnv-v0"``), or a class or function
            that makes the ``gymnasium.Env``. A class of ``FuncEnv`` is played in batches, world
            models included.
        horizon: Time limit in steps; None: the one that Gymnasium knows of, else 1,000.
        max_return: The highest return. UDRL draws no command above it, and cuts to it what is left
            of a command within an episode; RCP and commands of your own are not cut.
        min_return: The lowest return that an episode can have; the score of agents that fail. None:
            not known.
        solved_return: The return that counts as solved; None: Gymnasium's ``reward_threshold``, if
            it has one.
        one_hot: Exactly one number of an observation is 1, the others are 0, which tabular agents
            need. Discrete observations are one-hot without it.
        sparse: Give the sum of the rewards at the last step, and 0 before.
        kwargs: Arguments of the environment.
        images: How its images are seen, unless a config says otherwise; None: the newest four as
            they come.
        objectives: Names of what a step pays for, where it pays several rewards, in ``reward`` or
            in ``info["reward_vector"]``: the numbers that an agent can be asked for.

    Raises:
        UserError: The name is taken by this package, has the form of a Gymnasium id, or cannot name
            a folder; ``env`` is an environment that is already made, not what makes it; the horizon
            or a return is not a number of the right kind.
    """
    _check_own_name(gamename)
    where = f"register_env('{shorten(gamename)}')"
    if not callable(env) and not (isinstance(env, str) and env):
        raise UserError(
            f"{where}: env {shown(env)} makes no environment; give a Gymnasium id, or a class or "
            "function that does"
        )
    if horizon is not None:
        horizon = whole_number(f"{where}: horizon", horizon, 1)
    one_hot, sparse = truth(f"{where}: one_hot", one_hot), truth(f"{where}: sparse", sparse)
    given_max = _own_return(where, "max_return", max_return)
    max_return = math.inf if given_max is None else given_max
    min_return = _own_return(where, "min_return", min_return)
    solved_return = _own_return(where, "solved_return", solved_return)
    if min_return is not None and min_return > max_return:
        raise UserError(
            f"{where}: min_return {min_return:g} is above max_return {max_return:g}; lower it"
        )
    if kwargs is not None and not (
        isinstance(kwargs, Mapping) and all(isinstance(key, str) for key in kwargs)
    ):
        raise UserError(
            f"{where}: kwargs {shown(kwargs)} are no arguments by name; give a dict of them"
        )
    allow(env)
    if isinstance(objectives, str) or not all(isinstance(name, str) for name in objectives):
        raise UserError(
            f"{where}: objectives {shown(objectives)} are no names; give, e.g., ('score', 'fuel')"
        )
    given = tuple((kwargs or {}).items())
    GAMES[gamename] = Game(
        env,
        horizon,
        max_return,
        min_return,
        solved_return,
        one_hot,
        sparse,
        given,
        images,
        tuple(objectives),
    )


def _check_own_name(gamename: str) -> None:
    """UserError for a name that means another environment already, or cannot be one of
    ``register_env``.
    """
    if not isinstance(gamename, str) or not re.fullmatch(r"\w[\w.-]*", gamename):
        raise UserError(
            f"gamename {shown(gamename)} cannot be registered; use letters, digits, _, - and ., "
            "e.g. 'warehouse'"
        )
    if gamename in BUILT_IN:
        raise UserError(
            f"gamename '{gamename}' is that of an environment of this package; register yours "
            "under another name"
        )
    taken = f"gamename '{shorten(gamename)}'"
    if (sized := gamename.partition("-")[0]) in SIZED:
        raise UserError(
            f"{taken} means a size of this package's {sized}; register yours under another name"
        )
    if _VERSION.search(gamename):
        raise UserError(
            f"{taken} has the form of Gymnasium's ids; leave out the version, '-v' and a number"
        )


def _own_return(where: str, name: str, value: Any) -> float | None:
    """A return as Python's own number, None where none is known."""
    if value is None and name != "max_return":
        return None
    number = None if isinstance(value, bool) else one_number(value)
    if number == math.inf and name == "max_return":
        return None
    if number is None or not math.isfinite(number):
        raise UserError(
            f"{where}: {name} {shown(value)} is no finite number; give one, or leave it out if it "
            "is not known"
        )
    return number


def base_name(gamename: str) -> str:
    """The key of ``GAMES`` whose environment it is: ``procmaze`` of ``procmaze-3``, ``cartpole`` of
    ``CartPole-v1``, or itself.

    Whatever belongs to an environment (blocks of configs, its form in batched torch) is found under
    this name, so that one environment has the same settings whichever way it is called.
    """
    if gamename in GAMES:
        return gamename
    registered = gamename.rpartition(":")[2]
    if registered in GAMES.keys() - BUILT_IN:  # by the module before the colon
        return registered
    sized = gamename.partition("-")[0]
    if sized in SIZED:
        return sized
    if registered.startswith(OWN_IDS):  # by whichever of our modules
        gamename = registered
    for name, game in GAMES.items():
        # an id is without arguments
        if game.env == gamename and (name in BUILT_IN or not game.kwargs):
            return name
    return gamename


def named_game(gamename: str) -> Game | None:
    """What is known of a gamename, which may say a size where ``SIZED`` has it, or None.
    UserError for a wrong size.
    """
    name, *sizes = gamename.split("-")
    if gamename in GAMES or name not in SIZED:
        return GAMES.get(base_name(gamename))
    known, asked = GAMES[name].kwargs, shorten(gamename)
    if not all(size.isdecimal() and size.isascii() for size in sizes) or len(sizes) > len(known):
        example = "-".join([name, *(str(value) for _, value in known)])
        meaning = " and ".join(key for key, _ in known)
        raise UserError(f"gamename '{asked}': sizes are whole numbers, {meaning}, e.g. {example}")
    if any(len(size) > 4 or int(size) > ENV_SIZE for size in sizes):
        raise UserError(f"gamename '{asked}': sizes go up to {ENV_SIZE}; use smaller ones")
    return SIZED[name](*map(int, sizes))


def same_game(one: str, other: str) -> bool:
    """Whether two gamenames are one environment: ``CartPole-v1`` and ``cartpole``, not
    ``procmaze-3`` and ``procmaze-4``.
    """
    return base_name(one) == base_name(other) and named_game(one) == named_game(other)


def unknown_gamename(gamename: str, ids: Iterable[str] = ()) -> UserError:
    """The error for a gamename that is neither here nor in Gymnasium, with the nearest name, in any
    case. ids: Gymnasium's.

    Ids are compared without their versions; the newest version is suggested. If the gamename names
    a module (``module:``), the suggestion does as well, unless it is built in; if it names none,
    the message ends with how to name one.
    """
    module, _, name = gamename.rpartition(":")
    stems = {_VERSION.sub("", known): known for known in sorted(ids, key=_version)}
    names = {known: known for known in GAMES}
    # the last of several that differ in case counts
    known = names | stems if _VERSION.search(name) else stems | names
    remedy = (
        f"choose one of: {', '.join(GAMES)}; or a Gymnasium id, e.g. MountainCar-v0 or "
        "my_package:MyEnv-v0"
    )
    if (near := nearest(_VERSION.sub("", name), known, 0.7)) is not None:
        suggested = known[near]
        if module and suggested not in BUILT_IN:
            suggested = f"{module}:{suggested}"
        remedy = f"did you mean '{suggested}'?"
    own = "" if module else f"{'' if remedy.endswith('?') else ';'} if it is yours: {NAME_MODULE}"
    return UserError(f"unknown gamename '{shorten(gamename)}'; {remedy}{own}")


def _version(env_id: str) -> int:
    """The version of a Gymnasium id, -1 where it has none."""
    found = _VERSION.search(env_id)
    return -1 if found is None else int(found[1])


def folder_name(gamename: str) -> str:
    """The gamename as a folder can have it: ``my_package-MyEnv-v0`` of ``my_package:MyEnv-v0``."""
    return re.sub("[/:]", "-", gamename)
