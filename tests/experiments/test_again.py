"""Rows flown again: which are chosen, with what they are flown, and that a falsified one is found."""

from __future__ import annotations

import importlib.util
import itertools
import json
import sys
from collections import Counter
from pathlib import Path

import pytest

from phygail.config import InputError, Physics
from phygail.experiments.again import Setting, choose_rows, fly_again, folder_cells, plan_again
from phygail.experiments.experiment import Named, draw_strike, drawn_scenario, is_drawn
from phygail.experiments.grid import Grid, as_cases, damaged_layouts
from phygail.experiments.rows import Job, read_rows, save_rows
from phygail.experiments.runner import collect, compare
from phygail.sensing.imperfect import Sensing
from phygail.swarm.scenario import load_scenarios, save_scenarios, scenario_to_json
from phygail.weights import bundled

CLONE = bundled("reach-cloned").with_suffix(".onnx")
GRID = Grid((20,), (0.25, 0.5), 2, 0)
RADIO = Physics(range_m=60.0, speed_mps=5.0, step_s=0.2, contact_m=4.0)


@pytest.fixture(scope="module")
def results(tmp_path_factory, here, no_figures):
    """Five folders of rows: plain; filtered, with bad sensing, nested; from a file; with a policy; another radio."""
    folder = tmp_path_factory.mktemp("results")
    compare(GRID, "sidr,center-fly", folder / "plain", engine=here)
    sensed = Job(as_cases(GRID), ("reach",), safety=True, sensing=Sensing(4.0, 2, 1.0))
    collect(sensed, folder / "nested" / "sensed", {"source": "fresh", "seed": 0}, engine=here)
    (folder / "file").mkdir()
    save_scenarios(folder / "file" / "cases.json", damaged_layouts(["paper-20"], [0.5], 2, 0))
    compare(load_scenarios(folder / "file" / "cases.json"), "sidr", folder / "file", engine=here)
    compare(GRID, "reach-evolved", folder / "policy", engine=here, policy=CLONE)
    compare(Grid((20,), (0.5,), 2, 0, RADIO), "reach", folder / "radio", engine=here)
    return folder


def falsify(folder, column, change):
    """Change one cell of the first row; gives a function that takes it back."""
    path = folder / "rows.csv"
    before = path.read_bytes()
    rows = read_rows(path)
    rows[0][column] = change(rows[0][column])
    save_rows(path, rows)
    return lambda: path.write_bytes(before)


def script():
    spec = importlib.util.spec_from_file_location(
        "results_fly_again", Path(__file__).parents[2] / "results" / "fly_again.py"
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def run_script(monkeypatch, folder, *options, engine=None):
    usual = ["--results", str(folder), "--workers", "1", "--most-s", "600"]  # even on a machine that crawls
    monkeypatch.setattr(sys, "argv", ["fly_again.py", *usual, *options])
    module = script()
    if engine is not None:
        module.LocalEngine = lambda workers: engine
    return module.main()


# --- which rows ------------------------------------------------------------------------------------------------------


def rows_of(method, uavs, damaged, count):
    return [
        {"method": method, "uavs": uavs, "damaged": damaged, "scenario": f"{uavs}-{damaged}-{k}"} for k in range(count)
    ]


def test_a_share_is_spread_evenly_over_settings():
    """5 % of 2 methods x 2 sizes x 2 damages x 40 cases: two of each setting."""
    rows = [r for m in "ab" for n in (10, 20) for d in (3, 5) for r in rows_of(m, n, d, 40)]
    chosen = choose_rows(rows, 0.05)
    assert Counter((r["method"], r["uavs"], r["damaged"]) for r in chosen) == dict.fromkeys(
        [(m, n, d) for m in "ab" for n in (10, 20) for d in (3, 5)], 2
    )


def test_settings_too_small_for_a_row_each_share_them_evenly():
    """10 settings of 10 rows at 5 %: five rows, of every other setting."""
    rows = [r for d in range(10) for r in rows_of("a", 20, d, 10)]
    assert [r["damaged"] for r in choose_rows(rows, 0.05)] == [1, 3, 5, 7, 9]


def test_every_method_is_chosen_at_least_once_and_never_more_than_there_are():
    rows = [*rows_of("a", 20, 3, 3), *rows_of("b", 20, 3, 1)]
    assert Counter(r["method"] for r in choose_rows(rows, 0.01)) == {"a": 1, "b": 1}
    assert len(choose_rows(rows, 1.0)) == 4
    assert choose_rows([], 0.5) == []


def test_the_choice_depends_on_the_rows_only_and_grows_with_the_share():
    rows = rows_of("a", 20, 3, 50)
    few, more = choose_rows(rows, 0.1), choose_rows(rows[::-1], 0.2)
    assert (len(few), len(more)) == (5, 10)
    assert [r["scenario"] for r in more[:5]] == [r["scenario"] for r in few]


# --- how they are flown ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "scenario", [GRID.scenario(3), draw_strike(100, 0.3, 1, 0), damaged_layouts(["paper-50"], [0.5], 2, 3)[1]]
)
def test_a_drawn_scenario_is_drawn_once_more_from_its_id(scenario):
    again = drawn_scenario(scenario.id)
    assert scenario_to_json(again) == scenario_to_json(scenario)
    assert again.seed == scenario.seed
    named = Named((scenario.id,))
    assert (named.ids(), named.sizes()) == ([scenario.id], [scenario.uavs])


