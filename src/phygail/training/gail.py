"""The adversary: a discriminator of expert and policy, and the imitation reward it gives (METHODS 4.3-4.5)."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from phygail.experts.dataset import ExpertSet
from phygail.models.discriminator import Discriminator
from phygail.models.inputs import GraphInput, to_tensors
from phygail.rng import generator
from phygail.training.buffer import Rollout, shuffled, split
from phygail.training.collector import noise_generator
from phygail.training.learner import Learner
from phygail.training.maps import on_other_maps
from phygail.training.profiles import TrainConfig
from phygail.training.rewards import imitation_reward

Behavior = tuple[GraphInput, Tensor]  # observations and what each receiver did: (n, 2), executed velocity / v_max


def update_discriminator(
    learner: Learner, rollout: Rollout, experts: ExpertSet, config: TrainConfig, epoch: int
) -> dict[str, float]:
    """One pass over the rollout; every part of it meets as many nodes of expert frames, turned at random (D4)."""
    if config.w_il == 0.0:
        return {}
    rng = generator(config.seed, "discriminator", epoch)
    noise = noise_generator(config.seed, "discriminator noise", epoch)
    totals, weight = np.zeros(3), 0
    for batch in shuffled(rollout.graphs, config.batch_graphs, rng):
        for part in split(batch, config.micro_graphs):
            policy, expert = meeting(rollout, part, experts, config, rng)
            logits = [
                learner.discriminator.logit_expert_is_high(graph, blurred(command, config, noise))
                for graph, command in (expert, policy)
            ]
            count = min(map(len, logits))  # the same number of nodes from both
            expert_logits, policy_logits = (values[:count] for values in logits)
            loss = soft_label_loss(expert_logits, policy_logits, config)
            (loss * len(part) / len(batch)).backward()  # type: ignore[no-untyped-call]  # torch does not annotate it
            seen = [loss, expert_logits.sigmoid().mean(), policy_logits.sigmoid().mean()]
            totals, weight = totals + count * np.array([float(x.detach()) for x in seen]), weight + count
        learner.descend("discriminator", config.gradient_norm)
    return dict(zip(("loss", "d_expert", "d_policy"), (totals / weight).tolist(), strict=True))


def soft_label_loss(expert_logits: Tensor, policy_logits: Tensor, config: TrainConfig) -> Tensor:
    """Binary cross-entropy with soft targets, both of its terms, the mean over both classes.

    The paper prints only -0.9 log D_expert - 0.1 log(1 - D_policy), whose optimum is still D in {0, 1}; with the
    complementary terms it is D = 0.9 and 0.1 (METHODS 4.3).
    """
    pairs = ((expert_logits, config.target_expert), (policy_logits, config.target_policy))
    losses = [
        functional.binary_cross_entropy_with_logits(logits, torch.full_like(logits, target)) for logits, target in pairs
    ]
    return (losses[0] + losses[1]) / 2


def meeting(
    rollout: Rollout, part: np.ndarray, experts: ExpertSet, config: TrainConfig, rng: np.random.Generator
) -> tuple[Behavior, Behavior]:
    """Some observations of the policy ((g,) numbers) and random expert frames with about as many nodes."""
    graph, rows = rollout.batch(part)
    frames = experts.sample(rng, max(1, round(len(rows) / experts.uavs_per_frame)))
    frames = on_other_maps(frames, config, rng)
    expert = to_tensors(frames.graph(config.graph_spec)), torch.from_numpy(frames.commands)
    return (graph, torch.from_numpy(rollout.command[rows])), expert


def blurred(command: Tensor, config: TrainConfig, noise: torch.Generator) -> Tensor:
    """Commands with noise: experts fly straight and the policy jitters, a cue the discriminator must not live on."""
    return command + config.action_noise * torch.randn(command.shape, generator=noise)


@torch.no_grad()
def imitation_rewards(discriminator: Discriminator, rollout: Rollout, config: TrainConfig) -> np.ndarray:
    """(M,) r_GAIL of every node for what it executed, without noise; zeros if GAIL is left out."""
    if config.w_il == 0.0:
        return np.zeros(rollout.nodes)
    logits = [
        discriminator.logit_expert_is_high(graph, torch.from_numpy(rollout.command[rows])).numpy()
        for graph, rows in rollout.parts(config.micro_graphs)
    ]
    return imitation_reward(np.concatenate(logits))
