"""The actor: a Gaussian over u per UAV; the command is v_max tanh(u), projected onto the speed disc (METHODS 4.2)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from phygail.models.encoders import EncoderSpec, GraphEncoder
from phygail.models.initial import LAST_GAIN, orthogonal
from phygail.models.inputs import GraphInput

ACTION = 2  # numbers per command
LARGEST_MEAN = 3.0  # tanh(3) = 0.995: full speed without vanishing gradients
LOG_STD_RANGE = (-2.0, 0.5)
HEAD_HIDDEN = 128


@dataclass(frozen=True)
class Gaussian:
    """What the actor thinks of u, per receiver.

    Attributes:
        mean: (n, 2), within +-3; execution uses it.
        log_std: (n, 2), within [-2, 0.5].
    """

    mean: Tensor
    log_std: Tensor

    def sample(self, generator: torch.Generator) -> Tensor:
        """(n, 2) draws of u."""
        noise = torch.randn(self.mean.shape, generator=generator, dtype=self.mean.dtype)
        return self.mean + self.log_std.exp() * noise

    def log_prob(self, u: Tensor) -> Tensor:
        """(n,) log density of u itself. The tanh is part of the world: it cancels in PPO's ratio."""
        z = (u - self.mean) * torch.exp(-self.log_std)
        return (-0.5 * z.square() - self.log_std - 0.5 * math.log(2 * math.pi)).sum(dim=1)

    def entropy(self) -> Tensor:
        """(n,) entropy of u, nats."""
        return (self.log_std + 0.5 * math.log(2 * math.pi * math.e)).sum(dim=1)


class Actor(nn.Module):
    """Encoder and two heads, 722,733 parameters in the paper's form."""

    def __init__(self, spec: EncoderSpec = EncoderSpec()) -> None:  # noqa: B008 (frozen: sharing it is safe)
        super().__init__()
        self.encoder = GraphEncoder(spec)
        self.mean = _head(spec.width)
        self.log_std = _head(spec.width)

    def forward(self, graph: GraphInput) -> Gaussian:
        """The distribution of every receiver's u."""
        h = self.encoder(graph)
        return Gaussian(self.mean(h).clamp(-LARGEST_MEAN, LARGEST_MEAN), self.log_std(h).clamp(*LOG_STD_RANGE))

    def mean_action(self, graph: GraphInput) -> Tensor:
        """(n, 2), tanh of the mean: the command as a fraction of v_max, before the projection."""
        return torch.tanh(self.mean(self.encoder(graph)).clamp(-LARGEST_MEAN, LARGEST_MEAN))


def velocities(u: Tensor, speed_mps: float) -> Tensor:
    """(n, 2) m/s: v_max tanh(u), scaled back onto the speed disc where both components are large."""
    wanted = speed_mps * torch.tanh(u)
    norm = wanted.norm(dim=1, keepdim=True)
    return wanted * (speed_mps / norm.clamp(min=speed_mps))


def _head(width: int) -> nn.Sequential:
    return orthogonal(
        nn.Sequential(nn.Linear(width, HEAD_HIDDEN), nn.ReLU(), nn.Linear(HEAD_HIDDEN, ACTION)), LAST_GAIN
    )
