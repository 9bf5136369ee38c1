import numpy as np
import pytest

from phygail.config import InputError
from phygail.methods.phygail.graph import perceive
from phygail.sensing.imperfect import SensedObserver, Sensing, own_estimate
from phygail.sensing.views import Observer, Scope
from phygail.swarm.scenario import draw_scenario, make_scenario
from phygail.swarm.simulator import SwarmState, initial_state, step


@pytest.fixture(scope="module")
def flight():
    """Seven states of a split swarm whose UAVs fly in random directions."""
    scenario = draw_scenario(100, 0.6, np.random.default_rng(0))
    rng, states = np.random.default_rng(1), [initial_state(scenario)]
    for _ in range(6):
        states.append(step(states[-1], rng.uniform(-7, 7, states[-1].positions.shape)))
    return states


def observer(flight, sigma_m=0.0, delay_steps=0, bias_m=0.0, seed=0, reckoned=False):
    sensing = Sensing(sigma_m, delay_steps, bias_m)
    return SensedObserver(flight[0].scenario, sensing, np.random.default_rng(seed), reckoned=reckoned)


def watch(flight, scope, **options):
    """The view of the last state after watching the whole flight."""
    eye = observer(flight, **options)
    for state in flight:
        view = eye.observe(state, scope)
    return view


def test_perfect_sensing_is_the_plain_view(flight):
    view, plain = watch(flight, Scope.SUBNET), Observer(flight[0].scenario).observe(flight[-1], Scope.SUBNET)
    assert (view.news, view.own_centers, view.age_s) == (None, None, 0.0)
    assert np.array_equal(view.positions, plain.positions)


def test_noise_has_the_asked_size_and_is_fresh_every_step(flight):
    eye = observer(flight, sigma_m=5.0)
    errors = np.stack([eye.observe(s, Scope.SUBNET).positions - s.positions for s in flight])
    assert errors.std() == pytest.approx(5.0, rel=0.1)
    assert abs(errors.mean()) < 0.6
    assert abs(np.corrcoef(errors[0].ravel(), errors[1].ravel())[0, 1]) < 0.3


def test_looking_twice_at_a_step_shows_the_same_and_another_seed_something_else(flight):
    eye = observer(flight, sigma_m=5.0)
    first, second = (eye.observe(flight[0], Scope.SUBNET) for _ in range(2))
    assert np.array_equal(first.positions, second.positions)
    assert not np.array_equal(first.positions, observer(flight, 5.0, seed=1).observe(flight[0], Scope.SUBNET).positions)


def test_links_subnets_and_damaged_in_range_stay_true(flight):
    noisy = watch(flight, Scope.SUBNET, sigma_m=10.0)
    plain = Observer(flight[0].scenario).observe(flight[-1], Scope.SUBNET)
    assert np.array_equal(noisy.pairs, plain.pairs)
    assert np.array_equal(noisy.subnet, plain.subnet)
    assert np.array_equal(noisy.damaged_in_range, plain.damaged_in_range)
    assert np.array_equal(noisy.velocities, plain.velocities)
    for one, other in zip(noisy, plain, strict=True):
        assert np.array_equal(one.damaged_in_range, other.damaged_in_range)
        assert np.array_equal(one.pairs, other.pairs)


def test_lengths_are_measured_between_noisy_positions(flight):
    view = watch(flight, Scope.SUBNET, sigma_m=10.0)
    i, j = view.pairs.T
    np.testing.assert_allclose(view.lengths, np.linalg.norm(view.positions[i] - view.positions[j], axis=1))


def test_each_subnet_has_its_own_idea_of_the_center(flight):
    views = watch(flight, Scope.SUBNET, sigma_m=4.0)
    assert views.centers.shape == (views.count, 2)
    assert len(np.unique(views.centers, axis=0)) == views.count
    for center, view in zip(views.centers, views, strict=True):
        assert np.array_equal(view.mission.center, center)
        assert np.array_equal(view.alone().centers, center[None])


def test_noise_on_the_roster_does_not_tell_who_is_damaged(flight):
    view = watch(flight, Scope.SUBNET, sigma_m=4.0)
    assert (view.roster != flight[0].scenario.layout).all()


