"""The physics-gated message passing layer (paper IV-C, METHODS 4.2)."""

from __future__ import annotations

from typing import Literal, get_args

import torch
from torch import Tensor, nn
from torch.nn import functional

from phygail.config import InputError
from phygail.models.inputs import GraphInput, sum_messages

Gates = Literal["both", "no-attraction", "no-repulsion"]  # the ablations of METHODS 4.7

MESSAGE_HIDDEN = 256
GATE_HIDDEN = 64


class PhyGNNLayer(nn.Module):
    """One round of attraction and repulsion between neighbors.

    f_ij = MLP_msg([h_i, h_j - h_i, e_ij]),  (w_att, w_rep) = sigmoid(MLP_gate(f_ij)),
    S_ij = softplus(MLP_strength(f_ij)),  m_i = sum_j f_ij S_ij (w_att - w_rep),
    h_i <- h_i + ReLU(MLP_update([h_i, m_i])).

    e_ij is the embedding of the edge's kind, which is the type of its sender. The first linear of MLP_msg is split,
    W [h_i; h_j - h_i; e] = (W_a - W_b) h_i + W_b h_j + W_c e, so that its cost falls on nodes instead of edges: the
    same function at a third of the work. Nodes that receive nothing have m = 0.
    """

    def __init__(self, width: int = 128, kinds: int = 3, gates: Gates = "both", dropout: float = 0.0) -> None:
        super().__init__()
        if gates not in get_args(Gates):
            raise InputError(f"unknown gates {gates!r}: there are {', '.join(get_args(Gates))}")
        self.gates = gates
        self.edge_kind = nn.Embedding(kinds, width)
        self.message_in = nn.Linear(3 * width, MESSAGE_HIDDEN)
        self.message_norm = nn.LayerNorm(MESSAGE_HIDDEN)
        self.message_out = nn.Linear(MESSAGE_HIDDEN, width)
        self.gate_in, self.gate_out = nn.Linear(width, GATE_HIDDEN), nn.Linear(GATE_HIDDEN, 2)
        self.strength_in, self.strength_out = nn.Linear(width, GATE_HIDDEN), nn.Linear(GATE_HIDDEN, 1)
        self.update = nn.Sequential(
            nn.LayerNorm(2 * width), nn.Linear(2 * width, width), nn.ReLU(),
            nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width),
        )  # fmt: skip
        self.dropout = nn.Dropout(dropout) if dropout > 0 else nn.Identity()

    def interactions(self, h: Tensor, graph: GraphInput) -> Tensor:
        """f_ij, (E, width), from the states h (M, width)."""
        for_receiver, for_difference, for_kind = torch.split(self.message_in.weight, h.shape[1], dim=1)
        own = functional.linear(h[: graph.receivers], for_receiver - for_difference, self.message_in.bias)
        kind = functional.linear(self.edge_kind.weight, for_kind)
        sent = functional.linear(h, for_difference) + kind.index_select(0, graph.types)
        mixed = own.index_select(0, graph.receiver) + sent.index_select(0, graph.sender)
        return torch.relu(self.message_out(torch.relu(self.message_norm(mixed))))

    def forces(self, f: Tensor) -> tuple[Tensor, Tensor]:
        """Gates (w_att, w_rep) in (0, 1), (E, 2), and strengths S > 0, (E, 1)."""
        # Both small networks start from f: one product instead of two.
        weight = torch.cat([self.gate_in.weight, self.strength_in.weight])
        bias = torch.cat([self.gate_in.bias, self.strength_in.bias])
        hidden = torch.relu(functional.linear(f, weight, bias))
        gates = torch.sigmoid(self.gate_out(hidden[:, :GATE_HIDDEN]))
        return gates, functional.softplus(self.strength_out(hidden[:, GATE_HIDDEN:]))

    def messages(self, h: Tensor, graph: GraphInput) -> Tensor:
        """m_{j -> i} of every edge, (E, width)."""
        f = self.interactions(h, graph)
        gates, strength = self.forces(f)
        attraction, repulsion = gates[:, :1], gates[:, 1:]
        if self.gates == "no-attraction":
            return f * (strength * -repulsion)
        if self.gates == "no-repulsion":
            return f * (strength * attraction)
        return f * (strength * (attraction - repulsion))

    def forward(self, h: Tensor, graph: GraphInput, *, last: bool = False) -> Tensor:
        """States after the round: (M, width), in the last round (n, width), the receivers alone."""
        received = sum_messages(self.messages(h, graph), graph)
        if last:
            h = h[: graph.receivers]
        else:
            silent = h.new_zeros(h.shape[0] - graph.receivers, h.shape[1])
            received = torch.cat([received, silent])
        return h + self.dropout(torch.relu(self.update(torch.cat([h, received], dim=1))))
