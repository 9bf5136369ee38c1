"""Failures of single UAVs: cases by number, what a flight is judged by, tables and figure by hand."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from phygail.config import InputError, Physics
from phygail.experiments.experiment import Experiment, Leg, Scale, draw_cases, drawn_scenario, is_drawn, scaled
from phygail.experiments.failures import Failures, hops, longer_pct, lost_pct, measures
from phygail.experiments.rows import COLUMNS, MEASURED
from phygail.experiments.statistics import Evidence, split_cases
from phygail.experiments.summary import failures, failures_by_size, failures_figure
from phygail.methods import run_episode
from phygail.methods.base import make_method
from phygail.swarm.scenario import make_scenario

# --- cases ---


def test_a_case_depends_on_its_own_coordinates_only():
    few, many = Failures((20,), (2,), "region", 2, 7), Failures((50, 20), (1, 2), "region", 3, 7)
    assert few.ids() == ["region-20-2-0-s7", "region-20-2-1-s7"]
    one, other = few.scenario(1), many.scenario(many.ids().index("region-20-2-1-s7"))
    assert one.id == other.id
    assert np.array_equal(one.layout, other.layout)
    assert np.array_equal(one.damaged, other.damaged)
    assert many.sizes() == [50] * 6 + [20] * 6
    assert len(many) == len(many.ids()) == 12


def test_an_id_says_how_its_scenario_is_drawn():
    again, drawn = drawn_scenario("region-20-2-1-s7"), Failures((20,), (2,), "region", 2, 7).scenario(1)
    assert is_drawn("single-100-1-7-s0")
    assert not is_drawn("single-100-1-7")
    assert again.id == drawn.id
    assert np.array_equal(again.layout, drawn.layout)
    assert np.array_equal(again.damaged, drawn.damaged)


def test_the_map_grows_with_the_radio():
    wide = Failures((20,), (1,), "single", 1, 0, Physics(range_m=240.0))
    assert wide.scenario(0).width_m == 640.0
    assert wide.describe()["range_m"] == 240.0


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"uavs": ()}, "nothing fails"),
        ({"failures": (0,)}, "0 failures"),
        ({"failures": (19,)}, "from 1 to 18"),
        ({"failures": (1, 1)}, "listed twice"),
        ({"cases": 0}, "0 cases"),
        ({"seed": -1}, "seed -1"),
        ({"kind": "strike"}, "'strike'"),
        ({"uavs": (1,)}, "1 UAVs"),
    ],
)
def test_what_cannot_be_drawn_is_refused(changes, named):
    with pytest.raises(InputError, match=named):
        replace(Failures((20,), (1,), "single", 2), **changes)


LEG = Leg("leg", ("sidr",), (20, 3), (), 5, source="single", failures=(1, 2))


def test_a_leg_of_failures_draws_them_in_place_of_damage():
    assert list(LEG.settings()) == [(20, (1, 2), 5), (3, (1,), 5)]
    assert len(LEG) == 15
    cases, notes = draw_cases(LEG, 20, (1, 2), 5, 0)
    assert cases == Failures((20,), (1, 2), "single", 5, 0)
    assert notes == []


def test_an_experiment_can_be_scaled_to_some_of_its_failures():
    toy = Experiment("toy", "Toy", "?", (LEG,))
    assert toy.failures == (1, 2)
    (leg,) = scaled(toy, Scale(failures=(2,))).legs
    assert leg.failures == (2,)
    with pytest.raises(InputError, match="no number of failures 3: it has 1, 2"):
        scaled(toy, Scale(failures=(3,)))


# --- measures ---

CHAIN = make_scenario("chain", [[100.0 * k, 0.0] for k in range(5)], [2])  # 0 1 x 3 4


def test_hops_of_a_chain_by_hand():
    ways = hops(CHAIN.layout, Physics())
    assert ways[0].tolist() == [0, 1, 2, 3, 4]
    assert np.isinf(hops(CHAIN.spots, Physics())[0, 2])


def test_pairs_without_a_way_are_longer_and_those_with_a_shorter_one_are_not():
    """Four of six pairs are cut; if both halves close up, hops are at most what they were."""
    assert longer_pct(CHAIN, CHAIN.spots) == pytest.approx(100 * 4 / 6)
    together = CHAIN.spots + np.array([[50.0, 0.0], [50.0, 0.0], [-50.0, 0.0], [-50.0, 0.0]])
    assert longer_pct(CHAIN, together) == 0.0


def test_the_lost_area_counts_the_failed_one_too():
    wide = make_scenario("wide", [[200.0 + 115.0 * k, 500.0] for k in range(5)], [2], width_m=1000.0)
    assert lost_pct(wide, wide.layout) == 0.0
    assert lost_pct(wide, wide.spots) == pytest.approx(100 / 5, abs=1.5)  # five discs that hardly overlap
    assert lost_pct(wide, wide.spots) == measures_of("ledir", wide)["failure_pct"]


def measures_of(name, scenario):
    method = make_method(name)
    return measures(run_episode(scenario, method, record=True), method)


def test_the_measures_of_a_leader_that_takes_the_spot():
    """LeDiR: both blocks are alike, the lower neighbor leads 100 m, its follower comes within 120 m of it."""
    cells = measures_of("ledir", CHAIN)
    assert set(cells) == set(MEASURED)
    assert (cells["moved"], cells["plan_moved"], cells["messages"]) == (2, 2, 2)
    assert cells["plan_max_m"] == pytest.approx(100.0)
    assert cells["plan_total_m"] == pytest.approx(100.0 + 80.001)
    assert cells["max_m"] == pytest.approx(80.0)  # connected 120 m before the next one
    assert cells["plan_connected"] == 1


def test_messages_by_the_rule_of_each_method():
    """Four alive: n per step without a plan, reports and orders with everything known."""
    sidr, convex = measures_of("sidr", CHAIN), measures_of("convex", CHAIN)
    assert sidr["messages"] == 4 * 40  # 80 m are missing, two meters per step
    assert sidr["plan_connected"] is None
    assert convex["messages"] == 4 + convex["moved"]


# --- report ---


def row(kind, failures, case, method, **cells):
    base = {name: {str: "", int: 0, float: 0.0}[kind_] for name, kind_ in (COLUMNS | MEASURED).items()}
    facts = {
        "scenario": f"{kind}-100-{failures}-{case}-s0", "method": method, "uavs": 100, "damaged": failures,
        "alive": 100 - failures, "subnets": 2, "converged": 1, "steps": 10, "bound_steps": 5, "version": "0.1.0",
        "distance_m_per_uav": 1.0, "moved": 3, "max_m": 8.0,
    }  # fmt: skip
    return base | facts | cells


ROWS = [
    row("single", 1, 0, "vcr", steps=10, plan_connected=1, plan_total_m=100.0, failure_pct=1.0),
    row("single", 1, 1, "vcr", steps=30, plan_connected=1, plan_total_m=200.0, failure_pct=3.0),
    row("single", 1, 0, "sidr", steps=15, plan_connected=None, plan_total_m=None, failure_pct=1.0),
    row("single", 1, 1, "sidr", steps=15, plan_connected=None, plan_total_m=None, failure_pct=3.0),
    row("single", 2, 0, "vcr", steps=40, plan_connected=0),
    row("region", 2, 0, "vcr", converged=0, steps=600, plan_connected=0),
]  # fmt: skip


def evidence():
    experiment = Experiment("toy", "Toy", "?", (Leg("one", ("vcr", "sidr"), (100,), (), 2, source="single"),))
    return Evidence(experiment, split_cases(pl.DataFrame(ROWS)).drop("rank"), (), (), "0.1.0", Path())


def cells(text, heading, name, part=0):
    """The cells of a method below a heading, in the table with this number."""
    section = text.split(heading)[1].split("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith(f"| `{name}` |")]
    return [cell.strip() for cell in lines[part].strip("|").split("|")]


def test_the_table_of_one_failure_by_hand():
    text = failures(evidence())
    vcr = cells(text, "## One failure, N = 100", "vcr")
    assert vcr[:7] == ["`vcr`", "100.0%", "20.00", "4.00", "8.0", "99.0", "3.00"]
    assert cells(text, "## One failure, N = 100", "vcr", 1)[:4] == ["`vcr`", "100.0%", "0.0", "150.0"]
    assert "2 cases; bound 5.00 steps, 2.00 subnets; the failed took 2.000 %" in text
    assert cells(text, "## 2 failures, spread over the swarm", "vcr")[1] == "100.0%"
    assert cells(text, "## 2 failures, side by side", "vcr")[1] == "0.0%"


def test_methods_without_a_plan_stand_in_no_table_of_plans():
    section = failures(evidence()).split("## One failure")[1].split("\n## ")[0]
    assert section.count("`sidr`") == 1


def test_the_table_by_size_by_hand():
    text = failures_by_size(evidence())
    assert cells(text, "## One failure, by swarm size", "vcr") == ["`vcr`", "4.00", "99.0", "3.00"]


def test_the_figure_shows_every_method_and_both_kinds():
    trade, share = failures_figure(evidence()).axes
    assert sorted(float(line.get_xdata()[0]) for line in trade.lines) == [99.0, 99.0]
    assert sorted(round(float(line.get_ydata()[0]), 6) for line in trade.lines) == [3.0, 4.0]
    shares = sorted(tuple(line.get_ydata()) for line in share.lines)
    assert shares == [(100.0, 0.0), (100.0, 100.0), (100.0, 100.0)]  # vcr side by side and spread; sidr never fails
    assert [text.get_text() for text in share.texts] == ["sidr"]
