"""Beliefs about lost teammates: hand-worked numbers, scope, an oracle for the nearest member."""

import math
from dataclasses import replace
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial import cKDTree

from phygail.methods import METHODS, make_method
from phygail.methods.base import SubnetMethod
from phygail.methods.controller import sensed_controller
from phygail.sensing import beliefs as beliefs_module
from phygail.sensing.beliefs import ANCHOR_FEATURES, EDGE_FEATURES, NEVER, SURE, Beliefs, BeliefSpec
from phygail.sensing.imperfect import SensedObserver, Sensing
from phygail.sensing.views import Observer, Scope
from phygail.swarm import simulator
from phygail.swarm.scenario import D4, draw_scenario, make_scenario, transform
from phygail.swarm.simulator import SwarmState, initial_state

SPEC = BeliefSpec(drift=0.5, sigma_m=3.0, sigma_rate=0.05, depth_half=1.0, depth_scale=0.4)
# A and B survive, C between them does not: A (0), B (300) and C (70) on a line, the center in the middle.
LINE = make_scenario("line", [[0.0, 0.0], [300.0, 0.0], [70.0, 0.0]], [2], center=[150.0, 0.0], budget_steps=900)


def views(scenario, positions=None, step=0):
    spots = scenario.spots if positions is None else np.array(positions, dtype=float)
    return Observer(scenario).observe(SwarmState(scenario, spots.copy(), np.zeros_like(spots), step), Scope.SUBNET)


def logistic(depth, spec=SPEC):
    return 1 / (1 + math.exp((depth - spec.depth_half) / spec.depth_scale))


def sort(edges):
    """(receiver, direction, weight, features) in an order of their own."""
    order = np.lexsort((edges.features[:, 0], edges.direction[:, 1], edges.direction[:, 0], edges.receiver))
    return edges.receiver[order], edges.direction[order], edges.weight[order], edges.features[order]


# --- by hand ---


def test_two_singletons_at_the_start():
    """A hears nothing from C 70 m away: gone. B is 230 m from C's spot and cannot know; A and B are too far apart."""
    seen = Beliefs(SPEC).observe(views(LINE))
    assert seen.receiver.tolist() == [1]
    np.testing.assert_allclose(seen.direction, [[-1.0, 0.0]])
    open_weight = logistic(-3.0)  # never near
    np.testing.assert_allclose(seen.weight, [open_weight], rtol=1e-5)
    survival = np.array([1.5 / (2 + (1 - open_weight) + 1), 1.5 / (1 + 2 * (1 - open_weight) + 1)])
    away = math.log1p(150 / 120)
    share = np.log(1 / (survival * 3))
    anchors = np.stack([-np.log(survival), [0, 0], [0, 0], [away, away], share], axis=1)
    np.testing.assert_allclose(seen.anchors, anchors, atol=1e-5)
    wanted = [110 / 120, anchors[1, 0], -3, 0, 0, 150 / 151, away, math.log1p(80 / 120), share[1]]
    np.testing.assert_allclose(seen.features, [wanted], atol=1e-5)
    assert seen.features.shape[1] == len(EDGE_FEATURES)
    assert seen.anchors.shape[1] == len(ANCHOR_FEATURES)
    assert seen.features.dtype == seen.anchors.dtype == np.float32


def test_who_is_silent_in_range_at_the_start_is_gone_for_good():
    beliefs = Beliefs(SPEC)
    beliefs.observe(views(LINE))
    assert [depth[2] for depth in beliefs._depths.values()] == [SURE, NEVER]
    later = beliefs.observe(views(LINE, [[-60.0, 0.0], [300.0, 0.0]], 1))  # A sees C's spot at 130 m now
    assert later.receiver.tolist() == [1]


