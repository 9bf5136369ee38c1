"""Links that are not a plain disc: outages, fading, heights, radio shadows."""

import math

import numpy as np
import pytest

from phygail.config import Physics
from phygail.methods.controller import run_episode
from phygail.swarm.links import (
    LONG_AGO,
    Memory,
    calibration,
    heard_probability,
    listen,
    outage_rates,
    power_gains,
    shadowing_db,
    threshold,
)
from phygail.swarm.scenario import in_world, make_scenario
from phygail.swarm.simulator import initial_state
from phygail.swarm.tree import bound_for
from phygail.swarm.world import LinkModel, Obstacle, World, draw, draw_normal

MANY = np.arange(100_000)


@pytest.mark.parametrize("k_db", [3.0, 10.0, 20.0])
def test_rician_calibration_is_what_it_says(k_db):
    """WO-3: P(heard) at d = R over 1e5 draws is 1 - outage within 3 sigma; at d -> 0 it is 1."""
    model = LinkModel("rician", k_db, 0.1)
    gains = power_gains(model, 5, 3, MANY, MANY + 1)
    heard = (gains >= threshold(model)).mean()
    assert abs(heard - 0.9) < 3 * math.sqrt(0.09 / 1e5)
    assert abs(gains.mean() - 1.0) < 0.01
    assert heard_probability(model, 1.0) == pytest.approx(0.9, abs=1e-9)
    assert heard_probability(model, 1e-6) == pytest.approx(1.0)


def test_rician_without_fading_is_a_disc():
    """WO-3: K -> inf gives the disc of range R sqrt(1 / theta), here R."""
    model = LinkModel("rician", 60.0, 0.1)
    assert threshold(model) == pytest.approx(1.0, abs=0.01)
    assert heard_probability(model, np.array([0.98, 1.02])) == pytest.approx([1.0, 0.0], abs=1e-6)


def test_calibration_says_what_the_table_of_the_plan_says():
    """K 10 dB: heard with .99 at 83 m, .5 at 166 m; 9 of 10 reaches 130 m, mean degree x 1.97 of the disc's."""
    line = calibration(LinkModel("rician"), Physics())
    assert "0.99 at 83 m" in line
    assert "0.5 at 165 m" in line
    assert "at 130 m" in line
    assert "mean degree 1.9" in line
    assert calibration(LinkModel(), Physics()) == ""


def test_shadowing_has_its_spread_and_its_correlation():
    model = LinkModel("rician", shadow_db=3.0, shadow_s=2.0)
    now, soon, late = (shadowing_db(model, 1, t, 0.1, MANY, MANY + 7) for t in (0, 5, 100))
    assert now.std() == pytest.approx(3.0, rel=0.02)
    assert np.corrcoef(now, soon)[0, 1] > 0.8
    assert abs(np.corrcoef(now, late)[0, 1]) < 0.02


