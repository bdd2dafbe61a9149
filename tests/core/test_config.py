import dataclasses
import functools
import os
import re
from pathlib import Path

import gymnasium
import pytest
import yaml
from helpers import ROOT
from helpers.budgets import PLAYABLE, fitting, why_not

from lightning_rl.core import catalogue
from lightning_rl.core.config import (
    block_layers,
    build_config,
    merged_values,
    parse_settings,
    presets,
)
from lightning_rl.core.errors import UserError
from lightning_rl.core.gamenames import GAMES
from lightning_rl.core.yaml_files import parse_yaml, read_yaml
from lightning_rl.envs.spec import env_spec
from lightning_rl.lab.reports.config_table import SOURCE, block_rows, config_rows
from lightning_rl.methods.proxy_search import SEConfig
from lightning_rl.methods.registry import IMPLEMENTATIONS
from lightning_rl.methods.upside_down import UDRL


def layers(**values):
    return [*merged_values("UDRL", "lunarlander"), ("--set", values)]


@pytest.mark.parametrize("gamename", PLAYABLE)
@pytest.mark.parametrize("name", IMPLEMENTATIONS)
def test_every_config_instantiates_and_builds_its_method(name, gamename):
    entry = IMPLEMENTATIONS[name]
    config = build_config(entry.Config, merged_values(name, gamename))
    hparams = {
        "implementation": name,
        "gamename": gamename,
        "seed": 0,
        "config": dataclasses.asdict(config),
    }
    if (reason := why_not(name, gamename)) is None:
        entry(**hparams)
    else:
        with pytest.raises(UserError, match=f"{name} does not fit gamename '{gamename}': {reason}"):
            entry(**hparams)


PRESETS = [
    (name, preset) for name, entry in catalogue.entries().items() for preset in presets(entry)
]


@pytest.mark.parametrize(("name", "preset"), PRESETS)
def test_every_preset_instantiates_and_builds_its_method(name, preset):
    entry = IMPLEMENTATIONS[name]
    for _, gamename in fitting([name]):
        config = dataclasses.asdict(
            build_config(entry.Config, merged_values(name, gamename, preset))
        )
        made = functools.partial(entry, gamename, implementation=name, seed=0, config=config)
        of_images = any(config.get(key) for key in ("frame_skip", "screen_size"))
        if of_images and env_spec(gamename).images is None:
            with pytest.raises(UserError, match="are no images"):
                made()
        elif config.get("command") == "owed" and env_spec(gamename).images is not None:
            with pytest.raises(UserError, match="its critic sees no images"):
                made()
        else:
            made()


FILES = {family: catalogue.CONFIGS / f"{family}.yaml" for family in catalogue.FAMILIES}
GROUP_KEYS = {"about", "aliases", "extends", "module", "default", "offline", "presets", "tune"}


@pytest.mark.parametrize("name", IMPLEMENTATIONS)
def test_blocks_are_of_known_environments_and_default_is_complete(name):
    found = catalogue.entry(name)
    assert {key for block in found.blocks for key in block.values} - GROUP_KEYS <= {
        *GAMES,
        *gymnasium.registry,
    }
    assert {key for block in found.blocks for key in block.values.get("tune", {})} <= {
        "default",
        *GAMES,
    }
    fields = {field.name for field in dataclasses.fields(IMPLEMENTATIONS[name].Config)}
    assert {key for _, values in block_layers(found, "default") for key in values} == fields


@pytest.mark.parametrize("name", IMPLEMENTATIONS)
def test_no_key_has_a_value_elsewhere(name):
    values = {
        key: value
        for _, block in block_layers(catalogue.entry(name), "default")
        for key, value in block.items()
    }
    for key in values:
        with pytest.raises(UserError, match=f"key '{key}': Field required"):
            build_config(
                IMPLEMENTATIONS[name].Config,
                [("mine.yaml", {k: value for k, value in values.items() if k != key})],
            )


