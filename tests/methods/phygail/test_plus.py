"""What a UAV of `phygail-plus` reads: hand-worked numbers, what must not change, and what nobody may know."""

import math
from dataclasses import replace

import numpy as np
import pytest

from phygail.config import Physics
from phygail.methods.phygail.plus import (
    EDGE_NUMBERS,
    GRAPHS,
    LIGHTEST,
    NODE_NUMBERS,
    belief_spec,
    link_weights,
    observe_plus,
    turned,
    turned_back,
)
from phygail.sensing.beliefs import Beliefs
from phygail.sensing.views import Observer, Scope
from phygail.swarm.scenario import draw_scenario, make_scenario
from phygail.swarm.simulator import SwarmState, initial_state, step

SPEC = GRAPHS["plus"]
WRECK, CENTER, LOST = SPEC.k_act, SPEC.k_act + SPEC.k_dmg, SPEC.k_act + SPEC.k_dmg + 1
# A and B are linked, C is far; D was damaged beside A. The center is east of all.
LAYOUT = [[0.0, 0.0], [60.0, 0.0], [60.0, 240.0], [0.0, 30.0]]
CASE = make_scenario("case", LAYOUT, [3], center=[150.0, 0.0], budget_steps=900)


def views_of(state):
    return Observer(state.scenario).observe(state, Scope.SUBNET)


def look(scenario, steps=0, command=None):
    """(graph, axes, views) after so many steps in which everybody flies `command` (m/s)."""
    beliefs, state = Beliefs(belief_spec(SPEC)), initial_state(scenario)
    for _ in range(steps):
        observe_plus(views_of(state), beliefs, SPEC)
        wanted = np.zeros_like(state.positions) if command is None else np.tile(command, (len(state.positions), 1))
        state = step(state, wanted)
    views = views_of(state)
    return *observe_plus(views, beliefs, SPEC), views


def sorted_edges(edge, mask):
    """The edges of one receiver in an order of their own."""
    rows = edge[mask]
    return rows[np.lexsort(rows.T)]


def assert_same(one, other, rows=None, mirror=False):
    """Two graphs say the same about every receiver; `rows` are those of the second in the order of the first."""
    rows = np.arange(one.receivers) if rows is None else rows
    sign = np.ones(NODE_NUMBERS), np.ones(EDGE_NUMBERS)
    if mirror:
        sign[0][[1, 3, 9]], sign[1][[1, 3]] = -1.0, -1.0
    np.testing.assert_allclose(other.features[rows] * sign[0], one.features[: one.receivers], atol=2e-5)
    for a, b in enumerate(rows):
        theirs = sorted_edges(np.round(other.edge[b] * sign[1], 4) + 0.0, other.mask[b])
        np.testing.assert_allclose(sorted_edges(np.round(one.edge[a], 4) + 0.0, one.mask[a]), theirs, atol=2e-4)


# --- by hand ---


def test_a_linked_pair_and_a_lost_teammate_by_hand():
    """A and B: centroid (30, 0), 120 m west of the center, so the frame is that of the map."""
    graph, axes, _ = look(CASE)
    np.testing.assert_allclose(axes[:2], [[1.0, 0.0]] * 2)
    ln = math.log1p
    survival = 2.5 / (2 + 1 + 1 / (1 + math.exp(10)) + 1)  # D is gone, C was never looked for: depth -3, exponent -10
    share = math.log(2 / (survival * 4))
    wanted = [
        ln(150 / 120), 0, 0, 0, math.log(4) / math.log(13), 150 / 360, ln(1), math.log(2) / 3, -ln(30 / 120), 0, 1,
        -math.log(survival) / 3, 0, share / 3,
    ]  # fmt: skip
    np.testing.assert_allclose(graph.features[0], wanted, atol=1e-5)
    assert graph.mask[0].tolist() == [True] + [False] * 7 + [True, False, False, True, True] + [False] * 3
    np.testing.assert_allclose(graph.edge[0, 0], [0.5, 0, 0, 0, 0.5, 0, 0, 0], atol=1e-6)
    np.testing.assert_allclose(graph.edge[0, WRECK], [0, 0.25, 0, 0, 0.25, 0, 0, 0], atol=1e-6)
    np.testing.assert_allclose(graph.edge[0, CENTER], [ln(150 / 120), 0, 0, 0, 150 / 360, 0, 0, 0], atol=1e-6)
    far = math.hypot(60, 240)
    unit, belief = np.array([60, 240]) / far, 1 / (1 + math.exp(-10))
    wanted = [*unit * ln(far / 120), *unit, (far - 120) / 120, belief, 0, -1]
    np.testing.assert_allclose(graph.edge[0, LOST], wanted, atol=1e-5)
    assert graph.edge[1, LOST, 6] == 1  # B is nearer to C than A
    assert graph.types[graph.index[0, [0, WRECK, CENTER, LOST]]].tolist() == [0, 1, 2, 3]


def test_ghosts_come_first_of_which_a_uav_is_the_nearest_member():
    """Of two ghosts north of A and B, the near one is nearer to B: A, which sees one, is shown the far one, its own."""
    layout = [[0.0, 0.0], [60.0, 0.0], [70.0, 200.0], [-40.0, 260.0]]
    case = make_scenario("two", layout, [], center=[150.0, 0.0], budget_steps=900)
    views = views_of(initial_state(case))
    for first, far in ((False, math.hypot(70, 200)), (True, math.hypot(40, 260))):
        spec = replace(SPEC, k_lost=1, own_lost=first)
        graph, _ = observe_plus(views, Beliefs(belief_spec(spec)), spec)
        assert graph.edge[0, LOST, 4] == pytest.approx((far - 120) / 120, rel=1e-6)
        assert graph.edge[0, LOST, 6] == first


