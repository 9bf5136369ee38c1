"""Whatever a client sends is either understood or refused in one line."""

from __future__ import annotations

import json

import numpy as np
import pytest

from phygail.config import InputError
from phygail.web.messages import Fly, Resume, Stop, Strike, frame_bytes, parse_message, read_frame

KNOWN = frozenset({"convex", "sidr"})
CASE = {"id": "a", "positions": [[0, 0], [100, 0], [400, 0], [500, 0], [250, 0]], "damaged": [4]}
FLY = {"type": "fly", "race": 7, "scenario": CASE, "methods": ["convex", "sidr", "convex"], "safety": True}


def test_good_messages_are_understood():
    order = parse_message(json.dumps(FLY), KNOWN)
    assert isinstance(order, Fly)
    assert (order.race, order.methods, order.safety, order.scenario.uavs) == (7, ("convex", "sidr"), True, 5)
    struck = parse_message(json.dumps(FLY | {"strikes": [{"step": 4, "ids": [1, 3]}], "from": 4}), KNOWN)
    assert isinstance(struck, Fly)
    assert (struck.strikes, struck.begin) == ((Strike(4, (1, 3)),), 4)
    assert parse_message('{"type": "resume", "race": 7, "have": 12}', KNOWN) == Resume(7, 12)
    assert parse_message('{"type": "stop", "race": 7}', KNOWN) == Stop(7)


def test_nobody_is_struck_twice_and_the_budget_counts_from_the_last_strike():
    strikes = [{"step": 9, "ids": [4, 1]}, {"step": 4, "ids": [1, 1]}]
    order = parse_message(json.dumps(FLY | {"strikes": strikes}), KNOWN)
    assert isinstance(order, Fly)
    assert [(event.step, event.uavs) for event in order.struck.world.events] == [(4, (1,))]
    assert order.struck.budget_steps == order.scenario.budget_steps + 4


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("", "not JSON"),
        (json.dumps(FLY | {"scenario": CASE | {"hold_steps": 3}}), "flies the plain world"),
        ("[" * 100_000, "not JSON"),
        ('{"race": NaN}', "not JSON"),
        ("[]", "no object"),
        ('{"type": "fly"}', "'race' must be a whole number"),
        ('{"type": "fly", "race": true}', "'race' must be a whole number"),
        ('{"type": "fly", "race": -1}', "'race' must be a whole number"),
        ('{"type": "fly", "race": 4294967296}', "'race' must be a whole number"),
        ('{"type": "dance", "race": 1}', "no type that is known"),
        ('{"type": "resume", "race": 1}', "'have' must be a whole number"),
        (json.dumps(FLY | {"safety": "yes"}), "true or false"),
        (json.dumps(FLY | {"methods": []}), "1 to 4 names"),
        (json.dumps(FLY | {"methods": ["../../etc"]}), "is not flown here"),
        (json.dumps(FLY | {"methods": [["sidr"]]}), "is not flown here"),
        (json.dumps(FLY | {"scenario": None}), "must be an object"),
        (json.dumps(FLY | {"scenario": CASE | {"damaged": [9]}}), "out of range"),
        (json.dumps(FLY | {"scenario": CASE | {"positions": [[i, 0] for i in range(10_000)]}}), "10,000 UAVs"),
        (json.dumps(FLY | {"strikes": {"step": 4}}), "list of at most 200"),
        (json.dumps(FLY | {"strikes": [[4, [1]]]}), "object with a step and a list of ids"),
        (json.dumps(FLY | {"strikes": [{"step": 0, "ids": [1]}]}), "part of the scenario"),
        (json.dumps(FLY | {"strikes": [{"step": 4.5, "ids": [1]}]}), "'step' must be a whole number"),
        (json.dumps(FLY | {"strikes": [{"step": 4, "ids": [5]}]}), "'ids' must be a whole number from 0 to 4"),
        (json.dumps(FLY | {"strikes": [{"step": 4, "ids": [0, 1]}, {"step": 9, "ids": [1, 2]}]}), "leave 1 UAVs"),
        (json.dumps(FLY | {"from": -1}), "'from' must be a whole number"),
        ("x" * 1_000_001, "at most 1,000,000"),
    ],
    ids=range(26),
)
def test_bad_messages_are_refused(text, wrong):
    with pytest.raises(InputError, match=wrong):
        parse_message(text, KNOWN)


def test_a_frame_brings_positions_exactly():
    positions = np.array([[1.5, -2.25], [1e-9, 0.1]])
    race, number, lane, step, read = read_frame(frame_bytes(2**32 - 1, 3, 2, 40, positions))
    assert (race, number, lane, step) == (2**32 - 1, 3, 2, 40)
    assert read.tolist() == positions.tolist()
