"""Grids: the scenario depends on its coordinates only; lists and ranges are exact."""

from __future__ import annotations

import contextlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from phygail.config import InputError
from phygail.experiments.grid import CaseList, Grid, parse_numbers, parse_whole
from phygail.swarm.scenario import make_scenario
from phygail.swarm.simulator import initial_state


def test_ids_name_size_damage_case_and_seed_and_sort_naturally():
    ids = Grid((20, 100), (0.25, 0.5), 2, seed=7).ids()
    assert ids[0] == "n0020-d0.250-c000-s7"
    assert ids[-1] == "n0100-d0.500-c001-s7"
    assert ids == sorted(ids)


def test_a_scenario_depends_on_nothing_but_its_own_cell():
    small = Grid((50,), (0.5,), 2, seed=3).scenario(1)
    large = Grid((20, 50), (0.25, 0.5, 0.75), 4, seed=3)
    twin = large.scenario(large.ids().index(small.id))
    assert np.array_equal(small.layout, twin.layout)
    assert np.array_equal(small.damaged, twin.damaged)


def test_drawn_scenarios_are_split_and_carry_their_seed():
    for scenario in Grid((20,), (0.25, 0.9), 2, seed=5).scenarios():
        assert initial_state(scenario).links.count > 1
        assert scenario.seed == 5


@pytest.mark.parametrize(
    ("uavs", "damage", "cases", "seed"),
    [
        ((2,), (0.5,), 1, 0),  # two never split
        ((20,), (0.0,), 1, 0),  # nobody is lost
        ((20,), (1.5,), 1, 0),
        ((20,), (float("nan"),), 1, 0),
        ((20,), (0.1234,), 1, 0),  # does not fit the id
        ((20,), (0.5,), 0, 0),
        ((20,), (0.5,), -3, 0),
        ((20,), (0.5,), 1, -1),
        ((20,), (0.5,), 1, 2**70),
        ((20, 20), (0.5,), 1, 0),
        ((1,), (0.5,), 1, 0),
        ((10_001,), (0.5,), 1, 0),
        ((), (0.5,), 1, 0),
        (tuple(range(20, 100)), (0.5,), 100_000, 0),  # eight million scenarios
    ],
)
def test_bad_grids_are_refused(uavs, damage, cases, seed):
    with pytest.raises(InputError):
        Grid(uavs, damage, cases, seed)


def test_a_cell_that_cannot_split_is_named():
    with pytest.raises(InputError, match=r"2 UAVs with damage 0\.5"):
        Grid((20, 2), (0.5,), 1)


def test_ranges_include_the_last_value_and_are_exact_in_decimals():
    assert parse_numbers("0.05:0.95:0.1", "--damage") == (0.05, 0.15, 0.25, 0.35, 0.45, 0.55, 0.65, 0.75, 0.85, 0.95)
    assert parse_numbers("0.25,0.5", "--damage") == (0.25, 0.5)
    assert parse_numbers("0.1,0.5:0.7:0.1", "--damage") == (0.1, 0.5, 0.6, 0.7)
    assert parse_whole("20:100:40", "--uavs") == (20, 60, 100)


@given(st.integers(0, 900), st.integers(1, 50), st.integers(0, 40))
def test_a_range_ends_at_its_last_value(first, step, count):
    last = first + step * count
    values = parse_numbers(f"{first / 1000}:{last / 1000}:{step / 1000}", "--damage")
    assert values == tuple((first + k * step) / 1000 for k in range(count + 1))


@pytest.mark.parametrize(
    "text",
    ["", "a", "1,,2", "0.1:0.5", "0.5:0.1:0.1", "0:1:0", "0:1:-1", "nan", "inf", "1e999999999", "0:1:1e-9", "1:2:3:4"],
)
def test_bad_lists_are_refused_with_the_flag_named(text):
    with pytest.raises(InputError, match="--damage"):
        parse_numbers(text, "--damage")


def test_a_fraction_is_no_swarm_size():
    with pytest.raises(InputError, match="whole number"):
        parse_whole("20.5", "--uavs")


@given(st.text(max_size=12))
def test_any_text_is_a_list_or_an_input_error(text):
    with contextlib.suppress(InputError):
        assert len(parse_whole(text, "--uavs")) >= 1


def test_given_scenarios_need_unique_printable_ids():
    one, twin = (make_scenario("a", [[0, 0], [9, 9]]) for _ in range(2))
    with pytest.raises(InputError, match="twice"):
        CaseList((one, twin))
    with pytest.raises(InputError, match="printed"):
        CaseList((make_scenario("a\nb", [[0, 0], [9, 9]]),))
    with pytest.raises(InputError, match="no scenario"):
        CaseList(())


def test_a_given_scenario_is_write_protected_again_after_travel():
    scenario = make_scenario("a", [[0, 0], [9, 9]])
    object.__setattr__(scenario, "layout", scenario.layout.copy())  # as unpickling leaves it
    assert not CaseList((scenario,)).scenario(0).layout.flags.writeable
