"""What a plan costs, differentiable: the largest displacement and the gap of its network (METHODS 2.5, 3.4)."""

from __future__ import annotations

import torch
from torch import Tensor

from phygail.swarm.links import find_links
from phygail.swarm.tree import spanning_tree

SMOOTHING_M = 10.0  # temperature of the smooth maximum


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
