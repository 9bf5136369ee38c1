"""What page and server say to each other: every message of a client is checked here, and nowhere else.

The client sends JSON texts:

    {"type": "fly", "race": TAG, "scenario": {...}, "methods": ["convex"], "safety": false}
    {"type": "resume", "race": TAG, "have": 120}     after a lost connection: messages that have arrived already
    {"type": "stop", "race": TAG}

TAG is a random number of the client's choice. The server answers with binary frames (four little-endian 32-bit numbers:
tag, message number, lane, step; then x, y of every alive UAV as 64-bit floats) and with JSON texts of the types
"welcome", "end" and "error".
"""

from __future__ import annotations

import json
import struct
from dataclasses import dataclass
from typing import Any

import numpy as np

from phygail.config import InputError
from phygail.swarm.scenario import Scenario, scenario_from_json

MOST_BYTES = 1_000_000  # of a message; a scenario of 1,000 UAVs has 40,000
MOST_UAVS = 1_000
MOST_METHODS = 4
LARGEST_TAG = 2**32 - 1
_HEADER = struct.Struct("<4I")


@dataclass(frozen=True)
class Fly:
    """Start a race."""

    race: int
    scenario: Scenario
    methods: tuple[str, ...]
    safety: bool


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
    return Fly(race, _scenario(content.get("scenario")), _methods(content.get("methods"), known), content["safety"])


def _scenario(entry: Any) -> Scenario:
    positions = entry.get("positions") if isinstance(entry, dict) else None
    if isinstance(positions, list) and len(positions) > MOST_UAVS:
        raise InputError(f"{len(positions):,} UAVs: the server flies up to {MOST_UAVS:,}")
    return scenario_from_json(entry, "scenario")


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
    """A picture of one lane: positions are (n, 2) m."""
    return _HEADER.pack(race, number, lane, step) + positions.astype("<f8").tobytes()


def read_frame(data: bytes) -> tuple[int, int, int, int, np.ndarray]:
    """(race, number, lane, step, (n, 2) m) of a frame: what the page does in JavaScript."""
    return (*_HEADER.unpack_from(data), np.frombuffer(data, dtype="<f8", offset=_HEADER.size).reshape(-1, 2))