def test_the_frame_points_from_the_centroid_to_the_center():
    graph, axes, _ = look(CASE)
    home = np.array([90.0, -240.0]) / math.hypot(90, 240)  # of C
    np.testing.assert_allclose(axes[2], home)
    np.testing.assert_allclose(graph.features[2, :2], [math.log1p(math.hypot(90, 240) / 120), 0], atol=1e-6)


def test_velocities_are_shown_in_the_frame():
    graph, _, _ = look(CASE, steps=1, command=[0.0, 10.0])
    np.testing.assert_allclose(graph.features[0, 2:4], [math.sin(math.atan2(-1, 120)), 1], atol=1e-4)
    np.testing.assert_allclose(graph.edge[0, 0, 2:4], 0, atol=1e-6)  # both fly alike
    assert graph.edge[0, CENTER, 3] == -graph.features[0, 3]


def test_turning_there_and_back_changes_nothing():
    vectors, angle = np.array([[3.0, 4.0]]), 0.7
    axes = np.array([[math.cos(angle), math.sin(angle)]])
    np.testing.assert_allclose(turned(axes, axes), [[1.0, 0.0]])
    np.testing.assert_allclose(turned_back(turned(vectors, axes), axes), vectors)


def test_a_centroid_on_the_center_has_the_frame_of_the_map():
    here = make_scenario("here", [[0.0, 0.0], [500.0, 0.0]], center=[0.0, 0.0], budget_steps=9)
    graph, axes, _ = look(here)
    assert axes[0].tolist() == [1.0, 0.0]
    assert np.isfinite(graph.features).all()


def test_who_wants_otherwise_than_its_subnet_weighs_more():
    _, _, views = look(CASE)
    wanted = np.array([[10.0, 0.0], [0.0, 0.0], [5.0, 0.0]])
    np.testing.assert_allclose(link_weights(views, wanted, np.zeros((3, 2))), LIGHTEST + np.array([0.5, 0.5, 0.0]))
    np.testing.assert_allclose(link_weights(views, wanted, np.full((3, 3), math.log(2))), 2.0)


# --- what must not change ---


@pytest.fixture(scope="module")
def drawn():
    return draw_scenario(60, 0.6, np.random.default_rng(3))


def variant(scenario, layout, center, physics=None, damaged=None):
    lost = scenario.damaged if damaged is None else damaged
    return make_scenario("variant", layout, lost, center=center, physics=physics, budget_steps=scenario.budget_steps)


@pytest.mark.parametrize("steps", [0, 12])
def test_a_turned_and_shifted_swarm_reads_the_same(drawn, steps):
    angle = 0.9
    turn = np.array([[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]])
    layout, center = drawn.layout @ turn.T + 70.0, drawn.center @ turn.T + 70.0
    plain = variant(drawn, drawn.layout, drawn.center)
    command = np.array([6.0, 2.0])
    one, other = look(plain, steps, command)[0], look(variant(drawn, layout, center), steps, turn @ command)[0]
    assert_same(one, other)


def test_a_mirrored_swarm_reads_mirrored(drawn):
    flip = np.array([-1.0, 1.0])
    plain, mirrored = (variant(drawn, drawn.layout * sign, drawn.center * sign) for sign in (1.0, flip))
    assert_same(look(plain)[0], look(mirrored)[0], mirror=True)


@pytest.mark.parametrize("factor", [2.0, 0.5])
def test_another_unit_of_length_reads_the_same(drawn, factor):
    physics = Physics(120.0 * factor, 10.0 * factor, 0.1, 10.0 * factor)
    scaled = variant(drawn, drawn.layout * factor, drawn.center * factor, physics)
    one = look(variant(drawn, drawn.layout, drawn.center), 12, [6.0, 2.0])[0]
    assert_same(one, look(scaled, 12, np.array([6.0, 2.0]) * factor)[0])


def test_other_names_read_the_same(drawn):
    order = np.random.default_rng(0).permutation(drawn.uavs)  # new entry k is old entry order[k]
    place = np.argsort(order)
    renamed = variant(drawn, drawn.layout[order], drawn.center, damaged=np.sort(place[drawn.damaged]))
    one, other = (look(case, 12, [6.0, 2.0])[0] for case in (variant(drawn, drawn.layout, drawn.center), renamed))
    assert_same(one, other, np.searchsorted(renamed.alive, place[drawn.alive]))


def test_where_the_others_are_does_not_show():
    """C flies elsewhere, out of range of A and B: they read the same."""
    seen = []
    for x in (60.0, 90.0):
        beliefs = Beliefs(belief_spec(SPEC))
        observe_plus(views_of(initial_state(CASE)), beliefs, SPEC)
        positions = np.array([[1.0, 0.0], [61.0, 0.0], [x, 239.0]])
        state = SwarmState(CASE, positions, np.zeros_like(positions), 1)
        seen.append(observe_plus(views_of(state), beliefs, SPEC)[0])
    for name in ("features", "edge", "mask"):
        np.testing.assert_array_equal(getattr(seen[0], name)[:2], getattr(seen[1], name)[:2])
