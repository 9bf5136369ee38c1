"""Build an expert database: fly, journal, assemble. In parallel, and resumable at any moment."""

from __future__ import annotations

import contextlib
import logging
import multiprocessing
import os
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path

from phygail.config import ONE_THREAD, InputError, settle_worker
from phygail.methods.phygail.experts.database import (
    NOBODY,
    SUFFIXES,
    Journal,
    concatenate,
    first_difference,
    pack,
    require_h5py,
    write_archive,
)
from phygail.methods.phygail.experts.dataset import ExpertSet
from phygail.methods.phygail.experts.recipe import Demonstration, Recipe, demonstrate

Progress = Callable[[int, int], None]  # (finished episodes, all episodes)

log = logging.getLogger("phygail")


def build_experts(
    recipe: Recipe, out: str | Path, *, workers: int = 2, progress: Progress | None = None, command: str = ""
) -> ExpertSet:
    """Fly the recipe and write the database `out`; a finished one of the same recipe is opened as it is.

    Content does not depend on the number of workers nor on interruptions. Workers are fresh Python processes: a script
    that calls this needs a main guard.

    Args:
        recipe: Scenarios and methods.
        out: HDF5 file; while it is built, finished scenarios are in the folder OUT.parts.
        workers: Processes.
        progress: Told how many of all episodes are finished.
        command: How a user repeats the build; stands in the file.
    """
    path = Path(out)
    check_output(path, workers)
    journal = Journal(path, recipe.config())
    if path.exists():
        return _reopen(path, recipe, journal)
    finished = journal.begin()
    todo = [number for number in range(len(recipe)) if number not in finished]
    tell = progress or (lambda done, total: None)
    with contextlib.closing(_fly_all(recipe, todo, workers)) as flights:
        for done, (number, demo) in enumerate(flights, start=len(finished) + 1):
            journal.save(number, pack(demo))
            _tell_errors(recipe, demo)
            tell(done * len(recipe.methods), len(recipe) * len(recipe.methods))
    _assemble(path, recipe, journal, command)
    journal.remove()
    return ExpertSet.open(path)


def check_output(path: Path, workers: int) -> None:
    """Refuse what can be refused before anything is flown."""
    require_h5py()
    if workers < 1:
        raise InputError(f"{workers} workers: choose at least 1")
    if path.suffix.lower() not in SUFFIXES:
        raise InputError(f"cannot write {path}: the file name must end in {' or '.join(SUFFIXES)}")


def _reopen(path: Path, recipe: Recipe, journal: Journal) -> ExpertSet:
    experts = ExpertSet.open(path)
    difference = first_difference(experts.config, recipe.config())
    if difference:
        raise InputError(f"{path} holds another database ({difference}): delete it or choose another output")
    journal.remove()
    return experts


def _assemble(path: Path, recipe: Recipe, journal: Journal, command: str) -> None:
    """Write the file from the journal, in the order of the recipe."""
    parts = [journal.load(number) for number in range(len(recipe))]
    solved = [part for part in parts if part.winner[0] != NOBODY]
    if not solved:
        raise InputError(f"none of {', '.join(recipe.methods)} reconnected any swarm: choose other damage or methods")
    dropped = Counter(f"{part.ratio[0]:g}" for part in parts if part.winner[0] == NOBODY)
    write_archive(path, concatenate(solved), recipe.config(), dict(dropped), command)


def _tell_errors(recipe: Recipe, demo: Demonstration) -> None:
    for name, outcome in zip(recipe.methods, demo.outcomes, strict=True):
        if outcome.error:
            log.warning("%s on %s failed: %s", name, demo.scenario.id, outcome.error)


# --- worker processes ------------------------------------------------------------------------------------------------


def _fly_all(recipe: Recipe, numbers: Sequence[int], workers: int) -> Generator[tuple[int, Demonstration]]:
    """(number, demonstration) of every scenario, as they are finished."""
    if not numbers:
        return
    fresh = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(
        min(workers, len(numbers)), mp_context=fresh, initializer=settle_worker, initargs=(os.getpid(),)
    )
    with _single_threaded_children():
        try:
            jobs = {pool.submit(demonstrate, recipe, number): number for number in numbers}
            for job in as_completed(jobs):
                yield jobs[job], job.result()
        except BrokenProcessPool:
            raise InputError("a worker process died (out of memory?): run the same command again to resume") from None
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


@contextlib.contextmanager
def _single_threaded_children() -> Iterator[None]:
    """Processes started in this block use one thread for linear algebra."""
    before = {name: os.environ.get(name) for name in ONE_THREAD}
    os.environ.update(ONE_THREAD)
    try:
        yield
    finally:
        for name in ONE_THREAD:
            del os.environ[name]
        os.environ.update({name: value for name, value in before.items() if value is not None})
