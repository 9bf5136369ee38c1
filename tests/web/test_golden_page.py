"""The built page, in a real browser, flies the golden cases as Python does."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from phygail.web.build import POLICY

pytestmark = [pytest.mark.xdist_group("browser"), pytest.mark.timeout(1200)]

ENTRIES = json.loads((Path(__file__).parent / "golden.json").read_text(encoding="utf-8"))["cases"]


LONG = 30_000  # UAVs times steps: flights of the network beyond it take seconds each and are left to the slow tests


def is_long(entry, name):
    alive = len(entry["scenario"]["positions"]) - len(entry["scenario"]["damaged"])
    return name == POLICY and alive * entry["flights"][name]["steps"] > LONG


def fly_all(visit, entries, *, long):
    """Fly the long flights or all others, and hold them against Python."""
    page = visit.open("n=20&lost=0")
    page.evaluate("phygail.app.playing = false")
    for entry in entries:
        names = [name for name in entry["flights"] if is_long(entry, name) == long]
        found = page.evaluate(
            "([text, names, safety]) => phygail.flyCase(text, names, safety)",
            [json.dumps({"scenarios": [entry["scenario"]]}), names, entry["safety"]],
        )
        for name in names:
            assert (found["subnets"], found["bound"]) == (entry["subnets"], entry["bound"])
            flight, got = entry["flights"][name], found["flights"][name]
            for key in ("steps", "converged", "contacts"):
                assert got[key] == flight[key], (entry["scenario"]["id"], name)
            assert got["way_m"] == pytest.approx(flight["way_m"], abs=1e-4)


def test_the_browser_flies_golden_cases_as_python_does(visit):
    """Every third; node, whose engine is that of chromium, flies all (golden.test.mjs)."""
    assert sum(entry["safety"] for entry in ENTRIES[::3]) in range(6, 12)
    fly_all(visit, ENTRIES[::3], long=False)


@pytest.mark.slow
def test_the_browser_flies_all_golden_cases_as_python_does(visit):
    fly_all(visit, ENTRIES, long=False)


@pytest.mark.slow
def test_the_browser_flies_the_longest_flights_of_the_network_as_python_does(visit):
    assert 0 < sum(is_long(entry, POLICY) for entry in ENTRIES) < 10
    fly_all(visit, ENTRIES, long=True)
