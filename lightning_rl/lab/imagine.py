"""``--eval_agent ... --imagine``: what the world model of a checkpoint expects, beside what the
environment then does.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from lightning_rl.core.errors import UserError
from lightning_rl.core.extras import require
from lightning_rl.core.outputs import owned_picture
from lightning_rl.core.seeding import derive_seed
from lightning_rl.envs.func_env import FuncEnv
from lightning_rl.envs.model_env import ModelEnv
from lightning_rl.lab.beside import beside
from lightning_rl.lab.evaluate import about
from lightning_rl.lab.tables import put_rows
from lightning_rl.methods.model_based import ModelBased, WorldPolicy
from lightning_rl.run.loading import load_method

BURN_IN = 30
"""Steps before the start, in tasks without episodes."""


def imagine(path: Path, episodes: int, force: bool = False) -> dict[str, Any]:
    """Plays ``episodes`` roll-outs of the checkpoint's policy for real, and the same actions from
    the same start in its model.

    Writes ``imagination.png`` (one roll-out of each, the errors below), ``.svg`` and ``.csv``
    beside the checkpoint; the report.
    """
    require("the figure of --imagine", "matplotlib", "pandas")
    method = load_method(path)
    if not isinstance(method, ModelBased):
        raise UserError(
            f"--imagine: '{path}' is of {type(method).__name__}, which has no world model; leave "
            "it out"
        )
    out = beside(path, ["imagination"], force)
    picture = Path(f"{out.path}.png")
    out.check(picture, owned_picture)  # before the work
    policy, real = method.policy, method.agent.env
    assert isinstance(policy, WorldPolicy)
    if method.cfg.transitions == "replay":
        raise UserError(
            f"--imagine: '{path}' is of ER, which replays and has no world model; use one of the "
            "other four agents"
        )
    model = real if policy.model is None else ModelEnv(policy.model, policy.world, real)
    generator = torch.Generator().manual_seed(derive_seed(method.seeds[0], "imagine"))
    with torch.no_grad():
        pictures, rows = _compare(
            policy, real, model, episodes, method.cfg.rollout_length, generator
        )
    report = {
        "checkpoint": str(path),
        **about(method),
        "episodes": episodes,
        "rows": rows,
        "picture": str(picture),
    }
    # With matplotlib, which training does without.
    from lightning_rl.lab.figures.imagination import draw_imagination

    draw_imagination(out, report, real.draw if real.drawable else None, *pictures)
    return report


def _actions(policy: WorldPolicy, obs: Tensor, generator: torch.Generator) -> Tensor:
    """Boltzmann actions ``[B]`` for obs ``[B, O]``, the latent at its mode."""
    noise = torch.zeros(len(obs), policy.noise_size)
    uniform = torch.rand(len(obs), policy.action_size, generator=generator).clamp(min=1e-20)
    noise[:, : policy.action_size] = -(-uniform.log()).log()  # Gumbel
    return policy.act(obs, None, noise)


def _compare(
    policy: WorldPolicy,
    real: FuncEnv,
    model: FuncEnv,
    episodes: int,
    steps: int,
    generator: torch.Generator,
) -> tuple[tuple[list[Tensor], list[Tensor]], list[dict[str, float]]]:
    """Observations of a long roll-out, real and imagined, and the errors of each step, averaged
    over those still alive.
    """

    def noise(size: int) -> Tensor:
        return torch.rand(episodes, size, generator=generator)

    state = real.reset(noise(real.reset_noise_size))
    obs = real.observe(state)
    for _ in range(0 if real.episodic else BURN_IN):
        action = _actions(policy, obs, generator)
        state, obs, *_ = real.step(state, action, noise(real.step_noise_size))
    first = obs
    dream = state
    if isinstance(model, ModelEnv):
        dream = model.start(obs, noise(model.model.encode_noise_size))
    seen = [first]
    dreamt = [model.observe(dream)]
    rows = []
    alive = torch.ones(episodes, dtype=torch.bool)
    lengths = torch.zeros(episodes, dtype=torch.int64)
    for k in range(1, steps + 1):
        action = _actions(policy, obs, generator)
        state, obs, reward, terminated, _ = real.step(state, action, noise(real.step_noise_size))
        imagined = model.step(dream, action, noise(model.step_noise_size))
        dream = imagined.state
        if not alive.any():
            break
        ending = imagined.terminated.float()
        if imagined.continuation is not None:
            ending = 1 - imagined.continuation
        errors = {
            "bit_error": (imagined.obs - obs).abs().mean(-1),
            # Of a model in which nothing ever happens.
            "unchanged_bit_error": (first - obs).abs().mean(-1),
            "reward_error": (imagined.reward - reward).abs(),
            "termination_error": (ending - terminated.float()).abs(),
        }
        means = {name: float(value[alive].mean()) for name, value in errors.items()}
        rows.append({"step": k, **means})
        seen.append(obs)
        dreamt.append(imagined.obs)
        lengths += alive
        alive &= ~terminated
    longest = int(lengths.argmax())
    shown = slice(0, int(lengths[longest]) + 1)
    return ([obs[longest] for obs in seen[shown]], [obs[longest] for obs in dreamt[shown]]), rows


def print_imagination(report: Mapping[str, Any]) -> None:
    """The table that ``--imagine`` shows."""
    title = f"{report['implementation']} on {report['gamename']}, {report['episodes']} roll-outs"
    names = list(report["rows"][0])
    rows = [[name.replace("_", " ") for name in names]]
    for row in report["rows"]:
        rows.append([str(row["step"]), *(f"{row[name]:.4f}" for name in names[1:])])
    put_rows(rows, f"{title}: mean absolute errors", end=f"picture: {report['picture']}")
