"""Online optimization of a planner network for one case: what CR-MGC and DEMD have in common (METHODS 3.4, 3.5)."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from phygail.models.plan_loss import count_subnets, gap, largest_displacement, smooth_displacement
from phygail.models.planners import ConvolutionStack
from phygail.models.stack_descent import StackDescent

SPLIT_PENALTY_M = 1000.0  # of J per subnet too many


@dataclass(frozen=True, eq=False)
class PlanCase:
    """One case in the frame of the map's center, float32.

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
        targets: (n, 2) m, frame of the case; None if no iterate was connected.
        cost_m: Its J.
        costs_m: J of every iterate.
        split: Number of disconnected iterates so far. split_run: Those in a row.
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
        normalized: Whether the network reads (P - c)/(W/2) or raw metres from the corner of the map.
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
LEAST_GAIN_M = 0.1  # an improvement of J smaller than this is none


def squashed_targets(network: ConvolutionStack, case: PlanCase) -> Tensor:
    """Q = (W/2) tanh(X_8), (n, 2) m in the frame of the map's center: inside the map by construction."""
    return squash(network(case.inputs, case.operator), case)


def squash(raw: Tensor, case: PlanCase) -> Tensor:
    """Q = (W/2) tanh(X_8)."""
    return case.half_m * torch.tanh(raw)


def descent_loss(targets: Tensor, case: PlanCase, *, smooth: bool, guard: bool) -> Tensor:
    """What the gradient is taken of: the largest displacement, plus the gap while the plan is split (the guard)."""
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


@contextlib.contextmanager
def one_thread() -> Iterator[None]:
    """One torch thread inside the block, whatever the machine; the caller's setting comes back after it."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)
