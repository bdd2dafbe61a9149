"""Figures of learned proxies: their numbers by hand, and each drawn once from a small table."""

import numpy as np
import pandas as pd
import pytest
from helpers.runs import run_cli, train_cli
from matplotlib.figure import Figure
from torch.utils.tensorboard import SummaryWriter

from experiments.figures.histograms import bins_of, coarser
from experiments.figures.histograms import shares as histogram_shares
from experiments.figures.reward_networks import (
    curve_table,
    first_step,
    mean_values,
    num_agents,
    shown_rewards,
    steps_into_holes,
    summary_rows,
)
from experiments.figures.searches import curves, read_generations, read_runs, run_table, solved_at
from experiments.figures.transfer import (
    all_returns,
    draw_losses,
    group_labels,
    means,
    shares,
    with_groups,
)
from experiments.figures.transfer import summary_rows as transfer_rows
from lightning_rl.cli import main
from lightning_rl.core.errors import UserError
from lightning_rl.lab.figures import style


def drawn(tmp_path, name, *sources, flags=()):
    out = tmp_path / name
    assert main(["figures", name, str(out), *map(str, sources), *flags]) == 0
    assert out.with_suffix(".png").stat().st_size > 5_000
    assert out.with_suffix(".svg").exists()
    return pd.read_csv(out.with_suffix(".csv"))


def refused(capsys, name, *words):
    assert main(["figures", name, "out", *map(str, words)]) == 2
    return capsys.readouterr().err


def transfer_table():
    rows = []
    for trained_on, proxy, steps in (
        ("SE, fixed", "a", 100),
        ("SE, fixed", "b", 100),
        ("real", "real", 300),
    ):
        for number in range(2):
            returns = [200, 100] if trained_on == "real" else [10 * number, 10 * number + 20]
            row = {"trained_on": trained_on, "proxy": proxy, "number": number}
            row |= {"return_mean": np.mean(returns), "train_steps": steps + number}
            rows.append({**row, "test_returns": " ".join(map(str, returns))})
    about = {"agent": "DDQN", "protocol": "varied, 10 tests", "episodes": 7}
    return pd.DataFrame(rows).assign(**about, gamename="cartpole-v0")


def test_a_cell_of_several_numbers_that_are_none_is_named(tmp_path, capsys):
    for cell in ("1 x", " "):
        table = transfer_table()
        table.loc[1, "test_returns"] = cell
        table.to_csv(tmp_path / "t.csv", index=False)
        said = refused(capsys, "proxy-transfer", tmp_path / "t.csv")
        shown = cell.split()[-1] if cell.split() else ""
        assert f"row 2, column test_returns: '{shown}' is not a finite number" in said


def test_transfer_by_hand():
    table = with_groups(transfer_table())
    assert all_returns(table[table["proxy"] == "a"]) == [0, 20, 10, 30]
    assert means(table).set_index("group")["mean"].to_dict() == {"SE, fixed": 15, "real": 150}
    steps = shares(table).set_index(["group", "x"])["value"]
    assert steps["SE, fixed"].to_dict() == {0: 1, 10: 0.75, 20: 0.5, 30: 0.25, 100: 0, 200: 0}
    assert steps["real"].to_dict() == {0: 1, 10: 1, 20: 1, 30: 1, 100: 1, 200: 0.5}
    header, first, second = transfer_rows(table)
    assert first == ("DDQN", "SE, fixed", "2", "4", "15.0 (all alike)", "15.0", "100 ± 1")
    assert second[1:4] == ("real", "-", "2")
    assert len(header) == 7


def test_of_several_protocols_what_differs_is_named():
    several = transfer_table()
    same = "varied, 5 steps"
    several["protocol"] = same
    several.loc[:1, "protocol"] = [f"{same}, hidden=[8, 8]", f"{same}, hidden=[8]"]
    named = ["SE, fixed (agents: hidden=[8, 8])", "SE, fixed (agents: hidden=[8])", "SE, fixed"]
    assert with_groups(several)["group"].tolist()[:3] == named


