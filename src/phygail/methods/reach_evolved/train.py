"""Training of the evolved rule: clone reach, then evolve weights and beliefs in compiled flights, validated zero-shot.

The useful moves of a subnet last tens of steps and pay off at the end, so a policy is judged by whole flights. One
generation draws `population` policies around the mean, flies all of them through the same worlds, and moves mean and
spread toward the better half. Worlds are new in every generation and depend on (seed, generation) only, so a run
resumes exactly.

Its run folder (`learning.run`) also has clone.safetensors, the policy that it began with.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from phygail import __version__
from phygail.config import InputError
from phygail.files import make_folder, read_json
from phygail.learning.log import Entry, Panel
from phygail.learning.run import (
    BEST,
    LATEST,
    Score,
    cannot_resume,
    due,
    followed,
    new_folder,
    read_about,
    read_state,
    write_about,
    write_state,
)
from phygail.learning.worlds import draw_worlds
from phygail.methods.reach_evolved import GateShape
from phygail.methods.reach_evolved.compiled import fly_policy
from phygail.methods.reach_evolved.export import save_gates
from phygail.methods.reach_evolved.lessons import REACH_BELIEF, clone_reach
from phygail.rng import generator
from phygail.sensing.beliefs import BeliefSpec
from phygail.swarm.compiled import World
from phygail.swarm.scenario import draw_scenario

BELIEFS = 5  # drift, ln sigma, ln sigma rate, half depth, ln depth scale

CLONE = "clone.safetensors"
KIND = "reach-evolved"
VALIDATION_SEED = 600_000  # the same for every run, so that runs can be compared
STILL = -10.0  # log strength of gates that pull nobody: SIDR without repulsion
PANELS: tuple[Panel, ...] = (
    ("cost in the worlds of a generation", None, (("mean policy", "cost/mean_policy", ""), ("best", "cost/best", ""))),
    ("zero-shot steps over the clone's", None, (("validation", "validation/over_clone", "o"),)),
    ("spread and drift", None, (("sigma", "search/sigma", ""), ("drift of ghosts", "search/drift", ""))),
)


@dataclass(frozen=True)
class Genome:
    """The layout of a vector: gate weights, then beliefs."""

    shape: GateShape = field(default_factory=GateShape)
    base: BeliefSpec = field(default_factory=BeliefSpec)

    @property
    def size(self) -> int:
        """Length of a vector."""
        return self.shape.size + BELIEFS

    def join(self, gates: np.ndarray, spec: BeliefSpec) -> np.ndarray:
        """The vector of a policy."""
        logs = np.log([spec.sigma_m, spec.sigma_rate, spec.depth_scale])
        return np.concatenate([gates, [spec.drift, logs[0], logs[1], spec.depth_half, logs[2]]]).astype(float)

    def split(self, vector: np.ndarray) -> tuple[np.ndarray, BeliefSpec]:
        """Gate weights (float32) and beliefs of a vector; numbers out of range are clipped."""
        drift, sigma, rate, half, scale = vector[self.shape.size :]
        spec = replace(
            self.base, drift=float(np.clip(drift, 0.0, 1.2)), sigma_m=_positive(sigma), sigma_rate=_positive(rate),
            depth_half=float(half), depth_scale=_positive(scale),
        )  # fmt: skip
        return vector[: self.shape.size].astype(np.float32), spec


def _positive(logarithm: float) -> float:
    return float(np.exp(np.clip(logarithm, -7.0, 5.0)))


@dataclass
class Search:
    """The state of a search; `sigma` scales the per-parameter spread `scale`.

    Attributes:
        mean: (D,). scale: (D,) spread of each parameter relative to the others. sigma: Overall spread.
        variance: (D,) diagonal of the adapted covariance, in units of scale squared.
        path, path_sigma: (D,) evolution paths. generation: Finished generations.
    """

    mean: np.ndarray
    scale: np.ndarray
    sigma: float
    population: int
    seed: int
    variance: np.ndarray = field(default_factory=lambda: np.empty(0))
    path: np.ndarray = field(default_factory=lambda: np.empty(0))
    path_sigma: np.ndarray = field(default_factory=lambda: np.empty(0))
    generation: int = 0

    def __post_init__(self) -> None:
        if not len(self.variance):
            size = len(self.mean)
            self.variance, self.path, self.path_sigma = np.ones(size), np.zeros(size), np.zeros(size)

    def ask(self) -> np.ndarray:
        """(population, D) candidates, in mirrored pairs: the mean of the noise is zero."""
        rng = generator(self.seed, "evolve", self.generation)
        half = rng.standard_normal((self.population // 2, len(self.mean)))
        noise = np.concatenate([half, -half])
        return self.mean + self.sigma * self.scale * np.sqrt(self.variance) * noise

    def tell(self, candidates: np.ndarray, costs: np.ndarray) -> None:
        """Move mean and spread toward the cheaper half."""
        size, parents = len(self.mean), self.population // 2
        order = np.argsort(costs, kind="stable")[:parents]
        weights = np.log(parents + 0.5) - np.log(np.arange(1, parents + 1))
        weights /= weights.sum()
        effective = 1.0 / (weights**2).sum()
        steps = (candidates[order] - self.mean) / (self.sigma * self.scale)
        step = weights @ steps
        self.mean = self.mean + self.sigma * self.scale * step
        c_sigma = (effective + 2) / (size + effective + 5)
        damping = 1 + 2 * max(0.0, math.sqrt((effective - 1) / (size + 1)) - 1) + c_sigma
        self.path_sigma = (1 - c_sigma) * self.path_sigma + math.sqrt(
            c_sigma * (2 - c_sigma) * effective
        ) * step / np.sqrt(self.variance)
        expected = math.sqrt(size) * (1 - 1 / (4 * size) + 1 / (21 * size**2))
        length = float(np.linalg.norm(self.path_sigma))
        c_path = (4 + effective / size) / (size + 4 + 2 * effective / size)
        calm = length / math.sqrt(1 - (1 - c_sigma) ** (2 * (self.generation + 1))) < (1.4 + 2 / (size + 1)) * expected
        self.path = (1 - c_path) * self.path + calm * math.sqrt(c_path * (2 - c_path) * effective) * step
        faster = (size + 2) / 3  # a diagonal covariance has fewer numbers to learn
        c_one = min(0.5, faster * 2 / ((size + 1.3) ** 2 + effective))
        c_rank = min(1 - c_one, faster * 2 * (effective - 2 + 1 / effective) / ((size + 2) ** 2 + effective))
        rank = weights @ steps**2
        self.variance = (1 - c_one - c_rank) * self.variance + c_one * self.path**2 + c_rank * rank
        self.sigma *= math.exp(min(1.0, c_sigma / damping * (length / expected - 1)))
        self.generation += 1


@dataclass(frozen=True)
class EvolveConfig:
    """A run. Seeds of reports are 0 to 1000; none of them is used here."""

    seed: int = 100_000  # of clone, worlds and search
    generations: int = 100
    population: int = 36  # policies per generation, in mirrored pairs
    worlds: int = 40  # per generation, the same for all its policies
    sigma: float = 0.15  # spread of a gate weight at the start
    belief_spread: tuple[float, ...] = (1.5, 3.0, 3.0, 3.0, 3.0)  # of the beliefs in `Genome`, in units of sigma
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
    best: Score | None = None  # validation of the best policy so far
    genome: Genome = field(default_factory=Genome)


def start_evolution(folder: Path, config: EvolveConfig, command: str = "") -> EvolveRun:
    """Clone reach and begin a run in a folder that holds none."""
    new_folder(folder)
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
    write_about(folder, about)
    return run


def resume_evolution(folder: Path) -> EvolveRun:
    """Continue a run where it stands."""
    about = read_about(folder, KIND)
    arrays, progress = read_state(folder)
    try:
        values: dict[str, Any] = {
            key: tuple(value) if isinstance(value, list) else value for key, value in about["config"].items()
        }
        config = EvolveConfig(**values)
        search = Search(
            arrays["mean"], arrays["scale"], progress["sigma"], config.population, config.seed,
            arrays["variance"], arrays["path"], arrays["path_sigma"], progress["generation"],
        )  # fmt: skip
        best = _best_of(folder, progress["best"])
    except (KeyError, TypeError) as error:
        raise cannot_resume(folder, error) from None
    facts = {key: about[key] for key in ("package", "command")}
    return EvolveRun(folder, config, search, arrays["clone"], facts, best)


def _best_of(folder: Path, best: Any) -> Score | None:
    """The score that a state holds. Runs of version 0.1 hold one number, which is infinite before any validation."""
    if isinstance(best, float) and math.isfinite(best):
        validation = read_json((folder / BEST).with_suffix(".json"))["validation"]
        best = {"mean_steps": validation["mean_steps"], "over_clone": best}
    return Score(None, None, best["mean_steps"], over_clone=best["over_clone"]) if isinstance(best, dict) else None


def evolve(run: EvolveRun, *, until: int | None = None, workers: int = 1, tensorboard: bool = False) -> Score | None:
    """Train to the last generation, or `until` an earlier one; gives the best validation so far."""
    config, search = run.config, run.search
    last = min(config.generations, until or config.generations)
    cells = validation_cells(config)
    pool = ThreadPoolExecutor(workers)
    clone_steps = np.array([_fly(run.genome, run.clone, worlds).mean() for worlds in cells])
    follow = followed(run.folder, search.generation, last, tell=_headline, panels=PANELS, tensorboard=tensorboard)
    with pool, follow as log:
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
            if due(search.generation, config.validate_every, config.generations):
                entry["validation"] = _validate(run, cells, clone_steps, pool)
                seconds["validation"] = time.perf_counter() - begun - seconds["generation"]
            entry["seconds"] = {stage: round(value, 3) for stage, value in seconds.items()}
            entry["rate"] = {"world_steps_per_s": float(np.sum(flights)) / max(seconds["generation"], 1e-9)}
            log.write(entry)
            _save_state(run)  # last, so that everything before it is on disk
    return run.best


def validation_cells(config: EvolveConfig) -> list[list[World]]:
    """Worlds by (N, damage), N outer: swarms larger than those of the training."""
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
    score = Score(None, None, float(steps.mean()), over_clone=float((by_size[0] / by_size[1]).mean()))
    _save_policy(run, LATEST, vector, validation=score.entry())
    if score.better_than(run.best, "over_clone"):
        run.best = score
        _save_policy(run, BEST, vector, validation=score.entry())
    return score.entry()


def _fly(genome: Genome, vector: np.ndarray, worlds: Sequence[World]) -> np.ndarray:
    """(len(worlds),) steps."""
    gates, belief = genome.split(vector)
    return np.array([fly_policy(world, gates, genome.shape, belief) for world in worlds], dtype=float)


def _still(genome: Genome) -> np.ndarray:
    """Gates that pull nobody; their flights make worlds comparable."""
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
    progress = {"generation": search.generation, "sigma": search.sigma, "best": run.best.entry() if run.best else None}
    write_state(run.folder, arrays | {"clone": run.clone}, progress)


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
