import itertools
import json
import math

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from phygail.config import InputError, Physics
from phygail.swarm.layout import load_layout, save_layout
from phygail.swarm.links import find_links
from phygail.swarm.scenario import (
    D4,
    Scenario,
    budget_for,
    draw_scenario,
    load_scenarios,
    make_scenario,
    save_scenarios,
    scenario_from_json,
    scenario_to_json,
    transform,
)
from phygail.swarm.simulator import initial_state

SQUARE = [[0.0, 0.0], [200.0, 0.0], [0.0, 200.0], [200.0, 200.0]]
ENTRY = {"id": "a1", "width": 250.0, "positions": SQUARE, "damaged": [3]}


def same(a: Scenario, b: Scenario) -> bool:
    return (
        np.array_equal(a.layout, b.layout)
        and np.array_equal(a.damaged, b.damaged)
        and np.array_equal(a.center, b.center)
        and (a.id, a.width_m, a.physics, a.budget_steps) == (b.id, b.width_m, b.physics, b.budget_steps)
    )


# --- what a scenario is -----------------------------------------------------------------------------------------------


def test_defaults_without_a_map_come_from_the_bounding_box():
    scenario = make_scenario("a", [[1000.0, -50.0], [1400.0, 50.0], [1100.0, 0.0]])
    assert scenario.width_m == 400.0
    assert scenario.center.tolist() == [1200.0, 0.0]
    assert scenario.budget_steps == 320
    assert scenario.physics == Physics(120.0, 10.0, 0.1)
    assert scenario.alive.tolist() == [0, 1, 2]


def test_defaults_with_a_map_come_from_its_width():
    scenario = make_scenario("a", SQUARE, [2], width_m=750)
    assert scenario.center.tolist() == [375.0, 375.0]
    assert scenario.budget_steps == 600
    assert scenario.alive.tolist() == [0, 1, 3]
    assert scenario.spots.tolist() == [SQUARE[0], SQUARE[1], SQUARE[3]]


def test_budgets_are_those_of_the_paper():
    assert [budget_for(w, Physics()) for w in (320, 500, 750, 1000, 1600)] == [256, 400, 600, 800, 1280]
    assert budget_for(0.5, Physics()) == 1


@given(st.floats(22.0, 1e7))
@settings(max_examples=300)
def test_on_a_centered_map_the_paper_s_vehicle_has_the_paper_s_budget(width):
    """floor(0.8 W) covers the way from a corner, W/sqrt(2), on every map wider than 22 m."""
    corners = [[0.0, 0.0], [width, 0.0], [0.0, width], [width, width]]
    assert make_scenario("a", corners, width_m=width).budget_steps == math.floor(0.8 * width + 1e-9)


@pytest.mark.parametrize(("speed", "step_s", "steps"), [
    (10.0, 0.1, 600), (20.0, 0.1, 300), (10.0, 0.2, 300), (2.0, 0.1, 3000), (10.0, 0.02, 3000), (0.3, 0.1, 20_000),
    (7.0, 0.1, 857),  # 600 m / 0.7 m = 857.14
    (10_000.0, 1.0, 1),
])  # fmt: skip
def test_the_budget_is_a_way_flown_at_full_speed(speed, step_s, steps):
    """AUDIT R3, U6: 0.8 x 750 m, whatever the stride."""
    scenario = make_scenario("a", SQUARE, [2], width_m=750, physics=Physics(speed_mps=speed, step_s=step_s))
    assert scenario.budget_steps == steps


def test_the_budget_covers_the_way_to_a_center_off_the_middle():
    """AUDIT R2: 0.8 W = 400 steps, but (0, 0) is hypot(480, 360) = 600 m from the center."""
    layout = [[0.0, 0.0], [100.0, 0.0], [500.0, 350.0], [480.0, 360.0]]
    assert make_scenario("a", layout, width_m=500, center=[480.0, 360.0]).budget_steps == 600
    assert make_scenario("a", layout, width_m=500, center=[480.3, 360.0]).budget_steps == 601  # 600.24 m
    slow = Physics(speed_mps=2.0)
    assert make_scenario("a", layout, width_m=500, center=[480.0, 360.0], physics=slow).budget_steps == 3000
    outside = make_scenario("a", layout, width_m=500, center=[3000.0, 4000.0])
    assert outside.budget_steps == 5000
    assert outside.budget_steps == scenario_from_json(scenario_to_json(outside), "x").budget_steps


def test_only_the_alive_have_a_way_to_the_center():
    """Without UAV 0 the farthest is 1 at hypot(380, 360) = 523.45 m; without both the map decides."""
    layout = [[0.0, 0.0], [100.0, 0.0], [500.0, 350.0], [480.0, 360.0]]
    assert make_scenario("a", layout, [0], width_m=500, center=[480.0, 360.0]).budget_steps == 524
    assert make_scenario("a", layout, [0, 1], width_m=500, center=[480.0, 360.0]).budget_steps == 400


