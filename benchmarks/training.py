"""How fast PhyGAIL learns: decisions learned from and world steps flown per second of one core.

    OMP_NUM_THREADS=1 python benchmarks/training.py [--profiles compact plus paper-network] [--repeats 3] [--worlds 128]

A decision is a row of the PPO batch: one world observed, flown for `hold` steps, judged by the discriminator, and
learned from in all passes. Timed is an epoch as `phygail train phygail` runs it (collecting, discriminator, rewards,
values, PPO), without validation, after one epoch to warm up, on demonstrations of SIDR and center-fly on 20 UAVs (plus:
on its pool of worlds, without discriminator). CPU
time of one thread, the fastest of the repeats: on a busy machine the others lost their cache. Floating-point operations
are those that torch counts in one PPO pass, beside a plain product of two matrices on the same core.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import torch
from torch.utils.flop_counter import FlopCounterMode

from phygail.learning.networks import one_thread, parameter_count
from phygail.learning.worlds import Pool, draw_pool
from phygail.methods.phygail.config import PROFILES, TrainConfig
from phygail.methods.phygail.experts.database import concatenate, pack
from phygail.methods.phygail.experts.dataset import ExpertSet
from phygail.methods.phygail.experts.recipe import Recipe, demonstrate
from phygail.methods.phygail.gail import imitation_rewards, total_reward, update_discriminator
from phygail.methods.phygail.learner import Learner, make_learner, speed_up
from phygail.methods.phygail.mappo import estimate_advantages, evaluate_values, update_policy
from phygail.methods.phygail.rollout import Rollout, collect

TARGETS = {"compact": 750.0, "plus": 1000.0, "paper-network": 60.0}  # decisions per second at the profile's hold
SIDE = 1024  # of the matrices of the plain product


def cpu_seconds(act: Callable[[], object]) -> float:
    """CPU time of one call."""
    begun = time.process_time()
    act()
    return time.process_time() - begun


def demonstrations() -> ExpertSet:
    """Two heuristics on six cases of every damage ratio."""
    recipe = Recipe("benchmark", ("sidr", "center-fly"), cases=6)
    archive = concatenate([pack(demonstrate(recipe, number)) for number in range(len(recipe))])
    return ExpertSet(archive, {"config": recipe.config()}, np.arange(len(archive))).training


def epoch(learner: Learner, experts: ExpertSet | Pool, config: TrainConfig, number: int) -> dict[str, float]:
    """CPU seconds per stage of one epoch, and what it flew."""
    kept: dict[str, Rollout] = {}
    seconds = {"collect": cpu_seconds(lambda: kept.update(it=collect(learner.actor, experts, config, number)))}
    rollout = kept["it"]
    seconds["discriminator"] = cpu_seconds(lambda: update_discriminator(learner, rollout, experts, config, number))
    goals: list[np.ndarray] = []

    def judge() -> None:
        rewards = total_reward(rollout, imitation_rewards(learner.discriminator, rollout, config), config)
        values, after = evaluate_values(learner.critic, rollout, config)
        found = estimate_advantages(
            rewards, values, after, rollout.ended, config.gamma, config.gae_lambda, rollout.steps
        )  # fmt: skip
        goals.extend(found)

    seconds["rewards"] = cpu_seconds(judge)
    seconds["ppo"] = cpu_seconds(lambda: update_policy(learner, rollout, goals[0], goals[1], config, number))
    for network in learner.networks.values():
        network.encoder.kernel = None  # the counter sees torch's operations only
    with FlopCounterMode(display=False) as counter:
        update_policy(learner, rollout, goals[0], goals[1], replace(config, ppo_epochs=1), number)
    for network in learner.networks.values():
        speed_up(network.encoder)
    return {
        **seconds, "decisions": rollout.graphs, "world_steps": int(rollout.steps.sum()),
        "flop": counter.get_total_flops() * config.ppo_epochs,
    }  # fmt: skip


def matmul_flops() -> float:
    """Operations per second of a plain product, the best of five."""
    a, b = torch.randn(SIDE, SIDE), torch.randn(SIDE, SIDE)
    return 2.0 * SIDE**3 / min(cpu_seconds(lambda: a @ b) for _ in range(5))


def main() -> int:
    """Print a line per profile; fail below the targets."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--profiles", nargs="+", default=list(TARGETS))
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--worlds", type=int, default=0, help="instead of the profile's")
    given = parser.parse_args()
    flown, slow = demonstrations(), False
    with one_thread():
        peak = matmul_flops()
        for name in given.profiles:
            config = PROFILES.get(name)
            config = replace(config, worlds=given.worlds or config.worlds)
            experts = draw_pool(config.pool, config.pool_seed) if config.pool else flown
            learner = make_learner(config)
            epoch(learner, experts, config, 1)
            runs = [epoch(learner, experts, config, 2 + k) for k in range(given.repeats)]
            stages = ("collect", "discriminator", "rewards", "ppo")
            best = min(runs, key=lambda run: sum(run[stage] for stage in stages) / run["decisions"])
            total = sum(best[stage] for stage in stages)
            rate, flops = best["decisions"] / total, best["flop"] / best["ppo"]
            slow = slow or rate < TARGETS.get(name, 0.0)
            print(
                f"{name}: {parameter_count(learner.actor):,} parameters, {rate:,.0f} decisions/s learned from (target "
                f"{TARGETS.get(name, 0.0):g}), {best['world_steps'] / total:,.0f} world steps/s at hold {config.hold}; "
                + ", ".join(f"{stage} {best[stage]:.2f} s" for stage in stages)
                + f"; PPO {flops / 1e9:.1f} GFLOP/s, a plain product {peak / 1e9:.0f}"
            )
    return int(slow)


if __name__ == "__main__":
    sys.exit(main())
