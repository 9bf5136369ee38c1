"""HPC-CR (METHODS 9.7, after Zhang et al. 2019): a backup beside the failed that costs the least coverage."""

from __future__ import annotations

import itertools
import math

import numpy as np

from phygail.config import LINK_TOLERANCE_M, InputError
from phygail.methods.base import register
from phygail.methods.classic import GlobalPlan, distances, linked, plan_range, project, rounded
from phygail.sensing.views import GlobalView
from phygail.swarm.failures import Watch, critical_uavs, fits
from phygail.swarm.links import find_links, near_pairs

FLIGHT_WEIGHT = 0.25  # w: a flight of R counts as much as this share of a sensing disc
NEAREST = 4  # UAVs of each component that a backup may link to
MOST_PLACES = 256  # combinations of them
WIDE = "wide"  # flag: the map is too wide for a coverage grid; nobody moves


@register
class HpcCr(GlobalPlan):
    """The UAV near the failed spot with the smallest J = coverage lost / sensing disc + w flight / R flies there.

    A backup may fly to the spot itself or to the nearest point from which it hears one UAV of every component. If the
    place that it leaves joined components, that place is the next vacant spot. Every UAV moves at most once.
    """

    name = "hpc-cr"
    summary = "the backup that costs the least coverage takes the failed spot (after Zhang et al. 2019)"

    def __init__(self, rng: np.random.Generator | None = None, *, flight_weight: float = FLIGHT_WEIGHT) -> None:
        super().__init__(rng)
        if not (math.isfinite(flight_weight) and flight_weight >= 0):
            raise InputError(f"flight_weight {flight_weight}: give a number from 0 on; {FLIGHT_WEIGHT} is the default")
        self.flight_weight = flight_weight

    def plan(self, view: GlobalView) -> np.ndarray:
        mission = view.mission
        if not fits(mission.width_m, mission.physics.range_m):
            self.flag = WIDE
            return view.positions
        repair = Repair(view, self.flight_weight)
        before = linked(view.roster, mission.physics)
        by_degree = sorted(view.damaged.tolist(), key=lambda f: (-len(before[f]), f))
        for failed in by_degree:
            if find_links(repair.places, mission.physics.range_m).connected:
                break
            repair.fill(view.roster[failed], between=len(view.damaged) == 1)
        self.messages = int(repair.moved.sum())
        return repair.places


class Repair:
    """The places of all UAVs as planned so far, and what is watched from there.

    Attributes:
        places: (n, 2) m. moved: (n,) bool.
        watch: Coverage of the map.
    """

    def __init__(self, view: GlobalView, flight_weight: float) -> None:
        mission = view.mission
        self.physics, self.flight_weight = mission.physics, flight_weight
        self.places, self.moved = view.positions.copy(), np.zeros(len(view.positions), dtype=bool)
        self.watch = Watch(view.roster, mission.center, mission.width_m, mission.physics.range_m)
        self.watch.add(self.places)

    def fill(self, spot: np.ndarray, *, between: bool) -> None:
        """Send backups to `spot` ((2,) m) and then to the places that they leave, until no place is needed.

        Args:
            spot: Where the failed UAV was.
            between: Whether a place between the components will do as well as the spot itself.
        """
        for _ in range(len(self.places)):
            options = self.options(spot, between=between)
            if not options:
                return
            _, row, place = min(options, key=lambda option: option[:2])
            left = self.places[row].copy()
            self.watch.add(left[None], -1)
            self.watch.add(place[None])
            self.places[row] = place
            self.moved[row] = True
            links = find_links(self.places, self.physics.range_m)
            near = distances(self.places, left) <= self.physics.range_m + LINK_TOLERANCE_M
            if len(set(links.subnet[near].tolist())) < 2:
                return
            spot, between = left, False

    def options(self, spot: np.ndarray, *, between: bool) -> list[tuple[tuple[float, float], int, np.ndarray]]:
        """((J, m), row, place) of every candidate and place."""
        rows, cut = self.candidates(spot)
        found = []
        for row in rows:
            places = [spot]
            if between and row not in cut:
                places += self.places_between(row, spot)
            for place in places:
                flight = float(np.hypot(*(place - self.places[row])))
                found.append(((self.score(row, place, flight), float(rounded(flight, self.physics))), row, place))
        return found

    def score(self, row: int, place: np.ndarray, flight_m: float) -> float:
        """J of sending `row` to `place` ((2,) m)."""
        disc = math.pi * self.watch.radius_m**2
        lost = self.watch.lost_m2(self.places[row], place) / disc
        return round(lost + self.flight_weight * flight_m / self.physics.range_m, 9)

    def candidates(self, spot: np.ndarray) -> tuple[list[int], set[int]]:
        """(rows that may take `spot`, cut vertices of the network with it filled)."""
        points = np.vstack([self.places, spot])
        hears = linked(points, self.physics)
        cut = set(critical_uavs(len(points), near_pairs(points, self.physics.range_m + LINK_TOLERANCE_M)[0]))
        near = [row for row in hears[-1] if not self.moved[row]]
        free = [row for row in near if row not in cut]
        if not free:
            second = sorted({n for row in hears[-1] for n in hears[row]} - {len(self.places), *hears[-1]})
            free = [row for row in second if row not in cut and not self.moved[row]]
        return free or near, cut

    def places_between(self, row: int, spot: np.ndarray) -> list[np.ndarray]:
        """The point nearest to `row` from which it hears one UAV of every component of the others; none or one."""
        others = np.delete(np.arange(len(self.places)), row)
        subnet = find_links(self.places[others], self.physics.range_m).subnet
        near = distances(self.places[others], spot) <= self.physics.range_m + LINK_TOLERANCE_M
        away = rounded(distances(self.places[others], self.places[row]), self.physics)
        choices = []
        for label in range(int(subnet.max()) + 1):
            mine = np.flatnonzero((subnet == label) & near)
            choices.append(others[mine[np.argsort(away[mine], kind="stable")][:NEAREST]])
        best: tuple[float, np.ndarray] | None = None
        for ties in itertools.islice(itertools.product(*choices), MOST_PLACES):
            place = project(self.places[row], self.places[list(ties)], plan_range(self.physics))
            if place is not None:
                flight = float(np.hypot(*(place - self.places[row])))
                if best is None or flight < best[0]:
                    best = flight, place
        return [] if best is None else [best[1]]