def test_what_others_tell_is_united_with_what_one_knows():
    """A knows that C is gone; B, with beliefs of its own, does not until it hears A."""
    alone = {0: Beliefs(SPEC), 1: Beliefs(SPEC)}
    assert alone[0].tell(0) is None
    for label, view in enumerate(views(LINE)):
        alone[label].observe(view.alone())
    told = {member: alone[member].tell(member) for member in (0, 1)}
    assert [told[member][2] for member in (0, 1)] == [SURE, NEVER]
    assert alone[1].tell(0) is None  # B never met A
    alone[1].hear(1, told[0])
    assert alone[1].tell(1)[2] == SURE
    alone[0].hear(0, told[1])
    assert alone[0].tell(0)[2] == SURE  # hearing less takes nothing away
    second = list(views(LINE, step=1))[1].alone()
    assert not len(alone[1].observe(second).receiver)


def test_ghosts_fly_to_the_center_at_the_drift_and_grow_deep():
    """Four steps of 0.5 m: B is expected at 298 m. A, at 185 m, is 113 m away: (119 - 113) / (3 + 0.05 * 4) deep."""
    beliefs = Beliefs(SPEC)
    beliefs.observe(views(LINE))
    seen = beliefs.observe(views(LINE, [[185.0, 0.0], [300.0, 500.0]], 4))
    np.testing.assert_allclose(beliefs._ghosts, [[2.0, 0.0], [298.0, 0.0], [72.0, 0.0]])
    assert seen.receiver.tolist() == [0]
    depth = 6 / 3.2
    np.testing.assert_allclose(seen.weight, [logistic(depth)], rtol=1e-5)
    np.testing.assert_allclose(seen.features[0, [0, 2, 3]], [0.0, depth, 4 / 200], atol=1e-6)


def test_ghosts_stop_at_the_center():
    beliefs = Beliefs(BeliefSpec(drift=1.0))
    beliefs.observe(views(LINE, step=500))
    np.testing.assert_allclose(beliefs._ghosts, np.tile([150.0, 0.0], (3, 1)))


@pytest.mark.parametrize(("roster_off", "center_off"), [([2.0, -1.0], [0.0, 0.0]), ([0.0, 0.0], [3.0, 1.0])])
def test_ghosts_start_anew_where_roster_or_center_read_otherwise(roster_off, center_off):
    """As if the latest reading had been known from the start."""
    before, after = views(LINE, step=4), views(LINE, step=6)
    moved = replace(after.mission, center=after.mission.center + center_off)
    corrected = replace(after, roster=after.roster + roster_off, mission=moved)
    beliefs, fresh = Beliefs(SPEC), Beliefs(SPEC)
    for view in (views(LINE), before, corrected):
        beliefs.observe(view)
    for step in range(7):
        fresh.observe(replace(corrected, step=step))
    np.testing.assert_allclose(beliefs._ghosts, fresh._ghosts, atol=1e-9)


def test_subnets_that_know_one_center_are_searched_together():
    """Three trees of points however many subnets there are: the largest subnet, the other members, the ghosts."""
    view = views(draw_scenario(60, 0.7, np.random.default_rng(5)))
    assert view.count > 3
    with mock.patch.object(beliefs_module, "cKDTree", wraps=cKDTree) as made:
        Beliefs(SPEC).look(view)
    assert made.call_count == 3


def test_noise_does_not_hide_who_was_silent_at_the_start():
    """C is 70 m from A in truth; localization reads 135 m, out of range."""
    sensed = SensedObserver(LINE, Sensing(sigma_m=40.0), np.random.default_rng(10))
    state = SwarmState(LINE, LINE.spots.copy(), np.zeros((2, 2)), 0)
    seen = sensed.observe(state, Scope.SUBNET)
    assert np.linalg.norm(seen.roster[2] - seen.positions[0]) > LINE.physics.range_m
    beliefs = Beliefs(SPEC)
    beliefs.observe(seen)
    assert [depth[2] for depth in beliefs._depths.values()] == [SURE, NEVER]


def test_depth_never_shrinks():
    beliefs = Beliefs(SPEC)
    beliefs.observe(views(LINE))
    near = beliefs.observe(views(LINE, [[185.0, 0.0], [300.0, 500.0]], 4))
    gone = beliefs.observe(views(LINE, [[100.0, 0.0], [300.0, 500.0]], 4))
    np.testing.assert_array_equal(gone.weight, near.weight)
    assert gone.features[0, 0] > near.features[0, 0]


