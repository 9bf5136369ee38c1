"""Flights that add up: a folder of rows to which later runs add cases, sizes and methods.

`runner.compare` fixes everything at the start of a folder. Here only what changes the rows themselves is fixed: where
scenarios come from, seed, safety, sensing, policy, and the weights or source of each method. What is there is kept and
never flown twice; whoever changes one of these gets a clear refusal instead of a mixture. What a folder of another
experiment holds, flown with the very same settings, is taken from there.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Container, Iterable, Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from phygail import __version__
from phygail.config import InputError
from phygail.evaluation.flight import TIMEOUT, Job, Task
from phygail.evaluation.folder import RunFolder, describe_sensing, digest
from phygail.evaluation.local_engine import LocalEngine
from phygail.evaluation.machine import machine
from phygail.evaluation.pool import Engine
from phygail.evaluation.roster import takes_policy
from phygail.evaluation.row_checks import make_judge
from phygail.evaluation.rows import ERROR, Key, Row, frame, key_of, read_rows
from phygail.evaluation.runner import Progress, fly_all, plan_tasks, taken_back_if_refused
from phygail.files import read_json, write_text

if TYPE_CHECKING:
    import polars as pl

WEIGHTS = "weights of "  # how the settings that belong to one method begin


class GrowingFolder(RunFolder):
    """A folder that later runs may add to; run.json keeps the command and machine of each, and whose rows it took."""

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
        # A run that was resumed stands once, unless it went on elsewhere.
        runs = [run for run in before.get("runs", []) if _place(run) != _place(about)]
        config = {**before.get("config", {}), **self.config}
        taken = {"taken_from": before["taken_from"]} if "taken_from" in before else {}
        return {"version": __version__, "config": config, "run": about, "runs": [*runs, about], **taken}

    def rows_alike(self, keys: Container[Key]) -> list[Row]:
        """The rows of these flights, as far as they were flown here with the very same settings and weights.

        What met a time limit or ended with an error is left out: another run may have more luck.
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
    kin: Sequence[Path] = (),
) -> pl.DataFrame:
    """Fly what neither the folder nor its kin hold yet; gives all rows of the folder.

    Args:
        job: Scenarios, methods and settings.
        out: Folder for rows.csv and run.json.
        source: What a scenario's id stands for, e.g. {"source": "fresh", "seed": 0}.
        workers: Processes. engine: Where to fly; worker processes on this machine if None.
        progress: Told how many of all episodes of the folder are finished.
        command: How a user repeats this run.
        kin: Folders that may hold some of the same flights; those of other settings are passed over.
    """
    folder = GrowingFolder(out, {**source, **identity(job)})
    tasks, ids = plan_tasks(job), job.cases.ids()
    folder.check()  # before the folder is made
    crew = engine or LocalEngine(workers)
    about = {"command": command, "workers": workers, "timeout_s": job.timeout_s, "machine": machine()}
    try:
        with folder.locked(), taken_back_if_refused(folder, fresh=True):
            rows = folder.resume(about, make_judge(job))
            todo = {(ids[task.index], task.method): task for task in tasks}
            for row in rows:
                todo.pop(key_of(row), None)
            rows += _take_over(folder, () if job.timeout_s else kin, todo)  # who wants a time limit wants it met
            if todo:
                crew.start(job)
            rows += fly_all(crew, folder, list(todo.values()), len(rows), progress)
            folder.save(rows)
            return frame(rows)
    finally:
        crew.stop()


def _take_over(folder: GrowingFolder, kin: Iterable[Path], todo: dict[Key, Task]) -> list[Row]:
    """The rows that folders of kin hold of what is left to fly; they are then here and no longer left."""
    rows: list[Row] = []
    for other in kin:
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
    """The digest of the bundled weights of a method; retrained ones must not mix with rows of the old."""
    suffixes = (".onnx", ".safetensors")
    bundled = sorted((file for file in (files("phygail") / "weights").iterdir()), key=lambda file: file.name)
    mine = [file.read_bytes() for file in bundled if file.name in {method + suffix for suffix in suffixes}]
    return digest(b"".join(mine)) if mine else ""
