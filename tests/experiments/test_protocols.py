"""The evaluate commands: on tiny proxies, gone on with after a stop, and with the errors that
they promise.
"""

import csv
import re
from pathlib import Path

import numpy as np
import pytest
import torch
from helpers.runs import run_dir

from experiments.protocols import grid_rewards, recording, transitions
from experiments.protocols.generations import draw, print_runs
from experiments.protocols.grid_rewards import rewards, visits
from experiments.protocols.recording import Transitions
from experiments.protocols.transitions import NAMES, answers, component_names, histogram
from lightning_rl.cli import main
from lightning_rl.envs.grids import cliff
from lightning_rl.envs.proxies import SyntheticProxy, read_proxy, save_proxy, shipped
from lightning_rl.envs.reward_network import RewardProxy
from lightning_rl.envs.spec import env_spec
from lightning_rl.lab.protocols.agents import AgentKind, Job, failed_last, make_kinds, train_stacks
from lightning_rl.lab.protocols.models import Model, best_of_each, find_models, kind_of, real_task
from lightning_rl.lab.scalars import read_scalar
from lightning_rl.lab.tuning.space import spaces

SMALL = ("--set=hidden=[8]", "--set=batch_size=8")


def se(horizon=5, gamename="cartpole-v0"):
    return SyntheticProxy(
        gamename=gamename, hidden=(4,), activation="tanh", horizon=horizon, cap_ends=True
    )


def rn(form="additive", gamename="cliff"):
    return RewardProxy(gamename=gamename, hidden=(4,), activation="tanh", form=form, gamma=0.8)


def write(path, proxy, score=1.0, **about):
    params = proxy.net.init([torch.Generator().manual_seed(len(path.name))])[0]
    save_proxy(path, proxy, params, {"score": score, **about})
    return str(path)


def table(path):
    with path.open() as file:
        return list(csv.DictReader(file))


def proxies(protocol, out, words="", *more):
    """The exit code of ``lightning-rl proxies``; words: with spaces between."""
    return main(["proxies", protocol, str(out), *words.split(), *more])


def transfer(out, *words):
    return proxies(
        "transfer", out, "", *words, *"--agents DDQN --steps 12 --tests 2".split(), *SMALL
    )


def test_a_protocol_trains_with_one_thread_and_without_tiny_numbers(tmp_path):
    """With two threads each of its small networks waits for the second: ten times as long beside
    another process.
    """
    before, tiny = torch.get_num_threads(), torch.tensor(1e-40)
    torch.set_num_threads(2)
    try:
        assert tiny * 1 > 0
        assert transfer(tmp_path / "t.csv", write(tmp_path / "p.pt", se()), "--count", "1") == 0
        assert torch.get_num_threads() == 1
        assert tiny * 1 == 0
    finally:
        torch.set_num_threads(before)


