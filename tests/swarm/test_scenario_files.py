"""Scenario and layout files: what is written is read; whatever a file says, the reader gives scenarios or one line."""

import json
import math

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.swarm.test_scenario import SQUARE, same

from phygail.config import InputError, Physics
from phygail.swarm.layout import load_layout, save_layout
from phygail.swarm.links import find_links
from phygail.swarm.scenario import (
    Scenario,
    draw_scenario,
    load_scenarios,
    make_scenario,
    save_scenarios,
    scenario_from_json,
    scenario_to_json,
    transform,
)

ENTRY = {"id": "a1", "width": 250.0, "positions": SQUARE, "damaged": [3]}


def test_scenario_files_round_trip_exactly(tmp_path):
    own = Physics(range_m=1 / 3, speed_mps=0.1 + 0.2, step_s=math.pi, contact_m=1 / 7)
    rng = np.random.default_rng(0)
    scenarios = [
        draw_scenario(50, 0.5, rng, name="drawn", seed=2**63 - 1),
        transform(draw_scenario(20, 0.5, rng, seed=0), 5),
        make_scenario("far away, no map", rng.uniform(-3e6, -2e6, (30, 2)), [3], physics=own, budget_steps=77),
        make_scenario("off center", SQUARE, [1], width_m=333.3, center=[-1 / 7, 1e6]),
        make_scenario('quotes " , and ümläuts', [[0.1, 0.2], [0.3, 0.4]]),
    ]
    save_scenarios(tmp_path / "s.json", scenarios)
    loaded = load_scenarios(tmp_path / "s.json")
    assert len(loaded) == len(scenarios)
    assert all(map(same, loaded, scenarios))
    assert [s.seed for s in loaded] == [2**63 - 1, None, None, None, None]
    assert [("seed" in scenario_to_json(s)) for s in scenarios] == [True, False, False, False, False]


@given(
    st.lists(st.tuples(*[st.floats(-1e7, 1e7)] * 2), min_size=2, max_size=8, unique=True),
    st.booleans(),
)
@settings(max_examples=50, deadline=None)
def test_any_layout_round_trips_exactly(points, mapped):
    layout = np.abs(points) if mapped else np.array(points)
    try:
        scenario = make_scenario("a", layout, width_m=1e7 if mapped else None)
    except InputError:
        return  # mirrored onto each other by the absolute value, or -0.0 beside 0.0
    assert same(scenario_from_json(json.loads(json.dumps(scenario_to_json(scenario))), "x"), scenario)


