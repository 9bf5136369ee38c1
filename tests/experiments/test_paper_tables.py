"""Tables of experiments against hand-worked numbers."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

from phygail.config import InputError
from phygail.experiments.experiment import Experiment, Leg
from phygail.experiments.figures import sensing_figure
from phygail.experiments.paper_tables import TABLES
from phygail.experiments.reproduce import heading
from phygail.experiments.rows import COLUMNS, save_rows
from phygail.experiments.statistics import (
    NOTES,
    Evidence,
    cases_text,
    common_cases,
    load_evidence,
    split_cases,
    weighed,
    weighed_mean,
)
from phygail.files import write_text

TOY = Experiment(
    "toy", "Toy", "?", (Leg("fast", ("sidr", "reach"), (100,), (0.25, 0.5), 2),),
    published={
        "sidr": {"convergence": 0.472, "time_s": 49.36, "time_std_s": 38.88, "steps@100": 266.9, "time_s@0": 7.0}
    },
)  # fmt: skip


def row(damage: float, case: int, method: str, steps: int, **cells):
    base = {name: {str: "", int: 0, float: 0.0}[kind] for name, kind in COLUMNS.items()}
    facts = {
        "scenario": f"n0100-d{damage:.3f}-c{case:03d}-s0", "method": method, "uavs": 100, "alive": 50, "damaged": 50,
        "subnets": 3, "converged": 1, "steps": steps, "time_s": steps * 0.1, "bound_steps": 10, "safety": "off",
        "version": "0.1.0", "solve_s": steps * 0.001, "first_action_ms": 2.0,
    }  # fmt: skip
    return base | facts | cells


# Two cases at 0.25, one at 0.5: settings weigh the same, cases do not.
ROWS = [
    row(0.25, 0, "sidr", 10), row(0.25, 1, "sidr", 30), row(0.5, 0, "sidr", 60),
    row(0.25, 0, "reach", 10), row(0.5, 0, "reach", 20),
]  # fmt: skip


def evidence(rows, experiment=TOY):
    table = split_cases(pl.DataFrame(rows, schema_overrides={"seed": pl.Int64})).drop("rank")
    return Evidence(experiment, table, (), (), "0.1.0", Path())


def cells(text: str, name: str) -> list[str]:
    """The cells of the first line of a Markdown table that begins with a name."""
    line = next(line for line in text.splitlines() if line.startswith(f"| {name} |"))
    return [cell.strip() for cell in line.strip("|").split("|")]


def test_every_setting_weighs_the_same():
    rows = weighed(evidence(ROWS).rows)
    means = dict(rows.group_by("method").agg(weighed_mean("steps").alias("m")).iter_rows())
    assert means["sidr"] == pytest.approx((20 + 60) / 2)  # not (10 + 30 + 60) / 3
    assert means["reach"] == pytest.approx(15.0)


def test_an_empty_cell_is_left_out_of_a_mean():
    flown = [row(0.5, case, "sidr", 5, contact_rate_capped=rate) for case, rate in enumerate((None, 0.4))]
    rows = weighed(evidence(flown).rows)
    assert rows.select(weighed_mean("contact_rate_capped")).item() == pytest.approx(0.4)


def test_common_cases_are_those_of_all_methods():
    assert common_cases(evidence(ROWS).rows)["scenario"].n_unique() == 2


def test_the_number_of_cases_says_what_is_missing():
    rows = evidence(ROWS).rows
    assert cases_text(rows.filter(pl.col("method") == "sidr"), 2) == "1-2"
    assert (
        cases_text(rows.filter((pl.col("method") == "reach") & (pl.col("damage") == 0.5)), 2) == "1 (1 of 2 settings)"
    )


def test_the_aggregate_stands_beside_the_paper():
    found = cells(TABLES.get("aggregate")(evidence(ROWS)), "`sidr`")
    # Weights 1/2, 1/2, 1 on 1, 3 and 6 s: mean 4, variance (4.5 + 0.5 + 4) / 2.
    assert found[:6] == ["`sidr`", "1-2", "1.000", "0.472", "4.00 ± 2.12", "49.36 ± 38.88"]
    assert found[9] == "4.00"  # (20 + 60) / (10 + 10)
    # Common cases: a tie at 10 steps (rank 1.5), then last (2) in time; success and contacts tie at 1.5.
    assert found[10] == f"{(1.5 + (1.5 + 2 + 1.5) / 3) / 2:.2f}"


def test_by_size_every_ratio_weighs_the_same_however_many_cases_it_has():
    found = cells(TABLES.get("by-size")(evidence(ROWS)), "`sidr`")
    assert found[:6] == ["`sidr`", "1-2", "1.000", "40.0", "4.00 ± 2.12", "4.00"]


def test_time_over_bound_is_by_size_and_by_damage():
    text = TABLES.get("over-bound")(evidence(ROWS))
    assert cells(text, "`reach`") == ["`reach`", "1.50"]
    assert "| `reach` | 1.00 | 2.00 |" in text


def test_runtime_shows_medians_and_the_papers_steps():
    found = cells(TABLES.get("runtime")(evidence(ROWS)), "`sidr`")
    assert found == ["`sidr`", "1-2", "2.00", "-", "0.030", "-", "1.000", "40.0 ± 21.2", "266.9"]


def test_the_safety_table_pairs_the_cases_that_flew_both_ways():
    rows = [*ROWS[:2], row(0.25, 0, "sidr", 20, safety="on", contact_events_per_uav=0.0)]
    rows[0] = rows[0] | {"contact_events_per_uav": 0.5}
    found = cells(TABLES.get("safety")(evidence(rows)), "`sidr`")
    assert found[1:6] == ["1", "1.000", "1.000", "1.00", "2.00"]  # case 1 flew without the filter only
    assert found[8:10] == ["0.500", "0.000"]


def test_the_cost_per_uav_leaves_out_flights_cut_short():
    rows = [*ROWS[:1], row(0.5, 0, "sidr", 600, converged=0, flag="timeout", solve_s=99.0)]
    assert cells(TABLES.get("scale")(evidence(rows)), "`sidr`")[-1] == f"{0.01 * 1e6 / (10 * 50):.1f}"


def test_sensing_is_shown_by_noise_with_the_papers_ends():
    rows = [row(0.5, 0, "sidr", 10), row(0.5, 0, "sidr", 40, noise_m=10.0)]
    text = TABLES.get("sensing")(evidence(rows))
    assert "| method | cases | 0 m | 10 m |" in text
    assert "| `sidr` | 1 | 1.00 | 4.00 |" in text
    assert "| *paper:* `sidr` | 50 | 7.00 | - |" in text
    axes = sensing_figure(evidence(rows)).axes
    assert list(axes[1].lines[0].get_ydata()) == pytest.approx([1.0, 4.0])


def test_a_level_that_lacks_a_setting_is_left_blank():
    """At 10 m only the easy damage ratio has been flown: 2.0 s beside 5.0 s would look like a gain."""
    rows = [row(0.25, 0, "sidr", 20), row(0.5, 0, "sidr", 80), row(0.25, 0, "sidr", 20, noise_m=10.0)]
    assert "| `sidr` | 1 | 5.00 | - |" in TABLES.get("sensing")(evidence(rows))
    assert list(sensing_figure(evidence(rows)).axes[1].lines[0].get_xdata()) == [0.0]


def write_leg(folder, rows):
    folder.mkdir(parents=True)
    save_rows(folder / "rows.csv", rows)
    (folder / "run.json").write_text('{"runs": []}')


def test_rows_of_two_versions_are_not_pooled(tmp_path):
    write_leg(tmp_path / "a", ROWS[:1])
    write_leg(tmp_path / "b", [ROWS[1] | {"version": "0.0.9"}])
    with pytest.raises(InputError, match=r"mixes rows of phygail 0\.0\.9 and 0\.1\.0"):
        load_evidence(TOY, tmp_path)


def test_time_limits_and_errors_are_named(tmp_path):
    failed = row(0.5, 0, "sidr", 600, converged=0, flag="nonfinite;timeout")
    write_leg(tmp_path / "a", [ROWS[0], failed, row(0.5, 1, "reach", 600, converged=0, flag="error:KeyError")])
    assert load_evidence(TOY, tmp_path).notes == (
        "reach: 1 of 1 episodes ended with an error and are entered as failures",
        "sidr: 1 of 2 episodes carry the flag nonfinite",
        "sidr: 1 of 2 episodes met the time limit and are entered as failures",
    )


def test_what_two_legs_say_of_a_setting_stands_once(tmp_path):
    write_leg(tmp_path / "a", ROWS[:1])
    few, fewer = "N=20, damage 0.1 has 2 distinct cases among 5", "N=20, damage 0.1 has 1 distinct cases among 2"
    write_text(tmp_path / NOTES, json.dumps({"settings": {"a 20": [few], "b 20": [few], "c 20": [fewer]}}))
    assert load_evidence(TOY, tmp_path).notes == (few, fewer)


def test_a_folder_without_flights_says_what_to_run(tmp_path):
    with pytest.raises(InputError, match="run phygail reproduce toy"):
        load_evidence(TOY, tmp_path)


def test_the_heading_names_command_version_machine_and_load():
    machine = {"processor": "Fast 1", "cores": 2, "system": "Linux x", "python": "3.11", "load": 0.5}
    text = heading(TOY, [{"command": "phygail reproduce toy", "machine": machine}], "0.1.0")
    assert "    phygail reproduce toy\n" in text
    assert "phygail 0.1.0 on Fast 1, 2 cores, Linux x, Python 3.11; load at the start of its runs 0.5 to 0.5." in text