def test_a_comment_goes_on_in_further_lines_and_ends_at_the_next_heading(tmp_path):
    path = tmp_path / "method.yaml"
    path.write_text(
        "A:\n  default:\n    # budget\n    steps: 3  # how many\n              # steps [O]; [E] 4\n"
        "    # data\n    kept: [1, 2]\n        # under it [E]\n"
    )
    steps, kept = block_rows(path, "A")
    assert (steps.heading, steps.value, steps.explanation) == ("budget", "3", "how many steps")
    assert steps.source == "[O]; [E] 4"
    assert (kept.heading, kept.value, kept.explanation) == ("data", "[1, 2]", "under it")


@pytest.mark.parametrize("family", FILES)
def test_every_key_is_explained_once_where_it_first_stands(family):
    document = yaml.safe_load(FILES[family].read_text())
    rows = [row for name in document.keys() - {"legend"} for row in block_rows(FILES[family], name)]
    explained = [row.key for row in rows if row.explanation]
    assert sorted(explained) == sorted({row.key for row in rows})
    for name in document.keys() & IMPLEMENTATIONS.keys():
        assert all(row.explanation for row in config_rows(catalogue.entry(name)))


@pytest.mark.parametrize("family", FILES)
def test_the_legend_has_the_letters_of_all_sources_and_no_other(family):
    text = FILES[family].read_text()
    letters = {
        letter for source in SOURCE.findall(text) for letter in source.strip("[]").split(", ")
    }
    assert letters == set(yaml.safe_load(text)["legend"])


def test_no_value_repeats_what_lies_below():
    seen, needed = set(), set()
    for name, found in catalogue.entries().items():
        for game in GAMES:
            stacks = [merged_values(name, game, preset) for preset in (None, *presets(found))]
            stacks.append(
                [*block_layers(found, "tune", "default"), *block_layers(found, "tune", game)]
            )
            for stack in stacks:
                below = {}
                for where, values in stack:
                    seen |= {(where, key) for key in values}
                    needed |= {
                        (where, key)
                        for key, value in values.items()
                        if repr(below.get(key, ...)) != repr(value)
                    }
                    below |= values
    assert seen - needed == set()


def test_precedence():
    assert (
        build_config(UDRL.Config, block_layers(catalogue.entry("UDRL"), "default")).batch_size
        == 768
    )
    assert build_config(UDRL.Config, layers()).batch_size == 256
    assert build_config(UDRL.Config, layers(batch_size=3)).batch_size == 3


def test_errors_name_file_block_and_key():
    *below, (where, values) = block_layers(catalogue.entry("UDRL"), "default")
    with pytest.raises(
        UserError, match=r"upside_down.yaml, block 'UDRL.default': key 'batch_size': .* got 'x'"
    ):
        build_config(UDRL.Config, [*below, (where, {**values, "batch_size": "x"})])
    with pytest.raises(
        UserError,
        match=r"key 'max_epochs': Missing required argument|key 'max_epochs': Field required",
    ):
        build_config(UDRL.Config, [("toy", {})])
    with pytest.raises(UserError, match=r"unknown key 'zzz'; known keys: max_epochs"):
        build_config(UDRL.Config, layers(zzz=1))


@pytest.mark.parametrize(
    ("asked", "meant"),
    [
        ("lr", "learning_rate"),
        ("Batch_Size", "batch_size"),
        ("buffer_size", "replay_size"),
        ("hiden", "hidden"),
        ("total_timesteps", "max_env_steps"),
        ("epochs", "max_epochs"),
    ],
)
def test_words_of_other_libraries_lead_to_the_key(asked, meant):
    with pytest.raises(UserError, match=f"--set: unknown key '{asked}'; did you mean '{meant}'"):
        build_config(UDRL.Config, layers(**{asked: 1}))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a=1e-3", 1e-3),
        ("a=3.5e-4", 3.5e-4),
        ("a=2", 2),
        ("a=null", None),
        ("a=true", True),
        ("a=[1, 2]", [1, 2]),
        ("a=1E5", 1e5),
        ("a=-.5", -0.5),
        ("a=x=y", "x=y"),
        ("a=", None),
        ("a=1.2.3", "1.2.3"),
    ],
)
def test_settings_are_yaml_and_scientific_numbers_are_numbers(text, value):
    ((key, parsed),) = parse_settings([text]).items()
    assert key == "a"
    assert parsed == value
    assert type(parsed) is type(value)


