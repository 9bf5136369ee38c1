"""How long a decision takes: view, graph, network and velocities of a policy, in microseconds per alive UAV.

    OMP_NUM_THREADS=1 python benchmarks/decision.py [--policy FILE.onnx] [--uavs 500 10000] [--damage 0.25]

First `phygail-taught` (with another file of its kind if one is named; the time does not depend on the weights), then
`reach-evolved`, at the first step and after a few steps of a flight, and over a stretch of flight at higher damage,
where links are strained; the share of link keeping stands beside it. Last comes `phygail-plus`, links included, if a
policy of it is named with --plus. Measured is the time on the core, not on the wall,
and the fastest run counts: on a busy machine the others lost their cache.
"""

from __future__ import annotations

import argparse
import functools
import sys
import time
from collections.abc import Callable
from pathlib import Path
from unittest import mock

import numpy as np

from phygail.methods.base import Method, make_method
from phygail.methods.phygail import PhygailPlus, PolicyMethod
from phygail.methods.phygail.graph import GraphSpec, perceive
from phygail.methods.steering import keep_links
from phygail.sensing.views import Observer, SubnetViews
from phygail.swarm.scenario import draw_scenario
from phygail.swarm.simulator import SwarmState, step
from phygail.weights import bundled

DAMAGE = 0.25  # as in the measurement of the released implementation: 375 of 500 alive
OURS_TARGET_US = 15.0  # with links kept exactly
PLUS_TARGET_US = 60.0  # beliefs, graph, network and links
FLOWN = 3  # steps before a later decision is timed
STRAINED = (0.5, 0.75)  # damage at which a stretch of flight is timed
STRETCH = 40  # steps
TARGET_US = 80.0  # per alive UAV at N = 500 on one quiet core
TARGET_RATIO = 1.5  # N = 10,000 over N = 500: the cost per UAV does not grow with the swarm


class Flyer(PolicyMethod):
    """Any policy file."""

    name, summary = "flyer", "for timing only"


def fastest_us(act: Callable[[], object], repeats: int, uavs: int) -> float:
    """Shortest of `repeats` runs, microseconds of one core per UAV."""
    times = []
    for _ in range(repeats):
        started = time.thread_time()
        act()
        times.append(time.thread_time() - started)
    return min(times) * 1e6 / uavs


def measure(uavs: int, damage: float, policy: Path, repeats: int) -> tuple[int, float, float, float]:
    """(alive, whole decision, view and graph, network), microseconds per alive UAV."""
    scenario = draw_scenario(uavs, damage, np.random.default_rng(0))
    observer, method = Observer(scenario), Flyer(policy=policy)
    alive = len(scenario.alive)

    def look() -> SubnetViews:
        # A new state each time: links are part of the view and are computed once per state.
        state = SwarmState(scenario, scenario.spots, np.zeros_like(scenario.spots), 0)
        view = observer.observe(state, method.scope)
        assert isinstance(view, SubnetViews)
        return view

    spec: GraphSpec = method.policy.graph_spec
    graph = perceive(look(), spec)
    whole = fastest_us(lambda: method.act_all(look()), repeats, alive)
    seeing = fastest_us(lambda: perceive(look(), spec).edges, repeats, alive)
    return alive, whole, seeing, fastest_us(lambda: method.policy.actions(graph), repeats, alive)


def measure_ours(uavs: int, damage: float, repeats: int, make: Callable[[], Method]) -> tuple[int, float, float]:
    """(alive, first decision, decision after a few steps) of a method, microseconds per alive UAV, links included."""
    scenario = draw_scenario(uavs, damage, np.random.default_rng(0))
    observer, alive = Observer(scenario), len(scenario.alive)

    def decide(method: Method, state: SwarmState) -> np.ndarray:
        # A new state each time: links are part of the view and are computed once per state.
        fresh = SwarmState(scenario, state.positions, state.velocities, state.step)
        return method.velocities(observer.observe(fresh, method.scope))

    start = SwarmState(scenario, scenario.spots, np.zeros_like(scenario.spots), 0)
    first = min(fastest_us(functools.partial(decide, make(), start), 1, alive) for _ in range(repeats))
    method, state = make(), start
    for _ in range(FLOWN):
        state = step(state, decide(method, state))
    return alive, first, fastest_us(lambda: decide(method, state), repeats, alive)


