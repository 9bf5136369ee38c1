"""Experiments that train their own policies: each variant is trained with the same budget, then its file flies.

A run lives in RUNS/VARIANT-sSEED and is resumed bit for bit. What a report needs of it (log and settings) is copied
beside the rows, so that reports are made without the runs, and an experiment goes on where its results end.
"""

from __future__ import annotations

import functools
import importlib.util
import json
import logging
import multiprocessing
import shutil
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from phygail.config import InputError
from phygail.experiments.engine import RefusedError
from phygail.experiments.experiment import SEED, Experiment, Leg, Scale, Variant, scaled
from phygail.experiments.folder import machine
from phygail.experiments.rows import Case, Job, Result, Task, case_row, make_case, read_rows, time_of
from phygail.experiments.runner import Flying, fly_leg, fly_scenarios
from phygail.files import make_folder, read_json, write_text
from phygail.learning.log import read_log
from phygail.learning.worlds import DAMAGE
from phygail.methods import METHODS
from phygail.methods.controller import fly_case
from phygail.rng import generator
from phygail.swarm.links import find_links
from phygail.swarm.scenario import Scenario, draw_scenario
from phygail.swarm.tree import bound_steps

if TYPE_CHECKING:
    from phygail.methods.phygail.config import TrainConfig

log = logging.getLogger("phygail")

RUNS = "runs"  # folder beside those of the experiments: they share the runs of the full model
FIRST_SEED = 100_001  # of trainings; reports use 0 to 1000, and settings were chosen on seed 100,000
MOST_LOSSES = 3  # times that worker processes may die before trainings that run side by side are given up
FEWEST_SNAPSHOTS = 4  # policies that a training keeps along the way, at least
HARD_STEPS = 15  # least bound of the case study: the paper's best policy takes 55 steps
FLOWN_TOGETHER = "phygail-plus"  # the method whose policies `Together` flies
_DRAWS = 10_000


def _changed(name: str, label: str, *settings: str) -> Variant:
    return Variant(name, label, settings)


# One change each to the training of `phygail-plus`, judged in swarms it never learned in.
TRANSFER = Experiment(
    "transfer",
    "What helps a policy of twenty fly two hundred",
    "Which single change to the training of phygail-plus makes it faster in larger swarms?",
    (Leg("policies", (FLOWN_TOGETHER,), (100, 200), DAMAGE, 10),),
    tables=("changes",),
    variants=(
        Variant("full", "phygail-plus, first part of its training"),
        _changed("blind", "sees no lost teammates", "graph=plus-blind"),
        _changed("eight-lost", "sees eight lost teammates, not four", "graph=plus-8"),
        _changed("far-lost", "sees them up to 6 R away, not 3", "graph=plus-far"),
        _changed("own-lost", "sees first those it is nearest to", "graph=plus-own"),
        _changed("sharp", "who does not answer is gone at once", "graph=plus-sharp"),
        _changed("far-worlds", "worlds out of up to 400 UAVs", "pool_mix=far"),
        _changed("patience", "budgets of 6 T_E, not 3", "pool_patience=6"),
        _changed("hold-4", "commands held 4 steps, not 8", "hold=4"),
        _changed("gamma-99", "discount 0.99 per step, not 0.995", "gamma=0.99"),
        _changed("gamma-998", "discount 0.998", "gamma=0.998"),
        _changed("no-shaping", "no reward for closing the largest gap", "largest_gap_weight=0"),
        _changed("more-shaping", "twice that reward", "largest_gap_weight=4"),
        _changed("step-cost", "time costs the same in every step and world", "r_time=0", "step_cost=0.2"),
        _changed("no-entropy", "no entropy bonus", "entropy_first=0", "entropy_last=0"),
        _changed("slow", "half the rate", "rate=1e-3"),
        _changed("plain-critic", "the critic is told nothing besides", "critic_clock=false", "critic_gap=false"),
        _changed("deep-critic", "the critic hears two rounds, not one", "critic_layers=2"),
        _changed("wide", "64 wide, not 32", "width=64"),
        _changed("three-layers", "three rounds of messages, not two", "layers=3"),
        _changed("link-weight", "learns its weight in link keeping", "link_weight=true"),
    ),
    remarks=(
        "These cases drive decisions; figures for a report come from another seed",
        "The full training has a second part (docs/methods/phygail-plus.md), which these have not",
    ),
    profile="plus",
    demonstrated=False,
    together=True,
    seed=880_000,
)


