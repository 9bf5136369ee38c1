"""The step of a world beyond the paper's: what a state carries there, and vehicles with inertia and wind (METHODS 8.3).

The order within a step: the vehicle follows the command as far as it can and the fence allows, everybody moves, the
events of the step strike, the radio is heard.

A vehicle that follows velocities at once is kept in its cell by half-planes (`swarm.safety`); obstacles add theirs.

With an acceleration limit or a lag the velocity v turns into v' = v + dv, |dv| <= a dt, and stopping takes a distance.
The stopping segment S(v) of a UAV is the straight line that it flies from now on if it is told to stop. Two UAVs are
*safe* while their stopping segments are at least D apart. Let n be the unit vector between the nearest points of the
two segments, delta >= D their distance and m the middle. Each takes as its half-plane all points x with n.(x - m) <=
-D/2 on its own side. Told to stop, a UAV stays in its half-plane: its segment lies on its side of the nearest point,
delta/2 from m. So v' = stop is always allowed, for all neighbors and obstacles at once. Any other v' is allowed only if
the path of the step and the stopping segment after it lie in the half-plane too. Then the segments after the step are
again at least min(D, delta) apart, along n: by induction no two UAVs ever come closer than min(D, their distance at the
start), not even between steps. (Obstacles: the half-plane beyond the nearest point of a convex obstacle, without
halving.)

The filter does not seek the velocity nearest to the wanted one. The wanted velocity is first projected onto half-planes
that a braking UAV can keep, v.n <= sqrt(2 a s + (a tau)^2) - a tau, so that it slides along others. The vehicle follows
as far as it can. Then it flies the largest share of the change beyond stopping that keeps the promise above.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from phygail.config import Physics
from phygail.swarm.links import Links, find_links, listen, near_pairs
from phygail.swarm.obstacles import Shapes, segment_feet, shapes_of
from phygail.swarm.safety import (
    HalfPlanes,
    filter_near,
    filter_velocities,
    kept_m,
    neighbor_radius_m,
    pair_planes,
    project_planes,
)
from phygail.swarm.scenario import Scenario
from phygail.swarm.world import Vehicle, World, losses

CLIMB_MPS, SINK_MPS = 3.0, 1.5  # vertical speed of a UAV that changes its layer (PX4 MPC_Z_VEL_MAX_UP, MPC_Z_V_AUTO_DN)


@dataclass(frozen=True, eq=False)
class Flight:
    """The part of a state that only worlds beyond the paper's have.

    Attributes:
        members: (n,) int, roster indices of the alive, in the order of the state's rows.
        places: (N, 2) m, where everybody is; of the lost, where they fell.
        died: (N,) int, step at which a UAV was lost; 0 for the damaged, -1 for the alive.
        links: The network.
        heights: (N,) m, or None in one layer.
        held: Steps, this one included, during which the network has been one without a break.
        base: Step at which the swarm was last seen whole. Roster and clock of what follows are those of that step.
        roster: (N, 2) m, where everybody was then.
        radio: What the radio remembers; None for links that have no memory.
        spared: Whether an event would have left fewer than two.
    """

    members: np.ndarray
    places: np.ndarray
    died: np.ndarray
    links: Links
    heights: np.ndarray | None
    held: int
    base: int
    roster: np.ndarray
    radio: object = None
    spared: bool = False

    @property
    def whole(self) -> bool:
        """Whether the network is one."""
        return self.links.connected

    def done(self, scenario: Scenario, step: int) -> bool:
        """Whether the network has been one for long enough, no event is to come, and no single loss could split it."""
        world = scenario.world
        if self.held < world.hold_steps or step < world.last_event:
            return False
        return not world.redundant or step >= scenario.budget_steps or not self.critical

    @cached_property
    def critical(self) -> tuple[int, ...]:
        """Rows of the UAVs whose loss would split the network."""
        from phygail.swarm.failures import critical_uavs

        return tuple(critical_uavs(len(self.members), self.links.pairs))

    def lost_now(self, step: int) -> bool:
        """Whether somebody was lost in this step."""
        return bool((self.died == step).any()) and step > 0


def begin(scenario: Scenario) -> Flight:
    """The swarm right after the damage."""
    world = scenario.world
    died = np.full(scenario.uavs, -1)
    died[scenario.damaged] = 0
    heights = None if world.altitude is None else np.array(world.altitude)
    links, memory = hear(scenario, scenario.spots, scenario.alive, heights, 0, None)
    return Flight(
        scenario.alive, scenario.layout, died, links, heights, int(links.connected), 0, scenario.layout, memory
    )


def advance(scenario: Scenario, flight: Flight, positions: np.ndarray, step: int) -> tuple[Flight, np.ndarray]:
    """The flight after everybody has moved to `positions` ((n, 2) m) in this step, and the rows that go on."""
    world = scenario.world
    places = flight.places.copy()
    places[flight.members] = positions
    lost, spared = losses(world, step, flight.members, places)
    stay = ~np.isin(flight.members, lost)
    members = flight.members[stay]
    died = flight.died.copy()
    died[lost] = step
    heights = _climbed(flight.heights, members, scenario.physics) if world.level else flight.heights
    links, memory = hear(scenario, positions[stay], members, heights, step, flight.radio)
    # Where links fail, a split is no news: a UAV that is silent for a moment is still there, and the clock runs on.
    anew = flight.whole and (world.links.certain or len(lost) > 0)
    base, roster = (step, places) if anew else (flight.base, flight.roster)
    held = flight.held + 1 if links.connected else 0
    return Flight(members, places, died, links, heights, held, base, roster, memory, flight.spared or spared), stay


def _climbed(heights: np.ndarray | None, members: np.ndarray, physics: Physics) -> np.ndarray | None:
    """Everybody climbs or sinks toward the mean height of the swarm at the start, which all know."""
    if heights is None:
        return None
    toward = heights.mean() - heights
    step = np.clip(toward, -SINK_MPS * physics.step_s, CLIMB_MPS * physics.step_s)
    moved = heights.copy()
    moved[members] += step[members]
    return moved


def hear(
    scenario: Scenario,
    positions: np.ndarray,
    members: np.ndarray,
    heights: np.ndarray | None,
    step: int,
    memory: object,
) -> tuple[Links, object]:
    """The network at one instant, and what the radio remembers of it."""
    world, physics = scenario.world, scenario.physics
    dark = any(not obstacle.radio for obstacle in world.obstacles)
    if world.links.certain and heights is None and not dark:
        return find_links(positions, physics.range_m, physics.contact_m), None
    z = None if heights is None else heights[members]
    return listen(world, physics, positions, members, z, step, memory)


def executed_velocities(
    scenario: Scenario, flight: Flight, positions: np.ndarray, before: np.ndarray, wanted: np.ndarray, *, safety: bool
) -> np.ndarray:
    """(n, 2) m/s over ground that vehicle, fence and filter make of the commands.

    Args:
        scenario: The case. flight: Now.
        positions: (n, 2) m. before: (n, 2) m/s, flown in the step before. wanted: (n, 2) m/s, within the speed limit.
        safety: Whether pairs are kept apart.
    """
    world, physics = scenario.world, scenario.physics
    if world.obstacles or world.vehicle.inertia or any(world.vehicle.wind_mps):
        return follow(world, physics, positions, before, wanted, safety=safety)
    if not safety:
        return wanted
    return filter_velocities(positions, wanted, physics)


def with_links(flight: Flight, links: Links) -> Flight:
    """The same flight with another network; for tests and pictures."""
    return replace(flight, links=links)


# --- vehicles --------------------------------------------------------------------------------------------------------

SHARES = np.linspace(1.0, 0.0, 17)  # of the change from stopping to the wanted velocity, tried in this order
IN_HAND = 1e-4  # of the contact distance: distance to obstacles that UAVs always keep
LOOSE = 0.05  # of the contact distance: braking UAVs keep farther apart by this than they must


def follow(
    world: World, physics: Physics, positions: np.ndarray, before: np.ndarray, wanted: np.ndarray, *, safety: bool
) -> np.ndarray:
    """(n, 2) m/s over ground that is flown in this step.

    Args:
        world: Vehicle and obstacles. physics: Radio and vehicle.
        positions: (n, 2) m. before: (n, 2) m/s, flown in the step before. wanted: (n, 2) m/s, within the speed limit.
        safety: Whether pairs are kept apart, too.
    """
    vehicle, wind = world.vehicle, np.array(world.vehicle.wind_mps)
    wanted = _within_airspeed(wanted, wind, physics)
    shapes = shapes_of(world.obstacles)
    if not vehicle.inertia:
        return _within_airspeed(_fenced(shapes, physics, positions, wanted, safety=safety), wind, physics)
    stop, tau = Stopping(vehicle, physics), vehicle.lag_s + physics.step_s
    if safety or shapes.count:
        wanted = _slid(vehicle, tau, shapes, physics, positions, wanted, safety=safety)
    flown = respond(vehicle, before, wanted, physics.step_s)
    if not (safety or shapes.count):
        return flown
    return _promised(stop, shapes, physics, positions, before, flown, safety=safety)


def respond(vehicle: Vehicle, before: np.ndarray, wanted: np.ndarray, step_s: float) -> np.ndarray:
    """(n, 2) m/s, the velocities one step after `before` under the commands `wanted`."""
    change = (wanted - before) * _share(vehicle, step_s)
    size = np.hypot(change[..., 0], change[..., 1])[..., None]
    most = vehicle.accel_mps2 * step_s
    return before + change * np.minimum(1.0, most / np.maximum(size, 1e-12))


def _share(vehicle: Vehicle, step_s: float) -> float:
    """The share of the difference to the command that a lag lets through within one step."""
    return 1.0 if vehicle.lag_s == 0 else 1.0 - math.exp(-step_s / vehicle.lag_s)


class Stopping:
    """How far a UAV flies after it was told to stop."""

    def __init__(self, vehicle: Vehicle, physics: Physics) -> None:
        self.vehicle, self.step_s = vehicle, physics.step_s
        self._share = _share(vehicle, physics.step_s)
        self._most = vehicle.accel_mps2 * physics.step_s  # by which the speed falls within one step

    def way_m(self, speed: np.ndarray) -> np.ndarray:
        """m, flown from the next step until a UAV with this speed (m/s) stands: an upper bound of the sum over steps.

        While the limit binds, the speed falls by a dt per step; below a dt / share it falls by that share. The distance
        is dt times the sum of the speeds after each step, (u^2 - w^2) / (2 a dt) rounded up, and w (1 - share) / share.
        """
        low = np.minimum(speed, self._most / self._share)
        tail = low * (1.0 - self._share) / self._share
        if not math.isfinite(self._most):
            return tail * self.step_s
        fall = np.ceil((speed - low) / self._most - 1e-9)  # steps in which the limit binds
        left = np.maximum(speed - fall * self._most, 0.0)
        # Speeds u - k d for k = 1..fall, then left (1 - share)^k; `left` may be below `low`: take the longer tail.
        sums = fall * speed - self._most * fall * (fall + 1) / 2
        return (np.maximum(sums, 0.0) + np.maximum(left * (1.0 - self._share) / self._share, 0.0)) * self.step_s

    def velocity(self, before: np.ndarray) -> np.ndarray:
        """(n, 2) m/s one step after being told to stop."""
        return respond(self.vehicle, before, np.zeros_like(before), self.step_s)

    def ends(self, positions: np.ndarray, velocities: np.ndarray) -> np.ndarray:
        """(n, 2) m, where each UAV would come to rest."""
        speed = np.hypot(velocities[..., 0], velocities[..., 1])
        return positions + velocities * (self.way_m(speed) / np.maximum(speed, 1e-12))[..., None]


def _within_airspeed(velocities: np.ndarray, wind: np.ndarray, physics: Physics) -> np.ndarray:
    """Shorten velocities over ground until the airspeed |v - w| is within the limit; zero is, for |w| < v_max."""
    if not wind.any():
        return velocities
    a = (velocities * velocities).sum(axis=1)
    b = velocities @ wind
    room = physics.speed_mps**2 - wind @ wind
    # |s v - w| = v_max at s = (b + sqrt(b^2 + a room)) / a
    share = (b + np.sqrt(b * b + a * room)) / np.maximum(a, 1e-300)
    return velocities * np.where(a > 0, np.minimum(1.0, share * (1.0 - 1e-12)), 1.0)[:, None]


def _fence(shapes: Shapes, positions: np.ndarray, within_m: float, kept: float) -> tuple[HalfPlanes, np.ndarray]:
    """Half-planes (limits in m) of the obstacles that each UAV can get to."""
    distance, away = shapes.nearest(positions)
    row, which = np.nonzero(distance < within_m)
    room = np.maximum(0.0, distance[row, which] - kept)
    return HalfPlanes(row, -away[row, which], room), which


def _fenced(shapes: Shapes, physics: Physics, positions: np.ndarray, wanted: np.ndarray, *, safety: bool) -> np.ndarray:
    """Vehicles that follow at once: the cells of `swarm.safety`, with the half-planes of obstacles in them."""
    pairs, distances = near_pairs(positions, neighbor_radius_m(physics)) if safety else _NO_PAIRS
    if not shapes.count:
        return filter_near(positions, wanted, pairs, distances, kept_m(physics), physics.speed_mps, physics.step_s)
    speed = float(np.hypot(*wanted.T).max(initial=0.0))
    fence, _ = _fence(shapes, positions, speed * physics.step_s + physics.stride_m, IN_HAND * physics.contact_m)
    planes = pair_planes(positions, pairs, distances, kept_m(physics), np.full(len(positions), physics.step_s))
    fence = HalfPlanes(fence.owner, fence.normal, fence.limit / physics.step_s)
    return project_planes(wanted, planes.joined(fence), physics.speed_mps)


_NO_PAIRS = (np.empty((0, 2), dtype=np.intp), np.empty(0))


def _slid(
    vehicle: Vehicle,
    tau: float,
    shapes: Shapes,
    physics: Physics,
    positions: np.ndarray,
    wanted: np.ndarray,
    *,
    safety: bool,
) -> np.ndarray:
    """The wanted velocities, projected onto the half-planes that a braking UAV can keep."""
    accel = vehicle.accel_mps2 if math.isfinite(vehicle.accel_mps2) else physics.speed_mps / tau
    kept = kept_m(physics) + LOOSE * physics.contact_m

    def limit(room: np.ndarray) -> np.ndarray:
        return np.sqrt(2 * accel * room + (accel * tau) ** 2) - accel * tau

    far = physics.speed_mps * tau + physics.speed_mps**2 / (2 * accel)  # room at which full speed is allowed
    pairs, distances = near_pairs(positions, kept + 2 * far) if safety else _NO_PAIRS
    planes = pair_planes(positions, pairs, distances, kept, np.ones(len(positions)))
    planes = HalfPlanes(planes.owner, planes.normal, limit(planes.limit))
    if shapes.count:
        fence, _ = _fence(shapes, positions, far + kept, LOOSE * physics.contact_m)
        planes = planes.joined(HalfPlanes(fence.owner, fence.normal, limit(fence.limit)))
    return project_planes(wanted, planes, physics.speed_mps)


def _promised(
    stop: Stopping,
    shapes: Shapes,
    physics: Physics,
    positions: np.ndarray,
    before: np.ndarray,
    flown: np.ndarray,
    *,
    safety: bool,
) -> np.ndarray:
    """The velocities between stopping and `flown` that keep the promise of the module's proof."""
    braked = stop.velocity(before)
    planes = _promises(stop, shapes, physics, positions, before, safety=safety)
    if not len(planes.owner):
        return flown
    best = np.zeros(len(positions), dtype=bool)
    result = braked.copy()
    for share in SHARES[:-1]:
        tried = braked + share * (flown - braked)
        ends = positions + tried * physics.step_s
        ahead = [points - positions for points in (ends, stop.ends(ends, tried))]
        over = np.zeros(len(positions), dtype=bool)
        for offset in ahead:
            beyond = (planes.normal * offset[planes.owner]).sum(axis=1) > planes.limit
            over[planes.owner[beyond]] = True
        good = ~best & ~over
        result[good] = tried[good]
        best |= good
        if best.all():
            break
    return result


