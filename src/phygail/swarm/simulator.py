"""The simulator: state, the one step, an episode and what it is judged by (METHODS 2.6)."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from phygail.config import InputError
from phygail.swarm.flight import Flight, advance, begin, executed_velocities
from phygail.swarm.links import Links, find_links
from phygail.swarm.safety import filter_velocities
from phygail.swarm.scenario import Scenario

# Scaling to exactly v_max can land one rounding above it; this keeps the norm at or below the limit.
_JUST_BELOW = 1.0 - 2.0**-50

CONTACT_RATE_CAP = 2.0  # the cap that reproduces the paper's collision column (METHODS F4)
MOVED_SHARE = 1 / 12_000  # of the radio range, 0.01 m at 120 m: a UAV that flew less has not moved


@dataclass(frozen=True, eq=False)
class SwarmState:
    """Where the alive are and how they flew last. The damaged have no row: they stay at their roster spots forever.

    Attributes:
        scenario: The case being flown.
        positions: (n, 2) m, world coordinates; row r is UAV members[r].
        velocities: (n, 2) m/s, executed in the step before (zero at t = 0).
        step: Number of executed moves t.
        flight: What only worlds beyond the paper's have; None in the plain world.
    """

    scenario: Scenario
    positions: np.ndarray
    velocities: np.ndarray
    step: int
    flight: Flight | None = None

    def __post_init__(self) -> None:
        self.positions.setflags(write=False)
        self.velocities.setflags(write=False)

    @cached_property
    def links(self) -> Links:
        """The radio network at this instant; computed once."""
        if self.flight is not None:
            return self.flight.links
        physics = self.scenario.physics
        return find_links(self.positions, physics.range_m, physics.contact_m)

    @property
    def members(self) -> np.ndarray:
        """(n,) int, roster indices of the alive, one per row."""
        return self.scenario.alive if self.flight is None else self.flight.members

    @property
    def terminated(self) -> bool:
        """Success: the network is one; in other worlds for as long as they ask, and with no loss to come."""
        if self.flight is not None:
            return self.flight.done(self.scenario, self.step)
        return self.links.connected

    @property
    def truncated(self) -> bool:
        """The step budget is used up and the network is still split: failure by the clock, not by the task."""
        return self.step >= self.scenario.budget_steps and not self.terminated


def initial_state(scenario: Scenario) -> SwarmState:
    """The swarm right after the damage, at rest."""
    flight = None if scenario.world.plain else begin(scenario)
    return SwarmState(scenario, scenario.spots, np.zeros_like(scenario.spots), 0, flight)


def project_speed(velocities: np.ndarray, speed_mps: float | np.ndarray) -> np.ndarray:
    """Replace non-finite velocities by zero and scale those above the limit onto the speed disc (METHODS 2.3, eq. 4).

    Args:
        velocities: (..., 2) m/s, commands.
        speed_mps: v_max, one or broadcastable to (..., 1).
    """
    # In single precision a norm of 10 may be 10.0000004, so norms are judged, scaled and stored in double precision.
    velocities = np.asarray(velocities, dtype=np.float64)
    finite = np.isfinite(velocities).all(axis=-1, keepdims=True)
    # Components are first brought to at most 1e100, where squares do not overflow; the direction survives.
    wanted = np.where(finite, velocities, 0.0)
    size = np.abs(wanted).max(axis=-1, keepdims=True)
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        wanted = np.where(size > 1e100, wanted / size * speed_mps * 2, wanted)
    norm = np.hypot(wanted[..., 0], wanted[..., 1])[..., None]
    over = norm > speed_mps
    return np.where(over, wanted * (speed_mps * _JUST_BELOW / np.where(over, norm, 1.0)), wanted)


def step(state: SwarmState, velocities: np.ndarray, *, safety: bool = False) -> SwarmState:
    """The state one step later (METHODS 2.3, steps 2-4, eq. 3).

    Args:
        state: Now.
        velocities: (n, 2) m/s, one command per alive UAV. Whatever a method asks for is projected onto the speed disc.
        safety: Pass the commands through the buffered Voronoi filter, which makes new contacts impossible.
    """
    if np.shape(velocities) != state.positions.shape:
        raise InputError(f"velocities have shape {np.shape(velocities)}, the swarm needs {state.positions.shape}")
    physics = state.scenario.physics
    executed = project_speed(velocities, physics.speed_mps)
    if state.flight is not None:
        return _step_in_world(state, state.flight, executed, safety=safety)
    if safety:
        executed = filter_velocities(state.positions, executed, physics)
    return SwarmState(state.scenario, state.positions + executed * physics.step_s, executed, state.step + 1)


def _step_in_world(state: SwarmState, flight: Flight, wanted: np.ndarray, *, safety: bool) -> SwarmState:
    """The same in a world beyond the paper's, where UAVs may be lost in this step."""
    scenario, step_s = state.scenario, state.scenario.physics.step_s
    executed = executed_velocities(scenario, flight, state.positions, state.velocities, wanted, safety=safety)
    positions = state.positions + executed * step_s
    after, stay = advance(scenario, flight, positions, state.step + 1)
    return SwarmState(scenario, positions[stay], executed[stay], state.step + 1, after)


