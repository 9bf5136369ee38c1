"""What a state carries in a world beyond the paper's, and the step of such a world.

The order within a step: the vehicle follows the command as far as it can and the fence allows, everybody moves, the
events of the step strike, the radio is heard.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from phygail.config import Physics
from phygail.swarm.links import Links, find_links
from phygail.swarm.scenario import Scenario
from phygail.swarm.world import losses

CLIMB_MPS, SINK_MPS = 3.0, 1.5  # vertical speed of a UAV that changes its layer (PX4 MPC_Z_VEL_MAX_UP, MPC_Z_V_AUTO_DN)


@dataclass(frozen=True, eq=False)
class Flight:
    """The part of a state that only worlds beyond the paper's have.

    Attributes:
        members: (n,) int, roster indices of the alive, in the order of the state's rows.
        places: (N, 2) m, where everybody is; of the lost, where they fell.
        died: (N,) int, step at which a UAV was lost; 0 for the damaged, -1 for the alive.
        links: The network.
        heights: (N,) m, or None in one layer.
        held: In how many steps, this one included, the network has been one without a break.
        base: Step at which the swarm was last seen whole: what was known then is roster and clock of what follows.
        roster: (N, 2) m, where everybody was then.
        radio: What the radio remembers; None for links that have no memory.
        spared: Whether an event would have left fewer than two.
    """

    members: np.ndarray
    places: np.ndarray
    died: np.ndarray
    links: Links
    heights: np.ndarray | None
    held: int
    base: int
    roster: np.ndarray
    radio: object = None
    spared: bool = False

    @property
    def whole(self) -> bool:
        """Whether the network is one."""
        return self.links.connected

    def done(self, scenario: Scenario, step: int) -> bool:
        """Whether the network has been one for long enough, nothing is to come, and nobody alone could split it."""
        world = scenario.world
        if self.held < world.hold_steps or step < world.last_event:
            return False
        return not world.redundant or step >= scenario.budget_steps or not self.critical

    @cached_property
    def critical(self) -> tuple[int, ...]:
        """Rows of the UAVs whose loss would split the network."""
        from phygail.swarm.failures import critical_uavs

        return tuple(critical_uavs(len(self.members), self.links.pairs))

    def lost_now(self, step: int) -> bool:
        """Whether somebody was lost in this step."""
        return bool((self.died == step).any()) and step > 0


def begin(scenario: Scenario) -> Flight:
    """The swarm right after the damage."""
    world = scenario.world
    died = np.full(scenario.uavs, -1)
    died[scenario.damaged] = 0
    heights = None if world.altitude is None else np.array(world.altitude)
    links, memory = hear(scenario, scenario.spots, scenario.alive, heights, 0, None)
    return Flight(
        scenario.alive, scenario.layout, died, links, heights, int(links.connected), 0, scenario.layout, memory
    )


def advance(scenario: Scenario, flight: Flight, positions: np.ndarray, step: int) -> tuple[Flight, np.ndarray]:
    """The flight after everybody has moved to `positions` ((n, 2) m) in this step, and the rows that go on."""
    world = scenario.world
    places = flight.places.copy()
    places[flight.members] = positions
    lost, spared = losses(world, step, flight.members, places)
    stay = ~np.isin(flight.members, lost)
    members = flight.members[stay]
    died = flight.died.copy()
    died[lost] = step
    heights = _climbed(flight.heights, members, scenario.physics) if world.level else flight.heights
    links, memory = hear(scenario, positions[stay], members, heights, step, flight.radio)
    # Where links fail a split is no news: who is silent for a moment is still there, and the clock runs on.
    anew = flight.whole and (world.links.certain or len(lost) > 0)
    base, roster = (step, places) if anew else (flight.base, flight.roster)
    held = flight.held + 1 if links.connected else 0
    return Flight(members, places, died, links, heights, held, base, roster, memory, flight.spared or spared), stay


def _climbed(heights: np.ndarray | None, members: np.ndarray, physics: Physics) -> np.ndarray | None:
    """Everybody climbs or sinks toward the mean height of the swarm at the start, which all know."""
    if heights is None:
        return None
    toward = heights.mean() - heights
    step = np.clip(toward, -SINK_MPS * physics.step_s, CLIMB_MPS * physics.step_s)
    moved = heights.copy()
    moved[members] += step[members]
    return moved


def hear(
    scenario: Scenario,
    positions: np.ndarray,
    members: np.ndarray,
    heights: np.ndarray | None,
    step: int,
    memory: object,
) -> tuple[Links, object]:
    """The network at one instant, and what the radio remembers of it."""
    world, physics = scenario.world, scenario.physics
    dark = any(not obstacle.radio for obstacle in world.obstacles)
    if world.links.certain and heights is None and not dark:
        return find_links(positions, physics.range_m, physics.contact_m), None
    from phygail.swarm.radio import listen

    z = None if heights is None else heights[members]
    return listen(world, physics, positions, members, z, step, memory)


def executed_velocities(
    scenario: Scenario, flight: Flight, positions: np.ndarray, before: np.ndarray, wanted: np.ndarray, *, safety: bool
) -> np.ndarray:
    """(n, 2) m/s over ground that vehicle, fence and filter make of the commands.

    Args:
        scenario: The case. flight: Now.
        positions: (n, 2) m. before: (n, 2) m/s, flown in the step before. wanted: (n, 2) m/s, within the speed limit.
        safety: Whether pairs are kept apart.
    """
    world, physics = scenario.world, scenario.physics
    if world.obstacles or world.vehicle.inertia or any(world.vehicle.wind_mps):
        from phygail.swarm.vehicle import follow

        return follow(world, physics, positions, before, wanted, safety=safety)
    if not safety:
        return wanted
    from phygail.swarm.safety import filter_velocities

    return filter_velocities(positions, wanted, physics)


def with_links(flight: Flight, links: Links) -> Flight:
    """The same flight with another network; for tests and pictures."""
    return replace(flight, links=links)
