"""What methods see in a world beyond the paper's: the UAVs that are left, and what was known when the swarm was whole.

A swarm that was one network again shares a new roster and a new clock: what everybody knew at that instant is the new
"before the damage". So what follows is observed like a new case, with the rest of the budget.

What is known may be wrong. Every UAV carries a copy of center and roster with errors of its own, and the member with
the lowest number speaks for its subnet. A teammate that a copy lacks is expected at the point where the subnet means
to meet: nothing better is known. Members know their own places. A roster shared in flight is exact.

A teammate that was a member a moment ago is expected where it was last seen, not at its roster spot: its ghost starts
there and then. Each subnet has seen others last, so each has ghosts of its own; on a merge the newer sighting wins, of
two of the same age the deeper belief.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import dijkstra
from scipy.spatial import cKDTree

from phygail.sensing.beliefs import NEVER, SURE, Beliefs, BeliefSpec
from phygail.sensing.views import GlobalView, LocalView, Observer, Scope, SubnetViews, View, _sealed
from phygail.swarm.flight import Flight
from phygail.swarm.links import find_links, group_means
from phygail.swarm.obstacles import MAP_MARGIN, map_of
from phygail.swarm.scenario import Scenario, lead_steps, pace
from phygail.swarm.simulator import SwarmState
from phygail.swarm.world import Vehicle, draw, draw_normal

MOST_COAST = 0.25  # of the radio range: links are not kept shorter by more


class WorldObserver(Observer):
    """The views of one phase: from the step at which the swarm was last seen whole until it is whole again.

    Args:
        scenario: The case. flight: At the beginning of the phase.
    """

    def __init__(self, scenario: Scenario, flight: Flight) -> None:
        gone = np.setdiff1d(np.arange(scenario.uavs), flight.members)
        rest = scenario.budget_steps - flight.base
        super().__init__(replace(scenario, layout=flight.roster, damaged=gone, budget_steps=rest))
        self._places, self._first = flight.places, flight.base == 0
        self._wrecks = flight.roster  # (N, 2) m, where the lost lie
        self._copies = Copies(scenario, exact_roster=not self._first)
        self.mission = replace(self.mission, **mission_facts(scenario))

    def observe(self, state: SwarmState, scope: Scope) -> View:
        flight = state.flight
        assert flight is not None
        if len(flight.members) != len(self._members):
            self._count_again(flight)
        view = super().observe(replace(state, step=state.step - flight.base), scope)
        if isinstance(view, SubnetViews):
            view = replace(view, _wrecks=self._wrecks)
        elif isinstance(view, GlobalView) and flight.heights is not None:
            view = replace(view, heights=_sealed(flight.heights[flight.members]))
        if self._scenario.world.knowledge.exact or isinstance(view, GlobalView):
            return view
        return self._as_known(view, state)

    def _count_again(self, flight: Flight) -> None:
        """Number rows and damaged UAVs anew after a loss; the roster stays the same."""
        gone = np.setdiff1d(np.arange(len(flight.places)), flight.members)
        self._scenario = replace(self._scenario, damaged=gone)
        self._members = _sealed(flight.members)
        self._places = flight.places
        self._wrecks = self._roster.copy()
        self._wrecks[gone] = flight.places[gone]
        self._tree = cKDTree(flight.places[gone]) if len(gone) else None

    def _damaged_offsets(self, positions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        near = self._damaged_near(positions)
        return near[:, 0], self._places[near[:, 1]] - positions[near[:, 0]]

    def _as_known(self, view: SubnetViews | LocalView, state: SwarmState) -> View:
        """The view with the center, the roster and the damaged as its subnets know them."""
        links = state.links
        first = np.unique(links.subnet, return_index=True)[1]
        speakers = state.members[first]
        rosters = [self._copies.roster(int(speaker), self._roster) for speaker in speakers]
        centers = self._centers(state, speakers, rosters)
        if isinstance(view, LocalView):
            mission = replace(self.mission, center=centers[links.subnet])
            return replace(view, mission=mission, _damaged=lambda: self._detected_offsets(state))
        own = None
        if not self._copies.exact:
            pairs = zip(rosters, centers, strict=True)
            own = np.stack([np.where(sure[:, None], place, center) for (place, sure), center in pairs])
            own[links.subnet, state.members] = self._roster[state.members]
        return replace(
            view, mission=replace(self.mission, center=centers[0]), own_centers=centers, own_rosters=own,
            _damaged_near=lambda rows: self._detected(state, rows),
        )  # fmt: skip

    def _centers(
        self, state: SwarmState, speakers: np.ndarray, rosters: list[tuple[np.ndarray, np.ndarray]]
    ) -> np.ndarray:
        """(count, 2) m, where every subnet means to meet."""
        known = self._scenario.world.knowledge
        if known.center == "none":
            return group_means(state.links.subnet, state.positions, state.links.count)
        if known.center == "roster":
            return np.stack([place[sure].mean(axis=0) for place, sure in rosters])
        angle = 2 * math.pi * draw(self._scenario.world.seed, "center", 0, speakers)
        return self.mission.center + known.center_error_m * np.stack([np.cos(angle), np.sin(angle)], axis=1)

    def _detected(self, state: SwarmState, rows: np.ndarray) -> np.ndarray:
        """(k, 2) int (place in `rows`, roster index) of the UAVs within range that count as damaged."""
        world, range_m = self._scenario.world, self._scenario.physics.range_m
        near = self._damaged_near(state.positions[rows])
        near = near[draw(world.seed, "miss", 0, near[:, 1]) >= world.knowledge.detect_miss]
        if world.knowledge.detect_false == 0:
            return near
        suspects = state.members[draw(world.seed, "false", 0, state.members) < world.knowledge.detect_false]
        subnet_of = np.full(len(self._roster), -1)
        subnet_of[state.members] = state.links.subnet
        far = np.hypot(*(state.positions[rows][:, None] - self._roster[suspects]).transpose(2, 0, 1))
        row, who = np.nonzero((far <= 2 * range_m) & (state.links.subnet[rows][:, None] != subnet_of[suspects]))
        both = np.concatenate([near, np.stack([row, suspects[who]], axis=1)])
        return both[np.lexsort((both[:, 1], both[:, 0]))]

    def _detected_offsets(self, state: SwarmState) -> tuple[np.ndarray, np.ndarray]:
        near = self._detected(state, np.arange(len(state.positions)))
        return near[:, 0], self._roster[near[:, 1]] - state.positions[near[:, 0]]


class Copies:
    """The copies of the roster that the UAVs carry.

    Args:
        scenario: Its world says how wrong the copies are.
        exact_roster: Whether they were shared in flight, and so are right.
    """

    def __init__(self, scenario: Scenario, *, exact_roster: bool = False) -> None:
        self._scenario, self._known = scenario, scenario.world.knowledge
        flaws = (self._known.roster_missing, self._known.roster_error_m, self._known.roster_hops, self._known.bias_m)
        self.exact = exact_roster or not any(flaws)
        self._drawn: dict[int, tuple[np.ndarray, np.ndarray]] = {}

    def roster(self, speaker: int, exact: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """((N, 2) m, (N,) bool which of them it knows): the copy of UAV `speaker` of the roster `exact`."""
        if self.exact:
            return exact, np.ones(len(exact), dtype=bool)
        if speaker not in self._drawn:
            self._drawn[speaker] = self._draw(speaker, exact)
        return self._drawn[speaker]

    def _draw(self, speaker: int, exact: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        known, seed, each = self._known, self._scenario.world.seed, np.arange(len(exact))
        own = [draw_normal(seed, f"roster {axis}", 0, speaker, each) for axis in "xy"]
        common = [draw_normal(seed, f"bias {axis}", 0, each) for axis in "xy"]
        places = exact + known.roster_error_m * np.stack(own, axis=1) + known.bias_m * np.stack(common, axis=1)
        sure = draw(seed, "missing", 0, speaker, each) >= known.roster_missing
        if known.roster_hops:
            sure &= self._hops[speaker] <= known.roster_hops
        sure[speaker], places[speaker] = True, exact[speaker]
        return places, sure

    @cached_property
    def _hops(self) -> np.ndarray:
        """(N, N) hops between every two UAVs before the damage; inf where no path joins them."""
        uavs = self._scenario.uavs
        pairs = find_links(self._scenario.layout, self._scenario.physics.range_m).pairs
        graph = coo_array((np.ones(len(pairs)), (pairs[:, 0], pairs[:, 1])), shape=(uavs, uavs)).tocsr()
        return dijkstra(graph, directed=False, unweighted=True)


def mission_facts(scenario: Scenario) -> dict[str, Any]:
    """The fields of `Mission` that tell about a world beyond the paper's."""
    world, physics = scenario.world, scenario.physics
    chart = map_of(world.obstacles, MAP_MARGIN * physics.contact_m) if world.obstacles and world.knowledge.map else None
    return {
        "losses": bool(world.events) or not world.links.certain,
        "silence": world.links.certain,
        "map": chart,
        "coast_m": min(coast_m(world.vehicle, physics.speed_mps), MOST_COAST * physics.range_m),
        "lead_steps": lead_steps(world, physics),
        "pace": pace(world, physics),
        "arrive": world.altitude is not None or world.vehicle.inertia or not world.knowledge.exact,
    }


