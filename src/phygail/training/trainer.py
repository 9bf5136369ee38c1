"""Algorithm 1 of the paper: collect, judge, reward, estimate, learn. Resumable bit for bit."""

from __future__ import annotations

import contextlib

import numpy as np

from phygail.models.plan_search import one_thread
from phygail.training.buffer import Rollout
from phygail.training.checkpoint import BEST, LATEST, SNAPSHOTS, save_policy, save_state
from phygail.training.collector import collect
from phygail.training.curves import draw_curves
from phygail.training.gae import estimate_advantages
from phygail.training.gail import imitation_rewards, update_discriminator
from phygail.training.holdout import Score, validate
from phygail.training.log import Entry, RunLog, Stopwatch, live, speed_report
from phygail.training.mappo import evaluate_values, update_policy
from phygail.training.rewards import total_reward
from phygail.training.run import Run


def train(run: Run, *, until: int | None = None, tensorboard: bool = True) -> Score | None:
    """Train a run to its last epoch, or `until` an earlier one; gives the best validation so far.

    Args:
        run: Of `start_run` or `resume_run`.
        until: Stop after this epoch; the run can be resumed. The result is that of an undisturbed run.
        tensorboard: Write event files beside the log.
    """
    config, learner, experts = run.config, run.learner, run.experts.training
    last = min(config.epochs, until or config.epochs)
    watch, log = Stopwatch(), RunLog(run.folder, learner.epoch, tensorboard=tensorboard)
    # One thread: sums in one order on every machine, and two runs share two cores better than one.
    with one_thread(), contextlib.closing(log), live(learner.epoch, last) as show:
        for epoch in range(learner.epoch + 1, last + 1):
            with watch("collect"):
                rollout = collect(learner.actor, experts, config, epoch)
            with watch("discriminator"):
                judged = update_discriminator(learner, rollout, experts, config, epoch)
            with watch("rewards"):
                imitation = imitation_rewards(learner.discriminator, rollout, config)  # of the updated discriminator
                rewards = total_reward(rollout, imitation, config)
                values, after = evaluate_values(learner.critic, rollout, config)
                advantages, targets = estimate_advantages(
                    rewards, values, after, rollout.ended, config.gamma, config.gae_lambda
                )
            with watch("ppo"):
                learned = update_policy(learner, rollout, advantages, targets, config, epoch)
            learner.epoch = epoch
            entry = describe(epoch, rollout, rewards, imitation, values, targets)
            entry |= {"discriminator": judged, "ppo": learned}
            with watch("validation"):
                entry |= keep_best(run)
            entry |= speed_report(watch.lap(), rollout.graphs)
            log.write(entry)
            show(entry)
            with watch("save"):
                save_state(run.folder, learner)  # last: what it says is done, is done
    draw_curves(run.folder)
    return learner.best


def keep_best(run: Run) -> dict[str, dict[str, float]]:
    """Validate if this epoch is due, save the policies that are; gives the entry of the log."""
    config, learner = run.config, run.learner
    epoch = learner.epoch
    if epoch % config.snapshot_every == 0:
        save_policy(run.folder / SNAPSHOTS / f"epoch-{epoch:05d}.safetensors", learner, config, **run.facts)
    if epoch % config.validate_every and epoch != config.epochs:
        return {}
    score = validate(learner.actor, run.validation, config.graph_spec)
    facts = {**run.facts, "validation": score.entry()}
    save_policy(run.folder / LATEST, learner, config, **facts)
    if score.better_than(learner.best):
        learner.best, learner.best_epoch = score, epoch
        save_policy(run.folder / BEST, learner, config, **facts)
    return {"validation": score.entry()}


def describe(
    epoch: int, rollout: Rollout, rewards: np.ndarray, imitation: np.ndarray, values: np.ndarray, targets: np.ndarray
) -> Entry:
    """What an epoch collected, in numbers."""
    target, error = targets[rollout.alive], (targets - values)[rollout.alive]
    return {
        "epoch": epoch,
        "flown": {**rollout.summary, "nodes": rollout.nodes},
        "reward": {
            "total": float(rewards[rollout.alive].mean()),
            "environment": float(rollout.environment[rollout.alive].mean()),
            "imitation": float(imitation.mean()),
        },
        "value": {
            "mean": float(values[rollout.alive].mean()),
            "explained_variance": 1.0 - float(error.var()) / max(float(target.var()), 1e-12),
        },
    }
