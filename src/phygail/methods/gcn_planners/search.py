"""Online optimization of a planner network for one case: CR-MGC and DEMD (METHODS 3.4, 3.5)."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from phygail.methods.gcn_planners.network import ConvolutionStack, StackDescent
from phygail.swarm.links import find_links
from phygail.swarm.tree import spanning_tree

SMOOTHING_M = 10.0  # temperature of the smooth maximum

SPLIT_PENALTY_M = 1000.0  # of J, per subnet above one

LEAST_RATE = 0.01  # of the first rate, where a decaying rate ends
BALANCE_STEP = 0.01  # of a loss weight, per iteration
LEAST_WEIGHT = 0.02  # of a loss
BALANCE_POWER = 0.12  # how much slower-falling losses are favored
SPLIT_RUN = 5  # disconnected iterates in a row that end the search ...
GOOD_SHARE = 0.6  # ... once the best J is below this share of W


def largest_displacement(targets: Tensor, positions: Tensor) -> Tensor:
    """max_i |q_i - p_i|, m, of (n, 2) m each. Its gradient is that of the one UAV that flies farthest."""
    return torch.linalg.vector_norm(targets - positions, dim=1).max()


def smooth_displacement(targets: Tensor, positions: Tensor) -> Tensor:
    """T log sum_i exp(|q_i - p_i| / T) with T = 10 m: at most T log n above the maximum, with a gradient for many."""
    moves = torch.linalg.vector_norm(targets - positions, dim=1)
    return SMOOTHING_M * torch.logsumexp(moves / SMOOTHING_M, dim=0)


def count_subnets(targets: Tensor, range_m: float) -> int:
    """N_c(Q): subnets of the network at (n, 2) m; has no gradient."""
    return find_links(targets.detach().double().numpy(), range_m).count


def gap(targets: Tensor, range_m: float) -> Tensor:
    """Sum over the spanning tree's edges of max(0, length - range), m; zero if and only if connected.

    The tree is found outside of autograd; the gradient flows through the lengths of its edges longer than the range.
    """
    edges, lengths = spanning_tree(targets.detach().double().numpy())
    long = torch.from_numpy(edges[lengths > range_m])
    ends = targets.index_select(0, long.reshape(-1)).view(-1, 2, 2)
    return torch.linalg.vector_norm(ends[:, 0] - ends[:, 1], dim=1).sub(range_m).sum()


@dataclass(frozen=True, eq=False)
class PlanCase:
    """One case in coordinates from the map's center, float32.

    Attributes:
        inputs: (n, 2), what the network reads. positions: (n, 2) m, of the alive.
        operator: (n, n), H.
        half_m: Half the side of the map: targets stay within +-half of its center.
        range_m: Radio range a plan must be connected at (R_plan).
    """

    inputs: Tensor
    positions: Tensor
    operator: Tensor
    half_m: float
    range_m: float


@dataclass
class Found:
    """The best connected iterate and the course of the search.

    Attributes:
        targets: (n, 2) m, in coordinates of the case; None if no iterate was connected.
        cost_m: Its J.
        costs_m: J of every iterate.
        split: Number of disconnected iterates so far. split_run: Number of disconnected iterates in a row.
    """

    targets: np.ndarray | None = None
    cost_m: float = np.inf
    costs_m: list[float] = field(default_factory=list)
    split: int = 0
    split_run: int = 0

    def see(self, targets: Tensor, cost_m: float, subnets: int) -> None:
        """Account for an iterate with cost J and N_c subnets; keep it if it is connected and the best so far."""
        self.costs_m.append(cost_m)
        self.split, self.split_run = (self.split + 1, self.split_run + 1) if subnets > 1 else (self.split, 0)
        if subnets == 1 and cost_m < self.cost_m:  # a NaN is never the best
            self.targets, self.cost_m = targets.detach().double().numpy(), cost_m

    def stalled(self, patience: int, least_gain: float) -> bool:
        """Whether a connected plan exists and `patience` iterates did not improve J by more than `least_gain`."""
        if self.targets is None or len(self.costs_m) <= patience:
            return False
        return min(self.costs_m[-patience:]) > min(self.costs_m[:-patience]) - least_gain


@dataclass(frozen=True)
class Profile:
    """Settings of CR-MGC (METHODS 3.4).

    Attributes:
        name: "fast" or "faithful".
        width: h, units of a hidden layer.
        normalized: Whether the network reads (P - c)/(W/2) or raw meters from the corner of the map.
        iterations: Most online iterations.
        rate: Adam's rate.
        rate_after_split: Adam's rate once an iterate after number EARLIEST_STOP was disconnected; None: unchanged.
        most_split: Stop after this many disconnected iterates, counted after number EARLIEST_STOP; None: never.
        patience: Stop after this many iterates without an improvement of J; None: never.
        smooth: Whether the gradient is that of a smooth maximum (log-sum-exp, 10 m) in place of the maximum.
    """

    name: str
    width: int
    normalized: bool
    iterations: int
    rate: float
    rate_after_split: float | None
    most_split: int | None
    patience: int | None
    smooth: bool


PROFILES = {
    "fast": Profile("fast", 256, True, 300, 1e-3, None, None, 60, True),
    "faithful": Profile("faithful", 500, False, 1000, 1e-4, 1e-5, 5, None, False),
}
EARLIEST_STOP = 50  # iterations before the published stop rules may act
LARGE = 2_000  # alive; larger swarms get fewer iterations ...
FEWEST = 10  # ... but not fewer than this
LEAST_GAIN_M = 0.1  # a smaller improvement of J does not count


def squashed_targets(network: ConvolutionStack, case: PlanCase) -> Tensor:
    """Q = (W/2) tanh(X_8), (n, 2) m from the map's center: inside the map by construction."""
    return squash(network(case.inputs, case.operator), case)


