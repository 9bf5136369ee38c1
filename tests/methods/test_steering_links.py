"""Keeping links: never torn, the nearest velocities that do, heavier ends win, rounding decides nothing."""

from dataclasses import replace
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from phygail.config import Physics
from phygail.methods import steering
from phygail.methods.steering import keep_links, minimum_tree
from phygail.sensing.views import Observer, Scope
from phygail.swarm.links import near_pairs
from phygail.swarm.scenario import make_scenario
from phygail.swarm.simulator import initial_state, project_speed


def views_of(layout):
    scenario = make_scenario("links", layout, width_m=None, budget_steps=900)
    return Observer(scenario).observe(initial_state(scenario), Scope.SUBNET)


def random_case(seed):
    """(views, wanted): a few subnets with many links near the limit, commands in all directions."""
    rng = np.random.default_rng(seed)
    layout = rng.uniform(0, 450, (rng.integers(2, 40), 2))
    if seed % 2:  # a chain of stretched links
        layout = np.stack([np.arange(12) * 119.9, rng.uniform(-3, 3, 12)], axis=1)
    views = views_of(layout)
    wanted = project_speed(rng.normal(0, 10, layout.shape), 10.0)
    return views, wanted


def subnet_trees(views):
    """(n - count, 2) int, edges of the minimum spanning trees of all subnets."""
    return minimum_tree(len(views.positions), views.pairs, views.lengths)


@given(seed=st.integers(0, 10_000), weighted=st.booleans())
@settings(max_examples=60, deadline=None)
def test_no_tree_edge_tears_and_nobody_is_too_fast(seed, weighted):
    views, wanted = random_case(seed)
    weight = np.random.default_rng(seed).uniform(0.01, 2.0, len(wanted)) if weighted else None
    kept = keep_links(views, wanted, weight)
    then = views.positions + kept * 0.1
    i, j = subnet_trees(views).T
    assert np.hypot(*(then[i] - then[j]).T).max(initial=0.0) <= 120.0 + 1e-6
    assert np.hypot(*kept.T).max() <= 10.0 + 1e-9


@given(seed=st.integers(0, 10_000))
@settings(max_examples=40, deadline=None)
def test_equal_weights_are_no_weights(seed):
    views, wanted = random_case(seed)
    np.testing.assert_allclose(
        keep_links(views, wanted, np.full(len(wanted), 7.0)), keep_links(views, wanted), atol=1e-6
    )


@given(seed=st.integers(0, 10_000))
@settings(max_examples=40, deadline=None)
def test_nothing_within_the_limits_is_nearer_to_what_was_wanted(seed):
    """The kept velocities are the projection: (w - v).(u - v) <= 0 for every allowed u, here random ones."""
    views, wanted = random_case(seed)
    kept = keep_links(views, wanted)
    rng = np.random.default_rng(seed)
    edges = subnet_trees(views)
    most = np.maximum(119.0, np.hypot(*(views.positions[edges[:, 0]] - views.positions[edges[:, 1]]).T))
    for _ in range(20):
        other = project_speed(kept + rng.normal(0, rng.choice([0.1, 2.0, 10.0]), kept.shape), 10.0)
        for share in (1.0, 0.5, 0.1):  # the allowed set is convex and holds 0
            then = views.positions + share * other * 0.1
            if (np.hypot(*(then[edges[:, 0]] - then[edges[:, 1]]).T) <= most).all():
                assert ((wanted - kept) * (share * other - kept)).sum() <= 0.2  # (m/s)^2, over all UAVs
                break


PAIR = [[0.0, 0.0], [119.5, 0.0], [900.0, 0.0]]
APART = np.array([[-10.0, 0.0], [10.0, 0.0], [0.0, 5.0]])


@pytest.mark.parametrize(
    ("pull_weight", "speed"), [((1.0, 1.0), 0.0), ((3.0, 1.0), -5.0), ((1e9, 1.0), -9.98), ((1.0, 3.0), 5.0)]
)
def test_the_heavier_end_of_a_strained_link_wins(pull_weight, speed):
    views = views_of(PAIR)
    kept = keep_links(views, APART, np.array([*pull_weight, 1.0]))
    np.testing.assert_allclose(kept, [[speed, 0.0], [speed, 0.0], [0.0, 5.0]], atol=0.02)


def test_a_heavy_head_takes_its_whole_chain_along():
    """A taut chain 0-1-2: 2 wants to part. Equal weights: the mean of -10, -10, 10. Heavy 0: all go with it."""
    views = views_of([[0.0, 0.0], [119.5, 0.0], [239.0, 0.0]])
    wanted = np.array([[-10.0, 0.0], [-10.0, 0.0], [10.0, 0.0]])
    light = keep_links(views, wanted, np.array([1.0, 1.0, 1.0]))
    heavy = keep_links(views, wanted, np.array([1e6, 1.0, 1.0]))
    np.testing.assert_allclose(light[:, 0], -10.0 / 3.0, atol=0.02)
    assert heavy[:, 0].max() < -9.8


def test_links_that_are_short_or_shrink_change_nothing():
    views = views_of([[0.0, 0.0], [60.0, 0.0], [179.9, 0.0]])
    wanted = np.array([[-10.0, 0.0], [0.0, 10.0], [-10.0, 0.0]])
    assert np.array_equal(keep_links(views, wanted), wanted)


@pytest.mark.parametrize(("speed", "looked_at"), [(10.0, 0), (10.00001, 1)])
def test_no_tree_is_looked_for_where_links_end_at_their_limit(speed, looked_at):
    """119 m at a range of 120 m: the margin is 1 m."""
    views = views_of([[0.0, 0.0], [118.0, 0.0]])
    with mock.patch.object(steering, "minimum_tree", wraps=minimum_tree) as looked:
        keep_links(views, np.array([[0.0, 0.0], [speed, 0.0]]))
    assert [len(call.args[1]) for call in looked.call_args_list] == [looked_at]


