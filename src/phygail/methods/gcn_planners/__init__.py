"""CR-MGC and DEMD: planners with graph convolutions, optimized for each case (METHODS 3.4, 3.5). No torch on import.

CR-MGC (Mou et al. 2022) starts from meta-learned weights. DEMD (Lin et al. 2024) embeds the damage, convolves over a
multi-hop graph and balances two losses.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import shortest_path

from phygail.config import InputError
from phygail.methods.base import register
from phygail.methods.planning import (
    TrainedPlanMethod,
    canonical_order,
    contraction,
    contraction_plan,
    operator_of,
    plan_range_m,
)
from phygail.sensing.views import GlobalView, Mission
from phygail.swarm.links import find_links, label_subnets

if TYPE_CHECKING:
    from torch import Tensor

    from phygail.methods.gcn_planners.network import ConvolutionStack
    from phygail.methods.gcn_planners.search import DemdCase, PlanCase

# --- CR-MGC ----------------------------------------------------------------------------------------------------------

CR_MGC, DEMD = "cr-mgc", "demd"  # kinds of weight files
VERSION = 1  # of both architectures: weights of another one are refused
HOPS = 3  # k of DEMD without damage
DAMAGED_PER_HOP = 50  # damaged UAVs per further hop


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
            load_state(network, start, CR_MGC, VERSION)
        return network


def weights_name(profile: str) -> str:
    """Name of the bundled weights of a profile."""
    return CR_MGC if profile == "fast" else f"{CR_MGC}-{profile}"


def plan_case(points: np.ndarray, operator: np.ndarray, mission: Mission, *, normalized: bool) -> PlanCase:
    """The case in coordinates from the map's center.

    The map is the square of side W around the center; if a user's own center leaves UAVs
    outside, it grows to hold all of them.
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


# --- DEMD ------------------------------------------------------------------------------------------------------------


@register
class Demd(TrainedPlanMethod):
    """Targets from a graph convolutional network over the pre-damage k-hop graph, optimized on this very case.

    Args:
        profile: "faithful" (512 units, random weights, 1000 iterations) or "guarded" (256 units, pre-trained,
            guard; benchmarks/demd_profiles.py measures that it is no worse).
        weights: Initial weights of the guarded profile, a file or the tensors themselves; the bundled ones if None.
        iterations: Most iterations; the profile's if None.
    """

    name = "demd"
    summary = "damage-embedded multi-hop graph convolutional network, optimized for each case (Lin et al. 2024)"
    learned = True
    training = "phygail.methods.gcn_planners.train:demd_job"
    extra = "learn"

    def __init__(
        self,
        rng: np.random.Generator | None = None,
        *,
        profile: Literal["faithful", "guarded"] = "guarded",
        weights: str | Path | Mapping[str, Tensor] | None = None,
        iterations: int | None = None,
    ) -> None:
        super().__init__(rng)
        if profile not in ("faithful", "guarded"):
            raise InputError(f"profile {profile!r} of demd: choose faithful or guarded")
        self.profile, self.weights, self.iterations = profile, weights, iterations

    def plan_scaled(self, view: GlobalView) -> np.ndarray:
        from phygail.learning.networks import one_thread
        from phygail.methods.gcn_planners.search import DEMD_PROFILES, search_demd

        order = canonical_order(view.positions)
        profile = DEMD_PROFILES[self.profile]
        with one_thread():
            cases = _distinct(
                [demd_case(view, order, centered=profile.centered, fewer_hops=n) for n in profile.fewer_hops]
            )
            tries = [search_demd(self._network(), case, profile, self.iterations)[0] for case in cases]
        found = min(tries, key=lambda found: found.cost_m)  # infinite where no iterate was connected
        if found.targets is None:
            self.flag = "fallback:contraction"
            best = contraction_plan(view.positions[order], view.mission.physics.range_m)
        else:
            best = case_origin(view.mission, centered=profile.centered) + found.targets
        targets = np.empty_like(best)
        targets[order] = best
        return targets

    def _network(self) -> ConvolutionStack:
        """A fresh copy for this case: nothing is carried from case to case."""
        import torch

        from phygail.learning.networks import load_state
        from phygail.methods.gcn_planners.network import ConvolutionStack
        from phygail.methods.gcn_planners.search import DEMD_PROFILES
        from phygail.weights import bundled

        profile = DEMD_PROFILES[self.profile]
        network = ConvolutionStack(profile.width, torch.Generator().manual_seed(int(self.rng.integers(2**31))))
        if profile.pretrained:
            load_state(network, bundled(DEMD) if self.weights is None else self.weights, DEMD, VERSION)
        return network


