"""Methods that fly a trained policy file: the paper's graph, one call of ONNX Runtime, the speed disc. No torch.

A policy that comes with the package becomes a method in a few lines:

    @register
    class PhygailPaper(PolicyMethod):
        name = "phygail-paper"
        summary = "the paper's physics-gated graph policy"
        policy_name = "phygail-paper"
"""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

import numpy as np

from phygail.config import InputError
from phygail.methods.base import SubnetMethod
from phygail.models.runtime import load_policy
from phygail.perception.graph import perceive
from phygail.perception.view import SubnetView, SubnetViews
from phygail.swarm.dynamics import project_speed
from phygail.tensors import bundled


class PolicyMethod(SubnetMethod):
    """v_i = v_max tanh(mu_i) on the speed disc. Edges never cross subnets, so all of them are one call.

    Attributes:
        policy_name: Of the policy in phygail/weights that flies when the user names no file.
        senses: It reads noisy and delayed views itself (`methods.sensed`).
    """

    learned = True
    policy_name: ClassVar[str | None] = None
    senses: ClassVar[bool] = True

    def __init__(self, rng: np.random.Generator | None = None, *, policy: str | Path | None = None) -> None:
        super().__init__(rng)
        if policy is None and self.policy_name is None:
            raise InputError("there is no policy to fly: name a file written by `phygail export`")
        file = Path(policy) if policy is not None else bundled(str(self.policy_name)).with_suffix(".onnx")
        self.policy = load_policy(file.resolve())

    def act(self, view: SubnetView) -> np.ndarray:
        return self._decide(view)

    def act_all(self, views: SubnetViews) -> np.ndarray:
        return self._decide(views)

    def _decide(self, view: SubnetView | SubnetViews) -> np.ndarray:
        speed = view.mission.physics.speed_mps
        # Where neighbors are late, the rows are followed by their twins, whose decisions nobody flies.
        actions = self.policy.actions(perceive(view, self.policy.graph_spec))[: len(view.members)]
        return project_speed(speed * actions.astype(float), speed)
