"""One interface for all graph encoders: PhyGNN and the GCN, GAT and GraphSAGE of the ablation (METHODS 4.2, 4.7)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import torch
from torch import Tensor, nn
from torch.nn import functional

from phygail.config import InputError
from phygail.models.inputs import GraphInput, gather_slots, sum_messages
from phygail.models.phygnn import Gates, PhyGNNLayer
from phygail.perception.features import NODE_FEATURES

LayerKind = Literal["phygnn", "gcn", "gat", "sage"]

TYPE_WIDTH = 32
ENCODER_HIDDEN = 256
ATTENTION_HEADS = 4
NEGATIVE_SLOPE = 0.2  # of the leaky ReLU in the attention score


@dataclass(frozen=True)
class EncoderSpec:
    """Which encoder; the defaults are the paper's (689,193 parameters).

    Attributes:
        layer: Kind of message passing.
        layers: Rounds L. width: d_h.
        features: Numbers per node. types: Node types, which are also the edge kinds.
        gates: Gate ablation of PhyGNN.
        dropout: On the update of every PhyGNN layer; the paper mentions none.
    """

    layer: LayerKind = "phygnn"
    layers: int = 3
    width: int = 128
    features: int = len(NODE_FEATURES)
    types: int = 3
    gates: Gates = "both"
    dropout: float = 0.0


class GraphEncoder(nn.Module):
    """Node encoder [x, type embedding] -> h0, then L rounds of messages; one embedding per receiver."""

    def __init__(self, spec: EncoderSpec = EncoderSpec()) -> None:
        super().__init__()
        self.spec = spec
        self.node_type = nn.Embedding(spec.types, TYPE_WIDTH)
        self.node = nn.Sequential(
            nn.Linear(spec.features + TYPE_WIDTH, ENCODER_HIDDEN), nn.ReLU(),
            nn.Linear(ENCODER_HIDDEN, spec.width), nn.ReLU(),
        )  # fmt: skip
        self.layers = nn.ModuleList(_make_layer(spec) for _ in range(spec.layers))

    def forward(self, graph: GraphInput) -> Tensor:
        """(n, width), the embeddings h^(L) of the receivers."""
        kind = self.node_type.weight.index_select(0, graph.types)
        h = self.node(torch.cat([graph.features, kind], dim=1))
        for number, layer in enumerate(self.layers, start=1):
            h = layer(h, graph, last=number == len(self.layers))
        return h[: graph.receivers]


class GCNLayer(nn.Module):
    """h_i <- ReLU(sum over j in N(i) and i itself of W h_j / sqrt(d_i d_j) + b), d the in-degree with the self-loop."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.linear = nn.Linear(width, width, bias=False)
        self.bias = nn.Parameter(torch.zeros(width))
        nn.init.xavier_uniform_(self.linear.weight)

    def forward(self, h: Tensor, graph: GraphInput, *, last: bool = False) -> Tensor:
        """(M, width) from h (M, width); silent nodes hear only themselves."""
        degree = h.new_ones(h.shape[0])
        degree[: graph.receivers] += _in_degree(graph)
        root = degree.rsqrt()[:, None]
        sent = self.linear(h) * root
        received = _pad(sum_messages(sent.index_select(0, graph.sender), graph), h.shape[0])
        return torch.relu((received + sent) * root + self.bias)


class GATLayer(nn.Module):
    """Graph attention over the neighbors and oneself, 4 heads side by side, ReLU (Velickovic et al. 2018)."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.head_width = width // ATTENTION_HEADS
        self.linear = nn.Linear(width, width, bias=False)
        self.source = nn.Parameter(torch.empty(ATTENTION_HEADS, self.head_width))
        self.target = nn.Parameter(torch.empty(ATTENTION_HEADS, self.head_width))
        self.bias = nn.Parameter(torch.zeros(width))
        for weight in (self.linear.weight, self.source, self.target):
            nn.init.xavier_uniform_(weight)

    def forward(self, h: Tensor, graph: GraphInput, *, last: bool = False) -> Tensor:
        """(M, width) from h (M, width); silent nodes attend to themselves."""
        n, heads = graph.receivers, ATTENTION_HEADS
        values = self.linear(h)
        split = values.view(-1, heads, self.head_width)
        source, target = (split * self.source).sum(dim=2), (split * self.target).sum(dim=2)  # (M, heads)
        score = target.index_select(0, graph.receiver) + source.index_select(0, graph.sender)
        others = gather_slots(functional.leaky_relu(score, NEGATIVE_SLOPE), graph, empty=float("-inf"))
        own = functional.leaky_relu(source[:n] + target[:n], NEGATIVE_SLOPE)
        attention = torch.softmax(torch.cat([others, own[:, None]], dim=1), dim=1)  # (n, S + 1, heads)
        sent = gather_slots(values.index_select(0, graph.sender), graph)
        table = torch.cat([sent, values[:n, None]], dim=1).view(n, -1, heads, self.head_width)
        mixed = (attention[..., None] * table).sum(dim=1).reshape(n, -1)
        return torch.relu(torch.cat([mixed, values[n:]]) + self.bias)


class SAGELayer(nn.Module):
    """h_i <- ReLU(W_1 mean over j in N(i) of h_j + W_2 h_i + b)."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.neighbors = nn.Linear(width, width)
        self.own = nn.Linear(width, width, bias=False)

    def forward(self, h: Tensor, graph: GraphInput, *, last: bool = False) -> Tensor:
        """(M, width) from h (M, width); the mean over no neighbors is zero."""
        total = sum_messages(h.index_select(0, graph.sender), graph)
        mean = _pad(total / _in_degree(graph).clamp(min=1)[:, None], h.shape[0])
        return torch.relu(self.neighbors(mean) + self.own(h))


def _make_layer(spec: EncoderSpec) -> nn.Module:
    if spec.layer == "phygnn":
        return PhyGNNLayer(spec.width, spec.types, spec.gates, spec.dropout)
    plain = {"gcn": GCNLayer, "gat": GATLayer, "sage": SAGELayer}
    if spec.layer not in plain:
        raise InputError(f"unknown layer {spec.layer!r}: there are {', '.join(get_args(LayerKind))}")
    return plain[spec.layer](spec.width)


def _in_degree(graph: GraphInput) -> Tensor:
    """(n,) float, filled slots of every receiver."""
    return (graph.place < graph.receiver.shape[0]).sum(dim=1).to(graph.features.dtype)


def _pad(values: Tensor, rows: int) -> Tensor:
    """`values` ((n, d)) followed by zeros up to `rows` rows."""
    return torch.cat([values, values.new_zeros(rows - values.shape[0], values.shape[1])])
