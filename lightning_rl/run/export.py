"""A trained policy as a folder that others use, in the layout of a model hub's repository: graphs
of all that acts, weights, a card. Nothing is uploaded.
"""

from __future__ import annotations

import contextlib
import io
import json
import logging
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
import yaml
from torch import Tensor

import lightning_rl
from lightning_rl.core.checks import checked_name, truth, user_path
from lightning_rl.core.errors import UserError
from lightning_rl.core.extras import require
from lightning_rl.core.files import remove
from lightning_rl.core.gamenames import OWN_IDS
from lightning_rl.core.limits import shorten, shown
from lightning_rl.core.outputs import PROGRAM, File, Out, Owned, checksum
from lightning_rl.envs.spaces import is_vector
from lightning_rl.envs.spec import EnvSpec
from lightning_rl.gym import registered
from lightning_rl.methods.base import Method
from lightning_rl.run.exported import CONFIG, FORMAT, read_config, without_infinity
from lightning_rl.run.runtime import quiet
from lightning_rl.run.state import WEIGHTS
from lightning_rl.run.whole_policy import WholePolicy

ONNX, GRAPH, RESULTS, CARD = "policy.onnx", "policy.pt2", "results.json", "README.md"
_FILES = (ONNX, GRAPH, WEIGHTS, CONFIG, RESULTS, CARD)


def begin_export(folder: Any, force: Any = False) -> Out:
    """Where the files of a policy go, before the work; UserError where something else is there, or
    a package is missing.
    """
    path = user_path("export", folder, "give a folder, e.g. 'lander'")
    require("an export", "onnx", "onnxscript", "safetensors")
    remedy = "choose another folder"
    if path.exists() and not path.is_dir():
        raise UserError(f"'{path}' is no folder; {remedy}")
    out = Out(path, (), truth("force", force), remedy)
    for name in _FILES:
        out.check(path / name, _ours(path))
    return out


def _ours(folder: Path) -> Owned:
    """Whether a file in a folder is as an export has left it there."""
    recorded: Mapping[str, Any] = {}
    with contextlib.suppress(UserError):
        recorded = read_config(folder / CONFIG)["files"]

    def owned(path: Path) -> bool:
        if path.name == CONFIG:
            return bool(recorded)
        return recorded.get(path.name) == checksum(path.read_bytes())

    return owned


def export(
    method: Method, out: Out, report: Mapping[str, Any] | None = None, licence: str = "mit"
) -> None:
    """Writes the policy of a method; see ``LoadedAgent.export``.

    out: what ``begin_export`` gave.
    """
    checked_name("licence", licence, "'mit'")
    if report is not None and not {"sampled", "greedy", "command", "episodes"} <= set(report):
        raise UserError(f"report {shown(report)}: give what lightning_rl.evaluate gives")
    whole = WholePolicy(method)
    program = graph(whole)
    contents = {ONNX: onnx_model(program, whole), GRAPH: _saved(program), WEIGHTS: weights(method)}
    if report is not None:
        contents[RESULTS] = _json(results(method, report))
    about = {
        **interface(method, whole),
        "files": {name: checksum(content) for name, content in contents.items()},
    }
    card = model_card(out.path.absolute().name, method, whole, about, report, licence)
    contents[CARD] = card.encode()
    about["files"][CARD] = checksum(contents[CARD])
    contents[CONFIG] = _json(about)
    owned = _ours(out.path)
    for name in _FILES:
        if name not in contents and (out.path / name).exists() and owned(out.path / name):
            remove(out.path / name)  # an earlier score
    out.write(*(File(out.path / name, content, owned) for name, content in contents.items()))


# The graphs


def graph(whole: WholePolicy) -> torch.export.ExportedProgram:
    """The policy as a graph of torch's operators, for batches of any size; UserError for one that
    none can hold.
    """
    batch = torch.export.Dim("batch", min=1, max=2**20)
    shapes = {name: {0: batch} for name in whole.inputs}
    try:
        with torch.no_grad():
            program = torch.export.export(whole, (), whole.inputs, dynamic_shapes=shapes)
    except Exception as error:  # whatever a network of the user's does
        raise _no_graph(error) from error
    for node in program.graph.nodes:
        node.meta.pop("stack_trace", None)  # paths of this machine
    return program


def onnx_model(program: torch.export.ExportedProgram, whole: WholePolicy) -> bytes:
    """The same as an ONNX model; its inputs and outputs have the names of the policy's."""
    try:
        with quiet("torch.onnx", logging.ERROR, ""):  # advice on packages it can do without
            made = torch.onnx.export(
                program, output_names=whole.outputs, dynamo=True, external_data=False, verbose=False
            )
    except Exception as error:
        raise _no_graph(error) from error
    assert made is not None
    model = made.model_proto
    for value in (*model.graph.input, *model.graph.output):
        value.type.tensor_type.shape.dim[0].dim_param = "batch"
    del model.graph.value_info[:]  # where that has another name
    for node in model.graph.node:
        del node.metadata_props[:]  # how the graph was made
    return bytes(model.SerializeToString())


