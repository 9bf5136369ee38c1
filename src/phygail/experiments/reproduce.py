"""Do what an experiment needs (fly, measure, train), resumable at any moment; report it from rows on disk alone."""

from __future__ import annotations

import csv
import importlib.util
import json
import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from matplotlib.figure import Figure

from phygail.config import InputError, Registry
from phygail.experiments.catalog import EXPERIMENTS
from phygail.experiments.experiment import SEED, Experiment, Leg, Scale, scaled
from phygail.experiments.figures import (
    draw_curves,
    draw_learning,
    draw_neighbors,
    draw_over_bound,
    draw_sensing,
    draw_worlds,
)
from phygail.experiments.grid import Grid
from phygail.experiments.paper_tables import TABLES, case_study, changes, learning, variants, verdicts
from phygail.experiments.propositions import (
    COST,
    MEASURES,
    RADIO,
    measure,
    measure_all,
    measure_radio,
    paper_actor,
    propositions,
    save_cost,
    terminal_reward,
)
from phygail.experiments.runner import Flying, fly_leg
from phygail.experiments.statistics import NOTES, Evidence, load_evidence, read_notes
from phygail.experiments.summary import draw_failures, failures, failures_by_size
from phygail.experiments.trained import Budget, run_trained
from phygail.files import make_folder, write_text
from phygail.methods import METHODS
from phygail.methods.base import load_methods, why_not
from phygail.methods.controller import fly_case
from phygail.render.style import add_panel, drawer, dress_axes, label_axes, line_of, line_styles, new_figure
from phygail.swarm.scenario import Scenario
from phygail.swarm.simulator import SwarmState

REPORT = "tables.md"
CURVES = "curves.csv"
CURVE_COLUMNS = ("world", "method", "scenario", "step_s", "events", "shares")
CURVE_UAVS, CURVE_DAMAGE = 100, 0.75
CURVE_METHODS = ("reach-evolved", "reach", "sidr")
BAND = (10, 90)  # percent
BAND_ALPHA = 0.15

log = logging.getLogger("phygail")


TABLES.add("propositions", propositions)
TABLES.add("variants", variants)
TABLES.add("verdicts", verdicts)
TABLES.add("changes", changes)
TABLES.add("learning", learning)
TABLES.add("case-study", case_study)
TABLES.add("terminal-reward", terminal_reward)

TABLES.add("failures", failures)
TABLES.add("failures-by-size", failures_by_size)

FIGURES: Registry[Callable[[Evidence, Path], None]] = Registry("figure")
FIGURES.add("curves", lambda evidence, path: draw_curves(evidence.rows, path))
FIGURES.add("over-bound", lambda evidence, path: draw_over_bound(evidence.rows, path))
FIGURES.add("sensing", draw_sensing)
FIGURES.add("worlds", draw_worlds)
FIGURES.add("resilience", lambda evidence, path: _draw_resilience(evidence, path))
FIGURES.add("learning", draw_learning)
FIGURES.add("neighbors", draw_neighbors)
FIGURES.add("failures", draw_failures)


def _draw_resilience(evidence: Evidence, path: Path) -> None:
    curves = read_curves(path.parent / CURVES)
    if curves:
        draw_resilience((evidence.experiment.curves, curves), path)


def flights_folder(experiment: Experiment, out: Path) -> Path:
    """The folder of the rows: `out`, or the one beside it of the experiment whose rows are read."""
    return out.parent / experiment.flights_of if experiment.flights_of else out


def report_text(experiment: Experiment, out: Path) -> str:
    """The text of tables.md, from the rows on disk."""
    return _text(load_evidence(experiment, flights_folder(experiment, out)))


def write_report(experiment: Experiment, out: Path) -> Evidence:
    """Write tables.md and the figures; gives what they were made from."""
    evidence = load_evidence(experiment, flights_folder(experiment, out))
    write_text(out / REPORT, _text(evidence))
    for name in experiment.figures:
        FIGURES.get(name)(evidence, out / f"{name}.png")
    return evidence


def _text(evidence: Evidence) -> str:
    tables = [TABLES.get(name)(evidence) for name in evidence.experiment.tables]
    return "\n".join([heading(evidence.experiment, evidence.runs, evidence.version), *tables, closing(evidence)])


def heading(experiment: Experiment, runs: Iterable[dict[str, Any]], version: str) -> str:
    """Title, question, and how the rows were made: commands, version, machine."""
    runs = list(runs)
    commands = dict.fromkeys(run["command"] for run in runs if run.get("command"))
    machines = dict.fromkeys(_machine(run["machine"]) for run in runs if "machine" in run)
    loads = [run["machine"]["load"] for run in runs if run.get("machine", {}).get("load") is not None]
    busy = f"; load at the start of its runs {min(loads):g} to {max(loads):g}" if loads else ""
    lines = [f"# {experiment.title}\n", f"{experiment.question}\n", *(f"    {command}" for command in commands)]
    return "\n".join([*lines, "", f"phygail {version} on {' and '.join(machines) or 'an unknown machine'}{busy}.\n"])


