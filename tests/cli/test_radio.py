"""Radio and vehicle on the command line: what is drawn, what is printed, what is refused."""

from __future__ import annotations

import json

import numpy as np
import pytest

from phygail.cli.main import main
from phygail.config import Physics, physics_line, physics_values
from phygail.experiments.failures import inspect_layout
from phygail.experiments.grid import Grid
from phygail.experiments.rows import read_rows
from phygail.swarm.layout import save_layout
from phygail.swarm.links import find_links
from phygail.swarm.scenario import load_scenarios, save_scenarios

PAPER = "radio 120 m, 10 m/s, step 0.1 s, contact 10 m"
LONG = ("--range-m", "300", "--speed-mps", "15", "--step-s", "0.2", "--contact-m", "5")
LONG_LINE = "radio 300 m, 15 m/s, step 0.2 s, contact 5 m"
pytestmark = pytest.mark.usefixtures("no_processes", "no_figures")
DRAWN = ("--uavs", "20", "--damage", "0.5")


def refused(capsys, *words: str) -> str:
    """The one line that `phygail WORDS` answers with."""
    assert main(words) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.count("\n") == 1
    return printed.err


@pytest.fixture
def layout(tmp_path):
    """A line of four UAVs 100 m apart."""
    save_layout(tmp_path / "line.csv", 100.0 * np.arange(4)[:, None] * [1.0, 0.0])
    return str(tmp_path / "line.csv")


# --- the line above tables --------------------------------------------------------------------------------------------


def test_the_line_names_radio_and_vehicle_and_spans_where_they_differ():
    assert physics_line(physics_values([Physics()])) == PAPER
    mixed = [Physics(range_m=60.0), Physics(), Physics(speed_mps=2.5)]
    assert physics_line(physics_values(mixed)) == "radio 60 to 120 m, 2.5 to 10 m/s, step 0.1 s, contact 10 m"


@pytest.mark.parametrize(("flags", "line"), [((), PAPER), (LONG, LONG_LINE)])
def test_it_stands_above_every_table(layout, tmp_path, capsys, flags, line):
    assert main(["inspect", layout, *flags]) == 0
    assert capsys.readouterr().out.splitlines()[0] == line
    assert main(["recover", *DRAWN, "--methods", "center-fly", *flags]) == 0
    assert capsys.readouterr().out.splitlines()[0] == line
    out = tmp_path / "run"
    words = ["compare", *DRAWN, "--cases", "1", "--methods", "center-fly", "--workers", "1", "--out", str(out), *flags]
    assert main(words) == 0
    assert capsys.readouterr().out.splitlines()[0] == line
    assert f"\nR{line[1:]}.\n" in (out / "summary.md").read_text(encoding="utf-8")
    config = json.loads((out / "run.json").read_text())["config"]
    assert physics_line(config) == line
    assert main(["scenarios", *DRAWN, "--cases", "1", "--out", str(tmp_path / "cases.json"), *flags]) == 0
    assert line in capsys.readouterr().err


def test_a_comparison_of_scenarios_with_several_radios_names_their_span(tmp_path, capsys):
    cases = [Grid((20,), (0.5,), 1, seed, physics).scenario(0)
             for seed, physics in ((0, Physics()), (1, Physics(range_m=60.0, contact_m=2.0)))]  # fmt: skip
    save_scenarios(tmp_path / "cases.json", cases)
    out, words = tmp_path / "run", ["--methods", "center-fly", "--workers", "1"]
    assert main(["compare", "--scenarios", str(tmp_path / "cases.json"), *words, "--out", str(out)]) == 0
    assert "radio 60 to 120 m, 10 m/s, step 0.1 s, contact 2 to 10 m" in capsys.readouterr().out
    assert json.loads((out / "run.json").read_text())["config"]["range_m"] == [60.0, 120.0]


# --- what is drawn ----------------------------------------------------------------------------------------------------


