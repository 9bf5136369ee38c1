"""What an experiment is: flights and trainings as data, how a user scales them, and the scenarios of a leg."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from phygail.config import InputError, Physics
from phygail.experiments.failures import Failures
from phygail.experiments.grid import Grid, damaged_layout, damaged_layouts, drawn_id
from phygail.rng import generator
from phygail.sensing.imperfect import Sensing
from phygail.swarm.checks import checked_seed
from phygail.swarm.failures import KINDS
from phygail.swarm.layout import (
    LEAST_ALIVE,
    PAPER_SIZES,
    damage_count,
    draw_layout,
    find_layout,
    strike_damage,
    width_for,
)
from phygail.swarm.links import find_links
from phygail.swarm.scenario import Scenario, make_scenario

# Fresh layouts, the paper's fixed layouts, an area strike on fresh layouts, failures of single UAVs (METHODS 9.9).
Source = Literal["fresh", "layouts", "strike", "single", "region"]
Numbers = Mapping[str, float]  # of the paper, by what they measure
SEED = 0  # of every reported scenario; nothing was tuned, trained or selected on seeds from 0 to 1000

STRIKES = 2_000  # strikes tried before a setting counts as one that does not split
_COORDINATES = re.compile(r"(n|strike-n|paper-)(\d{2,})-d(\d\.\d{3})-c(\d{3,})-s(\d+)")  # as `grid.DRAWN_ID`
_FAILURES = re.compile(r"(single|region)-(\d+)-(\d+)-(\d+)-s(\d+)")  # as `failures.failure_id`


@dataclass(frozen=True)
class Leg:
    """Flights that share their settings; their rows live in one folder.

    Attributes:
        name: Of the folder.
        methods: Names.
        uavs: Swarm sizes N. damage: Damage ratios.
        cases: Scenarios per (N, damage). cases_at: Fewer at these sizes.
        source: Where the scenarios come from.
        safety: Whether every command is filtered.
        sensing: How imperfectly every method sees.
        alone: Whether one worker flies, whatever the user wants, because times are measured.
        seed: Of the scenarios.
        failures: How many UAVs fail, in place of damage ratios, for the sources "single" and "region".
        world: What fresh scenarios have beyond the plain world (`swarm.recipe`); empty: nothing.
    """

    name: str
    methods: tuple[str, ...]
    uavs: tuple[int, ...]
    damage: tuple[float, ...]
    cases: int
    cases_at: Mapping[int, int] = field(default_factory=dict)
    source: Source = "fresh"
    safety: bool = False
    sensing: Sensing = field(default_factory=Sensing)
    alone: bool = False
    seed: int = SEED
    failures: tuple[int, ...] = ()
    world: str = ""

    def settings(self) -> Iterator[tuple[int, tuple[float, ...], int]]:
        """(N, damage ratios or numbers of failures, cases) of every size; at least two must stay alive."""
        for uavs in self.uavs:
            ratios = tuple(r for r in self.damage if round(uavs * r, 6) <= uavs - LEAST_ALIVE and damage_count(uavs, r))
            ratios += tuple(k for k in self.failures if k <= uavs - LEAST_ALIVE)
            if ratios:
                yield uavs, ratios, min(self.cases, self.cases_at.get(uavs, self.cases))

    def __len__(self) -> int:
        return sum(len(ratios) * cases for _, ratios, cases in self.settings()) * len(self.methods)


@dataclass(frozen=True)
class Variant:
    """A training that differs from the full model.

    Attributes:
        name: Of its folder.
        label: The paper's words.
        settings: "NAME=VALUE" of `methods.phygail.config.TrainConfig`.
        published: The paper's differences to the full model, e.g. "time_s@100".
    """

    name: str
    label: str
    settings: tuple[str, ...] = ()
    published: Numbers = field(default_factory=dict)


@dataclass(frozen=True)
class Experiment:
    """A question, the flights that answer it, what the paper says, and how both are shown.

    Attributes:
        name: How users call it. title: One line. question: What a reader wants to know.
        legs: The flights.
        tables, figures: Names in `report.TABLES` and `report.FIGURES`.
        published: Numbers of the paper by method.
        remarks: What a reader must know to compare; printed under the tables.
        flights_of: The experiment whose rows this one reads instead of flying its own; empty if it flies.
        variants: Trainings, if policies are trained for it; every leg is then flown with each of their policies.
        profile: Of the trainings, unless a user names another. demonstrated: Whether they need an expert database.
        together: Whether all cases of a setting are flown at once, in seconds: steps only, no aggregation phase.
        seed: Of the scenarios, unless a user names another.
        checkpoints: Number of policies along the training of the first variant that fly one case of 20 UAVs.
        measured: Swarm sizes whose perception graphs are measured. measured_cases: Swarms of each.
        curves: Worlds whose resilience curves are drawn. curve_cases: Flights behind each.
    """

    name: str
    title: str
    question: str
    legs: tuple[Leg, ...] = ()
    tables: tuple[str, ...] = ()
    figures: tuple[str, ...] = ()
    published: Mapping[str, Numbers] = field(default_factory=dict)
    remarks: tuple[str, ...] = ()
    flights_of: str = ""
    variants: tuple[Variant, ...] = ()
    profile: str = "compact"
    demonstrated: bool = True
    together: bool = False
    seed: int = SEED
    checkpoints: int = 0
    measured: tuple[int, ...] = ()
    measured_cases: int = 0
    curves: tuple[str, ...] = ()
    curve_cases: int = 0

    @property
    def methods(self) -> tuple[str, ...]:
        """Every method of every leg, in order."""
        return tuple(dict.fromkeys(name for leg in self.legs for name in leg.methods))

    @property
    def uavs(self) -> tuple[int, ...]:
        """Every swarm size."""
        return tuple(sorted({n for leg in self.legs for n in leg.uavs} | set(self.measured)))

    @property
    def damage(self) -> tuple[float, ...]:
        """Every damage ratio."""
        return tuple(sorted({r for leg in self.legs for r in leg.damage}))

    @property
    def failures(self) -> tuple[int, ...]:
        """Every number of failures."""
        return tuple(sorted({k for leg in self.legs for k in leg.failures}))


# --- worlds beyond the paper's assumptions (docs/worlds.md) -----------------------------------------------------------

OTHERS = ("reach", "sidr")  # beside reach-evolved
LEARNED = ("phygail", "phygail-plus", "phygail-taught", "center-fly")  # these, and everybody alone, in `FULL_SIZE` only
HARDER = (0.5, 0.75, 0.9)
FULL_SIZE = (  # the worlds in which reach-evolved flies 20 cases of both sizes; elsewhere 5 of 100 UAVs
    "", "waves=3:40:150", "trickle=0.3:100", "outages=0.4:2 hold=10", "obstacles=8:40-80", "walls=5:250",
    "center-error=200", "no-center=roster roster-missing=0.3 roster-error=50", "accel=3",
)  # fmt: skip
REPLANNED = "Planners (convex) make a new plan whenever somebody is lost; their rows carry the flag `replan`."
SAFE = "The safety filter is on; with inertia it is the braking one (METHODS 8.3)."
SPLIT = "Split steps are those that began with a network that was not one; failures enter with their whole budget."


def _in_worlds(
    name: str, title: str, question: str, worlds: tuple[str, ...], *remarks: str, planned: bool = False
) -> Experiment:
    """An experiment with two legs per world, all on the same cases with the safety filter.

    The plain world and those of `FULL_SIZE` come first. Resilience curves are drawn of the plain world and these.
    """
    ordered = sorted(("", *worlds), key=lambda world: world not in FULL_SIZE)
    legs = []
    for world in ordered:
        label = re.sub(r"[^\w.]+", "-", world) or "plain"
        full = world in FULL_SIZE
        sizes = (100, 200) if full else (100,)
        legs.append(Leg(label, ("reach-evolved",), sizes, HARDER, 20 if full else 5, safety=True, world=world))
        others = (*OTHERS, *(("convex",) if planned else ()), *(LEARNED if full else ()))
        legs.append(Leg(f"{label}-others", others, (100,), HARDER, 5, safety=True, world=world))
    curves = tuple(world for world in ordered if world in (*FULL_SIZE, "altitude-spread=40"))
    return Experiment(
        name, title, question, tuple(legs), tables=("worlds", "worlds-common"), figures=("worlds", "resilience"),
        remarks=(SPLIT, SAFE, *remarks), curves=curves, curve_cases=5,
    )  # fmt: skip


WORLD_EXPERIMENTS: tuple[Experiment, ...] = (
    _in_worlds(
        "waves",
        "Further losses during recovery",
        "What do strikes in waves and losses one by one cost, and does every method recover?",
        ("waves=1:40:150", "waves=2:40:150", "waves=3:40:150", "trickle=0.1:100", "trickle=0.3:100", "trickle=0.5:100"),
        "Strikes hit around a survivor's place at that time, so who is lost differs between methods; the draw is one.",
        "While the network is one and losses are to come everybody rests.",
        REPLANNED,
        planned=True,
    ),
    _in_worlds(
        "fading",
        "Fading links and outages",
        "What do fading, shadowing and outages cost until the network has been one for a second?",
        (
            "hold=10",
            "links=rician:k=10,outage=0.1 hold=10",
            "links=rician:k=3,outage=0.1 hold=10",
            "links=rician:k=10,outage=0.1,shadow=3 hold=10",
            "links=rician:k=10,outage=0.1,asymmetry=3 hold=10",
            "outages=0.1:2 hold=10",
            "outages=0.2:2 hold=10",
            "outages=0.4:2 hold=10",
            "outages=0.4:2 hold=10 redundant",
        ),
        "Rician links are calibrated to 10 % lost hellos at the radio range, so longer links exist and the task "
        "becomes easier (docs/worlds.md has the table); outages leave a subset of the disc, where the bound holds.",
    ),
    _in_worlds(
        "obstacles",
        "Obstacles and walls",
        "Does every method find its way around, with and without a map?",
        (
            "obstacles=8:40-80",
            "walls=5:250",
            "walls=5:250 no-map",
            "obstacles=8:40-80 shadow",
            "walls=5:250 shadow",
        ),
        "Drawn obstacles keep clear of the UAVs at the start and of the center, and leave everybody a way to it.",
    ),
    _in_worlds(
        "no-center",
        "Wrong or missing knowledge",
        "How exact must center and roster be?",
        (
            "center-error=50",
            "center-error=100",
            "center-error=200",
            "no-center=roster",
            "no-center=roster roster-missing=0.3 roster-error=50",
            "no-center=roster roster-hops=2",
            "no-center=roster roster-hops=4",
            "no-center=own",
            "detect-false=0.3",
        ),
        "Every UAV carries a copy with errors of its own; the lowest-numbered member speaks for its subnet.",
    ),
    _in_worlds(
        "dynamics",
        "Vehicles with inertia, and wind",
        "What do acceleration limits, a lag and wind cost, and does the filter keep its promise?",
        ("accel=5", "accel=3", "accel=1", "accel=3 lag=0.25", "wind=3", "wind=6"),
        "Links are kept shorter by the way that a vehicle needs to stop.",
        planned=True,
    ),
    _in_worlds(
        "altitude",
        "Heights",
        "What do different heights cost?",
        ("altitude-spread=10", "altitude-spread=20", "altitude-spread=40", "altitude-spread=40 level"),
        "Cases are drawn split in the plane; links are judged in space, so there are more subnets at the start.",
        "At heights convex plans with links of sqrt(R^2 - dz^2) in the plane, so its plans are exact.",
        planned=True,
    ),
)


# --- as a user wants it ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Scale:
    """A user's choice of sizes, methods or draws of an experiment; None leaves it as declared."""

    uavs: tuple[int, ...] | None = None
    damage: tuple[float, ...] | None = None
    methods: tuple[str, ...] | None = None
    cases: int | None = None
    seed: int = SEED
    failures: tuple[int, ...] | None = None


