"""Every import that README, docs and examples of version 0.1.0 showed works in this version, too.

Frozen: do not bring these lines up to date. An import of something that has moved says where it is now.
"""

from __future__ import annotations

import re
import warnings

import pytest

SHOWN = (
    "from phygail import __version__",
    "from phygail import compare",
    "from phygail import draw_scenario, run_episode",
    "from phygail import load_scenarios, make_scenario, run_episode, save_scenarios",
    "from phygail import Episode, GlobalMethod, Grid, InputError, LocalMethod, Physics, Scenario, SubnetMethod",
    "from phygail import METHODS, bound_steps, load_layout, load_plugin, make_method, register",
    "from phygail.envs import recovery_v0",
    "from phygail.evaluation.figures import animate_recovery, draw_recovery",
    "from phygail.evaluation.grid import Grid",
    "from phygail.methods.base import SubnetMethod, register",
    "from phygail.methods.forces import go",
    "from phygail.methods.plan import PlanMethod",
    "from phygail.methods.policy import PolicyMethod",
    "from phygail.perception.view import SubnetView",
    "from phygail.rng import generator",
    "from phygail.swarm.bounds import bound_steps",
    "from phygail.swarm.damage import strike_damage",
)


@pytest.mark.parametrize("line", SHOWN)
def test_an_import_of_the_first_version_works(line):
    if "phygail.envs" in line:
        pytest.importorskip("pettingzoo")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        names: dict[str, object] = {}
        exec(line, names)
    assert all(name in names for name in line.partition(" import ")[2].split(", "))
    for warning in caught:
        if issubclass(warning.category, DeprecationWarning) and "phygail" in str(warning.message):
            assert re.search(r"moved to phygail\.\w+", str(warning.message))
