"""What knowing costs: the bytes and rounds that a UAV broadcasts in a step so that its method knows what it reads.

The world hands every method its view for nothing. On vehicles the view must be told by radio. The count is ours, the
same for all methods: a broadcast is heard by everybody in range, an id is 2 bytes, a number 4; packet headers,
collisions and repeats are left out. What is needed beyond one's neighbors travels in one of two ways.

- *Passed on*: every member broadcasts every other member's record once. Bytes grow with the subnet, rounds with the
  number of hops across it.
- *Summed*: sums (or maxima) go up the subnet's tree and come down again. Bytes stay the same, and rounds are twice the
  depth of the tree.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import dijkstra

from phygail.swarm.links import Links

NUMBER_BYTES = 4
ID_BYTES = 2
PLACE_BYTES = 2 * NUMBER_BYTES
RECORD_BYTES = ID_BYTES + PLACE_BYTES  # who is where


@dataclass(frozen=True)
class Talk:
    """What a UAV broadcasts in every step.

    Attributes:
        rounds: Broadcasts to neighbors. hello_bytes: Bytes of each.
        record_bytes: Bytes about every member of the subnet that everybody passes on once.
        summed_bytes: Bytes that are summed over the subnet, whatever its size.
        roster_bits: Bits about every UAV of the roster; the subnet unites them as it forms sums.
    """

    rounds: int = 0
    hello_bytes: float = 0.0
    record_bytes: int = 0
    summed_bytes: int = 0
    roster_bits: int = 0

    def bytes_per_step(self, members: float, roster: int) -> float:
        """Bytes that one of `members` UAVs of a subnet broadcasts in a step; the swarm began with `roster` UAVs."""
        united = self.summed_bytes + math.ceil(self.roster_bits * roster / 8)
        return self.rounds * self.hello_bytes + self.record_bytes * members + 2 * united

    def rounds_per_step(self, hops: float, depth: float) -> float:
        """Rounds of broadcasts, one after the other, that a step waits for.

        Args:
            hops: Between the two members farthest apart. depth: Of the subnet's tree.
        """
        passed = hops if self.record_bytes else 0.0
        summed = 2 * depth if self.summed_bytes or self.roster_bits else 0.0
        return self.rounds + max(passed, summed)


SILENT = Talk()
HELLO = Talk(rounds=1, hello_bytes=RECORD_BYTES)  # where a UAV is, to its neighbors
FLOOD = Talk(record_bytes=RECORD_BYTES)  # where everybody of the subnet is


def network_talk(layers: int, features: int, width: int) -> Talk:
    """What a graph network broadcasts: in the first round the features of a node, later its hidden state."""
    return Talk(layers, NUMBER_BYTES * (features + (layers - 1) * width) / layers)


@dataclass(frozen=True)
class Spans:
    """How far it is across every subnet.

    Attributes:
        sizes: (count,) int, members. hops: (count,) int, between the farthest two, by two sweeps.
        depth: (count,) int, of the tree that grows from the member with the lowest row.
    """

    sizes: np.ndarray
    hops: np.ndarray
    depth: np.ndarray


def spans(links: Links) -> Spans:
    """Sizes, hops and depths of the subnets of a network."""
    n = len(links.subnet)
    i, j = links.pairs.T
    ones = np.ones(2 * len(i), dtype=np.int8)
    graph = csr_array((ones, (np.concatenate([i, j]), np.concatenate([j, i]))), shape=(n, n))
    first = np.unique(links.subnet, return_index=True)[1]
    found = [_sweeps(graph, int(root)) for root in first]
    return Spans(np.bincount(links.subnet), *(np.array(column) for column in zip(*found, strict=True)))


def _sweeps(graph: csr_array, root: int) -> tuple[int, int]:
    """(hops across, depth from `root`) of the subnet of `root`; the second sweep begins where the first ended."""
    end, depth = _farthest(graph, root)
    return _farthest(graph, end)[1], depth


def _farthest(graph: csr_array, root: int) -> tuple[int, int]:
    """(row, hops away) of the farthest member from `root`."""
    hops = dijkstra(graph, directed=False, indices=root, unweighted=True)
    hops[np.isinf(hops)] = -1
    end = int(hops.argmax())
    return end, int(hops[end])