def _distinct(cases: list[DemdCase]) -> list[DemdCase]:
    """The cases without repeated graphs: where all UAVs are a few hops apart, one hop less changes nothing."""
    return [case for k, case in enumerate(cases) if not any(case.operator.equal(first.operator) for first in cases[:k])]


def hop_distances(roster: np.ndarray, range_m: float) -> np.ndarray:
    """(N, N) links between any two UAVs before the damage, through all UAVs; infinite where there is no path."""
    pairs = find_links(roster, range_m).pairs
    graph = coo_array((np.ones(len(pairs)), (pairs[:, 0], pairs[:, 1])), shape=(len(roster), len(roster)))
    return shortest_path(graph.tocsr(), directed=False, unweighted=True)


def hop_graph(hops: np.ndarray, damaged: int, fewer_hops: int = 0) -> tuple[np.ndarray, int]:
    """The k-hop graph of the alive ((n, n) bool, zero diagonal) and its k = 3 + floor(N_dmg / 50) - `fewer_hops`.

    If that graph has no edge, k grows until it is connected; if even the layout before the damage was split, k ends at
    its longest path.

    Args:
        hops: (n, n) pre-damage hop distances of the alive.
        damaged: N_dmg.
        fewer_hops: For trying several k.
    """
    apart = np.where(np.eye(len(hops), dtype=bool), np.inf, hops)
    hop = HOPS + damaged // DAMAGED_PER_HOP - fewer_hops
    if not (apart <= hop).any():
        longest = int(hops[np.isfinite(hops)].max(initial=0))
        while hop < longest and label_subnets(len(hops), np.argwhere(apart <= hop))[1] > 1:
            hop += 1
    return apart <= hop, hop


def case_origin(mission: Mission, *, centered: bool) -> np.ndarray:
    """(2,) m, where coordinates are counted from: the center of the map, or its corner as published."""
    return mission.center if centered else mission.center - mission.width_m / 2


def demd_case(view: GlobalView, order: np.ndarray, *, centered: bool, fewer_hops: int = 0) -> DemdCase:
    """The case with the alive in `order` ((n,) rows of the view) and `fewer_hops` less than the usual k."""
    import torch

    from phygail.methods.gcn_planners.search import DemdCase

    alive, range_m = view.members[order], view.mission.physics.range_m
    # Alive first, then the damaged, each by place: the numbering of the UAVs has no influence.
    damaged = view.damaged[canonical_order(view.roster[view.damaged])]
    ranks = np.concatenate([alive, damaged])
    hops = hop_distances(view.roster, range_m)
    adjacency, _ = hop_graph(hops[np.ix_(alive, alive)], len(damaged), fewer_hops)
    degree = adjacency.sum(axis=1)
    origin = case_origin(view.mission, centered=centered)
    points = view.positions[order] - origin

    def tensor(values: np.ndarray) -> torch.Tensor:
        return torch.tensor(values, dtype=torch.float32)

    return DemdCase(
        roster=tensor(view.roster[ranks] - origin),
        embedding=tensor(hops[np.ix_(alive, ranks)] <= 1),
        positions=tensor(points),
        operator=tensor(operator_of(adjacency)[0]),
        shares=tensor(degree / degree.sum() if degree.any() else np.full(len(alive), 1 / len(alive))),
        box_center=tensor((points.min(axis=0) + points.max(axis=0)) / 2),
        width_m=view.mission.width_m,
        range_m=plan_range_m(range_m),
    )
