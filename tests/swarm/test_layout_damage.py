import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from phygail.config import InputError
from phygail.swarm.layout import checked_damage, damage_count, random_damage, strike_damage


@pytest.mark.parametrize(
    ("uavs", "ratio", "expected"),
    [
        (20, 0.05, 1), (20, 0.5, 10), (20, 0.9, 18), (20, 0.95, 18), (20, 1.0, 18),
        (50, 0.15, 8), (50, 0.05, 3), (50, 0.35, 18), (50, 0.95, 48), (50, 0.45, 23),  # 7.5, 2.5, 17.5, 47.5, 22.5
        (100, 0.95, 95), (200, 0.05, 10), (500, 0.95, 475), (10, 0.04, 0), (2, 1.0, 0), (3, 0.5, 1), (100, 0.0, 0),
    ],
)  # fmt: skip
def test_damage_is_rounded_half_up_and_leaves_two(uavs, ratio, expected):
    assert damage_count(uavs, ratio) == expected


def test_every_ratio_of_the_paper_is_rounded_half_up_despite_binary_fractions():
    for uavs in (20, 50, 100, 200, 500):
        for percent in range(5, 96, 5):
            expected = min((uavs * percent * 2 + 100) // 200, uavs - 2)
            assert damage_count(uavs, percent / 100) == expected
            assert damage_count(uavs, 0.05 * (percent // 5)) == expected  # as a range 0.05:0.95:0.05 computes it


@pytest.mark.parametrize("ratio", [-0.1, 1.1, float("nan"), float("inf")])
def test_a_ratio_outside_0_to_1_is_refused(ratio):
    with pytest.raises(InputError, match=f"damage ratio {ratio}: choose from 0 to 1"):
        damage_count(100, ratio)


@pytest.mark.parametrize("uavs", [-3, 0, 1])
def test_a_swarm_below_two_is_refused(uavs):
    with pytest.raises(InputError, match="at least 2"):
        random_damage(uavs, 0.5, np.random.default_rng(0))


@given(st.integers(2, 300), st.floats(0, 1), st.integers(0, 1000))
def test_random_damage_is_a_sorted_set_that_leaves_two(uavs, ratio, seed):
    damaged = random_damage(uavs, ratio, np.random.default_rng(seed))
    assert len(damaged) == damage_count(uavs, ratio) <= uavs - 2
    assert np.array_equal(damaged, np.unique(damaged))
    assert np.array_equal(checked_damage(uavs, damaged), damaged)


def test_random_damage_is_uniform():
    hits = np.zeros(10)
    rng = np.random.default_rng(0)
    for _ in range(4000):
        hits[random_damage(10, 0.3, rng)] += 1
    assert np.abs(hits - 1200).max() < 5 * np.sqrt(4000 * 0.3 * 0.7)


def test_a_strike_takes_everyone_within_its_radius_inclusive():
    layout = np.array([[0.0, 0.0], [3.0, 4.0], [3.0, 4.1], [50.0, 50.0], [60.0, 0.0]])
    assert strike_damage(layout, 0.0, 0.0, 5.0).tolist() == [0, 1]
    assert strike_damage(layout, -9.0, 0.0, 0.0).tolist() == []
    with pytest.raises(InputError, match="at least 2 must stay alive"):
        strike_damage(layout, 0.0, 0.0, 1000.0)
    for bad in ((float("nan"), 0.0, 1.0), (0.0, float("inf"), 1.0), (0.0, 0.0, -1.0)):
        with pytest.raises(InputError, match="give X,Y,RADIUS in meters"):
            strike_damage(layout, *bad)


@pytest.mark.parametrize(
    ("damaged", "message"),
    [
        ([5], "damaged UAV 5 is out of range: the swarm has UAVs 0 to 4"),
        ([-1], "damaged UAV -1 is out of range"),
        ([10**5000], "is out of range"),
        ([1, 1], "a damaged UAV is listed twice"),
        ([0, 1, 2, 3], "4 of 5 UAVs damaged: at least 2 must stay alive"),
        ([True], "damaged UAV True: give whole numbers from 0 to 4"),
        ([1.0], "damaged UAV 1.0: give whole numbers"),
        (["1"], "damaged UAV '1': give whole numbers"),
        ([None], "damaged UAV None: give whole numbers"),
        ([[1]], r"damaged UAV \[1\]: give whole numbers"),
    ],
)
def test_a_damaged_list_is_checked_entry_by_entry(damaged, message):
    with pytest.raises(InputError, match=message) as caught:
        checked_damage(5, damaged)
    assert len(str(caught.value)) < 150


def test_a_damaged_list_is_sorted():
    assert checked_damage(5, [3, np.int64(0)]).tolist() == [0, 3]
    assert checked_damage(5, []).tolist() == []
