import numpy as np
import pandas as pd
import pytest
from helpers import ROOT
from helpers.runs import cli, log_scalars, run_dir, train_cli
from matplotlib.figure import Figure
from matplotlib.legend import Legend
from PIL import Image

from lightning_rl.cli import main
from lightning_rl.core.errors import UserError
from lightning_rl.lab.figures.curves import draw_group
from lightning_rl.lab.figures.groups import Group, binned, make_groups, nice_width
from lightning_rl.lab.figures.registry import LEGENDS
from lightning_rl.lab.figures.style import MARKERS, colour, cue


def draw(*words) -> int:
    return cli("figures", *words)


def test_the_legend_has_a_place_that_there_is(capsys):
    assert draw("curves", "out", "run", "--legend", "bottom right") == 2
    assert "--legend: invalid choice: 'bottom right'; did you mean '" in capsys.readouterr().err
    assert set(LEGENDS) == set(Legend.codes)


def test_bins_by_hand():
    x, value = np.array([5.0, 10.0, 11.0, 50.0, 99.0]), np.array([1.0, 3.0, 10.0, 4.0, 1000.0])
    edges = np.array([10.0, 20.0, 30.0, 40.0, 50.0, 60.0])
    # 5 and 10 in the first; 30 and 40 lie on the line from 10 to 4; beyond the last value nothing,
    # 99 is outside
    np.testing.assert_array_equal(binned(x, value, edges), [2.0, 10.0, 8.0, 6.0, 4.0, np.nan])
    np.testing.assert_array_equal(
        binned(np.array([99.0]), np.array([1.0]), edges), np.full(6, np.nan)
    )
    assert [nice_width(end, end) for end in (5e6, 100, 7.3, 180)] == [
        50_000,
        1,
        pytest.approx(0.1),
        2,
    ]
    # ten bins of the shortest run, where a hundredth of the longest would be wider; no more than
    # 10,000 bins in all
    assert [nice_width(5e5, shortest) for shortest in (6e4, 2e3, 1)] == [5_000, 200, 50]


def test_the_last_bin_is_kept_though_the_run_does_not_fill_it():
    """Bins of 500 up to 44,364: 89 of them, the last of which holds the last value, and ends
    with it.
    """
    table = pd.DataFrame(
        {
            "gamename": "g",
            "group": "m",
            "run": "r",
            "seed": "1",
            "env_steps": [300.0, 44_000.0, 44_364.0],
            "value": [1.0, 2.0, 3.0],
            "unit": "environment steps",
        }
    )
    games, width = make_groups(table, "env_steps", 500.0)
    (group,) = games["g"]
    assert (width, len(group.x), group.x[-1]) == (500.0, 89, 44_364.0)
    assert group.values[0, [0, 87, 88]].tolist() == [1, 2, 3]
    exact, _ = make_groups(table.assign(env_steps=[300.0, 700.0, 1_000.0]), "env_steps", 500.0)
    # no bin for nothing where the run fills the last
    assert exact["g"][0].x.tolist() == [500.0, 1_000.0]
    short, _ = make_groups(table.assign(env_steps=[300.0, 700.0, 1_249.0]), "env_steps", 500.0)
    # less than half a bin is part of the one before
    assert short["g"][0].x.tolist() == [500.0, 1_249.0]
    assert short["g"][0].values.tolist() == [[1.0, 2.5]]


def test_bins_without_number_are_refused():
    table = pd.DataFrame(
        {"gamename": "g", "group": "m", "run": "r", "seed": "1", "env_steps": [1e6], "value": [1.0]}
    )
    with pytest.raises(
        UserError,
        match=r"--bin 0.001: 1,000,000,000 bins up to 1,000,000, more than .* use 10 or more",
    ):
        make_groups(table, "env_steps", 0.001)


def write_run(folder, seed, *points):
    """A run directory with these values of the evaluation at these steps."""
    tags = ("rollout/return_mean", "eval/return_mean", "eval_greedy/return_mean")
    run = folder / "cartpole" / "default" / "UDRL" / f"seed_{seed}"
    log_scalars(run, {tag: dict(points) for tag in tags})


