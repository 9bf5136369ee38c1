"""Failures of single UAVs: who is critical, and cases in which one of them fails (METHODS 9.9)."""

from __future__ import annotations

from typing import Literal

import numpy as np

from phygail.config import InputError, Physics
from phygail.swarm.damage import LEAST_ALIVE
from phygail.swarm.formation import check_size, draw_layout, width_for
from phygail.swarm.links import find_links
from phygail.swarm.scenario import Scenario, make_scenario

Kind = Literal["single", "region"]  # the other failures: spread over the swarm, or the nearest to the critical one
KINDS: tuple[Kind, ...] = ("single", "region")
REDRAWS = 2_000  # layouts before a setting counts as one without a critical UAV


def draw_failures(
    uavs: int,
    failures: int,
    kind: Kind,
    rng: np.random.Generator,
    *,
    name: str = "drawn",
    seed: int | None = None,
    physics: Physics | None = None,
    width_m: float | None = None,
) -> Scenario:
    """A fresh layout that loses a critical UAV, chosen uniformly among those it has, and `failures` - 1 others.

    Layouts are redrawn until one has a critical UAV and its failures split the alive: these are layouts with a weak
    spot, not the average ones.

    Args:
        uavs: Swarm size N.
        failures: How many fail, k.
        kind: "single": the others are uniform among the rest. "region": they are the nearest to the critical one.
        rng: Source of randomness.
        name: Id of the scenario.
        seed: Recorded in the scenario.
        physics: Radio and vehicle.
        width_m: Side of the map; the paper's (METHODS 2.2), in proportion to the radio range, if None.
    """
    check_size(uavs)
    if not 1 <= failures <= uavs - LEAST_ALIVE:
        raise InputError(f"{failures} failures in a swarm of {uavs}: choose from 1 to {uavs - LEAST_ALIVE}")
    if kind not in KINDS:
        raise InputError(f"source {kind!r}: choose {' or '.join(KINDS)}")
    radio = physics or Physics()
    width = width_for(uavs, radio.range_m) if width_m is None else width_m
    for _ in range(max(20, min(REDRAWS, 2_000_000 // uavs**2))):
        layout = draw_layout(uavs, rng, width, radio)
        critical = critical_uavs(uavs, find_links(layout, radio.range_m).pairs)
        if not critical:
            continue
        first = critical[rng.integers(len(critical))]
        failed = [first, *_others(layout, first, failures - 1, kind, rng)]
        if not find_links(np.delete(layout, failed, axis=0), radio.range_m).connected:
            return make_scenario(name, layout, failed, width_m=width, physics=radio, seed=seed)
    raise InputError(
        f"no layout of {uavs} UAVs drawn on this map is split by {failures} failures with a critical UAV among them: "
        "choose a larger swarm, a wider map or a shorter radio range"
    )


def _others(layout: np.ndarray, first: int, count: int, kind: Kind, rng: np.random.Generator) -> list[int]:
    """Who fails beside UAV `first`."""
    if kind == "region":
        nearest = np.argsort(np.hypot(*(layout - layout[first]).T), kind="stable")
        return [int(uav) for uav in nearest if uav != first][:count]
    rest = np.delete(np.arange(len(layout)), first)
    return [int(uav) for uav in rng.choice(rest, count, replace=False)]


def critical_uavs(uavs: int, pairs: np.ndarray) -> list[int]:
    """Articulation points of the network, sorted (Hopcroft and Tarjan 1973, without recursion, O(N + links)).

    Args:
        uavs: N.
        pairs: (m, 2) int, links.
    """
    neighbors = neighbor_lists(uavs, pairs)
    found, low = [-1] * uavs, [0] * uavs  # time of discovery; earliest UAV reachable from the subtree
    critical: set[int] = set()
    clock = 0
    for root in range(uavs):
        if found[root] >= 0:
            continue
        found[root] = low[root] = clock
        clock += 1
        branches = 0
        path = [(root, iter(neighbors[root]))]
        while path:
            here, rest = path[-1]
            there = next((n for n in rest if len(path) < 2 or n != path[-2][0]), None)
            if there is None:
                path.pop()
                if path:
                    above = path[-1][0]
                    low[above] = min(low[above], low[here])
                    if above == root:
                        branches += 1
                    elif low[here] >= found[above]:
                        critical.add(above)
            elif found[there] >= 0:
                low[here] = min(low[here], found[there])
            else:
                found[there] = low[there] = clock
                clock += 1
                path.append((there, iter(neighbors[there])))
        if branches > 1:
            critical.add(root)
    return sorted(critical)


def neighbor_lists(uavs: int, pairs: np.ndarray) -> list[list[int]]:
    """Who has a link to whom, ascending, from the `pairs` ((m, 2)) of a network of `uavs`."""
    both = np.concatenate([pairs, pairs[:, ::-1]])
    both = both[np.lexsort((both[:, 1], both[:, 0]))]
    stops = np.cumsum(np.bincount(both[:, 0], minlength=uavs))[:-1]
    return [part.tolist() for part in np.split(both[:, 1], stops)]