def test_transfer_goes_on_where_it_stopped(tmp_path, capsys):
    out, paths = tmp_path / "t.csv", [write(tmp_path / f"p{n}.pt", se()) for n in range(2)]
    assert transfer(out, *paths, "--count", "2", "--real", "1") == 0
    rows = table(out)
    assert [
        (r["trained_on"], r["proxy"], r["number"]) for r in rows if r["trained_on"] == "real"
    ] == [("real", "real", "0")]
    assert sorted(r["proxy"] for r in rows) == ["p0", "p0", "p1", "p1", "real"]
    for r in rows:
        returns = [float(x) for x in r["test_returns"].split()]
        assert (
            (len(returns), sum(returns))
            == (2, 2 * float(r["return_mean"]))
            == (2, float(r["test_steps"]))
        )
        assert r["train_steps"] == "12"
        assert r["protocol"] == "varied, 12 steps, 2 tests, hidden=[8], batch_size=8"
    lines = out.read_text().splitlines(keepends=True)
    out.write_text("".join(lines[:-2]) + lines[-2][:10])  # killed in the middle of a row
    assert transfer(out, *paths, "--count", "2", "--real", "1") == 0
    keys = [(r["proxy"], r["number"]) for r in table(out)]
    assert sorted(keys) == sorted((r["proxy"], r["number"]) for r in rows)
    assert transfer(out, *paths, "--count", "3") == 0
    assert len(table(out)) == 7
    write(tmp_path / "p0.pt", se(horizon=6))  # another proxy of the same name
    assert transfer(out, paths[0], "--count", "1") == 0
    assert transfer(out, paths[1], "--count", "1", "--seed", "1") == 0
    assert transfer(out, paths[1], "--count", "1", "--seed", "1") == 0
    assert [(r["proxy"], r["seed"], r["number"]) for r in table(out)[7:]] == [
        ("p0", "0", "0"),
        ("p1", "1", "0"),
    ]
    assert len({r["proxy_hash"] for r in table(out) if r["proxy"] == "p0"}) == 2
    assert (
        "DDQN | varied, 12 steps, 2 tests, hidden=[8], batch_size=8 | SE, fixed: return_mean"
        in capsys.readouterr().out
    )


def test_bad_input_is_one_line(tmp_path, capsys):
    out, proxy = tmp_path / "t.csv", write(tmp_path / "se.pt", se())
    other = write(tmp_path / "pole.pt", se(gamename="acrobot"))
    (tmp_path / "empty").mkdir()
    for words, said in (
        (["transfer", str(tmp_path / "empty")], "no proxy (a .pt file) is at or below"),
        (
            ["transfer", proxy, other],
            "'pole' is of gamename 'acrobot', 'se' of 'cartpole-v0'; choose with --gamename",
        ),
        (["transfer", proxy, "--gamename", "acrobot"], "use a proxy of the same task"),
        (
            ["transfer", proxy, "--agents", "TD3"],
            "it is for continuous actions; use TD3-discrete, DDQN or PPO",
        ),
        (["transfer", proxy, "--agents", "DQN"], "agent 'DQN' is unknown; did you mean 'DDQN'?"),
        (
            ["transfer", proxy, "--set", "colour=red"],
            "--set colour: none of DDQN, DuelingDDQN, TD3-discrete has such a key",
        ),
        (["transfer", proxy, proxy], "two proxies are called 'se'"),
        (["transfer"], "which is the CSV to write, and no --gamename"),
        (["transfer", "--gamename", "acrobot"], "is named: name some, or give --real N"),
        (["clones", "--gamename", "acrobot"], "no proxy is named: name some\n"),
        (["reward-curves", proxy], "learning curves on the task are for reward networks"),
        (
            ["reward-curves", "--gamename", "cliff", "--real=1", "--steps=30", "--points=20"],
            "--points 20: 30 steps cannot be divided so; use --points 15",
        ),
        (
            ["reward-curves", "--gamename", "cliff", "--real=1", "--set=train_episodes=3"],
            "agents train for 5000 steps here",
        ),
        (
            ["transfer", proxy, "--steps=9", "--set=train_episodes=3"],
            "--set train_episodes: agents train for 9 steps here",
        ),
        (
            ["grid-rewards", proxy],
            "'se' is a synthetic environment; rewards are drawn of reward networks",
        ),
        (["grid-rewards", "--gamename", "cartpole"], "'cartpole' is no grid world"),
        (["generations", "--draw", "step_size=1"], "--draw step_size=1: expected a space"),
        (
            ["transfer", proxy, "--set", "stop_rule=none"],
            "--set: key 'stop_rule': how agents are trained here is the protocol's",
        ),
        (
            ["reward-curves", "--gamename", "cliff", "--real=1", "--set", "max_env_steps=10"],
            "key 'max_env_steps': how agents",
        ),
        (
            ["clones", "SD-CartPole-v1", "--set", "population=3"],
            "key 'population': it is of the search; clones read hidden, ",
        ),
        (
            ["generations", "--set", "max_env_steps=1"],
            "--set: key 'max_env_steps': runs of trainer.py read it, here max_epochs",
        ),
        (
            ["generations", "--draw", "eval_agents={int: [1, 2]}"],
            "--draw: key 'eval_agents': runs of trainer.py read it",
        ),
        (
            ["generations", "--set", "agent={DDQN: {steps_per_epoch: 3}}"],
            "agent.DDQN.steps_per_epoch",
        ),
        (["generations", "--gamename", "nowhere"], "unknown gamename 'nowhere'"),
    ):
        assert main(["proxies", words[0], str(out), *words[1:]]) == 2, words
        error = capsys.readouterr().err
        assert said in error
        assert error.count("\n") == 1, error