def test_drawn_scenarios_have_the_radio_and_split_at_it(tmp_path):
    """The map of 20 UAVs is 320 m wide at 120 m, so 800 m at 300 m; 0.8 x 800 m at 3 m per step are 213 steps."""
    file = tmp_path / "cases.json"
    assert main(["scenarios", *DRAWN, "--cases", "3", *LONG, "--out", str(file)]) == 0
    for scenario in load_scenarios(file):
        assert scenario.physics == Physics(300.0, 15.0, 0.2, 5.0)
        assert scenario.width_m == 800.0
        assert scenario.budget_steps == 213
        assert find_links(scenario.layout, 300.0).connected
        assert not find_links(scenario.spots, 300.0).connected
        assert not len(find_links(scenario.layout, 300.0, 5.0).contacts)


def test_recover_flies_the_scenario_of_the_grid_at_that_radio(capsys):
    assert main(["recover", *DRAWN, "--seed", "4", "--methods", "center-fly", "--json", *LONG]) == 0
    flown = json.loads(capsys.readouterr().out)["scenario"]
    drawn = Grid((20,), (0.5,), 1, 4, Physics(300.0, 15.0, 0.2, 5.0)).scenario(0)
    assert flown["positions"] == drawn.layout.tolist()
    assert [flown[name] for name in ("range_m", "speed_mps", "step_s", "contact_m")] == [300.0, 15.0, 0.2, 5.0]


def test_a_layout_that_is_read_keeps_its_meters(layout, capsys):
    """A line of four, the second lost: split at 120 m, one network at 200 m; a drawn swarm struck has the wider map."""
    for reach, subnets in (("120", 2), ("200", 1)):
        words = ["recover", "--layout", layout, "--kill", "1", "--methods", "center-fly", "--json", "--range-m", reach]
        assert main(words) == 0
        found = json.loads(capsys.readouterr().out)
        assert (found["subnets"], found["scenario"]["width"]) == (subnets, 300.0)
    words = ["recover", "--uavs", "20", "--strike", "100,100,1", "--methods", "center-fly", "--json"]
    assert main([*words, "--range-m", "240", "--contact-m", "20"]) == 0
    wide = json.loads(capsys.readouterr().out)["scenario"]
    assert main(words) == 0
    plain = json.loads(capsys.readouterr().out)["scenario"]
    assert wide["width"] == 2 * plain["width"] == 640.0
    assert np.array_equal(wide["positions"], 2 * np.array(plain["positions"]))


def test_a_damaged_layout_splits_at_the_radio_of_the_flags(layout, tmp_path):
    """At 120 m the loss of an inner UAV splits the line; at 350 m nothing does."""
    file = tmp_path / "cases.json"
    words = ["scenarios", "--layout", layout, "--damage", "0.25", "--cases", "4", "--out", str(file)]
    assert main(words) == 0
    assert {int(s.damaged[0]) for s in load_scenarios(file)} <= {1, 2}
    assert main([*words, "--range-m", "350"]) == 2


def test_inspect_counts_links_and_contacts_at_that_radio(layout, capsys):
    """Links of a line of four: 3 at 120 m, 5 at 200 m, 6 at 300 m; pairs closer than 150 m: 3."""
    for reach, links in (("120", 3), ("200", 5), ("300", 6)):
        assert main(["inspect", layout, "--json", "--range-m", reach, "--contact-m", "150"]) == 0
        found = json.loads(capsys.readouterr().out)
        assert (found["links"], found["contacts"], found["separation_m"]) == (links, 3, 100.0)
        assert found["physics"] == {"range_m": float(reach), "speed_mps": 10.0, "step_s": 0.1, "contact_m": 150.0}
    assert inspect_layout(100.0 * np.arange(4)[:, None] * [1.0, 0.0], draws=1).contacts == 0


