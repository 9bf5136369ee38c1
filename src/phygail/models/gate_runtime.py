"""The gates of `phygail` in ONNX Runtime: what flies. No torch here, so that the light install can import it."""

from __future__ import annotations

import functools
import json
from pathlib import Path

import numpy as np

from phygail.config import InputError
from phygail.models.runtime import check_answer, open_policy, read_policy
from phygail.perception.lost import BeliefSpec, LostEdges

KIND = "phygail"  # of weight and policy files
VERSION = 1  # of observation and network; files of another version are refused
INPUTS = ("edges", "anchors")
OUTPUTS = ("strength", "speed", "ease")


class GatePolicy:
    """A loaded policy file.

    Attributes:
        name: What errors call it.
        card: The texts inside the file: kind, version, belief, shape, parameters, training.
        belief: How lost teammates are seen.
    """

    def __init__(self, content: bytes, name: str = "policy") -> None:
        self.name = name
        remedy = "name a file written by `phygail export` from weights of `phygail train phygail`"
        self._session, self.card = open_policy(content, name, KIND, VERSION, remedy)
        try:
            self.belief = BeliefSpec(**json.loads(self.card["belief"]))
        except (KeyError, TypeError, ValueError):
            raise InputError(f"the policy {name} does not say how it sees the lost: {remedy}") from None

    def __deepcopy__(self, memo: object) -> GatePolicy:
        """Itself: nothing in it changes, so copies of a pilot share it."""
        return self

    def gates(self, seen: LostEdges) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(E,) strength of the attraction (negative: repulsion), (count,) speed toward the center, (count,) ease.

        Strengths and speeds are in units of v_max; `ease` is the weight, beside who reaches out, of who does not.
        """
        values = dict(zip(INPUTS, (seen.features, seen.anchors), strict=True))
        strength, speed, ease = self._session.run(list(OUTPUTS), values)
        check_answer(self.name, strength, speed, ease)
        return strength[:, 0], speed[:, 0], ease[:, 0]


@functools.lru_cache(maxsize=8)
def load_gates(path: Path) -> GatePolicy:
    """The policy in a file, loaded once per process."""
    return GatePolicy(read_policy(path), str(path))
