"""What an episode is judged by (METHODS 2.6)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from phygail.swarm.state import SwarmState

CONTACT_RATE_CAP = 2.0  # the cap that reproduces the paper's collision column (METHODS F4)
MOVED_SHARE = 1 / 12_000  # of the radio range, 0.01 m at 120 m: whoever flew less has not moved


@dataclass(frozen=True)
class Metrics:
    """Figures of one episode.

    Attributes:
        contact_events_per_uav: Times a pair goes from at least the contact distance (10 m) to less, over n:
            the honest collisions per UAV.
        contact_rate_raw: (1/dt) mean over steps of the pairs in contact, over n, 1/s.
        contact_rate_capped: min(2, contact_rate_raw).
        distance_m_per_uav: Mean path length.
        max_speed_mps: Fastest executed speed of any UAV.
        longest_m: Longest path of a UAV.
        moved: UAVs whose path is longer than `MOVED_SHARE` of the radio range.
    """

    contact_events_per_uav: float
    contact_rate_raw: float
    contact_rate_capped: float
    distance_m_per_uav: float
    max_speed_mps: float
    longest_m: float
    moved: int


class Meter:
    """Counts along an episode: `see` every state in order, beginning with the initial one."""

    def __init__(self, first: SwarmState) -> None:
        self._alive = len(first.positions)
        self._step_s = first.scenario.physics.step_s
        self._touching = self._codes(first)
        self._events = self._pair_steps = self._steps = 0
        self._distance = self._fastest = 0.0
        self._paths = np.zeros(self._alive)  # m, of every UAV
        self._still_m = MOVED_SHARE * first.scenario.physics.range_m

    def _codes(self, state: SwarmState) -> np.ndarray:
        """One sorted number per pair in contact."""
        contacts = state.links.contacts
        return np.sort(contacts[:, 0] * self._alive + contacts[:, 1])

    def see(self, state: SwarmState) -> None:
        """Count one executed step."""
        touching = self._codes(state)
        if len(touching):
            self._events += int(np.isin(touching, self._touching, assume_unique=True, invert=True).sum())
            self._pair_steps += len(touching)
        self._touching = touching
        speed = np.hypot(state.velocities[:, 0], state.velocities[:, 1])
        self._distance += float(speed.sum()) * self._step_s
        self._paths += speed * self._step_s
        self._fastest = max(self._fastest, float(speed.max()))
        self._steps += 1

    def result(self) -> Metrics:
        """The figures so far; all zero for an episode without a step."""
        rate = self._pair_steps / max(1, self._steps) / self._alive / self._step_s
        return Metrics(
            self._events / self._alive, rate, min(CONTACT_RATE_CAP, rate), self._distance / self._alive, self._fastest,
            float(self._paths.max()), int((self._paths > self._still_m).sum()),
        )  # fmt: skip
