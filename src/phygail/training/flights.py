"""Whole episodes of the policy `phygail` as compiled loops: what evolution flies, thousands of times a minute.

The same rule as `methods.phygail` on `perception.lost` and `models.gates`; a test flies both and compares positions.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from phygail.methods.sidr import aggregation_m
from phygail.models.gates import GateShape
from phygail.perception.lost import CLOCK_M, BeliefSpec
from phygail.swarm.scenario import Scenario
from phygail.training.flight_loop import episode


@dataclass(frozen=True, eq=False)
class World:
    """A scenario as the compiled loop wants it.

    Attributes:
        spots: (n, 2) m, of the alive. roster: (N, 2) m. alive: (n,) int, roster indices. center: (2,) m.
        numbers: (5,) radio range (m), stride (m), unit of the clock (m), budget (steps), t_wait (m flown).
        scale: Radio range over the paper's.
    """

    spots: np.ndarray
    roster: np.ndarray
    alive: np.ndarray
    center: np.ndarray
    numbers: np.ndarray
    scale: float

    @classmethod
    def of(cls, scenario: Scenario) -> World:
        """The arrays of a scenario."""
        physics = scenario.physics
        clock = CLOCK_M * physics.unit
        wait = aggregation_m(scenario.width_m)
        numbers = np.array([physics.range_m, physics.stride_m, clock, scenario.budget_steps, wait], dtype=float)
        return cls(
            np.ascontiguousarray(scenario.spots), np.ascontiguousarray(scenario.layout),
            scenario.alive.astype(np.int64), np.ascontiguousarray(scenario.center), numbers, physics.unit,
        )  # fmt: skip


def fly_policy(world: World, vector: np.ndarray, shape: GateShape, spec: BeliefSpec) -> int:
    """Steps until the network is one, or the budget."""
    return int(episode(*_arguments(world, vector, shape, spec), np.empty((0, 0, 2))))


def trace_policy(world: World, vector: np.ndarray, shape: GateShape, spec: BeliefSpec) -> np.ndarray:
    """(steps + 1, n, 2) m, positions."""
    trace = np.zeros((int(world.numbers[3]) + 1, len(world.spots), 2))
    steps = episode(*_arguments(world, vector, shape, spec), trace)
    return trace[: steps + 1]


def _arguments(world: World, vector: np.ndarray, shape: GateShape, spec: BeliefSpec) -> tuple[np.ndarray, ...]:
    layers = shape.layers(np.asarray(vector, dtype=np.float32))
    return (world.spots, world.roster, world.alive, world.center, world.numbers, spec.vector(world.scale), *layers)
