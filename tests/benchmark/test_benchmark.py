"""benchmark: cases that never change, a score worked by hand, a board made from rows."""

from __future__ import annotations

import json
import math
from collections import Counter

import numpy as np
import pytest

import phygail.benchmark as benchmark
from phygail.benchmark import against, board, by_method, geometric_mean, load_cases, part_cells, read_entry, score
from phygail.cli.main import main
from phygail.config import InputError
from phygail.swarm.simulator import initial_state

CASES = load_cases()


def row(method: str, scenario: str, steps: int, bound: int = 10, converged: int = 1) -> dict:
    return {
        "method": method, "scenario": scenario, "steps": steps, "bound_steps": bound, "converged": converged,
        "alive": 50, "uavs": 100, "contact_events_per_uav": 0.5, "distance_m_per_uav": float(steps), "flag": "",
    }  # fmt: skip


def test_the_cases_are_those_that_the_hash_names():
    parts = Counter(case.id.split("/")[0] for case in CASES)
    assert parts == {
        "swarms": 100, "radios": 24, "strikes": 12, "few-failures": 12, "paper-layouts": 6, "shapes": 5,
    }  # fmt: skip
    assert set(parts) == set(benchmark.PARTS)
    assert {case.uavs for case in CASES if case.id.startswith("swarms")} == {20, 50, 100, 200, 500}
    assert {case.physics.range_m for case in CASES} >= {40.0, 120.0, 300.0, 1000.0}


def test_every_case_is_split_and_ids_are_unique():
    assert len({case.id for case in CASES}) == len(CASES) == 159
    assert all(initial_state(case).links.count > 1 for case in CASES)


def test_a_changed_file_is_refused(monkeypatch):
    monkeypatch.setattr(benchmark, "CONTENT", "sha256:" + "0" * 64)
    with pytest.raises(InputError, match="is not benchmark 1"):
        load_cases()


def test_quick_cases_are_the_small_ones():
    quick = load_cases(quick=True)
    assert max(case.uavs for case in quick) <= benchmark.QUICK_UAVS
    settings = {case.id.split("-c0")[0] for case in CASES if case.uavs <= benchmark.QUICK_UAVS}
    assert len(quick) == len(settings) == 42
    assert {case.id.split("-c0")[0] for case in quick} == settings


def test_a_score_worked_by_hand():
    """Twice and eight times the bound: the geometric mean is four. sidr says 38 bytes a step, whatever the swarm."""
    done = score([row("sidr", "swarms/a", 20), row("sidr", "swarms/b", 80, converged=0)])
    assert done.over_bound == pytest.approx(4.0)
    assert (done.cases, done.reconnected, done.contacts, done.meters) == (2, 0.5, 0.5, 50.0)
    assert done.kilobytes == pytest.approx(50 * 38 / 1000)
    error = 1.959963984540054 * np.std([math.log(2), math.log(8)], ddof=1) / math.sqrt(2)
    assert done.over_bound_95 == pytest.approx((4 * math.exp(-error), 4 * math.exp(error)))


def test_a_bound_of_nothing_is_one_step_and_a_planner_says_nothing():
    done = score([row("convex", "swarms/a", 3, bound=0)])
    assert done.over_bound == pytest.approx(3.0)
    assert done.kilobytes is None


def test_methods_are_compared_on_the_cases_that_both_flew():
    mine = [row("reach", "swarms/a", 10), row("reach", "swarms/b", 40), row("reach", "swarms/c", 999)]
    theirs = [row("sidr", "swarms/a", 20), row("sidr", "swarms/b", 80)]
    ratio, low, high = against(mine, theirs)
    assert (ratio, low, high) == pytest.approx((0.5, 0.5, 0.5))
    assert math.isnan(against(mine, [])[0])
    assert geometric_mean(np.array([1.0, 4.0]))[0] == pytest.approx(2.0)


def test_the_board_puts_success_before_speed_and_names_failures():
    rows = [row("hero", "swarms/a", 1, converged=0), row("sidr", "swarms/a", 50), row("reach", "swarms/a", 30)]
    assert list(by_method(rows)) == ["reach", "sidr", "hero"]
    header, lines = part_cells(rows)
    assert header == ["method", "swarms"]
    assert lines[-1] == ["`hero`", "0.10 (1 of 1 fail)"]
    assert "not for comparison" in board(rows, quick=True)
    assert "not for comparison" not in board(rows)


def test_the_command_flies_scores_and_an_entry_must_be_whole(tmp_path, monkeypatch, capsys):
    few = [case for case in CASES if case.uavs <= 20][:3]
    monkeypatch.setattr(benchmark, "load_cases", lambda quick=False: few)
    out = tmp_path / "mine"
    assert main(["benchmark", "--methods", "sidr,center-fly", "--out", str(out), "--workers", "1"]) == 0
    assert "sidr" in capsys.readouterr().out
    assert "| `sidr` | intra-subnet | 3 |" in (out / "score.md").read_text(encoding="utf-8")
    assert len(read_entry(out)) == 6
    monkeypatch.undo()
    with pytest.raises(InputError, match="did not fly benchmark 1"):
        read_entry(out)
    record = json.loads((out / "run.json").read_text(encoding="utf-8"))
    assert record["config"]["safety"] == "off"


def test_a_method_that_plans_ahead_tells_once():
    """vcr: everybody's place, 10 bytes, passed on by each of 50 members; hero says the same in each of 20 steps."""
    once, always = (score([row(name, "swarms/a", 20)]).kilobytes for name in ("vcr", "hero"))
    assert once == pytest.approx(50 * 10 / 1000)
    assert always == pytest.approx(20 * 50 * 10 / 1000)