@dataclass(frozen=True)
class Budget:
    """How much to train.

    Attributes:
        experts: Expert database of `phygail experts`.
        profile: Size of an epoch. epochs: How many; 0 for those of the profile.
        seeds: Trainings of every variant.
        settings: "NAME=VALUE" for all variants.
        runs: Folder of the runs; beside the experiment if None.
        variants: Names of those to train; all if empty.
        run: Folder of a finished training of the full model; nothing is trained then.
    """

    experts: Path | None = None
    profile: str = "compact"
    epochs: int = 0
    seeds: int = 1
    settings: tuple[str, ...] = ()
    runs: Path | None = None
    variants: tuple[str, ...] = ()
    run: Path | None = None


@dataclass(frozen=True)
class Trained:
    """A finished training: its name (VARIANT-sSEED) and folder."""

    name: str
    folder: Path

    def export(self, weights: Path, name: str) -> Path:
        """The policy NAME.onnx of weights of this run, in a folder of theirs; written anew only if they are younger."""
        from phygail.methods.phygail.export import export_weights

        path = make_folder(self.folder / weights.stem) / f"{name}.onnx"
        if not path.exists() or path.stat().st_mtime < weights.stat().st_mtime:
            export_weights(weights, path)
        return path

    def named(self, weights: Path) -> Path:
        """A copy of weights of this run under its own name, by which rows tell who flew."""
        path = make_folder(self.folder / weights.stem) / f"{self.name}{weights.suffix}"
        shutil.copyfile(weights, path)
        return path


def run_trained(experiment: Experiment, out: Path, scale: Scale, budget: Budget, how: Flying) -> None:
    """Train what is not trained yet, then fly every policy as it is at the end of its budget.

    The best policy on held-out cases is not flown: after a warm start it may be older than any effect of the rewards.
    """
    if importlib.util.find_spec("torch") is None:
        raise InputError(f"{experiment.name} trains policies: pip install 'phygail[learn]'")
    from phygail.experiments.statistics import NOTES, copy_training, read_notes  # needs polars
    from phygail.learning.run import LATEST

    legs = scaled(experiment, scale).legs
    notes = read_notes(out)
    notes["runs"] = [{"command": how.command, "machine": machine()}]
    notes["seed"] = scale.seed
    for run in train_variants(experiment, out, budget, how, sum(map(len, legs))):
        folder = out / run.name
        copy_training(run.folder, folder)
        write_text(out / NOTES, json.dumps(notes, indent=1) + "\n")
        if experiment.checkpoints:
            fly_checkpoints(experiment, run, out, how, scale.seed)
            continue
        together = functools.partial(Together, run.folder / LATEST) if experiment.together else None
        flying = replace(how, engine=together) if together else how
        for leg in legs:
            _check_methods(leg.methods, run.folder)
            flown = run.named(run.folder / LATEST) if together else run.export(run.folder / LATEST, run.name)
            fly_leg(leg, folder, flying, flown)


def train_variants(
    experiment: Experiment, out: Path, budget: Budget, how: Flying, flights: int = 0
) -> Iterator[Trained]:
    """Every variant and seed, trained to the end of its budget, but those whose `flights` are all in `out`."""
    names = [variant.name for variant in experiment.variants]
    for name in budget.variants:
        if name not in names:
            raise InputError(f"{experiment.name} has no variant {name!r}: it has {', '.join(names)}")
    if budget.seeds < 1 or budget.epochs < 0:
        raise InputError(f"{budget.seeds} seeds and {budget.epochs} epochs: choose at least 1 seed and no fewer than 0")
    if budget.run is not None:
        if not (budget.run / "config.json").exists():
            raise InputError(f"{budget.run} holds no training: name the folder of phygail train phygail")
        yield Trained(f"{names[0]}-s0", budget.run)
        return
    runs = budget.runs or out.parent / RUNS
    chosen = [variant for variant in experiment.variants if not budget.variants or variant.name in budget.variants]
    # All variants with the first seed, then with the second: an interrupted run has trained every variant.
    wanted = [
        (variant, seed, runs / f"{variant.name}-s{seed}")
        for seed in range(budget.seeds)
        for variant in chosen
        if not answered(out / f"{variant.name}-s{seed}", variant_config(variant, seed, budget), flights)
    ]
    if how.workers > 1 or how.cluster:
        train_side_by_side([(*each, budget, how.command) for each in wanted if not finished(each[2])], how)
    for variant, seed, folder in wanted:
        yield train_variant(variant, seed, folder, budget, how.command, how.tell)


