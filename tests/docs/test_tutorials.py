"""The numbers of the tutorial's toy, computed anew: by Python, and by the script of the page."""

import json
import shutil
import subprocess

import pytest
from helpers import ROOT

PAGE = ROOT / "docs" / "tutorials" / "upside_down.md"
EXITS, EPISODES = {1: 5, 5: 10}, ["LL", "RLLL", "RR", "LRRR"]


def table(heading):
    """The rows of the page's table that begins with this heading."""
    lines = PAGE.read_text().splitlines()
    first = next(n for n, line in enumerate(lines) if line.startswith(f"| {heading} |")) + 2
    rows = []
    while lines[first].startswith("|"):
        rows.append([cell.strip() for cell in lines[first].strip("|").split("|")])
        first += 1
    return rows


def walk(actions):
    cells = [3]
    for action in actions:
        cells.append(cells[-1] + (1 if action == "R" else -1))
    assert cells[-1] in EXITS
    assert not set(cells[:-1]) & set(EXITS)
    return cells, [EXITS.get(cell, 0) - 1 for cell in cells[1:]]


def test_the_episodes_of_the_toy():
    expected = []
    for name in EPISODES:
        cells, rewards = walk(name)
        joined = ", ".join(map(str, rewards))
        row = [name, " ".join(map(str, cells)), joined, str(sum(rewards)), str(len(rewards))]
        expected.append(row)
    assert table("episode") == expected


def test_the_examples_of_the_toy():
    expected = []
    for name in EPISODES:
        cells, rewards = walk(name)
        for step, action in enumerate(name):
            left = rewards[step:]
            word = {"L": "left", "R": "right"}[action]
            expected.append([str(cells[step]), str(sum(left)), str(len(left)), word, name])
    assert table("cell") == expected


def test_the_script_of_the_page_obtains_what_is_asked():
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not installed")
    ask = """
    const examples = EPISODES.flatMap(walk);
    const asked = [[3, 2], [1, 4], [8, 2], [6, 4]];
    const steps = ([toGo, left]) => act(examples, toGo, left);
    console.log(JSON.stringify([examples.map(e => [e.state, e.toGo, e.left, e.action]),
      asked.map(each => steps(each).map(e => [e.action, e.reward, e.known]))]));
    """
    script = (ROOT / "docs" / "tutorials" / "toy.js").read_text() + ask
    examples, acted = json.loads(subprocess.check_output([node, "-e", script], text=True))
    words = {"L": "left", "R": "right"}
    found = [[*map(str, row[:3]), words[row[3]]] for row in examples]
    assert found == [row[:4] for row in table("cell")]
    for (name, steps), asked in zip(zip(EPISODES, acted, strict=True), (3, 1, 8, 6), strict=True):
        assert "".join(step[0] for step in steps) == name
        assert sum(step[1] for step in steps) == asked
        assert all(step[2] for step in steps)
