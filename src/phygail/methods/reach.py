"""reach (METHODS 8.4): UAVs fly toward teammates that they have not ruled out, and keep their own links."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.spatial import cKDTree

from phygail.methods.base import SubnetMethod, register
from phygail.methods.sidr import AGGREGATED, aggregate
from phygail.methods.steering import block, keep_links
from phygail.sensing.radio import FLOOD
from phygail.sensing.views import SubnetView, SubnetViews
from phygail.swarm.links import group_sums
from phygail.swarm.simulator import project_speed


@dataclass(frozen=True)
class ReachConstants:
    """Constants of our own choice, tuned on separate seeds and frozen (docs/methods/reach.md).

    Lengths hold for a radio range of 120 m; for another one they are scaled (`Physics.unit`).
    """

    gain: float = 60.0  # pull of a spot at radio range, in units of v_max, if all UAVs have survived
    fade_m: float = 160.0  # the pull falls linearly to zero in the time in which a UAV flies this far
    decay_m: float = 90.0  # a spot this much farther pulls e times less
    horizon_m: float = 260.0  # spots farther than this do not pull
    margin_m: float = 1.0  # after t = 0 a spot is ruled out once it is this far inside the radio range


@register
class Reach(SubnetMethod):
    """v_i = v_max (u_S + A sum of pulls), links of the subnet's minimum spanning tree kept.

    Each UAV carries the set of teammates that it, or any UAV it has met, has ruled out: a teammate in range that does
    not answer is damaged. Every other lost teammate may be alive at its spot, and the nearest member reaches out.
    """

    name = "reach"
    summary = "subnets head for the center and reach out to teammates not yet ruled out"
    dead_reckons = True
    talk = replace(FLOOD, roster_bits=1)  # whether a UAV is ruled out

    def __init__(self, rng: np.random.Generator | None = None, *, constants: ReachConstants | None = None) -> None:
        super().__init__(rng)
        self.constants = constants or ReachConstants()
        self._ruled_out: np.ndarray | None = None  # (N, N) bool, row k: teammates that UAV k has ruled out
        self._spots: cKDTree | None = None  # the roster never moves, but a subnet may learn another one
        self._before: tuple[np.ndarray, np.ndarray] | None = None  # subnets ((N,)) and places ((N, 2) m) a step ago

    def act(self, view: SubnetView) -> np.ndarray:
        return self.act_all(view.alone())

    def act_all(self, views: SubnetViews) -> np.ndarray:
        physics = views.mission.physics
        wanted = project_speed(block(views) + physics.speed_mps * self._pulls(views), physics.speed_mps)
        commands, aggregated = aggregate(views, keep_links(views, wanted))
        self.flag = AGGREGATED if aggregated else self.flag
        return commands

    def act_imperfect(self, views: SubnetViews) -> np.ndarray:
        return self.act_all(views) if views.news is None else super().act_imperfect(views)

    def tell(self, member: int) -> np.ndarray | None:
        return None if self._ruled_out is None else self._ruled_out[member].copy()

    def hear(self, member: int, news: np.ndarray) -> None:
        if self._ruled_out is not None:
            self._ruled_out[member] |= news

    def _pulls(self, views: SubnetViews) -> np.ndarray:
        """(n, 2) A times the sum of pulls on each UAV, in units of v_max."""
        constants, physics = self.constants, views.mission.physics
        rows, spots, distance = self._near_spots(views)
        ruled_out = self._listen(views, rows, spots, distance)
        label = views.subnet[rows]
        open_spot = ~ruled_out[label, spots] & (distance < constants.horizon_m * physics.unit)
        rows, spots, distance, label = (a[open_spot] for a in (rows, spots, distance, label))
        # The nearest member of each subnet answers for a spot; ties go to the lowest row.
        order = np.lexsort((rows, distance, spots, label))
        key = label[order] * len(views.roster) + spots[order]
        first = order[np.flatnonzero(np.diff(key, prepend=-1))]
        rows, spots, distance, label = (a[first] for a in (rows, spots, distance, label))
        survival = (views.sizes + 0.5) / (views.sizes + ruled_out.sum(axis=1) + 1.0)
        fade = max(0.0, 1.0 - views.step * physics.stride_m / (constants.fade_m * physics.unit))
        decay = np.exp(-(distance - physics.range_m) / (constants.decay_m * physics.unit))
        strength = constants.gain * survival[label] ** 2 * fade * decay
        pull = strength[:, None] * (views.roster[spots] - views.positions[rows]) / np.maximum(distance, 1e-9)[:, None]
        return group_sums(rows, pull, len(views.positions))

    def _near_spots(self, views: SubnetViews) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(row, roster index, m) of every spot of a lost teammate near a UAV."""
        if self._spots is None or not np.array_equal(self._spots.data, views.roster):
            self._spots = cKDTree(views.roster)
        physics = views.mission.physics
        radius = max(self.constants.horizon_m * physics.unit, physics.range_m)
        found = cKDTree(views.positions).sparse_distance_matrix(self._spots, radius, output_type="ndarray")
        member_of = np.full(len(views.roster), -1)
        member_of[views.members] = views.subnet
        lost = member_of[found["j"]] != views.subnet[found["i"]]
        return found["i"][lost], found["j"][lost], found["v"][lost]

    def _listen(self, views: SubnetViews, rows: np.ndarray, spots: np.ndarray, distance: np.ndarray) -> np.ndarray:
        """(count, N) bool, teammates that each subnet has ruled out; united on a merge, remembered by every member."""
        if self._ruled_out is None:
            self._ruled_out = np.zeros((len(views.roster), len(views.roster)), dtype=bool)
        order = np.concatenate(views.rows)
        starts = np.concatenate([[0], np.cumsum(views.sizes)[:-1]])
        ruled_out = np.logical_or.reduceat(self._ruled_out[views.members[order]], starts, axis=0)
        if views.step == 0:
            rows, spots = views.damaged_in_range.T  # the radio recognizes them, however noisy the positions are
        elif not views.mission.silence:
            rows, spots = rows[:0], spots[:0]
        else:
            physics = views.mission.physics
            near = distance <= physics.range_m - self.constants.margin_m * physics.unit
            rows, spots = rows[near], spots[near]
        ruled_out[views.subnet[rows], spots] = True
        if views.mission.losses:
            self._mark_missing(views, ruled_out)
        ruled_out[views.subnet, views.members] = False
        self._ruled_out[views.members] = ruled_out[views.subnet]
        return ruled_out

    def _mark_missing(self, views: SubnetViews, ruled_out: np.ndarray) -> None:
        """Where UAVs may be lost in flight: rule out members of a step ago that are now silent within the subnet."""
        label, places = np.full(len(views.roster), -1), np.zeros_like(views.roster)
        label[views.members], places[views.members] = views.subnet, views.positions
        if self._before is not None and views.mission.silence:
            earlier, last = self._before
            limit = views.mission.physics.range_m - 2.0 * views.mission.physics.stride_m
            for rows in views.rows:
                mine = int(views.subnet[rows[0]])
                missing = np.flatnonzero(
                    np.isin(earlier, earlier[views.members[rows]]) & (earlier >= 0) & (label != mine)
                )
                if len(missing):
                    far, _ = cKDTree(views.positions[rows]).query(last[missing])
                    ruled_out[mine, missing[far <= limit]] = True
        self._before = label, places
