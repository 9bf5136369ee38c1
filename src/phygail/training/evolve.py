"""Evolution strategy (sep-CMA-ES, Ros and Hansen 2008): no gradients, no critic, the metric itself.

The useful moves of a subnet last tens of steps and pay off at the end, so a policy is judged by whole flights. One
generation draws `population` policies around the mean, flies all of them through the same worlds, and moves mean and
spread toward the better half. Worlds are new in every generation and depend on (seed, generation) only, so a run
resumes exactly.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from phygail.rng import generator


@dataclass
class Search:
    """The state of a search; `sigma` scales the per-parameter spread `scale`.

    Attributes:
        mean: (D,). scale: (D,) spread of each parameter relative to the others. sigma: Overall spread.
        variance: (D,) diagonal of the adapted covariance, in units of scale squared.
        path, path_sigma: (D,) evolution paths. generation: Finished generations.
    """

    mean: np.ndarray
    scale: np.ndarray
    sigma: float
    population: int
    seed: int
    variance: np.ndarray = field(default_factory=lambda: np.empty(0))
    path: np.ndarray = field(default_factory=lambda: np.empty(0))
    path_sigma: np.ndarray = field(default_factory=lambda: np.empty(0))
    generation: int = 0

    def __post_init__(self) -> None:
        if not len(self.variance):
            size = len(self.mean)
            self.variance, self.path, self.path_sigma = np.ones(size), np.zeros(size), np.zeros(size)

    def ask(self) -> np.ndarray:
        """(population, D) candidates, in mirrored pairs: the mean of the noise is zero."""
        rng = generator(self.seed, "evolve", self.generation)
        half = rng.standard_normal((self.population // 2, len(self.mean)))
        noise = np.concatenate([half, -half])
        return self.mean + self.sigma * self.scale * np.sqrt(self.variance) * noise

    def tell(self, candidates: np.ndarray, costs: np.ndarray) -> None:
        """Move mean and spread toward the cheaper half."""
        size, parents = len(self.mean), self.population // 2
        order = np.argsort(costs, kind="stable")[:parents]
        weights = np.log(parents + 0.5) - np.log(np.arange(1, parents + 1))
        weights /= weights.sum()
        effective = 1.0 / (weights**2).sum()
        steps = (candidates[order] - self.mean) / (self.sigma * self.scale)
        step = weights @ steps
        self.mean = self.mean + self.sigma * self.scale * step
        c_sigma = (effective + 2) / (size + effective + 5)
        damping = 1 + 2 * max(0.0, math.sqrt((effective - 1) / (size + 1)) - 1) + c_sigma
        self.path_sigma = (1 - c_sigma) * self.path_sigma + math.sqrt(
            c_sigma * (2 - c_sigma) * effective
        ) * step / np.sqrt(self.variance)
        expected = math.sqrt(size) * (1 - 1 / (4 * size) + 1 / (21 * size**2))
        length = float(np.linalg.norm(self.path_sigma))
        c_path = (4 + effective / size) / (size + 4 + 2 * effective / size)
        calm = length / math.sqrt(1 - (1 - c_sigma) ** (2 * (self.generation + 1))) < (1.4 + 2 / (size + 1)) * expected
        self.path = (1 - c_path) * self.path + calm * math.sqrt(c_path * (2 - c_path) * effective) * step
        faster = (size + 2) / 3  # a diagonal has fewer numbers to learn
        c_one = min(0.5, faster * 2 / ((size + 1.3) ** 2 + effective))
        c_rank = min(1 - c_one, faster * 2 * (effective - 2 + 1 / effective) / ((size + 2) ** 2 + effective))
        rank = weights @ steps**2
        self.variance = (1 - c_one - c_rank) * self.variance + c_one * self.path**2 + c_rank * rank
        self.sigma *= math.exp(min(1.0, c_sigma / damping * (length / expected - 1)))
        self.generation += 1
