"""Compare methods on a small grid: raw rows, then any statistic you like."""

import tempfile

import polars as pl

from phygail import compare
from phygail.experiments.grid import Grid

grid = Grid(uavs=(50,), damage=(0.3, 0.6), cases=3, seed=1)
with tempfile.TemporaryDirectory() as folder:
    rows = compare(grid, ["sidr", "reach"], folder, workers=1)
print(rows.group_by("method").agg(pl.col("converged").mean(), pl.col("steps").mean()).sort("steps"))
