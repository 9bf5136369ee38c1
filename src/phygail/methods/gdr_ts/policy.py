"""The plan policy of GDR-TS and its policy gradient (METHODS 3.6): a one-step decision problem.

The state is a split swarm with its contracted, connected warm start Y; the action says for every UAV how far to go back
toward its own place and by how much to shift; the reward is minus the flight of the plan.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from phygail.config import LINK_TOLERANCE_M
from phygail.learning.networks import uniform_parameter

NEGATIVE_SLOPE = 0.2  # of the leaky ReLU inside the attention score

FEATURES = 7
ACTION = 3  # sigma: share of the way back to the own place; o: fine shift in x and y
HEADS, HEAD_WIDTH, LAYERS = 4, 16, 3
FIRST_LOG_STD = -2.0
SHIFT = 0.25  # of the radio range: largest fine shift
MEAN_WEIGHT = 0.2  # of the mean displacement in the reward
GAP_WEIGHT = 2.0  # of the gap in the reward
SPLIT_COST = 0.5  # per subnet above one


class GraphAttention(nn.Module):
    """Plain graph attention (GAT, Velickovic et al. 2018), heads concatenated.

    e_ij = LeakyReLU(a_target . W x_i + a_source . W x_j), alpha_i = softmax of e_i over the neighbors j of i,
    x'_i = sum_j alpha_ij W x_j + b, per head. Chosen over GATv2, whose dense scores need heads x width times the memory
    (58 MB a layer and pass at 475 alive against 4 MB).
    """

    def __init__(self, inputs: int, heads: int, width: int, generator: torch.Generator | None = None) -> None:
        super().__init__()
        self.heads, self.width = heads, width
        glorot = math.sqrt(6.0 / (inputs + heads * width))
        self.weight = uniform_parameter((inputs, heads * width), glorot, generator)
        self.source = uniform_parameter((heads, width), math.sqrt(6.0 / (heads + width)), generator)
        self.target = uniform_parameter((heads, width), math.sqrt(6.0 / (heads + width)), generator)
        self.bias = nn.Parameter(torch.zeros(heads * width))

    def forward(self, x: Tensor, adjacency: Tensor) -> Tensor:
        """(n, heads * width) from x (n, inputs) and adjacency (n, n) bool: what row i attends to, itself included."""
        values = (x @ self.weight).view(-1, self.heads, self.width).transpose(0, 1)  # (heads, n, width)
        toward = torch.einsum("hnd,hd->hn", values, self.target)[:, :, None]
        away = torch.einsum("hnd,hd->hn", values, self.source)[:, None, :]
        score = nn.functional.leaky_relu(toward + away, NEGATIVE_SLOPE)
        attention = torch.softmax(score.masked_fill(~adjacency, float("-inf")), dim=-1)
        mixed = torch.bmm(attention, values)  # (heads, n, width)
        return mixed.transpose(0, 1).reshape(-1, self.heads * self.width) + self.bias


@dataclass(frozen=True, eq=False)
class PlanTask:
    """The task of the policy: one split swarm.

    Attributes:
        positions: (n, 2) m, relative to the center.
        warm: (n, 2) m, the connected warm start Y, relative to the center.
        attends: (n, n) bool, what each UAV attends to, itself included.
        half_width_m: W/2, the unit of lengths for the network.
        range_m: R.
        plan_range_m: Radio range at which plans must be connected, a little below R.
    """

    positions: np.ndarray
    warm: np.ndarray
    attends: Tensor
    half_width_m: float
    range_m: float
    plan_range_m: float

    @property
    def features(self) -> Tensor:
        """(n, 7): (p-c)/(W/2), (y-c)/(W/2), |p-y|/(W/2), R/(W/2), |p-y|/max|p-y|."""
        moved = np.hypot(*(self.positions - self.warm).T)[:, None]
        half = self.half_width_m
        range_column = np.full_like(moved, self.range_m / half)
        columns = (self.positions / half, self.warm / half, moved / half, range_column, moved / max(moved.max(), 1e-9))
        return torch.from_numpy(np.hstack(columns).astype(np.float32))


class PlanPolicy(nn.Module):
    """Linear 7 -> 64, three attention layers x + ELU(LN(GAT(x))), head 64 -> 64 -> 3 that starts at zero.

    A zero action decodes to Y, so the untrained policy is the feasible contraction plan.
    """

    def __init__(self, seed: int = 0) -> None:
        super().__init__()
        width = HEADS * HEAD_WIDTH
        with torch.random.fork_rng(devices=[]):  # nn.Linear draws from torch's global stream
            torch.manual_seed(seed)
            self.embed = nn.Linear(FEATURES, width)
            self.attention = nn.ModuleList(GraphAttention(width, HEADS, HEAD_WIDTH) for _ in range(LAYERS))
            self.norm = nn.ModuleList(nn.LayerNorm(width) for _ in range(LAYERS))
            self.head = nn.Sequential(nn.Linear(width, width), nn.ELU(), nn.Linear(width, ACTION))
        for parameter in self.head[-1].parameters():
            nn.init.zeros_(parameter)
        self.log_std = nn.Parameter(torch.full((ACTION,), FIRST_LOG_STD))

    def forward(self, features: Tensor, attends: Tensor) -> Tensor:
        """(n, 3) mean actions from (n, 7) features and (n, n) bool."""
        x = self.embed(features)
        for attention, norm in zip(self.attention, self.norm, strict=True):
            x = x + nn.functional.elu(norm(attention(x, attends)))
        return self.head(x)


def decode(task: PlanTask, action: np.ndarray) -> np.ndarray:
    """q_i = y_i + clip(sigma_i, 0, 1) (p_i - y_i) + 0.25 R tanh(o_i), (..., n, 2) m from (..., n, 3)."""
    back = np.clip(action[..., :1], 0.0, 1.0) * (task.positions - task.warm)
    return task.warm + back + SHIFT * task.range_m * np.tanh(action[..., 1:])


@dataclass(frozen=True, eq=False)
class Judgment:
    """The judgment of k plans for n UAVs.

    Attributes:
        reward: (k,) r of each plan.
        own: (k, n) the part of r that each UAV's own place decides; parts overlap and do not sum to r.
        largest_m: (k,) m, largest displacement.
        subnets: (k,) number of subnets.
    """

    reward: np.ndarray
    own: np.ndarray
    largest_m: np.ndarray
    subnets: np.ndarray


def judge(task: PlanTask, plans: np.ndarray) -> Judgment:
    """R = -(max_i |q_i - p_i| + 0.2 mean_i |q_i - p_i| + 2 gap(Q))/(W/2) - 0.5 (N_c(Q) - 1) of plans (k, n, 2) m.

    The gap term is ours. Without it "leave one UAV behind" (0.5) can beat a long flight, and among split plans only
    the flight counts: policies then learn to stay at home. Closing a gap of g meters costs at most 1.2 g of flight,
    less than the 2 g it is charged with, so connected plans are best.

    A UAV's own part is its term of the mean, the maximum if it flies farthest, and every tree edge that is too long and
    ends at it. The whole edge counts for both ends: either could close it.
    """
    count, n = plans.shape[:2]
    rows = np.arange(count)
    moves = np.hypot(*np.moveaxis(plans - task.positions, -1, 0))
    ends, lengths = plan_trees(plans)
    excess = lengths - task.plan_range_m
    split = excess > LINK_TOLERANCE_M  # cutting the tree's long edges leaves the subnets
    edge_cost = GAP_WEIGHT * np.maximum(0.0, excess) / task.half_width_m + SPLIT_COST * split
    farthest = moves.argmax(axis=1)
    own = -MEAN_WEIGHT / n * moves / task.half_width_m
    own[rows, farthest] -= moves[rows, farthest] / task.half_width_m
    reward = own.sum(axis=1) - edge_cost.sum(axis=1)
    for end in ends:
        np.subtract.at(own, (rows[:, None], end), edge_cost)
    return Judgment(reward, own, moves[rows, farthest], 1 + split.sum(axis=1))


def plan_trees(plans: np.ndarray) -> tuple[tuple[np.ndarray, np.ndarray], np.ndarray]:
    """Minimum spanning trees of k plans ((k, n, 2) m): both ends ((k, n-1) int each) and (k, n-1) lengths in m.

    Prim's algorithm on all plans at once: n rounds on (k, n) arrays. `swarm.tree.spanning_tree` is its oracle.
    """
    count, n = plans.shape[:2]
    x, y = plans[..., 0], plans[..., 1]
    rows, newest = np.arange(count), np.zeros(count, dtype=np.intp)
    distance = np.full((count, n), np.inf)  # squared, from the tree to each point outside; infinite inside
    nearest = np.zeros((count, n), dtype=np.intp)  # the point of the tree it is measured from
    outside = np.ones((count, n), dtype=bool)
    inner, outer = np.empty((2, count, n - 1), dtype=np.intp)
    lengths = np.empty((count, n - 1))
    for k in range(n - 1):
        outside[rows, newest] = False
        fresh = (x - x[rows, newest, None]) ** 2 + (y - y[rows, newest, None]) ** 2
        closer = fresh < distance
        distance = np.where(outside, np.where(closer, fresh, distance), np.inf)
        nearest = np.where(closer, newest[:, None], nearest)
        newest = distance.argmin(axis=1)
        inner[:, k], outer[:, k], lengths[:, k] = nearest[rows, newest], newest, distance[rows, newest]
    return (inner, outer), np.sqrt(lengths)


@dataclass(frozen=True, eq=False)
class Sampled:
    """Plans of one policy on one task: loss, plans (k + 1, n, 2) m (the mean's plan last), and their judgment."""

    loss: Tensor
    plans: np.ndarray
    judgment: Judgment


def sample_plans(policy: PlanPolicy, task: PlanTask, samples: int, noise: torch.Generator) -> Sampled:
    """Draw plans, judge them, and build the policy-gradient loss.

    loss = -mean over plans and UAVs of (advantage x log-probability of the UAV's action).
    """
    mean = policy(task.features, task.attends)
    std = policy.log_std.exp()
    with torch.no_grad():
        action = mean + std * torch.randn((samples, *mean.shape), generator=noise)
        plans = decode(task, torch.cat([action, mean[None]]).double().numpy())
    judgment = judge(task, plans)
    weight = torch.from_numpy(advantages(judgment.reward[:samples], judgment.own[:samples])).float()
    # Log-probability of a Gaussian, without the constant, which has no gradient.
    log_probability = (-0.5 * ((action - mean) / std).square() - policy.log_std).sum(dim=-1)
    return Sampled(-(weight * log_probability).mean(), plans, judgment)


def advantages(reward: np.ndarray, own: np.ndarray) -> np.ndarray:
    """(k, n) advantage of each UAV in each sampled plan, from (k,) rewards and (k, n) own parts.

    (r - mean r)/(std r + 1e-6) within the task, the same for all UAVs, plus (own - mean own) of the UAV. The second
    part is ours: with the first alone the signal of a UAV is lost in the noise of all the others.
    """
    team = (reward - reward.mean()) / (reward.std() + 1e-6)
    return team[:, None] + own - own.mean(axis=0)


def descend(policy: PlanPolicy, optimizer: torch.optim.Optimizer, loss: Tensor) -> None:
    """One optimizer step with the gradient norm clipped to 1."""
    optimizer.zero_grad()
    loss.backward()  # type: ignore[no-untyped-call]  # torch does not annotate it
    nn.utils.clip_grad_norm_(policy.parameters(), 1.0)
    optimizer.step()
