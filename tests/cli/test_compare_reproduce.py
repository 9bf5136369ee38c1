"""`phygail reproduce` as a user types it."""

from __future__ import annotations

import json
import subprocess
import sys
import time

import pytest

from phygail.cli.main import main
from phygail.config import InputError
from phygail.experiments.catalog import EXPERIMENTS
from phygail.experiments.experiment import Experiment, Leg
from phygail.experiments.grid import Grid
from phygail.experiments.reproduce import FIGURES, REPORT, report_text, same_flights
from phygail.experiments.rows import TIMINGS, read_rows
from phygail.methods import METHODS
from phygail.methods.base import why_not
from phygail.swarm.tree import bound_steps

# `reach-evolved` takes part as soon as the package holds it and its weights.
pytestmark = pytest.mark.usefixtures("no_processes")
WANTED = ",".join(name for name in ("center-fly", "sidr", "reach", "reach-evolved") if not why_not(name))
DAMAGE = "0.25,0.5,0.75"


@pytest.fixture
def no_pictures(monkeypatch):
    """Spares the half second that each takes; tests of `overall` look at one."""
    for name in FIGURES:
        monkeypatch.setitem(FIGURES._entries, name, lambda evidence, path: None)


def reproduce_overall(folder, *further):
    words = ["reproduce", "overall", "--cases", "1", "--uavs", "20,50", "--methods", WANTED, "--out", str(folder)]
    assert main([*words, *further]) == 0
    return folder


@pytest.fixture(scope="module")
def overall(tmp_path_factory, no_processes):
    return reproduce_overall(tmp_path_factory.mktemp("results") / "overall", "--damage", DAMAGE)


def shows_ours_beside_the_papers(folder, cases):
    text = (folder / REPORT).read_text(encoding="utf-8")
    assert "| method | cases | reconnected | paper |" in text
    assert "0.472" in text  # the paper's SIDR
    assert f"the {cases} cases that every method flew" in text
    assert (folder / "curves.png").stat().st_size > 10_000
    assert len(read_rows(folder / "fast" / "rows.csv")) == cases * len(WANTED.split(","))


def test_overall_shows_ours_beside_the_papers(overall):
    shows_ours_beside_the_papers(overall, 6)


@pytest.mark.slow
def test_the_whole_of_overall_takes_under_a_minute(tmp_path):
    """The line of the README."""
    begun = time.process_time()
    reproduce_overall(tmp_path)
    assert time.process_time() - begun < 60  # of a core, however busy the machine is
    shows_ours_beside_the_papers(tmp_path, 37)  # 18 ratios at N = 20, 19 at N = 50


def test_tables_are_made_from_the_rows_alone(overall):
    assert report_text(EXPERIMENTS.get("overall"), overall) == (overall / REPORT).read_text(encoding="utf-8")


def test_optimality_is_made_of_the_flights_of_overall(overall, capsys):
    before = (overall / "fast" / "rows.csv").read_bytes()
    out = overall.parent / "optimality"
    words = ["--cases", "1", "--uavs", "20,50", "--damage", DAMAGE, "--methods", WANTED, "--out", str(out)]
    assert main(["reproduce", "optimality", *words]) == 0
    assert (overall / "fast" / "rows.csv").read_bytes() == before
    assert {file.name for file in out.iterdir()} == {REPORT, "over-bound.png"}
    assert "| method | N=20 | N=50 |" in capsys.readouterr().out


def test_a_method_is_added_later_and_nothing_is_flown_twice(overall, no_pictures):
    before = (overall / "fast" / "rows.csv").read_text().splitlines()
    words = ["--cases", "1", "--uavs", "20", "--damage", "0.5", "--methods", "hero", "--out", str(overall)]
    assert main(["reproduce", "overall", *words]) == 0
    after = (overall / "fast" / "rows.csv").read_text().splitlines()
    assert set(before) < set(after)
    assert len(after) == len(before) + 1
    assert "| `hero` | 1 (1 of 6 settings) |" in (overall / REPORT).read_text(encoding="utf-8")


def test_the_list_names_every_experiment(capsys):
    assert main(["reproduce", "--list"]) == 0
    shown = capsys.readouterr().out
    assert all(name in shown for name in EXPERIMENTS)


@pytest.mark.parametrize(
    ("words", "named"),
    [
        ([], "no experiment is named"),
        (["overal"], "did you mean 'overall'?"),
        (["overall", "--methods", "sidr,nobody"], "unknown method 'nobody'"),
        (["overall", "--uavs", "30"], "no swarm size 30"),
        (["noise", "--methods", "convex", "--uavs", "100", "--damage", "0.95"], "no damage ratio 0.95"),
    ],
)
def test_bad_input_is_one_line_and_leaves_nothing(words, named, tmp_path, capsys):
    out = tmp_path / "out"
    assert main(["reproduce", *words, "--out", str(out)]) == 2
    complaint = capsys.readouterr().err
    assert named in complaint
    assert len(complaint.splitlines()) == 1
    assert not out.exists()


