"""Do what an experiment needs: fly, measure, train; resumable at any moment."""

from __future__ import annotations

import importlib.util
import json
import logging
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from phygail.config import InputError
from phygail.evaluation.catalog import EXPERIMENTS
from phygail.evaluation.evidence import NOTES, read_notes
from phygail.evaluation.experiment import SEED, Experiment, Leg, Scale, scaled
from phygail.evaluation.flying import Flying, fly_leg
from phygail.evaluation.propositions import COST, MEASURES, measure_all, paper_actor, save_cost
from phygail.evaluation.report import flights_folder
from phygail.evaluation.roster import installed, load_methods
from phygail.evaluation.trained import Budget, run_trained
from phygail.files import make_folder, write_text
from phygail.methods import METHODS, make_method

log = logging.getLogger("phygail")


def run_experiment(experiment: Experiment, out: Path, scale: Scale, how: Flying, budget: Budget | None = None) -> None:
    """Do all that an experiment needs and `out` does not hold yet; draws of another seed are refused, not mixed in."""
    check_seed(flights_folder(experiment, out), scale.seed)
    if experiment.variants:
        load_methods(how.plugins)
        run_trained(experiment, out, scale, budget or Budget(), how)
        return
    fly_experiment(experiment, out, scale, how)
    if experiment.measured:
        measure_experiment(experiment, out, scale, how)


def check_seed(folder: Path, seed: int) -> None:
    """Refuse a folder whose scenarios were drawn with another seed; its notes say which, from 0 on none."""
    known = read_notes(folder)
    flown = (folder / NOTES).exists() or any(folder.glob("*/run.json"))
    before = known.get("seed", SEED)
    if flown and before != seed:
        raise InputError(
            f"{folder} holds another run (seed was {before}, now {seed}): choose another folder or give --seed {before}"
        )


def measure_experiment(experiment: Experiment, out: Path, scale: Scale, how: Flying) -> None:
    """Measure perception graphs; without torch everything but the pseudo-force."""
    actor, weights = paper_actor() if importlib.util.find_spec("torch") else (None, "no")
    if actor is None:
        log.warning("the pseudo-force is left out: it needs pip install 'phygail[learn]'")
    else:
        save_cost(out / COST, actor, weights)
    sizes = experiment.measured if scale.uavs is None else [n for n in experiment.measured if n in scale.uavs]
    cases = experiment.measured_cases if scale.cases is None else min(scale.cases, experiment.measured_cases)
    measure_all(out / MEASURES, sizes, cases, scale.seed, actor, how.tell)


def fly_experiment(experiment: Experiment, out: Path, scale: Scale, how: Flying) -> list[str]:
    """Fly what `out` does not hold yet; gives the names of methods that flew.

    Methods that are declared but not in this version are named and left out; one that the user names must exist.
    """
    load_methods(how.plugins)
    for name in scale.methods or ():
        METHODS.get(name)
    chosen, left_out = _available(scaled(experiment, scale))
    if not chosen.legs:
        raise InputError(f"nothing of {experiment.name} is left to fly: choose other --uavs, --damage or --methods")
    folder = make_folder(flights_folder(experiment, out))
    notes = read_notes(folder)
    notes["left_out"] |= left_out
    notes["seed"] = scale.seed
    for leg in chosen.legs:
        notes["settings"] |= fly_leg(leg, folder / leg.name, how, kin=same_flights(experiment, leg, folder))
        write_text(folder / NOTES, json.dumps(notes, indent=1) + "\n")
    return list(chosen.methods)


def same_flights(experiment: Experiment, leg: Leg, folder: Path) -> list[Path]:
    """Where other experiments keep flights with the settings of a leg, if all stand side by side under their names.

    None where times are measured, and none for a folder of another name: whoever chose it wants to fly.
    """
    if leg.alone or folder.name != experiment.name:
        return []
    return [
        folder.parent / other.name / theirs.name
        for other in (EXPERIMENTS.get(name) for name in EXPERIMENTS)
        if other.name != experiment.name and not other.variants and not other.flights_of
        for theirs in other.legs
        if (theirs.source, theirs.safety, theirs.sensing) == (leg.source, leg.safety, leg.sensing)
    ]


def _available(experiment: Experiment) -> tuple[Experiment, dict[str, str]]:
    """The experiment without the methods that cannot fly here, and why they cannot."""
    missing = {name: why for name in experiment.methods if (why := why_not(name))}
    for name, why in missing.items():
        log.warning("%s is left out of %s: %s", name, experiment.name, why)
    legs = tuple(replace(leg, methods=_without(leg.methods, missing)) for leg in experiment.legs)
    return replace(experiment, legs=tuple(leg for leg in legs if leg.methods)), missing


def why_not(name: str) -> str:
    """Why a method cannot fly here: unknown, its extra or its weights missing; empty if it can."""
    if name not in METHODS:
        return "there is no such method in this version"
    if not installed(METHODS.get(name)):
        return f"it needs pip install 'phygail[{METHODS.get(name).extra}]'"
    try:
        make_method(name)
    except InputError as error:  # weights that the package does not hold
        return str(error)
    return ""


def _without(methods: Sequence[str], missing: dict[str, str]) -> tuple[str, ...]:
    return tuple(name for name in methods if name not in missing)