@dataclass(frozen=True)
class Metrics:
    """Figures of one episode.

    Attributes:
        contact_events_per_uav: Times that a pair goes from at least the contact distance (10 m) to less, over n:
            the honest collisions per UAV.
        contact_rate_raw: (1/dt) mean over steps of the pairs in contact, over n, 1/s.
        contact_rate_capped: min(2, contact_rate_raw).
        distance_m_per_uav: Mean path length.
        max_speed_mps: Fastest executed speed of any UAV.
        longest_m: Longest path of a UAV.
        moved: UAVs whose path is longer than `MOVED_SHARE` of the radio range.
        split_steps: Steps that began with a network that was not one; all of them in the plain world.
        resplits: Times that a network that was one split again.
        connected_share: Share of the states, the first included, in which the network was one.
        largest_share: Mean over the states of the largest subnet over the alive: the area under the resilience curve.
        first_step: First step at which the network was one; None if it never was.
        alive_end: UAVs at the end.
    """

    contact_events_per_uav: float
    contact_rate_raw: float
    contact_rate_capped: float
    distance_m_per_uav: float
    max_speed_mps: float
    longest_m: float
    moved: int
    split_steps: int = 0
    resplits: int = 0
    connected_share: float = 1.0
    largest_share: float = 1.0
    first_step: int | None = 0
    alive_end: int = 0


class Meter:
    """Counts along an episode: `see` every state in order, beginning with the initial one."""

    def __init__(self, first: SwarmState) -> None:
        self._alive = len(first.positions)
        self._step_s = first.scenario.physics.step_s
        # Rows keep their place in the plain world. In other worlds UAVs are lost, so each is known by its roster index.
        self._rows = self._alive if first.flight is None else first.scenario.uavs
        self._touching = self._codes(first)
        self._events = self._pair_steps = self._steps = 0
        self._distance = self._fastest = 0.0
        self._paths = np.zeros(self._rows)  # m, of every UAV
        self._still_m = MOVED_SHARE * first.scenario.physics.range_m
        self._curve = _Curve(first)

    def _codes(self, state: SwarmState) -> np.ndarray:
        """One sorted number per pair in contact."""
        contacts = state.links.contacts
        if state.flight is not None:
            contacts = state.flight.members[contacts]
        return np.sort(contacts[:, 0] * self._rows + contacts[:, 1])

    def see(self, state: SwarmState) -> None:
        """Count one executed step."""
        touching = self._codes(state)
        if len(touching):
            self._events += int(np.isin(touching, self._touching, assume_unique=True, invert=True).sum())
            self._pair_steps += len(touching)
        self._touching = touching
        speed = np.hypot(state.velocities[:, 0], state.velocities[:, 1])
        self._distance += float(speed.sum()) * self._step_s
        if state.flight is None:
            self._paths += speed * self._step_s
        else:
            self._paths[state.flight.members] += speed * self._step_s
        self._fastest = max(self._fastest, float(speed.max()))
        self._steps += 1
        self._curve.see(state)

    def result(self) -> Metrics:
        """The figures so far; all zero for an episode without a step."""
        rate = self._pair_steps / max(1, self._steps) / self._alive / self._step_s
        return Metrics(
            self._events / self._alive, rate, min(CONTACT_RATE_CAP, rate), self._distance / self._alive, self._fastest,
            float(self._paths.max()), int((self._paths > self._still_m).sum()), **self._curve.result(),
        )  # fmt: skip


