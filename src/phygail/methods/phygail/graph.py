"""The bounded heterogeneous graph of the paper as a dense slot table, and what the network reads about a node
(METHODS 4.1, paper IV-B).

Every alive UAV is a receiver with a fixed number of slots: its K_act nearest linked UAVs, its K_dmg nearest damaged
UAVs in range, and the center. The cost per UAV does not depend on the size of the swarm.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType

import numpy as np

from phygail.config import InputError
from phygail.sensing.views import News, SubnetView, SubnetViews
from phygail.swarm.links import group_means

FIXED_SCALE_M = 160.0  # W/2 of the 20-UAV map: the scale of the ablation in which 120 m always reads 0.75

ACTIVE, DAMAGED, CENTER, LOST = 0, 1, 2, 3  # node types; the kind of an edge is the type of its sender
ALL_SLOTS = 64  # "without KNN": all linked UAVs; beyond this many within 120 m the nearest


@dataclass(frozen=True)
class Feature:
    """One column of the node features: its name, meaning, and what it is divided by."""

    name: str
    meaning: str
    scale: str


NODE_FEATURES: tuple[Feature, ...] = (
    Feature("x", "east of the center (of the subnet's centroid where that is the origin)", "W_scale = W/2"),
    Feature("y", "north of the center", "W_scale = W/2"),
    Feature("vx", "executed velocity of the previous step, east; zero at t = 0, for damaged and center", "v_max"),
    Feature("vy", "the same, north", "v_max"),
    Feature(
        "degree", "ln(1 + in-degree in this graph); zero for damaged and center", "ln(1 + slots), ln 13 in the paper"
    ),
)


def node_features(
    offsets: np.ndarray,
    scale_m: np.ndarray | float,
    velocities: np.ndarray,
    speed_mps: np.ndarray | float,
    degree: np.ndarray,
    slots: int,
    dtype: type[np.floating] = np.float32,
) -> np.ndarray:
    """(M, 5) of `dtype` in the order of `NODE_FEATURES` (eq. 13, eq. 14, eq. 15, eq. 16).

    The first n nodes are alive, the others neither move nor receive.

    Args:
        offsets: (M, 2) m, from the origin to every node.
        scale_m: W_scale, one for all or (M, 1).
        velocities: (n, 2) m/s. speed_mps: v_max, one for all or (n, 1).
        degree: (n,) int, filled slots of every receiver. slots: Delta, the most there can be.
        dtype: Precision of the network that reads them.
    """
    features = np.zeros((len(offsets), len(NODE_FEATURES)), dtype=dtype)
    features[:, :2] = offsets / scale_m
    features[: len(velocities), 2:4] = velocities / speed_mps
    features[: len(velocities), 4] = np.log1p(degree) / math.log1p(slots)
    return features


@dataclass(frozen=True)
class GraphSpec:
    """What a UAV attends to. The defaults are the paper's; `GRAPHS` names the ablations of METHODS 4.7.

    Attributes:
        k_act: Most linked UAVs per receiver, the nearest first.
        k_dmg: Most damaged UAVs per receiver; 0 leaves them out.
        center: Whether the center is a node.
        recenter: Positions relative to the subnet's centroid instead of the center, which would leak it.
        scale_m: W_scale; None for W/2 of the current map.
        k_lost: Most lost teammates per receiver (`methods.phygail.plus`); none in the paper.
        lost_horizon: How far away those may be, in radio ranges.
        beliefs: What is believed of them (`plus.BELIEFS`).
        own_lost: Whether those come first of which the receiver is its subnet's nearest member.
    """

    k_act: int = 8
    k_dmg: int = 3
    center: bool = True
    recenter: bool = False
    scale_m: float | None = None
    k_lost: int = 0
    lost_horizon: float = 3.0
    own_lost: bool = False
    beliefs: str = "soft"

    def __post_init__(self) -> None:
        if self.k_act < 1 or self.k_dmg < 0:
            raise InputError(f"k_act {self.k_act} must be at least 1 and k_dmg {self.k_dmg} at least 0")
        if self.scale_m is not None and not 0 < self.scale_m < np.inf:
            raise InputError(f"scale_m {self.scale_m} must be a positive number of meters, or None for W/2")

    @property
    def slots(self) -> int:
        """Delta = K_act + K_dmg + 1: the largest in-degree (eq. 12)."""
        return self.k_act + self.k_dmg + int(self.center) + self.k_lost


PAPER = GraphSpec()
GRAPHS: Mapping[str, GraphSpec] = MappingProxyType(
    {
        "paper": PAPER,
        "no-knn": GraphSpec(k_act=ALL_SLOTS),
        "no-damaged": GraphSpec(k_dmg=0),
        "no-center": GraphSpec(center=False),
        "no-center-recentered": GraphSpec(center=False, recenter=True),
        "fixed-scale": GraphSpec(scale_m=FIXED_SCALE_M),
        **{f"k-act-{k}": GraphSpec(k_act=k) for k in (1, 2, 4, 6, 12)},  # the paper's sensitivity to its two budgets
        **{f"k-dmg-{k}": GraphSpec(k_dmg=k) for k in (1, 2, 5)},
    }
)


@dataclass(frozen=True)
class Edges:
    """The filled slots as a list, ordered by receiver.

    Attributes:
        receiver: (E,) int, row. sender: (E,) int, node.
        place: (n, S) int, number of the edge in every slot; E where the slot is empty.
    """

    receiver: np.ndarray
    sender: np.ndarray
    place: np.ndarray


@dataclass(frozen=True, eq=False)
class Graph:
    """One or many graphs in one flat node table. The first n nodes are the receivers; damaged and center nodes follow.

    Attributes:
        features: (M, 5) float32, float64 for a network of that precision; `NODE_FEATURES`.
        types: (M,) int, ACTIVE, DAMAGED or CENTER.
        index: (n, S) int, sender of every slot, a node; 0 where empty.
        mask: (n, S) bool, whether the slot is filled.
        kinds: (S,) int, edge kind of every column.
        world: (M,) int, graph of every node, 0..count-1, ascending over the receivers.
        count: Number of graphs.
        edge: (n, S, F_e) float32, what a receiver knows of every slot's edge; None where it knows no more.
    """

    features: np.ndarray
    types: np.ndarray
    index: np.ndarray
    mask: np.ndarray
    kinds: np.ndarray
    world: np.ndarray
    count: int
    edge: np.ndarray | None = None

    @property
    def kind(self) -> np.ndarray:
        """(n, S) int, edge kind of every slot."""
        return np.broadcast_to(self.kinds, self.index.shape)

    @property
    def receivers(self) -> int:
        """Number n of nodes that receive messages."""
        return len(self.index)

    @cached_property
    def edges(self) -> Edges:
        """The filled slots only: about nine of twelve at N = 500."""
        receiver, column = map(np.ascontiguousarray, np.nonzero(self.mask))
        place = np.full(self.index.shape, len(receiver), dtype=np.int64)
        place[receiver, column] = np.arange(len(receiver))
        return Edges(receiver, self.index[receiver, column], place)


@dataclass(frozen=True, eq=False)
class Surroundings:
    """Places of UAVs and what each could attend to: what `assemble` turns into graphs.

    A group is a set of receivers that measure from the same origin and so share damaged and center nodes.

    Attributes:
        positions: (n, 2) m, of the receivers. velocities: (n, 2) m/s, executed in the step before.
        links: (receiver, sender) rows of every candidate neighbor, two (e,) int arrays.
        spots: (k, 2) m, damaged. near: (receiver, spot) of every damaged UAV in range.
        group: (n,) int, of every receiver.
        origins, centers: (f, 2) m. scales: (f,) m, W_scale. speeds: (f,) m/s, v_max.
        worlds: (f,) int, graph of every group.
        count: Number of graphs.
    """

    positions: np.ndarray
    velocities: np.ndarray
    links: tuple[np.ndarray, np.ndarray]
    spots: np.ndarray
    near: tuple[np.ndarray, np.ndarray]
    group: np.ndarray
    origins: np.ndarray
    centers: np.ndarray
    scales: np.ndarray
    speeds: np.ndarray
    worlds: np.ndarray
    count: int = 1


def perceive(view: SubnetView | SubnetViews, spec: GraphSpec = PAPER, dtype: type[np.floating] = np.float32) -> Graph:
    """The graph of one subnet, or of all at once (no edge ever crosses two): row r of the view is receiver r.

    With delayed neighbors (`view.news`) the view's rows are followed by as many twins: UAV r as the others know it.
    Receivers listen to twins, twins to twins, so that only a UAV's own state is current, in every layer.
    """
    group, groups = (view.subnet, view.count) if isinstance(view, SubnetViews) else (_zeros(len(view.members)), 1)
    centers = view.centers if isinstance(view, SubnetViews) else view.mission.center[None]
    origins = centers
    if spec.recenter:
        origins = group_means(group, view.news.positions if view.news else view.positions, groups)
    if groups > 1 and (origins == origins[0]).all():
        # All measure from the same point: one center and one node per damaged UAV serve every subnet.
        group, groups, origins, centers = np.zeros_like(group), 1, origins[:1], centers[:1]
    links = (np.concatenate([view.pairs[:, 0], view.pairs[:, 1]]), np.concatenate([view.pairs[:, 1], view.pairs[:, 0]]))
    near, spots = np.empty((0, 2), dtype=np.intp), view.roster
    if spec.k_dmg:
        near, spots = view.damaged_in_range, np.array(view.roster)
        spots[near[:, 1]] = view.damaged_spots  # a UAV lost in flight lies elsewhere
    around = Surroundings(
        view.positions, view.velocities, links, spots, (near[:, 0], near[:, 1]), group, origins, centers,
        np.full(groups, spec.scale_m or view.mission.width_m / 2), np.full(groups, view.mission.physics.speed_mps),
        _zeros(groups),
    )  # fmt: skip
    if view.news:
        around = _with_twins(around, view.news)
    return assemble(around, spec, dtype)


def assemble(around: Surroundings, spec: GraphSpec, dtype: type[np.floating] = np.float32) -> Graph:
    """Fill the slots of every receiver: nearest first, ties by index (METHODS 4.1, eq. 11)."""
    n = len(around.positions)
    index = np.zeros((n, spec.slots), dtype=np.int64)
    mask = np.zeros((n, spec.slots), dtype=bool)
    peers, damaged = slice(spec.k_act), slice(spec.k_act, spec.k_act + spec.k_dmg)
    index[:, peers], mask[:, peers] = nearest_of(*around.links, around.positions, around.positions, spec.k_act)
    spot, filled = nearest_of(*around.near, around.positions, around.spots, spec.k_dmg)
    # One node per damaged UAV and group, however many receivers attend to it.
    keys, node = np.unique((around.group[:, None] * len(around.spots) + spot)[filled], return_inverse=True)
    spot[filled] = n + node
    index[:, damaged], mask[:, damaged] = spot, filled
    damaged_group, damaged_spot = np.divmod(keys, max(1, len(around.spots)))
    center_group = np.arange(len(around.origins) if spec.center else 0)
    if spec.center:
        index[:, -1], mask[:, -1] = n + len(keys) + around.group, True
    group = np.concatenate([around.group, damaged_group, center_group])
    places = np.concatenate([around.positions, around.spots[damaged_spot], around.centers[center_group]])
    features = node_features(
        places - around.origins[group], around.scales[group, None], around.velocities,
        around.speeds[around.group, None], mask.sum(axis=1), spec.slots, dtype,
    )  # fmt: skip
    types = np.repeat([ACTIVE, DAMAGED, CENTER], [n, len(keys), len(center_group)])
    kinds = np.repeat([ACTIVE, DAMAGED, CENTER], [spec.k_act, spec.k_dmg, int(spec.center)])
    return Graph(features, types, index, mask, kinds, around.worlds[group], around.count)


def nearest_of(
    receiver: np.ndarray, sender: np.ndarray, positions: np.ndarray, places: np.ndarray, k: int
) -> tuple[np.ndarray, np.ndarray]:
    """The k nearest candidates of every receiver: senders (n, k), 0 where empty, and a mask (n, k) (eq. 10)."""
    n = len(positions)
    index, mask = np.zeros((n, k), dtype=np.int64), np.zeros((n, k), dtype=bool)
    offsets = places[sender] - positions[receiver]
    order = np.lexsort((sender, np.hypot(offsets[:, 0], offsets[:, 1]), receiver))
    counts = np.bincount(receiver, minlength=n)
    receiver = receiver[order]
    rank = np.arange(len(receiver)) - (np.cumsum(counts) - counts)[receiver]
    kept = rank < k
    index[receiver[kept], rank[kept]] = sender[order[kept]]
    mask[receiver[kept], rank[kept]] = True
    return index, mask


def _with_twins(around: Surroundings, news: News) -> Surroundings:
    """Rows n..2n-1 are the receivers as the others know them; every link starts at a twin."""
    n = len(around.positions)
    (receiver, sender), (watcher, spot) = around.links, around.near
    return Surroundings(
        np.concatenate([around.positions, news.positions]), np.concatenate([around.velocities, news.velocities]),
        (np.concatenate([receiver, receiver + n]), np.concatenate([sender, sender]) + n),
        around.spots, (np.concatenate([watcher, watcher + n]), np.concatenate([spot, spot])),
        np.concatenate([around.group, around.group]), around.origins, around.centers, around.scales,
        around.speeds, around.worlds,
    )  # fmt: skip


def _zeros(n: int) -> np.ndarray:
    return np.zeros(n, dtype=np.int64)
