"""What one epoch collected, and minibatches of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from phygail.models.inputs import GraphInput, to_tensors
from phygail.perception.batch import pick
from phygail.perception.graph import Graph


@dataclass(frozen=True)
class Flight:
    """An episode that ended within the epoch: whether it reconnected, its moves, and the lower bound on them."""

    success: bool
    steps: int
    bound_steps: int


@dataclass(frozen=True, eq=False)
class Rollout:
    """T steps of B worlds with up to n UAVs each.

    Arrays are padded, (T, B, n), where time matters, and flat, one row per node, where networks read them: node m is
    the m-th True entry of `alive` in C order, which is receiver m of `graph`. Damaged UAVs and padding are no nodes,
    so they cannot enter any loss.

    Attributes:
        graph: The T B observations in one table; that of world b at step t is number t B + b.
        after: The B observations after the last step.
        alive: (T, B, n) bool. alive_after: (B, n) bool.
        u: (M, 2) float32, as sampled. log_prob: (M,) float32, its log density.
        command: (M, 2) float32, executed velocity / v_max.
        environment: (T, B, n) r_env, unscaled, with shaping if asked for; 0 for padding.
        ended: (T, B) bool, the episode ended with this step, by success or at T_max.
        saved: (T, B) discounted steps that a success saved (`rewards.saved_steps`).
        clock: (T B, 2) float32, t / T_max and t / (alpha T_E) of every observation. clock_after: (B, 2).
        flights: Episodes that ended.
    """

    graph: Graph
    after: Graph
    alive: np.ndarray
    alive_after: np.ndarray
    u: np.ndarray
    log_prob: np.ndarray
    command: np.ndarray
    environment: np.ndarray
    ended: np.ndarray
    saved: np.ndarray
    clock: np.ndarray
    clock_after: np.ndarray
    flights: tuple[Flight, ...]

    @property
    def graphs(self) -> int:
        """Number of observations T B: world steps flown."""
        return self.graph.count

    @property
    def nodes(self) -> int:
        """Number of nodes M."""
        return len(self.u)

    def padded(self, flat: np.ndarray) -> np.ndarray:
        """(T, B, n) float64 of a flat (M,) array, 0 for padding; `padded(x)[alive]` is x."""
        full = np.zeros(self.alive.shape)
        full[self.alive] = flat
        return full

    def batch(self, numbers: np.ndarray) -> tuple[GraphInput, np.ndarray]:
        """Some observations as tensors and their nodes ((r,) int, ascending)."""
        picked, rows = pick(self.graph, numbers)
        return to_tensors(picked), rows

    def parts(self, size: int) -> Iterator[tuple[GraphInput, np.ndarray]]:
        """All observations in order, `size` at a time."""
        for numbers in split(np.arange(self.graphs), size):
            yield self.batch(numbers)

    def clock_of(self, rows: np.ndarray) -> Tensor:
        """(r, 2) float32, the clock of some nodes."""
        return torch.from_numpy(self.clock[self.graph.world[rows]])

    @cached_property
    def summary(self) -> dict[str, float]:
        """How the policy flew while exploring; NaN where no episode ended."""
        steps, bound = sum(f.steps for f in self.flights), sum(f.bound_steps for f in self.flights)
        ended = len(self.flights)
        return {
            "episodes": float(ended),
            "success": sum(f.success for f in self.flights) / ended if ended else float("nan"),
            "over_bound": steps / bound if bound else float("nan"),
            "steps": steps / ended if ended else float("nan"),
        }


def split(numbers: np.ndarray, size: int) -> list[np.ndarray]:
    """Consecutive pieces of `numbers`, of `size` entries but for the last."""
    return [numbers[first : first + size] for first in range(0, len(numbers), size)]


def shuffled(count: int, size: int, rng: np.random.Generator) -> list[np.ndarray]:
    """0..count-1 in a random order, in minibatches of `size`; a last one below half a batch joins the one before."""
    batches = split(rng.permutation(count), size)
    if len(batches) > 1 and len(batches[-1]) < size / 2:  # a few graphs alone would give a noisy full-size step
        batches[-2:] = [np.concatenate(batches[-2:])]
    return batches
