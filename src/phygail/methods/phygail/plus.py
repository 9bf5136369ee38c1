"""`phygail-plus`: PhyGAIL's network and learning with what a subnet knows besides (METHODS 8.8). No torch.

A UAV of the paper sees its neighbors on a map. Here it also knows what its subnet knows: where the subnet is (the
anchor), and of every lost teammate where it is by now and how likely it is alive (`sensing.beliefs`). Lengths are in
radio ranges. Vectors are turned into coordinates of the subnet, whose x axis points from its centroid to the center: a
block that flies home is one constant command. No input is a command, a target or a weight that a rule has computed.

Not learned: the beliefs, with constants set once (`belief_spec`); link keeping (METHODS 8.6); the aggregation phase,
flown but not trained with, that ends late flights and flags them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

import numpy as np

from phygail.config import PAPER_RANGE_M
from phygail.methods.phygail.graph import ACTIVE, CENTER, DAMAGED, LOST, Feature, Graph, GraphSpec, nearest_of
from phygail.sensing.beliefs import (
    CLOCK_M,
    DEEPEST,
    LONGEST,
    MOST_MEMBERS,
    Beliefs,
    BeliefSpec,
    Look,
)
from phygail.sensing.views import SubnetViews

LEAST_BELIEF = 0.1  # ghosts that are believed less than this are not seen
FARTHEST = 3.0  # ranges, the greatest distance some features show
NEAR = 1 / 6  # of the range: the direction to the center says little about a subnet whose centroid is closer
OWN_FIRST = 1e3  # ranges by which a ghost seems nearer to its subnet's nearest member, where those come first
TIES = 1e6  # ghosts whose distances are the same to a millionth of the range are equally near
CROWDED = math.log(13.0)  # of the feature "degree", as in the paper
LIGHTEST = 0.2  # weight in link keeping of a UAV that flies like its subnet
FEWEST = -5.0  # least ln share that is shown

NODE_FEATURES: tuple[Feature, ...] = (
    Feature("cx, cy", "to the center: unit vector times ln(1 + d/R)", "1"),
    Feature("vx, vy", "executed velocity of the previous step", "v_max"),
    Feature("degree", "ln(1 + members, wrecks and center attended to)", "ln 13"),
    Feature("near", "distance to the center, at most 3 R", "3 R"),
    Feature("far", "the centroid of the subnet: ln(1 + its distance to the center / R)", "1"),
    Feature("size", "ln members, at most ln 20", "3"),
    Feature("ox, oy", "from the centroid to the UAV: unit vector times ln(1 + d/R)", "1"),
    Feature("direction", "distance of the centroid to the center, at most R/6", "R/6"),
    Feature("survival", "-ln of the share of teammates believed alive", "3"),
    Feature("clock", "meters flown at full speed since the damage, at most 600 (at R = 120 m)", "200 m"),
    Feature("share", "ln of the members over the survivors expected, at least -5", "3"),
)
EDGE_FEATURES: tuple[Feature, ...] = (
    Feature("x, y", "to the sender: over R for members and wrecks, else unit vector times ln(1 + d/R)", "1"),
    Feature("vx, vy", "its velocity less one's own; for the lost the unit vector", "v_max"),
    Feature("d", "distance; of the center at most 3 R; of the lost beyond R, at most 3 R", "R, 3 R, R"),
    Feature("belief", "that a lost teammate is alive; 0 for others", "1"),
    Feature("nearest", "1 if no member is nearer to the lost teammate", "1"),
    Feature("depth", "how deep the ghost has been in the covered area", "3"),
)
NODE_NUMBERS, EDGE_NUMBERS = (
    sum(1 + feature.name.count(",") for feature in features) for features in (NODE_FEATURES, EDGE_FEATURES)
)

GRAPHS: Mapping[str, GraphSpec] = MappingProxyType(
    {
        "plus": GraphSpec(k_lost=4),
        "plus-8": GraphSpec(k_dmg=0, k_lost=8),
        "plus-no-damaged": GraphSpec(k_dmg=0, k_lost=4),
        "plus-blind": GraphSpec(k_dmg=0, k_lost=1, lost_horizon=1e-3),  # sees no lost teammate
        "plus-sharp": GraphSpec(k_dmg=0, k_lost=4, beliefs="sharp"),
        "plus-sharp-24": GraphSpec(k_dmg=0, k_lost=24, beliefs="sharp"),
        "plus-own": GraphSpec(k_dmg=0, k_lost=4, own_lost=True),
        "plus-own-far": GraphSpec(k_dmg=0, k_lost=4, lost_horizon=6.0, own_lost=True),
        "plus-far": GraphSpec(k_dmg=0, k_lost=4, lost_horizon=6.0),
    }
)


# soft: first guesses. sharp: a lost teammate flies straight to the center; one that is not met there is ruled out. The
# evolution of `reach-evolved` had come to nearly the same constants.
BELIEFS: Mapping[str, BeliefSpec] = MappingProxyType(
    {
        "soft": BeliefSpec(),
        "sharp": BeliefSpec(drift=1.0, sigma_m=3.0, sigma_rate=0.001, depth_half=1.5, depth_scale=0.05),
    }
)


def belief_spec(spec: GraphSpec) -> BeliefSpec:
    """What a subnet believes about lost teammates: set once, not learned."""
    return replace(BELIEFS[spec.beliefs], horizon_m=spec.lost_horizon * PAPER_RANGE_M)


def observe_plus(
    views: SubnetViews, beliefs: Beliefs, spec: GraphSpec, dtype: type[np.floating] = np.float32
) -> tuple[Graph, np.ndarray]:
    """One more look at the subnets: their graphs, and (n, 2) the x axis of every UAV's coordinates.

    All damaged UAVs share one node, and so do all lost teammates; the center has its own. The edge holds what a
    receiver knows of them.
    """
    look = beliefs.look(views)
    home = views.centers - views.means(views.positions)
    away = np.hypot(home[:, 0], home[:, 1])
    axes = np.where(away[:, None] > 1e-9, home / np.maximum(away, 1e-9)[:, None], (1.0, 0.0))
    own_axes = axes[views.subnet]
    n = len(views.positions)
    index, mask = np.zeros((n, spec.slots), dtype=np.int64), np.zeros((n, spec.slots), dtype=bool)
    edge = np.zeros((n, spec.slots, EDGE_NUMBERS))
    peers, damaged = slice(spec.k_act), slice(spec.k_act, spec.k_act + spec.k_dmg)
    center, lost = spec.k_act + spec.k_dmg, slice(spec.k_act + spec.k_dmg + 1, spec.slots)
    _see_members(views, own_axes, index[:, peers], mask[:, peers], edge[:, peers])
    if spec.k_dmg:
        _see_damaged(views, own_axes, index[:, damaged], mask[:, damaged], edge[:, damaged])
    degree = 1 + mask.sum(axis=1)
    first = OWN_FIRST if spec.own_lost else 0.0
    _see_lost(views, beliefs, look, first, own_axes, index[:, lost], mask[:, lost], edge[:, lost])
    index[:, center], mask[:, center] = n + CENTER - 1, True
    features = _node_features(views, look, home, away, own_axes, degree)
    edge[:, center, :5] = np.concatenate([features[:, :2], -features[:, 2:4], features[:, 5:6]], axis=1)
    kinds = np.repeat([ACTIVE, DAMAGED, CENTER, LOST], [spec.k_act, spec.k_dmg, 1, spec.k_lost])
    types = np.concatenate([np.full(n, ACTIVE), [DAMAGED, CENTER, LOST]])
    nodes = np.concatenate([features, np.zeros((3, NODE_NUMBERS))]).astype(dtype)
    world = np.zeros(n + 3, dtype=np.int64)
    return Graph(nodes, types, index, mask, kinds, world, 1, edge.astype(dtype)), own_axes


def turned(vectors: np.ndarray, axes: np.ndarray) -> np.ndarray:
    """(..., 2) the vectors in coordinates with these x axes ((..., 2))."""
    along = (vectors * axes).sum(axis=-1)
    return np.stack([along, vectors[..., 1] * axes[..., 0] - vectors[..., 0] * axes[..., 1]], axis=-1)


def turned_back(vectors: np.ndarray, axes: np.ndarray) -> np.ndarray:
    """(..., 2) vectors in map axes from vectors in these axes: the inverse of `turned`."""
    return turned(vectors, axes * np.array([1.0, -1.0]))


def _compressed(vectors: np.ndarray, distance: np.ndarray, range_m: float) -> np.ndarray:
    """(..., 2) unit vectors times ln(1 + d/R)."""
    return vectors * (np.log1p(distance / range_m) / np.maximum(distance, 1e-9))[..., None]


def _node_features(
    views: SubnetViews, look: Look, home: np.ndarray, away: np.ndarray, own_axes: np.ndarray, degree: np.ndarray
) -> np.ndarray:
    """(n, 14) in the order of `NODE_FEATURES`."""
    physics, subnet = views.mission.physics, views.subnet
    range_m = physics.range_m
    to_center = turned(views.centers[subnet] - views.positions, own_axes)
    distance = np.hypot(to_center[:, 0], to_center[:, 1])
    outward = turned(views.positions - views.centers[subnet] + home[subnet], own_axes)
    features = np.empty((len(distance), NODE_NUMBERS))
    features[:, 0:2] = _compressed(to_center, distance, range_m)
    features[:, 2:4] = turned(views.velocities / physics.speed_mps, own_axes)
    features[:, 4] = np.log1p(degree) / CROWDED
    features[:, 5] = np.minimum(distance / range_m, FARTHEST) / FARTHEST
    features[:, 8:10] = _compressed(outward, np.hypot(outward[:, 0], outward[:, 1]), range_m)
    share = np.log(views.sizes / (look.survival * len(views.roster)))
    anchor = np.stack([
        np.log1p(away / range_m), np.log(np.minimum(views.sizes, MOST_MEMBERS)) / 3.0,
        np.minimum(away / (NEAR * range_m), 1.0), -np.log(look.survival) / 3.0, np.maximum(share, FEWEST) / 3.0,
    ], axis=1)  # fmt: skip
    features[:, [6, 7, 10, 11, 13]] = anchor[subnet]
    features[:, 12] = min(views.step * physics.stride_m / (CLOCK_M * physics.unit), LONGEST)
    return features


def _see_members(
    views: SubnetViews, own_axes: np.ndarray, index: np.ndarray, mask: np.ndarray, edge: np.ndarray
) -> None:  # fmt: skip
    """Fill the slots of the nearest linked members."""
    physics, both = views.mission.physics, np.concatenate([views.pairs, views.pairs[:, ::-1]])
    index[:], mask[:] = nearest_of(both[:, 0], both[:, 1], views.positions, views.positions, index.shape[1])
    row, slot = np.nonzero(mask)
    sender = index[row, slot]
    offset = views.positions[sender] - views.positions[row]
    edge[row, slot, 0:2] = turned(offset, own_axes[row]) / physics.range_m
    edge[row, slot, 2:4] = turned(views.velocities[sender] - views.velocities[row], own_axes[row]) / physics.speed_mps
    edge[row, slot, 4] = np.hypot(offset[:, 0], offset[:, 1]) / physics.range_m


def _see_damaged(
    views: SubnetViews, own_axes: np.ndarray, index: np.ndarray, mask: np.ndarray, edge: np.ndarray
) -> None:  # fmt: skip
    """Fill the slots of the nearest damaged UAVs in range."""
    physics, near = views.mission.physics, views.damaged_in_range
    spot, mask[:] = nearest_of(near[:, 0], near[:, 1], views.positions, views.roster, index.shape[1])
    index[mask] = len(views.positions) + DAMAGED - 1
    row, slot = np.nonzero(mask)
    offset = views.roster[spot[mask]] - views.positions[row]
    edge[row, slot, 0:2] = turned(offset, own_axes[row]) / physics.range_m
    edge[row, slot, 2:4] = turned(-views.velocities[row], own_axes[row]) / physics.speed_mps
    edge[row, slot, 4] = np.hypot(offset[:, 0], offset[:, 1]) / physics.range_m


def _see_lost(
    views: SubnetViews, beliefs: Beliefs, look: Look, own_first: float, own_axes: np.ndarray, index: np.ndarray,
    mask: np.ndarray, edge: np.ndarray,
) -> None:  # fmt: skip
    """Fill the slots of the nearest lost teammates that may be alive; of equally near ones the likelier come first.

    For the member of a subnet that is nearest to it, a teammate counts as nearer by `own_first` ranges.
    """
    range_m = views.mission.physics.range_m
    row, spot, ghost = beliefs.near(views, look.weights, LEAST_BELIEF)
    offset = ghost - views.positions[row]
    distance = np.hypot(offset[:, 0], offset[:, 1])
    weight = look.weights[views.subnet[row], spot]
    closest = np.full(look.weights.shape, -1)
    closest[look.subnet, look.spot] = look.row
    own = closest[views.subnet[row], spot] == row
    order = np.lexsort((spot, np.rint((distance / range_m - own_first * own) * TIES) - 0.5 * weight, row))
    counts = np.bincount(row, minlength=len(index))
    rank = np.arange(len(order)) - (np.cumsum(counts) - counts)[row[order]]
    order, slot = order[rank < index.shape[1]], rank[rank < index.shape[1]]
    row, spot, distance, weight, own = row[order], spot[order], distance[order], weight[order], own[order]
    offset, subnet = turned(offset[order], own_axes[row]), views.subnet[row]
    index[row, slot], mask[row, slot] = len(views.positions) + LOST - 1, True
    edge[row, slot, 0:2] = _compressed(offset, distance, range_m)
    edge[row, slot, 2:4] = offset / np.maximum(distance, 1e-9)[:, None]
    edge[row, slot, 4] = np.minimum(np.maximum(distance - range_m, 0.0) / range_m, FARTHEST)
    edge[row, slot, 5] = weight
    edge[row, slot, 6] = own
    edge[row, slot, 7] = np.minimum(look.depths[subnet, spot], DEEPEST) / DEEPEST


def link_weights(views: SubnetViews, wanted: np.ndarray, actions: np.ndarray) -> np.ndarray:
    """(n,) the weight of every UAV in link keeping: the policy's, or how far its wish is from its subnet's mean."""
    if actions.shape[1] > 2:
        return np.exp(actions[:, 2])
    apart = wanted - views.means(wanted)[views.subnet]
    return LIGHTEST + np.minimum(np.hypot(apart[:, 0], apart[:, 1]) / views.mission.physics.speed_mps, 1.0)
