import math

import numpy as np
import polars as pl
import pytest
from PIL import Image

from phygail.config import InputError
from phygail.experiments.figures import SPREAD, curves_figure, draw_curves, draw_over_bound, over_bound_figure
from phygail.experiments.statistics import log_mean_interval, mean_interval, ratio_interval, share_interval
from phygail.render.style import METHOD_STYLES


def row(scenario: str, method: str, steps: int, **other: object) -> dict[str, object]:
    return {
        "scenario": scenario, "method": method, "uavs": 100, "damaged": 50, "subnets": 3, "converged": 1,
        "steps": steps, "time_s": steps * 0.1, "bound_steps": 10, "contact_events_per_uav": 0.5,
        "contact_rate_capped": 0.0,
    } | other  # fmt: skip


def two_sizes() -> pl.DataFrame:
    rows = []
    for uavs in (20, 100):
        for k, damaged in enumerate((5, 10)):
            for method, factor in (("sidr", 3), ("reach", 2)):
                case = f"{uavs}-{damaged}"
                rows += [
                    row(f"{case}-a", method, 10 * factor * (k + 1), uavs=uavs, damaged=damaged),
                    row(f"{case}-b", method, 30 * factor * (k + 1), uavs=uavs, damaged=damaged, bound_steps=20),
                ]
    return pl.DataFrame(rows)


def test_mean_interval_is_1_96_standard_errors():
    mean, low, high = mean_interval(np.array([4.0, 5.0, 6.0]))
    assert (mean, low, high) == pytest.approx((5.0, 5.0 - 1.96 / math.sqrt(3), 5.0 + 1.96 / math.sqrt(3)), abs=1e-4)
    assert mean_interval(np.array([0.0, 0.0, 3.0]))[1] == 0.0
    assert np.isnan(mean_interval(np.array([4.0]))[1:]).all()


def test_share_interval_is_wilsons():
    """50 of 50: from n / (n + z^2) to 1; 5 of 10: 0.5 +- 0.2634 (Wilson 1927)."""
    assert share_interval(np.ones(50)) == pytest.approx((1.0, 50 / (50 + 1.96**2), 1.0), abs=1e-4)
    assert share_interval(np.array([0.0, 1.0] * 5)) == pytest.approx((0.5, 0.2366, 0.7634), abs=1e-4)
    assert np.isnan(share_interval(np.array([1.0]))[1:]).all()


def test_ratio_interval_is_sum_over_sum_with_the_error_of_the_residuals():
    """Residuals of (10, 30) at ratio 2 over bounds (10, 10): -10 and 10, standard error 10, over the mean bound 1."""
    assert ratio_interval(np.array([20, 40]), np.array([10, 20])) == pytest.approx((2.0, 2.0, 2.0))
    assert ratio_interval(np.array([10, 30]), np.array([10, 10])) == pytest.approx((2.0, 1.0, 3.96), abs=1e-4)
    assert np.isnan(ratio_interval(np.array([10]), np.array([10]))[1:]).all()


def test_ratio_interval_agrees_with_resampling():
    rng = np.random.default_rng(3)
    bounds = rng.integers(5, 50, 200)
    steps = (bounds * rng.uniform(1, 4, 200)).astype(int)
    picks = rng.integers(0, 200, (4000, 200))
    resampled = np.percentile(steps[picks].sum(axis=1) / bounds[picks].sum(axis=1), [2.5, 97.5])
    assert ratio_interval(steps, bounds)[1:] == pytest.approx(resampled, abs=0.02)


def test_curves_have_three_panels_per_size_and_hand_worked_means():
    figure = curves_figure(two_sizes())
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["N = 20", "", "", "N = 100", "", ""]
    times = {line.get_color(): line for line in figure.axes[1].lines}
    sidr = times[METHOD_STYLES["sidr"].color]
    assert list(sidr.get_xdata()) == pytest.approx([25.0 + SPREAD / 2, 50.0 + SPREAD / 2])  # beside reach
    assert list(sidr.get_ydata()) == pytest.approx([6.0, 12.0])  # (30 + 90) / 2 steps of 0.1 s, then twice that
    dashed = [line for line in figure.axes[1].lines if line.get_linestyle() == "--"]
    assert len(dashed) == 1
    assert list(dashed[0].get_ydata()) == pytest.approx([1.5, 1.5])
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["reach", "sidr", "lower bound"]


def test_who_never_fails_has_no_band_of_its_rate():
    """Both methods reconnect always; their times differ. One failure brings the band back."""
    rate, time, _ = curves_figure(two_sizes()).axes[:3]
    assert [len(rate.collections), len(time.collections)] == [0, 2]
    assert len(rate.lines) == 2
    fails = pl.col("method") == "sidr"
    once = two_sizes().with_columns(converged=pl.when(fails).then(0).otherwise(pl.col("converged")))
    assert len(curves_figure(once).axes[0].collections) == 1


