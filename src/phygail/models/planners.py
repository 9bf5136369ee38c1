"""The network of CR-MGC and DEMD: a stack of graph convolutions (METHODS 3.4, 3.5)."""

from __future__ import annotations

import itertools

import torch
from torch import Tensor, nn

from phygail.models.layers import GraphConvolution

LAYERS = 8


class ConvolutionStack(nn.Module):
    """X_{l+1} = ReLU(H X_l W_l + b_l) for eight layers 2 -> width (x7) -> 2, the last one linear."""

    def __init__(self, width: int, generator: torch.Generator | None = None) -> None:
        super().__init__()
        sizes = [2, *[width] * (LAYERS - 1), 2]
        self.layers = nn.ModuleList(
            GraphConvolution(inputs, outputs, generator) for inputs, outputs in itertools.pairwise(sizes)
        )

    def forward(self, x: Tensor, operator: Tensor, first: Tensor | None = None) -> Tensor:
        """(n, 2) from x (m, 2) and H (n, n); the first layer aggregates with `first` (n, m) instead if given."""
        for index, layer in enumerate(self.layers):
            x = layer(x, first if index == 0 and first is not None else operator)
            if index < LAYERS - 1:
                x = torch.relu(x)
        return x
