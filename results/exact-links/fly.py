"""Fly a rule on the 200 fresh cases of this folder, whole, and watch its subnets.

    python results/exact-links/fly.py reach exact results/exact-links/reach.csv

writes a row per case: steps, whether the network is one, and in how many steps a subnet has torn. The second word only
names the rows: with the package of another commit on PYTHONPATH the same command flies the rule of that commit. Rows
that are there are not flown again.
"""

from __future__ import annotations

import csv
import itertools
import sys
from pathlib import Path

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from scipy.spatial import cKDTree

from phygail import draw_scenario, run_episode
from phygail.rng import generator

SEED = 160002
SETTINGS = ((200, 0.85), (500, 0.75), (500, 0.85), (500, 0.95))
CASES = 50
COLUMNS = ("method", "links", "uavs", "damage", "case", "steps", "reconnected", "tears")


def subnets(positions: np.ndarray, range_m: float) -> np.ndarray:
    """(n,) label of everybody's subnet, by a second program: nothing of the package is used."""
    pairs = cKDTree(positions).query_pairs(range_m + 1e-6, output_type="ndarray")
    n = len(positions)
    return connected_components(coo_array((np.ones(len(pairs)), (pairs[:, 0], pairs[:, 1])), shape=(n, n)), False)[1]


def count_tears(places: list[np.ndarray], range_m: float) -> int:
    """Steps after which two who were in one subnet are in two."""
    labels = [subnets(positions, range_m) for positions in places]
    pairs = itertools.pairwise(labels)
    return sum(len(np.unique(np.stack([one, other]), axis=1).T) > one.max() + 1 for one, other in pairs)


def main() -> None:
    """Fly what is missing; every row is on disk as soon as it is known."""
    method, links, file = sys.argv[1], sys.argv[2], Path(sys.argv[3])
    rows = list(csv.reader(file.open(encoding="utf-8"))) if file.exists() else [list(COLUMNS)]
    known = {tuple(row[:5]) for row in rows}
    for case in range(CASES):
        for uavs, damage in SETTINGS:
            key = (method, links, str(uavs), str(damage), str(case))
            if key in known:
                continue
            scenario = draw_scenario(uavs, damage, generator(SEED, "accept", uavs, int(1000 * damage), case))
            episode = run_episode(scenario, method, record=True)
            tears = count_tears([state.positions for state in episode.states], scenario.physics.range_m)
            rows.append([*key, str(episode.steps), str(int(episode.terminated)), str(tears)])
            with file.open("w", encoding="utf-8", newline="") as out:
                csv.writer(out, lineterminator="\n").writerows(rows)


if __name__ == "__main__":
    main()