def test_proxies_of_folders_runs_and_names(tmp_path, capsys):
    write(
        tmp_path / "game" / "wide" / "SE" / "seed_3" / "proxy.pt", se(), 2.0, config={"vary": True}
    )
    (tmp_path / "game" / "broken.pt").write_text("no")
    models = find_models([str(tmp_path / "game"), "SE-CartPole-v0"])
    assert [(m.name, m.trained_on) for m in models] == [
        ("wide-SE-seed_3", "SE, varied"),
        ("SE-CartPole-v0", "SE, varied"),
    ]
    assert "skipped" in capsys.readouterr().err
    assert kind_of(se(), {"config": {"data_agents": 1, "published": False}}) == "MBRL"
    assert (kind_of(rn(), {}), real_task("cliff").trained_on) == ("additive", "real")


def test_the_list_tells_proxies_apart_by_their_content(tmp_path, capsys):
    """Equal bits have equal hashes whatever the file's name and its making are; one bit more,
    and the hash is another.
    """
    first = write(tmp_path / "a.pt", se(), seed=3, curve=[0.5, 1.0])
    write(tmp_path / "b.pt", se())
    write(tmp_path / "c.pt", rn())
    proxy, params, about = read_proxy(Path(first))
    save_proxy(tmp_path / "d.pt", proxy, params.nextafter(params + 1), about)
    assert main(["proxies", "list", str(tmp_path), "SE-CartPole-v0"], "lightning-rl") == 0
    rows = [
        re.split("  +", line.strip())
        for line in capsys.readouterr().out.splitlines()
        if line.strip() and not line.startswith("─")
    ][1:]
    numbers = {name: number for name, *_, number in rows}
    assert [row[:-1] for row in rows[:3]] == [
        ["a", "cartpole-v0", "SE, fixed", "3", "2"],
        ["b", "cartpole-v0", "SE, fixed"],
        ["c", "cliff", "additive"],
    ]
    assert numbers["a"] == numbers["b"] != numbers["d"]
    assert rows[4][0] == "SE-CartPole-v0"
    assert main(["proxies", "list"], "lightning-rl") == 0
    printed = capsys.readouterr().out
    assert all(name in printed for name in shipped())


def test_the_best_of_each_kind():
    def model(name, kind, score):
        return Model(name, kind, se(), torch.empty(0), score)

    models = [
        model("a", "x", 1.0),
        model("b", "x", 3.0),
        model("c", "y", 0.0),
        model("d", "x", 2.0),
    ]
    assert [m.name for m in best_of_each(models, 2)] == ["b", "d", "c"]
    assert [m.name for m in best_of_each(models, None)] == ["b", "d", "a", "c"]
    models.insert(1, model("e", "x", float("nan")))  # its file does not say
    assert [m.name for m in best_of_each(models, None)] == ["b", "d", "a", "e", "c"]


