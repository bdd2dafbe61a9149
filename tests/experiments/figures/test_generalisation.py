import numpy as np
import pytest
from helpers.runs import cli, run_cli

from experiments.commands import FIGURES
from experiments.figures.generalisation import areas, draw_areas, read_line
from lightning_rl.core.errors import UserError
from lightning_rl.lab.figures import style
from lightning_rl.lab.figures.curves import Look, curves_figure, explained, group_colours
from lightning_rl.lab.figures.groups import Group


def group(label, rows):
    values = np.array(rows, dtype=float)
    return Group(
        label, [str(n) for n in range(len(values))], np.arange(1.0, values.shape[1] + 1), values
    )


def test_area_is_the_mean_over_the_steps_that_all_runs_have():
    """The second group lacks its last bin, so bins 1 and 2 count: (1 + 2) / 2, and the mean of
    3.5 and 4.5.
    """
    nan = float("nan")
    rows = areas([group("a", [[1, 2, 9]]), group("b", [[3, 4, nan], [4, 5, 7]])])
    label, seeds, end, middle, low, high = rows[0]
    assert (label, seeds, end, middle) == ("a", 1, 2.0, 1.5)
    assert np.isnan([low, high]).all()
    assert rows[1][:4] == ("b", 2, 2.0, 4.0)
    assert rows[1][4:] == pytest.approx((4 - 6.3531, 4 + 6.3531), abs=1e-4)


def test_runs_without_common_steps_are_refused():
    nan = float("nan")
    with pytest.raises(UserError, match="no part of the axis in common"):
        areas([group("a", [[1, nan]]), group("b", [[nan, 1]])])


def test_a_group_has_one_colour_in_all_environments():
    """b comes second in one environment and alone in the other."""
    a, b = (group(label, [[1, 2, 3], [2, 3, 4]]) for label in "ab")
    games = {"one": [a, b], "other": [b]}
    colours = group_colours(games)
    assert list(colours) == ["a", "b"]
    assert colours["a"] != colours["b"]
    figure, _ = curves_figure(games, 1.0, Look("rollout/return_mean", "env_steps"))
    drawn = [{line.get_color() for line in axes.lines} for axes in figure.axes]
    assert drawn == [set(colours.values()), {colours["b"]}]
    _, (axes,) = style.panels(1)
    draw_areas(axes, areas([b]), [], colours, "environment steps")
    assert axes.lines[0].get_color() == colours["b"]
    assert axes.get_xlabel() == "mean over the steps up to 3"


def test_more_groups_than_colours_are_told_apart():
    groups = [group(label, [[1, 2, 3], [2, 3, 4]]) for label in "abcdefghijk"]
    figure, _ = curves_figure({"game": groups}, 1.0, Look("v"))
    looks = [(line.get_color(), line.get_linestyle()) for line in figure.axes[-1].lines]
    assert len(looks) == len(set(looks)) == 11


def test_many_groups_of_several_seeds_have_a_panel_each():
    """Behind its seeds and band stand the means of the others, and the axes are the same."""
    groups = [
        group(label, [[1, 2, 3], [2, 3, 4], [3, 4, 5 + k], [1, 2, 3], [1, 2, 3]])
        for k, label in enumerate("abcd")
    ]
    figure, table = curves_figure({"game": groups}, 1.0, Look("v"))
    colours = group_colours({"game": groups})
    *each, together = figure.axes
    assert [axes.get_title() for axes in each] == [f"game, {label}, 5 seeds" for label in "abcd"]
    assert [line.get_color() for line in together.lines] == [colours[label] for label in "abcd"]
    for axes, label in zip(each, "abcd", strict=True):
        assert [line.get_color() for line in axes.lines].count("#bbbbbb") == 3
        assert {line.get_color() for line in axes.lines} == {"#bbbbbb", colours[label]}
        assert len(axes.collections) == 1  # the band
        assert axes.get_ylim() == figure.axes[0].get_ylim()
        assert axes.get_ylim()[1] > 8  # the highest value of all, of d
    assert sorted(table["group"].unique()) == list("abcd")
    assert not table.duplicated(["group", "run", "env_steps"]).any()
    assert "grey: the means of the others" in figure.get_supxlabel()
    for fewer in (
        groups[:3],
        [group(label, [[1, 2, 3]]) for label in "abcd"],
    ):  # bands that can be told apart; single runs
        figure, _ = curves_figure({"game": fewer}, 1.0, Look("v"))
        assert len(figure.axes) == 1
        assert "grey" not in figure.get_supxlabel()


