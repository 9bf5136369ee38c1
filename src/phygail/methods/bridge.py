"""bridge (METHODS 9.10): who need not move, stays. The ends of missing links fly; everybody only if that fails."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from phygail.methods.base import SubnetMethod, register
from phygail.methods.classic import follow, network_is_one, plan_range
from phygail.methods.forces import go
from phygail.methods.reach import Reach
from phygail.methods.sidr import aggregating
from phygail.perception.view import SubnetView, SubnetViews
from phygail.swarm.failures import neighbor_lists
from phygail.swarm.tree import spanning_tree

CALM_SILENT = 3  # so many silent teammates rouse nobody ...
CALM_SHARE = 0.1  # ... nor so many per member of the subnet
ALONE_SHARE = 0.98  # of the radio range: how near one end comes when the other has not
_ROUNDING = 1e-6  # of a step or of the radio range


@dataclass(frozen=True, eq=False)
class Plan:
    """Where the members of a subnet fly, all arriving together.

    Attributes:
        picture: What it was made from: who is a member, who is silent.
        alone: Made because nobody came halfway.
        begun: Step at which it was made. steps: How long it takes.
        start, targets: (m, 2) m.
    """

    picture: bytes
    alone: bool
    begun: int
    steps: int
    start: np.ndarray
    targets: np.ndarray

    def places(self, step: int) -> np.ndarray:
        """(m, 2) m, where everybody should be after the step that begins at `step`."""
        return self.start + (self.targets - self.start) * min(1.0, (step + 1 - self.begun) / self.steps)


@register
class Bridge(SubnetMethod):
    """A subnet believes that every teammate it has not found silent stands at its roster spot.

    The minimum spanning tree of members and believed teammates has edges longer than the radio range: missing links.
    Their end in the subnet flies halfway, whoever would lose it follows; the other end does the same if it lives. If
    nobody comes, it flies the rest alone, until the spot is in range: a teammate or one more silent spot, and a new
    picture. Two things rouse everybody, for good: more silent teammates than a few failures leave, and a spot that explains
    nothing. The subnet then flies as `reach`.
    """

    name = "bridge"
    summary = "only the ends of missing links and their followers fly; reach if that is not enough"
    reckons = True
    own_centers = True

    def __init__(self, rng: np.random.Generator | None = None) -> None:
        super().__init__(rng)
        self._reach = Reach(rng)
        self._plans: dict[int, Plan] = {}  # by roster index, one for all members of a subnet
        self._roused: set[int] = set()  # roster indices

    def act(self, view: SubnetView) -> np.ndarray:
        return self.act_all(view.alone())

    def act_all(self, views: SubnetViews) -> np.ndarray:
        commands = np.array(self._reach.act_all(views))  # it listens for the silent, too
        self.flag = self._reach.flag
        late = aggregating(views)
        for label, (rows, view) in enumerate(zip(views.rows, views, strict=True)):
            plan = None if late[label] else self._plan_of(view)
            if plan is not None:
                commands[rows] = go(view.positions, plan.places(view.step), view.mission.physics)
        return commands

    def tell(self, member: int) -> np.ndarray | None:
        return self._reach.tell(member)

    def hear(self, member: int, news: np.ndarray) -> None:
        self._reach.hear(member, news)

    def _plan_of(self, view: SubnetView) -> Plan | None:
        """What a subnet flies by; None if it is roused."""
        members = view.members.tolist()
        known = self._reach.tell(members[0])
        silent = np.zeros(len(view.roster), dtype=bool) if known is None else known.astype(bool)
        picture = view.members.tobytes() + silent.tobytes()
        plan = self._plans.get(members[0])
        if plan is None or plan.picture != picture:
            plan = self._make(view, silent, picture, alone=False)
        elif not plan.alone and view.step >= plan.begun + plan.steps:
            plan = self._make(view, silent, picture, alone=True)
        crisis = silent.sum() > CALM_SILENT + CALM_SHARE * len(members)
        if crisis or view.step >= plan.begun + plan.steps or not self._roused.isdisjoint(members):
            self._roused.update(members)
            return None
        self._plans.update(dict.fromkeys(members, plan))
        return plan

    def _make(self, view: SubnetView, silent: np.ndarray, picture: bytes, *, alone: bool) -> Plan:
        physics = view.mission.physics
        near = ALONE_SHARE * physics.range_m if alone else plan_range(physics)
        leaders = {
            row: (spot - view.positions[row]) / away * (away - near) * (1.0 if alone else 0.5)
            for row, spot, away in missing_links(view, silent, near)
        }
        targets = bridge_targets(view, leaders)
        if len(leaders) > 1 and not network_is_one(targets, physics):  # they would tear the subnet between them
            first = next(iter(leaders))
            targets = bridge_targets(view, {first: leaders[first]})
        farthest = float(np.hypot(*(targets - view.positions).T).max())
        steps = math.ceil(farthest / physics.stride_m - _ROUNDING)
        return Plan(picture, alone, view.step, steps, view.positions, targets)


def missing_links(view: SubnetView, silent: np.ndarray, range_m: float) -> list[tuple[int, np.ndarray, float]]:
    """(row, spot of the teammate at the other end, m apart) of the subnet's missing links, the shortest first.

    A member has the shortest of its own only.

    Args:
        view: The subnet. silent: (N,) bool, who is believed gone. range_m: Longer edges are missing links.
    """
    believed = view.roster[view.lost & ~silent]
    m = len(view.members)
    edges, lengths = spanning_tree(np.vstack([view.positions, believed]))
    edges = np.sort(edges, axis=1)
    missing = (edges[:, 0] < m) & (edges[:, 1] >= m) & (lengths > range_m * (1 + _ROUNDING))
    found: dict[int, tuple[int, np.ndarray, float]] = {}
    for k in np.flatnonzero(missing)[np.argsort(lengths[missing], kind="stable")]:
        row = int(edges[k, 0])
        found.setdefault(row, (row, believed[edges[k, 1] - m], float(lengths[k])))
    return list(found.values())


def bridge_targets(view: SubnetView, leaders: dict[int, np.ndarray]) -> np.ndarray:
    """(m, 2) m, where members fly if `leaders` (rows) move by so many meters ((2,)) and the others follow."""
    targets = view.positions.copy()
    for row, way in leaders.items():
        targets[row] += way
    neighbors = neighbor_lists(len(targets), view.pairs)
    return follow(view.positions, neighbors, targets, leaders, (), plan_range(view.mission.physics))[0]
