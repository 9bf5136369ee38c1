"""Summaries against hand-worked numbers (METHODS 2.6)."""

from __future__ import annotations

import math

import polars as pl
import pytest

from phygail.experiments.rows import COLUMNS, rows_table
from phygail.experiments.statistics import common_by_world, split_cases, steps_by_damage, summarize
from phygail.experiments.summary import summary_markdown


def flown(scenario, method, steps, rate, *, converged=1, bound=10, uavs=20, damaged=5, subnets=2, flag=""):
    row = dict.fromkeys(COLUMNS)
    return row | {
        "scenario": scenario, "method": method, "uavs": uavs, "damaged": damaged, "alive": uavs - damaged,
        "subnets": subnets, "converged": converged, "steps": steps, "time_s": steps / 10, "bound_steps": bound,
        "contact_rate_raw": rate, "contact_rate_capped": rate, "contact_events_per_uav": rate, "first_action_ms": 1.0,
        "safety": "off", "variant": "", "flag": flag, "version": "0",
    }  # fmt: skip


# Two cases, three methods. Case a: all succeed. Case b: y and z fail with the budget of 100 steps.
ROWS = rows_table(
    [
        flown("a", "x", 20, 0.0), flown("a", "y", 20, 1.0), flown("a", "z", 30, 0.0),
        flown("b", "x", 50, 0.5, bound=20), flown("b", "y", 100, 0.5, converged=0, bound=20),
        flown("b", "z", 100, 0.0, converged=0, bound=20),
    ]
)  # fmt: skip


def test_rank_is_the_mean_of_three_ranks_and_ties_share_theirs():
    # a: success all tie at 2. time: x, y tie at 1.5, z 3. contacts: x, z tie at 1.5, y 3.
    # b: success x 1, y, z tie at 2.5. time the same. contacts: z 1, x, y tie at 2.5.
    expected = {
        ("a", "x"): (2 + 1.5 + 1.5) / 3, ("a", "y"): (2 + 1.5 + 3) / 3, ("a", "z"): (2 + 3 + 1.5) / 3,
        ("b", "x"): (1 + 1 + 2.5) / 3, ("b", "y"): (2.5 + 2.5 + 2.5) / 3, ("b", "z"): (2.5 + 2.5 + 1) / 3,
    }  # fmt: skip
    ranks = {(r["scenario"], r["method"]): r["rank"] for r in split_cases(ROWS).iter_rows(named=True)}
    assert ranks == pytest.approx(expected)
    overall = dict(summarize(ROWS).select("method", "rank").iter_rows())
    assert overall["x"] == pytest.approx((expected["a", "x"] + expected["b", "x"]) / 2)


def test_figures_of_a_method_are_the_hand_worked_ones():
    y = next(r for r in summarize(ROWS).iter_rows(named=True) if r["method"] == "y")
    assert y["cases"] == 2
    assert y["convergence"] == 0.5
    assert y["steps"] == 60
    assert y["time_s"] == pytest.approx(6.0)
    assert y["time_std_s"] == pytest.approx(math.sqrt(32))  # 2 and 10 around 6, one degree of freedom
    assert y["time_ci95_s"] == pytest.approx(1.96 * 4, abs=0.001)
    assert y["over_bound"] == pytest.approx(120 / 30)
    assert y["contact_rate_capped"] == pytest.approx(0.75)


def test_best_first_is_by_convergence_and_then_by_steps():
    assert summarize(ROWS)["method"].to_list() == ["x", "y", "z"]


def test_connected_scenarios_are_left_out_of_every_figure():
    still = [flown("c", m, 0, 0.0, bound=0, subnets=1) for m in "xyz"]
    more = rows_table([*ROWS.to_dicts(), *still])
    assert summarize(more).equals(summarize(ROWS))
    assert "1 of 3 scenarios were already connected" in summary_markdown(more, _CONFIG, "")


def test_cases_without_a_bound_are_left_out_of_the_ratio_only():
    more = rows_table([*ROWS.to_dicts(), *(flown("c", m, 1, 0.0, bound=0) for m in "xyz")])
    x = summarize(more).row(0, named=True)
    assert x["cases"] == 3
    assert x["over_bound"] == pytest.approx(70 / 30)


def test_an_error_ranks_last_on_contacts_and_is_counted():
    rows = rows_table(
        [flown("a", "x", 100, None, converged=0, flag="error:ValueError"), flown("a", "y", 100, 2.0, converged=0)]
    )
    summary = {r["method"]: r for r in summarize(rows).iter_rows(named=True)}
    assert summary["x"]["rank"] > summary["y"]["rank"]
    assert summary["x"]["errors"] == 1


def test_damage_is_the_cell_of_drawn_scenarios_and_the_share_of_given_ones():
    rows = rows_table(
        [
            flown("n0050-d0.250-c000-s0", "x", 7, 0.0, uavs=50, damaged=13),
            flown("mine", "x", 9, 0.0, uavs=50, damaged=13),
        ]
    )
    assert sorted(split_cases(rows)["damage"]) == [0.25, 0.26]


def test_steps_by_damage_end_with_the_bound():
    table = steps_by_damage(ROWS)
    assert table["method"].to_list() == ["x", "y", "z", "bound"]
    assert table["0.25"].to_list() == [35.0, 60.0, 65.0, 15.0]


_CONFIG = {"uavs": [20], "damage": [0.25], "cases": 2, "seed": 0, "methods": ["x", "y", "z"], "safety": "off"}


def test_the_markdown_says_how_the_rows_were_made():
    text = summary_markdown(ROWS, _CONFIG, "phygail compare --out here")
    for part in ("phygail compare --out here", "2 cases per cell", "## Overall", "### 20 UAVs", "| bound | 15.0 |"):
        assert part in text


def test_the_markdown_of_connected_scenarios_says_that_there_is_nothing_to_compare():
    rows = rows_table([flown("c", "x", 0, 0.0, bound=0, subnets=1)])
    assert "nothing to compare" in summary_markdown(rows, {"scenarios": 1, "content": "sha256:0", "safety": "off"}, "")


def test_worlds_are_compared_on_the_cases_that_all_methods_there_have_flown():
    all_of = [("", "sidr", "a"), ("", "sidr", "b"), ("", "reach", "a"), ("wind=3", "sidr", "b")]
    rows = pl.DataFrame(all_of, schema=["world", "method", "scenario"], orient="row")
    assert common_by_world(rows, fewest=1).rows() == [all_of[0], all_of[2], all_of[3]]
    assert common_by_world(rows, fewest=2).rows() == all_of[:2]  # too few of reach, too few in the wind
