"""MAPPO: PPO per alive UAV with one shared actor and a centralized critic (METHODS 4.3, 4.4)."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from phygail.models.actor import Gaussian
from phygail.models.critic import Critic
from phygail.models.inputs import GraphInput, to_tensors
from phygail.rng import generator
from phygail.training.buffer import Rollout, shuffled, split
from phygail.training.gae import normalize
from phygail.training.learner import Learner
from phygail.training.profiles import TrainConfig

MEASURES = ("policy", "value", "entropy", "kl", "clipped")


def entropy_weight(epoch: int, config: TrainConfig) -> float:
    """Weight of the entropy bonus in epoch 1, 2, ...: falls linearly, then stays."""
    share = min(1.0, (epoch - 1) / max(1.0, config.entropy_share * config.epochs))
    return config.entropy_first + share * (config.entropy_last - config.entropy_first)


@torch.no_grad()
def evaluate_values(critic: Critic, rollout: Rollout, config: TrainConfig) -> tuple[np.ndarray, np.ndarray]:
    """V of the states acted in, (T, B, n), and of those after the last step, (B, n); 0 for padding."""
    values = [
        critic(graph, rollout.clock_of(rows) if config.critic_clock else None).numpy()
        for graph, rows in rollout.parts(config.micro_graphs)
    ]
    last = to_tensors(rollout.after)
    clock = torch.from_numpy(rollout.clock_after).index_select(0, last.world) if config.critic_clock else None
    after = np.zeros(rollout.alive_after.shape)
    after[rollout.alive_after] = critic(last, clock).numpy()
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
        targets[rollout.alive].astype(np.float32),
    )  # fmt: skip
    rng, bonus = generator(config.seed, "ppo", epoch), entropy_weight(epoch, config)
    sizes = np.bincount(rollout.graph.world[: rollout.nodes], minlength=rollout.graphs)
    with_actor = epoch > config.critic_only_epochs
    totals, weight = np.zeros(len(MEASURES)), 0
    for _ in range(config.ppo_epochs):
        for batch in shuffled(rollout.graphs, config.batch_graphs, rng):
            nodes = int(sizes[batch].sum())
            for part in split(batch, config.micro_graphs):
                graph, rows = rollout.batch(part)
                loss, measures = part_loss(learner, graph, rows, rollout, goals, config, bonus)
                (loss / nodes).backward()  # type: ignore[no-untyped-call]  # torch does not annotate it
                totals, weight = totals + measures, weight + len(rows)
            if with_actor:
                learner.descend("actor", config.gradient_norm)
            learner.optimizers["actor"].zero_grad()
            learner.descend("critic", config.gradient_norm)
    return dict(zip(MEASURES, (totals / weight).tolist(), strict=True)) | {"entropy_weight": bonus}


class Goals:
    """What the nodes of a rollout are held against, flat: u (M, 2), log_prob, advantage and target (M,)."""

    def __init__(self, u: np.ndarray, log_prob: np.ndarray, advantage: np.ndarray, target: np.ndarray) -> None:
        self.u, self.log_prob = torch.from_numpy(u), torch.from_numpy(log_prob)
        self.advantage, self.target = torch.from_numpy(advantage), torch.from_numpy(target)


def part_loss(
    learner: Learner, graph: GraphInput, rows: np.ndarray, rollout: Rollout, goals: Goals, config: TrainConfig,
    bonus: float,
) -> tuple[Tensor, np.ndarray]:  # fmt: skip
    """Sum over the nodes `rows` of actor and critic loss (their parameters are disjoint), and of every measure."""
    index = torch.from_numpy(rows)
    belief = learner.actor(graph)
    ratio = probability_ratio(belief, goals.u.index_select(0, index), goals.log_prob.index_select(0, index))
    gain = clipped_gain(ratio, goals.advantage.index_select(0, index), config.ratio_clip)
    values = learner.critic(graph, rollout.clock_of(rows) if config.critic_clock else None)
    error = 0.5 * (values - goals.target.index_select(0, index)).square()
    entropy = belief.entropy()
    loss = error.sum() - gain.sum() - bonus * entropy.sum()
    with torch.no_grad():
        kl = ratio - 1.0 - ratio.log()  # of old from new: never negative (Schulman's k3)
        clipped = ((ratio - 1.0).abs() > config.ratio_clip).float()
        measures = [-gain, error, entropy, kl, clipped]
    return loss, np.array([float(measure.detach().sum()) for measure in measures])


def probability_ratio(belief: Gaussian, u: Tensor, log_prob: Tensor) -> Tensor:
    """(n,) pi_new(u) / pi_old(u) with the stored u: exactly 1 before the first update, up to rounding (PH-6)."""
    return torch.exp(belief.log_prob(u) - log_prob)


def clipped_gain(ratio: Tensor, advantage: Tensor, clip: float) -> Tensor:
    """(n,) min(ratio A, clip(ratio, 1 - c, 1 + c) A), to be maximized."""
    return torch.minimum(ratio * advantage, ratio.clamp(1.0 - clip, 1.0 + clip) * advantage)