def test_the_smallest_file_of_the_contract_loads(tmp_path):
    path = tmp_path / "s.json"
    path.write_text(json.dumps({"scenarios": [{"id": "a", "positions": [[0, 0], [300, 40]], "damaged": []}]}))
    (scenario,) = load_scenarios(str(path))
    assert scenario.center.tolist() == [150.0, 20.0]
    assert scenario.budget_steps == 240


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"id": ""}, "'id' '' must be a text of printable characters"),
        ({"id": 5}, "'id' 5 must be"),
        ({"id": "a\nb"}, r"'id' 'a\\nb' must be"),
        ({"id": "\ud800"}, "'id' .* must be"),
        ({"colour": 1}, r"\('a1'\): unknown key 'colour'; known are id, positions, damaged, width"),
        ({"positions": None}, r"\('a1'\): 'positions' must be a list"),
        ({"damaged": {}}, "'damaged' must be a list"),
        ({"positions": []}, r"positions have shape \(0,\)"),
        ({"positions": [[0, 0]]}, "1 UAV in the layout: at least two are needed"),
        ({"positions": [[0, 0], [1]]}, "must be a list of .x, y. pairs of numbers"),
        ({"positions": [[0, 0, 0], [1, 1, 1]]}, r"positions have shape \(2, 3\)"),
        ({"positions": [[0, 0], [1, "2"]]}, "pairs of numbers"),
        ({"positions": [[0, 0], [1, True]]}, "pairs of numbers"),
        ({"positions": [[0, 0], [1, None]]}, "pairs of numbers"),
        ({"positions": [[0, 0], [1, 10**400]]}, "pairs of numbers"),
        ({"positions": [[0, 0], [1, math.nan]]}, r"position 1 \(1, nan\): coordinates must be numbers"),
        ({"positions": [[0, 0], [math.inf, 1]]}, r"position 1 \(inf, 1\): coordinates must be numbers"),
        ({"positions": [[0, 0], [1e308, 1]]}, r"up to 1e\+07 in size"),
        ({"positions": [[0, 0], [1, 1], [0, 0]]}, r"position 0 \(0, 0\) occurs twice"),
        ({"width": 150}, r"position 1 \(200, 0\) is outside the map of width 150 m"),
        ({"positions": [[0, 0], [-1, 5]]}, r"position 1 \(-1, 5\) is outside the map"),
        ({"width": 0}, r"width 0: choose from 1e-06 to 1e\+07"),
        ({"width": -5}, "width -5: choose from"),
        ({"width": math.nan}, "width nan: choose from"),
        ({"width": 1e308}, r"width 1e\+308: choose from"),
        ({"width": 10**400}, "width inf: choose from"),
        ({"width": "wide"}, "width 'wide': give a positive number"),
        ({"width": True}, "width True: give a positive number"),
        ({"center": [1]}, r"center \[1\]: give \[x, y\] in meters"),
        ({"center": [1, "2"]}, "center .*: give"),
        ({"center": [True, False]}, "center .*: give"),
        ({"center": [math.nan, 0]}, "center .*: give"),
        ({"center": 7}, "center 7: give"),
        ({"center": {"x": 1}}, "center .*: give"),
        ({"damaged": [4]}, "damaged UAV 4 is out of range: the swarm has UAVs 0 to 3"),
        ({"damaged": [1, 1]}, "listed twice"),
        ({"damaged": [0, 1, 2]}, "at least 2 must stay alive"),
        ({"damaged": [True]}, "damaged UAV True"),
        ({"range_m": -120}, "range_m -120: choose from"),
        ({"range_m": None}, "range_m None: give a positive number"),
        ({"speed_mps": 0}, "speed_mps 0: choose from"),
        ({"speed_mps": [10]}, r"speed_mps \[10\]: give a positive number"),
        ({"step_s": 1e-320}, "step_s .*: choose from"),
        ({"budget_steps": 0}, "budget_steps 0: give a whole number of steps from 1 to 16,000,000"),
        ({"budget_steps": 1.5}, "budget_steps 1.5: give a whole number"),
        ({"budget_steps": True}, "budget_steps True: give a whole number"),
        ({"budget_steps": 10**100}, "budget_steps 1000.*: give a whole number"),
        ({"seed": -1}, "seed -1: choose from 0 to 9,223,372,036,854,775,807"),
        ({"seed": 2**63}, "seed 9223372036854775808: choose from 0 to"),
        ({"seed": 1.5}, "seed 1.5: choose from 0"),
        ({"seed": True}, "seed True: choose from 0"),
        ({"seed": "7"}, "seed '7': choose from 0"),
    ],
)
def test_every_bad_entry_is_named_in_one_short_line(tmp_path, change, message):
    path = tmp_path / "s.json"
    path.write_text(json.dumps({"scenarios": [ENTRY | {"id": "good"}, ENTRY | change]}))
    with pytest.raises(InputError, match=message) as caught:
        load_scenarios(path)
    line = str(caught.value)
    assert line.startswith(f"{path}, scenario 1")
    assert "\n" not in line
    assert len(line) < len(str(path)) + 300  # the known keys are listed


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is not JSON"),
        ("{", "is not JSON"),
        ("[" * 100_000, "is not JSON"),
        ('{"scenarios": [' + "9" * 5000 + "]}", "is not JSON"),
        ("[]", "must be an object"),
        ("null", "must be an object"),
        ('{"scenarios": 5}', "must be an object"),
        ('{"scenarios": []}', "holds no scenario"),
        ('{"scenarios": [5]}', "scenario 0: must be an object with id, positions and damaged"),
        (json.dumps({"scenarios": [ENTRY, ENTRY]}), "the id 'a1' occurs twice; ids must be unique"),
    ],
)
def test_every_bad_file_is_named(tmp_path, text, message):
    path = tmp_path / "s.json"
    path.write_text(text)
    with pytest.raises(InputError, match=message) as caught:
        load_scenarios(path)
    assert str(path) in str(caught.value)


