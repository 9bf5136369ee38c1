"""The eight ways to turn and mirror a map (D4), for frames and scenarios (paper III-D, METHODS 4.4)."""

from __future__ import annotations

import numpy as np

from phygail.swarm.scenario import D4, Scenario, transform

ELEMENTS = np.stack(D4)  # (8, 2, 2); the first is the identity


def turn_vectors(vectors: np.ndarray, elements: np.ndarray) -> np.ndarray:
    """Velocities (B, n, 2) of B frames, turned by D4[elements[b]] each."""
    return np.einsum("bij,bnj->bni", ELEMENTS[elements], vectors)


def turn_points(points: np.ndarray, centers: np.ndarray, elements: np.ndarray) -> np.ndarray:
    """Positions (B, n, 2) m of B frames, turned about their centers (B, 2) m."""
    return turn_vectors(points - centers[:, None], elements) + centers[:, None]


def eight_variants(scenario: Scenario) -> list[Scenario]:
    """The scenario in all eight positions; the first is the scenario itself but for its id."""
    return [transform(scenario, element) for element in range(len(D4))]