def squash(raw: Tensor, case: PlanCase) -> Tensor:
    """Q = (W/2) tanh(X_8)."""
    return case.half_m * torch.tanh(raw)


def descent_loss(targets: Tensor, case: PlanCase, *, smooth: bool, guard: bool) -> Tensor:
    """The loss that is descended: the largest displacement, plus the gap while the plan is split (the guard)."""
    displacement = smooth_displacement if smooth else largest_displacement
    loss = displacement(targets, case.positions)
    return loss + gap(targets, case.range_m) if guard else loss


def search_cr_mgc(network: ConvolutionStack, case: PlanCase, profile: Profile, iterations: int | None = None) -> Found:
    """Optimize the weights of `network` (changed in place) for one case; J = max_i |q_i - p_i| + 1000 (N_c - 1)."""
    descent = StackDescent(network, case.inputs, case.operator, rate=profile.rate, gather_last=False)
    found = Found()
    late_split = 0
    for iteration in range(affordable(iterations or profile.iterations, len(case.positions))):
        raw = descent.forward().requires_grad_()
        targets = squash(raw, case)
        subnets = count_subnets(targets, case.range_m)
        move = largest_displacement(targets, case.positions).item()
        found.see(targets, move + SPLIT_PENALTY_M * (subnets - 1), subnets)
        late_split += subnets > 1 and iteration >= EARLIEST_STOP
        if _finished(found, late_split, profile):
            break
        if late_split and profile.rate_after_split is not None:
            descent.rate = profile.rate_after_split
        loss = descent_loss(targets, case, smooth=profile.smooth, guard=subnets > 1)
        descent.step(torch.autograd.grad(loss, raw)[0])
    return found


def _finished(found: Found, late_split: int, profile: Profile) -> bool:
    if profile.patience is not None and found.stalled(profile.patience, LEAST_GAIN_M):
        return True
    # Without a connected plan the published rule would end in the fallback; the guard gets the whole budget instead.
    return profile.most_split is not None and late_split >= profile.most_split and found.targets is not None


def affordable(iterations: int, alive: int) -> int:
    """Iterations for a swarm of this size: above 2,000 alive they shrink as their cost grows (n^2), to 10 at least.

    A case stays within minutes; if no iterate was connected by then, the fallback plans.
    """
    return max(min(iterations, FEWEST), int(iterations * min(1.0, (LARGE / alive) ** 2)))


@dataclass(frozen=True)
class DemdProfile:
    """Settings of DEMD (METHODS 3.5).

    Attributes:
        name: "faithful" or "guarded".
        width: Units of a hidden layer.
        iterations: Most iterations.
        patience: Stop after this many iterates without an improvement of J by `least_gain` of it; None: never.
        least_gain: Relative.
        rate: Adam's.
        guard: Whether a split iterate also descends on its gap, as in CR-MGC; the search then does not end on splits,
            and the kept plan is the connected one with the smallest L1, since J with moving weights is not comparable.
        smooth: Whether the gradient of L1 is that of a smooth maximum (log-sum-exp, 10 m).
        pretrained: Whether the search starts from the bundled weights instead of random ones.
        centered: Whether coordinates count from the center of the map instead of its corner.
        decay: Whether the rate falls linearly to a hundredth.
        fewer_hops: Graphs to try, one per entry, with k less by it; the best connected plan of all is kept.
    """

    name: str
    width: int = 512
    iterations: int = 1000
    patience: int | None = None
    least_gain: float = 1e-3
    rate: float = 1e-4
    guard: bool = False
    smooth: bool = False
    pretrained: bool = False
    centered: bool = False
    decay: bool = False
    fewer_hops: tuple[int, ...] = (0,)


DEMD_PROFILES = {
    "faithful": DemdProfile("faithful"),
    "guarded": DemdProfile(
        "guarded",
        256,
        1000,
        200,
        rate=2e-3,
        guard=True,
        smooth=True,
        pretrained=True,
        centered=True,
        decay=True,
        fewer_hops=(0, 1),
    ),
}


