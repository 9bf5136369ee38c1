"""Folders that grow: nothing flown twice, nothing mixed, nothing lost."""

from __future__ import annotations

import errno
import json
import os
from dataclasses import replace

import pytest

import phygail
from phygail.config import InputError
from phygail.experiments import runner as module
from phygail.experiments.grid import Grid
from phygail.experiments.rows import TIMINGS, read_rows, save_rows
from phygail.experiments.runner import collect, make_job
from phygail.sensing.imperfect import Sensing
from phygail.weights import bundled

SOURCE = {"source": "fresh", "seed": 0}
pytestmark = pytest.mark.usefixtures("no_processes")


def job(cases, methods, sensing=None, seed=0, damage=(0.5, 0.8)):
    grid = Grid((20,), damage, cases, seed)
    return make_job(grid, methods, safety=False, timeout=None, policy=None, plugins=(), sensing=sensing)


def grow(folder, *args, source=SOURCE, **options):
    return collect(job(*args, **options), folder, source, workers=1, command="test").drop(TIMINGS)


@pytest.fixture(scope="module")
def whole(tmp_path_factory, no_processes):
    return grow(tmp_path_factory.mktemp("whole"), 2, "sidr,center-fly")


def test_a_folder_that_grew_holds_the_rows_of_one_flown_at_once(tmp_path, whole):
    first = grow(tmp_path, 1, "sidr")
    assert first.height == 2
    before = (tmp_path / "rows.csv").read_text().splitlines()
    assert grow(tmp_path, 2, "sidr,center-fly").equals(whole)
    assert set(before) <= set((tmp_path / "rows.csv").read_text().splitlines())  # timings too: not flown again


def test_a_smaller_run_loses_nothing(tmp_path, whole):
    grow(tmp_path, 2, "sidr,center-fly")
    assert grow(tmp_path, 1, "sidr").equals(whole)


def test_the_record_names_the_machine_and_every_command(tmp_path):
    for command in ("a", "b", "b"):
        collect(job(1, "sidr"), tmp_path, SOURCE, workers=1, command=command)
    record = json.loads((tmp_path / "run.json").read_text())
    assert [run["command"] for run in record["runs"]] == ["a", "b"]
    assert {"processor", "cores", "system", "python", "load"} == set(record["runs"][0]["machine"])


@pytest.mark.parametrize(
    ("source", "named"),
    [({"source": "fresh", "seed": 1}, "seed was 0, now 1"), ({"source": "strike", "seed": 0}, "source was")],
)
def test_other_scenarios_are_refused(tmp_path, source, named):
    grow(tmp_path, 1, "sidr")
    with pytest.raises(InputError, match=named):
        grow(tmp_path, 1, "sidr", source=source)


# --- flights that stand in the folder of another experiment -----------------------------------------------------------


def fly_beside(folder, siblings, *args, **options):
    return collect(job(*args, **options), folder, SOURCE, workers=1, command="test", siblings=[siblings])


def test_the_same_flights_are_taken_from_kin_timings_included(tmp_path, whole):
    """And what is missing there is flown: the folder then holds the rows of one flown at once."""
    donor, mine = tmp_path / "overall" / "fast", tmp_path / "noise" / "fast-0m"
    grow(donor, 1, "sidr")
    assert fly_beside(mine, donor, 2, "sidr,center-fly").drop(TIMINGS).equals(whole)
    there = (donor / "rows.csv").read_text().splitlines()
    assert set(there) <= set((mine / "rows.csv").read_text().splitlines())
    assert json.loads((mine / "run.json").read_text())["taken_from"] == ["overall/fast"]
    fly_beside(mine, donor, 2, "sidr")  # a run that takes nothing still knows
    assert json.loads((mine / "run.json").read_text())["taken_from"] == ["overall/fast"]
    assert "taken_from" not in json.loads((donor / "run.json").read_text())


def change_config(folder, **settings):
    record = json.loads((folder / "run.json").read_text())
    record["config"] |= settings
    (folder / "run.json").write_text(json.dumps(record))


@pytest.mark.parametrize(
    "settings",
    [
        {"seed": 1},
        {"source": "strike"},
        {"safety": "on"},
        {"noise_m": 2.0},
        {"policy": "sha256:x"},
        {"plugin a.py": ""},
    ],
)
def test_flights_of_other_settings_are_not_taken(tmp_path, settings):
    donor, mine = tmp_path / "donor", tmp_path / "mine"
    grow(donor, 1, "sidr")
    change_config(donor, **settings)
    fly_beside(mine, donor, 1, "sidr")
    assert "taken_from" not in json.loads((mine / "run.json").read_text())


def test_flights_with_other_weights_are_not_taken(tmp_path, monkeypatch):
    """Nor those of which nobody knows the weights; methods without any are taken beside them."""
    donor, mine = tmp_path / "donor", tmp_path / "mine"
    grow(donor, 1, "sidr,center-fly")
    before = {row["method"]: row["solve_s"] for row in read_rows(donor / "rows.csv")}
    monkeypatch.setattr(module, "weights_digest", lambda name: "sha256:new" if name == "sidr" else "")
    asked = []
    monkeypatch.setattr(module, "fly_all", lambda crew, folder, todo, *rest: asked.extend(todo) or [])
    fly_beside(mine, donor, 1, "sidr,center-fly")
    assert {task.method for task in asked} == {"sidr"}
    assert len(asked) == 2
    assert {row["method"] for row in read_rows(mine / "rows.csv")} == set(before) - {"sidr"}