def _no_graph(error: Exception) -> UserError:
    reason = shorten(str(error).strip().partition("\n")[0] or type(error).__name__, 200)
    return UserError(
        f"export: no graph can hold this policy ({reason}); a network of your own must do without "
        "branches that depend on numbers"
    )


def _saved(program: torch.export.ExportedProgram) -> bytes:
    data = io.BytesIO()
    torch.export.save(program, data)
    return data.getvalue()


# The weights


def weights(method: Method) -> bytes:
    """What acting takes of a method's numbers, in the format of safetensors."""
    import safetensors.torch

    copies = {name: value.detach().cpu().clone() for name, value in method.acting_weights().items()}
    return bytes(safetensors.torch.save(copies, {"format": "pt"}))


# What is said about it


def interface(method: Method, whole: WholePolicy) -> dict[str, Any]:
    """What ``config.json`` says, without the checksums."""
    spec = method.spec
    inputs = {}
    for name, example in whole.inputs.items():
        dtype = str(example.dtype).removeprefix("torch.")
        inputs[name] = {"shape": ["batch", *example.shape[1:]], "dtype": dtype}
        if name == "command":
            inputs[name] |= {"names": list(whole.command_names), "usual": _usual(whole)}
    return {
        "library": PROGRAM,
        "library_version": lightning_rl.__version__,
        "format": FORMAT,
        "action_mode": method.action_mode,
        "environment": {
            "gamename": method.gamename,
            "id": spec.env if isinstance(spec.env, str) else None,
            "horizon": spec.horizon,
        },
        "inputs": inputs,
        "outputs": list(whole.outputs),
        "hyper_parameters": without_infinity(dict(method.hparams)),
    }


def _usual(whole: WholePolicy) -> list[float | None]:
    """The command that the policy was evaluated with; None: a return is not asked for."""
    row = whole.inputs["command"][0].tolist()
    return [None if math.isnan(number) else number for number in row]


def results(method: Method, report: Mapping[str, Any]) -> dict[str, Any]:
    """The score in the words of the hub, and the whole evaluation."""
    mode = method.action_mode
    stats = report[mode]["return"]
    return {
        "mean_reward": stats["mean"],
        "std_reward": stats["sd"],
        "is_deterministic": mode == "greedy",
        "n_eval_episodes": report["episodes"],
        "seed": method.seed,
        "evaluation": without_infinity(dict(report)),
    }


def _json(content: Any) -> bytes:
    return (json.dumps(content, indent=2, allow_nan=False) + "\n").encode()


def model_card(
    name: str,
    method: Method,
    whole: WholePolicy,
    about: Mapping[str, Any],
    report: Mapping[str, Any] | None,
    licence: str,
) -> str:
    """The text of ``README.md``: what it is, its score, how to act, its inputs, its files."""
    task = about["environment"]["id"] or method.gamename
    head: dict[str, Any] = {
        "license": licence,
        "library_name": PROGRAM,
        "tags": ["reinforcement-learning", "onnx", method.implementation, task],
    }
    score = "It was not evaluated."
    if report is not None:
        stats = report[method.action_mode]["return"]
        metric = {
            "type": "mean_reward",
            "value": f"{stats['mean']:.2f} +/- {stats['sd']:.2f}",
            "name": "mean_reward",
            "verified": False,
        }
        result = {
            "task": {"type": "reinforcement-learning", "name": "reinforcement-learning"},
            "dataset": {"name": task, "type": task},
            "metrics": [metric],
        }
        head["model-index"] = [{"name": name, "results": [result]}]
        score = _score(method, report)
    lines = [
        f"---\n{yaml.safe_dump(head, sort_keys=False)}---\n",
        f"# {method.implementation} on {method.gamename}\n",
        f"A policy for `{task}`, trained by {method.implementation} of {PROGRAM} "
        f"{lightning_rl.__version__} with seed {method.seed}.\n",
        "## Score\n",
        f"{score}\n",
        "## Act\n",
        f"```python\n{_code(method.spec, whole)}\n```\n",
        f"{_inputs(whole)}\n",
        "`lightning_rl.load(folder)` reads the folder back: `agent.act(obs)`, "
        "`lightning_rl.evaluate(agent)`.\n",
        "## Files\n",
        "| file | SHA-256 |\n|---|---|",
        *(f"| {file} | `{digest}` |" for file, digest in about["files"].items()),
        f"\nLicence: {licence}.\n",
    ]
    return "\n".join(lines)


