"""The network of CR-MGC and DEMD, a stack of graph convolutions, and Adam on its weights without autograd.

A case takes a thousand steps on matrices so small that bookkeeping costs more than arithmetic. Here the gradient is
written out, all parameters are in one vector, and every buffer is allocated once. The numbers are those of autograd
and `torch.optim.Adam` (tests compare them); benchmarks/stack_descent.py says what it saves.
"""

from __future__ import annotations

import itertools
import math

import torch
from torch import Tensor, nn

from phygail.learning.networks import uniform_parameter

LAYERS = 8

BETAS = (0.9, 0.999)  # of Adam, torch's defaults
EPSILON = 1e-8
NEGLIGIBLE = 1e-36  # its root vanishes beside EPSILON; roots of zeros (idle units) take libraries ten times as long


class GraphConvolution(nn.Module):
    """X' = H X W + b with a dense operator H; the activation is the caller's.

    Weights and biases start uniform in +-1/sqrt(fan_out) (METHODS 3.4).
    """

    def __init__(self, inputs: int, outputs: int, generator: torch.Generator | None = None) -> None:
        super().__init__()
        bound = 1.0 / math.sqrt(outputs)
        self.weight = uniform_parameter((inputs, outputs), bound, generator)
        self.bias = uniform_parameter((outputs,), bound, generator)

    def forward(self, x: Tensor, operator: Tensor) -> Tensor:
        """(n, outputs) from x (m, inputs) and H (n, m)."""
        # The product with the smaller dimension first: the same result for fewer multiplications.
        if self.weight.shape[0] <= self.weight.shape[1]:
            return torch.addmm(self.bias, operator @ x, self.weight)
        return torch.addmm(self.bias, operator, x @ self.weight)


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


class StackDescent:
    """Forward passes and Adam steps of one stack on one case.

    The parameters of the network become views of one vector, so the network itself follows every step.

    Args:
        network: Changed in place.
        inputs: (m, 2), what the first layer reads.
        operator: (n, n), H of all layers but the first.
        first: (n, m), operator of the first layer; H if None.
        rate: Adam's.
        gather_last: Whether the last layer is (H X) W, for callers that need H X (`gathered`); else it is H (X W),
            which is less work and equal up to rounding.
    """

    def __init__(
        self,
        network: ConvolutionStack,
        inputs: Tensor,
        operator: Tensor,
        first: Tensor | None = None,
        *,
        rate: float,
        gather_last: bool,
    ) -> None:
        self.rate, self._gather_last = rate, gather_last
        self._operator = operator
        self._values, self._weights, self._biases = _flatten(network)
        self._slopes = torch.zeros_like(self._values)
        self._weight_slopes, self._bias_slopes = _views(self._slopes, self._weights, self._biases)
        self._mean, self._square, self._scratch = (torch.zeros_like(self._values) for _ in range(3))
        self._steps = 0
        n = len(operator)
        wide = [weight.shape[1] for weight in self._weights]
        # For each layer: its input, what its weights act on (H X), and its output. The first layer reads constants.
        self._reads = [inputs, *(torch.empty(n, width) for width in wide[:-1])]
        constant = (operator if first is None else first) @ inputs
        self._gathered = [constant, *(torch.empty(n, weight.shape[0]) for weight in self._weights[1:])]
        self._back = [torch.empty(n, width) for width in wide[:-1]]
        self._spread = [torch.empty(n, width) for width in wide[:-1]]

    @property
    def gathered(self) -> Tensor:
        """(n, width), H X_7 of the last forward pass: what the last weights act on. The next pass overwrites it."""
        assert self._gather_last
        return self._gathered[-1]

    def forward(self) -> Tensor:
        """(n, 2), X_8 at the current weights."""
        *hidden, last = range(len(self._weights))
        for k in hidden:
            if k:
                torch.mm(self._operator, self._reads[k], out=self._gathered[k])
            torch.relu_(torch.addmm(self._biases[k], self._gathered[k], self._weights[k], out=self._reads[k + 1]))
        if self._gather_last:
            torch.mm(self._operator, self._reads[last], out=self._gathered[last])
            return torch.addmm(self._biases[last], self._gathered[last], self._weights[last])
        return torch.addmm(self._biases[last], self._operator, self._reads[last] @ self._weights[last])

    def step(self, slope: Tensor) -> None:
        """One step against the gradient of a loss whose slope in X_8 of the last forward pass is `slope` ((n, 2))."""
        for k in reversed(range(len(self._weights))):
            torch.sum(slope, 0, out=self._bias_slopes[k])
            if k == len(self._weights) - 1 and not self._gather_last:
                slope = self._operator.T @ slope
                torch.mm(self._reads[k].T, slope, out=self._weight_slopes[k])
                slope = torch.mm(slope, self._weights[k].T, out=self._back[k - 1])
            else:
                torch.mm(self._gathered[k].T, slope, out=self._weight_slopes[k])
                if k:
                    spread = torch.mm(slope, self._weights[k].T, out=self._spread[k - 1])
                    slope = torch.mm(self._operator.T, spread, out=self._back[k - 1])
            if k:
                # The slope of ReLU in one pass, in place: zero where the unit was inactive.
                torch.ops.aten.threshold_backward.grad_input(slope, self._reads[k], 0, grad_input=slope)
        self._descend()

    def _descend(self) -> None:
        """Adam, in the order of operations of torch's own."""
        self._steps += 1
        first, second = BETAS
        self._mean.lerp_(self._slopes, 1 - first)
        self._square.mul_(second).addcmul_(self._slopes, self._slopes, value=1 - second)
        correction = (1 - second**self._steps) ** 0.5
        torch.clamp_min(self._square, NEGLIGIBLE, out=self._scratch)
        self._scratch.sqrt_().div_(correction).add_(EPSILON)
        self._values.addcdiv_(self._mean, self._scratch, value=-self.rate / (1 - first**self._steps))


def _flatten(network: ConvolutionStack) -> tuple[Tensor, list[Tensor], list[Tensor]]:
    """All parameters as one vector, and the network's weights and biases, which become views of it."""
    layers = network.convolutions
    values = torch.cat([part.detach().reshape(-1) for layer in layers for part in (layer.weight, layer.bias)])
    weights, biases = _views(values, [layer.weight for layer in layers], [layer.bias for layer in layers])
    for layer, weight, bias in zip(layers, weights, biases, strict=True):
        layer.weight.data, layer.bias.data = weight, bias
    return values, weights, biases


def _views(values: Tensor, weights: list[Tensor], biases: list[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
    """Weight, bias, weight, bias, ... of `values`, shaped like the given ones."""
    shapes = [part.shape for pair in zip(weights, biases, strict=True) for part in pair]
    parts = torch.split(values, [shape.numel() for shape in shapes])
    shaped = [part.view(shape) for part, shape in zip(parts, shapes, strict=True)]
    return shaped[::2], shaped[1::2]
