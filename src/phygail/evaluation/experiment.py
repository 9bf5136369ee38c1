"""What an experiment is: flights and trainings as data, and how a user scales them (the experiments: `paper`)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from phygail.config import InputError
from phygail.evaluation.grid import LARGEST_SEED
from phygail.perception.noise import Sensing
from phygail.swarm.damage import LEAST_ALIVE, damage_count

# Fresh layouts, the paper's fixed ones, an area strike on fresh ones, failures of single UAVs (METHODS 9.9).
Source = Literal["fresh", "layouts", "strike", "single", "region"]
Numbers = Mapping[str, float]  # of the paper, by what they measure
SEED = 0  # of every reported scenario; nothing was tuned, trained or selected on seeds from 0 to 1000


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
        alone: One worker, whatever the user wants: times are measured.
        seed: Of the scenarios.
        failures: How many UAVs fail, in place of damage ratios, for the sources "single" and "region".
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
        settings: "NAME=VALUE" of `training.profiles.TrainConfig`.
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
        remarks: What a reader must know to compare; stands under the tables.
        flights_of: The experiment whose flights these are, if it flies none of its own.
        variants: Trainings, if policies are trained for it; every leg is then flown with each of their policies.
        checkpoints: So many policies along the training of the first variant fly one case of 20 UAVs.
        measured: Swarm sizes whose perception graphs are measured. measured_cases: Swarms of each.
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
    checkpoints: int = 0
    measured: tuple[int, ...] = ()
    measured_cases: int = 0

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


@dataclass(frozen=True)
class Scale:
    """How a user wants an experiment smaller, with other methods or with other draws; None leaves it as declared."""

    uavs: tuple[int, ...] | None = None
    damage: tuple[float, ...] | None = None
    methods: tuple[str, ...] | None = None
    cases: int | None = None
    seed: int = SEED
    failures: tuple[int, ...] | None = None


def scaled(experiment: Experiment, scale: Scale) -> Experiment:
    """The experiment with what the user chose of it.

    Sizes and ratios must be among the declared ones. More cases than declared are flown where the declared number is
    the largest of the experiment; slow methods keep their smaller one. A method that is not declared joins the first
    leg and all that fly the same methods as that one.
    """
    if scale.cases is not None and scale.cases < 1:
        raise InputError(f"{scale.cases} cases per setting: choose at least 1")
    if not 0 <= scale.seed <= LARGEST_SEED:
        raise InputError(f"seed {scale.seed}: choose from 0 to {LARGEST_SEED:,}")
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
