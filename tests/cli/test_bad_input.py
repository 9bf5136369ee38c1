"""Bad input: one line that names the value, exit code 2, no traceback, nothing half-written."""

from __future__ import annotations

import contextlib
import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from phygail.cli.main import main
from phygail.config import InputError
from phygail.swarm.scenario import load_scenarios

FOUR = [[0, 0], [100, 0], [200, 0], [300, 0]]


def refusal(capsys, *words: str) -> str:
    """The one line that `phygail WORDS` answers with."""
    assert main(words) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    lines = printed.err.splitlines()
    assert len(lines) == 1
    assert lines[0].startswith("phygail: ")
    return lines[0]


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("", "header"),
        ("1,2\n3,4\n", "header"),
        ("x_m;y_m\n1;2\n", "'x_m;y_m'"),
        ("x_m,y_m\n", "at least two"),
        ("x_m,y_m\n1,2\n", "at least two"),
        ("x_m,y_m\n1,2\n3\n", "line 3"),
        ("x_m,y_m\n1,2\n3,4,5\n", "line 3"),
        ("x_m,y_m\n1,2\na,b\n", "line 3"),
        ("x_m,y_m\n1,2\n1,2\n", "twice"),
        ("x_m,y_m\n1,2\nnan,4\n", "position 1"),
        ("x_m,y_m\n1,2\n1e308,4\n", "position 1"),
        ("x_m,y_m\n1,2\n1_0,4\n", "line 3"),
        ("x_m,y_m\n1,2\n\uff13,4\n", "line 3"),
    ],
)
@pytest.mark.parametrize("command", ["inspect", "recover"])
def test_bad_layouts(tmp_path, capsys, command, text, named):
    file = tmp_path / "layout.csv"
    file.write_text(text)
    words = ("inspect", str(file)) if command == "inspect" else ("recover", "--layout", str(file), "--methods", "sidr")
    assert named in refusal(capsys, *words)


@pytest.mark.parametrize(
    ("entry", "named"),
    [
        ({"damaged": [9]}, "out of range"),
        ({"damaged": [-1]}, "out of range"),
        ({"damaged": [1, 1]}, "twice"),
        ({"damaged": [0, 1, 2, 3]}, "at least 2 must stay alive"),
        ({"damaged": [0, 1, 2]}, "at least 2 must stay alive"),
        ({"damaged": [1.5]}, "whole numbers"),
        ({"width": 0}, "width"),
        ({"width": -5.0}, "width"),
        ({"width": 250.0}, "outside the map"),
        ({"positions": [[0, 0], [1e308, 0], [5, 5]]}, "position 1"),
        ({"positions": [[0, 0], [float("nan"), 0], [5, 5]]}, "position 1"),
        ({"positions": [[0, 0], [0, 0], [5, 5]]}, "twice"),
        ({"positions": [[0, 0], [1], [5, 5]]}, "pairs"),
        ({"positions": []}, "positions"),
        ({"positions": json.loads("[" * 40 + "1" + "]" * 40)}, "pairs"),
        ({"positions": json.loads("[" * 70 + "1" + "]" * 70)}, "pairs"),
        ({"damaged": json.loads("[" * 70 + "1" + "]" * 70)}, "whole numbers"),
        ({"center": json.loads("[" * 40 + "1" + "]" * 40)}, "center"),
        ({"range_m": 0}, "range_m"),
        ({"budget_steps": 0}, "budget_steps"),
        ({"velocity": 3}, "velocity"),
        ({"id": ""}, "id"),
    ],
)
def test_bad_scenarios_are_named_by_their_entry(tmp_path, capsys, entry, named):
    file, out = tmp_path / "cases.json", tmp_path / "run"
    file.write_text(json.dumps({"scenarios": [{"id": "a1", "positions": FOUR, "damaged": [1]} | entry]}))
    line = refusal(capsys, "compare", "--scenarios", str(file), "--methods", "sidr", "--out", str(out))
    assert named in line
    assert "scenario 0" in line
    assert not out.exists()


@pytest.mark.parametrize("text", ["", "not json", "[]", "{}", '{"scenarios": []}', '{"scenarios": 3}', "[" * 100_000])
def test_files_that_hold_no_scenarios(tmp_path, capsys, text):
    file = tmp_path / "cases.json"
    file.write_text(text)
    assert str(file) in refusal(capsys, "recover", "--scenarios", str(file), "--methods", "sidr")