def test_agents_of_several_files_are_counted_though_their_numbers_begin_again():
    one = with_groups(transfer_table())
    synthetic = "SE, fixed: 2 agents on each of 2 proxies"
    assert group_labels(one) == {"real": "real: 2 agents", "SE, fixed": synthetic}
    real = one[one["group"] == "real"]
    assert group_labels(pd.concat([one, real, real])) == {
        "real": "real: 6 agents",
        "SE, fixed": synthetic,
    }
    # of each kind
    assert group_labels(pd.concat([one, one.assign(agent="PPO")])) == group_labels(one)


def test_half_a_row_does_not_count(tmp_path, capsys):
    path = tmp_path / "t.csv"
    transfer_table().to_csv(path, index=False)
    path.write_text(path.read_text()[:-5])
    assert main(["figures", "proxy-transfer", "x", str(path), "--markdown"]) == 0
    said = capsys.readouterr()
    assert "its last row is not whole" in said.err
    assert "| DDQN | real | - | 1 |" in said.out


def test_each_agent_has_its_own_means(tmp_path, monkeypatch):
    shown = []
    monkeypatch.setattr(style, "save", lambda figure, out, table: shown.append(figure))
    table = transfer_table()
    pd.concat([table, table.assign(agent="PPO", return_mean=table["return_mean"] + 7)]).to_csv(
        tmp_path / "t.csv", index=False
    )
    assert main(["figures", "proxy-transfer", "x", str(tmp_path / "t.csv")]) == 0
    *_, dots, legend = shown[0].axes
    titles = [f"{agent}, 100 to 301 training steps" for agent in ("DDQN", "PPO")]
    assert [axes.get_title() for axes in shown[0].axes[:2]] == titles
    assert [text.get_text() for text in dots.get_yticklabels()] == ["DDQN", "PPO"]
    places = {
        float(line.get_xdata()[0]): round(float(line.get_ydata()[0]))
        for line in dots.lines
        if len(line.get_xdata()) == 1
    }
    assert {value: places[value] for value in (150, 15, 157, 22)} == {150: 0, 15: 0, 157: 1, 22: 1}
    assert [text.get_text() for text in legend.get_legend().get_texts()] == list(
        group_labels(with_groups(table)).values()
    )


def test_mean_and_interval_of_a_table_are_over_the_same():
    """A proxy of many agents counts as one, as its agents are not independent."""
    lone = transfer_table().query("proxy == 'a'").assign(return_mean=0.0)
    other = transfer_table().query("proxy == 'b'").head(1).assign(return_mean=100.0)
    _, row = transfer_rows(with_groups(pd.concat([lone, lone, other])))
    assert row[4].startswith("50.0 [")


def test_a_row_counts_once(tmp_path, capsys):
    transfer_table().to_csv(tmp_path / "t.csv", index=False)
    err = refused(capsys, "proxy-transfer", tmp_path / "t.csv", tmp_path / "t.csv", "--markdown")
    assert (
        "6 rows are there twice, the first of DDQN on a (varied, 10 tests); name each CSV once"
        in err
    )
    pd.concat([transfer_table(), transfer_table().head(1).assign(return_mean=7.0)]).to_csv(
        tmp_path / "one.csv", index=False
    )
    assert "1 rows are there twice" in refused(capsys, "proxy-transfer", tmp_path / "one.csv")


def test_unlike_proxies_of_one_name_are_two(tmp_path, capsys):
    hashed = [
        transfer_table().head(2).assign(proxy_hash=content, trained_on="SE")
        for content in ("1f", "2e")
    ]
    pd.concat(hashed).to_csv(tmp_path / "t.csv", index=False)
    assert main(["figures", "proxy-transfer", "x", str(tmp_path / "t.csv"), "--markdown"]) == 0
    assert "| DDQN | SE | 2 | 4 |" in capsys.readouterr().out


