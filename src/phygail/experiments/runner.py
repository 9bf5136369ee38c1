"""Scenarios x methods -> one row per episode, in parallel, resumable at any moment; folders that grow, leg by leg.

`compare` fixes all settings at the start of a folder. A folder that grows (`collect`) fixes only what changes the
rows: where scenarios come from, seed, safety, sensing, policy, and the weights or source of each method. Its rows are
kept and never flown twice, and other settings are refused. Rows that a folder of another experiment holds with the same
settings are taken from there.
"""

from __future__ import annotations

import contextlib
import json
import logging
import math
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from phygail import __version__
from phygail.config import InputError, require_extra
from phygail.experiments.engine import Engine, LocalEngine, RefusedError
from phygail.experiments.experiment import Leg, draw_cases
from phygail.experiments.folder import RunFolder, describe_sensing, digest, machine, make_judge, resolved_config
from phygail.experiments.grid import Cases, as_cases
from phygail.experiments.rows import ERROR, TIMEOUT, Job, Key, Result, Row, Task, key_of, read_rows, rows_table
from phygail.files import read_json, write_text
from phygail.methods import METHODS
from phygail.methods.base import check_policy, choose_methods, load_methods, sources_of, takes_policy
from phygail.sensing.imperfect import Sensing
from phygail.sensing.views import Scope
from phygail.swarm.scenario import Scenario

if TYPE_CHECKING:
    import polars as pl

Progress = Callable[[int, int], None]  # (finished episodes, all episodes)

log = logging.getLogger("phygail")

WEIGHTS = "weights of "  # prefix of the settings that belong to one method


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

    A call after an interruption goes on where the run stopped. The rows, but for the two timings, are those of an
    undisturbed run, for any number of workers and either engine. A method that raises fails the episode, not the run.
    Long by its arguments: the order of the work takes twenty lines.

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
    require_extra("comparisons", "report", "polars")
    job = make_job(cases, methods, safety=safety, timeout=timeout, policy=policy, plugins=plugins, sensing=sensing)
    tasks = plan_tasks(job)
    engine = engine or LocalEngine(workers)
    about = {"command": command, "workers": workers, "timeout_s": timeout, "machine": machine()}
    folder = RunFolder(Path(out), resolved_config(job))
    fresh = folder.check() is None
    try:
        if fresh:
            engine.start(job)  # a job that the workers refuse leaves no trace on disk
        with folder.locked(), taken_back_if_refused(folder, fresh=fresh):
            rows = folder.resume(about, make_judge(job))
            todo = _unfinished(job, tasks, rows)
            if todo and not fresh:
                engine.start(job)
            rows += fly_all(engine, folder, todo, len(rows), progress)
            folder.save(rows)
            table = rows_table(rows)
            _report(folder, table, command)
            return table
    finally:
        engine.stop()


@contextlib.contextmanager
def taken_back_if_refused(folder: RunFolder, *, fresh: bool) -> Iterator[None]:
    """Remove what a run has written into a fresh folder if its workers refuse it; the folder is still locked then."""
    fresh = fresh and folder.check() is None  # another run may have started in it meanwhile
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


def fly_all(engine: Engine, folder: RunFolder, todo: list[Task], before: int, progress: Progress | None) -> list[Row]:
    """Fly what is left; every batch of rows is on disk before the next is looked at."""
    rows: list[Row] = []
    total = before + len(todo)
    if progress:
        progress(before, total)
    if not todo:
        return rows
    told: set[tuple[str, str]] = set()
    with contextlib.closing(folder.journal()) as journal:
        for results in engine.run(todo):
            journal.append(result.row for result in results)
            rows += [result.row for result in results]
            _tell_errors(folder, results, told)
            if progress:
                progress(before + len(rows), total)
    return rows


def _tell_errors(folder: RunFolder, results: list[Result], told: set[tuple[str, str]]) -> None:
    """Write all errors to errors.log, and tell the user every cause once."""
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
    from phygail.experiments.summary import summary_markdown  # polars: not before the rows are there

    write_text(folder.path / "summary.md", summary_markdown(table, folder.config, command))
    if table.filter(table["subnets"] > 1).height:
        from phygail.experiments.figures import draw_curves, draw_over_bound  # matplotlib: 0.5 s

        draw_curves(table, folder.path / "curves.png")
        if (table["bound_steps"] > 0).any():  # some worlds have no bound
            draw_over_bound(table, folder.path / "over_bound.png")


