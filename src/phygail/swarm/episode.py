"""One method on one scenario, from damage to reconnection or to the end of the budget."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from phygail.swarm.dynamics import step
from phygail.swarm.metrics import Meter, Metrics
from phygail.swarm.scenario import Scenario
from phygail.swarm.state import SwarmState, initial_state

# Asks for the velocities ((n, 2) m/s) of the alive in a state. Methods are wrapped into one by methods.base.controller.
Controller = Callable[[SwarmState], np.ndarray]


@dataclass(frozen=True)
class Episode:
    """What happened.

    Attributes:
        scenario: The case.
        terminated: The network is one (success).
        truncated: The budget or the clock ran out first.
        steps: Executed moves.
        metrics: Contacts, distance, speed.
        first_action_s: Wall time until the first command.
        solve_s: Wall time of all commands.
        states: Every state from t = 0 on, if recorded.
        nonfinite: Whether a command was no finite number, so that the world put zero in its place.
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
        nonfinite,
    )  # fmt: skip
