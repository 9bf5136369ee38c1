"""How long a decision takes: view, graph, network and velocities of a policy, in microseconds per alive UAV.

    OMP_NUM_THREADS=1 python benchmarks/decision.py [--policy FILE.onnx] [--uavs 500 10000] [--repeats 60]

Without a policy file, one with fresh weights is exported first (the time does not depend on their values). Measured is
the time on the core, not on the wall, and the fastest run counts: on a busy machine the others lost their cache.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from phygail.methods.policy import PolicyMethod
from phygail.perception.graph import GraphSpec, perceive
from phygail.perception.view import Observer, SubnetViews
from phygail.swarm.scenario import draw_scenario
from phygail.swarm.state import SwarmState

DAMAGE = 0.25
TARGET_US = 80.0  # per alive UAV at N = 500 on one quiet core
TARGET_RATIO = 1.5  # N = 10,000 over N = 500: the cost per UAV does not grow with the swarm


class Pilot(PolicyMethod):
    """Any policy file."""

    name, summary = "pilot", "for timing only"


def fastest_us(act: Callable[[], object], repeats: int, uavs: int) -> float:
    """Shortest of `repeats` runs, microseconds of one core per UAV."""
    times = []
    for _ in range(repeats):
        started = time.thread_time()
        act()
        times.append(time.thread_time() - started)
    return min(times) * 1e6 / uavs


def measure(uavs: int, policy: Path, repeats: int) -> tuple[int, float, float, float]:
    """(alive, whole decision, view and graph, network), microseconds per alive UAV."""
    scenario = draw_scenario(uavs, DAMAGE, np.random.default_rng(0))
    observer, pilot = Observer(scenario), Pilot(policy=policy)
    alive = len(scenario.alive)

    def look() -> SubnetViews:
        # A new state each time: links are part of the view and are computed once per state.
        state = SwarmState(scenario, scenario.spots, np.zeros_like(scenario.spots), 0)
        view = observer.observe(state, pilot.scope)
        assert isinstance(view, SubnetViews)
        return view

    spec: GraphSpec = pilot.policy.graph_spec
    graph = perceive(look(), spec)
    whole = fastest_us(lambda: pilot.act_all(look()), repeats, alive)
    seeing = fastest_us(lambda: perceive(look(), spec).edges, repeats, alive)
    return alive, whole, seeing, fastest_us(lambda: pilot.policy.actions(graph), repeats, alive)


def fresh_policy(folder: str) -> Path:
    from phygail.models.actor import Actor
    from phygail.models.export import export_actor
    from phygail.models.initial import seeded

    with seeded(0):
        actor = Actor()
    return export_actor(actor, GraphSpec(), Path(folder) / "fresh.onnx")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--policy", type=Path)
    parser.add_argument("--uavs", type=int, nargs="+", default=[500, 10_000])
    parser.add_argument("--repeats", type=int, default=60)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        policy = options.policy or fresh_policy(folder)
        print(f"{'N':>6} {'alive':>6} {'decision':>9} {'view+graph':>11} {'network':>8}   us per alive UAV")
        cost = {}
        for uavs in options.uavs:
            # The large swarm takes seconds per run: fewer of them.
            alive, whole, seeing, network = measure(uavs, policy, max(5, options.repeats * 500 // max(500, uavs)))
            cost[uavs] = whole
            print(f"{uavs:>6} {alive:>6} {whole:>9.1f} {seeing:>11.1f} {network:>8.1f}")
        first, last = options.uavs[0], options.uavs[-1]
        print(f"at N = {first}: {cost[first]:.1f} us (target {TARGET_US:g})")
        print(f"N = {last} over N = {first}: {cost[last] / cost[first]:.2f} (target {TARGET_RATIO:g})")


if __name__ == "__main__":
    main()
