"""Resilience curves: what is flown, kept and drawn."""

import numpy as np
import pytest

from phygail.experiments.catalog import EXPERIMENTS
from phygail.experiments.experiment import FULL_SIZE, WORLD_EXPERIMENTS, Experiment, Scale
from phygail.experiments.reproduce import (
    CURVES,
    Curve,
    bands,
    fly_curves,
    largest_share,
    read_curves,
    resilience_figure,
    save_curves,
    shared,
)
from phygail.swarm.scenario import make_scenario
from phygail.swarm.simulator import initial_state


def test_the_largest_share_of_three_and_one():
    scenario = make_scenario("s", [[0, 0], [100, 0], [200, 0], [600, 0]])
    assert largest_share(initial_state(scenario)) == 0.75


def test_a_flight_that_has_ended_keeps_its_last_share():
    curves = [
        Curve("", "sidr", "a", 0.1, (), (0.5, 1.0)),
        Curve("", "sidr", "b", 0.1, (), (0.5, 0.5, 0.5, 1.0)),
    ]
    mean, low, high = bands(curves, 4)
    assert mean.tolist() == [0.5, 0.75, 0.75, 1.0]
    assert low.tolist() == pytest.approx([0.5, 0.55, 0.55, 1.0])
    assert high.tolist() == pytest.approx([0.5, 0.95, 0.95, 1.0])


def test_methods_are_drawn_on_the_cases_that_all_have_flown():
    both = [Curve("", name, "a", 0.1, (), (0.5, 1.0)) for name in ("reach", "sidr")]
    assert shared([*both, Curve("", "sidr", "b", 0.1, (), (0.1, 1.0))]) == both


def test_curves_are_read_as_they_were_saved(tmp_path):
    curves = [
        Curve("waves=3:40:150 hold=2", "reach", "b", 0.1, (40, 80), (0.25, 1.0)),
        Curve("", "sidr", "a", 0.1, (), (1.0,)),
    ]
    save_curves(tmp_path / CURVES, curves)
    assert read_curves(tmp_path / CURVES) == sorted(curves)
    assert read_curves(tmp_path / "none.csv") == []


def test_only_missing_flights_are_flown(tmp_path, monkeypatch):
    """Two worlds, one case, one method: flown once, not again; a size without curves flies none."""
    flown = []

    def fly(scenario, world, method):
        flown.append((world, method, scenario.id))
        return Curve(world, method, scenario.id, 0.1, (), (0.5, 1.0))

    monkeypatch.setattr("phygail.experiments.reproduce._flown", fly)
    experiment = Experiment("x", "x", "x", curves=("", "hold=2"), curve_cases=3)
    scale = Scale(methods=("sidr",), cases=1)
    fly_curves(experiment, tmp_path, Scale(uavs=(200,)), print)
    assert not flown
    fly_curves(experiment, tmp_path, scale, print)
    fly_curves(experiment, tmp_path, scale, print)
    assert [world for world, _, _ in flown] == ["", "hold=2"]


def test_losses_are_marked_where_all_flights_share_their_steps():
    worlds = ("waves=2:4:50", "trickle=0.1:5")
    curves = [Curve(worlds[0], "sidr", name, 0.1, (4, 8), (0.5,) * 12) for name in "ab"]
    curves += [Curve(worlds[1], "sidr", name, 0.1, (step,), (0.5,) * 12) for name, step in (("a", 2), ("b", 3))]
    first, second = resilience_figure((worlds, curves)).axes
    assert sorted(line.get_xdata()[0] for line in first.lines[1:]) == pytest.approx([0.4, 0.8])
    assert len(second.lines) == 1
    assert np.allclose(first.lines[0].get_ydata(), 0.5)


def test_world_experiments_fly_the_plain_world_and_every_full_size_world():
    flown = {leg.world for experiment in WORLD_EXPERIMENTS for leg in experiment.legs if leg.cases == 20}
    assert flown == set(FULL_SIZE)
    for experiment in WORLD_EXPERIMENTS:
        assert EXPERIMENTS.get(experiment.name) is experiment
        assert experiment.legs[0].world == ""
        assert "" in experiment.curves
        assert len(experiment.curves) > 1
