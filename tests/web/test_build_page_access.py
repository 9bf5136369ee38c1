"""Who cannot see colors, or sees nothing, or has no mouse, can use the page: axe-core finds nothing serious."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from tests.web.conftest import give_up, settle

pytestmark = [pytest.mark.xdist_group("browser"), pytest.mark.timeout(600)]

AXE = Path(sys.prefix) / "node" / "node_modules" / "axe-core" / "axe.min.js"


@pytest.fixture(scope="module")
def axe() -> str:
    if not AXE.exists():
        give_up(f"axe-core is not installed: npm install --prefix {AXE.parents[2]} axe-core")
    return AXE.read_text(encoding="utf-8")


# The page's own policy would refuse a foreign script; everything else stays as a user has it.
@pytest.mark.parametrize(
    "visit",
    [
        {"bypass_csp": True, "color_scheme": scheme, "viewport": {"width": width, "height": 740}}
        for scheme in ("light", "dark")
        for width in (360, 1280)
    ],
    indirect=True,
    ids=lambda options: f"{options['color_scheme']}-{options['viewport']['width']}",
)
def test_axe_finds_no_serious_violation(visit, axe):
    page = visit.open("n=60&lost=0.5&seed=3&race=sidr,center-fly,bound")
    page.evaluate("phygail.app.race.advanceTo(5000); phygail.app.seek(5000); phygail.app.say('Refused.', true)")
    page.locator("summary").click()
    settle(page)
    page.add_script_tag(content=axe)
    found = page.evaluate("axe.run().then(({ violations }) => violations.map(v => [v.impact, v.id, v.nodes[0].html]))")
    assert [violation for violation in found if violation[0] in ("serious", "critical")] == []


def test_every_control_has_a_name_and_a_key(visit):
    page = visit.open("n=60&lost=0.5&seed=3")
    nameless = page.evaluate(
        """[...document.querySelectorAll("button, input, select, canvas[tabindex]")].filter(
            (e) => !(e.getAttribute("aria-label") || e.textContent.trim() || e.labels?.length)
        ).map((e) => e.outerHTML)"""
    )
    assert nameless == []
    reached = set()
    for _ in range(60):
        page.keyboard.press("Tab")
        reached.add(page.evaluate("document.activeElement.id || document.activeElement.tagName"))
    assert {
        "play",
        "scrub",
        "speed",
        "preset",
        "n",
        "lost",
        "seed",
        "shatter",
        "safety",
        "copy-link",
        "CANVAS",
    } <= reached


def test_the_picture_is_told_in_words(visit):
    page = visit.open("n=60&lost=0.5&seed=3")
    page.evaluate("phygail.app.seek(0)")
    settle(page)
    label = page.locator(".lane canvas").first.get_attribute("aria-label")
    assert label.startswith("reach-evolved: 30 UAVs flying, ")
    assert " subnets, the largest of " in label


def test_neighboring_subnets_differ_in_color_and_the_colors_in_shape(visit):
    """No color stands alone: the six largest subnets have six colors, equal colors further down other shapes."""
    page = visit.open("n=500&lost=0.9&seed=1&speed=1")
    page.evaluate("phygail.app.seek(0)")
    settle(page)
    marks = page.evaluate(
        "Array.from({length: 12}, (_, k) => Object.values(phygail.lanes.cards[0].shown.palette.subnet(k)).join())"
    )
    assert len(set(marks)) == 12
    assert len({mark.split(",")[0] for mark in marks[:6]}) == 6