def measure_stretch(uavs: int, damage: float, repeats: int) -> tuple[int, float, float]:
    """(alive, mean decision of a stretch of flight in microseconds per alive UAV, share of it that keeps links)."""
    scenario = draw_scenario(uavs, damage, np.random.default_rng(0))
    alive, best, share = len(scenario.alive), np.inf, 0.0
    for _ in range(repeats):
        observer, method, kept = Observer(scenario), make_method("reach-evolved"), 0.0
        state = SwarmState(scenario, scenario.spots, np.zeros_like(scenario.spots), 0)
        total = 0.0

        def timed(*arguments: object, **options: object) -> np.ndarray:
            nonlocal kept
            started = time.thread_time()
            velocities = keep_links(*arguments, **options)
            kept += time.thread_time() - started
            return velocities

        with mock.patch.object(sys.modules[type(method).__module__], "keep_links", timed):
            while state.step < STRETCH and not state.terminated:
                started = time.thread_time()
                velocities = method.velocities(observer.observe(state, method.scope))
                total += time.thread_time() - started
                state = step(state, velocities)
        if total / state.step < best:
            best, share = total / state.step, kept / total
    return alive, best * 1e6 / alive, share


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--policy", type=Path)
    parser.add_argument("--plus", type=Path, help="a policy of phygail-plus")
    parser.add_argument("--uavs", type=int, nargs="+", default=[500, 10_000])
    parser.add_argument("--damage", type=float, default=DAMAGE)
    parser.add_argument("--repeats", type=int, default=60)
    options = parser.parse_args()
    policy = options.policy or bundled("phygail-taught").with_suffix(".onnx")
    print(f"phygail-taught, damage {options.damage:g}; us per alive UAV")
    print(f"{'N':>6} {'alive':>6} {'decision':>9} {'view+graph':>11} {'network':>8}")
    cost, ours = {}, {}
    # The large swarm takes most of a second per run: fewer of them, but enough that the fastest is a quiet one.
    repeats = {uavs: max(20, options.repeats * 500 // max(500, uavs)) for uavs in options.uavs}
    for uavs in options.uavs:
        alive, cost[uavs], seeing, network = measure(uavs, options.damage, policy, repeats[uavs])
        print(f"{uavs:>6} {alive:>6} {cost[uavs]:>9.1f} {seeing:>11.1f} {network:>8.1f}")
    print(f"reach-evolved, damage {options.damage:g}; us per alive UAV")
    print(f"{'N':>6} {'alive':>6} {'first':>9} {'later':>11}")
    for uavs in options.uavs:
        alive, begin, ours[uavs] = measure_ours(
            uavs, options.damage, repeats[uavs], functools.partial(make_method, "reach-evolved")
        )
        print(f"{uavs:>6} {alive:>6} {begin:>9.1f} {ours[uavs]:>11.1f}")
    print("reach-evolved, mean over a stretch of flight; us per alive UAV")
    print(f"{'N':>6} {'damage':>6} {'alive':>6} {'decision':>9} {'links':>6}")
    for damage in STRAINED:
        alive, mean, share = measure_stretch(options.uavs[0], damage, 5)
        print(f"{options.uavs[0]:>6} {damage:>6g} {alive:>6} {mean:>9.1f} {share:>6.0%}")
    first, last = options.uavs[0], options.uavs[-1]
    targets = [("phygail-taught", cost, TARGET_US), ("reach-evolved", ours, OURS_TARGET_US)]
    if options.plus is not None:
        make = functools.partial(PhygailPlus, policy=options.plus)
        found = {uavs: measure_ours(uavs, options.damage, repeats[uavs], make)[2] for uavs in options.uavs}
        targets.append(("phygail-plus", found, PLUS_TARGET_US))
    for name, found, target in targets:
        print(f"{name} at N = {first}: {found[first]:.1f} us (target {target:g})")
        print(f"{name}, N = {last} over N = {first}: {found[last] / found[first]:.2f} (target {TARGET_RATIO:g})")


if __name__ == "__main__":
    main()
