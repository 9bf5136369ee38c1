"""Whether DEMD's guarded profile may stand for the faithful one (METHODS 3.5): at most 1.1 times its steps.

Run: python benchmarks/demd_profiles.py
"""

from __future__ import annotations

import time

import numpy as np

from phygail.methods import make_method, run_episode
from phygail.rng import generator
from phygail.swarm.scenario import draw_scenario

SEED = 300_000
UAVS = 100
DAMAGE = (0.25, 0.5, 0.75, 0.9, 0.95)
CASES = 2  # per damage ratio
LIMIT = 1.1


def main() -> None:
    steps: dict[str, list[int]] = {"faithful": [], "guarded": []}
    for ratio in DAMAGE:
        for case in range(CASES):
            scenario = draw_scenario(UAVS, ratio, generator(SEED, "benchmark", "demd", round(ratio * 100), case))
            line = f"damage {ratio:4.2f} ({len(scenario.alive):2d} alive)"
            for profile, taken in steps.items():
                method = make_method("demd", profile=profile)
                started = time.process_time()
                episode = run_episode(scenario, method)
                taken.append(episode.scored_steps)
                seconds = time.process_time() - started
                line += f"   {profile} {episode.scored_steps:4d} steps, {seconds:5.1f} s {method.flag}"
            print(line, flush=True)
    faithful, guarded = (float(np.mean(taken)) for taken in steps.values())
    verdict = "accepted" if guarded <= LIMIT * faithful else "REFUSED"
    share = guarded / faithful
    print(f"mean steps: faithful {faithful:.1f}, guarded {guarded:.1f} ({share:.2f} of it): {verdict}")


if __name__ == "__main__":
    main()
