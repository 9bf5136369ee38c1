"""experiments.figures: equal methods stand beside each other, and text is legible where a README shows it."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from phygail.experiments.catalog import EXPERIMENTS
from phygail.experiments.figures import (
    SPREAD,
    SPREAD_OF_LEVELS,
    curves_figure,
    over_bound_figure,
    sensing_figure,
    worlds_figure,
)
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


@pytest.mark.parametrize("sizes", [(100, 200, 500), (20, 50, 100, 200, 500), (8, 20, 24, 40, 48, 50, 100, 200, 500)])
@pytest.mark.parametrize("figure_of", [curves_figure, over_bound_figure])
def test_text_is_legible_at_readme_width_however_many_sizes_there_are(figure_of, sizes):
    figure = figure_of(rows(("reach", "sidr"), sizes))
    per_point = PIXELS / figure.get_size_inches()[0] / 72
    shown = [label.get_fontsize() for axes in figure.axes for label in axes.get_xticklabels()]
    assert min(shown) * per_point >= LEAST_PIXELS


def test_five_sizes_stand_in_two_rows_of_three_and_two():
    figure = over_bound_figure(rows(("reach", "sidr"), (20, 50, 100, 200, 500)))
    places = [axes.get_position() for axes in figure.axes]
    assert [axes.get_title(loc="left") for axes in figure.axes] == [f"N = {n}" for n in (20, 50, 100, 200, 500)]
    assert np.allclose([place.x0 for place in places[3:]], [place.x0 for place in places[:2]])
    assert places[0].y0 == places[2].y0 > places[3].y1  # no panel reaches into another
    assert [bool(axes.get_ylabel()) for axes in figure.axes] == [True, False, False, True, False]


def test_who_never_fails_is_counted_and_their_marks_take_turns():
    """Of three methods at every rate 1.0 each has the mark of every third damage ratio; the one that fails has all."""
    names = ("reach", "sidr", "convex", "hero")
    one = rows(names).filter(pl.col("damaged") == 30)
    ratios = [one.with_columns(damaged=lost, scenario=f"{lost}-" + pl.col("scenario")) for lost in range(10, 70, 10)]
    flown = pl.concat(ratios).with_columns(converged=pl.when(pl.col("method") == "hero").then(0).otherwise(1))
    rate = curves_figure(flown).axes[0]
    assert rate.get_title(loc="right") == "3 of 4 never fail"
    turns = [line.get_markevery() for line in rate.lines if np.min(np.asarray(line.get_ydata())) == 1.0]
    assert turns == [(0, 3), (1, 3), (2, 3)]
    assert [line.get_markevery() for line in rate.lines if np.max(np.asarray(line.get_ydata())) == 0.0] == [None]
    contacts = curves_figure(flown).axes[2]  # nobody has any
    assert [line.get_markevery() for line in contacts.lines] == [(0, 4), (1, 4), (2, 4), (3, 4)]
    assert curves_figure(rows(names)).axes[0].get_title(loc="right") == "nobody fails"


def test_marks_of_methods_that_are_equal_in_a_world_do_not_touch(tmp_path):
    names = ("reach-evolved", "phygail", "phygail-plus", "phygail-taught", "convex", "reach", "sidr", "center-fly")
    flown = pl.concat([
        rows(names).with_columns(world=pl.lit(world), split_steps="steps", resplits=0, first_step="steps",
                                 largest_share=pl.lit(0.5), leg=pl.lit("a"))
        for world in ("", "waves=3:40:150")
    ])  # fmt: skip
    shown = Evidence(EXPERIMENTS.get("waves"), split_cases(flown), (), (), "", tmp_path)
    figure = worlds_figure(shown)
    figure.canvas.draw()
    for axes in figure.axes:
        ends = [axes.transData.transform((0.5, np.asarray(line.get_ydata())[0]))[1] for line in axes.lines]
        apart = np.diff(np.sort(ends)) / figure.dpi * 72  # points
        assert apart.min() >= 0.75 * axes.lines[0].get_markersize()


def test_methods_that_lose_nothing_by_noise_stand_beside_each_other(tmp_path):
    flown = pl.concat([rows(("reach", "sidr")).with_columns(noise_m=pl.lit(m), delay_steps=0) for m in (0.0, 10.0)])
    shown = Evidence(EXPERIMENTS.get("noise"), split_cases(flown), (), (), "", tmp_path)
    for axes in sensing_figure(shown).axes:
        first, second = (np.asarray(line.get_xdata()) for line in axes.lines)
        assert np.allclose(second - first, SPREAD_OF_LEVELS * 10.0)