def test_a_budget_that_is_given_wins():
    scenario = make_scenario("a", SQUARE, width_m=250, center=[9000.0, 0.0], budget_steps=3)
    assert scenario.budget_steps == 3


def test_a_vehicle_too_slow_for_any_budget_is_refused_unless_one_is_given():
    crawling = Physics(speed_mps=1e-6, step_s=1e-6)
    with pytest.raises(
        InputError, match=r"at 1e-12 m per step the budget would be 200,000,000,000,000 steps, more than"
    ):
        make_scenario("a", SQUARE, width_m=250, physics=crawling)
    assert make_scenario("a", SQUARE, width_m=250, physics=crawling, budget_steps=9).budget_steps == 9


@pytest.mark.parametrize("factor", [0.5, 2.0, 4.0])
def test_all_lengths_and_the_speed_times_a_factor_give_the_scaled_scenario(factor):
    """Drawn, not copied: the same damage, links, subnets, contacts and budget; positions times the factor."""
    scaled = Physics(range_m=120.0 * factor, speed_mps=10.0 * factor, contact_m=10.0 * factor)
    for uavs, ratio in ((20, 0.5), (100, 0.3), (200, 0.9)):
        one = draw_scenario(uavs, ratio, np.random.default_rng(uavs))
        other = draw_scenario(uavs, ratio, np.random.default_rng(uavs), physics=scaled)
        assert np.array_equal(other.layout, factor * one.layout)
        assert np.array_equal(other.center, factor * one.center)
        assert np.array_equal(other.damaged, one.damaged)
        assert (other.width_m, other.budget_steps) == (factor * one.width_m, one.budget_steps)
        links, others = (initial_state(s).links for s in (one, other))
        assert np.array_equal(others.pairs, links.pairs)
        assert np.array_equal(others.subnet, links.subnet)


def test_a_drawn_scenario_splits_at_its_own_radio():
    for reach in (30.0, 300.0):
        physics = Physics(range_m=reach, contact_m=reach / 12)
        scenario = draw_scenario(100, 0.5, np.random.default_rng(0), physics=physics)
        assert scenario.width_m == 750.0 * reach / 120.0
        assert find_links(scenario.layout, reach).connected
        assert not find_links(scenario.spots, reach).connected


def test_a_scenario_is_immutable_and_keeps_nothing_of_the_callers_array():
    layout = np.array(SQUARE)
    scenario = make_scenario("a", layout, [0])
    layout[0] = 7.0
    assert scenario.layout[0].tolist() == [0.0, 0.0]
    for array in (scenario.layout, scenario.damaged, scenario.center, scenario.alive, scenario.spots):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0


# --- turning and mirroring --------------------------------------------------------------------------------------------


def test_d4_has_eight_distinct_elements_and_is_closed():
    """PH-9."""
    keys = {tuple(m.ravel()) for m in D4}
    assert len(keys) == 8
    assert {tuple((a @ b).ravel()) for a, b in itertools.product(D4, D4)} == keys
    assert all(np.array_equal(m @ m.T, np.eye(2)) for m in D4)


@pytest.mark.parametrize("element", range(8))
def test_transforms_preserve_distances_links_and_the_map(element):
    """PH-9."""
    scenario = draw_scenario(50, 0.5, np.random.default_rng(3))
    turned = transform(scenario, element)
    between = lambda p: np.linalg.norm(p[:, None] - p[None], axis=2)  # noqa: E731 - a name for one formula
    np.testing.assert_allclose(between(turned.layout), between(scenario.layout), atol=1e-9)
    assert turned.layout.min() >= 0
    assert turned.layout.max() <= scenario.width_m
    assert np.array_equal(turned.damaged, scenario.damaged)
    assert np.array_equal(turned.center, scenario.center)
    assert turned.id == f"drawn-g{element}"
    before, after = (find_links(s.spots, 120.0) for s in (scenario, turned))
    assert np.array_equal(before.pairs, after.pairs)


def test_a_quarter_turn_by_hand():
    turned = transform(make_scenario("a", [[0.0, 0.0], [2.0, 0.0], [2.0, 1.0]], center=[1.0, 1.0]), 1)
    assert turned.layout.tolist() == [[2.0, 0.0], [2.0, 2.0], [1.0, 2.0]]  # counter-clockwise about (1, 1)


# --- drawing ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("uavs", "ratio"), [(3, 0.5), (20, 0.05), (20, 0.9), (100, 0.05), (100, 0.95), (500, 0.3)])
def test_a_drawn_scenario_is_one_network_before_the_damage_and_split_after(uavs, ratio):
    for seed in range(5):
        scenario = draw_scenario(uavs, ratio, np.random.default_rng(seed), seed=seed)
        assert find_links(scenario.layout, 120.0).connected
        assert find_links(scenario.spots, 120.0).count >= 2
        assert len(scenario.alive) + len(scenario.damaged) == scenario.uavs == uavs
        assert scenario.seed == seed