def test_a_mean_loss_ends_with_the_shortest_run():
    axes = Figure().subplots()
    lengths = {"one": 4, "two": 2}
    rows = []
    for run, length in lengths.items():
        rows += [(run, "state", epoch, 1.0) for epoch in range(1, length + 1)]
    draw_losses(axes, pd.DataFrame(rows, columns=["run", "loss", "epoch", "value"]))
    mean = axes.lines[-1].get_ydata()
    assert np.isfinite(mean).tolist() == [True, True, False, False]


def test_transfer_is_drawn_and_foreign_tables_are_named(tmp_path, capsys):
    transfer_table().to_csv(tmp_path / "t.csv", index=False)
    (tmp_path / "bad.csv").write_text("a,b\n1,2\n")
    table = drawn(tmp_path, "proxy-transfer", tmp_path / "t.csv", tmp_path / "bad.csv")
    assert set(table["quantity"]) == {"share", "mean", "low", "high"}
    assert "bad.csv': it lacks the column gamename" in capsys.readouterr().err
    assert "nothing to draw: no source is a CSV of lightning-rl proxies transfer" in refused(
        capsys, "proxy-transfer", tmp_path / "bad.csv"
    )
    transfer_table().assign(gamename="acrobot").to_csv(tmp_path / "other.csv", index=False)
    message = refused(capsys, "proxy-transfer", tmp_path / "t.csv", tmp_path / "other.csv")
    assert "results of cartpole-v0 and acrobot do not share an axis" in message
    assert main(["figures", "proxy-transfer", "x", f"{tmp_path}/t.csv:ours", "--markdown"]) == 0
    assert "| DDQN | ours SE, fixed | 2 | 4 |" in capsys.readouterr().out


def histogram_table():
    about = [(sample, name) for sample in ("synthetic", "real") for name in ("position", "reward")]
    table = pd.DataFrame(about, columns=["sample", "component"]).assign(
        width=0.5, lows="0.0 0.5 2.0", counts="1 3 4"
    )
    return table.assign(
        gamename="cartpole-v0", proxy="p", agent="DDQN", protocol="varied", agents=10
    )


def test_histograms(tmp_path, capsys):
    two = pd.concat([histogram_table(), histogram_table().assign(proxy="q")])
    assert histogram_shares(bins_of(two))["share"].tolist()[:3] == [0.125, 0.375, 0.5]
    comb = pd.DataFrame({"low": 0.05 * np.arange(-60, 61)}).assign(
        sample="real", component="velocity", width=0.05, count=1.0
    )
    wide = histogram_shares(coarser(comb))
    assert wide["width"].unique() == pytest.approx([0.2])  # 120 bins: four in one
    assert wide["low"].tolist()[:2] == pytest.approx([-3.0, -2.8])
    assert wide["count"].sum() == 121
    two.to_csv(tmp_path / "h.csv", index=False)
    table = drawn(tmp_path, "proxy-histograms", tmp_path / "h.csv", flags=("--proxy", "q"))
    assert table["count"].tolist()[:3] == [1, 3, 4]
    assert "--proxy 'r' is not in the sources; they have: p, q" in refused(
        capsys, "proxy-histograms", tmp_path / "h.csv", "--proxy", "r"
    )
    two.assign(agent=["A", "B"] * 4).to_csv(tmp_path / "h.csv", index=False)
    assert "several agents or protocols" in refused(capsys, "proxy-histograms", tmp_path / "h.csv")
    two.assign(width=0.0).to_csv(tmp_path / "h.csv", index=False)
    assert "row 1, column width: 0.0 is not more than 0" in refused(
        capsys, "proxy-histograms", tmp_path / "h.csv"
    )
    two.assign(counts="1 3").to_csv(tmp_path / "h.csv", index=False)
    assert "synthetic, position: 3 lows and 2 counts" in refused(
        capsys, "proxy-histograms", tmp_path / "h.csv"
    )


