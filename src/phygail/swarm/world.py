"""What a scenario may have beyond the paper's assumptions: one frozen value, plain unless somebody asks for more.

`World()` is the paper's world: one damage event at t = 0, disc links, no obstacles, vehicles that follow velocities at
once, a shared center and roster, one flight layer. Every random number of a world is a pure function of (case, purpose,
step, UAV or pair): all methods meet the same weather, wherever they are and however many processes fly.
"""

from __future__ import annotations

import math
import zlib
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np

from phygail.config import InputError, Physics
from phygail.swarm.checks import LARGEST_BUDGET_STEPS, LARGEST_COORDINATE_M, shown

LEAST_ALIVE = 2
CENTERS = ("shared", "roster", "none")
MODELS = ("disc", "rician")
LARGEST_SEED = 2**63 - 1
UNLUCKY = 1e-4  # chance that two UAVs in range of each other do not hold their link within the budget
MOST_TRIES = 50.0  # to hold a link that a budget waits for
_MIX = (np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))


@dataclass(frozen=True)
class Event:
    """A loss in flight, by name or by place.

    Attributes:
        step: The UAVs are gone from this step on.
        uavs: Roster indices.
        strike: (x, y, radius) m: everybody there at that time.
        near_random: Radius, m, of a strike around a UAV that is alive then, drawn.
    """

    step: int
    uavs: tuple[int, ...] = ()
    strike: tuple[float, float, float] | None = None
    near_random: float | None = None


@dataclass(frozen=True)
class Obstacle:
    """A convex region that nobody may enter: all points within `radius_m` of the hull of its corners.

    Attributes:
        corners: (x, y) m: one for a disc, two for a wall, three or more, counterclockwise, for a polygon.
        radius_m: Of the disc; half the thickness of the wall; 0 for a polygon.
        radio: Whether radio passes through.
    """

    corners: tuple[tuple[float, float], ...]
    radius_m: float = 0.0
    radio: bool = True


@dataclass(frozen=True)
class LinkModel:
    """Which pairs in reach hear each other; the default is the disc.

    Attributes:
        model: "disc", or "rician": Friis with Rician fading, calibrated so that a hello at the radio range is lost with
            probability `outage`.
        k_db: Rician K factor. outage: In (0, 1).
        shadow_db: Standard deviation of slow log-normal shadowing per pair. shadow_s: Its correlation time.
        asymmetry_db: Standard deviation of a constant per UAV: what it hears worse than others.
        heard: (x, y): a link comes up at x of the last y hellos heard both ways. drop: It goes down below this many.
        outage_share: Share of the time that each link within the radio range is out. outage_s: Mean duration.
    """

    model: Literal["disc", "rician"] = "disc"
    k_db: float = 10.0
    outage: float = 0.1
    shadow_db: float = 0.0
    shadow_s: float = 2.0
    asymmetry_db: float = 0.0
    heard: tuple[int, int] = (9, 10)
    drop: int = 5
    outage_share: float = 0.0
    outage_s: float = 2.0

    @property
    def certain(self) -> bool:
        """Whether silence within the radio range proves that nobody is there."""
        return self.model == "disc" and self.outage_share == 0


@dataclass(frozen=True)
class Vehicle:
    """How a UAV follows a velocity.

    Attributes:
        accel_mps2: Limit of the acceleration. lag_s: Time constant of the velocity.
        wind_mps: (x, y), constant; the speed limit is that of the airspeed.
    """

    accel_mps2: float = math.inf
    lag_s: float = 0.0
    wind_mps: tuple[float, float] = (0.0, 0.0)

    @property
    def inertia(self) -> bool:
        """Whether it cannot follow every velocity at once."""
        return math.isfinite(self.accel_mps2) or self.lag_s > 0


@dataclass(frozen=True)
class Knowledge:
    """What the UAVs know of the time before the damage; each carries a copy, the lowest of a subnet speaks for it.

    Attributes:
        center: "shared"; "roster": they meet at the mean of the roster they know; "none": at their own centroid.
        center_error_m: Every copy of the center is off by this much, each in a direction of its own.
        roster_missing: Share of the entries that a copy lacks. roster_error_m: Standard deviation of the others.
        roster_hops: A copy holds the UAVs within so many hops before the damage; 0: all UAVs.
        detect_miss: Share of the damaged in range that nobody recognizes.
        detect_false: Share of the living within two radio ranges that count as damaged.
        bias_m: Standard deviation of the error of the roster that all copies share.
        map: Whether they know the obstacles.
    """

    center: Literal["shared", "roster", "none"] = "shared"
    center_error_m: float = 0.0
    roster_missing: float = 0.0
    roster_error_m: float = 0.0
    roster_hops: int = 0
    detect_miss: float = 0.0
    detect_false: float = 0.0
    bias_m: float = 0.0
    map: bool = True

    @property
    def exact(self) -> bool:
        """Whether center, roster and detection are right."""
        return replace(self, map=True) == Knowledge()


