"""A strike in flight means the same to a lane of the server as to a lane of the page."""

from __future__ import annotations

import json
import subprocess
from typing import Any

import numpy as np
import pytest

from phygail.experiments.grid import Grid
from phygail.methods import METHODS
from phygail.methods.base import installed
from phygail.methods.controller import run_episode
from phygail.swarm.scenario import Scenario, make_scenario, scenario_to_json
from phygail.web.build import SCRIPTS, page_methods
from phygail.web.messages import Fly, Strike
from phygail.web.races import Lane

SLOW = ("cr-mgc", "demd", "gdr-ts")  # plan for seconds
FLY = """
import { flyCase } from "%s";
import { readFileSync } from "node:fs";
const [text, names, safety, events] = JSON.parse(readFileSync(0, "utf8"));
console.log(JSON.stringify(flyCase(text, names, safety, events)));
"""


def fly_lane(scenario: Scenario, name: str, strikes: tuple[Strike, ...] = (), begin: int = 0, safety: bool = False):
    """(frames by step, end) of one lane, flown here."""
    lane = Lane(0, name, Fly(1, scenario, (name,), safety, strikes, begin))
    told: list[Any] = []
    while not lane.over:
        lane.advance(told.append)
    assert told[-1][0] == "end"
    return {report[2]: report[3] for report in told[:-1]}, told[-1]


@pytest.fixture(scope="module")
def case() -> Scenario:
    return Grid((60,), (0.5,), 1, 5).scenario(0)


def test_a_lane_without_strikes_is_an_episode(case):
    frames, end = fly_lane(case, "reach-evolved")
    episode = run_episode(case, "reach-evolved", record=True)
    assert end == ("end", 0, episode.steps, episode.terminated, "")
    assert frames[episode.steps].tolist() == episode.states[-1].positions.tolist()


def test_steps_that_the_client_has_are_not_told_again(case):
    frames, end = fly_lane(case, "sidr")
    rest, same = fly_lane(case, "sidr", begin=20)
    assert same == end
    assert list(rest) == list(range(21, end[2] + 1))
    assert all((rest[step] == frames[step]).all() for step in rest)


@pytest.mark.parametrize("safety", [False, True])
@pytest.mark.parametrize("name", page_methods())
def test_page_and_server_fly_a_struck_swarm_alike(case, node, name, safety):
    """One strike into the split swarm, one when it is one network, one while it waits."""
    alive = case.alive.tolist()
    _, end = fly_lane(case, name, safety=safety)
    strikes = (Strike(10, tuple(alive[3:6])), Strike(10, (alive[7],)), Strike(end[2] + 60, tuple(alive[::3])))
    frames, end = fly_lane(case, name, strikes, safety=safety)
    found = fly_in_page(node, case, name, strikes, safety)
    assert (found["steps"], found["converged"]) == end[2:4]
    assert np.reshape(found["positions"], (-1, 2)) == pytest.approx(frames[end[2]], abs=2e-6)
    assert len(frames[end[2]]) < len(frames[strikes[-1].step]) < len(alive)


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[pytest.mark.slow] * (name in SLOW)) for name in METHODS if installed(METHODS.get(name))],
)
def test_every_method_survives_strikes_in_flight(name):
    """Two groups of a chain that is cut: one strike while it is split, one when it is one network."""
    points = [[60.0 * k, 5.0 * (k % 3)] for k in range(12)]
    case = make_scenario("chain", np.array(points), [5, 6], budget_steps=200)
    strikes = (Strike(2, (0,)), Strike(150, (8,)))
    frames, end = fly_lane(case, name, strikes)
    assert "Error" not in end[4]
    assert [len(frames[step]) for step in (2, 3, 150)] == [10, 9, 9]
    assert end[2] >= 150


def fly_in_page(node: str, case: Scenario, name: str, strikes: tuple[Strike, ...], safety: bool) -> dict[str, Any]:
    text = json.dumps({"scenarios": [scenario_to_json(case)]})
    events = [{"step": strike.step, "ids": strike.ids} for strike in strikes]
    script = FLY % (SCRIPTS / "fly.js").as_uri()
    done = subprocess.run(
        [node, "--input-type=module", "-e", script],
        input=json.dumps([text, [name], safety, events]), capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)["flights"][name]
