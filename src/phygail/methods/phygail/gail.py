"""The adversary: a discriminator of expert and policy, and the imitation reward it gives (METHODS 4.3-4.5)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from phygail.learning.log import Entry
from phygail.learning.networks import noise_generator
from phygail.learning.worlds import Pool
from phygail.methods.phygail.config import TrainConfig
from phygail.methods.phygail.experts.dataset import ExpertSet
from phygail.methods.phygail.heads import Discriminator
from phygail.methods.phygail.learner import Learner
from phygail.methods.phygail.network import GraphInput, to_tensors
from phygail.methods.phygail.rewards import imitation_reward
from phygail.methods.phygail.rollout import Rollout, on_other_maps, shuffled, split
from phygail.rng import generator

PATIENCE = 20  # epochs in a row after which a discriminator counts as winning or as blind
CLEAR = 0.02  # distance to its labels, or to 1/2, that counts as such an epoch
Behavior = tuple[GraphInput, Tensor]  # observations and what each receiver did: (n, 2), executed velocity / v_max


def update_discriminator(
    learner: Learner, rollout: Rollout, experts: ExpertSet | Pool, config: TrainConfig, epoch: int
) -> dict[str, float]:
    """One pass over the rollout, or a share of it; parts are paired with as many nodes of turned expert frames (D4)."""
    if config.w_il == 0.0:
        return {}
    assert isinstance(experts, ExpertSet)  # `TrainConfig` asks for it
    rng = generator(config.seed, "discriminator", epoch)
    noise = noise_generator(config.seed, "discriminator noise", epoch)
    totals, weight = np.zeros(3), 0
    batches = shuffled(rollout.graphs, config.batch_graphs, rng)
    for batch in batches[: max(1, round(config.judged_share * len(batches)))]:
        for part in split(batch, config.micro_graphs):
            policy, expert = paired_batches(rollout, part, experts, config, rng)
            logits = [
                learner.discriminator.logit_expert_is_high(graph, noisy(command, config, noise))
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
    """Binary cross-entropy with soft targets, both of its terms, the mean over both classes (eq. 31).

    The paper prints only -0.9 log D_expert - 0.9 log(1 - D_policy), whose optimum is still D in {0, 1}; with the
    complementary terms it is D = 0.9 and 0.1 (METHODS 4.3).
    """
    pairs = ((expert_logits, config.target_expert), (policy_logits, config.target_policy))
    losses = [
        functional.binary_cross_entropy_with_logits(logits, torch.full_like(logits, target)) for logits, target in pairs
    ]
    return (losses[0] + losses[1]) / 2


def paired_batches(
    rollout: Rollout, part: np.ndarray, experts: ExpertSet, config: TrainConfig, rng: np.random.Generator
) -> tuple[Behavior, Behavior]:
    """Some observations of the policy ((g,) numbers) and random expert frames with about as many nodes."""
    graph, rows = rollout.judged_batch(part)
    frames = experts.sample(rng, max(1, round(len(rows) / experts.uavs_per_frame)))
    frames = on_other_maps(frames, config, rng)
    expert = to_tensors(frames.graph(config.judge_graph)), torch.from_numpy(frames.commands)
    return (graph, torch.from_numpy(rollout.command[rows])), expert


def noisy(command: Tensor, config: TrainConfig, noise: torch.Generator) -> Tensor:
    """Commands with noise, so that the discriminator cannot tell the policy by the jitter of its exploration."""
    return command + config.action_noise * torch.randn(command.shape, generator=noise)


@torch.no_grad()
def imitation_rewards(discriminator: Discriminator, rollout: Rollout, config: TrainConfig) -> np.ndarray:
    """(M,) r_GAIL of every node for what it executed, without noise; zeros if GAIL is left out."""
    if config.w_il == 0.0:
        return np.zeros(rollout.nodes)
    logits = [
        discriminator.logit_expert_is_high(graph, torch.from_numpy(rollout.command[rows])).numpy()
        for graph, rows in map(rollout.judged_batch, split(np.arange(rollout.graphs), config.micro_graphs))
    ]
    return imitation_reward(np.concatenate(logits))


def diagnosis(entries: Sequence[Entry], config: TrainConfig) -> str:
    """The fault of a run and its remedy, read from the last entries of its log; empty if there is none.

    A discriminator that is always right gives the policy no direction, nor does one that cannot tell experts from the
    policy. Values beyond any possible return have diverged.
    """
    recent = entries[-PATIENCE:]
    error = recent[-1]["ppo"]["value"] if recent else 0.0
    if error is None or not error <= config.reward_limit**2:
        return f"the critic's error {error} is beyond R_max^2 = {config.reward_limit**2:g}: lower rate or gamma"
    judged = [entry["discriminator"] for entry in recent if entry.get("discriminator")]
    if len(judged) < PATIENCE:
        return ""
    expert, policy = (np.array([entry[name] for entry in judged]) for name in ("d_expert", "d_policy"))
    if (expert >= config.target_expert - CLEAR).all() and (policy <= config.target_policy + CLEAR).all():
        return f"the discriminator wins ({expert[-1]:.2f} / {policy[-1]:.2f}): lower judged_share or raise action_noise"
    if (np.abs(expert - 0.5) < CLEAR).all() and (np.abs(policy - 0.5) < CLEAR).all():
        return (
            f"the discriminator is blind ({expert[-1]:.2f} / {policy[-1]:.2f}): raise judged_share, or w_il=0 saves it"
        )
    return ""


def total_reward(rollout: Rollout, imitation: np.ndarray, config: TrainConfig) -> np.ndarray:
    """(T, B, n) R_i: both parts, the credit for steps saved, scaled and clipped; 0 for padding (eq. 36).

    Args:
        rollout: With r_env.
        imitation: (M,) r_GAIL of every node of the rollout.
        config: Weights.
    """
    held = (1.0 - config.gamma**rollout.steps) / (1.0 - config.gamma)  # sum of gamma^k over the steps of a decision
    total = rollout.environment + config.w_il * held[:, :, None] * rollout.padded(imitation)
    if config.absorbing and len(imitation):
        total = total + config.w_il * float(imitation.mean()) * rollout.saved[:, :, None]
    limit = config.reward_limit
    return np.where(rollout.alive, np.clip(total / config.reward_scale, -limit, limit), 0.0)