def test_beliefs_are_united_on_a_merge_and_members_have_no_ghost():
    """UAV 0 looked where UAV 2 (damaged) is expected; after it meets UAV 1 both know, and no member is lost."""
    spec = BeliefSpec(drift=0.0, sigma_m=3.0, sigma_rate=0.0)
    layout = [[0.0, 0.0], [0.0, 500.0], [200.0, 0.0], [900.0, 900.0]]
    scenario = make_scenario("merge", layout, [2], center=[0.0, 200.0], budget_steps=900)
    far = [900.0, 900.0]
    beliefs = Beliefs(spec)
    beliefs.observe(views(scenario))
    looked = beliefs.observe(views(scenario, [[90.0, 0.0], [0.0, 500.0], far], 1))
    assert looked.receiver.tolist() == [0]  # 110 m: (119 - 110) / 3 = 3 deep
    np.testing.assert_allclose(looked.weight, logistic(3.0, spec), rtol=1e-5)
    together = beliefs.observe(views(scenario, [[0.0, 100.0], [0.0, 200.0], far], 2))
    assert together.receiver.tolist() == [0]  # only UAV 2, from its nearest member; nothing of UAV 0 and 1
    np.testing.assert_allclose(together.weight, looked.weight)
    apart = beliefs.observe(views(scenario, [[900.0, 500.0], [0.0, 0.0], far], 3))  # UAV 1 kept it; UAV 0 is lost again
    others = apart.weight[apart.receiver == 1]
    np.testing.assert_allclose(
        sorted(others), sorted([logistic(3.0, spec), logistic(119 / 3, spec)]), rtol=1e-4, atol=1e-9
    )


def test_beliefs_of_subnets_that_no_longer_exist_are_dropped():
    beliefs = Beliefs(SPEC)
    for step in range(5):
        beliefs.observe(views(LINE, step=step))
    assert len(beliefs._depths) == 2


# --- scope ---


def drifting(scenario, steps, seed=0):
    """Positions of a swarm whose UAVs wander toward the center, one array per step."""
    rng = np.random.default_rng(seed)
    x = scenario.spots.copy()
    for _ in range(steps):
        yield x.copy()
        x = x + 0.02 * (scenario.center - x) + rng.normal(0, 2.0, x.shape)


@pytest.mark.parametrize("seed", range(3))
def test_each_subnet_alone_believes_what_all_at_once_believe(seed):
    scenario = draw_scenario(60, 0.6, np.random.default_rng(seed))
    together, alone = Beliefs(SPEC), Beliefs(SPEC)
    for step, positions in enumerate(drifting(scenario, 12, seed)):
        seen = views(scenario, positions, step)
        everybody = sort(together.observe(seen))
        for rows, view in zip(seen.rows, list(seen), strict=True):
            receiver, *values = sort(alone.observe(view.alone()))
            mine = np.isin(everybody[0], rows)
            assert np.array_equal(rows[receiver], everybody[0][mine])
            for a, b in zip(values, everybody[1:], strict=True):
                np.testing.assert_allclose(a, b[mine], atol=1e-6)


def test_uavs_of_other_subnets_do_not_change_a_subnets_edges():
    layout = np.array([[0.0, 0.0], [80.0, 0.0], [230.0, 0.0], [600.0, 0.0], [680.0, 0.0]])
    scenario = make_scenario("scope", layout, [2], center=[300.0, 0.0], budget_steps=900)
    calm, wild = Beliefs(SPEC), Beliefs(SPEC)
    for t in range(15):
        near = layout[:2] + np.array([t, 0.0])
        a = calm.observe(views(scenario, [*near, *layout[3:]], t))
        b = wild.observe(views(scenario, [*near, [600.0 + 40 * math.sin(t), 30.0 * t], [900.0, -20.0 * t]], t))
        home, same = a.receiver < 2, b.receiver < 2
        assert home.any()
        assert np.array_equal(a.features[home], b.features[same])
        assert np.array_equal(a.direction[home], b.direction[same])
        assert np.array_equal(a.weight[home], b.weight[same])


