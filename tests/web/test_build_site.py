"""The site shows the page itself, and looks as light or dark as its reader wants."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"


def test_documents_embed_the_page_under_a_name_that_no_document_has():
    name = re.search(r'^SWARM = "(.+?)"', (DOCS / "conf.py").read_text(), re.MULTILINE)[1]
    assert not (DOCS / name).with_suffix(".md").exists()
    for document in ("index.md", "play.md"):
        text = (DOCS / document).read_text(encoding="utf-8")
        assert re.findall(r'<iframe[^>]* src="([^?#"]+)', text) == [name]


@pytest.mark.slow
@pytest.mark.timeout(400)
@pytest.mark.xdist_group("browser")
def test_a_reader_of_the_site_strikes_a_swarm(browser, tmp_path):
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", str(DOCS), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    page = browser.new_context(viewport={"width": 1280, "height": 1000}, color_scheme="light").new_page()
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.goto((tmp_path / "index.html").as_uri())
    frame = page.frame_locator("iframe.play")
    frame.locator(".lane canvas").first.wait_for()
    frame.locator("#play").click()
    frame.locator("#restart").click()
    frame.locator("#story").get_by_text("Strike: 140 UAVs lost").wait_for()
    root = frame.locator("html")
    assert root.get_attribute("data-theme") == "light"
    page.evaluate("document.body.dataset.theme = 'dark'")
    frame.locator("html[data-theme=dark]").wait_for()
    for link in page.eval_on_selector_all(".cards a", "all => all.map(a => a.href)"):
        assert Path(link.removeprefix("file://")).exists(), link
    page.goto((tmp_path / "gallery.html").as_uri())
    assert page.locator("button.copybtn").count() >= 3
    assert page.evaluate("[...document.images].every((image) => image.naturalWidth > 0)")
    assert page.evaluate(
        "new Promise(done => {const v = document.querySelector('video'); "
        "v.readyState ? done(true) : v.addEventListener('loadedmetadata', () => done(true))})"
    )
    assert errors == []
