"""Databases are equal however they were built: twice, with other workers, killed on the way."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from phygail.cli.main import main
from phygail.config import InputError
from phygail.methods.phygail.experts import build
from phygail.methods.phygail.experts.build import build_experts
from phygail.methods.phygail.experts.database import Journal, concatenate, digest, pack
from phygail.methods.phygail.experts.dataset import ExpertSet
from phygail.methods.phygail.experts.recipe import Demonstration, Outcome, Recipe, demonstrate

pytest.importorskip("h5py")

RECIPE = Recipe(
    "decentralized", ("sidr", "center-fly", "hero"), left_out=("reach", "cr-ma"), damage=(0.5, 0.8), cases=4
)
FLAGS = "--pool decentralized --without reach,cr-ma --damage 0.5,0.8 --cases 4"


@pytest.fixture(scope="module")
def demos():
    """The demonstrations of the recipe, flown in this process."""
    return [demonstrate(RECIPE, number) for number in range(len(RECIPE))]


@pytest.fixture(scope="module")
def content(demos):
    """Digest of what the database must hold."""
    return digest(concatenate([pack(demo) for demo in demos]), RECIPE.config(), {})


@pytest.fixture
def in_process(demos, monkeypatch):
    """Replaces the workers by stored demonstrations; gives the numbers that were asked for."""
    asked = []

    def fly(recipe, numbers, workers):
        for number in reversed(numbers):  # in another order than asked
            asked.append(number)
            yield number, demos[number]

    monkeypatch.setattr(build, "_fly_all", fly)
    return asked


def test_worker_processes_give_the_same_content_as_this_process(content, tmp_path):
    told = []
    experts = build_experts(RECIPE, tmp_path / "a.h5", workers=2, progress=lambda *n: told.append(n))
    assert experts.about["content_sha256"] == content
    assert told == [(3 * k, 24) for k in range(1, 9)]
    assert [p.name for p in tmp_path.iterdir()] == ["a.h5"]
    assert (tmp_path / "a.h5").stat().st_mode & 0o444 == 0o444


def test_two_builds_are_the_same_bytes(in_process, tmp_path):
    for name in "ab":
        build_experts(RECIPE, tmp_path / f"{name}.h5", command="phygail experts")
    assert (tmp_path / "a.h5").read_bytes() == (tmp_path / "b.h5").read_bytes()


def test_finished_scenarios_are_not_flown_again(in_process, demos, content, tmp_path):
    journal = Journal(tmp_path / "a.h5", RECIPE.config())
    journal.begin()
    for number in (1, 6):
        journal.save(number, pack(demos[number]))
    (journal.folder / ".draft.npz").write_bytes(b"half")  # what a kill leaves behind
    experts = build_experts(RECIPE, tmp_path / "a.h5")
    assert sorted(in_process) == [0, 2, 3, 4, 5, 7]
    assert experts.about["content_sha256"] == content
    assert not journal.folder.exists()


def test_a_finished_database_is_opened_as_it_is(in_process, demos, tmp_path):
    build_experts(RECIPE, tmp_path / "a.h5")
    in_process.clear()
    journal = Journal(tmp_path / "a.h5", RECIPE.config())  # killed between the file and the end of its journal
    journal.begin()
    journal.save(0, pack(demos[0]))
    assert len(build_experts(RECIPE, tmp_path / "a.h5")) == 8
    assert in_process == []
    assert not journal.folder.exists()


def test_another_recipe_is_refused_and_nothing_is_lost(in_process, demos, tmp_path):
    other = Recipe(RECIPE.pool, RECIPE.methods, RECIPE.left_out, damage=(0.5, 0.8), cases=5)
    build_experts(RECIPE, tmp_path / "a.h5")
    with pytest.raises(InputError, match=r"a\.h5 holds another database \(cases was 4, now 5\)"):
        build_experts(other, tmp_path / "a.h5")
    journal = Journal(tmp_path / "b.h5", RECIPE.config())
    journal.begin()
    journal.save(0, pack(demos[0]))
    with pytest.raises(InputError, match=r"b\.h5\.parts holds parts of another database \(cases was 4, now 5\)"):
        build_experts(other, tmp_path / "b.h5")
    assert journal.begin() == {0}


def test_unsolved_scenarios_are_dropped_and_counted(demos, monkeypatch, tmp_path):
    def unsolved(demo):
        nothing = np.empty((0, len(demo.scenario.alive), 2))
        failures = tuple(Outcome(False, 256, 0.0) for _ in RECIPE.methods)
        return Demonstration(demo.scenario, demo.ratio, demo.case, failures, None, nothing, nothing)

    flown = [unsolved(demo) if number in (2, 5, 6) else demo for number, demo in enumerate(demos)]
    monkeypatch.setattr(build, "_fly_all", lambda recipe, numbers, workers: ((n, flown[n]) for n in numbers))
    experts = build_experts(RECIPE, tmp_path / "a.h5")
    assert experts.about["dropped"] == {"0.5": 1, "0.8": 2}
    assert experts.archive.case.tolist() == [0, 1, 3, 0, 3]
    np.testing.assert_array_equal(experts.trajectory(2)[0], demos[3].positions)
    monkeypatch.setattr(build, "_fly_all", lambda recipe, numbers, workers: ((n, unsolved(demos[n])) for n in numbers))
    with pytest.raises(InputError, match="none of sidr, center-fly, hero reconnected any swarm"):
        build_experts(RECIPE, tmp_path / "b.h5")


@pytest.mark.parametrize(("name", "workers", "words"), [("a.png", 1, r"end in \.h5"), ("a.h5", 0, "0 workers")])
def test_bad_output_and_workers_are_refused_before_anything_is_written(name, workers, words, tmp_path):
    with pytest.raises(InputError, match=words):
        build_experts(RECIPE, tmp_path / name, workers=workers)
    assert list(tmp_path.iterdir()) == []


def test_a_damaged_part_is_named(in_process, demos, tmp_path):
    journal = Journal(tmp_path / "a.h5", RECIPE.config())
    journal.begin()
    journal.save(3, pack(demos[3]))
    part = journal.folder / "000003.npz"
    part.write_bytes(part.read_bytes()[:100])
    with pytest.raises(InputError, match=r"000003\.npz is damaged: delete it and run the same command again"):
        build_experts(RECIPE, tmp_path / "a.h5")
    part.unlink()
    assert len(build_experts(RECIPE, tmp_path / "a.h5")) == 8


KILLED = """
import multiprocessing, os, signal, sys
from phygail.cli.main import main
from phygail.methods.phygail.experts.database import Journal

