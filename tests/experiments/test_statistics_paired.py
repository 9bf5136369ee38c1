"""experiments.statistics: two methods on the same cases, worked by hand and against resampling."""

from __future__ import annotations

import math

import numpy as np
import polars as pl
import pytest

from phygail.experiments.rows import COLUMNS, rows_table
from phygail.experiments.statistics import NORMAL_95, compare_paired, paired_ratio, world_means
from phygail.render.tables import interval_text


def test_a_method_that_always_needs_half_is_sure_to_need_half():
    theirs = np.array([10.0, 30.0, 200.0, 400.0])
    assert paired_ratio(theirs / 2, theirs, np.array([0, 0, 1, 1])) == pytest.approx((0.5, 0.5, 0.5))


def test_limits_worked_by_hand():
    """Ratio 1; residuals 1, -1, 4, -4 about settings' means of 0, each with n / (n - 1) = 2."""
    mine, theirs = np.array([11.0, 9.0, 104.0, 96.0]), np.array([10.0, 10.0, 100.0, 100.0])
    ratio, low, high = paired_ratio(mine, theirs, np.array([0, 0, 1, 1]))
    error = NORMAL_95 * math.sqrt(2 * (1 + 1 + 16 + 16)) / 220
    assert (ratio, low, high) == pytest.approx((1.0, 1 - error, 1 + error))


def test_unlike_settings_make_nothing_less_sure():
    mine, theirs = np.array([10.0, 10.0, 50.0, 50.0]), np.array([20.0, 20.0, 50.0, 50.0])
    ratio, low, high = paired_ratio(mine, theirs, np.array([0, 0, 1, 1]))
    assert ratio == low == high == pytest.approx(120 / 140)


def test_a_single_case_of_a_setting_has_no_limits():
    _, low, high = paired_ratio(np.ones(3), np.ones(3), np.array([0, 0, 1]))
    assert math.isnan(low)
    assert math.isnan(high)


def test_the_interval_is_that_of_resampling_within_settings():
    rng = np.random.default_rng(5)
    settings = np.repeat(np.arange(6), 20)
    theirs = rng.gamma(4.0, 10.0, 120) * (1 + settings)
    mine = theirs * rng.uniform(0.6, 1.2, 120)
    _, low, high = paired_ratio(mine, theirs, settings)
    picks = settings[None] * 20 + rng.integers(0, 20, (4000, 120))
    ratios = mine[picks].sum(axis=1) / theirs[picks].sum(axis=1)
    assert (low, high) == pytest.approx(tuple(np.quantile(ratios, [0.025, 0.975])), abs=0.006)


def test_only_cases_that_both_flew_count():
    def row(case: int, method: str, steps: int) -> dict:
        empty = dict.fromkeys(COLUMNS) | {
            "flag": "",
            "variant": "",
            "safety": "on",
            "version": "0",
            "contact_rate_capped": 0.0,
        }
        return empty | {
            "scenario": f"n0100-d0.500-c{case:03d}-s0", "method": method, "steps": steps, "uavs": 100, "damaged": 50,
            "subnets": 2, "converged": 1, "contact_rate_capped": 0.0, "time_s": steps / 10, "bound_steps": 1,
        }  # fmt: skip

    rows = [row(k, "reach", 50) for k in range(3)] + [row(k, "sidr", 100) for k in range(2)]
    (ratio, low, high), count = compare_paired(rows_table(rows), "reach", "sidr")
    assert (ratio, low, high, count) == (0.5, 0.5, 0.5, 2)
    assert compare_paired(rows_table(rows), "reach", "hero")[1] == 0


def test_the_factor_of_a_world_to_the_plain_one_has_the_interval_of_a_paired_ratio():
    """Split for (10, 30) steps in the plain world, (20, 80) in another: 100 / 40; a case of one world is left out."""
    flown = [("a", "", 10), ("b", "", 30), ("a", "walls", 20), ("b", "walls", 80), ("c", "walls", 500)]
    rows = pl.DataFrame(
        [
            {
                "scenario": case, "world": world, "method": "sidr", "uavs": 20, "damaged": 5, "converged": 1,
                "steps": steps, "split_steps": None if world == "" else steps, "resplits": None, "first_step": None,
                "largest_share": 0.5, "contact_events_per_uav": 0.0,
            }
            for case, world, steps in flown
        ],
        schema_overrides={"split_steps": pl.Int64, "resplits": pl.Int64, "first_step": pl.Int64},
    )  # fmt: skip
    plain, walls = world_means(rows).iter_rows(named=True)
    assert (plain["factor"], plain["factor_low"], plain["factor_high"]) == (1.0, 1.0, 1.0)
    expected = paired_ratio(np.array([20.0, 80.0]), np.array([10.0, 30.0]), np.array(["s", "s"]))
    assert (walls["factor"], walls["factor_low"], walls["factor_high"]) == pytest.approx(expected)
    assert (walls["factor"], walls["cases"]) == (2.5, 3)
    assert interval_text(2.5, 1.0, 4.0) == "2.50 (1.00 to 4.00)"
    assert interval_text(1.0, 1.0, 1.0) == "1.00"