COMMANDS = {
    "curves": ["figures", "curves", "{out}", "{runs}"],
    "scores": ["figures", "scores", "{out}", "{runs}"],
    "profile": ["figures", "profile", "{out}", "{runs}"],
    "generalisation": ["figures", "generalisation", "{out}", "{runs}"],
    "marks": ["figures", "marks", "{out}", "{runs}", "--at", "44564", "--window", "10"],
    "compare": ["compare", "{runs}", "{runs}"],
    "report": ["report", "{runs}", "-o", "{out}.html"],
}


@pytest.mark.parametrize("command", COMMANDS)
def test_runs_with_a_single_evaluation_are_scored_drawn_and_reported(tmp_path, capsys, command):
    write_run(tmp_path / "runs", 1, (44_564, 5.0))
    write_run(tmp_path / "runs", 2, (44_564, 7.0))
    assert (
        main(
            [
                word.format(out=tmp_path / "out", runs=tmp_path / "runs")
                for word in COMMANDS[command]
            ]
        )
        == 0
    )
    files = {
        path.name: path.read_text()
        for path in tmp_path.glob("out*")
        if path.suffix in (".csv", ".html")
    }
    assert all("6" in text for text in files.values())  # their mean
    if command == "scores":
        scores = pd.read_csv(tmp_path / "out-scores.csv").set_index("run")
        assert scores.loc["mean", ["final", "best", "area"]].tolist() == [6, 6, 6]
    if command == "report":
        assert files["out.html"].count("6.0 [-6.7, 18.7]") >= 3


@pytest.mark.parametrize(
    ("steps", "flags", "label"),
    [
        # perfect learners take no steps, and their generations are logged one by one
        ((1, 2, 3), [], "generations"),
        ((1, 2, 900), [], "generations, then environment steps"),  # the last has agents
        ((300, 600, 900), [], "environment steps"),
        ((300, 600, 900), ["--x", "updates"], "generations"),
        ((300, 600, 900), ["--x", "episodes"], "training episodes"),
    ],
)
def test_the_axis_of_a_search_says_what_it_counts(tmp_path, steps, flags, label):
    run = tmp_path / "runs" / "CartPole-v1" / "suite" / "SE" / "seed_1"
    speed = {}
    updates = {}
    for generation, step in enumerate(steps, 1):
        speed[step] = 1000 if step > generation else 0
        updates[step] = generation
    scalars = {
        "es/fitness_mean": dict.fromkeys(steps, 5),
        "time/num_updates": updates,
        "time/episodes": {step: 2 * count for step, count in updates.items()},
        "time/env_steps_per_second": speed,
    }
    log_scalars(run, scalars)
    for figure in ("curves", "generalisation"):
        assert (
            cli(
                "figures",
                figure,
                tmp_path / "o",
                tmp_path / "runs",
                "--tag",
                "es/fitness_mean",
                *flags,
            )
            == 0
        )
        assert f">{label}<" in (tmp_path / "o.svg").read_text()
    unit = label.removeprefix("environment ")
    assert f"mean over the {unit} up to" in (tmp_path / "o.svg").read_text()


@pytest.mark.parametrize("command", sorted(set(COMMANDS) - {"report"}))
@pytest.mark.parametrize(
    "points", [[], [(100, float("nan"))], [(100, float("inf"))]], ids=["none", "nan", "inf"]
)
def test_runs_without_a_number_are_one_line(tmp_path, capsys, command, points):
    write_run(tmp_path / "runs", 1, *points)
    assert (
        main(
            [
                word.format(out=tmp_path / "out", runs=tmp_path / "runs")
                for word in COMMANDS[command]
            ]
        )
        == 2
    )
    assert capsys.readouterr().err.splitlines()[-1].startswith("error: nothing to draw: none of")
    assert not list(tmp_path.glob("out*"))


def test_statistics_end_with_the_shortest_run():
    values = np.array([[1.0, 2.0, 3.0], [3.0, 6.0, np.nan]])
    lines = Group("m", ["1", "2"], np.array([1.0, 2.0, 3.0]), values).statistics()
    assert lines["mean"][0].tolist() == [1.0, 2.0]
    assert lines["mean"][1].tolist() == [2.0, 4.0]
    # Student's quantile of one degree of freedom
    assert lines["low"][1] == pytest.approx([2 - 12.7062, 4 - 2 * 12.7062])
    assert lines["high"][1] == pytest.approx([2 + 12.7062, 4 + 2 * 12.7062])
    assert "iqm" not in lines
    ten = Group(
        "m", [str(n) for n in range(10)], np.array([1.0]), np.arange(10.0)[:, None]
    ).statistics()
    assert ten["iqm"][1].tolist() == [4.5]