@pytest.mark.parametrize(
    ("text", "meant"), [("a={b:1}", "a={b: 1}"), ("a={b: {c:0.5}}", "a={b: {c: 0.5}}")]
)
def test_a_space_that_is_missing_after_a_colon_is_named(text, meant):
    with pytest.raises(UserError) as caught:
        parse_settings([text])
    assert str(caught.value) == f"--set '{text}': a space is missing after a colon; write '{meant}'"
    assert parse_settings(["a={DDQN: , 'b:c': 1}"]) == {"a": {"DDQN": None, "b:c": 1}}


def test_yaml_cannot_make_objects():
    with pytest.raises(UserError, match="not valid YAML"):
        parse_yaml("!!python/object/apply:os.system [ls]", "here")


def test_every_implementation_has_a_config_and_the_other_way_round():
    assert {path.stem for path in (ROOT / "configs").glob("*.yaml")} == set(catalogue.FAMILIES)
    assert set(catalogue.entries()) == set(IMPLEMENTATIONS)


FAMILY = """
shared: {default: {a: 0, b: 0, c: 0}, cartpole: {b: 1, c: 1}, presets: {paper: {c: 3}, other: {}}}
group: {default: {a: 1}}
Toy:
  about: a toy
  extends: group
  default: {a: 2, b: 2}
  cartpole: {c: 2}
  presets: {paper: {b: 4, by_gamename: {cartpole: {a: 5}}}}
"""


def test_what_is_shared_lies_below_what_is_own_and_default_below_gamename_below_preset(monkeypatch):
    monkeypatch.setattr(catalogue, "_added", {})
    catalogue.add(yaml.safe_load(FAMILY))
    assert [values for _, values in merged_values("toy", "pendulum")] == [
        {"a": 0, "b": 0, "c": 0},
        {"a": 1},
        {"a": 2, "b": 2},
    ]
    where, values = zip(*merged_values("Toy", "cartpole", "paper")[3:], strict=True)
    assert values == ({"b": 1, "c": 1}, {"c": 2}, {"c": 3}, {"b": 4}, {"a": 5})
    assert "block 'Toy.presets.paper'" in where[3]
    with pytest.raises(
        UserError,
        match=r"--preset 'Papr' is not in .*'Toy'; did you mean 'paper'\? It has: paper, other",
    ):
        merged_values("Toy", "cartpole", "Papr")


def test_dots_reach_into_mappings():
    changes = {"agent.QL.gamma": 0.5, "agent.DDQN.tau": 0.1}
    config = build_config(SEConfig, [*merged_values("SE", "emptyroom22"), ("--set", changes)])
    assert config.agent["QL"]["gamma"] == 0.5
    assert config.agent["QL"]["learning_starts"] == 5
    assert config.agent["DDQN"] == {"tau": 0.1}
    config = build_config(
        SEConfig, [*merged_values("SE", "cartpole"), ("--set", {"agent.PPO.clip": 0.3})]
    )
    assert config.agent == {"PPO": {"clip": 0.3}}
    for names, agents in (
        ("DDQN", {"DDQN": {"tau": 0.1}}),
        (["PPO", "DDQN"], {"PPO": {}, "DDQN": {"tau": 0.1}}),
    ):
        set_both = {"agent.DDQN.tau": 0.1, "agent": names}  # in whichever order
        assert (
            build_config(SEConfig, [*merged_values("SE", "cartpole"), ("--set", set_both)]).agent
            == agents
        )
    other = {"agent": "DuelingDDQN", "agent.DDQN.tau": 0.1}
    with pytest.raises(
        UserError, match=r"--set: key 'hidden.0': no part of a list can be set; give it whole"
    ):
        build_config(UDRL.Config, layers(**{"hidden.0": 5}))
    with pytest.raises(
        UserError,
        match=r"--set: key 'agent.DDQN.tau': 'DDQN' is none of DuelingDDQN; leave it out, or name "
        r"it",
    ):
        build_config(SEConfig, [*merged_values("SE", "cartpole"), ("--set", other)])
    with pytest.raises(UserError, match=r"unknown key 'agnet.QL.gamma'; did you mean 'agent'"):
        build_config(
            SEConfig, [*merged_values("SE", "cartpole"), ("--set", {"agnet.QL.gamma": 0.5})]
        )


