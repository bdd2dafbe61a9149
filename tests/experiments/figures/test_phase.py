import numpy as np
import pandas as pd
import pytest

from experiments.figures.phase import differences, family_of
from lightning_rl.cli import main
from lightning_rl.lab.figures import style
from lightning_rl.lab.figures.groups import Group


def group(label, rows):
    values = np.array(rows, dtype=float)
    return Group(
        label,
        [str(n) for n in range(len(values))],
        500.0 * np.arange(1.0, values.shape[1] + 1),
        values,
    )


def test_the_last_size_is_what_varies():
    names = ("panflute-8", "buttongrid-3-2", "cliff")
    assert [family_of(name) for name in names] == ["panflute", "buttongrid-3", "cliff"]


def test_differences_are_bin_by_bin_where_every_seed_has_a_value():
    """2 and 4 less 1 and 1: 2, with Student's quantile 12.706 of one degree of freedom and a
    standard error of 1.
    """
    groups = [
        group("ER", [[1, 5, 0], [1, 5, 0]]),
        group("simple", [[2, 5, 0], [4, 5, float("nan")]]),
    ]
    table = differences("panflute-8", groups, "ER")
    assert table["env_steps"].tolist() == [500.0, 1000.0]
    assert table["difference"].tolist() == [2.0, 0.0]
    assert table["chance"].tolist() == pytest.approx([0.2952, 1.0], abs=1e-4)  # 1 - 2 / pi atan(2)
    assert table.loc[0, ["low", "high"]].tolist() == pytest.approx(
        [2 - 12.706, 2 + 12.706], abs=1e-3
    )
    assert differences("panflute-8", groups, "another").empty


def curves(path, game, offsets):
    rows = [
        (game, group, f"seed_{seed}", step, offset + 0.1 * seed)
        for group, offset in offsets.items()
        for seed in (1, 2, 3)
        for step in (500, 1000, 1500)
    ]
    pd.DataFrame(rows, columns=["gamename", "group", "run", "env_steps", "value"]).to_csv(
        path, index=False
    )


def test_a_row_for_each_size_and_a_frame_where_it_is_sure(tmp_path, capsys, monkeypatch):
    drawn, describe = [], style.describe
    monkeypatch.setattr(
        style, "describe", lambda figure, *words: (drawn.append(figure), describe(figure, *words))
    )
    curves(tmp_path / "a.csv", "panflute-10", {"ER": 1, "simple-model": 4})
    curves(tmp_path / "b.csv", "panflute-9", {"ER": 1, "simple-model": 1.05, "perfect-model": 2})
    out = tmp_path / "out"
    words = [
        "figures",
        "phase",
        str(out),
        str(tmp_path / "a.csv"),
        str(tmp_path / "b.csv"),
        "--bin",
        "500",
        "--until",
        "1000",
    ]
    assert main(words) == 0
    table = pd.read_csv(tmp_path / "out.csv")
    assert table["env_steps"].max() == 1000
    assert table.groupby("group")["difference"].mean().to_dict() == pytest.approx(
        {"simple-model": 1.525, "perfect-model": 1.0}
    )
    text = (tmp_path / "out.svg").read_text()
    assert text.index(">panflute-9<") < text.index(">panflute-10<")
    assert [line.count("700") for line in text.splitlines() if ">+3.0<" in line] == [1, 1]
    assert [
        line.count("700") for line in text.splitlines() if ">+0.1<" in line or ">+0.0<" in line
    ] == [0, 0]
    frames = [
        patch
        for axes in drawn[0].axes
        for patch in axes.patches
        if patch.get_width() == 0.96 and not patch.get_fill()
    ]
    assert len(frames) == table["sure"].sum() == 4
    assert (table["sure"] == (table["difference"] > 0.5)).all()
    assert main([*words, "--until", "10"]) == 2
    assert (
        "--until 10: the first value is at 500 env_steps; raise --until" in capsys.readouterr().err
    )
    assert main([*words, "--force", "--baseline", "DDQN"]) == 2
    assert "method 'DDQN' is unknown; choose one of: " in capsys.readouterr().err
