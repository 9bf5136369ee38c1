"""Any method with imperfect sensing: noise on every observed position, late news of neighbors (METHODS 4.8)."""

from __future__ import annotations

import copy
from collections import deque
from typing import cast

import numpy as np

from phygail.methods.base import Method, SubnetMethod, begin_episode
from phygail.methods.faults import checked_command
from phygail.perception.noise import SensedObserver, SensedViews, Sensing
from phygail.swarm.episode import Controller
from phygail.swarm.scenario import Scenario
from phygail.swarm.state import SwarmState


def sensed_controller(method: Method, scenario: Scenario, sensing: Sensing, rng: np.random.Generator) -> Controller:
    """The method as a controller that sees `scenario` through `sensing`; the world itself stays exact.

    A subnet method is asked subnet by subnet, since each has its own idea of the center, unless it says that it minds
    them (`own_centers`). Where neighbors are late, each UAV runs its own copy of the rule on its own picture of the
    subnet, unless the rule has a faster form of just that (`act_late`). A method that reads such views itself says so
    by an attribute `senses`.
    """
    begin_episode(method, scenario)
    observer = SensedObserver(scenario, sensing, rng, reckoned=getattr(method, "reckons", False))
    pilots: _Pilots | None = None

    def command(state: SwarmState) -> np.ndarray:
        nonlocal pilots
        view = observer.observe(state, method.scope)
        if not isinstance(view, SensedViews) or getattr(method, "senses", False):
            return checked_command(method.velocities(view), state.positions.shape, method)
        rule = cast(SubnetMethod, method)
        if not view.delayed:
            return rule.act_all(view) if rule.own_centers else SubnetMethod.act_all(rule, view)
        if hasattr(rule, "act_late"):
            return rule.act_late(view, sensing.delay_steps)
        pilots = pilots or _Pilots(rule, len(view.members), sensing.delay_steps)
        return pilots.fly(view)

    return command


class _Pilots:
    """A copy of the rule for every UAV. What one has found out (`SubnetMethod.tell`) reaches the others late, too."""

    def __init__(self, rule: SubnetMethod, count: int, delay_steps: int) -> None:
        self._rules = [copy.deepcopy(rule) for _ in range(count)]
        self._told: deque[list[np.ndarray | None]] = deque(maxlen=delay_steps)

    def fly(self, views: SensedViews) -> np.ndarray:
        """(n, 2) m/s: every UAV's own command in its own picture."""
        commands = np.zeros_like(views.positions)
        told = self._told[0] if self._told else [None] * len(self._rules)
        for rows, view in zip(views.rows, views, strict=True):
            news = [known for row in rows if (known := told[row]) is not None]
            heard = np.maximum.reduce(news) if news else None
            for place, row in enumerate(rows):
                rule = self._rules[row]
                if heard is not None:
                    rule.hear(int(view.members[place]), heard)
                wanted = rule.act(view.picture(place, reckoned=rule.reckons))
                commands[row] = checked_command(wanted, (len(rows), 2), rule)[place]
        self._told.append([rule.tell(int(me)) for rule, me in zip(self._rules, views.members, strict=True)])
        return commands
