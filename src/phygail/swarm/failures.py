"""Failures of single UAVs: critical UAVs, cases in which one of them fails, and what is still watched (METHODS 9.1,
9.9).
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from phygail.config import InputError, Physics
from phygail.swarm.layout import LEAST_ALIVE, check_size, draw_layout, width_for
from phygail.swarm.links import find_links
from phygail.swarm.scenario import Scenario, make_scenario

SENSING_SHARE = 1 / 2  # sensing radius over radio range: 60 m at 120 m
CELL_SHARE = 1 / 24  # side of a cell over radio range: 5 m at 120 m
MOST_CELLS = 4_096  # along a side of the map: 20 km at 120 m
_ROUNDING = 1e-9  # of the sensing radius: a cell exactly on the rim is watched

Kind = Literal["single", "region"]  # the other failures: spread over the swarm, or next to the critical UAV
KINDS: tuple[Kind, ...] = ("single", "region")
REDRAWS = 2_000  # layouts drawn before a setting counts as one without critical UAVs


class Watch:
    """A grid over the map that counts how many UAVs watch each cell.

    Cells are laid out from the middle of the map, so that turning the scene about the middle turns the grid onto
    itself. The map is the square of side W about the center, or about the middle of the layout if the center is not
    the center of the map.

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
        """The area that is watched."""
        return float(np.count_nonzero(self.counts)) * self.cell_m**2

    def lost_m2(self, leave: np.ndarray, enter: np.ndarray) -> float:
        """By how much the watched area shrinks if one UAV flies from `leave` to `enter` ((2,) m each)."""
        window, inside = self._disc(leave)
        place, there = self._disc(enter)
        unwatched = (self.counts[window] == 1) & inside
        self.counts[window] -= inside
        won = (self.counts[place] == 0) & there
        self.counts[window] += inside
        return float(np.count_nonzero(unwatched) - np.count_nonzero(won)) * self.cell_m**2

    def _disc(self, point: np.ndarray) -> tuple[tuple[slice, slice], np.ndarray]:
        """The cells around a point: their window, and (a, b) bool which of them it watches."""
        radius_m = self.radius_m * (1 + _ROUNDING)
        spans = [
            slice(*np.searchsorted(line, (at - radius_m, at + radius_m)))
            for line, at in zip(self._lines.T, point, strict=True)
        ]
        dx, dy = (line[span] - at for line, span, at in zip(self._lines.T, spans, point, strict=True))
        return (spans[0], spans[1]), np.add.outer(dx**2, dy**2) <= radius_m**2


def fits(width_m: float, range_m: float) -> bool:
    """Whether a map is narrow enough for a grid."""
    return width_m / (CELL_SHARE * range_m) <= MOST_CELLS


def watched_m2(points: np.ndarray, layout: np.ndarray, center: np.ndarray, width_m: float, range_m: float) -> float:
    """Area of the map that UAVs at `points` ((n, 2) m) watch; the other arguments say which map (`Watch`)."""
    watch = Watch(layout, center, width_m, range_m)
    watch.add(points)
    return watch.area_m2


def draw_failures(
    uavs: int,
    failures: int,
    kind: Kind,
    rng: np.random.Generator,
    *,
    name: str = "drawn",
    seed: int | None = None,
    physics: Physics | None = None,
    width_m: float | None = None,
) -> Scenario:
    """A fresh layout that loses a critical UAV, chosen uniformly among those it has, and `failures` - 1 others.

    Layouts are redrawn until one has a critical UAV and its failures split the alive. So these layouts have a weak
    spot; they are not average ones.

    Args:
        uavs: Swarm size N.
        failures: How many fail, k.
        kind: "single": the others are uniform among the rest. "region": they are the nearest to the critical one.
        rng: Source of randomness.
        name: Id of the scenario.
        seed: Recorded in the scenario.
        physics: Radio and vehicle.
        width_m: Side of the map; the paper's (METHODS 2.2), in proportion to the radio range, if None.
    """
    check_size(uavs)
    if not 1 <= failures <= uavs - LEAST_ALIVE:
        raise InputError(f"{failures} failures in a swarm of {uavs}: choose from 1 to {uavs - LEAST_ALIVE}")
    if kind not in KINDS:
        raise InputError(f"source {kind!r}: choose {' or '.join(KINDS)}")
    radio = physics or Physics()
    width = width_for(uavs, radio.range_m) if width_m is None else width_m
    for _ in range(max(20, min(REDRAWS, 2_000_000 // uavs**2))):
        layout = draw_layout(uavs, rng, width, radio)
        critical = critical_uavs(uavs, find_links(layout, radio.range_m).pairs)
        if not critical:
            continue
        first = critical[rng.integers(len(critical))]
        failed = [first, *_others(layout, first, failures - 1, kind, rng)]
        if not find_links(np.delete(layout, failed, axis=0), radio.range_m).connected:
            return make_scenario(name, layout, failed, width_m=width, physics=radio, seed=seed)
    raise InputError(
        f"no layout of {uavs} UAVs drawn on this map is split by {failures} failures with a critical UAV among them: "
        "choose a larger swarm, a wider map or a shorter radio range"
    )


def _others(layout: np.ndarray, first: int, count: int, kind: Kind, rng: np.random.Generator) -> list[int]:
    """The UAVs that fail beside UAV `first`."""
    if kind == "region":
        nearest = np.argsort(np.hypot(*(layout - layout[first]).T), kind="stable")
        return [int(uav) for uav in nearest if uav != first][:count]
    rest = np.delete(np.arange(len(layout)), first)
    return [int(uav) for uav in rng.choice(rest, count, replace=False)]


def critical_uavs(uavs: int, pairs: np.ndarray) -> list[int]:
    """Articulation points of the network, sorted (Hopcroft and Tarjan 1973, without recursion, O(N + links)).

    Args:
        uavs: N.
        pairs: (m, 2) int, links.
    """
    neighbors = neighbor_lists(uavs, pairs)
    found, low = [-1] * uavs, [0] * uavs  # time of discovery; earliest UAV reachable from the subtree
    critical: set[int] = set()
    clock = 0
    for root in range(uavs):
        if found[root] >= 0:
            continue
        found[root] = low[root] = clock
        clock += 1
        branches = 0
        path = [(root, iter(neighbors[root]))]
        while path:
            here, rest = path[-1]
            there = next((n for n in rest if len(path) < 2 or n != path[-2][0]), None)
            if there is None:
                path.pop()
                if path:
                    above = path[-1][0]
                    low[above] = min(low[above], low[here])
                    if above == root:
                        branches += 1
                    elif low[here] >= found[above]:
                        critical.add(above)
            elif found[there] >= 0:
                low[here] = min(low[here], found[there])
            else:
                found[there] = low[there] = clock
                clock += 1
                path.append((there, iter(neighbors[there])))
        if branches > 1:
            critical.add(root)
    return sorted(critical)


def neighbor_lists(uavs: int, pairs: np.ndarray) -> list[list[int]]:
    """The neighbors of every UAV, ascending, from the `pairs` ((m, 2)) of a network of `uavs`."""
    both = np.concatenate([pairs, pairs[:, ::-1]])
    both = both[np.lexsort((both[:, 1], both[:, 0]))]
    stops = np.cumsum(np.bincount(both[:, 0], minlength=uavs))[:-1]
    return [part.tolist() for part in np.split(both[:, 1], stops)]
