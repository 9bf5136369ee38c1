"""Training `phygail`: clone reach, then evolve in worlds with at most 20 flying, validated zero-shot all the time.

DIR/config.json          what the run is: settings, version, command
DIR/clone.safetensors    where it began, a policy of its own
DIR/state.safetensors    where it stands; overwritten whole after every generation
DIR/best.safetensors, latest.safetensors    policies (with JSON) for `phygail export`
DIR/log.jsonl, curves.png                   how it went
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.numpy

from phygail import __version__
from phygail.config import InputError
from phygail.files import make_folder, read_json, whole_file, write_text
from phygail.models.gate_export import save_gates
from phygail.rng import generator
from phygail.swarm.scenario import draw_scenario
from phygail.training.clone_reach import REACH_BELIEF, clone_reach
from phygail.training.curves import Panel, draw_curves
from phygail.training.evolve import Search
from phygail.training.flights import World, fly_policy
from phygail.training.genes import BELIEFS, Genome
from phygail.training.log import Entry, RunLog, live, read_log
from phygail.training.worlds import draw_worlds

CONFIG, STATE = "config.json", "state.safetensors"
CLONE, BEST, LATEST = "clone.safetensors", "best.safetensors", "latest.safetensors"
KIND = "phygail"
VALIDATION_SEED = 600_000  # the same for every run, so that runs can be compared
STILL = -10.0  # log strength of gates that pull nobody: SIDR without repulsion
PANELS: tuple[Panel, ...] = (
    ("cost in the worlds of a generation", None, (("mean policy", "cost/mean_policy", ""), ("best", "cost/best", ""))),
    ("zero-shot steps over the clone's", None, (("validation", "validation/over_clone", "o"),)),
    ("spread and drift", None, (("sigma", "search/sigma", ""), ("drift of ghosts", "search/drift", ""))),
)


@dataclass(frozen=True)
class EvolveConfig:
    """A run. Seeds of reports are 0 to 1000; none of them is used here."""

    seed: int = 100_000  # of clone, worlds and search
    generations: int = 100
    population: int = 36  # policies per generation, in mirrored pairs
    worlds: int = 40  # per generation, the same for all its policies
    sigma: float = 0.15  # spread of a gate weight at the start
    belief_spread: tuple[float, ...] = (1.5, 3.0, 3.0, 3.0, 3.0)  # of `genes.BELIEFS`, in units of sigma
    handicap: float = 20.0  # steps added to SIDR's before a flight is divided by them: short flights weigh less
    validate_every: int = 5  # generations
    validation_sizes: tuple[int, ...] = (100, 200, 500)
    validation_damage: tuple[float, ...] = (0.25, 0.45, 0.65, 0.75, 0.85, 0.95)
    validation_cases: int = 12  # per cell
    clone_worlds: int = 150  # flights of reach to watch
    clone_passes: int = 12

    def __post_init__(self) -> None:
        for name in ("generations", "worlds", "validate_every", "validation_cases", "clone_worlds", "clone_passes"):
            if getattr(self, name) < 1:
                raise InputError(f"{name} {getattr(self, name)}: choose 1 or more")
        if self.population < 4 or self.population % 2:
            raise InputError(f"population {self.population}: choose an even number from 4 on")
        if len(self.belief_spread) != BELIEFS:
            raise InputError(f"belief_spread has {len(self.belief_spread)} numbers: give {BELIEFS}")


@dataclass
class EvolveRun:
    """A run that is ready to train."""

    folder: Path
    config: EvolveConfig
    search: Search
    clone: np.ndarray
    facts: dict[str, Any]
    best: float = np.inf  # mean over swarm sizes of mean steps over the clone's
    genome: Genome = field(default_factory=Genome)


def start_evolution(folder: Path, config: EvolveConfig, command: str = "") -> EvolveRun:
    """Clone reach and begin a run in a folder that holds none."""
    if (folder / CONFIG).exists():
        raise InputError(f"{folder} holds a run already: continue it with --resume {folder} or choose another --out")
    genome = Genome()
    gates, errors = clone_reach(genome.shape, config.seed, worlds=config.clone_worlds, passes=config.clone_passes)
    clone = genome.join(gates, REACH_BELIEF)
    facts = {"package": __version__, "command": command}
    scale = np.concatenate([np.ones(genome.shape.size), config.belief_spread])
    search = Search(clone.copy(), scale, config.sigma, config.population, config.seed)
    run = EvolveRun(make_folder(folder), config, search, clone, facts)
    _save_policy(run, CLONE, clone, clone_errors=errors)
    _save_state(run)
    about = {"kind": KIND, **facts, "config": asdict(config)}
    write_text(folder / CONFIG, json.dumps(about, indent=1) + "\n")  # last: a run that was not begun is not resumed
    return run


def resume_evolution(folder: Path) -> EvolveRun:
    """Continue a run where it stands."""
    try:
        about = read_json(folder / CONFIG)
        if about["kind"] != KIND:
            raise KeyError("kind")
        values: dict[str, Any] = {
            key: tuple(value) if isinstance(value, list) else value for key, value in about["config"].items()
        }
        config = EvolveConfig(**values)
        with safetensors.safe_open(folder / STATE, "np") as file:
            progress = json.loads(file.metadata()["progress"])
            arrays = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118 (the file is no mapping)
    except (OSError, KeyError, TypeError, ValueError, safetensors.SafetensorError) as error:
        raise InputError(f"{folder} holds no run of phygail to resume ({' '.join(str(error).split())[:80]})") from None
    search = Search(
        arrays["mean"], arrays["scale"], progress["sigma"], config.population, config.seed,
        arrays["variance"], arrays["path"], arrays["path_sigma"], progress["generation"],
    )  # fmt: skip
    facts = {key: about[key] for key in ("package", "command")}
    return EvolveRun(folder, config, search, arrays["clone"], facts, progress["best"])


def evolve(run: EvolveRun, *, until: int | None = None, workers: int = 1, tensorboard: bool = False) -> float:
    """Train to the last generation, or `until` an earlier one; gives the best validation so far (1: as the clone)."""
    config, search = run.config, run.search
    last = min(config.generations, until or config.generations)
    cells = validation_cells(config)
    pool = ThreadPoolExecutor(workers)
    log = RunLog(run.folder, search.generation, tensorboard=tensorboard)
    clone_steps = np.array([_fly(run.genome, run.clone, worlds).mean() for worlds in cells])
    with pool, live(search.generation, last, _headline) as show:
        while search.generation < last:
            begun = time.perf_counter()
            worlds = [World.of(scenario) for scenario in draw_worlds(config.worlds, config.seed, search.generation)]
            handicap = _fly(run.genome, _still(run.genome), worlds) + config.handicap
            candidates = search.ask()
            flights = list(pool.map(partial(_fly, run.genome, worlds=worlds), [*candidates, search.mean]))
            costs = np.array([(steps / handicap).mean() for steps in flights])
            search.tell(candidates, costs[:-1])
            seconds = {"generation": time.perf_counter() - begun}
            entry: Entry = {
                "epoch": search.generation,
                "cost": {"mean_policy": costs[-1], "best": costs[:-1].min(), "median": float(np.median(costs[:-1]))},
                "search": {"sigma": search.sigma, "drift": run.genome.split(search.mean)[1].drift},
            }
            if search.generation % config.validate_every == 0 or search.generation == config.generations:
                entry["validation"] = _validate(run, cells, clone_steps, pool)
                seconds["validation"] = time.perf_counter() - begun - seconds["generation"]
            entry["seconds"] = {stage: round(value, 3) for stage, value in seconds.items()}
            entry["rate"] = {"world_steps_per_s": float(np.sum(flights)) / max(seconds["generation"], 1e-9)}
            log.write(entry)
            show(entry)
            _save_state(run)  # last: what it says is done, is done
    log.close()
    if read_log(run.folder):
        draw_curves(run.folder, PANELS)
    return run.best


def validation_cells(config: EvolveConfig) -> list[list[World]]:
    """Worlds by (N, damage), N outer: larger swarms than any trained in."""
    cells = []
    for size in config.validation_sizes:
        for ratio in config.validation_damage:
            keys = [(size, round(1000 * ratio), case) for case in range(config.validation_cases)]
            drawn = [draw_scenario(size, ratio, generator(VALIDATION_SEED, "validation", *key)) for key in keys]
            cells.append([World.of(scenario) for scenario in drawn])
    return cells


def _validate(run: EvolveRun, cells: Sequence[list[World]], clone: np.ndarray, pool: ThreadPoolExecutor) -> Entry:
    """Fly the mean policy, keep it if it is the best so far."""
    vector = run.search.mean
    steps = np.array(list(pool.map(lambda worlds: _fly(run.genome, vector, worlds).mean(), cells)))
    by_size = [values.reshape(len(run.config.validation_sizes), -1).mean(axis=1) for values in (steps, clone)]
    entry = {"over_clone": float((by_size[0] / by_size[1]).mean()), "mean_steps": float(steps.mean())}
    _save_policy(run, LATEST, vector, validation=entry)
    if entry["over_clone"] < run.best:
        run.best = entry["over_clone"]
        _save_policy(run, BEST, vector, validation=entry)
    return entry


def _fly(genome: Genome, vector: np.ndarray, worlds: Sequence[World]) -> np.ndarray:
    """(len(worlds),) steps."""
    gates, belief = genome.split(vector)
    return np.array([fly_policy(world, gates, genome.shape, belief) for world in worlds], dtype=float)


def _still(genome: Genome) -> np.ndarray:
    """Gates that pull nobody: the yardstick by which worlds are made comparable."""
    parts = [part.copy() for part in genome.shape.layers(np.zeros(genome.shape.size, dtype=np.float32))]
    parts[3][:] = (STILL, 0.0, STILL)
    return genome.join(np.concatenate([part.ravel() for part in parts]), REACH_BELIEF)


def _save_policy(run: EvolveRun, name: str, vector: np.ndarray, **facts: Any) -> None:
    gates, belief = run.genome.split(vector)
    about = {**run.facts, "training": asdict(run.config), "generation": run.search.generation, **facts}
    save_gates(run.folder / name, gates, run.genome.shape, belief, **about)


def _save_state(run: EvolveRun) -> None:
    search = run.search
    arrays = {name: getattr(search, name) for name in ("mean", "scale", "variance", "path", "path_sigma")}
    progress = {"generation": search.generation, "sigma": search.sigma, "best": run.best}
    with whole_file(run.folder / STATE) as draft:
        content = safetensors.numpy.save(arrays | {"clone": run.clone}, metadata={"progress": json.dumps(progress)})
        draft.write_bytes(content)


def _headline(entry: Entry) -> str:
    """One generation in a line."""
    cost, search = entry["cost"], entry["search"]
    words = f"cost {cost['mean_policy']:.3f}  best {cost['best']:.3f}"
    words += f"  sigma {search['sigma']:.3f}  drift {search['drift']:.2f}"
    words += f"  {entry['rate']['world_steps_per_s']:,.0f} world steps/s"
    if "validation" in entry:
        score = entry["validation"]
        words += f"  | zero-shot: {score['over_clone']:.3f} of the clone's steps, mean {score['mean_steps']:.1f}"
    return words
