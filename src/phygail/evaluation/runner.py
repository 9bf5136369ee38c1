"""Scenarios x methods -> one row per episode, in parallel, resumable at any moment."""

from __future__ import annotations

import contextlib
import logging
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from phygail.config import InputError
from phygail.evaluation.flight import Job, Result, Task
from phygail.evaluation.folder import RunFolder, resolved_config
from phygail.evaluation.grid import Cases, as_cases
from phygail.evaluation.local_engine import LocalEngine
from phygail.evaluation.machine import machine
from phygail.evaluation.pool import Engine, RefusedError
from phygail.evaluation.roster import check_policy, choose_methods, load_methods, sources_of
from phygail.evaluation.row_checks import make_judge
from phygail.evaluation.rows import ERROR, Row, frame, key_of
from phygail.files import write_text
from phygail.methods import METHODS
from phygail.perception.noise import Sensing
from phygail.perception.view import Scope
from phygail.swarm.scenario import Scenario

if TYPE_CHECKING:
    import polars as pl

Progress = Callable[[int, int], None]  # (finished episodes, all episodes)

log = logging.getLogger("phygail")


def compare(
    cases: Cases | Iterable[Scenario],
    methods: str | Sequence[str],
    out: str | Path,
    *,
    workers: int = 2,
    safety: bool = False,
    timeout: float | None = None,
    policy: str | Path | None = None,
    plugins: Sequence[str | Path] = (),
    sensing: Sensing | None = None,
    progress: Progress | None = None,
    command: str = "",
    engine: Engine | None = None,
) -> pl.DataFrame:
    """Fly every method on every scenario and keep a row of each episode in `out`.

    Ended at any moment and called again, it goes on where it stopped; the rows are those of an undisturbed run but for
    the two timings, for any number of workers and either engine. A method that raises fails the episode, not the run.

    Args:
        cases: A grid or failures, which the workers draw themselves, or scenarios.
        methods: Names, or "a,b,c", or "all".
        out: Folder for rows.csv, run.json, summary.md and figures.
        workers: Processes.
        safety: Filter every command so that no new contact can happen.
        timeout: Wall time per episode, s; an episode that takes longer ends at its next step as a failure flagged
            "timeout". One that is stuck within a step is killed a minute later.
        policy: Policy file (ONNX) for the methods that fly one.
        plugins: Python files that register methods.
        sensing: Noise and delay of what every method sees; perfect if None.
        progress: Told how many of all episodes are finished.
        command: How a user repeats this run; stands in run.json and summary.md.
        engine: Where to fly; worker processes on this machine if None.

    Returns:
        One row per episode with the columns of rows.csv, sorted by scenario and method.
    """
    job = make_job(cases, methods, safety=safety, timeout=timeout, policy=policy, plugins=plugins, sensing=sensing)
    tasks = plan_tasks(job)
    crew = engine or LocalEngine(workers)
    about = {"command": command, "workers": workers, "timeout_s": timeout, "machine": machine()}
    folder = RunFolder(Path(out), resolved_config(job))
    fresh = folder.check() is None
    try:
        if fresh:
            crew.start(job)  # a job that the workers refuse leaves no trace on disk
        with folder.locked(), taken_back_if_refused(folder, fresh=fresh):
            rows = folder.resume(about, make_judge(job))
            todo = _unfinished(job, tasks, rows)
            if todo and not fresh:
                crew.start(job)
            rows += fly_all(crew, folder, todo, len(rows), progress)
            folder.save(rows)
            table = frame(rows)
            _report(folder, table, command)
            return table
    finally:
        crew.stop()


@contextlib.contextmanager
def taken_back_if_refused(folder: RunFolder, *, fresh: bool) -> Iterator[None]:
    """What a run has written into a fresh folder goes when its workers refuse it; the folder is still locked then."""
    fresh = fresh and folder.check() is None  # another run may have come in between
    try:
        yield
    except RefusedError:
        if fresh:
            folder.discard()
        raise


def make_job(
    cases: Cases | Iterable[Scenario],
    methods: str | Sequence[str],
    *,
    safety: bool,
    timeout: float | None,
    policy: str | Path | None,
    plugins: Sequence[str | Path],
    sensing: Sensing | None = None,
) -> Job:
    """Check all that can be checked before anything is started."""
    if timeout is not None and not (math.isfinite(timeout) and timeout > 0):
        raise InputError(f"timeout {timeout}: give a positive number of seconds")
    load_methods(plugins)
    names = choose_methods(methods)
    files, modules = sources_of(names)
    chosen = check_policy(policy, names)
    return Job(as_cases(cases), names, safety, timeout, chosen, files, modules, sensing or Sensing())


def plan_tasks(job: Job) -> list[Task]:
    """Every episode, the long ones first: large swarms, and within a scenario the methods that plan globally."""
    sizes = job.cases.sizes()
    order = sorted(range(len(sizes)), key=lambda index: -sizes[index])
    methods = sorted(job.methods, key=lambda name: METHODS.get(name).scope is not Scope.GLOBAL)
    return [Task(index, method) for index in order for method in methods]


def _unfinished(job: Job, tasks: list[Task], rows: list[Row]) -> list[Task]:
    ids = job.cases.ids()
    done = {key_of(row) for row in rows}
    todo = [task for task in tasks if (ids[task.index], task.method) not in done]
    if len(todo) + len(done) != len(tasks):
        raise InputError("rows.csv holds rows that are not part of this run: choose another folder")
    return todo


def fly_all(crew: Engine, folder: RunFolder, todo: list[Task], before: int, progress: Progress | None) -> list[Row]:
    """Fly what is left; every batch of rows is on disk before the next is looked at."""
    rows: list[Row] = []
    total = before + len(todo)
    if progress:
        progress(before, total)
    if not todo:
        return rows
    told: set[tuple[str, str]] = set()
    with contextlib.closing(folder.journal()) as journal:
        for results in crew.run(todo):
            journal.append(result.row for result in results)
            rows += [result.row for result in results]
            _tell_errors(folder, results, told)
            if progress:
                progress(before + len(rows), total)
    return rows


def _tell_errors(folder: RunFolder, results: list[Result], told: set[tuple[str, str]]) -> None:
    """All that went wrong goes to errors.log, every cause once to the user."""
    for result in results:
        if not result.details:
            continue
        row = result.row
        folder.log_error(row, result.details)
        log.debug("%s", result.details)
        if (row["method"], result.cause) not in told:
            told.add((row["method"], result.cause))
            outcome = "failed" if row["flag"].startswith(ERROR) else f"is flagged {row['flag']}"
            log.warning("%s on %s %s: %s (see errors.log)", row["method"], row["scenario"], outcome, result.cause)


def _report(folder: RunFolder, table: pl.DataFrame, command: str) -> None:
    """summary.md and the figures."""
    from phygail.evaluation.tables import summary_markdown  # polars: not before the rows are there

    write_text(folder.path / "summary.md", summary_markdown(table, folder.config, command))
    if table.filter(table["subnets"] > 1).height:
        from phygail.evaluation.figures import draw_curves, draw_over_bound  # matplotlib: 0.5 s

        draw_curves(table, folder.path / "curves.png")
        draw_over_bound(table, folder.path / "over_bound.png")
