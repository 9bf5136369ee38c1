"""The estimates of all UAVs at once against the estimate of each."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from phygail.rng import generator
from phygail.sensing.imperfect import SensedObserver, Sensing, own_estimate, own_estimates
from phygail.sensing.views import Scope
from phygail.swarm.scenario import draw_scenario
from phygail.swarm.simulator import initial_state, step


def delayed_views(seed, sigma_m, steps=3):
    """Views of a swarm that has flown at random for a few steps."""
    rng = np.random.default_rng(seed)
    scenario = draw_scenario(int(rng.integers(10, 60)), 0.4, generator(seed, "pictures"))
    observer = SensedObserver(scenario, Sensing(sigma_m, 2), rng)
    state = initial_state(scenario)
    views = observer.observe(state, Scope.SUBNET)
    for _ in range(steps):
        state = step(state, rng.uniform(-7, 7, state.positions.shape))
        views = observer.observe(state, Scope.SUBNET)
    return views


@given(
    seed=st.integers(0, 10_000), sigma_m=st.sampled_from([0.0, 5.0]), most_rows=st.sampled_from([1, 40, 10_000]),
    reckoned=st.booleans(),
)  # fmt: skip
@settings(max_examples=25, deadline=None)
def test_each_estimate_is_the_one_that_its_owner_has(seed, sigma_m, most_rows, reckoned):
    views = delayed_views(seed, sigma_m)
    owners = []
    for estimates in own_estimates(views, reckoned=reckoned, most_rows=most_rows):
        owners += estimates.owners.tolist()
        for owner, own, estimate in zip(estimates.owners, estimates.own, estimates, strict=True):
            label = views.subnet[owner]
            subnet = list(views)[label]
            place = int(np.flatnonzero(views.rows[label] == owner)[0])
            expected = own_estimate(subnet, place, reckoned=reckoned)
            for name in ("members", "positions", "velocities", "pairs", "lengths", "age_s"):
                np.testing.assert_array_equal(getattr(estimate, name), getattr(expected, name))
            np.testing.assert_array_equal(estimates.positions[own], views.positions[owner])
            np.testing.assert_array_equal(estimates.centers[estimates.subnet[own]], expected.mission.center)
            np.testing.assert_array_equal(estimate.mission.center, expected.mission.center)
    assert sorted(owners) == list(range(len(views.members)))


def test_an_owner_knows_the_damaged_that_any_member_of_its_subnet_hears():
    views = delayed_views(4, 0.0, steps=0)
    for estimates in own_estimates(views, reckoned=True):
        row, spot = estimates.damaged_in_range.T
        for label, owner in enumerate(estimates.owners):
            subnet = list(views)[views.subnet[owner]]
            assert set(spot[estimates.subnet[row] == label]) == set(subnet.damaged_in_range[:, 1])


@pytest.mark.parametrize("most_rows", [1, 30])
def test_portions_hold_whole_estimates(most_rows):
    views = delayed_views(5, 0.0)
    for estimates in own_estimates(views, reckoned=True, most_rows=most_rows):
        np.testing.assert_array_equal(estimates.sizes, views.sizes[views.subnet[estimates.owners]])
