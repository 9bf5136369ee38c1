"""What a method may know: three scopes, each a type that holds nothing else (METHODS 2.4).

`observe` turns a state into views. A global method gets one `GlobalView`; an intra-subnet method one `SubnetView` per
subnet (bundled in `SubnetViews`); a local method one `LocalView` whose row r holds what UAV r senses itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property

import numpy as np
from scipy.spatial import cKDTree

from phygail.config import LINK_TOLERANCE_M, Physics
from phygail.groups import group_means
from phygail.swarm.links import Links
from phygail.swarm.scenario import Scenario
from phygail.swarm.state import SwarmState


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
    """

    center: np.ndarray
    width_m: float
    physics: Physics
    budget_steps: int


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
    """

    mission: Mission
    step: int
    roster: np.ndarray
    members: np.ndarray
    positions: np.ndarray
    velocities: np.ndarray
    links: Links

    @cached_property
    def damaged(self) -> np.ndarray:
        """(k,) int, roster indices of the damaged."""
        return np.setdiff1d(np.arange(len(self.roster)), self.members)


@dataclass(frozen=True, eq=False)
class SubnetView:
    """What the m members of one subnet know together.

    Attributes:
        mission: Shared before the damage.
        step: t.
        roster: (N, 2) m, last-known positions of all UAVs (those before the damage).
        members: (m,) int, roster indices of the members.
        positions: (m, 2) m. velocities: (m, 2) m/s, executed in the step before.
        pairs: (e, 2) int, links as rows of `positions`, i < j. lengths: (e,) m.
        age_s: How old it is what members know about each other (`perception.noise`).
    """

    mission: Mission
    step: int
    roster: np.ndarray
    members: np.ndarray
    positions: np.ndarray
    velocities: np.ndarray
    pairs: np.ndarray
    lengths: np.ndarray
    _find_damaged: Callable[[np.ndarray], np.ndarray]
    age_s: float = field(default=0.0, kw_only=True)

    @cached_property
    def lost(self) -> np.ndarray:
        """(N,) bool, roster entries outside the subnet: damaged or elsewhere, the subnet cannot tell."""
        lost = np.ones(len(self.roster), dtype=bool)
        lost[self.members] = False
        return lost

    @cached_property
    def damaged_in_range(self) -> np.ndarray:
        """(k, 2) int (member row, roster index) of damaged UAVs within radio range: recognizable as damaged."""
        return self._find_damaged(self.positions)

    def alone(self) -> SubnetViews:
        """This subnet as the only one of a `SubnetViews`: lets one implementation serve `act` and `act_all`."""
        return SubnetViews(
            self.mission, self.step, self.roster, self.members, self.positions, self.velocities,
            self.pairs, self.lengths, np.zeros(len(self.members), dtype=np.intp), 1, self._find_damaged,
            age_s=self.age_s,
        )  # fmt: skip


@dataclass(frozen=True, eq=False)
class SubnetViews:
    """All subnets at once, iterable as `SubnetView`s.

    Fast paths may work on the flat arrays with one segment per subnet; tests hold them against the per-subnet rule.

    Attributes:
        subnet: (n,) int, label of each row. count: Number of subnets.
        Others as in `SubnetView`, for all alive.
    """

    mission: Mission
    step: int
    roster: np.ndarray
    members: np.ndarray
    positions: np.ndarray
    velocities: np.ndarray
    pairs: np.ndarray
    lengths: np.ndarray
    subnet: np.ndarray
    count: int
    _find_damaged: Callable[[np.ndarray], np.ndarray]
    age_s: float = field(default=0.0, kw_only=True)

    @cached_property
    def centers(self) -> np.ndarray:
        """(count, 2) m, the center as every subnet knows it: `mission.center`, unless sensing is noisy."""
        return np.broadcast_to(self.mission.center, (self.count, 2))

    @property
    def asked(self) -> np.ndarray | None:
        """(n,) bool, the rows whose commands will be flown; None: all."""
        return None

    @cached_property
    def sizes(self) -> np.ndarray:
        """(count,) int, members per subnet."""
        return np.bincount(self.subnet, minlength=self.count)

    @cached_property
    def damaged_in_range(self) -> np.ndarray:
        """(k, 2) int (row, roster index) of damaged UAVs within radio range of a row."""
        return self._find_damaged(self.positions)

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
        for label, rows in enumerate(self.rows):
            edges = order[stops[label - 1] if label else 0 : stops[label]]
            yield SubnetView(
                self.mission, self.step, self.roster, self.members[rows], self.positions[rows], self.velocities[rows],
                self.places[self.pairs[edges]], self.lengths[edges], self._find_damaged, age_s=self.age_s,
            )  # fmt: skip


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
    def _wrecks(self) -> tuple[np.ndarray, np.ndarray]:
        return self._damaged()

    @property
    def damaged_receiver(self) -> np.ndarray:
        return self._wrecks[0]

    @property
    def damaged_offsets(self) -> np.ndarray:
        return self._wrecks[1]


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
                self.mission, state.step, roster, members, positions, velocities,
                links.pairs, links.lengths, links.subnet, links.count, self._damaged_near,
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

    A method from outside that writes into its view could otherwise move the swarm, for the methods after it too.
    """
    return np.frombuffer(array.tobytes(), dtype=array.dtype).reshape(array.shape)


def _directed(state: SwarmState) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Each link seen from both ends: (receiver, offsets to the neighbor, its velocity)."""
    pairs = state.links.pairs
    receiver = np.concatenate([pairs[:, 0], pairs[:, 1]])
    sender = np.concatenate([pairs[:, 1], pairs[:, 0]])
    return receiver, state.positions[sender] - state.positions[receiver], state.velocities[sender]
