"""What the README and CONTRIBUTING promise. (Their commands are run by ``test_pages.py``.)"""

import re

import pytest
import yaml
from helpers import ROOT

import lightning_rl
from experiments.docs import BLOCK
from lightning_rl.core.gamenames import GAMES
from lightning_rl.envs.spec import env_spec
from lightning_rl.methods.registry import IMPLEMENTATIONS

README = (ROOT / "README.md").read_text()
CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text()
CATALOGUE = (ROOT / "docs" / "catalogue.md").read_text()


@pytest.mark.parametrize("name", [*GAMES, *IMPLEMENTATIONS])
def test_tables_are_complete(name):
    assert f"`{name}`" in CATALOGUE


def test_it_is_short():
    """Words that are seen, besides the tables that commands make."""
    prose = re.sub("<!--.*?-->", "", BLOCK.sub("", README))
    assert 500 < len([word for word in prose.split() if word != "|"]) <= 700


def test_every_suite_that_is_named_is_there():
    suites = re.findall(r"`make ([\w-]+)", CONTRIBUTING)
    targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.M)
    assert len(suites) > 5
    assert not set(suites) - set(targets)


def test_the_citation_is_of_this_version_and_names_the_papers_of_every_family():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert citation["version"] == lightning_rl.__version__
    notes = " ".join(paper["notes"] for paper in citation["references"])
    assert all(
        name in notes
        for name in ("UDRL", "RCP-A", "REINFORCE", "SE", "RN", "MBRL", "ER", "gaussian-latent")
    )


def test_forms_for_issues_ask_for_something():
    for path in (ROOT / ".github" / "ISSUE_TEMPLATE").glob("[!c]*.yml"):
        form = yaml.safe_load(path.read_text())
        assert form["name"], form["description"]
        ids = [field["id"] for field in form["body"]]
        assert len(set(ids)) == len(ids) > 1


def test_links_and_pictures_exist():
    for target in re.findall(r"\]\((?!http)([^)]+)\)", README):
        assert (ROOT / target.split("#")[0]).exists(), target


def test_the_environment_example_registers_one():
    (example,) = re.findall(r"```python\n(.*?)```", CONTRIBUTING, re.S)
    try:
        exec(example, {})
        spec = env_spec("mountaincar")
    finally:
        del GAMES["mountaincar"]
    assert (spec.obs_size, spec.horizon, spec.max_return) == (2, 200, -90.0)