def test_a_global_planner_gets_a_noisy_snapshot_and_noisy_feedback(flight):
    eye = observer(flight, sigma_m=3.0)
    for state in flight:
        view = eye.observe(state, Scope.GLOBAL)
        assert 1.5 < (view.positions - state.positions).std() < 4.5
        assert np.array_equal(view.links.pairs, state.links.pairs)
        assert not np.array_equal(view.mission.center, state.scenario.center)


@pytest.mark.parametrize(("now", "then"), [(0, 0), (1, 0), (3, 0), (4, 1), (6, 3)])
def test_neighbors_are_three_steps_old_and_the_own_state_is_current(flight, now, then):
    eye = observer(flight, delay_steps=3)
    for state in flight[: now + 1]:
        views = eye.observe(state, Scope.SUBNET)
    assert np.array_equal(views.positions, flight[now].positions)
    assert np.array_equal(views.news.positions, flight[then].positions)
    assert np.array_equal(views.news.velocities, flight[then].velocities)


def test_a_delayed_position_carries_the_noise_of_its_time(flight):
    eye = observer(flight, sigma_m=5.0, delay_steps=2)
    seen = [eye.observe(state, Scope.SUBNET) for state in flight]
    assert np.array_equal(seen[5].news.positions, seen[3].positions)


def test_an_estimate_holds_its_owner_now_and_the_others_delayed(flight):
    views = watch(flight, Scope.SUBNET, delay_steps=2)
    view = max(views, key=lambda v: len(v.members))
    estimate = own_estimate(view, 1)
    others = np.arange(len(view.members)) != 1
    assert np.array_equal(estimate.positions[1], view.positions[1])
    assert np.array_equal(estimate.positions[others], view.news.positions[others])
    assert np.array_equal(estimate.velocities[others], view.news.velocities[others])
    assert np.array_equal(estimate.damaged_in_range, view.damaged_in_range)


@pytest.mark.parametrize(("now", "age"), [(0, 0), (1, 1), (6, 2)])
def test_a_reckoned_estimate_flies_the_others_on_by_the_age_of_the_news(flight, now, age):
    eye = observer(flight, delay_steps=2)
    for state in flight[: now + 1]:
        views = eye.observe(state, Scope.SUBNET)
    then, seconds = flight[now - age], age * views.mission.physics.step_s
    view = max(views, key=lambda v: len(v.members))
    row = {int(member): row for row, member in enumerate(views.members)}
    rows = [row[int(member)] for member in view.members]
    estimate = own_estimate(view, 1, reckoned=True)
    ahead = then.positions[rows] + seconds * then.velocities[rows]
    others = np.arange(len(rows)) != 1
    np.testing.assert_allclose(estimate.positions[others], ahead[others], atol=1e-9)
    assert np.array_equal(estimate.positions[1], view.positions[1])
    i, j = estimate.pairs.T
    np.testing.assert_allclose(estimate.lengths, np.linalg.norm(estimate.positions[i] - estimate.positions[j], axis=1))


def test_reckoned_positions_are_the_mean_of_all_readings_carried_along(flight):
    plain, reckoned = (observer(flight, sigma_m=5.0, reckoned=flag) for flag in (False, True))
    views = [(plain.observe(state, Scope.SUBNET), reckoned.observe(state, Scope.SUBNET)) for state in flight]
    errors = np.stack([view.positions - state.positions for (view, _), state in zip(views, flight, strict=True)])
    for count, ((_, view), state) in enumerate(zip(views, flight, strict=True), start=1):
        np.testing.assert_allclose(view.positions, state.positions + errors[:count].mean(axis=0), atol=1e-9)
        rosters = np.stack([view.roster for view, _ in views[:count]])
        np.testing.assert_allclose(view.roster, rosters.mean(axis=0), atol=1e-9)
    again = reckoned.observe(flight[-1], Scope.SUBNET)
    assert np.array_equal(again.positions, views[-1][1].positions)  # looking twice is no second reading


