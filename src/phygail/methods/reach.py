"""reach (METHODS 8.4): fly for the teammates you have not yet ruled out, and keep your own links meanwhile."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.spatial import cKDTree

from phygail.groups import group_sums
from phygail.methods.base import SubnetMethod, register
from phygail.methods.forces import go
from phygail.methods.links import keep_links
from phygail.methods.sidr import LATE, aggregate
from phygail.perception.view import SubnetView, SubnetViews
from phygail.swarm.dynamics import project_speed


@dataclass(frozen=True)
class ReachConstants:
    """All our own choice, tuned on seeds of their own and frozen (docs/methods/reach.md).

    Lengths hold for a radio range of 120 m; for another one they are scaled (`Physics.unit`).
    """

    gain: float = 60.0  # pull of a spot at radio range, in units of v_max, when everybody has survived
    fade_m: float = 160.0  # the pull falls linearly to zero while a UAV could fly this far
    decay_m: float = 90.0  # a spot this much farther pulls e times less
    horizon_m: float = 260.0  # spots farther than this do not pull
    silent_margin_m: float = 1.0  # after t = 0 a spot counts as silent once it is this far inside the radio range


@register
class Reach(SubnetMethod):
    """v_i = v_max (u_S + A sum of pulls), links of the subnet's minimum spanning tree kept.

    Each UAV carries the set of roster spots that it, or anyone it has met, found silent: whoever is in range and does
    not answer is gone. Every other absent teammate may be alive at its spot, and the nearest member reaches out.
    """

    name = "reach"
    summary = "subnets head for the center and reach out to teammates not yet ruled out"
    reckons = True
    own_centers = True

    def __init__(self, rng: np.random.Generator | None = None, *, constants: ReachConstants | None = None) -> None:
        super().__init__(rng)
        self.constants = constants or ReachConstants()
        self._silent: np.ndarray | None = None  # (N, N) bool, row k: what UAV k knows to be silent
        self._spots: cKDTree | None = None  # the roster never moves, but what is known of it may

    def act(self, view: SubnetView) -> np.ndarray:
        return self.act_all(view.alone())

    def act_all(self, views: SubnetViews) -> np.ndarray:
        physics = views.mission.physics
        base = go(views.means(views.positions), views.centers, physics)[views.subnet]
        wanted = project_speed(base + physics.speed_mps * self._pulls(views), physics.speed_mps)
        commands, late = aggregate(views, keep_links(views, wanted))
        self.flag = LATE if late else self.flag
        return commands

    def tell(self, member: int) -> np.ndarray | None:
        return None if self._silent is None else self._silent[member].copy()

    def hear(self, member: int, news: np.ndarray) -> None:
        if self._silent is not None:
            self._silent[member] |= news

    def _pulls(self, views: SubnetViews) -> np.ndarray:
        """(n, 2) A times the sum of pulls on each UAV, in units of v_max."""
        constants, physics = self.constants, views.mission.physics
        rows, spots, distance = self._near_spots(views)
        silent = self._listen(views, rows, spots, distance)
        label = views.subnet[rows]
        open_spot = ~silent[label, spots] & (distance < constants.horizon_m * physics.unit)
        rows, spots, distance, label = (a[open_spot] for a in (rows, spots, distance, label))
        # The nearest member of each subnet answers for a spot; ties go to the lowest row.
        order = np.lexsort((rows, distance, spots, label))
        key = label[order] * len(views.roster) + spots[order]
        first = order[np.flatnonzero(np.diff(key, prepend=-1))]
        rows, spots, distance, label = (a[first] for a in (rows, spots, distance, label))
        survival = (views.sizes + 0.5) / (views.sizes + silent.sum(axis=1) + 1.0)
        fade = max(0.0, 1.0 - views.step * physics.stride_m / (constants.fade_m * physics.unit))
        decay = np.exp(-(distance - physics.range_m) / (constants.decay_m * physics.unit))
        strength = constants.gain * survival[label] ** 2 * fade * decay
        pull = strength[:, None] * (views.roster[spots] - views.positions[rows]) / np.maximum(distance, 1e-9)[:, None]
        return group_sums(rows, pull, len(views.positions))

    def _near_spots(self, views: SubnetViews) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(row, roster index, m) of every spot of an absent teammate near a UAV."""
        if self._spots is None or not np.array_equal(self._spots.data, views.roster):
            self._spots = cKDTree(views.roster)
        physics = views.mission.physics
        radius = max(self.constants.horizon_m * physics.unit, physics.range_m)
        found = cKDTree(views.positions).sparse_distance_matrix(self._spots, radius, output_type="ndarray")
        member_of = np.full(len(views.roster), -1)
        member_of[views.members] = views.subnet
        absent = member_of[found["j"]] != views.subnet[found["i"]]
        return found["i"][absent], found["j"][absent], found["v"][absent]

    def _listen(self, views: SubnetViews, rows: np.ndarray, spots: np.ndarray, distance: np.ndarray) -> np.ndarray:
        """(count, N) bool, what each subnet knows to be silent now; united on a merge, remembered by every member."""
        if self._silent is None:
            self._silent = np.zeros((len(views.roster), len(views.roster)), dtype=bool)
        order = np.concatenate(views.rows)
        starts = np.concatenate([[0], np.cumsum(views.sizes)[:-1]])
        silent = np.logical_or.reduceat(self._silent[views.members[order]], starts, axis=0)
        if views.step == 0:
            rows, spots = views.damaged_in_range.T  # radio tells them, however noisy the positions are
        else:
            physics = views.mission.physics
            near = distance <= physics.range_m - self.constants.silent_margin_m * physics.unit
            rows, spots = rows[near], spots[near]
        silent[views.subnet[rows], spots] = True
        silent[views.subnet, views.members] = False
        self._silent[views.members] = silent[views.subnet]
        return silent