@dataclass(frozen=True, eq=False)
class DemdCase:
    """One case, float32, coordinates in meters from the corner of the map, or from its center if centered.

    Attributes:
        roster: (N, 2) m, the alive first, then the damaged: input of the damage embedding.
        embedding: (n, N), links before the damage with self-loops: B's rows of the alive.
        positions: (n, 2) m, of the alive.
        operator: (n, n), H of the k-hop graph.
        shares: (n,), w_i = deg_i / sum deg in the k-hop graph.
        box_center: (2,) m, of the bounding box of the alive.
        width_m: Side of the map.
        range_m: Radio range a plan must be connected at (R_plan).
    """

    roster: Tensor
    embedding: Tensor
    positions: Tensor
    operator: Tensor
    shares: Tensor
    box_center: Tensor
    width_m: float
    range_m: float


def raw_targets(network: ConvolutionStack, case: DemdCase) -> tuple[Tensor, Tensor]:
    """(Q = X_8 in meters, H X_7): the targets, not squashed, and what the last layer's weights act on."""
    *hidden, last = network.convolutions
    x = case.roster
    for index, layer in enumerate(hidden):
        x = torch.relu(layer(x, case.operator if index else case.embedding))
    gathered = case.operator @ x
    return torch.addmm(last.bias, gathered, last.weight), gathered


def center_offset(targets: Tensor, case: DemdCase) -> Tensor:
    """L2 = | sum_i w_i q_i - b |, m."""
    return torch.linalg.vector_norm(case.shares @ targets - case.box_center)


def rebalanced(weights: np.ndarray, slopes: np.ndarray, losses: np.ndarray, first: np.ndarray) -> np.ndarray:
    """One GradNorm step on the loss weights (a1, a2).

    G_i = a_i |dL_i/dW_last|, r_i = (L_i/L_i(0)) / mean, target_i = mean(G) r_i^0.12 held constant; the slope of
    sum |G_i - target_i| in a_i has the sign of G_i - target_i, and a_i moves 0.01 against it. The weights stay at
    0.02 or more, and their sum at 2.

    Args:
        weights: (2,), a. slopes: (2,), |dL_i/dW_last|. losses: (2,) m. first: (2,) m, at the first iterate.
    """
    norms = weights * slopes
    progress = losses / np.maximum(first, 1e-9)
    target = norms.mean() * (progress / max(progress.mean(), 1e-9)) ** BALANCE_POWER
    moved = weights - BALANCE_STEP * np.sign(norms - target)
    moved = np.clip(moved, LEAST_WEIGHT, 2.0 - LEAST_WEIGHT)
    return moved * (2.0 / moved.sum())


def search_demd(
    network: ConvolutionStack,
    case: DemdCase,
    profile: DemdProfile,
    iterations: int | None = None,
    frozen: tuple[float, float] | None = None,
) -> tuple[Found, np.ndarray]:
    """Optimize the weights of `network` (changed in place) for one case; J = 1000 (N_c - 1) + a1 L1 + a2 L2.

    Args:
        network: Freshly initialized.
        case: The case.
        profile: Widths and stop rules.
        iterations: Most iterations; the profile's if None.
        frozen: Constant (a1, a2) instead of the balanced ones.

    Returns:
        The best connected iterate, and the (iterations, 2) loss weights that were used.
    """
    descent = StackDescent(network, case.roster, case.operator, case.embedding, rate=profile.rate, gather_last=True)
    found, used = Found(), []
    displacement = smooth_displacement if profile.smooth else largest_displacement
    weights, first = np.array(frozen or (1.0, 1.0)), None
    budget = affordable(iterations or profile.iterations, len(case.positions))
    for iteration in range(budget):
        if profile.decay:
            descent.rate = profile.rate * max(1.0 - iteration / budget, LEAST_RATE)
        targets = descent.forward().requires_grad_()
        parts = (displacement(targets, case.positions), center_offset(targets, case))
        losses = np.array([part.item() for part in parts])
        subnets = count_subnets(targets, case.range_m)
        cost = largest_displacement(targets, case.positions).item() if profile.guard else float(weights @ losses)
        found.see(targets, cost + SPLIT_PENALTY_M * (subnets - 1), subnets)
        used.append(weights)
        if _demd_finished(found, iteration, case.width_m, profile):
            break
        first = losses if first is None else first
        toward = [torch.autograd.grad(part, targets)[0] for part in parts]
        slope = float(weights[0]) * toward[0] + float(weights[1]) * toward[1]
        if profile.guard and subnets > 1:
            slope = slope + torch.autograd.grad(gap(targets, case.range_m), targets)[0]
        descent.step(slope)
        if frozen is None:
            # dL/dW_last = (H X_7)^T dL/dQ: exact, without a second pass through the network.
            slopes = np.array([torch.linalg.norm(descent.gathered.T @ part).item() for part in toward])
            weights = rebalanced(weights, slopes, losses, first)
    return found, np.array(used)


def _demd_finished(found: Found, iteration: int, width_m: float, profile: DemdProfile) -> bool:
    torn = iteration >= EARLIEST_STOP and found.split_run >= SPLIT_RUN and found.cost_m < GOOD_SHARE * width_m
    if torn and not profile.guard:
        return True
    return profile.patience is not None and found.stalled(profile.patience, profile.least_gain * found.cost_m)
