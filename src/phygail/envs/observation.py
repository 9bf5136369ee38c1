"""What an agent observes (the graph of METHODS 4.1 seen from one UAV) and its default reward (METHODS 4.3).

First the UAV itself (`OWN`), then its slots (`SLOT`, once per slot): the 8 nearest linked UAVs, the 3 nearest damaged
UAVs in range, the center. Empty slots are all zero.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from phygail.methods.phygail.graph import ACTIVE, CENTER, DAMAGED, NODE_FEATURES, PAPER, GraphSpec, perceive
from phygail.methods.phygail.rewards import crowding_reward, shared_reward
from phygail.sensing.views import SubnetViews
from phygail.swarm.links import near_pairs
from phygail.swarm.simulator import SwarmState

INF = float("inf")

# Judges one step by the states before and after it: (n,), one number per alive UAV, or one for all.
Reward = Callable[[SwarmState, SwarmState], np.ndarray | float]


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
    # With the radio range as scale, node features hold positions in the unit of the observation.
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


@dataclass(frozen=True)
class TeamReward:
    """r_i = r_step + r_safe_i + r_term: agents share the first and the last; the safety penalty is each agent's own.

    The names and numbers are those of `methods.phygail.config.TrainConfig`. Rewards are neither scaled nor clipped: the
    sum of an episode is between about -5 - 5 N_s and 74.

    Attributes:
        step_penalty: r_step = -step_penalty / T_max per step.
        r_base: On success.
        r_time: On success, times eta(t) = min(exp(decay (1 - t / T_max)), eta_max). The paper measures t against an
            expert's time; here there is no expert, so it is measured against T_max, as in training without it.
        decay: lambda. eta_max: Cap of eta.
        p_fail: Per subnet that is left when the budget is used up.
        w_col: Per meter that another alive UAV is closer than `safe_m`.
        safe_m: D_safe, m. Both are for a contact distance of 10 m, and in proportion for others.
    """

    step_penalty: float = 5.0
    r_base: float = 20.0
    r_time: float = 20.0
    decay: float = 1.0
    eta_max: float = 3.0
    p_fail: float = 5.0
    w_col: float = 0.01
    safe_m: float = 15.0

    def __call__(self, before: SwarmState, after: SwarmState) -> np.ndarray:
        """(n,) reward of the step that led to `after`."""
        budget = after.scenario.budget_steps
        # T_max is the pace of the environment, which has no expert (METHODS 4.7).
        shared = shared_reward(after.step, budget, budget, after.terminated, after.truncated, after.links.count, self)
        spacing = after.scenario.physics.spacing
        pairs, distances = near_pairs(after.positions, self.safe_m * spacing)
        rows = pairs.T.reshape(-1)
        return shared + crowding_reward(rows, np.tile(distances / spacing, 2), len(after.positions), self)