def test_the_interval_of_a_mean_on_a_log_axis_stays_above_zero():
    """(1, 3): mean 2, standard error 1, so 1.96 / 2 of it either way in logarithms."""
    assert log_mean_interval(np.array([1.0, 3.0])) == pytest.approx((2.0, 2 / np.exp(0.98), 2 * np.exp(0.98)), rel=1e-4)
    assert log_mean_interval(np.zeros(3)) == (0.0, 0.0, 0.0)
    assert np.isnan(log_mean_interval(np.array([1.0]))[1:]).all()


def test_a_single_case_per_setting_has_lines_without_bands():
    one = two_sizes().filter(pl.col("scenario").str.ends_with("-a"))
    time = curves_figure(one).axes[1]
    assert len(time.lines) == 3  # two methods and the bound
    assert not any(band.get_paths() for band in time.collections)


def test_nominal_damage_of_drawn_scenarios_stands_on_the_axis():
    """13 of 50 damaged is the cell 0.25 of the grid."""
    rows = pl.DataFrame([row("n0050-d0.250-c000-s0", "sidr", 30, uavs=50, damaged=13)])
    line = curves_figure(rows).axes[0].lines[0]
    assert list(line.get_xdata()) == [25.0]


def test_failures_lower_the_rate_and_enter_with_the_budget():
    rows = pl.DataFrame([row("a", "sidr", 20), row("b", "sidr", 600, converged=0)])
    rate, time, _ = curves_figure(rows).axes
    assert list(rate.lines[0].get_ydata()) == [0.5]
    assert list(time.lines[-1].get_ydata()) == pytest.approx([31.0])


def test_a_method_that_raised_still_counts_as_not_converged():
    failed = row("b", "sidr", 600, converged=0, contact_events_per_uav=None, contact_rate_capped=None)
    rate, _, contacts = curves_figure(pl.DataFrame([row("a", "sidr", 20), failed])).axes
    assert list(rate.lines[0].get_ydata()) == [0.5]
    assert list(contacts.lines[0].get_ydata()) == [0.5]


def test_over_bound_is_sum_over_sum_on_a_log_axis():
    figure = over_bound_figure(two_sizes())
    assert len(figure.axes) == 2
    assert {axes.get_yscale() for axes in figure.axes} == {"log"}
    lines = {line.get_color(): line for line in figure.axes[0].lines}
    assert list(lines[METHOD_STYLES["reach"].color].get_ydata()) == pytest.approx([80 / 30, 160 / 30])


def test_variants_and_safety_are_lines_of_their_own_where_they_are_mixed():
    rows = pl.DataFrame(
        [
            row("a", "phygail", 20, variant="", safety="off"),
            row("a", "phygail", 30, variant="mine.onnx", safety="off"),
            row("a", "sidr", 30, variant="", safety="off"),
            row("a", "sidr", 40, variant="", safety="on"),
        ]
    )
    names = [text.get_text() for text in curves_figure(rows).legends[0].get_texts()]
    assert names == ["phygail", "phygail (mine.onnx)", "sidr (safety off)", "sidr (safety on)", "lower bound"]


def test_chart_files_have_the_stated_size_and_are_reproducible(tmp_path):
    rows = two_sizes()
    for name in ("a.png", "b.png"):
        draw_curves(rows, tmp_path / name)
    assert (tmp_path / "a.png").read_bytes() == (tmp_path / "b.png").read_bytes()
    # 0.68 + 2 x 2.75 + 0.45 + 0.18 in wide; 0.32 + 3 x 1.75 + 2 x 0.16 + 0.55 + 0.2 in high.
    assert Image.open(tmp_path / "a.png").size == (1362, 1328)
    draw_over_bound(rows, tmp_path / "c.png")
    assert Image.open(tmp_path / "c.png").size == (1362, 564)
    assert len(Image.open(tmp_path / "c.png").convert("RGB").getcolors(maxcolors=1 << 24)) > 100


def test_rows_that_cannot_be_drawn_are_refused(tmp_path):
    rows = two_sizes()
    with pytest.raises(InputError, match="time_s"):
        draw_curves(rows.drop("time_s"), tmp_path / "a.png")
    with pytest.raises(InputError, match="no row with a split swarm"):
        draw_curves(rows.with_columns(subnets=1), tmp_path / "a.png")
    with pytest.raises(InputError, match="bound_steps"):
        draw_over_bound(rows.with_columns(bound_steps=0), tmp_path / "a.png")
    with pytest.raises(InputError, match="suffix"):
        draw_curves(rows, tmp_path / "a.txt")
    assert list(tmp_path.iterdir()) == []
