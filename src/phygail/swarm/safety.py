"""The safety filter: buffered Voronoi cells (METHODS 8.3). Decentralized, for any method.

UAV i may end its step only at points q = p_i + u with (p_j - p_i).(q - (p_i + p_j)/2)/d_ij <= -m_ij for every alive j
near it, m_ij = min(d_col/2, d_ij/2). With the unit normal n_ij from i to j this is the half-plane

    n_ij.u <= d_ij/2 - m_ij = max(0, (d_ij - d_col)/2).

Its limit is never negative, so u = 0 is always allowed: a UAV can stay put. If i and j both obey, their distance along
n_ij after the step is at least d_ij - 2 max(0, (d_ij - d_col)/2) = min(d_ij, d_col): no new contact, by construction.
d_col is taken 1/10,000 larger than the contact distance (1 mm of 10 m), so that rounding at exactly that distance is
never a contact.

The commanded velocity is replaced by the nearest one in the cell. Velocities are used throughout (limits divided by
the step), so that a command that is allowed already is returned bit for bit.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from phygail.config import Physics
from phygail.swarm.links import near_pairs

IN_HAND = 1e-4  # share of the contact distance that UAVs keep in addition; rounding uses up less than 1e-8 m per step
_ROUNDING = 1e-12  # share of v_max by which a half-plane may be violated: rounding, far below IN_HAND
_MOST_ROUNDS = 64  # active-set rounds: two or three are usual, seven the most ever seen; beyond, the step is shortened
_JUST_BELOW = 1.0 - 2.0**-50  # scaling to a norm can land one rounding above it


def kept_m(physics: Physics) -> float:
    """The distance d_col that the filter keeps: 10.001 m for a contact distance of 10 m."""
    return physics.contact_m + IN_HAND * physics.contact_m


def neighbor_radius_m(physics: Physics) -> float:
    """Farther UAVs cannot matter: the limit (d - d_col)/2 of a half-plane then exceeds the longest step."""
    return kept_m(physics) + 2.0 * physics.stride_m


def filter_velocities(positions: np.ndarray, velocities: np.ndarray, physics: Physics) -> np.ndarray:
    """The velocities nearest to `velocities` that keep every UAV in its buffered Voronoi cell (eq. 5).

    Args:
        positions: (n, 2) m, world coordinates.
        velocities: (n, 2) m/s, commands inside the speed disc.
        physics: Vehicle.

    Returns:
        (n, 2) m/s. Row i depends on its own command and on the UAVs within `neighbor_radius_m` of it only.
    """
    pairs, distances = near_pairs(positions, neighbor_radius_m(physics))
    return filter_near(positions, velocities, pairs, distances, kept_m(physics), physics.speed_mps, physics.step_s)


def filter_near(
    positions: np.ndarray,
    velocities: np.ndarray,
    pairs: np.ndarray,
    distances: np.ndarray,
    kept: float | np.ndarray,
    speed_mps: float | np.ndarray,
    step_s: float | np.ndarray,
) -> np.ndarray:
    """`filter_velocities` where the near pairs are known already, also for the rows of many swarms at once.

    The speed disc needs no constraint of its own: a cell is convex and holds 0, so the projection u of c onto it has
    (c - u).(0 - u) <= 0, hence |u|^2 <= c.u <= |c||u|: nobody becomes faster than its command. For the same reason a
    half-plane whose limit is at least |c| never binds.

    Args:
        positions: (n, 2) m. velocities: (n, 2) m/s.
        pairs: (m, 2) int, i < j, sorted, all pairs within the neighbor radius at least. distances: (m,) m.
        kept: Distance that a pair keeps (`kept_m`), one or (m,) m.
        speed_mps: v_max, one or (n,). step_s: One or (n,).
    """
    planes = pair_planes(positions, pairs, distances, kept, np.broadcast_to(step_s, len(positions)))
    return project_planes(velocities, planes, speed_mps)


def project_planes(velocities: np.ndarray, planes: HalfPlanes, speed_mps: float | np.ndarray) -> np.ndarray:
    """(n, 2) m/s, the nearest velocities that satisfy the half-planes of their rows; allowed ones stay bit for bit.

    Args:
        velocities: (n, 2) m/s. planes: Owners are rows. speed_mps: v_max, one or (n,).
    """
    slack = np.broadcast_to(_ROUNDING * np.asarray(speed_mps), len(velocities))
    over = planes.excess(velocities) > slack[planes.owner]
    if not over.any():
        return velocities
    needy = np.zeros(len(velocities), dtype=bool)
    needy[planes.owner[over]] = True
    speed = np.hypot(velocities[:, 0], velocities[:, 1])
    planes = planes.take(needy[planes.owner] & (planes.limit < speed[planes.owner]))
    rank = np.cumsum(needy) - 1  # position of a needy UAV among the needy
    nearest = project_onto_cells(velocities[needy], replace(planes, owner=rank[planes.owner]), slack[needy])
    # Rounding of an ill-conditioned corner must not make anyone faster; shrinking stays inside the cell, which holds 0.
    size, most = np.hypot(nearest[:, 0], nearest[:, 1]), speed[needy]
    faster = size > most
    nearest[faster] *= (most[faster] * _JUST_BELOW / size[faster])[:, None]
    safe = velocities.copy()
    safe[needy] = nearest
    return safe


@dataclass(frozen=True)
class HalfPlanes:
    """The half-planes normal.v <= limit of many cells.

    Attributes:
        owner: (m,) int, the cell that each belongs to.
        normal: (m, 2) unit vectors, world coordinates.
        limit: (m,) m/s, not negative.
    """

    owner: np.ndarray
    normal: np.ndarray
    limit: np.ndarray

    def take(self, which: np.ndarray) -> HalfPlanes:
        """Those that an index or a mask selects."""
        return HalfPlanes(self.owner[which], self.normal[which], self.limit[which])

    def joined(self, other: HalfPlanes) -> HalfPlanes:
        """The half-planes of both."""
        return HalfPlanes(
            np.concatenate([self.owner, other.owner]),
            np.concatenate([self.normal, other.normal]),
            np.concatenate([self.limit, other.limit]),
        )

    def excess(self, points: np.ndarray) -> np.ndarray:
        """(m,) m/s by which the owner's point ((k, 2) m/s, one per cell) violates each half-plane."""
        return _dot(self.normal, points[self.owner]) - self.limit


