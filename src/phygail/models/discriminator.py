"""The discriminator: expert or policy, judged per UAV from its surroundings and its command (METHODS 4.2)."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from phygail.models.actor import ACTION
from phygail.models.encoders import EncoderSpec, GraphEncoder
from phygail.models.inputs import GraphInput

LEAK = 0.2  # slope of the leaky ReLUs
ACTION_WIDTH = 128


class Discriminator(nn.Module):
    """Encoder, action embedding, head; 730,794 parameters in the paper's form.

    The paper ends with a LeakyReLU "in (0, 1)", which no LeakyReLU is: we end with a sigmoid (METHODS 4.4).
    """

    def __init__(self, spec: EncoderSpec = EncoderSpec()) -> None:  # noqa: B008 (frozen: sharing it is safe)
        super().__init__()
        self.encoder = GraphEncoder(spec)
        self.action = nn.Sequential(nn.Linear(ACTION, ACTION_WIDTH), nn.ReLU())
        self.head = nn.Sequential(
            nn.Linear(spec.width + ACTION_WIDTH, 128), nn.LeakyReLU(LEAK),
            nn.Linear(128, 64), nn.LeakyReLU(LEAK), nn.Linear(64, 1),
        )  # fmt: skip

    def logit_expert_is_high(self, graph: GraphInput, action: Tensor) -> Tensor:
        """(n,) logits; action: (n, 2), executed velocity / v_max."""
        return self.head(torch.cat([self.encoder(graph), self.action(action)], dim=1)).squeeze(1)

    def forward(self, graph: GraphInput, action: Tensor) -> Tensor:
        """(n,) D, the probability that the command is an expert's."""
        return torch.sigmoid(self.logit_expert_is_high(graph, action))
