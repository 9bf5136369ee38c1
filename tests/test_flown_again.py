"""Committed rows are what the methods do today: a few of every experiment are flown again."""

from __future__ import annotations

from pathlib import Path

import pytest

from phygail.evaluation.catalog import EXPERIMENTS
from phygail.evaluation.draws import draw_cases
from phygail.evaluation.experiment import SEED, Leg
from phygail.evaluation.flight import fly_case
from phygail.evaluation.grid import Grid
from phygail.evaluation.paper import PLANNERS
from phygail.evaluation.rows import key_of, read_rows

RESULTS = Path(__file__).parent.parent / "results"
FLOWN = [name for name in EXPERIMENTS if EXPERIMENTS.get(name).legs and not EXPERIMENTS.get(name).variants]
SIZE, RATIO = 100, 0.75  # the nearest of each leg: flights long enough to tell rules apart, short enough to repeat
LATE_RATIO = 0.5  # with late news, when flights are slow
LARGEST_OF_POLICY = 200  # a flight of phygail-paper with more takes too long here


def fly_again(leg: Leg, rows: dict) -> list[tuple[str, int, int]]:
    """(flight, steps on disk, steps today) of one scenario and every method that takes no seconds to think."""
    uavs, ratios, _ = min(leg.settings(), key=lambda setting: abs(setting[0] - SIZE))
    wanted = LATE_RATIO if leg.sensing.delay_steps else RATIO
    scenarios, _ = draw_cases(leg, uavs, [min(ratios, key=lambda ratio: abs(ratio - wanted))], 1, SEED)
    scenario = scenarios.scenario(0) if isinstance(scenarios, Grid) else scenarios[0]
    methods = [name for name in leg.methods if name not in PLANNERS]
    if uavs > LARGEST_OF_POLICY:
        methods = [name for name in methods if name != "phygail-paper"]
    again = []
    for name in methods:
        if (scenario.id, name) in rows:
            episode, _ = fly_case(scenario, name, safety=leg.safety, sensing=leg.sensing)
            again.append(
                (f"{leg.name} {scenario.id} {name}", int(rows[scenario.id, name]["steps"]), episode.scored_steps)
            )
    return again


@pytest.mark.parametrize("name", [name for name in FLOWN if not EXPERIMENTS.get(name).flights_of])
def test_a_flight_takes_as_many_steps_as_its_row_says(name):
    """Rows of a rule that has changed since would pass every test of tables, figures and versions.

    Rounding differs between machines and may, rarely, decide a step: one flight in ten may differ.
    """
    again = []
    for leg in EXPERIMENTS.get(name).legs:
        path = RESULTS / name / leg.name / "rows.csv"
        if path.exists():
            again += fly_again(leg, {key_of(row): row for row in read_rows(path)})
    assert again
    changed = [flight for flight in again if flight[1] != flight[2]]
    assert len(changed) <= max(1, len(again) // 10), changed
