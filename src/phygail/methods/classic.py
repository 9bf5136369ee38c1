"""What the six classic methods of the paper's Table I share (METHODS 9.1): plan once, then fly; few UAVs move.

All lengths scale with the radio range (`Physics.unit`), so that a swarm in other units flies the same steps; the
constants are those of 120 m.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from functools import cached_property

import numpy as np

from phygail.config import LINK_TOLERANCE_M, Physics
from phygail.methods.base import SubnetMethod
from phygail.methods.planning import PlanMethod
from phygail.methods.steering import go
from phygail.sensing.views import GlobalView, SubnetView, SubnetViews
from phygail.swarm.failures import neighbor_lists
from phygail.swarm.links import find_links, label_subnets, near_pairs

PLAN_MARGIN_M = 1e-3  # plans are connected at R - this
_FEASIBLE = 1e-11  # of the radius, 1.2 nm at 120 m: a point outside a disc by less counts as inside
_DECIMALS = 6  # lengths that decide are compared to the micrometer

Neighbors = list[list[int]]


def plan_range(physics: Physics) -> float:
    """R_plan = R - 1 mm: rounding cannot break a planned link, and a link of 119.95 m needs no mover."""
    return physics.range_m - PLAN_MARGIN_M * physics.unit


def rounded(length_m: float | np.ndarray, physics: Physics) -> np.ndarray:
    """Lengths as they are compared: to the micrometer, so that rounding decides nothing (METHODS G2-G4)."""
    return np.round(np.asarray(length_m) / physics.unit, _DECIMALS)


def distances(points: np.ndarray, point: np.ndarray) -> np.ndarray:
    """(n,) m from `points` ((n, 2)) to `point`."""
    return np.hypot(points[:, 0] - point[0], points[:, 1] - point[1])


def linked(points: np.ndarray, physics: Physics) -> Neighbors:
    """The neighbors of every UAV at `points` ((n, 2) m)."""
    return neighbor_lists(len(points), near_pairs(points, physics.range_m + LINK_TOLERANCE_M)[0])


def network_is_one(points: np.ndarray, physics: Physics) -> bool:
    """Whether UAVs at `points` ((n, 2) m) are one network."""
    return find_links(points, physics.range_m).connected


# --- the cascade -----------------------------------------------------------------------------------------------------


def project(point: np.ndarray, centers: np.ndarray, radius_m: float) -> np.ndarray | None:
    """The point nearest to `point` ((2,) m) that lies in all discs about `centers` ((k, 2) m); None if there is none.

    Exact: it is the point itself, its projection onto one of the circles, or an intersection of two of them.
    """
    slack = radius_m * (1 + _FEASIBLE)
    away = distances(centers, point)
    if (away <= slack).all():
        return point
    outside = away > slack
    onto = centers[outside] + (point - centers[outside]) * (radius_m / away[outside])[:, None]
    candidates = np.vstack([onto, _crossings(centers, radius_m)])
    apart = np.hypot(*(candidates[:, None] - centers[None]).transpose(2, 0, 1))
    candidates = candidates[(apart <= slack).all(axis=1)]
    return candidates[distances(candidates, point).argmin()] if len(candidates) else None


def _crossings(centers: np.ndarray, radius_m: float) -> np.ndarray:
    """(k, 2) m, where circles of one radius about each two of `centers` cross."""
    i, j = np.triu_indices(len(centers), 1)
    middle, half = (centers[i] + centers[j]) / 2, (centers[j] - centers[i]) / 2
    length = np.hypot(half[:, 0], half[:, 1])
    crossing = (length > 0) & (length <= radius_m)
    middle, half, length = middle[crossing], half[crossing], length[crossing]
    normal = np.stack([-half[:, 1], half[:, 0]], axis=1) * (np.sqrt(radius_m**2 - length**2) / length)[:, None]
    return np.vstack([middle + normal, middle - normal])


def follow(
    positions: np.ndarray,
    neighbors: Neighbors,
    targets: np.ndarray,
    movers: Iterable[int],
    settled: Iterable[int],
    range_m: float,
) -> tuple[np.ndarray, list[int]]:
    """UAVs that would lose their parent follow just far enough, level by level (METHODS 9.1).

    Every UAV is treated once. At the targets each treated UAV hears a parent, so the subnet stays together if movers
    and settled UAVs are together (Lemma 9.3).

    Args:
        positions: (m, 2) m, the subnet. neighbors: Its links at t = 0.
        targets: (m, 2) m; those of `movers` count.
        movers: Rows that fly. settled: Rows that stay whatever happens.
        range_m: R_plan.

    Returns:
        (m, 2) m targets of all; the followers that move, in order.
    """
    targets, level, followers = targets.copy(), sorted(movers), []
    done = {*level, *settled}
    while level:
        parents: dict[int, list[int]] = {}
        for parent in level:
            for child in neighbors[parent]:
                if child not in done:
                    parents.setdefault(child, []).append(parent)
        moving = []
        for child in sorted(parents):
            places = targets[parents[child]]
            away = distances(places, positions[child])
            if (away <= range_m).all():
                continue
            place = project(positions[child], places, range_m)
            if place is None:
                place = project(positions[child], places[[away.argmin()]], range_m)
            assert place is not None  # one disc is never empty
            targets[child] = place
            moving.append(child)
        done |= set(parents)
        followers += moving
        level = moving
    return targets, followers


# --- what a subnet believes ------------------------------------------------------------------------------------------


class Belief:
    """What the members of one subnet infer from the roster: the failed beside them, and the UAVs that may live beyond.

    Attributes:
        physics: Radio and vehicle.
        roster: (N, 2) m. members: (m,) int. positions: (m, 2) m. rows: Row of each member by its roster index.
        before: The neighbors of every UAV before the damage (G0), by roster index.
        failed: K_S, the damaged in range of a member, sorted.
    """

    def __init__(self, view: SubnetView, before: Neighbors) -> None:
        self.physics = view.mission.physics
        self.roster, self.members, self.positions = view.roster, view.members, view.positions
        self.rows = {int(uav): row for row, uav in enumerate(view.members)}
        self.before = before
        self.failed = sorted(set(view.damaged_in_range[:, 1].tolist()))
        self._pairs, self._heard = view.pairs, view.damaged_in_range

    @cached_property
    def neighbors(self) -> Neighbors:
        """Links of the subnet now, by row."""
        return neighbor_lists(len(self.members), self._pairs)

    @cached_property
    def answered(self) -> list[int]:
        """The failed UAVs that had a neighbor outside this subnet: only those were critical for it."""
        near = {*self.rows, *self.failed}
        return [f for f in self.failed if any(other not in near for other in self.before[f])]

    def hearers(self, failed: int) -> np.ndarray:
        """Rows of the members that have `failed` in their range and hear no answer, ascending."""
        return self._heard[self._heard[:, 1] == failed, 0]

    def away(self, failed: int) -> np.ndarray:
        """(m,) m from every member to the spot of `failed`."""
        return distances(self.positions, self.roster[failed])

    @cached_property
    def block(self) -> np.ndarray:
        """(N,) int, components of G0 without K_S; -1 for K_S. One of them is this subnet (Lemma 9.1)."""
        failed = np.zeros(len(self.roster), dtype=bool)
        failed[self.failed] = True
        pairs = [
            (a, b) for a, others in enumerate(self.before) if not failed[a] for b in others if a < b and not failed[b]
        ]
        label, _ = label_subnets(len(self.roster), np.array(pairs, dtype=np.intp).reshape(-1, 2))
        return np.where(failed, -1, label)


# --- plan once, then fly ---------------------------------------------------------------------------------------------


class SubnetPlan(SubnetMethod):
    """Each subnet plans by itself when it is first seen; its members then fly straight to their targets.

    Attributes:
        messages: Broadcasts that the rule needs, by METHODS 9.9.
        plans: Whether it plans ahead, and so plans again where UAVs are lost in flight (`methods.controller`).
    """

    plans = True

    def __init__(self, rng: np.random.Generator | None = None) -> None:
        super().__init__(rng)
        self.messages = 0
        self._places: np.ndarray | None = None  # (N, 2) m by roster index
        self._planned = self._moving = np.empty(0, dtype=bool)  # (N,)
        self._before: tuple[np.ndarray, Neighbors] | None = None

    @abstractmethod
    def plan(self, belief: Belief) -> np.ndarray:
        """(m, 2) m, finite targets of the members of one subnet, from what it knows at t = 0."""

    @property
    def targets(self) -> np.ndarray | None:
        """(n, 2) m, targets of all that planned, by roster index; None before the first plan."""
        return None if self._places is None else self._places[self._planned]

    def act(self, view: SubnetView) -> np.ndarray:
        self._prepare(view)
        return self._fly(view)

    def act_all(self, views: SubnetViews) -> np.ndarray:
        if self._places is None or not self._planned[views.members].all():
            for view in views:
                self._prepare(view)
        return self._fly(views)

    def _fly(self, view: SubnetView | SubnetViews) -> np.ndarray:
        assert self._places is not None
        command = go(view.positions, self._places[view.members], view.mission.physics, view.mission.map)
        return np.where(self._moving[view.members][:, None], command, 0.0)  # a UAV that need not move stays

    def _prepare(self, view: SubnetView) -> None:
        """Plan for a subnet that has no plan; a UAV that joins a subnet with a plan keeps its own."""
        if self._places is None:
            self._places = np.array(view.roster)
            self._planned, self._moving = np.zeros((2, len(view.roster)), dtype=bool)
        fresh = ~self._planned[view.members]
        if not fresh.any():
            return
        targets = self.plan(Belief(view, self._neighbors_before(view))) if fresh.all() else view.positions
        members = view.members[fresh]
        self._places[members] = targets[fresh]
        self._moving[members] = (targets[fresh] != view.positions[fresh]).any(axis=1)
        self._planned[members] = True

    def _neighbors_before(self, view: SubnetView) -> Neighbors:
        if self._before is None or not np.array_equal(self._before[0], view.roster):
            self._before = view.roster, linked(view.roster, view.mission.physics)
        return self._before[1]


class GlobalPlan(PlanMethod):
    """As `PlanMethod`; a UAV that is planned to stay gets exactly zero.

    Attributes:
        messages: Reports and orders that the rule needs, by METHODS 9.9.
    """

    def __init__(self, rng: np.random.Generator | None = None) -> None:
        super().__init__(rng)
        self.messages = 0
        self._moving: np.ndarray | None = None  # (n,) bool

    def act(self, view: GlobalView) -> np.ndarray:
        command = super().act(view)
        if self._moving is None:
            self._moving = np.any(self.targets != view.positions, axis=1)
        return np.where(self._moving[:, None], command, 0.0)
