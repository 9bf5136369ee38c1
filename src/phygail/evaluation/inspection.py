"""What a failure does to a layout, before any failure: links, critical UAVs, how likely damage splits it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.spatial import cKDTree

from phygail.config import Physics
from phygail.rng import generator
from phygail.swarm.damage import random_damage
from phygail.swarm.links import find_links, label_subnets

RATIOS = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95)
DRAWS = 200  # damage sets per ratio: a probability is known to +-0.07 at worst (95 %)


@dataclass(frozen=True)
class DamageOutlook:
    """What random damage of one ratio does, averaged over draws.

    Attributes:
        ratio: Damage ratio.
        damaged: UAVs that it takes.
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
    nearest = cKDTree(layout).query(layout, k=2)[0][:, 1]
    return Inspection(
        len(layout),
        len(links.pairs),
        2 * len(links.pairs) / len(layout),
        links.count,
        float(nearest.min()),
        len(links.contacts),
        tuple(critical_uavs(len(layout), links.pairs)),
        tuple(_outlook(len(layout), links.pairs, ratio, seed, draws) for ratio in ratios),
        radio,
    )


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


def critical_uavs(uavs: int, pairs: np.ndarray) -> list[int]:
    """Articulation points of the network, sorted (Hopcroft and Tarjan 1973, without recursion, O(N + links)).

    Args:
        uavs: N.
        pairs: (m, 2) int, links.
    """
    neighbors = _neighbor_lists(uavs, pairs)
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


def _neighbor_lists(uavs: int, pairs: np.ndarray) -> list[list[int]]:
    both = np.concatenate([pairs, pairs[:, ::-1]])
    both = both[np.argsort(both[:, 0], kind="stable")]
    stops = np.cumsum(np.bincount(both[:, 0], minlength=uavs))[:-1]
    return [part.tolist() for part in np.split(both[:, 1], stops)]
