"""GDR-TS (METHODS 3.6, Wang et al. 2025): contract the swarm until it is connected, improve the plan by online RL."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from phygail.config import Physics
from phygail.methods.base import register
from phygail.methods.planning import (
    LARGEST_POWER,
    TrainedPlanMethod,
    contract_until_connected,
    contraction,
    plan_range_m,
)
from phygail.sensing.views import GlobalView
from phygail.weights import bundled

if TYPE_CHECKING:  # torch is loaded when a plan is made, not when the methods are listed
    from torch import Tensor

    from phygail.methods.gdr_ts.policy import PlanTask

KIND = "gdr-ts"
VERSION = 1  # of features and network; weights of another version are refused
UPDATES = 240  # online, per case
PLANS = 16  # sampled per update
ONLINE_RATE = 6e-4  # Adam
LARGEST_NETWORK = 2_000  # alive UAVs; above it dense attention would need gigabytes, and the plan is Y


def make_task(spots: np.ndarray, half_width_m: float, physics: Physics) -> tuple[PlanTask, int]:
    """The planning task of alive UAVs at `spots` ((n, 2) m, relative to the center), and the power q of its Y."""
    import torch

    from phygail.methods.gdr_ts.policy import PlanTask

    plan_range = plan_range_m(physics.range_m)
    shrink = contraction(spots, physics.range_m)
    warm, power = contract_until_connected(spots, shrink.operator, plan_range)
    attends = torch.from_numpy(shrink.adjacency | np.eye(len(spots), dtype=bool))
    return PlanTask(spots, warm, attends, half_width_m, physics.range_m, plan_range), power


@functools.lru_cache(maxsize=4)
def load_policy_weights(path: Path) -> Mapping[str, Tensor]:
    """Tensors of the offline policy; callers copy them (`load_state_dict` does)."""
    from phygail.learning.networks import load_state
    from phygail.methods.gdr_ts.policy import PlanPolicy

    policy = PlanPolicy()
    load_state(policy, path, KIND, VERSION)
    return policy.state_dict()


def improve(
    task: PlanTask, weights: Mapping[str, Tensor], rng: np.random.Generator, updates: int = UPDATES, plans: int = PLANS
) -> np.ndarray:
    """The connected plan ((n, 2) m, relative to the center) with the smallest largest displacement seen in online RL.

    Starts from a copy of `weights`; Y is the first candidate, so the answer is never worse than Y. Each update judges
    the sampled plans and the plan of the policy's mean.
    """
    import torch

    from phygail.learning.networks import one_thread
    from phygail.methods.gdr_ts.policy import PlanPolicy, descend, judge, sample_plans

    policy = PlanPolicy()
    policy.load_state_dict(weights)
    optimizer = torch.optim.Adam(policy.parameters(), lr=ONLINE_RATE)
    noise = torch.Generator().manual_seed(int(rng.integers(2**31)))
    best, smallest = task.warm, float(judge(task, task.warm[None]).largest_m[0])
    with one_thread():  # small matrices: more threads only wait for each other, and rounding would depend on them
        for _ in range(updates):
            sampled = sample_plans(policy, task, plans, noise)
            reached = np.where(sampled.judgment.subnets == 1, sampled.judgment.largest_m, np.inf)
            winner = int(reached.argmin())
            if reached[winner] < smallest:
                best, smallest = sampled.plans[winner], float(reached[winner])
            descend(policy, optimizer, sampled.loss)
    return best


@register
class GdrTs(TrainedPlanMethod):
    """Y = H^q P with the smallest q that connects, then policy gradient on graph attention for this very case."""

    name = KIND
    summary = "contraction plan improved by online policy gradient on graph attention (Wang et al. 2025)"
    learned = True
    training = "phygail.methods.gdr_ts.train:job"
    extra = "learn"

    def __init__(
        self,
        rng: np.random.Generator | None = None,
        *,
        weights: str | Path | Mapping[str, Tensor] | None = None,
        updates: int = UPDATES,
    ) -> None:
        """Plan with the bundled weights, a file or tensors of your own; `updates` bounds the online learning."""
        super().__init__(rng)
        given = bundled(KIND) if weights is None else weights
        self.weights = given if isinstance(given, Mapping) else load_policy_weights(Path(given))
        self.updates = updates

    def plan_scaled(self, view: GlobalView) -> np.ndarray:
        mission = view.mission
        # Sorted by place and rounded to a micrometer at 120 m, the plan depends on neither numbering nor origin.
        offset = (view.positions - mission.center).round(6)
        order = np.lexsort(offset.T)
        task, power = make_task(offset[order], mission.width_m / 2, mission.physics)
        if power >= LARGEST_POWER:
            self.flag = "centroid"  # the contraction did not connect within its limit: Y is its limit point
        if len(order) > LARGEST_NETWORK:
            self.flag = "contraction"
            answer = task.warm
        else:
            answer = improve(task, self.weights, self.rng, self.updates)
        targets = np.empty_like(view.positions)
        targets[order] = answer + mission.center
        return targets