def test_reward_curves(tmp_path):
    """Agents with the real reward alone solve the cliff; the curve is of the real task whatever
    is paid.
    """
    out, path = tmp_path / "c.csv", write(tmp_path / "rn.pt", rn())
    words = f"{path} --count 1 --real 1 --curious 1 --agents QL --steps 200 --points"
    assert proxies("reward-curves", out, f"{words} 4") == 0
    rows = table(out)
    assert [r["trained_on"] for r in rows] == ["additive", "real", "real, curious agents"]
    for r in rows:
        curve = [float(x) for x in r["returns"].split()]
        assert (len(curve), r["every"]) == (4, "50")
        assert float(r["area"]) == pytest.approx(sum(curve) / 4, rel=1e-5)
        assert all(-149 <= x <= -12 for x in curve)
    assert proxies("reward-curves", out, f"{words} 4") == 0
    assert len(table(out)) == 3
    assert proxies("reward-curves", out, f"{words} 4 --hyperparameters varied") == 0
    protocols = ["fixed, 200 steps"] * 3 + ["varied, 200 steps"] * 3
    assert [r["protocol"] for r in table(out)] == protocols
    assert proxies("reward-curves", out, f"{words} 2") == 0  # other values of the same curves
    assert [(r["every"], len(r["returns"].split())) for r in table(out)[6:]] == [("100", 2)] * 3


def test_no_number_of_episodes_ends_what_is_measured_over_steps(tmp_path, monkeypatch):
    """Plain agents of short episodes, here of 50 steps, would be through with those of their
    config before.
    """
    task = real_task("bandit10")
    (kind,) = make_kinds(["QL"], "bandit10", "reward-curves", False, {})
    loop = kind.with_config(train_episodes=2).for_steps(300, task.proxy, 1)
    assert loop.train(0, task.params.unsqueeze(0), [1]).results.env_steps.tolist() == [300]
    asked, for_steps = [], AgentKind.for_steps

    def noted(kind, steps, *more, **rule):
        asked.append(steps)
        return for_steps(kind, steps, *more, **rule)

    monkeypatch.setattr(AgentKind, "for_steps", noted)
    words = "--gamename bandit10 --real 1 --agents QL --steps 60"
    assert proxies("reward-curves", tmp_path / "curves.csv", words, "--points=2") == 0
    assert proxies("transfer", tmp_path / "transfer.csv", words) == 0
    assert asked == [60, 60]


def test_the_curve_of_an_agent_that_finished_no_episode_is_its_test(tmp_path):
    """Of Acrobot, whose episodes have 500 steps and where nothing returns more than -1."""
    words = "--gamename acrobot --real 1 --agents DDQN --steps 40 --points 2"
    words += " --set=hidden=[8] --set=learning_starts=1"
    assert proxies("reward-curves", tmp_path / "c.csv", words) == 0
    (row,) = table(tmp_path / "c.csv")
    one, other = row["returns"].split()
    assert one == other
    assert -500 <= float(one) < 0


def test_agents_that_failed_are_as_bad_as_the_worst_of_all_stacks():
    """Where the worst return of a task is not known; whatever they trained beside."""
    nan, sound = float("nan"), {"return_mean": -3.0, "test_returns": [-2.0, -4.0], "episodes": 1}
    failed = {"return_mean": nan, "test_returns": [nan, nan], "episodes": 2}
    stacks = [
        (["a"], [dict(failed)]),
        (["b", "c"], [dict(sound), dict(sound, return_mean=5.0)]),
        (["d"], [dict(failed)]),
    ]
    found = [
        pair
        for jobs, rows in failed_last(stacks, ("return_mean", "test_returns"))
        for pair in zip(jobs, rows, strict=True)
    ]
    assert [job for job, _ in found] == ["b", "c", "a", "d"]
    assert found[0][1] == sound
    assert (
        found[2][1]
        == found[3][1]
        == {"return_mean": -3.0, "test_returns": [-3.0, -3.0], "episodes": 2}
    )
    (_, rows), (_, last) = failed_last(stacks[:1], ("return_mean", "test_returns"))
    assert rows == []
    assert last[0]["return_mean"] == -1e9
    for known, filled in ((-7.0, -7.0), (-1e9, -1e9)):  # after a kill, of what had been written
        *_, (_, (row,)) = failed_last(stacks[:1], ("return_mean", "test_returns"), known)
        assert row["return_mean"] == filled