def answered(folder: Path, config: TrainConfig, flights: int) -> bool:
    """Whether the results of a training are all there: its log to the last epoch and so many flights."""
    from phygail.experiments.statistics import LOG, SETTINGS, log_entries
    from phygail.methods.phygail.config import from_json

    if not flights or not all((folder / name).exists() for name in (SETTINGS, LOG, "rows.csv")):
        return False
    same = from_json(read_json(folder / SETTINGS)["config"]) == config
    return same and log_entries(folder)[-1]["epoch"] >= config.epochs and len(read_rows(folder / "rows.csv")) >= flights


def finished(folder: Path) -> bool:
    """Whether a training has reached its last epoch, by its log."""
    entries = read_log(folder)
    return bool(entries) and entries[-1]["epoch"] >= read_json(folder / "config.json")["config"]["epochs"]


def train_side_by_side(jobs: Sequence[tuple[Variant, int, Path, Budget, str]], how: Flying) -> None:
    """Train in processes or on Ray. Finished epochs are on disk, so a worker that dies costs its own epoch only."""
    if how.cluster and jobs:
        from phygail.experiments.ray_engine import each_on_ray

        how.tell(f"{len(jobs)} trainings on Ray")
        files = [file for _, _, _, budget, _ in jobs[:1] for file in (budget.experts,) if file is not None]
        runs = make_folder(jobs[0][2].parent)
        each_on_ray(train_variant, [_settled(job) for job in jobs], [*files, runs], how.workers, MOST_LOSSES - 1)
        return
    for attempt in range(1, MOST_LOSSES + 1):
        left = [job for job in jobs if not finished(job[2])]
        if not left:
            return
        how.tell(f"{len(left)} trainings, {min(how.workers, len(left))} at a time")
        spawn = multiprocessing.get_context("spawn")
        try:
            # A process per training: its CPU minutes are its own.
            with ProcessPoolExecutor(how.workers, spawn, max_tasks_per_child=1) as pool:
                for future in [pool.submit(train_variant, *job) for job in left]:
                    future.result()
            return
        except BrokenProcessPool:
            how.tell(f"a training process was lost; {MOST_LOSSES - attempt} more may be")
    raise InputError(f"training processes died {MOST_LOSSES} times: run it again with --workers 1 to see why")


def _settled(job: tuple[Variant, int, Path, Budget, str]) -> tuple[Variant, int, Path, Budget, str]:
    """The job with paths that do not depend on where a process was started."""
    variant, seed, folder, budget, command = job
    experts = None if budget.experts is None else budget.experts.resolve()
    return variant, seed, folder.resolve(), replace(budget, experts=experts), command


def train_variant(
    variant: Variant,
    seed: int,
    folder: Path,
    budget: Budget,
    command: str,
    tell: Callable[[str], None] = log.info,
) -> Trained:
    """Start or continue one training; a folder with another budget is refused."""
    from phygail.methods.phygail.config import differences
    from phygail.methods.phygail.train import resume_run, start_run, train

    config = variant_config(variant, seed, budget)
    if (folder / "config.json").exists():
        run = resume_run(folder, budget.experts)
        if run.config != config:
            raise InputError(
                f"{folder} was trained with another budget ({differences(run.config, config)}): "
                "name the same one or another --runs"
            )
    elif budget.experts is None and not config.pool:
        raise InputError("no expert database: give --experts FILE.h5; phygail experts --out FILE.h5 builds one")
    else:
        run = start_run(folder, budget.experts, config, profile=budget.profile, command=command)
    if run.learner.epoch < config.epochs:
        tell(f"training {folder.name}: epoch {run.learner.epoch} of {config.epochs}")
        train(run, tensorboard=False)
    return Trained(folder.name, folder)