def _machine(about: dict[str, Any]) -> str:
    return f"{about['processor']}, {about['cores']} cores, {about['system']}, Python {about['python']}"


def closing(evidence: Evidence) -> str:
    """What was skipped, left out or failed, and what a reader must know to compare."""
    lines = [*evidence.notes, *evidence.experiment.remarks]
    return "\n".join(["## Notes\n", *(f"- {line.rstrip('.')}." for line in lines)]) + "\n"


def run_experiment(experiment: Experiment, out: Path, scale: Scale, how: Flying, budget: Budget | None = None) -> None:
    """Do all that an experiment needs and `out` does not hold yet; draws of another seed are refused, not mixed in."""
    check_seed(flights_folder(experiment, out), scale.seed)
    if experiment.variants:
        load_methods(how.plugins)
        run_trained(experiment, out, scale, budget or Budget(), how)
        return
    fly_experiment(experiment, out, scale, how)
    if experiment.curves:
        fly_curves(experiment, flights_folder(experiment, out), scale, how.tell)
    if experiment.measured:
        measure_experiment(experiment, out, scale, how)


def check_seed(folder: Path, seed: int) -> None:
    """Refuse a folder whose scenarios were drawn with another seed; its notes name the seed unless it is 0."""
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
    measure_all(out / MEASURES, sizes, cases, scale.seed, partial(measure, actor=actor), how.tell)
    measure_all(out / RADIO, sizes, cases, scale.seed, measure_radio, how.tell)


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
        notes["settings"] |= fly_leg(leg, folder / leg.name, how, siblings=same_flights(experiment, leg, folder))
        write_text(folder / NOTES, json.dumps(notes, indent=1) + "\n")
    return list(chosen.methods)


def same_flights(experiment: Experiment, leg: Leg, folder: Path) -> list[Path]:
    """Folders of other experiments with flights of the same settings as a leg, if all folders have their usual names.

    There are none where times are measured, and none for a folder of another name: its user wants to fly.
    """
    if leg.alone or folder.name != experiment.name:
        return []
    return [
        folder.parent / other.name / theirs.name
        for other in (EXPERIMENTS.get(name) for name in EXPERIMENTS)
        if other.name != experiment.name and not other.variants and not other.flights_of
        for theirs in other.legs
        if _settings(theirs) == _settings(leg)
    ]


def _settings(leg: Leg) -> tuple[Any, ...]:
    """What decides the rows of a leg beside its scenarios."""
    return leg.source, leg.safety, leg.sensing, leg.world


def _available(experiment: Experiment) -> tuple[Experiment, dict[str, str]]:
    """The experiment without the methods that cannot fly here, and why they cannot."""
    missing = {name: why for name in experiment.methods if (why := why_not(name))}
    for name, why in missing.items():
        log.warning("%s is left out of %s: %s", name, experiment.name, why)
    legs = tuple(replace(leg, methods=_without(leg.methods, missing)) for leg in experiment.legs)
    return replace(experiment, legs=tuple(leg for leg in legs if leg.methods)), missing


def _without(methods: Sequence[str], missing: dict[str, str]) -> tuple[str, ...]:
    return tuple(name for name in methods if name not in missing)


# --- resilience curves: the share of the alive in the largest subnet over time, losses marked (docs/worlds.md) -------
#
# A flight is one line of curves.csv, so an experiment that was interrupted goes on where it stopped.


class Curve(NamedTuple):
    """One flight: the share of every state from t = 0 on, and the steps of its losses."""

    world: str
    method: str
    scenario: str
    step_s: float
    events: tuple[int, ...]
    shares: tuple[float, ...]


def fly_curves(experiment: Experiment, folder: Path, scale: Scale, tell: Callable[[str], None]) -> None:
    """Fly what curves.csv of a folder lacks; with fewer cases or methods if the user wants so."""
    curves = read_curves(folder / CURVES)
    known = {(curve.world, curve.method, curve.scenario) for curve in curves}
    if (scale.uavs is not None and CURVE_UAVS not in scale.uavs) or (
        scale.damage is not None and CURVE_DAMAGE not in scale.damage
    ):
        return
    cases = experiment.curve_cases if scale.cases is None else min(scale.cases, experiment.curve_cases)
    methods = [name for name in CURVE_METHODS if scale.methods is None or name in scale.methods]
    for world in experiment.curves:
        grid = Grid((CURVE_UAVS,), (CURVE_DAMAGE,), cases, scale.seed, world=world)
        for case in range(cases):
            for method in methods:
                if (world, method, grid.ids()[case]) not in known:
                    curves.append(_flown(grid.scenario(case), world, method))
                    save_curves(folder / CURVES, curves)
        tell(f"resilience curves of {world or 'the plain world'}")


