"""A method as a controller of the simulator: with perfect or imperfect sensing (METHODS 4.8), in any world."""

from __future__ import annotations

import copy
import logging
from pathlib import Path
from typing import Any

import numpy as np

from phygail.config import InputError
from phygail.methods.base import METHODS, Method, SubnetMethod, checked_command, make_method, takes_policy, why_not
from phygail.rng import generator
from phygail.sensing.imperfect import SensedObserver, Sensing
from phygail.sensing.views import Observer, Scope, SubnetViews
from phygail.sensing.worlds import WorldObserver
from phygail.swarm.scenario import Scenario, make_scenario
from phygail.swarm.simulator import Controller, Episode, SwarmState, fly

log = logging.getLogger("phygail")


def begin_episode(method: Method, scenario: Scenario) -> None:
    """The seed rule: a method's randomness depends on the scenario (its seed and id) and on the method's name only.

    So every caller flies the same flight. A generator that the caller gave to the method is left alone.
    """
    if not method.brings_rng:
        method.rng = generator(scenario.seed or 0, "method", method.stream or method.name, scenario.id)


def controller(method: Method, scenario: Scenario) -> Controller:
    """The method as a function from states to velocities; it sees only its scope."""
    begin_episode(method, scenario)
    if not scenario.world.plain:
        return world_controller(method, scenario)
    observer = Observer(scenario)

    def command(state: SwarmState) -> np.ndarray:
        view = observer.observe(state, method.scope)
        return checked_command(method.velocities(view), state.positions.shape, method)

    return command


def run_episode(
    scenario: Scenario,
    method: str | Method,
    *,
    safety: bool = False,
    record: bool = False,
    rng: np.random.Generator | None = None,
) -> Episode:
    """Fly one method on one scenario.

    Args:
        scenario: The case.
        method: A registered name, or an instance made for this episode.
        safety: Filter every command so that no new contact can happen.
        record: Keep every state (`Episode.states`) for pictures and trajectories.
        rng: Randomness of a method given by name, in place of the scenario's (`begin_episode`).
    """
    made = make_method(method, rng) if isinstance(method, str) else method
    return fly(scenario, controller(made, scenario), safety=safety, record=record)


def sensed_controller(method: Method, scenario: Scenario, sensing: Sensing, rng: np.random.Generator) -> Controller:
    """The method as a controller that sees `scenario` through `sensing`; the world itself stays exact."""
    if sensing.perfect:
        return controller(method, scenario)
    begin_episode(method, scenario)
    observer = SensedObserver(scenario, sensing, rng, reckoned=method.dead_reckons)

    def command(state: SwarmState) -> np.ndarray:
        view = observer.observe(state, method.scope)
        return checked_command(method.act_imperfect(view), state.positions.shape, method)

    return command


def fly_case(
    scenario: Scenario,
    name: str,
    *,
    safety: bool = False,
    policy: Path | None = None,
    timeout_s: float | None = None,
    record: bool = False,
    sensing: Sensing | None = None,
) -> tuple[Episode, Method]:
    """Fly one method; the randomness of sensing depends on the scenario only."""
    method = make_method(name, **policy_option(name, policy))
    if sensing is not None and not (sensing.perfect or scenario.world.plain):
        raise InputError("noise, delay and bias are for the plain world: leave them out, or the options of the world")
    if sensing is None or sensing.perfect:
        command = controller(method, scenario)
    else:
        # The same draws for every method and every sigma: comparisons are paired.
        command = sensed_controller(method, scenario, sensing, generator(scenario.seed or 0, "sensing", scenario.id))
    episode = fly(scenario, command, safety=safety, record=record, timeout_s=timeout_s)
    return episode, method


def policy_option(name: str, policy: Path | None) -> dict[str, Any]:
    """The keyword with which a method takes the user's policy file, if it takes one."""
    return {"policy": policy} if policy is not None and takes_policy(name) else {}


