"""`reach-evolved`, the evolved rule (docs/methods/reach-evolved.md), and `reach-cloned`, its start. No torch.

The policy is a gate on each lost teammate and an anchor gate per subnet. Both exist in numpy and in ONNX Runtime, which
flies. PhyGNN's message S (w_att - w_rep) acts on a direction here, not on a hidden vector: the message to a UAV is a
sum of unit vectors times scalars. The scalars do not change when the scene is rotated, reflected or moved. So the
policy is equivariant by construction, and what it learns in one corner of the map holds in the others.
"""

from __future__ import annotations

import functools
import json
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import ClassVar

import numpy as np
from scipy.special import expit

from phygail.config import PAPER_RANGE_M, InputError
from phygail.methods.base import SubnetMethod, register
from phygail.methods.sidr import AGGREGATED, aggregate
from phygail.methods.steering import block, keep_links
from phygail.sensing.beliefs import Beliefs, BeliefSpec, DelayedBeliefs, LostEdges
from phygail.sensing.imperfect import decide_delayed
from phygail.sensing.radio import FLOOD, NUMBER_BYTES
from phygail.sensing.views import SubnetView, SubnetViews
from phygail.sensing.worlds import RebasedBeliefs
from phygail.swarm.links import group_sums
from phygail.swarm.simulator import project_speed
from phygail.weights import OnnxPolicy, bundled, read_policy


@register
class ReachEvolved(SubnetMethod):
    """v_i = v_max (speed_S toward c + sum of S (w_att - w_rep) unit(ghost - p_i)), links of the subnet kept.

    The gates read what a subnet knows about itself and each lost teammate (`sensing.beliefs`). Two parts
    are not learned: links of the subnet's tree are kept (`methods.steering`), and a subnet that would miss the budget
    flies to the center, the aggregation phase of METHODS 3.3; a flight that gets there carries the flag `late-phase`.
    """

    name = "reach-evolved"
    stream = "phygail"
    summary = "gates on lost teammates, cloned from reach and evolved in worlds of at most 20 flying"
    learned = True
    training = "phygail.methods.reach_evolved.train:evolve"
    dead_reckons = True
    talk = replace(FLOOD, roster_bits=8 * NUMBER_BYTES)  # a belief about every UAV
    policy_name: ClassVar[str] = "reach-evolved"

    def __init__(self, rng: np.random.Generator | None = None, *, policy: str | Path | None = None) -> None:
        super().__init__(rng)
        file = Path(policy) if policy is not None else bundled(self.policy_name).with_suffix(".onnx")
        self.policy = load_gates(file.resolve())
        self._margin = self.policy.belief.margin_m / PAPER_RANGE_M
        self._beliefs = Beliefs(self.policy.belief)
        self._delayed: DelayedBeliefs | None = None

    def act(self, view: SubnetView) -> np.ndarray:
        return self.act_all(view.alone())

    def act_all(self, views: SubnetViews) -> np.ndarray:
        if views.mission.losses and not isinstance(self._beliefs, RebasedBeliefs):
            self._beliefs = RebasedBeliefs(self.policy.belief)
        return self._decide(views, self._beliefs)

    def act_imperfect(self, views: SubnetViews) -> np.ndarray:
        if views.news is None:
            return self.act_all(views)
        if self._delayed is None:
            self._delayed = DelayedBeliefs(self.policy.belief, views.news.delay_steps)
        self._delayed.listen_to_others(views)
        commands = decide_delayed(views, partial(self._decide, beliefs=self._delayed), reckoned=self.dead_reckons)
        self._delayed.tell_others()
        return commands

    def _decide(self, views: SubnetViews, beliefs: Beliefs) -> np.ndarray:
        physics = views.mission.physics
        seen = beliefs.observe(views)
        strength, speed, base_weight = self.policy.gates(seen)
        pull = group_sums(seen.receiver, (strength * seen.weight)[:, None] * seen.direction, len(views.positions))
        base = speed[views.subnet][:, None] * block(views)
        wanted = project_speed(base + physics.speed_mps * pull, physics.speed_mps)
        pull_weight = base_weight[views.subnet] + np.minimum(np.hypot(pull[:, 0], pull[:, 1]), 1.0)
        kept = keep_links(views, wanted, pull_weight, margin=self._margin, only=views.asked)
        commands, aggregated = aggregate(views, kept)
        self.flag = AGGREGATED if aggregated else self.flag
        return commands

    def tell(self, member: int) -> np.ndarray | None:
        return self._beliefs.tell(member)

    def hear(self, member: int, news: np.ndarray) -> None:
        self._beliefs.hear(member, news)


@register
class ReachCloned(ReachEvolved):
    """The start of `reach-evolved`: the same gates, taught to imitate `reach`. It shows what evolution added."""

    name = "reach-cloned"
    stream = "phygail-clone"
    summary = "the same gates as reach-evolved, only cloned from reach: its starting point"
    policy_name = "reach-cloned"


# --- gates -----------------------------------------------------------------------------------------------------------

EDGE_INPUTS = 9  # per lost teammate (`sensing.beliefs.EDGE_FEATURES`)
EDGE_OUTPUTS = 3  # logits of the attraction and the repulsion gate, log strength
ANCHOR_INPUTS = 5  # per subnet (`sensing.beliefs.ANCHOR_FEATURES`)
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

    Tests hold the compiled and the exported form against it.
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
