"""One seed rule: whoever flies a method on a scenario flies the same flight.

A method's randomness depends on the scenario (its seed and id) and on the method's name only. Here every method of the
registry flies through the Python API, `compare`, `recover --json`, the expert database and the environment. Not only
the steps are equal but the distance flown, to the last bit.
"""

from __future__ import annotations

import contextlib
import importlib.util
import io
import json
import sys
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from phygail.cli.main import main
from phygail.experiments.grid import CaseList, Grid
from phygail.experiments.rows import Job, Task, case_reader, fly_task
from phygail.experiments.runner import compare
from phygail.methods import METHODS, make_method, run_episode
from phygail.methods.base import GlobalMethod
from phygail.methods.controller import controller, fly_case, sensed_controller
from phygail.methods.phygail.experts.recipe import fly_recorded
from phygail.rng import generator
from phygail.sensing.imperfect import Sensing
from phygail.swarm.scenario import load_scenarios, save_scenarios
from phygail.swarm.simulator import fly, initial_state, step

TORCH = importlib.util.find_spec("torch") is not None
NAMES = [name for name in METHODS if TORCH or METHODS.get(name).extra != "learn"]
GRID = Grid((12,), (0.6,), 1, 3)
DICE = """
from phygail.methods.base import GlobalMethod, register

@register
class Dice(GlobalMethod):
    name = "dice"
    summary = "flies where its dice fall"

    def act(self, view):
        return self.rng.uniform(-10, 10, view.positions.shape)
"""


@pytest.fixture(scope="module", autouse=True)
def short_searches():
    """Planners that learn per case do so for a few iterations: they draw the same numbers first."""
    with pytest.MonkeyPatch.context() as patch:
        if TORCH:
            from phygail.methods.gcn_planners.search import DEMD_PROFILES, PROFILES

            for profiles, name in ((PROFILES, "fast"), (DEMD_PROFILES, "guarded")):
                patch.setitem(profiles, name, replace(profiles[name], iterations=5))
            patch.setitem(METHODS.get("gdr-ts").__init__.__kwdefaults__, "updates", 5)
        patch.setitem(METHODS.get("convex").__init__.__kwdefaults__, "effort", 0.0)
        yield


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    """A scenario file with one case, its seed among the rest."""
    path = tmp_path_factory.mktemp("cases") / "one.json"
    save_scenarios(path, [GRID.scenario(0)])
    return path


@pytest.fixture(scope="module")
def compared(file):
    """(steps, distance) of every method in the rows that a worker of `compare` makes."""
    job = Job(CaseList(tuple(load_scenarios(file))), tuple(NAMES))
    rows = [fly_task(job, Task(0, name), case_reader(job)).row for name in NAMES]
    return {row["method"]: (row["steps"], row["distance_m_per_uav"]) for row in rows}


@pytest.fixture(scope="module")
def recovered(file):
    """The same from `phygail recover --json`."""
    return recover(["--scenarios", str(file), "--methods", ",".join(NAMES)])


@cache
def flown(name, path):
    return outcome(run_episode(load_scenarios(path)[0], name))


def outcome(episode):
    return episode.scored_steps, episode.metrics.distance_m_per_uav


def recover(flags):
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        assert main(["recover", *flags, "--json"]) == 0
    rows = json.loads(printed.getvalue())["methods"]
    return {row["method"]: (row["steps"], row["distance_m_per_uav"]) for row in rows}


@pytest.mark.parametrize("name", NAMES)
def test_a_comparison_flies_what_the_api_flies(name, file, compared):
    assert compared[name] == flown(name, file)


@pytest.mark.parametrize("name", NAMES)
def test_recover_flies_what_the_api_flies(name, file, recovered):
    assert recovered[name] == flown(name, file)


@pytest.mark.parametrize("name", NAMES)
def test_the_expert_database_flies_what_the_api_flies(name, file):
    result, episode = fly_recorded(load_scenarios(file)[0], name)
    assert result.moves == episode.scored_steps
    assert outcome(episode) == flown(name, file)


