"""HERO (METHODS 3.2, after Mi, Yang, Liu 2011): neighbors of the failed take their places, the others follow."""

from __future__ import annotations

from typing import Literal

import numpy as np

from phygail.config import LINK_TOLERANCE_M, InputError
from phygail.methods.base import SubnetMethod, register
from phygail.methods.steering import go, link_keeping, repulsion
from phygail.sensing.views import SubnetView, SubnetViews
from phygail.swarm.links import group_means, near_pairs


@register
class Hero(SubnetMethod):
    """v_i = go(p_i -> T_i) + rep_i + link_i.

    Leaders (some pre-damage neighbor k in N_i^0 was lost at t = 0) fly to T_i = mean of P_k. Followers keep their
    offset: T_i(t) = P_i + mean over the alive pre-damage neighbors j of (p_j(t) - P_j), and T_i = P_i without any.
    There is no second plan: a swarm that is still split when all targets are reached stays split. This is a known limit
    of the method.

    A UAV can know this: a pre-damage neighbor is in range at t = 0, so an alive one is in the same subnet, and one
    that does not answer is damaged. A neighbor that leaves the subnet afterwards counts with the displacement that it
    had when it was last heard.
    """

    name = "hero"
    summary = "neighbors of the failed take their places, the others follow (Mi, Yang, Liu 2011)"

    def __init__(
        self,
        rng: np.random.Generator | None = None,
        *,
        responder: Literal["all", "closest"] = "all",
        center_mix: float = 0.0,
        rep: bool = True,
        link: bool = True,
    ) -> None:
        """Options of the rule.

        Args:
            rng: Unused.
            responder: Who answers a failure: "all" its alive neighbors, or in each subnet only the "closest" to it (a
                subnet cannot know whether a closer neighbor lives on in another one); the rest then follow.
            center_mix: Share of go(p_i -> c) in the command; 0.2 is "HERO + centering" of earlier public code.
            rep: Add the repulsion.
            link: Add the pull of long links.
        """
        super().__init__(rng)
        if responder not in ("all", "closest"):
            raise InputError(f"responder {responder!r}: choose 'all' or 'closest'")
        if not 0.0 <= center_mix <= 1.0:
            raise InputError(f"center_mix {center_mix}: choose from 0 to 1")
        self.responder, self.center_mix, self.rep, self.link = responder, center_mix, rep, link
        self._memory: _Memory | None = None

    def act(self, view: SubnetView) -> np.ndarray:
        return self.act_all(view.alone())

    def act_all(self, views: SubnetViews) -> np.ndarray:
        physics = views.mission.physics
        if self._memory is None:
            self._memory = _Memory(views.roster, physics.range_m, closest_only=self.responder == "closest")
        command = go(views.positions, self._memory.targets(views), physics, views.mission.map)
        if self.rep:
            command = command + repulsion(views.positions, views.pairs, views.lengths, views.members, physics)
        if self.link:
            command = command + link_keeping(views.positions, views.pairs, views.lengths, physics)
        centering = go(views.positions, views.mission.center, physics, views.mission.map)
        return (1.0 - self.center_mix) * command + self.center_mix * centering


class _Memory:
    """What the UAVs remember; each knows only what its own subnet told it.

    Edge e says that UAV owner[e] had UAV other[e] in range before the damage; each link gives two edges.
    """

    def __init__(self, roster: np.ndarray, range_m: float, *, closest_only: bool) -> None:
        pairs, lengths = near_pairs(roster, range_m + LINK_TOLERANCE_M)
        self.roster = roster
        self.closest_only = closest_only
        self.owner = np.concatenate([pairs[:, 0], pairs[:, 1]])
        self.other = np.concatenate([pairs[:, 1], pairs[:, 0]])
        self.length = np.concatenate([lengths, lengths])
        self.heard = np.zeros((len(self.owner), 2))  # m, displacement of `other` when its owner last heard of it
        self.failed = np.zeros(len(self.owner), dtype=bool)  # the owner found `other` damaged at t = 0
        self.answered = np.zeros(len(self.owner), dtype=bool)  # ... and takes its place
        self.started = np.zeros(len(roster), dtype=bool)

    def targets(self, views: SubnetViews) -> np.ndarray:
        """(n, 2) m, T_i of every row, after taking in what the rows say now."""
        members = views.members
        label = np.full(len(self.roster), -1, dtype=np.intp)
        label[members] = views.subnet
        mine = label[self.owner] >= 0
        together = mine & (label[self.owner] == label[self.other])
        first = mine & ~self.started[self.owner]
        if first.any():
            self._find_failed(first & ~together, label)
        self.started[members] = True

        displacement = np.zeros_like(self.roster)
        displacement[members] = views.positions - self.roster[members]
        self.heard[together] = displacement[self.other[together]]
        lead, places = self._mean(mine & self.answered, self.roster[self.other])
        follow, _ = self._mean(mine & ~self.failed, self.heard)
        return np.where(places[:, None] > 0, lead, self.roster + follow)[members]

    def _find_failed(self, damaged: np.ndarray, label: np.ndarray) -> None:
        """Note the edges ((E,) bool) whose other end is damaged, and which owners answer."""
        self.failed |= damaged
        if self.closest_only:
            edges = np.flatnonzero(damaged)
            # Per failed UAV and subnet the shortest edge comes first; equal lengths go to the lower index.
            keys = (self.owner[edges], self.length[edges], label[self.owner[edges]], self.other[edges])
            edges = edges[np.lexsort(keys)]
            group = np.stack([self.other[edges], label[self.owner[edges]]], axis=1)
            damaged = np.zeros_like(damaged)
            damaged[edges[np.unique(group, axis=0, return_index=True)[1]]] = True
        self.answered |= damaged

    def _mean(self, chosen: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Mean of `values` ((E, 2)) over the chosen edges of each owner ((N, 2), zero without any); their number."""
        owner = self.owner[chosen]
        count = len(self.roster)
        return group_means(owner, values[chosen], count), np.bincount(owner, minlength=count)
