"""Where networks start from: seeded without touching the global generator, heads orthogonal (METHODS 4.2)."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator

import torch
from torch import nn

HIDDEN_GAIN = math.sqrt(2.0)
LAST_GAIN = 0.01  # of the actor's last linears: a fresh policy asks for almost no motion


@contextlib.contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Modules made inside get their weights from this seed; the global generator is as before afterwards."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        yield


def orthogonal(head: nn.Sequential, last_gain: float) -> nn.Sequential:
    """Orthogonal weights and zero biases for every linear of a head; the last one has its own gain."""
    linears = [module for module in head if isinstance(module, nn.Linear)]
    for linear in linears:
        nn.init.orthogonal_(linear.weight, last_gain if linear is linears[-1] else HIDDEN_GAIN)
        nn.init.zeros_(linear.bias)
    return head


def parameter_count(module: nn.Module) -> int:
    """Number of trained numbers."""
    return sum(parameter.numel() for parameter in module.parameters())