def test_a_declared_method_that_is_not_there_is_named_and_left_out(tmp_path, capsys, monkeypatch):
    monkeypatch.delitem(METHODS._entries, "hero")
    toy = Experiment("toy", "Toy", "?", (Leg("fast", ("hero", "sidr"), (20,), (0.5,), 1),), tables=("by-size",))
    monkeypatch.setitem(EXPERIMENTS._entries, "toy", toy)
    assert main(["reproduce", "toy", "--out", str(tmp_path), "--workers", "1"]) == 0
    assert "hero is left out of toy: there is no such method in this version" in capsys.readouterr().err
    assert "- hero was left out: there is no such method" in (tmp_path / REPORT).read_text(encoding="utf-8")


def test_all_leaves_out_what_does_not_fit_by_name(tmp_path, capsys, monkeypatch):
    toy = Experiment("toy", "Toy", "?", (Leg("fast", ("sidr",), (20,), (0.5,), 1),), tables=("by-size",))
    entries = {"toy": toy, **{name: EXPERIMENTS.get(name) for name in ("scale", "ablation")}}
    monkeypatch.setattr(EXPERIMENTS, "_entries", entries)
    assert main(["reproduce", "all", "--uavs", "20", "--workers", "1", "--out", str(tmp_path)]) == 0
    told = capsys.readouterr().err
    assert "scale is left out: scale has no swarm size 20" in told
    assert "ablation is left out: it trains policies, give --experts FILE.h5" in told
    assert [folder.name for folder in tmp_path.iterdir()] == ["toy"]


def test_a_method_that_meets_the_time_limit_is_named_and_flown_again_without_it(tmp_path, monkeypatch, no_pictures):
    toy = Experiment("toy", "Toy", "?", (Leg("fast", ("sidr",), (20,), (0.5,), 1),), tables=("by-size",))
    monkeypatch.setitem(EXPERIMENTS._entries, "toy", toy)
    words = ["reproduce", "toy", "--workers", "1", "--out", str(tmp_path)]
    assert main([*words, "--timeout", "1e-9"]) == 0
    assert "sidr: 1 of 1 episodes met the time limit" in (tmp_path / REPORT).read_text(encoding="utf-8")
    assert main(words) == 0
    assert "time limit" not in (tmp_path / REPORT).read_text(encoding="utf-8")


def test_killed_and_resumed_it_ends_with_the_rows_of_an_undisturbed_run(tmp_path, no_pictures):
    words = ["--cases", "1", "--uavs", "20", "--methods", "center-fly,sidr", "--workers", "1"]
    assert main(["reproduce", "overall", *words, "--out", str(tmp_path / "whole")]) == 0
    killed = tmp_path / "killed"
    run = subprocess.Popen([sys.executable, "-m", "phygail", "reproduce", "overall", *words, "--out", str(killed)])
    rows, deadline = killed / "fast" / "rows.csv", time.monotonic() + 200
    while run.poll() is None and time.monotonic() < deadline:
        if rows.exists() and rows.read_bytes().count(b"\n") > 5:
            break
        time.sleep(0.002)
    run.kill()
    run.wait()
    assert main(["reproduce", "overall", *words, "--out", str(killed)]) == 0
    whole, resumed = (
        [{name: cell for name, cell in row.items() if name not in TIMINGS} for row in read_rows(path)]
        for path in (tmp_path / "whole" / "fast" / "rows.csv", rows)
    )
    assert resumed == whole


def test_a_method_without_its_weights_is_left_out_with_the_reason(monkeypatch):
    def refuse(*_):
        raise InputError("cannot read the policy phygail.onnx")

    monkeypatch.setattr("phygail.methods.base.make_method", refuse)
    assert why_not("sidr") == "cannot read the policy phygail.onnx"


SHORT = ["--cases", "1", "--uavs", "100", "--damage", "0.5", "--methods", "sidr,center-fly", "--workers", "1"]


def test_experiments_side_by_side_fly_the_same_flights_once(tmp_path, no_pictures):
    """`safety` without the filter is what `overall` flew; with it, or under another name, it flies."""
    for name in ("overall", "safety"):
        assert main(["reproduce", name, *SHORT, "--out", str(tmp_path / name)]) == 0
    assert main(["reproduce", "safety", *SHORT, "--out", str(tmp_path / "mine")]) == 0
    flown = (tmp_path / "overall" / "fast" / "rows.csv").read_text()
    assert (tmp_path / "safety" / "fast-off" / "rows.csv").read_text() == flown  # timings too
    assert (tmp_path / "mine" / "fast-off" / "rows.csv").read_text() != flown
    assert "Flights that `overall` had flown" in (tmp_path / "safety" / REPORT).read_text(encoding="utf-8")
    assert "had flown" not in (tmp_path / "mine" / REPORT).read_text(encoding="utf-8")
    assert {row["safety"] for row in read_rows(tmp_path / "safety" / "fast-on" / "rows.csv")} == {"on"}