def coast_m(vehicle: Vehicle, speed_mps: float) -> float:
    """The distance from full speed to rest, v^2 / (2 a) + v lag; links are kept shorter by so much."""
    brake = speed_mps**2 / (2 * vehicle.accel_mps2) if math.isfinite(vehicle.accel_mps2) else 0.0
    return brake + speed_mps * vehicle.lag_s


def unproved(scenario: Scenario) -> str:
    """Why the argument that nothing fails (docs/worlds.md) does not hold for a case; empty where it holds."""
    world, physics = scenario.world, scenario.physics
    known, range_m = world.knowledge, physics.range_m
    if world.obstacles and not known.map:
        return "nobody knows the obstacles"
    if world.obstacles and physics.stride_m > MAP_MARGIN * physics.contact_m:
        return "a stride is longer than ways keep off obstacles"
    if coast_m(world.vehicle, physics.speed_mps) > MOST_COAST * range_m:
        return "stopping takes more than a quarter of the radio range"
    apart = centers_apart_m(scenario)
    if apart > range_m - 4 * physics.stride_m:
        return "subnets mean to meet at places farther apart than the radio range"
    if world.altitude is not None and not world.level:
        gaps = np.diff(np.sort(np.array(world.altitude)[scenario.alive]))
        if gaps.max() > math.sqrt(max(range_m**2 - (4 * physics.stride_m) ** 2, 0.0)):
            return "heights leave a gap longer than the radio range"
    return ""