def test_a_link_that_looks_too_long_may_not_grow_and_does_not_stop_a_subnet():
    """Noise: the pair is linked, so its 123 m are an error of measurement. Abreast it flies as it wants."""
    views = replace(
        views_of(PAIR), positions=np.array([[0.0, 0.0], [123.0, 0.0], [900.0, 0.0]]), lengths=np.array([123.0])
    )
    abreast = np.array([[0.0, 8.0], [0.0, 8.0], [0.0, 5.0]])
    np.testing.assert_array_equal(keep_links(views, abreast), abreast)
    parting = abreast + np.array([[-1.0, 0.0], [1.0, 0.0], [0.0, 0.0]])
    np.testing.assert_allclose(keep_links(views, parting), abreast, atol=0.02)


@pytest.mark.parametrize(("growth_m", "kept"), [(0.9e-6, True), (2e-6, False)])
def test_rounding_does_not_decide_whether_an_edge_grows(growth_m, kept):
    views = views_of([[0.0, 0.0], [119.0, 0.0]])
    wanted = np.array([[0.0, 5.0], [growth_m / 0.1, 5.0]])
    assert np.array_equal(keep_links(views, wanted), wanted) == kept


def test_who_is_joined_to_a_strained_edge_by_short_ones_flies_as_it_wants():
    """0 and 1 part; 2 hangs on 1 by 50 m of link, which no step can strain."""
    views = views_of([[0.0, 0.0], [119.5, 0.0], [169.5, 0.0]])
    kept = keep_links(views, np.array([[-10.0, 0.0], [10.0, 0.0], [0.0, -10.0]]))
    np.testing.assert_allclose(kept[:2], 0.0, atol=0.02)
    np.testing.assert_array_equal(kept[2], [0.0, -10.0])


def test_only_the_rows_asked_for_are_decided():
    """Two strained pairs: the one that nobody asked about stays as wanted, the other is as ever."""
    views = views_of([[0.0, 0.0], [119.5, 0.0], [900.0, 0.0], [1019.5, 0.0]])
    apart = np.array([[-10.0, 0.0], [10.0, 0.0]] * 2)
    kept = keep_links(views, apart, only=np.array([False, True, False, False]))
    np.testing.assert_allclose(kept[:2], keep_links(views, apart)[:2])
    np.testing.assert_array_equal(kept[2:], apart[2:])


@pytest.mark.parametrize("scale", [0.5, 2.0, 2.5])
def test_in_other_units_the_same_velocities_come_out(scale):
    views, wanted = random_case(3)
    physics = Physics(120.0 * scale, 10.0 * scale, 0.1, 10.0 * scale)
    mission = replace(views.mission, physics=physics)
    other = replace(views, mission=mission, positions=views.positions * scale, lengths=views.lengths * scale)
    assert not np.array_equal(keep_links(views, wanted), wanted)
    np.testing.assert_allclose(keep_links(other, wanted * scale), keep_links(views, wanted) * scale, atol=1e-6)


@given(seed=st.integers(0, 10_000))
@settings(max_examples=60, deadline=None)
def test_few_links_give_the_tree_of_many(seed):
    """The loop and the sparse matrix agree on every tree, in the same order."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 40))
    pairs, lengths = near_pairs(rng.uniform(0, 400, (n, 2)), 120.0)
    with mock.patch("phygail.methods.steering.FEW", -1):
        by_matrix = minimum_tree(n, pairs, lengths)
    np.testing.assert_array_equal(minimum_tree(n, pairs, lengths), by_matrix)


def test_the_trees_span_every_subnet_also_with_coincident_uavs():
    views = views_of([[0.0, 0.0], [1e-9, 0.0], [100.0, 0.0], [500.0, 0.0], [560.0, 0.0]])
    edges = subnet_trees(views)
    assert {frozenset(edge) for edge in edges.tolist()} in (
        {frozenset({0, 1}), frozenset({1, 2}), frozenset({3, 4})},
        {frozenset({0, 1}), frozenset({0, 2}), frozenset({3, 4})},
    )


@pytest.mark.parametrize(("length", "age_s", "even"), [(116.0, 0.0, False), (116.0, 0.3, True), (113.0, 0.3, False)])
def test_late_news_asks_for_as_much_slack_as_one_may_have_flown_since(length, age_s, even):
    """10 m/s for 0.3 s and the margin: held below 116 m instead of 119; flying apart for a step adds 2 m."""
    views = replace(views_of([[0.0, 0.0], [length, 0.0]]), age_s=age_s)
    apart = np.array([[-10.0, 0.0], [10.0, 0.0]])
    kept = keep_links(views, apart)
    np.testing.assert_allclose(kept, 0.0 if even else apart, atol=0.02)


def test_long_edges_without_strain_fly_as_they_want_to_the_last_bit():
    """0 and 1 want to part; 2 and 3, joined to them by a short edge, fly side by side and are not touched."""
    views = views_of([[0.0, 0.0], [119.0, 0.0], [169.0, 0.0], [288.0, 0.0]])
    wanted = np.array([[-10.0, 0.0], [10.0, 0.0], [1.0 / 3.0, 9.0], [1.0 / 3.0, 9.0]])
    kept = keep_links(views, wanted)
    assert (kept[:2] != wanted[:2]).any(axis=1).all()
    np.testing.assert_array_equal(kept[2:], wanted[2:])
