"""A batch of expert frames, padded the way the batched graph builder takes them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from phygail.config import LINK_TOLERANCE_M
from phygail.perception.batch import perceive_batch
from phygail.perception.graph import PAPER, Graph, GraphSpec
from phygail.swarm.batch_links import lowest_rows


@dataclass(frozen=True, eq=False)
class FrameBatch:
    """B frames of up to n alive and k damaged UAVs; padding is zero. Names are those of `perceive_batch`.

    Attributes:
        positions: (B, n, 2) m, at t.
        velocities: (B, n, 2) m/s, executed at t - 1; zero at t = 0. Never the action at t, which would give the label
            away (METHODS F7).
        actions: (B, n, 2) m/s, executed at t.
        alive: (B, n) bool, real rows.
        spots: (B, k, 2) m, where the damaged are. damaged: (B, k) bool, real spots.
        center: (B, 2) m. width_m: (B,) m. range_m: (B,) m. speed_mps: (B,) m/s.
        scenario: (B,) int, within the archive. step: (B,) int, t.
    """

    positions: np.ndarray
    velocities: np.ndarray
    actions: np.ndarray
    alive: np.ndarray
    spots: np.ndarray
    damaged: np.ndarray
    center: np.ndarray
    width_m: np.ndarray
    range_m: np.ndarray
    speed_mps: np.ndarray
    scenario: np.ndarray
    step: np.ndarray

    def __len__(self) -> int:
        return len(self.alive)

    def graph(self, spec: GraphSpec = PAPER) -> Graph:
        """What the UAVs see, one receiver per alive UAV, frame by frame."""
        return perceive_batch(
            self.positions, self.velocities, self.alive, self.spots, self.damaged, self.center, self.width_m,
            self.range_m, self.speed_mps, spec, subnet=self._subnet() if spec.recenter else None,
        )  # fmt: skip

    @property
    def commands(self) -> np.ndarray:
        """(receivers, 2) float32, executed velocity / v_max in the order of the graph's receivers."""
        return (self.actions / self.speed_mps[:, None, None])[self.alive].astype(np.float32)

    def _subnet(self) -> np.ndarray:
        """(B, n) int, the lowest row of every row's subnet."""
        offsets = self.positions[:, :, None] - self.positions[:, None]
        linked = np.hypot(offsets[..., 0], offsets[..., 1]) <= self.range_m[:, None, None] + LINK_TOLERANCE_M
        linked &= self.alive[:, :, None] & self.alive[:, None]
        return lowest_rows(linked.transpose(1, 2, 0)).T