def test_a_merged_subnet_takes_the_mean_of_its_members_centers():
    """Each of two UAVs has a reading of its own, then both share one."""
    scenario = make_scenario("pair", [[0.0, 0.0], [200.0, 0.0], [100.0, 0.0]], [2], center=[0, 0], budget_steps=9)
    apart = initial_state(scenario)
    met = SwarmState(scenario, np.array([[50.0, 0.0], [150.0, 0.0]]), np.zeros((2, 2)), 1)
    plain, reckoned = (
        SensedObserver(scenario, Sensing(5.0), np.random.default_rng(0), reckoned=flag) for flag in (False, True)
    )
    first, second = (plain.observe(state, Scope.SUBNET).centers for state in (apart, met))
    assert np.array_equal(reckoned.observe(apart, Scope.SUBNET).centers, first)
    expected = ((first + second) / 2).mean(axis=0)
    np.testing.assert_allclose(reckoned.observe(met, Scope.SUBNET).centers, expected[None], atol=1e-12)


def test_news_of_reckoned_positions_is_what_was_reckoned_then(flight):
    eye = observer(flight, sigma_m=5.0, delay_steps=2, reckoned=True)
    seen = [eye.observe(state, Scope.SUBNET) for state in flight]
    assert np.array_equal(seen[5].news.positions, seen[3].positions)


def test_exact_readings_need_no_reckoning(flight):
    eye = observer(flight, delay_steps=1, reckoned=True)
    for state in flight:
        assert np.array_equal(eye.observe(state, Scope.SUBNET).positions, state.positions)


def test_reckoning_needs_every_step(flight):
    eye = observer(flight, sigma_m=5.0, reckoned=True)
    eye.observe(flight[0], Scope.SUBNET)
    with pytest.raises(ValueError, match="step 2 was observed after step 0: reckoning needs every step"):
        eye.observe(flight[2], Scope.SUBNET)


# --- a constant bias of what is stored --------------------------------------------------------------------------------


def test_a_bias_has_the_asked_size_and_is_the_same_in_every_step(flight):
    eye = observer(flight, bias_m=20.0)
    views, layout = [eye.observe(state, Scope.SUBNET) for state in flight], flight[0].scenario.layout
    errors = views[0].roster - layout
    assert errors.std() == pytest.approx(20.0, rel=0.15)
    assert abs(errors.mean()) < 5.0
    for view, state in zip(views, flight, strict=True):
        assert np.array_equal(view.roster - layout, errors)
        assert np.array_equal(view.positions, state.positions)  # measured, not stored
        assert np.array_equal(
            view.damaged_in_range, Observer(state.scenario).observe(state, Scope.SUBNET).damaged_in_range
        )


def test_the_mean_of_all_readings_keeps_the_bias_and_loses_the_noise(flight):
    """Seven readings: the noise of 5 m falls to 5/sqrt(7) = 1.9 m, the bias of 20 m stays what it is."""
    layout, center = flight[0].scenario.layout, flight[0].scenario.center
    bias = watch(flight, Scope.SUBNET, bias_m=20.0)
    both = watch(flight, Scope.SUBNET, sigma_m=5.0, bias_m=20.0, reckoned=True)
    noise = watch(flight, Scope.SUBNET, sigma_m=5.0, reckoned=True)
    assert (noise.roster - layout).std() == pytest.approx(5.0 / np.sqrt(7), rel=0.15)
    np.testing.assert_allclose(both.roster - layout, (noise.roster - layout) + (bias.roster - layout), atol=1e-9)
    np.testing.assert_allclose(both.centers - center, (noise.centers - center) + (bias.centers - center), atol=1e-9)
    assert np.array_equal(both.positions, noise.positions)


