"""What the network reads about a node: five numbers, declared in one table (METHODS 4.1, paper III-B)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

FIXED_SCALE_M = 160.0  # W/2 of the 20-UAV map: the scale of the ablation in which 120 m always reads 0.75


@dataclass(frozen=True)
class Feature:
    """One column of the node features: its name, meaning, and what it is divided by."""

    name: str
    meaning: str
    scale: str


NODE_FEATURES: tuple[Feature, ...] = (
    Feature("x", "east of the center (of the subnet's centroid where that is the origin)", "W_scale = W/2"),
    Feature("y", "north of the center", "W_scale = W/2"),
    Feature("vx", "executed velocity of the previous step, east; zero at t = 0, for damaged and center", "v_max"),
    Feature("vy", "the same, north", "v_max"),
    Feature(
        "degree", "ln(1 + in-degree in this graph); zero for damaged and center", "ln(1 + slots), ln 13 in the paper"
    ),
)


def node_features(
    offsets: np.ndarray,
    scale_m: np.ndarray | float,
    velocities: np.ndarray,
    speed_mps: np.ndarray | float,
    degree: np.ndarray,
    slots: int,
) -> np.ndarray:
    """(M, 5) float32 in the order of `NODE_FEATURES`; the first n nodes are alive, the others neither move nor receive.

    Args:
        offsets: (M, 2) m, from the origin to every node.
        scale_m: W_scale, one for all or (M, 1).
        velocities: (n, 2) m/s. speed_mps: v_max, one for all or (n, 1).
        degree: (n,) int, filled slots of every receiver. slots: Delta, the most there can be.
    """
    features = np.zeros((len(offsets), len(NODE_FEATURES)), dtype=np.float32)
    features[:, :2] = offsets / scale_m
    features[: len(velocities), 2:4] = velocities / speed_mps
    features[: len(velocities), 4] = np.log1p(degree) / math.log1p(slots)
    return features
