"""Every subnet method flies with late neighbors: each UAV by its own copy of the rule."""

import numpy as np
import pytest

from phygail.methods import METHODS
from phygail.methods.base import make_method
from phygail.methods.sensed import sensed_controller
from phygail.perception.noise import Sensing
from phygail.perception.view import Scope
from phygail.rng import generator
from phygail.swarm.dynamics import step
from phygail.swarm.scenario import draw_scenario
from phygail.swarm.state import initial_state


@pytest.mark.parametrize("name", [name for name in METHODS if METHODS.get(name).scope is Scope.SUBNET])
def test_methods_fly_with_late_and_noisy_neighbors(name):
    """The first commands are those of perfect sensing: at t = 0 nothing is late yet."""
    scenario = draw_scenario(20, 0.5, generator(700_001))
    late, plain = (
        sensed_controller(make_method(name), scenario, Sensing(delay_steps=steps), np.random.default_rng(0))
        for steps in (2, 0)
    )
    state = initial_state(scenario)
    assert late(state) == pytest.approx(plain(state), abs=1e-4)
    for _ in range(4):
        velocities = late(state)
        assert np.isfinite(velocities).all()
        state = step(state, velocities)