@dataclass(frozen=True)
class World:
    """Everything that a scenario may have beyond the paper's; the default is the paper's world.

    Attributes:
        events: Losses in flight, by step.
        altitude: m, of every UAV; None: all fly in one layer. level: Whether they climb or sink to the mean of it.
        hold_steps: Reconnected means one network in each of the last so many steps.
        redundant: A network that is one goes on until no single UAV would split it, as far as the budget allows.
        seed: Key of every draw.
        text: The options that it was drawn from, as `phygail.swarm.recipe` reads them; empty if it was written by hand.
    """

    links: LinkModel = LinkModel()
    events: tuple[Event, ...] = ()
    obstacles: tuple[Obstacle, ...] = ()
    vehicle: Vehicle = Vehicle()
    knowledge: Knowledge = Knowledge()
    altitude: tuple[float, ...] | None = None
    level: bool = False
    hold_steps: int = 1
    redundant: bool = False
    seed: int = 0
    text: str = ""

    @cached_property
    def plain(self) -> bool:
        """Whether it is the paper's world."""
        return replace(self, seed=0, text="") == World()

    @property
    def last_event(self) -> int:
        """The step of the last loss; 0 without any."""
        return max((event.step for event in self.events), default=0)

    def label(self) -> str:
        """What stands in the column `world`: the options it was drawn from, or what is in it; empty for the plain."""
        if self.plain:
            return ""
        if self.text:
            return self.text
        listed = {"events": self.events, "obstacles": self.obstacles, "altitudes": self.altitude}
        parts = [f"{name}={len(value)}" for name, value in listed.items() if value]
        parts += [name for name in ("links", "vehicle", "knowledge") if getattr(self, name) != getattr(World(), name)]
        parts += [f"hold={self.hold_steps}"] if self.hold_steps > 1 else []
        return " ".join(parts + ["redundant"] * self.redundant)


PLAIN = World()
assert PLAIN.plain  # worked out once, here


# --- draws -----------------------------------------------------------------------------------------------------------


def draw(seed: int, purpose: str, step: int | np.ndarray, i: np.ndarray | int, j: np.ndarray | int = 0) -> np.ndarray:
    """Uniform numbers in (0, 1), one for each (step, i, j): a pure function of its arguments (splitmix64)."""
    with np.errstate(over="ignore"):
        mixed = np.asarray(np.uint64(seed) ^ np.uint64(zlib.crc32(purpose.encode())) * _MIX[0])
        for part in (step, i, j):
            mixed = _scramble(mixed + np.asarray(part).astype(np.uint64) * _MIX[0] + _MIX[0])
    return (np.asarray(mixed >> np.uint64(11)).astype(float) + 0.5) * 2.0**-53


def draw_normal(
    seed: int, purpose: str, step: int | np.ndarray, i: np.ndarray | int, j: np.ndarray | int = 0
) -> np.ndarray:
    """Standard normal numbers, one for each (step, i, j)."""
    from scipy.special import ndtri

    return ndtri(draw(seed, purpose, step, i, j))


def _scramble(value: np.ndarray) -> np.ndarray:
    value = (value ^ (value >> np.uint64(30))) * _MIX[1]
    value = (value ^ (value >> np.uint64(27))) * _MIX[2]
    return value ^ (value >> np.uint64(31))


def case_seed(seed: int, name: str) -> int:
    """The key of a case's draws, from the seed of its grid and its id."""
    return zlib.crc32(f"{seed}/{name}".encode())


# --- losses ----------------------------------------------------------------------------------------------------------


def losses(world: World, step: int, members: np.ndarray, places: np.ndarray) -> tuple[np.ndarray, bool]:
    """Who is lost at this step, and whether somebody was spared because fewer than two would be left.

    Args:
        world: Whose events count.
        step: t.
        members: (n,) int, roster indices of the alive. places: (N, 2) m, where everybody is.

    Returns:
        (k,) int, sorted roster indices of the alive that are lost now.
    """
    hit = np.zeros(len(places), dtype=bool)
    for number, event in enumerate(world.events):
        if event.step == step:
            hit[list(event.uavs)] = True
            hit |= _struck(world, number, event, members, places)
    lost = members[hit[members]]
    spare = LEAST_ALIVE - (len(members) - len(lost))
    if spare <= 0:
        return lost, False
    lucky = np.argsort(-draw(world.seed, "spared", step, lost), kind="stable")[:spare]
    return np.delete(lost, lucky), True


