"""The report, looked at by a real browser: every picture and film loads, and no request leaves
the page.
"""

import json
import re
import subprocess

import pytest
from helpers.chromium import PROGRAM, QUIET
from helpers.runs import cli, run_cli, run_dir, train_cli

PROBE = """<script>addEventListener('load', () => setTimeout(() => {
  const seen = {
    pictures: [...document.images].map(i => i.naturalWidth),
    films: [...document.querySelectorAll('video')].map(v => [v.videoWidth, v.error === null]),
    requests: performance.getEntriesByType('resource').map(e => e.name.slice(0, 60)),
  };
  const where = document.createElement('pre'); where.id = 'seen'; where.textContent = JSON.stringify(seen);
  document.body.append(where);
}, 1000))</script>"""  # noqa: E501


def look_at(tmp_path, text):
    """What the browser sees of a page; without its policy, so that a script of the test may look
    at it.
    """
    page, profile = tmp_path / "page.html", tmp_path / "profile"
    page.write_text(
        re.sub(r"<meta http-equiv=[^>]*>", "", text).replace("</body>", PROBE + "</body>")
    )
    command = [
        PROGRAM,
        *QUIET,
        f"--user-data-dir={profile}",
        "--virtual-time-budget=8000",
        "--dump-dom",
        f"file://{page}",
    ]
    dom = subprocess.run(command, capture_output=True, text=True, timeout=120).stdout
    return json.loads(re.search(r'<pre id="seen">(.*?)</pre>', dom, re.S)[1])


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """A report of two films' worth of runs, one that diverged, one whose config is broken, and
    an empty folder.
    """
    root = tmp_path_factory.mktemp("report")
    logdir = root / "exp_dir"
    train_cli(logdir, 4, "--recording_epoch_interval", "4")
    train_cli(logdir, 4, "--seed", "26", batch_size=8)
    assert run_cli(logdir, "--max_epochs", "4", "--seed", "27", learning_rate=1e38) == 2
    broken = run_dir(logdir, seed=28)
    (broken / "logger").mkdir(parents=True)
    (broken / "config.yaml").write_text("config: [")
    (root / "empty").mkdir()
    film = run_dir(logdir) / "evaluation.mp4"
    film.write_bytes(b"no film")
    out = root / "report.html"
    assert cli("report", logdir, root / "empty", "-o", out, "--videos") == 0
    return out


def test_the_page_says_everything(report):
    text = report.read_text()
    for words in (
        "3 runs",
        "diverged",
        "config.yaml&#39; is damaged",
        "there is no run at or below it",
        "rollout_return_mean.csv",
        "Training return, actions sampled",
        "UDRL:",
        "3 different configs",
        'class="differs"',
    ):
        assert words in text, words
    assert "evaluation.mp4: it is not a whole film" in text
    assert (
        text.count("<video") == 1
        # the sampled and greedy film of the last recording, of which two are shown, less the broken
        # one
    )
    assert not re.search(r'(src|href)="(?!data:)', text)  # whatever the page shows is in it
    assert "default-src 'none'" in text


def test_nothing_to_report(tmp_path, capsys):
    assert cli("report", tmp_path, "-o", tmp_path / "r.html") == 2
    assert (
        capsys.readouterr().err
        == f"error: no run at or below {tmp_path}; name a folder above some, e.g. exp_dir\n"
    )
    assert not (tmp_path / "r.html").exists()


def test_a_group_key_that_no_run_has_is_refused(report, tmp_path, capsys):
    words = ["report", str(report.with_name("exp_dir")), "-o", str(tmp_path / "r.html"), "--group"]
    assert cli(*words, "learning_rat") == 2
    error = capsys.readouterr().err
    assert (
        error
        == "error: --group learning_rat: no source has that key; did you mean 'learning_rate'?\n"
    )
    assert not (tmp_path / "r.html").exists()


def test_a_scalar_that_no_run_has_is_refused(report, tmp_path, capsys):
    words = ["report", str(report.with_name("exp_dir")), "-o", str(tmp_path / "r.html"), "--tag"]
    assert cli(*words, "eval/retun_mean") == 2
    said = "--tag eval/retun_mean: no run has that scalar; did you mean 'eval/return_mean'?"
    assert capsys.readouterr().err == f"error: {said}\n"
    assert not (tmp_path / "r.html").exists()


@pytest.mark.skipif(PROGRAM is None, reason="no chromium on this machine: apt-get install chromium")
def test_in_a_browser_every_picture_loads_and_no_request_leaves(report, tmp_path):
    text = report.read_text()
    seen = look_at(tmp_path, text)
    assert len(seen["pictures"]) == text.count("<img") >= 3
    assert all(width > 100 for width in seen["pictures"])
    assert len(seen["films"]) == text.count("<video")
    assert [name for name in seen["requests"] if not name.startswith("data:")] == []
    assert all(width > 0 and whole for width, whole in seen["films"])
    # the probe would have seen a picture from elsewhere, and one that is broken
    outside = '<img src="http://127.0.0.1:9/x.png"><img src="data:image/png;base64,AAAA"></body>'
    control = look_at(tmp_path, text.replace("</body>", outside))
    assert control["requests"] == ["http://127.0.0.1:9/x.png"]
    assert control["pictures"][-2:] == [0, 0]