def test_a_drawn_scenario_is_drawn_for_its_radio():
    scenario = Grid((20,), (0.5,), 2, 0, RADIO).scenario(1)
    assert scenario_to_json(Named((scenario.id,), RADIO).scenario(0)) == scenario_to_json(scenario)
    with pytest.raises(InputError, match="usual radio"):
        drawn_scenario("strike-n0100-d0.300-c001-s0", RADIO)


def test_other_ids_do_not_say_how_a_scenario_is_drawn():
    assert is_drawn("n0100-d0.250-c003-s0")
    assert not is_drawn("case-study-5-s0")
    with pytest.raises(InputError, match="does not say how"):
        drawn_scenario("mine")


def test_a_folder_is_flown_with_what_its_record_says(results):
    settings = {old.folder: old.setting for old in plan_again(results, share=1, most_s=30).chosen}
    assert settings == {
        "plain": Setting(),
        "nested/sensed": Setting(safety=True, sensing=Sensing(4.0, 2, 1.0)),
        "file": Setting(file=results / "file" / "cases.json"),
        "policy": Setting(policy=CLONE),
        "radio": Setting(physics=RADIO),
    }


def test_workers_fly_untouched_rows_alike(results, monkeypatch, capsys):
    assert run_script(monkeypatch, results, "--share", "1", "--only", "file") == 0
    assert "2 rows flown again, 0 differ" in capsys.readouterr().out


def test_untouched_rows_are_equal_and_told_per_folder(results, here, monkeypatch, capsys):
    assert run_script(monkeypatch, results, "--share", "1", engine=here) == 0
    told = capsys.readouterr().out
    assert "20 rows flown again, 0 differ" in told
    assert "| plain | 8 | 8 | 0 | 0 |" in told
    assert "| nested/sensed | 4 | 4 | 0 | 0 |" in told


@pytest.mark.parametrize(
    ("column", "change"),
    [
        ("steps", lambda steps: steps + 1),
        ("distance_m_per_uav", lambda meters: meters * 1.0001),
        ("flag", lambda _: "late-phase"),
        ("subnets", lambda count: count + 1),
    ],
)
def test_a_falsified_row_is_found(results, here, monkeypatch, capsys, column, change):
    restore = falsify(results / "nested" / "sensed", column, change)
    try:
        assert run_script(monkeypatch, results, "--share", "1", "--only", "nested", engine=here) == 1
    finally:
        restore()
    told = capsys.readouterr().out
    assert "| nested/sensed | 4 | 3 | 1 |" in told
    assert f"nested/sensed: reach on n0020-d0.250-c000-s0: {column} " in told
    assert "4 rows flown again, 1 differ" in told


