"""Time of the convex planner: seconds per cone program against its limits, and a flight of 10,000 UAVs.

Run: python benchmarks/convex.py
"""

from __future__ import annotations

import time

import numpy as np

from phygail.methods import make_method, run_episode
from phygail.methods.convex.search import shortest_flight
from phygail.rng import generator
from phygail.swarm.scenario import Scenario, draw_scenario
from phygail.swarm.tree import spanning_tree

SEED = 900_000
LIMITS = ((500, 0.05, 0.1, 10), (10_000, 0.5, 3.0, 4))  # UAVs, damage, limit in seconds per solve, repetitions


def seconds_per_solve(scenario: Scenario, repetitions: int) -> float:
    """Median processor time: wall time would charge for what else is running."""
    positions = scenario.spots
    edges, _ = spanning_tree(positions)
    times = []
    for _ in range(repetitions):
        started = time.process_time()
        shortest_flight(positions, edges, scenario.physics.range_m)
        times.append(time.process_time() - started)
    return float(np.median(times))


def main() -> None:
    for uavs, damage, limit_s, repetitions in LIMITS:
        scenario = draw_scenario(uavs, damage, generator(SEED, "benchmark", uavs))
        taken = seconds_per_solve(scenario, repetitions)
        verdict = "ok" if taken <= limit_s else "TOO SLOW"
        print(f"N={uavs} ({len(scenario.alive)} alive): {taken:.3f} s per solve, limit {limit_s} s: {verdict}")
    method = make_method("convex")
    started = time.perf_counter()
    episode = run_episode(scenario, method)
    taken = time.perf_counter() - started
    print(
        f"N={uavs}, damage {damage}: reconnected {episode.terminated} after {episode.steps} steps "
        f"(bound {method.bound_steps}); plan {episode.first_action_s:.1f} s, whole episode {taken:.1f} s"
    )


if __name__ == "__main__":
    main()
