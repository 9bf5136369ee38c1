"""What `--redundant` is worth under outages: how long a network stays one after its flight. results/redundancy.csv.

python benchmarks/redundancy.py

`reach-evolved` reconnects 100 UAVs while every link is out 40 % of the time (2 s on average), with and without
`--redundant`. Then everybody hovers for 20 s: the share of the steps in which the network is one, and how often it
splits. Critical UAVs are those whose loss would split the disc graph at the end of the flight.
"""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np

from phygail.experiments.grid import Grid
from phygail.methods.controller import fly_case
from phygail.swarm.failures import critical_uavs
from phygail.swarm.links import find_links
from phygail.swarm.simulator import step

WORLD, DAMAGE, CASES, SEED = "outages=0.4:2 hold=10", (0.5, 0.75, 0.9), 3, 950000
HOVER = 200  # steps
OUT = Path(__file__).parent.parent / "results" / "redundancy.csv"
COLUMNS = ("scenario", "redundant", "converged", "steps", "flown_m_per_uav", "critical", "connected_share", "splits")


def fly(case: int, *, redundant: bool) -> tuple[object, ...]:
    """One flight and what becomes of its network."""
    scenario = Grid((100,), DAMAGE, CASES, SEED, world=WORLD + " redundant" * redundant).scenario(case)
    episode, _ = fly_case(scenario, "reach-evolved", safety=True, record=True)
    state = episode.states[-1]
    critical = critical_uavs(len(state.positions), find_links(state.positions, scenario.physics.range_m).pairs)
    whole = []
    for _ in range(HOVER):
        state = step(state, np.zeros_like(state.positions), safety=True)
        whole.append(state.links.connected)
    splits = int((np.diff(np.array([True, *whole]).astype(int)) < 0).sum())
    flown = round(episode.metrics.distance_m_per_uav, 1)
    return (
        scenario.id, int(redundant), int(episode.terminated), episode.steps, flown, len(critical),
        round(float(np.mean(whole)), 3), splits,
    )  # fmt: skip


if __name__ == "__main__":
    with OUT.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        for case in (k * CASES + case for case in range(CASES) for k in range(len(DAMAGE))):  # all damage ratios first
            writer.writerows(fly(case, redundant=redundant) for redundant in (False, True))
            file.flush()