@pytest.mark.parametrize("flag", ["timeout", "error:MemoryError", "straight;timeout"])
def test_flights_that_failed_for_want_of_time_or_luck_are_flown_again(tmp_path, flag):
    donor, mine = tmp_path / "donor", tmp_path / "mine"
    grow(donor, 1, "sidr")
    rows = read_rows(donor / "rows.csv")
    save_rows(donor / "rows.csv", [{**row, "flag": flag if k else "", "solve_s": 99.0} for k, row in enumerate(rows)])
    found = fly_beside(mine, donor, 1, "sidr")
    assert found["flag"].to_list() == ["", ""]
    assert [time == 99.0 for time in found["solve_s"]] == [True, False]


def test_who_sets_a_time_limit_flies(tmp_path):
    """A flight of kin may have taken longer."""
    donor, mine = tmp_path / "donor", tmp_path / "mine"
    grow(donor, 1, "sidr")
    collect(replace(job(1, "sidr"), timeout_s=60.0), mine, SOURCE, workers=1, siblings=[donor])
    assert "taken_from" not in json.loads((mine / "run.json").read_text())


def test_a_row_that_kin_holds_twice_is_taken_once(tmp_path):
    donor, mine = tmp_path / "donor", tmp_path / "mine"
    grow(donor, 1, "sidr")
    with (donor / "rows.csv").open("a") as file:  # as in the journal of a run that was killed
        file.write((donor / "rows.csv").read_text().splitlines(keepends=True)[-1])
    assert fly_beside(mine, donor, 1, "sidr").height == 2


def test_kin_that_is_missing_or_damaged_is_passed_over(tmp_path):
    torn, scratched = tmp_path / "torn", tmp_path / "scratched"
    for folder, file in ((torn, "run.json"), (scratched, "rows.csv")):
        grow(folder, 1, "sidr")
        (folder / file).write_text("{\n")
    for siblings in (torn, scratched, tmp_path / "nowhere"):
        assert fly_beside(tmp_path / f"of-{siblings.name}", siblings, 1, "sidr").height == 2


def test_retrained_weights_do_not_mix_with_the_rows_of_the_old(tmp_path, monkeypatch):
    grow(tmp_path, 1, "sidr")
    monkeypatch.setattr(module, "weights_digest", lambda name: "sha256:new" if name == "cr-ma" else "")
    grow(tmp_path, 1, "sidr")  # cr-ma has not flown here: its weights do not matter
    record = json.loads((tmp_path / "run.json").read_text())
    record["config"]["weights of sidr"] = "sha256:old"
    (tmp_path / "run.json").write_text(json.dumps(record))
    monkeypatch.setattr(module, "weights_digest", lambda name: "sha256:new")
    with pytest.raises(InputError, match="weights of sidr was"):
        grow(tmp_path, 2, "sidr")


def test_the_weights_of_learned_methods_are_part_of_the_record():
    assert module.identity(job(1, "cr-ma,sidr")).keys() == {"safety", "weights of cr-ma"}


def test_with_a_policy_the_bundled_weights_of_its_method_are_not():
    policy = bundled("phygail-taught").with_suffix(".onnx")
    recorded = module.identity(replace(job(1, "phygail-taught,cr-ma"), policy=policy))
    assert recorded.keys() == {"safety", "policy", "weights of cr-ma"}


def test_sensing_is_part_of_the_rows_and_of_the_record(tmp_path):
    noisy = grow(tmp_path / "noisy", 1, "sidr", sensing=Sensing(5.0, 2))
    assert set(noisy["noise_m"]) == {5.0}
    assert set(noisy["delay_steps"]) == {2}
    assert json.loads((tmp_path / "noisy" / "run.json").read_text())["config"]["noise_m"] == 5.0
    with pytest.raises(InputError, match=r"noise_m was 5\.0, now 6\.0"):
        grow(tmp_path / "noisy", 1, "sidr", sensing=Sensing(6.0, 2))


def test_a_full_disk_is_one_line_and_loses_no_row_that_was_written(tmp_path, monkeypatch, whole):
    flown = 0

    def full(handle):
        nonlocal flown
        flown += 1
        if flown > 4:  # two whole files first, then rows
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("phygail.experiments.rows.os.fsync", full)
    with pytest.raises(InputError, match="No space left on device; make room and run again"):
        grow(tmp_path, 2, "sidr,center-fly")
    monkeypatch.undo()
    kept = read_rows(tmp_path / "rows.csv")
    assert 0 < len(kept) < whole.height
    assert grow(tmp_path, 2, "sidr,center-fly").equals(whole)


def test_rows_of_another_version_are_refused(tmp_path):
    grow(tmp_path, 1, "sidr")
    path = tmp_path / "rows.csv"
    path.write_text(path.read_text().replace(f",{phygail.__version__},", ",0.0.9,"))
    with pytest.raises(InputError, match=r"rows of phygail 0\.0\.9"):
        grow(tmp_path, 2, "sidr")
