"""What the safety filter's promise needs: vehicles that follow velocities at once. In results/inertia/vehicles.csv.

python benchmarks/inertia.py

Every command is filtered as usual; then the vehicle changes its velocity by at most `acceleration` times the step, and
flies what it has. Closest approach of any pair (m), and how often a link of a subnet broke so that the subnet tore.
"""

from __future__ import annotations

import csv
import math
from pathlib import Path

import numpy as np
from scipy.spatial.distance import pdist

from phygail.experiments.grid import Grid
from phygail.methods.base import make_method
from phygail.methods.controller import controller
from phygail.swarm.safety import filter_velocities
from phygail.swarm.scenario import Scenario
from phygail.swarm.simulator import SwarmState, initial_state, project_speed

CASES = Grid((100,), (0.5, 0.75), 4, seed=2)
METHODS = ("center-fly", "sidr", "reach", "reach-evolved")
ACCELERATIONS = (math.inf, 5.0, 3.0)  # m/s^2
OUT = Path(__file__).parent.parent / "results" / "inertia" / "vehicles.csv"
COLUMNS = ("scenario", "method", "acceleration_mps2", "converged", "steps", "closest_m", "tears")


def fly(scenario: Scenario, name: str, acceleration: float) -> dict[str, object]:
    """One flight with inertia."""
    physics, state = scenario.physics, initial_state(scenario)
    command = controller(make_method(name), scenario)
    closest, tears = float(pdist(state.positions).min()), 0
    while not state.terminated and not state.truncated:
        wanted = filter_velocities(state.positions, project_speed(command(state), physics.speed_mps), physics)
        limit = min(acceleration * physics.step_s, 2 * physics.speed_mps)  # more never changes at once
        change = project_speed(wanted - state.velocities, limit)
        velocities = state.velocities + change
        after = SwarmState(scenario, state.positions + velocities * physics.step_s, velocities, state.step + 1)
        tears += torn(state.links.subnet, after.links.subnet)
        closest, state = min(closest, float(pdist(after.positions).min())), after
    found = (scenario.id, name, acceleration, int(state.terminated), state.step, round(closest, 3), tears)
    return dict(zip(COLUMNS, found, strict=True))


def torn(before: np.ndarray, after: np.ndarray) -> int:
    """How many subnets ((n,) labels) of one step are in several pieces in the next."""
    pieces = np.unique(np.stack([before, after], axis=1), axis=0)[:, 0]
    return int((np.bincount(pieces) > 1).sum())


if __name__ == "__main__":
    rows = [fly(case, name, a) for a in ACCELERATIONS for name in METHODS for case in CASES.scenarios()]
    OUT.parent.mkdir(exist_ok=True)
    with OUT.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    for a in ACCELERATIONS:
        for name in METHODS:
            mine = [row for row in rows if (row["method"], row["acceleration_mps2"]) == (name, a)]
            print(name, a, min(row["closest_m"] for row in mine), sum(row["tears"] for row in mine))
