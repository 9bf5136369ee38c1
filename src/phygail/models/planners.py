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

    @property
    def convolutions(self) -> list[GraphConvolution]:
        """The layers, first to last."""
        return [layer for layer in self.layers if isinstance(layer, GraphConvolution)]

    def forward(self, x: Tensor, operator: Tensor) -> Tensor:
        """(n, 2) from x (n, 2) and H (n, n)."""
        *hidden, last = self.convolutions
        for layer in hidden:
            x = torch.relu(layer(x, operator))
        return last(x, operator)