def can_fly(name: str) -> bool:
    """Whether a method can fly (`why_not`) and read its weights at the first plan; if not, a warning says why."""
    reason = why_not(name)
    if not reason and METHODS.get(name).learned:
        # Two pairs, 1 m out of range.
        pairs = np.array([[0.0, 0.0], [50.0, 0.0], [171.0, 0.0], [221.0, 0.0], [100.0, 60.0]])
        try:
            run_episode(make_scenario("probe", pairs, [4], budget_steps=1), name)
        except InputError as error:
            reason = str(error)
    if reason:
        log.warning("the pool lacks %s: %s", name, reason)
    return not reason


# --- worlds beyond the paper's: phases, new plans, and rest while the network is one ---------------------------------

PACE = 0.5  # share of full speed at which the farthest UAV flies while a whole network contracts
REPLAN = "replan"  # flag of a planner that made a new plan because UAVs were lost


def world_controller(method: Method, scenario: Scenario) -> Controller:
    """The method as a function from states to velocities, in any world.

    While the network is one, all UAVs rest: recovery is measured, not how a method idles. When the network splits
    again, a fresh copy of the method starts with the new roster and clock. A method that plans ahead also starts afresh
    when UAVs are lost, and says so in its flag.
    """
    return _Phases(method, scenario).command


class _Phases:
    """The copies of a method that fly one after the other, each from one split to the next whole network."""

    def __init__(self, method: Method, scenario: Scenario) -> None:
        self._method, self._scenario = method, scenario
        self._pristine = copy.deepcopy(method)
        self._flying: Method | None = None
        self._observer: WorldObserver | None = None
        self._base = -1

    def command(self, state: SwarmState) -> np.ndarray:
        """(n, 2) m/s for all alive."""
        flight = state.flight
        assert flight is not None
        if flight.whole:
            return (
                contract(state)
                if self._scenario.world.redundant and flight.critical
                else np.zeros_like(state.positions)
            )
        again = self._flying is not None and plans_ahead(self._method) and flight.lost_now(state.step)
        if self._flying is None or flight.base != self._base or again:
            self._begin(state)
            self._tell(REPLAN if again else "")
        assert self._flying is not None
        wanted = checked_command(self._decide(state), state.positions.shape, self._flying)
        self._tell(self._flying.flag)
        return wanted

    def _decide(self, state: SwarmState) -> np.ndarray:
        assert self._flying is not None
        assert self._observer is not None
        view = self._observer.observe(state, self._flying.scope)
        if isinstance(view, SubnetViews) and isinstance(self._flying, SubnetMethod):
            if view.own_rosters is not None:  # one subnet at a time: each has a roster of its own
                return SubnetMethod.act_all(self._flying, view)
            return self._flying.velocities(view) if view.own_centers is None else self._flying.act_imperfect(view)
        return self._flying.velocities(view)

    def _begin(self, state: SwarmState) -> None:
        assert state.flight is not None
        self._flying = self._method if self._flying is None else copy.deepcopy(self._pristine)
        self._observer, self._base = WorldObserver(self._scenario, state.flight), state.flight.base

    def _tell(self, flag: str) -> None:
        """Add a flag of a copy to the method that the row is about."""
        if flag and isinstance(flag, str) and flag not in self._method.flag.split(";"):
            self._method.flag = ";".join(filter(None, [self._method.flag, flag]))


def contract(state: SwarmState) -> np.ndarray:
    """(n, 2) m/s: UAVs fly toward the middle at speeds in proportion to their distances, the farthest at half speed.

    All distances shrink by the same share, so no link of a disc is lost, and in the end no UAV is critical.
    """
    away = state.positions.mean(axis=0) - state.positions
    farthest = float(np.hypot(*away.T).max())
    return away * (PACE * state.scenario.physics.speed_mps / max(farthest, 1e-9))


def plans_ahead(method: Method) -> bool:
    """Whether a method fixes targets for all UAVs and needs a new plan when some are lost."""
    return method.scope is Scope.GLOBAL or getattr(method, "plans", False)