save = Journal.save

def save_and_die(journal, number, part):
    save(journal, number, part)
    if len(list(journal.folder.glob("[0-9]*.npz"))) == 3:
        print(*[child.pid for child in multiprocessing.active_children()], flush=True)
        os.kill(os.getpid(), signal.SIGKILL)

Journal.save = save_and_die
main(sys.argv[1:])
"""


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks for processes in /proc")
def test_killed_at_once_and_started_again_gives_the_same_content(content, tmp_path, capsys):
    """SIGKILL after three scenarios; the workers end by themselves, and the same command finishes the work."""
    out = tmp_path / "a.h5"
    command = ["experts", "--out", str(out), *FLAGS.split(), "--workers", "1"]
    first = subprocess.run([sys.executable, "-c", KILLED, *command], capture_output=True, text=True, check=False)
    assert first.returncode == -signal.SIGKILL, first.stderr
    assert not out.exists()
    workers = first.stdout.split()
    assert len(workers) == 1
    _wait(lambda: not any(map(_runs, workers)))
    assert main(command) == 0
    assert ExpertSet.open(out).about["content_sha256"] == content
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.h5", "a.md", "a.png"]
    assert "Left out on request: reach, cr-ma." in capsys.readouterr().out


def test_the_command_answers_bad_input_with_one_line(tmp_path, capsys):
    out = str(tmp_path / "a.h5")
    for words in (["--without", "convex"], ["--damage", "0.01"], ["--workers", "0"], ["--cases", "-1"]):
        assert main(["experts", "--out", out, "--pool", "decentralized", "--without", "cr-ma", *words]) == 2
        assert capsys.readouterr().err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def _wait(happened, seconds=60.0):
    end = time.monotonic() + seconds
    while not happened():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.05)


def _runs(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False