def _score(method: Method, report: Mapping[str, Any]) -> str:
    rows = ["| actions | mean return | sd | median | min | max |", "|---|---|---|---|---|---|"]
    for mode in ("sampled", "greedy"):
        stats = report[mode]["return"]
        numbers = (f"{stats[key]:.2f}" for key in ("mean", "sd", "median", "min", "max"))
        rows.append(f"| {mode} | {' | '.join(numbers)} |")
    command = ", ".join(f"{name} {value:g}" for name, value in report["command"].items())
    asked = f", command: {command}" if command else ""
    return (
        f"One training seed ({method.seed}), {report['episodes']} episodes of each kind of "
        f"actions{asked}. It is meant to act with {method.action_mode} actions.\n\n"
    ) + "\n".join(rows)


_ABOUT = {
    "obs": "observations, flattened; of images the newest frames, oldest first",
    "masked": "observations, flattened, then the mask of the actions that may be taken",
    "command": "what is asked of each episode, the same at all of its steps",
    "state": "the `next_state` of the step before",
    "reward": "of the step before",
    "episode_start": "where an episode begins: `state` and `reward` do not count there",
    "noise": "zeros for the best action; or drawn anew at each step: {}",
}


def _inputs(whole: WholePolicy) -> str:
    """A table of the inputs, and of the numbers of a command."""
    rows = ["| input | shape | meaning |", "|---|---|---|"]
    for name, example in whole.inputs.items():
        shape = ", ".join(["batch", *map(str, example.shape[1:])])
        key = "masked" if name == "obs" and whole.masked else name
        meaning = _ABOUT[key].format(whole.noise_kind)
        rows.append(f"| `{name}` | [{shape}] | {meaning} |")
    if "command" not in whole.inputs:
        return "\n".join(rows)
    rows += ["\n| command | usual |", "|---|---|"]
    for name, value in zip(whole.command_names, _usual(whole), strict=True):
        rows.append(f"| {name} | {'nan' if value is None else f'{value:g}'} |")
    limits = whole.limits
    if limits is not None:
        rows.append(
            f"\n`return` is what an episode is to obtain on average, from {limits[0]:.1f} to "
            f"{limits[1]:.1f}; nan asks for the numbers after it, which the network takes as they "
            "are."
        )
    return "\n".join(rows)


def _code(spec: EnvSpec, whole: WholePolicy) -> str:
    """Five lines that act."""
    imports = "gymnasium, lightning_rl, numpy as np, onnxruntime"
    make = f"lightning_rl.make_env({spec.gamename!r})"
    if spec.frames is not None:
        make = 'lightning_rl.make_env(lightning_rl.load(".").method.spec)'
    elif isinstance(spec.env, str):
        imports = "gymnasium, numpy as np, onnxruntime"
        make = f"gymnasium.make({_id(spec)})"
    seen, dtype = "obs", str(whole.inputs["obs"].dtype).removeprefix("torch.")
    space = spec.observation_space
    if spec.frames is None and space is not None and not is_vector(space):
        seen = "gymnasium.spaces.flatten(env.observation_space, obs)"
    if spec.masked:
        seen = f'np.append({seen}, info["action_mask"])'
    given = [f'"obs": np.array([{seen}], np.{dtype})']
    for name, example in whole.inputs.items():
        if name != "obs":
            given.append(f'"{name}": {_first(example[:1])}')
    return "\n".join(
        [
            f"import {imports}",
            f'policy, env = onnxruntime.InferenceSession("{ONNX}"), {make}',
            "obs, info = env.reset(seed=0)",
            f"inputs = {{{', '.join(given)}}}",
            'action = policy.run(["action"], inputs)[0][0]',
        ]
    )


def _id(spec: EnvSpec) -> str:
    """What ``gymnasium.make`` is to be given."""
    words = [repr(spec.env)]
    if str(spec.env).startswith(OWN_IDS):
        words = [repr(f"lightning_rl.gym:{spec.env}")]
    elif registered(str(spec.env)).max_episode_steps != spec.horizon:
        words.append(f"max_episode_steps={spec.horizon}")
    return ", ".join([*words, *(f"{name}={value!r}" for name, value in spec.kwargs)])


def _first(example: Tensor) -> str:
    """Code for what an input is given first."""
    kind = "bool" if example.dtype == torch.bool else "np.float32"
    if not example.any():
        return f"np.zeros({tuple(example.shape)}, {kind})"
    return f"np.array({example.tolist()}, {kind})".replace("nan", "np.nan")
