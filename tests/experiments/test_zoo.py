"""The page of the trained agents: complete, small, and made of its numbers."""

from helpers import ROOT
from PIL import Image

from experiments import zoo
from lightning_rl.run.shipped import SHIPPED, shipped_agents


def test_the_page_has_every_agent_with_its_score_film_and_card(monkeypatch):
    monkeypatch.chdir(ROOT)
    rows = zoo.read_scores()
    assert list(rows) == list(shipped_agents())
    assert zoo.PAGE.read_text() == zoo.page(rows)
    for name, row in rows.items():
        text = (zoo.FOLDER / f"{name}.md").read_text()
        assert f"{float(row['mean']):.2f} +/- {float(row['sd']):.2f}" in text
        with Image.open(zoo.FOLDER / f"{name}.gif") as film:
            assert film.n_frames > 1
            assert film.width in (zoo.LARGE[1], zoo.SMALL[1])


def test_agents_films_and_cards_take_two_megabytes():
    files = [*SHIPPED.iterdir(), *(ROOT / zoo.FOLDER).iterdir()]
    assert sum(file.stat().st_size for file in files) < 2_000_000
