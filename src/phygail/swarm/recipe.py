"""Worlds as text: options such as "waves=3:40:150 hold=10", and the world that is drawn from them for a case."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from phygail.config import InputError
from phygail.files import parse_number
from phygail.swarm.obstacles import Shapes, closed_in
from phygail.swarm.scenario import Scenario, in_world
from phygail.swarm.world import (
    MODELS,
    Event,
    Knowledge,
    LinkModel,
    Obstacle,
    Vehicle,
    World,
    battery_events,
    case_seed,
    checked_knowledge,
    checked_links,
    checked_vehicle,
    draw,
    draw_normal,
)

# Option -> how its value is written; an option without a value is a switch. In the order of the canonical text.
OPTIONS: dict[str, str] = {
    "waves": "COUNT:EVERY:RADIUS",
    "trickle": "SHARE:WITHIN",
    "battery": "MEAN:SPREAD",
    "obstacles": "COUNT:FROM-TO",
    "walls": "COUNT:LENGTH",
    "shadow": "",
    "no-map": "",
    "outages": "SHARE:SECONDS",
    "links": "rician:k=10,outage=0.1,...",
    "center-error": "M",
    "no-center": "roster|own",
    "roster-missing": "SHARE",
    "roster-error": "M",
    "roster-hops": "COUNT",
    "detect-miss": "SHARE",
    "detect-false": "SHARE",
    "knowledge-bias": "M",
    "accel": "M/S2",
    "lag": "S",
    "wind": "M/S",
    "altitude-spread": "M",
    "level": "",
    "hold": "STEPS",
    "redundant": "",
}
WALL_M = 10.0  # thickness of drawn walls
CLEAR_M = 15.0  # drawn obstacles keep this far from UAVs and center, for a radio range of 120 m
PLACES = 500  # places tried for an obstacle before the map counts as full
_LINK_KEYS = {
    "k": "k_db",
    "outage": "outage",
    "shadow": "shadow_db",
    "shadow-s": "shadow_s",
    "asymmetry": "asymmetry_db",
}
_KNOWN = {"center-error": "center_error_m", "roster-missing": "roster_missing", "roster-error": "roster_error_m",
          "detect-miss": "detect_miss", "detect-false": "detect_false", "knowledge-bias": "bias_m"}  # fmt: skip


# --- text ------------------------------------------------------------------------------------------------------------


def parse_world(text: str) -> dict[str, str]:
    """The options of a text such as "waves=3:40:150 hold=10", in canonical order, each checked."""
    options: dict[str, str] = {}
    for part in text.split():
        name, _, value = part.partition("=")
        if name in options:
            raise InputError(f"--world: {name} is given twice: give it once")
        options[name] = value
    return checked_options(options, "--world")


def checked_options(options: Mapping[str, str], where: str = "") -> dict[str, str]:
    """Options in canonical order; an error names the flag (or `where`), the value and the bound."""
    for name, value in options.items():
        if name not in OPTIONS:
            raise InputError(f"{where or 'world'}: unknown option {name!r}; known are {', '.join(OPTIONS)}")
        if bool(value) != bool(OPTIONS[name]):
            remedy = f"write {name}={OPTIONS[name]}" if OPTIONS[name] else f"write {name} alone"
            raise InputError(f"--{name} {value!r}: {remedy}")
    ordered = {name: options[name] for name in OPTIONS if name in options}
    _standing(ordered)  # refuses values that make no sense
    for name in ("waves", "trickle", "battery", "obstacles", "walls", "altitude-spread", "wind"):
        if name in ordered:
            _numbers(name, ordered[name])
    return ordered


def canonical(options: Mapping[str, str]) -> str:
    """The text of the column `world`; `parse_world` reads it back."""
    return " ".join(name if value == "" else f"{name}={value}" for name, value in options.items())


_BOUNDS: dict[str, tuple[tuple[str, float, float], ...]] = {
    "waves": (("count", 1, 1000), ("steps between strikes", 1, 1e6), ("radius", 0, 1e7)),
    "trickle": (("share of the survivors", 0, 0.999), ("steps", 1, 1e6)),
    "battery": (("mean in s", 1e-6, 1e7), ("spread in s", 0, 1e7)),
    "obstacles": (("count", 1, 200), ("smallest radius", 1e-3, 1e6), ("largest radius", 1e-3, 1e6)),
    "walls": (("count", 1, 200), ("length", 1e-3, 1e6)),
    "outages": (("share", 0, 0.999), ("mean duration in s", 1e-3, 1e6)),
    "altitude-spread": (("spread", 0, 1e6),),
    "wind": (("speed", 0, 1e6),),
    "center-error": (("error", 0, 1e7),),
    "roster-missing": (("share", 0, 1),),
    "roster-error": (("error", 0, 1e7),),
    "roster-hops": (("hops", 1, 1e6),),
    "detect-miss": (("share", 0, 1),),
    "detect-false": (("share", 0, 1),),
    "knowledge-bias": (("error", 0, 1e7),),
    "accel": (("acceleration", 1e-6, 1e6),),
    "lag": (("lag", 0, 100),),
    "hold": (("steps", 1, 1e6),),
}  # fmt: skip
_WHOLE = {"count", "steps", "steps between strikes", "hops"}


def _numbers(name: str, text: str) -> list[float]:
    """The numbers of an option's value, within their bounds."""
    bounds = _BOUNDS[name]
    parts = text.replace("-", ":").split(":") if name == "obstacles" else text.split(":")
    if name == "obstacles" and len(parts) == 2:
        parts.append(parts[1])
    if len(parts) != len(bounds):
        raise InputError(f"--{name} {text!r}: write {OPTIONS[name]}")
    values = []
    for part, (what, low, high) in zip(parts, bounds, strict=True):
        try:
            value = parse_number(part)
        except ValueError:
            raise InputError(f"--{name} {text!r}: {part!r} is not a number; write {OPTIONS[name]}") from None
        if not low <= value <= high or (what in _WHOLE and value != int(value)):
            kind = "a whole number " if what in _WHOLE else ""
            raise InputError(f"--{name} {text}: {what} {value:g} must be {kind}from {low:g} to {high:g}")
        values.append(value)
    if name == "obstacles" and values[1] > values[2]:
        raise InputError(f"--{name} {text}: the smallest radius {values[1]:g} is above the largest {values[2]:g}")
    return values


