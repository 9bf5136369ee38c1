"""The golden cases of the page: drawn by one seed, flown in Python, held against JavaScript.

    python tests/web/golden.py tests/web/golden.json

flies them again; names after the file fly those methods only and keep what is written about the others. Do it when a
rule or its weights have changed on purpose, and build the page (`python -m phygail.web.build`) before.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from phygail.files import write_text
from phygail.methods.controller import run_episode
from phygail.rng import generator
from phygail.swarm.scenario import (
    Scenario,
    draw_scenario,
    in_world,
    make_scenario,
    scenario_from_json,
    scenario_to_json,
)
from phygail.swarm.simulator import Episode, initial_state
from phygail.swarm.tree import bound_steps
from phygail.swarm.world import Event, World
from phygail.web.build import page_methods

SEED = 22  # fixed before the port was run
CASES = 40
STRUCK = 10  # further cases, struck in flight
SMALLEST, LARGEST = 20, 500
DAMAGE = (0.25, 0.9)


def draw_cases() -> Iterator[tuple[Scenario, bool]]:
    """(scenario, filter on) of every case; sizes are log-uniform, the filter is on in every second case."""
    for number in range(CASES):
        rng = generator(SEED, "page", number)
        uavs = round(float(np.exp(rng.uniform(np.log(SMALLEST), np.log(LARGEST)))))
        drawn = draw_scenario(uavs, float(rng.uniform(*DAMAGE)), rng, name=f"g{number:02d}")
        # Millimeters keep the file small; they are exact in both languages.
        layout = np.round(drawn.layout, 3)
        yield make_scenario(drawn.id, layout, drawn.damaged.tolist(), width_m=drawn.width_m), number % 2 == 1


def draw_struck() -> Iterator[tuple[Scenario, bool]]:
    """(scenario, filter on) of cases with three losses in flight, the first while the swarm is split."""
    for number in range(STRUCK):
        rng = generator(SEED, "struck", number)
        uavs = round(float(np.exp(rng.uniform(np.log(SMALLEST), np.log(LARGEST / 2)))))
        drawn = draw_scenario(uavs, float(rng.uniform(DAMAGE[0], 0.6)), rng, name=f"s{number:02d}")
        case = make_scenario(drawn.id, np.round(drawn.layout, 3), drawn.damaged.tolist(), width_m=drawn.width_m)
        steps = np.cumsum(rng.integers([3, 15, 60], [15, 60, 200]))
        lost = np.array_split(rng.permutation(case.alive)[: max(3, len(case.alive) // 2)], 3)
        pairs = zip(steps.tolist(), lost, strict=True)
        events = tuple(Event(when, tuple(sorted(who.tolist()))) for when, who in pairs)
        yield in_world(case, World(events=events)), number % 2 == 1


def all_cases() -> Iterator[tuple[Scenario, bool]]:
    """Every case of the file, in its order."""
    yield from draw_cases()
    yield from draw_struck()


def fly_golden(scenario: Scenario, name: str, safety: bool) -> dict[str, Any]:
    """What JavaScript must find too."""
    return outcome(run_episode(scenario, name, safety=safety))


def outcome(episode: Episode) -> dict[str, Any]:
    """Steps and success, contacts as a count, and the mean way, which any drift of a trajectory changes."""
    metrics, alive = episode.metrics, len(episode.scenario.alive)
    return {
        "steps": episode.steps,
        "converged": episode.terminated,
        "contacts": round(metrics.contact_events_per_uav * alive),
        "way_m": round(metrics.distance_m_per_uav, 6),
    }


def golden_case(scenario: Scenario, safety: bool, known: dict[str, Any], names: Collection[str]) -> dict[str, Any]:
    """One entry of the file: flights of `names` are flown, others taken from `known`."""
    flights = {
        name: fly_golden(scenario, name, safety) if name in names or name not in known else known[name]
        for name in page_methods()
    }
    return {
        "scenario": scenario_to_json(scenario),
        "safety": safety,
        "subnets": initial_state(scenario).links.count,
        "bound": bound_steps(scenario.spots, scenario.physics),
        "flights": flights,
    }


def load_golden(file: Path) -> list[dict[str, Any]]:
    """The entries of a file."""
    return json.loads(file.read_text(encoding="utf-8"))["cases"]


def scenario_of(entry: dict[str, Any]) -> Scenario:
    """The scenario of an entry."""
    return scenario_from_json(entry["scenario"], "golden")


def main(file: Path, names: Collection[str]) -> None:
    """Draw all cases, fly these methods (all if none is named) and write the file."""
    known = {entry["scenario"]["id"]: entry["flights"] for entry in load_golden(file)} if names else {}
    entries = [
        json.dumps(golden_case(scenario, safety, known.get(scenario.id, {}), names or page_methods()))
        for scenario, safety in all_cases()
    ]
    write_text(file, '{"cases": [\n' + ",\n".join(entries) + "\n]}\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
