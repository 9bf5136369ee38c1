"""Lost teammates as graph nodes: which may be alive, where by now, and how sure a subnet is (METHODS 8.4, 8.5).

All of it is in the intra-subnet scope: the roster was shared before the damage, and positions are those of the own
subnet. A teammate that is not a member is *lost*. A teammate in radio range at t = 0 that does not answer is damaged. A
subnet expects every other lost teammate to fly toward the center, as it does itself: its expected place is its *ghost*.
The deeper a ghost has been inside the area that the subnet covers, in units of the error of the expectation, the less
likely the teammate is alive.

Where teammates are lost, or links fail, in flight (docs/worlds.md), a ghost starts where and when its teammate was last
seen (`RebasedBeliefs`). Each subnet has seen others last, so each has ghosts of its own. On a merge the newer sighting
wins; of two sightings of the same age, the one with the deeper belief wins.
"""

from __future__ import annotations

from collections import deque
from dataclasses import astuple, dataclass

import numpy as np
from scipy.spatial import cKDTree

from phygail.sensing.imperfect import Estimates
from phygail.sensing.views import SubnetViews

NEVER = np.float32(-3.0)  # depth of a ghost that was never near the covered area; also the least depth a feature shows
SURE = np.float32(1e9)  # depth of a lost teammate that did not answer at t = 0, when its place was known exactly
LARGEST = 30.0  # largest exponent: beyond it a teammate counts as damaged
DEEPEST = 3.0  # the greatest depth a feature shows
MOST_MEMBERS = 20  # a larger subnet looks like one of 20, the largest trained with
CLOCK_M = 200.0  # unit of the clock: meters flown at full speed, for a radio range of 120 m
LONGEST = 3.0  # the greatest clock a feature shows
EDGE_FEATURES = (
    "(d - R)+ / R", "-ln survival", "depth", "clock", "ln members / 3", "cos to center", "ln(1 + subnet to c / R)",
    "ln(1 + ghost to c / R)", "ln share",
)  # fmt: skip
ANCHOR_FEATURES = ("-ln survival", "clock", "ln members / 3", "ln(1 + subnet to c / R)", "ln share")


@dataclass(frozen=True)
class BeliefSpec:
    """How a subnet thinks about lost teammates. The first five are learned (`methods.reach_evolved.train`).

    Lengths hold for a radio range of 120 m; for another one they are scaled (`Physics.unit`).

    Attributes:
        drift: Speed of ghosts toward the center over v_max.
        sigma_m: Error of a ghost's place at t = 0. sigma_rate: Its growth per meter flown at full speed.
        depth_half: Depth at which half of the lost are believed damaged. depth_scale: Width of the change around it.
        horizon_m: Ghosts farther from every member are not seen.
        margin_m: Slack of range tests against rounding and of links against the radio range.
    """

    drift: float = 0.9
    sigma_m: float = 3.0
    sigma_rate: float = 0.05
    depth_half: float = 1.0
    depth_scale: float = 0.4
    horizon_m: float = 240.0
    margin_m: float = 1.0

    def vector(self, scale: float = 1.0) -> np.ndarray:
        """(7,) in the order of the fields, lengths times `scale`."""
        return np.array(astuple(self)) * np.array([1.0, scale, 1.0, 1.0, 1.0, scale, scale])


@dataclass(frozen=True, eq=False)
class LostEdges:
    """What the gates read: one edge from each visible ghost to the nearest member of each subnet.

    Attributes:
        receiver: (E,) int, row of the member. direction: (E, 2) unit vectors to the ghost.
        weight: (E,) belief in (0, 1].
        features: (E, 9) float32, `EDGE_FEATURES`. anchors: (count, 5) float32, `ANCHOR_FEATURES`.
    """

    receiver: np.ndarray
    direction: np.ndarray
    weight: np.ndarray
    features: np.ndarray
    anchors: np.ndarray