def curve_rows():
    rows = [
        ("additive", "a", 0, "-50 -12"),
        ("additive", "a", 1, "-50 -20"),
        ("additive", "b", 0, "-30 -10"),
        ("real", "real", 0, "-50 -50"),
        ("real", "real", 1, "-50 -40"),
    ]
    table = pd.DataFrame(rows, columns=["trained_on", "proxy", "number", "returns"])
    return table.assign(gamename="cliff", agent="QL", protocol="fixed", every=50)


def test_reward_curves_by_hand(tmp_path):
    table = curve_rows()
    steps, values, units = curve_table(table[table["trained_on"] == "additive"])
    assert steps.tolist() == [50, 100]
    assert values.mean(axis=0).tolist() == pytest.approx([-130 / 3, -14])
    assert units.tolist() == [[-50, -16], [-30, -10]]  # means of each reward network's agents
    assert curve_table(table[table["trained_on"] == "real"])[2].shape == (2, 2)
    assert first_step(steps, np.array([-50.0, -14.0]), -20) == "100"
    assert first_step(steps, np.array([-50.0, -24.0]), -20) == ""
    row = ("QL, fixed", "additive", "2", "3", "100", "-14.0", "-14.0")
    assert summary_rows(table, -20)[1] == row
    means_of_ten = table.assign(agents=10)
    assert num_agents(pd.concat([table, means_of_ten])) == 5 + 50
    table.to_csv(tmp_path / "c.csv", index=False)
    lines = drawn(tmp_path, "reward-curves", tmp_path / "c.csv")
    assert lines[lines["reward"] == "real"]["mean"].tolist() == [-50, -45]


def test_curves_of_different_grids_do_not_share_an_axis(tmp_path, capsys):
    table = curve_rows()
    table.loc[0, "every"] = 10
    table.to_csv(tmp_path / "c.csv", index=False)
    assert "do not share an axis" in refused(capsys, "reward-curves", tmp_path / "c.csv")
    for every in (0, 2.5):
        curve_rows().assign(every=every).to_csv(tmp_path / "c.csv", index=False)
        assert "column every: " in refused(capsys, "reward-curves", tmp_path / "c.csv")


def grid_table():
    cells, rows = [["S", "."], ["O", "G"]], []
    for r in range(2):
        for c in range(2):
            where = {"row": r, "column": c, "cell": cells[r][c]}
            for k, action in enumerate(("right", "left", "down", "up")):
                rows.append({**where, "quantity": "reward", "action": action, "value": float(k)})
            rows.append(
                {
                    **where,
                    "quantity": "visits",
                    "action": "",
                    "value": 3.0 if cells[r][c] == "S" else 1.0,
                }
            )
    return pd.DataFrame(rows).assign(
        gamename="cliff", trained_on="additive", proxy="p", agent="SARSA", agents=2
    )


