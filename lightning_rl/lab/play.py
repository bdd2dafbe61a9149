"""``lightning-rl play``: what an agent obtains when it is asked for something, and three of its
episodes to look at, in a window or, where there is no screen, in a film.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Mapping, Sequence
from pathlib import Path

from lightning_rl.core.console import counting
from lightning_rl.core.errors import UserError
from lightning_rl.core.extras import lacking
from lightning_rl.core.lines import say, three_digits
from lightning_rl.core.outputs import Out
from lightning_rl.core.types import Episode, Request
from lightning_rl.envs.gym import can_film
from lightning_rl.functional.statistics import summarise
from lightning_rl.lab.evaluate import collected
from lightning_rl.lab.words import exact, in_words, parse_command
from lightning_rl.methods.base import Method
from lightning_rl.rollouts.data_module import evaluation_requests
from lightning_rl.run.asking import Asked, asked_names, full_command
from lightning_rl.run.loading import load_method
from lightning_rl.run.shipped import results_folder
from lightning_rl.run.state import checkpoint_at


def show(arguments: Namespace) -> None:
    """Plays, says what was obtained, and shows three of the episodes."""
    path = checkpoint_at(Path(arguments.agent))
    method = load_method(path)
    given = asked_for(arguments, asked_names(method))
    asked = full_command(method, given)
    no_film = lacking("a film", "PIL")
    if no_film is None and not can_film(method.spec):
        no_film = f"'{method.gamename}' gives no pictures"
    name = "_".join(["play", *(f"{name}={exact(value)}" for name, value in given.items())])
    out = Out(arguments.out or results_folder(path) / f"{name}.gif", force=arguments.force)
    if no_film is None and arguments.out is not None:
        from lightning_rl.lab.films import begin_film

        begin_film(out)
    method.prepare_evaluation()
    words = f", asked for {in_words(given)}" if given else ""
    say(f"{method.implementation} on {method.gamename}{words}")
    episodes = play(method, asked, arguments.episodes, arguments.seed)
    say(obtained([episode.ret for episode in episodes]))
    chosen = three_of(episodes, given.get("return"))
    if no_film is not None:
        say(f"no film: {no_film}")
        return
    returns = ", ".join(three_digits(episode.ret) for episode in chosen)
    say(f"to look at: episodes with the returns {returns}")
    scenes = [(episode.request, given) for episode in chosen]
    if arguments.out is None and _in_window(method, scenes):
        return
    from lightning_rl.lab.films import begin_film, film_scenes, write_film

    form = begin_film(out)
    write_film(out, film_scenes(method, scenes, form, _nothing))


def asked_for(arguments: Namespace, names: Sequence[str]) -> dict[str, float]:
    """What the flags ask of an agent that knows ``names``, by name."""
    if arguments.wanted is None:
        return parse_command(arguments.command, names)
    if arguments.command is not None:
        raise UserError("--return is --command return=..; leave one of them out")
    return parse_command(f"return={arguments.wanted}", names)


def play(method: Method, asked: Asked, count: int, seed: int) -> list[Episode]:
    """``count`` episodes, each a function of the seed and its number."""
    command, guidance = asked
    requests = evaluation_requests(seed, "playing", 0, count, command, method.action_mode, guidance)
    with counting(count, "episodes") as advance:
        return collected(method, requests, 0, advance)


def obtained(returns: Sequence[float]) -> str:
    """What returns are on average, and how far single ones are from that."""
    if len(returns) == 1:
        return f"obtained a return of {three_digits(returns[0])}"
    found = {name: three_digits(value) for name, value in summarise(returns).items()}
    return (
        f"obtained {found['mean']} on average of {len(returns)} episodes; standard deviation "
        f"{found['sd']}, lowest {found['min']}, highest {found['max']}"
    )


def three_of(episodes: Sequence[Episode], asked: float | None) -> list[Episode]:
    """The lowest episode, the one nearest to what was asked, or in the middle where no return
    was, and the highest.
    """
    ranked = sorted(episodes, key=lambda episode: episode.ret)
    if len(ranked) < 3:
        return ranked
    inner = ranked[1:-1]
    middle = inner[len(inner) // 2]
    if asked is not None:
        middle = min(inner, key=lambda episode: abs(episode.ret - asked))
    return [ranked[0], middle, ranked[-1]]


def _in_window(method: Method, scenes: Sequence[tuple[Request, Mapping[str, float]]]) -> bool:
    """Shows the episodes on the screen, one after another; False where there is none."""
    from lightning_rl.lab.films import show_scenes

    try:
        show_scenes(method, scenes, _nothing)
    except UserError:  # of the window
        return False
    return True


def _nothing(given: Mapping[str, float], episode: Episode) -> None:
    """What is said of each episode that is shown: all was said before."""