# --- what is refused --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", ["0", "-5", "nan", "inf", "1e308", "1e-300"])
@pytest.mark.parametrize("flag", ["--range-m", "--speed-mps", "--step-s", "--contact-m"])
def test_impossible_values_are_refused_in_one_line(layout, tmp_path, capsys, flag, value):
    """One by every command that takes the flag, the others by the first."""
    out = tmp_path / "out"
    commands = [
        ("inspect", layout),
        ("recover", *DRAWN, "--methods", "center-fly"),
        ("recover", "--layout", layout, "--kill", "1", "--methods", "center-fly"),
        ("scenarios", *DRAWN, "--out", str(out)),
        ("scenarios", "--layout", layout, "--damage", "0.25", "--out", str(out)),
        ("compare", *DRAWN, "--methods", "center-fly", "--out", str(out)),
    ]
    for words in commands if value == "nan" else commands[:1]:
        assert f"{flag} {float(value):g}: choose from 1e-06 to 1e+07" in refused(capsys, *words, flag, value)
        assert not out.exists()


@pytest.mark.parametrize(("flags", "named"), [
    (("--range-m", "10"), "contact distance of 10 m have no links with a radio range of 10 m"),
    (("--contact-m", "500"), "choose a longer range or a shorter contact distance"),
    (("--range-m", "1e7"), "would be 2.66667e+07 m wide"),
    (("--speed-mps", "1e-6", "--step-s", "1e-6"), "at 1e-12 m per step the budget would be"),
    (("--range-m", "13"), "20 UAVs do not fit 10 m apart into a map 34.6667 m wide"),
])  # fmt: skip
def test_worlds_that_cannot_be_drawn_say_why(tmp_path, capsys, flags, named):
    out = tmp_path / "out"
    assert named in refused(capsys, "scenarios", *DRAWN, "--out", str(out), *flags)
    assert named in refused(capsys, "recover", *DRAWN, "--methods", "center-fly", *flags)
    assert not out.exists()


@pytest.mark.parametrize("flag", ["--range-m", "--speed-mps", "--step-s", "--contact-m"])
def test_a_scenario_file_brings_its_radio_along(tmp_path, capsys, flag):
    save_scenarios(tmp_path / "cases.json", [Grid((20,), (0.5,), 1).scenario(0)])
    source = ("--scenarios", str(tmp_path / "cases.json"), "--methods", "center-fly", flag, "7")
    for words in (("recover", *source), ("compare", *source, "--out", str(tmp_path / "out"))):
        line = refused(capsys, *words)
        assert f"--scenarios and {flag} cannot be combined" in line
        assert f"put '{flag[2:].replace('-', '_')}': 7 there" in line
    assert not (tmp_path / "out").exists()


def test_a_comparison_is_not_resumed_with_another_radio(tmp_path, capsys):
    out = tmp_path / "run"
    words = ("compare", *DRAWN, "--cases", "1", "--methods", "center-fly", "--workers", "1", "--out", str(out))
    assert main(words) == 0
    rows = (out / "rows.csv").read_bytes()
    capsys.readouterr()
    for flag, was in (("--range-m", 120.0), ("--speed-mps", 10.0), ("--step-s", 0.1), ("--contact-m", 10.0)):
        name = flag[2:].replace("-", "_")
        assert f"{name} was {was}, now {2 * was}" in refused(capsys, *words, flag, str(2 * was))
    assert (out / "rows.csv").read_bytes() == rows
    record = json.loads((out / "run.json").read_text())
    for name in ("range_m", "speed_mps", "step_s", "contact_m"):  # a folder from before they were written down
        del record["config"][name]
    (out / "run.json").write_text(json.dumps(record))
    assert "range_m was 120.0, now 60.0" in refused(capsys, *words, "--range-m", "60")
    assert main(words) == 0


def test_a_constant_bias_stands_in_rows_and_summary(tmp_path, capsys):
    out = tmp_path / "run"
    words = ("compare", *DRAWN, "--cases", "2", "--methods", "center-fly,sidr", "--workers", "1", "--out", str(out))
    assert main([*words, "--bias", "20"]) == 0
    assert {(row["noise_m"], row["bias_m"]) for row in read_rows(out / "rows.csv")} == {(0.0, 20.0)}
    assert ", bias 20 m." in (out / "summary.md").read_text(encoding="utf-8")
    capsys.readouterr()
    assert "bias_m was 20.0, now 0.0" in refused(capsys, *words)
    for size in ("-1", "nan", "1e308"):
        assert "bias_m" in refused(capsys, *words, "--bias", size)