def test_a_subnet_uses_the_copy_of_the_center_of_its_lowest_member(flight):
    """Copies differ from UAV to UAV; where subnets meet, that of the lowest stays."""
    views, scenario = watch(flight, Scope.SUBNET, bias_m=20.0), flight[0].scenario
    eye = observer(flight, bias_m=20.0)
    far = 1e4 * np.arange(len(scenario.alive))[:, None] * [1.0, 0.0]
    own = eye.observe(SwarmState(scenario, far, np.zeros_like(far), 0), Scope.SUBNET).centers  # everybody alone
    assert len(np.unique(own, axis=0)) == len(scenario.alive)
    assert (own - scenario.center).std() == pytest.approx(20.0, rel=0.2)
    for label, view in enumerate(views):
        lowest = np.searchsorted(scenario.alive, view.members.min())
        np.testing.assert_allclose(views.centers[label], own[lowest], atol=1e-9)
        assert np.array_equal(view.mission.center, views.centers[label])
    together = eye.observe(SwarmState(scenario, far / 1e6, np.zeros_like(far), 1), Scope.SUBNET).centers
    assert np.array_equal(together, own[:1])


def test_every_scope_reads_the_same_bias_and_another_seed_another(flight):
    subnets, local, planner = (watch(flight, scope, bias_m=20.0) for scope in (Scope.SUBNET, Scope.LOCAL, Scope.GLOBAL))
    assert np.array_equal(planner.roster, subnets.roster)
    assert np.array_equal(planner.mission.center, subnets.centers[0])
    assert np.array_equal(local.mission.center, subnets.centers[flight[-1].links.subnet])
    near = subnets.damaged_in_range
    assert np.array_equal(local.damaged_offsets, subnets.roster[near[:, 1]] - flight[-1].positions[near[:, 0]])
    assert not np.array_equal(watch(flight, Scope.SUBNET, bias_m=20.0, seed=1).roster, subnets.roster)


def test_twice_the_bias_is_twice_the_error(flight):
    """The draws do not depend on the size: comparisons over the bias are paired."""
    layout = flight[0].scenario.layout
    one, two = (watch(flight, Scope.SUBNET, bias_m=size).roster - layout for size in (8.0, 16.0))
    np.testing.assert_allclose(two, 2 * one, atol=1e-9)


def test_local_offsets_lead_from_the_receiver_now_to_the_neighbor_then(flight):
    view = watch(flight, Scope.LOCAL, delay_steps=2)
    pairs = flight[-1].links.pairs
    receiver, sender = np.concatenate([pairs, pairs[:, ::-1]]).T
    assert np.array_equal(view.receiver, receiver)
    np.testing.assert_allclose(view.neighbor_offsets, flight[-3].positions[sender] - flight[-1].positions[receiver])
    assert np.array_equal(view.neighbor_velocities, flight[-3].velocities[sender])


def test_a_local_view_has_the_center_of_its_subnet_in_every_row(flight):
    view, subnet = watch(flight, Scope.LOCAL, sigma_m=2.0), flight[-1].links.subnet
    for label in range(subnet.max() + 1):
        assert len(np.unique(view.mission.center[subnet == label], axis=0)) == 1


def test_receivers_listen_to_twins_and_twins_to_twins(flight):
    views = watch(flight, Scope.SUBNET, delay_steps=3)
    graph, n = perceive(views), len(views.members)
    assert graph.receivers == 2 * n
    peers = graph.index[:, :8][graph.mask[:, :8]]
    assert ((peers >= n) & (peers < 2 * n)).all()
    assert (views.subnet[peers - n] == np.tile(views.subnet, 2)[np.nonzero(graph.mask[:, :8])[0]]).all()
    half = views.mission.width_m / 2
    known = np.concatenate([flight[-1].positions, flight[-4].positions])
    np.testing.assert_allclose(graph.features[: 2 * n, :2] * half + views.mission.center, known, atol=1e-3)


def test_the_past_must_be_seen_in_order(flight):
    eye = observer(flight, delay_steps=1)
    eye.observe(flight[1], Scope.SUBNET)
    with pytest.raises(ValueError, match="step 0 was observed after step 1"):
        eye.observe(flight[0], Scope.SUBNET)


def test_impossible_sensing_is_refused():
    with pytest.raises(InputError, match="sigma_m -1"):
        Sensing(sigma_m=-1.0)
    for size in (-1.0, float("nan"), float("inf"), 1e308):
        with pytest.raises(InputError, match=r"bias_m .* must be from 0 to 1e\+07 meters"):
            Sensing(bias_m=size)
    with pytest.raises(InputError, match="delay_steps -2"):
        Sensing(delay_steps=-2)