def _struck(world: World, number: int, event: Event, members: np.ndarray, places: np.ndarray) -> np.ndarray:
    """(N,) bool, which UAVs are inside the disc of an event."""
    if event.near_random is not None:
        middle, radius = places[members[draw(world.seed, "strike", number, members).argmax()]], event.near_random
    elif event.strike is not None:
        middle, radius = np.array(event.strike[:2]), event.strike[2]
    else:
        return np.zeros(len(places), dtype=bool)
    return np.hypot(*(places - middle).T) <= radius


def battery_events(charge_s: np.ndarray, uavs: list[int], step_s: float, budget_steps: int) -> list[Event]:
    """One event for each of `uavs` whose battery ((N,) s) is empty before the budget ends; the last two hold on."""
    steps = {uav: max(1, math.ceil(charge_s[uav] / step_s - 1e-9)) for uav in uavs}
    early = sorted((step, uav) for uav, step in steps.items() if step <= budget_steps)
    return [Event(step, (uav,)) for step, uav in early[: max(0, len(uavs) - LEAST_ALIVE)]]


# --- budgets ---------------------------------------------------------------------------------------------------------


def turn_steps(vehicle: Vehicle, physics: Physics) -> int:
    """Steps that a vehicle at full speed loses when it turns around: 2 v / a, and twice its lag."""
    if not vehicle.inertia:
        return 0
    brake = physics.speed_mps / vehicle.accel_mps2 if math.isfinite(vehicle.accel_mps2) else 0.0
    return math.ceil(2 * (brake + vehicle.lag_s) / physics.step_s - 1e-9)


def wait_steps(links: LinkModel, hold_steps: int, step_s: float) -> int:
    """Steps in which a single link that is in range has held for `hold_steps` with probability 1 - `UNLUCKY` or so.

    A link is out with the share p, and up for outage_s (1 - p) / p on average, exponentially: long enough with
    probability P. At once it holds with (1 - p) P; each further attempt, after an outage, fails with 1 - P. An attempt
    counts as two mean outages and the time to hold.
    """
    if links.outage_share == 0:
        return hold_steps - 1
    up_s = links.outage_s * (1.0 - links.outage_share) / links.outage_share
    enough = math.exp(-hold_steps * step_s / up_s)
    failing = 1.0 - (1.0 - links.outage_share) * enough
    attempts = 1.0
    if failing > UNLUCKY:
        attempts += math.log(UNLUCKY / failing) / math.log(max(1.0 - enough, UNLUCKY)) if enough > 1e-9 else MOST_TRIES
    wait_s = min(attempts, MOST_TRIES) * (2 * links.outage_s + hold_steps * step_s)
    return hold_steps - 1 + math.ceil(wait_s / step_s)


# --- checks ----------------------------------------------------------------------------------------------------------


def checked_world(
    world: World, *, layout: np.ndarray, damaged: np.ndarray, speed_mps: float, step_s: float, budget_steps: int
) -> World:
    """The world if it fits its case; otherwise an error that names value, bound and remedy."""
    if world.plain:
        return world
    wind = math.hypot(*world.vehicle.wind_mps)
    _check_events(world, layout, set(damaged.tolist()), (speed_mps + wind) * step_s, budget_steps)
    if wind >= speed_mps:
        raise InputError(f"wind of {wind:g} m/s: it must be below the speed limit of {speed_mps:g} m/s")
    if world.altitude is not None and len(world.altitude) != len(layout):
        raise InputError(f"{len(world.altitude)} altitudes for {len(layout)} positions: give one for each")
    if not 1 <= world.hold_steps <= budget_steps:
        raise InputError(f"hold_steps {world.hold_steps}: choose from 1 to the budget of {budget_steps} steps")
    return world


def _check_events(world: World, layout: np.ndarray, gone: set[int], stride_m: float, budget_steps: int) -> None:
    uavs = len(layout)
    for number, event in enumerate(world.events):
        where = f"event {number}"
        if not 1 <= event.step <= budget_steps:
            raise InputError(f"{where}: step {event.step} must be from 1 to the budget of {budget_steps}")
        for uav in event.uavs:
            if not 0 <= uav < uavs:
                raise InputError(f"{where}: UAV {uav} is out of range: the swarm has UAVs 0 to {uavs - 1}")
            if uav in gone:
                raise InputError(f"{where}: UAV {uav} is lost already: name it once, and not among the damaged")
            gone.add(uav)
    for event in world.events:
        if event.strike is not None:  # it hits at least those that cannot have left its disc by then
            away = np.hypot(*(layout - np.array(event.strike[:2])).T) + event.step * stride_m
            gone |= set(np.flatnonzero(away <= event.strike[2]).tolist())
    if uavs - len(gone) < LEAST_ALIVE:
        raise InputError(
            f"damage and events leave {uavs - len(gone)} of {uavs} UAVs: at least {LEAST_ALIVE} must stay alive"
        )


