"""Actor, critic and discriminator on the graph encoder (METHODS 4.2)."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn

from phygail.learning.networks import LAST_GAIN, orthogonal
from phygail.methods.phygail.network import EncoderSpec, GraphEncoder, GraphInput

ACTION = 2  # numbers per command
LARGEST_MEAN = 3.0  # tanh(3) = 0.995: full speed without vanishing gradients
LOG_STD_RANGE = (-2.0, 0.5)
Command = Literal["tanh", "disc"]  # from u to a command over v_max: tanh(u) (paper), or u as it is
HEAD_HIDDEN = 128

LEAK = 0.2  # slope of the leaky ReLUs
ACTION_WIDTH = 128


@dataclass(frozen=True)
class Gaussian:
    """The actor's distribution of u, per receiver.

    Attributes:
        mean: (n, 2), within +-3; execution uses it.
        log_std: (n, 2), within the range of the actor, [-2, 0.5] in the paper's form.
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
    """Encoder and two heads, 722,733 parameters in the paper's form.

    Attributes:
        command: How u becomes a command over v_max; the world then projects it onto the speed disc.
        least_log_std: Lower clamp of the log-std.
        outputs: Numbers per action: 2, or 3 with a weight in link keeping (`methods.phygail.plus`).
    """

    def __init__(
        self,
        spec: EncoderSpec = EncoderSpec(),  # noqa: B008 (frozen: sharing it is safe)
        *,
        command: Command = "tanh",
        least_log_std: float = LOG_STD_RANGE[0],
        outputs: int = ACTION,
    ) -> None:
        super().__init__()
        self.command, self.least_log_std, self.outputs = command, least_log_std, outputs
        self.encoder = GraphEncoder(spec)
        hidden = (spec.width,) if spec.compact else (HEAD_HIDDEN,)
        self.mean = _head(outputs, spec.width, *hidden)
        self.log_std = _head(outputs, spec.width, *(() if spec.compact else hidden))

    def forward(self, graph: GraphInput) -> Gaussian:
        """The distribution of every receiver's u."""
        h = self.encoder(graph)
        log_std = self.log_std(h).clamp(self.least_log_std, LOG_STD_RANGE[1])
        return Gaussian(self.mean(h).clamp(-LARGEST_MEAN, LARGEST_MEAN), log_std)

    def mean_action(self, graph: GraphInput) -> Tensor:
        """(n, 2), the command of the mean as a fraction of v_max, before the projection (eq. 25)."""
        return self.to_command(self.mean(self.encoder(graph)).clamp(-LARGEST_MEAN, LARGEST_MEAN))

    def to_command(self, u: Tensor) -> Tensor:
        """(n, 2), u as a command over v_max, before the projection onto the speed disc."""
        return torch.tanh(u) if self.command == "tanh" else u


def velocities(u: Tensor, speed_mps: float) -> Tensor:
    """(n, 2) m/s: v_max tanh(u), scaled back onto the speed disc where both components are large."""
    wanted = speed_mps * torch.tanh(u)
    norm = wanted.norm(dim=1, keepdim=True)
    return wanted * (speed_mps / norm.clamp(min=speed_mps))


def _head(outputs: int, width: int, *hidden: int) -> nn.Sequential:
    """Linears from `width` over the hidden sizes to a command, ReLU between them."""
    sizes = (width, *hidden, outputs)
    parts: list[nn.Module] = []
    for before, after in itertools.pairwise(sizes):
        parts += [nn.Linear(before, after), nn.ReLU()]
    return orthogonal(nn.Sequential(*parts[:-1]), LAST_GAIN)


class Critic(nn.Module):
    """Encoder, mean and max over all alive of the world (all subnets), head; 747,050 parameters in the paper's form.

    Attributes:
        centralized: Whether the pool is seen ("w/o centralized critic": own embedding only).
        extra: Numbers added per UAV, e.g. (t/T_max, t/(alpha T_E)) (METHODS 4.3, remark iii); none by default.
    """

    def __init__(
        self,
        spec: EncoderSpec = EncoderSpec(),  # noqa: B008 (frozen: sharing it is safe)
        *,
        centralized: bool = True,
        extra: int = 0,
    ) -> None:
        super().__init__()
        self.centralized, self.extra = centralized, extra
        self.encoder = GraphEncoder(spec)
        inputs = spec.width * (3 if centralized else 1) + extra
        if spec.compact:
            self.head = nn.Sequential(nn.Linear(inputs, spec.width), nn.ReLU(), nn.Linear(spec.width, 1))
        else:
            self.head = nn.Sequential(
                nn.Linear(inputs, 128), nn.LayerNorm(128), nn.ReLU(), nn.Linear(128, 64), nn.ReLU(), nn.Linear(64, 1)
            )

    def forward(self, graph: GraphInput, extra: Tensor | None = None) -> Tensor:
        """(n,) values; `extra` is (n, self.extra) (eq. 27)."""
        h = self.encoder(graph)
        parts = [h]
        if self.centralized:
            parts += [pool.index_select(0, graph.world) for pool in _pools(h, graph)]
        if extra is not None:
            parts.append(extra)
        return self.head(torch.cat(parts, dim=1)).squeeze(1)


def _pools(h: Tensor, graph: GraphInput) -> tuple[Tensor, Tensor]:
    """Mean and max of h ((n, d)) over the receivers of every world, (count, d) each; rows are grouped by world
    (eq. 26).
    """
    sizes = torch.bincount(graph.world, minlength=graph.count)
    mean = h.new_zeros(graph.count, h.shape[1]).index_add(0, graph.world, h) / sizes.clamp(min=1)[:, None]
    return mean, torch.segment_reduce(h, "max", lengths=sizes, axis=0)


class Discriminator(nn.Module):
    """Encoder, action embedding, head; 730,794 parameters in the paper's form.

    The paper ends with a LeakyReLU "in (0, 1)", which no LeakyReLU is: we end with a sigmoid (METHODS 4.4).
    """

    def __init__(self, spec: EncoderSpec = EncoderSpec()) -> None:  # noqa: B008 (frozen: sharing it is safe)
        super().__init__()
        self.encoder = GraphEncoder(spec)
        first, second = (spec.width, spec.width) if spec.compact else (ACTION_WIDTH, ACTION_WIDTH // 2)
        self.action = nn.Sequential(nn.Linear(ACTION, first), nn.ReLU())
        self.head = nn.Sequential(
            nn.Linear(spec.width + first, first), nn.LeakyReLU(LEAK),
            nn.Linear(first, second), nn.LeakyReLU(LEAK), nn.Linear(second, 1),
        )  # fmt: skip

    def logit_expert_is_high(self, graph: GraphInput, action: Tensor) -> Tensor:
        """(n,) logits; action: (n, 2), executed velocity / v_max."""
        return self.head(torch.cat([self.encoder(graph), self.action(action)], dim=1)).squeeze(1)

    def forward(self, graph: GraphInput, action: Tensor) -> Tensor:
        """(n,) D, the probability that the command is an expert's (eq. 29, eq. 30)."""
        return torch.sigmoid(self.logit_expert_is_high(graph, action))
