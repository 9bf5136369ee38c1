import copy
from dataclasses import asdict

import numpy as np

from phygail.methods.reach_evolved.train import Search


def search(start, seed=0, population=16, sigma=0.5, scale=None):
    mean = np.array(start, dtype=float)
    return Search(mean, np.ones(len(mean)) if scale is None else np.array(scale, dtype=float), sigma, population, seed)


def run(state, cost, generations):
    for _ in range(generations):
        candidates = state.ask()
        state.tell(candidates, np.array([cost(c) for c in candidates]))
    return state


def sphere(x):
    return float((x**2).sum())


def ellipsoid(x):
    """Axis k is 10^(3 k / (D - 1)) times steeper than the first in the square root."""
    return float((10.0 ** (6 * np.arange(len(x)) / (len(x) - 1)) * x**2).sum())


def test_it_finds_the_minimum_of_a_sphere():
    state = run(search(np.full(8, 3.0)), sphere, 150)
    assert sphere(state.mean) < 1e-8
    assert state.sigma < 1e-2
    assert state.generation == 150


def test_it_learns_the_scales_of_an_ill_conditioned_ellipsoid():
    """Condition 1e6 along the axes: what a diagonal covariance is for."""
    state = run(search(np.full(6, 1.0)), ellipsoid, 400)
    assert ellipsoid(state.mean) < 1e-8
    spread = np.sqrt(state.variance)
    assert spread[0] / spread[-1] > 30


def test_a_given_scale_makes_the_ellipsoid_a_sphere():
    scale = 10.0 ** (-3 * np.arange(6) / 5)
    assert ellipsoid(run(search(scale * 3.0, scale=scale), ellipsoid, 150).mean) < 1e-8


def test_candidates_are_mirrored_around_the_mean_and_repeat():
    state = search([1.0, -2.0, 0.5], population=10)
    candidates = state.ask()
    assert candidates.shape == (10, 3)
    np.testing.assert_allclose(candidates.mean(axis=0), state.mean)
    np.testing.assert_allclose(candidates[:5] + candidates[5:], np.tile(2 * state.mean, (5, 1)))
    assert np.array_equal(candidates, state.ask())
    assert not np.array_equal(candidates, search([1.0, -2.0, 0.5], seed=1, population=10).ask())


def test_the_first_generation_by_hand():
    """Two parents with weights ln 2.5 and ln 1.25, normalized; the worse half does not count."""
    state = search([0.0], population=4, sigma=1.0)
    state.tell(np.array([[3.0], [1.0], [-1.0], [-3.0]]), np.array([3.0, 1.0, 2.0, 4.0]))
    weights = np.log([2.5, 1.25]) / np.log([2.5, 1.25]).sum()
    np.testing.assert_allclose(state.mean, [weights[0] * 1.0 - weights[1] * 1.0])
    assert state.generation == 1


def test_only_the_order_of_the_costs_matters():
    plain = run(search([2.0, 2.0, 2.0]), sphere, 20)
    cubed = run(search([2.0, 2.0, 2.0]), lambda x: sphere(x) ** 3 + 7.0, 20)
    assert np.array_equal(plain.mean, cubed.mean)


def test_a_search_resumed_from_its_state_continues_exactly():
    straight = run(search(np.full(5, 2.0)), ellipsoid, 30)
    half = run(search(np.full(5, 2.0)), ellipsoid, 12)
    resumed = run(Search(**copy.deepcopy(asdict(half))), ellipsoid, 18)
    assert straight.sigma == resumed.sigma
    for name in ("mean", "variance", "path", "path_sigma"):
        assert np.array_equal(getattr(straight, name), getattr(resumed, name))