def number(name: str, value: Any, low: float, high: float = LARGEST_COORDINATE_M, *, open_ends: str = "") -> float:
    """A finite number within its bounds; `open_ends` names the ends ("low", "high") that are excluded."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise InputError(f"{name} {shown(value)}: give a finite number")
    above = value > low if "low" in open_ends else value >= low
    below = value < high if "high" in open_ends else value <= high
    if not (above and below):
        bottom, top = "above" if "low" in open_ends else "from", "and below" if "high" in open_ends else "to"
        raise InputError(f"{name} {value:g}: choose {bottom} {low:g} {top} {high:g}")
    return float(value)


def whole(name: str, value: Any, low: int, high: int = LARGEST_BUDGET_STEPS) -> int:
    """A whole number within its bounds."""
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise InputError(f"{name} {shown(value)}: give a whole number from {low} to {high:,}")
    return value


def checked_links(links: LinkModel) -> LinkModel:
    """The link model if its numbers make sense."""
    if links.model not in MODELS:
        raise InputError(f"links.model {shown(links.model)}: choose {', '.join(MODELS)}")
    number("k_db", links.k_db, -100.0, 100.0)
    number("outage", links.outage, 0.0, 1.0, open_ends="low high")
    number("shadow_db", links.shadow_db, 0.0, 100.0)
    number("shadow_s", links.shadow_s, 0.0, open_ends="low")
    number("asymmetry_db", links.asymmetry_db, 0.0, 100.0)
    number("outage_share", links.outage_share, 0.0, 1.0, open_ends="high")
    number("outage_s", links.outage_s, 0.0, open_ends="low")
    least, window = links.heard
    if not 1 <= least <= window <= 64:
        raise InputError(f"heard [{least}, {window}]: give [x, y] with 1 <= x <= y <= 64: x of the last y hellos")
    if not 0 <= links.drop <= least:
        raise InputError(f"drop {links.drop}: choose from 0 to {least}, what brings a link up")
    return links


def checked_knowledge(known: Knowledge) -> Knowledge:
    """Knowledge if its numbers make sense."""
    if known.center not in CENTERS:
        raise InputError(f"knowledge.center {shown(known.center)}: choose {', '.join(CENTERS)}")
    for name in ("center_error_m", "roster_error_m", "bias_m"):
        number(name, getattr(known, name), 0.0)
    for name in ("detect_miss", "detect_false"):
        number(name, getattr(known, name), 0.0, 1.0)
    number("roster_missing", known.roster_missing, 0.0, 1.0)
    whole("roster_hops", known.roster_hops, 0)
    if known.roster_missing == 1 and known.center == "roster":
        raise InputError("roster_missing 1 with center 'roster': nobody knows where to meet; choose a share below 1")
    return known


def checked_vehicle(vehicle: Vehicle) -> Vehicle:
    """The vehicle if its numbers make sense."""
    if not vehicle.accel_mps2 > 0:  # NaN fails too
        raise InputError(f"accel_mps2 {vehicle.accel_mps2:g}: give a positive acceleration")
    number("lag_s", vehicle.lag_s, 0.0, 100.0)
    for part in vehicle.wind_mps:
        number("wind_mps", part, -LARGEST_COORDINATE_M)
    return vehicle


def turned(world: World, matrix: np.ndarray, center: np.ndarray) -> World:
    """The world turned or mirrored about `center` by a (2, 2) orthogonal matrix."""
    if world.plain:
        return world

    def turn(x: float, y: float) -> tuple[float, float]:
        place = (np.array([x, y]) - center) @ matrix.T + center
        return float(place[0]), float(place[1])

    mirrored = bool(np.linalg.det(matrix) < 0)
    obstacles = tuple(
        replace(o, corners=tuple(turn(*c) for c in (o.corners[::-1] if mirrored else o.corners)))
        for o in world.obstacles
    )
    events = tuple(
        replace(e, strike=(*turn(*e.strike[:2]), e.strike[2])) if e.strike is not None else e for e in world.events
    )
    wind = matrix @ np.array(world.vehicle.wind_mps)
    vehicle = replace(world.vehicle, wind_mps=(float(wind[0]), float(wind[1])))
    return replace(world, obstacles=obstacles, events=events, vehicle=vehicle)
