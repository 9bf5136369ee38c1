"""Keeping links: never torn, the plain mean of `reach` without weights, heavier ends win."""

from dataclasses import replace
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from phygail.methods.forces import go
from phygail.methods.links import MARGIN_M, ROUNDS, keep_links, minimum_tree
from phygail.perception.view import Observer, Scope
from phygail.swarm.dynamics import project_speed
from phygail.swarm.links import near_pairs
from phygail.swarm.scenario import make_scenario
from phygail.swarm.state import initial_state


def views_of(layout):
    scenario = make_scenario("links", layout, width_m=None, budget_steps=900)
    return Observer(scenario).observe(initial_state(scenario), Scope.SUBNET)


def random_case(seed):
    """(views, wanted, base): a few subnets with many links near the limit, commands in all directions."""
    rng = np.random.default_rng(seed)
    layout = rng.uniform(0, 450, (rng.integers(2, 40), 2))
    if seed % 2:  # a chain of stretched links
        layout = np.stack([np.arange(12) * 119.9, rng.uniform(-3, 3, 12)], axis=1)
    views = views_of(layout)
    wanted = project_speed(rng.normal(0, 10, layout.shape), 10.0)
    base = go(views.means(views.positions), views.mission.center, views.mission.physics)[views.subnet]
    return views, wanted, base


def subnet_trees(views):
    """(n - count, 2) int, edges of the minimum spanning trees of all subnets."""
    return minimum_tree(len(views.positions), views.pairs, views.lengths)


def plain_means(views, wanted, base):
    """The rule without weights, edge by edge: the oracle.

    The same sums as in `links`: an edge whose ends fly alike keeps its length, and rounding says whether it has grown.
    """
    edges = [(int(i), int(j)) for i, j in subnet_trees(views)]
    x, v = views.positions, wanted.copy()
    dt = views.mission.physics.step_s

    def now(i, j):
        return np.hypot(*(x[i] - x[j]))

    def ahead(i, j):
        return np.hypot(*((x[i] + v[i] * dt) - (x[j] + v[j] * dt)))

    for _ in range(ROUNDS):
        strained = [(i, j) for i, j in edges if ahead(i, j) > max(120.0 - MARGIN_M, now(i, j))]
        if not strained:
            break
        means = {}
        for i, j in strained:
            for end in (i, j):
                means.setdefault(end, []).append((v[i] + v[j]) / 2)
        v = np.array([np.mean(means[k], axis=0) if k in means else v[k] for k in range(len(v))])
    torn = {views.subnet[i] for i, j in edges if ahead(i, j) > 120.0}  # without noise such an edge has grown
    return np.array([base[k] if views.subnet[k] in torn else v[k] for k in range(len(v))])


@given(seed=st.integers(0, 10_000), weighted=st.booleans())
@settings(max_examples=60, deadline=None)
def test_no_tree_edge_tears_and_nobody_is_too_fast(seed, weighted):
    views, wanted, base = random_case(seed)
    weight = np.random.default_rng(seed).uniform(0.01, 2.0, len(wanted)) if weighted else None
    kept = keep_links(views, wanted, base, weight)
    then = views.positions + kept * 0.1
    i, j = subnet_trees(views).T
    assert np.hypot(*(then[i] - then[j]).T).max(initial=0.0) <= 120.0 + 1e-6
    assert np.hypot(*kept.T).max() <= 10.0 + 1e-9


@given(seed=st.integers(0, 10_000))
@settings(max_examples=40, deadline=None)
def test_without_weights_it_is_the_plain_mean_of_reach(seed):
    views, wanted, base = random_case(seed)
    expected = plain_means(views, wanted, base)
    np.testing.assert_allclose(keep_links(views, wanted, base), expected, atol=1e-9)
    equal = np.full(len(wanted), 0.5)  # a power of two: rounds as ones do
    np.testing.assert_allclose(keep_links(views, wanted, base, equal), expected, atol=1e-9)


PAIR = [[0.0, 0.0], [119.5, 0.0], [900.0, 0.0]]
APART = np.array([[-10.0, 0.0], [10.0, 0.0], [0.0, 5.0]])


@pytest.mark.parametrize(
    ("heft", "speed"), [((1.0, 1.0), 0.0), ((3.0, 1.0), -5.0), ((1e9, 1.0), -10.0), ((1.0, 3.0), 5.0)]
)
def test_the_heavier_end_of_a_strained_link_wins(heft, speed):
    views = views_of(PAIR)
    kept = keep_links(views, APART, np.zeros((3, 2)), np.array([*heft, 1.0]))
    np.testing.assert_allclose(kept, [[speed, 0.0], [speed, 0.0], [0.0, 5.0]], atol=1e-6)


def test_who_moves_with_a_heavier_one_becomes_as_heavy():
    """A chain 0-1-2 that stretches: 0 is heavy, so after one round 1 weighs as much as 0 and outweighs 2."""
    views = views_of([[0.0, 0.0], [119.5, 0.0], [239.0, 0.0]])
    wanted = np.array([[-10.0, 0.0], [-10.0, 0.0], [10.0, 0.0]])
    light = keep_links(views, wanted, np.zeros((3, 2)), np.array([1.0, 1.0, 1.0]))
    heavy = keep_links(views, wanted, np.zeros((3, 2)), np.array([1e6, 1.0, 1.0]))
    assert heavy[:, 0].max() < -8.0
    assert light[2, 0] > heavy[2, 0]


def test_links_that_are_short_or_shrink_change_nothing():
    views = views_of([[0.0, 0.0], [60.0, 0.0], [179.9, 0.0]])
    wanted = np.array([[-10.0, 0.0], [0.0, 10.0], [-10.0, 0.0]])
    assert np.array_equal(keep_links(views, wanted, np.zeros((3, 2))), wanted)


def test_a_subnet_whose_tree_would_tear_flies_the_base():
    """Without a round of evening out the pair would tear; the third UAV is another subnet and does as it likes."""
    views = views_of([[0.0, 0.0], [119.9, 0.0], [900.0, 0.0]])
    base = np.array([[0.0, 3.0], [0.0, 3.0], [0.0, -1.0]])
    np.testing.assert_array_equal(keep_links(views, APART, base, rounds=0), [[0.0, 3.0], [0.0, 3.0], [0.0, 5.0]])


@pytest.mark.parametrize(("outward", "kept"), [(0.0, True), (1.0, False)])
def test_a_link_that_looks_too_long_does_not_stop_a_subnet_unless_it_grows(outward, kept):
    """Noise: the pair is linked, so its 123 m are an error of measurement."""
    views = replace(
        views_of(PAIR), positions=np.array([[0.0, 0.0], [123.0, 0.0], [900.0, 0.0]]), lengths=np.array([123.0])
    )
    wanted = np.array([[0.0, 8.0], [outward, 8.0], [0.0, 5.0]])
    base = np.array([[0.0, 3.0], [0.0, 3.0], [0.0, -1.0]])
    flown = keep_links(views, wanted, base, rounds=0)
    np.testing.assert_array_equal(flown[:2], wanted[:2] if kept else base[:2])


@given(seed=st.integers(0, 10_000))
@settings(max_examples=60, deadline=None)
def test_few_links_give_the_tree_of_many(seed):
    """The loop and the sparse matrix agree on every tree, in the same order."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 40))
    pairs, lengths = near_pairs(rng.uniform(0, 400, (n, 2)), 120.0)
    with mock.patch("phygail.methods.links.FEW", -1):
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
    kept = keep_links(views, apart, np.zeros_like(apart))
    np.testing.assert_allclose(kept, 0.0 if even else apart)
