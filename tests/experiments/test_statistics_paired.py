"""experiments.statistics: two methods on the same cases, worked by hand and against resampling."""

from __future__ import annotations

import math

import numpy as np
import pytest

from phygail.experiments.rows import COLUMNS, rows_table
from phygail.experiments.statistics import NORMAL_95, compare_paired, paired_ratio


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