def _one(options: Mapping[str, str], name: str, default: float) -> float:
    return _numbers(name, options[name])[0] if name in options else default


def _standing(options: Mapping[str, str]) -> World:
    """The part of a world that does not depend on any draw."""
    share, seconds = _numbers("outages", options["outages"]) if "outages" in options else (0.0, 2.0)
    centers = {"": "shared", "roster": "roster", "own": "none"}
    if options.get("no-center", "") not in centers:
        raise InputError(f"--no-center {options['no-center']!r}: choose roster (meet at its centroid) or own")
    known = Knowledge(
        center=centers[options.get("no-center", "")],  # type: ignore[arg-type]
        roster_hops=int(_one(options, "roster-hops", 0)), map="no-map" not in options,
        **{field: _one(options, name, 0.0) for name, field in _KNOWN.items()},
    )  # fmt: skip
    for name, needed in (
        ("no-map", "obstacles or walls"),
        ("shadow", "obstacles or walls"),
        ("level", "altitude-spread"),
    ):
        if name in options and not any(part in options for part in needed.split(" or ")):
            raise InputError(f"--{name} needs --{needed.replace(' or ', ' or --')}")
    return World(
        links=checked_links(replace(link_model(options.get("links", "")), outage_share=share, outage_s=seconds)),
        vehicle=checked_vehicle(Vehicle(_one(options, "accel", math.inf), _one(options, "lag", 0.0))),
        knowledge=checked_knowledge(known), level="level" in options, hold_steps=int(_one(options, "hold", 1)),
        redundant="redundant" in options,
    )  # fmt: skip


def link_model(text: str) -> LinkModel:
    """`rician:k=10,outage=0.1,shadow=3,heard=9/10,drop=5`."""
    if not text:
        return LinkModel()
    model, _, rest = text.partition(":")
    if model not in MODELS:
        raise InputError(f"--links {text!r}: choose disc or rician, e.g. rician:k=10,outage=0.1")
    given: dict[str, Any] = {"model": model}
    for part in filter(None, rest.split(",")):
        name, _, value = part.partition("=")
        try:
            if name == "heard":
                least, _, window = value.partition("/")
                given["heard"] = (int(least), int(window))
            elif name == "drop":
                given["drop"] = int(value)
            else:
                given[_LINK_KEYS[name]] = parse_number(value)
        except KeyError:
            known = ", ".join((*_LINK_KEYS, "heard", "drop"))
            raise InputError(f"--links {text!r}: unknown part {name!r}; known are {known}") from None
        except ValueError:
            raise InputError(f"--links {text!r}: {part!r} is no number; write e.g. k=10 or heard=9/10") from None
    if "heard" in given and "drop" not in given:
        given["drop"] = min(LinkModel().drop, given["heard"][0])
    return LinkModel(**given)


# --- drawn worlds ----------------------------------------------------------------------------------------------------


