import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from phygail.config import InputError, Physics
from phygail.swarm.links import find_links
from phygail.swarm.scenario import (
    D4,
    Scenario,
    budget_for,
    draw_scenario,
    make_scenario,
    scenario_from_json,
    scenario_to_json,
    transform,
)
from phygail.swarm.simulator import initial_state

SQUARE = [[0.0, 0.0], [200.0, 0.0], [0.0, 200.0], [200.0, 200.0]]


def same(a: Scenario, b: Scenario) -> bool:
    return (
        np.array_equal(a.layout, b.layout)
        and np.array_equal(a.damaged, b.damaged)
        and np.array_equal(a.center, b.center)
        and (a.id, a.width_m, a.physics, a.budget_steps) == (b.id, b.width_m, b.physics, b.budget_steps)
    )


# --- what a scenario is -----------------------------------------------------------------------------------------------


def test_defaults_without_a_map_come_from_the_bounding_box():
    scenario = make_scenario("a", [[1000.0, -50.0], [1400.0, 50.0], [1100.0, 0.0]])
    assert scenario.width_m == 400.0
    assert scenario.center.tolist() == [1200.0, 0.0]
    assert scenario.budget_steps == 320
    assert scenario.physics == Physics(120.0, 10.0, 0.1)
    assert scenario.alive.tolist() == [0, 1, 2]


def test_defaults_with_a_map_come_from_its_width():
    scenario = make_scenario("a", SQUARE, [2], width_m=750)
    assert scenario.center.tolist() == [375.0, 375.0]
    assert scenario.budget_steps == 600
    assert scenario.alive.tolist() == [0, 1, 3]
    assert scenario.spots.tolist() == [SQUARE[0], SQUARE[1], SQUARE[3]]


def test_budgets_are_those_of_the_paper():
    assert [budget_for(w, Physics()) for w in (320, 500, 750, 1000, 1600)] == [256, 400, 600, 800, 1280]
    assert budget_for(0.5, Physics()) == 1


@given(st.floats(22.0, 1e7))
@settings(max_examples=300)
def test_on_a_centered_map_the_paper_s_vehicle_has_the_paper_s_budget(width):
    """floor(0.8 W) covers the way from a corner, W/sqrt(2), on every map wider than 22 m."""
    corners = [[0.0, 0.0], [width, 0.0], [0.0, width], [width, width]]
    assert make_scenario("a", corners, width_m=width).budget_steps == math.floor(0.8 * width + 1e-9)


@pytest.mark.parametrize(("speed", "step_s", "steps"), [
    (10.0, 0.1, 600), (20.0, 0.1, 300), (10.0, 0.2, 300), (2.0, 0.1, 3000), (10.0, 0.02, 3000), (0.3, 0.1, 20_000),
    (7.0, 0.1, 857),  # 600 m / 0.7 m = 857.14
    (10_000.0, 1.0, 1),
])  # fmt: skip
def test_the_budget_is_a_way_flown_at_full_speed(speed, step_s, steps):
    """AUDIT R3, U6: 0.8 x 750 m, whatever the stride."""
    scenario = make_scenario("a", SQUARE, [2], width_m=750, physics=Physics(speed_mps=speed, step_s=step_s))
    assert scenario.budget_steps == steps


def test_the_budget_covers_the_way_to_a_center_off_the_middle():
    """AUDIT R2: 0.8 W = 400 steps, but (0, 0) is hypot(480, 360) = 600 m from the center."""
    layout = [[0.0, 0.0], [100.0, 0.0], [500.0, 350.0], [480.0, 360.0]]
    assert make_scenario("a", layout, width_m=500, center=[480.0, 360.0]).budget_steps == 600
    assert make_scenario("a", layout, width_m=500, center=[480.3, 360.0]).budget_steps == 601  # 600.24 m
    slow = Physics(speed_mps=2.0)
    assert make_scenario("a", layout, width_m=500, center=[480.0, 360.0], physics=slow).budget_steps == 3000
    outside = make_scenario("a", layout, width_m=500, center=[3000.0, 4000.0])
    assert outside.budget_steps == 5000
    assert outside.budget_steps == scenario_from_json(scenario_to_json(outside), "x").budget_steps


def test_only_the_alive_have_a_way_to_the_center():
    """Without UAV 0 the farthest is 1 at hypot(380, 360) = 523.45 m; without both the map decides."""
    layout = [[0.0, 0.0], [100.0, 0.0], [500.0, 350.0], [480.0, 360.0]]
    assert make_scenario("a", layout, [0], width_m=500, center=[480.0, 360.0]).budget_steps == 524
    assert make_scenario("a", layout, [0, 1], width_m=500, center=[480.0, 360.0]).budget_steps == 400


def test_a_budget_that_is_given_wins():
    scenario = make_scenario("a", SQUARE, width_m=250, center=[9000.0, 0.0], budget_steps=3)
    assert scenario.budget_steps == 3


