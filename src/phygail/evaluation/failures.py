"""Failures of single UAVs (METHODS 9.9): their cases as a grid, and what a flight is judged by beyond its time."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import shortest_path

from phygail.config import InputError, Physics, physics_values
from phygail.evaluation.grid import LARGEST_SEED, MOST_CASES, MOST_SCENARIOS
from phygail.methods.base import Method
from phygail.methods.classic import GlobalPlan, SubnetPlan
from phygail.perception.view import Scope
from phygail.rng import generator
from phygail.swarm.coverage import watched_m2
from phygail.swarm.damage import LEAST_ALIVE
from phygail.swarm.episode import Episode
from phygail.swarm.failures import KINDS, Kind, draw_failures
from phygail.swarm.formation import check_radio, check_size, width_for
from phygail.swarm.links import find_links
from phygail.swarm.metrics import MOVED_SHARE
from phygail.swarm.scenario import Scenario, budget_for

ROUNDS = {"phygail-paper": 3}  # broadcasts per UAV and step of methods that exchange more than one


@dataclass(frozen=True)
class Failures:
    """Every combination of swarm size and number of failures, `cases` times, numbered in that order.

    A scenario depends on (seed, kind, N, k, case) and the radio; its id, e.g. single-100-1-7-s0, says all but the
    radio.

    Attributes:
        uavs: Swarm sizes N. failures: How many fail, k; one of them is critical.
        kind: Whether the others are spread over the swarm or stand around the critical one.
        cases: Scenarios per (N, k).
        seed: Non-negative.
        physics: Radio and vehicle.
    """

    uavs: tuple[int, ...]
    failures: tuple[int, ...]
    kind: Kind
    cases: int
    seed: int = 0
    physics: Physics = field(default_factory=Physics)

    def __post_init__(self) -> None:
        if not self.uavs or not self.failures:
            raise InputError("nothing fails: give at least one swarm size and one number of failures")
        if self.kind not in KINDS:
            raise InputError(f"source {self.kind!r}: choose {' or '.join(KINDS)}")
        if not 1 <= self.cases <= MOST_CASES:
            raise InputError(f"{self.cases} cases per setting: choose from 1 to {MOST_CASES:,}")
        if len(self) > MOST_SCENARIOS:
            raise InputError(f"that makes {len(self):,} scenarios: at most {MOST_SCENARIOS:,} are possible")
        if not 0 <= self.seed <= LARGEST_SEED:
            raise InputError(f"seed {self.seed}: choose from 0 to {LARGEST_SEED:,}")
        check_radio(self.physics)
        for what, values in (("swarm size", self.uavs), ("number of failures", self.failures)):
            if len(set(values)) < len(values):
                raise InputError(f"a {what} is listed twice in {', '.join(map(str, values))}: list each once")
        for uavs in self.uavs:
            check_size(uavs)
            budget_for(width_for(uavs, self.physics.range_m), self.physics)  # refuses what is too wide or too slow
            for failures in self.failures:
                if not 1 <= failures <= uavs - LEAST_ALIVE:
                    raise InputError(f"{failures} failures in a swarm of {uavs}: choose from 1 to {uavs - LEAST_ALIVE}")

    def __len__(self) -> int:
        return len(self.uavs) * len(self.failures) * self.cases

    def cell(self, index: int) -> tuple[int, int, int]:
        """(N, k, case) of scenario number `index`."""
        rest, case = divmod(index, self.cases)
        size, count = divmod(rest, len(self.failures))
        return self.uavs[size], self.failures[count], case

    def ids(self) -> list[str]:
        return [failure_id(self.kind, *self.cell(i), self.seed) for i in range(len(self))]

    def sizes(self) -> list[int]:
        """The swarm size of every scenario, by number."""
        return [self.cell(i)[0] for i in range(len(self))]

    def scenario(self, index: int) -> Scenario:
        """Draw scenario number `index`."""
        uavs, failures, case = self.cell(index)
        rng = generator(self.seed, self.kind, uavs, failures, case)
        name = failure_id(self.kind, uavs, failures, case, self.seed)
        return draw_failures(uavs, failures, self.kind, rng, name=name, seed=self.seed, physics=self.physics)

    def scenarios(self) -> list[Scenario]:
        """All of them."""
        return [self.scenario(i) for i in range(len(self))]

    def describe(self) -> dict[str, Any]:
        """All that decides the scenarios, for run.json."""
        return {
            "uavs": list(self.uavs), "failures": list(self.failures), "source": self.kind, "cases": self.cases,
            "seed": self.seed, **physics_values([self.physics]),
        }  # fmt: skip


def failure_id(kind: Kind, uavs: int, failures: int, case: int, seed: int) -> str:
    """E.g. single-100-1-7-s0."""
    return f"{kind}-{uavs}-{failures}-{case}-s{seed}"


# --- what a flight is judged by --------------------------------------------------------------------------------------


def measures(episode: Episode, method: Method) -> dict[str, Any]:
    """The cells of `rows.MEASURED` of a recorded flight."""
    scenario, metrics = episode.scenario, episode.metrics
    at_end = outcome(scenario, episode.states[-1].positions)
    cells: dict[str, Any] = {
        "max_m": metrics.longest_m,
        "moved": metrics.moved,
        "messages": messages(episode, method),
        "failure_pct": lost_pct(scenario, scenario.spots),
        "lost_pct": at_end[0],
        "longer_pct": at_end[1],
    }
    return cells | plan_measures(scenario, method)


def plan_measures(scenario: Scenario, method: Method) -> dict[str, Any]:
    """The same of a plan flown to its end, as the publications count; empty cells for methods without one."""
    if not isinstance(method, (SubnetPlan, GlobalPlan)) or method.targets is None:
        return dict.fromkeys(
            ("plan_connected", "plan_max_m", "plan_total_m", "plan_moved", "plan_lost_pct", "plan_longer_pct")
        )
    targets, physics = method.targets, scenario.physics
    way = np.hypot(*(targets - scenario.spots).T)
    lost, longer = outcome(scenario, targets)
    return {
        "plan_connected": int(find_links(targets, physics.range_m).connected),
        "plan_max_m": float(way.max()),
        "plan_total_m": float(way.sum()),
        "plan_moved": int((way > MOVED_SHARE * physics.range_m).sum()),
        "plan_lost_pct": lost,
        "plan_longer_pct": longer,
    }


def messages(episode: Episode, method: Method) -> int:
    """Broadcasts by the method's rule (METHODS 9.9): our own count, not comparable with published packet counts."""
    if isinstance(method, (SubnetPlan, GlobalPlan)):
        return method.messages
    alive = len(episode.scenario.alive)
    if method.scope is Scope.GLOBAL:
        return alive + episode.metrics.moved  # reports and orders
    return ROUNDS.get(method.name, 1) * alive * episode.steps  # fresh news in every step


