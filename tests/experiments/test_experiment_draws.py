"""Strikes, fixed layouts, settings that do not split."""

from __future__ import annotations

import numpy as np

from phygail.experiments.experiment import Leg, draw_cases, draw_strike
from phygail.experiments.grid import Grid
from phygail.swarm.links import find_links


def leg(source, **changes):
    return Leg("leg", ("sidr",), (20,), (0.05,), 5, source=source, **changes)


def test_a_strike_takes_exactly_the_uavs_of_a_disc_and_splits_the_rest():
    scenario = draw_strike(100, 0.3, 0, 0)
    assert scenario.id == "strike-n0100-d0.300-c000-s0"
    assert len(scenario.damaged) == 30
    assert not find_links(scenario.spots, 120.0).connected
    # A disc: every damaged UAV is nearer to some point than every alive one. The middle of the damaged is near it.
    again = draw_strike(100, 0.3, 0, 0)
    assert np.array_equal(again.layout, scenario.layout)
    assert np.array_equal(again.damaged, scenario.damaged)
    hull = scenario.layout[scenario.damaged]
    spread = np.hypot(*(hull - hull.mean(axis=0)).T).max()
    assert spread < 0.75 * scenario.width_m


def test_strikes_of_unlike_cases_are_unlike():
    assert not np.array_equal(draw_strike(100, 0.3, 0, 0).layout, draw_strike(100, 0.3, 1, 0).layout)


def test_fresh_cases_are_those_of_the_grid():
    cases, notes = draw_cases(leg("fresh"), 20, (0.5,), 2, 0)
    assert cases == Grid((20,), (0.5,), 2, 0)
    assert notes == []


def test_copies_of_one_case_are_flown_once_and_named():
    """METHODS F6: one UAV of the paper's 20 is critical, so at 5 % there is one distinct case."""
    cases, notes = draw_cases(leg("layouts"), 20, (0.05, 0.5), 5, 0)
    assert [s.id for s in cases if "d0.050" in s.id] == ["paper-20-d0.050-c000-s0"]
    assert len(cases) == 1 + 5
    assert notes == ["N=20, damage 0.05 has 1 distinct cases among 5"]


def test_a_setting_that_cannot_split_is_named_and_skipped(monkeypatch):
    monkeypatch.setattr("phygail.experiments.experiment.STRIKES", 0)
    cases, notes = draw_cases(leg("strike"), 100, (0.3,), 5, 0)
    assert cases == []
    assert notes == [
        "N=100, damage 0.3 was skipped: a strike on 0.3 of 100 UAVs does not split them: choose another damage ratio"
    ]


def test_a_size_without_a_layout_of_the_paper_is_named():
    _, notes = draw_cases(leg("layouts"), 30, (0.5,), 1, 0)
    assert "no layout of 30 UAVs" in notes[0]
