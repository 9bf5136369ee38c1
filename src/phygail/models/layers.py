"""Graph layers of the global planners, dense (METHODS 3.4-3.6). Tests hold both against torch_geometric."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

NEGATIVE_SLOPE = 0.2  # of the leaky ReLU inside the attention score


def _uniform(shape: tuple[int, ...], bound: float, generator: torch.Generator | None) -> nn.Parameter:
    return nn.Parameter(torch.empty(shape).uniform_(-bound, bound, generator=generator))


class GraphConvolution(nn.Module):
    """X' = H X W + b with a dense operator H; the activation is the caller's.

    Weights and biases start uniform in +-1/sqrt(fan_out) (METHODS 3.4).
    """

    def __init__(self, inputs: int, outputs: int, generator: torch.Generator | None = None) -> None:
        super().__init__()
        bound = 1.0 / math.sqrt(outputs)
        self.weight = _uniform((inputs, outputs), bound, generator)
        self.bias = _uniform((outputs,), bound, generator)

    def forward(self, x: Tensor, operator: Tensor) -> Tensor:
        """(n, outputs) from x (m, inputs) and H (n, m)."""
        # The product with the smaller dimension first: the same result for fewer multiplications.
        if self.weight.shape[0] <= self.weight.shape[1]:
            return torch.addmm(self.bias, operator @ x, self.weight)
        return torch.addmm(self.bias, operator, x @ self.weight)


class GraphAttention(nn.Module):
    """Plain graph attention (GAT, Velickovic et al. 2018), heads concatenated.

    e_ij = LeakyReLU(a_target . W x_i + a_source . W x_j), alpha_i = softmax of e_i over the neighbors j of i,
    x'_i = sum_j alpha_ij W x_j + b, per head. Chosen over GATv2, whose dense scores need heads x width times the memory
    (58 MB a layer and pass at 475 alive against 4 MB).
    """

    def __init__(self, inputs: int, heads: int, width: int, generator: torch.Generator | None = None) -> None:
        super().__init__()
        self.heads, self.width = heads, width
        glorot = math.sqrt(6.0 / (inputs + heads * width))
        self.weight = _uniform((inputs, heads * width), glorot, generator)
        self.source = _uniform((heads, width), math.sqrt(6.0 / (heads + width)), generator)
        self.target = _uniform((heads, width), math.sqrt(6.0 / (heads + width)), generator)
        self.bias = nn.Parameter(torch.zeros(heads * width))

    def forward(self, x: Tensor, adjacency: Tensor) -> Tensor:
        """(n, heads * width) from x (n, inputs) and adjacency (n, n) bool: whom row i attends to, itself included."""
        values = (x @ self.weight).view(-1, self.heads, self.width).transpose(0, 1)  # (heads, n, width)
        toward = torch.einsum("hnd,hd->hn", values, self.target)[:, :, None]
        away = torch.einsum("hnd,hd->hn", values, self.source)[:, None, :]
        score = nn.functional.leaky_relu(toward + away, NEGATIVE_SLOPE)
        attention = torch.softmax(score.masked_fill(~adjacency, float("-inf")), dim=-1)
        mixed = torch.bmm(attention, values)  # (heads, n, width)
        return mixed.transpose(0, 1).reshape(-1, self.heads * self.width) + self.bias
