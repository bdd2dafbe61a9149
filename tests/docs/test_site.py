"""The documentation site: built strictly, opened in a real browser, without a request to
anywhere else.
"""

import functools
import http.server
import json
import os
import re
import subprocess
import sys
import threading

import pytest
from filelock import FileLock
from helpers import ROOT
from helpers.chromium import PROGRAM, QUIET

from lightning_rl.cli.tools import tools

FLAGS = [*QUIET, "--enable-logging=stderr", "--window-size=1300,2000"]
PROBE = """<script>addEventListener('load', () => setTimeout(() => {
  const size = e => { const box = e.getBoundingClientRect(); return [Math.round(box.width), Math.round(box.height)]; };
  const seen = {
    equations: [...document.querySelectorAll('math')].map(size),
    fractions: [...document.querySelectorAll('mfrac')].map(size),
    pictures: [...document.querySelectorAll('article img')].map(i => i.naturalWidth),
    code: [...document.querySelectorAll('.highlight code')].length,
    wide: document.documentElement.scrollWidth - document.documentElement.clientWidth,
    requests: performance.getEntriesByType('resource').map(e => new URL(e.name).origin),
    origin: location.origin,
  };
  const where = document.createElement('pre'); where.id = 'seen'; where.textContent = JSON.stringify(seen);
  document.body.append(where);
}, 1000))</script>"""  # noqa: E501
TOY = """<script>addEventListener('load', () => {
  const [toGo, steps] = document.querySelectorAll('#toy input');
  [toGo.value, steps.value] = [6, 4];
  steps.dispatchEvent(new Event('input'));
  const got = document.querySelector('#toy-got').textContent;
  if (got !== 'Asked for 6 within 4 steps, obtained 6 in 4.') console.error(got);
})</script>"""
LEDGER = """<script>addEventListener('load', () => {
  const line = document.querySelector('#ledger-filter input');
  const rows = [...document.querySelectorAll('details.ledger tbody tr')];
  const open = () => document.querySelectorAll('details.ledger[open]').length;
  if (rows.length < 200 || open() !== 0) console.error(rows.length, open());
  line.value = 'PROCMAZE 40,000';
  line.dispatchEvent(new Event('input'));
  const shown = rows.filter(row => !row.hidden).map(row => row.cells[0].textContent);
  if (open() !== 1 || !shown.includes('mb-procmaze-er-stale')) console.error(open(), shown);
  if (shown.includes('mb-procmaze-er-low')) console.error(shown);
  line.value = 'cartpole "not met"';
  line.dispatchEvent(new Event('input'));
  const missed = rows.filter(row => !row.hidden).map(row => row.textContent);
  if (!missed.length || !missed.every(text => text.includes('not met'))) console.error(missed);
  line.value = '';
  line.dispatchEvent(new Event('input'));
  location.hash = '#rn-cliff-additive';
  setTimeout(() => { if (open() !== 1) console.error('a link unfolds nothing'); }, 100);
})</script>"""

