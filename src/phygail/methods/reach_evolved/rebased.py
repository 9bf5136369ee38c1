"""Beliefs for worlds in which teammates are lost, or links fail, in flight (docs/worlds.md).

A teammate that was a member a moment ago is expected where it was last seen, not at its roster spot: its ghost starts
there and then. Each subnet has seen others last, so each has ghosts of its own; on a merge the newer sighting
wins, of two of the same age the deeper belief.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.spatial import cKDTree

from phygail.methods.reach_evolved.beliefs import NEVER, SURE, Beliefs, BeliefSpec
from phygail.sensing.views import SubnetViews


@dataclass(frozen=True)
class _Sightings:
    """What one group of UAVs knows: (N, 2) m last places, (N,) int steps of them, (N,) float32 depths since."""

    places: np.ndarray
    steps: np.ndarray
    depths: np.ndarray


class RebasedBeliefs(Beliefs):
    """`Beliefs` whose ghosts start where and when a teammate was last seen."""

    def __init__(self, spec: BeliefSpec) -> None:
        super().__init__(spec)
        self._known: dict[int, _Sightings] = {}
        self._now = np.empty((0, 0, 2))  # (count, N, 2) m, ghosts of every subnet
        self._since = np.empty((0, 0), dtype=np.intp)  # (count, N) step of the last sighting
        self._last = np.empty((0, 0, 2))
        self._fresh = np.empty((0, 0), dtype=bool)  # (count, N) lost since the step before

    def _advance(self, views: SubnetViews) -> None:
        """What every subnet knows, put where it expects it by now."""
        if not len(self._group):
            self._group = np.full(len(views.roster), -1, dtype=np.intp)
        parts = [self._merged(views, rows) for rows in views.rows]
        self._last = np.stack([part.places for part in parts])
        self._since = np.stack([part.steps for part in parts])
        self._merged_depths = np.stack([part.depths for part in parts])
        gone = self._since < views.step
        gone[views.subnet, views.members] = False
        self._fresh = gone & (self._since == views.step - 1) & (views.step > 1)
        way = self._way_m(views, 1) * (views.step - self._since)
        offset = views.centers[:, None] - self._last
        away = np.hypot(offset[..., 0], offset[..., 1])
        self._now = self._last + offset * np.minimum(way / np.maximum(away, 1e-9), 1.0)[..., None]

    def _merged(self, views: SubnetViews, rows: np.ndarray) -> _Sightings:
        """The newest sightings of all groups whose members have met in this subnet."""
        known = [self._known[group] for group in np.unique(self._group[views.members[rows]]).tolist() if group >= 0]
        if not known:
            count = len(views.roster)
            return _Sightings(np.array(views.roster), np.zeros(count, dtype=np.intp), np.full(count, NEVER))
        best = known[0]
        for other in known[1:]:
            newer = (other.steps > best.steps) | ((other.steps == best.steps) & (other.depths > best.depths))
            best = _Sightings(
                np.where(newer[:, None], other.places, best.places),
                np.where(newer, other.steps, best.steps),
                np.where(newer, other.depths, best.depths),
            )
        return best

    def _recall(self, views: SubnetViews) -> np.ndarray:
        return self._merged_depths.copy()

    def _places(self, views: SubnetViews, subnet: np.ndarray, spot: np.ndarray) -> np.ndarray:
        return self._now[subnet, spot]

    def _share_ghosts(self, views: SubnetViews) -> bool:
        return False

    def _nearest(self, views: SubnetViews, depths: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        horizon = self._horizon_m(views)
        each = [self._of_one(views, depths, label, horizon) for label in range(views.count)]
        return tuple(np.concatenate(parts) for parts in zip(*each, strict=True))  # type: ignore[return-value]  # four

    def _listen(
        self, views: SubnetViews, depths: np.ndarray, subnet: np.ndarray, spot: np.ndarray, distance: np.ndarray
    ) -> None:
        """Nobody answers: how deep is each ghost, and who has just fallen silent in our midst?"""
        physics, spec = views.mission.physics, self.spec
        sure = SURE if views.mission.silence else np.float32(spec.depth_half)  # half believed
        if views.step == 0:
            row, wreck = views.damaged_in_range.T
            depths[views.subnet[row], wreck] = SURE  # recognized as damaged, not merely silent
            return
        flown = physics.speed_mps * physics.step_s * (views.step - self._since[subnet, spot])
        sigma = spec.sigma_m * physics.unit + spec.sigma_rate * flown
        depth = ((physics.range_m - spec.margin_m * physics.unit - distance) / sigma).astype(np.float32)
        # Where links fail, silence says little: nobody is ruled out for good.
        depths[subnet, spot] = np.maximum(depths[subnet, spot], np.minimum(depth, sure))
        for label in np.flatnonzero(self._fresh.any(axis=1)):
            self._missing(views, depths, int(label), sure)

    def _missing(self, views: SubnetViews, depths: np.ndarray, label: int, sure: np.float32) -> None:
        """Who was a member a step ago and is silent now, in the area that the others cover, is gone."""
        physics = views.mission.physics
        lost = np.flatnonzero(self._fresh[label])
        far, _ = cKDTree(views.positions[views.rows[label]]).query(self._last[label, lost])
        inside = far <= physics.range_m - 2.0 * physics.stride_m - self.spec.margin_m * physics.unit
        depths[label, lost[inside]] = np.maximum(depths[label, lost[inside]], sure)

    def _remember(self, views: SubnetViews, depths: np.ndarray) -> None:
        depths[views.subnet, views.members] = NEVER
        self._last[views.subnet, views.members] = views.positions
        self._since[views.subnet, views.members] = views.step
        fresh = self._next + np.arange(views.count)
        self._group[views.members] = fresh[views.subnet]
        self._next += views.count
        for label, group in enumerate(fresh.tolist()):
            self._known[group] = _Sightings(self._last[label], self._since[label], depths[label].copy())
        flying = set(np.unique(self._group).tolist())
        self._known = {group: known for group, known in self._known.items() if group in flying}
