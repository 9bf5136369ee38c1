"""Graphs as tensors: a node table, the edges that exist, and where the edges of a receiver are."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from phygail.perception.graph import Graph


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
    """

    features: Tensor
    types: Tensor
    receiver: Tensor
    sender: Tensor
    place: Tensor
    world: Tensor
    count: int

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
    )  # fmt: skip


def gather_slots(values: Tensor, graph: GraphInput, empty: float = 0.0) -> Tensor:
    """(n, S, d): `values` ((E, d)) of the edges in their slots, `empty` where there is none."""
    padded = torch.cat([values, values.new_full((1, values.shape[1]), empty)])
    return padded.index_select(0, graph.place.reshape(-1)).view(*graph.place.shape, values.shape[1])


def sum_messages(messages: Tensor, graph: GraphInput) -> Tensor:
    """(n, d): the sum of the messages ((E, d)) of every receiver, in a fixed order."""
    return gather_slots(messages, graph).sum(dim=1)
