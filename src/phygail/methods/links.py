"""Keeping one's links while flying apart: velocities evened out along the strained edges of the subnets' trees."""

from __future__ import annotations

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import minimum_spanning_tree

from phygail.groups import group_means
from phygail.perception.view import SubnetViews
from phygail.swarm.links import FEW, join_sets, link_lengths

MARGIN_M = 1.0  # tree edges are held below the radio range by this much
ROUNDS = 12  # of evening out
ROUNDING_M = 1e-6  # an edge that grows by less does not grow


def keep_links(
    views: SubnetViews,
    wanted: np.ndarray,
    base: np.ndarray,
    weight: np.ndarray | None = None,
    *,
    margin_m: float = MARGIN_M,
    rounds: int = ROUNDS,
) -> np.ndarray:
    """(n, 2) m/s that keep every edge of the subnets' minimum spanning trees.

    Where an edge would outgrow the radio range both ends get the mean of their velocities, again and again; a subnet
    whose tree would tear even so flies `base`, a common velocity, in this step. With noisy positions a link may look
    longer than the range; as long as it does not grow, that is no reason to stop. News of the others may be late: the
    slack grows by what one of them may have flown since.

    Args:
        views: All subnets.
        wanted: (n, 2) m/s, within the speed limit. base: (n, 2) m/s, equal inside a subnet.
        weight: (n,) positive, in the means; who moves together with a heavier one becomes as heavy. None: all alike.
        margin_m: Slack below the radio range. rounds: At most.
    """
    physics = views.mission.physics
    limit = physics.range_m - margin_m - physics.speed_mps * views.age_s
    tree = _strained_trees(views, wanted, limit)
    if not len(tree):
        return wanted
    i, j = tree.T
    now = link_lengths(views.positions, tree)
    velocities, heft = wanted, np.ones(len(wanted)) if weight is None else weight
    for _ in range(rounds):
        then = _next_lengths(views.positions, velocities, i, j, physics.step_s)
        strained = (then > limit) & (then > now)
        if not strained.any():
            break
        velocities, heft = _even_out(velocities, heft, i[strained], j[strained])
    then = _next_lengths(views.positions, velocities, i, j, physics.step_s)
    torn = np.zeros(views.count, dtype=bool)
    torn[views.subnet[i[(then > physics.range_m) & (then > now + ROUNDING_M)]]] = True
    return np.where(torn[views.subnet][:, None], base, velocities)


def _strained_trees(views: SubnetViews, wanted: np.ndarray, limit_m: float) -> np.ndarray:
    """(k, 2) int, the trees of the subnets of which a link would outgrow the limit; the others keep theirs anyway."""
    i, j = views.pairs.T
    then = _next_lengths(views.positions, wanted, i, j, views.mission.physics.step_s)
    strained = (then > limit_m) & (then > link_lengths(views.positions, views.pairs))
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


def _even_out(velocities: np.ndarray, heft: np.ndarray, i: np.ndarray, j: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Both ends of every edge get the weighted mean of their velocities (a UAV with several edges their mean)."""
    n = len(velocities)
    ends = np.concatenate([i, j])
    pair = (heft[i, None] * velocities[i] + heft[j, None] * velocities[j]) / (heft[i] + heft[j])[:, None]
    mean = np.tile(pair, (2, 1))
    touched = np.zeros(n, dtype=bool)
    touched[ends] = True
    heavier = heft.copy()
    np.maximum.at(heavier, ends, np.tile(np.maximum(heft[i], heft[j]), 2))
    return np.where(touched[:, None], group_means(ends, mean, n), velocities), heavier
