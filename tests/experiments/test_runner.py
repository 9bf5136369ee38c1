"""Comparisons: equal rows whatever happens on the way."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import textwrap
import time

import pytest

import phygail
from phygail.config import InputError
from phygail.experiments.engine import LocalEngine, RefusedError
from phygail.experiments.folder import RunFolder
from phygail.experiments.grid import Grid
from phygail.experiments.rows import COLUMNS, LOST, TIMEOUT, TIMINGS, csv_text, read_rows, rows_table, save_rows
from phygail.experiments.runner import compare
from phygail.files import DRAFT
from phygail.methods.base import METHODS, make_method
from phygail.methods.controller import run_episode, sensed_controller
from phygail.rng import generator
from phygail.sensing.imperfect import Sensing
from phygail.swarm.scenario import make_scenario
from phygail.swarm.simulator import fly

GRID = Grid((20,), (0.5, 0.8), 3)
METHOD_NAMES = ("center-fly", "sidr")
pytestmark = pytest.mark.usefixtures("no_figures")


@pytest.fixture(scope="module")
def whole_folder(tmp_path_factory, no_figures, here):
    """The folder of a run that nobody disturbed."""
    folder = tmp_path_factory.mktemp("run")
    compare(GRID, METHOD_NAMES, folder, engine=here)
    return folder


@pytest.fixture(scope="module")
def undisturbed(whole_folder):
    """Its rows."""
    return rows_table(read_rows(whole_folder / "rows.csv")).drop(TIMINGS)


@pytest.fixture
def finished(whole_folder, tmp_path):
    """A copy of the folder to play with, and its rows."""
    shutil.copytree(whole_folder, tmp_path, dirs_exist_ok=True)
    return read_rows(tmp_path / "rows.csv")


@pytest.fixture
def plugin(tmp_path):
    """A function that writes a plugin with one method and forgets its method afterward."""
    names = []

    def write(name, body):
        file = tmp_path / f"{name}.py"
        file.write_text(
            "import os, sys, time\nimport numpy as np\nfrom pathlib import Path\n"
            "from phygail.methods.base import LocalMethod, register\n\n@register\nclass Mine(LocalMethod):\n"
            f"    name = {name!r}\n    summary = 'test'\n\n    def act(self, view):\n" + textwrap.indent(body, " " * 8)
        )
        names.append(name)
        return file

    yield write
    for name in names:
        METHODS._entries.pop(name, None)
        sys.modules.pop(f"phygail_plugin_{name}", None)


def test_rows_are_those_of_single_episodes(undisturbed):
    for row in undisturbed.iter_rows(named=True):
        scenario = GRID.scenario(GRID.ids().index(row["scenario"]))
        episode = run_episode(scenario, row["method"])
        assert (row["converged"], row["steps"]) == (int(episode.terminated), episode.scored_steps)
        assert row["distance_m_per_uav"] == episode.metrics.distance_m_per_uav
        assert row["time_s"] == pytest.approx(row["steps"] * 0.1)
        assert row["bound_steps"] <= row["steps"]


def test_rows_do_not_depend_on_the_number_of_workers(undisturbed, tmp_path):
    assert compare(GRID, METHOD_NAMES, tmp_path, workers=2).drop(TIMINGS).equals(undisturbed)


def test_given_scenarios_give_the_rows_of_the_grid_but_for_the_order_of_drawing(undisturbed, tmp_path, here):
    assert compare(GRID.scenarios(), METHOD_NAMES, tmp_path, engine=here).drop(TIMINGS).equals(undisturbed)


def test_the_folder_holds_sorted_rows_the_record_and_the_summary(tmp_path, here):
    rows = compare(GRID, METHOD_NAMES, tmp_path, engine=here, command="phygail compare ...")
    kept = read_rows(tmp_path / "rows.csv")
    assert kept == rows.to_dicts()
    record = json.loads((tmp_path / "run.json").read_text())
    assert record["version"] == phygail.__version__
    assert record["config"]["uavs"] == [20]
    assert "phygail compare ..." in (tmp_path / "summary.md").read_text()


SCRIPT = """
import sys
from phygail.experiments.grid import Grid
from phygail.experiments.runner import compare
compare(Grid((20,), (0.5, 0.8), 3), ("center-fly", "sidr"), sys.argv[1], workers=2)
"""


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_killed_at_any_moment_and_resumed_gives_the_undisturbed_rows(undisturbed, tmp_path, seed, here):
    moments = random.Random(seed)
    for _ in range(2):
        run = subprocess.Popen([sys.executable, "-c", SCRIPT, str(tmp_path)], stderr=subprocess.DEVNULL)
        target, rows = moments.randrange(1, 9), tmp_path / "rows.csv"
        deadline = time.monotonic() + 60
        # The moment is counted in rows, so that it falls inside the run on a machine of any speed.
        while run.poll() is None and time.monotonic() < deadline:
            if rows.exists() and rows.read_bytes().count(b"\n") > target:
                break
            time.sleep(0.002)
        time.sleep(moments.uniform(0, 0.02))
        os.kill(run.pid, signal.SIGKILL)
        run.wait()
    assert compare(GRID, METHOD_NAMES, tmp_path, engine=here).drop(TIMINGS).equals(undisturbed)


def test_a_torn_line_is_dropped_and_flown_again_and_drafts_are_swept(undisturbed, tmp_path, finished, here):
    (tmp_path / "rows.csv").write_text(csv_text(finished[:5], header=True) + "n0020-d0.800-c00")
    (tmp_path / f"{DRAFT}half.csv").write_text("n0020-d0.5")
    assert compare(GRID, METHOD_NAMES, tmp_path, engine=here).drop(TIMINGS).equals(undisturbed)
    assert not list(tmp_path.glob(".*"))


def test_a_finished_run_starts_no_worker(tmp_path, finished):
    class NoEngine(LocalEngine):
        def start(self, job):
            raise AssertionError("started")

    assert compare(GRID, METHOD_NAMES, tmp_path, engine=NoEngine(1)).to_dicts() == finished  # even the timings


@pytest.mark.parametrize(
    ("cases", "methods", "options", "named"),
    [
        (Grid((20,), (0.5, 0.8), 4), METHOD_NAMES, {}, "cases was 3, now 4"),
        (Grid((20,), (0.5, 0.8), 3, seed=1), METHOD_NAMES, {}, "seed was 0, now 1"),
        (GRID, ("sidr",), {}, "methods was"),
        (GRID, METHOD_NAMES, {"safety": True}, "safety was"),
    ],
)
def test_resuming_with_another_config_is_refused_and_changes_nothing(tmp_path, cases, methods, options, named):
    folder = tmp_path / "run"
    folder.mkdir()
    config = {"uavs": [20], "damage": [0.5, 0.8], "cases": 3, "seed": 0, "methods": list(METHOD_NAMES), "safety": "off",
              "policy": None, "plugins": []}  # fmt: skip
    RunFolder(folder, config).resume({"command": "", "workers": 1, "timeout_s": None})
    before = {f.name: f.read_bytes() for f in folder.iterdir()}
    with pytest.raises(InputError, match=named):
        compare(cases, methods, folder, **options)
    assert {f.name: f.read_bytes() for f in folder.iterdir()} == before


def test_workers_and_timeout_may_differ_on_resume(tmp_path, here):
    first = compare(GRID, METHOD_NAMES, tmp_path, workers=1, timeout=100, engine=here)
    assert compare(GRID, METHOD_NAMES, tmp_path, workers=2, timeout=200).equals(first)


def test_rows_and_records_of_another_version_are_refused(tmp_path, finished):
    path = tmp_path / "run.json"
    path.write_text(path.read_text().replace(f'"version": "{phygail.__version__}"', '"version": "0.0.0"'))
    with pytest.raises(InputError, match=r"made by phygail 0\.0\.0"):
        compare(GRID, METHOD_NAMES, tmp_path)


def test_a_single_row_of_another_version_is_refused_and_nothing_changes(tmp_path, finished):
    text = csv_text([*finished[:5], finished[5] | {"version": "0.0.9"}], header=True)
    (tmp_path / "rows.csv").write_text(text)
    with pytest.raises(InputError, match=r"holds rows of phygail 0\.0\.9"):
        compare(GRID, METHOD_NAMES, tmp_path)
    assert (tmp_path / "rows.csv").read_text() == text


def test_timeouts_are_flown_again_even_if_the_new_limit_could_not_be_recorded(tmp_path, monkeypatch):
    about = {"command": "", "workers": 1, "timeout_s": 1.0}
    folder = RunFolder(tmp_path, {})
    folder.resume(about)
    row = {name: {str: "", int: 1, float: 0.5}[kind] for name, kind in COLUMNS.items()}
    save_rows(folder.rows_path, [row | {"flag": TIMEOUT, "version": phygail.__version__}])

    def full(path, text):
        raise InputError("No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr("phygail.experiments.folder.write_text", full)
        with pytest.raises(InputError):
            folder.resume(about | {"timeout_s": 2.0})
    assert folder.resume(about | {"timeout_s": 2.0}) == []


def test_rows_without_a_record_are_refused(tmp_path):
    (tmp_path / "rows.csv").write_text("x\n")
    with pytest.raises(InputError, match=r"no run\.json"):
        compare(GRID, METHOD_NAMES, tmp_path)


def test_two_runs_in_one_folder_are_refused(tmp_path):
    folder = RunFolder(tmp_path, {})
    with folder.locked(), pytest.raises(InputError, match="another run"), RunFolder(tmp_path, {}).locked():
        pass


def test_a_method_that_raises_fails_its_episodes_and_not_the_run(tmp_path, plugin, caplog, here):
    file = plugin("raiser", "raise KeyError('gone')\n")
    rows = compare(Grid((20,), (0.5,), 2), "raiser,sidr", tmp_path / "run", engine=here, plugins=[file])
    failed = rows.filter(rows["method"] == "raiser")
    assert failed["flag"].to_list() == ["error:KeyError"] * 2
    assert failed["converged"].to_list() == [0, 0]
    assert failed["steps"].to_list() == [256, 256]  # the budget
    assert failed["distance_m_per_uav"].to_list() == [None, None]
    assert rows.filter(rows["method"] == "sidr")["flag"].to_list() == ["", ""]
    assert "KeyError: 'gone'" in (tmp_path / "run" / "errors.log").read_text()
    assert "raiser on n0020-d0.500-c000-s0 failed" in caplog.text


def test_a_slow_method_ends_at_its_next_step_as_a_timeout(tmp_path, plugin, here):
    file = plugin("sleeper", "time.sleep(0.05)\nreturn np.zeros_like(view.positions)\n")
    rows = compare(Grid((20,), (0.5,), 1), "sleeper", tmp_path / "run", engine=here, plugins=[file], timeout=0.12)
    assert rows["flag"].to_list() == [TIMEOUT]
    assert (rows["converged"][0], rows["steps"][0]) == (0, 256)
    assert rows["solve_s"][0] < 10  # all steps would sleep 12.8 s


def test_timeouts_are_flown_again_when_the_limit_changes(tmp_path, plugin, here):
    file = plugin("napper", "time.sleep(0.002)\nreturn np.zeros_like(view.positions)\n")
    grid = Grid((20,), (0.5,), 1)
    assert compare(grid, "napper", tmp_path / "run", engine=here, plugins=[file], timeout=0.1)["flag"][0] == TIMEOUT
    assert compare(grid, "napper", tmp_path / "run", engine=here, plugins=[file], timeout=60)["flag"][0] == ""


def test_a_method_that_tampers_with_its_view_changes_no_row_of_others(undisturbed, tmp_path, plugin, here):
    body = "try:\n    view.positions.setflags(write=True)\n    view.positions[:] = 0.0\nexcept ValueError: pass\n"
    file = plugin("tamperer", body + "return np.full(view.positions.shape, np.nan)\n")
    rows = compare(GRID, ("tamperer", *METHOD_NAMES), tmp_path / "run", engine=here, plugins=[file])
    assert rows.filter(rows["method"] != "tamperer").drop(TIMINGS).equals(undisturbed)
    assert set(rows.filter(rows["method"] == "tamperer").select("converged", "flag").rows()) == {(0, "nonfinite")}


def test_a_changed_plugin_is_another_config(tmp_path, plugin, here):
    grid = Grid((20,), (0.5,), 1)
    file = plugin("drifter", "return np.zeros_like(view.positions)\n")
    compare(grid, "drifter", tmp_path / "run", engine=here, plugins=[file])
    file.write_text(file.read_text() + "\n# another rule\n")
    with pytest.raises(InputError, match="plugins was"):
        compare(grid, "drifter", tmp_path / "run", engine=here, plugins=[file])


def test_a_cell_that_does_not_split_leaves_nothing_behind(tmp_path, monkeypatch):
    # Without its check the grid reaches the workers, which find out only when they draw.
    monkeypatch.setattr(Grid, "__post_init__", lambda self: None)
    with pytest.raises(InputError, match="2 UAVs"):
        compare(Grid((2,), (0.5,), 1), "sidr", tmp_path / "run", workers=1)
    assert not (tmp_path / "run").exists()


def test_connected_scenarios_end_at_once(tmp_path, here):
    scenario = make_scenario("near", [[0, 0], [50, 0], [100, 0]])
    row = compare([scenario], "sidr", tmp_path, engine=here).row(0, named=True)
    assert (row["converged"], row["steps"], row["bound_steps"], row["seed"]) == (1, 0, 0, None)


@pytest.mark.parametrize(
    ("options", "named"),
    [({"workers": 0}, "0 workers"), ({"timeout": -1}, "timeout"), ({"timeout": float("nan")}, "timeout"),
     ({"plugins": ["nowhere.py"]}, "nowhere.py"), ({"policy": "nowhere.onnx"}, "nowhere.onnx")],
)  # fmt: skip
def test_bad_options_are_refused_before_anything_is_written(tmp_path, options, named):
    with pytest.raises(InputError, match=named):
        compare(GRID, "sidr", tmp_path / "run", **options)
    assert not (tmp_path / "run").exists()


def test_noise_and_delay_reach_the_flight_and_the_rows(tmp_path, here):
    """The rows are those of the sensed controller; noise depends on the scenario and not on the method."""
    sensing = Sensing(6.0, 2)
    rows = compare(Grid((20,), (0.5,), 2), "sidr", tmp_path, engine=here, sensing=sensing).to_dicts()
    for row in rows:
        scenario = Grid((20,), (0.5,), 2).scenario(Grid((20,), (0.5,), 2).ids().index(row["scenario"]))
        noise = generator(0, "sensing", scenario.id)
        flown = fly(scenario, sensed_controller(make_method("sidr"), scenario, sensing, noise))
        assert (row["steps"], row["noise_m"], row["delay_steps"]) == (flown.scored_steps, 6.0, 2)
        assert row["distance_m_per_uav"] == flown.metrics.distance_m_per_uav
    assert json.loads((tmp_path / "run.json").read_text())["config"]["noise_m"] == 6.0
    with pytest.raises(InputError, match="noise_m was"):
        compare(Grid((20,), (0.5,), 2), "sidr", tmp_path, workers=1)


@pytest.mark.parametrize(
    ("cells", "named"),
    [
        ({"uavs": 21}, "uavs is 21, its case says 20"),
        ({"damaged": 9}, "damaged is 9, its case says"),
        ({"alive": 19}, "alive is 19, its case says"),
        ({"subnets": 77}, "subnets is 77, its case says"),
        ({"bound_steps": 1}, "bound_steps is 1, its case says"),
        ({"seed": 5}, "seed is 5, its case says 0"),
        ({"safety": "on"}, "safety is on, its case says off"),
        ({"noise_m": 3.0}, "noise_m is 3.0, its case says 0.0"),
        ({"variant": "mine"}, "variant is mine, its case says"),
        ({"converged": 2}, "converged is 2"),
        ({"converged": 0}, "its case has a budget of 256"),
        ({"steps": 1}, "less than the bound"),
        ({"steps": 257, "time_s": 25.7}, "its case has a budget of 256"),
        ({"time_s": 1.5}, "time_s is 1.5"),
    ],
)
def test_a_row_that_was_changed_by_hand_is_refused_with_its_line(tmp_path, finished, cells, named):
    """AUDIT R8; nothing on disk changes."""
    text = csv_text([*finished[:3], finished[3] | cells, *finished[4:]], header=True)
    (tmp_path / "rows.csv").write_text(text)
    with pytest.raises(InputError, match=rf"rows\.csv, row 5: .*{named}.*delete this row and run again"):
        compare(GRID, METHOD_NAMES, tmp_path, workers=1)
    assert (tmp_path / "rows.csv").read_text() == text


def test_beyond_the_cases_that_are_drawn_again_the_id_is_held_against_the_row(tmp_path, finished, monkeypatch):
    monkeypatch.setattr("phygail.experiments.folder.MOST_DRAWN", 0)
    for cells in ({"alive": 3}, {"steps": -1}, {"seed": None}, {"safety": "on"}):
        (tmp_path / "rows.csv").write_text(csv_text([finished[0] | cells], header=True))
        with pytest.raises(InputError, match="row 2"):
            compare(GRID, METHOD_NAMES, tmp_path, workers=1)


@pytest.mark.parametrize("run", [5, [], "x", None])
def test_a_record_of_another_form_is_one_line(tmp_path, finished, run):
    """AUDIT R4: "run": 5 ended in a traceback."""
    path = tmp_path / "run.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"run": run}))
    with pytest.raises(InputError, match=r"run\.json is not the record of a comparison"):
        compare(GRID, METHOD_NAMES, tmp_path)
    path.write_text('{"version": "0", "version": "1", "config": {}}')
    with pytest.raises(InputError, match="the key 'version' stands twice"):
        compare(GRID, METHOD_NAMES, tmp_path)


def test_episodes_that_took_their_workers_down_are_flown_again_on_resume(undisturbed, tmp_path, finished, here):
    lost = finished[2] | {"flag": LOST, "converged": 0, "steps": 256, "time_s": 25.6}
    save_rows(tmp_path / "rows.csv", [*finished[:2], lost, *finished[3:]])
    assert compare(GRID, METHOD_NAMES, tmp_path, engine=here).drop(TIMINGS).equals(undisturbed)


def test_a_refused_run_takes_nothing_back_that_another_has_written(tmp_path, monkeypatch):
    """AUDIT R8: between the look at the folder and the refusal another run began in it."""
    folder = tmp_path / "run"
    other = {"rows.csv": csv_text([], header=True), "run.json": "{}"}

    class Refusing(LocalEngine):
        def start(self, job):
            folder.mkdir()
            for name, text in other.items():
                (folder / name).write_text(text)
            raise RefusedError("no")

    with pytest.raises(RefusedError):
        compare(GRID, METHOD_NAMES, folder, engine=Refusing(1))
    assert {file.name: file.read_text() for file in folder.iterdir()} == other


def test_a_lock_on_a_folder_that_was_removed_meanwhile_is_taken_anew(tmp_path, monkeypatch):
    path = tmp_path / "run"
    folder, take, calls = RunFolder(path, {}), RunFolder._lock, []

    def lock(self, handle):
        take(self, handle)
        calls.append(handle)
        if len(calls) == 1:
            path.rmdir()  # as `discard` of another run does, just before its lock ends

    monkeypatch.setattr(RunFolder, "_lock", lock)
    with folder.locked():
        assert path.is_dir()
        with pytest.raises(InputError, match="another run"), RunFolder(path, {}).locked():
            pass
