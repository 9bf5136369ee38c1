"""The pictures of all UAVs at once against the picture of each."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from phygail.perception.noise import SensedObserver, Sensing
from phygail.perception.pictures import split_pictures
from phygail.perception.view import Scope
from phygail.rng import generator
from phygail.swarm.dynamics import step
from phygail.swarm.scenario import draw_scenario
from phygail.swarm.state import initial_state


def late_views(seed, sigma_m, steps=3):
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
def test_each_picture_is_the_one_that_its_pilot_has(seed, sigma_m, most_rows, reckoned):
    views = late_views(seed, sigma_m)
    pilots = []
    for pictures in split_pictures(views, reckoned=reckoned, most_rows=most_rows):
        pilots += pictures.pilots.tolist()
        for pilot, own, picture in zip(pictures.pilots, pictures.own, pictures, strict=True):
            label = views.subnet[pilot]
            subnet = list(views)[label]
            expected = subnet.picture(int(np.flatnonzero(views.rows[label] == pilot)[0]), reckoned=reckoned)
            for name in ("members", "positions", "velocities", "pairs", "lengths", "age_s"):
                np.testing.assert_array_equal(getattr(picture, name), getattr(expected, name))
            np.testing.assert_array_equal(pictures.positions[own], views.positions[pilot])
            np.testing.assert_array_equal(pictures.centers[pictures.subnet[own]], expected.mission.center)
    assert sorted(pilots) == list(range(len(views.members)))


def test_a_pilot_knows_the_wrecks_that_anybody_of_its_subnet_hears():
    views = late_views(4, 0.0, steps=0)
    for pictures in split_pictures(views, reckoned=True):
        row, wreck = pictures.damaged_in_range.T
        for label, pilot in enumerate(pictures.pilots):
            subnet = list(views)[views.subnet[pilot]]
            assert set(wreck[pictures.subnet[row] == label]) == set(subnet.damaged_in_range[:, 1])


@pytest.mark.parametrize("most_rows", [1, 30])
def test_portions_hold_whole_pictures(most_rows):
    views = late_views(5, 0.0)
    for pictures in split_pictures(views, reckoned=True, most_rows=most_rows):
        np.testing.assert_array_equal(pictures.sizes, views.sizes[views.subnet[pictures.pilots]])
