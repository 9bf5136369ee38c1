"""The loop around every training of a method: progress with remaining time, log, validation, best snapshot on disk.

A training describes itself by a `Job`; its `updates` learns as it is drawn from. `phygail train NAME` runs the job
of NAME.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from torch import Tensor, nn

from phygail import __version__
from phygail.files import make_folder
from phygail.methods.base import Method
from phygail.models.weights import save_weights
from phygail.swarm.scenario import Scenario
from phygail.training.validate import Validation, validate


@dataclass(frozen=True, eq=False)
class Update:
    """After an iteration of learning: its number (from 1), what to log, and the network as it is now."""

    iteration: int
    metrics: dict[str, float]
    network: nn.Module


@dataclass(frozen=True, eq=False)
class Job:
    """A training, ready to run.

    Attributes:
        name: Kind of the weights; what `phygail train` calls it. version: Of the architecture.
        updates: Learns while it is iterated over, `iterations` times.
        pilot: A fresh method that flies with the given network, for validation.
        scenarios: Fixed validation scenarios, none of which is trained on.
        every: Iterations between validations; the last iteration is always validated.
        by: What decides between snapshots of equal success: "mean_steps" or "mean_largest_move_m".
        config: Everything that made the weights (seed, profile, sizes, rates); goes into their JSON file.
    """

    name: str
    version: int
    iterations: int
    updates: Iterable[Update]
    pilot: Callable[[nn.Module], Method]
    scenarios: Sequence[Scenario]
    every: int
    by: str = "mean_steps"
    config: dict[str, Any] = field(default_factory=dict)


def run(job: Job, out: Path, command: str = "") -> Validation:
    """Train, validate on the way, and keep the best snapshot.

    Args:
        job: What to train.
        out: NAME.safetensors; NAME.json (config, validation curve) and NAME.jsonl (log) go beside it.
        command: The command line, recorded in the config.
    """
    make_folder(out.parent)
    best: Validation | None = None
    kept: dict[str, Tensor] = {}
    config: dict[str, Any] = {"kind": job.name, "version": job.version, "package": __version__, "command": command}
    config |= {"training": job.config, "validation": []}
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with out.with_suffix(".jsonl").open("w", encoding="utf-8") as log, Progress(*columns) as bar:
        task = bar.add_task(f"train {job.name}", total=job.iterations)
        for update in job.updates:
            entry: dict[str, Any] = {"iteration": update.iteration, **update.metrics}
            if update.iteration % job.every == 0 or update.iteration == job.iterations:
                score = validate(lambda network=update.network: job.pilot(network), job.scenarios)  # type: ignore[misc]
                config["validation"].append(score.entry(update.iteration))
                entry |= score.entry(update.iteration)
                if score.better_than(best, job.by):
                    best, kept = score, copy.deepcopy(update.network.state_dict())
                    config["iteration"] = update.iteration
                # Saved at every validation: an interrupted training leaves its best weights so far.
                save_weights(out, kept, config)
            log.write(json.dumps(entry) + "\n")
            log.flush()
            bar.advance(task)
    if best is None:
        raise RuntimeError(f"the training of {job.name} gave no updates")
    return best