def test_a_vehicle_too_slow_for_any_budget_is_refused_unless_one_is_given():
    crawling = Physics(speed_mps=1e-6, step_s=1e-6)
    with pytest.raises(
        InputError, match=r"at 1e-12 m per step the budget would be 200,000,000,000,000 steps, more than"
    ):
        make_scenario("a", SQUARE, width_m=250, physics=crawling)
    assert make_scenario("a", SQUARE, width_m=250, physics=crawling, budget_steps=9).budget_steps == 9


@pytest.mark.parametrize("factor", [0.5, 2.0, 4.0])
def test_all_lengths_and_the_speed_times_a_factor_give_the_scaled_scenario(factor):
    """Drawn, not copied: the same damage, links, subnets, contacts and budget; positions times the factor."""
    scaled = Physics(range_m=120.0 * factor, speed_mps=10.0 * factor, contact_m=10.0 * factor)
    for uavs, ratio in ((20, 0.5), (100, 0.3), (200, 0.9)):
        one = draw_scenario(uavs, ratio, np.random.default_rng(uavs))
        other = draw_scenario(uavs, ratio, np.random.default_rng(uavs), physics=scaled)
        assert np.array_equal(other.layout, factor * one.layout)
        assert np.array_equal(other.center, factor * one.center)
        assert np.array_equal(other.damaged, one.damaged)
        assert (other.width_m, other.budget_steps) == (factor * one.width_m, one.budget_steps)
        links, others = (initial_state(s).links for s in (one, other))
        assert np.array_equal(others.pairs, links.pairs)
        assert np.array_equal(others.subnet, links.subnet)


def test_a_drawn_scenario_splits_at_its_own_radio():
    for reach in (30.0, 300.0):
        physics = Physics(range_m=reach, contact_m=reach / 12)
        scenario = draw_scenario(100, 0.5, np.random.default_rng(0), physics=physics)
        assert scenario.width_m == 750.0 * reach / 120.0
        assert find_links(scenario.layout, reach).connected
        assert not find_links(scenario.spots, reach).connected


def test_a_scenario_is_immutable_and_keeps_nothing_of_the_callers_array():
    layout = np.array(SQUARE)
    scenario = make_scenario("a", layout, [0])
    layout[0] = 7.0
    assert scenario.layout[0].tolist() == [0.0, 0.0]
    for array in (scenario.layout, scenario.damaged, scenario.center, scenario.alive, scenario.spots):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0


# --- turning and mirroring --------------------------------------------------------------------------------------------


def test_d4_has_eight_distinct_elements_and_is_closed():
    """PH-9."""
    keys = {tuple(m.ravel()) for m in D4}
    assert len(keys) == 8
    assert {tuple((a @ b).ravel()) for a, b in itertools.product(D4, D4)} == keys
    assert all(np.array_equal(m @ m.T, np.eye(2)) for m in D4)


@pytest.mark.parametrize("element", range(8))
def test_transforms_preserve_distances_links_and_the_map(element):
    """PH-9."""
    scenario = draw_scenario(50, 0.5, np.random.default_rng(3))
    turned = transform(scenario, element)
    between = lambda p: np.linalg.norm(p[:, None] - p[None], axis=2)  # noqa: E731 - a name for one formula
    np.testing.assert_allclose(between(turned.layout), between(scenario.layout), atol=1e-9)
    assert turned.layout.min() >= 0
    assert turned.layout.max() <= scenario.width_m
    assert np.array_equal(turned.damaged, scenario.damaged)
    assert np.array_equal(turned.center, scenario.center)
    assert turned.id == f"drawn-g{element}"
    before, after = (find_links(s.spots, 120.0) for s in (scenario, turned))
    assert np.array_equal(before.pairs, after.pairs)


def test_a_quarter_turn_by_hand():
    turned = transform(make_scenario("a", [[0.0, 0.0], [2.0, 0.0], [2.0, 1.0]], center=[1.0, 1.0]), 1)
    assert turned.layout.tolist() == [[2.0, 0.0], [2.0, 2.0], [1.0, 2.0]]  # counter-clockwise about (1, 1)


# --- drawing ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("uavs", "ratio"), [(3, 0.5), (20, 0.05), (20, 0.9), (100, 0.05), (100, 0.95), (500, 0.3)])
def test_a_drawn_scenario_is_one_network_before_the_damage_and_split_after(uavs, ratio):
    for seed in range(5):
        scenario = draw_scenario(uavs, ratio, np.random.default_rng(seed), seed=seed)
        assert find_links(scenario.layout, 120.0).connected
        assert find_links(scenario.spots, 120.0).count >= 2
        assert len(scenario.alive) + len(scenario.damaged) == scenario.uavs == uavs
        assert scenario.seed == seed


