"""Graphs of many worlds at once, for learning: built from padded arrays, joined, and drawn from."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from phygail.config import LINK_TOLERANCE_M
from phygail.groups import group_means
from phygail.perception.graph import PAPER, Graph, GraphSpec, Surroundings, assemble


def perceive_batch(
    positions: np.ndarray,
    velocities: np.ndarray,
    alive: np.ndarray,
    spots: np.ndarray,
    damaged: np.ndarray,
    center: np.ndarray,
    width_m: np.ndarray,
    range_m: np.ndarray | float,
    speed_mps: np.ndarray | float,
    spec: GraphSpec = PAPER,
    *,
    subnet: np.ndarray | None = None,
    linked: np.ndarray | None = None,
) -> Graph:
    """The graphs of B padded worlds; equal to `perceive` on each. Receivers are the alive rows, world by world.

    Args:
        positions: (B, n, 2) m. velocities: (B, n, 2) m/s, executed in the step before. alive: (B, n) bool, real rows.
        spots: (B, k, 2) m, of the damaged. damaged: (B, k) bool, real spots.
        center: (B, 2) m. width_m: (B,) m. range_m, speed_mps: Radio and vehicle, one for all worlds or (B,).
        spec: What a UAV attends to.
        subnet: (B, n) int, labels within each world; needed to recenter.
        linked: (B, n, n) bool, the links, if already known.
    """
    worlds, n = alive.shape
    row = np.cumsum(alive).reshape(alive.shape) - 1  # flat receiver of every real row
    reach = np.broadcast_to(range_m, worlds)[:, None, None] + LINK_TOLERANCE_M
    if linked is None:
        linked = (_distances(positions, positions) <= reach) & alive[:, :, None] & alive[:, None, :]
        linked[:, np.arange(n), np.arange(n)] = False
    world, i, j = np.nonzero(linked)
    near = (_distances(positions, spots) <= reach) & alive[:, :, None] & damaged[:, None, :]
    home, watcher, spot = np.nonzero(near if spec.k_dmg else near[:, :, :0])
    world_of, flat = np.nonzero(alive)[0], positions[alive]
    frame, owner, origins = world_of, np.arange(worlds), center
    if spec.recenter:
        if subnet is None:
            raise ValueError("recentering on the centroids of the subnets needs their labels")
        labels, frame = np.unique(world_of * n + subnet[alive], return_inverse=True)
        owner = labels // n
        origins = group_means(frame, flat, len(labels))
    around = Surroundings(
        flat, velocities[alive], (row[world, i], row[world, j]), spots.reshape(-1, 2),
        (row[home, watcher], home * spots.shape[1] + spot), frame, origins, center[owner],
        np.full(len(owner), spec.scale_m) if spec.scale_m else width_m[owner] / 2,
        np.broadcast_to(speed_mps, worlds)[owner], owner, worlds,
    )  # fmt: skip
    return assemble(around, spec)


def join(graphs: Sequence[Graph]) -> Graph:
    """One flat table of several; the worlds of the second follow those of the first, and so on."""
    receivers = [g.receivers for g in graphs]
    others = [len(g.types) - g.receivers for g in graphs]
    total = sum(receivers)
    rows = np.concatenate([[0], np.cumsum(receivers)])
    rest = total + np.concatenate([[0], np.cumsum(others)])
    first = np.concatenate([[0], np.cumsum([g.count for g in graphs])])
    index = [
        np.where(g.index < n, g.index + rows[k], g.index - n + rest[k]) * g.mask
        for k, (g, n) in enumerate(zip(graphs, receivers, strict=True))
    ]

    def stacked(values: list[np.ndarray]) -> np.ndarray:
        """Receivers of all graphs first, then their damaged and center nodes."""
        heads = [v[:n] for v, n in zip(values, receivers, strict=True)]
        tails = [v[n:] for v, n in zip(values, receivers, strict=True)]
        return np.concatenate(heads + tails)

    return Graph(
        stacked([g.features for g in graphs]), stacked([g.types for g in graphs]), np.concatenate(index),
        np.concatenate([g.mask for g in graphs]), graphs[0].kinds,
        stacked([g.world + first[k] for k, g in enumerate(graphs)]), int(first[-1]),
    )  # fmt: skip


def pick(graph: Graph, worlds: np.ndarray) -> tuple[Graph, np.ndarray]:
    """The graphs of some distinct worlds, renumbered in ascending order, and (r,) int, their receivers in `graph`."""
    chosen = np.zeros(graph.count, dtype=bool)
    chosen[worlds] = True
    nodes = np.flatnonzero(chosen[graph.world])
    place = np.zeros(len(graph.world), dtype=np.int64)
    place[nodes] = np.arange(len(nodes))
    rows = nodes[nodes < graph.receivers]
    mask = graph.mask[rows]
    number = np.cumsum(chosen) - 1
    picked = Graph(
        graph.features[nodes], graph.types[nodes], place[graph.index[rows]] * mask, mask, graph.kinds,
        number[graph.world[nodes]], int(chosen.sum()),
    )  # fmt: skip
    return picked, rows


def _distances(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """(B, n, m) m, between every row of a (B, n, 2) and of b (B, m, 2) of the same world."""
    offsets = a[:, :, None, :] - b[:, None, :, :]
    return np.hypot(offsets[..., 0], offsets[..., 1])
