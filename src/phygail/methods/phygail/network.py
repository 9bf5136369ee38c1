"""PhyGNN, the physics-gated message passing network, and the GCN, GAT and GraphSAGE of the ablation
(paper IV-C, METHODS 4.2, 4.7).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, get_args

import torch
from torch import Tensor, nn
from torch.nn import functional

from phygail.config import InputError
from phygail.methods.phygail.graph import NODE_FEATURES, Graph

Gates = Literal["both", "no-attraction", "no-repulsion"]  # the ablations of METHODS 4.7

MESSAGE_HIDDEN = 256
GATE_HIDDEN = 64

LayerKind = Literal["phygnn", "gcn", "gat", "sage"]

TYPE_WIDTH = 32
COMPACT_EMBEDDING = 0.1  # standard deviation of the first embeddings in a compact encoder
ENCODER_HIDDEN = 256
ATTENTION_HEADS = 4
NEGATIVE_SLOPE = 0.2  # of the leaky ReLU in the attention score


@dataclass(frozen=True)
class GraphInput:
    """One or many graphs; the first n nodes are the receivers.

    Attributes:
        features: (M, F) float32, node features.
        types: (M,) int64, node types.
        receiver, sender: (E,) int64, rows of the edges that exist, ordered by receiver.
        place: (n, S) int64, number of the edge in every slot; E where the slot is empty.
        world: (n,) int64, graph of every receiver.
        count: Number of graphs.
        edge: (E, F_e) float32, what the receiver knows of each edge besides its ends; None where it knows no more.
    """

    features: Tensor
    types: Tensor
    receiver: Tensor
    sender: Tensor
    place: Tensor
    world: Tensor
    count: int
    edge: Tensor | None = None

    @property
    def receivers(self) -> int:
        """Number n of nodes that receive messages."""
        return self.place.shape[0]


def to_tensors(graph: Graph) -> GraphInput:
    """A graph of numpy arrays as tensors."""
    edges = graph.edges
    return GraphInput(
        torch.from_numpy(graph.features), torch.from_numpy(graph.types), torch.from_numpy(edges.receiver),
        torch.from_numpy(edges.sender), torch.from_numpy(edges.place),
        torch.from_numpy(graph.world[: graph.receivers]), graph.count,
        None if graph.edge is None else torch.from_numpy(graph.edge[graph.mask]),
    )  # fmt: skip


def gather_slots(values: Tensor, graph: GraphInput, empty: float = 0.0) -> Tensor:
    """(n, S, d): `values` ((E, d)) of the edges in their slots, `empty` where there is none."""
    padded = torch.cat([values, values.new_full((1, values.shape[1]), empty)])
    return padded.index_select(0, graph.place.reshape(-1)).view(*graph.place.shape, values.shape[1])


def sum_messages(messages: Tensor, graph: GraphInput) -> Tensor:
    """(n, d): the sum of the messages ((E, d)) of every receiver, in a fixed order (eq. 23)."""
    return gather_slots(messages, graph).sum(dim=1)


def add_messages(messages: Tensor, graph: GraphInput) -> Tensor:
    """`sum_messages` without the table of slots: of real edges only, which a small network needs to be fast."""
    return messages.new_zeros(graph.receivers, messages.shape[1]).index_add(0, graph.receiver, messages)


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
        """f_ij, (E, width), from the states h (M, width) (eq. 19)."""
        for_receiver, for_difference, for_kind = torch.split(self.message_in.weight, h.shape[1], dim=1)
        own = functional.linear(h[: graph.receivers], for_receiver - for_difference, self.message_in.bias)
        kind = functional.linear(self.edge_kind.weight, for_kind)
        sent = functional.linear(h, for_difference) + kind.index_select(0, graph.types)
        mixed = own.index_select(0, graph.receiver) + sent.index_select(0, graph.sender)
        return torch.relu(self.message_out(torch.relu(self.message_norm(mixed))))

    def forces(self, f: Tensor) -> tuple[Tensor, Tensor]:
        """Gates (w_att, w_rep) in (0, 1), (E, 2), and strengths S > 0, (E, 1) (eq. 20, eq. 21)."""
        # Both small networks start from f: one product instead of two.
        weight = torch.cat([self.gate_in.weight, self.strength_in.weight])
        bias = torch.cat([self.gate_in.bias, self.strength_in.bias])
        hidden = torch.relu(functional.linear(f, weight, bias))
        gates = torch.sigmoid(self.gate_out(hidden[:, :GATE_HIDDEN]))
        return gates, functional.softplus(self.strength_out(hidden[:, GATE_HIDDEN:]))

    def messages(self, h: Tensor, graph: GraphInput) -> Tensor:
        """m_{j -> i} of every edge, (E, width) (eq. 22)."""
        f = self.interactions(h, graph)
        gates, strength = self.forces(f)
        attraction, repulsion = gates[:, :1], gates[:, 1:]
        return f * (strength * signed_gate(attraction, repulsion, self.gates))

    def forward(self, h: Tensor, graph: GraphInput, *, last: bool = False) -> Tensor:
        """States after the round: (M, width), in the last round (n, width), the receivers alone (eq. 24)."""
        received = sum_messages(self.messages(h, graph), graph)
        if last:
            h = h[: graph.receivers]
        else:
            unreached = h.new_zeros(h.shape[0] - graph.receivers, h.shape[1])
            received = torch.cat([received, unreached])
        return h + self.dropout(torch.relu(self.update(torch.cat([h, received], dim=1))))


class CompactLayer(nn.Module):
    """A PhyGNN layer with less arithmetic: hidden sizes are the width, gates are linear, nothing is normalized.

        f_ij = relu(W_f relu(W_i h_i + W_j h_j + b_kind(j) + W_e e_ij (1 + k_kind(j))))
        m_i = sum_j f_ij softplus(s . f_ij) (sigmoid(a . f_ij) - sigmoid(r . f_ij)),   h_i <- h_i + relu(U [h_i, m_i])

    A disclosed deviation (METHODS 4.12): the equations 19 to 24 with smaller functions.
    """

    def __init__(self, spec: EncoderSpec) -> None:
        super().__init__()
        width = spec.width
        self.gates = spec.gates
        self.own, self.sent = nn.Linear(width, width), nn.Linear(width, width, bias=False)
        self.kind = nn.Embedding(spec.types, width)
        self.out = nn.Linear(width, width)
        self.force = nn.Linear(width, 3)  # attraction, repulsion, strength
        self.update = nn.Sequential(nn.Linear(2 * width, width), nn.ReLU(), nn.Linear(width, width))
        if spec.edge_features:
            self.edge = nn.Linear(spec.edge_features, width, bias=False)
            self.edge_scale = nn.Embedding(spec.types, spec.edge_features)
            nn.init.zeros_(self.edge_scale.weight)

    def messages(self, h: Tensor, graph: GraphInput) -> Tensor:
        """m_{j -> i} of every edge, (E, width)."""
        sent = self.sent(h) + self.kind.weight.index_select(0, graph.types)
        mixed = self.own(h[: graph.receivers]).index_select(0, graph.receiver)
        mixed.add_(sent.index_select(0, graph.sender))  # in place: a pass over all edges costs as much as a product
        if graph.edge is not None:
            kinds = graph.types.index_select(0, graph.sender)
            mixed.add_(self.edge(graph.edge * (1.0 + self.edge_scale.weight.index_select(0, kinds))))
        f = torch.relu_(self.out(torch.relu_(mixed)))
        attraction, repulsion, strength = self.force(f).split(1, dim=1)
        return f * (functional.softplus(strength) * signed_gate(attraction.sigmoid(), repulsion.sigmoid(), self.gates))

    def forward(self, h: Tensor, graph: GraphInput, *, last: bool = False) -> Tensor:
        """States after the round: (M, width), in the last round (n, width), the receivers alone."""
        received = add_messages(self.messages(h, graph), graph)
        if last:
            h = h[: graph.receivers]
        first, second = self.update[0], self.update[2]
        assert isinstance(first, nn.Linear)
        for_own, for_received = torch.split(
            first.weight, h.shape[1], dim=1
        )  # nodes that receive nothing cost no product
        heard = _pad(functional.linear(received, for_received), h.shape[0])
        return h + torch.relu(second(torch.relu(functional.linear(h, for_own, first.bias) + heard)))


def signed_gate(attraction: Tensor, repulsion: Tensor, gates: Gates) -> Tensor:
    """w_att - w_rep, or the one that an ablation leaves (METHODS 4.7)."""
    if gates == "no-attraction":
        return -repulsion
    return attraction if gates == "no-repulsion" else attraction - repulsion


@dataclass(frozen=True)
class EncoderSpec:
    """Which encoder; the defaults are the paper's (689,193 parameters).

    Attributes:
        layer: Kind of message passing.
        layers: Rounds L. width: d_h.
        features: Numbers per node. types: Node types, which are also the edge kinds.
        gates: Gate ablation of PhyGNN.
        dropout: On the update of every PhyGNN layer; the paper mentions none.
        compact: Hidden sizes are the width and PhyGNN layers are `CompactLayer`s.
        edge_features: Numbers per edge; only compact PhyGNN layers read them.
    """

    layer: LayerKind = "phygnn"
    layers: int = 3
    width: int = 128
    features: int = len(NODE_FEATURES)
    types: int = 3
    gates: Gates = "both"
    dropout: float = 0.0
    compact: bool = False
    edge_features: int = 0

    def __post_init__(self) -> None:
        if self.edge_features and not (self.compact and self.layer == "phygnn"):
            raise InputError(f"a {self.layer} layer reads no edge features: choose layer=phygnn and compact=true")


class GraphEncoder(nn.Module):
    """Node encoder [x, type embedding] -> h0, then L rounds of messages; one embedding per receiver."""

    def __init__(self, spec: EncoderSpec = EncoderSpec()) -> None:
        super().__init__()
        self.spec = spec
        self.kernel: Callable[[GraphInput], Tensor] | None = None  # the same in C, while learning (learner.speed_up)
        self.node_type = nn.Embedding(spec.types, TYPE_WIDTH)
        hidden = spec.width if spec.compact else ENCODER_HIDDEN
        self.node = nn.Sequential(
            nn.Linear(spec.features + TYPE_WIDTH, hidden), nn.ReLU(), nn.Linear(hidden, spec.width), nn.ReLU()
        )
        self.layers = nn.ModuleList(_make_layer(spec) for _ in range(spec.layers))
        if spec.compact:  # without LayerNorm, embeddings of size 1 would outweigh the features
            for module in self.modules():
                if isinstance(module, nn.Embedding):
                    nn.init.normal_(module.weight, std=COMPACT_EMBEDDING)

    def forward(self, graph: GraphInput) -> Tensor:
        """(n, width), the embeddings h^(L) of the receivers (eq. 17, eq. 18)."""
        if self.kernel is not None:
            return self.kernel(graph)
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
        """(M, width) from h (M, width); nodes that receive nothing hear only themselves."""
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
        """(M, width) from h (M, width); nodes that receive nothing attend to themselves."""
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
    if spec.layer == "phygnn" and spec.compact:
        return CompactLayer(spec)
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
