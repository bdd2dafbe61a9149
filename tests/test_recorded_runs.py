"""Short runs of every implementation end where they ended when they were recorded: a net under
rebuilding.

What is recorded does not depend on the names or the places of parameters: how far the weights of
the result (the policy, or the proxy of SE, RN and MBRL) have moved, sorted; the counters; the
evaluations. A change that moves a number on purpose records it
anew and says why: ``python tests/test_recorded_runs.py RCP-A`` writes it to
``data_files/recorded_runs.json``; all without.
"""

import json
import sys
import tempfile
from pathlib import Path

import pytest
import torch
from helpers import ROOT
from helpers.runs import run_cli, run_dir

from lightning_rl.core.errors import UserError
from lightning_rl.envs.proxies import proxy_path, read_proxy
from lightning_rl.lab.scalars import read_scalar
from lightning_rl.methods.registry import IMPLEMENTATIONS
from lightning_rl.run.loading import load_method

RECORD = ROOT / "tests" / "data_files" / "recorded_runs.json"
COUNTERS = ("env_steps", "num_updates", "episodes", "eval_env_steps")
TAGS = ("eval/return_mean", "eval_greedy/return_mean", "rollout/return_mean", "es/fitness_mean")

# Where an implementation runs; several environments show its kinds of actions and of observations.
GAMES = {
    "UDRL": ("cartpole", "pendulum"),
    "RCP-R": ("cartpole",),
    "RCP-A": ("lunarlander", "pendulum"),
    "PCN": ("deep-sea-treasure",),
    "REINFORCE": ("beresheet",),
    "REINFORCE-baseline": ("cartpole",),
    "REINFORCE-entropy": ("pendulum",),
    "REINFORCE-combined": ("acrobot",),
    "AAC": ("beresheet", "pendulum"),
    "QL": ("cliff",),
    "SARSA": ("emptyroom22",),
    "DDQN": ("cartpole-v0",),
    "DuelingDDQN": ("acrobot",),
    "TD3": ("pendulum",),
    "TD3-discrete": ("cartpole-v0",),
    "PPO": ("cartpole", "pendulum"),
    "SE": ("cartpole-v0",),
    "RN": ("cartpole-v0", "cliff"),
    "SD": ("cartpole", "pendulum"),
    "MBRL": ("cartpole-v0",),
    "ER": ("procmaze-3",),
    "perfect-model": ("panflute-2",),
    "simple-model": ("buttongrid-3",),
    "categorical-latent": ("panflute-2",),
    "gaussian-latent": ("procmaze-3",),
}
PRESETS = {
    ("RCP-A", "cartpole"): ("original", "unweighted"),
    ("RCP-R", "cartpole"): ("original",),
    ("AAC", "beresheet"): ("exact", "tuned"),
    ("SE", "cartpole-v0"): ("bandit",),
    ("ER", "panflute-2"): ("low-data",),
    ("DDQN", "cartpole-v0"): ("transfer",),
}
# episodes of 200 steps and more: learn in the first
SETTINGS = {name: {"learning_starts": 0} for name in ("DuelingDDQN", "TD3")}
CASES = [(name, game, None) for name, games in GAMES.items() for game in games]
CASES += [(name, game, preset) for (name, game), presets in PRESETS.items() for preset in presets]

QUANTILES = torch.linspace(0, 1, 11, dtype=torch.float64)


def weights(policy: torch.nn.Module) -> torch.Tensor:
    """All that is learned; a table is no parameter."""
    values = list(policy.parameters()) or list(policy.buffers())
    return torch.cat([value.detach().flatten().double() for value in values])


def moved(implementation: str, folder: Path) -> list[float]:
    """The quantiles of how far each weight of the result has moved, then the sum and the mean
    square of all these.
    """
    method = load_method(folder / "last.ckpt")
    fresh = IMPLEMENTATIONS[implementation](**method.hparams)
    if (folder / "proxy.pt").exists():
        _, after, _ = read_proxy(proxy_path(str(folder / "proxy.pt")), method.spec.gamename)
        before = (
            fresh.strategy.mean.detach() if hasattr(fresh, "strategy") else torch.zeros_like(after)
        )
    else:
        before, after = (weights(each.policy) for each in (fresh, method))
    change = after.double() - before.double()
    return [
        *change.quantile(QUANTILES).tolist(),
        float(change.sum()),
        float(change.square().mean()),
    ]


def outcome(
    implementation: str, gamename: str, preset: str | None, logdir: Path
) -> dict[str, object]:
    """What a run leaves."""
    flags, settings = (
        ["--max_epochs", "4", *([] if preset is None else ["--preset", preset])],
        SETTINGS.get(implementation, {}),
    )
    assert (
        run_cli(logdir, *flags, implementation=implementation, gamename=gamename, **settings) == 0
    )
    folder = run_dir(logdir, gamename, implementation=implementation)
    method = load_method(folder / "last.ckpt")
    returns = {}
    for tag in TAGS:
        try:
            returns[tag] = read_scalar(folder, tag).value.tolist()
        except UserError:  # not of this family
            continue
    counters = [int(getattr(method, name)) for name in COUNTERS]
    return {"counters": counters, "returns": returns, "moved": moved(implementation, folder)}


def label(implementation: str, gamename: str, preset: str | None) -> str:
    return " ".join(word for word in (implementation, gamename, preset) if word)


def test_every_implementation_is_recorded():
    assert set(GAMES) == set(IMPLEMENTATIONS)
    assert set(json.loads(RECORD.read_text())) == {label(*case) for case in CASES}


@pytest.mark.parametrize("case", CASES, ids=lambda case: label(*case))
def test_a_run_ends_where_it_ended_when_it_was_recorded(case, tmp_path):
    found, known = outcome(*case, tmp_path), json.loads(RECORD.read_text())[label(*case)]
    assert found["counters"] == known["counters"]
    assert found["returns"].keys() == known["returns"].keys()
    for tag, values in known["returns"].items():
        assert found["returns"][tag] == pytest.approx(values, rel=1e-3, abs=1e-3), tag
    # Another processor rounds differently: half a hundredth of the largest move.
    scale = max(abs(known["moved"][0]), abs(known["moved"][10]))
    assert scale > 0
    assert found["moved"][:11] == pytest.approx(known["moved"][:11], abs=5e-3 * scale)
    assert found["moved"][11:] == pytest.approx(known["moved"][11:], rel=1e-2, abs=1e-2 * scale)


if __name__ == "__main__":
    record = dict.fromkeys(label(*case) for case in CASES) | json.loads(RECORD.read_text())
    for each in [case for case in CASES if case[0] in (sys.argv[1:] or IMPLEMENTATIONS)]:
        with tempfile.TemporaryDirectory() as scratch:
            record[label(*each)] = outcome(*each, Path(scratch))
    RECORD.write_text(
        "{\n"
        + ",\n".join(f"{json.dumps(key)}: {json.dumps(value)}" for key, value in record.items())
        + "\n}\n"
    )
    sys.exit(0)
