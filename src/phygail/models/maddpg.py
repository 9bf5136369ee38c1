"""Actor and centralized critic of CR-MA (METHODS 3.7). The critic serves training only."""

from __future__ import annotations

import itertools

import torch
from torch import Tensor, nn

LAST_LAYER_BOUND = 3e-3  # small first actions: the fields alone move the swarm at the beginning


class Actor(nn.Module):
    """20 -> 128 -> 128 -> 2, ReLU, tanh; shared by all UAVs."""

    def __init__(self, inputs: int = 20, hidden: int = 128, outputs: int = 2) -> None:
        super().__init__()
        widths = (inputs, hidden, hidden, outputs)
        self.layers = nn.ModuleList(nn.Linear(a, b) for a, b in itertools.pairwise(widths))
        for parameter in self.layers[-1].parameters():
            nn.init.uniform_(parameter, -LAST_LAYER_BOUND, LAST_LAYER_BOUND)

    def forward(self, observation: Tensor) -> Tensor:
        """(..., 2) actions in [-1, 1] from (..., 20) observations."""
        signal = observation
        for layer in list(self.layers)[:-1]:
            signal = torch.relu(layer(signal))
        return torch.tanh(self.layers[-1](signal))


class Critic(nn.Module):
    """Q_i = MLP([phi_i, mean_j phi_j, max_j phi_j]) with phi = MLP(obs, action): any number of alive UAVs.

    phi is 22 -> 128 -> 128, the value head 384 -> 128 -> 1. Padded UAVs enter neither the mean nor the maximum.
    """

    def __init__(self, inputs: int = 22, hidden: int = 128) -> None:
        super().__init__()
        self.phi = nn.Sequential(nn.Linear(inputs, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU())
        self.joint = nn.Linear(3 * hidden, hidden)
        self.value = nn.Linear(hidden, 1)

    def forward(self, observation: Tensor, action: Tensor, alive: Tensor) -> Tensor:
        """(b, k) values from (b, k, 20) observations, (b, k, 2) actions and (b, k) bool; zero for padding."""
        worlds, agents = alive.shape
        rows = alive.reshape(-1).nonzero().squeeze(1)  # half of a typical batch is padding: compute on the alive only
        packed = torch.cat([observation, action], dim=-1).flatten(0, 1).index_select(0, rows)
        phi = self.phi(packed)
        padded = phi.new_zeros(worlds * agents, phi.shape[1]).index_copy(0, rows, phi).view(worlds, agents, -1)
        mean = padded.sum(dim=1) / alive.sum(dim=1, keepdim=True).clamp(min=1)
        peak = padded.amax(dim=1)  # phi >= 0 (ReLU), so the zeros of the padding are no false maximum
        # The layer that joins them, split into the own and the shared part: the shared one is computed once per world.
        own, shared = self.joint.weight[:, : phi.shape[1]], self.joint.weight[:, phi.shape[1] :]
        common = nn.functional.linear(torch.cat([mean, peak], dim=1), shared, self.joint.bias)
        hidden = torch.relu(nn.functional.linear(phi, own) + common.index_select(0, rows // agents))
        value = self.value(hidden).squeeze(1)
        return value.new_zeros(worlds * agents).index_copy(0, rows, value).view(worlds, agents)
