"""What evolution changes: the weights of the gates and the five numbers of belief, as one flat vector."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from phygail.models.gates import GateShape
from phygail.perception.lost import BeliefSpec

BELIEFS = 5  # drift, ln sigma, ln sigma rate, half depth, ln depth scale


@dataclass(frozen=True)
class Genome:
    """The layout of a vector: gate weights, then beliefs."""

    shape: GateShape = field(default_factory=GateShape)
    base: BeliefSpec = field(default_factory=BeliefSpec)

    @property
    def size(self) -> int:
        """Length of a vector."""
        return self.shape.size + BELIEFS

    def join(self, gates: np.ndarray, spec: BeliefSpec) -> np.ndarray:
        """The vector of a policy."""
        logs = np.log([spec.sigma_m, spec.sigma_rate, spec.depth_scale])
        return np.concatenate([gates, [spec.drift, logs[0], logs[1], spec.depth_half, logs[2]]]).astype(float)

    def split(self, vector: np.ndarray) -> tuple[np.ndarray, BeliefSpec]:
        """Gate weights (float32) and beliefs of a vector; numbers without meaning are brought back into their range."""
        drift, sigma, rate, half, scale = vector[self.shape.size :]
        spec = replace(
            self.base, drift=float(np.clip(drift, 0.0, 1.2)), sigma_m=_positive(sigma), sigma_rate=_positive(rate),
            depth_half=float(half), depth_scale=_positive(scale),
        )  # fmt: skip
        return vector[: self.shape.size].astype(np.float32), spec


def _positive(logarithm: float) -> float:
    return float(np.exp(np.clip(logarithm, -7.0, 5.0)))
