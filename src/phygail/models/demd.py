"""DEMD's network and its online optimization with two balanced losses (METHODS 3.5)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from phygail.models.plan_loss import count_subnets, gap, largest_displacement, smooth_displacement
from phygail.models.plan_search import EARLIEST_STOP, SPLIT_PENALTY_M, Found, affordable
from phygail.models.planners import ConvolutionStack
from phygail.models.stack_descent import StackDescent

LEAST_RATE = 0.01  # of the first one, where a decaying rate ends
BALANCE_STEP = 0.01  # of a loss weight, per iteration
LEAST_WEIGHT = 0.02  # of a loss
BALANCE_POWER = 0.12  # how much slower-falling losses are favored
SPLIT_RUN = 5  # disconnected iterates in a row that end the search ...
GOOD_SHARE = 0.6  # ... once the best J is below this share of W


@dataclass(frozen=True)
class DemdProfile:
    """What the profiles differ in.

    Attributes:
        name: "faithful" or "guarded".
        width: Units of a hidden layer.
        iterations: Most iterations.
        patience: Stop after this many iterates without an improvement of J by `least_gain` of it; None: never.
        least_gain: Relative.
        rate: Adam's.
        guard: Whether a split iterate also descends on its gap, as in CR-MGC; the search then does not end on splits,
            and the kept plan is the connected one with the smallest L1: J with moving weights is no common scale.
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
    """One case, float32, coordinates in metres from the corner of the map, or from its center if centered.

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
    """(Q = X_8 in metres, H X_7): the targets, not squashed, and what the last layer's weights act on."""
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
    sum |G_i - target_i| in a_i has the sign of G_i - target_i, and a_i moves 0.01 against it. Kept at 0.02 or more and
    at a sum of 2.

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
        if _finished(found, iteration, case.width_m, profile):
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


def _finished(found: Found, iteration: int, width_m: float, profile: DemdProfile) -> bool:
    torn = iteration >= EARLIEST_STOP and found.split_run >= SPLIT_RUN and found.cost_m < GOOD_SHARE * width_m
    if torn and not profile.guard:
        return True
    return profile.patience is not None and found.stalled(profile.patience, profile.least_gain * found.cost_m)
