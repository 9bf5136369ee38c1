import importlib.util
import os
import sys
from itertools import count

import numpy as np
import pytest

from phygail.config import InputError
from phygail.methods import METHODS, make_method, run_episode
from phygail.methods.base import load_plugin
from phygail.methods.planning import PlanMethod
from phygail.swarm.scenario import make_scenario

SCENARIO = make_scenario("pair", [[0.0, 0.0], [130.0, 0.0], [60.0, 50.0]], [2])
DRIFT = """
import numpy as np
from phygail.methods.base import SubnetMethod, register

@register
class Drift(SubnetMethod):
    '''Drifts.'''

    name = "{name}"
    summary = "every subnet drifts north"

    def act(self, view):
        return np.tile([0.0, 10.0], (len(view.members), 1))
"""
numbers = count()


@pytest.fixture
def plugin(tmp_path):
    """A plugin file with a method of a fresh name; forgotten afterwards."""
    name = f"drift{next(numbers)}"
    path = tmp_path / f"{name}.py"
    path.write_text(DRIFT.format(name=name))
    yield path
    METHODS._entries.pop(name, None)
    sys.modules.pop(f"phygail_plugin_{name}", None)


def test_a_plugin_adds_a_method_from_one_file(plugin):
    load_plugin(plugin)
    episode = run_episode(SCENARIO, plugin.stem)
    assert episode.truncated
    assert episode.metrics.distance_m_per_uav == pytest.approx(episode.steps)


def test_a_plugin_named_twice_in_different_ways_is_imported_once(plugin, monkeypatch):
    monkeypatch.chdir(plugin.parent)
    load_plugin(plugin.name)
    load_plugin(plugin)
    load_plugin(os.path.join("..", plugin.parent.name, plugin.name))  # noqa: PTH118 - pathlib would tidy the dots up
    assert plugin.stem in METHODS


def test_a_method_name_that_is_taken_is_refused_again_and_again(plugin):
    plugin.write_text(DRIFT.format(name="sidr"))
    for _ in range(2):
        with pytest.raises(InputError, match="method 'sidr' is registered twice"):
            load_plugin(plugin)


@pytest.mark.parametrize(
    "text", ["import nonsense_that_is_not_there", "1 +", "raise OSError('x')", "raise SystemExit(3)"]
)
def test_a_plugin_that_fails_is_named(plugin, text):
    plugin.write_text(text)
    for _ in range(2):
        with pytest.raises(InputError, match=r"the plugin .* fails on import: (\w+Error|SystemExit)"):
            load_plugin(plugin)


@pytest.mark.parametrize("name", ["", "a,b", "a/b", "a b"])
def test_a_method_name_fits_into_lists_and_file_names(plugin, name):
    plugin.write_text(DRIFT.format(name=name))
    with pytest.raises(InputError, match=r"the method name '.*': use letters"):
        load_plugin(plugin)


def test_a_plugin_that_is_not_there_is_named(tmp_path):
    with pytest.raises(InputError, match="there is no such file"):
        load_plugin(tmp_path / "none.py")
    (tmp_path / "x.txt").write_text("")
    with pytest.raises(InputError, match=r"name a \.py file"):
        load_plugin(tmp_path / "x.txt")


def test_an_unknown_method_gets_a_hint():
    with pytest.raises(InputError, match="unknown method 'sird': did you mean 'sidr'"):
        make_method("sird")


def test_a_method_that_needs_torch_says_so(monkeypatch):
    if not any(METHODS.get(n).extra == "learn" for n in METHODS):
        pytest.skip("none is registered")
    name = next(n for n in METHODS if METHODS.get(n).extra == "learn")
    monkeypatch.setattr(importlib.util, "find_spec", lambda module: None)
    with pytest.raises(InputError, match=rf"the method '{name}' needs torch: pip install 'phygail\[learn\]'"):
        make_method(name)


class Meet(PlanMethod):
    """Everybody to (65, y)."""

    name = "meet"
    summary = "everybody to one line"
    planned = 0

    def plan(self, view):
        self.planned += 1
        return view.positions * [0.0, 1.0] + [65.0, 0.0]


def test_a_plan_is_made_once_and_flown():
    method = Meet()
    episode = run_episode(SCENARIO, method, record=True)
    assert method.planned == 1
    assert (episode.terminated, episode.steps) == (True, 5)
    np.testing.assert_allclose(episode.states[-1].positions[:, 0], [5.0, 125.0])


def test_a_plan_that_is_no_number_is_an_error_of_the_method():
    class Broken(Meet):
        def plan(self, view):
            return view.positions * np.nan

    with pytest.raises(FloatingPointError, match="planned a target that is not a number"):
        run_episode(SCENARIO, Broken())
