"""How much of the map a swarm watches: cells whose middle is within sensing radius of a UAV (METHODS 9.1)."""

from __future__ import annotations

import numpy as np

from phygail.config import InputError

SENSING_SHARE = 1 / 2  # sensing radius over radio range: 60 m at 120 m
CELL_SHARE = 1 / 24  # side of a cell over radio range: 5 m at 120 m
MOST_CELLS = 4_096  # along a side of the map: 20 km at 120 m
_ROUNDING = 1e-9  # of the sensing radius: a cell exactly on the rim is watched


class Watch:
    """A grid over the map that counts how many UAVs watch each cell.

    Cells are laid out from the middle of the map, so that turning the scene about it turns the grid onto itself. The
    map is the square of side W about the center; where that is not its center, about the middle of the layout.

    Attributes:
        cell_m: Side of a cell.
        radius_m: Sensing radius r_s.
        counts: (m, m) int, UAVs that watch each cell.
    """

    def __init__(self, layout: np.ndarray, center: np.ndarray, width_m: float, range_m: float) -> None:
        self.cell_m, self.radius_m = CELL_SHARE * range_m, SENSING_SHARE * range_m
        middle = center
        if (np.abs(layout - center) > width_m / 2 * (1 + _ROUNDING)).any():
            middle = (layout.min(axis=0) + layout.max(axis=0)) / 2
        if not fits(width_m, range_m):
            raise InputError(
                f"a map {width_m:g} m wide has more than {MOST_CELLS:,} cells of {self.cell_m:g} m along its side: "
                "use a narrower map or a longer radio range"
            )
        half = int(np.floor(width_m / 2 / self.cell_m + 0.5 + _ROUNDING))  # cells on either side of the middle
        self._lines = np.add.outer((np.arange(-half, half) + 0.5) * self.cell_m, middle)  # (m, 2) x and y of the cells
        self.counts = np.zeros((2 * half, 2 * half), dtype=np.int16)

    def add(self, points: np.ndarray, sign: int = 1) -> None:
        """UAVs appear at `points` ((k, 2) m), or leave them (`sign` -1)."""
        for point in points:
            window, inside = self._disc(point)
            self.counts[window] += sign * inside

    @property
    def area_m2(self) -> float:
        """What is watched."""
        return float(np.count_nonzero(self.counts)) * self.cell_m**2

    def lost_m2(self, leave: np.ndarray, enter: np.ndarray) -> float:
        """By how much the watched area shrinks if one UAV flies from `leave` to `enter` ((2,) m each)."""
        window, inside = self._disc(leave)
        place, there = self._disc(enter)
        gone = (self.counts[window] == 1) & inside
        self.counts[window] -= inside
        won = (self.counts[place] == 0) & there
        self.counts[window] += inside
        return float(np.count_nonzero(gone) - np.count_nonzero(won)) * self.cell_m**2

    def _disc(self, point: np.ndarray) -> tuple[tuple[slice, slice], np.ndarray]:
        """The cells around a point: their window, and (a, b) bool which of them it watches."""
        reach = self.radius_m * (1 + _ROUNDING)
        spans = [
            slice(*np.searchsorted(line, (at - reach, at + reach)))
            for line, at in zip(self._lines.T, point, strict=True)
        ]
        dx, dy = (line[span] - at for line, span, at in zip(self._lines.T, spans, point, strict=True))
        return (spans[0], spans[1]), np.add.outer(dx**2, dy**2) <= reach**2


def fits(width_m: float, range_m: float) -> bool:
    """Whether a map is narrow enough for a grid."""
    return width_m / (CELL_SHARE * range_m) <= MOST_CELLS


def watched_m2(points: np.ndarray, layout: np.ndarray, center: np.ndarray, width_m: float, range_m: float) -> float:
    """Area of the map that UAVs at `points` ((n, 2) m) watch; the other arguments say which map (`Watch`)."""
    watch = Watch(layout, center, width_m, range_m)
    watch.add(points)
    return watch.area_m2
