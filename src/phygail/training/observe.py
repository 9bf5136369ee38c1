"""From batched worlds to graphs."""

from __future__ import annotations

import functools

import numpy as np

from phygail.perception.batch import perceive_batch
from phygail.perception.graph import Graph, GraphSpec
from phygail.swarm.batch import BatchState
from phygail.swarm.scenario import Scenario


def observe(state: BatchState, spec: GraphSpec) -> Graph:
    """The graphs of all worlds now; receivers are the alive rows, world by world."""
    spots, damaged = damage_table(tuple(state.scenarios))
    cases = state.cases
    range_m = np.array([scenario.physics.range_m for scenario in state.scenarios])
    return perceive_batch(
        state.positions, state.velocities, state.mask, spots, damaged, cases.center.T, cases.width_m, range_m,
        cases.speed_mps, spec, subnet=state.subnet, linked=state.adjacency,
    )  # fmt: skip


@functools.lru_cache(maxsize=8)  # worlds change far more rarely than they step
def damage_table(scenarios: tuple[Scenario, ...]) -> tuple[np.ndarray, np.ndarray]:
    """(B, k, 2) m, where the damaged of every scenario are, and (B, k) bool, which entries are real."""
    most = max(len(scenario.damaged) for scenario in scenarios)
    spots = np.zeros((len(scenarios), most, 2))
    damaged = np.zeros((len(scenarios), most), dtype=bool)
    for b, scenario in enumerate(scenarios):
        lost = len(scenario.damaged)
        spots[b, :lost], damaged[b, :lost] = scenario.layout[scenario.damaged], True
    spots.flags.writeable = damaged.flags.writeable = False  # shared by the steps to come
    return spots, damaged


def fill_commands(state: BatchState, actions: np.ndarray) -> np.ndarray:
    """(B, n, 2) m/s: v_max times the actions ((receivers, 2), in [-1, 1]) in their rows; the world projects them."""
    commands = np.zeros_like(state.positions)
    commands[state.mask] = actions
    return commands * state.cases.speed_mps[:, None, None]
