"""Obstacles: distances to them, the fence that keeps UAVs out, line of sight, and the shortest way around.

Every obstacle is a convex hull of corners with a radius: a point (disc), a segment (wall) or a polygon. So all
distances are those to segments less a radius, and the half-plane beyond the nearest point of an obstacle is free of it.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.sparse.csgraph import connected_components, dijkstra

from phygail.config import InputError
from phygail.swarm.world import Obstacle

GRID_M = 5.0  # cell of the flood fill, for a radio range of 120 m
MOST_CELLS = 400  # along a side of the flood fill
AROUND = 8  # points around a corner that a way may pass through
MAP_MARGIN = 0.3  # of the contact distance: how far from an obstacle a way stays
FINER = 4  # a second map, where none is in sight: so many times the points, and ways that stay so many times closer
TURNS = 4  # of a way around one obstacle: at each a UAV loses less than a step
SPARE = 1.001  # over the distance that a way must keep: factor for the distance of these points
_TINY = 1e-12


@dataclass(frozen=True, eq=False)
class Shapes:
    """The segments of all obstacles.

    Attributes:
        a, b: (E, 2) m, ends. radius: (E,) m. owner: (E,) int, obstacle of each segment.
        inner: (E, 2) outward unit normals of polygon edges, zero for discs and walls.
        dark: (E,) bool, radio does not pass.
        count: Number of obstacles.
    """

    a: np.ndarray
    b: np.ndarray
    radius: np.ndarray
    owner: np.ndarray
    inner: np.ndarray
    dark: np.ndarray
    count: int

    @classmethod
    def of(cls, obstacles: tuple[Obstacle, ...]) -> Shapes:
        """The segments of these obstacles."""
        a, b, owner, inner = [], [], [], []
        for index, obstacle in enumerate(obstacles):
            corners = np.array(obstacle.corners)
            ends = np.roll(corners, -1, axis=0)
            if len(corners) < 3:
                corners, ends = corners[:1], corners[-1:]
            along = ends - corners
            outward = np.stack([along[:, 1], -along[:, 0]], axis=1) / np.maximum(np.hypot(*along.T), _TINY)[:, None]
            a.append(corners)
            b.append(ends)
            inner.append(outward if len(obstacle.corners) > 2 else np.zeros_like(corners))
            owner += [index] * len(corners)
        which = np.array(owner, dtype=np.intp)
        radius, dark = np.array([o.radius_m for o in obstacles]), np.array([not o.radio for o in obstacles])
        if not obstacles:
            return cls(np.empty((0, 2)), np.empty((0, 2)), np.empty(0), which, np.empty((0, 2)), np.empty(0, bool), 0)
        return cls(np.vstack(a), np.vstack(b), radius[which], which, np.vstack(inner), dark[which], len(obstacles))

    def nearest(self, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """((k, count) m from each point to each obstacle, negative inside; (k, count, 2) unit vectors away from it)."""
        foot = _feet(points[:, None], self.a, self.b)  # (k, E, 2)
        away = points[:, None] - foot
        far = np.hypot(away[..., 0], away[..., 1])
        inside = self._inside(points)
        distance = far - self.radius
        direction = away / np.maximum(far, _TINY)[..., None]
        best_distance = np.empty((len(points), self.count))
        best_direction = np.empty((len(points), self.count, 2))
        rows = np.arange(len(points))
        for index in range(self.count):
            edges = np.flatnonzero(self.owner == index)
            pick = edges[distance[:, edges].argmin(axis=1)]
            sign = np.where(inside[:, index], -1.0, 1.0)
            best_distance[:, index] = sign * far[rows, pick] - self.radius[pick]
            best_direction[:, index] = sign[:, None] * direction[rows, pick]
        return best_distance, best_direction

    def depth_m(self, points: np.ndarray) -> np.ndarray:
        """(k,) m, how deep each point is inside the nearest obstacle; negative outside."""
        if not self.count:
            return np.full(len(points), -np.inf)
        return -self.nearest(points)[0].min(axis=1)

    def _inside(self, points: np.ndarray) -> np.ndarray:
        """(k, count) bool, inside a polygon."""
        offset = points[:, None] - self.a
        beyond = (offset * self.inner).sum(axis=2) > 0
        polygon = np.zeros(self.count, dtype=bool)
        polygon[self.owner[np.abs(self.inner).sum(axis=1) > 0]] = True
        outside = np.zeros((len(points), self.count), dtype=bool)
        for index in np.flatnonzero(polygon):
            outside[:, index] = beyond[:, self.owner == index].any(axis=1)
        return polygon & ~outside

    def clear(
        self, start: np.ndarray, end: np.ndarray, margin_m: float | np.ndarray, *, dark_only: bool = False
    ) -> np.ndarray:
        """(k,) bool, whether the straight ways from `start` to `end` ((k, 2) m each) keep `margin_m` from everything.

        The margin is one for all, or (k, E): for every way and segment. A way that lies entirely inside a polygon is
        not noticed; no UAV is there.
        """
        free = np.ones(len(start), dtype=bool)
        margin = np.broadcast_to(margin_m, (len(start), len(self.a)))
        for e in np.flatnonzero(self.dark) if dark_only else range(len(self.a)):
            far = _segment_distance(start[free], end[free], self.a[e], self.b[e])
            free[free] = far >= self.radius[e] + margin[free, e]
        return free


def _feet(points: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The nearest points of the segments a-b."""
    along = b - a
    share = ((points - a) * along).sum(axis=-1) / np.maximum((along * along).sum(axis=-1), _TINY)
    return a + np.clip(share, 0.0, 1.0)[..., None] * along