def test_bands_and_interquartile_means_are_explained_where_they_are_drawn():
    three, five, ten = (group("a", [[1, 2]] * count) for count in (3, 5, 10))
    others = [group(label, [[1, 2]]) for label in "bcd"]
    assert "band" not in explained({"game": [three]})  # it would be so wide that it hides the rest
    assert "band" in explained({"game": [five]})
    for few, bands in ((three, 0), (five, 1)):
        figure, _ = curves_figure({"game": [few]}, 1.0, Look("v"))
        assert len(figure.axes[0].collections) == bands
    assert "interquartile" not in explained({"game": [five]})
    assert "interquartile" in explained({"game": [ten]})
    # too many groups to tell bands apart
    assert "band" not in explained({"game": [five], "other": others})
    assert "shortest run" not in explained({"game": [five]})
    assert "shortest run" in explained({"game": [group("a", [[1, 2], [1, float("nan")]])]})


def test_a_low_end_is_said():
    figure, table = curves_figure(
        {"game": [group("a", [[-900, 2], [1, 2]])]}, 1.0, Look("v", low=-5)
    )
    assert figure.axes[0].get_ylim()[0] == -5
    assert "below -5 not shown" in figure.get_supxlabel()
    assert -900 in table["value"].tolist()


def test_a_line_needs_a_number():
    assert read_line("1.6:random") == (1.6, "random")
    with pytest.raises(
        UserError, match="--line 'high:best' is no finite number with a label; write VALUE:LABEL"
    ):
        read_line("high:best")
    for text in ("nan:x", "inf:x", "3", "3:"):
        with pytest.raises(UserError, match="write VALUE:LABEL"):
            read_line(text)


def test_a_line_may_be_below_zero():
    words = [
        "out",
        "runs",
        "--line",
        "-13.3:optimum",
        "--line",
        "-.5:random",
        "--line",
        "-1e3:worst",
    ]
    assert FIGURES["generalisation"].parser("figures").parse_args(words).line == [
        "-13.3:optimum",
        "-.5:random",
        "-1e3:worst",
    ]


def test_one_command_from_run_directories(tmp_path, capsys):
    for implementation in ("ER", "simple-model"):
        flags = ("--max_epochs", "4", "--num_seeds", "2")
        assert (
            run_cli(tmp_path / "exp", *flags, implementation=implementation, gamename="panflute-3")
            == 0
        )
    out = tmp_path / "figure"
    assert cli("--figure", "generalisation", out, tmp_path / "exp", "--line", "13:best") == 0
    assert out.with_suffix(".png").stat().st_size > 5_000
    rows = (tmp_path / "figure-areas.csv").read_text().splitlines()
    assert rows[0] == "gamename,group,seeds,steps,mean,low,high"
    assert [row.split(",")[:3] for row in rows[1:]] == [
        ["panflute-3", "ER", "2"],
        ["panflute-3", "simple-model", "2"],
    ]
    assert out.with_suffix(".csv").read_text().startswith("gamename,group,run,env_steps,value")


@pytest.mark.parametrize(
    ("seeds", "panels"), [([30], 1), ([10, 10], 1), ([10, 1, 10], 1), ([10, 11], 2), ([7, 7, 7], 3)]
)
def test_groups_of_more_than_twenty_seeds_together_have_a_panel_each(seeds, panels):
    groups = [group(label, [[1, 2, 3]] * count) for label, count in zip("abc", seeds, strict=False)]
    figure, _ = curves_figure({"game": groups}, 1.0, Look("v"))
    assert len(figure.axes) == panels + (panels > 1)  # one of all means
    # the title names a panel's only group
    assert (figure.axes[0].get_legend() is None) == (panels > 1)