def test_equal_seeds_draw_equal_scenarios():
    a, b, c = (draw_scenario(50, 0.4, np.random.default_rng(s)) for s in (1, 1, 2))
    assert same(a, b)
    assert not same(a, c)


def test_layouts_are_fresh_from_case_to_case():
    rng = np.random.default_rng(0)
    assert not np.array_equal(draw_scenario(20, 0.5, rng).layout, draw_scenario(20, 0.5, rng).layout)


def test_a_fixed_layout_keeps_its_place_and_decides_the_size():
    line = np.array([[1000.0 + 100 * k, 0.0] for k in range(12)])
    scenario = draw_scenario(99, 0.25, np.random.default_rng(0), layout=line)
    assert np.array_equal(scenario.layout, line)
    assert len(scenario.damaged) == 3
    assert scenario.width_m == 1100.0


@pytest.mark.parametrize(("uavs", "ratio"), [(2, 0.5), (20, 0.0), (10_000, 0.0), (10_000, 0.00001), (3, 0.01)])
def test_a_setting_that_cannot_split_is_refused_at_once(uavs, ratio, monkeypatch):
    monkeypatch.setattr("phygail.swarm.scenario.draw_layout", lambda *_: pytest.fail("nothing needs to be drawn"))
    with pytest.raises(InputError, match=f"does not split a swarm of {uavs} UAVs on this map: choose another"):
        draw_scenario(uavs, ratio, np.random.default_rng(0))


def test_a_layout_within_one_range_is_refused_at_once(monkeypatch):
    monkeypatch.setattr("phygail.swarm.scenario.random_damage", lambda *_: pytest.fail("nothing needs to be drawn"))
    clump = np.random.default_rng(0).uniform(0, 60, (30, 2))
    with pytest.raises(InputError, match=r"damage 0.5 does not split"):
        draw_scenario(30, 0.5, np.random.default_rng(0), layout=clump)


def test_a_layout_in_which_one_pair_is_out_of_range_is_tried():
    """Three within 100 m of the middle one, the outer two 200 m apart: the loss of the middle splits them."""
    line = np.array([[0.0, 0.0], [100.0, 0.0], [200.0, 0.0]])
    scenario = draw_scenario(3, 0.34, np.random.default_rng(0), layout=line)
    assert scenario.damaged.tolist() == [1]


@pytest.mark.parametrize("uavs", [-5, 0, 1, 10_001])
def test_a_swarm_size_out_of_bounds_is_refused(uavs):
    with pytest.raises(InputError, match="choose from 2 to 10,000"):
        draw_scenario(uavs, 0.5, np.random.default_rng(0))


# --- files ------------------------------------------------------------------------------------------------------------


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


def test_the_smallest_width_without_a_map_is_a_meter():
    assert make_scenario("a", [[0.0, 0.0], [0.3, 0.4]]).width_m == 1.0
    assert make_scenario("a", [[0.0, 0.0], [0.3, 1.5]]).width_m == 1.5


def test_the_edge_of_the_map_belongs_to_it():
    scenario = make_scenario("a", SQUARE, width_m=200.0)
    assert scenario_to_json(scenario)["width"] == 200.0
    with pytest.raises(InputError, match="outside the map"):
        make_scenario("a", SQUARE, width_m=199.9)


def test_a_scenario_made_by_hand_flies_the_usual_vehicle():
    scenario = Scenario("a", np.array(SQUARE), np.array([], dtype=int), 200.0, np.zeros(2))
    assert scenario.physics == Physics()


def test_a_layout_is_tried_with_twenty_damage_sets_before_the_next(monkeypatch):
    drawn = []

    def draw(uavs, rng, width, physics):
        drawn.append(width)
        return np.random.default_rng(0).uniform(0, 60, (uavs, 2))  # within one range: no damage splits it

    monkeypatch.setattr("phygail.swarm.scenario.draw_layout", draw)
    monkeypatch.setattr("phygail.swarm.scenario.SPLIT_REDRAWS", 65)
    with pytest.raises(InputError, match="does not split"):
        draw_scenario(30, 0.5, np.random.default_rng(0), width_m=60.0)
    assert drawn == [60.0] * 4  # of 65 damage sets


@pytest.mark.parametrize(("uavs", "tries"), [(30, 20_000), (40, 12_500), (500, 200)])
def test_larger_swarms_are_tried_less_often(monkeypatch, uavs, tries):
    """20,000,000 / N^2 damage sets, from 200 to 20,000."""
    counted = []
    monkeypatch.setattr("phygail.swarm.scenario.random_damage", lambda *_: counted.append(1) or np.array([], dtype=int))
    line = 100.0 * np.arange(uavs)[:, None] * [1.0, 0.0]  # nobody is lost, so it stays one network
    same = find_links(line, 120.0)
    monkeypatch.setattr("phygail.swarm.scenario.find_links", lambda *_: same)
    with pytest.raises(InputError, match="does not split"):
        draw_scenario(uavs, 0.1, np.random.default_rng(0), layout=line)
    assert len(counted) == tries