def test_nothing_is_taken_where_times_are_measured(tmp_path, no_pictures):
    for name in ("overall", "runtime"):
        assert main(["reproduce", name, *SHORT, "--out", str(tmp_path / name)]) == 0
    assert "taken_from" not in json.loads((tmp_path / "runtime" / "all" / "run.json").read_text())
    kin = same_flights(EXPERIMENTS.get("noise"), EXPERIMENTS.get("noise").legs[0], tmp_path / "noise")
    assert {"overall/fast", "delay/fast-0"} < {f"{path.parent.name}/{path.name}" for path in kin}
    assert not {path for path in kin if path.parent.name in ("noise", "strike", "paper-layouts", "ablation")}


@pytest.mark.parametrize(
    ("name", "scenario"), [("strike", "strike-n0100-d0.500-c000-s0"), ("paper-layouts", "paper-100-d0.500-c000-s0")]
)
def test_strike_and_layouts_fly_scenarios_of_their_own(name, scenario, tmp_path, no_pictures):
    words = ["--cases", "1", "--uavs", "100", "--damage", "0.5", "--methods", "sidr", "--workers", "1"]
    assert main(["reproduce", name, *words, "--out", str(tmp_path)]) == 0
    assert [row["scenario"] for row in read_rows(tmp_path / "fast" / "rows.csv")] == [scenario]


def test_noise_keeps_its_levels_apart(tmp_path, no_pictures):
    words = ["--cases", "1", "--uavs", "100", "--damage", "0.25", "--methods", "sidr", "--workers", "1"]
    assert main(["reproduce", "noise", *words, "--out", str(tmp_path)]) == 0
    levels = {r["noise_m"] for file in tmp_path.glob("*/rows.csv") for r in read_rows(file)}
    assert levels == {0.0, 2.0, 4.0, 6.0, 8.0, 10.0}
    assert json.loads((tmp_path / "fast-4m" / "run.json").read_text())["config"]["noise_m"] == 4.0
    assert "| method | cases | 0 m | 2 m | 4 m | 6 m | 8 m | 10 m |" in (tmp_path / REPORT).read_text(encoding="utf-8")


SMALL = ("--cases", "1", "--uavs", "20", "--damage", "0.5", "--methods", "center-fly,sidr")


def test_another_seed_draws_other_cases_of_the_same_settings(tmp_path, no_pictures):
    folders = {seed: tmp_path / f"s{seed}" for seed in (0, 2)}
    for seed, folder in folders.items():
        assert main(["reproduce", "overall", *SMALL, "--seed", str(seed), "--out", str(folder)]) == 0
    rows = {seed: read_rows(folder / "fast" / "rows.csv") for seed, folder in folders.items()}
    assert [row["scenario"] for row in rows[0]] == ["n0020-d0.500-c000-s0"] * 2
    assert [row["scenario"] for row in rows[2]] == ["n0020-d0.500-c000-s2"] * 2
    assert {row["seed"] for row in rows[2]} == {2}
    drawn = Grid((20,), (0.5,), 1, 2).scenario(0)
    assert rows[2][0]["bound_steps"] == bound_steps(drawn.spots, drawn.physics)
    for seed, folder in folders.items():
        assert json.loads((folder / "fast" / "run.json").read_text())["config"]["seed"] == seed
        assert json.loads((folder / "experiment.json").read_text())["seed"] == seed


def test_draws_of_two_seeds_are_never_mixed(tmp_path, capsys, no_pictures):
    """Not within a leg, nor in a leg that the folder does not hold yet; nothing is written."""
    out = tmp_path / "overall"
    assert main(["reproduce", "overall", *SMALL, "--seed", "1", "--out", str(out)]) == 0
    before = {file: file.read_bytes() for file in out.rglob("*") if file.is_file()}
    planner = ("--cases", "1", "--uavs", "20", "--damage", "0.5", "--methods", "convex", "--out", str(out))
    for words in ((*SMALL, "--out", str(out)), planner, (*planner, "--seed", "3")):
        capsys.readouterr()
        assert main(["reproduce", "overall", *words]) == 2
        assert "seed was 1, now" in capsys.readouterr().err
    assert {file: file.read_bytes() for file in out.rglob("*") if file.is_file()} == before
    (out / "experiment.json").unlink()  # of a folder from before there were seeds: they were 0
    assert main(["reproduce", "overall", *planner, "--seed", "1"]) == 2
    assert "seed was 0, now 1" in capsys.readouterr().err


@pytest.mark.parametrize("seed", ["-1", str(2**63)])
def test_an_impossible_seed_is_refused(tmp_path, capsys, seed):
    assert main(["reproduce", "overall", *SMALL, "--seed", seed, "--out", str(tmp_path / "out")]) == 2
    assert f"seed {seed}: choose from 0 to" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