def test_a_reward_that_makes_agents_diverge_leaves_a_curve(tmp_path):
    proxy = rn("exclusive", "pendulum")
    params = proxy.net.init([torch.Generator().manual_seed(0)])[0]
    save_proxy(tmp_path / "rn.pt", proxy, params * 1e38, {"score": 1.0})
    words = f"{tmp_path}/rn.pt --count 1 --agents TD3 --steps 800 --points 2"
    for _ in range(2):
        more = ("--set=learning_starts=1", *SMALL)
        assert proxies("reward-curves", tmp_path / "c.csv", words, *more) == 0
    (row,) = table(tmp_path / "c.csv")
    assert row["returns"].split() == [row["area"]] * 2
    assert float(row["area"]) == pytest.approx(env_spec("pendulum").min_return, rel=1e-5)


@pytest.mark.parametrize(
    ("gamename", "names", "steps"),
    [
        ("cliff", ("QL", "SARSA"), 5_000),
        ("pendulum", ("TD3", "PPO"), 50_000),
        ("cartpole", ("DDQN", "DuelingDDQN"), 50_000),
        ("MountainCarContinuous-v0", ("TD3", "PPO"), 250_000),
    ],
)
def test_curves_are_of_agents_that_fit_as_the_help_says(
    tmp_path, monkeypatch, gamename, names, steps
):
    seen = []
    monkeypatch.setattr(
        "lightning_rl.lab.protocols.agents.write_agents",
        lambda *words, **more: seen.append((words, more)),
    )
    words = f"--gamename {gamename} --real=1 --points=10"
    assert proxies("reward-curves", tmp_path / "c.csv", words) == 0
    (((_, _, kinds, *_), more),) = seen
    assert tuple(kind.name for kind in kinds) == names
    assert more["every"] * 10 == steps


def test_tables_that_vary_draw_their_own_values():
    (kind,) = make_kinds(["QL"], "cliff", "reward-curves", True, {})
    jobs = [Job(real_task("cliff"), number) for number in (1, 0, 1)]
    groups = kind.by_config(jobs, 7)
    assert [[job.number for job in members] for _, members in groups] == [[0], [1, 1]]
    drawn = [(variant.config.learning_rate, variant.config.gamma) for variant, _ in groups]
    assert all(0.1 <= value <= 1 for pair in drawn for value in pair)
    assert drawn[0] != drawn[1]
    assert [variant.config for variant, _ in kind.by_config(jobs[:1], 7)] == [groups[1][0].config]
    (fixed,) = make_kinds(["QL"], "cliff", "reward-curves", False, {})
    assert fixed.by_config(jobs, 7) == [(fixed, jobs)]


def test_histograms_of_transitions(tmp_path):
    out, path = tmp_path / "h.csv", write(tmp_path / "p.pt", se())
    assert proxies("transitions", out, f"{path} --count 2 --steps 12 --tests 3", *SMALL) == 0
    found = {
        (r["sample"], r["component"]): (r["lows"].split(), [int(n) for n in r["counts"].split()])
        for r in table(out)
    }
    for name in ("reward", "done", "cart position (m)"):
        assert sum(found["synthetic, in training", name][1]) == 24
    lows, (tested,) = found["real, in tests", "reward"]
    assert lows == ["1"]
    assert tested == sum(found["synthetic, asked what was tested", "pole angle (rad)"][1])
    ends = dict(zip(*found["real, in tests", "done"], strict=True))
    assert ends["1"] == 6  # each of 2 agents falls three times


