"""Flights that add up: a folder of rows to which later runs add cases, sizes and methods.

`runner.compare` fixes everything at the start of a folder. Here only what changes the rows themselves is fixed: where
scenarios come from, seed, safety, sensing, policy, and the weights or source of each method. What is there is kept and
never flown twice; whoever changes one of these gets a clear refusal instead of a mixture.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from phygail import __version__
from phygail.evaluation.flight import Job
from phygail.evaluation.folder import RunFolder, describe_sensing, digest
from phygail.evaluation.local_engine import LocalEngine
from phygail.evaluation.machine import machine
from phygail.evaluation.pool import Engine, RefusedError
from phygail.evaluation.roster import takes_policy
from phygail.evaluation.rows import frame, key_of, read_rows, save_rows
from phygail.evaluation.runner import Progress, fly_all, plan_tasks

if TYPE_CHECKING:
    import polars as pl


class GrowingFolder(RunFolder):
    """A folder that later runs may add to; run.json keeps the command and machine of each."""

    def decisive(self, earlier: dict[str, Any]) -> Iterable[str]:
        """The settings that both runs have: a method that is new may bring its weights."""
        return [key for key in self.config if key in earlier]

    def record(self, about: dict[str, Any], earlier: dict[str, Any] | None) -> dict[str, Any]:
        before = earlier or {}
        # A run that was resumed stands once, unless it went on elsewhere.
        runs = [run for run in before.get("runs", []) if _place(run) != _place(about)]
        config = {**before.get("config", {}), **self.config}
        return {"version": __version__, "config": config, "run": about, "runs": [*runs, about]}


def collect(
    job: Job,
    out: Path,
    source: Mapping[str, Any],
    *,
    workers: int = 2,
    engine: Engine | None = None,
    progress: Progress | None = None,
    command: str = "",
) -> pl.DataFrame:
    """Fly what the folder does not hold yet; gives all rows of the folder.

    Args:
        job: Scenarios, methods and settings.
        out: Folder for rows.csv and run.json.
        source: What a scenario's id stands for, e.g. {"source": "fresh", "seed": 0}.
        workers: Processes. engine: Where to fly; worker processes on this machine if None.
        progress: Told how many of all episodes of the folder are finished.
        command: How a user repeats this run.
    """
    folder = GrowingFolder(out, {**source, **identity(job)})
    tasks, ids = plan_tasks(job), job.cases.ids()
    fresh = folder.check() is None
    crew = engine or LocalEngine(workers)
    about = {"command": command, "workers": workers, "timeout_s": job.timeout_s, "machine": machine()}
    try:
        with folder.locked():
            rows = folder.resume(about)
            done = {key_of(row) for row in rows}
            todo = [task for task in tasks if (ids[task.index], task.method) not in done]
            if todo:
                crew.start(job)
            rows += fly_all(crew, folder, todo, len(rows), progress)
            save_rows(folder.rows_path, rows)
            return frame(rows)
    except RefusedError:
        if fresh and not read_rows(folder.rows_path):
            folder.discard()
        raise
    finally:
        crew.stop()


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
    return settings | {f"weights of {name}": weights for name in own if (weights := _weights(name))}


def _weights(method: str) -> str:
    """The digest of the bundled weights of a method; retrained ones must not mix with rows of the old."""
    suffixes = (".onnx", ".safetensors")
    bundled = sorted((file for file in (files("phygail") / "weights").iterdir()), key=lambda file: file.name)
    mine = [file.read_bytes() for file in bundled if file.name in {method + suffix for suffix in suffixes}]
    return digest(b"".join(mine)) if mine else ""
