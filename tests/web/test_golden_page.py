"""The built page, in a real browser, flies the golden cases as Python does."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from phygail.web.golden import load_golden

pytestmark = [pytest.mark.xdist_group("browser"), pytest.mark.timeout(1200)]

ENTRIES = load_golden(Path(__file__).parent / "golden.json")


def test_the_browser_flies_the_golden_cases_as_python_does(visit):
    page = visit.open("n=20&lost=0")
    page.evaluate("phygail.app.playing = false")
    for entry in ENTRIES:
        text = json.dumps({"scenarios": [entry["scenario"]]})
        names = list(entry["flights"])
        found = page.evaluate(
            "([text, names, safety]) => phygail.flyCase(text, names, safety)",
            [text, names, entry["safety"]],
        )
        assert (found["subnets"], found["bound"]) == (entry["subnets"], entry["bound"])
        for name in names:
            flight, got = entry["flights"][name], found["flights"][name]
            for key in ("steps", "converged", "contacts"):
                assert got[key] == flight[key], (entry["scenario"]["id"], name)
            assert got["way_m"] == pytest.approx(flight["way_m"], abs=1e-4)