class _Curve:
    """How whole the network is along an episode."""

    def __init__(self, first: SwarmState) -> None:
        self._states = self._whole = self._resplits = 0
        self._largest = 0.0
        self._first: int | None = None
        self._before = False
        self.see(first)

    def see(self, state: SwarmState) -> None:
        """Count one state."""
        links = state.links
        whole = links.count == 1
        self._largest += 1.0 if whole else int(np.bincount(links.subnet).max()) / len(links.subnet)
        self._resplits += self._before and not whole
        if whole and self._first is None:
            self._first = state.step
        self._states += 1
        self._whole += whole
        self._before, self._alive = whole, len(state.positions)

    def result(self) -> dict[str, Any]:
        """The fields of `Metrics` from `split_steps` on."""
        split = self._states - self._whole - (not self._before)  # the last state begins no step
        return {
            "split_steps": split, "resplits": int(self._resplits),
            "connected_share": self._whole / self._states, "largest_share": self._largest / self._states,
            "first_step": self._first, "alive_end": self._alive,
        }  # fmt: skip


# Asks for the velocities ((n, 2) m/s) of the alive in a state. Methods are wrapped into one by
# methods.controller.controller.
Controller = Callable[[SwarmState], np.ndarray]


@dataclass(frozen=True)
class Episode:
    """The outcome of one flight.

    Attributes:
        scenario: The case.
        terminated: The network is one (success).
        truncated: The budget or the clock ran out first.
        steps: Executed moves.
        metrics: Contacts, distance, speed.
        first_action_s: Wall time until the first command.
        solve_s: Wall time of all commands.
        states: Every state from t = 0 on, if recorded.
        nonfinite: Whether a command was not a finite number; the world put zero in its place.
        spared: Whether an event would have left fewer than two UAVs.
    """

    scenario: Scenario
    terminated: bool
    truncated: bool
    steps: int
    metrics: Metrics
    first_action_s: float
    solve_s: float
    states: tuple[SwarmState, ...] = ()
    nonfinite: bool = False
    spared: bool = False

    @property
    def scored_steps(self) -> int:
        """Steps for tables: a failure counts as the whole budget (METHODS 2.3)."""
        return self.steps if self.terminated else self.scenario.budget_steps


def fly(
    scenario: Scenario,
    controller: Controller,
    *,
    safety: bool = False,
    record: bool = False,
    on_step: Callable[[SwarmState], None] | None = None,
    timeout_s: float | None = None,
) -> Episode:
    """Fly `scenario` with `controller` until the network is one or the budget is used up.

    Args:
        scenario: The case; one that is already connected ends at once with zero steps.
        controller: Gives the velocities.
        safety: Filter every command (METHODS 8.3).
        record: Keep all states.
        on_step: Called with every state, the first included.
        timeout_s: Wall time after which the flight is cut short at the next step: truncated before its budget.
    """
    begun = time.perf_counter()
    state = initial_state(scenario)
    states = [state]
    meter = Meter(state)
    times: list[float] = []
    nonfinite = False
    if on_step:
        on_step(state)
    while not (state.terminated or state.truncated):
        if timeout_s is not None and time.perf_counter() - begun > timeout_s:
            break
        started = time.perf_counter()
        velocities = controller(state)
        times.append(time.perf_counter() - started)
        state = step(state, velocities, safety=safety)
        nonfinite = nonfinite or not np.isfinite(np.asarray(velocities, dtype=float)).all()
        meter.see(state)
        if record:
            states.append(state)
        if on_step:
            on_step(state)
    return Episode(
        scenario, state.terminated, not state.terminated, state.step, meter.result(),
        times[0] if times else 0.0, sum(times), tuple(states) if record else (),
        nonfinite, state.flight is not None and state.flight.spared,
    )  # fmt: skip
