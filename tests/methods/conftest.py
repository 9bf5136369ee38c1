"""Single failures, drawn and planned once for all tests that look at them."""

from functools import cache

import numpy as np
import pytest

from phygail.methods.base import make_method
from phygail.methods.controller import controller
from phygail.rng import generator
from phygail.swarm.failures import draw_failures
from phygail.swarm.simulator import initial_state


@cache
def _drawn(uavs, case, failures=1, kind="single", seed=2011):
    return draw_failures(uavs, failures, kind, generator(seed, kind, uavs, failures, case), name=f"{kind}-{case}")


@cache
def _planned(name, scenario):
    method = make_method(name)
    controller(method, scenario)(initial_state(scenario))
    targets = np.array(method.targets)
    targets.setflags(write=False)
    return method, targets


@pytest.fixture(scope="session")
def single():
    """(N, case, failures, kind, seed) -> the scenario; the seed is that of the reference numbers."""
    return _drawn


@pytest.fixture(scope="session")
def planned():
    """(name, scenario) -> the method after its first command, and its (n, 2) m targets."""
    return _planned