def scaled(experiment: Experiment, scale: Scale) -> Experiment:
    """The experiment with the choice of the user.

    Sizes and ratios must be among the declared ones. More cases than declared are flown only in legs with the
    largest declared number; slow methods keep their smaller number. A method that is not declared joins the first leg
    and all legs that fly the same methods as that leg.
    """
    if scale.cases is not None and scale.cases < 1:
        raise InputError(f"{scale.cases} cases per setting: choose at least 1")
    checked_seed(scale.seed)
    _check_among(experiment, "swarm size", scale.uavs, experiment.uavs)
    _check_among(experiment, "damage ratio", scale.damage, experiment.damage)
    _check_among(experiment, "number of failures", scale.failures, experiment.failures)
    most = max((leg.cases for leg in experiment.legs), default=0)
    legs = []
    for leg in experiment.legs:
        chosen = replace(
            leg,
            uavs=_chosen(leg.uavs, scale.uavs),
            damage=_chosen(leg.damage, scale.damage),
            failures=_chosen(leg.failures, scale.failures),
            methods=_methods(leg, experiment, scale.methods),
            seed=scale.seed,
        )
        if scale.cases is not None:
            chosen = replace(chosen, cases=scale.cases if leg.cases == most else min(scale.cases, leg.cases))
        if chosen.methods and len(chosen):
            legs.append(chosen)
    return replace(experiment, legs=tuple(legs))


