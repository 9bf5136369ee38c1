"""MAPPO: PPO per alive UAV with one shared actor and a centralized critic (METHODS 4.3, 4.4), and its advantages."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from phygail.methods.phygail.config import TrainConfig
from phygail.methods.phygail.heads import Critic, Gaussian
from phygail.methods.phygail.learner import Learner
from phygail.methods.phygail.network import GraphInput, to_tensors
from phygail.methods.phygail.rollout import Rollout, shuffled, split
from phygail.rng import generator

MEASURES = ("policy", "value", "entropy", "kl", "clipped")


def estimate_advantages(
    rewards: np.ndarray,
    values: np.ndarray,
    after: np.ndarray,
    ended: np.ndarray,
    gamma: float,
    gae_lambda: float,
    steps: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """(advantages, value targets), both (T, B, n).

    delta_t = R_t + gamma^h V_{t+1} - V_t,  A_t = delta_t + gamma^h lambda A_{t+1} for a decision held h steps;
    V_{t+1} = A_{t+1} = 0 where the episode ended with it. The cut at the horizon is no end: it bootstraps with `after`.

    Args:
        rewards: (T, B, n). values: (T, B, n), V of the states acted in.
        after: (B, n), V of the states after the last step; not read where the episode ended with it.
        ended: (T, B) bool, the episode ended with this step; the next step belongs to another one.
        gamma: Discount per step. gae_lambda: Trade of bias for variance, per decision.
        steps: (T, B) int, h; None: 1 everywhere.
    """
    discount = np.full(ended.shape, gamma) if steps is None else gamma**steps
    advantages = np.zeros_like(rewards)
    following, running = after, np.zeros_like(after)
    for t in range(len(rewards) - 1, -1, -1):
        goes_on, carried = ~ended[t][:, None], discount[t][:, None]
        delta = rewards[t] + carried * np.where(goes_on, following, 0.0) - values[t]
        running = delta + carried * gae_lambda * np.where(goes_on, running, 0.0)
        advantages[t], following = running, values[t]
    return advantages, advantages + values


def normalize(advantages: np.ndarray) -> np.ndarray:
    """Mean 0 and standard deviation 1 over all nodes of the epoch ((M,), padding left out by the caller)."""
    return (advantages - advantages.mean()) / (advantages.std() + 1e-8)


def entropy_weight(epoch: int, config: TrainConfig) -> float:
    """Weight of the entropy bonus in epoch 1, 2, ...: falls linearly, then stays."""
    share = min(1.0, (epoch - 1) / max(1.0, config.entropy_share * config.epochs))
    return config.entropy_first + share * (config.entropy_last - config.entropy_first)


def annealed_rate(epoch: int, config: TrainConfig) -> float:
    """Rate of the optimizers in epoch 1, 2, ...: falls linearly to `rate_last` of itself in every one of the `cycles`.

    A cycle begins at half the rate of the one before.
    """
    length = max(1, config.epochs // config.cycles)
    cycle = min((epoch - 1) // length, config.cycles - 1)
    share = min(1.0, (epoch - 1 - cycle * length) / max(1, length - 1))
    return config.rate * 0.5**cycle * (1.0 - share * (1.0 - config.rate_last))


@torch.no_grad()
def evaluate_values(critic: Critic, rollout: Rollout, config: TrainConfig) -> tuple[np.ndarray, np.ndarray]:
    """V of the states acted in, (T, B, n), and of those after the last step, (B, n); 0 for padding."""
    values = [critic(graph, rollout.facts_of(rows)).numpy() for graph, rows in rollout.parts(config.micro_graphs)]
    last = to_tensors(rollout.after)
    told = torch.from_numpy(rollout.facts_after).index_select(0, last.world) if rollout.facts.shape[1] else None
    after = np.zeros(rollout.alive_after.shape)
    after[rollout.alive_after] = critic(last, told).numpy()
    return rollout.padded(np.concatenate(values)), after


def update_policy(
    learner: Learner, rollout: Rollout, advantages: np.ndarray, targets: np.ndarray, config: TrainConfig, epoch: int
) -> dict[str, float]:
    """The PPO passes of an epoch; gives the mean of every measure over all of them.

    Args:
        learner: Actor and critic learn.
        rollout: What was collected with the actor as it is now.
        advantages: (T, B, n), not yet normalized. targets: (T, B, n), of the values.
        config: Settings. epoch: From 1 on.
    """
    goals = Goals(
        rollout.u, rollout.log_prob, normalize(advantages[rollout.alive]).astype(np.float32),
        targets[rollout.alive].astype(np.float32), node_weights(rollout, config),
    )  # fmt: skip
    rng, bonus = generator(config.seed, "ppo", epoch), entropy_weight(epoch, config)
    world = rollout.graph.world[: rollout.nodes]
    shares = np.bincount(world, weights=goals.weight.numpy(), minlength=rollout.graphs)
    with_actor = epoch > config.critic_only_epochs
    totals, weight = np.zeros(len(MEASURES)), 0
    for _ in range(config.ppo_epochs):
        for batch in shuffled(rollout.graphs, config.batch_graphs, rng):
            total = float(shares[batch].sum())
            for part in split(batch, config.micro_graphs):
                graph, rows = rollout.batch(part)
                loss, measures = part_loss(learner, graph, rows, rollout, goals, config, bonus)
                (loss / total).backward()  # type: ignore[no-untyped-call]  # torch does not annotate it
                totals, weight = totals + measures, weight + len(rows)
            if with_actor:
                learner.descend("actor", config.actor_norm)
            learner.optimizers["actor"].zero_grad()
            learner.descend("critic", config.gradient_norm)
    return dict(zip(MEASURES, (totals / weight).tolist(), strict=True)) | {"entropy_weight": bonus}


def node_weights(rollout: Rollout, config: TrainConfig) -> np.ndarray:
    """(M,) float32, how much every node counts in the losses: those of a world of n together n^world_weight."""
    world = rollout.graph.world[: rollout.nodes]
    sizes = np.bincount(world, minlength=rollout.graphs)
    return (sizes[world] ** (config.world_weight - 1.0)).astype(np.float32)


class Goals:
    """What the nodes of a rollout are held against, flat: u (M, 2), log_prob, advantage, target and weight (M,)."""

    def __init__(
        self, u: np.ndarray, log_prob: np.ndarray, advantage: np.ndarray, target: np.ndarray, weight: np.ndarray
    ) -> None:
        self.u, self.log_prob = torch.from_numpy(u), torch.from_numpy(log_prob)
        self.advantage, self.target, self.weight = map(torch.from_numpy, (advantage, target, weight))


def part_loss(
    learner: Learner, graph: GraphInput, rows: np.ndarray, rollout: Rollout, goals: Goals, config: TrainConfig,
    bonus: float,
) -> tuple[Tensor, np.ndarray]:  # fmt: skip
    """Weighted sum over the nodes `rows` of actor and critic loss (their parameters are disjoint), and the plain sum
    of every measure.
    """
    index = torch.from_numpy(rows)
    weight = goals.weight.index_select(0, index)
    distribution = learner.actor(graph)
    ratio = probability_ratio(distribution, goals.u.index_select(0, index), goals.log_prob.index_select(0, index))
    gain = clipped_gain(ratio, goals.advantage.index_select(0, index), config.ratio_clip)
    values = learner.critic(graph, rollout.facts_of(rows))
    error = 0.5 * (values - goals.target.index_select(0, index)).square()
    entropy = distribution.entropy()
    loss = (weight * (error - gain - bonus * entropy)).sum()
    with torch.no_grad():
        kl = ratio - 1.0 - ratio.log()  # of old from new: never negative (Schulman's k3)
        clipped = ((ratio - 1.0).abs() > config.ratio_clip).float()
        measures = [-gain, error, entropy, kl, clipped]
    return loss, np.array([float(measure.detach().sum()) for measure in measures])


def probability_ratio(distribution: Gaussian, u: Tensor, log_prob: Tensor) -> Tensor:
    """(n,) pi_new(u) / pi_old(u) with the stored u: exactly 1 before the first update, up to rounding (PH-6)."""
    return torch.exp(distribution.log_prob(u) - log_prob)


def clipped_gain(ratio: Tensor, advantage: Tensor, clip: float) -> Tensor:
    """(n,) min(ratio A, clip(ratio, 1 - c, 1 + c) A), to be maximized."""
    return torch.minimum(ratio * advantage, ratio.clamp(1.0 - clip, 1.0 + clip) * advantage)