HOSTILE = {
    "not a timestamp": "!!timestamp abc",
    "no int": "!!int abc",
    "an empty int": "!!int ''",
    "no float": "!!float abc",
    "no bool": "!!bool maybe",
    "5000 digits": "9" * 5000,
    "deep lists": "[" * 5000,
    "deep mappings": "{a: " * 5000,
    "a bomb of aliases": "["
    + ", ".join(f"&a{n} [" + ", ".join([f"*a{n - 1}"] * 9 if n else "x") + "]" for n in range(9))
    + "]",
    "a list that holds itself": "&a [*a]",
    "a key twice": "{a: 1, a: 2}",
    "a list as a key": "{[1]: 2}",
    "control characters": "a\x00b",
    "too long": "x" * 2_000_000,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_whatever_yaml_cannot_be_read_is_one_line(name):
    with pytest.raises(UserError, match=r"^--set a: ") as error:
        parse_settings([f"a={HOSTILE[name]}"])
    assert len(str(error.value)) < 400


@pytest.mark.parametrize("name", HOSTILE)
def test_a_file_of_such_yaml_is_one_line_too(name, tmp_path):
    (tmp_path / "config.yaml").write_text(HOSTILE[name])
    with pytest.raises(UserError, match=r"config\.yaml'"):
        read_yaml(tmp_path / "config.yaml")


def test_what_is_no_file_is_not_opened(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", tmp_path, tmp_path / "nowhere", Path("/dev/zero")):
        with pytest.raises(UserError, match=r"is not a file|does not exist"):
            read_yaml(path)
    (tmp_path / "bytes").write_bytes(b"\xff\xfe")
    with pytest.raises(UserError, match="is not text"):
        read_yaml(tmp_path / "bytes")


def test_dates_times_and_numbers_with_leading_zeros_are_text():
    for text in ("2024-13-45", "2024-11-12", "1:30", "-1:30:00", "1:30.5", "010", "-007"):
        assert parse_settings([f"a={text}"]) == {"a": text}
    for text, number in (
        ("0", 0),
        ("-0", 0),
        ("1_000.5", 1000.5),
        ("1_000", 1000),
        ("+12", 12),
        ("0x1F", 31),
        ("0b101", 5),
    ):
        assert parse_settings([f"a={text}"]) == {"a": number}


def test_numbers_that_are_not_finite_or_too_large_are_refused_with_their_key():
    for text, words in (
        (".nan", "--set: key 'learning_rate': Input should be a finite number, got nan"),
        ("1e400", "--set: key 'learning_rate': Input should be a finite number, got inf"),
        ("-.inf", "--set: key 'learning_rate': Input should be a finite number, got -inf"),
        ("1" + "0" * 13, "key 'learning_rate': 10000000000000 is beyond 1,000,000,000,000"),
        (
            "0x" + "f" * 5000,
            "key 'learning_rate': (int with a number of thousands of digits) is beyond",
        ),
        ("{x: [1" + "0" * 13 + "]}", "key 'learning_rate'.x: 10000000000000 is beyond"),
    ):
        with pytest.raises(UserError, match=re.escape(words)):
            build_config(UDRL.Config, layers(**parse_settings([f"learning_rate={text}"])))


def test_only_a_limit_that_is_none_may_be_infinite():
    assert build_config(
        UDRL.Config,
        [*merged_values("RCP-R", "cartpole"), ("--set", {"command_limit": float("inf")})],
    )
    with pytest.raises(UserError, match="key 'command_limit'"):
        build_config(
            UDRL.Config,
            [*merged_values("RCP-R", "cartpole"), ("--set", {"command_limit": float("nan")})],
        )


def test_a_key_with_two_values_is_refused():
    assert parse_settings(["a=1", "b=2", "a=1"]) == {"a": 1, "b": 2}
    with pytest.raises(UserError, match="--set a is given twice, 1 and 2; leave one out"):
        parse_settings(["a=1", "a=2"])
    with pytest.raises(UserError, match="--set a is given twice, 1 and True"):
        parse_settings(["a=1", "a=true"])


def test_long_values_are_cut_in_messages():
    with pytest.raises(UserError, match=r"got 'x{80}\.\.\. \(5,000 characters\)'"):
        build_config(UDRL.Config, layers(batch_size="x" * 5000))


def test_a_file_of_yaml_is_parsed_once_until_it_changes(tmp_path, monkeypatch):
    path, parsed = tmp_path / "a.yaml", []
    path.write_text("hidden: [8]")
    reader = "lightning_rl.core.yaml_files.parse_yaml"
    monkeypatch.setattr(reader, lambda text, where: parsed.append(text) or parse_yaml(text, where))
    read_yaml(path)["hidden"].append(9)  # what is handed out is the reader's own
    assert read_yaml(path) == {"hidden": [8]}
    assert len(parsed) == 1
    os.utime(path, ns=(1, 1))
    assert read_yaml(path) == {"hidden": [8]}
    assert len(parsed) == 2


def test_the_sets_of_the_papers_code_are_in_our_units():
    """Update episodes times the time limit are steps; noise in a box [-2, 2] is half as much in
    [-1, 1].
    """
    values = {}
    for name, game in (
        ("PPO", "pendulum"),
        ("PPO", "halfcheetah"),
        ("TD3", "pendulum"),
        ("TD3-discrete", "acrobot"),
    ):
        values[name, game] = {
            key: value
            for _, layer in merged_values(name, game, "tuned")
            for key, value in layer.items()
        }
    assert values["PPO", "pendulum"]["rollout_steps"] == 13 * 200
    assert values["PPO", "halfcheetah"]["rollout_steps"] == 10 * 1000
    assert (values["TD3", "pendulum"]["target_std"], values["TD3", "pendulum"]["target_clip"]) == (
        0.102 / 2,
        0.25 / 2,
    )
    assert values["TD3-discrete", "acrobot"]["temperature_init"] == 2.30762


def test_curious_agents_of_the_figures_have_the_tuned_module():
    for name, game, expected in (
        ("DDQN", "cartpole-v0", (1e-5, 0.05, 0.03)),
        ("TD3", "halfcheetah", (1e-5, 0.001, 0.1)),
        ("PPO", "halfcheetah", (1e-4, 0.05, 0.03)),
        ("PPO", "mountaincar-continuous", (5e-4, 0.1, 0.01)),
    ):
        values = {
            key: value
            for _, layer in merged_values(name, game, "reward-curves")
            for key, value in layer.items()
        }
        assert tuple(values[f"icm_{key}"] for key in ("learning_rate", "beta", "eta")) == expected


def test_keys_that_are_gone_are_read_with_the_value_that_changes_nothing():
    known = dataclasses.asdict(IMPLEMENTATIONS["DDQN"]("cartpole", seed=0).cfg)
    method = IMPLEMENTATIONS["DDQN"]("cartpole", seed=0, config={**known, "faithful": False})
    assert dataclasses.asdict(method.cfg) == known
    with pytest.raises(UserError, match="unknown key 'faithful'"):
        IMPLEMENTATIONS["DDQN"]("cartpole", seed=0, config={**known, "faithful": True})