def test_who_diverged_plays_no_real_task(tmp_path, monkeypatch, capsys):
    words = f"{write(tmp_path / 'p.pt', se())} --count 2 --steps 12 --tests 3"
    diverging = ("--set=learning_rate=1e38", "--set=learning_starts=1", *SMALL)
    assert proxies("transitions", tmp_path / "a.csv", words, *diverging) == 2
    assert (
        "all 2 agents on 'p' diverged; lower --set learning_rate=..., or name another proxy"
        in capsys.readouterr().err
    )

    def stacks(*given):
        for stack, loop, trained in train_stacks(*given):
            returns = trained.test_returns.clone()
            returns[[job.number == 1 for job in stack]] = torch.nan
            yield stack, loop, trained._replace(test_returns=returns)

    monkeypatch.setattr(transitions, "train_stacks", stacks)
    assert proxies("transitions", tmp_path / "b.csv", words, *SMALL) == 0
    assert "1 of 2 agents on 'p' diverged and play no real task" in capsys.readouterr().out
    done = [
        r
        for r in table(tmp_path / "b.csv")
        if (r["sample"], r["component"]) == ("real, in tests", "done")
    ]
    assert done[0]["lows"].endswith(" 1")
    assert done[0]["counts"].endswith(" 3")  # the other falls three times


@pytest.mark.parametrize(("repeat", "horizon", "steps"), [(1, 50, 1), (3, 50, 3), (3, 2, 2)])
def test_a_proxy_is_asked_as_agents_ask_it(repeat, horizon, steps):
    """Each action is taken ``repeat`` times, or until the episode ends: a state that grows by 1
    each step, which pays 1/2.
    """
    proxy = SyntheticProxy(
        gamename="mountaincar-continuous", hidden=(2,), activation="relu", horizon=horizon
    )
    params = proxy.net.init([torch.Generator().manual_seed(0)]).zero_()
    head, block = proxy.net.heads["state"], proxy.net.split(params)["state"]
    # [action, state] -> state
    block[:, head.columns("weight")] = torch.tensor([0.0, 0, 1, 0, 0, 1, 1, 0, 0, 1])
    block[:, -2:] = 1.0  # the last biases
    proxy.net.split(params)["reward"][:, -1] = 0.5
    obs = torch.tensor([[0.0, 2.0], [1.0, 5.0]])
    told = Transitions(obs, torch.tensor([[0.3], [-0.3]]), torch.zeros(2), torch.zeros(2), obs)
    answer = answers(Model("m", "SE, fixed", proxy, params[0], 0.0), told, repeat)
    assert answer.reward.tolist() == [0.5 * steps] * 2
    assert torch.equal(answer.next_obs, obs + steps)
    assert answer.done.tolist() == [0.0, 0.0]
    assert answer.obs is obs


def test_bins():
    values = torch.tensor([0.0, 0.01, 0.02, -0.01, float("nan")])
    assert histogram(values, 0.02) == (0.02, [-0.02, 0.0, 0.02], [1, 2, 1])
    assert histogram(torch.tensor([0.0, 1000.0]), 0.02) == (0.2, [0.0, 1000.0], [1, 1])


def test_rewards_of_cells_by_hand():
    """A linear network that pays the column reached: from the start, up stays in column 0 and
    right falls to column 1.
    """
    proxy = RewardProxy(
        gamename="cliff", hidden=(48,), activation="relu", form="additive", gamma=0.8
    )
    net = proxy.net.net
    params = torch.zeros(net.size)
    weights = params[net.columns("weight")].clone()
    first = torch.eye(48).flatten()
    last = torch.arange(48.0) % 12
    weights[: first.numel()], weights[first.numel() :] = first, last
    params[net.columns("weight")] = weights
    paid = rewards(Model("m", "additive", proxy, params, 0.0), cliff(), 0.8)
    assert paid[36].tolist() == [-100 + 1, -1 + 0, -1 + 0, -1 + 0]
    assert paid[35].tolist() == [-1 + 11, -1 + 10, 0 + 11, -1 + 11]


