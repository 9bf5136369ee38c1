"""D4 augmentation (METHODS PH-9)."""

from __future__ import annotations

import numpy as np
import pytest

from phygail.methods.phygail.experts.dataset import ELEMENTS, eight_variants, turn_points, turn_vectors
from phygail.rng import generator
from phygail.swarm.scenario import draw_scenario

CENTER = np.array([160.0, 100.0])


@pytest.fixture
def points():
    return generator(3, "points").uniform(0, 320, size=(7, 2))


def every_element(points):
    """(8, n, 2), the points turned by each element."""
    return turn_points(np.repeat(points[None], 8, axis=0), np.repeat(CENTER[None], 8, axis=0), np.arange(8))


def test_the_eight_elements_are_distinct_and_closed():
    """PH-9."""
    flat = {tuple(element.ravel()) for element in ELEMENTS}
    assert len(flat) == 8
    assert {tuple((a @ b).ravel()) for a in ELEMENTS for b in ELEMENTS} == flat


def test_turning_preserves_distances_and_gives_eight_distinct_frames(points):
    """PH-9."""
    turned = every_element(points)
    assert len({frame.round(6).tobytes() for frame in turned}) == 8
    wanted = np.linalg.norm(points[:, None] - points[None], axis=-1)
    for frame in turned:
        np.testing.assert_allclose(np.linalg.norm(frame[:, None] - frame[None], axis=-1), wanted, atol=1e-9)
        np.testing.assert_allclose(
            np.linalg.norm(frame - CENTER, axis=1), np.linalg.norm(points - CENTER, axis=1), atol=1e-9
        )


def test_a_quarter_turn_of_a_point_worked_by_hand():
    """30 m east and 10 m north of the center becomes 10 m west and 30 m north; its velocity turns with it."""
    point, velocity = np.array([[[190.0, 110.0]]]), np.array([[[3.0, 1.0]]])
    np.testing.assert_allclose(turn_points(point, CENTER[None], np.array([1])), [[[150.0, 130.0]]])
    np.testing.assert_array_equal(turn_vectors(velocity, np.array([1])), [[[-1.0, 3.0]]])


def test_a_turned_flight_is_a_flight(points):
    """Turning commutes with the step: position + velocity dt, turned, is turned position + turned velocity dt."""
    velocities = generator(4, "velocities").uniform(-7, 7, size=points.shape)
    moved = every_element(points + 0.1 * velocities)
    turned = every_element(points) + 0.1 * turn_vectors(np.repeat(velocities[None], 8, axis=0), np.arange(8))
    np.testing.assert_allclose(moved, turned, atol=1e-9)


def test_a_scenario_has_eight_variants_with_the_same_damage():
    scenario = draw_scenario(20, 0.5, generator(5, "scenario"))
    variants = eight_variants(scenario)
    assert len({v.id for v in variants}) == len({v.layout.round(6).tobytes() for v in variants}) == 8
    np.testing.assert_allclose(variants[0].layout, scenario.layout, atol=1e-9)
    for variant in variants:
        np.testing.assert_array_equal(variant.damaged, scenario.damaged)
