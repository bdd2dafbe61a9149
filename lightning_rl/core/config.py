"""Configs: a strict dataclass is the schema, the family's file in ``configs/`` the only place of
values.

``default`` < the block of the gamename < ``offline``, where the key of that name is true < that of
``--preset`` under ``presets`` < ``--config`` < ``--set key=value``; at each of the first four: what
all of the family share < what the implementation extends < its own. A preset may hold blocks
``by_gamename``, too; ``procmaze-3`` reads those of ``procmaze`` and then its own, ``CartPole-v1``
those of ``cartpole``, which is the same environment.
"""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

from lightning_rl.core.catalogue import Entry, entries, entry
from lightning_rl.core.checks import checked_name
from lightning_rl.core.errors import UserError
from lightning_rl.core.gamenames import GAMES, base_name
from lightning_rl.core.limits import PLAIN_DEPTH, WHOLE, did_you_mean, nearest, shorten, shown
from lightning_rl.core.yaml_files import parse_yaml, read_yaml

if TYPE_CHECKING:
    from lightning_rl.core.schema import MethodConfig

Layer = tuple[str, Mapping[str, Any]]
"""(where, values) of a config; a list of them is in rising order of precedence."""

C = TypeVar("C")
M = TypeVar("M", bound="MethodConfig")

BY_GAMENAME = "by_gamename"
"""Key of a preset under which it has blocks for single environments."""

OFFLINE = "offline"
"""Key of a method that learns from a dataset where it is true, and the block of values for that."""

OTHER_WORDS: Mapping[str, tuple[str, ...]] = {
    "alpha": ("learning_rate",),
    "lr": ("learning_rate",),
    "discount": ("gamma",),
    "lambda": ("gae_lambda",),
    "lam": ("gae_lambda",),
    "polyak": ("tau",),
    "buffer_size": ("replay_size", "window_steps"),
    "hidden_sizes": ("hidden",),
    "net_arch": ("hidden",),
    "train_freq": ("train_interval",),
    "train_frequency": ("train_interval",),
    "n_steps": ("rollout_steps", "steps_per_iter"),
    "epochs": ("max_epochs",),
    "episodes": ("max_episodes", "train_episodes", "num_episodes_per_iter"),
    **dict.fromkeys(("steps", "timesteps", "total_timesteps"), ("max_env_steps",)),
    "ent_coef": ("entropy_coef",),
    "vf_coef": ("value_coef", "value_delta"),
    "clip_range": ("clip",),
    "gradient_clip": ("max_grad_norm",),
    "sigma": ("noise_std",),
}
"""Other libraries' and papers' words for keys, with those of this package, the best first."""
OTHER_FLAGS = {
    **dict.fromkeys(("env", "env_id", "env_name", "environment", "game", "task"), "--gamename"),
    **dict.fromkeys(("method", "algo", "algorithm"), "--implementation"),
    "device": "--accelerator",
    "experiment": "--exp_name",
}
"""The same for flags."""

MAY_CHANGE = frozenset(
    (
        "max_epochs",
        "max_env_steps",
        "max_episodes",
        "target_return",
        "eval_interval",
        "eval_episodes",
        "checkpoint_interval",
    )
)
"""Keys that may say something else when a run is resumed: how long it is, and what is looked at."""


RETIRED: Mapping[str, Any] = {
    "faithful": False,
    "double_q": False,
    "std": "sigmoid2",
    "grad_eval_aggregate": "mean",
    "nes_step_size": False,
    "reencode": False,
    "test_horizon": None,
}
"""Keys that are gone, with the value that changes nothing: files that say it are still read."""

ADDED: Mapping[str, Any] = {
    "noise_hold": 0.0,
    "agent_noise": 1.0,
    "one_step": False,
    "clone_generations": 0,
    "saturation_penalty": 0.0,
    "scale_states": False,
    "cuda_graphs": False,
    "test_horizon": None,  # which is gone again
    "frame_stack": None,
    "frame_skip": None,
    "screen_size": None,
    "grayscale": None,
    "encoder": "udrl",
    "offline": False,
    "best_share": 1.0,
    "double": True,
    "max_grad_norm": None,
    "loss": "squared",
    "adam_eps": 1e-8,
    "normalise_obs": False,
    "action_masks": False,
    "train_interval": 1,
    "lowest": None,
    "highest_share": 0.3,
    "start_spread": 1.0,
    "clone_hidden": [32, 32],
    "clone_learning_rate": 3e-3,
    "num_clone_updates": 100,
}
"""Keys that came later, in their order, with the value at which a run is as it was without them:
runs that were begun before go on.
"""