def segment_feet(p: np.ndarray, q: np.ndarray, a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """((k, 2), (k, 2)) m, the nearest points of the segments p-q and a-b ((k, 2) each) to each other."""
    first = np.stack([p, q, _feet(a, p, q), _feet(b, p, q)])
    second = np.stack([_feet(p, a, b), _feet(q, a, b), a, b])
    offset = first - second
    best = np.hypot(offset[..., 0], offset[..., 1]).argmin(axis=0)
    each = np.arange(len(p))
    first, second = first[best, each], second[best, each]
    crossing = _crossing(p, q, a, b)
    if crossing.any():  # both are the point where they cross
        r, s = (q - p)[crossing], (b - a)[crossing]
        offset = (a - p)[crossing]
        share = _cross(offset, s) / _cross(r, s)
        first[crossing] = second[crossing] = p[crossing] + share[:, None] * r
    return first, second


def _cross(u: np.ndarray, v: np.ndarray) -> np.ndarray:
    return u[..., 0] * v[..., 1] - u[..., 1] * v[..., 0]


def _crossing(p: np.ndarray, q: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """(k,) bool, whether the segments p-q and a-b cross."""
    return (_cross(q - p, a - p) * _cross(q - p, b - p) < 0) & (_cross(b - a, p - a) * _cross(b - a, q - a) < 0)


def _segment_distance(p: np.ndarray, q: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """(k,) m between the segments p-q ((k, 2) each) and the segment a-b ((2,) each)."""

    def far(points: np.ndarray, foot: np.ndarray) -> np.ndarray:
        return np.hypot(points[..., 0] - foot[..., 0], points[..., 1] - foot[..., 1])

    ends = [far(p, _feet(p, a, b)), far(q, _feet(q, a, b))]
    ends += [far(a, _feet(np.broadcast_to(a, p.shape), p, q)), far(b, _feet(np.broadcast_to(b, p.shape), p, q))]

    return np.where(_crossing(p, q, a, b), 0.0, np.minimum.reduce(ends))


class Map:
    """The obstacles as a mission carries them: the shortest way to a goal, by a visibility graph.

    From a point on a way the rest of that way is in sight again, or a shorter one: whoever follows comes nearer to the
    goal with every step. So what a post may pass is what a UAV that stands there sees.

    Args:
        obstacles: All of them. margin_m: Distance that a way keeps; larger than that of the fence.
        around: Points around a corner.
    """

    def __init__(self, obstacles: tuple[Obstacle, ...], margin_m: float, around: int = AROUND) -> None:
        self.shapes = Shapes.of(obstacles)
        self.margin_m, self._around = margin_m, around
        self._obstacles = obstacles
        self._ways: dict[bytes, np.ndarray] = {}
        self._last: tuple[bytes, tuple[np.ndarray, np.ndarray]] | None = None  # rules ask twice in a step

    @cached_property
    def levels(self) -> tuple[Map, ...]:
        """This map, and the one for gaps that are too narrow for it."""
        return self, Map(self._obstacles, self.margin_m / FINER, self._around * FINER)

    @cached_property
    def _posts(self) -> np.ndarray:
        """(P, 2) m, points around every corner that are far enough from all obstacles."""
        angle = (np.arange(self._around) + 0.5) * 2 * np.pi / self._around
        posts = []
        for obstacle in self._obstacles:
            corners = np.array(obstacle.corners)
            first = corners[-1] - corners[0]
            turn = np.arctan2(first[1], first[0]) if len(corners) == 2 else 0.0
            ring = np.stack([np.cos(angle + turn), np.sin(angle + turn)], axis=1)
            ring *= (obstacle.radius_m + self.margin_m) * SPARE / np.cos(np.pi / self._around)
            posts.append((corners[:, None] + ring).reshape(-1, 2))
        found = np.concatenate(posts)
        return found[self.shapes.depth_m(found) <= -self.margin_m]

    @cached_property
    def _halfway(self) -> np.ndarray:
        """(count,) m, an upper bound of the way around each obstacle to its other side."""
        long = np.hypot(*(self.shapes.b - self.shapes.a).T) + np.pi * (self.shapes.radius + self.margin_m)
        return np.bincount(self.shapes.owner, long, self.shapes.count)

    @cached_property
    def _graph(self) -> np.ndarray:
        """(P, P) m, length of the straight way between two posts; inf where it is blocked."""
        posts = self._posts
        i, j = np.triu_indices(len(posts), 1)
        free = self.shapes.clear(posts[i], posts[j], self.margin_m)
        lengths = np.full((len(posts), len(posts)), np.inf)
        lengths[i[free], j[free]] = lengths[j[free], i[free]] = np.hypot(*(posts[i] - posts[j]).T)[free]
        return lengths

    def _to_goal(self, goal: np.ndarray) -> np.ndarray:
        """(P,) m, the shortest way from every post to a goal."""
        key = goal.tobytes()
        if key not in self._ways:
            posts = self._posts
            direct = np.hypot(*(posts - goal).T)
            room = self._room(self.shapes.nearest(goal[None])[0]).repeat(len(posts), axis=0)
            direct[~self.shapes.clear(posts, np.broadcast_to(goal, posts.shape), room)] = np.inf
            size = len(posts)
            graph = np.full((size + 1, size + 1), np.inf)
            graph[:size, :size], graph[size, :size], graph[:size, size] = self._graph, direct, direct
            if len(self._ways) > 256:
                self._ways.clear()
            self._ways[key] = dijkstra(np.where(np.isfinite(graph), graph, 0.0), indices=size)[:size]
        return self._ways[key]

    def next_points(self, points: np.ndarray, goals: np.ndarray) -> np.ndarray:
        """(k, 2) m, where to fly now: the goal if nothing is in between, else the first turn of the shortest way."""
        return self.ways(points, goals)[0]

    def ways(self, points: np.ndarray, goals: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """((k, 2) m as `next_points`, (k,) m length of the shortest way); where no way is seen, the straight one."""
        goals = np.broadcast_to(goals, points.shape)
        key = points.tobytes() + goals.tobytes()
        if self._last is None or self._last[0] != key:
            self._last = key, self._find_ways(points, goals)
        return self._last[1]

    def _room(self, near: np.ndarray) -> np.ndarray:
        """(k, E) m that ways keep off every segment, from ends this near ((k, count) m) to the obstacles.

        A UAV that is closer to an obstacle than the margin keeps the distance that it has; from the others it keeps
        the whole margin: the way must not lead into a gap between two obstacles that is too narrow to pass.
        """
        return np.clip(near - 1e-9, 0.0, self.margin_m)[:, self.shapes.owner] * 0.999

    def _find_ways(self, points: np.ndarray, goals: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        far_off, away = self.shapes.nearest(points)
        near = np.minimum(far_off, self.shapes.nearest(goals)[0])
        turns, lengths = goals.copy(), np.hypot(*(goals - points).T)
        hidden = np.arange(len(points))
        for level in self.levels:
            if len(hidden):
                turn, length = level._seen_ways(points[hidden], goals[hidden], near[hidden])
                found = np.isfinite(length)
                turns[hidden[found]], lengths[hidden[found]] = turn[found], length[found]
                hidden = hidden[~found]
        if len(hidden):  # deep in a notch between two obstacles that touch: back out of it, and around them
            touching = far_off[hidden] < far_off[hidden].min(axis=1, keepdims=True) + self.margin_m
            out = (away[hidden] * touching[..., None]).sum(axis=1)
            turns[hidden] += np.where((out != 0).any(axis=1, keepdims=True), points[hidden] + out - turns[hidden], 0.0)
            lengths[hidden] += touching @ self._halfway
        return turns, lengths

    def _seen_ways(self, points: np.ndarray, goals: np.ndarray, near: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """((k, 2) m, (k,) m): first turn and length of the shortest ways; inf where none is in sight."""
        room = self._room(near)
        turns, lengths = goals.copy(), np.hypot(*(goals - points).T)
        blocked = np.flatnonzero(~self.shapes.clear(points, goals, room))
        if len(blocked) and len(self._posts):
            ahead = np.stack([self._to_goal(goal) for goal in goals[blocked]])  # (k, P)
            which, lengths[blocked] = self._best_posts(points[blocked], ahead, room[blocked])
            turns[blocked] = self._posts[which]
        elif len(blocked):
            lengths[blocked] = np.inf
        return turns, lengths

    def _best_posts(self, points: np.ndarray, ahead: np.ndarray, room: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """((k,) int, (k,) m): the post in sight of each point with the shortest way from there ((k, P) m), the way."""
        count, posts = len(points), self._posts
        here = np.hypot(*(points[:, None] - posts).transpose(2, 0, 1))
        row, post = np.nonzero(np.isfinite(ahead) & (here > 1e-6))
        seen = self.shapes.clear(points[row], posts[post], room[row])
        far = np.full((count, len(posts)), np.inf)
        far[row[seen], post[seen]] = (here + ahead)[row[seen], post[seen]]
        best = far.argmin(axis=1)
        return best, far[np.arange(count), best]


@functools.lru_cache(maxsize=64)
def shapes_of(obstacles: tuple[Obstacle, ...]) -> Shapes:
    """The segments of obstacles, made once."""
    return Shapes.of(obstacles)


@functools.lru_cache(maxsize=64)
def map_of(obstacles: tuple[Obstacle, ...], margin_m: float) -> Map:
    """The map of obstacles, made once."""
    return Map(obstacles, margin_m)


def longest_way_m(obstacles: tuple[Obstacle, ...], spots: np.ndarray, center: np.ndarray, contact_m: float) -> float:
    """Length (m) of the longest among the shortest ways from `spots` ((n, 2) m) to the center."""
    return float(map_of(obstacles, MAP_MARGIN * contact_m).ways(spots, center)[1].max())


def check_obstacles(obstacles: tuple[Obstacle, ...], spots: np.ndarray, names: np.ndarray, center: np.ndarray) -> None:
    """Refuse obstacles over an alive UAV or the center, and starts that are walled in.

    Args:
        obstacles: Of the world. spots: (n, 2) m, the alive at t = 0. names: (n,) int, their roster indices.
        center: (2,) m.
    """
    for index, obstacle in enumerate(obstacles):
        depth = Shapes.of((obstacle,)).depth_m(np.vstack([spots, center]))
        bad = np.flatnonzero(depth >= 0)
        if len(bad):
            who = "the center" if bad[0] == len(spots) else f"UAV {names[bad[0]]}"
            raise InputError(f"obstacle {index} contains {who}: move one of them")
    shut = closed_in(Shapes.of(obstacles), spots, center)
    if len(shut):
        raise InputError(f"UAV {names[shut[0]]} cannot leave: obstacles close it in; open a way to the center")


def _no_ring(shapes: Shapes, gap_m: float) -> bool:
    """Whether obstacles that are less than `gap_m` apart make no ring.

    A union of convex sets encloses nothing if the graph of those that touch is a forest.
    """
    first, second = np.triu_indices(len(shapes.a), 1)
    other = shapes.owner[first] != shapes.owner[second]
    first, second = first[other], second[other]
    here, there = segment_feet(shapes.a[first], shapes.b[first], shapes.a[second], shapes.b[second])
    apart = np.hypot(*(here - there).T) - shapes.radius[first] - shapes.radius[second]
    touching = np.stack([shapes.owner[first], shapes.owner[second]], axis=1)[apart < gap_m]
    graph = np.zeros((shapes.count, shapes.count), dtype=bool)
    graph[touching[:, 0], touching[:, 1]] = graph[touching[:, 1], touching[:, 0]] = True
    return shapes.count - connected_components(graph, directed=False)[0] == graph.sum() // 2


def closed_in(shapes: Shapes, spots: np.ndarray, center: np.ndarray) -> np.ndarray:
    """(k,) int, the spots from which no way leads to the center (flood fill on a grid)."""
    from scipy.ndimage import label

    corners = np.vstack([spots, center, shapes.a - shapes.radius[:, None], shapes.a + shapes.radius[:, None],
                         shapes.b - shapes.radius[:, None], shapes.b + shapes.radius[:, None]])  # fmt: skip
    low, high = corners.min(axis=0), corners.max(axis=0)
    cell = max(GRID_M, float((high - low).max()) / MOST_CELLS)
    if _no_ring(shapes, 3 * cell):
        return np.empty(0, dtype=np.intp)
    low = low - 3 * cell
    shape = np.ceil((high - low) / cell).astype(int) + 4
    x, y = (low[axis] + (np.arange(shape[axis]) + 0.5) * cell for axis in (0, 1))
    points = np.stack(np.meshgrid(x, y, indexing="ij"), axis=-1).reshape(-1, 2)
    free = np.ones(len(points), dtype=bool)
    for index in range(shapes.count):
        edges = shapes.owner == index
        one = Shapes(shapes.a[edges], shapes.b[edges], shapes.radius[edges], np.zeros(edges.sum(), dtype=np.intp),
                     shapes.inner[edges], shapes.dark[edges], 1)  # fmt: skip
        free &= one.depth_m(points) < 0
    regions, _ = label(free.reshape(shape), structure=np.ones((3, 3)))
    at = [np.floor((place - low) / cell).astype(int) for place in (spots, center)]
    home = regions[tuple(at[1])]
    own = regions[at[0][:, 0], at[0][:, 1]]
    return np.flatnonzero((own != home) & (own > 0) & (home > 0))
