"""The scenarios of an experiment's leg: fresh layouts, the paper's fixed ones, area strikes, single failures."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from phygail.config import InputError, Physics
from phygail.evaluation.experiment import Leg
from phygail.evaluation.failures import Failures
from phygail.evaluation.grid import Grid, damaged_layout, damaged_layouts, drawn_id
from phygail.rng import generator
from phygail.swarm.damage import damage_count, strike_damage
from phygail.swarm.failures import KINDS
from phygail.swarm.formation import draw_layout, width_for
from phygail.swarm.layouts import PAPER_SIZES, find_layout
from phygail.swarm.links import find_links
from phygail.swarm.scenario import Scenario, make_scenario

STRIKES = 2_000  # tried before a setting counts as one that does not split
_COORDINATES = re.compile(r"(n|strike-n|paper-)(\d{2,})-d(\d\.\d{3})-c(\d{3,})-s(\d+)")  # as `grid.DRAWN_ID`
_FAILURES = re.compile(r"(single|region)-(\d+)-(\d+)-(\d+)-s(\d+)")  # as `failures.failure_id`


def draw_cases(
    leg: Leg, uavs: int, ratios: Iterable[float], cases: int, seed: int
) -> tuple[Grid | Failures | list[Scenario], list[str]]:
    """(scenarios, notes) of one swarm size; the notes name settings that do not split or have fewer distinct cases."""
    if leg.source == "fresh":
        return Grid((uavs,), tuple(ratios), cases, seed), []
    if leg.source in ("single", "region"):
        return Failures((uavs,), tuple(int(k) for k in ratios), leg.source, cases, seed), []
    scenarios: list[Scenario] = []
    notes: list[str] = []
    for ratio in ratios:
        try:
            drawn = _draw(leg, uavs, ratio, cases, seed)
        except InputError as error:
            notes.append(f"N={uavs}, damage {ratio:g} was skipped: {error}")
            continue
        # On a fixed layout few damage sets may split it; copies of one case would pretend to be many.
        # The first of them stays, so that its row is the same however many cases are drawn.
        first = {scenario.damaged.tobytes() + scenario.layout.tobytes(): scenario for scenario in reversed(drawn)}
        unlike = [scenario for scenario in drawn if scenario in first.values()]
        if len(unlike) < cases:
            notes.append(f"N={uavs}, damage {ratio:g} has {len(unlike)} distinct cases among {cases}")
        scenarios += unlike
    return scenarios, notes


def _draw(leg: Leg, uavs: int, ratio: float, cases: int, seed: int) -> list[Scenario]:
    if leg.source == "strike":
        return [draw_strike(uavs, ratio, case, seed) for case in range(cases)]
    if uavs not in PAPER_SIZES:
        raise InputError(f"the paper has no layout of {uavs} UAVs: choose from {', '.join(map(str, PAPER_SIZES))}")
    return damaged_layouts([f"paper-{uavs}"], [ratio], cases, seed)


def draw_strike(uavs: int, ratio: float, case: int, seed: int) -> Scenario:
    """A fresh layout that loses a disc around a random point and is split by it; depends on its coordinates only."""
    rng = generator(seed, "strike", uavs, round(ratio * 1000), case)
    width = width_for(uavs)
    for _ in range(STRIKES):
        layout = draw_layout(uavs, rng, width)
        x, y = rng.uniform(0.0, width, 2)
        radius = np.partition(np.hypot(*(layout - [x, y]).T), damage_count(uavs, ratio) - 1)
        damaged = strike_damage(layout, x, y, float(radius[damage_count(uavs, ratio) - 1]))
        scenario = make_scenario(
            f"strike-{drawn_id(uavs, ratio, case, seed)}", layout, damaged.tolist(), width_m=width, seed=seed
        )
        if not find_links(scenario.spots, scenario.physics.range_m).connected:
            return scenario
    raise InputError(f"a strike on {ratio:g} of {uavs} UAVs does not split them: choose another damage ratio")


# --- drawn scenarios by their ids ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Named:
    """Drawn scenarios that are known by their ids, and their radio; a worker draws them when it flies them."""

    names: tuple[str, ...]
    physics: Physics = field(default_factory=Physics)

    def ids(self) -> list[str]:
        return list(self.names)

    def sizes(self) -> list[int]:
        return [_coordinates(name)[1] for name in self.names]

    def scenario(self, index: int) -> Scenario:
        return drawn_scenario(self.names[index], self.physics)


def is_drawn(name: str) -> bool:
    """Whether an id says how its scenario is drawn."""
    return any(known.fullmatch(name) for known in (_COORDINATES, _FAILURES))


def drawn_scenario(name: str, physics: Physics | None = None) -> Scenario:
    """The scenario of an id such as n0100-d0.250-c003-s0, strike-n0100-..., paper-100-... or single-100-1-7-s0."""
    kind, uavs, ratio, case, seed = _coordinates(name)
    radio = physics or Physics()
    if kind in KINDS:
        return Failures((uavs,), (int(ratio),), kind, case + 1, seed).scenario(case)
    if kind == "n":
        return Grid((uavs,), (ratio,), case + 1, seed, radio).scenario(case)
    if kind == "paper-":
        return damaged_layout(find_layout(f"paper-{uavs}"), ratio, case, seed, radio)
    if radio != Physics():
        raise InputError(f"the strike {name!r} is drawn for the usual radio and vehicle only")
    return draw_strike(uavs, ratio, case, seed)


def _coordinates(name: str) -> tuple[str, int, float, int, int]:
    """(kind, N, damage ratio or number of failures, case, seed)."""
    found = _COORDINATES.fullmatch(name) or _FAILURES.fullmatch(name)
    if found is None:
        raise InputError(f"the id {name!r} does not say how its scenario is drawn: n0100-d0.250-c003-s0 would")
    kind, uavs, ratio, case, seed = found.groups()
    return kind, int(uavs), float(ratio), int(case), int(seed)