def test_a_longer_flight_on_disk_is_named_as_the_largest_difference(results, here):
    restore = falsify(results / "plain", "steps", lambda steps: steps + 7)
    try:
        plan = plan_again(results, share=1, most_s=30, only="plain", methods=["center-fly"])
    finally:
        restore()
    ((name, *counts, old, new, largest),) = folder_cells(fly_again(plan.chosen, here), lambda pair: pair.old.folder)
    assert (name, counts) == ("plain", ["4", "3", "1", "1"])
    assert float(old) - float(new) == pytest.approx(7 / 4)
    assert largest == "-7: center-fly on n0020-d0.250-c000-s0"


@pytest.mark.parametrize("column", ["solve_s", "first_action_ms", "version"])
def test_timings_and_version_are_forgiven(results, here, column):
    restore = falsify(results / "plain", column, lambda value: value * 2)
    try:
        plan = plan_again(results, share=1, most_s=30, only="plain", methods=["center-fly"])
    finally:
        restore()
    assert not any(pair.differing for pair in fly_again(plan.chosen, here))


def test_an_interruption_loses_nothing_that_was_flown(results, here, monkeypatch, capsys):
    class Interrupted(type(here)):
        def run(self, tasks):
            yield from itertools.islice(super().run(tasks), 3)
            raise KeyboardInterrupt

    assert run_script(monkeypatch, results, "--share", "1", "--only", "plain", engine=Interrupted()) == 130
    told = capsys.readouterr().out
    assert "| plain | 3 | 3 | 0 | 0 |" in told
    assert "3 rows flown again of 8 before the interruption, 0 differ" in told


# --- what is left out ------------------------------------------------------------------------------------------------


def test_slow_rows_are_left_out_and_counted(results):
    restore = falsify(results / "plain", "solve_s", lambda _: 90.0)
    try:
        plan = plan_again(results, share=1, most_s=30, only="plain")
    finally:
        restore()
    assert plan.left_out == {("plain", "chosen but slower than 30 s"): 1}
    assert len(plan.chosen) == 7
    assert plan.slow_s == 90.0


@pytest.mark.parametrize(
    ("setting", "reason"),
    [
        ({"policy": "sha256:0"}, "its policy is not in the tree"),
        ({"content": "sha256:0"}, "its scenario file is not in the tree"),
        ({"plugins": ["sha256:0"]}, "flown with a plugin"),
        ({"wind_mps": 8.0}, "run.json says wind_mps, which is unknown here"),
    ],
)
def test_what_cannot_be_flown_is_counted_with_its_reason(results, setting, reason):
    path = results / "plain" / "run.json"
    before = path.read_text()
    record = json.loads(before)
    path.write_text(json.dumps({**record, "config": record["config"] | setting}))
    try:
        plan = plan_again(results, share=1, most_s=30, only="plain")
    finally:
        path.write_text(before)
    assert plan.left_out == {("plain", reason): 8}
    assert plan.chosen == []


@pytest.mark.parametrize(
    ("column", "value", "reason"),
    [
        ("method", "gone", "there is no method gone today"),
        ("flag", "timeout", "met a time limit"),
        ("scenario", "mine", "its id does not say how its scenario is drawn"),
    ],
)
def test_rows_that_cannot_be_flown_are_counted_with_their_reason(results, column, value, reason):
    restore = falsify(results / "plain", column, lambda _: value)
    try:
        plan = plan_again(results, share=1, most_s=30, only="plain")
    finally:
        restore()
    assert plan.left_out == {("plain", reason): 1}
    assert len(plan.chosen) == 7


def test_other_weights_are_noted(results):
    path = results / "nested" / "sensed" / "run.json"
    before = path.read_text()
    record = json.loads(before)
    path.write_text(json.dumps({**record, "config": record["config"] | {"weights of reach": "sha256:0"}}))
    try:
        plan = plan_again(results, share=1, most_s=30, only="nested")
    finally:
        path.write_text(before)
    assert plan.notes == ["nested/sensed: reach was flown with other weights than it has today"]


@pytest.mark.parametrize(
    ("options", "words"),
    [(("--share", "0"), "a share of 0"), (("--only", "none"), "no rows.csv"), (("--methods", "hero"), "no row can")],
)
def test_nothing_to_fly_is_one_line_and_exit_code_2(results, monkeypatch, capsys, options, words):
    assert run_script(monkeypatch, results, *options) == 2
    assert words in capsys.readouterr().err