def test_grid_rewards(tmp_path):
    out, path = tmp_path / "g.csv", write(tmp_path / "rn.pt", rn(gamename="emptyroom22"))
    words = f"{path} --real --count 2 --agent QL --set=train_episodes=25"
    assert proxies("grid-rewards", out, words) == 0
    rows = table(out)
    assert len(rows) == 2 * (4 * 4 + 4)
    real = [r for r in rows if r["trained_on"] == "real"]
    right = next(
        r
        for r in real
        if r["quantity"] == "reward" and (r["row"], r["column"], r["action"]) == ("1", "0", "right")
    )
    assert float(right["value"]) == 1.0
    visits = {(r["row"], r["column"]): float(r["value"]) for r in real if r["quantity"] == "visits"}
    assert visits["0", "0"] >= 2  # both agents start there
    assert visits["1", "1"] == 2  # and both end at the goal
    assert proxies("grid-rewards", out, words) == 0
    assert table(out) == rows


def test_visits_are_counted_as_the_agents_play(monkeypatch):
    """An action that is repeated is repeated there as well."""
    seen = []
    play = recording.played
    monkeypatch.setattr(
        grid_rewards,
        "played",
        lambda agent, spec, *more: seen.append(spec.repeat) or play(agent, spec, *more),
    )
    (kind,) = make_kinds(
        ["QL"], "emptyroom22", "reward-curves", False, {"action_repeat": 2, "train_episodes": 2}
    )
    visits(real_task("emptyroom22"), kind, 1, 0)
    assert seen == [2]


AGENT = "--set=agent={QL: {train_episodes: 5}}"
TINY = (
    "--set=max_epochs=2",
    "--set=population=2",
    "--set=center_agents=2",
    "--set=test_episodes=1",
    AGENT,
)


def test_generations_are_those_of_a_run(tmp_path, capsys):
    out = tmp_path / "e.csv"
    words = ("--gamename emptyroom22 --runs 2 --seed 25", *TINY, "--set=stop_when_solved=false")
    assert proxies("generations", out, *words) == 0
    rows = table(out)
    assert [(r["seed"], r["generation"]) for r in rows] == [
        ("25", "0"),
        ("25", "1"),
        ("26", "0"),
        ("26", "1"),
    ]
    told = capsys.readouterr()
    assert "of 2 runs solved" in told.out
    assert "0 of 2 runs · 0:00:00 so far · seed 25, generation 0 of 2" in told.err
    assert proxies("generations", out, *words) == 0
    assert table(out) == rows

    flags = [*TINY, "--set=stop_when_solved=false", "--logdir", str(tmp_path), "--num_workers", "0"]
    assert main(["--implementation", "SE", "--gamename", "emptyroom22", *flags]) == 0
    curve = read_scalar(run_dir(tmp_path, "emptyroom22", implementation="SE"), "es/fitness_mean")
    assert curve.value.tolist() == pytest.approx(
        [float(r["fitness_mean"]) for r in rows[:2]], rel=1e-5
    )


def test_generations_of_agents_after_perfect_learners_are_those_of_a_run(tmp_path):
    """When agents come in the search is given other start states, rewards and noise: the second
    step must not be missed.
    """
    words = (
        "--gamename cartpole --preset suite --seed=0 --set=max_epochs=3 --set=population=2 "
        "--set=test_episodes=1 --set=perfect_generations=1 --set=max_train_steps=40"
    )
    assert proxies("generations", tmp_path / "e.csv", words, "--runs=1") == 0
    words += " --implementation=SE --num_workers=0 --set=eval_agents=1 --set=eval_episodes=1"
    assert main([*words.split(), "--logdir", str(tmp_path)]) == 0
    curve = read_scalar(run_dir(tmp_path, "cartpole", 0, "SE"), "es/fitness_mean")
    assert curve.value.tolist() == pytest.approx(
        [float(row["fitness_mean"]) for row in table(tmp_path / "e.csv")], rel=1e-5
    )