def test_grid_rewards(tmp_path):
    both = pd.concat([grid_table(), grid_table().assign(proxy="q", value=lambda t: t["value"] + 2)])
    means = mean_values(both)
    assert means[means["quantity"] == "reward"]["value"].tolist()[:4] == [1, 2, 3, 4]
    visits = means[means["quantity"] == "visits"]["value"]
    assert visits.sum() == pytest.approx(1)
    assert visits.iloc[0] == pytest.approx(4 / 10)
    paid = grid_table().query("quantity == 'reward'")
    fatal = paid[steps_into_holes(paid)]
    assert fatal[["row", "column", "action"]].to_numpy().tolist() == [
        [0, 0, "down"],
        [1, 1, "left"],
    ]
    both.to_csv(tmp_path / "g.csv", index=False)
    shown = drawn(tmp_path, "grid-rewards", tmp_path / "g.csv")
    assert len(shown) == 20
    again = mean_values(shown)  # as a source it is what it was
    assert again["value"].tolist() == pytest.approx(means["value"].tolist())
    assert set(again["proxies"]) == {2}
    with pytest.raises(
        UserError, match="means over reward networks cannot be joined with others of their kind"
    ):
        mean_values(pd.concat([shown, grid_table()]))
    # the CSV keeps what is paid
    assert len(drawn(tmp_path, "grid-rewards", tmp_path / "g.csv", "--each", "--above", "2")) == 20


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (lambda t: t[t["quantity"] == "reward"], "the sources have no row of quantity visits"),
        (lambda t: t[t["quantity"] == "visits"], "the sources have no row of quantity reward"),
        (
            lambda t: t.assign(action=t["action"].replace("up", "jump")),
            "row 4, column action: 'jump' is not one of: right, left",
        ),
        (
            lambda t: t.assign(row=1_000_000),
            "row 1, column row: 1000000 is not a whole number from 0 to 99",
        ),
        (
            lambda t: t.assign(column=0.5),
            "row 1, column column: 0.5 is not a whole number from 0 to 99",
        ),
    ],
)
def test_cells_that_no_board_has(tmp_path, capsys, changes, said):
    changes(grid_table()).to_csv(tmp_path / "g.csv", index=False)
    assert said in refused(capsys, "grid-rewards", tmp_path / "g.csv")


def test_rewards_as_the_paper_shows_them():
    two = pd.concat(
        [grid_table(), grid_table().assign(trained_on="exclusive", value=lambda t: 10 * t["value"])]
    )
    rewards = two[two["quantity"] == "reward"]
    scaled = shown_rewards(rewards, None, each=True)
    # of S and ., twice; O and G pay nothing
    assert scaled["value"].tolist() == pytest.approx([0, 1 / 3, 2 / 3, 1] * 4)
    assert shown_rewards(rewards, 1, each=False)["value"].tolist() == [
        2,
        3,
        2,
        3,
        *([10, 20, 30] * 2),
    ]
    assert shown_rewards(rewards, 1, each=True)["value"].tolist() == [
        0,
        1,
        0,
        1,
        *([0, 0.5, 1] * 2),
    ]
    with pytest.raises(UserError, match="--above 99: the highest reward is 30"):
        shown_rewards(rewards, 99, each=False)


def test_success_by_hand():
    ended, unsolved, longer = np.array([0.1, 0.9]), np.array([0.2]), np.array([0.85, 0.1, 0.3])
    assert (solved_at(ended, 0.8), solved_at(unsolved, 0.8), solved_at(longer, 0.8)) == (2, None, 1)
    fitness, solved = curves([ended, unsolved, longer], 0.8, 3)
    assert solved.mean(axis=0).tolist() == pytest.approx([1 / 3, 2 / 3, 2 / 3])
    np.testing.assert_array_equal(
        fitness, [[0.1, 0.9, 0.9], [0.2, np.nan, np.nan], [0.85, 0.1, 0.3]]
    )


def generations_csv(path):
    rows = [
        "gamename,implementation,settings,seed,score_transform,step_size,mirrored,generation,fitness_mean"
    ]
    for seed, (transform, size, values) in enumerate(
        (("nes", 0.1, (0.1, 0.9)), ("nes", 1, (0.1, 0.2)), ("linear", 5, (0.9,)))
    ):
        rows += [
            f"emptyroom22,SE,drawn,{seed},{transform},{size},{seed < 2},{g},{v}"
            for g, v in enumerate(values)
        ]
    path.write_text("\n".join(rows) + "\n")
    return path


