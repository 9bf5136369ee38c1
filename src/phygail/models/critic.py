"""The critic: a value per UAV from its own embedding and a pool over everybody alive (training only, METHODS 4.2)."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from phygail.models.encoders import EncoderSpec, GraphEncoder
from phygail.models.inputs import GraphInput


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
        self.head = nn.Sequential(
            nn.Linear(inputs, 128), nn.LayerNorm(128), nn.ReLU(), nn.Linear(128, 64), nn.ReLU(), nn.Linear(64, 1)
        )

    def forward(self, graph: GraphInput, extra: Tensor | None = None) -> Tensor:
        """(n,) values; `extra` is (n, self.extra)."""
        h = self.encoder(graph)
        parts = [h]
        if self.centralized:
            parts += [pool.index_select(0, graph.world) for pool in _pools(h, graph)]
        if extra is not None:
            parts.append(extra)
        return self.head(torch.cat(parts, dim=1)).squeeze(1)


def _pools(h: Tensor, graph: GraphInput) -> tuple[Tensor, Tensor]:
    """Mean and max of h ((n, d)) over the receivers of every world, (count, d) each. Rows are grouped by world."""
    sizes = torch.bincount(graph.world, minlength=graph.count)
    mean = h.new_zeros(graph.count, h.shape[1]).index_add(0, graph.world, h) / sizes.clamp(min=1)[:, None]
    return mean, torch.segment_reduce(h, "max", lengths=sizes, axis=0)