def outcome(scenario: Scenario, positions: np.ndarray) -> tuple[float, float]:
    """(watched area lost, pairs with longer ways), both in percent, for the alive at `positions` ((n, 2) m)."""
    return lost_pct(scenario, positions), longer_pct(scenario, positions)


def lost_pct(scenario: Scenario, positions: np.ndarray) -> float:
    """Watched area lost against before the failure."""
    before, _ = _before(scenario)
    return 100.0 * (before - _watched(scenario, positions)) / before


def longer_pct(scenario: Scenario, positions: np.ndarray) -> float:
    """Pairs of alive UAVs with more hops between them than before the failure; no way at all counts as more."""
    _, before = _before(scenario)
    now = hops(positions, scenario.physics)
    pairs = np.triu_indices(len(positions), 1)
    return 100.0 * float((now[pairs] > before[pairs]).mean())


def hops(positions: np.ndarray, physics: Physics) -> np.ndarray:
    """(n, n) links between every two UAVs on the shortest way, infinite where there is none."""
    pairs, n = find_links(positions, physics.range_m).pairs, len(positions)
    graph = coo_array((np.ones(len(pairs)), (pairs[:, 0], pairs[:, 1])), shape=(n, n))
    return shortest_path(graph.tocsr(), directed=False, unweighted=True)


@lru_cache(maxsize=8)
def _before(scenario: Scenario) -> tuple[float, np.ndarray]:
    """(watched area, hops between the alive) before the failure; equal for all methods of a case."""
    ways = hops(scenario.layout, scenario.physics)
    return _watched(scenario, scenario.layout), ways[np.ix_(scenario.alive, scenario.alive)]


def _watched(scenario: Scenario, positions: np.ndarray) -> float:
    return watched_m2(positions, scenario.layout, scenario.center, scenario.width_m, scenario.physics.range_m)
