"""Whether the braking filter keeps its promise: flights judged by the checker, in results/inertia/contacts.csv.

python benchmarks/contacts.py [METHOD ...]

Every decentralized method flies 25 swarms of 50 UAVs in each of four settings: 3 and 5 m/s^2, lag 0 and 0.25 s, with
the safety filter on. `swarm.soak`, which shares no code with simulator and filter, says how close any pair came in
continuous time, and by how much closer than min(10 m, its distance at the start). Run again to resume.
"""

from __future__ import annotations

import csv
import sys
from pathlib import Path

import numpy as np

from phygail.experiments.grid import Grid
from phygail.methods.base import METHODS, why_not
from phygail.methods.controller import fly_case
from phygail.sensing.views import Scope
from phygail.swarm.soak import closest_m

DAMAGE, CASES, SEED = (0.3, 0.5, 0.7, 0.8, 0.9), 5, 940000
SETTINGS = tuple((accel, lag) for accel in (3.0, 5.0) for lag in (0.0, 0.25))  # m/s^2, s
OUT = Path(__file__).parent.parent / "results" / "inertia" / "contacts.csv"
COLUMNS = ("scenario", "method", "acceleration_mps2", "lag_s", "converged", "steps", "closest_m", "short_m")


def decentralized() -> list[str]:
    """Names of the methods that do not see everything and can fly here."""
    return [name for name in METHODS if METHODS.get(name).scope is not Scope.GLOBAL and not why_not(name)]


def grid(accel: float, lag: float) -> Grid:
    """The swarms of a setting; the same layouts in all of them."""
    return Grid((50,), DAMAGE, CASES, SEED, world=f"accel={accel:g} lag={lag:g}" if lag else f"accel={accel:g}")


def fly(case: int, name: str, accel: float, lag: float) -> tuple[object, ...]:
    """One flight, judged by the checker."""
    scenario = grid(accel, lag).scenario(case)
    episode, _ = fly_case(scenario, name, safety=True, record=True)
    trace = np.stack([state.positions for state in episode.states])
    i, j = np.triu_indices(trace.shape[1], 1)
    start, close = np.hypot(*(trace[0, i] - trace[0, j]).T), closest_m(trace)
    short = max(0.0, float((np.minimum(scenario.physics.contact_m, start) - close).max()))
    return scenario.id, name, accel, lag, int(episode.terminated), episode.steps, f"{close.min():.4f}", f"{short:.3g}"


def main() -> None:
    """Fly what the file lacks, one case after the other for all methods and settings."""
    known = set()
    if OUT.exists():
        with OUT.open(encoding="utf-8", newline="") as file:
            known = {(r["scenario"], r["method"], r["acceleration_mps2"], r["lag_s"]) for r in csv.DictReader(file)}
    names = sys.argv[1:] or decentralized()
    with OUT.open("a", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        if not known:
            writer.writerow(COLUMNS)
        for case in range(len(DAMAGE) * CASES):
            for accel, lag in SETTINGS:
                case_id = grid(accel, lag).ids()[case]
                for name in names:
                    if (case_id, name, str(accel), str(lag)) not in known:
                        writer.writerow(fly(case, name, accel, lag))
                file.flush()


if __name__ == "__main__":
    main()
