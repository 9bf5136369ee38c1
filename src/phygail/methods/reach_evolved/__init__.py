"""`reach-evolved`, the evolved rule (docs/methods/reach-evolved.md), and `reach-cloned`, its start. No torch."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import ClassVar

import numpy as np

from phygail.config import PAPER_RANGE_M
from phygail.methods.base import SubnetMethod, register
from phygail.methods.reach_evolved.beliefs import Beliefs, DelayedBeliefs
from phygail.methods.reach_evolved.gates import load_gates
from phygail.methods.reach_evolved.rebased import RebasedBeliefs
from phygail.methods.sidr import AGGREGATED, aggregate
from phygail.methods.steering import block, keep_links
from phygail.sensing.imperfect import decide_delayed
from phygail.sensing.radio import FLOOD, NUMBER_BYTES
from phygail.sensing.views import SubnetView, SubnetViews
from phygail.swarm.links import group_sums
from phygail.swarm.simulator import project_speed
from phygail.weights import bundled


@register
class ReachEvolved(SubnetMethod):
    """v_i = v_max (speed_S toward c + sum of S (w_att - w_rep) unit(ghost - p_i)), links of the subnet kept.

    The gates read what a subnet knows about itself and each lost teammate (`methods.reach_evolved.beliefs`). Two parts
    are not learned: links of the subnet's tree are kept (`methods.steering`), and a subnet that would miss the budget
    flies to the center, the aggregation phase of METHODS 3.3; a flight that gets there carries the flag `late-phase`.
    """

    name = "reach-evolved"
    stream = "phygail"
    summary = "gates on lost teammates, cloned from reach and evolved in worlds of at most 20 flying"
    learned = True
    training = "phygail.methods.reach_evolved.train:evolve"
    dead_reckons = True
    talk = replace(FLOOD, roster_bits=8 * NUMBER_BYTES)  # a belief about everybody
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
