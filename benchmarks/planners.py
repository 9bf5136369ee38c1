"""The learned planners on the 40 cases of results/all-methods: against center-fly and the contraction operator alone.

Run: python benchmarks/planners.py [SEED]
"""

from __future__ import annotations

import sys
import time

from phygail.experiments.grid import Grid
from phygail.methods import make_method, run_episode
from phygail.methods.planning import PlanMethod, contraction_plan, largest_move_m
from phygail.swarm.scenario import Scenario

UAVS = 100
DAMAGE = (0.25, 0.5, 0.75, 0.9)
CASES = 10  # per damage ratio


def operator_move_m(scenario: Scenario) -> float:
    """Largest displacement of the plan of the contraction operator alone."""
    return largest_move_m(scenario.spots, contraction_plan(scenario.spots, scenario.physics.range_m))


def main(seed: int) -> None:
    cases = Grid((UAVS,), DAMAGE, CASES, seed).scenarios()
    straight = sum(run_episode(case, "center-fly").scored_steps for case in cases)
    print(f"center-fly: {straight / len(cases):.1f} steps")
    for name in ("cr-mgc", "gdr-ts", "demd"):
        reconnected = steps = flags = smaller = 0
        started = time.process_time()
        for case in cases:
            method = make_method(name)
            assert isinstance(method, PlanMethod)
            episode = run_episode(case, method)
            assert method.targets is not None
            reconnected += episode.terminated
            steps += episode.scored_steps
            flags += bool(method.flag)
            smaller += largest_move_m(case.spots, method.targets) < operator_move_m(case)
        seconds = (time.process_time() - started) / len(cases)
        print(
            f"{name}: reconnected {reconnected} of {len(cases)}, {steps / len(cases):.1f} steps "
            f"({steps / straight:.3f} of center-fly), {flags} fallbacks, a smaller largest displacement than "
            f"the operator's plan in {smaller}, {seconds:.1f} s of processor time per case",
            flush=True,
        )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 0)
