"""What every training shares: settings, the run folder, the loop around it, the score that chooses policies.

A run folder resumes bit for bit and holds
config.json         what the run is: kind, settings, version, command; written last, so a folder with it has a state
state.safetensors   the state to resume from; overwritten whole
best.safetensors, latest.safetensors    policies (with JSON) for `phygail export`
log.jsonl, tensorboard/, curves.png     how it went

Trainings of minutes, which never resume, describe themselves by a `Job`; its `updates` learns as it is drawn from. A
method names its training (`Method.training`), and `phygail train NAME` runs it.
"""

from __future__ import annotations

import contextlib
import copy
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import safetensors.numpy
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from torch import Tensor, nn

from phygail import __version__
from phygail.config import InputError, Registry
from phygail.files import make_folder, read_json, whole_file, write_text
from phygail.learning.log import PANELS, Entry, Panel, RunLog, draw_curves, headline, live, read_log
from phygail.learning.networks import one_thread, save_weights
from phygail.methods.base import OLD_VERSION, Method
from phygail.methods.controller import run_episode
from phygail.methods.planning import PlanMethod, largest_move_m
from phygail.rng import generator
from phygail.swarm.scenario import Scenario, draw_scenario

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

_Config = TypeVar("_Config", bound="DataclassInstance")

TRAINING_SEED = 100_000  # seeds 0..1000 are reserved for reporting; trainings draw from this one on
CONFIG, STATE = "config.json", "state.safetensors"
BEST, LATEST = "best.safetensors", "latest.safetensors"  # policies: of the best validation, of the last one
OLD_KINDS = {"phygail": "reach-evolved", "phygail-paper": "phygail"}  # of runs of version 0.1, and what they are now


def override(config: _Config, settings: Iterable[str]) -> _Config:
    """A config with settings like "gamma=0.995", "graph=no-center" or "sizes=20,50"; an unknown name is an error."""
    known: Registry[Any] = Registry("setting")
    for entry in fields(config):
        known.add(entry.name, getattr(config, entry.name))
    changes = {}
    for setting in settings:
        name, sign, text = setting.partition("=")
        if not sign:
            raise InputError(f"setting {setting!r}: write NAME=VALUE")
        changes[name.strip()] = _like(known.get(name.strip()), name, text.strip())
    return replace(config, **changes)


def _like(default: Any, name: str, text: str) -> Any:
    """`text` as a value of the same type as `default`."""
    if isinstance(default, bool):
        if text.lower() not in ("true", "false"):
            raise InputError(f"{name} {text!r}: choose true or false")
        return text.lower() == "true"
    if isinstance(default, str):
        return text
    if isinstance(default, tuple):
        return tuple(_like(default[0], name, part.strip()) for part in text.split(","))
    kind, word = (int, "a whole number") if isinstance(default, int) else (float, "a number")
    try:
        return kind(text)
    except ValueError:
        raise InputError(f"{name} {text!r}: give {word}") from None


def new_folder(folder: Path) -> Path:
    """The folder of a new run; one that holds a run already is refused."""
    if (folder / CONFIG).exists():
        raise InputError(f"{folder} holds a run already: continue it with --resume {folder} or choose another --out")
    return folder


def write_about(folder: Path, about: Mapping[str, Any]) -> None:
    """Say what a run is, once its first state is on disk: a run that was not begun is not resumed."""
    write_text(folder / CONFIG, json.dumps(about, indent=1) + "\n")


def read_about(folder: Path, kind: str) -> dict[str, Any]:
    """What a run of this kind is; a folder without one is refused."""
    path = folder / CONFIG
    if not path.exists():
        raise InputError(f"{folder} holds no run of {kind} to resume: name the folder given to --out")
    try:
        about = read_json(path)
    except InputError:
        about = None
    if isinstance(about, dict) and str(about.get("package")).startswith(OLD_VERSION) and about.get("kind") in OLD_KINDS:
        raise InputError(
            f"{folder} is a run of {about['kind']} of version {about['package']}, which is {OLD_KINDS[about['kind']]} "
            "now: rename it first (results/rename_methods.py)"
        )
    if not isinstance(about, dict) or about.get("kind") != kind:
        raise InputError(f"{path} is not the config of a run of {kind}: name the folder given to --out")
    return about


def write_state(folder: Path, arrays: Mapping[str, np.ndarray], progress: Mapping[str, Any]) -> None:
    """Overwrite the state of a run; a kill at any moment leaves the old state or the new one."""
    with whole_file(folder / STATE) as draft:
        draft.write_bytes(safetensors.numpy.save(dict(arrays), metadata={"progress": json.dumps(progress)}))


def read_state(folder: Path) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """(arrays, progress) of `write_state`."""
    path = folder / STATE
    try:
        with safetensors.safe_open(path, "np") as file:
            progress: dict[str, Any] = json.loads(file.metadata()["progress"])
            return {key: file.get_tensor(key) for key in file.keys()}, progress  # noqa: SIM118 (no mapping)
    except (OSError, KeyError, TypeError, ValueError, safetensors.SafetensorError) as error:
        raise cannot_resume(path, error) from None


