import re
import time

import numpy as np
import pytest
from scipy.spatial.distance import pdist

from phygail.config import InputError, Physics
from phygail.swarm.layout import _move_strays, check_size, draw_layout, width_for
from phygail.swarm.links import find_links, near_pairs


@pytest.mark.parametrize("uavs", [2, 3, 4, 7, 19, 20, 21, 50, 99, 200, 500, 2000, 10_000])
def test_a_layout_is_apart_connected_and_inside_the_map(uavs):
    layout = draw_layout(uavs, np.random.default_rng(uavs))
    assert layout.shape == (uavs, 2)
    assert layout.min() >= 0
    assert layout.max() <= width_for(uavs)
    assert find_links(layout, 120.0).connected
    assert not (near_pairs(layout, 10.0)[1] < 10.0).any()


def test_distances_of_a_layout_by_brute_force():
    for seed in range(20):
        assert pdist(draw_layout(60, np.random.default_rng(seed))).min() >= 10.0


def test_the_largest_swarm_is_drawn_in_seconds():
    started = time.process_time()
    draw_layout(10_000, np.random.default_rng(5))
    assert time.process_time() - started < 10


def test_widths_are_those_of_the_paper_and_keep_its_density_between():
    assert [width_for(n) for n in (20, 50, 100, 200, 500)] == [320.0, 500.0, 750.0, 1000.0, 1600.0]
    assert width_for(5) == pytest.approx(160.0)  # 320 sqrt(5/20)
    assert width_for(80) == pytest.approx(500 * np.sqrt(80 / 50))
    assert width_for(2000) == pytest.approx(3200.0)  # 1600 sqrt(4)


@pytest.mark.parametrize(("uavs", "width"), [(2, 3.0), (20, 30.0), (100, 60.0), (2000, 500.0), (10_000, 10.0)])
def test_a_swarm_that_does_not_fit_is_refused_in_seconds(uavs, width):
    started = time.process_time()
    with pytest.raises(InputError, match=rf"{uavs} UAVs do not fit 10 m apart into a map {width:g} m wide: use fewer"):
        draw_layout(uavs, np.random.default_rng(0), width)
    assert time.process_time() - started < 10


@pytest.mark.parametrize("width", [12.0, 25.0])
def test_a_tight_map_that_fits_is_filled(width):
    fits = {12.0: 2, 25.0: 4}[width]
    assert pdist(draw_layout(fits, np.random.default_rng(0), width)).min() >= 10.0


@pytest.mark.parametrize(("uavs", "width"), [(2, 1e6), (20, 5000.0), (500, 1e7), (10_000, 1e6)])
def test_a_map_too_wide_for_one_network_is_refused_in_seconds(uavs, width):
    started = time.process_time()
    with pytest.raises(InputError, match=r"stay split on a map .* wide: use more UAVs"):
        draw_layout(uavs, np.random.default_rng(0), width)
    assert time.process_time() - started < 10


@pytest.mark.parametrize("physics", [Physics(range_m=9.0), Physics(contact_m=120.0), Physics(contact_m=1e7)])
def test_a_radio_below_the_contact_distance_never_makes_a_network(physics):
    words = f"contact distance of {physics.contact_m:g} m have no links with a radio range of {physics.range_m:g} m"
    with pytest.raises(InputError, match=re.escape(words)):
        draw_layout(20, np.random.default_rng(0), physics=physics)


def test_the_map_grows_with_the_radio_range_up_to_the_largest_coordinates():
    """200 UAVs: 1000 m at 120 m, 2500 m at 300 m, 250 m at 30 m."""
    assert [width_for(200, reach) for reach in (120.0, 240.0, 300.0, 30.0)] == [1000.0, 2000.0, 2500.0, 250.0]
    with pytest.raises(InputError, match=r"range of 1e\+07 m: the map of 20 UAVs would be 2.66667e\+07 m wide"):
        width_for(20, 1e7)


@pytest.mark.parametrize("factor", [0.5, 2.0, 8.0])
def test_a_layout_for_a_scaled_radio_and_contact_distance_is_the_scaled_layout(factor):
    """Powers of two: every product is exact, so the draws are equal to the last bit."""
    scaled = Physics(range_m=120.0 * factor, contact_m=10.0 * factor)
    for uavs in (2, 20, 100, 3000):
        layout = draw_layout(uavs, np.random.default_rng(uavs))
        assert np.array_equal(draw_layout(uavs, np.random.default_rng(uavs), physics=scaled), factor * layout)


def test_the_contact_distance_decides_how_far_apart_uavs_stand():
    near, far = (
        np.vstack([pdist(draw_layout(100, np.random.default_rng(s), physics=Physics(contact_m=d))) for s in range(10)])
        for d in (1.0, 25.0)
    )
    assert 1.0 <= near.min() < 10.0
    assert far.min() >= 25.0


