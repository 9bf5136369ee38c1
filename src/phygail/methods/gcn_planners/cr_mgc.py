"""CR-MGC (METHODS 3.4, Mou et al. 2022): a meta-learned graph convolutional network, optimized for each case."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np

from phygail.config import InputError
from phygail.methods.base import register
from phygail.methods.planning import TrainedPlanMethod, canonical_order, contraction, contraction_plan, plan_range_m
from phygail.sensing.views import GlobalView, Mission

if TYPE_CHECKING:
    from torch import Tensor

    from phygail.methods.gcn_planners.network import ConvolutionStack
    from phygail.methods.gcn_planners.search import PlanCase

KIND = "cr-mgc"
VERSION = 1  # of the architecture: weights of another one are refused


@register
class CrMgc(TrainedPlanMethod):
    """Targets that are connected and minimize the largest displacement, found by Adam on the network's weights.

    Args:
        profile: "fast" (the project's) or "faithful" (the original's widths, input, budget and stop rule).
        weights: Initial weights, a file or the tensors themselves; the bundled meta-learned ones if None.
        meta: False starts from random weights instead, as the original does without meta-learning.
        iterations: Most online iterations; the profile's if None.
    """

    name = "cr-mgc"
    summary = "graph convolutional network with meta-learned weights, optimized for each case (Mou et al. 2022)"
    learned = True
    training = "phygail.methods.gcn_planners.train:cr_mgc_job"
    extra = "learn"

    def __init__(
        self,
        rng: np.random.Generator | None = None,
        *,
        profile: Literal["fast", "faithful"] = "fast",
        weights: str | Path | Mapping[str, Tensor] | None = None,
        meta: bool = True,
        iterations: int | None = None,
    ) -> None:
        super().__init__(rng)
        if profile not in ("fast", "faithful"):
            raise InputError(f"profile {profile!r} of cr-mgc: choose fast or faithful")
        self.profile, self.weights, self.meta, self.iterations = profile, weights, meta, iterations

    def plan_scaled(self, view: GlobalView) -> np.ndarray:
        from phygail.learning.networks import one_thread
        from phygail.methods.gcn_planners.search import PROFILES, search_cr_mgc

        order = canonical_order(view.positions)
        points = view.positions[order]
        operator = contraction(points, view.mission.physics.range_m).operator
        with one_thread():
            case = plan_case(points, operator, view.mission, normalized=PROFILES[self.profile].normalized)
            found = search_cr_mgc(self._network(), case, PROFILES[self.profile], self.iterations)
        targets = np.empty_like(points)
        if found.targets is None:
            self.flag = "fallback:contraction"
            targets[order] = contraction_plan(points, view.mission.physics.range_m)
        else:
            targets[order] = view.mission.center + found.targets
        return targets

    def _network(self) -> ConvolutionStack:
        """A fresh copy for this case: nothing is carried from case to case."""
        import torch

        from phygail.methods.gcn_planners.network import ConvolutionStack
        from phygail.methods.gcn_planners.search import PROFILES

        seed = int(self.rng.integers(2**31))
        network = ConvolutionStack(PROFILES[self.profile].width, torch.Generator().manual_seed(seed))
        if self.meta:
            from phygail.learning.networks import load_state
            from phygail.weights import bundled

            start = bundled(weights_name(self.profile)) if self.weights is None else self.weights
            load_state(network, start, KIND, VERSION)
        return network


def weights_name(profile: str) -> str:
    """Name of the bundled weights of a profile."""
    return KIND if profile == "fast" else f"{KIND}-{profile}"


def plan_case(points: np.ndarray, operator: np.ndarray, mission: Mission, *, normalized: bool) -> PlanCase:
    """The case in the frame of the map's center.

    The map is the square of side W around the center; should a user's own center leave somebody outside, it grows to
    hold all of them.
    """
    import torch

    from phygail.methods.gcn_planners.search import PlanCase

    relative = points - mission.center
    half = max(mission.width_m / 2, float(np.abs(relative).max()))
    inputs = relative / half if normalized else relative + half
    return PlanCase(
        torch.tensor(inputs, dtype=torch.float32),
        torch.tensor(relative, dtype=torch.float32),
        torch.tensor(operator, dtype=torch.float32),
        half,
        plan_range_m(mission.physics.range_m),
    )