def pair_planes(
    positions: np.ndarray, pairs: np.ndarray, distances: np.ndarray, kept: float | np.ndarray, step_s: np.ndarray
) -> HalfPlanes:
    """One half-plane for each of the two UAVs of every near pair."""
    room = np.maximum(0.0, (distances - kept) / 2.0)
    # Coincident UAVs cannot come closer than they are: the rule min(d_col, 0) asks nothing of them.
    apart = distances > 0.0
    (i, j), d = pairs[apart].T, distances[apart]
    normal = (positions[j] - positions[i]) / d[:, None]
    limit = room[apart] / step_s[i]
    return HalfPlanes(
        np.concatenate([i, j]),
        np.concatenate([normal, -normal]),
        np.concatenate([limit, limit]),
    )


def project_onto_cells(points: np.ndarray, planes: HalfPlanes, slack: np.ndarray) -> np.ndarray:
    """The nearest point of each cell, exactly, by a dual active-set method for all cells at once.

    Each round adds the half-plane h that the present point violates most. The optimum over the present basis (at most
    two half-planes in the plane) and h lies on the line of h: it is the foot of the point on that line or a corner of h
    with one of the basis, whichever is nearest and allowed. The distance to the command grows in every round, so
    no basis comes back, and the work is the number of near pairs times a few rounds.

    Args:
        points: (k, 2) m/s, commands.
        planes: Half-planes with owners 0..k-1, at least one each, limits not negative.
        slack: (k,) m/s, violation that counts as rounding.

    Returns:
        (k, 2) m/s.
    """
    planes = planes.take(np.argsort(planes.owner, kind="stable"))
    starts = np.flatnonzero(np.diff(planes.owner, prepend=-1))
    none = len(planes.owner)  # stands for "no half-plane" in a basis: it is always satisfied and has no corners
    normal = np.vstack([planes.normal, np.zeros(2)])
    limit = np.append(planes.limit, 0.0)
    nearest = points.copy()
    basis = np.full((len(points), 2), none)
    stuck = np.zeros(len(points), dtype=bool)
    for _ in range(_MOST_ROUNDS):
        worst, by = _most_violated(planes, starts, nearest)
        rows = np.flatnonzero((by > slack) & ~stuck)
        if not len(rows):
            break
        added, old = worst[rows], basis[rows]
        found, partner, ok = _best_on_line(points[rows], normal, limit, added, old, none, slack[rows])
        stuck[rows[~ok]] = True
        rows = rows[ok]
        nearest[rows] = found[ok]
        basis[rows] = np.stack([added, partner], axis=1)[ok]
    return _shrink_into_cells(nearest, planes, starts, slack)


