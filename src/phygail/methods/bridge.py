"""bridge (METHODS 9.10): only the ends of missing links fly; all UAVs only if that fails."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from phygail.methods.base import SubnetMethod, register
from phygail.methods.classic import follow, network_is_one, plan_range
from phygail.methods.reach import Reach
from phygail.methods.sidr import aggregating
from phygail.methods.steering import go
from phygail.sensing.views import SubnetView, SubnetViews
from phygail.swarm.failures import neighbor_lists
from phygail.swarm.tree import spanning_tree

CALM_SHARE = 0.2  # teammates ruled out per member of a subnet that do not rouse it; one never does
_ROUNDING = 1e-6  # of a step or of the radio range


@dataclass(frozen=True, eq=False)
class Plan:
    """Where the members of a subnet fly, all arriving together.

    Attributes:
        basis: What it was made from: the members and the teammates ruled out.
        ends: Roster indices of the teammates that should come halfway.
        begun: Step at which it was made. steps: How long it takes. pace: Share of the way flown in a step; the
            member with the longest way flies at full speed.
        start, targets: (m, 2) m.
    """

    basis: bytes
    ends: tuple[int, ...]
    begun: int
    steps: int
    pace: float
    start: np.ndarray
    targets: np.ndarray

    def places(self, step: int) -> np.ndarray:
        """(m, 2) m, where each member should be after the step that begins at `step`."""
        return self.start + (self.targets - self.start) * min(1.0, (step + 1 - self.begun) * self.pace)


@register
class Bridge(SubnetMethod):
    """A subnet believes that every teammate it has not ruled out stands at its roster spot.

    The minimum spanning tree of members and believed teammates has edges longer than the radio range: missing links.
    The end of such a link in the subnet flies halfway, and UAVs that would lose it follow. The other end does the same
    if it is alive and its subnet believes the same, as every subnet does after a single failure (Lemma 9.2). If it does
    not come, it is doubted, and the subnet plans anew without it. A subnet that has ruled out more teammates than a few
    failures explain is roused: it flies as `reach` until it joins a larger calm one.
    """

    name = "bridge"
    summary = "only the ends of missing links and their followers fly; reach if that is not enough"
    dead_reckons = True
    talk = Reach.talk

    def __init__(self, rng: np.random.Generator | None = None) -> None:
        super().__init__(rng)
        self._reach = Reach(rng)
        self._plans: dict[int, Plan] = {}  # by roster index, one for all members of a subnet
        self._roused: set[int] = set()  # roster indices
        self._doubted: dict[int, frozenset[int]] = {}  # by roster index: teammates that have not come

    def act(self, view: SubnetView) -> np.ndarray:
        return self.act_all(view.alone())

    def act_all(self, views: SubnetViews) -> np.ndarray:
        commands = np.array(self._reach.act_all(views))  # `reach` also rules out teammates
        self.flag = self._reach.flag
        to_center = aggregating(views)
        for label, (rows, view) in enumerate(zip(views.rows, views, strict=True)):
            plan = None if to_center[label] else self._plan_of(view)
            if plan is not None:
                commands[rows] = go(view.positions, plan.places(view.step), view.mission.physics, view.mission.map)
        return commands

    def act_imperfect(self, views: SubnetViews) -> np.ndarray:
        return self.act_all(views) if views.news is None else super().act_imperfect(views)

    def tell(self, member: int) -> np.ndarray | None:
        return self._reach.tell(member)

    def hear(self, member: int, news: np.ndarray) -> None:
        self._reach.hear(member, news)

    def _plan_of(self, view: SubnetView) -> Plan | None:
        """The plan that a subnet flies; None if it is roused."""
        members = view.members.tolist()
        known = self._reach.tell(members[0])
        unheard = np.zeros(len(view.roster), dtype=bool) if known is None else known.astype(bool)
        ruled_out = self._ruled_out(members, unheard)
        plan = self._plans.get(members[0])
        if plan is not None and plan.basis == _basis_of(view, ruled_out) and view.step >= plan.begun + plan.steps:
            self._doubt(members, plan.ends)
            ruled_out = self._ruled_out(members, unheard)
        crisis = ruled_out.sum() > max(1.0, CALM_SHARE * len(members))
        roused = 2 * len(self._roused.intersection(members)) > len(members)
        calm = not (crisis or roused)
        if calm and (plan is None or plan.basis != _basis_of(view, ruled_out)):
            plan = make_plan(view, ruled_out)
        if not calm or plan is None or not plan.steps:
            self._roused.update(members)
            return None
        self._plans.update(dict.fromkeys(members, plan))
        return plan

    def _ruled_out(self, members: list[int], unheard: np.ndarray) -> np.ndarray:
        """(N,) bool, teammates that the subnet does not expect: unheard in range, or doubted."""
        ruled_out = unheard.copy()
        ruled_out[list(self._doubts(members))] = True
        ruled_out[members] = False
        return ruled_out

    def _doubts(self, members: list[int]) -> frozenset[int]:
        return frozenset().union(*(self._doubted.get(k, frozenset()) for k in members))

    def _doubt(self, members: list[int], ends: tuple[int, ...]) -> None:
        """Expect the teammates at the other ends of the missing links no more: they did not come."""
        self._doubted.update(dict.fromkeys(members, self._doubts(members).union(ends)))


def _basis_of(view: SubnetView, ruled_out: np.ndarray) -> bytes:
    return view.members.tobytes() + ruled_out.tobytes()


def make_plan(view: SubnetView, ruled_out: np.ndarray) -> Plan:
    """Both ends of a missing link fly half of the gap; only the shortest link counts if several would tear the subnet.

    Args:
        view: The subnet. ruled_out: (N,) bool, teammates not expected.
    """
    physics = view.mission.physics
    range_m = plan_range(physics)
    links = missing_links(view, ruled_out, range_m)
    leaders = {
        row: (view.roster[end] - view.positions[row]) * (0.5 * (away - range_m) / away) for row, end, away in links
    }
    targets = bridge_targets(view, leaders)
    if len(links) > 1 and not network_is_one(targets, physics):
        links = links[:1]
        targets = bridge_targets(view, {links[0][0]: leaders[links[0][0]]})
    farthest = float(np.hypot(*(targets - view.positions).T).max())
    steps, pace = math.ceil(farthest / physics.stride_m - _ROUNDING), physics.stride_m / farthest if links else 0.0
    ends = tuple(end for _, end, _ in links)
    return Plan(_basis_of(view, ruled_out), ends, view.step, steps, pace, view.positions, targets)


def missing_links(view: SubnetView, ruled_out: np.ndarray, range_m: float) -> list[tuple[int, int, float]]:
    """(row, roster index of the teammate at the other end, m apart) of the missing links of a subnet, shortest first.

    Of each member only the shortest missing link is kept.

    Args:
        view: The subnet. ruled_out: (N,) bool, teammates not expected. range_m: Longer edges are missing links.
    """
    believed = np.flatnonzero(view.lost & ~ruled_out)
    m = len(view.members)
    edges, lengths = spanning_tree(np.vstack([view.positions, view.roster[believed]]))
    edges = np.sort(edges, axis=1)
    missing = np.flatnonzero((edges[:, 0] < m) & (edges[:, 1] >= m) & (lengths > range_m * (1 + _ROUNDING)))
    found: dict[int, tuple[int, int, float]] = {}
    for k in missing[np.argsort(lengths[missing], kind="stable")]:
        row = int(edges[k, 0])
        found.setdefault(row, (row, int(believed[edges[k, 1] - m]), float(lengths[k])))
    return list(found.values())


def bridge_targets(view: SubnetView, leaders: dict[int, np.ndarray]) -> np.ndarray:
    """(m, 2) m, where members fly if `leaders` (rows) move by so many meters ((2,)) and the others follow."""
    targets = view.positions.copy()
    for row, way in leaders.items():
        targets[row] += way
    neighbors = neighbor_lists(len(targets), view.pairs)
    return follow(view.positions, neighbors, targets, leaders, (), plan_range(view.mission.physics))[0]
