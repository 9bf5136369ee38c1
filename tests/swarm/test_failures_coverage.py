"""The watched area against discs and against counting from scratch."""

import math

import numpy as np
import pytest

from phygail.config import InputError
from phygail.swarm.failures import MOST_CELLS, Watch, watched_m2

CENTER = np.array([500.0, 500.0])


def watched(points, layout=None, center=CENTER, width=1000.0, range_m=120.0):
    points = np.array(points, dtype=float)
    return watched_m2(points, points if layout is None else layout, center, width, range_m)


def test_one_uav_watches_a_disc_and_two_far_apart_watch_two():
    disc = math.pi * 60**2
    assert watched([[500, 500]]) == pytest.approx(disc, rel=0.01)
    assert watched([[300, 500], [700, 500]]) == pytest.approx(2 * disc, rel=0.01)
    assert watched([[500, 500], [500, 500]]) == watched([[500, 500]])


def test_what_is_off_the_map_is_not_watched():
    assert watched([[0, 500]]) == pytest.approx(math.pi * 60**2 / 2, rel=0.02)
    assert watched([[0, 0]]) == pytest.approx(math.pi * 60**2 / 4, rel=0.03)


def test_a_map_about_another_center_is_that_of_the_layout():
    points = np.array([[500.0, 500.0], [600.0, 500.0], [550.0, 590.0]])
    assert watched(points, center=np.array([-3000.0, 9000.0])) > 0


@pytest.mark.parametrize("scale", [0.5, 2.0, 2.5])
def test_other_units_watch_as_many_cells(scale):
    points = np.random.default_rng(0).uniform(300, 700, (12, 2))
    plain = watched(points)
    other = watched(points * scale, center=CENTER * scale, width=1000.0 * scale, range_m=120.0 * scale)
    assert other == pytest.approx(plain * scale**2, rel=1e-12)


@pytest.mark.parametrize("seed", range(20))
def test_a_move_loses_what_counting_from_scratch_says(seed):
    rng = np.random.default_rng(seed)
    points = rng.uniform(350, 650, (8, 2))
    place = points[0] + rng.normal(0, 40, 2)
    watch = Watch(points, CENTER, 1000.0, 120.0)
    watch.add(points)
    moved = np.vstack([place, points[1:]])
    assert watch.lost_m2(points[0], place) == pytest.approx(watched(points) - watched(moved, layout=points))
    assert watch.area_m2 == pytest.approx(watched(points))  # looking changes nothing


def test_a_map_with_too_many_cells_is_refused():
    with pytest.raises(InputError, match="more than 4,096 cells"):
        Watch(np.zeros((1, 2)), np.zeros(2), 5.0 * (MOST_CELLS + 1), 120.0)