def _most_violated(planes: HalfPlanes, starts: np.ndarray, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Per cell: the index of the half-plane that its point violates most, and by how much (m/s)."""
    excess = planes.excess(points)
    most = np.maximum.reduceat(excess, starts)
    index = np.where(excess == most[planes.owner], np.arange(len(excess)), len(excess))
    return np.minimum.reduceat(index, starts), most


def _best_on_line(
    points: np.ndarray,
    normal: np.ndarray,
    limit: np.ndarray,
    line: np.ndarray,
    basis: np.ndarray,
    none: int,
    slack: np.ndarray,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The point of each line nearest to `points` that satisfies the two half-planes of `basis`.

    Returns:
        (k, 2) m/s; (k,) index of the half-plane that makes the corner (`none`: it is the foot of the point); (k,) bool,
        whether there is such a point (always, up to rounding).
    """
    n, b = normal[line], limit[line]
    first, second = basis.T
    foot = points - (_dot(n, points) - b)[:, None] * n
    choices = np.stack([foot, _corner(n, b, normal[first], limit[first]), _corner(n, b, normal[second], limit[second])])
    far = _dot(choices - points, choices - points)
    for other in (first, second):
        # Written so that the NaN of a missing corner is not allowed.
        far[~(_dot(normal[other], choices) - limit[other] <= slack)] = np.inf
    choice = far.argmin(axis=0)
    each = np.arange(len(points))
    partner = np.stack([np.full(len(points), none), first, second])[choice, each]
    return choices[choice, each], partner, np.isfinite(far[choice, each])


def _corner(n: np.ndarray, b: np.ndarray, m: np.ndarray, c: np.ndarray) -> np.ndarray:
    """(k, 2) where the lines n.v = b and m.v = c meet; NaN for lines that are parallel up to rounding.

    Such corners are never needed: within the speed disc the two lines differ by less than the slack.
    """
    cross = n[:, 0] * m[:, 1] - n[:, 1] * m[:, 0]
    cross = np.where(np.abs(cross) > _ROUNDING / 4, cross, np.nan)
    across_n, across_m = np.stack([-n[:, 1], n[:, 0]], axis=1), np.stack([-m[:, 1], m[:, 0]], axis=1)

    def solve(right: np.ndarray, other: np.ndarray) -> np.ndarray:
        return ((other / cross)[:, None] * across_n) - ((right / cross)[:, None] * across_m)

    corner = solve(b, c)
    # One step of refinement: nearly parallel lines lose digits in the difference above.
    return corner + solve(b - _dot(n, corner), c - _dot(m, corner))


def _shrink_into_cells(points: np.ndarray, planes: HalfPlanes, starts: np.ndarray, slack: np.ndarray) -> np.ndarray:
    """Scale the points that are still outside their cell until they are in: safe whatever rounding did before."""
    along = _dot(planes.normal, points[planes.owner])
    outside = along - planes.limit > slack[planes.owner]
    if not outside.any():
        return points
    share = np.divide(planes.limit, along, out=np.ones_like(along), where=outside)
    return points * np.minimum.reduceat(share, starts)[:, None]


def _dot(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Scalar products along the last axis (of length 2)."""
    return a[..., 0] * b[..., 0] + a[..., 1] * b[..., 1]