pytestmark = pytest.mark.slow  # the pages are built


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The built site; a dead link, a missing anchor or a name that is gone from the code fails
    the build.
    """
    pytest.importorskip("material", reason="the extra docs is not installed")
    pytest.importorskip("mkdocstrings")
    base = tmp_path_factory.getbasetemp()
    shared = (
        base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    )  # built once for all test processes
    folder, built = shared / "site", shared / "site.built"
    with FileLock(shared / "site.lock"):
        if not built.exists():
            command = [
                sys.executable,
                "-m",
                "mkdocs",
                "build",
                "--strict",
                "--site-dir",
                str(folder),
            ]
            result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)
            assert result.returncode == 0, result.stdout + result.stderr
            built.touch()
    return folder


@pytest.mark.timeout(400)
def test_it_shows_the_lines_of_code_and_the_keys_with_their_sources(site):
    reading = (site / "reading/upside_down/index.html").read_text()
    assert "lightning_rl/functional/upside_down.py</span>" in reading
    assert "exponential_weights" in reading
    keys = (site / "reference/configs/index.html").read_text()
    paper = '<a href="https://arxiv.org/abs/1912.02877">arXiv 1912.02877</a>'
    assert f"Srivastava et al. 2019, {paper}" in keys
    assert not re.search(r"<td>[^<]*\[[A-Z]\]", keys)  # no letter that is not spelled out
    assert "Student" in (site / "reference/functional/index.html").read_text()
    commands = (site / "reference/command_line/index.html").read_text()
    assert "--eval_command" in commands
    for (
        name,
        command,
    ) in tools().items():  # each, and each command of a group, below a heading of its own
        for word in ("", *(f"-{word}" for word in getattr(command, "tools", ()))):
            assert f'id="lightning-rl-{name}{word}"' in commands


@pytest.mark.timeout(400)
def test_search_finds_pages_and_no_sources(site):
    index = json.loads((site / "search/search_index.json").read_text())
    found = {entry["location"].split("#")[0] for entry in index["docs"]}
    assert {"quickstart/", "install/", "source/CONTRIBUTING/", "reference/hooks/"} <= found
    outside = {place for place in found if place.startswith(("source/", "results/"))}
    assert outside == {
        f"source/{name}/"
        for name in ("CONTRIBUTING", "CHANGELOG", "CODE_OF_CONDUCT", "SECURITY", "course")
    }


@pytest.mark.timeout(400)
def test_no_page_names_a_file_of_another_host_or_holds_raw_equations(site):
    pages = list(site.rglob("*.html"))
    assert len(pages) > 50
    for page in pages:
        text = page.read_text()
        assert not re.search(r'<(?:script|img|iframe)[^>]+src="(?:https?:)?//', text), page
        assert not re.search(
            r'<link[^>]+rel="(?:stylesheet|preconnect|icon)"[^>]+href="(?:https?:)?//', text
        ), page
        assert 'class="arithmatex"' not in text, page
        assert not re.search(r"<math(?:(?!</math>).)*(?:\\|&#x0007E;)", text, re.DOTALL), (
            page
        )  # what the converter does not know


@pytest.fixture(scope="module")
def look(site, tmp_path_factory):
    """Opens a page of the site as a server gives it: what the browser sees of it, and what its
    console says.
    """
    if PROGRAM is None:
        pytest.skip("no chromium on this machine: apt-get install chromium")
    quiet = type("Quiet", (http.server.SimpleHTTPRequestHandler,), {"log_message": lambda *_: None})
    server = http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), functools.partial(quiet, directory=str(site))
    )
    threading.Thread(target=server.serve_forever, daemon=True).start()

    def opened(page, extra=""):
        text = (site / page / "index.html").read_text()
        (site / page / f"probed-{os.getpid()}.html").write_text(
            text.replace("</body>", f"{extra}{PROBE}</body>")
        )
        profile = tmp_path_factory.mktemp("profile")
        address = f"http://127.0.0.1:{server.server_port}/{page}probed-{os.getpid()}.html"
        command = [
            PROGRAM,
            *FLAGS,
            f"--user-data-dir={profile}",
            "--virtual-time-budget=8000",
            "--dump-dom",
            address,
        ]
        result = subprocess.run(command, capture_output=True, text=True, timeout=120)
        console = [line for line in result.stderr.splitlines() if ":CONSOLE" in line]
        found = re.search(r'<pre id="seen">(.*?)</pre>', result.stdout, re.S)
        return json.loads(found[1]), console

    yield opened
    server.shutdown()


@pytest.mark.timeout(400)
@pytest.mark.parametrize(
    ("page", "equations", "script"),
    [
        ("", 0, ""),
        ("upside_down/", 0, ""),
        ("upside_down/method/", 10, ""),
        ("reading/upside_down/", 9, ""),
        ("tutorials/upside_down/", 4, TOY),
        ("results/", 0, LEDGER),
    ],
)
def test_in_a_browser(look, page, equations, script):
    seen, console = look(page, script)
    assert console == []
    assert set(seen["requests"]) <= {seen["origin"]}
    assert seen["wide"] <= 0
    assert len(seen["equations"]) >= equations
    assert all(width > 2 and height > 4 for width, height in seen["equations"])
    assert all(height > 20 for width, height in seen["fractions"])  # one above the other
    assert all(width > 100 for width in seen["pictures"])


@pytest.mark.timeout(400)
def test_the_browser_would_have_noticed(look):
    script = (
        "<script>console.error('broken'); fetch('http://127.0.0.1:9/x').catch(() => 0)</script>"
    )
    looks = (
        look("", script) for _ in range(3)
    )  # a busy machine may end the browser before it has said all
    assert any(
        any("broken" in line for line in console) and "http://127.0.0.1:9" in seen["requests"]
        for seen, console in looks
    )
