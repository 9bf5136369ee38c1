"""What a method may know: three scopes, each a type that holds nothing else (METHODS 2.4).

`observe` turns a state into views. A global method gets one `GlobalView`; an intra-subnet method one `SubnetView` per
subnet (bundled in `SubnetViews`); a local method one `LocalView` whose row r holds what UAV r senses itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields, replace
from enum import StrEnum
from functools import cached_property
from typing import Any

import numpy as np
from scipy.spatial import cKDTree

from phygail.config import LINK_TOLERANCE_M, Physics
from phygail.swarm.links import Links, group_means
from phygail.swarm.obstacles import Map
from phygail.swarm.scenario import Scenario
from phygail.swarm.simulator import SwarmState


class Scope(StrEnum):
    """How far a method sees."""

    GLOBAL = "global"
    SUBNET = "intra-subnet"
    LOCAL = "local"


@dataclass(frozen=True)
class Mission:
    """What every UAV was told before the damage.

    Attributes:
        center: (2,) m, the shared reference c.
        width_m: Side W of the map.
        physics: Radio and vehicle.
        budget_steps: T_max.
        losses: Whether UAVs may be lost, or links fail, in flight.
        silence: Whether a place within radio range from which nobody answers is known to be empty.
        map: The obstacles and the ways around them; None without any.
        coast_m: The distance in which a vehicle at full speed stops; links are kept shorter by so much.
        lead_steps: Steps that may be lost on the way to the center: the aggregation phase begins so much earlier.
        pace: Share of a stride that is certain against the wind.
        arrive: Whether it must lead to the center itself, and not only within half of the radio range of it.
    """

    center: np.ndarray
    width_m: float
    physics: Physics
    budget_steps: int
    losses: bool = False
    silence: bool = True
    map: Map | None = None
    coast_m: float = 0.0
    lead_steps: int = 0
    pace: float = 1.0
    arrive: bool = False


@dataclass(frozen=True, eq=False)
class GlobalView:
    """Everything.

    Attributes:
        mission: Shared before the damage.
        step: t.
        roster: (N, 2) m, positions before the damage.
        members: (n,) int, roster indices of the alive.
        positions: (n, 2) m. velocities: (n, 2) m/s, executed in the step before.
        links: The network of the alive, rows as in `positions`.
        heights: (n,) m; None in one layer.
    """

    mission: Mission
    step: int
    roster: np.ndarray
    members: np.ndarray
    positions: np.ndarray
    velocities: np.ndarray
    links: Links
    heights: np.ndarray | None = None

    @cached_property
    def damaged(self) -> np.ndarray:
        """(k,) int, roster indices of the damaged."""
        return np.setdiff1d(np.arange(len(self.roster)), self.members)


@dataclass(frozen=True, eq=False)
class News:
    """The members of a subnet as the others know them where news takes time (`sensing.imperfect`).

    Attributes:
        positions: (n, 2) m. velocities: (n, 2) m/s.
        delay_steps: Steps that news takes. In the first steps of a flight the news is that of t = 0.
    """

    positions: np.ndarray
    velocities: np.ndarray
    delay_steps: int

    def of(self, rows: np.ndarray) -> News:
        """The news of some members ((k,) int, rows)."""
        return replace(self, positions=self.positions[rows], velocities=self.velocities[rows])


_ROW = {"per": "row"}  # a field with one entry per UAV


@dataclass(frozen=True, eq=False, kw_only=True)
class _Members:
    """What UAVs know of their own subnet, of one (`SubnetView`) or of all at once (`SubnetViews`).

    A further field with a default reaches every view of a subnet: fields marked `_ROW` hold one entry per UAV, the
    others hold for all.
    """

    mission: Mission
    step: int
    roster: np.ndarray
    members: np.ndarray = field(metadata=_ROW)
    positions: np.ndarray = field(metadata=_ROW)
    velocities: np.ndarray = field(metadata=_ROW)
    pairs: np.ndarray
    lengths: np.ndarray
    news: News | None = None
    age_s: float = 0.0
    _rows: np.ndarray = field(metadata=_ROW)  # of the alive
    _damaged_near: Callable[[np.ndarray], np.ndarray]
    _wrecks: np.ndarray | None = None  # (N, 2) m, where the damaged lie; None: at their spots of the roster

    @cached_property
    def damaged_in_range(self) -> np.ndarray:
        """(k, 2) int (row, roster index) of damaged UAVs within radio range: recognizable as damaged."""
        return self._damaged_near(self._rows)

    @cached_property
    def damaged_spots(self) -> np.ndarray:
        """(k, 2) m, where those of `damaged_in_range` lie."""
        return (self.roster if self._wrecks is None else self._wrecks)[self.damaged_in_range[:, 1]]

    def _fields(self) -> dict[str, Any]:
        """The fields that views of one subnet and of all share."""
        return {name: getattr(self, name) for name in _FIELDS}


_FIELDS = tuple(entry.name for entry in fields(_Members))
_ROW_FIELDS = tuple(entry.name for entry in fields(_Members) if entry.metadata == _ROW)


@dataclass(frozen=True, eq=False, kw_only=True)
class SubnetView(_Members):
    """What the m members of one subnet know together.

    Attributes:
        mission: Shared before the damage.
        step: t.
        roster: (N, 2) m, last-known positions of all UAVs (those before the damage).
        members: (m,) int, roster indices of the members.
        positions: (m, 2) m. velocities: (m, 2) m/s, executed in the step before.
        pairs: (e, 2) int, links as rows of `positions`, i < j. lengths: (e,) m.
        news: The members as the others know them; None where `positions` is what the others know.
        age_s: Age of what the members know about each other.
    """

    @cached_property
    def lost(self) -> np.ndarray:
        """(N,) bool, roster entries outside the subnet: damaged or elsewhere, the subnet cannot tell."""
        lost = np.ones(len(self.roster), dtype=bool)
        lost[self.members] = False
        return lost

    def alone(self) -> SubnetViews:
        """This subnet as the only one of a `SubnetViews`: lets one implementation serve `act` and `act_all`."""
        label = np.zeros(len(self.members), dtype=np.intp)
        return SubnetViews(**self._fields(), subnet=label, count=1)


@dataclass(frozen=True, eq=False, kw_only=True)
class SubnetViews(_Members):
    """All subnets at once, iterable as `SubnetView`s.

    Fast paths may work on the flat arrays with one segment per subnet; tests hold them against the per-subnet rule.

    Attributes:
        subnet: (n,) int, label of each row. count: Number of subnets.
        own_centers: (count, 2) m, the center as every subnet reads it (`mission.center` holds the first); None where
            all read the same.
        own_rosters: (count, N, 2) m, the roster as every subnet knows it; None where all know `roster`.
        asked: (n,) bool, the rows whose commands will be flown; None: all.
        Others as in `SubnetView`, for all alive.
    """

    subnet: np.ndarray
    count: int
    own_centers: np.ndarray | None = None
    own_rosters: np.ndarray | None = None
    asked: np.ndarray | None = None

    @cached_property
    def centers(self) -> np.ndarray:
        """(count, 2) m, the center as every subnet knows it: `mission.center`, unless sensing is imperfect."""
        return np.broadcast_to(self.mission.center, (self.count, 2)) if self.own_centers is None else self.own_centers

    @cached_property
    def sizes(self) -> np.ndarray:
        """(count,) int, members per subnet."""
        return np.bincount(self.subnet, minlength=self.count)

    def means(self, values: np.ndarray) -> np.ndarray:
        """(count, 2) mean of `values` ((n, 2)) per subnet."""
        return group_means(self.subnet, values, self.count)

    @cached_property
    def rows(self) -> list[np.ndarray]:
        """Rows of each subnet, ascending."""
        order = np.argsort(self.subnet, kind="stable")
        return np.split(order, np.cumsum(self.sizes)[:-1])

    @cached_property
    def places(self) -> np.ndarray:
        """(n,) int, number of each row within its subnet."""
        places = np.empty(len(self.members), dtype=np.intp)
        for rows in self.rows:
            places[rows] = np.arange(len(rows))
        return places

    def __iter__(self) -> Iterator[SubnetView]:
        owner = self.subnet[self.pairs[:, 0]] if len(self.pairs) else np.empty(0, dtype=np.intp)
        order = np.argsort(owner, kind="stable")
        stops = np.cumsum(np.bincount(owner, minlength=self.count))
        known = self._fields()
        for label, rows in enumerate(self.rows):
            edges = order[stops[label - 1] if label else 0 : stops[label]]
            known |= {name: getattr(self, name)[rows] for name in _ROW_FIELDS}
            known |= {"pairs": self.places[self.pairs[edges]], "lengths": self.lengths[edges]}
            if self.news is not None:
                known["news"] = self.news.of(rows)
            if self.own_centers is not None:
                known["mission"] = replace(self.mission, center=self.own_centers[label])
            if self.own_rosters is not None:
                known["roster"] = self.own_rosters[label]
            yield SubnetView(**known)


@dataclass(frozen=True, eq=False)
class LocalView:
    """What each UAV senses itself: row r of every array belongs to UAV r; edge k to UAV receiver[k].

    Attributes:
        mission: Shared before the damage (the roster is not part of the local scope).
        step: t.
        positions: (n, 2) m. velocities: (n, 2) m/s, executed in the step before.
        receiver: (e,) int, row that senses neighbor k. neighbor_offsets: (e, 2) m, from the receiver to its neighbor.
        neighbor_velocities: (e, 2) m/s.
        damaged_receiver: (k,) int. damaged_offsets: (k, 2) m, from the receiver to a damaged UAV in range.
    """

    mission: Mission
    step: int
    positions: np.ndarray
    velocities: np.ndarray
    _edges: Callable[[], tuple[np.ndarray, np.ndarray, np.ndarray]]
    _damaged: Callable[[], tuple[np.ndarray, np.ndarray]]

    @cached_property
    def _sensed(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        return self._edges()

    @property
    def receiver(self) -> np.ndarray:
        return self._sensed[0]

    @property
    def neighbor_offsets(self) -> np.ndarray:
        return self._sensed[1]

    @property
    def neighbor_velocities(self) -> np.ndarray:
        return self._sensed[2]

    @cached_property
    def _damaged_seen(self) -> tuple[np.ndarray, np.ndarray]:
        return self._damaged()

    @property
    def damaged_receiver(self) -> np.ndarray:
        return self._damaged_seen[0]

    @property
    def damaged_offsets(self) -> np.ndarray:
        return self._damaged_seen[1]


View = GlobalView | SubnetViews | LocalView


class Observer:
    """Builds the views of one episode; what never changes (mission, spots of the damaged) is prepared once."""

    def __init__(self, scenario: Scenario) -> None:
        self._scenario = scenario
        self._roster, self._members = _sealed(scenario.layout), _sealed(scenario.alive)
        self.mission = Mission(_sealed(scenario.center), scenario.width_m, scenario.physics, scenario.budget_steps)
        self._spots = scenario.layout[scenario.damaged]
        self._tree = cKDTree(self._spots) if len(self._spots) else None

    def observe(self, state: SwarmState, scope: Scope) -> View:
        """The view of `state` for a method of this scope."""
        links = state.links
        roster, members = self._roster, self._members
        positions, velocities = _sealed(state.positions), _sealed(state.velocities)
        if scope is Scope.GLOBAL:
            return GlobalView(self.mission, state.step, roster, members, positions, velocities, links)
        if scope is Scope.SUBNET:
            return SubnetViews(
                mission=self.mission, step=state.step, roster=roster, members=members, positions=positions,
                velocities=velocities, pairs=links.pairs, lengths=links.lengths, subnet=links.subnet,
                count=links.count, _rows=np.arange(len(members)),
                _damaged_near=lambda rows: self._damaged_near(state.positions[rows]),
            )  # fmt: skip
        return LocalView(
            self.mission, state.step, positions, velocities,
            lambda: _directed(state), lambda: self._damaged_offsets(state.positions),
        )  # fmt: skip

    def _damaged_near(self, positions: np.ndarray) -> np.ndarray:
        """(k, 2) int (row, roster index) of damaged spots within range of each position, sorted by row and index."""
        if self._tree is None:
            return np.empty((0, 2), dtype=np.intp)
        found = cKDTree(positions).sparse_distance_matrix(
            self._tree, self._scenario.physics.range_m + LINK_TOLERANCE_M, output_type="ndarray"
        )
        near = np.stack([found["i"], self._scenario.damaged[found["j"]]], axis=1)
        return near[np.lexsort((near[:, 1], near[:, 0]))]

    def _damaged_offsets(self, positions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        near = self._damaged_near(positions)
        return near[:, 0], self._scenario.layout[near[:, 1]] - positions[near[:, 0]]


def _sealed(array: np.ndarray) -> np.ndarray:
    """A copy in immutable memory: unlike a read-only array it cannot be made writable again.

    Without this, a plugin that writes into its view could move the swarm, also for the methods that fly after it.
    """
    return np.frombuffer(array.tobytes(), dtype=array.dtype).reshape(array.shape)


def _directed(state: SwarmState) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Each link seen from both ends: (receiver, offsets to the neighbor, its velocity)."""
    pairs = state.links.pairs
    receiver = np.concatenate([pairs[:, 0], pairs[:, 1]])
    sender = np.concatenate([pairs[:, 1], pairs[:, 0]])
    return receiver, state.positions[sender] - state.positions[receiver], state.velocities[sender]