@pytest.mark.parametrize("element", range(1, 8))
def test_turned_scenes_have_the_same_features_and_turned_directions(element):
    scenario = draw_scenario(40, 0.6, np.random.default_rng(5))
    turned = transform(scenario, element)
    plain, other = Beliefs(SPEC), Beliefs(SPEC)
    for step, positions in enumerate(drifting(scenario, 4)):
        there = (positions - scenario.center) @ D4[element].T + scenario.center
        a, b = plain.observe(views(scenario, positions, step)), other.observe(views(turned, there, step))
        assert np.array_equal(np.sort(a.receiver), np.sort(b.receiver))
        forth = np.lexsort((a.features[:, 0].round(4), a.receiver))
        back = np.lexsort((b.features[:, 0].round(4), b.receiver))
        np.testing.assert_allclose(a.features[forth], b.features[back], atol=1e-4)
        np.testing.assert_allclose(a.direction[forth] @ D4[element].T, b.direction[back], atol=1e-6)


def test_more_teammates_far_away_show_only_in_the_estimates_of_the_subnet():
    """PH-11: a larger roster adds no edge; of the features only survival and share know how many there are."""
    near = draw_scenario(30, 0.5, np.random.default_rng(2))
    far = np.random.default_rng(3).uniform(5000, 6000, (400, 2))
    large = make_scenario("large", np.vstack([near.layout, far]), near.damaged.tolist(), center=near.center.tolist())
    n = len(near.alive)
    a, b = Beliefs(SPEC).observe(views(near)), Beliefs(SPEC).observe(views(large))
    mine = sort(b)[0] < n
    for plain, crowded in zip(sort(a)[:3], sort(b)[:3], strict=True):
        np.testing.assert_array_equal(plain, crowded[mine])
    names = np.array(EDGE_FEATURES)
    same = ~np.isin(names, ["-ln survival", "ln share"])
    np.testing.assert_array_equal(sort(a)[3][:, same], sort(b)[3][mine][:, same])
    np.testing.assert_allclose(sort(a)[3][:, 1], sort(b)[3][mine][:, 1], atol=0.05)


# --- oracle ---


@given(seed=st.integers(0, 10_000), uavs=st.integers(3, 40), step=st.integers(0, 60))
@settings(max_examples=40, deadline=None)
def test_the_nearest_members_are_those_of_a_brute_force_search(seed, uavs, step):
    rng = np.random.default_rng(seed)
    layout = rng.uniform(0, 700, (uavs, 2))
    damaged = rng.permutation(uavs)[: rng.integers(0, uavs - 1)].tolist()
    scenario = make_scenario("oracle", layout, damaged, center=[350.0, 350.0], budget_steps=900)
    seen = views(scenario, scenario.spots + rng.normal(0, 20, scenario.spots.shape), step)
    beliefs = Beliefs(SPEC)
    beliefs._advance(seen)
    depths = beliefs._recall(seen)
    depths[rng.random(depths.shape) < 0.2] = SURE
    subnet, spot, row, distance = beliefs._nearest(seen, depths)
    found = {(s, k): (r, d) for s, k, r, d in zip(*(a.tolist() for a in (subnet, spot, row, distance)), strict=True)}
    assert len(found) == len(subnet)
    wanted = {}
    for label, rows in enumerate(seen.rows):
        for k in set(range(uavs)) - set(seen.members[rows].tolist()):
            away = np.linalg.norm(seen.positions[rows] - beliefs._ghosts[k], axis=1)
            if depths[label, k] < SURE and away.min() < SPEC.horizon_m:
                wanted[label, k] = (rows[away.argmin()], away.min())
    assert found.keys() == wanted.keys()
    for key, (member, away) in wanted.items():
        assert found[key] == (member, pytest.approx(away))


# --- defaults, bounds, other centers, late news ---


def test_the_default_spec_in_the_order_of_its_fields():
    assert BeliefSpec().vector().tolist() == [0.9, 3.0, 0.05, 1.0, 0.4, 240.0, 1.0]
    assert BeliefSpec().vector(2.5).tolist() == [0.9, 7.5, 0.05, 1.0, 0.4, 600.0, 2.5]