def test_success_and_step_sizes_of_csvs(tmp_path, capsys):
    path = generations_csv(tmp_path / "e.csv")
    table = drawn(tmp_path, "proxy-success", path, flags=("--group", "score_transform"))
    share = table.query("quantity == 'share of runs solved' and run == 'mean'")
    assert share[share["group"] == "score_transform nes"]["value"].tolist() == [0, 0.5]
    assert share[share["group"] == "score_transform linear"]["value"].tolist() == [1, 1]
    runs = run_table(
        read_generations([str(path)], ("score_transform", "step_size", "mirrored")), None
    )
    assert runs["generations"].tolist() == [2, 2, 1]
    assert runs["solved"].tolist() == [True, False, True]
    shown = drawn(tmp_path, "step-sizes", path)
    assert len(shown) == 3
    shown.to_csv(tmp_path / "shown.csv", index=False)
    # as a source it is what it was
    pd.testing.assert_frame_equal(read_runs([str(tmp_path / "shown.csv")], None), shown)
    shown.assign(solved="perhaps").to_csv(tmp_path / "shown.csv", index=False)
    assert "nothing to draw" in refused(capsys, "step-sizes", tmp_path / "shown.csv")
    for column, value in (
        ("score_transform", None),
        ("mirrored", None),
        ("step_size", 0),
        ("seed", None),
    ):
        for table in (shown, pd.read_csv(path)):
            table.assign(**{column: value}).to_csv(tmp_path / "blank.csv", index=False)
            assert f"row 1, column {column}: " in refused(
                capsys, "step-sizes", tmp_path / "blank.csv"
            )
    for name, source in (
        ("step-sizes", tmp_path / "shown.csv"),
        ("step-sizes", path),
        ("proxy-success", path),
    ):
        if name == "step-sizes":
            shown.to_csv(tmp_path / "shown.csv", index=False)
        whole = source.read_text()
        last = whole.splitlines(keepends=True)[-1]
        # the writer was killed in its last row
        (tmp_path / "killed.csv").write_text(whole + last[:-3])
        drawn(tmp_path, name, tmp_path / "killed.csv")
        assert capsys.readouterr().err.count("its last row is not whole") == 1
    assert "it lacks the column colour" in refused(
        capsys, "proxy-success", path, "--group", "colour"
    )
    (tmp_path / "r.csv").write_text(path.read_text().replace(",SE,", ",RN,"))
    assert "give --threshold" in refused(capsys, "proxy-success", tmp_path / "r.csv")
    assert "nothing to draw: no source has 'es/fitness_mean'" in refused(
        capsys, "proxy-success", tmp_path
    )


def test_success_of_a_claim(tmp_path, capsys):
    rows = [
        f"cartpole-v0,SE,{seed},{n * 500},{seed + 40 * n},199,{n}"
        for seed in (100, 101)
        for n in (1, 2, 3)
    ]
    text = "\n".join(
        [
            "gamename,implementation,seed,env_steps,es/fitness_mean,es/fitness_best,time/num_updates",
            *rows,
            "",
        ]
    )
    (tmp_path / "claim.csv").write_text(text)
    mean = drawn(tmp_path, "proxy-success", tmp_path / "claim.csv").query(
        "quantity == 'fitness' and run == 'mean'"
    )
    assert dict(zip(mean["generation"], mean["value"], strict=True)) == {
        1: 140.5,
        2: 180.5,
        3: 220.5,
    }
    thinned = text.replace("cartpole-v0,SE,100,1500,220,199,3", "cartpole-v0,SE,100,9000,220,199,9")
    (tmp_path / "claim.csv").write_text(thinned)
    runs = run_table(
        read_generations([str(tmp_path / "claim.csv")]).assign(
            score_transform="", step_size=1, mirrored=True
        ),
        None,
    )
    assert runs["generations"].tolist() == [9, 3]
    (tmp_path / "claim.csv").write_text(text.replace("time/num_updates", "updates"))
    assert "it lacks the column time/num_updates" in refused(
        capsys, "proxy-success", tmp_path / "claim.csv"
    )