def with_world(scenario: Scenario, options: Mapping[str, str]) -> Scenario:
    """The scenario in the world that these options draw for it: a pure function of the options and the scenario."""
    if not options:
        return scenario
    seed = case_seed(scenario.seed or 0, scenario.id)
    wind = _one(options, "wind", 0.0)
    angle = 2 * math.pi * float(draw(seed, "wind", 0, 0))
    standing = _standing(options)
    blows = (wind * math.cos(angle), wind * math.sin(angle)) if wind else (0.0, 0.0)
    world = replace(
        standing, seed=seed, text=canonical(options),
        events=_drawn_events(options, scenario, seed), obstacles=_drawn_obstacles(options, scenario, seed),
        vehicle=replace(standing.vehicle, wind_mps=blows),
        altitude=_drawn_altitude(options, scenario, seed),
    )  # fmt: skip
    return in_world(scenario, world)


def _drawn_events(options: Mapping[str, str], scenario: Scenario, seed: int) -> tuple[Event, ...]:
    events: list[Event] = []
    if "waves" in options:
        count, every, radius = _numbers("waves", options["waves"])
        events += [Event(int(every) * (k + 1), near_random=radius) for k in range(int(count))]
    alive = scenario.alive
    if "trickle" in options:
        share, within = _numbers("trickle", options["trickle"])
        count = min(math.floor(share * len(alive) + 0.5), len(alive) - 2)
        who = alive[np.argsort(draw(seed, "trickle", 0, alive), kind="stable")[:count]]
        when = 1 + np.floor(draw(seed, "trickle", 1, who) * within).astype(int)
        events += [Event(int(t), (int(uav),)) for t, uav in sorted(zip(when.tolist(), who.tolist(), strict=True))]
    if "battery" in options:
        mean, spread = _numbers("battery", options["battery"])
        taken = {uav for event in events for uav in event.uavs}
        charge = mean + spread * draw_normal(seed, "battery", 0, np.arange(scenario.uavs))
        flying = [uav for uav in alive.tolist() if uav not in taken]
        events += battery_events(charge, flying, scenario.physics.step_s, scenario.budget_steps)
    return tuple(sorted(events, key=lambda event: event.step))


def _drawn_altitude(options: Mapping[str, str], scenario: Scenario, seed: int) -> tuple[float, ...] | None:
    if "altitude-spread" not in options:
        return None
    spread = _one(options, "altitude-spread", 0.0)
    return tuple((100.0 + spread * draw_normal(seed, "altitude", 0, np.arange(scenario.uavs))).tolist())


def _drawn_obstacles(options: Mapping[str, str], scenario: Scenario, seed: int) -> tuple[Obstacle, ...]:
    """Discs anywhere on the map, walls between survivors and the center; all keep clear of UAVs and center."""
    rng = np.random.default_rng([seed, 1])
    found: list[Obstacle] = []
    clear = CLEAR_M * scenario.physics.unit
    points = np.vstack([scenario.spots, scenario.center])
    low, high = scenario.layout.min(axis=0), scenario.layout.max(axis=0)

    def place(make: Any, count: int) -> None:
        for _ in range(count):
            for _ in range(PLACES):
                candidate = make()
                shapes = Shapes.of((*found, candidate))
                if shapes.depth_m(points).max() < -clear and not len(
                    closed_in(shapes, scenario.spots, scenario.center)
                ):
                    found.append(candidate)
                    break
            else:
                raise InputError("the map has no room for so many obstacles: choose fewer or smaller ones")

    radio = "shadow" not in options
    if "obstacles" in options:
        count, least, most = _numbers("obstacles", options["obstacles"])

        def disc() -> Obstacle:
            x, y = rng.uniform(low, high)
            return Obstacle(((float(x), float(y)),), float(rng.uniform(least, max(least, most))), radio)

        place(disc, int(count))
    if "walls" in options:
        count, length = _numbers("walls", options["walls"])

        def wall() -> Obstacle:
            start = scenario.spots[rng.integers(len(scenario.spots))]
            way = scenario.center - start
            middle = start + rng.uniform(0.2, 0.8) * way
            across = np.array([-way[1], way[0]]) / max(math.hypot(*way), 1e-9)
            tilt = rng.uniform(-0.3, 0.3)
            along = math.cos(tilt) * across + math.sin(tilt) * np.array([across[1], -across[0]])
            a, b = middle - along * length / 2, middle + along * length / 2
            return Obstacle(((float(a[0]), float(a[1])), (float(b[0]), float(b[1]))), WALL_M / 2, radio)

        place(wall, int(count))
    return tuple(found)
