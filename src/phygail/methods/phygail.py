"""The trained policies: `phygail-paper` (METHODS 4) and `phygail`, ours (docs/methods/phygail.md). No torch."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import ClassVar

import numpy as np

from phygail.config import PAPER_RANGE_M
from phygail.groups import group_sums
from phygail.methods.base import SubnetMethod, register
from phygail.methods.forces import go
from phygail.methods.links import keep_links
from phygail.methods.policy import PolicyMethod
from phygail.methods.sidr import LATE, aggregate
from phygail.models.gate_runtime import load_gates
from phygail.perception.lost import Beliefs
from phygail.perception.noise import SensedViews
from phygail.perception.pictures import LateBeliefs, decide_late
from phygail.perception.view import SubnetView, SubnetViews
from phygail.swarm.dynamics import project_speed
from phygail.tensors import bundled


@register
class PhygailPaper(PolicyMethod):
    """The paper's graph, network and rewards, trained on swarms of 20."""

    name = "phygail-paper"
    summary = "the paper's physics-gated graph policy, trained on 20 UAVs"
    policy_name = "phygail-paper"


@register
class Phygail(SubnetMethod):
    """v_i = v_max (speed_S toward c + sum of S (w_att - w_rep) unit(ghost - p_i)), links of the subnet kept.

    The gates read what a subnet knows about itself and each lost teammate (`perception.lost`). Two parts are not
    learned: links of the subnet's tree are kept (`methods.links`), and a subnet that would be late otherwise flies to
    the center, the aggregation phase of METHODS 3.3; a flight that gets there carries the flag `late-phase`.
    """

    name = "phygail"
    summary = "gates on lost teammates, cloned from reach and evolved in worlds of at most 20 flying"
    learned = True
    reckons = True
    own_centers = True
    policy_name: ClassVar[str] = "phygail"

    def __init__(self, rng: np.random.Generator | None = None, *, policy: str | Path | None = None) -> None:
        super().__init__(rng)
        file = Path(policy) if policy is not None else bundled(self.policy_name).with_suffix(".onnx")
        self.policy = load_gates(file.resolve())
        self._margin = self.policy.belief.margin_m / PAPER_RANGE_M
        self._beliefs = Beliefs(self.policy.belief)
        self._late: LateBeliefs | None = None

    def act(self, view: SubnetView) -> np.ndarray:
        return self.act_all(view.alone())

    def act_all(self, views: SubnetViews) -> np.ndarray:
        return self._decide(views, self._beliefs)

    def act_late(self, views: SensedViews, delay_steps: int) -> np.ndarray:
        """(n, 2) m/s where news is late: every UAV decides in its own picture of its subnet (`perception.pictures`)."""
        if self._late is None:
            self._late = LateBeliefs(self.policy.belief, delay_steps)
        self._late.listen_to_others(views)
        commands = decide_late(views, partial(self._decide, beliefs=self._late), reckoned=self.reckons)
        self._late.tell_others()
        return commands

    def _decide(self, views: SubnetViews, beliefs: Beliefs) -> np.ndarray:
        physics = views.mission.physics
        seen = beliefs.observe(views)
        strength, speed, ease = self.policy.gates(seen)
        pull = group_sums(seen.receiver, (strength * seen.weight)[:, None] * seen.direction, len(views.positions))
        base = (speed[:, None] * go(views.means(views.positions), views.centers, physics))[views.subnet]
        wanted = project_speed(base + physics.speed_mps * pull, physics.speed_mps)
        heft = ease[views.subnet] + np.minimum(np.hypot(pull[:, 0], pull[:, 1]), 1.0)
        commands, late = aggregate(views, keep_links(views, wanted, heft, margin=self._margin, only=views.asked))
        self.flag = LATE if late else self.flag
        return commands

    def tell(self, member: int) -> np.ndarray | None:
        return self._beliefs.tell(member)

    def hear(self, member: int, news: np.ndarray) -> None:
        self._beliefs.hear(member, news)


@register
class PhygailClone(Phygail):
    """Where the evolution of `phygail` began: the same gates, taught to imitate `reach`. Shows what evolution added."""

    name = "phygail-clone"
    summary = "the same gates as phygail, only cloned from reach: its starting point"
    policy_name = "phygail-clone"
