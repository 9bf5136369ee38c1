import numpy as np
import pytest

from phygail.methods.controller import controller, run_episode
from phygail.methods.sidr import Sidr
from phygail.sensing.views import Observer, Scope
from phygail.swarm.scenario import draw_scenario, make_scenario
from phygail.swarm.simulator import SwarmState, initial_state, step


def command(scenario, **options):
    return controller(Sidr(**options), scenario)(initial_state(scenario))


def test_all_members_of_a_subnet_fly_alike_without_repulsion():
    """SI-1."""
    scenario = draw_scenario(100, 0.5, np.random.default_rng(0))
    velocity = command(scenario, rep=False)
    subnet = initial_state(scenario).links.subnet
    for label in range(subnet.max() + 1):
        assert np.ptp(velocity[subnet == label], axis=0).max() == 0


def test_a_block_flies_straight_from_its_centroid_to_the_center():
    """SI-2: centroid (0.2 W, 0.7 W), so along (0.3, -0.2), no diagonal."""
    block = np.array([200.0, 700.0]) + np.array([[-40, -10], [50, 20], [-10, -10]])
    layout = np.vstack([block, [900.0, 100.0]])
    velocity = command(make_scenario("a", layout, width_m=1000.0))
    np.testing.assert_allclose(velocity[:3], np.tile(10 * np.array([3, -2]) / np.sqrt(13), (3, 1)))


def test_distances_inside_a_subnet_are_constant_until_it_merges():
    """SI-3."""
    scenario = draw_scenario(100, 0.75, np.random.default_rng(2))
    state, fly = initial_state(scenario), controller(Sidr(rep=False), scenario)
    while not state.terminated and state.step < 100:
        after = step(state, fly(state))
        for label in range(state.links.count):
            rows = state.links.subnet == label
            before, now = (p[rows][:, None] - p[rows][None] for p in (state.positions, after.positions))
            np.testing.assert_allclose(now, before, atol=1e-9)
        state = after
    assert state.step > 5


@pytest.mark.parametrize(("distance", "steps"), [(121.0, 1), (122.0, 1), (123.5, 2), (200.0, 40), (333.0, 107)])
def test_two_singletons_meet_halfway(distance, steps):
    """SI-4: ceil((D - R) / 2) steps."""
    scenario = make_scenario("a", [[0.0, 0.0], [distance, 0.0]], budget_steps=500)
    assert run_episode(scenario, Sidr()).steps == steps == int(np.ceil((distance - 120) / 2))


def test_a_subnet_centered_on_the_center_hovers():
    """SI-5."""
    layout = [[450.0, 500.0], [550.0, 500.0], [500.0, 430.0], [500.0, 570.0], [100.0, 100.0]]
    velocity = command(make_scenario("a", layout, width_m=1000.0))
    assert velocity[:4].tolist() == [[0.0, 0.0]] * 4
    assert np.hypot(*velocity[4]) == pytest.approx(10.0)


def test_close_members_are_pushed_apart_by_hand():
    # Centroid on c: base zero. 5 m apart: 20/3 m/s each.
    layout = [[497.5, 500.0], [502.5, 500.0], [0.0, 0.0]]
    velocity = command(make_scenario("a", layout, width_m=1000.0))
    np.testing.assert_allclose(velocity[:2], [[-20 / 3, 0], [20 / 3, 0]])


@pytest.mark.parametrize(("step_now", "individual"), [(219, False), (220, True), (300, True)])
def test_the_aggregation_begins_at_055_w_at_the_latest(step_now, individual):
    scenario = make_scenario("a", [[0.0, 0.0], [100.0, 0.0], [400.0, 400.0]], width_m=400.0, budget_steps=900)
    start = initial_state(scenario)
    state = SwarmState(scenario, start.positions, start.velocities, step_now)
    velocity = controller(Sidr(), scenario)(state)
    if individual:
        np.testing.assert_allclose(velocity[0], 10 * np.array([1, 1]) / np.sqrt(2))
        np.testing.assert_allclose(velocity[1], 10 * np.array([100, 200]) / np.hypot(100, 200))
    else:
        np.testing.assert_allclose(velocity[:2], np.tile(10 * np.array([150, 200]) / 250, (2, 1)))


def test_two_hollow_subnets_around_the_center_meet_in_the_aggregation_phase():
    """Both rings are centered on c from the start: pure block translation would hover forever."""
    angle = np.linspace(0, 2 * np.pi, 24, endpoint=False)
    circle = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    layout = np.vstack([circle[::8] * 50, circle * 200]) + 250.0
    scenario = make_scenario("rings", layout, width_m=500.0)
    episode = run_episode(scenario, Sidr(rep=False))
    assert episode.terminated
    assert episode.steps > 0.55 * 500


def test_the_rule_for_one_subnet_and_the_form_for_all_agree():
    for seed in range(5):
        scenario = draw_scenario(100, 0.6, np.random.default_rng(seed))
        start = initial_state(scenario)
        for now in (0, 1000):
            views = Observer(scenario).observe(
                SwarmState(scenario, start.positions, start.velocities, now), Scope.SUBNET
            )
            together = Sidr().act_all(views)
            for rows, view in zip(views.rows, views, strict=True):
                np.testing.assert_allclose(Sidr().act(view), together[rows], atol=1e-9)


def test_sidr_reconnects_fresh_cases_about_as_fast_as_expected():
    """METHODS 3.3: conv about 1.0, 6-8 s at N = 100 averaged over the damage."""
    episodes = [
        run_episode(draw_scenario(100, ratio, np.random.default_rng(seed)), Sidr())
        for ratio in (0.1, 0.3, 0.5, 0.7, 0.9)
        for seed in range(3)
    ]
    assert all(e.terminated for e in episodes)
    assert 40 < np.mean([e.steps for e in episodes]) < 110
