"""Both engines: identical rows, and what goes wrong costs no finished row and enters no wrong one."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import textwrap
import time
from dataclasses import replace

import pytest

import phygail
from phygail.cli.options import make_engine
from phygail.config import InputError
from phygail.experiments import ray_engine
from phygail.experiments.engine import LocalEngine
from phygail.experiments.grid import Grid
from phygail.experiments.ray_engine import Parcel, RayEngine, pack, surroundings, unpack
from phygail.experiments.rows import TIMEOUT, TIMINGS, Job, read_rows
from phygail.experiments.runner import compare
from phygail.methods.base import METHODS

GRID = Grid((20,), (0.5, 0.8), 3)
METHOD_NAMES = ("center-fly", "sidr")
ENGINES = {"local": LocalEngine, "ray": RayEngine}
CONVERGE = "return 5.0 * (view.mission.center - view.positions)\n"
pytestmark = pytest.mark.usefixtures("no_figures")


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory, no_figures):
    """The rows of a run on one local worker that nobody disturbed."""
    return compare(GRID, METHOD_NAMES, tmp_path_factory.mktemp("run"), workers=1).drop(TIMINGS)


def start(ray, tries=3):
    """Ray gives itself 30 s to start, which is too little on a machine that crawls."""
    for _ in range(tries):
        try:
            return ray_engine.connect(2)
        except InputError as error:
            ray.shutdown()
            if "timed out" not in str(error):
                raise
    return pytest.skip("Ray did not start within the 30 s that it gives itself: the machine is too busy")


@pytest.fixture(scope="module")
def ray():
    """A Ray with two CPUs that all tests share: starting one takes seconds."""
    ray = pytest.importorskip("ray", reason="the extra cluster")
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("RAY_worker_niceness", "0")  # else its workers starve where the machine is busy
        start(ray)
        # Workers and this process share one installation; whoever edits it meanwhile shall not fail the tests.
        patched.setattr(ray_engine, "pack", lambda job, surroundings: pack(job, {}))
        yield ray
    ray.shutdown()


@pytest.fixture(params=["local", pytest.param("ray", marks=pytest.mark.slow)])
def crew(request):
    """A function that makes the engine under test; Ray, whose workers take seconds to start, among the slow tests."""
    if request.param == "ray":
        request.getfixturevalue("ray")
    return ENGINES[request.param]


@pytest.fixture
def plugin(tmp_path):
    """A function that writes a plugin with the method "mine" and what else it does on import."""

    def write(act=CONVERGE, extra=""):
        file = tmp_path / "mine.py"
        file.write_text(
            "import os, time\nfrom pathlib import Path\nimport numpy as np\n"
            "from phygail.config import InputError\nfrom phygail.experiments import rows as flight\n"
            "from phygail.methods.base import LocalMethod, register\n\n" + textwrap.dedent(extra) +
            "\n@register\nclass Mine(LocalMethod):\n    name = 'mine'\n    summary = 'test'\n\n"
            "    def act(self, view):\n" + textwrap.indent(act, " " * 8)
        )  # fmt: skip
        return file

    yield write
    METHODS._entries.pop("mine", None)
    sys.modules.pop("phygail_plugin_mine", None)


@pytest.mark.slow  # every time: what is interrupted on local processes and resumed on Ray
def test_rows_on_ray_are_those_of_local_processes(undisturbed, tmp_path, ray):
    assert compare(GRID.scenarios(), METHOD_NAMES, tmp_path, engine=RayEngine(1)).drop(TIMINGS).equals(undisturbed)


def fail_once(mark, made, reason=""):
    """A job for Ray: dies the first time, then writes what it made; with a reason it refuses instead."""
    if reason:
        raise InputError(reason)
    if not mark.exists():
        mark.touch()
        os._exit(1)
    made.write_text("made")


@pytest.mark.slow
def test_a_job_on_ray_whose_worker_dies_is_done_again(tmp_path, ray, monkeypatch):
    monkeypatch.setattr(ray_engine, "surroundings", dict)  # one installation, which may be edited meanwhile
    jobs = [(tmp_path / f"mark{k}", tmp_path / f"made{k}") for k in range(2)]
    ray_engine.each_on_ray(fail_once, jobs, [tmp_path], 2, losses=1)
    assert [made.read_text() for _, made in jobs] == ["made", "made"]
    with pytest.raises(InputError, match="died 1 times"):
        ray_engine.each_on_ray(fail_once, [(tmp_path / "fresh", tmp_path / "none")], [tmp_path], 2, losses=0)
    assert not (tmp_path / "none").exists()


@pytest.mark.slow
def test_a_job_on_ray_that_is_refused_says_why(tmp_path, ray, monkeypatch):
    monkeypatch.setattr(ray_engine, "surroundings", dict)
    job = (tmp_path, tmp_path, "another budget")
    with pytest.raises(InputError, match=r"^another budget$"):
        ray_engine.each_on_ray(fail_once, [job], [tmp_path], 2, losses=1)
    with pytest.raises(InputError, match=r"does not see .*nowhere"):
        ray_engine.each_on_ray(fail_once, [job], [tmp_path / "nowhere"], 2, losses=1)


def test_a_lost_worker_costs_no_row_and_its_episodes_are_flown_again(undisturbed, tmp_path, plugin, crew, caplog):
    mark = tmp_path / "lost"
    # Of two workers that look for the mark at once, only the one that creates it is lost.
    once = f"try:\n    Path({str(mark)!r}).touch(exist_ok=False)\n    os._exit(1)\nexcept FileExistsError:\n    pass\n"
    file = plugin(once + CONVERGE)
    told = []
    rows = compare(GRID, ("mine", *METHOD_NAMES), tmp_path / "run", plugins=[file], engine=crew(2),
                   progress=lambda done, total: told.append(done))  # fmt: skip
    assert mark.exists()
    assert set(rows["flag"]) == {""}
    assert (rows.height, told) == (18, sorted(set(told)))
    assert rows.filter(rows["method"] != "mine").drop(TIMINGS).equals(undisturbed)
    assert caplog.text.count("a worker was lost with mine on n0020") == 1


def test_a_method_that_takes_down_every_worker_is_entered_as_an_error(tmp_path, plugin, crew, monkeypatch):
    monkeypatch.setattr("phygail.experiments.engine.MOST_LOSSES", 2)  # a worker takes a second to start
    rows = compare(Grid((20,), (0.5,), 1), "mine,sidr", tmp_path / "run", plugins=[plugin("os._exit(1)\n")],
                   engine=crew(1))  # fmt: skip
    assert dict(rows.select("method", "flag").iter_rows()) == {"mine": "error:WorkerLost", "sidr": ""}


def test_a_method_stuck_in_one_step_is_killed_and_entered_as_a_timeout(tmp_path, plugin, crew):
    rows = compare(Grid((20,), (0.5,), 1), "mine,sidr", tmp_path / "run", plugins=[plugin("time.sleep(1000)\n")],
                   timeout=2.0, engine=crew(1, grace_s=1.0))  # fmt: skip
    assert dict(rows.select("method", "flag").iter_rows()) == {"mine": TIMEOUT, "sidr": ""}
    late = rows.row(0, named=True)
    assert (late["converged"], late["steps"]) == (0, 256)  # the budget
    assert "1 episodes ended at the timeout" in (tmp_path / "run" / "summary.md").read_text()


def test_a_full_disk_ends_the_run_in_one_line_and_costs_no_finished_row(undisturbed, tmp_path, crew, monkeypatch, here):
    calls = iter(range(1000))

    def fsync(handle, whole=os.fsync):
        if next(calls) == 6:
            os.ftruncate(handle, os.fstat(handle).st_size - 30)  # the last line did not fit
            raise OSError(errno.ENOSPC, "No space left on device")
        whole(handle)

    with monkeypatch.context() as patched:
        patched.setattr("os.fsync", fsync)
        with pytest.raises(InputError, match=r"rows\.csv: No space left on device; make room and run again"):
            compare(GRID, METHOD_NAMES, tmp_path, engine=crew(1))
    kept = read_rows(tmp_path / "rows.csv")
    assert 0 < len(kept) < 12
    rows = compare(GRID, METHOD_NAMES, tmp_path, engine=here)
    assert rows.drop(TIMINGS).equals(undisturbed)
    assert all(row in rows.to_dicts() for row in kept)  # timings too: they were not flown again


def interrupt_and_resume(folder, undisturbed, first, second):
    """Rows of a run that is interrupted on one engine and resumed on another."""

    def interrupt(done, total):
        if done >= 5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        compare(GRID, METHOD_NAMES, folder, engine=first, progress=interrupt)
    kept = read_rows(folder / "rows.csv")
    rows = compare(GRID, METHOD_NAMES, folder, engine=second)
    assert rows.drop(TIMINGS).equals(undisturbed)
    assert len(kept) >= 5
    assert all(row in rows.to_dicts() for row in kept)


def test_interrupted_on_one_engine_a_run_resumes_on_another(undisturbed, tmp_path, crew, here):
    interrupt_and_resume(tmp_path, undisturbed, crew(2), here)


@pytest.mark.slow
def test_interrupted_on_local_processes_a_run_resumes_on_ray_and_back(undisturbed, tmp_path, ray):
    interrupt_and_resume(tmp_path / "there", undisturbed, LocalEngine(2), RayEngine(1))
    interrupt_and_resume(tmp_path / "back", undisturbed, RayEngine(2), LocalEngine(1))


ON_DRAWING = """
def make_case(scenario, whole=flight.make_case):
    if scenario.id.endswith("c001-s0"):
        {deed}
    return whole(scenario)