def test_success_of_runs(tmp_path):
    agent = "{QL: {train_episodes: 3}}"
    for seed in ("1", "2"):
        flags = ("--seed", seed, "--max_epochs", "3", "--set=stop_when_solved=false")
        assert (
            run_cli(tmp_path, *flags, gamename="emptyroom22", implementation="SE", agent=agent) == 0
        )
    table = drawn(
        tmp_path,
        "proxy-success",
        tmp_path / "emptyroom22",
        flags=("--group", "step_size", "--until", "2"),
    )
    single = table.query("quantity == 'fitness' and run != 'mean'")
    assert single["generation"].tolist() == [1, 2, 1, 2]


def test_generations_without_environment_steps_do_not_shift_the_others(tmp_path):
    with SummaryWriter(str(tmp_path / "SE" / "seed_1" / "logger" / "version_0")) as writer:
        for generation, steps in enumerate(
            (0, 0, 0, 50, 90), 1
        ):  # three are judged by perfect learners and clones
            writer.add_scalar("es/fitness_mean", 10.0 * generation, steps)
            writer.add_scalar("time/num_updates", generation, steps)
    table = read_generations([str(tmp_path)])
    assert dict(zip(table["generation"], table["fitness_mean"], strict=True)) == {
        3: 30.0,
        4: 40.0,
        5: 50.0,
    }


def test_supervised_model(tmp_path, capsys):
    train_cli(tmp_path, 3, implementation="MBRL", gamename="cartpole-v0", eval_interval=9)
    transfer_table().assign(trained_on="MBRL").to_csv(tmp_path / "t.csv", index=False)
    table = drawn(tmp_path, "supervised-model", tmp_path / "cartpole-v0", tmp_path / "t.csv")
    losses = table[table["quantity"] == "loss"]
    assert losses.groupby("group")["x"].max().to_dict() == {"done": 3, "reward": 3, "state": 3}
    (tmp_path / "kept.csv").write_text(table.to_csv(index=False))
    again = drawn(tmp_path, "supervised-model", tmp_path / "kept.csv", tmp_path / "t.csv")
    assert again[again["quantity"] == "loss"]["value"].tolist() == losses["value"].tolist()
    claimed = ["gamename,seed,env_steps,model/state_loss,model/reward_loss"]
    claimed += [
        f"cartpole-v0,{seed},{steps},{10 / steps},{1 / steps}"
        for seed in (100, 101)
        for steps in (20, 40, 100)
    ]
    (tmp_path / "claim.csv").write_text("\n".join(claimed) + "\n")
    losses = drawn(tmp_path, "supervised-model", tmp_path / "claim.csv", tmp_path / "t.csv").query(
        "quantity == 'loss'"
    )
    # passes of 20 updates
    assert losses[losses["group"] == "reward"]["x"].tolist() == [1, 2, 5, 1, 2, 5]
    assert losses[losses["group"] == "state"]["value"].tolist() == [0.5, 0.25, 0.1] * 2
    assert losses["run"].unique().tolist() == ["seed 100", "seed 101"]
    (tmp_path / "claim.csv").write_text("\n".join([claimed[0], "cartpole-v0,100,many,0.5,0.1", ""]))
    assert "env_steps" in refused(
        capsys, "supervised-model", tmp_path / "claim.csv", tmp_path / "t.csv"
    )
    assert "name run directories of MBRL" in refused(capsys, "supervised-model", tmp_path / "t.csv")
    assert "no agents to draw" in refused(capsys, "supervised-model", tmp_path / "cartpole-v0")


def test_a_logarithmic_axis_has_numbers_of_one_kind():
    for low, expected in ((1e-3, ["0.001", "1"]), (1e-7, ["1e-3", "1e0"])):
        axes = Figure().subplots()
        axes.set(yscale="log", ylim=(low, 10))
        style.plain_ticks(axes.yaxis)
        assert [axes.yaxis.get_major_formatter()(value, 0) for value in (1e-3, 1.0)] == expected