def centers_apart_m(scenario: Scenario) -> float:
    """How far apart two subnets may mean to meet at t = 0, m."""
    known, alive = scenario.world.knowledge, scenario.alive
    if known.center == "none":
        return math.inf
    if known.center == "shared":
        angle = 2 * math.pi * draw(scenario.world.seed, "center", 0, alive)
        places = known.center_error_m * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    else:
        copies = Copies(scenario)
        drawn = [copies.roster(speaker, scenario.layout) for speaker in alive.tolist()]
        places = np.stack([place[sure].mean(axis=0) for place, sure in drawn])
    return float(np.hypot(*(places[:, None] - places).transpose(2, 0, 1)).max())


# --- beliefs where somebody may be lost in flight ---------------------------------------------------------------------


@dataclass(frozen=True)
class _Sightings:
    """What one group of UAVs knows: (N, 2) m last places, (N,) int steps of them, (N,) float32 depths since."""

    places: np.ndarray
    steps: np.ndarray
    depths: np.ndarray


class RebasedBeliefs(Beliefs):
    """`Beliefs` whose ghosts start where and when a teammate was last seen."""

    def __init__(self, spec: BeliefSpec) -> None:
        super().__init__(spec)
        self._known: dict[int, _Sightings] = {}
        self._now = np.empty((0, 0, 2))  # (count, N, 2) m, ghosts of every subnet
        self._since = np.empty((0, 0), dtype=np.intp)  # (count, N) step of the last sighting
        self._last = np.empty((0, 0, 2))
        self._fresh = np.empty((0, 0), dtype=bool)  # (count, N) lost since the step before

    def _advance(self, views: SubnetViews) -> None:
        """The ghosts of every subnet, where it expects them by now."""
        if not len(self._group):
            self._group = np.full(len(views.roster), -1, dtype=np.intp)
        parts = [self._merged(views, rows) for rows in views.rows]
        self._last = np.stack([part.places for part in parts])
        self._since = np.stack([part.steps for part in parts])
        self._merged_depths = np.stack([part.depths for part in parts])
        gone = self._since < views.step
        gone[views.subnet, views.members] = False
        self._fresh = gone & (self._since == views.step - 1) & (views.step > 1)
        way = self._way_m(views, 1) * (views.step - self._since)
        offset = views.centers[:, None] - self._last
        away = np.hypot(offset[..., 0], offset[..., 1])
        self._now = self._last + offset * np.minimum(way / np.maximum(away, 1e-9), 1.0)[..., None]

    def _merged(self, views: SubnetViews, rows: np.ndarray) -> _Sightings:
        """The newest sightings of all groups whose members have met in this subnet."""
        known = [self._known[group] for group in np.unique(self._group[views.members[rows]]).tolist() if group >= 0]
        if not known:
            count = len(views.roster)
            return _Sightings(np.array(views.roster), np.zeros(count, dtype=np.intp), np.full(count, NEVER))
        best = known[0]
        for other in known[1:]:
            newer = (other.steps > best.steps) | ((other.steps == best.steps) & (other.depths > best.depths))
            best = _Sightings(
                np.where(newer[:, None], other.places, best.places),
                np.where(newer, other.steps, best.steps),
                np.where(newer, other.depths, best.depths),
            )
        return best

    def _recall(self, views: SubnetViews) -> np.ndarray:
        return self._merged_depths.copy()

    def _places(self, views: SubnetViews, subnet: np.ndarray, spot: np.ndarray) -> np.ndarray:
        return self._now[subnet, spot]

    def _share_ghosts(self, views: SubnetViews) -> bool:
        return False

    def _nearest(self, views: SubnetViews, depths: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        horizon = self._horizon_m(views)
        each = [self._of_one(views, depths, label, horizon) for label in range(views.count)]
        return tuple(np.concatenate(parts) for parts in zip(*each, strict=True))  # type: ignore[return-value]  # four

    def _listen(
        self, views: SubnetViews, depths: np.ndarray, subnet: np.ndarray, spot: np.ndarray, distance: np.ndarray
    ) -> None:
        """Update the depths, and note the teammates that have just fallen silent within the subnet."""
        physics, spec = views.mission.physics, self.spec
        sure = SURE if views.mission.silence else np.float32(spec.depth_half)  # half believed
        if views.step == 0:
            row, damaged = views.damaged_in_range.T
            depths[views.subnet[row], damaged] = SURE  # recognized as damaged, not merely silent
            return
        flown = physics.speed_mps * physics.step_s * (views.step - self._since[subnet, spot])
        sigma = spec.sigma_m * physics.unit + spec.sigma_rate * flown
        depth = ((physics.range_m - spec.margin_m * physics.unit - distance) / sigma).astype(np.float32)
        # Where links fail, silence says little: no teammate is ruled out for good.
        depths[subnet, spot] = np.maximum(depths[subnet, spot], np.minimum(depth, sure))
        for label in np.flatnonzero(self._fresh.any(axis=1)):
            self._missing(views, depths, int(label), sure)

    def _missing(self, views: SubnetViews, depths: np.ndarray, label: int, sure: np.float32) -> None:
        """Rule out members of a step ago that are silent now in the area that the others cover."""
        physics = views.mission.physics
        lost = np.flatnonzero(self._fresh[label])
        far, _ = cKDTree(views.positions[views.rows[label]]).query(self._last[label, lost])
        inside = far <= physics.range_m - 2.0 * physics.stride_m - self.spec.margin_m * physics.unit
        depths[label, lost[inside]] = np.maximum(depths[label, lost[inside]], sure)

    def _remember(self, views: SubnetViews, depths: np.ndarray) -> None:
        depths[views.subnet, views.members] = NEVER
        self._last[views.subnet, views.members] = views.positions
        self._since[views.subnet, views.members] = views.step
        fresh = self._next + np.arange(views.count)
        self._group[views.members] = fresh[views.subnet]
        self._next += views.count
        for label, group in enumerate(fresh.tolist()):
            self._known[group] = _Sightings(self._last[label], self._since[label], depths[label].copy())
        flying = set(np.unique(self._group).tolist())
        self._known = {group: known for group, known in self._known.items() if group in flying}
