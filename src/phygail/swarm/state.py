"""The immutable state of a swarm in flight."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from phygail.swarm.links import Links, find_links
from phygail.swarm.scenario import Scenario


@dataclass(frozen=True, eq=False)
class SwarmState:
    """Where the alive are and how they flew last. The damaged have no row: they stay at their roster spots forever.

    Attributes:
        scenario: The case being flown.
        positions: (n, 2) m, world frame; row r is UAV scenario.alive[r].
        velocities: (n, 2) m/s, executed in the step before (zero at t = 0).
        step: Number of executed moves t.
    """

    scenario: Scenario
    positions: np.ndarray
    velocities: np.ndarray
    step: int

    def __post_init__(self) -> None:
        self.positions.setflags(write=False)
        self.velocities.setflags(write=False)

    @cached_property
    def links(self) -> Links:
        """The radio network at this instant; computed once."""
        physics = self.scenario.physics
        return find_links(self.positions, physics.range_m, physics.contact_m)

    @property
    def terminated(self) -> bool:
        """The network is one: success."""
        return self.links.connected

    @property
    def truncated(self) -> bool:
        """The step budget is used up and the network still split: failure by the clock, not by the task."""
        return self.step >= self.scenario.budget_steps and not self.terminated


def initial_state(scenario: Scenario) -> SwarmState:
    """The swarm right after the damage, at rest."""
    return SwarmState(scenario, scenario.spots, np.zeros_like(scenario.spots), 0)