def test_equal_seeds_draw_equal_scenarios():
    a, b, c = (draw_scenario(50, 0.4, np.random.default_rng(s)) for s in (1, 1, 2))
    assert same(a, b)
    assert not same(a, c)


def test_layouts_are_fresh_from_case_to_case():
    rng = np.random.default_rng(0)
    assert not np.array_equal(draw_scenario(20, 0.5, rng).layout, draw_scenario(20, 0.5, rng).layout)


def test_a_fixed_layout_keeps_its_place_and_decides_the_size():
    line = np.array([[1000.0 + 100 * k, 0.0] for k in range(12)])
    scenario = draw_scenario(99, 0.25, np.random.default_rng(0), layout=line)
    assert np.array_equal(scenario.layout, line)
    assert len(scenario.damaged) == 3
    assert scenario.width_m == 1100.0


@pytest.mark.parametrize(("uavs", "ratio"), [(2, 0.5), (20, 0.0), (10_000, 0.0), (10_000, 0.00001), (3, 0.01)])
def test_a_setting_that_cannot_split_is_refused_at_once(uavs, ratio, monkeypatch):
    monkeypatch.setattr("phygail.swarm.scenario.draw_layout", lambda *_: pytest.fail("nothing needs to be drawn"))
    with pytest.raises(InputError, match=f"does not split a swarm of {uavs} UAVs on this map: choose another"):
        draw_scenario(uavs, ratio, np.random.default_rng(0))


def test_a_layout_within_one_range_is_refused_at_once(monkeypatch):
    monkeypatch.setattr("phygail.swarm.scenario.random_damage", lambda *_: pytest.fail("nothing needs to be drawn"))
    clump = np.random.default_rng(0).uniform(0, 60, (30, 2))
    with pytest.raises(InputError, match=r"damage 0.5 does not split"):
        draw_scenario(30, 0.5, np.random.default_rng(0), layout=clump)


def test_a_layout_in_which_one_pair_is_out_of_range_is_tried():
    """Three within 100 m of the middle one, the outer two 200 m apart: the loss of the middle splits them."""
    line = np.array([[0.0, 0.0], [100.0, 0.0], [200.0, 0.0]])
    scenario = draw_scenario(3, 0.34, np.random.default_rng(0), layout=line)
    assert scenario.damaged.tolist() == [1]


@pytest.mark.parametrize("uavs", [-5, 0, 1, 10_001])
def test_a_swarm_size_out_of_bounds_is_refused(uavs):
    with pytest.raises(InputError, match="choose from 2 to 10,000"):
        draw_scenario(uavs, 0.5, np.random.default_rng(0))


def test_the_smallest_width_without_a_map_is_a_meter():
    assert make_scenario("a", [[0.0, 0.0], [0.3, 0.4]]).width_m == 1.0
    assert make_scenario("a", [[0.0, 0.0], [0.3, 1.5]]).width_m == 1.5


def test_the_edge_of_the_map_belongs_to_it():
    scenario = make_scenario("a", SQUARE, width_m=200.0)
    assert scenario_to_json(scenario)["width"] == 200.0
    with pytest.raises(InputError, match="outside the map"):
        make_scenario("a", SQUARE, width_m=199.9)


def test_a_scenario_made_by_hand_flies_the_usual_vehicle():
    scenario = Scenario("a", np.array(SQUARE), np.array([], dtype=int), 200.0, np.zeros(2))
    assert scenario.physics == Physics()


def test_a_layout_is_tried_with_twenty_damage_sets_before_the_next(monkeypatch):
    drawn = []

    def draw(uavs, rng, width, physics):
        drawn.append(width)
        return np.random.default_rng(0).uniform(0, 60, (uavs, 2))  # within one range: no damage splits it

    monkeypatch.setattr("phygail.swarm.scenario.draw_layout", draw)
    monkeypatch.setattr("phygail.swarm.scenario.SPLIT_REDRAWS", 65)
    with pytest.raises(InputError, match="does not split"):
        draw_scenario(30, 0.5, np.random.default_rng(0), width_m=60.0)
    assert drawn == [60.0] * 4  # of 65 damage sets


@pytest.mark.parametrize(("uavs", "tries"), [(30, 20_000), (40, 12_500), (500, 200)])
def test_larger_swarms_are_tried_less_often(monkeypatch, uavs, tries):
    """20,000,000 / N^2 damage sets, from 200 to 20,000."""
    counted = []
    monkeypatch.setattr("phygail.swarm.scenario.random_damage", lambda *_: counted.append(1) or np.array([], dtype=int))
    line = 100.0 * np.arange(uavs)[:, None] * [1.0, 0.0]  # nobody is lost, so it stays one network
    same = find_links(line, 120.0)
    monkeypatch.setattr("phygail.swarm.scenario.find_links", lambda *_: same)
    with pytest.raises(InputError, match="does not split"):
        draw_scenario(uavs, 0.1, np.random.default_rng(0), layout=line)
    assert len(counted) == tries
