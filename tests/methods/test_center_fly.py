import numpy as np
import pytest

from phygail.methods.base import GlobalMethod
from phygail.methods.center_fly import CenterFly
from phygail.methods.controller import controller, run_episode
from phygail.methods.steering import go
from phygail.swarm.scenario import draw_scenario, make_scenario
from phygail.swarm.simulator import initial_state, step


class CenterFlyCentroid(GlobalMethod):
    """v_i = go(p_i -> mean of the alive), the target that earlier public code intends: within 2 % of `center-fly`."""

    name = "center-fly-centroid"

    def act(self, view):
        return go(view.positions, view.positions.mean(axis=0), view.mission.physics)


def command(method, scenario):
    return controller(method, scenario)(initial_state(scenario))


def cross(a, b):
    return a[..., 0] * b[..., 1] - a[..., 1] * b[..., 0]


@pytest.mark.parametrize("method", [CenterFly(), CenterFlyCentroid()])
def test_all_commands_point_to_one_common_point(method):
    """CF-1: the lines (p_i, v_i) meet pairwise in the target."""
    scenario = draw_scenario(20, 0.5, np.random.default_rng(0))
    velocity = command(method, scenario)
    spots = scenario.spots
    target = scenario.center if isinstance(method, CenterFly) else spots.mean(axis=0)
    for i in range(len(spots)):
        for j in range(i):
            if abs(cross(velocity[i], velocity[j])) < 1.0:
                continue  # nearly parallel lines have no well-defined crossing
            along = cross(spots[j] - spots[i], velocity[j]) / cross(velocity[i], velocity[j])
            np.testing.assert_allclose(spots[i] + along * velocity[i], target, atol=1e-6)


def test_the_distance_to_the_target_falls_by_one_meter_per_step_until_arrival():
    """CF-2."""
    scenario = draw_scenario(50, 0.9, np.random.default_rng(1))
    state, fly = initial_state(scenario), controller(CenterFly(), scenario)
    distance = np.linalg.norm(state.positions - scenario.center, axis=1)
    for _ in range(360):  # beyond the reconnection: everybody arrives
        state = step(state, fly(state))
        distance = np.maximum(0.0, distance - 1.0)
        np.testing.assert_allclose(np.linalg.norm(state.positions - scenario.center, axis=1), distance, atol=1e-9)
    assert distance.max() == 0


def test_two_at_the_lower_corners_fly_up_to_the_center():
    """CF-3."""
    scenario = make_scenario("a", [[0.0, 0.0], [500.0, 0.0]], width_m=500.0)
    diagonal = 10 / np.sqrt(2)
    np.testing.assert_allclose(command(CenterFly(), scenario), [[diagonal, diagonal], [-diagonal, diagonal]])


def test_the_centroid_has_its_own_x_and_y():
    """CF-3, mode centroid: mean (200, 50), not a scalar mean."""
    layout = [[0.0, 0.0], [400.0, 0.0], [400.0, 100.0], [0.0, 100.0], [90.0, 390.0]]
    scenario = make_scenario("a", layout, [4], width_m=500.0)
    velocity = command(CenterFlyCentroid(), scenario)
    np.testing.assert_allclose(velocity[0], 10 * np.array([200, 50]) / np.hypot(200, 50))
    np.testing.assert_allclose(velocity[2], -velocity[0])


def test_center_fly_reconnects_every_case():
    for seed in range(5):
        scenario = draw_scenario(50, 0.5, np.random.default_rng(seed))
        for method in (CenterFly(), CenterFlyCentroid()):
            assert run_episode(scenario, method).terminated