def test_the_csv_is_what_is_plotted_and_can_be_drawn_again(tmp_path, capsys):
    for seed in ("1", "2"):
        train_cli(tmp_path, 4, "--seed", seed)
    (tmp_path / "paper.csv").write_text("env_steps,value\n100,7\n200,9\n999999,1\n")
    runs = [run_dir(tmp_path, seed=s) for s in (1, 2)]
    assert (
        draw(
            "curves",
            tmp_path / "out",
            *runs,
            "--bin",
            "100",
            "--reference",
            f"{tmp_path}/paper.csv:the paper",
        )
        == 0
    )
    assert (tmp_path / "out.png").stat().st_size > 5_000
    assert "2 seeds" in (tmp_path / "out.svg").read_text()
    table = pd.read_csv(tmp_path / "out.csv")
    assert set(table["run"]) == {"seed_1", "seed_2", "mean", "low", "high", "reference"}
    assert set(table["gamename"]) == {"cartpole"}
    value = {(row.run, row.env_steps): row.value for row in table.itertuples()}
    assert value["reference", 100] == 7
    assert ("reference", 999999) not in value
    assert value["mean", 200] == pytest.approx(
        (value["seed_1", 200] + value["seed_2", 200]) / 2, rel=1e-4
    )
    # its own CSV is a source, and gives the same numbers
    assert draw("curves", tmp_path / "again", f"{tmp_path}/out.csv", "--bin", "100") == 0
    again = pd.read_csv(tmp_path / "again.csv")
    own = table[table["run"] != "reference"].reset_index(drop=True)
    pd.testing.assert_frame_equal(again, own, rtol=1e-4)
    wrong = ("--tag", "eval/return_mean")  # of another scalar it says nothing
    assert draw("curves", tmp_path / "wrong", f"{tmp_path}/out.csv", *wrong) == 2
    assert "not of 'eval/return_mean'; give --tag rollout/return_mean" in capsys.readouterr().err
    for source in (f"{tmp_path}/out.csv", f"{tmp_path}/out.csv:ours"):
        assert draw("curves", tmp_path / "out.png", source) == 2
        assert (
            "out.csv' is read by this command and would be overwritten; choose another OUT"
            in capsys.readouterr().err
        )
    pd.testing.assert_frame_equal(pd.read_csv(tmp_path / "out.csv"), table)


def test_a_picture_for_a_column_of_a_paper(tmp_path, capsys):
    out = tmp_path / "out"
    sources = [f"results/claims/beside-{game}-ddqn.csv" for game in ("cartpole", "acrobot")]
    words = ["curves", out, *(str(ROOT / source) for source in sources)]
    words += ["--tag", "eval_greedy/return_mean", "--bin", "5000", "--no-caption", "--title", "T"]
    page = ["--width", "3.25", "--format", "pdf"]
    assert draw(*words, *page, "--format", "png") == 0
    with Image.open(f"{out}.png") as picture:
        width, height = picture.size
        caption = picture.info["Description"]
    assert width == int(3.25 * 150)
    assert height > 1.2 * width  # one panel below the other
    assert caption.startswith("T. 10 seeds; thin")
    assert f"caption: {caption}\n" in capsys.readouterr().out
    assert not out.with_suffix(".svg").exists()
    assert out.with_suffix(".pdf").read_bytes().startswith(b"%PDF")
    out.with_suffix(".png").unlink()
    assert draw(*words, *page) == 0  # which knows its own files again
    assert draw(*words, "--width", "0.2") == 2
    assert "0.2 inches: a picture has 1 to 40" in capsys.readouterr().err


def test_the_line_of_a_single_run_has_the_marker_that_the_legend_shows():
    x = np.arange(40.0)
    value = np.where(x < 3, x, np.nan)  # a short run, beside longer ones
    axes = Figure().add_subplot()
    draw_group(axes, Group("alone", ["1"], x, value[None]), colour(5), marked=True)
    line, shown = axes.get_lines()
    assert line.get_marker() == shown.get_marker() == MARKERS[colour(5)]
    assert line.get_markevery() == [2]
    assert cue(colour(1), x)["markevery"] == [1, 9, 17, 25, 33]
