"""What a failure does to a layout, before any failure: links, critical UAVs, how likely damage splits it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.spatial import cKDTree

from phygail.config import Physics
from phygail.methods.rnfr import fill_spots
from phygail.rng import generator
from phygail.swarm.bounds import bound_steps
from phygail.swarm.damage import random_damage
from phygail.swarm.failures import critical_uavs
from phygail.swarm.links import find_links, label_subnets

RATIOS = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95)
MOST_COSTED = 200  # critical UAVs whose loss is worked out: each takes up to half a second in a swarm of 10,000
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
class FailureCost:
    """What the loss of one critical UAV would do, and cost.

    Attributes:
        uav: Index.
        subnets: After its loss. cut_off: UAVs outside the largest of them.
        bound_s: No method reconnects them in less time.
        stand_in_m: Meters flown if spare UAVs move up to its place, the largest single move the smallest (`rnfr`).
        stand_ins: UAVs that move then; 0 if nobody can be spared.
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