def cannot_resume(path: Path, error: Exception) -> InputError:
    """The one line about a state that does not fit its run."""
    return InputError(f"cannot resume from {path} ({' '.join(str(error).split())[:120]}): start a new run")


@contextlib.contextmanager
def followed(
    folder: Path,
    done: int,
    last: int,
    *,
    tell: Callable[[Entry], str] = headline,
    panels: Sequence[Panel] = PANELS,
    tensorboard: bool = True,
) -> Iterator[RunLog]:
    """The log for epochs `done` + 1 to `last` of a run: its entries are also shown, and curves are drawn at the end.

    One thread is used: sums have one order on every machine, and two runs share two cores better than one.
    """
    with one_thread(), live(done, last, tell) as show:
        log = RunLog(folder, done, tensorboard=tensorboard, show=show)
        with contextlib.closing(log):
            yield log
    if read_log(folder):
        draw_curves(folder, panels)


def due(number: int, every: int, last: int) -> bool:
    """Whether to validate after this epoch: every so many, and after the last."""
    return number % every == 0 or number == last


@dataclass(frozen=True)
class Score:
    """How a policy does on validation scenarios; what a training does not measure is None.

    Attributes:
        success: Share of scenarios that it reconnects by itself: an episode saved by a fallback (`flag`) is none.
        over_bound: Steps over lower bounds, both summed over all scenarios.
        mean_steps: Mean steps; a failure counts as the whole budget.
        mean_largest_move_m: Mean over scenarios of the largest displacement, of the plan if it plans, else as flown.
        over_clone: Mean over swarm sizes of mean steps, over those of the clone that an evolution began with.
    """

    success: float | None
    over_bound: float | None
    mean_steps: float
    mean_largest_move_m: float | None = None
    over_clone: float | None = None

    def better_than(self, other: Score | None, by: str = "mean_steps") -> bool:
        """Success first, if it was measured, then the attribute `by`; smaller is better."""
        if other is None:
            return True
        mine, theirs = (-(score.success or 0.0) for score in (self, other))
        return (mine, getattr(self, by)) < (theirs, getattr(other, by))

    def entry(self) -> dict[str, float]:
        """What was measured, for logs and configs."""
        return {key: value for key, value in asdict(self).items() if value is not None}


def validation_scenarios(
    seed: int, sizes: Sequence[int], ratios: Sequence[float], cases: int, purpose: str = "validate"
) -> list[Scenario]:
    """`cases` scenarios per size and damage ratio, from streams that training tasks never use."""
    return [
        draw_scenario(n, ratio, generator(seed, purpose, n, round(ratio * 1e4), case), name=f"{n}-{ratio}-{case}")
        for n in sizes
        for ratio in ratios
        for case in range(cases)
    ]


def validate(make: Callable[[], Method], scenarios: Sequence[Scenario]) -> Score:
    """Fly a fresh method, made by `make`, on every scenario."""
    success, steps, moves = [], [], []
    for scenario in scenarios:
        method = make()
        episode = run_episode(scenario, method, record=True)
        success.append(episode.terminated and not method.flag)
        steps.append(episode.scored_steps)
        planned = method.targets if isinstance(method, PlanMethod) else None
        moves.append(largest_move_m(scenario.spots, episode.states[-1].positions if planned is None else planned))
    return Score(float(np.mean(success)), None, float(np.mean(steps)), float(np.mean(moves)))


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
        flown_by: Makes a fresh method that flies with the given network, for validation.
        scenarios: Fixed validation scenarios, none of which is trained on.
        every: Iterations between validations; the last iteration is always validated.
        by: What decides between snapshots of equal success: "mean_steps" or "mean_largest_move_m".
        config: Everything that made the weights (seed, profile, sizes, rates); goes into their JSON file.
    """

    name: str
    version: int
    iterations: int
    updates: Iterable[Update]
    flown_by: Callable[[nn.Module], Method]
    scenarios: Sequence[Scenario]
    every: int
    by: str = "mean_steps"
    config: dict[str, Any] = field(default_factory=dict)


def run(job: Job, out: Path, command: str = "") -> Score:
    """Train, validate on the way, and keep the best snapshot.

    Args:
        job: What to train.
        out: NAME.safetensors; NAME.json (config, validation curve) and NAME.jsonl (log) go beside it.
        command: The command line, recorded in the config.
    """
    make_folder(out.parent)
    best: Score | None = None
    kept: dict[str, Tensor] = {}
    config: dict[str, Any] = {"kind": job.name, "version": job.version, "package": __version__, "command": command}
    config |= {"training": job.config, "validation": []}
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with out.with_suffix(".jsonl").open("w", encoding="utf-8") as log, Progress(*columns) as bar:
        task = bar.add_task(f"train {job.name}", total=job.iterations)
        for update in job.updates:
            entry: dict[str, Any] = {"iteration": update.iteration, **update.metrics}
            if due(update.iteration, job.every, job.iterations):
                score = validate(lambda network=update.network: job.flown_by(network), job.scenarios)  # type: ignore[misc]
                point = {"iteration": update.iteration, **{key: round(x, 4) for key, x in score.entry().items()}}
                config["validation"].append(point)
                entry |= point
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
