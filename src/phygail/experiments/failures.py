"""What failures do: to a layout, before any; cases of single failures, and what a flight is judged by beyond its
time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import shortest_path
from scipy.spatial import cKDTree

from phygail.config import InputError, Physics, physics_values
from phygail.experiments.grid import MOST_SCENARIOS
from phygail.methods.base import Method
from phygail.methods.classic import GlobalPlan, SubnetPlan
from phygail.methods.rnfr import fill_spots
from phygail.rng import generator
from phygail.sensing.views import Scope
from phygail.swarm.checks import checked_cases, checked_seed
from phygail.swarm.failures import KINDS, Kind, critical_uavs, draw_failures, watched_m2
from phygail.swarm.layout import LEAST_ALIVE, check_radio, check_size, random_damage, width_for
from phygail.swarm.links import find_links, label_subnets
from phygail.swarm.scenario import Scenario, budget_for
from phygail.swarm.simulator import MOVED_SHARE, Episode
from phygail.swarm.tree import bound_steps

RATIOS = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95)
MOST_COSTED = 200  # critical UAVs whose loss is worked out: each takes up to half a second in a swarm of 10,000
DRAWS = 200  # damage sets per ratio: a probability is known to +-0.07 at worst (95 %)

ROUNDS = {"phygail-taught": 3}  # broadcasts per UAV and step of methods that exchange more than one


@dataclass(frozen=True)
class DamageOutlook:
    """What random damage of one ratio does, averaged over draws.

    Attributes:
        ratio: Damage ratio.
        damaged: Number of damaged UAVs.
        split: Share of the draws after which the alive are split.
        subnets: Mean number of subnets.
        largest: Mean share of the alive that is in the largest subnet.
    """

    ratio: float
    damaged: int
    split: float
    subnets: float
    largest: float


@dataclass(frozen=True)
class FailureCost:
    """What the loss of one critical UAV would do, and cost.

    Attributes:
        uav: Index.
        subnets: After its loss. cut_off: UAVs outside the largest of them.
        bound_s: No method reconnects them in less time.
        stand_in_m: Meters flown if spare UAVs move up to its place with the smallest largest move (`rnfr`).
        stand_ins: UAVs that move then; 0 if none can be spared.
    """

    uav: int
    subnets: int
    cut_off: int
    bound_s: float
    stand_in_m: float
    stand_ins: int


@dataclass(frozen=True)
class Inspection:
    """A layout as a network.

    Attributes:
        uavs: N.
        links: Number of links.
        mean_degree: Links per UAV.
        subnets: 1 if the layout is connected.
        separation_m: Smallest distance between two UAVs.
        contacts: Pairs closer than the contact distance.
        critical: Indices of UAVs whose loss alone splits a subnet.
        outlook: By damage ratio.
        physics: Radio and vehicle.
        failures: What the loss of each critical UAV would cost, the first `MOST_COSTED` of them; none if the layout is
            split already.
    """

    uavs: int
    links: int
    mean_degree: float
    subnets: int
    separation_m: float
    contacts: int
    critical: tuple[int, ...]
    outlook: tuple[DamageOutlook, ...]
    physics: Physics
    failures: tuple[FailureCost, ...] = ()


def inspect_layout(
    layout: np.ndarray,
    physics: Physics | None = None,
    *,
    seed: int = 0,
    draws: int = DRAWS,
    ratios: Sequence[float] = RATIOS,
) -> Inspection:
    """Inspect a layout ((N, 2) m); random damage is drawn `draws` times per ratio."""
    radio = physics or Physics()
    links = find_links(layout, radio.range_m, radio.contact_m)
    critical = critical_uavs(len(layout), links.pairs)
    nearest = cKDTree(layout).query(layout, k=2)[0][:, 1]
    return Inspection(
        len(layout),
        len(links.pairs),
        2 * len(links.pairs) / len(layout),
        links.count,
        float(nearest.min()),
        len(links.contacts),
        tuple(critical),
        tuple(_outlook(len(layout), links.pairs, ratio, seed, draws) for ratio in ratios),
        radio,
        tuple(failure_cost(layout, uav, radio) for uav in critical[:MOST_COSTED]) if links.connected else (),
    )


def failure_cost(layout: np.ndarray, uav: int, physics: Physics) -> FailureCost:
    """What the loss of UAV `uav` of a connected layout ((N, 2) m) would do, and cost."""
    alive = np.delete(layout, uav, axis=0)
    sizes = np.bincount(find_links(alive, physics.range_m).subnet)
    targets, short = fill_spots(alive, layout[[uav]], physics)
    flown = np.hypot(*(targets - alive).T)
    return FailureCost(
        uav, len(sizes), int(sizes.sum() - sizes.max()), round(bound_steps(alive, physics) * physics.step_s, 9),
        float(flown.sum()), 0 if short else int((flown > 0).sum()),
    )  # fmt: skip


def _outlook(uavs: int, pairs: np.ndarray, ratio: float, seed: int, draws: int) -> DamageOutlook:
    rng = generator(seed, "inspect", round(ratio * 1000))
    counts, largest = np.empty(draws), np.empty(draws)
    damaged = np.empty(0, dtype=np.intp)
    for draw in range(draws):
        damaged = random_damage(uavs, ratio, rng)
        alive = np.ones(uavs, dtype=bool)
        alive[damaged] = False
        row = np.cumsum(alive) - 1
        subnet, counts[draw] = label_subnets(int(alive.sum()), row[pairs[alive[pairs].all(axis=1)]])
        largest[draw] = np.bincount(subnet).max() / alive.sum()
    return DamageOutlook(ratio, len(damaged), float((counts > 1).mean()), float(counts.mean()), float(largest.mean()))


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
        checked_cases(self.cases, "setting")
        if len(self) > MOST_SCENARIOS:
            raise InputError(f"that makes {len(self):,} scenarios: at most {MOST_SCENARIOS:,} are possible")
        checked_seed(self.seed)
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
    """The same cells for a plan flown to its end, as the publications count; empty for methods without a plan."""
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
    return ROUNDS.get(method.name, 1) * alive * episode.steps  # every UAV broadcasts in every step


def outcome(scenario: Scenario, positions: np.ndarray) -> tuple[float, float]:
    """(watched area lost, pairs with longer ways), both in percent, for the alive at `positions` ((n, 2) m)."""
    return lost_pct(scenario, positions), longer_pct(scenario, positions)


def lost_pct(scenario: Scenario, positions: np.ndarray) -> float:
    """The loss of watched area since before the failure."""
    before, _ = _before(scenario)
    return 100.0 * (before - _watched(scenario, positions)) / before


def longer_pct(scenario: Scenario, positions: np.ndarray) -> float:
    """Pairs of alive UAVs with more hops between them than before the failure; no path at all counts as more."""
    _, before = _before(scenario)
    now = hops(positions, scenario.physics)
    pairs = np.triu_indices(len(positions), 1)
    return 100.0 * float((now[pairs] > before[pairs]).mean())


def hops(positions: np.ndarray, physics: Physics) -> np.ndarray:
    """(n, n) links on the shortest path between every two UAVs, infinite where there is none."""
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
