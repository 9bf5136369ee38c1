"""Worlds without demonstrations: drawn by a seed, at most 20 flying, with a pace; shaping by the largest gap."""

from dataclasses import replace

import numpy as np
import pytest

from phygail.learning.worlds import DAMAGE, VALIDATION, draw_pool, zero_shot
from phygail.methods.phygail.config import PROFILES
from phygail.methods.phygail.rewards import largest_gap_shaping
from phygail.methods.phygail.rollout import CaseSource
from phygail.rng import generator
from phygail.swarm.batch import initial_batch, step_batch
from phygail.swarm.scenario import make_scenario
from phygail.swarm.tree import bound_steps

pytestmark = pytest.mark.usefixtures("uncompiled")


@pytest.fixture(scope="module")
def pool():
    return draw_pool(40, 7)


def test_equal_seeds_draw_equal_worlds(pool):
    again, other = draw_pool(40, 7), draw_pool(40, 8)
    for one, two in zip(pool.scenarios, again.scenarios, strict=True):
        np.testing.assert_array_equal(one.layout, two.layout)
        np.testing.assert_array_equal(one.damaged, two.damaged)
    assert any(one.uavs != two.uavs for one, two in zip(pool.scenarios, other.scenarios, strict=True))


def test_at_most_twenty_fly_in_worlds_with_many_lost(pool):
    assert pool.flying.max() <= 20
    assert max(scenario.uavs for scenario in pool.scenarios) > 40
    assert len({scenario.id for scenario in pool.scenarios}) == len(pool)


def test_the_pace_is_a_multiple_of_the_bound_and_bounds_the_budget(pool):
    for k in range(len(pool)):
        case = pool.case(k)
        bound = bound_steps(case.scenario.spots, case.scenario.physics)
        assert pool.bound(k) == bound
        assert case.expert_steps == int(np.ceil(1.8 * bound + 8))
        assert case.scenario.budget_steps <= 3 * case.expert_steps + 60


def test_cases_are_drawn_turned_and_found_again(pool):
    case = pool.draw_case(np.random.default_rng(1))
    again = pool.case(case.number, case.element)
    np.testing.assert_array_equal(case.scenario.layout, again.scenario.layout)
    assert bound_steps(case.scenario.spots, case.scenario.physics) == pool.bound(case.number)


def test_it_validates_on_larger_swarms_that_no_training_draws(pool):
    held = pool.held_out
    assert sorted({scenario.uavs for scenario in held.scenarios}) == [uavs for uavs, _ in VALIDATION]
    assert len(held) == sum(cases * len(DAMAGE) for _, cases in VALIDATION)
    assert pool.training is pool


def test_zero_shot_cases_come_ratio_by_ratio():
    cases = zero_shot(50, 2, 11, (0.5, 0.8))
    assert [len(case.damaged) for case in cases] == [25, 25, 40, 40]


def test_a_rollout_draws_from_a_pool_and_goes_on_where_it_was(pool):
    config = PROFILES.get("plus")
    source = CaseSource(pool, generator(1, "a"), config)
    state = initial_batch([source() for _ in range(3)], 20)
    other = CaseSource(pool, generator(2, "b"), config)
    loaded = other.load(source.save(state), 20)
    np.testing.assert_array_equal(loaded.positions, state.positions)
    np.testing.assert_array_equal(other.expert_steps(loaded), source.expert_steps(state))


def test_shaping_by_the_largest_gap_by_hand():
    """Gaps of 20 and 8 m, T_E = 10: Phi = -2 x 20 / (2 x 10 x 1 m) = -2. After two steps the largest gap is 16 m."""
    config = replace(PROFILES.get("plus"), largest_gap_weight=2.0, gamma=0.5, reward_scale=20.0)
    scenario = make_scenario("three", [[0.0, 0.0], [140.0, 0.0], [140.0, 128.0]], width_m=200.0, budget_steps=50)
    before = initial_batch([scenario, scenario])
    wish = np.tile([[10.0, 0.0], [-10.0, 0.0], [-10.0, 0.0]], (2, 1, 1))
    after = step_batch(step_batch(before, wish), wish)
    found = largest_gap_shaping(before, after, np.array([2, 2]), np.array([10, 20]), config)
    np.testing.assert_allclose(found, [20 * (2 - 0.25 * 1.6), 20 * (1 - 0.25 * 0.8)])


def test_shaping_refunds_what_is_left_where_a_flight_ends():
    config = replace(PROFILES.get("plus"), largest_gap_weight=2.0, gamma=0.5)
    pair = make_scenario("pair", [[0.0, 0.0], [122.0, 0.0], [60.0, 60.0]], [2], width_m=200.0, budget_steps=50)
    before = initial_batch([pair])
    after = step_batch(before, np.array([[[10.0, 0.0], [-10.0, 0.0]]]))
    assert after.terminated.all()
    found = largest_gap_shaping(before, after, np.array([1]), np.array([10]), config)
    np.testing.assert_allclose(found, 20 * 2 * 2 / 20)