def with_added(before: Mapping[str, Any], now: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of a run with the keys of ``now`` that came later, however deep they are."""
    missing = {key: ADDED[key] for key in now if key in ADDED and key not in before}
    inner = {
        key: with_added(value, now[key])
        for key, value in before.items()
        if isinstance(value, Mapping) and isinstance(now.get(key), Mapping)
    }
    return {**before, **missing, **inner}


def without_retired(values: Mapping[str, Any], known: Iterable[str]) -> dict[str, Any]:
    """The values without those of ``RETIRED``, but for keys that are ``known`` under that name."""
    gone = RETIRED.keys() - set(known)
    return {
        key: value for key, value in values.items() if not (key in gone and value == RETIRED[key])
    }


def _check_colons(setting: str, value: Any, flag: str) -> None:
    """UserError where YAML read ``{key:1}`` as a key without a value."""
    for word, nothing in value.items() if isinstance(value, dict) else ():
        if nothing is None and isinstance(word, str) and ":" in word:
            spaced = shorten(setting.replace(word, word.replace(":", ": ", 1)))
            raise UserError(
                f"{flag} '{shorten(setting)}': a space is missing after a colon; write '{spaced}'"
            )
        _check_colons(setting, nothing, flag)


def parse_settings(
    settings: Iterable[str], flag: str = "--set", example: str = "learning_rate=1e-3"
) -> dict[str, Any]:
    """``key=value`` of a repeatable ``--set``, the values read as YAML; UserError for a key that
    is given two values.
    """
    found: dict[str, Any] = {}
    for setting in settings:
        key, equals, text = (part.strip() for part in setting.partition("="))
        if not equals or not key:
            raise UserError(
                f"{flag} '{shorten(setting)}': expected key=value, e.g. {flag} {example}"
            )
        value = parse_yaml(text, f"{flag} {shorten(key)}")
        _check_colons(setting, value, flag)
        if key in found and (type(found[key]) is not type(value) or found[key] != value):
            raise UserError(
                f"{flag} {shorten(key)} is given twice, {shown(found[key])} and {shown(value)}; "
                "leave one out"
            )
        found[key] = value
    return found


def read_settings(path: Path, implementation: str) -> dict[str, Any]:
    """Keys and values of ``--config``: a run's config.yaml, a search's best.yaml, or a plain
    mapping of keys.
    """
    try:
        document = read_yaml(path)
    except UserError as error:
        raise UserError(f"--config {error}") from error
    if not isinstance(document, dict):
        raise UserError(
            f"--config '{path}': expected a mapping of keys to values, got {shown(document)}"
        )
    if (other := document.get("implementation", implementation)) != implementation:
        raise UserError(
            f"--config '{path}' is of {shown(other)}, this run's implementation is "
            f"{implementation}; they must match"
        )
    if isinstance(own := document.get("networks"), dict):
        named = shorten(", ".join(f"{name}: {net}" for name, net in own.items()), 300)
        raise UserError(
            f"--config '{path}' is of a run with own networks ({named}), which the command line "
            "cannot take; from Python "
            "give networks={...}, or delete 'networks' from the file and train those of the config"
        )
    settings = document.get("config", document)
    if not isinstance(settings, dict):
        raise UserError(
            f"--config '{path}': config: must be a mapping of keys to values, got {shown(settings)}"
        )
    return settings


def _check_whole_numbers(where: str, value: Any) -> None:
    """UserError for a whole number within ``value`` that is too large for any key."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            _check_whole_numbers(f"{where}.{shorten(str(key))}", inner)
    elif isinstance(value, list | tuple | set):
        for inner in value:
            _check_whole_numbers(where, inner)
    elif isinstance(value, int) and abs(value) > WHOLE:
        raise UserError(
            f"{where}: {shown(value)} is beyond {WHOLE:,}, the largest whole number that is taken; "
            "give less"
        )


def block_layers(found: Entry, *path: str) -> list[tuple[str, dict[str, Any]]]:
    """What the blocks of an implementation have at ``path``, e.g. ``("tune", "default")``.

    Its own ``default`` is there, too, if it is empty.
    """
    result = []
    for block in found.blocks:
        values: Any = block.values
        name = block.name
        for part in path:
            name += f".{part}"
            values = values.get(part) or {}
            if not isinstance(values, Mapping):
                raise UserError(
                    f"{block.file}, block '{name}': expected a mapping of keys to values, got "
                    f"{shown(values)}"
                )
        if values or (path == ("default",) and block is found.blocks[-1]):
            result.append((f"{block.file}, block '{name}'", copy.deepcopy(dict(values))))
    return result


def presets(found: Entry) -> list[str]:
    """The names of an implementation's presets."""
    names = (name for block in found.blocks for name in block.values.get("presets") or {})
    return list(dict.fromkeys(names))


def merged_values(
    implementation: str, gamename: str, preset: str | None = None, offline: bool = False
) -> list[Layer]:
    """The values of an implementation for a gamename; UserError for an unknown preset.

    offline: with those that are for learning from a dataset.
    """
    found = entry(implementation)
    games = list(dict.fromkeys((base_name(gamename), gamename)))
    blocks = ["default", *games]
    if offline:
        blocks.append(OFFLINE)
    merged: list[Layer] = [layer for name in blocks for layer in block_layers(found, name)]
    if preset is None:
        return merged
    if preset not in (known := presets(found)):
        near = nearest(preset, known)
        hint = f"did you mean '{near}'? It has" if near else "it has"
        where = f"{found.blocks[-1].file}, block '{found.name}'"
        raise UserError(
            f"--preset '{shorten(preset)}' is not in {where}; {hint}: {', '.join(known) or 'none'}"
        )
    for where, values in block_layers(found, "presets", preset):
        merged.append((where, {key: value for key, value in values.items() if key != BY_GAMENAME}))
    return merged + [
        layer
        for game in games
        for layer in block_layers(found, "presets", preset, BY_GAMENAME, game)
    ]


def keys(found: Entry) -> list[str]:
    """The keys of an implementation's config."""
    names = (key for _, values in block_layers(found, "default") for key in values)
    return list(dict.fromkeys(names))


def require_offline(found: Entry) -> None:
    """UserError where an implementation cannot learn from a dataset."""
    if OFFLINE not in keys(found):
        raise UserError(
            f"--dataset: {found.name} learns from what it plays; leave it out, or choose UDRL, "
            "RCP-R or RCP-A"
        )


def as_setting(flag: str) -> str | None:
    """How to write a key that was given as a flag, a flag in another library's words, or a name
    without its flag; or None.
    """
    if not flag.startswith("-"):
        if flag in entries():
            return f"--implementation {flag}"
        return f"--gamename {flag}" if flag in GAMES else None
    word = flag.lstrip("-").replace("-", "_")
    known = {key for found in entries().values() for key in keys(found)}
    meant = [OTHER_FLAGS[word]] if word in OTHER_FLAGS else []
    settings = [key for key in (word, *OTHER_WORDS.get(word, ())) if key in known]
    meant += [f"--set {key}=VALUE" for key in settings[:1]]
    return ", or ".join(meant) or None


def check_key(where: str, key: str, known: Sequence[str]) -> None:
    """UserError, with the nearest right name, where the first part of ``a.b.c`` is no known key."""
    name = key.partition(".")[0]
    if name not in known:
        meant = [word for word in OTHER_WORDS.get(name.lower(), ()) if word in known]
        remedy = did_you_mean(meant[0] if meant else name, known, "known keys")
        owners = [each.name for each in entries().values() if name in keys(each)]
        if owners and not meant and "max_env_steps" in known:
            remedy = f"it is one of {', '.join(owners)}; leave it out"
        raise UserError(f"{where}: unknown key '{shorten(key)}'; {remedy}")


def _within(base: Any, path: list[str], value: Any, where: str) -> Any:
    """``base`` with ``value`` at ``path`` in its nested mappings.

    Where ``base`` is a name or a list of names, they become a mapping in which each has no
    settings. UserError for a path that
    begins with a name that is not among them: setting its key would choose it as well.
    """
    if not path:
        return value
    names = [base] if isinstance(base, str) else base
    if isinstance(names, list) and not all(isinstance(name, str) for name in names):
        raise UserError(
            f"{where}: no part of a list can be set; give it whole instead of {shown(base)}"
        )
    if isinstance(names, list) and path[0] not in names:
        raise UserError(
            f"{where}: {shown(path[0])} is none of {', '.join(map(str, names))}; leave it out, or "
            "name it as well"
        )
    mapping: Mapping[Any, Any] = {}
    if isinstance(names, list):
        mapping = {name: {} for name in names}
    elif isinstance(base, Mapping):
        mapping = base
    return {**mapping, path[0]: _within(mapping.get(path[0]), path[1:], value, where)}


def build_config(schema: type[C], layers: Iterable[Layer]) -> C:
    """A ``schema`` from layers of (where, values), later ones winning. ``a.b.c`` sets a value
    inside the mapping of key ``a``.

    Where ``a`` is a name, or names, ``a.b.c`` is of the one called ``b``.

    UserError names the place and key of an unknown key, a wrong type or a value out of range.
    """
    from pydantic import ValidationError  # here, as names and values are read without it

    layers = list(layers)
    if hasattr(schema, "for_values"):  # keys of parts of a user's
        schema = cast(Any, schema).for_values(layers)
    known = [field.name for field in dataclasses.fields(schema)]  # type: ignore[arg-type]
    values: dict[str, Any] = {}
    source: dict[str, str] = {}
    for where, layer in layers:
        # A value inside another comes last.
        given = without_retired(layer, known)
        for key, value in sorted(given.items(), key=lambda item: str(item[0]).count(".")):
            name, *inner = str(key).split(".")
            check_key(where, str(key), known)
            place = f"{where}: key '{shorten(str(key))}'"
            _check_whole_numbers(place, value)
            values[name] = _within(values.get(name), inner, value, place)
            source[name] = where
    try:
        return _validated(schema, values)
    except ValidationError as error:
        first = error.errors()[0]
        if not first["loc"]:  # about several keys together
            raise UserError(first["msg"].removeprefix("Value error, ")) from error
        key = str(first["loc"][0])
        if key not in values:
            where = _place_of_defaults(layers)
            raise UserError(f"{where}: key '{key}': {first['msg']}; give it a value") from error
        got = "" if first["type"] == "missing" else f", got {shown(first['input'])}"
        raise UserError(f"{source[key]}: key '{key}': {first['msg']}{got}") from error


def _place_of_defaults(layers: Sequence[Layer]) -> str:
    """Where a key that no layer has is to be given: the implementation's own ``default``."""
    defaults = [where for where, _ in layers if where.endswith(".default'")]
    if defaults:
        return defaults[-1]
    return layers[0][0] if layers else "config"


def _validated(schema: type[C], values: Mapping[str, Any]) -> C:
    """The schema of the values; a float that is whole (``1e6``) counts as a whole number where
    one is asked for.
    """
    from pydantic import ValidationError

    try:
        return schema(**values)
    except ValidationError as error:
        changed = values
        for each in error.errors():
            given = each["input"]
            if each["type"] != "int_type" or not isinstance(given, float):
                continue
            if abs(given) <= WHOLE and given.is_integer():
                changed = _replaced(changed, each["loc"], int(given))
        if changed is values:
            raise
        return _validated(schema, changed)


def _replaced(values: Any, place: Sequence[Any], value: Any) -> Any:
    """A copy of nested mappings and lists with another value at the place; the parts of it that
    are no keys name types.
    """
    if not place:
        return value
    first, *rest = place
    if isinstance(values, Mapping) and first in values:
        return {**values, first: _replaced(values[first], rest, value)}
    if isinstance(values, list) and isinstance(first, int):
        return [
            _replaced(part, rest, value) if number == first else part
            for number, part in enumerate(values)
        ]
    return _replaced(values, rest, value)


def plain(value: Any, where: str, depth: int = PLAIN_DEPTH) -> Any:
    """A value from Python as files have it: lists for tuples and for arrays, Python's numbers
    for NumPy's.
    """
    if depth == 0:
        raise UserError(
            f"{where}: a value is nested deeper than {PLAIN_DEPTH} levels; give plain numbers, "
            "texts and lists"
        )
    try:
        value = value.tolist() if hasattr(value, "tolist") else value
    except Exception as error:  # a tensor without data, or whatever a class of the user's raises
        raise UserError(
            f"{where}: {shown(value)} has no plain value; give numbers, texts and lists"
        ) from error
    if isinstance(value, Mapping):
        return {key: plain(inner, where, depth - 1) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [plain(inner, where, depth - 1) for inner in value]
    return value


def _given(config: Any, preset: Any) -> dict[str, Any]:
    """The values of keys that a caller gives as a mapping; UserError where they are none, or the
    preset is no name.
    """
    if preset is not None:
        checked_name("preset", preset, "'tuned'")
    if not isinstance(config, Mapping):
        raise UserError(
            f"config {shown(config)}: give a dict of keys and values, e.g. {{'gamma': 0.99}}"
        )
    return dict(plain(config, "config"))


def changes(values: Mapping[str, Any], layers: Iterable[Layer]) -> dict[str, Any]:
    """Those of ``values`` that are others than the layers give."""
    below = {key: value for _, layer in layers for key, value in layer.items()}
    return {key: value for key, value in values.items() if value != below.get(key)}


def dotted_keys(values: Mapping[str, Any]) -> Iterator[str]:
    """The keys, also of the mappings inside, as ``a.b.c``."""
    for key, value in values.items():
        yield str(key)
        if isinstance(value, Mapping):
            yield from (f"{key}.{inner}" for inner in dotted_keys(value))


def refuse_ignored(ignored_keys: Mapping[str, str], *asked: tuple[str, Iterable[str]]) -> None:
    """UserError for a key that was set, (where, keys), though it makes no difference; ignored_keys:
    key -> reason.
    """
    for where, keys in asked:
        for key in keys:
            if key in ignored_keys:
                raise UserError(f"{where}: key '{key}': {ignored_keys[key]}")


def config_layers(
    implementation: str,
    gamename: str,
    preset: str | None,
    config: Mapping[str, Any],
    settings: Mapping[str, Any] | None = None,
) -> list[Layer]:
    """(where, values) of all that lies below the settings: ``default`` < gamename < ``offline`` <
    preset < ``--config``.
    """
    merged = merged_values(implementation, gamename, preset)
    every = [*(values for _, values in merged), config, settings or {}]
    said = [values[OFFLINE] for values in every if OFFLINE in values]
    if said and said[-1] is True:
        merged = merged_values(implementation, gamename, preset, offline=True)
    return [*merged, ("--config", config)]


def refuse_hidden_preset(
    schema: type[MethodConfig],
    implementation: str,
    gamename: str,
    preset: str,
    config: Mapping[str, Any],
) -> None:
    """UserError for a preset of which a file of ``--config``, e.g. the record of a run without
    it, leaves nothing.
    """

    def values(name: str | None) -> dict[str, Any]:
        built = build_config(schema, merged_values(implementation, gamename, name))
        return dataclasses.asdict(built.resolved(gamename))

    plain, own = values(None), values(preset)
    changed = [key for key, value in own.items() if value != plain[key]]
    if changed and all(key in config and config[key] != own[key] for key in changed):
        raise UserError(
            f"--preset {preset}: --config has other values of all its keys ({', '.join(changed)}); "
            "leave one out"
        )


def load_config(
    schema: type[M],
    implementation: str,
    gamename: str,
    preset: str | None,
    config: Mapping[str, Any],
    settings: Mapping[str, Any],
    where: str = "--set",
) -> M:
    """The checked config with all that it takes from elsewhere; UserError also for a setting that
    would make no difference.

    A value of ``config`` that equals the YAML's may stay: a run's record holds every key. where: of
    the settings, for messages.
    """
    config, settings = _given(config, preset), plain(settings, where)
    if preset is not None and config:
        refuse_hidden_preset(schema, implementation, gamename, preset, config)
    layers = config_layers(implementation, gamename, preset, config, settings)
    built = build_config(schema, [*layers, (where, settings)])
    refuse_ignored(
        built.ignored_keys(),
        ("--config", changes(config, layers[:-1])),
        (where, dotted_keys(settings)),
    )
    return built.resolved(gamename)


def method_config(
    schema: type[M],
    implementation: str,
    gamename: str,
    preset: str | None,
    config: M | Mapping[str, Any],
    settings: Mapping[str, Any],
    where: str,
) -> M:
    """The config of a method that is built: one that is checked already; or ``config`` as it is
    where it has every key, as a checkpoint's has; else that of ``load_config``.
    """
    if isinstance(config, schema):
        return config
    config = _given(config, preset)
    keys = {field.name for field in dataclasses.fields(schema)}
    if preset is None and not settings and keys <= config.keys():
        return build_config(schema, [("config", config)])
    return load_config(schema, implementation, gamename, preset, config, settings, where)