@pytest.mark.parametrize("name", NAMES)
def test_the_environment_flies_what_the_api_flies(name, file):
    """An action is a velocity over v_max, which rounds: equal steps."""
    recovery_v0 = pytest.importorskip("phygail.envs.recovery_v0")
    scenario = load_scenarios(file)[0]
    env = recovery_v0.parallel_env(scenarios=[scenario])
    env.reset(seed=0)
    state, command = initial_state(scenario), controller(make_method(name), scenario)
    while env.agents:
        velocities = command(state)
        _, _, _, _, infos = env.step(dict(zip(env.agents, velocities / scenario.physics.speed_mps, strict=True)))
        state = step(state, velocities)
    assert next(iter(infos.values()))["steps"] == flown(name, file)[0]


@pytest.mark.skipif(not TORCH, reason="needs torch")
def test_a_drawn_case_is_flown_with_the_seed_that_drew_it(file):
    """gdr-ts samples its plans: `recover` draws case 0 of the grid, and another seed is another flight."""
    drawn = recover(["--uavs", "12", "--damage", "0.6", "--seed", "3", "--methods", "gdr-ts"])["gdr-ts"]
    assert drawn == outcome(run_episode(GRID.scenario(0), "gdr-ts")) == outcome(fly_case(GRID.scenario(0), "gdr-ts")[0])
    assert drawn == flown("gdr-ts", file), "a case saved to a file keeps its seed"
    unseeded = replace(GRID.scenario(0), seed=None)
    assert drawn != outcome(run_episode(unseeded, "gdr-ts"))
    assert outcome(run_episode(unseeded, "gdr-ts")) == outcome(run_episode(replace(unseeded, seed=0), "gdr-ts"))


def test_the_workers_of_a_comparison_throw_the_same_dice(file, tmp_path):
    plugin = tmp_path / "dice.py"
    plugin.write_text(DICE)
    try:
        row = compare(load_scenarios(file), ["dice"], tmp_path / "run", workers=1, plugins=[plugin]).row(0, named=True)
        assert (row["steps"], row["distance_m_per_uav"]) == outcome(run_episode(load_scenarios(file)[0], "dice"))
    finally:
        METHODS._entries.pop("dice", None)
        sys.modules.pop("phygail_plugin_dice", None)


# --- the rule itself ---


class Dice(GlobalMethod):
    """Flies where its dice fall."""

    name = "dice"
    summary = "test"

    def act(self, view):
        return self.rng.uniform(-10, 10, view.positions.shape)


def first_command(method, scenario):
    return controller(method, scenario)(initial_state(scenario))


def test_the_dice_depend_on_seed_id_and_name():
    scenario = GRID.scenario(0)
    expected = generator(3, "method", "dice", scenario.id).uniform(-10, 10, scenario.spots.shape)
    np.testing.assert_array_equal(first_command(Dice(), scenario), expected)


def test_every_episode_of_an_instance_begins_with_the_same_dice():
    method, scenario = Dice(), GRID.scenario(0)
    np.testing.assert_array_equal(first_command(method, scenario), first_command(method, scenario))


def test_dice_that_a_user_brings_are_used():
    scenario = GRID.scenario(0)
    expected = np.random.default_rng(5).uniform(-10, 10, scenario.spots.shape)
    np.testing.assert_array_equal(first_command(Dice(np.random.default_rng(5)), scenario), expected)


def test_imperfect_sensing_does_not_change_the_dice():
    scenario = GRID.scenario(0)
    command = sensed_controller(Dice(), scenario, Sensing(sigma_m=5.0), generator(0, "noise"))
    np.testing.assert_array_equal(command(initial_state(scenario)), first_command(Dice(), scenario))


def test_flying_an_instance_is_flying_its_name():
    scenario = GRID.scenario(0)
    assert outcome(run_episode(scenario, make_method("sidr"))) == outcome(run_episode(scenario, "sidr"))
    episode = fly(scenario, controller(Dice(), scenario))
    assert outcome(run_episode(scenario, Dice())) == outcome(episode)
