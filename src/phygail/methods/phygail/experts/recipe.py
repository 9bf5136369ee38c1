"""Demonstrations: which scenarios, which methods, and the fastest success as the expert (METHODS 4.5, paper IV-D)."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from types import MappingProxyType
from typing import Any

import numpy as np

from phygail import __version__
from phygail.config import InputError
from phygail.methods.controller import can_fly, run_episode
from phygail.rng import generator
from phygail.swarm.checks import checked_cases, checked_seed
from phygail.swarm.layout import check_damage, check_size, permille
from phygail.swarm.scenario import Scenario, draw_scenario
from phygail.swarm.simulator import Episode

DAMAGE = tuple(k / 20 for k in range(1, 19))  # 0.05 to 0.90: 20 UAVs keep at least two
CASES = 110  # per ratio: 1,980 scenarios
SEED = 400_000  # reporting uses 0..1000, other trainings 100,000 on: no scenario is drawn twice
HELD_OUT_EVERY = 10  # cases 0, 10, 20, ... of every ratio are for validation: at least 10 %
MOST_RANGE_SCALE = 10.0  # beyond it the range would be as short as the contact distance

# The order decides ties: methods with local information come before those that plan globally, because the learner,
# too, sees only its surroundings. Every method flies with its defaults.
POOLS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "paper": ("center-fly", "hero", "sidr", "cr-mgc", "demd", "gdr-ts", "cr-ma"),
        "decentralized": ("sidr", "reach", "center-fly", "hero", "cr-ma"),
        "all": ("sidr", "reach", "center-fly", "hero", "cr-ma", "convex", "cr-mgc", "demd", "gdr-ts"),
    }
)

log = logging.getLogger("phygail")


@dataclass(frozen=True)
class Recipe:
    """Scenarios and methods of a database. Scenario number i is case i mod `cases` of ratio i div `cases`.

    Attributes:
        pool: Name of the pool the methods come from.
        methods: Methods that fly; their order decides ties.
        left_out, missing: Members of the pool that the user left out, and that cannot fly here.
        uavs: Swarm size N.
        damage: Damage ratios, at most three decimals.
        cases: Scenarios per ratio.
        seed: Of the scenarios.
        range_scale: Radio ranges are shorter by a log-uniform factor from 1 to this. 20 UAVs with a fifth of the range
            are spread, in ranges, like survivors of a swarm of 500. With 1 nothing is drawn.
    """

    pool: str
    methods: tuple[str, ...]
    left_out: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    uavs: int = 20
    damage: tuple[float, ...] = DAMAGE
    cases: int = CASES
    seed: int = SEED
    range_scale: float = 1.0

    def __post_init__(self) -> None:
        check_size(self.uavs)
        if not self.damage or len(set(self.damage)) < len(self.damage):
            raise InputError(f"damage ratios {', '.join(map(str, self.damage))}: give at least one, each once")
        for ratio in self.damage:
            check_damage(self.uavs, ratio)
        checked_cases(self.cases, "damage ratio")
        checked_seed(self.seed)
        if not 1.0 <= self.range_scale <= MOST_RANGE_SCALE:
            raise InputError(f"range scale {self.range_scale}: choose from 1 to {MOST_RANGE_SCALE:g}")

    def __len__(self) -> int:
        return len(self.damage) * self.cases

    def cell(self, number: int) -> tuple[float, int]:
        """(damage ratio, case) of scenario `number`."""
        ratio, case = divmod(number, self.cases)
        return self.damage[ratio], case

    def scenario(self, number: int) -> Scenario:
        """Draw scenario `number`; it depends on (seed, N, ratio, case) and on nothing else."""
        ratio, case = self.cell(number)
        rng = generator(self.seed, "expert", self.uavs, permille(ratio), case)
        name = f"expert-n{self.uavs:04d}-d{ratio:.3f}-c{case:03d}-s{self.seed}"
        drawn = draw_scenario(self.uavs, ratio, rng, name=name, seed=self.seed)
        if self.range_scale <= 1.0:
            return drawn
        shorter = drawn.physics.range_m / self.range_scale ** rng.random()
        return replace(drawn, physics=replace(drawn.physics, range_m=shorter))

    def config(self) -> dict[str, Any]:
        """As JSON holds it, with the version of the package: a database is resumed and reused only if this is equal."""
        values = {key: list(value) if isinstance(value, tuple) else value for key, value in asdict(self).items()}
        return {"version": __version__, **values}


def held_out(case: int) -> bool:
    """Whether a case is kept for validation: by its number alone, so that it is held out of every pool's database."""
    return case % HELD_OUT_EVERY == 0