def test_a_short_radio_with_a_long_contact_distance_is_refused_with_a_remedy():
    """200 UAVs with a 12 m radio: a map of 100 m, on which no 200 UAVs stand 10 m apart; 1 m is no problem."""
    with pytest.raises(InputError, match=r"200 UAVs do not fit 10 m apart .* 100 m wide: .* shorter contact distance"):
        draw_layout(200, np.random.default_rng(0), physics=Physics(range_m=12.0))
    layout = draw_layout(200, np.random.default_rng(0), physics=Physics(range_m=12.0, contact_m=1.0))
    assert find_links(layout, 12.0).connected


def test_the_radio_range_decides_what_is_connected():
    short = Physics(range_m=60.0)
    assert find_links(draw_layout(100, np.random.default_rng(0), 300.0, short), 60.0).connected


@pytest.mark.parametrize("uavs", [-1, 0, 1, 10_001])
def test_swarm_sizes_are_bounded(uavs):
    with pytest.raises(InputError, match=f"a swarm of {uavs} UAVs: choose from 2 to 10,000"):
        check_size(uavs)
    with pytest.raises(InputError):
        draw_layout(uavs, np.random.default_rng(0))


@pytest.mark.parametrize("width", [0.0, -5.0, float("nan"), float("inf"), 1e300])
def test_a_width_is_bounded(width):
    with pytest.raises(InputError, match=r"width .*: choose from 1e-06 to 1e\+07"):
        draw_layout(20, np.random.default_rng(0), width)


def test_equal_seeds_draw_equal_layouts_and_other_seeds_others():
    a, b, c = (draw_layout(3000, np.random.default_rng(seed)) for seed in (4, 4, 5))
    assert np.array_equal(a, b)
    assert not np.array_equal(a, c)


def test_layouts_are_uniform():
    """A quarter of the UAVs stands in each quarter of the map, within five standard deviations of 8,000 draws."""
    points = np.vstack([draw_layout(100, np.random.default_rng(s)) for s in range(80)]) > 375.0
    quarters = np.bincount(points[:, 0] * 2 + points[:, 1], minlength=4)
    assert np.abs(quarters - 2000).max() < 5 * np.sqrt(8000 * 0.25 * 0.75)


def test_two_uavs_that_fit_only_across_the_map_are_placed():
    """9 m wide, 12.7 m across. The first stays where it is drawn, which must be near a corner: it is for this seed."""
    assert pdist(draw_layout(2, np.random.default_rng(3), 9.0)).min() >= 10.0


def clusters(*sizes):
    """Rows of UAVs 20 m apart, the rows 1 km apart."""
    return np.array([[20.0 * k, 1000.0 * row] for row, size in enumerate(sizes) for k in range(size)])


def test_strays_gather_around_half_of_the_swarm_and_not_around_less():
    """10 UAVs: a largest subnet of five grows by redrawing the others, one of four is refused."""
    rng = np.random.default_rng(0)
    grown = _move_strays(clusters(5, 3, 2), 200.0, Physics(), rng)
    assert find_links(grown, 120.0).connected
    assert np.array_equal(grown[:5], clusters(5))  # those who were one network stay
    with pytest.raises(InputError, match="stay split"):
        _move_strays(clusters(4, 3, 3), 200.0, Physics(), rng)
    grown = _move_strays(clusters(2, 5, 3) - [0.0, 1000.0], 200.0, Physics(), rng)  # the second row is the largest
    assert np.array_equal(grown[:5], clusters(5))


def draws(monkeypatch, uavs, width):
    """How often whole layouts and layouts with strays are drawn where nothing ever connects."""
    sizes = []

    def spread(fixed, uavs, width, physics, rng):
        sizes.append(len(fixed))
        return clusters(uavs - 1, 1)

    monkeypatch.setattr("phygail.swarm.layout._spread", spread)
    with pytest.raises(InputError, match="stay split"):
        draw_layout(uavs, np.random.default_rng(0), width)
    return sizes.count(0), len(sizes) - sizes.count(0)


@pytest.mark.parametrize(("uavs", "whole"), [(20, 200), (500, 200), (1000, 100), (10_000, 10)])
def test_whole_layouts_are_redrawn_before_strays_are_moved(monkeypatch, uavs, whole):
    """min(200, 100,000 / N) fresh layouts, then 400 rounds of moving strays."""
    monkeypatch.setattr("phygail.swarm.layout.STRAY_REDRAWS", 7)
    assert draws(monkeypatch, uavs, 1e6) == (whole, 7)


def test_strays_are_moved_400_times(monkeypatch):
    assert draws(monkeypatch, 20, 1e6) == (200, 400)