def _methods(leg: Leg, experiment: Experiment, wanted: Sequence[str] | None) -> tuple[str, ...]:
    if wanted is None:
        return leg.methods
    guests = [name for name in wanted if name not in experiment.methods]
    hosted = guests if leg.methods == experiment.legs[0].methods else []
    return tuple(name for name in wanted if name in leg.methods or name in hosted)


def _chosen(declared: tuple, wanted: tuple | None) -> tuple:
    return declared if wanted is None else tuple(value for value in declared if value in wanted)


def _check_among(experiment: Experiment, what: str, wanted: tuple | None, declared: tuple) -> None:
    for value in wanted or ():
        if value not in declared:
            known = ", ".join(f"{v:g}" for v in declared) or "none"
            raise InputError(f"{experiment.name} has no {what} {value:g}: it has {known}")


def draw_cases(
    leg: Leg, uavs: int, ratios: Iterable[float], cases: int, seed: int
) -> tuple[Grid | Failures | list[Scenario], list[str]]:
    """(scenarios, notes) of one swarm size; the notes name settings that do not split or have fewer distinct cases."""
    if leg.source == "fresh":
        return Grid((uavs,), tuple(ratios), cases, seed, world=leg.world), []
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
        # Few damage sets may split a fixed layout, and repeated cases would look like many. The first of equal cases
        # stays, so that its row does not depend on the number of cases.
        first = {scenario.damaged.tobytes() + scenario.layout.tobytes(): scenario for scenario in reversed(drawn)}
        differing = [scenario for scenario in drawn if scenario in first.values()]
        if len(differing) < cases:
            notes.append(f"N={uavs}, damage {ratio:g} has {len(differing)} distinct cases among {cases}")
        scenarios += differing
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
    """Drawn scenarios that are known by their ids, their radio and world; a worker draws them when it flies them."""

    names: tuple[str, ...]
    physics: Physics = field(default_factory=Physics)
    world: str = ""

    def ids(self) -> list[str]:
        return list(self.names)

    def sizes(self) -> list[int]:
        return [_coordinates(name)[1] for name in self.names]

    def scenario(self, index: int) -> Scenario:
        return drawn_scenario(self.names[index], self.physics, self.world)


def is_drawn(name: str) -> bool:
    """Whether an id says how its scenario is drawn."""
    return any(known.fullmatch(name) for known in (_COORDINATES, _FAILURES))


def drawn_scenario(name: str, physics: Physics | None = None, world: str = "") -> Scenario:
    """The scenario of an id such as n0100-d0.250-c003-s0, strike-n0100-..., paper-100-... or single-100-1-7-s0."""
    kind, uavs, ratio, case, seed = _coordinates(name)
    radio = physics or Physics()
    if kind in KINDS:
        return Failures((uavs,), (int(ratio),), kind, case + 1, seed).scenario(case)
    if kind == "n":
        return Grid((uavs,), (ratio,), case + 1, seed, radio, world).scenario(case)
    if world:
        raise InputError(f"the scenario {name!r} is drawn for the plain world only")
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
