"""What an agent observes: the bounded graph of METHODS 4.1 seen from one UAV, as one flat row of numbers.

First the UAV itself (`OWN`), then its slots (`SLOT`, once per slot): the 8 nearest linked UAVs, the 3 nearest damaged
UAVs in range, the center. Empty slots are all zero.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from phygail.perception.features import NODE_FEATURES
from phygail.perception.graph import ACTIVE, CENTER, DAMAGED, PAPER, GraphSpec, perceive
from phygail.perception.view import SubnetViews

INF = float("inf")


@dataclass(frozen=True)
class Entry:
    """One number of the observation: its name, meaning and bounds."""

    name: str
    meaning: str
    low: float
    high: float


OWN: tuple[Entry, ...] = (
    Entry("x", "own position east of the center, in radio ranges", -INF, INF),
    Entry("y", "the same, north", -INF, INF),
    Entry("vx", "own velocity executed in the step before, east, over v_max", -1, 1),
    Entry("vy", "the same, north", -1, 1),
    Entry("degree", "ln(1 + filled slots) / ln(1 + slots)", 0, 1),
    Entry("time", "t / T_max", 0, 1),
)
SLOT: tuple[Entry, ...] = (
    Entry("dx", "position relative to one's own, east, in radio ranges (the center may be farther than 1)", -1, 1),
    Entry("dy", "the same, north", -1, 1),
    Entry("dvx", "velocity relative to one's own, east, over v_max", -2, 2),
    Entry("dvy", "the same, north", -2, 2),
    Entry("alive", "1 for a linked UAV", 0, 1),
    Entry("damaged", "1 for a damaged UAV in range", 0, 1),
    Entry("center", "1 for the center", 0, 1),
    Entry("mask", "1 if the slot is filled", 0, 1),
)
SLOTS = PAPER.slots
SIZE = len(OWN) + SLOTS * len(SLOT)


def bounds() -> tuple[np.ndarray, np.ndarray]:
    """(SIZE,) float32 lowest and highest values."""
    columns = OWN + SLOT * SLOTS
    low = np.array([entry.low for entry in columns], dtype=np.float32)
    high = np.array([entry.high for entry in columns], dtype=np.float32)
    low[-len(SLOT) : -len(SLOT) + 2], high[-len(SLOT) : -len(SLOT) + 2] = -INF, INF  # the center, in the last slot
    return low, high


def local_observations(view: SubnetViews) -> np.ndarray:
    """(n, SIZE) float32, row r for UAV view.members[r], not yet held to `bounds` (rounding may exceed them)."""
    # With the radio range as scale the node features hold positions in the unit of the observation.
    graph = perceive(view, GraphSpec(scale_m=view.mission.physics.range_m))
    n = graph.receivers
    place = len(NODE_FEATURES) - 1  # x, y, vx, vy; the last feature is the degree
    slots = np.zeros((n, SLOTS, len(SLOT)), dtype=np.float32)
    slots[..., :place] = graph.features[graph.index, :place] - graph.features[:n, None, :place]
    for column, kind in enumerate((ACTIVE, DAMAGED, CENTER), start=place):
        slots[..., column] = graph.kinds == kind
    slots[..., -1] = 1.0
    slots[~graph.mask] = 0.0
    time = np.full((n, 1), view.step / view.mission.budget_steps, dtype=np.float32)
    return np.concatenate([graph.features[:n], time, slots.reshape(n, -1)], axis=1)