def test_runs_count_as_solved_from_their_first_generation_that_is(capsys):
    solved = {
        "1": [False, True, False, True],
        "2": [False, False, True, False],
        "3": [False, False, False, False],
    }
    same = {"gamename": "cliff", "implementation": "SE", "settings": "", "cpu_seconds": "1"}
    rows = [(seed, str(value)) for seed, values in solved.items() for value in values]
    print_runs([{**same, "seed": seed, "solved": value} for seed, value in rows])
    assert "2 of 3 runs solved, median 3 generations (2 to 4), 4.0 s" in capsys.readouterr().out
    rows = [("1", "True"), ("2", "False"), ("2", "True")]
    print_runs([{**same, "seed": seed, "solved": value} for seed, value in rows])
    assert "2 of 2 runs solved, median 1.5 generations (1 to 2)" in capsys.readouterr().out


def test_drawn_values_differ_from_run_to_run_and_come_again(tmp_path):
    out = tmp_path / "e.csv"
    words = [
        "--runs 2 --set=max_epochs=1",
        *TINY[1:],
        "--draw=step_size={log: [0.01, 10]}",
        "--draw=score_transform={choice: [nes, linear]}",
    ]
    assert proxies("generations", out, *words) == 0
    rows = table(out)
    sizes = [float(r["step_size"]) for r in rows]
    assert len(set(sizes)) == 2
    assert all(0.01 <= size <= 10 for size in sizes)
    assert {r["score_transform"] for r in rows} <= {"nes", "linear"}
    assert {r["settings"] for r in rows} == {
        "max_epochs=1; population=2; center_agents=2; test_episodes=1; agent={'QL': "
        "{'train_episodes': 5}}; "
        "step_size drawn, log [0.01, 10]; score_transform drawn, choice ['nes', 'linear']"
    }
    out.unlink()
    assert proxies("generations", out, *words) == 0
    assert [r["step_size"] for r in table(out)] == [r["step_size"] for r in rows]


@pytest.mark.parametrize("gamename", NAMES)
def test_each_component_of_an_observation_has_one_name(gamename):
    assert len(set(component_names(env_spec(gamename)))) == env_spec(gamename).obs_size


def test_draws_stay_inside_and_reach_every_whole_number():
    rng = np.random.default_rng(0)
    search = {
        "a": {"choice": [[1], [2]]},
        "b": {"log": [0.01, 10]},
        "c": {"int": [1, 3]},
        "d": {"one_minus_log": [0.01, 0.1]},
        "e": {"log_int": [1, 4]},
        "f": {"uniform": [-1, 1]},
    }
    drawn = {space.key: [draw(space, rng) for _ in range(300)] for space in spaces(search)}
    assert ([1] in drawn["a"], [2] in drawn["a"]) == (True, True)
    assert 100 < sum(value < 0.316 for value in drawn["b"]) < 200  # half of the logarithm's range
    assert (set(drawn["c"]), set(drawn["e"])) == ({1, 2, 3}, {1, 2, 3, 4})
    assert all(0.9 <= value <= 0.99 for value in drawn["d"])
    assert min(drawn["f"]) < -0.9 < 0.9 < max(drawn["f"])


def test_whole_numbers_below_zero_are_drawn_as_often_as_others():
    (space,) = spaces({"a": {"int": [-3, 3]}})
    rng = np.random.default_rng(0)
    counts = np.bincount([draw(space, rng) + 3 for _ in range(7000)])
    assert len(counts) == 7
    assert counts.min() > 850


def test_proxies_of_one_task_under_two_of_its_names(tmp_path):
    paths = [
        write(tmp_path / f"{name}.pt", se(gamename=name)) for name in ("cartpole", "CartPole-v1")
    ]
    assert [model.name for model in find_models(paths)] == ["cartpole", "CartPole-v1"]