def variant_config(variant: Variant, seed: int, budget: Budget) -> TrainConfig:
    """The settings of one training: profile, budget, then those of the variant."""
    from phygail.learning.run import override
    from phygail.methods.phygail.config import PROFILES

    profile = PROFILES.get(budget.profile)
    epochs = budget.epochs or profile.epochs
    kept = min(profile.snapshot_every, max(1, epochs // FEWEST_SNAPSHOTS))
    shared = [f"epochs={epochs}", f"snapshot_every={kept}", f"seed={FIRST_SEED + seed}"]
    return override(profile, [*shared, *budget.settings, *variant.settings])


# --- flights of all cases at once -------------------------------------------------------------------------------------


class Together:
    """An engine that flies all cases of a size and damage at once, as validations do: seconds for a policy.

    The network alone flies, without the aggregation phase that ends late flights; contacts, distances and times are not
    measured.

    Args:
        weights: Policy of a training, NAME.safetensors. workers: Not needed: one process flies all.
    """

    def __init__(self, weights: Path, workers: int = 1) -> None:
        self._weights = weights
        self._job: Job | None = None

    def start(self, job: Job) -> None:
        """Remember the job; there are no workers."""
        if odd := [name for name in job.methods if name != FLOWN_TOGETHER]:
            raise RefusedError(f"only {FLOWN_TOGETHER} flies these policies, not {', '.join(odd)}: leave --methods out")
        self._job = job

    def run(self, tasks: Sequence[Task]) -> Iterator[list[Result]]:
        """Fly all tasks, a cell at a time."""
        from phygail.learning.networks import one_thread
        from phygail.methods.phygail.learner import decider, fly_all, open_actor
        from phygail.methods.phygail.plus_batch import PlusObservation

        job = self._job
        assert job is not None
        actor, graph = open_actor(self._weights)
        cells: dict[tuple[int, int], list[tuple[Task, Case]]] = {}
        for task in tasks:
            case = make_case(job.cases.scenario(task.index))
            cells.setdefault((case.scenario.uavs, len(case.scenario.damaged)), []).append((task, case))
        for cell in cells.values():
            with one_thread():
                flown = fly_all(decider(actor), [case.scenario for _, case in cell], PlusObservation(graph))
            yield [
                Result(task, case_row(case, task.method, safety=False, policy=job.policy) | {
                    "converged": int(success), "steps": int(steps), "time_s": time_of(int(steps), case.scenario),
                })
                for (task, case), success, steps in zip(cell, *flown, strict=True)
            ]  # fmt: skip

    def stop(self) -> None:
        """Nothing is left running."""


# --- one case along the training -------------------------------------------------------------------------------------


def draw_case(seed: int = SEED) -> Scenario:
    """20 UAVs, 10 damaged, three subnets some way apart: the paper's kind of case, the first that the seed draws."""
    for number in range(_DRAWS):
        rng = generator(seed, "case-study", number)
        scenario = draw_scenario(20, 0.5, rng, name=f"case-study-{number}-s{seed}", seed=seed)
        hard = bound_steps(scenario.spots, scenario.physics) >= HARD_STEPS
        if hard and find_links(scenario.spots, scenario.physics.range_m).count == 3:
            return scenario
    raise AssertionError("unreachable: one swarm in ten or so is like this")


def choose_checkpoints(folder: Path, count: int) -> list[Path]:
    """At most `count` policies kept along a run, evenly spread, the first and the last included."""
    kept = sorted((folder / "policies").glob("epoch-*.safetensors"))
    if not kept:
        raise InputError(f"{folder} kept no policies: train it with snapshot_every below its epochs")
    return [kept[k] for k in np.unique(np.linspace(0, len(kept) - 1, count).round().astype(int))]


def fly_checkpoints(experiment: Experiment, run: Trained, out: Path, how: Flying, seed: int = SEED) -> None:
    """Fly one case with policies along the training; rows per policy, and the trajectories as a picture."""
    from phygail.render.scene import draw_recovery

    (leg,) = experiment.legs
    _check_methods(leg.methods, run.folder)
    scenario, flights = draw_case(seed), {}
    for weights in choose_checkpoints(run.folder, experiment.checkpoints):
        policy = run.export(weights, weights.stem)
        fly_scenarios([scenario], replace(leg, name=weights.stem, seed=seed), out / weights.stem, how, policy)
        epoch = int(weights.stem.removeprefix("epoch-"))
        flights[f"epoch {epoch}"], _ = fly_case(scenario, leg.methods[0], policy=policy, record=True)
    draw_recovery(flights, out / "trajectories.png")


def _check_methods(methods: tuple[str, ...], folder: Path) -> None:
    for name in methods:
        if name not in METHODS:
            raise InputError(
                f"there is no method {name} in this version that could fly the policies: they wait in {folder.parent}"
            )