def _flown(scenario: Scenario, world: str, method: str) -> Curve:
    episode, _ = fly_case(scenario, method, safety=True, record=True)
    events = tuple(sorted({event.step for event in scenario.world.events}))
    return Curve(world, method, scenario.id, scenario.physics.step_s, events, tuple(map(largest_share, episode.states)))


def largest_share(state: SwarmState) -> float:
    """Of the alive, those in the largest subnet."""
    return int(np.bincount(state.links.subnet).max()) / len(state.links.subnet)


def save_curves(path: Path, curves: Iterable[Curve]) -> None:
    """All curves in the order of worlds, methods, cases; shares to four digits."""
    lines = [",".join(CURVE_COLUMNS)]
    for curve in sorted(curves):
        shares = " ".join(f"{share:.4g}" for share in curve.shares)
        events = " ".join(map(str, curve.events))
        lines.append(f'"{curve.world}",{curve.method},{curve.scenario},{curve.step_s:g},{events},{shares}')
    write_text(path, "\n".join(lines) + "\n")


def read_curves(path: Path) -> list[Curve]:
    """The curves of a file; none if there is no file."""
    if not path.exists():
        return []
    before = csv.field_size_limit(1 << 24)  # of the whole process; readers of rows rely on the old limit
    try:
        with path.open(encoding="utf-8", newline="") as file:
            return [
                Curve(row["world"], row["method"], row["scenario"], float(row["step_s"]),
                      tuple(map(int, row["events"].split())), tuple(map(float, row["shares"].split())))
                for row in csv.DictReader(file)
            ]  # fmt: skip
    finally:
        csv.field_size_limit(before)


def bands(curves: list[Curve], length: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(length,) mean, 10th and 90th percentile over flights; one that has ended keeps its last share."""
    shares = np.array([curve.shares[:length] + curve.shares[-1:] * (length - len(curve.shares)) for curve in curves])
    low, high = np.percentile(shares, BAND, axis=0)
    return shares.mean(axis=0), low, high


def shared(curves: list[Curve]) -> list[Curve]:
    """The curves of the cases that all methods have flown."""
    flown = [{curve.scenario for curve in curves if curve.method == name} for name in {c.method for c in curves}]
    common = set.intersection(*flown) or set.union(*flown)
    return [curve for curve in curves if curve.scenario in common]


def resilience_figure(source: tuple[tuple[str, ...], list[Curve]]) -> Figure:
    """A panel per world: mean and 10-90 % band of the largest share per method on common cases; dashed: losses."""
    worlds, curves = source
    worlds = tuple(world for world in worlds if any(curve.world == world for curve in curves))
    styles = line_styles({curve.method for curve in curves})
    wide, high, left, foot = 3.0, 2.0, 0.62, 0.95
    figure = new_figure(left + len(worlds) * (wide + 0.3), high + foot + 0.35)
    for place, world in enumerate(worlds):
        axes = add_panel(figure, left + place * (wide + 0.3), foot, wide, high)
        dress_axes(axes)
        mine = shared([curve for curve in curves if curve.world == world])
        length = max(len(curve.shares) for curve in mine)
        for name, style in styles.items():
            flown = [curve for curve in mine if curve.method == name]
            if flown:
                mean, low, top = bands(flown, length)
                seconds = np.arange(length) * flown[0].step_s
                axes.fill_between(seconds, low, top, color=style.color, alpha=BAND_ALPHA, linewidth=0)
                axes.plot(seconds, mean, color=style.color, linewidth=1.5)
        if len({curve.events for curve in mine}) == 1:  # the same steps in all flights
            for step in mine[0].events:
                axes.axvline(step * mine[0].step_s, color="#8A929B", linewidth=1.0, linestyle=(0, (3, 2)))
        axes.set_ylim(0, 1.03)
        axes.set_xlim(0, None)
        label_axes(axes, x="time s", y="" if place else "largest subnet / alive", title=world or "plain")
        axes.title.set_fontsize(8.5)
    handles = [line_of(style, marker="") for style in styles.values()]
    figure.legend(handles, list(styles), loc="lower center", ncols=4, frameon=False, fontsize=8.5)
    return figure


draw_resilience = drawer(resilience_figure)
