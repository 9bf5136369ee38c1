"""Python and JavaScript fly the golden cases alike, and neither changes without the other."""

from __future__ import annotations

import os
import runpy
import subprocess
from pathlib import Path

import pytest

from phygail.methods import METHODS
from phygail.web.build import page_methods

HERE = Path(__file__).parent
TOOL = runpy.run_path(str(HERE / "golden.py"))
CASES, STRUCK = TOOL["CASES"], TOOL["STRUCK"]
all_cases, fly_golden, scenario_of = TOOL["all_cases"], TOOL["fly_golden"], TOOL["scenario_of"]
REMEDY = "after a change of a rule or its weights run python tests/web/golden.py tests/web/golden.json"
ENTRIES = TOOL["load_golden"](HERE / "golden.json")
FLOWN_AGAIN = 45  # UAVs: larger cases are left to the one who regenerates


def test_the_golden_cases_are_those_of_the_seed():
    assert len(ENTRIES) == CASES + STRUCK
    for entry, (scenario, safety) in zip(ENTRIES, all_cases(), strict=True):
        assert entry["safety"] == safety
        assert scenario_of(entry).layout.tolist() == scenario.layout.tolist()
        assert entry["scenario"]["damaged"] == scenario.damaged.tolist()
        assert scenario_of(entry).world.events == scenario.world.events


def test_the_golden_cases_cover_every_method_of_the_page():
    assert set(page_methods()) <= set(METHODS)
    assert all(set(entry["flights"]) == set(page_methods()) for entry in ENTRIES)
    assert sum(entry["safety"] for entry in ENTRIES) == (CASES + STRUCK) / 2
    assert sum("events" in entry["scenario"] for entry in ENTRIES) == STRUCK


@pytest.mark.parametrize("name", page_methods())
def test_python_still_flies_the_golden_cases(name):
    small = [entry for entry in ENTRIES if len(entry["scenario"]["positions"]) <= FLOWN_AGAIN]
    assert len(small) >= CASES / 3
    for entry in small:
        assert fly_golden(scenario_of(entry), name, entry["safety"]) == entry["flights"][name], REMEDY


@pytest.mark.timeout(400)  # 20 s alone
@pytest.mark.parametrize("file", sorted(path.name for path in HERE.glob("*.test.mjs")))
def test_node(node, file):
    run_node(node, file)


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_node_flies_the_longest_flights_of_the_network_too(node):
    run_node(node, "golden.test.mjs", PHYGAIL_GOLDEN="long")


def run_node(node: str, file: str, **settings: str) -> None:
    command = [node, "--test", str(HERE / file)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=os.environ | settings)
    assert done.returncode == 0, done.stdout[-6000:]