def test_files_that_cannot_be_read_are_named(tmp_path):
    with pytest.raises(InputError, match="No such file"):
        load_scenarios(tmp_path / "none.json")
    with pytest.raises(InputError, match="cannot read"):
        load_scenarios(tmp_path)
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match="not a text file"):
        load_scenarios(tmp_path / "binary")


numbers = st.one_of(
    st.integers(), st.floats(), st.sampled_from([10**400, -(10**4000), 1e308, -1e308, 1e-320, 0, -1, True, 5e6])
)
values = st.recursive(
    st.one_of(st.none(), st.booleans(), numbers, st.text(max_size=5)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4), st.dictionaries(st.sampled_from(["id", "x", "width"]), inner, max_size=3)
    ),
    max_leaves=12,
)
pairs = st.lists(st.tuples(*[st.one_of(st.integers(0, 250), numbers)] * 2), max_size=6)
entries = st.fixed_dictionaries(
    {"id": st.one_of(st.just("a"), values), "positions": st.one_of(st.just(SQUARE), pairs, values),
     "damaged": st.one_of(st.just([]), st.lists(st.integers(-1, 6), max_size=4), values)},
    optional={k: st.one_of(numbers, values)
              for k in ("width", "center", "range_m", "speed_mps", "step_s", "budget_steps", "bogus")},
)  # fmt: skip


@given(st.one_of(values, st.fixed_dictionaries({"scenarios": st.one_of(st.lists(entries, max_size=2), values)})))
@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
def test_whatever_a_file_says_the_reader_gives_scenarios_or_one_line(tmp_path, content):
    path = tmp_path / "fuzz.json"
    path.write_text(json.dumps(content))
    complaint, scenarios = "", []
    try:
        scenarios = load_scenarios(path)
    except InputError as error:
        complaint = str(error)
    assert bool(complaint) != bool(scenarios)
    assert "\n" not in complaint
    assert len(complaint) < len(str(path)) + 300
    for scenario in scenarios:
        assert isinstance(scenario, Scenario)
        assert np.isfinite(scenario.layout).all()
        assert len(scenario.alive) >= 2
        assert find_links(scenario.spots, scenario.physics.range_m).count >= 1


@given(st.text(max_size=60))
def test_whatever_text_a_file_holds_the_reader_gives_one_line(tmp_path_factory, text):
    path = tmp_path_factory.getbasetemp() / "text.json"
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    with pytest.raises(InputError):
        load_scenarios(path)
    with pytest.raises(InputError):
        load_layout(path)


def test_layout_files_round_trip_exactly(tmp_path):
    layout = np.random.default_rng(0).uniform(-1e7, 1e7, (40, 2))
    save_layout(tmp_path / "l.csv", layout)
    assert np.array_equal(load_layout(tmp_path / "l.csv"), layout)


def test_layout_files_of_spreadsheets_load(tmp_path):
    (tmp_path / "l.csv").write_bytes("\ufeffx_m, y_m\r\n1,2\r\n\r\n 3.5 , -4e1 \r\n".encode())
    assert load_layout(tmp_path / "l.csv").tolist() == [[1.0, 2.0], [3.5, -40.0]]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the first line is .*; it must be the header x_m,y_m"),
        ("1,2\n3,4\n", "the first line is .*; it must be the header x_m,y_m"),
        ("x_m,y_m\n", "0 UAV in the layout"),
        ("x_m,y_m\n1,2\n", "1 UAV in the layout"),
        ("x_m,y_m\n1,2\n3\n", "line 3: '3' is not two numbers"),
        ("x_m,y_m\n1,2\n3,4,5\n", "line 3: '3,4,5' is not two numbers"),
        ("x_m,y_m\n1,2\n3,four\n", "line 3: '3,four' is not two numbers"),
        ("x_m,y_m\n1,2\n3,nan\n", r"position 1 \(3, nan\): coordinates must be numbers"),
        ("x_m,y_m\n1,2\n1,2\n", "occurs twice"),
    ],
)
def test_every_bad_layout_file_is_named(tmp_path, text, message):
    path = tmp_path / "l.csv"
    path.write_text(text)
    with pytest.raises(InputError, match=message) as caught:
        load_layout(path)
    assert str(path) in str(caught.value)