class GrowingFolder(RunFolder):
    """A folder that later runs may add to; run.json keeps the command and machine of each, and where rows came from."""

    def decisive(self, earlier: dict[str, Any]) -> Iterable[str]:
        """The settings that both runs have: a method that is new may bring its weights."""
        return [key for key in self.config if key in earlier]

    def _is_record(self, content: Any) -> bool:
        if not super()._is_record(content):
            return False
        runs, taken = content.get("runs", []), content.get("taken_from", [])
        whole = isinstance(runs, list) and all(map(_is_run, runs))
        return whole and isinstance(taken, list) and all(isinstance(name, str) for name in taken)

    def record(self, about: dict[str, Any], earlier: dict[str, Any] | None) -> dict[str, Any]:
        before = earlier or {}
        # A run that was resumed is listed once, unless it went on elsewhere.
        runs = [run for run in before.get("runs", []) if _place(run) != _place(about)]
        config = {**before.get("config", {}), **self.config}
        taken = {"taken_from": before["taken_from"]} if "taken_from" in before else {}
        return {"version": __version__, "config": config, "run": about, "runs": [*runs, about], **taken}

    def rows_alike(self, keys: Container[Key]) -> list[Row]:
        """The rows of those of these flights that were flown here with the same settings and weights.

        Episodes that timed out or ended with an error are left out: another run may finish them.
        """
        try:
            record = self.check()
            rows = read_rows(self.rows_path) if record and self.rows_path.exists() else []
        except InputError:  # another version, other weights, a damaged file
            return []
        config = record["config"] if record else {}
        if _shared(config) != _shared(self.config):
            return []
        own = {key_of(row): row for row in rows if key_of(row) in keys and row["version"] == __version__}.values()
        alike = [row for row in own if config.get(WEIGHTS + row["method"]) == self.config.get(WEIGHTS + row["method"])]
        return [row for row in alike if not any(f.startswith((ERROR, TIMEOUT)) for f in row["flag"].split(";"))]

    def take(self, rows: list[Row], origin: Path) -> None:
        """Add rows that stand in the folder `origin`; run.json names it before the first of them is here."""
        record = read_json(self._record)
        names = [*record.get("taken_from", []), f"{origin.parent.name}/{origin.name}"]
        write_text(self._record, json.dumps({**record, "taken_from": sorted(set(names))}, indent=2) + "\n")
        with contextlib.closing(self.journal()) as journal:
            journal.append(rows)


def collect(
    job: Job,
    out: Path,
    source: Mapping[str, Any],
    *,
    workers: int = 2,
    engine: Engine | None = None,
    progress: Progress | None = None,
    command: str = "",
    siblings: Sequence[Path] = (),
) -> pl.DataFrame:
    """Fly what neither the folder nor its siblings hold yet; gives all rows of the folder.

    Args:
        job: Scenarios, methods and settings.
        out: Folder for rows.csv and run.json.
        source: What a scenario's id stands for, e.g. {"source": "fresh", "seed": 0}.
        workers: Processes. engine: Where to fly; worker processes on this machine if None.
        progress: Told how many of all episodes of the folder are finished.
        command: How a user repeats this run.
        siblings: Folders that may hold some of the same flights; those of other settings are passed over.
    """
    folder = GrowingFolder(out, {**source, **identity(job)})
    tasks, ids = plan_tasks(job), job.cases.ids()
    folder.check()  # before the folder is made
    engine = engine or LocalEngine(workers)
    about = {"command": command, "workers": workers, "timeout_s": job.timeout_s, "machine": machine()}
    try:
        with folder.locked(), taken_back_if_refused(folder, fresh=True):
            rows = folder.resume(about, make_judge(job))
            todo = {(ids[task.index], task.method): task for task in tasks}
            for row in rows:
                todo.pop(key_of(row), None)
            rows += _take_over(folder, () if job.timeout_s else siblings, todo)  # a time limit must be measured here
            if todo:
                engine.start(job)
            rows += fly_all(engine, folder, list(todo.values()), len(rows), progress)
            folder.save(rows)
            return rows_table(rows)
    finally:
        engine.stop()


def _take_over(folder: GrowingFolder, siblings: Iterable[Path], todo: dict[Key, Task]) -> list[Row]:
    """Take over rows of flights in `todo` from sibling folders, and remove these flights from `todo`."""
    rows: list[Row] = []
    for other in siblings:
        found = GrowingFolder(other, folder.config).rows_alike(todo)
        if found:
            folder.take(found, other)
            rows += found
            for row in found:
                todo.pop(key_of(row), None)
    return rows


