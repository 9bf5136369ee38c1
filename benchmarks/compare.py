"""How much faster two workers are than one: python benchmarks/compare.py

The episodes of the grid are flown by one worker and by two; start-up of the workers is part of both times, as a user
meets it. The rows must be equal. Meaningful on an idle machine with at least two cores.
"""

from __future__ import annotations

import tempfile
import time

import polars as pl

from phygail.experiments.grid import Grid
from phygail.experiments.rows import TIMINGS
from phygail.experiments.runner import compare

GRID = Grid(uavs=(100, 200), damage=(0.25, 0.5, 0.75, 0.9), cases=20)
METHODS = "center-fly,sidr,reach"


def timed(workers: int) -> tuple[float, pl.DataFrame]:
    with tempfile.TemporaryDirectory() as folder:
        started = time.perf_counter()
        rows = compare(GRID, METHODS, folder, workers=workers)
        return time.perf_counter() - started, rows.drop(TIMINGS)


def main() -> None:
    one, rows = timed(1)
    two, same = timed(2)
    assert rows.equals(same), "the rows depend on the number of workers"
    print(f"{rows.height} episodes: one worker {one:.1f} s, two workers {two:.1f} s, ratio {one / two:.2f}")


if __name__ == "__main__":
    main()
