"""A method as a controller in a world beyond the paper's: phases, new plans, and rest while the network is one."""

from __future__ import annotations

import copy

import numpy as np

from phygail.methods.base import Method, SubnetMethod, checked_command
from phygail.sensing.views import Scope, SubnetViews
from phygail.sensing.worlds import WorldObserver
from phygail.swarm.scenario import Scenario
from phygail.swarm.simulator import Controller, SwarmState

PACE = 0.5  # of full speed, of the farthest while a network that is one contracts
REPLAN = "replan"  # flag of a planner that made a new plan because somebody was lost


def world_controller(method: Method, scenario: Scenario) -> Controller:
    """The method as a function from states to velocities, in any world.

    While the network is one everybody rests: what is measured is recovery, not how a method idles. When it splits
    again, a fresh copy of the method starts with the new roster and clock. A method that plans ahead also starts afresh
    when somebody is lost, and says so in its flag.
    """
    return _Phases(method, scenario).command


class _Phases:
    """The copies of a method that fly one after the other, each from one split to the next whole network."""

    def __init__(self, method: Method, scenario: Scenario) -> None:
        self._method, self._scenario = method, scenario
        self._pristine = copy.deepcopy(method)
        self._pilot: Method | None = None
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
        again = self._pilot is not None and plans_ahead(self._method) and flight.lost_now(state.step)
        if self._pilot is None or flight.base != self._base or again:
            self._begin(state)
            self._tell(REPLAN if again else "")
        assert self._pilot is not None
        wanted = checked_command(self._decide(state), state.positions.shape, self._pilot)
        self._tell(self._pilot.flag)
        return wanted

    def _decide(self, state: SwarmState) -> np.ndarray:
        assert self._pilot is not None
        assert self._observer is not None
        view = self._observer.observe(state, self._pilot.scope)
        if isinstance(view, SubnetViews) and isinstance(self._pilot, SubnetMethod):
            if view.own_rosters is not None:  # one subnet at a time: each has a roster of its own
                return SubnetMethod.act_all(self._pilot, view)
            return self._pilot.velocities(view) if view.own_centers is None else self._pilot.act_imperfect(view)
        return self._pilot.velocities(view)

    def _begin(self, state: SwarmState) -> None:
        assert state.flight is not None
        self._pilot = self._method if self._pilot is None else copy.deepcopy(self._pristine)
        self._observer, self._base = WorldObserver(self._scenario, state.flight), state.flight.base

    def _tell(self, flag: str) -> None:
        """The method whose row it is carries the flags of all copies."""
        if flag and isinstance(flag, str) and flag not in self._method.flag.split(";"):
            self._method.flag = ";".join(filter(None, [self._method.flag, flag]))


def contract(state: SwarmState) -> np.ndarray:
    """(n, 2) m/s: everybody flies toward the middle, in proportion to how far off it is, the farthest at half speed.

    All distances shrink by the same share, so no link within a disc is lost, and at last no single UAV is critical.
    """
    away = state.positions.mean(axis=0) - state.positions
    farthest = float(np.hypot(*away.T).max())
    return away * (PACE * state.scenario.physics.speed_mps / max(farthest, 1e-9))


def plans_ahead(method: Method) -> bool:
    """Whether a method fixes targets for everybody and needs a new plan when somebody is lost."""
    return method.scope is Scope.GLOBAL or getattr(method, "plans", False)
