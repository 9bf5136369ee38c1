"""The gates on lost teammates and the anchor gate per subnet: in numpy, and in ONNX Runtime, which flies. No torch.

PhyGNN's message S (w_att - w_rep) on a direction instead of a hidden vector: the message to a UAV is a sum of unit
vectors times scalars that do not change when everything is rotated, reflected or moved. So the policy is equivariant by
construction, and what it learns in one corner of the map holds in the others.
"""

from __future__ import annotations

import functools
import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.special import expit

from phygail.config import InputError
from phygail.methods.reach_evolved.beliefs import BeliefSpec, LostEdges
from phygail.weights import OnnxPolicy, read_policy

EDGE_INPUTS = 9  # per lost teammate (`methods.reach_evolved.beliefs.EDGE_FEATURES`)
EDGE_OUTPUTS = 3  # logits of the attraction and the repulsion gate, log strength
ANCHOR_INPUTS = 5  # per subnet (`methods.reach_evolved.beliefs.ANCHOR_FEATURES`)
ANCHOR_OUTPUTS = 2  # change of the speed toward the center, log weight of a UAV that nothing pulls
STRENGTH_LIMITS = (-10.0, 6.0)  # of its logarithm
BASE_WEIGHT_LIMITS = (-8.0, 4.0)  # of its logarithm

KIND = "phygail"  # of weight and policy files of the evolved rule, as in version 0.1
VERSION = 1  # of observation and network; files of another version are refused
INPUTS = ("edges", "anchors")
OUTPUTS = ("strength", "speed", "ease")  # files spell the base weight "ease"


@dataclass(frozen=True)
class GateShape:
    """Hidden widths. A network is one flat vector of `size` numbers."""

    edge_width: int = 8
    anchor_width: int = 6

    @property
    def size(self) -> int:
        """Number of parameters."""
        return sum(int(np.prod(shape)) for shape in self._shapes())

    def _shapes(self) -> tuple[tuple[int, ...], ...]:
        edge, anchor = self.edge_width, self.anchor_width
        return (
            (EDGE_INPUTS, edge), (edge,), (edge, EDGE_OUTPUTS), (EDGE_OUTPUTS,),
            (ANCHOR_INPUTS, anchor), (anchor,), (anchor, ANCHOR_OUTPUTS), (ANCHOR_OUTPUTS,),
        )  # fmt: skip

    def layers(self, vector: np.ndarray) -> tuple[np.ndarray, ...]:
        """Weights and biases of both networks, in the order edge hidden, edge out, anchor hidden, anchor out."""
        parts, start = [], 0
        for shape in self._shapes():
            size = int(np.prod(shape))
            parts.append(np.ascontiguousarray(vector[start : start + size]).reshape(shape))
            start += size
        return tuple(parts)


def evaluate_edges(layers: tuple[np.ndarray, ...], features: np.ndarray) -> np.ndarray:
    """(E,) strength S (w_att - w_rep) in units of v_max.

    The reference that the compiled and the exported form are held to.
    """
    signed, size = edge_parts(layers, features)
    return signed * size


def edge_parts(layers: tuple[np.ndarray, ...], features: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(E,) w_att - w_rep in (-1, 1), (E,) S > 0."""
    out = np.maximum(features @ layers[0] + layers[1], 0.0) @ layers[2] + layers[3]
    signed = expit(out[:, 0]) - expit(out[:, 1])
    return signed, np.exp(np.clip(out[:, 2], *STRENGTH_LIMITS))


def evaluate_anchors(layers: tuple[np.ndarray, ...], features: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(count,) speed toward the center over v_max, (count,) weight of a UAV that nothing pulls."""
    out = np.maximum(features @ layers[4] + layers[5], 0.0) @ layers[6] + layers[7]
    return np.clip(1.0 + out[:, 0], 0.0, 1.0), np.exp(np.clip(out[:, 1], *BASE_WEIGHT_LIMITS))


class GatePolicy(OnnxPolicy):
    """A policy whose card holds kind, version, belief, shape, parameters, training.

    Attributes:
        belief: How lost teammates are seen.
    """

    kind, version, inputs, outputs = KIND, VERSION, INPUTS, OUTPUTS
    remedy = "name a file written by `phygail export` from weights of `phygail train reach-evolved`"

    def __init__(self, content: bytes, name: str = "policy") -> None:
        super().__init__(content, name)
        try:
            self.belief = BeliefSpec(**json.loads(self.card["belief"]))
        except (KeyError, TypeError, ValueError):
            raise InputError(f"the policy {name} does not say how it sees the lost: {self.remedy}") from None

    def gates(self, seen: LostEdges) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(E,) strength of attraction (negative: repulsion), (count,) speed toward the center, (count,) base weight.

        Strengths and speeds are in units of v_max. `keep_links` weighs a member that no ghost pulls with the base
        weight, and a pulled one with up to 1 more.
        """
        strength, speed, base_weight = self.answer(seen.features, seen.anchors)
        return strength[:, 0], speed[:, 0], base_weight[:, 0]


@functools.lru_cache(maxsize=8)
def load_gates(path: Path) -> GatePolicy:
    """The policy in a file, loaded once per process."""
    return GatePolicy(read_policy(path), str(path))
