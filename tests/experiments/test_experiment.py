"""Experiments as data: what is declared can be flown, and scaled."""

from __future__ import annotations

import pytest

from phygail.config import InputError
from phygail.experiments.catalog import EXPERIMENTS, LARGE, PLANNERS, POLICIES
from phygail.experiments.experiment import Experiment, Leg, Scale, scaled
from phygail.experiments.paper_tables import TABLES
from phygail.experiments.reproduce import FIGURES
from phygail.methods import METHODS

TOY = Experiment(
    "toy", "Toy", "?",
    (
        Leg("fast", ("sidr", "reach"), (20, 100), (0.5, 0.95), 50),
        Leg("slow", ("convex",), (20, 100), (0.5,), 10, {100: 5}),
    ),
)  # fmt: skip


@pytest.mark.parametrize("name", list(EXPERIMENTS))
def test_what_is_declared_exists(name):
    experiment = EXPERIMENTS.get(name)
    assert experiment.name == name
    assert set(experiment.tables) <= set(TABLES)
    assert set(experiment.figures) <= set(FIGURES)
    assert set(experiment.methods) <= set(METHODS) | set(POLICIES)
    assert set(experiment.published) <= set(experiment.methods)
    folders = [leg.name for leg in experiment.legs]
    assert len(set(folders)) == len(folders)
    assert not experiment.flights_of or experiment.legs == EXPERIMENTS.get(experiment.flights_of).legs


def test_the_paper_has_all_eight_methods_in_both_tables():
    paper = {"phygail-taught", "center-fly", "hero", "sidr", "cr-mgc", "demd", "gdr-ts", "cr-ma"}
    assert set(EXPERIMENTS.get("overall").published) == paper
    assert set(EXPERIMENTS.get("runtime").published) == paper
    assert EXPERIMENTS.get("runtime").published["hero"]["steps@500"] == 1280.0


def test_twenty_uavs_are_damaged_up_to_ninety_percent():
    """METHODS 2.2: 0.05 to 0.95 in steps of 0.05, for N = 20 up to 0.90; fewer cases of large swarms."""
    fast, planners = EXPERIMENTS.get("overall").legs
    settings = {n: (ratios, cases) for n, ratios, cases in fast.settings()}
    assert settings[20][0][-1] == 0.9
    assert settings[50][0] == tuple(k / 20 for k in range(1, 20))
    assert [cases for _, _, cases in fast.settings()] == [50, 50, 50, 20, 10]
    assert planners.methods == PLANNERS
    assert [cases for _, _, cases in planners.settings()] == [10, 10, 10, 10, 5]


def test_the_length_of_a_leg_is_its_number_of_episodes():
    fast, slow = TOY.legs
    assert len(fast) == (1 + 2) * 50 * 2  # N = 20 has no 0.95
    assert len(slow) == 10 + 5


def test_fewer_cases_hold_for_all_and_more_only_for_those_with_the_most():
    assert [leg.cases for leg in scaled(TOY, Scale(cases=2)).legs] == [2, 2]
    assert [leg.cases for leg in scaled(TOY, Scale(cases=80)).legs] == [80, 10]


def test_a_choice_of_sizes_ratios_and_methods_drops_what_is_left_empty():
    (leg,) = scaled(TOY, Scale(uavs=(100,), damage=(0.95,))).legs
    assert (leg.uavs, leg.damage, leg.methods) == ((100,), (0.95,), ("sidr", "reach"))
    (leg,) = scaled(TOY, Scale(methods=("convex",))).legs
    assert leg.name == "slow"


def test_a_guest_joins_the_first_leg():
    (leg,) = scaled(TOY, Scale(methods=("mine", "sidr"))).legs
    assert leg.methods == ("mine", "sidr")


@pytest.mark.parametrize(
    ("scale", "named"),
    [
        (Scale(uavs=(30,)), "no swarm size 30: it has 20, 100"),
        (Scale(damage=(0.3,)), "no damage ratio 0.3"),
        (Scale(cases=0), "0 cases"),
    ],
)
def test_what_an_experiment_does_not_have_is_refused(scale, named):
    with pytest.raises(InputError, match=named):
        scaled(TOY, scale)


def test_the_large_settings_are_the_papers():
    assert LARGE == (100, 200, 500)
