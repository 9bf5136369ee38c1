"""Graphs of many worlds at once, for learning: built from padded arrays, joined, and drawn from."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence

import numpy as np

from phygail.config import LINK_TOLERANCE_M, Registry
from phygail.methods.phygail.graph import NODE_FEATURES, PAPER, Graph, GraphSpec, Surroundings, assemble
from phygail.swarm.batch import BatchState
from phygail.swarm.links import group_means
from phygail.swarm.scenario import Scenario


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
    limit_m = np.broadcast_to(range_m, worlds)[:, None, None] + LINK_TOLERANCE_M
    if linked is None:
        linked = (_distances(positions, positions) <= limit_m) & alive[:, :, None] & alive[:, None, :]
        linked[:, np.arange(n), np.arange(n)] = False
    world, i, j = np.nonzero(linked)
    near = (_distances(positions, spots) <= limit_m) & alive[:, :, None] & damaged[:, None, :]
    home, watcher, spot = np.nonzero(near if spec.k_dmg else near[:, :, :0])
    world_of, flat = np.nonzero(alive)[0], positions[alive]
    group, owner, origins = world_of, np.arange(worlds), center
    if spec.recenter:
        if subnet is None:
            raise ValueError("recentering on the centroids of the subnets needs their labels")
        labels, group = np.unique(world_of * n + subnet[alive], return_inverse=True)
        owner = labels // n
        origins = group_means(group, flat, len(labels))
    around = Surroundings(
        flat, velocities[alive], (row[world, i], row[world, j]), spots.reshape(-1, 2),
        (row[home, watcher], home * spots.shape[1] + spot), group, origins, center[owner],
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
        None if graphs[0].edge is None else np.concatenate([g.edge for g in graphs]),
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
        number[graph.world[nodes]], int(chosen.sum()), None if graph.edge is None else graph.edge[rows],
    )  # fmt: skip
    return picked, rows


def _distances(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """(B, n, m) m, between every row of a (B, n, 2) and of b (B, m, 2) of the same world."""
    offsets = a[:, :, None, :] - b[:, None, :, :]
    return np.hypot(offsets[..., 0], offsets[..., 1])


def observe(state: BatchState, spec: GraphSpec) -> Graph:
    """The graphs of all worlds now; receivers are the alive rows, world by world."""
    spots, damaged = damage_table(tuple(state.scenarios))
    cases = state.cases
    range_m = np.array([scenario.physics.range_m for scenario in state.scenarios])
    return perceive_batch(
        state.positions, state.velocities, state.mask, spots, damaged, cases.center.T, cases.width_m, range_m,
        cases.speed_mps, spec, subnet=state.subnet, linked=state.adjacency,
    )  # fmt: skip


@functools.lru_cache(maxsize=8)  # worlds change far more rarely than they step
def damage_table(scenarios: tuple[Scenario, ...]) -> tuple[np.ndarray, np.ndarray]:
    """(B, k, 2) m, where the damaged of every scenario are, and (B, k) bool, which entries are real."""
    most = max(len(scenario.damaged) for scenario in scenarios)
    spots = np.zeros((len(scenarios), most, 2))
    damaged = np.zeros((len(scenarios), most), dtype=bool)
    for b, scenario in enumerate(scenarios):
        lost = len(scenario.damaged)
        spots[b, :lost], damaged[b, :lost] = scenario.layout[scenario.damaged], True
    spots.flags.writeable = damaged.flags.writeable = False  # shared by the steps to come
    return spots, damaged


def fill_commands(state: BatchState, actions: np.ndarray) -> np.ndarray:
    """(B, n, 2) m/s: v_max times the actions ((receivers, 2)) in their rows; the world projects them."""
    commands = np.zeros_like(state.positions)
    commands[state.mask] = actions
    return commands * state.cases.speed_mps[:, None, None]


class Observation:
    """What a policy reads of B worlds, and how its answers become velocities: the paper's, which needs no memory.

    A policy that knows more derives from it (`OBSERVATIONS`); learning and validation call nothing else. One object
    follows one batch of worlds: `begin` first, then `observe` before every decision and `steer` before every step.

    Attributes:
        features, edge_features: Numbers per node and per edge. types: Node types.
        spec: Who is attended to.
    """

    features: int = len(NODE_FEATURES)
    edge_features: int = 0
    types: int = 3

    def __init__(self, spec: GraphSpec = PAPER) -> None:
        self.spec = spec

    def begin(self, state: BatchState, worlds: np.ndarray) -> None:
        """The worlds ((k,) int) of `state` hold another scenario than before."""

    def keep(self, worlds: np.ndarray) -> None:
        """Only the worlds ((B,) bool) fly on; the others are dropped from the batch."""

    def save(self) -> dict[str, np.ndarray]:
        """What it remembers of the worlds, for an epoch that flies on; names that `CaseSource.save` does not use."""
        return {}

    def load(self, memory: Mapping[str, np.ndarray]) -> None:
        """Remember again what `save` gave."""

    def observe(self, state: BatchState) -> Graph:
        """The graphs of all worlds; receivers are the alive rows, world by world."""
        return observe(state, self.spec)

    def wanted(self, state: BatchState, actions: np.ndarray) -> np.ndarray:
        """(B, n, 2) m/s, what the actions ((receivers, 2), of v_max) ask for in the state they were decided in."""
        return fill_commands(state, actions)

    def steer(self, state: BatchState, wanted: np.ndarray) -> np.ndarray:
        """(B, n, 2) m/s to fly in this step of a held command."""
        return wanted


OBSERVATIONS: Registry[type[Observation]] = Registry("observation")
OBSERVATIONS.add("paper", Observation)
