"""Any method with imperfect sensing: noise on every observed position, late news of neighbors (METHODS 4.8)."""

from __future__ import annotations

import copy
from typing import cast

import numpy as np

from phygail.methods.base import Method, SubnetMethod
from phygail.perception.noise import SensedObserver, SensedViews, Sensing
from phygail.swarm.episode import Controller
from phygail.swarm.scenario import Scenario
from phygail.swarm.state import SwarmState


def sensed_controller(method: Method, scenario: Scenario, sensing: Sensing, rng: np.random.Generator) -> Controller:
    """The method as a controller that sees `scenario` through `sensing`; the world itself stays exact.

    A subnet method is asked subnet by subnet, since each has its own idea of the center. Where neighbors are late, each
    UAV runs its own copy of the rule on its own picture of the subnet. A method that reads such views itself says so by
    an attribute `senses`.
    """
    observer = SensedObserver(scenario, sensing, rng)
    pilots: list[SubnetMethod] = []

    def command(state: SwarmState) -> np.ndarray:
        view = observer.observe(state, method.scope)
        if not isinstance(view, SensedViews) or getattr(method, "senses", False):
            return method.velocities(view)
        rule = cast(SubnetMethod, method)
        if not view.delayed:
            return SubnetMethod.act_all(rule, view)
        if not pilots:
            pilots.extend(copy.deepcopy(rule) for _ in view.members)
        return _fly_pictures(pilots, view)

    return command


def _fly_pictures(pilots: list[SubnetMethod], views: SensedViews) -> np.ndarray:
    """(n, 2) m/s: every UAV's own command in its own picture."""
    commands = np.zeros_like(views.positions)
    for rows, view in zip(views.rows, views, strict=True):
        for place, row in enumerate(rows):
            commands[row] = pilots[row].act(view.picture(place))[place]
    return commands