def choose_pool(pool: str, without: Iterable[str] = ()) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    """(methods, left out, missing) of a pool: methods that fly, that shall not fly, and that cannot fly here.

    Args:
        pool: Key of `POOLS`.
        without: Members of the pool that the user leaves out, slow planners for instance.
    """
    if pool not in POOLS:
        raise InputError(f"unknown pool {pool!r}: there are {', '.join(POOLS)}")
    members = POOLS[pool]
    unwanted = set(without)
    for name in sorted(unwanted - set(members)):
        raise InputError(f"{name!r} is not in the pool {pool}: it holds {', '.join(members)}")
    wanted = [name for name in members if name not in unwanted]
    missing = tuple(name for name in wanted if not can_fly(name))
    methods = tuple(name for name in wanted if name not in missing)
    if not methods:
        raise InputError(f"nobody is left in the pool {pool}: leave out fewer of {', '.join(members)}")
    return methods, tuple(name for name in members if name in unwanted), missing


@dataclass(frozen=True)
class Outcome:
    """How one method did.

    Attributes:
        success: The network became one.
        moves: Executed moves; the whole budget for a failure.
        contacts: Contact events per UAV.
        error: What the method raised, in one line; empty if it flew to the end.
    """

    success: bool
    moves: int
    contacts: float
    error: str = ""


@dataclass(frozen=True, eq=False)
class Demonstration:
    """A scenario, how every method did on it, and the flight of the winner. The damaged never move: they have no rows.

    Attributes:
        scenario: The case. ratio: Damage ratio asked for. case: Number within the ratio.
        outcomes: In the order of the pool.
        winner: Place of the expert in the pool; None if no method reconnected the swarm.
        positions: (T_E + 1, n, 2) m, of the alive at t = 0..T_E; empty without a winner.
        velocities: (T_E, n, 2) m/s, executed at t = 0..T_E-1.
    """

    scenario: Scenario
    ratio: float
    case: int
    outcomes: tuple[Outcome, ...]
    winner: int | None
    positions: np.ndarray
    velocities: np.ndarray


def demonstrate(recipe: Recipe, number: int) -> Demonstration:
    """Draw scenario `number` and fly all methods of the recipe on it."""
    ratio, case = recipe.cell(number)
    scenario = recipe.scenario(number)
    flights = [fly_recorded(scenario, name) for name in recipe.methods]
    outcomes = tuple(outcome for outcome, _ in flights)
    winner = choose_expert(outcomes)
    best = None if winner is None else flights[winner][1]
    positions, velocities = trajectory(best) if best else (np.empty((0, len(scenario.alive), 2)),) * 2
    return Demonstration(scenario, ratio, case, outcomes, winner, positions, velocities)


def fly_recorded(scenario: Scenario, name: str) -> tuple[Outcome, Episode | None]:
    """Fly one method. What it raises is a failure."""
    try:
        episode = run_episode(scenario, name, record=True)
    except Exception as error:  # one method's failure must not cost the work of the others
        text = " ".join(f"{type(error).__name__}: {error}".split())
        return Outcome(False, scenario.budget_steps, 0.0, text), None
    contacts = episode.metrics.contact_events_per_uav
    return Outcome(episode.terminated, episode.scored_steps, contacts), episode


def choose_expert(outcomes: Sequence[Outcome]) -> int | None:
    """The success with the fewest moves; ties go to fewer contacts, then to the first in the pool."""
    solved = [place for place, outcome in enumerate(outcomes) if outcome.success]
    return min(solved, key=lambda place: (outcomes[place].moves, outcomes[place].contacts, place), default=None)


def trajectory(episode: Episode) -> tuple[np.ndarray, np.ndarray]:
    """(T + 1, n, 2) m and (T, n, 2) m/s: an expert's states and what it did in each (eq. 28).

    A state carries the velocity of the step before: entry t of the second array is what was executed at t.
    """
    positions = np.stack([state.positions for state in episode.states])
    return positions, np.stack([state.velocities for state in episode.states])[1:]
