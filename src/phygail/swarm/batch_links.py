"""The radio networks of many worlds at once, densely: n^2 per world, for the tens of alive that training flies.

Arrays of pairs have the worlds on their last axis: every operation then runs along contiguous memory, also the minima
that label the subnets.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from phygail.swarm.batch_cases import Cases


@dataclass(frozen=True, eq=False)
class BatchLinks:
    """The radio networks of B worlds at one instant; worlds on the last axis.

    Attributes:
        squared: (n, n, B) m^2, squared distances; meaningless for padding.
        linked: (n, n, B) bool, symmetric, False on the diagonal and for padding.
        subnet: (n, B) int, labels 0..count-1 in the order of their lowest rows; -1 for padding.
        count: (B,) int, number of subnets.
    """

    squared: np.ndarray
    linked: np.ndarray
    subnet: np.ndarray
    count: np.ndarray


def find_batch_links(positions: np.ndarray, cases: Cases) -> BatchLinks:
    """Links and subnets of UAVs at `positions` ((B, n, 2) m); equal to `links.find_links` in each world."""
    x, y = np.ascontiguousarray(positions.transpose(2, 1, 0))
    squared, across = x[:, None] - x[None], y[:, None] - y[None]
    squared *= squared
    across *= across
    squared += across
    linked = squared <= cases.reach_m**2
    linked &= cases.pairs
    lowest = lowest_rows(linked)
    first = (lowest == np.arange(len(x))[:, None]) & cases.mask  # the lowest row of a subnet stands for it
    rank = np.cumsum(first, axis=0)
    subnet = np.where(cases.mask, np.take_along_axis(rank, lowest, axis=0), 0) - 1
    return BatchLinks(squared, linked, subnet, rank[-1])


def lowest_rows(linked: np.ndarray) -> np.ndarray:
    """(n, B) int, the lowest row that each row is connected with by the links (n, n, B) bool.

    Every row takes the lowest label among its neighbors, then the label of that row (pointer jumping), until nothing
    changes: a few rounds, as labels travel in leaps.
    """
    n, _, worlds = linked.shape
    small = np.uint8 if n <= 256 else np.uint32
    # 0 for neighbors; for the rest all ones (0 - 1 wraps), which win every "or" and lose every minimum.
    blocked = np.subtract(linked, 1, dtype=small)
    own = np.arange(n)
    blocked[own, own] = 0
    label = np.repeat(own.astype(small)[:, None], worlds, axis=1)
    offered = np.empty_like(blocked)
    while True:
        lowest = np.bitwise_or(blocked, label[:, None], out=offered).min(axis=0).astype(np.intp)
        lowest = np.take_along_axis(lowest, lowest, axis=0)
        if np.array_equal(lowest, label):
            return lowest
        label = lowest.astype(small)