def test_a_key_that_stands_twice_is_named(tmp_path, capsys):
    file = tmp_path / "cases.json"
    file.write_text('{"scenarios": [{"id": "a1", "damaged": [1], "damaged": [2], "positions": [[0, 0], [9, 9]]}]}')
    assert "the key 'damaged' stands twice" in refusal(capsys, "recover", "--scenarios", str(file))


def test_duplicate_ids(tmp_path, capsys):
    file = tmp_path / "cases.json"
    file.write_text(json.dumps({"scenarios": [{"id": "a1", "positions": FOUR, "damaged": [1]}] * 2}))
    assert "'a1' occurs twice" in refusal(capsys, "recover", "--scenarios", str(file), "--id", "a1")


GRID = ("--uavs", "20", "--damage", "0.5", "--cases", "1")


@pytest.mark.parametrize(
    ("words", "named"),
    [
        ((*GRID, "--methods", "sydr"), "did you mean 'sidr'"),
        ((*GRID, "--methods", "sidr,sidr"), "listed twice"),
        ((*GRID, "--methods", "sidr,"), "empty method name"),
        ((*GRID, "--methods", "sidr", "--plugin", "nowhere.py"), "nowhere.py"),
        ((*GRID, "--methods", "sidr", "--policy", "nowhere.onnx"), "nowhere.onnx"),
        ((*GRID, "--methods", "sidr", "--workers", "0"), "0 workers"),
        ((*GRID, "--methods", "sidr", "--timeout", "0"), "timeout 0"),
        ((*GRID, "--methods", "sidr", "--seed", "-1"), "seed -1"),
        ((*GRID, "--methods", "sidr", "--scenarios", "cases.json"), "--scenarios and --uavs"),
        (("--uavs", "20", "--methods", "sidr"), "--damage"),
        (("--uavs", "2", "--damage", "0.5", "--methods", "sidr"), "2 UAVs with damage 0.5"),
        (("--uavs", "20", "--damage", "0", "--methods", "sidr"), "20 UAVs with damage 0"),
        (("--uavs", "20", "--damage", "0.9:0.1:0.1", "--methods", "sidr"), "first <= last"),
        (("--uavs", "20", "--damage", "0.1:0.9", "--methods", "sidr"), "first:last:step"),
        (("--uavs", "20", "--damage", "1.5", "--methods", "sidr"), "1.5"),
        (("--uavs", "twenty", "--damage", "0.5", "--methods", "sidr"), "twenty"),
        (("--uavs", "2_0", "--damage", "0.5", "--methods", "sidr"), "'2_0' is not a number"),
        (("--uavs", "\uff12\uff10", "--damage", "0.5", "--methods", "sidr"), "is not a number"),
        (("--uavs", "-20", "--damage", "0.5", "--methods", "sidr"), "-20"),
        (("--uavs", "20", "--damage", "0.5", "--cases", "-1", "--methods", "sidr"), "-1 cases"),
    ],
)
def test_bad_comparisons_leave_no_folder(tmp_path, capsys, words, named):
    out = tmp_path / "run"
    assert named in refusal(capsys, "compare", *words, "--out", str(out))
    assert not out.exists()


def test_a_plugin_that_fails_on_import(tmp_path, capsys):
    file = tmp_path / "broken.py"
    file.write_text("1 / 0\n")
    assert "ZeroDivisionError" in refusal(capsys, "methods", "--plugin", str(file))


def test_a_folder_below_a_file_cannot_be_written(tmp_path, capsys):
    (tmp_path / "file").write_text("")
    below = str(tmp_path / "file" / "run")
    assert below in refusal(capsys, "compare", *GRID, "--methods", "sidr", "--out", below)
    assert "it is a file" in refusal(capsys, "compare", *GRID, "--methods", "sidr", "--out", str(tmp_path / "file"))
    for flag, name in (("--picture", "p.png"), ("--trajectory", "t.csv")):
        words = ("recover", "--uavs", "20", "--methods", "sidr", flag, f"{below}/{name}")
        assert "cannot write" in refusal(capsys, *words)
    assert "cannot write" in refusal(capsys, "scenarios", *GRID, "--out", f"{below}/cases.json")


