"""experiments.figures: equal methods stand beside each other, and text is legible where a README shows it."""

from __future__ import annotations

import numpy as np
import polars as pl

from phygail.experiments.catalog import EXPERIMENTS
from phygail.experiments.figures import SPREAD, SPREAD_OF_LEVELS, curves_figure, over_bound_figure, sensing_figure
from phygail.experiments.statistics import Evidence, split_cases

PIXELS = 800  # width of a README
LEAST_PIXELS = 7.5  # height of the smallest text there


def rows(methods: tuple[str, ...], sizes: tuple[int, ...] = (100,)) -> pl.DataFrame:
    """Methods that do the very same on every case."""
    return pl.DataFrame([
        {
            "scenario": f"n{uavs:04d}-d0.{lost}00-c00{case}-s0", "method": method, "uavs": uavs,
            "damaged": lost * uavs // 10, "subnets": 3, "converged": 1, "steps": 40 + case,
            "time_s": 4.0 + case / 10, "bound_steps": 20,
            "contact_events_per_uav": 0.0, "contact_rate_capped": 0.0, "variant": "", "safety": "off",
        }
        for method in methods for uavs in sizes for lost in (3, 5) for case in range(3)
    ])  # fmt: skip


def test_lines_of_equal_methods_do_not_hide_each_other():
    for figure in (curves_figure(rows(("reach", "sidr", "hero"))), over_bound_figure(rows(("reach", "sidr", "hero")))):
        for axes in figure.axes:
            x = sorted(float(np.asarray(line.get_xdata())[0]) for line in axes.lines if len(line.get_xdata()) == 2)
            shown = [value for value in x if 27 < value < 33 and value != 30.0] + [30.0] * (30.0 in x)
            assert len({round(value, 3) for value in shown}) >= 3
            assert max(shown) - min(shown) <= SPREAD + 1e-9


def test_text_of_three_sizes_is_legible_at_readme_width():
    figure = curves_figure(rows(("reach", "sidr"), (100, 200, 500)))
    per_point = PIXELS / figure.get_size_inches()[0] / 72
    sizes = [label.get_fontsize() for axes in figure.axes for label in axes.get_xticklabels()]
    assert min(sizes) * per_point >= LEAST_PIXELS


def test_methods_that_lose_nothing_by_noise_stand_beside_each_other(tmp_path):
    flown = pl.concat([rows(("reach", "sidr")).with_columns(noise_m=pl.lit(m), delay_steps=0) for m in (0.0, 10.0)])
    shown = Evidence(EXPERIMENTS.get("noise"), split_cases(flown), (), (), "", tmp_path)
    for axes in sensing_figure(shown).axes:
        first, second = (np.asarray(line.get_xdata()) for line in axes.lines)
        assert np.allclose(second - first, SPREAD_OF_LEVELS * 10.0)