def chain(pairs, steps, share=0.4, mean_s=2.0):
    """Outages of disjoint pairs 100 m apart over some steps: (steps, pairs) bool."""
    world = World(links=LinkModel(outage_share=share, outage_s=mean_s), seed=9)
    places = np.stack([np.repeat(np.arange(pairs) * 1000.0, 2), np.tile([0.0, 100.0], pairs)], axis=1)
    members, memory, out = np.arange(2 * pairs), None, []
    for t in range(steps):
        links, memory = listen(world, Physics(), places, members, None, t, memory)
        linked = np.zeros(pairs, dtype=bool)
        linked[links.pairs[:, 0] // 2] = True
        out.append(~linked)
    return np.array(out)


def test_outages_have_their_share_and_their_duration():
    """WO-4: stationary share 0.4 and mean duration 2 s within 3 sigma."""
    out = chain(400, 400)
    share = out.mean(axis=0)
    assert abs(share.mean() - 0.4) < 3 * share.std() / math.sqrt(400)
    ends, begins = (out[:-1] & ~out[1:]).sum(), (~out[:-1] & out[1:]).sum()
    duration = out.sum() / max(1, (ends + begins) / 2) * 0.1
    assert abs(duration - 2.0) < 0.15


def test_an_outage_does_not_depend_on_who_else_flies_nor_since_when_a_pair_is_watched():
    """WO-4 and WO-11: the same (i, j, step) has the same state for other rows, other members and other pasts."""
    world = World(links=LinkModel(outage_share=0.5, outage_s=1.0), seed=4)
    places = np.random.default_rng(1).uniform(0, 300, (30, 2))
    memory = None
    for t in range(40):
        links, memory = listen(world, Physics(), places, np.arange(30), None, t, memory)
    fresh, _ = listen(world, Physics(), places, np.arange(30), None, 39, None)
    assert np.array_equal(links.pairs, fresh.pairs)
    some = np.array([2, 3, 5, 8, 13, 21, 29])
    fewer, _ = listen(world, Physics(), places[some], some, None, 39, None)
    among = {(a, b) for a, b in links.pairs.tolist() if a in some and b in some}
    assert {(some[a], some[b]) for a, b in fewer.pairs.tolist()} == among
    assert isinstance(memory, Memory)
    assert LONG_AGO > 0


def test_links_of_a_disc_with_outages_are_a_subset_of_the_disc():
    world = World(links=LinkModel(outage_share=0.3), seed=2)
    places = np.random.default_rng(2).uniform(0, 400, (40, 2))
    plain, _ = listen(World(altitude=(0.0,) * 40), Physics(), places, np.arange(40), np.zeros(40), 0, None)
    out, _ = listen(world, Physics(), places, np.arange(40), None, 0, None)
    assert set(map(tuple, out.pairs.tolist())) < set(map(tuple, plain.pairs.tolist()))


def test_a_link_comes_up_at_nine_of_ten_and_goes_below_five():
    world = World(links=LinkModel("rician", 60.0, 0.1), seed=1)  # no fading to speak of: heard within R
    near, far = np.array([[0.0, 0.0], [100.0, 0.0]]), np.array([[0.0, 0.0], [150.0, 0.0]])
    memory, up = None, []
    for t in range(40):
        links, memory = listen(world, Physics(), near if t < 3 or t >= 20 else far, np.arange(2), None, t, memory)
        up.append(len(links.pairs))
    assert up[:3] == [1, 1, 1]
    assert up[3:9] == [1, 1, 1, 1, 1, 0]  # the sixth miss leaves 4 of 10
    assert up[19:29] == [0] * 9 + [1]  # nine hellos later


def test_altitude_counts_in_links():
    """WO-10: with dz = 72 two UAVs are not linked at dh = 96.1, linked at 96.0; with dz = 130 never, bound None."""
    for dh, linked in ((96.1, False), (96.0, True)):
        scenario = make_scenario("h", [[0, 0], [dh, 0], [50, 50]], [2], world=World(altitude=(0.0, 72.0, 0.0)))
        assert initial_state(scenario).links.connected is linked
    split = make_scenario(
        "h", [[0, 0], [180, 0], [50, 50]], [2], center=[90, 0], world=World(altitude=(0.0, 72.0, 0.0))
    )
    assert bound_for(split) == 42  # (180 - 96) / 2
    assert run_episode(split, "sidr").steps == 42
    never = make_scenario("h", [[0, 0], [180, 0], [50, 50]], [2], world=World(altitude=(0.0, 130.0, 0.0)))
    assert bound_for(never) is None
    assert not run_episode(never, "center-fly").terminated


def test_who_levels_meets_earlier():
    world = World(altitude=(0.0, 100.0, 0.0), level=True)
    scenario = make_scenario("h", [[0, 0], [180, 0], [50, 50]], [2], world=world)
    episode = run_episode(scenario, "sidr", record=True)
    assert bound_for(scenario) == 30
    assert 30 <= episode.steps < run_episode(in_world(make_scenario("h", [[0, 0], [180, 0], [50, 50]], [2]),
                                                       World(altitude=(0.0, 100.0, 0.0))), "sidr").steps  # fmt: skip
    heights = episode.states[-1].flight.heights
    assert heights[0] == pytest.approx(min(0.3 * episode.steps, 100 / 3))
    assert heights[2] == 0.0  # the damaged stays


def test_a_wall_that_blocks_radio_splits_who_stands_on_its_sides():
    dark = Obstacle(((50.0, -100.0), (50.0, 100.0)), 5.0, radio=False)
    glass = Obstacle(dark.corners, 5.0)
    for obstacle, linked in ((dark, False), (glass, True)):
        scenario = make_scenario("w", [[0, 0], [100, 0]], center=[0.0, 300.0], world=World(obstacles=(obstacle,)))
        assert initial_state(scenario).links.connected is linked


def test_a_wall_that_blocks_radio_does_so_beside_one_that_does_not():
    dark = Obstacle(((50.0, -100.0), (50.0, 100.0)), 5.0, radio=False)
    glass = Obstacle(((500.0, -100.0), (500.0, 100.0)), 5.0)
    scenario = make_scenario("w", [[0, 0], [100, 0]], center=[0.0, 300.0], world=World(obstacles=(dark, glass)))
    assert not initial_state(scenario).links.connected


def test_rates_of_outages_by_hand():
    """q = 0.1 s / 2 s, p = q 0.4 / 0.6; where p + q = 1 + 2 / 3 a step is out with its share, whatever was before."""
    assert outage_rates(LinkModel(outage_share=0.4, outage_s=2.0), 0.1) == pytest.approx((1 / 30, 1 / 20))
    assert outage_rates(LinkModel(outage_share=0.4, outage_s=0.1), 0.1) == pytest.approx((0.4, 0.6))


def test_shadowing_goes_from_knot_to_knot():
    """1.5 correlation times apart, each pair with a phase of its own; between two knots the variance stays the same."""
    model = LinkModel("rician", shadow_db=3.0, shadow_s=2.0)
    for step in (0, 7, 12):
        clock = (2**20 + step) * 0.1 / 3.0 + float(draw(1, "shadow phase", 0, 3, 8))
        knot = math.floor(clock)
        first, second = (float(draw_normal(1, "shadow", knot + k, 3, 8)) for k in (0, 1))
        there = clock - knot
        expected = 3.0 * ((1 - there) * first + there * second) / math.hypot(1 - there, there)
        found = shadowing_db(model, 1, step, 0.1, np.array([3]), np.array([8]))
        assert found == pytest.approx([expected], abs=1e-6)


@pytest.mark.parametrize(("i", "j"), [(0, 1), (2, 3), (4, 5), (6, 7)])
def test_the_deafer_end_decides_how_far_a_link_reaches(i, j):
    """Without fading to speak of a loss of x dB shortens the radio range by 10^(x / 20)."""
    model = LinkModel("rician", 60.0, 0.1, asymmetry_db=4.0)
    deafer_db = 4.0 * max(float(draw_normal(5, "deaf", 0, end)) for end in (i, j))
    reach_m = 120.0 * 10.0 ** (-deafer_db / 20.0) / math.sqrt(threshold(model))
    for share, linked in ((0.98, 1), (1.02, 0)):
        places = np.array([[0.0, 0.0], [share * reach_m, 0.0]])
        links, _ = listen(World(links=model, seed=5), Physics(), places, np.array([i, j]), None, 0, None)
        assert len(links.pairs) == linked


def test_a_link_without_a_least_number_of_hellos_goes_when_none_is_left():
    world = World(links=LinkModel("rician", 60.0, 0.1, drop=0), seed=1)
    memory, up = None, []
    for t in range(12):
        places = np.array([[0.0, 0.0], [100.0 if t < 1 else 150.0, 0.0]])
        links, memory = listen(world, Physics(), places, np.arange(2), None, t, memory)
        up.append(len(links.pairs))
    assert up == [1] * 10 + [0, 0]  # the tenth miss leaves none