def test_a_name_that_is_too_long_for_the_disk(tmp_path, capsys):
    name = str(tmp_path / ("a" * 300))
    for words in (("scenarios", *GRID), ("compare", *GRID, "--methods", "sidr")):
        assert "too long" in refusal(capsys, *words, "--out", name)
    assert "too long" in refusal(capsys, "recover", "--uavs", "20", "--picture", f"{name}.png")


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (("--layout", "paper-20,paper-20", "--damage", "0.5"), "layout name is listed twice"),
        (("--layout", "paper-20", "--damage", "0.5,0.50"), "damage ratio is listed twice"),
        (("--layout", "", "--damage", "0.5"), "no layout ''"),
    ],
)
def test_scenario_files_that_could_not_be_read_back_are_not_written(tmp_path, capsys, words, named):
    out = tmp_path / "cases.json"
    assert named in refusal(capsys, "scenarios", *words, "--out", str(out))
    assert not out.exists()


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (("--uavs", "50", "--layout", "l.csv"), "--uavs and --layout"),
        (("--damage", "0.5", "--kill", "3"), "--damage and --kill"),
        (("--kill", "3", "--strike", "1,2,3"), "--strike and --kill"),
        (("--scenarios", "s.json", "--damage", "0.5"), "brings its damage along"),
        (("--id", "a1"), "--id needs --scenarios"),
        (("--uavs", "20", "--kill", "20"), "out of range"),
        (("--uavs", "20", "--kill", "3,3"), "twice"),
        (("--uavs", "20", "--kill", "x"), "--kill"),
        (("--uavs", "20", "--strike", "1,2"), "X,Y,RADIUS"),
        (("--uavs", "20", "--strike", "1,2,-3"), "radius"),
        (("--uavs", "20", "--strike", "nan,2,3"), "nan"),
        (("--uavs", "20", "--strike", "160,160,9999"), "at least 2 must stay alive"),
        (("--uavs", "1"), "1 UAVs"),
        (("--uavs", "20", "--damage", "nan"), "nan"),
        (("--uavs", "20", "--seed", "-1"), "seed -1"),
        (("--uavs", "20", "--picture", "p.txt"), "p.txt"),
        (("--uavs", "20", "--methods", "nobody"), "nobody"),
        (("--uavs", "20", "--methods", ""), "empty method name"),
        (("--uavs", "20", "--trajectory", "/dev/null"), "device or pipe"),
        (("--layout", "nowhere.csv"), "nowhere.csv"),
        (("--scenarios", "nowhere.json"), "phygail: cannot read nowhere.json: No such file"),
    ],
)
def test_bad_recoveries(capsys, words, named):
    extra = () if "--methods" in words else ("--methods", "sidr")
    assert named in refusal(capsys, "recover", *words, *extra)


@pytest.mark.parametrize(
    "words", [("compare", "--wings", "2"), ("fly",), ("recover", "--safety", "maybe"), ("inspect",)]
)
def test_unknown_flags_and_commands_exit_2(capsys, words):
    with pytest.raises(SystemExit) as end:
        main(words)
    assert end.value.code == 2


_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(["id", "positions", "damaged", "width", "center", "range_m", "x"]), inner)
    ),
    max_leaves=12,
)
_PLAUSIBLE = st.fixed_dictionaries(
    {"id": st.text(max_size=3) | _VALUES, "positions": st.lists(st.lists(st.floats(), max_size=3)) | _VALUES,
     "damaged": st.lists(st.integers(-2, 9)) | _VALUES},
    optional=dict.fromkeys(("width", "center", "range_m", "speed_mps", "step_s", "budget_steps"), _VALUES),
)  # fmt: skip


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(_VALUES | st.builds(lambda entries: {"scenarios": entries}, st.lists(_PLAUSIBLE | _VALUES, max_size=3)))
def test_any_json_loads_or_is_an_input_error(tmp_path, content):
    file = tmp_path / "cases.json"
    file.write_text(json.dumps(content))
    with contextlib.suppress(InputError):  # any other exception fails
        assert all(len(s.alive) >= 2 for s in load_scenarios(file))