def _shared(config: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in config.items() if not key.startswith(WEIGHTS)}


def _is_run(run: Any) -> bool:
    machine = run.get("machine") if isinstance(run, dict) else None
    return isinstance(machine, dict) and {"command"} <= run.keys() and {"processor"} <= machine.keys()


def _place(run: Mapping[str, Any]) -> tuple[str, str]:
    return run["command"], run["machine"]["processor"]


def identity(job: Job) -> dict[str, Any]:
    """What decides the rows beside the scenarios: settings, and the content of files that methods read."""
    settings = {"safety": "on" if job.safety else "off", **describe_sensing(job.sensing)}
    if job.policy is not None:
        settings["policy"] = digest(job.policy.read_bytes())
    if job.files:
        settings |= {f"plugin {file.name}": digest(file.read_bytes()) for file in job.files}
    own = [name for name in job.methods if job.policy is None or not takes_policy(name)]  # the others fly the policy
    return settings | {f"{WEIGHTS}{name}": weights for name in own if (weights := weights_digest(name))}


def weights_digest(method: str) -> str:
    """The digest of the bundled weights of a method; rows of old and retrained weights must not mix."""
    suffixes = (".onnx", ".safetensors")
    bundled = sorted((file for file in (files("phygail") / "weights").iterdir()), key=lambda file: file.name)
    mine = [file.read_bytes() for file in bundled if file.name in {method + suffix for suffix in suffixes}]
    return digest(b"".join(mine)) if mine else ""


@dataclass(frozen=True)
class Flying:
    """How to fly: nothing here changes a row but for its timings.

    Attributes:
        workers: Processes.
        timeout: Wall time per episode, s.
        plugins: Python files that register methods.
        engine: Makes the place to fly for so many workers; worker processes on this machine if None.
        cluster: Whether trainings, too, go to Ray.
        progress: Opens a progress report with a title.
        command: How a user repeats this run.
        tell: Told what is going on.
    """

    workers: int = 2
    timeout: float | None = None
    plugins: tuple[Path, ...] = ()
    engine: Callable[[int], Engine] | None = None
    progress: Callable[[str], AbstractContextManager[Progress]] | None = None
    command: str = ""
    tell: Callable[[str], None] = log.info
    cluster: bool = False


def fly_leg(
    leg: Leg, folder: Path, how: Flying, policy: Path | None = None, siblings: Sequence[Path] = ()
) -> dict[str, list[str]]:
    """Fly one leg, size by size; gives the notes about its settings, by leg and size.

    Args:
        leg: What to fly. folder: For its rows. how: How to fly.
        policy: Policy file for the methods that fly one.
        siblings: Folders that may hold some of the same flights.
    """
    notes = {}
    for uavs, ratios, cases in leg.settings():
        scenarios, remarks = draw_cases(leg, uavs, ratios, cases, leg.seed)
        for remark in remarks:
            log.warning("%s", remark)
        notes[f"{leg.name} {uavs}"] = remarks
        if not isinstance(scenarios, list) or scenarios:
            fly_scenarios(scenarios, leg, folder, how, policy, f"{folder.name}, N = {uavs:,}", siblings)
    return notes


def fly_scenarios(
    scenarios: Cases | list[Scenario],
    leg: Leg,
    folder: Path,
    how: Flying,
    policy: Path | None = None,
    title: str = "",
    siblings: Sequence[Path] = (),
) -> None:
    """Fly scenarios with the settings of a leg."""
    job = make_job(
        scenarios, leg.methods, safety=leg.safety, timeout=how.timeout, policy=policy, plugins=how.plugins,
        sensing=leg.sensing,
    )  # fmt: skip
    workers = 1 if leg.alone else how.workers
    engine = how.engine(workers) if how.engine else None
    with how.progress(title or folder.name) if how.progress else nullcontext() as progress:
        collect(
            job, folder, _source(leg), workers=workers, engine=engine, progress=progress,
            command=how.command, siblings=siblings,
        )  # fmt: skip


def _source(leg: Leg) -> dict[str, Any]:
    """What the ids of a leg's scenarios stand for."""
    return {"source": leg.source, "seed": leg.seed} | ({"world": leg.world} if leg.world else {})
