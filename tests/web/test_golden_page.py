"""The built page, in a real browser, flies the golden cases as Python does."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from phygail.web.build import POLICY
from phygail.web.golden import load_golden

pytestmark = [pytest.mark.xdist_group("browser"), pytest.mark.timeout(1200)]

ENTRIES = load_golden(Path(__file__).parent / "golden.json")


LARGE = 150  # UAVs above which the network takes the browser seconds per case; node flies them all in every run


def fly_all(visit, wanted):
    """Fly the methods that `wanted` names for each case, and hold them against Python."""
    page = visit.open("n=20&lost=0")
    page.evaluate("phygail.app.playing = false")
    for entry in ENTRIES:
        names = [name for name in entry["flights"] if wanted(name, len(entry["scenario"]["positions"]))]
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


def test_the_browser_flies_the_golden_cases_as_python_does(visit):
    fly_all(visit, lambda name, uavs: name != POLICY or uavs <= LARGE)


@pytest.mark.slow
def test_the_browser_flies_the_network_in_large_swarms_as_python_does(visit):
    fly_all(visit, lambda name, uavs: name == POLICY and uavs > LARGE)
