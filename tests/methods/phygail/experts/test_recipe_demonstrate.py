"""The fastest success is the expert, and its flight is stored as it was executed (METHODS 4.5)."""

from __future__ import annotations

import numpy as np
import pytest

from phygail.config import InputError
from phygail.methods.base import METHODS, LocalMethod
from phygail.methods.controller import run_episode
from phygail.methods.phygail.experts import recipe as pools
from phygail.methods.phygail.experts.recipe import (
    CASES,
    DAMAGE,
    POOLS,
    SEED,
    Outcome,
    Recipe,
    choose_expert,
    choose_pool,
    demonstrate,
    held_out,
)
from phygail.swarm.links import find_links

RECIPE = Recipe("test", ("center-fly", "sidr", "hero"), damage=(0.5, 0.8), cases=4)


@pytest.fixture(scope="module")
def demo():
    return demonstrate(RECIPE, 5)


@pytest.mark.parametrize(
    ("outcomes", "winner"),
    [
        ([(True, 30, 0.0), (True, 12, 0.5), (True, 40, 0.0)], 1),  # fewest moves, whatever the contacts
        ([(False, 5, 0.0), (True, 256, 2.0)], 1),  # a failure never wins
        ([(True, 12, 0.5), (True, 12, 0.1), (True, 13, 0.0)], 1),  # tie in moves: fewer contacts
        ([(True, 20, 0.2), (True, 12, 0.2), (True, 12, 0.2)], 1),  # tie in both: the first in the pool
        ([(False, 256, 0.0), (False, 256, 0.0)], None),
    ],
)
def test_the_expert_is_the_fastest_success_then_the_safest_then_the_first(outcomes, winner):
    assert choose_expert([Outcome(*o) for o in outcomes]) == winner


def test_the_stored_flight_is_that_of_the_winner(demo):
    name = RECIPE.methods[demo.winner]
    episode = run_episode(demo.scenario, name, record=True)
    assert len(demo.velocities) == demo.outcomes[demo.winner].moves == episode.steps == len(demo.positions) - 1
    for t, state in enumerate(episode.states):
        np.testing.assert_array_equal(demo.positions[t], state.positions)


def test_positions_follow_from_the_velocities_of_the_same_row(demo):
    """Velocity t is executed between positions t and t + 1; the first is the layout, only the last is connected."""
    np.testing.assert_array_equal(demo.positions[0], demo.scenario.spots)
    np.testing.assert_allclose(demo.positions[1:], demo.positions[:-1] + 0.1 * demo.velocities, atol=1e-12)
    connected = [find_links(points, 120.0).connected for points in demo.positions]
    assert connected == [False] * len(demo.velocities) + [True]


def test_a_scenario_depends_on_seed_size_ratio_and_case_only():
    other = Recipe("other", ("sidr",), damage=(0.3, 0.8, 0.5), cases=9)
    here, there = RECIPE.scenario(5), other.scenario(10)  # ratio 0.8, case 1
    assert RECIPE.cell(5) == other.cell(10) == (0.8, 1)
    np.testing.assert_array_equal(here.layout, there.layout)
    np.testing.assert_array_equal(here.damaged, there.damaged)
    assert here.id == there.id == "expert-n0020-d0.800-c001-s400000"


def test_the_default_recipe_is_that_of_the_paper():
    recipe = Recipe("paper", ("sidr",))
    assert (recipe.uavs, recipe.damage, recipe.cases) == (20, DAMAGE, CASES)
    assert pytest.approx(np.arange(0.05, 0.91, 0.05)) == DAMAGE
    assert len(recipe) == 1980
    assert recipe.seed == SEED >= 400_000


def test_at_least_a_tenth_of_every_ratio_is_held_out():
    for cases in (1, 9, 10, 11, 110):
        assert sum(map(held_out, range(cases))) == -(-cases // 10)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"damage": (0.5, 0.5)}, "each once"),
        ({"damage": (0.01,)}, "20 UAVs with damage 0.01 lose nobody"),
        ({"damage": (0.1234,)}, "three decimals"),
        ({"damage": (1.5,)}, "from 0 to 1"),
        ({"cases": 0}, "choose from 1"),
        ({"seed": -1}, "seed -1"),
        ({"uavs": 1}, "choose from 2"),
    ],
)
def test_a_bad_recipe_is_refused(change, words):
    with pytest.raises(InputError, match=words):
        Recipe("test", ("sidr",), **change)


def test_what_a_method_raises_is_its_failure_alone(monkeypatch):
    class Broken(LocalMethod):
        name = "broken"
        summary = "raises"

        def act(self, view):
            raise ZeroDivisionError("no\nluck")

    monkeypatch.setitem(METHODS._entries, "broken", Broken)
    demo = demonstrate(Recipe("test", ("broken", "center-fly"), damage=(0.5,), cases=1), 0)
    assert demo.outcomes[0] == Outcome(False, 256, 0.0, "ZeroDivisionError: no luck")
    assert demo.winner == 1


def test_a_scenario_that_nobody_solves_has_no_flight(monkeypatch):
    class Still(LocalMethod):
        name = "still"
        summary = "stays"

        def act(self, view):
            return np.zeros_like(view.positions)

    monkeypatch.setitem(METHODS._entries, "still", Still)
    demo = demonstrate(Recipe("test", ("still",), damage=(0.5,), cases=1), 0)
    assert demo.winner is None
    assert demo.outcomes == (Outcome(False, 256, 0.0),)
    assert demo.positions.size == demo.velocities.size == 0


def test_pools_name_who_is_left_out_and_who_is_missing(monkeypatch):
    monkeypatch.setattr(pools, "can_fly", lambda name: name not in ("cr-ma", "convex"))
    methods, left_out, missing = choose_pool("all", ["demd", "hero"])
    assert methods == ("sidr", "reach", "center-fly", "cr-mgc", "gdr-ts")
    assert (left_out, missing) == (("hero", "demd"), ("cr-ma", "convex"))


def test_a_method_that_is_not_registered_cannot_fly():
    assert pools.can_fly("center-fly")
    assert not pools.can_fly("not-yet-written")


def test_the_decentralized_pool_plans_nothing_globally():
    known = [name for name in POOLS["decentralized"] if name in METHODS]
    assert all(METHODS.get(name).scope.value != "global" for name in known)
    assert "convex" in POOLS["all"]


def test_unknown_pools_and_strangers_are_refused():
    with pytest.raises(InputError, match=r"unknown pool 'papre': there are paper"):
        choose_pool("papre")
    with pytest.raises(InputError, match=r"'convex' is not in the pool paper"):
        choose_pool("paper", ["convex"])
    with pytest.raises(InputError, match="nobody is left"):
        choose_pool("decentralized", POOLS["decentralized"])