@dataclass(frozen=True, eq=False)
class Look:
    """What the subnets believe after one more view.

    Attributes:
        depths: (count, N) float32, the deepest so far. weights: (count, N) how likely alive; 0 for members.
        survival: (count,) share of teammates believed alive.
        subnet, spot, row, distance: (k,) each, the nearest member (m) of each subnet to each ghost within the horizon.
    """

    depths: np.ndarray
    weights: np.ndarray
    survival: np.ndarray
    subnet: np.ndarray
    spot: np.ndarray
    row: np.ndarray
    distance: np.ndarray


class Beliefs:
    """What every subnet of one episode believes; shared inside a subnet, united on a merge (the deeper belief wins)."""

    def __init__(self, spec: BeliefSpec) -> None:
        self.spec = spec
        self._ghosts = self._roster = np.empty((0, 2))
        self._center = np.empty(0)
        self._step = 0
        self._depths: dict[int, np.ndarray] = {}  # per group of UAVs with one belief: (N,) float32
        self._group = np.empty(0, dtype=np.intp)  # (N,) group of each roster entry
        self._next = 0

    def observe(self, views: SubnetViews) -> LostEdges:
        """Update the beliefs with one more view of the subnets and give their edges."""
        look = self.look(views)
        seen = look.weights[look.subnet, look.spot] > 0.0
        edges = (look.subnet[seen], look.spot[seen], look.row[seen], look.distance[seen])
        return self._edges(views, look.depths, look.weights, look.survival, edges)

    def look(self, views: SubnetViews) -> Look:
        """Update the beliefs with one more view of the subnets and say what they are."""
        self._advance(views)
        depths = self._recall(views)
        subnet, spot, row, distance = self._nearest(views, depths)
        self._listen(views, depths, subnet, spot, distance)
        self._remember(views, depths)
        weights = self._weights(views, depths)
        ruled_out = (1.0 - weights).sum(axis=1) - views.sizes  # members have weight 0 too
        survival = (views.sizes + 0.5) / (views.sizes + ruled_out + 1.0)
        return Look(depths, weights, survival, subnet, spot, row, distance)

    def near(self, views: SubnetViews, weights: np.ndarray, least: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(row, roster index, (k, 2) m): every UAV with every ghost within the horizon that its subnet believes in.

        Args:
            views: Of the last `look`. weights: (count, N), its weights. least: Weights below this do not count.
        """
        if self._share_ghosts(views):
            largest = views.subnet == views.sizes.argmax()  # it has few ghosts left: they are sorted out first
            parts = [np.flatnonzero(largest), np.flatnonzero(~largest)]
        else:
            parts = views.rows
        found = [self._near_some(views, weights, least, rows) for rows in parts if len(rows)]
        row, spot, ghost = (np.concatenate(column) for column in zip(*found, strict=True))
        return row, spot, ghost

    def _near_some(
        self, views: SubnetViews, weights: np.ndarray, least: float, rows: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The same for some rows, whose subnets expect a ghost at the same place."""
        labels = np.unique(views.subnet[rows])
        spots = np.flatnonzero((weights[labels] >= least).any(axis=0))
        ghosts = self._places(views, np.full(len(spots), labels[0]), spots)
        tree = cKDTree(views.positions[rows])
        found = tree.sparse_distance_matrix(cKDTree(ghosts), self._horizon_m(views), output_type="ndarray")
        row, spot = rows[found["i"]], spots[found["j"]]
        believed = weights[views.subnet[row], spot] >= least
        return row[believed], spot[believed], ghosts[found["j"][believed]]

    def _share_ghosts(self, views: SubnetViews) -> bool:
        """Whether all subnets expect a ghost at the same place."""
        return _agreed(views)

    def tell(self, member: int) -> np.ndarray | None:
        """(N,) float32, the depths that UAV `member` knows; None before its first view."""
        return self._depths.get(int(self._group[member])) if len(self._group) else None

    def hear(self, member: int, depths: np.ndarray) -> None:
        """UAV `member` hears, after its first view, depths that others know: the deeper belief wins."""
        known = self.tell(member)
        self._group[member] = self._next
        self._depths[self._next] = depths if known is None else np.maximum(known, depths)
        self._next += 1

    def _advance(self, views: SubnetViews) -> None:
        """Move ghosts toward the center, from the second view on; start anew if roster or center have changed."""
        if not len(self._group):
            self._group = np.full(len(views.roster), -1, dtype=np.intp)
        center = views.centers[0]
        if not (_same(views.roster, self._roster) and _same(center, self._center)):
            self._ghosts, self._step = _toward(views.roster, center, self._way_m(views, views.step)), views.step
        self._roster, self._center = views.roster, center
        while self._step < views.step:
            self._ghosts = _toward(self._ghosts, center, self._way_m(views, 1))
            self._step += 1

    def _way_m(self, views: SubnetViews, steps: int) -> float:
        """How far ghosts fly in so many steps."""
        physics = views.mission.physics
        return physics.speed_mps * physics.step_s * self.spec.drift * steps

    def _horizon_m(self, views: SubnetViews) -> float:
        """How far a ghost may be from the nearest member to be seen."""
        physics = views.mission.physics
        return max(self.spec.horizon_m * physics.unit, physics.range_m)

    def _places(self, views: SubnetViews, subnet: np.ndarray, spot: np.ndarray) -> np.ndarray:
        """(k, 2) m, the ghosts of these roster entries as these subnets ((k,) each) see them."""
        if _agreed(views):
            return self._ghosts[spot]
        return _toward(views.roster[spot], views.centers[subnet], self._way_m(views, views.step))

    def _recall(self, views: SubnetViews) -> np.ndarray:
        """(count, N) depths: the deepest that any member knows."""
        depths = np.full((views.count, len(views.roster)), NEVER)
        key = np.unique(views.subnet * (self._next + 1) + self._group[views.members] + 1)
        for label, group in zip(*np.divmod(key, self._next + 1), strict=True):
            if group:
                np.maximum(depths[label], self._depths[group - 1], out=depths[label])
        return depths

    def _remember(self, views: SubnetViews, depths: np.ndarray) -> None:
        depths[views.subnet, views.members] = NEVER
        fresh = self._next + np.arange(views.count)
        self._group[views.members] = fresh[views.subnet]
        self._next += views.count
        self._depths |= dict(zip(fresh.tolist(), depths, strict=True))
        alive = set(np.unique(self._group).tolist())
        self._depths = {group: depth for group, depth in self._depths.items() if group in alive}

    def _nearest(self, views: SubnetViews, depths: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """(subnet, roster index, row, m): the nearest member of each subnet to each ghost that may be alive."""
        horizon = self._horizon_m(views)
        if not _agreed(views):
            each = [self._of_one(views, depths, label, horizon) for label in range(views.count)]
            return tuple(np.concatenate(parts) for parts in zip(*each, strict=True))  # type: ignore[return-value]  # four
        largest = int(views.sizes.argmax())
        first = self._of_one(views, depths, largest, horizon)
        others = np.flatnonzero(views.subnet != largest)
        if not len(others):
            return first
        found = cKDTree(views.positions[others]).sparse_distance_matrix(
            cKDTree(self._ghosts), horizon, output_type="ndarray"
        )
        row, spot, distance = others[found["i"]], found["j"], found["v"]
        subnet = views.subnet[row]
        member_of = np.full(len(views.roster), -1)
        member_of[views.members] = views.subnet
        lost = (member_of[spot] != subnet) & (depths[subnet, spot] < SURE)
        row, spot, distance, subnet = row[lost], spot[lost], distance[lost], subnet[lost]
        order = np.lexsort((row, distance, subnet * len(views.roster) + spot))
        key = subnet[order] * len(views.roster) + spot[order]
        best = order[np.flatnonzero(np.diff(key, prepend=-1))]
        rest = (subnet[best], spot[best], row[best], distance[best])
        return tuple(np.concatenate(pair) for pair in zip(first, rest, strict=True))  # type: ignore[return-value]  # four

    def _of_one(
        self, views: SubnetViews, depths: np.ndarray, label: int, horizon: float
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """The same for one subnet: cheap for a large one, which has few ghosts left."""
        rows = views.rows[label]
        lost = depths[label] < SURE
        lost[views.members[rows]] = False
        spot = np.flatnonzero(lost)
        ghosts = self._places(views, np.full(len(spot), label), spot)
        distance, place = cKDTree(views.positions[rows]).query(ghosts, distance_upper_bound=horizon)
        near = np.isfinite(distance)
        return np.full(near.sum(), label), spot[near], rows[place[near]], distance[near]

    def _listen(
        self, views: SubnetViews, depths: np.ndarray, subnet: np.ndarray, spot: np.ndarray, distance: np.ndarray
    ) -> None:
        """Update the depth of each ghost inside the covered area, from which nobody answers."""
        physics, spec = views.mission.physics, self.spec
        if views.step == 0:
            row, damaged = views.damaged_in_range.T  # the radio recognizes them, however noisy the positions are
            depths[views.subnet[row], damaged] = SURE
            return
        sigma = spec.sigma_m * physics.unit + spec.sigma_rate * physics.speed_mps * physics.step_s * views.step
        depth = ((physics.range_m - spec.margin_m * physics.unit - distance) / sigma).astype(np.float32)
        depths[subnet, spot] = np.maximum(depths[subnet, spot], depth)

    def _weights(self, views: SubnetViews, depths: np.ndarray) -> np.ndarray:
        """(count, N) how likely each lost teammate is alive, relative to one never expected near; 0 for members."""
        exponent = np.minimum((depths - self.spec.depth_half) / self.spec.depth_scale, LARGEST)
        weights = np.where(depths < SURE, 1.0 / (1.0 + np.exp(exponent)), 0.0)
        weights[views.subnet, views.members] = 0.0
        return weights

    def _edges(
        self,
        views: SubnetViews,
        depths: np.ndarray,
        weights: np.ndarray,
        survival: np.ndarray,
        edges: tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray],
    ) -> LostEdges:
        """The features of the edges and of the subnets."""
        subnet, spot, row, distance = edges
        physics = views.mission.physics
        range_m, stride = physics.range_m, physics.speed_mps * physics.step_s
        home = views.centers - views.means(views.positions)
        away = np.hypot(home[:, 0], home[:, 1])
        clock = np.full(views.count, min(views.step * stride / (CLOCK_M * physics.unit), LONGEST))
        share = np.log(views.sizes / (survival * len(views.roster)))
        anchors = np.stack(
            [
                -np.log(survival),
                clock,
                np.log(np.minimum(views.sizes, MOST_MEMBERS)) / 3.0,
                np.log1p(away / range_m),
                share,
            ],
            axis=1,
        )
        ghosts = self._places(views, subnet, spot)
        direction = (ghosts - views.positions[row]) / np.maximum(distance, 1e-9)[:, None]
        radius = np.hypot(*(ghosts - views.centers[subnet]).T)
        features = np.empty((len(spot), len(EDGE_FEATURES)), dtype=np.float32)
        features[:, 0] = np.maximum(distance - range_m, 0.0) / range_m
        features[:, [1, 3, 4, 6, 8]] = anchors[subnet]
        features[:, 2] = np.minimum(depths[subnet, spot], DEEPEST)
        features[:, 5] = (home[subnet] * direction).sum(axis=1) / (away[subnet] + stride)
        features[:, 7] = np.log1p(radius / range_m)
        return LostEdges(row, direction, weights[subnet, spot], features, anchors.astype(np.float32))


def _toward(points: np.ndarray, goal: np.ndarray, way_m: float) -> np.ndarray:
    """(k, 2) the points after a flight of that length toward the goal, at most to the goal."""
    offset = goal - points
    away = np.hypot(offset[:, 0], offset[:, 1])
    return points + offset * np.minimum(way_m / np.maximum(away, 1e-9), 1.0)[:, None]


def _agreed(views: SubnetViews) -> bool:
    """Whether all subnets know the same center, and so the same ghosts."""
    return views.count == 1 or not (views.centers != views.centers[0]).any()


def _same(one: np.ndarray, other: np.ndarray) -> bool:
    return one is other or np.array_equal(one, other)


class DelayedBeliefs(Beliefs):
    """What every UAV of one episode believes for itself; news from its subnet reaches it with a delay.

    Args:
        spec: How a UAV thinks about lost teammates. delay_steps: Steps that news takes.
    """

    def __init__(self, spec: BeliefSpec, delay_steps: int) -> None:
        super().__init__(spec)
        self._known = np.empty((0, 0), dtype=np.float32)  # (n, N) depths, by rows of the views
        self._told: deque[np.ndarray] = deque(maxlen=delay_steps)

    def listen_to_others(self, views: SubnetViews) -> None:
        """Before the estimates of a step, take over the deepest belief that any member had `delay_steps` ago."""
        if not len(self._known):
            self._known = np.full((len(views.members), len(views.roster)), NEVER)
        if self._told:
            starts = np.cumsum(views.sizes) - views.sizes
            heard = np.maximum.reduceat(self._told[0][np.concatenate(views.rows)], starts, axis=0)
            np.maximum(self._known, heard[views.subnet], out=self._known)

    def tell_others(self) -> None:
        """After the estimates of a step, keep the beliefs for the others."""
        self._told.append(self._known.copy())

    def _recall(self, views: SubnetViews) -> np.ndarray:
        assert isinstance(views, Estimates)
        return self._known[views.owners]

    def _remember(self, views: SubnetViews, depths: np.ndarray) -> None:
        assert isinstance(views, Estimates)
        depths[views.subnet, views.members] = NEVER
        self._known[views.owners] = depths

    def _nearest(self, views: SubnetViews, depths: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        assert isinstance(views, Estimates)
        home = views.source.subnet[views.owners]
        each = [self._near_in(views, depths, np.flatnonzero(home == label)) for label in np.unique(home)]
        return tuple(np.concatenate(parts) for parts in zip(*each, strict=True))  # type: ignore[return-value]  # four

    def _near_in(
        self, views: Estimates, depths: np.ndarray, estimates: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """The same for the estimates ((c,) int) of one subnet, which differ only in the places of their owners.

        So the two members nearest to a ghost are searched once; in each estimate one of them or its owner is nearest.
        """
        horizon = self._horizon_m(views)
        starts = np.searchsorted(views.subnet, estimates)
        rows = views.shown[starts[0] : starts[0] + views.sizes[estimates[0]]]
        believed = depths[estimates] < SURE
        believed[:, views.source.members[rows]] = False
        spot = np.flatnonzero(believed.any(axis=0))
        ghosts = self._places(views, np.full(len(spot), estimates[0]), spot)
        known = cKDTree(views.by_now[rows]).query(ghosts, k=[1, 2], distance_upper_bound=horizon)
        owner = (views.own[estimates] - starts)[:, None]  # place in the subnet
        second = owner == known[1][:, 0]  # (c, g): the nearest is the owner, whose place differs in its estimate
        distance, place = (np.where(second, both[:, 1], both[:, 0]) for both in known)
        offset = views.positions[views.own[estimates]][:, None] - ghosts
        from_owner = np.sqrt((offset * offset).sum(axis=2))
        place = np.where(from_owner < distance, owner, place)
        distance = np.minimum(from_owner, distance)
        own_estimate, ghost = np.nonzero(believed[:, spot] & (distance < horizon))
        near = own_estimate, ghost
        return estimates[own_estimate], spot[ghost], starts[own_estimate] + place[near], distance[near]
