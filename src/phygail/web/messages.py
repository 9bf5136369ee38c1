"""What page and server say to each other: every message of a client is checked here, and nowhere else.

The client sends JSON texts:

    {"type": "fly", "race": TAG, "scenario": {...}, "methods": ["convex"], "safety": false,
     "strikes": [{"step": 40, "ids": [3, 17]}], "from": 40}
    {"type": "resume", "race": TAG, "have": 120}     after a lost connection: messages that have arrived already
    {"type": "stop", "race": TAG}

TAG is a random number of the client's choice. Strikes hit in flight, after the move of their step; "from" is the last
step that the client has flown already and need not be told of. Both may be left out. The server answers with binary
frames (four little-endian 32-bit numbers: tag, message number, lane, step; then x, y of every UAV that made the move
as 64-bit floats) and with JSON texts of the types "welcome", "end" and "error".
"""

from __future__ import annotations

import json
import struct
from dataclasses import dataclass
from typing import Any

import numpy as np

from phygail.config import InputError
from phygail.swarm.scenario import Scenario, in_world, scenario_from_json
from phygail.swarm.world import Event, World

MOST_BYTES = 1_000_000  # of a message; a scenario of 1,000 UAVs has 40,000
MOST_UAVS = 1_000
MOST_METHODS = 4
MOST_STRIKES = 200
LATEST_STRIKE = 20_000  # step
LEAST_ALIVE = 2
LARGEST_TAG = 2**32 - 1
_HEADER = struct.Struct("<4I")


@dataclass(frozen=True)
class Strike:
    """UAVs (their numbers in the scenario) that are lost after the move of a step."""

    step: int
    ids: tuple[int, ...]


@dataclass(frozen=True)
class Fly:
    """Start a race; steps up to `begin` are flown but not reported."""

    race: int
    scenario: Scenario
    methods: tuple[str, ...]
    safety: bool
    strikes: tuple[Strike, ...] = ()
    begin: int = 0

    @property
    def struck(self) -> Scenario:
        """The scenario with its strikes as events; UAVs that are lost already are not lost again."""
        gone, events = set(self.scenario.damaged.tolist()), []
        for strike in sorted(self.strikes, key=lambda strike: strike.step):
            hit = tuple(uav for uav in dict.fromkeys(strike.ids) if uav not in gone)
            gone.update(hit)
            events += [Event(strike.step, hit)] if hit else []
        return in_world(self.scenario, World(events=tuple(events)))


@dataclass(frozen=True)
class Resume:
    """Go on with a race after a lost connection; `have` messages have arrived."""

    race: int
    have: int


@dataclass(frozen=True)
class Stop:
    """Forget a race."""

    race: int


def parse_message(text: str, known: frozenset[str]) -> Fly | Resume | Stop:
    """The message of a client, or an InputError that says what is wrong with it.

    Args:
        text: JSON.
        known: Methods that this server flies.
    """
    if len(text) > MOST_BYTES:
        raise InputError(f"a message of {len(text):,} characters: at most {MOST_BYTES:,} are read")
    try:
        content = json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError):
        raise InputError("the message is not JSON") from None
    if not isinstance(content, dict):
        raise InputError("the message is no object")
    race = _whole(content.get("race"), "race", LARGEST_TAG)
    kind = content.get("type")
    if kind == "stop":
        return Stop(race)
    if kind == "resume":
        return Resume(race, _whole(content.get("have"), "have", LARGEST_TAG))
    if kind != "fly":
        raise InputError("the message has no type that is known: fly, resume or stop")
    if not isinstance(content.get("safety"), bool):
        raise InputError("'safety' must be true or false")
    scenario = _scenario(content.get("scenario"))
    strikes = _strikes(content.get("strikes", []), scenario)
    begin = _whole(content.get("from", 0), "from", LATEST_STRIKE)
    return Fly(race, scenario, _methods(content.get("methods"), known), content["safety"], strikes, begin)


def _scenario(entry: Any) -> Scenario:
    positions = entry.get("positions") if isinstance(entry, dict) else None
    if isinstance(positions, list) and len(positions) > MOST_UAVS:
        raise InputError(f"{len(positions):,} UAVs: the server flies up to {MOST_UAVS:,}")
    scenario = scenario_from_json(entry, "scenario")
    if not scenario.world.plain:
        raise InputError("the server flies the plain world: losses in flight are 'strikes' of the message")
    return scenario


def _strikes(entries: Any, scenario: Scenario) -> tuple[Strike, ...]:
    if not isinstance(entries, list) or len(entries) > MOST_STRIKES:
        raise InputError(f"'strikes' must be a list of at most {MOST_STRIKES}")
    strikes = tuple(_strike(entry, scenario) for entry in entries)
    lost = {uav for strike in strikes for uav in strike.ids} - set(scenario.damaged.tolist())
    left = len(scenario.alive) - len(lost)
    if left < LEAST_ALIVE:
        raise InputError(f"the strikes leave {left} UAVs: at least {LEAST_ALIVE} must stay alive")
    return strikes


def _strike(entry: Any, scenario: Scenario) -> Strike:
    if not isinstance(entry, dict) or not isinstance(entry.get("ids"), list) or len(entry["ids"]) > scenario.uavs:
        raise InputError("a strike must be an object with a step and a list of ids")
    step = _whole(entry.get("step"), "step", LATEST_STRIKE)
    if step == 0:
        raise InputError("a strike at step 0 is part of the scenario: name its UAVs in 'damaged'")
    return Strike(step, tuple(_whole(uav, "ids", scenario.uavs - 1) for uav in entry["ids"]))


def _methods(names: Any, known: frozenset[str]) -> tuple[str, ...]:
    if not isinstance(names, list) or not 1 <= len(names) <= MOST_METHODS:
        raise InputError(f"'methods' must be a list of 1 to {MOST_METHODS} names")
    for name in names:
        if not isinstance(name, str) or name not in known:
            raise InputError(f"the method {str(name)[:40]!r} is not flown here")
    return tuple(dict.fromkeys(names))


def _whole(value: Any, name: str, most: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= most:
        raise InputError(f"{name!r} must be a whole number from 0 to {most}")
    return value


def _refuse(constant: str) -> float:
    raise ValueError(f"{constant} is no number")


def frame_bytes(race: int, number: int, lane: int, step: int, positions: np.ndarray) -> bytes:
    """A frame: the positions ((n, 2) m) of one lane at one step."""
    return _HEADER.pack(race, number, lane, step) + positions.astype("<f8").tobytes()


def read_frame(data: bytes) -> tuple[int, int, int, int, np.ndarray]:
    """(race, number, lane, step, (n, 2) m) of a frame: what the page does in JavaScript."""
    return (*_HEADER.unpack_from(data), np.frombuffer(data, dtype="<f8", offset=_HEADER.size).reshape(-1, 2))
