"""The smoke configurations: what each agent is known to reach in minutes. Slow."""

import pytest
from helpers.runs import run_dir
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from lightning_rl.cli import main


def scores(tmp_path, implementation, gamename, steps, **settings):
    """Mean greedy returns of the evaluations of a run of ``steps`` steps, every 500."""
    what = [
        "--implementation",
        implementation,
        "--gamename",
        gamename,
        "--logdir",
        str(tmp_path),
        "--num_workers",
        "0",
    ]
    values = [f"--set={key}={value}" for key, value in {**settings, "max_env_steps": steps}.items()]
    assert main([*what, *values]) == 0
    events = EventAccumulator(
        str(run_dir(tmp_path, gamename, implementation=implementation) / "logger" / "version_0")
    )
    events.Reload()
    return [event.value for event in events.Scalars("eval_greedy/return_mean")]


def late(values, count):
    return sum(values[-count:]) / count


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize(
    "implementation", ["ER", "perfect-model", "simple-model", "categorical-latent"]
)
def test_five_pipes_are_learned_within_six_thousand_steps(tmp_path, implementation):
    """A random policy gets 4, playing in order 22; the paper's code 12 to 22 at the end. Greedy
    policies at this stage are
    unsteady, there as here: one good evaluation is what is asked for.
    """
    assert max(scores(tmp_path, implementation, "panflute-5", 6000)) > 15


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_replay_solves_small_mazes(tmp_path):
    """The optimum is -3.0, an untrained agent gets about -42; the paper's code, its stale
    observation fixed, -3.75 by then.
    """
    assert (
        late(scores(tmp_path, "ER", "procmaze-3", 16_000, learning_rate=2e-4, temperature=0.4), 4)
        > -4.5
    )


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_the_perfect_model_solves_small_mazes(tmp_path):
    """The paper's code gets -3.2 between 8500 and 10,000 steps."""
    assert (
        late(
            scores(
                tmp_path, "perfect-model", "procmaze-3", 10_000, learning_rate=2e-4, temperature=0.4
            ),
            4,
        )
        > -6
    )


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_the_simple_model_solves_small_mazes(tmp_path):
    """The paper's code, its stale observation fixed, gets -5.4 between 10,500 and 12,000 steps."""
    assert late(scores(tmp_path, "simple-model", "procmaze-3", 12_000), 4) > -10


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_the_categorical_model_solves_the_smallest_maze(tmp_path):
    """The optimum is -1.87; the paper's code gets -4.3 on average between 4500 and 6000 steps."""
    assert (
        late(scores(tmp_path, "categorical-latent", "procmaze-2", 6000, learning_rate=2e-4), 4) > -5
    )
