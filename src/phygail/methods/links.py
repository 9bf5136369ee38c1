"""Keeping one's links while flying apart: the nearest velocities under which no edge of a subnet's tree tears."""

from __future__ import annotations

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import minimum_spanning_tree

from phygail.config import Physics
from phygail.methods.link_projection import project_moves
from phygail.perception.view import SubnetViews
from phygail.swarm.links import FEW, join_sets, label_subnets, link_lengths

MARGIN = 1.0 / 120.0  # of the radio range, by which tree edges are held below it
GROWTH = 1e-6 / 120.0  # of the radio range: an edge that outgrows its limit by less does not: rounding decides nothing


def keep_links(
    views: SubnetViews,
    wanted: np.ndarray,
    weight: np.ndarray | None = None,
    *,
    margin: float = MARGIN,
    only: np.ndarray | None = None,
) -> np.ndarray:
    """(n, 2) m/s, the velocities nearest to `wanted` that keep every edge of the subnets' minimum spanning trees.

    Nearest in the sum of weight times squared difference. An edge may grow up to the radio range less the margin; a
    longer one may not grow. (With noisy positions a link may look longer than the range.) News of the others may be
    late: the slack grows by what one of them may have flown since. UAVs that long edges do not join to a strained one
    fly as they want.

    Args:
        views: All subnets.
        wanted: (n, 2) m/s, within the speed limit.
        weight: (n,) positive; the lighter end of a strained edge yields more. None: all alike.
        margin: Slack below the radio range, as a share of it.
        only: (n,) bool, rows whose velocities are asked for; others may come out as wanted. None: all.
    """
    physics = views.mission.physics
    stride, limit = physics.stride_m, limit_m(physics, margin, views.age_s)
    tree = _strained_trees(views, wanted, limit)
    now = link_lengths(views.positions, tree)
    long = now > limit - 2.0 * stride  # others cannot outgrow the limit in one step
    tree, now = tree[long], now[long]
    most = np.maximum(limit, now)
    then = _next_lengths(views.positions, wanted, tree[:, 0], tree[:, 1], physics.step_s)
    strained = then > most + GROWTH * physics.range_m
    if not strained.any():
        return wanted
    group, count = label_subnets(len(wanted), tree)
    solved = np.zeros(count, dtype=bool)
    solved[group[tree[strained, 0]]] = True
    if only is not None:
        asked = np.zeros(count, dtype=bool)
        asked[group[only]] = True
        solved &= asked
    inside = solved[group[tree[:, 0]]]
    if not inside.any():
        return wanted
    rows, ends = np.unique(tree[inside], return_inverse=True)
    heft = np.ones(len(rows)) if weight is None else weight[rows]
    moves = project_moves(
        views.positions[rows] / stride, wanted[rows] / physics.speed_mps, heft, ends.reshape(-1, 2),
        most[inside] / stride,
    )  # fmt: skip
    kept = wanted.copy()
    kept[rows] = moves * physics.speed_mps
    return kept


def limit_m(physics: Physics, margin: float = MARGIN, age_s: float = 0.0) -> float:
    """How long a tree edge may become, m."""
    return physics.range_m - margin * physics.range_m - physics.speed_mps * age_s


def _strained_trees(views: SubnetViews, wanted: np.ndarray, limit: float) -> np.ndarray:
    """(k, 2) int, the trees of the subnets of which a link would outgrow the limit; the others keep theirs anyway."""
    i, j = views.pairs.T
    then = _next_lengths(views.positions, wanted, i, j, views.mission.physics.step_s)
    strained = (then > limit) & (then > views.lengths)
    of_strained = np.isin(views.subnet[i], views.subnet[i[strained]])
    return minimum_tree(len(wanted), views.pairs[of_strained], views.lengths[of_strained])


def minimum_tree(n: int, pairs: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """(k, 2) int, sorted: the shortest links that leave n UAVs as connected as all `pairs` ((m, 2), sorted) do."""
    if len(pairs) <= FEW:
        by_length = np.argsort(lengths, kind="stable")
        return pairs[np.sort(by_length[join_sets(n, pairs[by_length])[1]])]  # Kruskal
    # One is added because a sparse zero (two coincident UAVs) would mean "no link"; it does not change the tree.
    graph = coo_array((lengths + 1.0, (pairs[:, 0], pairs[:, 1])), shape=(n, n))
    tree = minimum_spanning_tree(graph.tocsr()).tocoo()
    return np.stack([tree.row, tree.col], axis=1)


def _next_lengths(positions: np.ndarray, velocities: np.ndarray, i: np.ndarray, j: np.ndarray, dt: float) -> np.ndarray:
    """(m,) m, lengths of the edges after one step."""
    ahead = positions + velocities * dt
    return np.hypot(*(ahead[i] - ahead[j]).T)