def _promises(
    stop: Stopping, shapes: Shapes, physics: Physics, positions: np.ndarray, before: np.ndarray, *, safety: bool
) -> HalfPlanes:
    """Half-planes n.(x - p) <= limit (m) that hold the stopping segment of each UAV, one per neighbor and obstacle."""
    ends = stop.ends(positions, before)
    kept, top = kept_m(physics), physics.speed_mps + math.hypot(*stop.vehicle.wind_mps)
    owner, normal, limit = [np.empty(0, dtype=np.intp)], [np.empty((0, 2))], [np.empty(0)]
    longest = top * physics.step_s + float(stop.way_m(np.array(top)))
    if safety and len(positions) > 1:
        pairs, _ = near_pairs(positions, kept + 2 * longest)
        i, j = pairs.T
        foot_i, foot_j = segment_feet(positions[i], ends[i], positions[j], ends[j])
        gap = foot_j - foot_i
        delta = np.hypot(gap[:, 0], gap[:, 1])
        apart = delta > 1e-9
        i, j, delta, gap, foot_i, foot_j = (a[apart] for a in (i, j, delta, gap, foot_i, foot_j))
        n = gap / delta[:, None]
        room = (delta - np.minimum(delta, kept)) / 2
        owner += [i, j]
        normal += [n, -n]
        limit += [((foot_i - positions[i]) * n).sum(axis=1) + room, ((foot_j - positions[j]) * -n).sum(axis=1) + room]
    if shapes.count:
        for a, b, radius in zip(shapes.a, shapes.b, shapes.radius, strict=True):
            size = positions.shape
            foot, wall = segment_feet(positions, ends, np.broadcast_to(a, size), np.broadcast_to(b, size))
            gap = wall - foot
            far = np.hypot(gap[:, 0], gap[:, 1])
            near = np.flatnonzero((far < radius + longest + physics.stride_m) & (far > 1e-9))
            n = gap[near] / far[near][:, None]
            room = np.maximum(0.0, far[near] - radius - IN_HAND * physics.contact_m)
            owner.append(near)
            normal.append(n)
            limit.append(((foot[near] - positions[near]) * n).sum(axis=1) + room)
    return HalfPlanes(np.concatenate(owner), np.concatenate(normal), np.concatenate(limit) + 1e-12)
