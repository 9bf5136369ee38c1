"""Sums and means of plane vectors by group: forces on a UAV, the centroid of a subnet."""

from __future__ import annotations

import numpy as np


def group_sums(group: np.ndarray, vectors: np.ndarray, count: int) -> np.ndarray:
    """(count, 2) sum of the vectors ((k, 2)) of each group ((k,) int)."""
    return np.stack([np.bincount(group, weights=vectors[:, axis], minlength=count) for axis in (0, 1)], axis=1)


def group_means(group: np.ndarray, vectors: np.ndarray, count: int) -> np.ndarray:
    """(count, 2) mean of the vectors of each group; zero for an empty one."""
    return group_sums(group, vectors, count) / np.maximum(np.bincount(group, minlength=count), 1)[:, None]
