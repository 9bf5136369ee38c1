"""Worlds in scenario files: the keys that say what a scenario has beyond the plain world."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import Any

import numpy as np

from phygail.config import InputError
from phygail.swarm.checks import shown
from phygail.swarm.world import (
    PLAIN,
    Event,
    Knowledge,
    LinkModel,
    Obstacle,
    Vehicle,
    World,
    case_seed,
    checked_knowledge,
    checked_links,
    checked_vehicle,
    number,
    whole,
)

WORLD_KEYS = ("world", "weather", "hold_steps", "links", "events", "obstacles", "vehicle", "knowledge", "altitude",
              "level", "redundant", "battery_s")  # fmt: skip


def world_to_json(world: World) -> dict[str, Any]:
    """The keys of a scenario file that say what its world is; none for the plain world."""
    if world.plain:
        return {}
    entry: dict[str, Any] = {"weather": world.seed}
    if world.text:
        entry["world"] = world.text
    for name in ("links", "vehicle", "knowledge"):
        entry |= {name: part} if (part := _changed(getattr(world, name))) else {}
    if world.events:
        entry["events"] = [_event_to_json(event) for event in world.events]
    if world.obstacles:
        entry["obstacles"] = [_obstacle_to_json(obstacle) for obstacle in world.obstacles]
    if world.altitude is not None:
        entry["altitude"] = list(world.altitude)
    for name in ("level", "redundant", "hold_steps"):
        entry |= {name: getattr(world, name)} if getattr(world, name) != getattr(PLAIN, name) else {}
    return entry


def _changed(part: Any) -> dict[str, Any]:
    usual = asdict(type(part)())
    return {name: list(v) if isinstance(v, tuple) else v for name, v in asdict(part).items() if v != usual[name]}


def _event_to_json(event: Event) -> dict[str, Any]:
    named = {"uavs": list(event.uavs), "strike": event.strike and list(event.strike), "near_random": event.near_random}
    return {"step": event.step, **{name: value for name, value in named.items() if value}}


def _obstacle_to_json(obstacle: Obstacle) -> dict[str, Any]:
    flat = [value for corner in obstacle.corners for value in corner]
    dark = {} if obstacle.radio else {"radio": False}
    if len(obstacle.corners) == 1:
        return {"disc": [*flat, obstacle.radius_m], **dark}
    if len(obstacle.corners) == 2:
        return {"wall": [*flat, 2 * obstacle.radius_m], **dark}
    return {"polygon": [list(corner) for corner in obstacle.corners], **dark}


def world_from_json(entry: Mapping[str, Any], name: str) -> World:
    """The world that an entry of a scenario file describes, checked as far as it can be without its case."""
    if not any(key in entry for key in WORLD_KEYS):
        return PLAIN
    altitude = entry.get("altitude")
    if altitude is not None:
        altitude = tuple(number("altitude", z, -1e6, 1e6) for z in listed("altitude", altitude))
    text = entry.get("world", "")
    if not isinstance(text, str) or not text.isprintable():
        raise InputError(f"world {shown(text)}: give the options it was drawn from as text, or leave it out")
    for key in ("level", "redundant"):
        if not isinstance(entry.get(key, False), bool):
            raise InputError(f"{key} {shown(entry[key])}: give true or false")
    return World(
        links=checked_links(_part(LinkModel, entry.get("links", {}), "links")),
        events=tuple(_event(e, k) for k, e in enumerate(listed("events", entry.get("events", [])))),
        obstacles=tuple(_obstacle(o, k) for k, o in enumerate(listed("obstacles", entry.get("obstacles", [])))),
        vehicle=checked_vehicle(_part(Vehicle, entry.get("vehicle", {}), "vehicle")),
        knowledge=checked_knowledge(_part(Knowledge, entry.get("knowledge", {}), "knowledge")),
        altitude=altitude, level=entry.get("level", False), redundant=entry.get("redundant", False),
        hold_steps=whole("hold_steps", entry.get("hold_steps", 1), 1),
        seed=whole("weather", entry.get("weather", case_seed(0, name)), 0, 2**63 - 1), text=text,
    )  # fmt: skip


def charges(values: Any, uavs: int) -> np.ndarray:
    """(N,) s, how long each battery of a file lasts."""
    charge = np.array([number("battery_s", value, 0.0) for value in listed("battery_s", values)])
    if len(charge) != uavs:
        raise InputError(f"{len(charge)} values of battery_s for {uavs} positions: give one for each")
    return charge


def _part(kind: Any, given: Any, where: str) -> Any:
    """A part of a world (a frozen dataclass) from its JSON object in a file."""
    usual = kind()
    if not isinstance(given, dict):
        raise InputError(f"{where} {shown(given)}: give an object with {', '.join(f.name for f in fields(kind))}")
    values = {}
    for key, value in given.items():
        if key not in (f.name for f in fields(kind)):
            raise InputError(f"{where}: unknown key {shown(key)}; known are {', '.join(f.name for f in fields(kind))}")
        values[key] = _like(getattr(usual, key), value, f"{where}.{key}")
    return kind(**values)


def _like(usual: Any, value: Any, name: str) -> Any:
    """A value of a file, checked to have the type of the default."""
    if isinstance(usual, bool | str):
        if not isinstance(value, type(usual)):
            raise InputError(f"{name} {shown(value)}: give {'true or false' if isinstance(usual, bool) else 'a word'}")
        return value
    if isinstance(usual, tuple):
        parts = listed(name, value)
        if len(parts) != len(usual):
            raise InputError(f"{name} {shown(value)}: give {len(usual)} numbers")
        return tuple(_like(u, v, name) for u, v in zip(usual, parts, strict=True))
    if isinstance(usual, int):
        return whole(name, value, -(10**9), 10**9)
    return number(name, value, -1e9, 1e9)


def listed(name: str, value: Any) -> list[Any]:
    """A value of a file, checked to be a list."""
    if not isinstance(value, list):
        raise InputError(f"{name} {shown(value)}: give a list")
    return value


def _event(entry: Any, index: int) -> Event:
    kinds = ("uavs", "strike", "near_random")
    if not isinstance(entry, dict) or set(entry) - {"step", *kinds} or sum(k in entry for k in kinds) != 1:
        raise InputError(f"event {index} {shown(entry)}: give step and one of {', '.join(kinds)}")
    where = f"event {index}"
    step = whole(f"{where}: step", entry.get("step"), 1)
    if "uavs" in entry:
        return Event(step, tuple(whole(f"{where}: UAV", uav, 0) for uav in listed(where, entry["uavs"])))
    if "near_random" in entry:
        return Event(step, near_random=number(f"{where}: near_random", entry["near_random"], 0.0))
    parts = listed(f"{where}: strike", entry["strike"])
    if len(parts) != 3:
        raise InputError(f"{where}: strike {shown(parts)}: give [x, y, radius] in meters")
    x, y = (number(f"{where}: strike", value, -1e7) for value in parts[:2])
    return Event(step, strike=(x, y, number(f"{where}: radius", parts[2], 0.0)))


def _obstacle(entry: Any, index: int) -> Obstacle:
    kinds = {"disc": 3, "wall": 5, "polygon": 0}
    where = f"obstacle {index}"
    if not isinstance(entry, dict) or set(entry) - {*kinds, "radio"} or sum(k in entry for k in kinds) != 1:
        raise InputError(f"{where} {shown(entry)}: give one of {', '.join(kinds)}, and radio: false if it blocks it")
    kind = next(k for k in kinds if k in entry)
    radio = entry.get("radio", True)
    if not isinstance(radio, bool):
        raise InputError(f"{where}: radio {shown(radio)}: give true or false")
    parts = listed(f"{where}: {kind}", entry[kind])
    if kind == "polygon":
        return Obstacle(_polygon(parts, where), 0.0, radio)
    if len(parts) != kinds[kind]:
        raise InputError(f"{where}: {kind} {shown(parts)}: give {kinds[kind]} numbers of meters")
    values = [number(f"{where}: {kind}", value, -1e7) for value in parts]
    size = number(f"{where}: {'radius' if kind == 'disc' else 'thickness'}", values[-1], 0.0, open_ends="low")
    corners = tuple((values[k], values[k + 1]) for k in range(0, len(values) - 1, 2))
    if kind == "wall" and corners[0] == corners[1]:
        raise InputError(f"{where}: wall {shown(parts)} has no length: give a disc, or two different ends")
    return Obstacle(corners, size if kind == "disc" else size / 2, radio)


def _polygon(parts: list[Any], where: str) -> tuple[tuple[float, float], ...]:
    """The corners of a convex polygon, counterclockwise."""
    if len(parts) < 3 or any(not isinstance(corner, list) or len(corner) != 2 for corner in parts):
        raise InputError(f"{where}: a polygon needs at least 3 corners [x, y]")
    corners = [tuple(number(f"{where}: corner", value, -1e7) for value in corner) for corner in parts]
    points = np.array(corners)
    along = np.roll(points, -1, axis=0) - points
    turn = along[:, 0] * np.roll(along[:, 1], -1) - along[:, 1] * np.roll(along[:, 0], -1)
    # Convex: always the same turn, and once around in all (a pentagram turns twice).
    angles = np.arctan2(turn, (along * np.roll(along, -1, axis=0)).sum(axis=1))
    if not ((turn > 0).all() or (turn < 0).all()) or abs(abs(angles.sum()) - 2 * math.pi) > 1e-6:
        raise InputError(f"{where}: the polygon is not convex or crosses itself: split it into convex ones")
    ordered = corners if turn[0] > 0 else corners[::-1]
    return tuple((float(x), float(y)) for x, y in ordered)