if "PHYGAIL_WORKER" in os.environ:
    flight.make_case = make_case
"""


def test_a_scenario_that_takes_workers_down_ends_the_run_and_keeps_the_rows(tmp_path, plugin, crew, monkeypatch):
    monkeypatch.setattr("phygail.experiments.engine.MOST_LOSSES", 1)
    file = plugin(extra=ON_DRAWING.format(deed="os._exit(1)"))
    with pytest.raises(InputError, match=r"lost on drawing the scenario n0020-d0\.500-c001-s0"):
        compare(Grid((20,), (0.5,), 2), "mine", tmp_path / "run", plugins=[file], engine=crew(1))
    assert [row["scenario"] for row in read_rows(tmp_path / "run" / "rows.csv")] == ["n0020-d0.500-c000-s0"]


def test_a_refusal_on_the_way_keeps_the_finished_rows(tmp_path, plugin, crew):
    file = plugin(extra=ON_DRAWING.format(deed="raise InputError('does not split')"))
    with pytest.raises(InputError, match="does not split"):
        compare(Grid((20,), (0.5,), 2), "mine", tmp_path / "run", plugins=[file], engine=crew(1))
    assert [row["scenario"] for row in read_rows(tmp_path / "run" / "rows.csv")] == ["n0020-d0.500-c000-s0"]


def test_what_a_worker_refuses_at_its_start_leaves_nothing_behind(tmp_path, plugin):
    file = plugin(extra="if 'PHYGAIL_WORKER' in os.environ: raise InputError('not on this node')\n")
    with pytest.raises(InputError, match="not on this node"):
        compare(GRID, "mine", tmp_path / "run", plugins=[file], workers=1)
    assert not (tmp_path / "run").exists()


# Slow: each starts a Ray of its own.
@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_a_command_with_a_ray_of_its_own_is_stopped_at_any_moment(undisturbed, tmp_path, number):
    pytest.importorskip("ray", reason="the extra cluster")
    words = ["compare", "--uavs", "20", "--damage", "0.5,0.8", "--cases", "3", "--methods", ",".join(METHOD_NAMES),
             "--out", str(tmp_path / "run"), "--engine", "ray", "--workers", "1"]  # fmt: skip
    environment = {name: value for name, value in os.environ.items() if name != "RAY_ADDRESS"}
    run = subprocess.Popen([sys.executable, "-m", "phygail", *words], text=True, stderr=subprocess.PIPE,
                           stdout=subprocess.PIPE, start_new_session=True, env=environment)  # fmt: skip
    rows = tmp_path / "run" / "rows.csv"
    deadline = time.monotonic() + 60
    while run.poll() is None and time.monotonic() < deadline:
        if rows.exists() and rows.read_bytes().count(b"\n") > 2:
            break
        time.sleep(0.002)
    # Ctrl-C reaches the whole group, kill -9 only the process itself.
    (os.killpg if number == signal.SIGINT else os.kill)(run.pid, number)
    _, said = run.communicate(timeout=60)
    assert run.returncode == (130 if number == signal.SIGINT else -signal.SIGKILL)
    assert said == ("phygail: interrupted; run the same command again to resume\n" if number == signal.SIGINT else "")
    assert len(read_rows(rows)) >= 2
    assert compare(GRID, METHOD_NAMES, tmp_path / "run", workers=2).drop(TIMINGS).equals(undisturbed)


def test_other_code_on_a_node_is_refused_by_name():
    assert surroundings()["phygail"].startswith(phygail.__version__)
    parcel = Parcel(Job(GRID, METHOD_NAMES), {}, surroundings() | {"numpy": "1.0"})
    with pytest.raises(InputError, match=r"has numpy .*, this machine 1\.0: install the same"):
        unpack(parcel)
    assert unpack(replace(parcel, surroundings=surroundings())) == parcel.job


def test_files_of_a_job_travel_with_it_and_keep_their_names(tmp_path):
    file, policy = tmp_path / "mine.py", tmp_path / "best.onnx"
    file.write_text("one = 1\n")
    policy.write_bytes(b"weights")
    job = Job(GRID, METHOD_NAMES, policy=policy, files=(file,))
    parcel = pack(job, {})
    assert unpack(parcel) == job  # a machine that has the files uses them
    file.write_text("one = 2\n")
    policy.unlink()
    there = unpack(parcel)
    assert there.files[0] != file
    assert (there.files[0].name, there.files[0].read_text()) == ("mine.py", "one = 1\n")
    assert there.policy is not None
    assert (there.policy.stem, there.policy.read_bytes()) == ("best", b"weights")


def test_without_ray_the_extra_is_named(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(InputError, match=r"phygail\[cluster\]"):
        make_engine("ray", 2)


@pytest.mark.parametrize("address", ["127.0.0.1:1", "ray://127.0.0.1:1", "[::1]:1", "127.0.0.1:99999"])
def test_an_address_where_nobody_listens_is_refused_at_once(address, monkeypatch):
    pytest.importorskip("ray", reason="the extra cluster")
    monkeypatch.setenv(ray_engine.ADDRESS, address)
    with pytest.raises(InputError, match=r"nobody answers.*check RAY_ADDRESS"):
        ray_engine.connect(1)


@pytest.mark.parametrize("name", ENGINES)
def test_no_workers_are_refused(name):
    with pytest.raises(InputError, match="0 workers"):
        make_engine(name, 0)


def test_the_line_of_an_error_that_says_most():
    assert ray_engine._brief(ValueError("The actor died.\n\tclass_name: Flyer")) == "The actor died."
    assert ray_engine._brief(ValueError("ray::Flyer\nTraceback (most\n  File x\nKeyError: 'a'\n")) == "KeyError: 'a'"
    assert ray_engine._brief(ValueError("")) == "ValueError"
