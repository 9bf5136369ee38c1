"""Resilience curves: the share of the alive in the largest subnet over time, with the losses marked (docs/worlds.md).

A flight is one line of curves.csv, so an experiment that was interrupted goes on where it stopped.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

import numpy as np
from matplotlib.figure import Figure

from phygail.experiments.experiment import Experiment, Scale
from phygail.experiments.grid import Grid
from phygail.files import write_text
from phygail.methods.controller import fly_case
from phygail.render.style import add_panel, drawer, dress_axes, label_axes, line_of, line_styles, new_figure
from phygail.swarm.scenario import Scenario
from phygail.swarm.simulator import SwarmState

CURVES = "curves.csv"
COLUMNS = ("world", "method", "scenario", "step_s", "events", "shares")
UAVS, DAMAGE = 100, 0.75
METHODS = ("reach-evolved", "reach", "sidr")
BAND = (10, 90)  # percent
BAND_ALPHA = 0.15


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
    if (scale.uavs is not None and UAVS not in scale.uavs) or (scale.damage is not None and DAMAGE not in scale.damage):
        return
    cases = experiment.curve_cases if scale.cases is None else min(scale.cases, experiment.curve_cases)
    methods = [name for name in METHODS if scale.methods is None or name in scale.methods]
    for world in experiment.curves:
        grid = Grid((UAVS,), (DAMAGE,), cases, scale.seed, world=world)
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
    lines = [",".join(COLUMNS)]
    for curve in sorted(curves):
        shares = " ".join(f"{share:.4g}" for share in curve.shares)
        events = " ".join(map(str, curve.events))
        lines.append(f'"{curve.world}",{curve.method},{curve.scenario},{curve.step_s:g},{events},{shares}')
    write_text(path, "\n".join(lines) + "\n")


def read_curves(path: Path) -> list[Curve]:
    """The curves of a file; none if there is no file."""
    if not path.exists():
        return []
    before = csv.field_size_limit(1 << 24)  # of the whole process: put back for readers of rows, who rely on it
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


def resilience_figure(source: tuple[tuple[str, ...], list[Curve]]) -> Figure:
    """A panel per world: mean and 10-90 % band of the largest share per method; dashed lines mark losses."""
    worlds, curves = source
    worlds = tuple(world for world in worlds if any(curve.world == world for curve in curves))
    styles = line_styles({curve.method for curve in curves})
    wide, high, left, foot = 3.0, 2.0, 0.62, 0.95
    figure = new_figure(left + len(worlds) * (wide + 0.3), high + foot + 0.35)
    for place, world in enumerate(worlds):
        axes = add_panel(figure, left + place * (wide + 0.3), foot, wide, high)
        dress_axes(axes)
        mine = [curve for curve in curves if curve.world == world]
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