@pytest.mark.parametrize(
    ("horizon_m", "range_m", "seen_m"), [(240.0, 120.0, 240.0), (240.0, 300.0, 600.0), (60.0, 120.0, 120.0)]
)
def test_the_horizon_grows_with_the_radio_and_is_never_nearer_than_its_range(horizon_m, range_m, seen_m):
    case = replace(LINE, physics=replace(LINE.physics, range_m=range_m))
    assert Beliefs(replace(SPEC, horizon_m=horizon_m))._horizon_m(views(case)) == seen_m


def test_features_show_a_depth_of_three_at_most():
    """A at 240 m is 58 m from where B is expected, (119 - 58) / 3.2 = 19 deep: the feature says 3, the weight knows."""
    beliefs = Beliefs(SPEC)
    beliefs.observe(views(LINE))
    seen = beliefs.observe(views(LINE, [[240.0, 0.0], [300.0, 500.0]], 4))
    assert seen.receiver.tolist() == [0]
    assert seen.features[0, 2] == 3.0
    assert seen.weight[0] == pytest.approx(1 / (1 + math.exp(30.0)))


def test_the_second_uav_may_be_the_first_ghost():
    """UAV 0 is alone, UAV 1 lost 200 m from it, the larger subnet far away: the one edge is not lost in the sorting."""
    layout = [[0.0, 0.0], [200.0, 0.0], [5000.0, 0.0], [5050.0, 0.0]]
    scenario = make_scenario("second", layout, [1], center=[100.0, 0.0], budget_steps=900)
    assert Beliefs(SPEC).observe(views(scenario)).receiver.tolist() == [0]


@pytest.mark.parametrize("seed", range(4))
def test_with_centers_of_their_own_subnets_expect_ghosts_elsewhere(seed):
    """Noise gives every subnet another center, and ghosts fly to the center that the subnet knows."""
    scenario = draw_scenario(30, 0.6, np.random.default_rng(seed))
    seen = views(scenario, step=40)
    vars(seen)["centers"] = scenario.center + np.random.default_rng(seed).normal(0, 60, (seen.count, 2))
    beliefs = Beliefs(SPEC)
    beliefs._advance(seen)
    subnet, spot, row, distance = beliefs._nearest(seen, np.full((seen.count, scenario.uavs), NEVER))
    found = {(s, k): (r, d) for s, k, r, d in zip(*(a.tolist() for a in (subnet, spot, row, distance)), strict=True)}
    wanted = {}
    for label, rows in enumerate(seen.rows):
        for k in set(range(scenario.uavs)) - set(seen.members[rows].tolist()):
            way = seen.centers[label] - scenario.layout[k]
            ghost = scenario.layout[k] + way * min(1.0, 40 * 0.5 / np.linalg.norm(way))  # 40 steps of 0.5 m
            away = np.linalg.norm(seen.positions[rows] - ghost, axis=1)
            if away.min() < SPEC.horizon_m:
                wanted[label, k] = (rows[away.argmin()], pytest.approx(away.min()))
    assert found == wanted


class OneByOne(METHODS.get("reach-evolved")):
    """The rule without its faster form: a copy for every UAV."""

    act_imperfect = SubnetMethod.act_imperfect


def test_delayed_news_is_believed_by_all_at_once_as_by_a_copy_of_the_rule_for_every_uav():
    """DelayedBeliefs against Beliefs, in a small flight; larger ones in tests/methods/test_controller_sensed.py."""
    scenario = draw_scenario(24, 0.5, np.random.default_rng(6))
    at_once, copies = (
        sensed_controller(method, scenario, Sensing(delay_steps=2), np.random.default_rng(0))
        for method in (make_method("reach-evolved"), OneByOne())
    )
    state = initial_state(scenario)
    for _ in range(12):
        velocities = at_once(state)
        np.testing.assert_allclose(velocities, copies(state), atol=1e-9)
        state = simulator.step(state, velocities)
